"""Rejects requests from other sites' pages in a developer's browser, before any route.

A page elsewhere can send requests to 127.0.0.1, or give its own name that address. So the Host must
be known, an Origin must match it, and a body must be JSON, which a browser sends to another site
only after a preflight request.
"""

import asyncio
import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from firmware_bridge.deadlines import timeout

if TYPE_CHECKING:
    import httpx
    from uvicorn.protocols.http.h11_impl import H11Protocol

Scope = MutableMapping[str, Any]
App = Callable[
    [Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]
RESOLVE_S: Final = 5.0
METADATA: Final = frozenset({"100.100.100.200", "fd00:ec2::254"})
"""Addresses at which clouds serve credentials to their own machines, besides link-local
169.254.169.254.
"""


def guarded(app: App, names: Collection[str]) -> App:
    """Wrap an ASGI application; `names` are this cloud's host names, in addition to addresses and
    localhost.
    """

    async def served(scope: Scope, receive: Any, send: Any) -> None:
        refused = _refusal(scope, names) if scope["type"] == "http" else None
        if refused is None:
            await app(scope, receive, send)
            return
        status, code, message = refused
        body = json.dumps({"error": {"code": code, "message": message}}).encode()
        head = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": body})

    return served


def _refusal(scope: Scope, names: Collection[str]) -> tuple[int, str, str] | None:
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    host, origin = headers.get(b"host", ""), headers.get(b"origin")
    if host and not _is_ours(host, names):
        return (
            421,
            "DENIED",
            f"Host: {host[:80]!r} is not a name of this cloud; use its address",
        )
    if origin is not None and _address(origin) != host:
        return 403, "DENIED", f"Origin: pages of {origin[:80]!r} may not use this cloud"
    has_body = headers.get(b"content-length", "0") != "0" or b"transfer-encoding" in headers
    kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
    if has_body and kind != "application/json":
        return (
            415,
            "INVALID_REQUEST",
            "Content-Type: must be application/json (curl: --json instead of -d)",
        )
    return None


def _address(origin: str) -> str | None:
    """Return host and port of an Origin; None if it is not a URL."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _is_ours(host: str, names: Collection[str]) -> bool:
    name = ""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name in names
    return True  # an address: no name of another site leads here


def is_off_limits(host: str) -> bool:
    """Return whether an app must not have this address, in whatever notation. False for names."""
    host = host.strip("[]").partition("%")[0]
    try:
        ip = ipaddress.ip_address(
            host if ":" in host else socket.inet_aton(host)
        )  # it takes 0xa9fea9fe, too
    except (OSError, ValueError):
        return False
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip.is_link_local or str(ip) in METADATA


async def check_reach(request: "httpx.Request") -> None:
    """Check where a request to an app would go. Raises httpx.ConnectError for an address that is
    off limits.
    """
    import httpx  # noqa: PLC0415 - loaded long before, by the client that asks

    host = request.url.host
    try:
        async with timeout(RESOLVE_S):
            found = await asyncio.get_running_loop().getaddrinfo(
                host, None, type=socket.SOCK_STREAM
            )
    except TimeoutError:
        raise httpx.ConnectError(
            f"{host} was not looked up within {RESOLVE_S:g} s", request=request
        ) from None
    except (OSError, UnicodeError):
        return  # the request itself will say so
    if any(is_off_limits(str(address[0])) for *_, address in found):
        raise httpx.ConnectError(
            f"{host} leads to a link-local or metadata address", request=request
        )


def connection() -> "type[H11Protocol]":
    """Return uvicorn's connection class, extended for clients that close their sending side after
    the request.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415 - heavy, and only the server needs it

    class HalfClosed(H11Protocol):
        _ended = False

        def eof_received(self) -> bool:  # type: ignore[override]  # asyncio takes True for "keep it open"
            self._ended = True
            return (
                self.scheme == "http"
                and bool(self.cycle)
                and not self.cycle.more_body
                and not self.cycle.response_complete
            )

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._ended:
                self.transport.close()

    return HalfClosed
