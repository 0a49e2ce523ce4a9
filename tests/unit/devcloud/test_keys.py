"""Idempotency keys in the worker's memory, on a real SQLite file: one execution, one answer,
known limits.
"""

import asyncio
import json
import sqlite3

import pytest

from edge.devcloud.database import MIGRATIONS
from edge.devcloud.worker import journal as journal_module
from edge.devcloud.worker.job import BUSY, DONE, PENDING, SENT, TAKEN, WAITS, Job
from edge.devcloud.worker.journal import KEEP_S, PRUNE_EVERY, Journal
from edge.devcloud.worker.keys import PER_SESSION, WRITES_KEEP_S, keeps
from tests.unit.devcloud.test_journal import Wall
from tools_cache.api.tool import CallOrigin, ErrorCode, ErrorType, ToolCall, ToolError, ToolResponse

GOOD = ToolResponse(data="done", meta={"callId": "first", "toolVersion": "2"})


def a_job(
    n, key="k", *, edge="e1", user="u", session="", tool="com.x.app:write", turn="t1", ends_in=40.0
):
    call = ToolCall(
        call_id=f"01890000-0000-7000-8000-{n:012d}",
        tool=tool,
        args={"n": 1},
        origin=CallOrigin.CLOUD,
        turn_id=turn,
        user_id=user,
        session=session,
        idempotency_key=key,
    )
    return Job(edge, call, f"glassd/v1/default/e/{edge}/result", False, 1_000_000.0 + ends_in)


@pytest.fixture
async def journal(tmp_path):
    opened = await Journal.open(tmp_path / "j.db", wall=Wall())
    yield opened
    await opened.close()


async def done(journal, job, response=GOOD, **more):
    taken = await journal.take(job, **more)
    assert (taken.fresh, taken.state) == (True, TAKEN)
    await journal.sending(job)
    return await journal.finish(job, response)


@pytest.mark.requirement("S2-104")
async def test_a_second_call_gets_the_finished_ones_answer_marked_as_replay(journal):
    await done(journal, a_job(1))
    again = await journal.take(a_job(2, turn="t2"))
    assert (again.state, again.response.data, again.response.meta["toolVersion"]) == (
        DONE,
        "done",
        "2",
    )
    assert again.response.meta["_idempotent_cache_hit"] is True
    assert (again.response.meta["_original_turn"], again.response.meta["callId"]) == (
        "t1",
        a_job(2).call.call_id,
    )
    assert await journal.totals() == {"calls": 2, "runs": 1}


async def test_a_replayed_answer_is_published_also_to_duplicates(journal):
    await done(journal, a_job(1))
    await journal.mark_published(a_job(1))
    replayed = (await journal.take(a_job(2))).response
    (left,) = await journal.left()
    assert (left.job.call.call_id, left.response) == (a_job(2).call.call_id, replayed)
    assert (await journal.take(a_job(2))).response == replayed


@pytest.mark.parametrize("other", [{"key": "k2"}, {"key": None}, {"edge": "e2"}, {"user": "u2"}])
async def test_another_key_user_or_edge_is_another_call(journal, other):
    await done(journal, a_job(1))
    assert (await journal.take(a_job(2, **other))).state == TAKEN


async def test_calls_without_a_key_are_each_their_own(journal):
    await done(journal, a_job(1, None))
    assert (await journal.take(a_job(2, None))).state == TAKEN


async def test_a_key_of_another_tool_is_a_conflict_and_nothing_runs(journal):
    await done(journal, a_job(1))
    taken = await journal.take(a_job(2, tool="com.x.app:read"))
    assert (taken.state, taken.response.error.code, taken.response.data) == (
        DONE,
        ErrorCode.CONFLICT,
        None,
    )


async def test_of_many_simultaneous_calls_one_runs_and_the_others_wait(journal):
    taken = await asyncio.gather(*(journal.take(a_job(n)) for n in range(1, 9)))
    assert sorted(t.state for t in taken) == [TAKEN] + [WAITS] * 7


async def test_who_waited_gets_the_answer_when_it_comes_once(journal):
    await journal.take(a_job(1))
    await journal.take(a_job(2))
    await journal.take(a_job(3))
    ended = await journal.finish(a_job(1), GOOD)
    assert (ended.stands, ended.heir, len(ended.followers)) == (True, None, 2)
    for left, n in zip(ended.followers, (2, 3), strict=True):
        assert (left.job.call.call_id, left.response.data) == (a_job(n).call.call_id, "done")
        assert left.response.meta["_idempotent_cache_hit"] is True
        assert (await journal.take(a_job(n))).response == left.response
    again = await journal.finish(a_job(1), ToolResponse(data="other"))
    assert (again.stands, again.followers) == (False, ())


async def test_a_submitted_answer_is_not_for_a_running_call(journal):
    await journal.take(a_job(1))
    assert (await journal.finish(a_job(1), GOOD, only_held=True)).stands is False
    await journal.hold(a_job(1), {})
    assert (await journal.finish(a_job(1), GOOD, only_held=True)).stands is True


