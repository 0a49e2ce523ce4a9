"""How the soak asks its cast: the daemon's control API, the cloud's HTTP, the mock's own
channel. Knows no load.
"""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from edge.runtime.paths import owner_beside

ASK_S = 60.0


class Wires:
    """One client of each; `close` when done."""

    def __init__(self, control: Path, cloud: str, mock: Path) -> None:
        # No pooled connection is kept long: the daemon closes idle ones, and a race with that is
        # not what is measured.
        limits = httpx.Limits(
            max_connections=48, max_keepalive_connections=8, keepalive_expiry=20.0
        )
        self._daemon = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(owner_beside(control)), limits=limits),
            base_url="http://glassd",
            timeout=ASK_S,
        )
        self._cloud = httpx.AsyncClient(base_url=cloud, timeout=ASK_S, trust_env=False)
        self._control = control
        self._mock = mock

    async def close(self) -> None:
        await self._daemon.aclose()
        await self._cloud.aclose()

    async def get(self, path: str) -> Any:
        return (await self._daemon.get(path)).json()

    async def text(self, path: str) -> str:
        return (await self._daemon.get(path)).text

    async def put(self, path: str, body: Any) -> int:
        return (await self._daemon.put(path, json=body)).status_code

    async def delete(self, path: str) -> int:
        return (await self._daemon.delete(path)).status_code

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = await self._daemon.post(
            path, content=content, headers={"content-type": "application/json"}
        )
        return reply.status_code, reply.json()

    async def call(
        self, tool: str, args: dict[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """One call; the envelope, or what the API said instead of one."""
        _, said = await self.post("/v1/call", {"tool": tool, "args": args or {}, **more})
        return dict(said)

    async def ask_cloud(self, path: str, body: Any) -> Any:
        return (await self._cloud.post(path, json=body)).json()

    async def mock(self, **order: Any) -> dict[str, Any]:
        reader, writer = await asyncio.open_unix_connection(str(self._mock), limit=1 << 20)
        try:
            writer.write(json.dumps(order).encode() + b"\n")
            async with asyncio.timeout(ASK_S):
                return dict(json.loads(await reader.readline()))
        finally:
            writer.close()

    async def follow(self, seconds: float) -> int:
        """Follow the events for a while, then go away without a word; how many came."""
        seen = 0
        with suppress(TimeoutError):  # the end that was asked for
            async with (
                asyncio.timeout(seconds),
                self._daemon.stream("GET", "/v1/events", timeout=None) as reply,
            ):
                async for line in reply.aiter_lines():
                    seen += line.startswith("data:")
        return seen

    async def hang_up(self, body: dict[str, Any], after_s: float) -> None:
        """Ask for a call and be gone before it is answered."""
        payload = json.dumps(body).encode()
        reader, writer = await asyncio.open_unix_connection(str(self._control))
        head = (
            "POST /v1/call HTTP/1.1\r\nHost: glassd\r\nContent-Type: "
            f"application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
        )
        try:
            writer.write(head.encode() + payload)
            await writer.drain()
            await asyncio.wait([asyncio.ensure_future(reader.read(1))], timeout=after_s)
        finally:
            writer.transport.abort()
