"""The worker's memory on a real SQLite file: stored before anything, asked before running twice."""

import pytest

from edge.devcloud.worker.job import DONE, SENT, TAKEN, Job
from edge.devcloud.worker.journal import KEEP_S, PRUNE_EVERY, Journal
from tests.unit.devcloud.parts import a_call
from tools_cache.api.tool import CallOrigin, ErrorCode, Mode, ToolCall, ToolResponse


class Wall:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


def a_job(edge="e1", *, ends_wall=1_000_040.0, **more):
    return Job(edge, a_call(n=1, **more), f"glassd/v1/default/e/{edge}/result", False, ends_wall)


@pytest.fixture
async def journal(tmp_path):
    opened = await Journal.open(tmp_path / "j.db", wall=Wall())
    yield opened
    await opened.close()


async def reopened(journal, tmp_path):
    await journal.close()
    return await Journal.open(tmp_path / "j.db", wall=Wall())


async def test_a_call_is_fresh_once(journal):
    assert (await journal.take(a_job())).fresh is True
    again = await journal.take(a_job())
    assert (again.fresh, again.state, again.response) == (False, TAKEN, None)


async def test_a_finished_call_gives_its_answer_to_a_duplicate(journal):
    await journal.take(a_job())
    await journal.sending(a_job())
    await journal.finish(a_job(), ToolResponse(data={"n": "grüße"}))
    again = await journal.take(a_job())
    assert (again.fresh, again.state, again.response.data) == (False, DONE, {"n": "grüße"})


async def test_the_first_answer_stands(journal):
    await journal.take(a_job())
    await journal.finish(a_job(), ToolResponse(data=1))
    await journal.finish(a_job(), ToolResponse.failure(ErrorCode.CANCELLED, "m"))
    assert (await journal.take(a_job())).response.data == 1


async def test_the_same_id_of_another_edge_is_another_call(journal):
    await journal.take(a_job())
    await journal.finish(a_job(), ToolResponse(data="secret"))
    assert (await journal.take(a_job("e2"))).fresh is True


async def test_executions_are_counted(journal):
    await journal.take(a_job())
    assert (await journal.recent(10))[0]["runs"] == 0
    await journal.sending(a_job())
    (row,) = await journal.recent(10)
    assert (row["runs"], row["state"], row["edge"], row["tool"]) == (
        1,
        SENT,
        "e1",
        "com.x.app:read",
    )
    assert await journal.totals() == {"calls": 1, "runs": 1}


async def test_what_was_left_undone_is_whole_after_a_restart(journal, tmp_path):
    call = ToolCall(
        call_id=a_call().call_id,
        tool="com.x.app:write",
        args={"a": [1, {"b": "ü"}]},
        origin=CallOrigin.VOICE,
        mode=Mode.VOICE,
        turn_id="t",
        user_id="u",
        ttl_s=40.0,
        idempotency_key="k",
    )
    job = Job("e1", call, "glassd/v1/default/e/e1/reply/x", True, 1_000_040.0)
    await journal.take(job)
    await journal.sending(job)
    second = await reopened(journal, tmp_path)
    (left,) = await second.left()
    assert (left.job, left.state, left.response) == (job, SENT, None)
    await second.close()


async def test_an_unpublished_answer_stays_until_it_is_published(journal, tmp_path):
    await journal.take(a_job())
    await journal.finish(a_job(), ToolResponse(data=1))
    second = await reopened(journal, tmp_path)
    (left,) = await second.left()
    assert (left.state, left.response.data, left.job.reply_to) == (DONE, 1, a_job().reply_to)
    await second.mark_published(left.job)
    assert await second.left() == []
    assert (await second.take(a_job())).response.data == 1
    await second.close()


async def test_arguments_are_forgotten_once_answered(journal, tmp_path):
    await journal.take(a_job())
    await journal.finish(a_job(), ToolResponse(data=1))
    (left,) = await journal.left()
    assert left.job.call.args == {}


async def test_a_left_call_knows_how_little_time_it_has(journal):
    await journal.take(a_job(ends_wall=1_000_003.0))
    assert (await journal.left())[0].job.call.ttl_s == 3.0
    journal._wall.now += 100
    assert (await journal.left())[0].job.call.ttl_s == 0.0


async def test_old_calls_are_deleted_and_recent_ones_kept(journal):
    await journal.take(a_job())
    journal._wall.now += 40 + KEEP_S + 1
    for i in range(PRUNE_EVERY):
        call_id = f"01890000-0000-7000-8000-{i + 100:012d}"
        await journal.take(a_job(call_id=call_id, ends_wall=journal._wall.now + 40))
    assert (await journal.totals())["calls"] == PRUNE_EVERY
    assert (await journal.take(a_job())).fresh is True
