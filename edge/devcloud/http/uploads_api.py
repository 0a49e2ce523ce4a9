"""HTTP endpoints for photos and sounds: an edge stores one, a tool of this cloud fetches it."""

import hashlib
from typing import TYPE_CHECKING, Final

from edge.devcloud.http.auth import Authentication, Refusal, answer, read_body
from edge.devcloud.http.guard import UPLOADS
from edge.devcloud.uploads import MOST_BYTES, Upload, Uploads

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

KINDS: Final = ("image/", "audio/")
MOST_KIND: Final = 100
_AS_FILE: Final = {
    "Cache-Control": "private, no-store",
    "Content-Disposition": "attachment",
    "X-Content-Type-Options": "nosniff",
}
"""A browser must not run what somebody uploaded, nor keep it."""


class UploadsApi:
    """`routes()` for a Starlette application."""

    def __init__(self, auth: Authentication, uploads: Uploads) -> None:
        self._auth = auth
        self._uploads = uploads

    def routes(self) -> "list[Route]":
        from starlette.routing import Route  # noqa: PLC0415 - heavy, and only the server needs it

        guarded, path = self._auth.guarded, f"{UPLOADS}{{sha256}}"
        return [
            Route(path, guarded(self._put), methods=["PUT"]),
            Route(path, guarded(self._get), methods=["GET"]),
        ]

    async def _put(self, request: "Request") -> "Response":
        user, sha256 = self._auth.user(request), request.path_params["sha256"]
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not kind.startswith(KINDS) or len(kind) > MOST_KIND:
            raise Refusal.of(
                415, "INVALID_REQUEST", "Content-Type: must be a type of image/ or audio/"
            )
        data = await read_body(request, MOST_BYTES, _invalid)
        if not data:
            raise _invalid("body: empty")
        if hashlib.sha256(data).hexdigest() != sha256:
            raise _invalid("body: its SHA-256 is not the one in the path (hexadecimal)")
        await self._uploads.put(user, sha256, Upload(kind, data))
        return answer({"url": UPLOADS + sha256}, status=201)

    async def _get(self, request: "Request") -> "Response":
        from starlette.responses import Response  # noqa: PLC0415 - see routes()

        found = await self._uploads.find(self._auth.user(request), request.path_params["sha256"])
        if found is None:
            raise Refusal.of(404, "NOT_FOUND", "This user has no such upload (any longer)")
        return Response(found.data, media_type=found.kind, headers=_AS_FILE)


def _invalid(message: str) -> Refusal:
    return Refusal.of(400, "INVALID_REQUEST", message)
