"""Idempotency keys: one key, one call, for as long as it matters, and the least used go first."""

import asyncio

import pytest

from tests.unit.storage.support import a_call, call_store
from tools_cache.api.tool import ErrorCode, ToolResponse

DONE = ToolResponse(data={"text": "bread"})
LOST = ToolResponse.failure(ErrorCode.NETWORK_ERROR, "no net")
DAY, HOUR = 24 * 3600, 3600


async def admit(calls, *keys, **more):
    """Admit a call with these keys, which must be fresh."""
    repeatable = more.pop("repeatable", False)
    call = a_call(**more)
    assert (await calls.admit(call, "local", keys=keys, repeatable=repeatable)).fresh
    return call


async def answer(calls, call, response=DONE):
    await calls.advance(call.call_id, "RUNNING")
    assert await calls.finish(call.call_id, "ANSWERED" if response.ok else "FAILED", response)


async def done(calls, *keys, response=DONE, **more):
    call = await admit(calls, *keys, **more)
    await answer(calls, call, response)
    return call


async def again(calls, *keys, **more):
    """What another call with these keys would get, without admitting it."""
    found = await calls.known(a_call(**more), keys=keys)
    return None if found is None else found.call_id


@pytest.mark.requirement("S2-104")
async def test_a_key_replays_its_answer_for_its_user_and_its_session_only(calls):
    first = await done(calls, "k", turn_id="turn-1")
    replay = await calls.admit(a_call(), "local", keys=["k"])
    assert (replay.fresh, replay.response, replay.call_id, replay.turn_id) == (
        False,
        DONE,
        first.call_id,
        "turn-1",
    )
    await admit(calls, "k", user_id="other")
    await admit(calls, "k", session="other")
    await admit(calls)


async def test_of_many_calls_with_one_key_one_runs(calls):
    found = await asyncio.gather(*(calls.admit(a_call(), "local", keys=["k"]) for _ in range(20)))
    assert [a.fresh for a in found].count(True) == 1
    (fresh,) = [a for a in found if a.fresh]
    assert {(a.response, a.call_id) for a in found} == {(None, fresh.call_id)}


@pytest.mark.requirement("S2-102")
@pytest.mark.requirement("S2-103")
@pytest.mark.requirement("C-47")
async def test_every_key_of_a_call_finds_it_again(calls):
    first = await done(calls, "provider:1", "hash:1")
    assert await again(calls, "provider:1", "hash:1") == first.call_id
    assert await again(calls, "hash:1") == first.call_id


@pytest.mark.requirement("C-48")
async def test_only_the_first_key_is_looked_up(calls):
    first = await done(calls, "provider:1", "hash:1")
    second = await done(calls, "provider:2", "hash:1")
    assert await again(calls, "provider:2", "hash:1") == second.call_id
    assert await again(calls, "hash:1") == first.call_id  # a key answers one call at a time


@pytest.mark.requirement("C-15")
@pytest.mark.requirement("S2-106")
async def test_an_unrepeatable_answer_passes_its_key_to_the_next_call(calls):
    first = await done(calls, "k", "h", response=LOST)
    assert await again(calls, "k") is None
    second = await admit(calls, "k", "h")
    assert await again(calls, "k") == second.call_id
    assert await again(calls, "h") == second.call_id
    assert (await calls.known(first)).response == LOST  # by its own id a call always has its answer
    await answer(calls, second)
    assert await again(calls, "k") == second.call_id


@pytest.mark.parametrize(("repeatable", "life_s"), [(False, DAY), (True, HOUR)])
async def test_a_key_lives_a_day_and_of_a_repeatable_call_an_hour(calls, hands, repeatable, life_s):
    first = await admit(calls, "k", repeatable=repeatable)
    hands.pass_s(2 * DAY)
    assert await again(calls, "k") == first.call_id  # it still runs
    await answer(calls, first)
    hands.pass_s(life_s)
    assert await again(calls, "k") == first.call_id
    hands.pass_s(1)
    assert await again(calls, "k") is None
    await admit(calls, "k")
    assert (await calls.known(first)).response == DONE


@pytest.mark.requirement("S2-105")
@pytest.mark.requirement("C-26")
async def test_of_101_calls_the_least_used_is_deleted(calls):
    made = [await done(calls, f"p{n}", f"h{n}") for n in range(100)]
    assert (
        await again(calls, "h0") == made[0].call_id
    )  # the hit renews it: true LRU, under both of its keys
    other = await done(calls, "p100", "h100")
    assert await again(calls, "p0") == made[0].call_id
    assert await again(calls, "p1") is None
    assert await again(calls, "h1") is None
    assert await again(calls, "p2") == made[2].call_id
    assert await again(calls, "p100") == other.call_id
    assert (await calls.get(made[1].call_id))["response"] is not None  # the key went, not the call


async def test_a_refused_admission_is_a_hit_too(db, hands):
    calls = call_store(db, hands, session_calls=2)
    first, second = await done(calls, "a"), await done(calls, "b")
    assert not (await calls.admit(a_call(), "local", keys=["a"])).fresh
    await done(calls, "c")
    assert await again(calls, "a") == first.call_id
    assert await again(calls, "b") is None
    assert (await calls.known(second)) is not None


async def test_keys_of_open_calls_stay_and_an_answer_counts_as_use(db, hands):
    calls = call_store(db, hands, session_calls=2)
    slow = await admit(calls, "slow")
    for n in range(5):
        await done(calls, f"k{n}")
    assert await again(calls, "slow") == slow.call_id
    await answer(calls, slow)
    assert [await again(calls, key) is not None for key in ("k3", "k4", "slow")] == [
        False,
        True,
        True,
    ]


async def test_sessions_do_not_crowd_each_other(db, hands):
    calls = call_store(db, hands, session_calls=1)
    mine = await done(calls, "k", session="mine")
    for n in range(3):
        await done(calls, f"k{n}", session="other")
        await done(calls, f"k{n}", session="mine", user_id="other")
    assert await again(calls, "k", session="mine") == mine.call_id


async def test_a_key_outlives_restarts_and_a_clock_that_is_put_back(db, calls, hands):
    first = await done(calls, "k")
    hands.reboot(off_s=10.0)
    hands.wall -= 30 * DAY
    after = call_store(db, hands)
    assert await again(after, "k") == first.call_id
    hands.boot += DAY + 1
    assert await again(after, "k") is None
