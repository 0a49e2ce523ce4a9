"""The worker with a fake link below it: one key, one execution; and calls whose result is
handed in later.
"""

import asyncio
import contextlib

import httpx
import pytest

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.wire import MessageKind
from edge.devcloud.registry import InstalledApp
from edge.devcloud.worker.deferred import Submitted
from edge.devcloud.worker.executor import Executor
from edge.devcloud.worker.job import Job, TakenJob
from edge.devcloud.worker.journal import Journal
from tests.unit.devcloud.parts import APP, SCHEMA, FakeApp, a_call, a_runner
from tests.unit.devcloud.test_executor import (
    EDGE,
    ID,
    FakeLink,
    Worker,
    a_worker,
    idle,
    kinds,
    response_of,
)
from tests.unit.devcloud.test_runner import stream
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolCall

LATER = {
    "name": "later",
    "description": "later",
    "inputSchema": SCHEMA,
    "executionType": "external",
    "version": "3",
}
ASKED = {**LATER, "name": "asked", "executionType": "space", "idempotent": True}
REMOTE = {**LATER, "name": "remote", "execution": {"webhookUrl": "http://elsewhere"}}
SLOW = InstalledApp("com.x.slow", "Slow", (LATER, ASKED, REMOTE), public_url="http://app")


def other(n):
    return f"01890000-0000-7000-8000-{n:012d}"


@contextlib.asynccontextmanager
async def a_cloud(tmp_path, reply=None, *, workers=1, wall=None, **limits):
    """Workers that share one journal, as those of one process do; what is said goes to one link."""
    async with a_runner(tmp_path, FakeApp(reply), apps=(APP, SLOW)) as (runner, app):
        journal = await Journal.open(tmp_path / "j.db", **({"wall": wall} if wall else {}))
        link = FakeLink()
        executors = [
            Executor(
                journal,
                runner,
                tenant="default",
                pool="tools",
                **limits,
                **({"wall": wall} if wall else {}),
            )
            for _ in range(workers)
        ]
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(e.run(link)) for e in executors]
                await asyncio.sleep(0)
                yield [Keyed(e, link, journal, app, tasks) for e in executors]
                for task in running:
                    task.cancel()
        finally:
            await journal.close()


class Keyed(Worker):
    """A worker that is sent calls with keys."""

    async def ask(
        self,
        tool="com.x.app:write",
        *,
        key=None,
        call_id=ID,
        edge="e1",
        json=False,
        ttl_s=5.0,
        **args,
    ):
        call = ToolCall(
            call_id=call_id,
            tool=tool,
            args={"n": 1, **args},
            origin=CallOrigin.CLOUD,
            user_id="u",
            ttl_s=ttl_s,
            turn_id="t",
            idempotency_key=key,
        )
        payload, written = wire.encode(MessageKind.CALL, wire.call_to_body(call), json=json)
        await self.on_call(
            self.inbound(
                f"glassd/v1/default/e/{edge}/call/tools",
                payload,
                written,
                call_id,
                f"glassd/v1/default/e/{edge}/result",
            )
        )


class Gate:
    """An app that answers when it is let."""

    def __init__(self, *answers):
        self.answers, self.asked, self.open = list(answers), asyncio.Event(), asyncio.Event()

    async def __call__(self, _):
        self.asked.set()
        await self.open.wait()
        return httpx.Response(200, json=self.answers.pop(0))


def ids(said):
    return [body["id"] for _, _, body, _ in said]


async def test_a_second_call_with_a_known_key_gets_the_first_answer(tmp_path):
    async with a_cloud(tmp_path) as (w,):
        await w.ask(key="k")
        first = (await w.link.next(2))[1]
        await w.ask(key="k", call_id=other(2), json=True)
        (again,) = await w.link.next()
        assert (again[1], again[2]["id"], again[3]) == (MessageKind.RESULT, other(2), True)
        assert response_of(again).data == response_of(first).data == "done"
        assert response_of(again).meta["_idempotent_cache_hit"] is True
        assert "_idempotent_cache_hit" not in response_of(first).meta
        assert len(w.app.requests) == 1


