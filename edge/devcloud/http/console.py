"""HTTP endpoints for developers: submit an app's tools, issue its key, manage users' sessions and
apps.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from edge.devcloud.definitions import BadSubmission, check_submission
from edge.devcloud.http.auth import Authentication, Refusal, answer, read_json
from tools_cache.errors import BadDefinition

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

log = logging.getLogger(__name__)

MAX_SUBMISSION: Final = 2 << 20
"""Bytes: `MAX_TOOLS` tools with schemas of 10 kB."""
MAX_USER: Final = 200
KEY_HEADER: Final = "x-app-api-key"


class Console:
    """`routes()` for a Starlette application; `changed` is awaited after each change of the
    registry.
    """

    def __init__(self, auth: Authentication, *, changed: Callable[[], Awaitable[None]]) -> None:
        self._auth = auth
        self._service = auth.service
        self._changed = changed

    def routes(self) -> "list[Route]":
        from starlette.routing import Route  # noqa: PLC0415 - heavy, and only the server needs it

        guarded = self._auth.guarded
        return [
            Route("/api/apps/{package}/tools", guarded(self._submit), methods=["POST"]),
            Route("/api/apps/{package}/key", guarded(self._issue_key), methods=["POST"]),
            Route("/devcloud/sessions", guarded(self._sessions), methods=["GET"]),
            Route("/devcloud/sessions/{user}", guarded(self._open_session), methods=["PUT"]),
            Route("/devcloud/sessions/{user}", guarded(self._end_session), methods=["DELETE"]),
            Route(
                "/devcloud/users/{user}/apps/{package}",
                guarded(self._install),
                methods=["PUT", "DELETE"],
            ),
        ]

    async def _submit(self, request: "Request") -> "Response":
        body = await read_json(request, MAX_SUBMISSION, _bad_submission)
        package = request.path_params["package"]
        try:
            submission = check_submission(package, body)
            new = await self._service.submit(submission, key=request.headers.get(KEY_HEADER, ""))
        except BadSubmission as e:
            message = "Nothing was stored; correct the fields and send it again"
            fields = [asdict(mistake) for mistake in e.mistakes]
            raise Refusal.of(400, "INVALID_DEFINITION", message, fields=fields) from None
        except BadDefinition as e:
            raise Refusal.of(409, "CONFLICT", str(e)) from None
        registry = self._service.registry
        log.info("%s: %d tools, registry %s", package, len(submission.tools), registry.version)
        await self._changed()
        return answer(
            {
                "packageName": package,
                "version": registry.version,
                "sha256": registry.sha256,
                "tools": [t["name"] for t in submission.tools],
            },
            status=201 if new else 200,
        )

    async def _issue_key(self, request: "Request") -> "Response":
        """Issue a key. It is returned only here; only its hash is stored."""
        package = request.path_params["package"]
        key = await self._service.issue_key(package, key=request.headers.get(KEY_HEADER, ""))
        log.info("%s has a new key", package)
        response = answer({"packageName": package, "apiKey": key}, status=201)
        response.headers["Cache-Control"] = "no-store"
        return response

    # -------------------------------------------------------------- people

    async def _sessions(self, _: "Request") -> "Response":
        return answer({"sessions": self._service.sessions()})

    async def _open_session(self, request: "Request") -> "Response":
        user = _user(request)
        return answer({"user": user, "leftS": await self._service.open_session(user)}, status=201)

    async def _end_session(self, request: "Request") -> "Response":
        return answer({"ended": await self._service.end_session(_user(request))})

    async def _install(self, request: "Request") -> "Response":
        user, package = _user(request), request.path_params["package"]
        installed = request.method == "PUT"
        await self._service.set_installed(user, package, installed=installed)
        return answer({"user": user, "packageName": package, "installed": installed})


def _user(request: "Request") -> str:
    user: str = request.path_params["user"]
    if not (user.isprintable() and len(user) <= MAX_USER):
        message = f"user: must be printable, at most {MAX_USER} characters"
        raise Refusal.of(400, "INVALID_REQUEST", message)
    return user


def _bad_submission(message: str) -> Refusal:
    field, _, problem = message.partition(": ")
    fields = [{"field": field, "problem": problem, "fix": "send a JSON object with tools"}]
    return Refusal.of(400, "INVALID_DEFINITION", message, fields=fields)
