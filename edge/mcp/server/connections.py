"""The connections of `glassd mcp --http`: how many there may be, how long a request may take to
arrive, which have the token.

A connection is a stranger until a request with the token came over it (without a token: until one
request came whole). Strangers have places of their own, so that they never take one of a known
client.
"""

import asyncio
import hashlib
import hmac
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

STRANGERS: Final = 64
"""Connections at once that have not shown the token yet."""
CONNECTIONS: Final = 128
"""Connections of known clients at once."""
HEAD_S: Final = 10.0
"""From the first byte of a request (of the first one: from the connection) to the end of its head.
"""
BODY_S: Final = 60.0
"""From there to the end of its body, which has at most 4 MiB."""


class Connections:
    """All open connections of one server."""

    def __init__(self, token: str, before: Callable[[Scope], Awaitable[None]]) -> None:
        self._wanted = _digest(token) if token else b""
        self._before = before
        self._strangers: dict[Connection, None] = {}
        self._known: dict[Connection, None] = {}
        """Strangers by age; known ones by when they were last used."""

    def open(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> "Connection":
        """Return the protocol of a new connection, for uvicorn."""
        return Connection(self, config, server_state, app_state, _loop)

    def add(self, new: "Connection") -> None:
        """Add a new connection; if there are too many strangers, the oldest of the busiest peer is
        closed.
        """
        self._strangers[new] = None
        if len(self._strangers) > STRANGERS:
            [(busiest, _)] = Counter(c.peer for c in self._strangers).most_common(1)
            oldest = next(c for c in self._strangers if c.peer == busiest)
            self.remove(oldest)
            oldest.transport.abort()

    def remove(self, gone: "Connection") -> None:
        self._strangers.pop(gone, None)
        self._known.pop(gone, None)

    def note_request(self, connection: "Connection") -> None:
        """Without a token, a request that came whole makes its client a known one."""
        if not self._wanted:
            self._admit(connection)

    def _admit(self, connection: "Connection") -> bool:
        """Make it a known one, in place of the one that was idle for longest. Return False if all
        have running requests.
        """
        if connection not in self._known and len(self._known) >= CONNECTIONS:
            idle = next((c for c in self._known if c.idle), None)
            if idle is None:
                return False
            self.remove(idle)
            idle.transport.close()
        self.remove(connection)
        self._known[connection] = None
        return True

    async def serve(
        self, app: ASGIApp, connection: "Connection", scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer one request whose head has arrived, with `app` if its client is allowed."""
        if self._wanted and not self._allowed(scope):
            challenge = (b"www-authenticate", b'Bearer realm="glassd"')
            await _refuse(send, 401, b"this server wants a bearer token", challenge)
        elif self._wanted and not connection.transport.is_closing() and not self._admit(connection):
            await _refuse(send, 503, b"too many requests are running", (b"connection", b"close"))
        else:
            await self._before(scope)
            await app(scope, receive, send)

    def _allowed(self, scope: Scope) -> bool:
        found = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = (found[0] if len(found) == 1 else b"").partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(
            _digest(token.strip().decode("latin-1")), self._wanted
        )


def _digest(token: str) -> bytes:
    """Hash to one length, so that the time of a comparison reveals nothing."""
    return hashlib.sha256(token.encode("latin-1", "replace")).digest()


async def _refuse(send: Send, status: int, text: bytes, *headers: tuple[bytes, bytes]) -> None:
    head = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(text)).encode()),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": text})


class Connection(H11Protocol):
    """uvicorn's HTTP connection, with a time limit for what the client must send next."""

    def __init__(
        self,
        all_of_them: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        super().__init__(config, server_state, app_state, loop)
        app = self.app
        self._all = all_of_them
        self._limit: asyncio.TimerHandle | None = None
        self._awaited = ""
        """What the client must send next: "head", "body" or ""."""
        self._asked = False

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            await all_of_them.serve(app, self, scope, receive, send)

        self.app = serve

    @property
    def peer(self) -> str:
        """The address it comes from; "" for a socket file."""
        return self.client[0] if self.client else ""

    @property
    def idle(self) -> bool:
        """Whether all requests are answered. Only for a connection that had one."""
        return not self._awaited and self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._all.add(self)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.remove(self)
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Set the time limit for what the client must send next, if anything."""
        awaited = self._next()
        if self.transport.is_closing() or awaited == self._awaited:
            return
        self._asked = self._asked or self._awaited == "head"
        if self._awaited and awaited != "body":
            self._all.note_request(self)
        self._stop()
        self._awaited = awaited
        if awaited:
            seconds = HEAD_S if awaited == "head" else BODY_S
            self._limit = self.loop.call_later(seconds, self.transport.abort)

    def _next(self) -> str:
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            return "body"
        begun = not self._asked or bool(self.conn.trailing_data[0])
        return "head" if state is h11.IDLE and begun else ""

    def _stop(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