async def test_a_second_call_waits_for_the_running_first_one(
    tmp_path,
):
    gate = Gate({"data": 1})
    async with a_cloud(tmp_path, gate) as (w,):
        await w.ask(key="k")
        await w.ask(key="k", call_id=other(2))
        assert kinds(said := await w.link.next(2)) == [MessageKind.ACCEPTED] * 2
        assert sorted(ids(said)) == [ID, other(2)]
        await w.ask(key="k", call_id=other(2))  # a duplicate of the one that waits
        assert ids(await w.link.next()) == [other(2)]
        gate.open.set()
        said = await w.link.next(2)
        assert (kinds(said), ids(said)) == ([MessageKind.RESULT] * 2, [ID, other(2)])
        assert [response_of(s).data for s in said] == [1, 1]
        await idle(w)
        assert (w.link.said.empty(), len(w.app.requests)) == (True, 1)


@pytest.mark.requirement("C-15")
async def test_when_the_first_fails_retryably_the_one_that_waits_runs(tmp_path):
    failed = {"success": False, "error": {"code": "RATE_LIMIT", "message": "m", "retryable": True}}
    gate = Gate(failed, {"data": 2})
    async with a_cloud(tmp_path, gate) as (w,):
        await w.ask(key="k")
        await w.ask(key="k", call_id=other(2))
        await w.link.next(2)
        gate.open.set()
        said = await w.link.next(3)
        assert (kinds(said), ids(said)) == (
            [MessageKind.RESULT, MessageKind.ACCEPTED, MessageKind.RESULT],
            [ID, other(2), other(2)],
        )
        assert (response_of(said[0]).error.code, response_of(said[2]).data) == ("RATE_LIMIT", 2)
        assert "_idempotent_cache_hit" not in response_of(said[2]).meta
        await w.ask(key="k", call_id=other(3))
        assert response_of((await w.link.next())[0]).data == 2
        assert len(w.app.requests) == 2


async def test_two_workers_that_share_a_journal_run_one_of_two_simultaneous_deliveries(tmp_path):
    gate = Gate({"data": 1})
    async with a_cloud(tmp_path, gate, workers=2) as (a, b):
        await asyncio.gather(a.ask(key="k"), b.ask(key="k", call_id=other(2)))
        assert kinds(await a.link.next(2)) == [MessageKind.ACCEPTED] * 2
        gate.open.set()
        assert sorted(ids(await a.link.next(2))) == [ID, other(2)]
        assert len(a.app.requests) == 1


async def test_two_workers_that_share_a_journal_run_a_duplicate_once(tmp_path):
    gate = Gate({"data": 1})
    async with a_cloud(tmp_path, gate, workers=2) as (a, b):
        await a.ask()
        async with asyncio.timeout(40):
            await gate.asked.wait()
        await b.ask()
        assert kinds(await a.link.next(2)) == [MessageKind.ACCEPTED] * 2
        gate.open.set()
        assert kinds(await a.link.next()) == [MessageKind.RESULT]
        assert (a.link.said.empty(), len(a.app.requests)) == (True, 1)


@pytest.mark.requirement("S3-38")
async def test_a_replay_sends_the_result_without_the_progress(
    tmp_path,
):
    async with a_cloud(
        tmp_path, stream({"progress": "a"}, {"progress": "b"}, {"result": {"data": 3}})
    ) as (w,):
        await w.ask(key="k")
        assert kinds(await w.link.next(4)) == [
            MessageKind.ACCEPTED,
            MessageKind.PROGRESS,
            MessageKind.PROGRESS,
            MessageKind.RESULT,
        ]
        await w.ask(key="k", call_id=other(2))
        assert kinds(await w.link.next()) == [MessageKind.RESULT]
        assert w.link.said.empty()


async def test_cancelling_the_one_that_waits_leaves_the_running_one_alone(tmp_path):
    gate = Gate({"data": 1})
    async with a_cloud(tmp_path, gate) as (w,):
        await w.ask(key="k")
        await w.ask(key="k", call_id=other(2))
        await w.link.next(2)
        await w.cancel(other(2))
        (said,) = await w.link.next()
        assert (ids([said]), response_of(said).error.code) == ([other(2)], ErrorCode.CANCELLED)
        gate.open.set()
        assert ids(await w.link.next()) == [ID]
        await idle(w)
        assert w.link.said.empty()


async def test_a_cancel_that_overtakes_a_call_that_will_wait_is_remembered(tmp_path):
    gate = Gate({"data": 1})
    async with a_cloud(tmp_path, gate) as (w,):
        await w.ask(key="k")
        await w.link.next()
        await w.cancel(other(2))
        await w.ask(key="k", call_id=other(2))
        said = await w.link.next(2)
        assert (ids(said), response_of(said[1]).error.code) == ([other(2)] * 2, ErrorCode.CANCELLED)
        gate.open.set()
        assert ids(await w.link.next()) == [ID]


