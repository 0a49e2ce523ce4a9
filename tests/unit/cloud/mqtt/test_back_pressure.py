"""When answers pile up: new invocations stay with the broker, everything else goes on, and
nothing is lost or overtaken.
"""

import asyncio
import uuid
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from edge.cloud.mqtt import receiver as inward_module, wire
from edge.cloud.mqtt.connection import Inbound
from edge.cloud.mqtt.inflight import InflightMessages
from edge.cloud.mqtt.receiver import FULL_RETRY_S, HELD, HOLD_S, JOBS, InboxReceiver
from edge.cloud.mqtt.refusals import Refusals
from edge.cloud.mqtt.sender import OutboxSender, UplinkState
from edge.cloud.mqtt.wire import MessageKind
from edge.ports import CallAccepted, CallResult, InvokeCancelled, Invoked
from edge.runtime.clock import Clock
from edge.storage.inbox import Inbox
from edge.storage.migrations import MIGRATIONS
from edge.storage.outbox import Outbox
from edge.storage.size_bounds import Bounds
from edge.storage.sqlite import writer
from edge.storage.sqlite.database import DiskUnavailable, SqliteDatabase
from tests.e2e.broker import iotcore, mosquitto, until
from tests.unit.cloud.mqtt.support import DONE, TOPICS, a_call, cloud, edge

NOW = 1000.0
R1, R2, R3 = (str(uuid.UUID(int=n)) for n in (1, 2, 3))
"""Calls of ours."""


@dataclass
class World:
    """The receiver side on a real database, with packets and a clock that a test moves."""

    db: SqliteDatabase
    now: float = NOW
    acked: list[int] = field(default_factory=list)
    got: list = field(default_factory=list)
    packets: int = 0

    def __post_init__(self) -> None:
        clock = Clock(boot=lambda: self.now, wall=lambda: self.now, boot_id="b")
        self.outbox = Outbox(self.db, clock)
        self.inbox = Inbox(self.db, clock, answers=Bounds(1))
        inflight = self.inflight = InflightMessages(lambda: 0.5)
        refusals = Refusals(lambda _text: None)
        state = UplinkState(TOPICS, TOPICS.registry("tools"), "", clock, inflight, refusals)
        self.sender = OutboxSender(self.outbox, state)
        self.receiver = InboxReceiver(self.inbox, self.sender, state)

    async def fill(self) -> None:
        """One answer that nobody fetches: the bound."""
        await self.sender.store(
            MessageKind.RESULT, "earlier", topic=TOPICS.reply("me"), body={}, ttl_s=600.0
        )
        (self.queued,) = self.inflight.take_due(self.now)

    async def hear(self, *packets: Inbound) -> None:
        await self.receiver.take(packets)

    def packet(
        self,
        kind: str,
        call_id: str,
        body: dict,
        *,
        topic: str = TOPICS.invoke,
        reply: str | None = TOPICS.reply("me"),
    ) -> Inbound:
        number = self.packets = self.packets + 1
        payload, content_type = wire.encode(kind, body)
        return Inbound(
            topic=topic,
            payload=payload,
            qos=1,
            retain=False,
            content_type=content_type,
            correlation=wire.correlation_of(call_id),
            response_topic=reply,
            user_properties=(("k", str(kind)),),
            expiry_s=None,
            ack=lambda: self.acked.append(number),
        )

    def invoke(self, call) -> Inbound:
        return self.packet(MessageKind.CALL, call.call_id, wire.call_to_body(call))

    def result(self, call_id: str) -> Inbound:
        return self.packet(
            MessageKind.RESULT,
            call_id,
            wire.result_body(call_id, DONE),
            topic=TOPICS.result,
            reply=None,
        )

    async def consume(self) -> None:
        async for message in self.receiver.messages():
            self.got.append(message)
            await self.receiver.handled(message)

    def ids(self, kind: type) -> list[str]:
        return [
            m.call.call_id if isinstance(m, Invoked) else m.call_id
            for m in self.got
            if isinstance(m, kind)
        ]


@pytest.fixture
def broker(tmp_path):
    with mosquitto(tmp_path) as running:
        yield running


@pytest.fixture
async def world(tmp_path):
    db = await SqliteDatabase.open(tmp_path / "x.db", MIGRATIONS)
    one = World(db)
    tasks = [asyncio.create_task(one.receiver.run()), asyncio.create_task(one.consume())]
    yield one
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await db.close()


async def test_results_pass_a_held_invocation_and_packets_are_acknowledged_in_order(world):
    first, second = a_call(), a_call()
    await world.fill()
    await world.hear(world.result(R1), world.invoke(first), world.result(R2), world.invoke(second))
    await world.hear(world.result(R3))
    await until(lambda: world.ids(CallResult) == [R1, R2, R3])
    assert (world.acked, world.ids(Invoked)) == ([1], [])
    await world.sender.forget(world.queued)
    await until(
        lambda: len(world.ids(Invoked)) == 2, deadline_s=FULL_RETRY_S / 2
    )  # at once, not at the next look
    assert world.ids(Invoked) == [first.call_id, second.call_id]
    assert world.acked == [1, 2, 3, 4, 5]


