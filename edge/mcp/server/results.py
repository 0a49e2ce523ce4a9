"""Envelope → MCP result: content blocks, structured content, `isError`, metadata. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final

from edge.mcp.server.tools import META
from tools_cache.api.tool import Delivery

BLOCKS: Final = frozenset({"text", "image", "audio", "resource", "resource_link"})
"""Kinds of content both revisions know."""
GET_PENDING: Final = "get_pending_result"
"""Our own tool. No alias can be equal to it: an alias has `__` in it."""
_FOREIGN: Final = "upstream"
"""The route of another server's tool, whose result is passed on as it came."""
_NOT_REPORTED: Final = frozenset({"none", "queued"})

Envelope = Mapping[str, Any]


def result(
    envelope: Envelope, *, shaped: bool = False, ours: bool = False, modern: bool = True
) -> dict[str, Any]:
    """Return the CallToolResult. `shaped`: the tool has an output schema of its author; `ours`: it
    has the one of `tools.OUTPUT`; `modern`: structured content may be any JSON.
    """
    if envelope.get("ok"):
        answer = _success(envelope, shaped=shaped, ours=ours, modern=modern)
    else:
        answer = _failure(envelope, shaped=shaped)
    if not shaped and _route(envelope) != _FOREIGN:
        answer = _with_truth(answer, envelope)
    if advice := later(envelope) or delivered(envelope):
        answer["content"] = [*answer["content"], text(advice)]
    meta = {META + "meta": _meta(envelope)}
    if envelope.get("intents"):
        meta[META + "intents"] = envelope["intents"]
    return {"resultType": "complete", **answer, "_meta": {**answer.get("_meta", {}), **meta}}


def _with_truth(answer: dict[str, Any], envelope: Envelope) -> dict[str, Any]:
    """Add how far the answer got, and what to do next, to the structured content: some clients show
    a model nothing else. A key of the tool's own stays.
    """
    found = answer.get("structuredContent")
    if not isinstance(found, Mapping):
        return answer
    truth = {"delivery": _delivery(envelope), "next": later(envelope) or _in_line(envelope)}
    added = {key: value for key, value in truth.items() if value and key not in found}
    return {**answer, "structuredContent": {**found, **added}}


def _delivery(envelope: Envelope) -> dict[str, Any]:
    """Return `{state, reason?, downgrade?, callId?}`; {} if nothing was to be delivered."""
    found = (envelope.get("meta") or {}).get("delivery")
    report = {"state": found} if isinstance(found, str) else found
    if not isinstance(report, Mapping) or report.get("state") in (None, "none"):
        return {}
    known = {**report, "callId": (envelope.get("meta") or {}).get("callId")}
    return {key: known[key] for key in ("state", "reason", "downgrade", "callId") if known.get(key)}


def _in_line(envelope: Envelope) -> str:
    """Return how to learn what becomes of a result that waits for the lens; "" if it does not."""
    call_id = (envelope.get("meta") or {}).get("callId")
    if not call_id or _delivery(envelope).get("state") != Delivery.QUEUED:
        return ""
    return f"It waits for the glasses: {GET_PENDING} with id {call_id} tells how far it got."


def _route(envelope: Envelope) -> Any:
    return (envelope.get("meta") or {}).get("route")


def _success(envelope: Envelope, *, shaped: bool, ours: bool, modern: bool) -> dict[str, Any]:
    """The tool's own blocks if it returned some, else its data as text."""
    data, blocks = envelope.get("data"), content(envelope)
    said = [text(data)] if blocks is None else blocks
    # text beside blocks only repeats them, for clients that do not know blocks
    structured = data is not None and not (blocks is not None and isinstance(data, str))
    structured = structured and (modern or isinstance(data, Mapping))
    if not shaped and _only_repeats(envelope, blocks):
        structured = False
    if shaped and (not structured or later(envelope)):
        # Clients validate every result against the schema, except errors.
        whole = {"ok": True, "data": data, "meta": _meta(envelope)}
        if not later(envelope):
            note = "The call succeeded; only its result has not the form the tool promised."
            said = [*said, text(note)]
        return {"content": said, "isError": True, "_meta": {META + "envelope": whole}}
    answer: dict[str, Any] = {"content": said, "isError": False}
    if ours and not isinstance(data, Mapping):  # the schema is that of an object
        return {**answer, "structuredContent": {"result": data} if structured else {}}
    return {**answer, "structuredContent": data} if structured else answer


