"""Outbox and inbox: order, bounds, ages over a reboot, and one transaction for what belongs
together.
"""

import asyncio

import pytest

from edge.storage.inbox import KEEP_S, Arrival, Inbox
from edge.storage.outbox import POLICIES, Outbox, OutboxLane, OutboxPolicy
from edge.storage.size_bounds import Bounds
from edge.storage.sqlite.database import MIB, DiskUnavailable
from edge.storage.sqlite.errors import UplinkBusy
from tests.unit.storage.support import open_db


@pytest.fixture
def outbox(db, hands):
    return Outbox(db, hands.clock)


@pytest.fixture
def inbox(db, hands):
    return Inbox(db, hands.clock)


async def put(outbox, lane, call_id, *, body=None, ttl_s=100.0, kind="call"):
    return await outbox.put(
        lane, kind, call_id, topic="t", body=body or {"id": call_id}, ttl_s=ttl_s
    )


def arrival(kind, call_id="c1", *, body=None, ttl_s=100.0, **more):
    return Arrival(kind, call_id, body or {}, ttl_s, **more)


# ------------------------------------------------------------------ outbox


async def test_the_outbox_keeps_the_order_in_which_things_were_put(outbox):
    puts = await asyncio.gather(*(put(outbox, "call", f"c{n}", body={"n": n}) for n in range(50)))
    rows = await outbox.load()
    assert [row.id for row in rows] == [f"c{n}" for n in range(50)]
    assert [row.seq for row in rows] == [p.seq for p in puts] == sorted(p.seq for p in puts)
    assert await outbox.body(puts[7].seq) == {"n": 7}
    await outbox.remove([puts[7].seq], failed=pytest.fail)
    assert await outbox.body(puts[7].seq) is None
    assert await outbox.count() == 49


async def test_a_call_put_twice_is_one_row_with_its_first_body(outbox):
    first = await put(outbox, "call", "c1", body={"n": 1})
    second = await put(outbox, "call", "c1", body={"n": 2})
    assert first.seq == second.seq
    assert await outbox.body(first.seq) == {"n": 1}
    assert (await put(outbox, "tell", "c1", kind="delivery")).seq != first.seq


async def test_full_lanes_refuse_calls_and_drop_the_oldest_facts(db, hands):
    outbox = Outbox(db, hands.clock, calls=Bounds(3), tells=Bounds(3))
    for n in range(3):
        await put(outbox, "call", f"c{n}")
    with pytest.raises(UplinkBusy, match="3 calls wait"):
        await put(outbox, "call", "c3")
    reported = [await put(outbox, "tell", f"d{n}", kind="delivery") for n in range(5)]
    assert [p.dropped for p in reported] == [(), (), (), (reported[0].seq,), (reported[1].seq,)]
    assert [row.id for row in await outbox.load() if row.lane == "tell"] == ["d2", "d3", "d4"]


async def test_an_answer_is_never_dropped_however_many_wait(db, hands):
    outbox = Outbox(db, hands.clock, calls=Bounds(2, 100), tells=Bounds(2, 100))
    puts = [
        await put(outbox, "answer", f"a{n}", kind="result", body={"x": "x" * 60}) for n in range(6)
    ]
    assert [p.dropped for p in puts] == [()] * 6
    assert [row.id for row in await outbox.load()] == [f"a{n}" for n in range(6)]
    assert POLICIES == {
        OutboxLane.CALL: OutboxPolicy.REFUSE,
        OutboxLane.ANSWER: OutboxPolicy.HOLD,
        OutboxLane.TELL: OutboxPolicy.DROP_OLDEST,
    }


async def test_a_lane_is_bounded_in_bytes_too(db, hands):
    outbox = Outbox(db, hands.clock, calls=Bounds(9, 1000), tells=Bounds(9, 1000))
    await put(outbox, "call", "c1", body={"x": "x" * 600})
    with pytest.raises(UplinkBusy):
        await put(outbox, "call", "c2", body={"x": "x" * 600})
    await put(outbox, "call", "c3", body={"x": "x" * 100})