async def test_of_two_workers_that_claim_a_call_one_runs_it(tmp_path):
    async with a_cloud(tmp_path, workers=2) as (a, b):
        job = Job("e1", a_call("com.x.app:write", n=1), EDGE.result, False, b.journal._wall() + 5)
        taken = await a.journal.take(job)
        b.executor._go_on(
            job, TakenJob(False)
        )  # the duplicate is faster than the worker that stored the call
        a.executor._go_on(job, taken)
        said = await a.link.next(3)
        assert sorted(kinds(said)) == [
            MessageKind.ACCEPTED,
            MessageKind.ACCEPTED,
            MessageKind.RESULT,
        ]
        await idle(a)
        await idle(b)
        assert (a.link.said.empty(), len(a.app.requests)) == (True, 1)


async def test_an_heir_that_is_offered_again_at_that_very_moment_runs_once(tmp_path):
    gate = Gate(
        {"success": False, "error": {"code": "RATE_LIMIT", "message": "m", "retryable": True}},
        {"data": 2},
    )
    async with a_cloud(tmp_path, gate) as (w,):
        await w.ask(key="k")
        await w.ask(key="k", call_id=other(2))
        await w.link.next(2)
        publish = w.link.publish

        async def overtaken(topic, kind, body, **more):
            await publish(topic, kind, body, **more)
            if kind is MessageKind.RESULT and body["id"] == ID:
                await w.ask(key="k", call_id=other(2))

        w.link.publish = overtaken
        gate.open.set()
        said = []
        while not said or (said[-1][1], said[-1][2]["id"]) != (MessageKind.RESULT, other(2)):
            said += await w.link.next()
        await idle(w)
        assert (w.link.said.empty(), len(w.app.requests)) == (True, 2)


async def test_cancelling_the_running_one_reaches_the_app_and_answers_both(tmp_path):
    asked, broken_off = asyncio.Event(), asyncio.Event()

    async def reply(_):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            broken_off.set()

    async with a_cloud(tmp_path, reply) as (w,):
        await w.ask(key="k")
        await w.ask(key="k", call_id=other(2))
        await w.link.next(2)
        async with asyncio.timeout(40):
            await asked.wait()
        await w.cancel()
        said = await w.link.next(2)
        assert broken_off.is_set()
        assert [response_of(s).error.code for s in said] == [ErrorCode.CANCELLED] * 2


async def test_after_a_restart_waiting_calls_get_the_first_ones_answer(tmp_path):
    gate = Gate()
    async with a_cloud(tmp_path, gate) as (w,):
        await w.ask("com.x.app:read", key="k")
        await w.ask("com.x.app:read", key="k", call_id=other(2))
        await w.link.next(2)
        async with asyncio.timeout(40):
            await gate.asked.wait()
    async with a_cloud(tmp_path) as (w,):
        said = await w.link.next(3)
        assert (kinds(said), ids(said)) == (
            [MessageKind.ACCEPTED, MessageKind.RESULT, MessageKind.RESULT],
            [ID, ID, other(2)],
        )


async def test_after_a_restart_a_started_write_runs_for_no_duplicate(tmp_path):
    gate = Gate()
    async with a_cloud(tmp_path, gate) as (w,):
        await w.ask(key="k")
        await w.ask(key="k", call_id=other(2))
        await w.link.next(2)
        async with asyncio.timeout(40):
            await gate.asked.wait()
    async with a_cloud(tmp_path) as (w,):
        said = await w.link.next(2)
        assert [response_of(s).error.code for s in said] == [ErrorCode.INTERRUPTED] * 2
        await w.ask(key="k", call_id=other(3))
        assert response_of((await w.link.next())[0]).error.code is ErrorCode.INTERRUPTED
        assert w.app.requests == []


async def test_a_waiting_call_whose_life_is_over_is_answered_so(tmp_path):
    gate = Gate({"data": 1})
    async with a_cloud(tmp_path, gate) as (w,):
        await w.ask(key="k")
        async with asyncio.timeout(40):
            await gate.asked.wait()
        await w.ask(key="k", call_id=other(2), ttl_s=0.2)
        await w.link.next(2)
        (said,) = await w.link.next()
        assert (ids([said]), response_of(said).error.code) == (
            [other(2)],
            ErrorCode.DEADLINE_EXPIRED,
        )
        gate.open.set()
        assert ids(await w.link.next()) == [ID]


