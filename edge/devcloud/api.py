"""The HTTP face of the cloud: the registry, the seed's list and execute, the developer console.

Refuses to run or store anything itself; it reads requests, bounds them, and says what came of them.
"""

import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from edge.devcloud.agent import uuid7
from edge.devcloud.definitions import BadSubmission, check_submission
from edge.devcloud.edges import Edges
from edge.devcloud.envelope import to_seed
from edge.devcloud.registry import Registry
from edge.devcloud.runner import TOOL_TIMEOUT_S, Runner
from tools_cache.errors import BadDefinition
from tools_cache.tool import CallOrigin, Json, ToolCall

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

log = logging.getLogger(__name__)

MAX_EXECUTE: Final = 1 << 20
MAX_SUBMISSION: Final = 2 << 20
"""Bytes: `MAX_TOOLS` tools with schemas of 10 kB."""
ACTIVATE_AND_RUN_S: Final = 10.0 + TOOL_TIMEOUT_S + 1.0
Endpoint = Callable[["Request"], Awaitable["Response"]]


class Refusal(Exception):
    """A request that is not served; `body` says why, in the words its caller knows."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(str(body))
        self.status = status
        self.body = body


class Api:
    """`routes()` for a Starlette application. `users` have a session; so has every edge that was ever heard. With `knows` every
    request needs a bearer token that it knows.
    """

    def __init__(
        self, registry: Registry, runner: Runner, edges: Edges, *, users: Collection[str] = ("local",), token: str = "",
        changed: Callable[[], Awaitable[None]], knows: Callable[[str], bool] | None = None,
    ) -> None:  # fmt: skip
        self._registry = registry
        self._runner = runner
        self._edges = edges
        self._users = frozenset(users)
        self._token = token
        self._changed = changed
        self._knows = knows

    def routes(self) -> "list[Route]":
        from starlette.routing import Route  # noqa: PLC0415 - heavy, and only whoever serves needs it

        return [
            Route("/api/registry", self._guarded(self._get_registry), methods=["GET"]),
            Route("/api/tools", self._guarded(self._list), methods=["GET"]),
            Route("/api/tools/execute", self._guarded(self._execute), methods=["POST"]),
            Route("/api/apps/{package}/tools", self._guarded(self._submit), methods=["POST"]),
        ]

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        async def guarded(request: "Request") -> "Response":
            try:
                self._check_token(request)
                return await endpoint(request)
            except Refusal as e:
                return answer(e.body, status=e.status)

        return guarded

    def _check_token(self, request: "Request") -> None:
        said = request.headers.get("authorization", "")
        if self._token and not hmac.compare_digest(said.encode(), f"Bearer {self._token}".encode()):
            raise Refusal(401, {"error": "Missing or wrong bearer token"})
        if self._knows is not None and not self._knows(said.removeprefix("Bearer ")):
            raise Refusal(401, {"error": "Missing or wrong bearer token"})

    def _user(self, request: "Request") -> str:
        """S0-26, S0-27: exact words."""
        user = request.headers.get("x-user-id", "")
        if not user:
            raise Refusal(401, {"error": "Missing X-User-Id header"})
        if user not in self._users and user not in self._edges.ids():
            raise Refusal(401, {"error": "No active session for user"})
        return user

    # -------------------------------------------------------------- endpoints

    async def _get_registry(self, request: "Request") -> "Response":
        from starlette.responses import Response  # noqa: PLC0415 - see routes()

        headers = {"ETag": self._registry.etag, "Cache-Control": "no-cache"}
        if matches(request.headers.get("if-none-match", ""), self._registry.etag):
            return Response(status_code=304, headers=headers)
        return Response(self._registry.body, media_type="application/json", headers=headers)

    async def _list(self, request: "Request") -> "Response":
        user = self._user(request)
        return answer({"tools": self._registry.listing(self._edges.hardware_of(user))})

    async def _execute(self, request: "Request") -> "Response":
        user = self._user(request)
        body = await read_json(request, MAX_EXECUTE, _invalid)
        name = body.get("name") if isinstance(body, dict) else None
        if not isinstance(name, str) or not name:
            raise _invalid("Missing or invalid tool name")
        args = body.get("arguments", {})
        if not isinstance(args, dict):
            raise _invalid("arguments: must be an object")
        call = ToolCall(
            call_id=uuid7(time.time()), tool=name, args=args, origin=CallOrigin.CLOUD, user_id=user, ttl_s=ACTIVATE_AND_RUN_S,
        )  # fmt: skip
        status, seed = to_seed(await self._runner.run(call))
        return answer(seed, status=status)

    async def _submit(self, request: "Request") -> "Response":
        body = await read_json(request, MAX_SUBMISSION, _bad_submission)
        package = request.path_params["package"]
        try:
            submission = check_submission(package, body)
            new = self._registry.submit(submission)
        except BadSubmission as e:
            raise Refusal(400, {"error": {
                "code": "INVALID_DEFINITION", "message": "Nothing was stored; mend the fields and send it again",
                "fields": [m.to_json() for m in e.mistakes],
            }}) from None  # fmt: skip
        except BadDefinition as e:
            raise Refusal(409, {"error": {"code": "CONFLICT", "message": str(e)}}) from None
        log.info("%s: %d tools, registry %s", package, len(submission.tools), self._registry.version)
        await self._changed()
        return answer({
            "packageName": package, "version": self._registry.version, "sha256": self._registry.sha256,
            "tools": [t["name"] for t in submission.tools],
        }, status=201 if new else 200)  # fmt: skip


def matches(header: str, etag: str) -> bool:
    """If-None-Match: a list of tags, weak ones too, or anything at all."""
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags


async def read_json(request: "Request", limit: int, refuse: Callable[[str], Refusal]) -> Any:
    """Read a bounded JSON body. Raises what `refuse` makes of the trouble."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            refusal = refuse(f"body: larger than {limit} bytes")
            refusal.status = 413
            raise refusal
    try:
        return json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise refuse("body: not JSON") from None


def _invalid(message: str) -> Refusal:
    return Refusal(400, {"success": False, "error": {"code": "INVALID_REQUEST", "message": message}})


def _bad_submission(message: str) -> Refusal:
    field, _, problem = message.partition(": ")
    fields = [{"field": field, "problem": problem, "fix": "send a JSON object with tools"}]
    return Refusal(400, {"error": {"code": "INVALID_DEFINITION", "message": message, "fields": fields}})


def answer(value: Json, *, status: int = 200) -> "Response":
    from starlette.responses import Response  # noqa: PLC0415 - see routes()

    text = json.dumps(value, ensure_ascii=False)
    return Response(text, status_code=status, media_type="application/json")
