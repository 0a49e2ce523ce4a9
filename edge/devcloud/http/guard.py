"""Rejects requests from other sites' pages in a developer's browser, before any route.

A page elsewhere can send requests to 127.0.0.1, or give its own name that address. So the Host must
be known, an Origin must match it, and a body must be JSON, which a browser sends to another site
only after a preflight request. The same holds for an upload, which is sent with PUT.
"""

import asyncio
import ipaddress
import json
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from firmware_bridge.deadlines import timeout

if TYPE_CHECKING:
    import httpx
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from edge.devcloud.enrolment.secured import Secured

Scope = MutableMapping[str, Any]
App = Callable[
    [Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]
UPLOADS: Final = "/api/uploads/"
RESOLVE_S: Final = 5.0
PEER: Final = "glassd.peer"
"""Key of the ASGI scope with the client certificate (DER) that TLS verified; absent without one."""
METADATA: Final = frozenset({"100.100.100.200", "fd00:ec2::254"})
"""Addresses at which clouds serve credentials to their own machines, besides link-local
169.254.169.254.
"""


def guarded(app: App, names: Collection[str]) -> App:
    """Wrap an ASGI application; `names` are this cloud's host names, in addition to addresses and
    localhost.
    """

    async def serve(scope: Scope, receive: Any, send: Any) -> None:
        refusal = _refusal(scope, names) if scope["type"] == "http" else None
        if refusal is None:
            await app(scope, receive, send)
        else:
            await _refuse(send, *refusal)

    return serve


async def _refuse(send: Any, status: int, code: str, message: str) -> None:
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def _refusal(scope: Scope, names: Collection[str]) -> tuple[int, str, str] | None:
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    host, origin = headers.get(b"host", ""), headers.get(b"origin")
    if host and not _is_ours(host, names):
        return 421, "DENIED", f"Host: {host[:80]!r} is not a name of this cloud; use its address"
    if origin is not None and _address(origin) != host:
        return 403, "DENIED", f"Origin: pages of {origin[:80]!r} may not use this cloud"
    has_body = headers.get(b"content-length", "0") != "0" or b"transfer-encoding" in headers
    kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
    if has_body and kind != "application/json" and not _is_upload(scope):
        problem = "must be application/json (curl: --json instead of -d)"
        return 415, "INVALID_REQUEST", f"Content-Type: {problem}"
    return None


def _is_upload(scope: Scope) -> bool:
    return scope["method"] == "PUT" and str(scope["path"]).startswith(UPLOADS)


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
        # inet_aton reads 0xa9fea9fe too
        ip = ipaddress.ip_address(host if ":" in host else socket.inet_aton(host))
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
    loop = asyncio.get_running_loop()
    try:
        async with timeout(RESOLVE_S):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except TimeoutError:
        problem = f"{host} was not looked up within {RESOLVE_S:g} s"
        raise httpx.ConnectError(problem, request=request) from None
    except (OSError, UnicodeError):
        return  # the request itself will fail
    if any(is_off_limits(str(address[0])) for *_, address in found):
        problem = f"{host} leads to a link-local or metadata address"
        raise httpx.ConnectError(problem, request=request)


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


def tls_options(secured: "Secured") -> dict[str, Any]:
    """Return the arguments of uvicorn's Config for TLS: the client certificate is put into the
    scope of every request, and the developer endpoints are for this machine only.
    """

    class WithPeer(connection()):  # type: ignore[misc]  # a class made at its first use
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            found = transport.get_extra_info("ssl_object")
            der = found.getpeercert(binary_form=True) if found else None
            self.app: Any = _with_peer(self.app, der)

    return {
        "http": WithPeer,
        "ssl_certfile": str(secured.cert),
        "ssl_keyfile": str(secured.key),
        "ssl_ca_certs": str(secured.authority.file),
        "ssl_cert_reqs": ssl.CERT_OPTIONAL,
    }


def _with_peer(app: Any, der: bytes | None) -> App:
    async def serve(scope: Scope, receive: Any, send: Any) -> None:
        if der is not None:
            scope[PEER] = der
        client = scope.get("client")
        here = client is not None and ipaddress.ip_address(client[0]).is_loopback
        if scope["path"].startswith("/devcloud/") and not here:
            await _refuse(send, 403, "DENIED", "from this machine only")
        else:
            await app(scope, receive, send)

    return serve
