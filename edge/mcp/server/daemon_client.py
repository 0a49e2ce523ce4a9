"""The daemon as the MCP server reaches it: its control API over the unix socket, asynchronously, on
kept connections.

Refuses to know what is asked and what an answer means; it knows only why there is none.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import h11

from edge.runtime.control_api import (
    CONNECT_S,
    MAX_ANSWER,
    QUIET_S,
    late,
    not_connected,
    refusal,
    stopped,
)
from firmware_bridge.deadlines import timeout, timeout_at

MAX_EVENT: Final = 16 * 1024 * 1024
READ: Final = 64 * 1024
KEPT: Final = 16
"""Idle connections kept; the daemon closes them after 75 s, and has 64 for everybody."""

Json = Any
_Request = tuple[str, str, bytes, Mapping[str, str]]
"""Method, path, body, headers."""


@dataclass(slots=True)
class DaemonClient:
    """Speaks to the daemon on the first of `sockets` somebody answers on. Every request names
    how long it may take.
    """

    sockets: tuple[Path, ...]
    _idle: "deque[_Connection]" = field(default_factory=deque)

    async def ask(
        self, method: str, path: str, body: Json = None, *, timeout_s: float = 30.0
    ) -> Json:
        """Ask once; None when the answer is empty. Raises `UserError`."""
        async with aclosing(self.told(method, path, body, timeout_s=timeout_s)) as answers:
            async for answer in answers:
                return answer
        return None

    async def told(
        self, method: str, path: str, body: Json = None, *, timeout_s: float
    ) -> AsyncGenerator[Json, None]:
        """Ask once; the one answer, or each event of an answer that goes on. Raises
        `UserError`.
        """
        try:
            async with aclosing(
                self._exchange(method, path, body, {}, _Patience(whole_s=timeout_s))
            ) as answers:
                async for _, answer in answers:
                    yield answer
        except TimeoutError:
            raise late(timeout_s) from None

    async def events(
        self, last_event_id: str | None = None
    ) -> AsyncGenerator[tuple[str, Json], None]:
        """Follow happenings, but not how calls fare: (id, event) for ever; ("", None) when
        nothing happened for a while. Raises `UserError`.
        """
        headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
        try:
            async with aclosing(
                self._exchange(
                    "GET", "/v1/events?calls=0", None, headers, _Patience(quiet_s=QUIET_S)
                )
            ) as events:
                async for event in events:
                    yield event
        except TimeoutError:
            raise stopped() from None
        raise stopped()

    async def _exchange(
        self, method: str, path: str, body: Json, headers: Mapping[str, str], patience: "_Patience"
    ) -> AsyncGenerator[tuple[str, Json], None]:
        """One request; what comes back, each part with its event id. Raises `UserError`,
        TimeoutError.
        """
        payload = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        connection, status, kind = await self._begun((method, path, payload, headers), patience)
        kept = False
        try:
            if status >= 400:
                raise refusal(status, await connection.whole())
            if kind.startswith("text/event-stream"):
                async for event in connection.blocks():
                    yield event
            else:
                raw = await connection.whole()
                kept = self._keep(
                    connection
                )  # before the answer is given: whoever takes it does not come back for more
                yield "", json.loads(raw) if raw else None
        except TimeoutError:
            raise
        except (OSError, h11.ProtocolError, ValueError):
            raise stopped() from None
        finally:
            if not kept:  # else it is somebody else's by now
                connection.abort()

    async def _begun(
        self, request: "_Request", patience: "_Patience"
    ) -> "tuple[_Connection, int, str]":
        """Send a request; a kept connection that died unused is replaced, once."""
        for fresh in (False, True):
            connection, kept = await self._connection(fresh=fresh)
            try:
                return connection, *await connection.begin(request, patience)
            except (OSError, h11.ProtocolError) as e:
                connection.abort()
                if isinstance(e, TimeoutError):
                    raise
                if not (kept and connection.unheard):
                    break
            except BaseException:
                connection.abort()
                raise
        raise stopped()

    async def _connection(self, *, fresh: bool = False) -> "tuple[_Connection, bool]":
        while self._idle and not fresh:
            connection = self._idle.pop()
            connection.kept = False
            if connection.alive:
                return connection, True
            connection.abort()
        return await self._connected(), False

    async def _connected(self) -> "_Connection":
        forbidden: Path | None = None
        for path in self.sockets:
            try:
                async with timeout(CONNECT_S):
                    return _Connection(*await asyncio.open_unix_connection(str(path), limit=READ))
            except PermissionError:
                forbidden = forbidden or path
            except OSError:
                continue
        raise not_connected(self.sockets, forbidden)

    def _keep(self, connection: "_Connection") -> bool:
        if not connection.reusable or len(self._idle) >= KEPT:
            return False
        connection.kept = True
        self._idle.append(connection)
        return True

    def close(self) -> None:
        """Let go of every kept connection."""
        while self._idle:
            kept = self._idle.pop()
            kept.kept = False
            kept.abort()


class _Patience:
    """How long to wait: until a moment for the whole, or for so long between any two words."""

    def __init__(self, *, whole_s: float | None = None, quiet_s: float | None = None) -> None:
        self._quiet_s = quiet_s
        self._end = None if whole_s is None else asyncio.get_running_loop().time() + whole_s

    def until(self) -> float | None:
        return (
            self._end
            if self._quiet_s is None
            else asyncio.get_running_loop().time() + self._quiet_s
        )


class _Connection:
    """One connection: a request, its answer, and again."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=READ)
        self.unheard = True
        """Nothing of the answer has come yet."""
        self.kept = False
        self._patience = _Patience()

    @property
    def alive(self) -> bool:
        return not self._reader.at_eof() and not self._writer.is_closing()

    @property
    def reusable(self) -> bool:
        return self._h11.our_state is h11.IDLE and self.alive

    async def begin(self, request: "_Request", patience: "_Patience") -> tuple[int, str]:
        """Send the request; status and kind of the answer. Raises OSError, `h11.ProtocolError`,
        TimeoutError.
        """
        method, path, payload, headers = request
        self.kept, self.unheard, self._patience = False, True, patience
        head = [
            ("Host", "glassd"),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(payload))),
            *headers.items(),
        ]
        data = self._h11.send(h11.Request(method=method, target=path, headers=head)) or b""
        data += self._h11.send(h11.Data(data=payload)) or b""
        if self._writer.is_closing():
            raise ConnectionResetError("closed")  # uvloop would say RuntimeError
        self._writer.write(data + (self._h11.send(h11.EndOfMessage()) or b""))
        async with timeout_at(patience.until()):
            await self._writer.drain()
        while not isinstance(event := await self._event(), h11.Response):
            if isinstance(event, h11.ConnectionClosed):
                raise ConnectionResetError("closed")
        found = dict(event.headers)
        return event.status_code, found.get(b"content-type", b"").decode("latin-1")

    async def whole(self) -> bytes:
        """Read the rest of the answer. Raises OSError, `h11.RemoteProtocolError`, ValueError
        when it is too large.
        """
        body = bytearray()
        while isinstance(event := await self._event(), h11.Data):
            body += event.data
            if len(body) > MAX_ANSWER:
                raise ValueError("too large")
        if (
            self._h11.our_state is self._h11.their_state is h11.DONE
        ):  # a daemon that refuses closes, and then there is no next
            self._h11.start_next_cycle()
        return bytes(body)

    async def blocks(self) -> AsyncGenerator[tuple[str, Json], None]:
        """Give each event; comments as ("", None). Raises as `whole` does, an event at a time."""
        rest = b""
        while isinstance(event := await self._event(), h11.Data):
            rest += bytes(event.data)
            *whole, rest = rest.split(b"\n\n")
            if len(rest) > MAX_EVENT:
                raise ValueError("too large")
            for block in whole:
                yield _event_of(block)

    async def _event(self) -> Any:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            async with timeout_at(self._patience.until()):
                data = await self._reader.read(READ)
            if data:
                self.unheard = False
            self._h11.receive_data(data)
        return event

    def abort(self) -> None:
        """End the connection, unless it is kept for the next request."""
        if not self.kept:
            with contextlib.suppress(RuntimeError):  # a loop that is closed already
                self._writer.transport.abort()


def _event_of(block: bytes) -> tuple[str, Json]:
    fields = dict(
        line.partition(b":")[::2] for line in block.split(b"\n") if not line.startswith(b":")
    )
    if b"data" not in fields:
        return "", None
    return fields.get(b"id", b"").strip().decode("latin-1"), json.loads(fields[b"data"])