async def test_a_later_invocation_and_a_cancellation_do_not_overtake_a_held_one(world):
    first, second = a_call(), a_call()
    await world.fill()
    await world.hear(world.invoke(first))
    await world.hear(
        world.packet(MessageKind.CANCEL, first.call_id, {"id": first.call_id, "reason": "no"})
    )
    await world.hear(world.invoke(second), world.result(R1))
    await until(lambda: world.ids(CallResult) == [R1])
    assert world.ids(InvokeCancelled) == []
    await world.sender.forget(world.queued)
    await until(lambda: len(world.got) == 4)
    assert world.got[1:] == [
        world.got[1],
        InvokeCancelled(first.call_id, "no"),
        world.got[3],
    ]
    assert world.ids(Invoked) == [first.call_id, second.call_id]


async def test_a_held_invocation_begins_with_what_is_left_of_its_life(world):
    call = a_call(ttl_s=8.0)
    await world.fill()
    await world.hear(world.invoke(call), world.result(R1))
    await until(lambda: world.ids(CallResult) == [R1])
    world.now += 5
    await world.sender.forget(world.queued)
    await until(lambda: world.ids(Invoked) == [call.call_id])
    assert [m.call.ttl_s for m in world.got if isinstance(m, Invoked)] == [3.0]


@pytest.mark.parametrize(("ttl_s", "waited"), [(60.0, HOLD_S), (3.0, 3.0)])
async def test_an_invocation_held_too_long_is_answered_and_lets_the_others_through(
    world, monkeypatch, ttl_s, waited
):
    monkeypatch.setattr(inward_module, "FULL_RETRY_S", 0.02)
    call = a_call(ttl_s=ttl_s)
    await world.fill()
    await world.hear(world.invoke(call), world.result(R1))
    await until(lambda: world.ids(CallResult) == [R1])
    assert world.acked == []
    world.now += waited
    await until(lambda: world.acked == [1, 2])
    ((aside, _),) = world.sender._asides
    response = wire.ToolResponse.from_json({k: v for k, v in aside.body.items() if k != "id"})
    assert (aside.topic, aside.id) == (TOPICS.reply("me"), call.call_id)
    assert (response.error.code, response.error.retryable, response.error.retry_after_ms) == (
        "RATE_LIMIT",
        True,
        20,
    )
    await world.sender.forget(world.queued)
    await world.hear(world.result(R2))
    await until(lambda: world.ids(CallResult) == [R1, R2])
    assert world.ids(Invoked) == []


async def test_a_new_connection_takes_a_repeated_message_once(world):
    call = a_call()
    await world.fill()
    await world.hear(world.invoke(call), world.result(R1))
    await until(lambda: world.ids(CallResult) == [R1])
    world.receiver.begin_link()
    await world.hear(world.invoke(call), world.result(R1))
    await world.hear(world.result(R2))
    await until(lambda: world.ids(CallResult) == [R1, R2])
    assert world.acked == []
    await world.sender.forget(world.queued)
    await until(lambda: world.acked == [3, 4, 5])
    await until(lambda: world.ids(Invoked) == [call.call_id])


async def test_no_more_is_read_while_a_bounded_number_is_held(world, monkeypatch):
    monkeypatch.setattr(inward_module, "FULL_RETRY_S", 0.01)
    await world.fill()
    offers, take = [], world.inbox.take

    async def counted(arrivals):
        offers.append(len(arrivals))
        return await take(arrivals)

    monkeypatch.setattr(world.inbox, "take", counted)
    await world.hear(*(world.invoke(a_call()) for _ in range(HELD + 1)))
    more = [asyncio.ensure_future(world.hear(world.invoke(a_call()))) for _ in range(JOBS + 3)]
    await until(lambda: len(offers) > 3 * len(more))
    assert {*offers} == {HELD + 1}
    assert not all(one.done() for one in more)
    await world.sender.forget(world.queued)
    await until(lambda: len(world.acked) == HELD + 1 + len(more))


@pytest.mark.parametrize(
    ("topic", "reply", "answered"),
    [
        (TOPICS.invoke, TOPICS.reply("me"), 1),
        (TOPICS.invoke, "other/topic", 0),
        (TOPICS.invoke, None, 0),
        (TOPICS.result, TOPICS.reply("me"), 0),
    ],
)
async def test_only_an_unreadable_call_is_answered_and_under_our_own_prefix(
    world, topic, reply, answered
):
    packet = world.packet(MessageKind.CALL, R1, {}, topic=topic, reply=reply)
    await world.hear(replace(packet, payload=b"\xff\x00garbage"))
    await until(lambda: world.acked == [1])
    assert [aside.topic for aside, _ in world.sender._asides] == [reply] * answered


