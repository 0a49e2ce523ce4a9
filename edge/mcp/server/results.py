"""Envelope → what MCP answers: content blocks, structured content, `isError`, metadata. Pure.

Refuses to decide whether a result is an answer or a question to the client (`elicitation.py`).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from edge.mcp.server.tools import META

BLOCKS: Final = frozenset({"text", "image", "audio", "resource", "resource_link"})
"""Kinds of content both revisions know."""
GET_PENDING: Final = "get_pending_result"
"""Our own tool, which no alias can be: an alias has `__` in it."""
_UNTOLD: Final = frozenset({"none", "queued"})
_META_SKIPPED: Final = frozenset({"content"})

Envelope = Mapping[str, Any]


def result(envelope: Envelope, *, shaped: bool = False, modern: bool = True) -> dict[str, Any]:
    """Give the CallToolResult; `shaped`: the tool promises a form of its output; `modern`:
    structured content may be anything.
    """
    told: dict[str, Any] = (
        answer(envelope, modern=modern) if envelope.get("ok") else failure(envelope, shaped=shaped)
    )
    if envelope.get("ok") and shaped and ("structuredContent" not in told or later(envelope)):
        told = unshaped(envelope, told)
    if advice := later(envelope) or delivered(envelope):
        told["content"] = [*told["content"], {"type": "text", "text": advice}]
    meta = {META + "meta": _meta(envelope)}
    if envelope.get("intents"):
        meta[META + "intents"] = envelope["intents"]
    return {"resultType": "complete", **told, "_meta": {**told.get("_meta", {}), **meta}}


def answer(envelope: Envelope, *, modern: bool) -> dict[str, Any]:
    """A success: the tool's own blocks where it gave some, else its data as text."""
    data, blocks = envelope.get("data"), content(envelope)
    told: dict[str, Any] = {
        "content": blocks if blocks is not None else [text(data)],
        "isError": False,
    }
    said = blocks is not None and isinstance(
        data, str
    )  # then it is nothing but the blocks' words, for who knows no blocks
    if data is not None and not said and (modern or isinstance(data, Mapping)):
        told["structuredContent"] = data
    return told


def failure(envelope: Envelope, *, shaped: bool) -> dict[str, Any]:
    """A failure: a sentence for the model, the envelope for a program (beside the structured
    content a form was promised of).
    """
    blocks = content(envelope)
    told: dict[str, Any] = {
        "content": blocks or [{"type": "text", "text": sentence(envelope.get("error") or {})}],
        "isError": True,
    }
    whole = {
        **{key: envelope[key] for key in ("ok", "error") if key in envelope},
        "meta": _meta(envelope),
    }
    if shaped:
        told["_meta"] = {META + "envelope": whole}
    else:
        told["structuredContent"] = whole
    return told


def unshaped(envelope: Envelope, told: Mapping[str, Any]) -> dict[str, Any]:
    """A success that is not (yet) what the tool promised a form of: clients hold every result
    to that form but an error.
    """
    whole = {"ok": True, "data": envelope.get("data"), "meta": _meta(envelope)}
    said = (
        []
        if later(envelope)
        else [
            {
                "type": "text",
                "text": "The call succeeded; only its result has not the form the tool promised.",
            }
        ]
    )
    return {
        "content": [*told["content"], *said],
        "isError": True,
        "_meta": {META + "envelope": whole},
    }


def _meta(envelope: Envelope) -> dict[str, Any]:
    """Without the content, which is told as such."""
    return {
        key: value
        for key, value in (envelope.get("meta") or {}).items()
        if key not in _META_SKIPPED
    }


def later(envelope: Envelope) -> str:
    """Say where the answer will be, when this is not it yet; "" when it is."""
    data, error = envelope.get("data"), envelope.get("error") or {}
    if error.get("code") == "CONFIRMATION_REQUIRED":
        call_id = str((envelope.get("meta") or {}).get("callId") or "")
        return (
            "The wearer is asked on the glasses; it can also be confirmed "
            "by running glassd confirm in a terminal. "
            f"Once there is an answer, {GET_PENDING} with id {call_id} gives the result."
        )
    if (
        isinstance(data, Mapping)
        and data.get("status") == "pending"
        and data.get("pendingToolCallId")
    ):
        return (
            f"Not finished yet: {GET_PENDING} with id {data['pendingToolCallId']} gives the result."
        )
    return ""


def delivered(envelope: Envelope) -> str:
    """Say what the wearer got of a tool of the glasses, where a model sees it: hosts keep metadata
    to themselves. "" for all others, whose data is what counts, and where nothing was to be got.
    """
    meta = envelope.get("meta") or {}
    told = meta.get("delivery") if meta.get("route") == "glasses" else None
    state, *why = (
        (told.get("state"), told.get("downgrade"), told.get("reason"))
        if isinstance(told, Mapping)
        else (told,)
    )
    if (
        not isinstance(state, str)
        or state in _UNTOLD
        or not envelope.get("ok")
        or content(envelope) is not None
    ):
        return ""
    reasons = "; ".join(str(each) for each in why if each)
    return f"On the glasses: {state} ({reasons})." if reasons else f"On the glasses: {state}."


def content(envelope: Envelope) -> list[dict[str, Any]] | None:
    """Give the content blocks a tool gave verbatim; None when it gave data."""
    found = (envelope.get("meta") or {}).get("content")
    if not isinstance(found, list):
        return None
    return [block for block in found if isinstance(block, dict) and block.get("type") in BLOCKS]


def text(data: Any) -> dict[str, Any]:
    """Say data as text: words as they are, nothing as a word, the rest as JSON."""
    said = "Done." if data is None else json.dumps(data, ensure_ascii=False)
    return {"type": "text", "text": data if isinstance(data, str) else said}


def sentence(error: Mapping[str, Any]) -> str:
    """What went wrong and what to do: a few words a model can act on; wrong arguments stand in
    the message itself.
    """
    said = str(error.get("message") or "The call failed").rstrip(".")
    advice = str(error.get("suggestion") or ("Try again" if error.get("retryable") else "")).rstrip(
        "."
    )
    head = f"{error.get('code') or error.get('type') or 'INTERNAL'}: {said}"
    return ". ".join(part for part in (head, advice) if part) + "."


def refused(
    code: str, kind: str, message: str, suggestion: str = "", *, retryable: bool = False
) -> dict[str, Any]:
    """Make an envelope of our own, for what never reached the daemon."""
    error = {"type": kind, "code": code, "message": message, "retryable": retryable}
    return {
        "ok": False,
        "error": {**error, **({"suggestion": suggestion} if suggestion else {})},
        "meta": {},
    }