# ------------------------------------------------------------------ handed in later


@pytest.mark.requirement("S3-26")
@pytest.mark.parametrize("tool", ["later", "asked"])
async def test_a_deferred_call_is_answered_once_by_its_submitted_result(tmp_path, tool):
    async with a_cloud(tmp_path) as (w,):
        await w.ask(f"com.x.slow:{tool}")
        assert kinds(await w.link.next()) == [MessageKind.ACCEPTED]
        await idle(w)
        assert [(p["id"], p["args"]) for p in await w.journal.pending(10)] == [(ID, {"n": 1})]
        envelope = {
            "ok": True,
            "data": {"chosen": 2},
            "render": {"display": {"layout": "text_wall", "text": "Two"}},
            "meta": {"x": 1},
        }
        assert await w.executor.deferred.submit("e1", ID, envelope) is Submitted.TAKEN
        (said,) = await w.link.next()
        response = response_of(said)
        assert (said[0], response.data, response.render["display"]["text"]) == (
            EDGE.result,
            {"chosen": 2},
            "Two",
        )
        assert (response.meta["tool"], response.meta["callId"], response.meta["toolVersion"]) == (
            f"com.x.slow:{tool}",
            ID,
            "3",
        )
        assert (w.link.said.empty(), w.app.requests) == (True, [])


@pytest.mark.requirement("S3-25")
@pytest.mark.requirement("S3-27")
@pytest.mark.requirement("S3-28")
async def test_a_result_is_accepted_once_and_for_its_own_edge_only(tmp_path):
    async with a_cloud(tmp_path) as (w,):
        await w.ask("com.x.slow:later")
        await w.link.next()
        await idle(w)
        submit = w.executor.deferred.submit
        assert await submit("e2", ID, 1) is Submitted.UNKNOWN
        assert await submit("e1", other(9), 1) is Submitted.UNKNOWN
        taken = await asyncio.gather(*(submit("e1", ID, n) for n in range(5)))
        assert sorted(taken) == [Submitted.OVER] * 4 + [Submitted.TAKEN]
        assert response_of((await w.link.next())[0]).data == taken.index(Submitted.TAKEN)
        assert await submit("e1", ID, 9) is Submitted.OVER
        assert w.link.said.empty()
        await w.ask("com.x.slow:later")  # a duplicate is told the same
        assert response_of((await w.link.next())[0]).data == taken.index(Submitted.TAKEN)


async def test_a_running_call_takes_no_result_from_outside(tmp_path):
    gate = Gate({"data": 1})
    async with a_cloud(tmp_path, gate) as (w,):
        await w.ask()
        await w.link.next()
        assert await w.executor.deferred.submit("e1", ID, 5) is Submitted.OVER
        gate.open.set()
        assert response_of((await w.link.next())[0]).data == 1


@pytest.mark.parametrize("result", [{"ok": "yes"}, {"ok": False}, {"ok": True, "error": {}}, 2**70])
async def test_an_invalid_result_is_refused_and_the_call_still_waits(tmp_path, result):
    async with a_cloud(tmp_path) as (w,):
        await w.ask("com.x.slow:later")
        await w.link.next()
        await idle(w)
        with pytest.raises(ValueError, match=r"\w+: "):
            await w.executor.deferred.submit("e1", ID, result)
        assert len(await w.journal.pending(10)) == 1
        assert await w.executor.deferred.submit(
            "e1", ID, {"ok": False, "error": {"type": "CONFLICT", "message": "taken"}}
        )
        assert response_of((await w.link.next())[0]).error.code is ErrorCode.CONFLICT


async def test_a_deferred_call_with_wrong_arguments_is_answered_at_once(tmp_path):
    async with a_cloud(tmp_path) as (w,):
        await w.ask("com.x.slow:later", n="x")
        assert response_of((await w.link.next(2))[1]).error.code is ErrorCode.INVALID_ARGUMENTS
        assert await w.executor.deferred.submit("e1", ID, 5) is Submitted.OVER


