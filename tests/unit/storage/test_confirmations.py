"""Confirmations: a yes counts once, for one call, in its time, and together with the step it
allows; grants stay.
"""

import asyncio

import pytest

from edge.core.call_state import check
from edge.core.grants import Asked, Consumed, Consumption, Grant, Granted
from edge.storage.confirmations import Confirmations
from edge.storage.size_bounds import Bounds
from edge.storage.sqlite.database import StoreFull
from tests.unit.storage.support import a_call
from tools_cache.api.tool import ErrorCode, ToolResponse

TAKEN, USED, EXPIRED, MISMATCH = (
    Consumption.TAKEN,
    Consumption.USED,
    Consumption.EXPIRED,
    Consumption.MISMATCH,
)
NO = ToolResponse.failure(ErrorCode.CANCELLED, "off")


@pytest.fixture
def confirmations(db, hands):
    return make(db, hands)


def make(db, hands, **more):
    return Confirmations(db, hands.clock, check, **more)


async def ask(calls, confirmations, token="t1", *, left_s=300.0, **more):
    """A call that waits for its yes."""
    call = a_call(session="s", **more)
    await calls.admit(call, "local", state="AWAITING_CONFIRMATION")
    await confirmations.ask(Asked(call.call_id, token, call.tool, "h1", call.user_id, "s", left_s))
    return call


async def yes(confirmations, token="t1", *, allow=True, **more):
    asked = {"tool": "notes:list", "args_hash": "h1", "user_id": "local", "session": "s", **more}
    return (await confirmations.consume(token, allow=allow, **asked)).outcome


@pytest.mark.requirement("C-14")
@pytest.mark.requirement("S2-97")
async def test_of_many_users_of_a_token_one_admits_the_call(calls, confirmations):
    call = await ask(calls, confirmations)
    found = await asyncio.gather(*(yes(confirmations) for _ in range(20)))
    assert sorted(found) == sorted([TAKEN] + [USED] * 19)
    steps = (await calls.get(call.call_id))["steps"]
    assert [(s["state"], s["note"]) for s in steps] == [
        ("AWAITING_CONFIRMATION", ""),
        ("ADMITTED", "confirmed"),
    ]


async def test_a_no_uses_the_token_up_and_admits_nothing(calls, confirmations):
    call = await ask(calls, confirmations)
    assert await yes(confirmations, allow=False) is TAKEN
    assert await yes(confirmations) is USED
    assert (await calls.get(call.call_id))["state"] == "AWAITING_CONFIRMATION"


@pytest.mark.requirement("S2-96")
@pytest.mark.parametrize(
    "other", [{"tool": "notes:add"}, {"args_hash": "h2"}, {"session": "s2"}, {"user_id": "eve"}]
)
async def test_a_token_for_another_call_is_a_mismatch_and_stays_open(calls, confirmations, other):
    call = await ask(calls, confirmations)
    assert await yes(confirmations, **other) is MISMATCH
    assert (await calls.get(call.call_id))["state"] == "AWAITING_CONFIRMATION"
    assert await yes(confirmations) is TAKEN


async def test_another_user_learns_nothing_of_a_used_token(calls, confirmations):
    call = await ask(calls, confirmations)
    assert await confirmations.consume("t1", allow=True, user_id="eve") == Consumed(MISMATCH)
    assert await confirmations.consume("t1", allow=True, user_id="local") == Consumed(
        TAKEN, call.call_id
    )
    assert await confirmations.consume("t1", allow=True, user_id="eve") == Consumed(MISMATCH)
    assert await confirmations.consume("t1", allow=True, user_id="local", session="s2") == Consumed(
        USED, call.call_id
    )


@pytest.mark.requirement("S2-95")
async def test_a_token_lives_five_minutes_whatever_the_wall_clock_does(calls, confirmations, hands):
    await ask(calls, confirmations, "in time")
    await ask(calls, confirmations, "late")
    hands.pass_s(299)
    hands.wall += 86_400
    assert await yes(confirmations, "in time") is TAKEN
    hands.wall -= 3 * 86_400
    hands.pass_s(2)
    assert await yes(confirmations, "late") is EXPIRED
    assert await yes(confirmations, "never seen") is EXPIRED
    assert await confirmations.open() == []


async def test_after_a_reboot_a_yes_counts_only_when_its_age_is_certain(
    db, calls, confirmations, hands
):
    for token in ("t1", "t2", "t3"):
        await ask(calls, confirmations, token)
    hands.pass_s(10)
    hands.reboot(off_s=20.0)
    after = make(db, hands)
    assert [(a.token_hash, a.left_s) for a in await after.open()] == [
        ("t1", 270.0),
        ("t2", 270.0),
        ("t3", 270.0),
    ]
    assert await yes(after, "t1") is TAKEN
    hands.wall -= 3600  # it was put back: nobody knows how long we were off
    assert await yes(after, "t2") is EXPIRED
    hands.wall += 3600
    hands.synced = False
    assert await yes(after, "t2") is EXPIRED
    hands.synced = True
    hands.pass_s(271)
    assert await yes(after, "t3") is EXPIRED


