"""Results that come later, results kept, and sessions: each bounded, each right over restarts."""

import asyncio
from itertools import count

import pytest

from edge.core.call_state import Submission
from edge.storage.pending import PendingCalls
from edge.storage.results import MAX_RESULT, ResultCache
from edge.storage.sessions import Sessions
from edge.storage.size_bounds import Bounds
from edge.storage.sqlite.database import MIB, StoreFull
from tests.unit.storage.support import a_call, call_store, open_db
from tools_cache.api.tool import ToolResponse

DONE = ToolResponse(data={"text": "bread"}, meta={"route": "later"})
TAKEN, UNKNOWN, OVER = Submission.TAKEN, Submission.UNKNOWN, Submission.OVER


@pytest.fixture
def pending(db, hands):
    return PendingCalls(db, hands.clock)


@pytest.fixture
def cache(db, hands):
    return ResultCache(db, hands.clock)


async def put(pending, *, ttl_s=600.0, **more):
    call = a_call(session="s", **more)
    await pending.put(call, ttl_s=ttl_s)
    return call


async def resolve(pending, call, response=DONE, *, user_id="local", session="s"):
    return await pending.resolve(call.call_id, response, user_id=user_id, session=session)


# ------------------------------------------------------------------ pending


@pytest.mark.requirement("S3-24")
@pytest.mark.requirement("S3-25")
async def test_the_first_result_of_a_pending_call_stays_after_a_restart(pending, db, hands):
    call = await put(pending)
    found = await asyncio.gather(*(resolve(pending, call, ToolResponse(data=n)) for n in range(10)))
    assert sorted(found) == sorted([TAKEN] + [OVER] * 9)
    hands.reboot(off_s=60.0)
    after = PendingCalls(db, hands.clock)
    assert (await after.result(call.call_id)).data == found.index(TAKEN)
    assert await after.open() == []


@pytest.mark.requirement("S3-27")
@pytest.mark.requirement("S3-28")
async def test_nobody_hands_in_a_result_for_an_unknown_call_or_another_ones(pending):
    call = await put(pending)
    assert await pending.resolve("nobody", DONE, user_id="local", session="s") is UNKNOWN
    assert await resolve(pending, call, user_id="eve") is UNKNOWN
    assert await resolve(pending, call, session="other") is UNKNOWN
    assert await pending.result(call.call_id) is None
    assert await resolve(pending, call) is TAKEN


@pytest.mark.requirement("S3-29")
async def test_a_pending_call_expires_in_its_time_whatever_the_wall_clock_does(pending, hands):
    short, long = await put(pending, ttl_s=100.0), await put(pending, ttl_s=50.0)
    hands.pass_s(40)
    hands.wall += 86_400
    assert await pending.open() == [(long.call_id, 10.0), (short.call_id, 60.0)]
    hands.pass_s(10)
    assert await resolve(pending, long) is OVER
    assert await pending.open() == [(long.call_id, 0.0), (short.call_id, 50.0)]
    await pending.close(long.call_id, "expired")
    assert await pending.open() == [(short.call_id, 50.0)]


async def test_what_is_over_stays_as_it_is(pending):
    resolved, cancelled = await put(pending), await put(pending)
    await resolve(pending, resolved)
    await pending.close(resolved.call_id, "cancelled")
    await pending.close(cancelled.call_id, "cancelled")
    await pending.put(cancelled, ttl_s=600.0)
    await pending.close("nobody", "expired")
    assert (await pending.result(resolved.call_id)) == DONE
    assert await resolve(pending, cancelled) is OVER
    with pytest.raises(ValueError, match="'pending' is no end"):
        await pending.close(resolved.call_id, "pending")


async def test_pending_calls_are_bounded_and_unused_results_stay(db, hands):
    pending = PendingCalls(db, hands.clock, bounds=Bounds(1, open=2))
    calls = call_store(db, hands)
    unanswered = a_call(session="s")
    await calls.admit(unanswered, "later")
    await pending.put(unanswered, ttl_s=600.0)
    await resolve(pending, unanswered)
    others = [await put(pending) for _ in range(2)]
    with pytest.raises(StoreFull, match="2 calls wait for a result"):
        await put(pending)
    for call in others:
        await resolve(pending, call)
    await put(pending)
    kept = [await pending.result(call.call_id) is not None for call in (unanswered, *others)]
    assert kept == [True, False, True]


# ------------------------------------------------------------------ results kept


async def test_the_last_result_per_user_tool_and_arguments_has_its_age(cache, hands):
    await cache.keep("local", "w:now", "h1", ToolResponse(data=1), ttl_s=600.0)
    hands.pass_s(5)
    await cache.keep("local", "w:now", "h1", DONE, ttl_s=600.0)
    await cache.keep("local", "w:now", "h2", ToolResponse(data=2), ttl_s=600.0)
    hands.pass_s(30)
    kept = await cache.last("local", "w:now", "h1")
    assert (kept.response, kept.age_s) == (DONE, 30.0)
    assert (await cache.last("local", "w:now", "h2")).response.data == 2
    assert await cache.last("eve", "w:now", "h1") is None
    assert await cache.last("local", "w:then", "h1") is None


