"""The worker with a fake link below it: what it says, in which order, and what it never does
twice.
"""

import asyncio
import contextlib

import httpx
import pytest

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import Inbound
from edge.cloud.mqtt.topics import Topics
from edge.cloud.mqtt.wire import MessageKind, WireMessage
from edge.devcloud.link import NotConnected
from edge.devcloud.worker.executor import PROGRESS_FREELY, Executor, _cancelled, _Work
from edge.devcloud.worker.job import Job
from edge.devcloud.worker.journal import Journal
from tests.unit.devcloud.parts import FakeApp, a_call, a_runner
from tests.unit.devcloud.test_runner import stream
from tools_cache.api.tool import ErrorCode, ToolResponse

EDGE = Topics("default", "e1")
ID = a_call().call_id


class FakeLink:
    """The link as the executor sees it; what was said is kept and can be waited for."""

    def __init__(self):
        self.said = asyncio.Queue()
        self.down = False

    async def publish(self, topic, kind, body, *, json=False, correlation=None, expiry_s=None, **_):
        if self.down:
            raise NotConnected("down")
        wire.encode(kind, body, json=json)
        assert correlation == wire.correlation_of(body["id"])
        self.said.put_nowait((topic, kind, body, json))

    async def next(self, count=1):
        async with asyncio.timeout(40):
            return [await self.said.get() for _ in range(count)]


class Worker:
    def __init__(self, executor, link, journal, app, tasks):
        self.executor, self.link, self.journal, self.app, self.acks, self.tasks = (
            executor,
            link,
            journal,
            app,
            [],
            tasks,
        )
        self.expiry_s = None
        self.on_call, self.on_cancel = (route.handler for route in executor.routes())

    async def call(
        self,
        tool="com.x.app:read",
        *,
        edge="e1",
        reply=None,
        json=False,
        body=None,
        content_type=None,
        **more,
    ):
        call = a_call(tool, **{"n": 1, **more})
        payload, written = wire.encode(MessageKind.CALL, wire.call_to_body(call), json=json)
        await self.on_call(
            self.inbound(
                f"glassd/v1/default/e/{edge}/call/tools",
                body or payload,
                content_type or written,
                call.call_id,
                reply or f"glassd/v1/default/e/{edge}/result",
            )
        )

    async def cancel(self, call_id=ID, edge="e1"):
        payload, written = wire.encode(
            MessageKind.CANCEL, {"id": call_id, "reason": "wearer\nleft"}
        )
        await self.on_cancel(
            self.inbound(f"glassd/v1/default/e/{edge}/cancel", payload, written, call_id, None)
        )

    def inbound(self, topic, payload, content_type, call_id, reply):
        return Inbound(
            topic=topic,
            payload=payload,
            qos=1,
            retain=False,
            content_type=content_type,
            user_properties=(),
            correlation=wire.correlation_of(call_id),
            response_topic=reply,
            expiry_s=self.expiry_s,
            ack=lambda: self.acks.append(self.link.said.qsize()),
        )


@contextlib.asynccontextmanager
async def a_worker(tmp_path, reply=None, **limits):
    async with a_runner(tmp_path, FakeApp(reply)) as (runner, app):
        journal = await Journal.open(tmp_path / "j.db")
        link = FakeLink()
        executor = Executor(journal, runner, tenant="default", pool="tools", **limits)
        try:
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(executor.run(link))
                await asyncio.sleep(0)
                yield Worker(executor, link, journal, app, tasks)
                running.cancel()
        finally:
            await journal.close()


def kinds(said):
    return [kind for _, kind, _, _ in said]


def response_of(said):
    _, kind, body, json = said
    return wire.response_of(WireMessage(kind, body["id"], body, json))


async def test_a_call_is_accepted_then_answered_once_on_its_response_topic(tmp_path):
    async with a_worker(tmp_path) as w:
        await w.call(reply=EDGE.reply("mine"))
        said = await w.link.next(2)
        assert kinds(said) == [MessageKind.ACCEPTED, MessageKind.RESULT]
        assert {topic for topic, *_ in said} == {EDGE.reply("mine")}
        assert response_of(said[1]).data == "done"
        assert w.link.said.empty()


