"""HTTP requests to the configured cloud: its address, our token and its certificates.

No compression, so that size limits count real bytes. The token is sent to the configured origin
only.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from edge.runtime.http_request import HttpAnswer, request

_UNQUOTED: Final = "/%:@!$&'()*+,;=~"
"""What a path may contain as it is."""
STALL_S: Final = 10.0
"""For connecting, and for silence within a request."""


class CertificatesUnreadable(Exception):
    """The enrolment's certificates are gone or damaged."""


@dataclass(eq=False, repr=False)
class CloudHttp:
    """`url` is the cloud's base; `token` is a secret and never logged; `tls` creates the context of
    a cloud with its own certificate authority.
    """

    url: str
    _: KW_ONLY
    token: str = ""
    user_id: str = "local"
    tls: Callable[[], ssl.SSLContext] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    async def request(
        self,
        path: str,
        *,
        most: int,
        limit_s: float,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> HttpAnswer:
        """Send a request for `/api/PATH` and return its answer of at most `most` bytes. Raises
        OSError, `NotHttp`, ValueError, `CertificatesUnreadable`.
        """
        try:
            tls = await asyncio.to_thread(self._context)  # reading the certificates takes time
        except (OSError, ValueError) as e:
            raise CertificatesUnreadable(f"our certificates cannot be read: {e}"[:200]) from None
        place = urlsplit(self.url)
        base = quote(place.path.rstrip("/"), safe=_UNQUOTED)
        named = {"Accept": "application/json", "X-User-Id": self.user_id, **(headers or {})}
        if self.token:
            named["Authorization"] = f"Bearer {self.token}"
        return await request(
            (place.hostname or "").encode("idna").decode(),
            place.port or (80 if tls is None else 443),
            f"{base}/api/{path}",
            tls=tls,
            most=most,
            limit_s=limit_s,
            stall_s=STALL_S,
            method=method,
            headers=named,
            body=body,
        )

    def _context(self) -> ssl.SSLContext | None:
        """Return None for plain HTTP, which needs no certificates."""
        if urlsplit(self.url).scheme != "https":
            return None
        if self.tls is not None:
            return self.tls()
        import certifi  # noqa: PLC0415 - a daemon without such a cloud never loads it

        return ssl.create_default_context(cafile=certifi.where())


def reason(e: Exception) -> str:
    """Return what OpenSSL, the system or the protocol said, in a few words."""
    return str(getattr(e, "strerror", None) or e)[:160] or type(e).__name__