async def test_an_external_tool_with_an_address_is_run_like_any_other(tmp_path):
    async with a_cloud(tmp_path) as (w,):
        await w.ask("com.x.slow:remote")
        assert kinds(await w.link.next(2)) == [MessageKind.ACCEPTED, MessageKind.RESULT]


@pytest.mark.requirement("S3-24")
async def test_a_deferred_call_survives_a_restart_and_its_duplicate_waits(tmp_path):
    async with a_cloud(tmp_path) as (w,):
        await w.ask("com.x.slow:later", ttl_s=60.0)
        await w.link.next()
        await idle(w)
    async with a_cloud(tmp_path) as (w,):
        await w.ask("com.x.slow:later", ttl_s=60.0)
        assert kinds(await w.link.next()) == [MessageKind.ACCEPTED]
        assert await w.executor.deferred.submit("e1", ID, "late") is Submitted.TAKEN
        assert response_of((await w.link.next())[0]).data == "late"
        assert w.link.said.empty()


@pytest.mark.requirement("S3-29")
async def test_a_deferred_call_expires_once_also_after_a_restart(
    tmp_path,
):
    class Wall:
        now = 1_000_000.0

        def __call__(self):
            return self.now

    wall = Wall()
    async with a_cloud(tmp_path, wall=wall) as (w,):
        await w.ask("com.x.slow:later", ttl_s=3600.0)
        await w.link.next()
        await idle(w)
    wall.now += 3600.0
    async with a_cloud(tmp_path, wall=wall) as (w,):
        error = response_of((await w.link.next())[0]).error
        assert (error.code, error.retryable, error.partial_side_effects) == (
            ErrorCode.DEADLINE_EXPIRED,
            True,
            False,
        )
        assert await w.executor.deferred.submit("e1", ID, "late") is Submitted.OVER
        assert w.link.said.empty()


async def test_a_deferred_call_expires_without_anything_else_happening(tmp_path):
    async with a_cloud(tmp_path) as (w,):
        await w.ask("com.x.slow:later", ttl_s=0.2)
        assert response_of((await w.link.next(2))[1]).error.code is ErrorCode.DEADLINE_EXPIRED


@pytest.mark.parametrize("before", [True, False])
async def test_a_deferred_call_can_be_cancelled(tmp_path, before):
    async with a_cloud(tmp_path) as (w,):
        if before:
            await w.cancel()
        await w.ask("com.x.slow:later")
        await w.link.next()
        await idle(w)
        if not before:
            await w.cancel()
        error = response_of((await w.link.next())[0]).error
        assert (error.code, error.message) == (ErrorCode.CANCELLED, "Cancelled: wearer left")
        assert await w.executor.deferred.submit("e1", ID, 1) is Submitted.OVER
        assert w.link.said.empty()


@pytest.mark.requirement("S3-23")
async def test_deferred_calls_take_no_running_place(tmp_path):
    async with a_cloud(tmp_path, max_running=1) as (w,):
        for n in range(1, 5):
            await w.ask("com.x.slow:later", call_id=other(n))
            assert kinds(await w.link.next()) == [MessageKind.ACCEPTED]
            await idle(w)
        await w.ask("com.x.app:read", call_id=other(9))
        assert kinds(await w.link.next(2)) == [MessageKind.ACCEPTED, MessageKind.RESULT]


async def test_a_second_call_gets_the_result_submitted_for_its_key(tmp_path):
    async with a_cloud(tmp_path) as (w,):
        await w.ask("com.x.slow:later", key="k")
        await w.link.next()
        await idle(w)
        await w.ask("com.x.slow:later", key="k", call_id=other(2))
        assert ids(await w.link.next()) == [other(2)]
        assert await w.executor.deferred.submit("e1", ID, 7) is Submitted.TAKEN
        said = await w.link.next(2)
        assert (ids(said), [response_of(s).data for s in said]) == ([ID, other(2)], [7, 7])


async def test_a_deferred_tool_is_refused_over_http(tmp_path):
    async with a_runner(tmp_path, apps=(SLOW,)) as (runner, app):
        error = (await runner.run(a_call("com.x.slow:later", n=1))).error
        assert (error.code, app.requests) == (ErrorCode.UNSUPPORTED, [])


async def test_a_worker_without_keys_works_as_ever(tmp_path):
    async with a_worker(tmp_path) as w:
        await w.call("com.x.app:write")
        await w.call("com.x.app:write", call_id=other(2))
        await w.link.next(4)
        assert len(w.app.requests) == 2
