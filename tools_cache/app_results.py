"""Converts the HTTP answer of a tool into a `ToolResponse`: results, error statuses, timeouts.

Used by the devcloud for mini-apps and by the edge for the owner's HTTP tools. `success` exists only
here and in the devcloud's outgoing form.
"""

import logging
from typing import Any, Final

from msgspec.structs import replace

from tools_cache.api.tool import ErrorCode, ErrorType, Json, ToolResponse

log = logging.getLogger(__name__)

MAX_MESSAGE: Final = 500
"""Maximum characters of a foreign error message that are passed on."""
_NOT_AN_APPS: Final = frozenset(
    {
        ErrorType.MODE_RESTRICTED,
        ErrorType.BUDGET_EXCEEDED,
        ErrorType.CONFIRMATION_REQUIRED,
        ErrorType.CONFIRMATION_EXPIRED,
    }
)
"""Error types only the edge may use: it decides them before calling the tool."""
_NOTHING_DONE: Final = frozenset({ErrorType.VALIDATION, ErrorType.NOT_FOUND})
"""Codes for refusals before execution: nothing was done, and repeating the call is useless."""
MAX_RETRY_AFTER_MS: Final = 3_600_000


def of_app(value: Json, tool: str) -> ToolResponse:
    """Parse an app's answer: MCPToolResult (`success`), our envelope (`ok`), or bare data."""
    if not isinstance(value, dict):
        return _broken(tool, "it is not an object")
    if "ok" in value:
        try:
            response = ToolResponse.from_json({**value, "meta": {}})
        except ValueError as e:
            return _broken(tool, str(e))
        return _checked(_with_render(response, value.get("render"), tool), tool)
    if "success" not in value:
        has_parts = "data" in value or "render" in value
        return _with_render(
            ToolResponse(data=value.get("data") if has_parts else value), value.get("render"), tool
        )
    if value["success"] is True:
        render = _render_of_extensions(value.get("mentraExtensions"), value.get("render"))
        return _with_render(ToolResponse(data=value.get("content")), render, tool)
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
    return _checked(
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


def _checked(response: ToolResponse, tool: str) -> ToolResponse:
    """Return an app's error with the retryability that its type requires."""
    error = response.error
    if error is None:
        return response
    if error.type in _NOT_AN_APPS:
        return _broken(tool, f"error: an app cannot use type {error.type.value}")
    if error.type in _NOTHING_DONE:
        error = replace(error, retryable=False, partial_side_effects=False)
    elif error.type is ErrorType.AUTH:  # the same call fails again until a person signs in
        details = error.details if isinstance(error.details, dict) else {}
        error = replace(error, retryable=False, details={**details, "reauthRequired": True})
    return replace(response, error=error)


def _broken(tool: str, why: str) -> ToolResponse:
    """Return the error for an invalid result, without the invalid value."""
    return ToolResponse.failure(
        ErrorCode.EXECUTION_ERROR, f"Invalid result structure for tool {tool}: {clean(why)}"
    )


def _with_render(response: ToolResponse, render: Json, tool: str) -> ToolResponse:
    if render is None or not response.ok:
        return response
    if not isinstance(render, dict):
        log.warning(
            "%s: render is not an object and is ignored; data is shown by the general rules", tool
        )
        return response
    return ToolResponse(
        data=response.data, intents=response.intents, render=render, meta=response.meta
    )


def _render_of_extensions(extensions: Json, render: Json) -> Json:
    """Convert the `mentraExtensions` of a result to `render`; an explicit `render` comes first."""
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
    """Return foreign text safe to pass on: printable, one line, short."""
    short = "".join(c if c.isprintable() else " " for c in text[: MAX_MESSAGE * 2])
    return " ".join(short.split())[:MAX_MESSAGE]


# ------------------------------------------------------------------ how a call over HTTP fails


def of_status(status: int, text: str) -> ToolResponse:
    """Return the error for a status other than 2xx: `HTTP S: text`, retryable from 500 on."""
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
    """Guess an error's type from its message, for runtimes that have nothing else."""
    if "timeout" in message or "ETIMEDOUT" in message:
        return ErrorCode.TIMEOUT
    if "ECONNREFUSED" in message or "ENOTFOUND" in message:
        return ErrorCode.NETWORK_ERROR
    return ErrorCode.EXECUTION_ERROR


def timed_out(limit_s: float, *, maybe_done: bool) -> ToolResponse:
    """Return the error for a timeout; `maybe_done`: repeating could execute it twice."""
    message = f"Tool execution timeout after {round(limit_s * 1000)}ms"
    return ToolResponse.failure(ErrorCode.TIMEOUT, message, partial_side_effects=maybe_done)
