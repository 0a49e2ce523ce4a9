"""The call store: one call, one answer, whatever happens twice, and ages that no clock can fool."""

import asyncio

import pytest

from edge.core.call_state import UnlistedStep
from edge.store.calls import UnknownCall
from tests.unit.store.support import Hands, a_call, call_store, open_db
from tools_cache.tool import ErrorCode, ToolResponse

DONE = ToolResponse(data={"text": "bread"}, meta={"delivery": "shown"})


@pytest.fixture
async def db(tmp_path):
    database = await open_db(tmp_path)
    yield database
    await database.close()


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture
def calls(db, hands):
    return call_store(db, hands)


async def test_of_many_admissions_of_one_call_exactly_one_is_fresh(calls):
    call = a_call()
    found = await asyncio.gather(*(calls.admit(call, "local") for _ in range(20)))
    assert [a.fresh for a in found].count(True) == 1
    assert all(a.response is None for a in found)


async def test_an_idempotency_key_replays_its_answer_for_its_user_only(calls):
    first = a_call(idempotency_key="k")
    assert (await calls.admit(first, "local")).fresh
    await calls.advance(first.call_id, "RUNNING")
    assert await calls.finish(first.call_id, "ANSWERED", DONE)
    replay = await calls.admit(a_call(idempotency_key="k"), "local")
    assert (replay.fresh, replay.response) == (False, DONE)
    assert (await calls.admit(a_call(idempotency_key="k", user_id="other"), "local")).fresh
    assert (await calls.admit(a_call(), "local")).fresh


async def test_a_key_is_free_again_after_its_day(calls, hands):
    first = a_call(idempotency_key="k")
    await calls.admit(first, "local")
    await calls.advance(first.call_id, "RUNNING")
    await calls.finish(first.call_id, "ANSWERED", DONE)
    hands.pass_s(24 * 3600 + 1)
    assert await calls.known(a_call(idempotency_key="k")) is None
    assert (await calls.admit(a_call(idempotency_key="k"), "local")).fresh
    assert (await calls.known(first)).response == DONE


async def test_known_looks_without_admitting(calls):
    call = a_call()
    assert await calls.known(call) is None
    assert await calls.known(call) is None
    await calls.admit(call, "local")
    assert (await calls.known(call)).fresh is False


async def test_the_first_answer_stands(calls):
    call = a_call()
    await calls.admit(call, "cloud")
    await calls.advance(call.call_id, "RUNNING")
    late = ToolResponse.failure(ErrorCode.TIMEOUT, "late")
    outcomes = await asyncio.gather(
        calls.finish(call.call_id, "ANSWERED", DONE), calls.finish(call.call_id, "FAILED", late)
    )
    assert outcomes == [True, False]
    assert (await calls.known(call)).response == DONE


async def test_steps_follow_the_table_and_unknown_calls_are_named(calls):
    call = a_call()
    await calls.admit(call, "local")
    with pytest.raises(UnlistedStep):
        await calls.advance(call.call_id, "DELIVERED")
    with pytest.raises(UnlistedStep):
        await calls.finish(call.call_id, "DELIVERED", DONE)
    assert (await calls.get(call.call_id))["state"] == "ADMITTED"
    assert (await calls.known(call)).response is None
    with pytest.raises(UnknownCall):
        await calls.advance("nobody", "RUNNING")


async def test_unfinished_calls_come_back_oldest_first_with_what_is_left_of_their_life(calls, hands):
    old, young = a_call(ttl_s=100.0), a_call(ttl_s=50.0, idempotency_key="k", turn_id="t")
    await calls.admit(old, "cloud")
    hands.pass_s(30)
    await calls.admit(young, "local")
    await calls.advance(young.call_id, "RUNNING")
    hands.pass_s(10)
    found = await calls.unfinished()
    assert [(c.call_id, state, route) for c, state, route in found] == [
        (old.call_id, "ADMITTED", "cloud"), (young.call_id, "RUNNING", "local"),
    ]  # fmt: skip
    assert [c.ttl_s for c, *_ in found] == [60.0, 40.0]
    assert found[1][0].idempotency_key == "k"
    await calls.finish(young.call_id, "ANSWERED", DONE)
    assert [c.call_id for c, *_ in await calls.unfinished()] == [old.call_id]


async def test_after_a_reboot_interactive_calls_are_over_and_patient_ones_go_on(db, calls, hands):
    quick, patient = a_call(ttl_s=60.0), a_call(ttl_s=3600.0)
    await calls.admit(quick, "cloud")
    await calls.admit(patient, "cloud")
    hands.reboot(off_s=20.0)
    after = call_store(db, hands)
    assert [c.ttl_s for c, *_ in await after.unfinished()] == [0.0, 3580.0]


async def test_a_wall_clock_nobody_set_ages_nothing(db, calls, hands):
    patient = a_call(ttl_s=3600.0)
    await calls.admit(patient, "cloud")
    hands.wall += 56 * 365 * 86400.0  # a jump within a boot
    assert [c.ttl_s for c, *_ in await calls.unfinished()] == [3600.0]
    hands.synced = False
    hands.reboot()
    hands.boot = 100.0
    assert [c.ttl_s for c, *_ in await call_store(db, hands).unfinished()] == [3500.0]  # this boot has seen 100 s of it


async def test_one_calls_whole_story_and_the_recent_ones(calls, hands):
    first, second = a_call(), a_call()
    await calls.admit(first, "local")
    await calls.advance(first.call_id, "RUNNING")
    await calls.finish(first.call_id, "FAILED", ToolResponse.failure(ErrorCode.OFFLINE, "no net"))
    await calls.admit(second, "cloud")
    hands.pass_s(5)
    story = await calls.get(first.call_id)
    assert (story["request"]["args"], story["response"]["error"]["code"], story["age_s"]) == ({"n": 1}, "OFFLINE", 5.0)
    recent = await calls.recent(10, pending=False)
    assert [(r["call_id"], r["ok"], r["code"]) for r in recent] == [
        (second.call_id, None, None), (first.call_id, False, "OFFLINE"),
    ]  # fmt: skip
    assert [r["call_id"] for r in await calls.recent(10, pending=True)] == [second.call_id]
    assert len(await calls.recent(1, pending=False)) == 1
    assert await calls.get("nobody") is None


async def test_the_answered_past_is_bounded_and_the_open_present_is_kept(db, hands):
    calls = call_store(db, hands, keep_rows=10)
    open_call = a_call()
    await calls.admit(open_call, "cloud")
    for _ in range(64):
        call = a_call()
        await calls.admit(call, "local")
        await calls.advance(call.call_id, "RUNNING")
        await calls.finish(call.call_id, "ANSWERED", DONE)
    kept = await calls.recent(1000, pending=False)
    assert len(kept) == 11
    assert kept[0]["call_id"] == call.call_id
    assert await calls.get(open_call.call_id) is not None


async def test_the_answered_past_is_bounded_in_bytes(db, hands):
    calls = call_store(db, hands, keep_bytes=50_000)
    for _ in range(32):
        call = a_call()
        await calls.admit(call, "local")
        await calls.advance(call.call_id, "RUNNING")
        await calls.finish(call.call_id, "ANSWERED", ToolResponse(data="x" * 10_000))
    assert len(await calls.recent(1000, pending=False)) == 4