async def test_a_call_is_stored_then_acknowledged_then_answered(tmp_path):
    async with a_worker(tmp_path) as w:
        seen = []
        w.acks = type(
            "Acks", (), {"append": lambda self, n: seen.append((n, w.executor.running))}
        )()
        stored = []
        take = w.journal.take

        async def noting(job, **more):
            taken = await take(job, **more)
            stored.append(list(seen))
            return taken

        w.journal.take = noting
        await w.call()
        assert stored == [[]], "acknowledged before it was on disk"
        assert seen == [(0, 0)]
        await w.link.next(2)


async def test_json_is_answered_in_json(tmp_path):
    async with a_worker(tmp_path) as w:
        await w.call(json=True)
        assert [json for *_, json in await w.link.next(2)] == [True, True]


@pytest.mark.requirement("K4-ack-after-store")
async def test_a_duplicate_of_a_finished_call_gets_the_stored_answer(tmp_path):
    async with a_worker(tmp_path) as w:
        await w.call("com.x.app:write")
        first = (await w.link.next(2))[1]
        await w.call("com.x.app:write")
        (again,) = await w.link.next()
        assert again == first
        assert len(w.app.requests) == 1


async def test_a_duplicate_of_a_running_call_is_accepted_again_and_runs_nothing(tmp_path):
    go_on = asyncio.Event()

    async def reply(_):
        await go_on.wait()
        return httpx.Response(200, json={"data": 1})

    async with a_worker(tmp_path, reply) as w:
        await w.call("com.x.app:write")
        await w.link.next()
        await w.call("com.x.app:write")
        assert kinds(await w.link.next()) == [MessageKind.ACCEPTED]
        go_on.set()
        assert kinds(await w.link.next()) == [MessageKind.RESULT]
        assert (w.link.said.empty(), len(w.app.requests)) == (True, 1)


async def test_the_same_id_from_another_edge_is_not_shown_this_ones_answer(tmp_path):
    async with a_worker(tmp_path) as w:
        await w.call()
        await w.link.next(2)
        await w.call(edge="e2")
        assert kinds(said := await w.link.next(2)) == [MessageKind.ACCEPTED, MessageKind.RESULT]
        assert {topic for topic, *_ in said} == {"glassd/v1/default/e/e2/result"}
        assert len(w.app.requests) == 2


@pytest.mark.parametrize(
    "reply",
    [
        "glassd/v1/default/e/e2/result",
        "glassd/v1/default/e/e1/presence",
        "glassd/v1/default/e/e1/",
        "elsewhere",
        "glassd/v1/default/e/e1/../e2/+",
    ],
)
@pytest.mark.requirement("K4-prefix")
async def test_a_response_topic_outside_the_edges_own_is_refused_and_nothing_runs(tmp_path, reply):
    async with a_worker(tmp_path) as w:
        await w.call(reply=reply)
        (said,) = await w.link.next()
        assert said[0] == EDGE.result
        assert (response_of(said).error.code, response_of(said).error.details["field"]) == (
            ErrorCode.INVALID_REQUEST,
            "response topic",
        )
        assert (w.app.requests, len(w.acks)) == ([], 1)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"body": b"\xc1"}, "malformed"),
        ({"content_type": "text/plain"}, "unsupported_content"),
        ({"body": b'{"v":2}', "content_type": wire.JSON}, "unsupported_version"),
        ({"body": b"x" * (wire.MAX_BODY + 1)}, "too_large"),
    ],
)
async def test_a_call_that_cannot_be_read_is_answered_by_its_correlation(tmp_path, more, reason):
    async with a_worker(tmp_path) as w:
        await w.call(**more)
        (said,) = await w.link.next()
        error = response_of(said).error
        assert (said[0], said[2]["id"], error.code, error.details["reason"]) == (
            EDGE.result,
            ID,
            "INVALID_REQUEST",
            reason,
        )
        assert len(w.acks) == 1


async def test_progress_stands_between_accepted_and_result(tmp_path):
    async with a_worker(
        tmp_path, stream({"progress": "a"}, {"progress": "b"}, {"result": {"data": 1}})
    ) as w:
        await w.call()
        said = await w.link.next(4)
        assert kinds(said) == [
            MessageKind.ACCEPTED,
            MessageKind.PROGRESS,
            MessageKind.PROGRESS,
            MessageKind.RESULT,
        ]
        assert [body["text"] for _, kind, body, _ in said if kind is MessageKind.PROGRESS] == [
            "a",
            "b",
        ]


async def test_a_chatty_tool_is_thinned_out(tmp_path):
    async with a_worker(
        tmp_path,
        stream(*[{"progress": str(i)} for i in range(500)], {"result": {"data": 1}}, cut=4096),
    ) as w:
        await w.call()
        said = []
        while not said or said[-1][1] is not MessageKind.RESULT:
            said += await w.link.next()
        assert PROGRESS_FREELY <= len(said) - 2 < 2 * PROGRESS_FREELY