def _only_repeats(envelope: Envelope, blocks: list[dict[str, Any]] | None) -> bool:
    """Return whether another server gave no structured content: the data is the text of its blocks,
    which a client must not read in place of a picture beside it.
    """
    if _route(envelope) != _FOREIGN or blocks is None:
        return False
    said = "\n".join(str(b.get("text")) for b in blocks if b.get("type") == "text")
    return envelope.get("data") == {"text": said}


def _failure(envelope: Envelope, *, shaped: bool) -> dict[str, Any]:
    """A sentence for the model, and the envelope for a program."""
    blocks = content(envelope) or [text(sentence(envelope.get("error") or {}))]
    whole = {key: envelope[key] for key in ("ok", "error") if key in envelope}
    whole["meta"] = _meta(envelope)
    # structured content would have to match the output schema
    place = {"_meta": {META + "envelope": whole}} if shaped else {"structuredContent": whole}
    return {"content": blocks, "isError": True, **place}


def _meta(envelope: Envelope) -> dict[str, Any]:
    return {key: value for key, value in (envelope.get("meta") or {}).items() if key != "content"}


def later(envelope: Envelope) -> str:
    """Return how to get the answer if this is not it yet, else ""."""
    data, error = envelope.get("data"), envelope.get("error") or {}
    if error.get("code") == "CONFIRMATION_REQUIRED":
        call_id = str((envelope.get("meta") or {}).get("callId") or "")
        return (
            "The wearer is asked on the glasses; it can also be confirmed "
            "by running glassd confirm in a terminal. "
            f"Once there is an answer, {GET_PENDING} with id {call_id} gives the result."
        )
    if not isinstance(data, Mapping) or data.get("status") != "pending":
        return ""
    waits = data.get("pendingToolCallId")
    return f"Not finished yet: {GET_PENDING} with id {waits} gives the result." if waits else ""


def delivered(envelope: Envelope) -> str:
    """Return what the wearer got, for the model: hosts do not show it metadata. "" if the tool
    returned content, is not one of the glasses, or has nothing to deliver.
    """
    meta = envelope.get("meta") or {}
    delivery = meta.get("delivery") if meta.get("route") == "glasses" else None
    why: list[Any] = []
    if isinstance(delivery, Mapping):
        why = [delivery.get("downgrade"), delivery.get("reason")]
        delivery = delivery.get("state")
    if not isinstance(delivery, str) or delivery in _NOT_REPORTED:
        return ""
    if not envelope.get("ok") or content(envelope) is not None:
        return ""
    reasons = "; ".join(str(each) for each in why if each)
    return f"On the glasses: {delivery}{f' ({reasons})' if reasons else ''}."


def content(envelope: Envelope) -> list[dict[str, Any]] | None:
    """Return a tool's own content blocks; None if it returned data."""
    found = (envelope.get("meta") or {}).get("content")
    if not isinstance(found, list):
        return None
    return [block for block in found if isinstance(block, dict) and block.get("type") in BLOCKS]


def text(data: Any) -> dict[str, Any]:
    """Return data as a text block: text as it is, None as "Done.", the rest as JSON."""
    said = "Done." if data is None else json.dumps(data, ensure_ascii=False)
    return {"type": "text", "text": data if isinstance(data, str) else said}


def sentence(error: Mapping[str, Any]) -> str:
    """Return what went wrong and what to do, for a model."""
    said = str(error.get("message") or "The call failed").rstrip(".")
    advice = str(error.get("suggestion") or ("Try again" if error.get("retryable") else ""))
    head = f"{error.get('code') or error.get('type') or 'INTERNAL'}: {said}"
    return ". ".join(part for part in (head, advice.rstrip(".")) if part) + "."


def refused(
    code: str, kind: str, message: str, suggestion: str = "", *, retryable: bool = False
) -> dict[str, Any]:
    """Return an envelope for a call that did not reach the daemon."""
    error = {"type": kind, "code": code, "message": message, "retryable": retryable}
    if suggestion:
        error["suggestion"] = suggestion
    return {"ok": False, "error": error, "meta": {}}


def too_often(message: str, suggestion: str) -> dict[str, Any]:
    """Return an envelope for a call that is refused for now."""
    return refused("RATE_LIMIT", "RATE_LIMIT", message, suggestion, retryable=True)
