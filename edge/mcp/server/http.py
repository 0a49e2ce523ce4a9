"""MCP as streamable HTTP: who may connect, how much they may send, and where we listen.

Refuses to know the messages. On loopback anybody on this machine may connect (a token keeps others
out); beyond it nobody without the token. Pages in a browser are strangers wherever they come from:
Host and Origin are checked always.
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

log: Final = logging.getLogger(__name__)
PATH: Final = "/mcp"
MAX_BODY: Final = 4 * 1024 * 1024
SESSIONS: Final = 64
"""Sessions at once before an idle one ends for the next; only older clients have one. Those in
use are bounded by the connections.
"""
BACKLOG: Final = 64
IDLE_S: Final = 1800.0
KEEP_ALIVE_S: Final = 75
END_S: Final = 3
"""Seconds a client gets to read the end of its answer when we stop."""
FIRST_FD: Final = 3
"""Where systemd puts the sockets it hands over."""
MIN_TOKEN: Final = 16


class CannotServe(Exception):
    """We may not, or cannot, listen there. `code` is for a program, `fix` the next thing to do."""

    def __init__(self, code: str, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.code = code
        self.fix = fix


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where to listen: an address, or a socket that systemd opened. `hosts` are further names
    clients may call us by.
    """

    host: str = "127.0.0.1"
    port: int = 0
    handed: bool = False
    hosts: tuple[str, ...] = ()
    token: str = ""


def listening(place: ListenAddress) -> socket.socket:
    """Open the socket, or take the one systemd handed over. Raises `CannotServe`."""
    found = socket.socket(fileno=os.dup(FIRST_FD)) if place.handed else _bound(place)
    address = found.getsockname()
    if found.family == socket.AF_UNIX:
        return found  # its mode says who may connect
    if (
        place.handed and not place.token
    ):  # the unit has rights its clients may not have: whoever is on this machine could borrow them
        found.close()
        fix = (
            "write one: openssl rand -hex 24 | sudo install -D -m 600 "
            "/dev/stdin /etc/credstore/glassd-mcp-token"
        )
        raise CannotServe(
            "NO_TOKEN",
            "as a service there must be a token, or anybody on this machine had the glasses",
            fix,
        )
    if not _loopback(address[0]) and not place.token:
        found.close()
        fix = (
            "give one: --token-file FILE (a line of at least 16 characters), or listen on 127.0.0.1"
        )
        raise CannotServe(
            "NO_TOKEN",
            f"{address[0]} can be reached from other machines, and there is no token",
            fix,
        )
    if ipaddress.ip_address(address[0]).is_unspecified and not place.hosts:
        found.close()
        fix = "name them: --allow-host NAME for each name or address clients use"
        raise CannotServe(
            "NO_HOST",
            f"{address[0]} is every address of this machine; by which may clients call it?",
            fix,
        )
    return found


def _bound(place: ListenAddress) -> socket.socket:
    try:
        info = socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = info[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(address)
            found.listen(BACKLOG)
        except OSError:
            found.close()
            raise
    except OSError as e:
        raise CannotServe(
            "CANNOT_LISTEN",
            f"{place.host}:{place.port}: {e.strerror}",
            "choose another place: --http 127.0.0.1:0",
        ) from None
    return found


def _loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    return False


def security(address: Any, hosts: tuple[str, ...]) -> TransportSecuritySettings:
    """By which names we may be called, and from which pages: our own only."""
    names = ["127.0.0.1", "localhost", "[::1]", *hosts]
    if (
        isinstance(address, tuple)
        and not ipaddress.ip_address(address[0].partition("%")[0]).is_unspecified
    ):
        names.append(f"[{address[0]}]" if ":" in address[0] else address[0])
    names = list(dict.fromkeys(names))
    allowed = [form for name in names for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{form}" for scheme in ("http", "https") for form in allowed]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=allowed, allowed_origins=origins
    )


def url_of(found: socket.socket) -> str:
    """Where clients find us."""
    address = found.getsockname()
    if not isinstance(address, tuple):
        return f"unix:{address if isinstance(address, str) else ''}"
    return f"http://{f'[{address[0]}]' if ':' in address[0] else address[0]}:{address[1]}{PATH}"


async def serve(
    facade: Facade, place: ListenAddress, announce: Callable[[MutableMapping[str, Any]], None]
) -> None:
    """Serve until cancelled. Raises `CannotServe`."""
    found = listening(place)
    logging.getLogger("uvicorn.error").addFilter(_is_news)
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
        app.router.redirect_slashes = False  # it would send clients to whatever host they name
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
        async with facade.running():
            await _served(
                _Uvicorn(config),
                found,
                lambda: announce(
                    {"event": "serving", "url": url_of(found), "token": bool(place.token)}
                ),
            )
    finally:
        found.close()


async def _make_room(manager: StreamableHTTPSessionManager, scope: Scope) -> None:
    """End the session that was idle for longest when a request opens one and all are taken."""
    headers = dict(scope["headers"])
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER.encode(), b"").decode("latin-1")
    opens = scope["method"] == "POST" and MCP_SESSION_ID_HEADER.encode() not in headers
    if not opens or (
        version and version not in HANDSHAKE_PROTOCOL_VERSIONS
    ):  # newer clients have no session
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


def _is_news(record: logging.LogRecord) -> bool:
    """A request that our own end cuts off is no mistake; uvicorn logs it as one, with its
    traceback.
    """
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


class _Uvicorn(uvicorn.Server):
    """uvicorn without its own signal handlers: how a verb ends is the verb's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _served(server: _Uvicorn, found: socket.socket, ready: Callable[[], None]) -> None:
    serving: asyncio.Future[None] = asyncio.ensure_future(server.serve(sockets=[found]))
    try:
        await _until(lambda: server.started or serving.done())
        if not serving.done():
            ready()
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await asyncio.wait({serving})


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - uvicorn has a flag for it, no event
        await asyncio.sleep(0.01)
