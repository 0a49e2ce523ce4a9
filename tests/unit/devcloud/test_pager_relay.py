"""The relay of pagers: first come has a pager, messages are kept until an edge took them."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.wire import MessageKind
from edge.devcloud import pager_relay
from edge.devcloud.agent import Invoked
from edge.devcloud.database import open_shared
from edge.devcloud.pager_relay import (
    PACKAGE,
    WAIT_S,
    PagerDelivery,
    PagerRelay,
    pager_app,
)
from edge.devcloud.worker.executor import Executor
from edge.devcloud.worker.job import Job
from edge.devcloud.worker.journal import Journal
from tests.unit.devcloud.parts import a_call, a_runner
from tests.unit.devcloud.test_executor import FakeLink, Worker, kinds, response_of
from tools_cache.api.tool import ErrorCode, ToolResponse
from tools_cache.registry import manifest

NOW = 1_800_000_000.0
DONE = ToolResponse(data={"id": "MSG-AAAA0000", "conflicted": False})


def message(number=0, **changes):
    return {
        "id": f"MSG-AAAA{number:04}",
        "from": "PAGER-AAAA",
        "to": "PAGER-BBBB",
        "text": "hello",
        "original": "",
        "life_s": 3600,
        "key": "kept as it is",
        **changes,
    }


class Edges:
    """The edges as an agent reaches them: they answer what they are told to, in turn."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = asyncio.Queue()

    async def invoke(self, edge_id, tool, args, *, ttl_s, user_id):
        self.asked.put_nowait((edge_id, tool, args, user_id))
        answer = self.answers.pop(0) if self.answers else DONE
        return Invoked(answer.error is None, (), answer)

    async def next(self):
        async with asyncio.timeout(20):
            return await self.asked.get()


class Cloud:
    def __init__(self, db):
        self.db, self.wall = db, NOW
        self.relay = PagerRelay(db, wall=lambda: self.wall)

    async def ask(self, tool, edge="edge-a", *, user="local", ttl_s=WAIT_S, **args):
        asked = replace(a_call(f"{PACKAGE}:{tool}", ttl_s=ttl_s, **args), user_id=user)
        return await self.relay.tools()[asked.tool](Job(edge, asked, "", False, 0.0))

    async def send(self, number=0, edge="edge-a", *, ttl_s=WAIT_S, **changes):
        args = {"message": message(number, **changes), "signature": "s"}
        return await self.ask("relay", edge, ttl_s=ttl_s, **args)

    def delivery(self, edges):
        return PagerDelivery(
            self.relay, edges.invoke, look_s=0.02, first_pause_s=0.01, wall=lambda: self.wall
        )

    async def rows(self, sql):
        return [tuple(row) for row in await self.db.read(lambda db: db.execute(sql).fetchall())]

    async def settled(self, *states):
        """Wait until the messages have these states, in order."""
        async with asyncio.timeout(20):
            while (now := await self.rows("SELECT state FROM pages ORDER BY number")) != [
                (state,) for state in states
            ]:
                await asyncio.sleep(0.01)
        return now


@asynccontextmanager
async def a_cloud(tmp_path):
    db = await open_shared(tmp_path / "devcloud.db")
    try:
        yield Cloud(db)
    finally:
        await db.close()


