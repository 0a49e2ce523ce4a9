"""A real control server on a real socket, over ports that live in memory."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from edge.bus import Bus
from edge.clock import Clock
from edge.control.http import Limits
from edge.control.server import ControlServer
from edge.ports import Entry, Wait
from tools_cache.tool import ErrorCode, Source, ToolDefinition, ToolResponse

DEADLINE_S = 10.0
BOOM = "boom:boom"


def definition(name, *, category="utility", description="Does it. And more."):
    return ToolDefinition(name=name, description=description, input_schema={"type": "object"}, source=Source.LOCAL, category=category)


@dataclass
class Calls:
    """A CallsPort that answers at once, unless `gate` is closed."""

    seen: list = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict = field(default_factory=dict)

    async def call(self, call, *, progress=None, wait=Wait.ANSWER):
        self.seen.append((call, wait))
        if call.tool == BOOM:
            raise RuntimeError("a bug of ours")
        await self.gate.wait()
        found = self.answers.get(call.tool)
        if found is None:
            return ToolResponse.failure(ErrorCode.TOOL_NOT_FOUND, f"no {call.tool}")
        return found.with_meta(tool=call.tool, callId=call.call_id, route="local", duration=3, delivery="shown")


class Registry:
    def __init__(self):
        self.list = (
            Entry(definition("notes:add"), "Notes"),
            Entry(definition("cam:shot", category="media"), "Camera", hidden="needs a camera", missing=("CAMERA",)),
        )

    def snapshot(self):
        return SimpleNamespace(version="7", entries=lambda: self.list, find=lambda name: None)


class Store:
    rows = ({"call_id": "c1", "tool": "notes:add", "state": "DELIVERED", "route": "local", "age_s": 90.0, "ok": True, "code": None, "delivery": "shown"},)

    async def recent(self, limit, *, pending):
        return [] if pending else list(self.rows[:limit])

    async def get(self, call_id):
        return next((row for row in self.rows if row["call_id"] == call_id), None)


@dataclass
class House:
    path: Path
    bus: Bus
    calls: Calls
    said: list
    status: dict
    server: ControlServer
    lens: dict

    async def exchange(self, raw: bytes, *, eof: bool = True) -> bytes:
        """Send bytes as they are and read until the server hangs up."""
        reader, writer = await asyncio.open_unix_connection(str(self.path))
        try:
            writer.write(raw)
            if eof:
                writer.write_eof()
            async with asyncio.timeout(DEADLINE_S):
                return await reader.read()
        finally:
            writer.close()

    async def ask(self, method: str, path: str, body=None, headers: str = ""):
        """One request on its own connection: (status, JSON)."""
        payload = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(payload)}\r\n{headers}\r\n"
        return parsed(await self.exchange(head.encode() + payload))


def parsed(raw: bytes):
    head, _, body = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@asynccontextmanager
async def open_house(tmp_path: Path, *, limits: Limits | None = None, ring: int = 1024, **more) -> AsyncIterator[House]:
    """Serve until the block ends; whatever the server raises, the test sees."""
    path = tmp_path / "control.sock"
    bus, calls, said, status, numbers = Bus(), Calls(), [], {"version": "0.1.0", "next_action": ""}, iter(range(1, 10**6))
    calls.gate.set()
    calls.answers["notes:add"] = ToolResponse(data={"id": 1, "text": "milk"})
    lens = {"scene": "s", "page": 1, "pages": 1, "lines": ["Hello"], "at": 1.0}

    async def heard(text):
        said.append(text)
        return ToolResponse(data=f"heard {text}")

    server = ControlServer(
        path, calls=calls, registry=Registry(), render=SimpleNamespace(lens=lambda: lens), store=Store(), bus=bus,
        clock=Clock(), status=lambda: status, heard=heard, new_id=lambda: f"id-{next(numbers)}",
        limits=limits, ring=ring, **more,
    )  # fmt: skip
    server.open()
    running = asyncio.ensure_future(server.run())
    try:
        yield House(path, bus, calls, said, status, server, lens)
        if running.done():
            await running
    finally:
        running.cancel()
        await asyncio.wait([running], timeout=DEADLINE_S)
        server.close()  # a test may end before the service had its first turn
