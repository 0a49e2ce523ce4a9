"""One HTTP/1.1 connection: parses requests and writes replies, all limited in size and time.

The mode of the socket file decides who may connect.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import h11
from msgspec import Struct, field

from edge.control import plain_http
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import Json

READ: Final = 64 * 1024
LINGER_S: Final = 1.0
"""A refused client gets this long to stop sending, so that it reads the error, not a reset."""
MAX_LINGER: Final = 4 * 1024 * 1024
MAX_QUERY: Final = 32
"""Query parameters; no path takes more than three."""
WITHOUT_BODY: Final = frozenset({204, 304})
"""Statuses of replies that have none."""


class HttpLimits(Struct, frozen=True):
    """Limits on clients, in seconds and bytes. `begins` and `polls` are smaller than `connections`,
    so that calls being started and clients waiting for an answer leave room for those that read or
    cancel.
    """

    head: int = 16 * 1024
    body: int = 256 * 1024
    connections: int = 64
    streams: int = 32
    begins: int = 48
    polls: int = 32
    idle_s: float = 75.0
    request_s: float = 10.0
    write_s: float = 30.0
    heartbeat_s: float = 15.0


class Request(Struct, frozen=True):
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Written(NamedTuple):
    """A body that is JSON already, in parts, its line end included."""

    parts: tuple[bytes, ...]


class Reply(Struct, frozen=True):
    """`body` is written as JSON unless it is `Written`; text of another `content_type` goes out as
    it is; a 204 and a 304 have none.
    """

    status: int
    body: Json
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"


STATUS: Final = {
    "INVALID_REQUEST": 400,
    "PERMISSION": 403,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "CONFLICT": 409,
    "INTERNAL": 500,
    "UNSUPPORTED": 501,
    "BUSY": 503,
    "TIMEOUT": 504,
    "STORAGE_UNAVAILABLE": 507,
    "DISK_FULL": 507,
}
"""Error code → HTTP status."""


class RequestRefused(Exception):
    """A request that is not served: code, problem and fix of the error reply. `status` overrules
    the one of `STATUS`.
    """

    def __init__(
        self, code: str, message: str, fix: str = "", *, status: int = 0, allow: str = ""
    ) -> None:
        super().__init__(message)
        self.reply = Reply(
            status or STATUS[code],
            failure(code, message, fix),
            (("Allow", allow),) if allow else (),
        )


def failure(code: str, message: str, fix: str = "") -> dict[str, Json]:
    """Return the JSON body that every error of the control API has."""
    return {"error": {"code": code, "message": message, "fix": fix}}


class Stream(Struct, frozen=True):
    """A streamed reply: event blocks until they end or the client disconnects. `blocks` is closed
    in the task that iterates it.
    """

    blocks: AsyncGenerator[str, None]


class Slots:
    """A limit on requests that are served at once; one too many is refused, never queued."""

    def __init__(self, most: int, problem: str, fix: str) -> None:
        self._free = most
        self._busy = (problem, fix)

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Occupy a slot. Raise `RequestRefused` (503) if all are occupied."""
        if self._free <= 0:
            raise RequestRefused("BUSY", *self._busy)
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


def _request(method: bytes, target: bytes, headers: Mapping[str, str], body: bytes) -> Request:
    path, query = _target(target.decode("latin-1"))
    return Request(method.decode("ascii"), path, query, headers, body)


def _target(text: str) -> tuple[str, dict[str, str]]:
    """Split a request's target into path and query. Raise `RequestRefused`."""
    try:
        target = urlsplit(text)
        query = dict(parse_qsl(target.query, keep_blank_values=True, max_num_fields=MAX_QUERY))
    except ValueError:
        fix = f"ask for a path as in /v1/status, with at most {MAX_QUERY} parameters in the query"
        raise RequestRefused("INVALID_REQUEST", "the path cannot be read", fix) from None
    return unquote(target.path), query


_JSON: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False
)  # what contains itself fails all the same, as nested too deeply


def encode_json(value: Json) -> bytes:
    """Return it as JSON. An unpaired surrogate (from a file's name, a registry's text) becomes a
    replacement character, instead of failing the whole answer.
    """
    return _JSON.encode(value).encode(errors="replace")


def _encode(reply: Reply) -> tuple[bytes, ...]:
    """Return the body of a reply, in parts."""
    if isinstance(reply.body, Written):
        return reply.body.parts
    if reply.content_type != "application/json":
        return (str(reply.body).encode(errors="replace"),)
    return (encode_json(reply.body) + b"\n",)


