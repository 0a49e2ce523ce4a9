"""The stdio transport with bounds the SDK's has not: on lines, on garbage, on floods, and on what a
write leaves behind.

Gives the SDK its two streams. Every line of the server is untrusted: one that is too long or no MCP
costs the request it answers, a stream of such the connection, never the process. Refuses to know
sessions and tools.
"""

import asyncio
import fcntl
import json
import logging
import os
import re
import struct
import termios
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from edge.mcp.client.line_reader import Endless, Overlong, lines
from edge.mcp.client.models import CallFault, McpServer
from edge.mcp.client.process import Process
from edge.mcp.client.rate_limiter import RateLimiter
from edge.mcp.client.request_trace import FLIGHT, RequestTrace

PATIENCE: Final = 64 * 1024 * 1024
"""Bytes of one line that are read away before the server is given up."""
GARBAGE: Final = 1000
"""Lines that are no MCP, between two that are."""
MAX_VALUES: Final = 200_000
"""Values of one message, guessed by its commas and brackets: each becomes an object of about 60
bytes, several times.
"""
REAP_S: Final = 0.2
"""A process that dies closes its pipes a moment before it can be asked how it ended."""
_LOST: Final = object()
"""The id of an answer that has none; where one request is under way, it is its."""
REMEMBERED: Final = 64
"""Requests whose place in the pipe is remembered; a pipe holds 64 KiB."""
_COUNT: Final = struct.Struct("i")
_ID: Final = re.compile(rb'"id"\s*:\s*("[^"]{1,64}"|\d{1,15})')

log = logging.getLogger(__name__)


class Wire:
    """One server process and the two streams over it. `ended` is set when it says no more;
    `why` tells why.
    """

    def __init__(self, server: McpServer, process: Process, ended: asyncio.Event) -> None:
        self._limit = server.max_answer_bytes
        self._process = process
        self._into, self.read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._flying: dict[RequestId, RequestTrace] = {}
        self.write = Writer(process, self._flying)
        self._ended = ended
        self.why = ""
        self._garbage = 0

    async def listen(self) -> None:
        """Carry what the server says to the session, until either is gone; then read on, so
        that it can end.
        """
        try:
            await self._carry()
        except Endless as e:
            self._give_up(CallFault.TOO_LARGE, f"the server writes without end ({e})")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.debug("the session is gone")
        if await self._process.ended(REAP_S):
            self.why = self.why or self._process.ending
        self.write.disown()
        self._into.close()
        self._ended.set()
        while await self._process.stdout.read(65536):
            continue

    async def _carry(self) -> None:
        pace = RateLimiter()
        async for line in lines(self._process.stdout, limit=self._limit, patience=PATIENCE):
            await pace.take(1, len(line) if isinstance(line, bytes) else self._limit)
            item = self._too_long(line) if isinstance(line, Overlong) else self._parsed(line)
            if item is not None:
                self._garbage = 0
                await self._into.send(item)
            elif (garbage := self._count()) > GARBAGE:
                self._give_up(
                    CallFault.INVALID,
                    f"the server writes {garbage} lines that are no MCP: "
                    "its stdout must carry nothing else",
                )
                return

    def _count(self) -> int:
        self._garbage += 1
        return self._garbage

    def _give_up(self, kind: CallFault, why: str) -> None:
        self.why = why
        for flight in self._flying.values():
            flight.fail(kind, why)

    def _parsed(self, line: bytes) -> SessionMessage | None:
        if line.count(b",") + line.count(b"[") + line.count(b"{") > MAX_VALUES:
            return self._failed(
                _hint(line[:256], line[-256:]),
                CallFault.TOO_LARGE,
                f"the server answers with more than {MAX_VALUES} values",
            )
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            return self._not_mcp(line) if line.strip() else None
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._flying.pop(message.id, None)
        return SessionMessage(message)

    def _not_mcp(self, line: bytes) -> SessionMessage | None:
        """Whose answer was it? One that is none of MCP's ends that request, anything else is
        garbage.
        """
        try:
            found: Any = json.loads(line)
        except (ValueError, RecursionError):
            return self._failed(
                _hint(line[:256], line[-256:]),
                CallFault.INVALID,
                "the server answers with something that is no JSON",
            )
        if not isinstance(found, dict) or "method" in found:
            return None
        null = found.get("result", 0) is None
        return self._failed(
            found.get("id", _LOST),
            CallFault.INVALID,
            "the server answered with null"
            if null
            else "the server answers with something that is no MCP",
        )

    def _too_long(self, line: Overlong) -> SessionMessage | None:
        return self._failed(
            _hint(line.head, line.tail),
            CallFault.TOO_LARGE,
            f"the server answers with more than {self._limit} bytes",
        )

    def _failed(self, id_: object, kind: CallFault, message: str) -> SessionMessage | None:
        """End the request of this id with an error of ours."""
        if id_ is _LOST and len(self._flying) == 1:
            id_ = next(iter(self._flying))
        if not isinstance(id_, int | str) or id_ not in self._flying:
            return None
        self._flying.pop(id_).fail(kind, message)
        return SessionMessage(
            JSONRPCError(jsonrpc="2.0", id=id_, error=ErrorData(code=PARSE_ERROR, message=message))
        )


