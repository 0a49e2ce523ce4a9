"""The outcome of a call at another server → a `ToolResponse`, with a message for each fault. A call
that was sent may have been done.
"""

import base64
import binascii
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from edge.core.results import repeatable
from edge.core.tools import templates
from edge.mcp.client.models import CallFault, Outcome
from tools_cache.api.tool import ErrorCode, Json, ToolDefinition, ToolError, ToolResponse

CONTENT: Final = "content"
"""Key in `meta` of the verbatim content blocks, for our MCP server."""
MAX_MESSAGE: Final = 500
UNKNOWN_TOOL: Final = -32602
PICTURE: Final = "image/png"
_RATE: Final = 16_000
_WAVES: Final = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"})


def response_of(outcome: Outcome, tool: ToolDefinition, *, server: str) -> ToolResponse:
    """Return the response. `server` is the server's title."""
    blocks = [dict(block) for block in outcome.content]
    if outcome.input_requests is not None:
        return ToolResponse(error=_question(outcome, server))
    if outcome.fault is not None:
        return ToolResponse(error=_fault(outcome, outcome.fault, tool, server))
    meta: dict[str, Json] = {CONTENT: blocks} if blocks else {}
    if outcome.is_error:
        message = outcome.message or texts(blocks) or f"{server} says that it failed"
        error = ToolError.of(
            ErrorCode.EXECUTION_ERROR,
            message.strip()[:MAX_MESSAGE],
            partial_side_effects=not repeatable(tool),
            details=outcome.structured,
        )
        return ToolResponse(error=error, meta=meta)
    data = outcome.structured
    if data is None and (text := texts(blocks)):
        data = {"text": text}
    return ToolResponse(data=data, meta=meta, render=_render(blocks, server))


def remove_secrets(response: ToolResponse, secrets: frozenset[str]) -> ToolResponse:
    """Remove the owner's secrets from a response, which is shown and stored."""
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
    """Return the text of all text blocks."""
    return "\n".join(
        str(block["text"])
        for block in blocks
        if block.get("type") == "text" and isinstance(block.get("text"), str)
    )


# ------------------------------------------------------------------ failures


def _question(outcome: Outcome, server: str) -> ToolError:
    """Ask the caller what the server asks: the answer is the same call with `input` added."""
    details: dict[str, Json] = {"inputRequests": outcome.input_requests}
    if outcome.request_state is not None:
        details["requestState"] = outcome.request_state
    return ToolError.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"{server} asks for more before it goes on",
        details=details,
        suggestion=(
            "Answer error.details.inputRequests: the same call again, "
            "with input = {inputResponses, requestState}"
        ),
    )


_MESSAGES: Final[Mapping[CallFault, tuple[ErrorCode, str]]] = {
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
        called = tool.name.partition(":")[2]
        message = f"{server} does not know {called} as we called it: {outcome.message}"
        return ToolError.of(
            ErrorCode.TOOL_NOT_FOUND,
            message[:MAX_MESSAGE],
            suggestion="glassd servers refresh, then look at its arguments: glassd tools",
        )
    code, template = _MESSAGES[fault]
    unsafe = fault not in _NOTHING_DONE and not repeatable(tool)
    more: dict[str, Any] = {}
    if fault is CallFault.AUTH and outcome.authorize_url:
        more = {
            "details": {"authorizeUrl": outcome.authorize_url},
            "suggestion": "glassd servers authorize",
        }
    if fault is CallFault.UNSENT:
        more = {"suggestion": "glassd servers shows its state"}
    return ToolError.of(
        code,
        template.format(server=server, why=outcome.message or "no reason given")[:MAX_MESSAGE],
        partial_side_effects=unsafe,
        idempotency_required=unsafe and fault is CallFault.LOST,
        **more,
    )


# ------------------------------------------------------------------ on the glasses


def _render(blocks: Sequence[Mapping[str, Any]], server: str) -> Mapping[str, Json] | None:
    """Return the first picture for the display and the first sound for the speaker, with the text
    as the alternative; None for text alone, which is shown like any other.
    """
    words = texts(blocks)
    picture = next((block for block in blocks if block.get("type") == "image"), None)
    sound = next(
        (wave for block in blocks if block.get("type") == "audio" and (wave := _pcm(block))), ""
    )
    display: dict[str, Json] = {}
    kind = picture.get("mimeType", "") if picture is not None else None
    if picture is not None and kind == PICTURE and isinstance(picture.get("data"), str):
        display = {
            "layout": "bitmap_view",
            "data": picture["data"],
            "alt": words or f"A picture from {server}",
        }
    elif picture is not None and not words:
        display = {"layout": "text_wall", "text": f"A picture from {server}"}
    audio: dict[str, Json] = {"pcm": sound} if sound else {}
    if not display and not audio:
        return None
    if words and not display:
        display = {"layout": "text_wall", "text": words}
    return {key: part for key, part in {"display": display, "audio": audio}.items() if part}


def _pcm(block: Mapping[str, Any]) -> str:
    """Return the samples of a WAV that glasses can play (16 kHz, mono, 16 bit) as base64; "" for
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
    """Return whether it is PCM, one channel, 16 kHz, 16 bit."""
    if len(form) != 16:
        return False
    codec, channels, rate, _, _, bits = struct.unpack("<HHIIHH", form)
    return (codec, channels, rate, bits) == (1, 1, _RATE, 16)
