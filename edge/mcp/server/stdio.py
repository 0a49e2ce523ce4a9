"""MCP over this process's stdin and stdout: one message a line, bounded, and nothing else ever on
stdout.

Refuses to know the messages. Reading and writing block in threads that die with the process:
neither a client that says nothing nor one that reads nothing keeps us from ending.
"""

import asyncio
import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable
from queue import Queue
from typing import Any, BinaryIO, Final, cast

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
"""Messages read before they are wanted."""
TOO_LONG: Final = "{}\n"
"""Stands for a message that was too long: no JSON-RPC, and answered as such."""


async def serve(facade: Facade) -> None:
    """Serve one client until it closes stdin."""
    incoming, outgoing = claim_stdio()
    lines = _Lines(os.fdopen(incoming, "rb", closefd=False))
    words = _Words(os.fdopen(outgoing, "wb", closefd=False))
    messages = _messages(lines, words)
    async with (
        facade.running(),
        stdio_server(
            cast("anyio.AsyncFile[str]", messages), cast("anyio.AsyncFile[str]", words)
        ) as (read, write),
    ):
        await facade.server.run(read, write, facade.server.create_initialization_options())


async def _messages(lines: "_Lines", words: "_Words") -> AsyncIterator[str]:
    """The lines that are messages. What is none is answered here (the SDK says nothing):
    whoever sent it may be waiting.
    """
    async for line in lines:
        if not line.strip():
            continue
        try:
            types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            await words.write(_refusal(line) + "\n")
        else:
            yield line


def _refusal(line: str) -> str:
    """JSON-RPC's answer to what is no message, to the id that can be read of it."""
    code, problem, number = (
        types.INVALID_REQUEST,
        f"this is no message of JSON-RPC 2.0, or one of more than {MAX_LINE} bytes",
        None,
    )
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        code, problem = types.PARSE_ERROR, "this is no JSON; each line is one message"
    else:
        if (
            isinstance(said, dict)
            and not {"result", "error"} & set(said)
            and type(said.get("id")) in {int, str}
        ):
            number = said["id"]
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": problem}})


class _Lines:
    """The lines that come, for `async for`."""

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
            while (line := self._source.readline(MAX_LINE + 1)) and self._hand(self._bounded(line)):
                continue
        except OSError as e:
            log.debug("stdin ended: %s", e)
        self._hand(None)

    def _bounded(self, line: bytes) -> str:
        if len(line) <= MAX_LINE:
            return line.decode("utf-8", "replace")
        while line and not line.endswith(b"\n"):
            line = self._source.readline(MAX_LINE)
        log.warning("a message of more than %d bytes was not read", MAX_LINE)
        return TOO_LONG

    def _hand(self, line: str | None) -> bool:
        """Pass a line on when there is room for it; False once nobody takes any."""
        self._room.acquire()
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, line)
        except RuntimeError:  # the loop has ended
            return False
        return True


class _Words:
    """Where the answers go: `write` returns when the client has room for more."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._queue: Queue[tuple[bytes, asyncio.Future[None]]] = Queue(1)
        self._turn = asyncio.Lock()
        threading.Thread(target=self._write, name="mcp.stdout", daemon=True).start()

    async def write(self, text: str) -> None:
        """Write and flush. Raises BrokenPipeError when the client has gone."""
        async with self._turn:
            done = self._loop.create_future()
            self._queue.put_nowait((text.encode(), done))  # one at a time: there is room
            await done

    async def flush(self) -> None:
        """Done by `write`."""

    def _write(self) -> None:
        while True:
            data, done = self._queue.get()
            try:
                self._sink.write(data)
                self._sink.flush()
            except OSError as e:
                self._told(_failing(done, e))
                return
            if not self._told(_finishing(done)):
                return

    def _told(self, what: Callable[[], Any]) -> bool:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:  # the loop has ended
            return False
        return True


def _finishing(done: "asyncio.Future[None]") -> Callable[[], None]:
    return lambda: None if done.done() else done.set_result(None)


def _failing(done: "asyncio.Future[None]", error: OSError) -> Callable[[], None]:
    return lambda: None if done.done() else done.set_exception(error)