async def test_a_cancelled_call_is_broken_off_and_says_so(tmp_path):
    asked, broken_off = asyncio.Event(), asyncio.Event()

    async def reply(_):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            broken_off.set()

    async with a_worker(tmp_path, reply) as w:
        await w.call("com.x.app:write")
        async with asyncio.timeout(40):
            await asked.wait()
        await w.cancel()
        error = response_of((await w.link.next(2))[1]).error
        assert broken_off.is_set()
        assert (error.code, error.message, error.partial_side_effects) == (
            "CANCELLED",
            "Cancelled: wearer left",
            True,
        )
        await w.call("com.x.app:write")
        assert response_of((await w.link.next())[0]).error.code is ErrorCode.CANCELLED


async def test_a_cancel_that_overtakes_its_call_is_remembered(tmp_path):
    async with a_worker(tmp_path) as w:
        await w.cancel()
        await w.call("com.x.app:write")
        error = response_of((await w.link.next(2))[1]).error
        assert (error.code, error.partial_side_effects) == (ErrorCode.CANCELLED, False)
        assert w.app.requests == []


async def test_one_edge_cannot_cancel_anothers_call(tmp_path):
    async with a_worker(tmp_path) as w:
        await w.cancel(edge="e2")
        await w.call()
        assert response_of((await w.link.next(2))[1]).ok


async def idle(worker):
    async with asyncio.timeout(40):
        while worker.executor.running:
            await asyncio.sleep(0)


async def test_without_a_free_slot_a_call_is_refused_and_not_stored(
    tmp_path,
):
    go_on = asyncio.Event()

    async def reply(_):
        await go_on.wait()
        return httpx.Response(200, json={"data": 1})

    async with a_worker(tmp_path, reply, max_running=1) as w:
        await w.call()
        await w.link.next()
        other = "01890000-0000-7000-8000-000000000002"
        await w.call(call_id=other)
        error = response_of((await w.link.next())[0]).error
        assert (error.code, error.retryable, error.retry_after_ms) == ("RATE_LIMIT", True, 1000)
        assert (await w.journal.totals())["calls"] == 1
        go_on.set()
        await w.link.next()
        await idle(w)
        await w.call(call_id=other)
        assert kinds(await w.link.next(2)) == [MessageKind.ACCEPTED, MessageKind.RESULT]


async def test_a_finished_call_has_its_answer_even_when_every_place_is_taken(tmp_path):
    async with a_worker(tmp_path) as w:
        await w.call()
        await w.link.next(2)
        await idle(w)
        w.executor._max_running = 0
        await w.call()
        assert response_of((await w.link.next())[0]).data == "done"


async def test_an_unpublished_result_is_published_once_on_the_next_connect(tmp_path):
    answered = asyncio.Event()
    async with a_worker(tmp_path) as w:
        finish = w.journal.finish

        async def noting(*args, **more):
            ended = await finish(*args, **more)
            answered.set()
            return ended

        w.journal.finish = noting
        w.link.down = True
        await w.call()
        async with asyncio.timeout(40):
            await answered.wait()
        await idle(w)
        w.link.down = False
        await w.executor.resend()
        assert kinds(await w.link.next()) == [MessageKind.RESULT]
        await w.executor.resend()
        assert w.link.said.empty()


async def test_a_call_without_an_answer_is_not_published(tmp_path):
    async with a_worker(tmp_path) as w:
        await w.journal.take(Job("e1", a_call(n=1), EDGE.result, False, 0.0))
        await w.executor.resend()
        assert w.link.said.empty()


async def test_an_answer_too_large_for_the_wire_becomes_an_error(tmp_path):
    async with a_worker(tmp_path, lambda r: httpx.Response(200, json={"data": 2**70})) as w:
        await w.call()
        error = response_of((await w.link.next(2))[1]).error
        assert (error.code, "cannot be sent" in error.message) == (ErrorCode.EXECUTION_ERROR, True)


async def left_behind(tmp_path, tool, *, sent, ttl_s=30.0):
    """A worker's earlier life that ended in the middle of a call."""
    journal = await Journal.open(tmp_path / "j.db")
    call = a_call(tool, n=1, ttl_s=ttl_s)
    job = Job("e1", call, EDGE.result, False, journal._wall() + ttl_s)
    await journal.take(job)
    if sent:
        await journal.sending(job)
    await journal.close()