class HttpConnection:
    """Requests in, replies out, one after the other. Used once; the owner calls `close`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: HttpLimits
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head)
        self._plain = b""
        """The request that is being served, if h11 has not seen it."""
        self._started = False  # a byte of the next request has arrived
        self._without_body = False
        writer.transport.set_write_buffer_limits(high=READ)

    async def request(self) -> Request | None:
        """Return the next request, None if the client disconnected or sent nothing. Raise
        `RequestRefused`.
        """
        self._started = bool(self._h11.trailing_data[0])
        self._without_body = False
        try:
            async with timeout(
                self._limits.request_s if self._started else self._limits.idle_s
            ) as limit:
                return await self._next(limit)
        except TimeoutError:
            if not self._started:
                return None
            problem = f"the request was not complete within {self._limits.request_s:g} s"
            raise RequestRefused("TIMEOUT", problem, status=408) from None
        except h11.RemoteProtocolError as e:
            if self._reader.at_eof():
                return None
            problem, status = f"this is not valid HTTP/1.1: {e}", e.error_status_hint
            raise RequestRefused("INVALID_REQUEST", problem, status=status) from None

    async def _next(self, limit: asyncio.Timeout) -> Request | None:
        if not self._h11.trailing_data[0]:
            data = await self._read(limit)
            bounds = self._limits
            plain = plain_http.parse(data, most_head=bounds.head, most_body=bounds.body)
            if plain is not None:
                self._plain = data
                return _request(*plain)
            self._h11.receive_data(data)
        head = await self._event(limit)
        if not isinstance(head, h11.Request):
            return None
        self._without_body = head.method == b"HEAD"
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        if int(headers.get("content-length", 0)) > self._limits.body:
            raise self._too_large()
        body = bytearray()
        while isinstance(event := await self._event(limit), h11.Data):
            body += event.data
            if len(body) > self._limits.body:
                raise self._too_large()
        return _request(head.method, head.target, headers, bytes(body))

    async def _event(self, limit: asyncio.Timeout) -> Any:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            if self._h11.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._h11.receive_data(await self._read(limit))
        return event

    async def _read(self, limit: asyncio.Timeout) -> bytes:
        data = await self._reader.read(READ)
        if data and not self._started:
            self._started = True
            limit.reschedule(asyncio.get_running_loop().time() + self._limits.request_s)
        return data

    def _show_h11(self) -> None:
        """Let h11 read the request that is served: what follows is not plain."""
        data, self._plain = self._plain, b""
        if data:
            self._h11.receive_data(data)
            while not isinstance(self._h11.next_event(), h11.EndOfMessage):
                continue

    def _too_large(self) -> RequestRefused:
        problem = f"the body is larger than {self._limits.body} bytes"
        return RequestRefused("INVALID_REQUEST", problem, "send a smaller body", status=413)

    # -------------------------------------------------------------- replies

    async def reply(self, reply: Reply) -> bool:
        """Send a whole reply; True when the connection can carry another request."""
        if reply.status in WITHOUT_BODY:
            self._show_h11()
            await self._send(
                h11.Response(status_code=reply.status, headers=list(reply.headers)),
                h11.EndOfMessage(),
            )
        else:
            parts = _encode(reply)
            headers = [
                ("Content-Type", reply.content_type),
                ("Content-Length", str(sum(map(len, parts)))),
                *reply.headers,
            ]
            if self._plain:
                self._plain = b""
                await self._write((plain_http.head_of_reply(reply.status, headers), *parts))
                return True
            await self._send(
                h11.Response(status_code=reply.status, headers=headers),
                *([] if self._without_body else [h11.Data(data=part) for part in parts]),
                h11.EndOfMessage(),
            )
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            return True
        return False

    async def refuse(self, refused: RequestRefused) -> None:
        """Send the error reply of a refused request, if that is still possible, and end the
        connection.
        """
        if self._h11.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        headers = (*refused.reply.headers, ("Connection", "close"))
        await self.reply(Reply(refused.reply.status, refused.reply.body, headers))
        await self._linger()

    async def _linger(self) -> None:
        self._check_open()
        if self._writer.can_write_eof():
            self._writer.write_eof()
        left = MAX_LINGER
        try:
            async with timeout(LINGER_S):
                while left > 0 and (data := await self._reader.read(READ)):
                    left -= len(data)
        except TimeoutError:
            return

    async def begin_events(self) -> None:
        """Start a server-sent event stream; it ends with the connection."""
        self._show_h11()
        await self._send(
            h11.Response(
                status_code=200,
                headers=[
                    ("Content-Type", "text/event-stream"),
                    ("Cache-Control", "no-store"),
                    ("Connection", "close"),
                ],
            )
        )

    async def event(self, text: str) -> None:
        """Send one event block (or comment), its blank line added."""
        await self._send(h11.Data(data=text.encode(errors="replace") + b"\n\n"))

    async def end_events(self) -> None:
        """End a complete stream, and the connection with it."""
        await self._send(h11.EndOfMessage())
        self._writer.close()

    async def _send(self, *events: Any) -> None:
        await self._write(self._parts(events))

    async def _write(self, parts: Iterable[bytes]) -> None:
        """Write and wait until the client keeps up. Raise ConnectionError, TimeoutError."""
        async with timeout(self._limits.write_s):
            for data in _chunks(parts):
                self._check_open()
                self._writer.write(data)
                await self._writer.drain()

    def _parts(self, events: Iterable[Any]) -> Iterator[bytes]:
        """Yield the bytes of each event, those of a body without a copy."""
        for event in events:
            yield from self._h11.send_with_data_passthrough(event) or ()

    def _check_open(self) -> None:
        """Raise ConnectionError if the client hung up, where uvloop would raise RuntimeError."""
        if self._writer.is_closing():
            raise ConnectionResetError("the client hung up")

    async def wait_closed(self) -> None:
        """Wait until the client has closed the connection; what it still sends is discarded."""
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(READ):
                continue

    def abort(self) -> None:
        """Close the connection now, discarding unsent bytes."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close the connection; a client that does not read its last bytes within a second loses
        them.
        """
        self._writer.close()
        closed = False
        try:
            with contextlib.suppress(TimeoutError, OSError):
                async with timeout(LINGER_S):
                    await self._writer.wait_closed()
                    closed = True
        finally:
            if not closed:  # asyncio's transport cannot be aborted once its last bytes have left
                self.abort()


def _chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join parts to chunks that are at least as large as what is written at once: a small reply is
    one system call, and wakes its reader once.
    """
    waiting: list[bytes] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= READ:
            yield b"".join(waiting)
            waiting = []
    if waiting:
        yield b"".join(waiting)
