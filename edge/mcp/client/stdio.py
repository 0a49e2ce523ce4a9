"""The stdio transport, with bounds that the SDK's lacks: on lines, garbage, floods, and interrupted
writes. Every line of the server is untrusted: one that is too long or not MCP ends the request that
it answers, many of them end the connection.
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
from edge.mcp.client.request_trace import TRACE, RequestTrace

PATIENCE: Final = 64 * 1024 * 1024
"""Bytes of one line that are skipped before the connection ends."""
GARBAGE: Final = 1000
"""Lines that are not MCP, between two that are."""
MAX_VALUES: Final = 200_000
"""Values of one message, estimated by commas and brackets: each becomes several objects of about 60
bytes.
"""
REAP_S: Final = 0.2
"""A process that dies closes its pipes shortly before its exit code is known."""
_LOST: Final = object()
"""The id of an answer without one; if one request is under way, it is its answer."""
REMEMBERED: Final = 64
"""Requests whose place in the pipe is remembered; a pipe holds 64 KiB."""
_COUNT: Final = struct.Struct("i")
_ID: Final = re.compile(rb'"id"\s*:\s*("[^"]{1,64}"|\d{1,15})')

log = logging.getLogger(__name__)


class Wire:
    """One server process and the two streams to it. `ended` is set at the end of its output, `why`
    is the reason.
    """

    def __init__(self, server: McpServer, process: Process, ended: asyncio.Event) -> None:
        self._limit = server.max_answer_bytes
        self._process = process
        self._into, self.read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._in_flight: dict[RequestId, RequestTrace] = {}
        self.write = Writer(process, self._in_flight)
        self._ended = ended
        self.why = ""

    async def listen(self) -> None:
        """Pass the server's messages to the session until one of them ends; then read on, so
        that the server can end.
        """
        try:
            await self._pass_on()
        except Endless as e:
            self._give_up(CallFault.TOO_LARGE, f"the server writes without end ({e})")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.debug("the session is gone")
        if await self._process.wait(REAP_S):
            self.why = self.why or self._process.ending
        self.write.mark_unread()
        self._into.close()
        self._ended.set()
        while await self._process.stdout.read(65536):
            continue

    def close(self) -> None:
        """Close both ends for the session, also where `listen` was cancelled."""
        self._into.close()
        self.read.close()

    async def _pass_on(self) -> None:
        rate, garbage = RateLimiter(), 0
        async for line in lines(self._process.stdout, limit=self._limit, patience=PATIENCE):
            await rate.take(1, len(line) if isinstance(line, bytes) else self._limit)
            item = self._read(line)
            if item is not None:
                garbage = 0
                await self._into.send(item)
                continue
            garbage += 1
            if garbage > GARBAGE:
                why = f"the server writes {garbage} lines that are no MCP: "
                self._give_up(CallFault.INVALID, f"{why}its stdout must carry nothing else")
                return

    def _give_up(self, kind: CallFault, why: str) -> None:
        self.why = why
        for trace in self._in_flight.values():
            trace.fail(kind, why)

    def _read(self, line: bytes | Overlong) -> SessionMessage | None:
        """Return the message in a line, or an error for the request that it answers; None for
        garbage.
        """
        if isinstance(line, Overlong):
            problem = f"the server answers with more than {self._limit} bytes"
            return self._fail(_guess_id(line.head, line.tail), CallFault.TOO_LARGE, problem)
        if line.count(b",") + line.count(b"[") + line.count(b"{") > MAX_VALUES:
            problem = f"the server answers with more than {MAX_VALUES} values"
            return self._fail(_guess_id(line[:256], line[-256:]), CallFault.TOO_LARGE, problem)
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            return self._fail_answer(line) if line.strip() else None
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._in_flight.pop(message.id, None)
        return SessionMessage(message)

    def _fail_answer(self, line: bytes) -> SessionMessage | None:
        """End the request that a line answers which is not MCP; anything else is garbage."""
        try:
            found: Any = json.loads(line)
        except (ValueError, RecursionError):
            problem = "the server answers with something that is no JSON"
            return self._fail(_guess_id(line[:256], line[-256:]), CallFault.INVALID, problem)
        if not isinstance(found, dict) or "method" in found:
            return None
        problem = "the server answers with something that is no MCP"
        if found.get("result", 0) is None:
            problem = "the server answered with null"
        return self._fail(found.get("id", _LOST), CallFault.INVALID, problem)

    def _fail(self, id_: object, kind: CallFault, message: str) -> SessionMessage | None:
        """End the request of this id, if it is under way, with an error."""
        if id_ is _LOST and len(self._in_flight) == 1:
            id_ = next(iter(self._in_flight))
        if not isinstance(id_, int | str) or id_ not in self._in_flight:
            return None
        self._in_flight.pop(id_).fail(kind, message)
        return SessionMessage(
            JSONRPCError(jsonrpc="2.0", id=id_, error=ErrorData(code=PARSE_ERROR, message=message))
        )


def _guess_id(head: bytes, tail: bytes) -> object:
    """Guess the id of a broken answer: it stands near the beginning or near the end."""
    if b'"jsonrpc"' not in head and b'"jsonrpc"' not in tail:
        return None
    found = _ID.search(head) or _ID.search(tail)
    if found is None:
        return _LOST
    text = found[1].decode(errors="replace")
    return text[1:-1] if text.startswith('"') else int(text)


class Writer:
    """Writes messages in their sender's own task, so that it knows how much of a request left."""

    def __init__(self, process: Process, in_flight: dict[RequestId, RequestTrace]) -> None:
        self._process = process
        self._in_flight = in_flight
        self._turn = asyncio.Lock()
        self._free = asyncio.Event()
        self._closed = False
        self._total = 0
        self._ends: dict[int, RequestTrace] = {}
        self._rest = b""
        """What a cancelled sender left of its line; the next sender writes it first."""

    async def send(self, item: SessionMessage) -> None:
        """Raises anyio.BrokenResourceError if the server has closed its stdin."""
        message = item.message
        line = (message.model_dump_json(by_alias=True, exclude_unset=True) + "\n").encode()
        trace = TRACE.get() if isinstance(message, JSONRPCRequest) else None
        async with self._turn:
            await self._write(self._rest, begun=True)
            if isinstance(message, JSONRPCRequest):
                self._in_flight[message.id] = trace or RequestTrace()
            await self._write(line, begun=False)
            if trace is not None:
                trace.sent = True
                self._ends[self._total] = trace
                while len(self._ends) > REMEMBERED:
                    del self._ends[next(iter(self._ends))]

    def mark_unread(self) -> None:
        """Mark requests as unsent whose last byte is still in the pipe of a server that is gone."""
        if self._process.stdin < 0:
            return
        (unread,) = _COUNT.unpack(
            fcntl.ioctl(self._process.stdin, termios.FIONREAD, bytes(_COUNT.size))
        )
        for end, trace in self._ends.items():
            if end > self._total - unread:
                trace.sent = False

    async def _write(self, data: bytes, *, begun: bool) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[await self._write_some(left) :]
        finally:
            self._rest = bytes(left) if begun or len(left) < len(data) else b""

    async def _write_some(self, data: memoryview) -> int:
        if self._closed or self._process.stdin < 0:
            raise anyio.ClosedResourceError
        try:
            count = os.write(self._process.stdin, data)
        except BlockingIOError:
            await self._wait_writable()
            return 0
        except OSError as e:
            raise anyio.BrokenResourceError from e
        self._total += count
        return count

    async def _wait_writable(self) -> None:
        loop = asyncio.get_running_loop()
        descriptor = self._process.stdin
        self._free.clear()
        loop.add_writer(descriptor, self._free.set)
        try:
            await self._free.wait()
        finally:
            loop.remove_writer(descriptor)

    async def aclose(self) -> None:
        """Wake waiting senders; the pipe itself closes with the process."""
        self._closed = True
        self._free.set()
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@asynccontextmanager
async def stdio_wire(
    server: McpServer, *, ended: asyncio.Event, log_line: Callable[[str], None]
) -> AsyncGenerator[Wire]:
    """Start the server's process, and end it on leaving; `log_line` gets its stderr. Raises
    OSError.
    """
    process = await Process.start(server)
    wire = Wire(server, process, ended)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(wire.listen)
            group.start_soon(process.read_stderr, log_line)
            try:
                yield wire
            finally:
                with anyio.CancelScope(shield=True):
                    await process.stop()
                group.cancel_scope.cancel()
    finally:
        wire.close()