async def test_a_full_store_is_a_busy_uplink(tmp_path, hands):
    db = await open_db(tmp_path / "small", max_bytes=2 * MIB)
    outbox, inbox = Outbox(db, hands.clock), Inbox(db, hands.clock)
    with pytest.raises(UplinkBusy, match="2 MiB"):
        for n in range(100):
            await put(outbox, "call", f"c{n}", body={"x": "x" * 50_000})
    with pytest.raises(UplinkBusy):
        await inbox.take([arrival("call")])
    await inbox.take([arrival("result", "c0", closes=True)])  # it frees more than it needs
    await db.close()


@pytest.mark.requirement("I11-disk-code")
async def test_a_disk_that_takes_nothing_is_not_a_full_outbox(tmp_path, hands, monkeypatch):
    db = await open_db(tmp_path / "small")

    async def full(_work, **_):
        raise DiskUnavailable("the disk is full")

    monkeypatch.setattr(db, "write", full)
    with pytest.raises(DiskUnavailable):
        await put(Outbox(db, hands.clock), "call", "c")
    await db.close()


async def test_rows_have_age_and_remaining_life_and_interactive_ones_end_at_reboot(
    db, hands, outbox
):
    await put(outbox, "call", "quick", ttl_s=60.0)
    await put(outbox, "call", "patient", ttl_s=3600.0)
    hands.pass_s(20)
    assert [(r.age_s, r.left_s) for r in await outbox.load()] == [(20.0, 40.0), (20.0, 3580.0)]
    hands.reboot(off_s=10.0)
    after = Outbox(db, hands.clock)
    assert [(r.age_s, r.left_s) for r in await after.load()] == [(30.0, 0.0), (30.0, 3570.0)]


# ------------------------------------------------------------------ inbox


async def test_an_arrival_stays_until_it_is_handled_and_comes_back_in_order(inbox):
    bodies = [
        arrival("accepted"),
        arrival("progress", body={"text": "1"}),
        arrival("progress", body={"text": "1"}),
    ]
    taken = await inbox.take([*bodies, arrival("result", body={"r": 1})])
    assert [row.kind for row in await inbox.unhandled()] == [
        "accepted",
        "progress",
        "progress",
        "result",
    ]
    for t in taken[:3]:
        await inbox.handled(t.seq)
    (left,) = await inbox.unhandled()
    assert (left.kind, left.id, left.body) == ("result", "c1", {"r": 1})
    await inbox.handled(left.seq)
    await inbox.handled(12345)
    assert await inbox.unhandled() == []


async def test_a_second_copy_is_seen_before_and_after_the_first_was_handled(inbox):
    (first,) = await inbox.take([arrival("call")])
    assert (await inbox.take([arrival("call")]))[0].seq is None
    await inbox.handled(first.seq)
    assert (await inbox.take([arrival("call")]))[0].seq is None
    both = await inbox.take([arrival("result"), arrival("result")])
    assert [t.seq is None for t in both] == [False, True]


async def test_a_second_copy_of_an_invocation_gets_the_answer_we_gave(inbox, outbox):
    (first,) = await inbox.take([arrival("call")])
    await inbox.handled(first.seq)
    await outbox.put("answer", "result", "c1", topic="r", body={"a": 1}, ttl_s=100.0)
    await outbox.put("answer", "result", "c1", topic="r", body={"a": 2}, ttl_s=100.0)
    assert (await inbox.take([arrival("call")]))[0].answer == {"a": 1}


async def test_what_a_message_means_for_our_call_is_stored_with_it(inbox, outbox):
    await put(outbox, "call", "c1")
    await put(outbox, "call", "c2")
    await inbox.take([arrival("accepted", "c1", accepts=True)])
    assert [(r.id, r.accepted) for r in await outbox.load()] == [("c1", True), ("c2", False)]
    await inbox.take([arrival("result", "c1", closes=True)])
    assert [r.id for r in await outbox.load()] == ["c2"]


async def test_a_full_inbox_takes_nothing_until_something_is_handled(db, hands):
    inbox = Inbox(db, hands.clock, bounds=Bounds(2))
    taken = await inbox.take([arrival("progress"), arrival("progress")])
    with pytest.raises(UplinkBusy, match="2 messages"):
        await inbox.take([arrival("progress")])
    await inbox.handled(taken[0].seq)
    third, fourth = await inbox.take([arrival("progress"), arrival("progress")])
    assert (third.held, fourth.seq, fourth.held) == (
        "",
        None,
        "2 messages from the cloud wait to be handled",
    )