async def test_after_a_restart_a_started_write_is_not_repeated(tmp_path):
    await left_behind(tmp_path, "com.x.app:write", sent=True)
    async with a_worker(tmp_path) as w:
        (said,) = await w.link.next()
        error = response_of(said).error
        assert (error.code, error.retryable, error.partial_side_effects) == (
            "INTERRUPTED",
            True,
            True,
        )
        assert w.app.requests == []
        await w.call("com.x.app:write")
        assert response_of((await w.link.next())[0]).error.code is ErrorCode.INTERRUPTED


@pytest.mark.parametrize(("tool", "sent"), [("com.x.app:read", True), ("com.x.app:write", False)])
async def test_after_a_restart_what_is_harmless_to_ask_is_finished(tmp_path, tool, sent):
    await left_behind(tmp_path, tool, sent=sent)
    async with a_worker(tmp_path) as w:
        said = await w.link.next(2)
        assert (kinds(said), response_of(said[1]).data) == (
            [MessageKind.ACCEPTED, MessageKind.RESULT],
            "done",
        )
        assert len(w.app.requests) == 1


async def test_after_a_restart_a_call_whose_time_is_over_is_answered_so(tmp_path):
    await left_behind(tmp_path, "com.x.app:read", sent=False, ttl_s=0.0)
    async with a_worker(tmp_path) as w:
        assert response_of((await w.link.next(2))[1]).error.code is ErrorCode.DEADLINE_EXPIRED
        assert w.app.requests == []


async def test_time_spent_in_the_broker_is_taken_off_the_calls_life(tmp_path):
    async with a_worker(tmp_path) as w:
        w.expiry_s = 2
        taken = []
        take = w.journal.take

        async def noting(job, **more):
            taken.append(job.call.ttl_s)
            return await take(job, **more)

        w.journal.take = noting
        await w.call(ttl_s=30.0)
        await w.call(ttl_s=1.0, call_id="01890000-0000-7000-8000-000000000002")
        assert taken == [3.0, 1.0]
        await w.link.next(2)


@pytest.mark.requirement("K4-ack-after-store")
async def test_a_call_that_cannot_be_stored_is_neither_accepted_nor_run(tmp_path, caplog):
    async with a_worker(tmp_path) as w:
        await w.journal.close()
        await w.call()
        assert (w.link.said.empty(), w.app.requests) == (True, [])
        assert "cannot be stored" in caplog.text


def test_the_envelope_of_a_cancelled_call_names_it():
    class Repeats:
        def repeatable(self, tool):
            return True

    made: ToolResponse = _cancelled(
        _Work(Job("e1", a_call(), EDGE.result, False, 0.0), sent=True), Repeats()
    )
    assert (made.error.message, made.error.partial_side_effects, made.meta["callId"]) == (
        "Cancelled",
        False,
        ID,
    )


async def test_queueable_calls_are_accepted_beyond_the_slots_and_run_later(tmp_path):
    places, most, go_on = 0, 0, asyncio.Event()

    async def reply(_):
        nonlocal places, most
        places += 1
        most = max(most, places)
        await go_on.wait()
        places -= 1
        return httpx.Response(200, json={"data": 1})

    async with a_worker(tmp_path, reply, max_running=2) as w:
        w.executor._runner.queueable = lambda _: True
        for n in range(6):
            await w.call(call_id=f"01890000-0000-7000-8000-00000000000{n}")
        assert kinds(await w.link.next(6)) == [MessageKind.ACCEPTED] * 6
        go_on.set()
        assert kinds(await w.link.next(6)) == [MessageKind.RESULT] * 6
        assert most == 2


async def test_a_blocked_publish_does_not_block_new_calls(tmp_path):
    """A publish waits for its PUBACK; the task that got the call reads the next packets."""
    async with a_worker(tmp_path) as w:
        await w.call()
        await w.link.next(2)
        await idle(w)
        held, publish = asyncio.Event(), w.link.publish

        async def never_acknowledged(*words, **more):
            await held.wait()
            await publish(*words, **more)

        w.link.publish = never_acknowledged
        async with asyncio.timeout(40):
            await w.call()  # its stored answer waits for the broker
            await w.call(body=b"\xc1")  # so does the refusal of this one
            await w.call(call_id="01890000-0000-7000-8000-000000000002")
        assert len(w.acks) == 4
        held.set()
        await w.link.next(3)
