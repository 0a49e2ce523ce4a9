"""Clients that cost little: HTTP over a unix socket, and the cloud's side of MQTT."""

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import aiomqtt
import msgpack

from benchmarks import floor

ANSWER_S = 60.0
REPLIES = "reply/bench"


class HttpClient:
    """One connection over a unix socket, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, path: Path) -> Self:
        return cls(*await asyncio.open_unix_connection(str(path), limit=1 << 24))

    async def ask(
        self, method: str, target: str, body: bytes = b"", *, tag: str = ""
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers (in lower case) and body. `tag`: for If-None-Match."""
        known = f"If-None-Match: {tag}\r\n" if tag else ""
        self._writer.write(
            f"{method} {target} HTTP/1.1\r\nHost: bench\r\n{known}"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        async with asyncio.timeout(ANSWER_S):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = (line.partition(":") for line in head[1:] if line)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            length = int(headers.get("content-length", "0"))
            return int(head[0].split()[1]), headers, await self._reader.readexactly(length)

    async def call(self, tool: str, args: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Call a tool of the daemon; return its response."""
        body = json.dumps({"tool": tool, "args": args, "wait": "answer", **more}).encode()
        _, _, answer = await self.ask("POST", "/v1/call", body)
        return dict(json.loads(answer))

    def close(self) -> None:
        self._writer.close()


class Cloud:
    """Invokes tools of the edge, asks the floor, and sees what the edge publishes."""

    def __init__(self, broker: aiomqtt.Client) -> None:
        self._broker = broker
        self._waiting: dict[tuple[str, bytes], asyncio.Future[float]] = {}
        self.online = asyncio.Event()
        self.failed = ""
        """The last result that was an error."""

    def seen(self, what: str, correlation: bytes = b"") -> "asyncio.Future[float]":
        """Return the moment at which the next message of this kind is here."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[what, correlation] = future
        return future

    async def invoke(self, tool: str, args: dict[str, Any]) -> dict[str, float]:
        """Return ms until `accepted` and until `result`."""
        call = uuid.uuid4()
        body = {"v": 1, "k": "call", "call_id": str(call), "tool": tool, "args": args, "ttl_s": 40}
        accepted, result = self.seen("accepted", call.bytes), self.seen("result", call.bytes)
        to = f"{floor.EDGE}/{REPLIES}"
        sent = floor.properties("call", call.bytes, answers_to=to)
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                self._broker.publish(
                    f"{floor.EDGE}/invoke", msgpack.packb(body), qos=1, properties=sent
                )
            )
            async with asyncio.timeout(ANSWER_S):
                ended = await result
        assert accepted.done(), "a result came before `accepted`"
        assert not self.failed, self.failed
        return {"accepted": (accepted.result() - began) * 1e3, "": (ended - began) * 1e3}

    async def echo(self, commits: int) -> dict[str, float]:
        """Return ms until a message of the usual size came back after so many commits."""
        call = uuid.uuid4()
        body = msgpack.packb({"v": 1, "k": "result", "id": str(call), "data": floor.ANSWER})
        back = self.seen("result", call.bytes)
        sent = floor.properties("call", call.bytes, answers_to=f"{floor.EDGE}/{REPLIES}")
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                self._broker.publish(f"floor/{commits}/ask", body, qos=1, properties=sent)
            )
            async with asyncio.timeout(ANSWER_S):
                ended = await back
        return {"": (ended - began) * 1e3}

    async def listen(self) -> None:
        """Take what comes, until it is cancelled."""
        for topic in (f"{floor.EDGE}/{REPLIES}", f"{floor.EDGE}/call/tools", floor.HEARD):
            await self._broker.subscribe(topic, qos=1)
        await self._broker.subscribe(f"{floor.EDGE}/presence", qos=1)
        async for message in self._broker.messages:
            self._take(message.topic.value, message)

    def _take(self, topic: str, message: aiomqtt.Message) -> None:
        now = time.perf_counter()
        if topic.endswith("/presence"):
            if b"online" in bytes(message.payload):
                self.online.set()
            return
        kind, correlation = "heard", b""
        if topic != floor.HEARD:
            assert message.properties is not None
            kind = dict(message.properties.UserProperty)["k"]
            correlation = message.properties.CorrelationData
        if kind == "result":
            body = msgpack.unpackb(message.payload)
            if not body.get("ok", True):
                self.failed = str(body)
        waiting = self._waiting.pop((kind, correlation), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(now)


@asynccontextmanager
async def cloud(port: int) -> AsyncIterator[Cloud]:
    """Connect the cloud's side to the broker until the block ends."""
    async with floor.client("bench-cloud", port) as broker:
        side = Cloud(broker)
        listening = asyncio.ensure_future(side.listen())
        try:
            yield side
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening
