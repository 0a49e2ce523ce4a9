"""MCP as streamable HTTP: who may connect, how much they may send, and where it listens.

On loopback every program on this machine may connect, unless there is a token; on other addresses a
token is required. Host and Origin are always checked, because of pages in a browser.
"""

import asyncio
import contextlib
import ipaddress
import logging
import math
import os
import socket
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, cast

import uvicorn
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Scope

from edge.mcp.server.connections import CONNECTIONS, Connections
from edge.mcp.server.server import Facade
from edge.runtime.errors import UserError

log: Final = logging.getLogger(__name__)
PATH: Final = "/mcp"
MAX_BODY: Final = 4 * 1024 * 1024
SESSIONS: Final = 64
"""Sessions before an idle one ends for the next; only older clients have one. Those in use are
bounded by the connections.
"""
BACKLOG: Final = 64
IDLE_S: Final = 1800.0
KEEP_ALIVE_S: Final = 75
END_S: Final = 3
"""Seconds that a client gets to read the end of its answer when the server stops."""
FIRST_FD: Final = 3
"""The first descriptor of the sockets that systemd passes."""
MIN_TOKEN: Final = 16


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where to listen: an address, or a socket that systemd opened (`handed`). `hosts` are further
    names by which clients may call the server.
    """

    host: str = "127.0.0.1"
    port: int = 0
    handed: bool = False
    hosts: tuple[str, ...] = ()
    token: str = ""


def listening(place: ListenAddress) -> socket.socket:
    """Open the socket, or take the one that systemd passed. Raises `UserError`."""
    found = socket.socket(fileno=os.dup(FIRST_FD)) if place.handed else _bind(place)
    if found.family != socket.AF_UNIX and (problem := _problem(place, found.getsockname()[0])):
        found.close()
        raise problem
    return found  # the mode of a socket file says who may connect


def _problem(place: ListenAddress, address: str) -> UserError | None:
    """Return why it is not allowed to listen there."""
    if place.handed and not place.token:
        # the unit has rights that its clients may lack
        problem = "as a service there must be a token, or anybody on this machine had the glasses"
        return UserError(
            "NO_TOKEN",
            problem,
            "write one: openssl rand -hex 24 | sudo install -D -m 600 "
            "/dev/stdin /etc/credstore/glassd-mcp-token",
        )
    if not _loopback(address) and not place.token:
        problem = f"{address} can be reached from other machines, and there is no token"
        fix = "give one: --token-file FILE (a line of at least 16 characters)"
        return UserError("NO_TOKEN", problem, f"{fix}, or listen on 127.0.0.1")
    if ipaddress.ip_address(address).is_unspecified and not place.hosts:
        problem = f"{address} is every address of this machine; by which may clients call it?"
        fix = "name them: --allow-host NAME for each name or address clients use"
        return UserError("NO_HOST", problem, fix)
    return None


def _bind(place: ListenAddress) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(address)
            found.listen(BACKLOG)
        except OSError:
            found.close()
            raise
    except OSError as e:
        problem = f"{place.host}:{place.port}: {e.strerror}"
        fix = "choose another place: --http 127.0.0.1:0"
        raise UserError("CANNOT_LISTEN", problem, fix) from None
    return found


def _loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    return False


def security(address: Any, hosts: tuple[str, ...]) -> TransportSecuritySettings:
    """Return by which names the server may be called, and from which pages: its own only."""
    names = ["127.0.0.1", "localhost", "[::1]", *hosts]
    host = address[0] if isinstance(address, tuple) else ""
    if host and not ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
        names.append(f"[{host}]" if ":" in host else host)
    names = list(dict.fromkeys(names))
    allowed = [form for name in names for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{form}" for scheme in ("http", "https") for form in allowed]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=allowed, allowed_origins=origins
    )


def url_of(found: socket.socket) -> str:
    """Return the server's address for clients."""
    address = found.getsockname()
    if not isinstance(address, tuple):
        return f"unix:{address if isinstance(address, str) else ''}"
    return f"http://{f'[{address[0]}]' if ':' in address[0] else address[0]}:{address[1]}{PATH}"


async def serve(
    facade: Facade, place: ListenAddress, announce: Callable[[MutableMapping[str, Any]], None]
) -> None:
    """Serve until cancelled. Raises `UserError`."""
    found = listening(place)
    logging.getLogger("uvicorn.error").addFilter(_is_error)
    connections = Connections(
        place.token, before=lambda scope: _make_room(facade.server.session_manager, scope)
    )
    try:
        app = facade.server.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=MAX_BODY,
            session_idle_timeout=IDLE_S,
            max_sessions=SESSIONS + CONNECTIONS,
            transport_security=security(found.getsockname(), place.hosts),
        )
        app.router.redirect_slashes = False  # it would redirect clients to any host that they name
        config = uvicorn.Config(
            app,
            http=cast("type[asyncio.Protocol]", connections.open),
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=END_S,
            h11_max_incomplete_event_size=64 * 1024,
            lifespan="on",
            ws="none",
        )
        serving = {"event": "serving", "url": url_of(found), "token": bool(place.token)}
        async with facade.running():
            await _run(_Uvicorn(config), found, lambda: announce(serving))
    finally:
        found.close()


async def _make_room(manager: StreamableHTTPSessionManager, scope: Scope) -> None:
    """End the session that was idle for longest if a request opens one and there are too many."""
    headers = dict(scope["headers"])
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER.encode(), b"").decode("latin-1")
    modern = version and version not in HANDSHAKE_PROTOCOL_VERSIONS  # they have no session
    opens = scope["method"] == "POST" and MCP_SESSION_ID_HEADER.encode() not in headers
    if not opens or modern:
        return
    sessions = manager._server_instances  # noqa: SLF001 - the library refuses the newcomer, and offers no other way
    while len(sessions) >= SESSIONS:
        # While a call runs or a stream is open, a session has no time at which it would end.
        ends_at = {
            name: s.idle_scope.deadline
            for name, s in sessions.items()
            if s.idle_scope and s.idle_scope.deadline < math.inf
        }
        if not ends_at:
            return
        idlest = min(ends_at, key=ends_at.__getitem__)
        await manager._discard_session(idlest, sessions[idlest])  # noqa: SLF001


def _is_error(record: logging.LogRecord) -> bool:
    """Return False for a request that ended with the server; uvicorn logs it as an error."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


class _Uvicorn(uvicorn.Server):
    """uvicorn without its own signal handlers: the command has them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _run(server: _Uvicorn, found: socket.socket, ready: Callable[[], None]) -> None:
    serving: asyncio.Future[None] = asyncio.ensure_future(server.serve(sockets=[found]))
    try:
        while not (server.started or serving.done()):  # noqa: ASYNC110 - uvicorn has a flag for it, no event
            await asyncio.sleep(0.01)
        if not serving.done():
            ready()
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await asyncio.wait({serving})
