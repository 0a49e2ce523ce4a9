"""The demo's wires to its cast: the daemon's control API, the mock's control channel, the
devcloud's HTTP.

Refuses to know the play: it asks, and it listens; what comes in is a stream of event dictionaries.
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
"""Longest answer waited for: a call may run 40 s."""
RETRY_S: Final = 0.2
LINE_BYTES: Final = 1 << 20


class DaemonWire:
    """HTTP over the daemon's unix socket."""

    def __init__(self, socket: Path) -> None:
        self._http = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(socket)),
            base_url="http://glassd",
            timeout=ASK_S,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str) -> Any:
        return (await self._http.get(path)).json()

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        return (await self._http.post(path, json=body)).json()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """What happens in the daemon from its start on, for ever; a restarted one is found
        again and nothing is repeated.
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


class MockWire:
    """The mock's own control channel: JSON lines over a unix socket."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def do(self, **order: Any) -> dict[str, Any]:
        """Give one order and read its answer. Raises OSError when the mock is away."""
        async with self._open() as (reader, writer):
            writer.write(json.dumps(order).encode() + b"\n")
            async with timeout(ASK_S):
                return dict(json.loads(await reader.readline()))

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """What the mock decoded from the air, for ever; a restarted mock is found again."""
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


class CloudWire:
    """The devcloud's development endpoints."""

    def __init__(self, base: str) -> None:
        self._http = httpx.AsyncClient(base_url=base, timeout=ASK_S)

    async def close(self) -> None:
        await self._http.aclose()

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        return (await self._http.post(path, json=body)).json()
