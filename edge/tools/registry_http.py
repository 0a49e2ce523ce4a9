"""Fetches the cloud's registry over HTTP: one conditional GET, one deadline for everything.

No compression, so that the size limit counts real bytes. The token is sent to the configured origin
only.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from edge.core.tools.registry_sync import Fetched, SyncFailed
from edge.runtime.http_request import HttpAnswer, NotHttp, TooLong, request
from firmware_bridge.deadlines import timeout
from tools_cache.registry.models import MAX_BYTES
from tools_cache.registry.registry_store import Generation

FETCH_S: Final = 60.0
"""One fetch, whatever the cloud does: 8 MiB over a slow mobile link."""
STALL_S: Final = 10.0
"""For connecting, and for silence within a fetch."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_UNQUOTED: Final = "/%:@!$&'()*+,;=~"
"""What a path may contain as it is."""
NO_SUCH_PATH: Final = frozenset({404, 405, 410, 501})
MAX_ETAG: Final = 200
MOST_RETRY_AFTER_S: Final = 3600.0


@dataclass(eq=False, repr=False)
class CloudRegistry:
    """Implements `RegistrySource`. `url` is the cloud's base; `token` is a secret and never logged;
    `tls` creates the context of a cloud with its own certificate authority.
    """

    url: str
    _: KW_ONLY
    token: str = ""
    user_id: str = "local"
    limit_s: float = FETCH_S
    tls: Callable[[], ssl.SSLContext] | None = None

    def __repr__(self) -> str:
        return f"CloudRegistry({self.url!r})"

    async def fetch(self, have: Generation | None, *, past_caches: bool) -> Fetched:
        """Fetch the registry, or the tool list of a cloud without one. Raises `SyncFailed`."""
        try:
            tls = await asyncio.to_thread(self._context)  # reading the certificates takes time
        except (OSError, ValueError) as e:  # the enrolment's certificates are gone or damaged
            raise SyncFailed(
                f"our certificates cannot be read: {e}"[:200], hint="enrol again: glassd up CODE"
            ) from None
        try:
            async with timeout(self.limit_s):
                for kind in ("registry", "tools"):
                    conditions = self._conditions(have, kind, past_caches=past_caches)
                    if (found := await self._get(kind, conditions, tls)) is not None:
                        return found
        except TimeoutError:
            raise SyncFailed(f"the cloud did not finish in {self.limit_s:.0f} s") from None
        except TooLong:
            raise SyncFailed(f"the registry is larger than {MAX_BYTES} bytes") from None
        except (OSError, NotHttp, ValueError) as e:
            raise SyncFailed(f"the cloud cannot be reached: {_reason(e)}") from None
        raise SyncFailed(
            "the cloud has neither /api/registry nor /api/tools", hint="is cloud.url right?"
        )

    async def _get(
        self, kind: str, conditions: dict[str, str], tls: ssl.SSLContext | None
    ) -> Fetched | None:
        """Return None if this cloud has no such path."""
        place = urlsplit(self.url)
        base = quote(place.path.rstrip("/"), safe=_UNQUOTED)
        headers = {"Accept": "application/json", "X-User-Id": self.user_id, **conditions}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        answer = await request(
            (place.hostname or "").encode("idna").decode(),
            place.port or (80 if tls is None else 443),
            f"{base}/api/{kind}",
            tls=tls,
            most=MAX_BYTES,
            limit_s=self.limit_s,
            stall_s=STALL_S,
            headers=headers,
        )
        if answer.status == 304 and "If-None-Match" in conditions:
            return Fetched(None, kind)
        if answer.status in NO_SUCH_PATH:
            return None
        _check(answer, kind)
        return Fetched(answer.body, kind, answer.headers.get("etag", "")[:MAX_ETAG])

    def _conditions(
        self, have: Generation | None, kind: str, *, past_caches: bool
    ) -> dict[str, str]:
        if past_caches:
            return {"Cache-Control": "no-cache"}
        if have is None or not have.etag or (have.base, have.kind) != (self.url, kind):
            return {}
        return {"If-None-Match": have.etag}

    def _context(self) -> ssl.SSLContext | None:
        """Return None for plain HTTP, which needs no certificates."""
        if urlsplit(self.url).scheme != "https":
            return None
        if self.tls is not None:
            return self.tls()
        import certifi  # noqa: PLC0415 - a daemon without such a cloud never loads it

        return ssl.create_default_context(cafile=certifi.where())


def _reason(e: Exception) -> str:
    """Return what OpenSSL, the system or the protocol said, in a few words."""
    return str(getattr(e, "strerror", None) or e)[:160] or type(e).__name__


def _check(answer: HttpAnswer, kind: str) -> None:
    """Accept a plain 200. Raises `SyncFailed`."""
    status = answer.status
    if status in (401, 403):
        raise SyncFailed(f"the cloud refused us ({status})", hint="check cloud.token_file")
    if status in REDIRECTS:
        raise SyncFailed(
            f"the cloud redirects ({status}), which is not followed",
            hint="put its final address into cloud.url",
        )
    if status != 200:
        raise SyncFailed(
            f"the cloud answered {status} to /api/{kind}", retry_after_s=_retry_after(answer)
        )
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise SyncFailed("the cloud compressed the registry although asked not to")


def _retry_after(answer: HttpAnswer) -> float:
    text = answer.headers.get("retry-after", "")
    return min(MOST_RETRY_AFTER_S, float(text)) if text.isdecimal() else 0.0
