"""Checks for every HTTP request: bearer token, user with a session, bounded body; and the form of
refusals.
"""

import hmac
import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from edge.devcloud.app_service import AppService, NoSuchApp, NotYours
from edge.devcloud.app_store import AppStoreFull
from edge.storage.sqlite.database import StoreError
from tools_cache.api.tool import Json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

log = logging.getLogger(__name__)

Endpoint = Callable[["Request"], Awaitable["Response"]]
BROKEN: Final = {"error": "Internal server error"}
"""The answer to an unexpected error; the traceback is in the log."""


class Refusal(Exception):
    """A request that is refused; `body` gives the reason in the caller's format."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(str(body))
        self.status = status
        self.body = body

    @classmethod
    def of(cls, status: int, code: str, message: str, **more: Json) -> "Refusal":
        """Return a refusal in this cloud's own format."""
        return cls(status, {"error": {"code": code, "message": message, **more}})


class Authentication:
    """`guarded(endpoint)` wraps a route; `user(request)` returns its user.

    With `token` or `knows` every request needs a bearer token: that one, or a known one.
    """

    def __init__(
        self, service: AppService, *, token: str = "", knows: Callable[[str], bool] | None = None
    ) -> None:
        self.service = service
        self._token = token
        self._knows = knows

    def guarded(self, endpoint: Endpoint, *, broken: Json = BROKEN) -> Endpoint:
        async def guarded(request: "Request") -> "Response":
            try:
                self._check_token(request)
                await self.service.refresh()
                return await endpoint(request)
            except Refusal as e:
                return answer(e.body, status=e.status)
            except (NoSuchApp, NotYours, AppStoreFull, StoreError) as e:
                status, code = _STATUS.get(type(e), (503, "TOOL_UNAVAILABLE"))
                return answer(Refusal.of(status, code, str(e)).body, status=status)
            except Exception:
                log.exception("%s %.120r failed", request.method, request.url.path)
                return answer(broken, status=500)

        return guarded

    def user(self, request: "Request") -> str:
        """Return the user of a request; the error texts are those of the published REST API."""
        user = request.headers.get("x-user-id", "")
        if not user:
            raise Refusal(401, {"error": "Missing X-User-Id header"})
        return self.present(user)

    def present(self, user: str) -> str:
        if not self.service.present(user):
            raise Refusal(401, {"error": "No active session for user"})
        return user

    def _check_token(self, request: "Request") -> None:
        if not self._token and self._knows is None:
            return
        header, wanted = request.headers.get("authorization", ""), f"Bearer {self._token}"
        ours = self._token and hmac.compare_digest(header.encode(), wanted.encode())
        if not ours and (self._knows is None or not self._knows(header.removeprefix("Bearer "))):
            raise Refusal(401, {"error": "Missing or wrong bearer token"})


_STATUS: Final[dict[type[Exception], tuple[int, str]]] = {
    NoSuchApp: (404, "NOT_FOUND"),
    NotYours: (401, "AUTH"),
    AppStoreFull: (409, "CONFLICT"),
}


async def read_json(request: "Request", limit: int, refuse: Callable[[str], Refusal]) -> Any:
    """Read a bounded JSON body; an empty one is null. Raises the result of `refuse` for problems.

    Unpaired surrogates are refused: JSON can express them, but they cannot be stored, hashed or
    sent.
    """
    body = await read_body(request, limit, refuse)
    try:
        value = json.loads(body or b"null")
        if b"\\u" in body:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise refuse("body: holds half a surrogate pair; send valid Unicode text") from None
    except (ValueError, RecursionError):
        raise refuse("body: not JSON") from None
    return value


async def read_body(request: "Request", limit: int, refuse: Callable[[str], Refusal]) -> bytes:
    """Read a bounded body. Raises the result of `refuse` for problems."""
    from starlette.requests import ClientDisconnect  # noqa: PLC0415 - heavy, and only the server needs it

    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                refusal = refuse(f"body: larger than {limit} bytes")
                refusal.status = 413
                raise refusal
    except ClientDisconnect:
        raise refuse("body: the client hung up before its end") from None
    return bytes(body)


def answer(value: Json, *, status: int = 200) -> "Response":
    from starlette.responses import Response  # noqa: PLC0415 - heavy, and only the server needs it

    text = json.dumps(value, ensure_ascii=False)
    return Response(text, status_code=status, media_type="application/json")
