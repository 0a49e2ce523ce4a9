"""What came of a call at another server, made into the one envelope; each way to fail has its own
words.

Refuses to know connections, and to believe that what was sent was not done.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from edge.core.results import repeatable
from edge.core.tools import templates
from edge.mcp.client.models import CallFault, Outcome
from tools_cache.api.tool import ErrorCode, Json, ToolDefinition, ToolError, ToolResponse

CONTENT: Final = "content"
"""Of `meta`: the content blocks verbatim, for facades that speak MCP."""
MAX_MESSAGE: Final = 500
UNKNOWN_TOOL: Final = -32602
PICTURE: Final = "image/png"
_RATE: Final = 16_000
_WAVES: Final = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"})


def response_of(outcome: Outcome, tool: ToolDefinition, *, server: str) -> ToolResponse:
    """Make the envelope. `server` is what people call it."""
    blocks = [dict(block) for block in outcome.content]
    if outcome.input_requests is not None:
        return ToolResponse(error=_asks(outcome, server))
    if outcome.fault is not None:
        return ToolResponse(error=_fault(outcome, outcome.fault, tool, server))
    meta: dict[str, Json] = {CONTENT: blocks} if blocks else {}
    if outcome.is_error:
        said = (outcome.message or texts(blocks) or f"{server} says that it failed").strip()[
            :MAX_MESSAGE
        ]
        error = ToolError.of(
            ErrorCode.EXECUTION_ERROR,
            said,
            partial_side_effects=not repeatable(tool),
            details=outcome.structured,
        )
        return ToolResponse(error=error, meta=meta)
    return ToolResponse(data=_data(outcome, blocks), meta=meta, render=_render(blocks))


def unsaid(response: ToolResponse, secrets: frozenset[str]) -> ToolResponse:
    """Take the owner's secrets out of what a server says back; what shows them would store them
    too.
    """
    if not secrets:
        return response
    error = response.error
    if error is not None:
        message, details = (
            templates.without_secrets(part, secrets) for part in (error.message, error.details)
        )
        error = replace(error, message=message, details=details)
    data, meta, render = (
        templates.without_secrets(part, secrets)
        for part in (response.data, dict(response.meta), response.render)
    )
    return replace(response, data=data, meta=meta, render=render, error=error)


def texts(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Give the words in it."""
    return "\n".join(
        str(block["text"])
        for block in blocks
        if block.get("type") == "text" and isinstance(block.get("text"), str)
    )


def _data(outcome: Outcome, blocks: Sequence[Mapping[str, Any]]) -> Json:
    """The structured part, JSON that stood in a text (S1-27), else the words."""
    if outcome.structured is not None:
        return outcome.structured
    return {"text": texts(blocks)} if texts(blocks) else None


# ------------------------------------------------------------------ failures


def _asks(outcome: Outcome, server: str) -> ToolError:
    """It wants to know more before it does anything: whoever called answers with the same call,
    and `input` beside it.
    """
    asked = {
        key: one
        for key, one in {
            "inputRequests": outcome.input_requests,
            "requestState": outcome.request_state,
        }.items()
        if one is not None
    }
    return ToolError.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"{server} asks for more before it goes on",
        details=asked,
        suggestion=(
            "Answer error.details.inputRequests: the same call again, "
            "with input = {inputResponses, requestState}"
        ),
    )


_SAYS: Final[Mapping[CallFault, tuple[ErrorCode, str]]] = {
    CallFault.UNSENT: (ErrorCode.NETWORK_ERROR, "{server}: {why}"),
    CallFault.LOST: (ErrorCode.NETWORK_ERROR, "{server}: {why}"),
    CallFault.TIMEOUT: (ErrorCode.TIMEOUT, "{server} did not answer in time"),
    CallFault.TOO_LARGE: (ErrorCode.EXECUTION_ERROR, "{server}: {why}"),
    CallFault.INVALID: (ErrorCode.EXECUTION_ERROR, "{server}: {why}"),
    CallFault.AUTH: (ErrorCode.AUTH, "{server} wants you to sign in: {why}"),
    CallFault.DENIED: (ErrorCode.DENIED, "{server} refuses this: {why}"),
    CallFault.FAILED: (ErrorCode.EXECUTION_ERROR, "{server} failed: {why}"),
    CallFault.CANCELLED: (ErrorCode.CANCELLED, "Cancelled: {why}"),
}
_NOTHING_DONE: Final = frozenset({CallFault.UNSENT, CallFault.AUTH, CallFault.DENIED})