async def test_a_stored_result_ends_with_its_life_or_an_uncertain_age(db, cache, hands):
    for n in range(3):
        await cache.keep("local", "w:now", str(n), DONE, ttl_s=600.0)
    hands.pass_s(599)
    hands.wall += 86_400
    assert (await cache.last("local", "w:now", "0")).age_s == 599.0
    hands.pass_s(1)
    assert await cache.last("local", "w:now", "0") is None
    hands.wall -= 86_400
    hands.reboot(off_s=-100.0)
    after = ResultCache(db, hands.clock)
    assert (await after.last("local", "w:now", "1")).age_s == 500.0
    hands.synced = False
    assert await after.last("local", "w:now", "2") is None


async def test_the_results_used_longest_ago_go_first(db, hands):
    cache = ResultCache(db, hands.clock, bounds=Bounds(3))
    for n in range(3):
        await cache.keep("local", "t", str(n), DONE, ttl_s=600.0)
    await cache.last("local", "t", "0")
    await cache.keep("local", "t", "3", DONE, ttl_s=600.0)
    assert [await cache.last("local", "t", str(n)) is not None for n in range(4)] == [
        True,
        False,
        True,
        True,
    ]


async def test_results_are_bounded_in_bytes_and_a_big_one_deletes_the_old(db, hands):
    cache = ResultCache(db, hands.clock, bounds=Bounds(100, 100_000))
    for n in range(5):
        await cache.keep("local", "t", str(n), ToolResponse(data="x" * 30_000), ttl_s=600.0)
    assert [await cache.last("local", "t", str(n)) is not None for n in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    await cache.keep("local", "t", "4", ToolResponse(data="x" * MAX_RESULT), ttl_s=600.0)
    assert await cache.last("local", "t", "4") is None


# ------------------------------------------------------------------ sessions


def sessions(db, hands, **more):
    numbers = count()
    return Sessions(db, hands.clock, lambda: f"{next(numbers):016x}", **more)


async def test_a_session_keeps_the_mode_and_the_epoch_it_was_made_with(db, hands):
    first = sessions(db, hands)
    made = await asyncio.gather(
        *(first.open("local", "s1", mode) for mode in ("voice", "text", "text"))
    )
    assert set(made) == {made[0]}
    assert await first.open("local", "s2", "text") == (
        "text",
        (await first.open("local", "s2", "voice"))[1],
    )
    assert (await first.open("eve", "s1", "text"))[1] != made[0][1]
    again = Sessions(db, hands.clock, lambda: "another mint")
    assert await again.open("local", "s1", "text") == made[0]


async def test_sessions_are_bounded_and_the_one_used_longest_ago_goes(db, hands, monkeypatch):
    monkeypatch.setattr("edge.storage.sessions.LAG", 0)
    kept = sessions(db, hands, sessions=Bounds(3))
    for name in ("a", "b", "c"):
        await kept.open("local", name, "voice")
    await kept.open("local", "a", "text")
    await kept.open("local", "d", "voice")
    assert [(await kept.open("local", name, "text"))[0] for name in ("a", "c", "d")] == [
        "voice"
    ] * 3
    assert (await kept.open("local", "b", "text"))[0] == "text"


async def test_looking_at_a_session_in_use_writes_nothing(db, hands):
    store = sessions(db, hands)
    await store.open("local", "s", "voice")
    before = await db.read(lambda c: c.total_changes)
    for _ in range(10):
        await store.open("local", "s", "voice")
    assert await db.read(lambda c: c.total_changes) == before


async def test_transitions_are_listed_newest_first_and_bounded(db, hands):
    store = sessions(db, hands, transitions=Bounds(3))
    for n in range(5):
        await store.note(cause=f"intent {n}", call_id="c1", before={"n": n}, after={"n": n + 1})
        hands.pass_s(1)
    found = await store.transitions(10)
    assert [t["cause"] for t in found] == ["intent 4", "intent 3", "intent 2"]
    assert found[0] == {
        "at_wall": hands.wall - 1,
        "cause": "intent 4",
        "call_id": "c1",
        "before": {"n": 4},
        "after": {"n": 5},
    }
    assert len(await store.transitions(1)) == 1


# ------------------------------------------------------------------ a full store


async def test_a_full_store_refuses_only_new_work(tmp_path, hands):
    db = await open_db(tmp_path / "small", max_bytes=2 * MIB)
    calls, store = call_store(db, hands), sessions(db, hands)
    pending, cache = (
        PendingCalls(db, hands.clock),
        ResultCache(db, hands.clock),
    )
    call = a_call(session="s")
    await calls.admit(call, "later", keys=["k"])
    await pending.put(call, ttl_s=600.0)
    await store.open("local", "s", "voice")
    await cache.keep("local", "t", "h", DONE, ttl_s=600.0)
    with pytest.raises(StoreFull, match="2 MiB"):
        for _ in range(100):
            await calls.admit(a_call(args={"x": "x" * 50_000}), "cloud")
    for refused in (
        calls.admit(a_call(), "local"),
        pending.put(a_call(), ttl_s=9.0),
        store.open("local", "new", "text"),
    ):
        with pytest.raises(StoreFull):
            await refused
    await cache.keep("local", "t", "h2", DONE, ttl_s=600.0)  # nobody's call fails for a courtesy
    assert await cache.last("local", "t", "h2") is None
    assert (await cache.last("local", "t", "h")).response == DONE
    assert (await store.open("local", "s", "text"))[0] == "voice"
    await store.note(cause="c", call_id="", before={}, after={})
    assert (await calls.known(a_call(session="s"), keys=["k"])).call_id == call.call_id
    await calls.advance(call.call_id, "PENDING")
    assert await resolve(pending, call) is TAKEN
    assert await calls.finish(call.call_id, "ANSWERED", DONE)
    await db.close()