@pytest.mark.parametrize("bound", [Bounds(2), Bounds(1000, 20)])
async def test_too_many_waiting_answers_hold_back_only_new_invocations(db, hands, outbox, bound):
    inbox = Inbox(db, hands.clock, answers=bound)
    await inbox.take([arrival("call", "old")])
    await put(outbox, "call", "ours")
    puts = [await put(outbox, "answer", f"a{n}", kind="result") for n in range(2)]
    with pytest.raises(UplinkBusy, match="2 answers wait"):
        await inbox.take([arrival("call", "new")])
    batch = [
        arrival("call", "new"),
        arrival("call", "old"),
        arrival("cancel", "new"),
        arrival("cancel", "old"),
        arrival("accepted", "ours", accepts=True),
        arrival("progress", "ours", accepts=True),
        arrival("result", "ours", closes=True),
    ]
    taken = await inbox.take(batch)
    assert [bool(t.held) for t in taken] == [True, False, True, False, False, False, False]
    assert [row.kind for row in await inbox.unhandled()] == [
        "call",
        "cancel",
        "result",
    ]
    assert [row.lane for row in await outbox.load()] == ["answer", "answer"]
    await outbox.remove([puts[0].seq], failed=pytest.fail)
    taken = await inbox.take([batch[0], batch[2]])
    assert [t.seq is not None for t in taken] == [True, True]  # in order, and once


async def test_a_full_disk_takes_only_what_ends_own_calls(tmp_path, hands):
    db = await open_db(tmp_path / "small", max_bytes=2 * MIB)
    outbox, inbox = Outbox(db, hands.clock), Inbox(db, hands.clock)
    await inbox.take([arrival("call", "old")])
    with pytest.raises(UplinkBusy):
        for n in range(100):
            await put(outbox, "call", f"c{n}", body={"x": "x" * 50_000})
    with pytest.raises(UplinkBusy, match="2 MiB"):
        await inbox.take([arrival("call", "new")])
    taken = await inbox.take(
        [arrival("call", "new"), arrival("result", "c0", closes=True), arrival("call", "old")]
    )
    assert ["2 MiB" in t.held for t in taken] == [True, False, False]
    assert "c0" not in [row.id for row in await outbox.load()]
    await db.close()


async def test_handled_ids_are_forgotten_ten_minutes_after_their_life(inbox, hands):
    (old,) = await inbox.take([arrival("call", "old", ttl_s=10.0)])
    (new,) = await inbox.take([arrival("call", "new", ttl_s=5000.0)])
    await inbox.take([arrival("call", "open", ttl_s=10.0)])
    await inbox.handled(old.seq)
    await inbox.handled(new.seq)
    hands.pass_s(10 + KEEP_S - 1)
    await inbox.trim()
    assert (await inbox.take([arrival("call", "old")]))[0].seq is None
    hands.pass_s(2)
    await inbox.trim()
    assert (await inbox.take([arrival("call", "old")]))[0].seq is not None
    assert (await inbox.take([arrival("call", "new")]))[0].seq is None
    assert "open" in [row.id for row in await inbox.unhandled()]


async def test_the_memory_of_handled_ids_is_bounded(inbox, monkeypatch):
    monkeypatch.setattr("edge.storage.inbox.KEEP", Bounds(5))
    for n in range(12):
        (taken,) = await inbox.take([arrival("result", f"r{n}")])
        await inbox.handled(taken.seq)
    await inbox.trim()
    fresh = [(await inbox.take([arrival("result", f"r{n}")]))[0].seq is not None for n in range(12)]
    assert fresh == [True] * 7 + [False] * 5


async def test_an_invocation_read_back_knows_what_is_left_of_its_life(inbox, hands):
    await inbox.take([arrival("call", ttl_s=120.0, reply_to="r", as_json=True)])
    hands.pass_s(50)
    (row,) = await inbox.unhandled()
    assert (row.left_s, row.reply_to, row.as_json) == (70.0, "r", True)