FAILURES = [
    (ErrorCode.TIMEOUT, {}),
    (ErrorCode.RATE_LIMIT, {}),
    (ErrorCode.INVALID_ARGUMENTS, {}),
    (ErrorCode.BUDGET_EXCEEDED, {}),
    (ErrorCode.MODE_RESTRICTED, {}),
    (ErrorCode.CONFIRMATION_REQUIRED, {}),
    (ErrorCode.EXPIRED, {}),
    (ErrorCode.CONFLICT, {"retryable": True}),
    (ErrorCode.NETWORK_ERROR, {"retryable": False}),
]


@pytest.mark.requirement("C-15")
@pytest.mark.parametrize(("code", "more"), FAILURES)
async def test_after_a_retryable_failure_the_second_call_runs_with_the_key(journal, code, more):
    await done(journal, a_job(1), ToolResponse.failure(code, "m", **more))
    await done(journal, a_job(2), ToolResponse(data="second"))
    assert (await journal.take(a_job(3))).response.data == "second"


@pytest.mark.requirement("C-15")
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.TOOL_UNAVAILABLE,
        ErrorCode.AUTH,
        ErrorCode.CONFLICT,
        ErrorCode.INTERNAL,
        ErrorCode.TOOL_NOT_FOUND,
        ErrorCode.CANCELLED,
    ],
)
async def test_a_final_failure_is_the_answer_of_its_key(journal, code):
    await done(journal, a_job(1), ToolResponse.failure(code, "m"))
    assert (await journal.take(a_job(2))).response.error.code is code


async def test_after_a_retryable_failure_the_oldest_waiting_call_runs(
    journal,
):
    for n in (1, 2, 3):
        await journal.take(a_job(n))
    ended = await journal.finish(a_job(1), ToolResponse.failure(ErrorCode.NETWORK_ERROR, "m"))
    assert (ended.heir.call.call_id, ended.followers) == (a_job(2).call.call_id, ())
    assert ended.heir.call.args == {"n": 1}
    assert ((await journal.take(a_job(2))).state, (await journal.take(a_job(3))).state) == (
        TAKEN,
        WAITS,
    )
    assert (await journal.take(a_job(4))).state == WAITS
    ended = await journal.finish(a_job(2), ToolResponse(data="second"))
    assert [left.job.call.call_id for left in ended.followers] == [
        a_job(n).call.call_id for n in (3, 4)
    ]


MAYBE = ToolResponse.failure(ErrorCode.TIMEOUT, "m", partial_side_effects=True)


async def test_a_write_with_unknown_outcome_is_not_repeated_under_its_key(
    journal,
):
    await done(journal, a_job(1), MAYBE)
    again = (await journal.take(a_job(2))).response
    assert (again.error.code, again.error.partial_side_effects) == (ErrorCode.TIMEOUT, True)


async def test_what_may_be_asked_twice_is_run_again_however_it_failed(journal):
    await done(journal, a_job(1), MAYBE, repeatable=True)
    assert (await journal.take(a_job(2))).state == TAKEN


def test_every_error_type_follows_the_rule_for_reuse():
    never = {
        "VALIDATION",
        "BUDGET_EXCEEDED",
        "MODE_RESTRICTED",
        "CONFIRMATION_REQUIRED",
        "CONFIRMATION_EXPIRED",
        "TRANSIENT",
        "RATE_LIMIT",
    }
    for kind in ErrorType:
        error = ToolError(code=ErrorCode.INTERNAL, message="m", type=kind, retryable=False)
        assert keeps(ToolResponse(error=error), repeatable=True) is (kind.value not in never), kind
    assert keeps(GOOD, repeatable=False) is True


# ------------------------------------------------------------------ limits and ends


@pytest.mark.requirement("S2-105")
async def test_of_101_keys_the_one_hit_longest_ago_leaves(journal):
    for n in range(PER_SESSION):
        await done(journal, a_job(n, f"k{n}"))
    assert (await journal.take(a_job(500, "k0"))).state == DONE  # a hit: k1 is the oldest now
    await done(journal, a_job(900, "new"))
    assert (await journal.take(a_job(501, "k0"))).state == DONE
    assert (await journal.take(a_job(502, "k2"))).state == DONE
    assert (await journal.take(a_job(503, "k1"))).state == TAKEN


async def test_each_session_has_its_own_hundred(journal):
    for n in range(PER_SESSION):
        await done(journal, a_job(n, f"k{n}", session="s1"))
    await done(journal, a_job(900, "new", session="s2"))
    assert (await journal.take(a_job(901, "k0", session="s1"))).state == DONE


async def test_a_key_whose_call_still_runs_never_leaves(journal):
    await journal.take(a_job(0, "running"))
    for n in range(1, PER_SESSION + 5):
        await done(journal, a_job(n, f"k{n}"))
    assert (await journal.take(a_job(900, "running"))).state == WAITS


