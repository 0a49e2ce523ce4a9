"""MCP over this process's stdin and stdout: one bounded message a line.

Reading and writing block in daemon threads, so that a client that sends nothing or reads nothing
cannot keep the process from ending.
"""

import asyncio
import json
import logging
import os
import threading
from collections.abc import AsyncIterator
from queue import Queue
from typing import BinaryIO, Final, cast

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from pydantic import ValidationError

from edge.mcp.server.server import Facade
from edge.runtime.stdio import claim_stdio

log: Final = logging.getLogger(__name__)
MAX_LINE: Final = 4 * 1024 * 1024
"""Bytes of one message, as over HTTP."""
AHEAD: Final = 16
"""Messages read ahead."""
TOO_LONG: Final = "{}\n"
"""Stands for a message that was too long: it is answered as invalid."""


async def serve(facade: Facade) -> None:
    """Serve one client until it closes stdin."""
    incoming, outgoing = claim_stdio()
    lines = _Lines(os.fdopen(incoming, "rb", closefd=False))
    output = _Output(os.fdopen(outgoing, "wb", closefd=False))
    messages = cast("anyio.AsyncFile[str]", _messages(lines, output))
    async with (
        facade.running(),
        stdio_server(messages, cast("anyio.AsyncFile[str]", output)) as (read, write),
    ):
        await facade.server.run(read, write, facade.server.create_initialization_options())


async def _messages(lines: "_Lines", output: "_Output") -> AsyncIterator[str]:
    """Yield the lines that are messages; answer the others, which the SDK would ignore."""
    async for line in lines:
        if not line.strip():
            continue
        try:
            types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            await output.write(_refusal(line) + "\n")
        else:
            yield line


def _refusal(line: str) -> str:
    """Return JSON-RPC's answer to a line that is not a message, with its id if it has one."""
    code, number = types.INVALID_REQUEST, None
    problem = f"this is no message of JSON-RPC 2.0, or one of more than {MAX_LINE} bytes"
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        code, problem = types.PARSE_ERROR, "this is no JSON; each line is one message"
    else:
        is_answer = isinstance(found, dict) and {"result", "error"} & set(found)
        if isinstance(found, dict) and not is_answer and type(found.get("id")) in {int, str}:
            number = found["id"]
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": problem}})


class _Lines:
    """The lines of stdin, for `async for`."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(AHEAD)
        threading.Thread(target=self._read, name="mcp.stdin", daemon=True).start()

    def __aiter__(self) -> "_Lines":
        return self

    async def __anext__(self) -> str:
        line = await self._queue.get()
        self._room.release()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        try:
            while (line := self._source.readline(MAX_LINE + 1)) and self._put(self._decode(line)):
                continue
        except OSError as e:
            log.debug("stdin ended: %s", e)
        self._put(None)

    def _decode(self, line: bytes) -> str:
        if len(line) <= MAX_LINE:
            return line.decode("utf-8", "replace")
        while line and not line.endswith(b"\n"):
            line = self._source.readline(MAX_LINE)
        log.warning("a message of more than %d bytes was not read", MAX_LINE)
        return TOO_LONG

    def _put(self, line: str | None) -> bool:
        """Pass a line on once there is room for it; return False if the loop has ended."""
        self._room.acquire()
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, line)
        except RuntimeError:
            return False
        return True


class _Output:
    """Writes answers to stdout; `write` returns when the client has read enough for more."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._queue: Queue[tuple[bytes, asyncio.Future[None]]] = Queue(1)
        self._turn = asyncio.Lock()
        threading.Thread(target=self._write, name="mcp.stdout", daemon=True).start()

    async def write(self, text: str) -> None:
        """Write and flush. Raises BrokenPipeError if the client has gone."""
        async with self._turn:
            done = self._loop.create_future()
            self._queue.put_nowait((text.encode(), done))  # one at a time: there is room
            await done

    async def flush(self) -> None:
        """Do nothing: `write` has flushed."""

    def _write(self) -> None:
        error: OSError | None = None
        while error is None:
            data, done = self._queue.get()
            try:
                self._sink.write(data)
                self._sink.flush()
            except OSError as e:
                error = e
            try:
                self._loop.call_soon_threadsafe(_settle, done, error)
            except RuntimeError:  # the loop has ended
                return


def _settle(done: "asyncio.Future[None]", error: OSError | None) -> None:
    if not done.done() and error is not None:
        done.set_exception(error)
    elif not done.done():
        done.set_result(None)
