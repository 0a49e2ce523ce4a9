"""Fetches the cloud's registry over HTTP: one conditional GET. Imports httpx at the first use.

No redirects, no proxy settings from the environment, no compression (the size limit counts real
bytes), one deadline for everything. The token is sent to the configured origin only.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from edge.core.tools.registry_sync import Fetched, SyncFailed
from edge.runtime.library_imports import leave_out_command_line_of_httpx
from firmware_bridge.deadlines import timeout
from tools_cache.registry.models import MAX_BYTES
from tools_cache.registry.registry_store import Generation

if TYPE_CHECKING:
    import httpx

FETCH_S: Final = 60.0
"""One fetch, whatever the cloud does: 8 MiB over a slow mobile link."""
STALL_S: Final = 10.0
"""For connecting, and for silence within a fetch."""
NO_SUCH_PATH: Final = frozenset({404, 405, 410, 501})
MAX_ETAG: Final = 200
MOST_RETRY_AFTER_S: Final = 3600.0


class _NoSuchPath(Exception):
    """This cloud has no such endpoint."""


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
            client = await asyncio.to_thread(self._client)  # the import alone takes 150 ms
        except (OSError, ValueError) as e:  # the enrolment's certificates are gone or damaged
            raise SyncFailed(
                f"our certificates cannot be read: {e}"[:200], hint="enrol again: glassd up CODE"
            ) from None
        import httpx  # noqa: PLC0415 - see above; for its errors

        try:
            async with timeout(self.limit_s), client:
                try:
                    return await self._get(
                        client,
                        "registry",
                        self._conditions(have, "registry", past_caches=past_caches),
                    )
                except _NoSuchPath:
                    return await self._get(
                        client, "tools", self._conditions(have, "tools", past_caches=past_caches)
                    )
        except TimeoutError:
            raise SyncFailed(f"the cloud did not finish in {self.limit_s:.0f} s") from None
        except _NoSuchPath:
            raise SyncFailed(
                "the cloud has neither /api/registry nor /api/tools", hint="is cloud.url right?"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as e:
            raise SyncFailed(
                f"the cloud cannot be reached: {type(e).__name__} {str(e)[:120]}".rstrip()
            ) from None

    async def _get(
        self, client: "httpx.AsyncClient", kind: str, conditions: dict[str, str]
    ) -> Fetched:
        async with client.stream(
            "GET", f"{self.url.rstrip('/')}/api/{kind}", headers=conditions
        ) as response:
            if response.status_code == 304 and "If-None-Match" in conditions:
                return Fetched(None, kind)
            _check(response, kind)
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise SyncFailed(f"the registry is larger than {MAX_BYTES} bytes")
            return Fetched(bytes(body), kind, response.headers.get("etag", "")[:MAX_ETAG])

    def _conditions(
        self, have: Generation | None, kind: str, *, past_caches: bool
    ) -> dict[str, str]:
        if past_caches:
            return {"Cache-Control": "no-cache"}
        if have is None or not have.etag or (have.base, have.kind) != (self.url, kind):
            return {}
        return {"If-None-Match": have.etag}

    def _client(self) -> "httpx.AsyncClient":
        leave_out_command_line_of_httpx()
        import httpx  # noqa: PLC0415 - a daemon without a cloud never loads it

        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "X-User-Id": self.user_id,
        }
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        # Reading the certificates takes time, and plain HTTP needs none.
        secure: bool | ssl.SSLContext = urlsplit(self.url).scheme == "https"
        if secure and self.tls is not None:
            secure = self.tls()
        return httpx.AsyncClient(
            headers=headers, timeout=STALL_S, follow_redirects=False, trust_env=False, verify=secure
        )


def _check(response: "httpx.Response", kind: str) -> None:
    """Accept a plain 200. Raises `SyncFailed`, or `_NoSuchPath`."""
    status = response.status_code
    if status in NO_SUCH_PATH:
        raise _NoSuchPath
    if status in (401, 403):
        raise SyncFailed(f"the cloud refused us ({status})", hint="check cloud.token_file")
    if response.is_redirect:
        raise SyncFailed(
            f"the cloud redirects ({status}), which is not followed",
            hint="put its final address into cloud.url",
        )
    if status != 200:
        raise SyncFailed(
            f"the cloud answered {status} to /api/{kind}", retry_after_s=_retry_after(response)
        )
    if response.headers.get("content-encoding", "identity") != "identity":
        raise SyncFailed("the cloud compressed the registry although asked not to")


def _retry_after(response: "httpx.Response") -> float:
    text = response.headers.get("retry-after", "")
    return min(MOST_RETRY_AFTER_S, float(text)) if text.isdecimal() else 0.0