@pytest.mark.requirement("C-26")
@pytest.mark.parametrize(("repeatable", "kept_s"), [(False, WRITES_KEEP_S), (True, 40.0 + KEEP_S)])
async def test_the_key_of_a_write_is_kept_for_a_day(journal, repeatable, kept_s):
    await done(journal, a_job(1), repeatable=repeatable)
    journal._wall.now += kept_s - 1
    assert (await journal.take(a_job(2, ends_in=WRITES_KEEP_S + 40))).state == DONE
    journal._wall.now += 2
    assert (await journal.take(a_job(3, ends_in=WRITES_KEEP_S + 40))).state == TAKEN


async def test_pruning_keeps_an_answer_as_long_as_its_key(journal):
    await done(journal, a_job(1))
    journal._wall.now += KEEP_S + 100
    for n in range(PRUNE_EVERY):
        await journal.take(a_job(100 + n, None, ends_in=200_000.0))
    assert (await journal.take(a_job(2, ends_in=200_000.0))).response.data == "done"
    journal._wall.now += WRITES_KEEP_S
    for n in range(PRUNE_EVERY):
        await journal.take(a_job(300 + n, None, ends_in=200_000.0))
    assert (await journal.take(a_job(1, ends_in=200_000.0))).state == TAKEN


async def test_without_room_nothing_new_is_stored_but_a_known_key_is_answered(journal):
    assert (await journal.take(a_job(1), room=False)).state == BUSY
    assert (await journal.totals())["calls"] == 0
    await done(journal, a_job(1))
    assert (await journal.take(a_job(2), room=False)).state == DONE


async def test_only_so_many_calls_may_wait(journal, monkeypatch):
    monkeypatch.setattr(journal_module, "MAX_HELD", 2)
    await journal.take(a_job(1))
    assert [(await journal.take(a_job(n))).state for n in (2, 3, 4)] == [WAITS, WAITS, BUSY]
    await journal.take(a_job(10, "other"))
    assert await journal.hold(a_job(10, "other"), {}) is False


# ------------------------------------------------------------------ restarts and old files


async def test_keys_and_who_waits_survive_a_restart(journal, tmp_path):
    await done(journal, a_job(1, "old"))
    await journal.take(a_job(2))
    await journal.sending(a_job(2))
    await journal.take(a_job(3))
    await journal.close()
    second = await Journal.open(tmp_path / "j.db", wall=Wall())
    assert (await second.take(a_job(9, "old"))).state == DONE
    assert [
        (left.job.call.call_id, left.state) for left in await second.left() if left.response is None
    ] == [(a_job(2).call.call_id, SENT)]
    ended = await second.finish(a_job(2), GOOD)
    assert [left.job for left in ended.followers] == [a_job(3).refreshed(1_000_000.0)]
    await second.close()


async def test_what_is_held_is_found_overdue_when_its_life_is_over(journal):
    await journal.take(a_job(1, ends_in=5.0))
    assert await journal.hold(a_job(1), {"n": 1, "filled": True}) is True
    assert await journal.overdue() == ([], 5.0)
    ((pending,)) = await journal.pending(10)
    assert (pending["args"], pending["leftS"], pending["edge"]) == (
        {"n": 1, "filled": True},
        5.0,
        "e1",
    )
    journal._wall.now += 5.0
    ((late,), next_s) = await journal.overdue()
    assert (late.state, late.job.call.call_id, next_s) == (PENDING, a_job(1).call.call_id, None)


async def test_an_older_workers_file_keeps_the_keys_of_open_calls(tmp_path):
    path = tmp_path / "j.db"
    with sqlite3.connect(path) as old:
        old.executescript(MIGRATIONS[0])
        old.execute("PRAGMA user_version = 1")
        for n, state, key in (
            (1, SENT, "open"),
            (2, DONE, "over"),
            (3, TAKEN, None),
            (4, TAKEN, "open"),
        ):
            job = a_job(n, key)
            asked = json.loads(job.text())
            del asked["session"]
            answer = json.dumps(GOOD.to_json()) if state == DONE else None
            old.execute(
                "INSERT INTO calls (edge, id, tool, state, request, response, "
                "ends_wall, taken_wall) VALUES (?,?,?,?,?,?,?,?)",
                (
                    *job.key,
                    job.call.tool,
                    state,
                    json.dumps(asked),
                    answer,
                    job.ends_wall,
                    1_000_000.0 + n,
                ),
            )
    old.close()
    for _ in range(2):  # brought up to date once, opened twice
        journal = await Journal.open(path, wall=Wall())
        assert len(await journal.left()) == 4
        await journal.close()
    journal = await Journal.open(path, wall=Wall())
    assert (await journal.take(a_job(9, "open"))).state == WAITS
    assert (await journal.take(a_job(10, "over"))).state == TAKEN
    ended = await journal.finish(a_job(1), GOOD)
    assert [left.job.call.call_id for left in ended.followers] == [a_job(9).call.call_id]
    await journal.close()
