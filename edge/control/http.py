"""One HTTP/1.1 connection: parses requests and writes replies, all limited in size and time.

The mode of the socket file decides who may connect.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct, field

from edge.control import plain_http
from edge.control.plain_http import InvalidHttp
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import Json

if TYPE_CHECKING:
    from edge.control.framing import Framing, Head, Sign

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
        self._framed: Framing | None = None
        """None while all that came was plain."""
        self._plain = b""
        """The request that is being served, if it was plain."""
        self._started = False  # a byte of the next request has arrived
        self._without_body = False
        writer.transport.set_write_buffer_limits(high=READ)

    @property
    def _framing(self) -> "Framing":
        """Return what reads and writes all that is not plain, once for the connection."""
        if self._framed is None:
            from edge.control.framing import Framing  # noqa: PLC0415 - few clients need it

            self._framed = Framing(self._limits.head)
        return self._framed

    async def request(self) -> Request | None:
        """Return the next request, None if the client disconnected or sent nothing. Raise
        `RequestRefused`.
        """
        self._started = self._framed is not None and self._framed.has_more
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
        except InvalidHttp as e:
            if self._reader.at_eof():
                return None
            problem = f"this is not valid HTTP/1.1: {e}"
            raise RequestRefused("INVALID_REQUEST", problem, status=e.status) from None

    async def _next(self, limit: asyncio.Timeout) -> Request | None:
        if not self._started:
            data = await self._read(limit)
            bounds = self._limits
            plain = plain_http.parse(data, most_head=bounds.head, most_body=bounds.body)
            if plain is not None:
                self._plain = data
                return _request(*plain)
            self._framing.receive(data)
        head = await self._part(limit)
        if not isinstance(head, tuple):
            return None
        self._without_body = head.method == b"HEAD"
        if int(head.headers.get("content-length", 0)) > self._limits.body:
            raise self._too_large()
        body = bytearray()
        while isinstance(part := await self._part(limit), bytes):
            body += part
            if len(body) > self._limits.body:
                raise self._too_large()
        return _request(*head, bytes(body))

    async def _part(self, limit: asyncio.Timeout) -> "Head | bytes | Sign":
        framing = self._framing
        while (part := framing.next()) is framing.NEED_DATA:
            if framing.awaits_continue:
                await self._write(framing.go_on())
            framing.receive(await self._read(limit))
        return part

    async def _read(self, limit: asyncio.Timeout) -> bytes:
        data = await self._reader.read(READ)
        if data and not self._started:
            self._started = True
            limit.reschedule(asyncio.get_running_loop().time() + self._limits.request_s)
        return data

    def _show_plain(self) -> None:
        """Let the framing have the request that is served: the reply to it is not plain."""
        data, self._plain = self._plain, b""
        if data:
            self._framing.take_whole(data)

    def _too_large(self) -> RequestRefused:
        problem = f"the body is larger than {self._limits.body} bytes"
        return RequestRefused("INVALID_REQUEST", problem, "send a smaller body", status=413)

    # -------------------------------------------------------------- replies

    async def reply(self, reply: Reply) -> bool:
        """Send a whole reply; True when the connection can carry another request."""
        parts: tuple[bytes, ...] = ()
        headers = [*reply.headers]
        if reply.status in WITHOUT_BODY:
            self._show_plain()
        else:
            parts = _encode(reply)
            length = str(sum(map(len, parts)))
            headers[:0] = [("Content-Type", reply.content_type), ("Content-Length", length)]
        if self._plain:
            self._plain = b""
            await self._write((plain_http.head_of_reply(reply.status, headers), *parts))
            return True
        framing = self._framing
        body = () if self._without_body else parts
        await self._write(
            chain(framing.begin(reply.status, headers), framing.body(*body), framing.end())
        )
        return framing.start_next()

    async def refuse(self, refused: RequestRefused) -> None:
        """Send the error reply of a refused request, if that is still possible, and end the
        connection.
        """
        if self._framed is not None and not self._framed.may_reply:
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
        self._show_plain()
        headers = [
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-store"),
            ("Connection", "close"),
        ]
        await self._write(self._framing.begin(200, headers))

    async def event(self, text: str) -> None:
        """Send one event block (or comment), its blank line added."""
        await self._write(self._framing.body(text.encode(errors="replace") + b"\n\n"))

    async def end_events(self) -> None:
        """End a complete stream, and the connection with it."""
        await self._write(self._framing.end())
        self._writer.close()

    async def _write(self, parts: Iterable[bytes]) -> None:
        """Write and wait until the client keeps up. Raise ConnectionError, TimeoutError."""
        async with timeout(self._limits.write_s):
            for data in _chunks(parts):
                self._check_open()
                self._writer.write(data)
                await self._writer.drain()

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
