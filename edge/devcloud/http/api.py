"""HTTP endpoints for edges and assistants: the registry, the tool list, and tool execution."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from edge.devcloud.http.auth import Authentication, Refusal, answer, read_json
from edge.devcloud.worker.runner import TOOL_TIMEOUT_S, Runner
from edge.runtime.clock import Clock
from edge.runtime.ids import new_call_id
from tools_cache.api.tool import CallOrigin, ErrorCode, Json, ToolCall, ToolError, ToolResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

MAX_EXECUTE: Final = 1 << 20
ACTIVATE_AND_RUN_S: Final = 10.0 + TOOL_TIMEOUT_S + 1.0
_BROKEN: Final = {
    "success": False,
    "error": {"code": "EXECUTION_ERROR", "message": "Internal server error", "retryable": False},
}


class Api:
    """`routes()` for a Starlette application."""

    def __init__(self, auth: Authentication, runner: Runner) -> None:
        self._auth = auth
        self._registry = auth.service.registry
        self._service = auth.service
        self._runner = runner

    def routes(self) -> "list[Route]":
        from starlette.routing import Route  # noqa: PLC0415 - heavy, and only the server needs it

        guarded = self._auth.guarded
        return [
            Route("/api/registry", guarded(self._get_registry), methods=["GET"]),
            Route("/api/tools", guarded(self._list), methods=["GET"]),
            Route("/api/tools/execute", guarded(self._execute, broken=_BROKEN), methods=["POST"]),
        ]

    async def _get_registry(self, request: "Request") -> "Response":
        from starlette.responses import Response  # noqa: PLC0415 - see routes()

        headers = {"ETag": self._registry.etag, "Cache-Control": "no-cache"}
        if matches(request.headers.get("if-none-match", ""), self._registry.etag):
            return Response(status_code=304, headers=headers)
        return Response(self._registry.body, media_type="application/json", headers=headers)

    async def _list(self, request: "Request") -> "Response":
        user = self._auth.user(request)
        return answer({"tools": self._service.tools_of(user)})

    async def _execute(self, request: "Request") -> "Response":
        user = self._auth.user(request)
        body = await read_json(request, MAX_EXECUTE, _invalid)
        name = body.get("name") if isinstance(body, dict) else None
        if not isinstance(name, str) or not name:
            raise _invalid("Missing or invalid tool name")
        args = body.get("arguments")
        if not isinstance(args, dict | None):
            raise _invalid("arguments: must be an object")
        call = ToolCall(
            call_id=new_call_id(Clock().wall()),
            tool=name,
            args=args or {},
            origin=CallOrigin.CLOUD,
            user_id=user,
            ttl_s=ACTIVATE_AND_RUN_S,
        )
        status, seed = to_seed(await self._runner.run(call))
        return answer(seed, status=status)


def matches(header: str, etag: str) -> bool:
    """Return whether If-None-Match contains the ETag: a list of tags, weak ones too, or `*`."""
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags


def _invalid(message: str) -> Refusal:
    return Refusal(
        400, {"success": False, "error": {"code": "INVALID_REQUEST", "message": message}}
    )


_STATUS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.TOOL_NOT_FOUND: 404,
    ErrorCode.INVALID_ARGUMENTS: 400,
    ErrorCode.INVALID_REQUEST: 400,
}
"""HTTP status per error; anything else is 500, including an invalid tool name and a timeout."""


def to_seed(response: ToolResponse) -> tuple[int, dict[str, Json]]:
    """Return (HTTP status, MCPToolResult) for `POST /api/tools/execute`."""
    if response.error is None:
        body: dict[str, Json] = {"success": True, "content": response.data}
        extensions = _extensions_of_render(response.render)
        return 200, body | ({"mentraExtensions": extensions} if extensions else {})
    error = {"success": False, "error": _seed_error(response.error)}
    return _STATUS.get(response.error.code, 500), error


def _seed_error(error: ToolError) -> dict[str, Json]:
    out: dict[str, Json] = {"code": error.code.value, "message": error.message}
    if error.code is not ErrorCode.TOOL_NOT_FOUND:  # there the REST form has no such key
        out["retryable"] = error.retryable
    if error.details is not None:
        out["details"] = error.details
    return out


def _extensions_of_render(render: Mapping[str, Json] | None) -> dict[str, Json]:
    found: dict[str, Json] = {}
    render = render or {}
    audio = render.get("audio")
    if isinstance(audio, dict) and audio.get("suppressVoiceResponse") is True:
        found["suppressVoiceResponse"] = True
    if render.get("suggestedFollowUps"):
        found["suggestedFollowUps"] = render["suggestedFollowUps"]
    return found