def _fault(outcome: Outcome, fault: CallFault, tool: ToolDefinition, server: str) -> ToolError:
    if fault is CallFault.FAILED and outcome.code == UNKNOWN_TOOL:
        return ToolError.of(
            ErrorCode.TOOL_NOT_FOUND,
            (
                f"{server} does not know {tool.name.partition(':')[2]} as "
                f"we called it: {outcome.message}"
            )[:MAX_MESSAGE],
            suggestion="glassd servers refresh, then look at its arguments: glassd tools",
        )
    code, words = _SAYS[fault]
    unsafe = fault not in _NOTHING_DONE and not repeatable(tool)
    more: dict[str, Any] = {}
    if fault is CallFault.AUTH and outcome.authorize_url:
        more = {
            "details": {"authorizeUrl": outcome.authorize_url},
            "suggestion": "glassd servers authorize",
        }
    if fault is CallFault.UNSENT:
        more = {"suggestion": "glassd servers tells how it fares"}
    return ToolError.of(
        code,
        words.format(server=server, why=outcome.message or "no reason given")[:MAX_MESSAGE],
        partial_side_effects=unsafe,
        idempotency_required=unsafe and fault is CallFault.LOST,
        **more,
    )


# ------------------------------------------------------------------ on the glasses


def _render(blocks: Sequence[Mapping[str, Any]]) -> Mapping[str, Json] | None:
    """The first picture for the lens, the first sound for the ear; the words stand in for what
    these glasses cannot do. None: there are words alone, and they are shown as any.
    """
    words = texts(blocks)
    picture = next((block for block in blocks if block.get("type") == "image"), None)
    sound = next(
        (wave for block in blocks if block.get("type") == "audio" and (wave := _pcm(block))), ""
    )
    display: dict[str, Json] = {}
    if (
        picture is not None
        and picture.get("mimeType") == PICTURE
        and isinstance(picture.get("data"), str)
    ):
        display = {"layout": "bitmap_view", "data": picture["data"], "alt": words or "(a picture)"}
    elif picture is not None and not words:
        display = {
            "layout": "text_wall",
            "text": f"(a picture: {str(picture.get('mimeType', ''))[:40]})",
        }
    audio: dict[str, Json] = {"pcm": sound} if sound else {}
    if not display and not audio:
        return None
    if words and not display:
        display = {"layout": "text_wall", "text": words}
    return {key: part for key, part in {"display": display, "audio": audio}.items() if part}


def _pcm(block: Mapping[str, Any]) -> str:
    """Take the samples out of a WAV as glasses play it (16 kHz, mono, 16 bit), base64; "" for
    any other sound.
    """
    if block.get("mimeType") not in _WAVES or not isinstance(block.get("data"), str):
        return ""
    try:
        raw = base64.b64decode(block["data"], validate=True)
    except (binascii.Error, ValueError):
        return ""
    if raw[:4] != b"RIFF" or raw[8:12] != b"WAVE":
        return ""
    form, at = b"", 12
    while at + 8 <= len(raw):
        name, size = raw[at : at + 4], int.from_bytes(raw[at + 4 : at + 8], "little")
        if name == b"fmt ":
            form = raw[at + 8 : at + 24]
        elif name == b"data":
            return base64.b64encode(raw[at + 8 : at + 8 + size]).decode() if _playable(form) else ""
        at += 8 + size + size % 2
    return ""


def _playable(form: bytes) -> bool:
    """PCM, one channel, 16 kHz, 16 bit."""
    return len(form) == 16 and (
        form[0:2],
        form[2:4],
        int.from_bytes(form[4:8], "little"),
        form[14:16],
    ) == (b"\1\0", b"\1\0", _RATE, b"\x10\0")
