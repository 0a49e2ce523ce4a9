"""uvicorn's connection with the client certificate verified by TLS in every request's scope.

The developer endpoints are limited to this machine.
"""

import asyncio
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from edge.devcloud.enrolment.secured import Secured
from edge.devcloud.http import guard
from edge.devcloud.http.enrolment_api import PEER

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

Scope = MutableMapping[str, Any]
App = Callable[
    [Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]


def options(secured: Secured) -> dict[str, Any]:
    """Return the arguments for uvicorn's Config."""
    return {
        "http": _protocol(),
        "ssl_certfile": str(secured.cert),
        "ssl_keyfile": str(secured.key),
        "ssl_ca_certs": str(secured.authority.file),
        "ssl_cert_reqs": ssl.CERT_OPTIONAL,
    }


def _protocol() -> "type[H11Protocol]":
    base = guard.connection()

    class Knowing(base):  # type: ignore[valid-type,misc]  # a class made at its first use
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            found = transport.get_extra_info("ssl_object")
            self.app: Any = _with_peer(
                self.app, found.getpeercert(binary_form=True) if found else None
            )

    return Knowing


def _with_peer(app: Any, der: bytes | None) -> App:
    async def served(scope: Scope, receive: Any, send: Any) -> None:
        if der is not None:
            scope[PEER] = der
        if scope["path"].startswith("/devcloud/") and not _near(scope):
            await send(
                {
                    "type": "http.response.start",
                    "status": 403,
                    "headers": [(b"content-type", b"application/json")],
                }
            )
            await send(
                {
                    "type": "http.response.body",
                    "body": b'{"error": {"code": "DENIED", "message": "from this machine only"}}',
                }
            )
            return
        await app(scope, receive, send)

    return served


def _near(scope: Scope) -> bool:
    client = scope.get("client")
    return client is not None and ipaddress.ip_address(client[0]).is_loopback
