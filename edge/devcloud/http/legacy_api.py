"""Endpoints removed in a later version of the REST API, served only if enabled, for clients that
still use them.

Unlike before, a user needs a session, and tools are checked like any other.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from edge.devcloud.http.api import ACTIVATE_AND_RUN_S, MAX_EXECUTE
from edge.devcloud.http.auth import Authentication, Refusal, answer, read_json
from edge.devcloud.worker.runner import Runner
from edge.runtime.clock import Clock
from edge.runtime.ids import new_call_id
from tools_cache.api.tool import CallOrigin, Json, ToolCall

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


class LegacyApi:
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
            Route("/api/tools/apps/{package}/tools", guarded(self._of_app), methods=["GET"]),
            Route("/api/tools/users/{user}/tools", guarded(self._of_user), methods=["GET"]),
            Route("/api/tools/apps/{package}/tool", guarded(self._call), methods=["POST"]),
        ]

    async def _of_app(self, request: "Request") -> "Response":
        app = self._registry.app(request.path_params["package"])
        if app is None:
            raise Refusal(404, {"error": "App not found"})
        return answer([legacy_schema(tool) for tool in app.tools])

    async def _of_user(self, request: "Request") -> "Response":
        tools = []
        for tool in self._service.tools_of(self._auth.present(request.path_params["user"])):
            package, _, local = tool["name"].partition(":")
            tools.append({**legacy_schema(tool, local), "appPackageName": package})
        return answer(tools)

    async def _call(self, request: "Request") -> "Response":
        """`{toolId, userId, toolParameters?}` → `{status: "success", reply}` or `{status:
        "error", message}`.
        """
        body = await read_json(request, MAX_EXECUTE, lambda why: Refusal(400, {"error": why}))
        fields = body if isinstance(body, dict) else {}
        tool, user = fields.get("toolId"), fields.get("userId")
        args = fields.get("toolParameters") or {}
        for name, value in (("toolId", tool), ("userId", user)):
            if not isinstance(value, str) or not value:
                raise Refusal(400, {"error": f"Missing or invalid {name}"})
        if not isinstance(args, dict):
            raise Refusal(400, {"error": "Missing or invalid toolParameters"})
        self._auth.present(str(user))
        call = ToolCall(
            call_id=new_call_id(Clock().wall()),
            tool=f"{request.path_params['package']}:{tool}",
            args=args,
            origin=CallOrigin.CLOUD,
            user_id=str(user),
            ttl_s=ACTIVATE_AND_RUN_S,
        )
        response = await self._runner.run(call)
        if response.error is not None:
            return answer({"status": "error", "message": response.error.message}, status=500)
        return answer({"status": "success", "reply": response.data})


def legacy_schema(tool: Mapping[str, Any], name: str = "") -> dict[str, Json]:
    """Convert a definition to a ToolSchema; what that form lacks is left out (arrays, objects,
    defaults, policy).
    """
    schema = tool["inputSchema"]
    required = schema.get("required", ())
    parameters = {
        key: {
            **{k: v[k] for k in ("type", "description", "enum") if k in v},
            **({"required": True} if key in required else {}),
        }
        for key, v in schema.get("properties", {}).items()
        if isinstance(v, dict)
    }
    out: dict[str, Json] = {"id": name or tool["name"], "description": tool["description"]}
    phrases = (tool.get("mentraExtensions") or {}).get("activationPhrases")
    if phrases:
        out["activationPhrases"] = list(phrases)
    return {**out, "parameters": parameters} if parameters else out