@pytest.mark.enable_socket
@pytest.mark.mosquitto
async def test_invocations_that_wait_too_long_at_a_broker_are_answered(tmp_path, broker):
    calls = [a_call(ttl_s=60.0) for _ in range(40)]
    answered: set[str] = set()
    async with edge(tmp_path, port=broker.port) as near:
        near.inbox._answers = Bounds(4)
        near.start()
        await near.up()

        async def answer_all() -> None:
            for message in near.got(Invoked):
                if message.call.call_id not in answered:
                    answered.add(message.call.call_id)
                    await near.uplink.answer(message, DONE)

        async with cloud(broker.port, fetches=False) as far:
            for call in calls[:4]:
                await far.invoke(call)
            await near.wait_for(Invoked, 4)
            await answer_all()  # to nobody: these fill the bound
            for call in calls[4:]:
                await far.invoke(call)
            await until(lambda: near.uplink._receiver._full)
        assert len(near.got(Invoked)) == 4
        async with cloud(broker.port) as far, asyncio.timeout(20):
            while len({h.message.id for h in far.of("result")}) < 40:
                await answer_all()
                await asyncio.sleep(0.01)
        assert [m.call.call_id for m in near.got(Invoked)] == [c.call_id for c in calls]
        assert all(wire.response_of(h.message) == DONE for h in far.of("result"))


@pytest.mark.enable_socket
@pytest.mark.mosquitto
@pytest.mark.parametrize("start", [mosquitto, iotcore])
async def test_a_result_that_passes_a_held_invocation_costs_no_broker_the_connection(
    tmp_path, start
):
    """Some brokers hang up when an acknowledgement comes out of order."""
    with start(tmp_path) as broker:
        async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
            near.inbox._answers = Bounds(0)
            near.start()
            await near.up()
            ours, theirs = a_call(), [a_call() for _ in range(3)]
            await near.uplink.submit(ours)
            await far.wait_for("call")
            for call in theirs:
                await far.invoke(call)
            await far.answer(ours.call_id)
            await near.wait_for(CallResult)
            assert near.got(Invoked) == []
            near.inbox._answers = Bounds(10)
            near.uplink._sender.freed.set()
            invoked = await near.wait_for(Invoked, 3)
            assert [m.call.call_id for m in invoked] == [c.call_id for c in theirs]
            await far.invoke(last := a_call())
            assert (await near.wait_for(Invoked, 4))[3].call.call_id == last.call_id
            assert near.uplink._retained.connections == 1


@pytest.mark.enable_socket
async def test_status_tells_the_age_of_what_waits_longest(tmp_path):
    async with edge(tmp_path, port=1) as near:
        assert near.uplink.status().outbox_oldest_s == 0.0
        await near.uplink.submit(a_call())
        assert 0.0 < near.uplink.status().outbox_oldest_s < 5.0


async def accepted(world, call_id):
    """An own call, and what a worker says that takes it."""
    body = {"tool": "shop:buy", "args": {}}
    await world.sender.store(
        MessageKind.CALL, call_id, topic=TOPICS.call("tools"), body=body, ttl_s=600.0
    )
    return world.packet(
        MessageKind.ACCEPTED, call_id, {"id": call_id}, topic=TOPICS.result, reply=None
    )


async def on_disk(world):
    return [row.accepted for row in await world.outbox.load()]


async def test_an_acceptance_is_handed_on_at_once_and_acknowledged_on_disk(world, monkeypatch):
    monkeypatch.setattr(writer, "SOON_S", 600.0)
    await world.hear(await accepted(world, R1))
    await until(lambda: world.ids(CallAccepted) == [R1])
    assert (await on_disk(world), world.acked) == ([True], [])
    await world.hear(world.result(R2))  # its commit takes the acceptance along
    await until(lambda: world.acked == [1, 2])
    await until(lambda: world.ids(CallResult) == [R2])


async def test_an_acceptance_that_is_not_on_disk_is_stored_again_and_told_once(world, monkeypatch):
    accept, refused = world.inbox.accept, []

    async def full(call_id, *, stored, failed):
        refused.append(call_id)
        asyncio.get_running_loop().call_soon(failed, DiskUnavailable("the disk is full"))

    monkeypatch.setattr(world.inbox, "accept", full)
    await world.hear(await accepted(world, R1))
    await until(lambda: world.receiver._holding.is_set() and refused == [R1])
    assert (await on_disk(world), world.acked) == ([False], [])
    monkeypatch.setattr(world.inbox, "accept", accept)
    world.sender.freed.set()
    await until(lambda: world.acked == [1], deadline_s=FULL_RETRY_S / 2)
    assert (await on_disk(world), world.ids(CallAccepted)) == ([True], [R1])
