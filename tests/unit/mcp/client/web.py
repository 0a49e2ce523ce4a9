"""A web server of a few lines on loopback, so that a test decides every byte of an answer, and
may be rude.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict:
        return json.loads(self.body) if self.body else {}

    @property
    def form(self) -> dict[str, str]:
        return {key: values[0] for key, values in parse_qs(self.body.decode()).items()}


Write = Callable[[bytes], Awaitable[None]]
Answer = tuple[int, dict[str, str], bytes]
Handler = Callable[[Request, Write], Awaitable[Answer | None]]


def reply(status: int, body: object = b"", **headers: str) -> Answer:
    """An answer: JSON, unless bytes."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    if isinstance(body, bytes):
        return status, named, body
    return status, {"content-type": "application/json", **named}, json.dumps(body).encode()


def result(request: Request, found: object, **headers: str) -> Answer:
    """A JSON-RPC result."""
    return reply(
        200, {"jsonrpc": "2.0", "id": request.message.get("id"), "result": found}, **headers
    )


@asynccontextmanager
async def web(handler: Handler, port: int = 0):
    """Serve; gives the origin. A handler that gives None has written for itself, and the
    connection is closed.
    """
    running = set()

    async def serve(reader, writer):
        running.add(asyncio.current_task())
        try:
            while (request := await _read(reader)) is not None:

                async def write(data: bytes) -> None:
                    writer.write(data)
                    await writer.drain()

                found = await handler(request, write)
                if found is None:
                    return
                status, headers, body = found
                lines = [
                    f"HTTP/1.1 {status} X",
                    *(f"{k}: {v}" for k, v in headers.items()),
                    f"content-length: {len(body)}",
                    "",
                    "",
                ]
                await write("\r\n".join(lines).encode() + body)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # a cancelled one too: 3.11's streams cannot take it
        finally:
            running.discard(asyncio.current_task())
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(running):
            task.cancel()


async def _read(reader) -> Request | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {
        k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)
    }
    return Request(
        method, path, headers, await reader.readexactly(int(headers.get("content-length", 0)))
    )
