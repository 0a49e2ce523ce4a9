"""Clients of the demo's processes: the daemon's control API, the mock's control channel, the
devcloud's HTTP endpoints.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from firmware_bridge.deadlines import timeout

log = logging.getLogger(__name__)

ASK_S: Final = 60.0
"""The longest wait for an answer: a call may run 40 s."""
RETRY_S: Final = 0.2
LINE_BYTES: Final = 1 << 20


class HttpClient:
    """JSON requests to the devcloud's development endpoints."""

    def __init__(self, base: str, **more: Any) -> None:
        self._http = httpx.AsyncClient(base_url=base, timeout=ASK_S, **more)

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str) -> Any:
        return (await self._http.get(path)).json()

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        return (await self._http.post(path, json=body)).json()


class DaemonHttp(HttpClient):
    """The same for the daemon, over its unix socket, and its events."""

    def __init__(self, socket: Path) -> None:
        transport = httpx.AsyncHTTPTransport(uds=str(socket))
        super().__init__("http://glassd", transport=transport)

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the daemon's events from its start on, without end; after a restart of the daemon
        they go on, and none is repeated.
        """
        last = {"Last-Event-ID": "0"}
        while True:
            try:
                async with self._http.stream(
                    "GET", "/v1/events", headers=last, timeout=None
                ) as reply:
                    async for line in reply.aiter_lines():
                        if line.startswith("id:"):
                            last = {"Last-Event-ID": line[3:].strip()}
                        elif line.startswith("data:"):
                            yield json.loads(line[5:])
            except httpx.TransportError as away:
                log.debug("the daemon is away: %s", away)
            await asyncio.sleep(RETRY_S)


class MockClient:
    """The mock's own control channel: JSON lines over a unix socket."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def do(self, **command: Any) -> dict[str, Any]:
        """Send one command and return its answer. Raise OSError if the mock is away."""
        async with self._open() as (reader, writer):
            writer.write(json.dumps(command).encode() + b"\n")
            async with timeout(ASK_S):
                return dict(json.loads(await reader.readline()))

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what the mock decoded from the radio, without end, also after a restart."""
        while True:
            try:
                async with self._open() as (reader, writer):
                    writer.write(b'{"do":"watch"}\n')
                    while line := await reader.readline():
                        yield json.loads(line)
            except OSError as away:
                log.debug("the mock is away: %s", away)
            await asyncio.sleep(RETRY_S)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_unix_connection(str(self._socket), limit=LINE_BYTES)
        try:
            yield reader, writer
        finally:
            writer.close()