def _hint(head: bytes, tail: bytes) -> object:
    """Guess whose answer a broken line was: its id stands near the beginning, or near the end."""
    if b'"jsonrpc"' not in head and b'"jsonrpc"' not in tail:
        return None
    found = _ID.search(head) or _ID.search(tail)
    if found is None:
        return _LOST
    text = found[1].decode(errors="replace")
    return text[1:-1] if text.startswith('"') else int(text)


class Writer:
    """Writes messages in their sender's own task, so that it is known how much of a request
    left.
    """

    def __init__(self, process: Process, flying: dict[RequestId, RequestTrace]) -> None:
        self._process = process
        self._flying = flying
        self._turn = asyncio.Lock()
        self._free = asyncio.Event()
        self._closed = False
        self._total = 0
        self._ends: dict[int, RequestTrace] = {}
        self._rest = b""
        """What a cancelled sender left of its line; the next one writes it first, or the stream
        would be broken.
        """

    async def send(self, item: SessionMessage) -> None:
        """Raises anyio.BrokenResourceError when the server reads no more."""
        message = item.message
        line = (message.model_dump_json(by_alias=True, exclude_unset=True) + "\n").encode()
        flight = FLIGHT.get() if isinstance(message, JSONRPCRequest) else None
        async with self._turn:
            await self._all(self._rest, begun=True)
            if isinstance(message, JSONRPCRequest):
                self._flying[message.id] = flight or RequestTrace()
            await self._all(line, begun=False)
            if flight is not None:
                flight.sent = True
                self._ends[self._total] = flight
                while len(self._ends) > REMEMBERED:
                    del self._ends[next(iter(self._ends))]

    def disown(self) -> None:
        """The server is gone. A request whose last byte is still in the pipe was never read: it
        counts as unsent.
        """
        if self._process.stdin < 0:
            return
        (unread,) = _COUNT.unpack(
            fcntl.ioctl(self._process.stdin, termios.FIONREAD, bytes(_COUNT.size))
        )
        for end, flight in self._ends.items():
            if end > self._total - unread:
                flight.sent = False

    async def _all(self, data: bytes, *, begun: bool) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[await self._some(left) :]
        finally:
            self._rest = bytes(left) if begun or len(left) < len(data) else b""

    async def _some(self, data: memoryview) -> int:
        if self._closed or self._process.stdin < 0:
            raise anyio.ClosedResourceError
        try:
            count = os.write(self._process.stdin, data)
        except BlockingIOError:
            await self._writable()
            return 0
        except OSError as e:
            raise anyio.BrokenResourceError from e
        self._total += count
        return count

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        descriptor = self._process.stdin
        self._free.clear()
        loop.add_writer(descriptor, self._free.set)
        try:
            await self._free.wait()
        finally:
            loop.remove_writer(descriptor)

    async def aclose(self) -> None:
        """Wake who still writes; the process's own end closes the pipe."""
        self._closed = True
        self._free.set()
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self.aclose()


@asynccontextmanager
async def stdio_wire(
    server: McpServer, *, ended: asyncio.Event, say: Callable[[str], None]
) -> AsyncGenerator[Wire]:
    """Start the server's process; it has ended when this is left. `say` hears its stderr.
    Raises OSError.
    """
    process = await Process.start(server)
    wire = Wire(server, process, ended)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(wire.listen)
            group.start_soon(process.tell_stderr, say)
            try:
                yield wire
            finally:
                with anyio.CancelScope(shield=True):
                    await process.stop()
                group.cancel_scope.cancel()
    finally:
        wire.read.close()
