"""What a tool asked over HTTP answers, made into our one envelope: an app's result, a failing
status, a time that is over.

Refuses to do I/O and to know who asked: the devcloud asks mini-apps, an edge asks the addresses of
its owner's own tools. `success` exists here and in the devcloud's outgoing form, nowhere else
inside (C-01).
"""

import logging
from dataclasses import replace
from typing import Any, Final

from tools_cache.tool import ErrorCode, ErrorType, Json, ToolResponse

log = logging.getLogger(__name__)

MAX_MESSAGE: Final = 500
"""Characters of a foreign error message that are passed on."""
_NOT_AN_APPS: Final = frozenset(
    {
        ErrorType.MODE_RESTRICTED,
        ErrorType.BUDGET_EXCEEDED,
        ErrorType.CONFIRMATION_REQUIRED,
        ErrorType.CONFIRMATION_EXPIRED,
    }
)
"""Only the edge decides these, before it calls (S2-69 … S2-72)."""
_NOTHING_DONE: Final = frozenset({ErrorType.VALIDATION, ErrorType.NOT_FOUND})
"""Said before anything is done, so nothing was, and asking the same again is of no use (S2-67,
S2-68).
"""
MAX_RETRY_AFTER_MS: Final = 3_600_000


def of_app(value: Json, tool: str) -> ToolResponse:
    """Read a mini-app's answer: MCPToolResult (`success`), our envelope (`ok`) or a bare
    `{data, render}`.
    """
    if not isinstance(value, dict):
        return _broken(tool, "it is not an object")
    if "ok" in value:
        try:
            return _lawful(
                _shown(ToolResponse.from_json({**value, "meta": {}}), value.get("render"), tool),
                tool,
            )
        except ValueError as e:
            return _broken(tool, str(e))
    if "success" not in value:
        has_parts = "data" in value or "render" in value
        return _shown(
            ToolResponse(data=value.get("data") if has_parts else value), value.get("render"), tool
        )
    if value["success"] is True:
        render = _render_of_extensions(value.get("mentraExtensions"), value.get("render"))
        return _shown(ToolResponse(data=value.get("content")), render, tool)
    if value["success"] is not False:
        return _broken(tool, "success: must be true or false")
    return _failed(value.get("error"), tool)


def _failed(error: Json, tool: str) -> ToolResponse:
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return _broken(tool, "error: must be {code, message}")
    said = str(error.get("code", ""))
    code = ErrorCode(said) if said in ErrorCode.__members__ else ErrorCode.EXECUTION_ERROR
    details = {"appCode": said[:80]} if said and said != code.value else None
    message, after = clean(error["message"]) or "Unknown error", error.get("retryAfterMs")
    good = (
        isinstance(after, int) and not isinstance(after, bool) and 0 < after <= MAX_RETRY_AFTER_MS
    )
    return _lawful(
        ToolResponse.failure(
            code,
            message,
            retryable=error.get("retryable") is True,
            details=details,
            retry_after_ms=after if good else None,
            partial_side_effects=error.get("partialSideEffects") is True,
        ),
        tool,
    )


def _lawful(response: ToolResponse, tool: str) -> ToolResponse:
    """Hold an app's error to what its type means, whatever it says beside it."""
    error = response.error
    if error is None:
        return response
    if error.type in _NOT_AN_APPS:
        return _broken(tool, f"error: an app cannot say {error.type.value}")
    if error.type in _NOTHING_DONE:
        error = replace(error, retryable=False, partial_side_effects=False)
    elif error.type is ErrorType.AUTH:  # C-10: the same call fails again until somebody signs in
        details = error.details if isinstance(error.details, dict) else {}
        error = replace(error, retryable=False, details={**details, "reauthRequired": True})
    return replace(response, error=error)


def _broken(tool: str, why: str) -> ToolResponse:
    """The app answered something that is no result: our caller gets words, never the thing
    itself (S2-46).
    """
    return ToolResponse.failure(
        ErrorCode.EXECUTION_ERROR, f"Invalid result structure for tool {tool}: {clean(why)}"
    )


def _shown(response: ToolResponse, render: Json, tool: str) -> ToolResponse:
    if render is None or not response.ok:
        return response
    if not isinstance(render, dict):
        log.warning("%s: render is not an object, its data is shown by the general rules", tool)
        return response
    return ToolResponse(
        data=response.data, intents=response.intents, render=render, meta=response.meta
    )


def _render_of_extensions(extensions: Json, render: Json) -> Json:
    """`mentraExtensions` of a result, in the words of `render` (S0-41, S0-42); a `render`
    beside it comes first.
    """
    if not isinstance(extensions, dict):
        return render
    given: dict[str, Any] = dict(render) if isinstance(render, dict) else {}
    if extensions.get("suppressVoiceResponse") is True:
        audio = given.get("audio")
        given["audio"] = {
            **(audio if isinstance(audio, dict) else {}),
            "suppressVoiceResponse": True,
        }
    follow_ups = extensions.get("suggestedFollowUps")
    if isinstance(follow_ups, list) and "suggestedFollowUps" not in given:
        given["suggestedFollowUps"] = [f for f in follow_ups if isinstance(f, str)]
    return given or render


def clean(text: str) -> str:
    """Foreign words made fit to pass on: printable, one line, short."""
    short = "".join(c if c.isprintable() else " " for c in text[: MAX_MESSAGE * 2])
    return " ".join(short.split())[:MAX_MESSAGE]


# ------------------------------------------------------------------ how a call over HTTP fails


def of_status(status: int, text: str) -> ToolResponse:
    """A response other than 2xx: `HTTP S: text`, retryable from 500 on (S0-58)."""
    from http import HTTPStatus  # noqa: PLC0415 - a table of all of them, for the day one is needed

    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    retryable = status >= 500
    kind = ErrorType.TRANSIENT if retryable else ErrorType.PERMANENT
    message = f"HTTP {status}: {clean(text) or phrase}"
    return ToolResponse.failure(ErrorCode.HTTP_ERROR, message, type=kind, retryable=retryable)


def classify(message: str) -> ErrorCode:
    """What an error's words say (S0-59); for runtimes that only have words."""
    if "timeout" in message or "ETIMEDOUT" in message:
        return ErrorCode.TIMEOUT
    if "ECONNREFUSED" in message or "ENOTFOUND" in message:
        return ErrorCode.NETWORK_ERROR
    return ErrorCode.EXECUTION_ERROR


def timed_out(limit_s: float, *, maybe_done: bool) -> ToolResponse:
    """The tool was asked and did not answer in time (S0-57); `maybe_done`: asking again could
    do it twice.
    """
    message = f"Tool execution timeout after {round(limit_s * 1000)}ms"
    return ToolResponse.failure(ErrorCode.TIMEOUT, message, partial_side_effects=maybe_done)