async def test_the_wearers_own_answer_goes_by_the_call(calls, confirmations):
    call = await ask(calls, confirmations)
    assert await confirmations.consume_call("nobody", allow=True) == Consumed(EXPIRED)
    assert await confirmations.consume_call(call.call_id, allow=True) == Consumed(
        TAKEN, call.call_id
    )
    assert await confirmations.consume_call(call.call_id, allow=True) == Consumed(
        USED, call.call_id
    )
    assert await yes(confirmations) is USED


async def test_a_repeated_question_makes_the_older_token_void(calls, confirmations):
    call = await ask(calls, confirmations, "old")
    await confirmations.ask(Asked(call.call_id, "new", call.tool, "h1", "local", "s", 300.0))
    assert [a.token_hash for a in await confirmations.open()] == ["new"]
    assert await yes(confirmations, "old") is EXPIRED
    assert await yes(confirmations, "new") is TAKEN


async def test_a_yes_to_a_call_that_waits_no_more_runs_nothing(calls, confirmations):
    gone = await ask(calls, confirmations, "cancelled")
    await calls.finish(gone.call_id, "CANCELLED", NO)
    await confirmations.ask(Asked("never admitted", "unknown call", "t", "h1", "local", "s", 300.0))
    assert await confirmations.open() == []
    assert await yes(confirmations, "cancelled") is EXPIRED
    assert await yes(confirmations, "unknown call", tool=None) is EXPIRED
    assert (await calls.get(gone.call_id))["state"] == "CANCELLED"


async def test_open_questions_are_bounded_and_those_that_are_over_make_room(db, calls, hands):
    confirmations = make(db, hands, bounds=Bounds(100, open=3))
    first = await ask(calls, confirmations, "t1")
    await ask(calls, confirmations, "t2", left_s=100.0)
    await ask(calls, confirmations, "t3")
    call = a_call()
    question = Asked(call.call_id, "t4", call.tool, "h1", "local", "s", 300.0)
    with pytest.raises(StoreFull, match="3 questions wait"):
        await confirmations.ask(question)
    hands.pass_s(101)
    await confirmations.ask(question)
    with pytest.raises(StoreFull):
        await ask(calls, confirmations, "t5")
    await calls.finish(first.call_id, "CANCELLED", NO)
    await ask(calls, confirmations, "t6")
    await yes(confirmations, "t3")
    await ask(calls, confirmations, "t7")


async def test_used_tokens_are_known_for_a_day_and_bounded(db, calls, confirmations, hands):
    for n in range(5):
        await ask(calls, confirmations, f"t{n}")
        assert await yes(confirmations, f"t{n}") is TAKEN
    hands.pass_s(24 * 3600 - 10)
    await ask(calls, confirmations, "other")
    assert await yes(confirmations, "t0") is USED
    await ask(calls, make(db, hands, bounds=Bounds(2, open=100)), "another")
    assert [await yes(confirmations, f"t{n}") for n in range(5)] == [EXPIRED] * 3 + [USED] * 2
    hands.pass_s(20)
    await ask(calls, confirmations, "third")
    assert await yes(confirmations, "t4") is EXPIRED


# ------------------------------------------------------------------ grants


async def test_always_and_never_stay_until_they_are_revoked(db, confirmations, hands):
    assert (await confirmations.granted("local", "notes:add")).grant is Grant.ONCE
    await confirmations.grant("local", "notes:add", Granted(Grant.ALWAYS))
    hands.pass_s(5)
    await confirmations.grant("local", "bank:pay", Granted(Grant.NEVER))
    await confirmations.grant("eve", "notes:add", Granted(Grant.NEVER))
    after = make(db, hands)
    assert (await after.granted("local", "notes:add")).grant is Grant.ALWAYS
    assert (await after.granted("local", "bank:pay")).grant is Grant.NEVER
    assert await after.grants("local") == [
        {
            "tool": "bank:pay",
            "grant": "never",
            "since_wall": hands.wall,
            "definition": "",
            "origin": "",
        },
        {
            "tool": "notes:add",
            "grant": "always",
            "since_wall": hands.wall - 5,
            "definition": "",
            "origin": "",
        },
    ]
    await after.grant("local", "notes:add", Granted(Grant.ONCE))
    assert (await after.granted("local", "notes:add")).grant is Grant.ONCE
    assert [g["tool"] for g in await after.grants("local")] == ["bank:pay"]


async def test_a_new_grant_beyond_the_bound_is_refused(confirmations, monkeypatch):
    monkeypatch.setattr("edge.storage.confirmations.GRANT_ROWS", 2)
    await confirmations.grant("local", "a", Granted(Grant.NEVER))
    await confirmations.grant("local", "b", Granted(Grant.ALWAYS))
    with pytest.raises(StoreFull, match="revoke some"):
        await confirmations.grant("local", "c", Granted(Grant.ALWAYS))
    await confirmations.grant("local", "b", Granted(Grant.NEVER))
    assert [g["tool"] for g in await confirmations.grants("local")] == ["a", "b"]