@asynccontextmanager
async def running(delivery):
    task = asyncio.ensure_future(delivery.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.fixture
async def cloud(tmp_path):
    async with a_cloud(tmp_path) as found:
        assert (await found.ask("register", "edge-b", pager="PAGER-BBBB")).ok
        yield found


async def test_the_first_edge_that_registers_a_pager_has_it(cloud):
    for _ in range(2):
        assert (await cloud.ask("register", "edge-b", pager="PAGER-BBBB")).ok
    for edge, user in (("edge-a", "local"), ("edge-b", "other")):
        answer = await cloud.ask("register", edge, user=user, pager="PAGER-BBBB")
        assert answer.error.code is ErrorCode.CONFLICT
    stolen = await cloud.send(**{"from": "PAGER-BBBB"})
    assert stolen.error.code is ErrorCode.CONFLICT
    assert await cloud.rows("SELECT pager, edge FROM pagers") == [("PAGER-BBBB", "edge-b")]


async def test_an_edge_has_no_more_pagers_than_it_may(cloud, monkeypatch):
    monkeypatch.setattr(pager_relay, "MAX_OF_EDGE", 1)
    answer = await cloud.ask("register", "edge-b", pager="PAGER-CCCC")
    assert answer.error.code is ErrorCode.RATE_LIMIT
    monkeypatch.setattr(pager_relay, "MAX_PAGERS", 1)
    answer = await cloud.ask("register", "edge-c", pager="PAGER-CCCC")
    assert answer.error.code is ErrorCode.RATE_LIMIT


async def test_a_message_is_delivered_as_it_came_with_its_age_and_forgotten(cloud):
    edges = Edges()
    assert (await cloud.send(ttl_s=WAIT_S - 100)).data["status"] == "taken"
    async with running(cloud.delivery(edges)):
        edge, tool, args, user = await edges.next()
        await cloud.settled("delivered")
    assert (edge, tool, user) == ("edge-b", "pager:deliver", "local")
    assert args == {"message": message(), "signature": "s", "age_s": 100.0}
    assert await cloud.rows("SELECT body FROM pages") == [("",)]


async def test_a_message_that_comes_again_is_delivered_once(cloud):
    edges = Edges()
    async with running(cloud.delivery(edges)):
        for _ in range(3):
            assert (await cloud.send()).ok
        await cloud.settled("delivered")
        assert (await cloud.send()).ok
        await cloud.send(1)
        await edges.next()
        assert (await edges.next())[2]["message"]["id"] == "MSG-AAAA0001"


async def test_messages_arrive_in_order_and_one_that_an_edge_does_not_take_comes_again(cloud):
    away = ToolResponse.failure(ErrorCode.NOT_ACCEPTED, "away")
    later = ToolResponse.failure(ErrorCode.RATE_LIMIT, "full")
    edges = Edges(away, later)
    for number in range(2):
        await cloud.send(number)
    async with running(cloud.delivery(edges)):
        asked = [(await edges.next())[2]["message"]["id"][-1] for _ in range(4)]
        await cloud.settled("delivered", "delivered")
    assert asked == ["0", "0", "0", "1"]


@pytest.mark.parametrize("code", [ErrorCode.DENIED, ErrorCode.INVALID_ARGUMENTS])
async def test_what_an_edge_refuses_is_not_sent_again_and_its_sender_is_told(cloud, code):
    edges = Edges(ToolResponse.failure(code, "no"))
    for number in range(2):
        await cloud.send(number)
    async with running(cloud.delivery(edges)):
        asked = [await edges.next() for _ in range(3)]
        await cloud.settled("delivered", "delivered")
        assert (await cloud.send()).ok  # it is still known
    to_ben = [args["message"]["id"] for edge, _, args, _ in asked if edge == "edge-b"]
    assert to_ben == ["MSG-AAAA0000", "MSG-AAAA0001"]
    (told,) = [args for edge, _, args, _ in asked if edge == "edge-a"]
    report = {"id": "MSG-AAAA0000", "to": "PAGER-BBBB", "reason": "refused"}
    assert told == {"undelivered": report, "age_s": 0.0}
    assert edges.asked.empty()


async def test_a_report_that_an_edge_refuses_is_reported_to_nobody(cloud):
    no = ToolResponse.failure(ErrorCode.DENIED, "no")
    edges = Edges(no, no)
    await cloud.send()
    async with running(cloud.delivery(edges)):
        await cloud.settled("refused")
    assert [(await edges.next())[0] for _ in range(2)] == ["edge-b", "edge-a"]
    assert edges.asked.empty()


async def test_a_report_comes_again_until_the_sender_takes_it_also_after_a_restart(tmp_path):
    away = ToolResponse.failure(ErrorCode.NOT_ACCEPTED, "away")
    async with a_cloud(tmp_path) as first:
        await first.ask("register", "edge-b", pager="PAGER-BBBB")
        await first.send()
        edges = Edges(ToolResponse.failure(ErrorCode.DENIED, "no"), away)
        async with running(first.delivery(edges)):
            assert [(await edges.next())[0] for _ in range(2)] == ["edge-b", "edge-a"]
    edges = Edges(away)
    async with a_cloud(tmp_path) as second, running(second.delivery(edges)):
        again = [await edges.next() for _ in range(2)]
        await second.settled("delivered")
    assert [edge for edge, *_ in again] == ["edge-a", "edge-a"]
    assert again[1][2]["undelivered"]["reason"] == "refused"


async def test_an_edge_that_is_away_does_not_hold_up_another(cloud):
    await cloud.ask("register", "edge-c", pager="PAGER-CCCC")
    await cloud.send(0)
    await cloud.send(1, to="PAGER-CCCC")
    gone = asyncio.Event()
    heard = []

    class OneAway(Edges):
        async def invoke(self, edge_id, tool, args, **more):
            heard.append(edge_id)
            if edge_id == "edge-b":
                await gone.wait()
            return await super().invoke(edge_id, tool, args, **more)

    async with running(cloud.delivery(OneAway())):
        await cloud.settled("waits", "delivered")
        gone.set()
        await cloud.settled("delivered", "delivered")
    assert sorted(heard) == ["edge-b", "edge-c"]


@pytest.mark.requirement("I15-pager-relay")
async def test_after_a_restart_what_was_not_delivered_is(tmp_path):
    async with a_cloud(tmp_path) as first:
        await first.ask("register", "edge-b", pager="PAGER-BBBB")
        await first.send()
    edges = Edges()
    async with a_cloud(tmp_path) as second, running(second.delivery(edges)):
        assert (await edges.next())[0] == "edge-b"
        await second.settled("delivered")


async def test_a_delivered_message_is_forgotten_with_its_id_when_its_time_is_over(cloud):
    edges = Edges()
    await cloud.send()
    async with running(cloud.delivery(edges)):
        await cloud.settled("delivered")
        cloud.wall = NOW + 3601
        await cloud.settled()
    assert edges.asked.qsize() == 1


async def test_the_sender_is_told_of_a_message_whose_time_is_over_before_it_was_taken(cloud):
    edges = Edges()
    await cloud.send()
    cloud.wall = NOW + 3601
    async with running(cloud.delivery(edges)):
        edge, _, args, _ = await edges.next()
        await cloud.settled("delivered")
        report = {"id": "MSG-AAAA0000", "to": "PAGER-BBBB", "reason": "expired"}
        assert (edge, args["undelivered"]) == ("edge-a", report)
        cloud.wall += WAIT_S + 1
        await cloud.settled()
    assert edges.asked.empty()


async def test_a_report_that_nobody_takes_is_forgotten_when_its_time_is_over(cloud):
    delivery = cloud.delivery(Edges())
    await cloud.send()
    cloud.wall = NOW + 3601
    assert await delivery._edges() == ["edge-a"]
    cloud.wall += WAIT_S + 1
    assert await delivery._edges() == []
    assert await cloud.rows("SELECT * FROM pages") == []


async def test_a_message_whose_time_is_over_when_it_comes_is_refused(cloud):
    late = await cloud.send(ttl_s=WAIT_S - 3600)
    assert (late.error.code, "is over" in late.error.message) == (
        ErrorCode.DEADLINE_EXPIRED,
        True,
    )
    assert await cloud.rows("SELECT * FROM pages") == []
    assert (await cloud.send(ttl_s=WAIT_S - 3599)).ok


async def test_no_more_messages_wait_for_a_pager_than_the_limit(cloud, monkeypatch):
    monkeypatch.setattr(pager_relay, "MAX_WAITING", 2)
    for number in range(2):
        assert (await cloud.send(number)).ok
    answer = await cloud.send(2)
    assert (answer.error.code, answer.error.retryable) == (ErrorCode.RATE_LIMIT, True)
    assert (await cloud.send(1)).ok
    async with running(cloud.delivery(Edges())):
        await cloud.settled("delivered", "delivered")
    assert (await cloud.send(2)).ok


async def test_a_message_for_a_pager_that_nobody_has_is_refused(cloud):
    answer = await cloud.send(to="PAGER-ZZZZ")
    assert answer.error.code is ErrorCode.INVALID_ARGUMENTS
    assert "/message/to" in answer.error.message


async def test_the_worker_runs_the_relay_itself_and_knows_the_edge_by_the_topic(tmp_path):
    async with a_cloud(tmp_path) as cloud, a_runner(tmp_path, apps=(pager_app(),)) as (runner, app):
        journal = Journal(cloud.db)
        executor = Executor(
            journal, runner, tenant="default", pool="tools", own_tools=cloud.relay.tools()
        )
        link = FakeLink()
        running_executor = asyncio.ensure_future(executor.run(link))
        await executor._began.wait()
        worker = Worker(executor, link, journal, app, None)
        asked = a_call(f"{PACKAGE}:register", pager="PAGER-AAAA")
        body, written = wire.encode(MessageKind.CALL, wire.call_to_body(asked))
        await worker.call(asked.tool, edge="e1", body=body, content_type=written)
        said = await link.next(2)
        assert kinds(said) == [MessageKind.ACCEPTED, MessageKind.RESULT]
        assert response_of(said[1]).data == {"pager": "PAGER-AAAA", "status": "registered"}
        assert await cloud.rows("SELECT pager, edge FROM pagers") == [("PAGER-AAAA", "e1")]
        other = "01890000-0000-7000-8000-000000000002"
        await worker.call(f"{PACKAGE}:register", pager="pager-a", call_id=other)
        assert response_of((await link.next(2))[1]).error.code is ErrorCode.INVALID_ARGUMENTS
        running_executor.cancel()
        await asyncio.wait({running_executor})
    assert app.requests == []


def test_its_tools_wait_for_the_network_repeat_and_are_offered_to_nobody():
    for tool in pager_app().tools:
        found = manifest.definition(PACKAGE, dict(tool), source="cloud")
        assert (found.queueable, found.queue_ttl_s, found.idempotent) == (True, WAIT_S, True)
        assert found.for_programs
