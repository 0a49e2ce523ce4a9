"""A small world for tests of the uplink: the real service, a real database, and a cloud that
does what a test says.
"""

import asyncio
import uuid
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.client import MqttUplink, UplinkOptions
from edge.cloud.mqtt.connection import BrokerOptions, ConnectionOver, Inbound, MqttConnection
from edge.cloud.mqtt.topics import Topics
from edge.cloud.mqtt.wire import MessageKind, WireMessage
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import DaemonEvent
from edge.storage.inbox import Inbox
from edge.storage.migrations import MIGRATIONS
from edge.storage.outbox import Outbox
from edge.storage.sqlite.database import SqliteDatabase
from tests.e2e.broker import HOST, until
from tools_cache.api.tool import CallOrigin, ToolCall, ToolResponse

EDGE = "edge-1"
TOPICS = Topics("default", EDGE)
DONE = ToolResponse(data={"text": "bread"}, meta={"tool": "list"})


def a_call(**changes) -> ToolCall:
    basis = ToolCall(
        call_id=str(uuid.uuid4()), tool="app:list", args={"n": 1}, origin=CallOrigin.CLI, ttl_s=30.0
    )
    return replace(basis, **changes)


@dataclass
class Heard:
    """One packet the cloud received, and what it said."""

    packet: Inbound
    message: WireMessage

    @property
    def kind(self) -> str:
        return self.message.kind.value


@dataclass
class Cloud:
    """A worker's connection: it stores all it receives and answers only on request."""

    link: MqttConnection
    heard: list[Heard] = field(default_factory=list)

    async def listen(self) -> None:
        with suppress(ConnectionOver):
            while True:
                packet = await self.link.receive()
                packet.ack()
                message = wire.decode(
                    packet.payload,
                    content_type=packet.content_type,
                    user_properties=packet.user_properties,
                    correlation=packet.correlation,
                )
                self.heard.append(Heard(packet, message))

    def of(self, kind: str) -> list[Heard]:
        return [h for h in self.heard if h.kind == kind]

    async def wait_for(self, kind: str, count: int = 1, *, deadline_s: float = 40.0) -> list[Heard]:
        await until(
            lambda: len(self.of(kind)) >= count, deadline_s=deadline_s, what=f"{count} × {kind}"
        )
        return self.of(kind)

    async def say(
        self, kind: str, body: dict, *, topic: str = TOPICS.result, as_json: bool = False, **more
    ) -> int:
        payload, content_type = wire.encode(kind, body, json=as_json)
        more.setdefault("content_type", content_type)
        more.setdefault("user_properties", (("k", str(kind)),))
        return await self.link.publish(topic, payload, **more)

    async def accept(self, call_id: str) -> None:
        await self.say(MessageKind.ACCEPTED, {"id": call_id})

    async def answer(self, call_id: str, response: ToolResponse = DONE) -> None:
        await self.say(MessageKind.RESULT, wire.result_body(call_id, response))

    async def invoke(self, call: ToolCall, *, reply: str = TOPICS.reply("me"), **more) -> None:
        more.setdefault("correlation", wire.correlation_of(call.call_id))
        await self.say(
            MessageKind.CALL,
            wire.call_to_body(call),
            topic=TOPICS.invoke,
            response_topic=reply,
            **more,
        )


@asynccontextmanager
async def cloud(port: int, *, workers: bool = True, fetches: bool = True):
    """Connect as a worker without a session, listening to everything an edge says; its answers
    only when it `fetches`.
    """
    everybody = Topics.for_cloud("default")
    async with MqttConnection(
        BrokerOptions(
            host=HOST,
            port=port,
            client_id=f"cloud-{uuid.uuid4().hex[:6]}",
            clean_start=True,
            session_expiry_s=0,
        )
    ) as link:
        filters = [
            everybody.presence,
            everybody.capabilities,
            everybody.cancel,
            everybody.delivery,
            everybody.event("+"),
        ]
        filters += [everybody.reply("+")] if fetches else []
        await link.subscribe(*filters, *([everybody.shared_call("tools")] if workers else []))
        seen = Cloud(link)
        listening = asyncio.create_task(seen.listen())
        try:
            yield seen
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


class Edge:
    """The uplink under test on its own database; `start` and `stop` it like a process."""

    def __init__(self, folder, **options) -> None:
        self.folder = folder
        self.options = UplinkOptions(
            **{
                "edge_id": EDGE,
                "host": HOST,
                "reconnect_min_s": 0.02,
                "reconnect_max_s": 0.2,
                "stable_s": 1.0,
                "resend_s": 0.1,
                "will_delay_s": 0,
                "keepalive_s": 2,
                "ack_timeout_s": 1.5,
                "version": "0.1.0",
                **options,
            }
        )
        self.clock = Clock.system()
        self.bus = Bus()
        self.happened: list[DaemonEvent] = []
        self.messages: list = []
        self.handling = True

    async def open(self) -> "Edge":
        self.db = await SqliteDatabase.open(self.folder / "edge.db", MIGRATIONS)
        self.inbox = Inbox(self.db, self.clock)
        self.outbox = Outbox(self.db, self.clock)
        try:
            self.uplink = MqttUplink(
                self.options, outbox=self.outbox, inbox=self.inbox, bus=self.bus, clock=self.clock
            )
        except ValueError:
            await self.db.close()
            raise
        self.messages = []
        self._tasks: list[asyncio.Task] = []
        return self

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(job()) for job in (self.uplink.run, self._watch, self._consume)
        ]

    async def _watch(self) -> None:
        with self.bus.listen() as listener:
            async for one_event in listener:
                self.happened.append(one_event)

    async def _consume(self) -> None:
        async for message in self.uplink.messages():
            self.messages.append(message)
            if self.handling:
                await self.uplink.handled(message)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        done = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        for result in done:
            if isinstance(result, Exception):
                raise result

    async def close(self) -> None:
        await self.stop()
        await self.db.close()

    async def up(self, *, deadline_s: float = 40.0) -> None:
        await until(lambda: self.uplink.status().up, deadline_s=deadline_s, what="uplink up")

    async def down(self, *, deadline_s: float = 40.0) -> None:
        """Wait until the link of this moment is gone; the next one may be up before anybody
        looks.
        """
        connections = self.uplink._retained.connections
        await until(
            lambda: not self.uplink.status().up or self.uplink._retained.connections != connections,
            deadline_s=deadline_s,
            what="uplink down",
        )

    def got(self, kind: type) -> list:
        return [m for m in self.messages if isinstance(m, kind)]

    async def wait_for(self, kind: type, count: int = 1, *, deadline_s: float = 40.0) -> list:
        await until(
            lambda: len(self.got(kind)) >= count,
            deadline_s=deadline_s,
            what=f"{count} × {kind.__name__}",
        )
        return self.got(kind)


@asynccontextmanager
async def edge(folder, **options):
    one = await Edge(folder, **options).open()
    try:
        yield one
    finally:
        await one.close()
