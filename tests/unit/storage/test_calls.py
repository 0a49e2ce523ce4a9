"""The call store: one call, one answer, whatever happens twice, and ages that no clock can fool."""

import asyncio
import shutil

import pytest
from msgspec.structs import replace

from edge.core.call_state import UnlistedStep
from edge.storage.calls import MOST_MEDIA, Unfinished, UnknownCall
from edge.storage.sqlite.database import StoreFull
from edge.storage.steps import MAX_NOTE, MAX_STEPS, ROW_BYTES
from tests.unit.storage.support import WALL, Hands, a_call, call_store, open_db
from tools_cache.api.tool import CallOrigin, Delivery, DeliveryReport, ErrorCode, Mode, ToolResponse

DONE = ToolResponse(data={"text": "bread"}, meta={"delivery": "shown"})


async def test_of_many_admissions_of_one_call_exactly_one_is_fresh(calls):
    call = a_call()
    found = await asyncio.gather(*(calls.admit(call, "local") for _ in range(20)))
    assert [a.fresh for a in found].count(True) == 1
    assert all(a.response is None for a in found)


async def test_known_looks_without_admitting(calls):
    call = a_call()
    assert await calls.known(call) is None
    assert await calls.known(call) is None
    await calls.admit(call, "local")
    assert (await calls.known(call)).fresh is False


async def test_a_call_of_another_user_is_not_known(calls):
    call = a_call()
    await calls.admit(call, "local")
    assert await calls.known(replace(call, user_id="eve")) is None


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


async def test_unfinished_calls_return_oldest_first_with_their_remaining_life(calls, hands):
    old = a_call(ttl_s=100.0)
    young = a_call(
        ttl_s=50.0,
        idempotency_key="k",
        turn_id="t",
        session="s",
        provider_call_id="toolu_1",
        ordinal=2,
        replayed=True,
        input={"requestState": "s"},
        origin=CallOrigin.VOICE,
        mode=Mode.VOICE,
        user_id="u",
    )
    await calls.admit(old, "cloud")
    hands.pass_s(30)
    await calls.admit(young, "local", keys=["key:k", "hash:1"])
    await calls.advance(young.call_id, "RUNNING")
    hands.pass_s(10)
    found = await calls.unfinished()
    assert found == [
        Unfinished(replace(old, ttl_s=60.0), "ADMITTED", "cloud"),
        Unfinished(
            replace(young, ttl_s=40.0), "RUNNING", "local", keys=("key:k", "hash:1"), attempts=1
        ),
    ]
    await calls.finish(young.call_id, "ANSWERED", DONE)
    assert [u.call.call_id for u in await calls.unfinished()] == [old.call_id]


async def test_after_a_reboot_interactive_calls_are_over_and_patient_ones_go_on(db, calls, hands):
    quick, patient = a_call(ttl_s=60.0), a_call(ttl_s=3600.0)
    await calls.admit(quick, "cloud")
    await calls.admit(patient, "cloud")
    hands.reboot(off_s=20.0)
    after = call_store(db, hands)
    assert [u.call.ttl_s for u in await after.unfinished()] == [0.0, 3580.0]


async def test_a_wall_clock_nobody_set_ages_nothing(db, calls, hands):
    patient = a_call(ttl_s=3600.0)
    await calls.admit(patient, "cloud")
    hands.wall += 56 * 365 * 86400.0  # a jump within a boot
    assert [u.call.ttl_s for u in await calls.unfinished()] == [3600.0]
    hands.synced = False
    hands.reboot()
    hands.boot = 100.0
    assert [u.call.ttl_s for u in await call_store(db, hands).unfinished()] == [
        3500.0
    ]  # this boot has seen 100 s of it


async def test_one_calls_whole_story_and_the_recent_ones(calls, hands):
    first, second = a_call(), a_call()
    await calls.admit(first, "local")
    await calls.advance(first.call_id, "RUNNING")
    await calls.finish(first.call_id, "FAILED", ToolResponse.failure(ErrorCode.OFFLINE, "no net"))
    await calls.admit(second, "cloud")
    hands.pass_s(5)
    story = await calls.get(first.call_id)
    assert (story["request"]["args"], story["response"]["error"]["code"], story["age_s"]) == (
        {"n": 1},
        "OFFLINE",
        5.0,
    )
    recent = await calls.recent(10, pending=False)
    assert [(r["call_id"], r["ok"], r["code"]) for r in recent] == [
        (second.call_id, None, None),
        (first.call_id, False, "OFFLINE"),
    ]
    assert [r["call_id"] for r in await calls.recent(10, pending=True)] == [second.call_id]
    assert len(await calls.recent(1, pending=False)) == 1
    assert await calls.get("nobody") is None


async def test_answered_calls_are_bounded_and_open_ones_stay(db, hands):
    calls = call_store(db, hands, rows=10)
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


async def test_a_late_answer_outlives_many_later_calls(db, hands):
    waited = a_call()
    await call_store(db, hands).admit(waited, "cloud")
    for _ in range(2):  # two daemons: the order of answers outlives one
        calls = call_store(db, hands, rows=10)
        for _ in range(32):
            call = a_call()
            await calls.admit(call, "local")
            await calls.finish(call.call_id, "ANSWERED", DONE)
    calls = call_store(db, hands, rows=10)
    await calls.finish(waited.call_id, "ANSWERED", DONE)
    for _ in range(5):
        call = a_call()
        await calls.admit(call, "local")
        await calls.finish(call.call_id, "ANSWERED", DONE)
    assert (await calls.get(waited.call_id))["response"]["ok"]


async def test_the_answered_past_is_bounded_in_bytes(db, hands):
    calls = call_store(db, hands, bytes=50_000)
    for _ in range(32):
        call = a_call()
        await calls.admit(call, "local")
        await calls.advance(call.call_id, "RUNNING")
        await calls.finish(call.call_id, "ANSWERED", ToolResponse(data="x" * 10_000))
    assert len(await calls.recent(1000, pending=False)) == 4


# ------------------------------------------------------------------ steps


async def test_every_step_is_stored_with_time_and_reason(calls, hands):
    call = a_call()
    await calls.admit(call, "cloud", keys=["key:k"], state="AWAITING_CONFIRMATION")
    hands.pass_s(2)
    await calls.advance(call.call_id, "ADMITTED", note="confirmed on the lens")
    hands.pass_s(0.5)
    await calls.advance(call.call_id, "RUNNING")
    hands.wall -= 86_400  # somebody sets the clock
    hands.pass_s(1)
    await calls.finish(call.call_id, "ANSWERED", DONE)
    story = await calls.get(call.call_id)
    assert [(s["state"], s["after_s"], s["note"]) for s in story["steps"]] == [
        ("AWAITING_CONFIRMATION", 0.0, ""),
        ("ADMITTED", 2.0, "confirmed on the lens"),
        ("RUNNING", 2.5, ""),
        ("ANSWERED", 3.5, ""),
    ]
    assert story["steps"][3]["at_wall"] == WALL + 3.5 - 86_400
    assert (story["keys"], story["attempts"], story["request"]["tool"]) == (
        ["key:k"],
        1,
        "notes:list",
    )
    assert "keys" not in story["request"]


async def test_a_call_begins_only_where_the_table_lets_it(calls):
    call = a_call()
    with pytest.raises(UnlistedStep):
        await calls.admit(call, "local", state="ANSWERED")
    assert await calls.get(call.call_id) is None


async def test_each_start_counts_as_an_attempt(calls):
    call = a_call()
    await calls.admit(call, "cloud")
    for state in ("RUNNING", "PENDING", "RUNNING"):
        await calls.advance(call.call_id, state)
    assert (await calls.unfinished())[0].attempts == 2


async def test_a_call_with_many_steps_keeps_the_first_and_the_newest(calls, db):
    call = a_call()
    await calls.admit(call, "cloud")
    size = "SELECT size FROM calls"
    (empty,) = await db.read(lambda c: c.execute(size).fetchone())
    for n in range(100):
        await calls.advance(call.call_id, "PENDING" if n % 2 else "RUNNING", note="x" * 600)
    steps = (await calls.get(call.call_id))["steps"]
    assert (len(steps), steps[0]["state"], steps[-1]["note"]) == (
        MAX_STEPS,
        "ADMITTED",
        "x" * MAX_NOTE,
    )
    (full,) = await db.read(lambda c: c.execute(size).fetchone())
    assert full - empty == (MAX_STEPS - 1) * (100 + MAX_NOTE)


async def test_steps_count_towards_the_bound_and_go_with_their_call(db, hands):
    calls = call_store(db, hands, bytes=100_000)
    for _ in range(32):
        call = a_call()
        await calls.admit(call, "local", keys=[call.call_id])
        for n in range(50):
            await calls.advance(call.call_id, "PENDING" if n % 2 else "RUNNING", note="x" * 300)
        await calls.finish(call.call_id, "ANSWERED", DONE)
    assert len(await calls.recent(100, pending=False)) == 4
    counts = (
        "SELECT (SELECT count(DISTINCT call) FROM call_steps), "
        "(SELECT count(*) FROM call_keys WHERE call NOT IN (SELECT seq FROM calls))"
    )
    assert tuple(await db.read(lambda c: c.execute(counts).fetchone())) == (4, 0)


# ------------------------------------------------------------------ delivery


@pytest.mark.parametrize("end", ["ANSWERED", "FAILED"])
@pytest.mark.parametrize("word", [Delivery.SHOWN, Delivery.SPOKEN])
async def test_what_was_shown_or_spoken_is_delivered(calls, end, word):
    call = a_call()
    await calls.admit(call, "local")
    await calls.advance(call.call_id, "RUNNING")
    await calls.tell_delivery(call.call_id, DeliveryReport(word))
    assert (await calls.get(call.call_id))[
        "state"
    ] == "RUNNING"  # progress was shown, not yet an answer
    await calls.finish(call.call_id, end, DONE)
    await calls.tell_delivery(call.call_id, DeliveryReport(Delivery.SENT))
    assert (await calls.get(call.call_id))["state"] == end
    await calls.tell_delivery(call.call_id, DeliveryReport(word, downgrade="display→speech"))
    await calls.tell_delivery(call.call_id, DeliveryReport(word))
    story = await calls.get(call.call_id)
    assert (story["state"], [s["state"] for s in story["steps"]].count("DELIVERED")) == (
        "DELIVERED",
        1,
    )
    assert story["delivery"] == word.value
    assert (await calls.known(call)).response == DONE


async def test_a_cancelled_call_keeps_its_last_delivery_and_state(calls):
    call = a_call()
    await calls.admit(call, "local")
    await calls.finish(call.call_id, "CANCELLED", ToolResponse.failure(ErrorCode.CANCELLED, "off"))
    report = DeliveryReport(Delivery.DROPPED, reason="glasses away")
    await calls.tell_delivery(call.call_id, DeliveryReport(Delivery.SHOWN))
    await calls.tell_delivery(call.call_id, report)
    await calls.tell_delivery("nobody", report)
    story = await calls.get(call.call_id)
    assert (story["state"], story["delivery"]) == (
        "CANCELLED",
        {"state": "dropped", "reason": "glasses away"},
    )


# ------------------------------------------------------------------ bounds


async def test_too_many_open_calls_are_refused_and_known_ones_are_still_known(db, hands):
    calls = call_store(db, hands, open=3)
    kept = [a_call() for _ in range(3)]
    for call in kept:
        assert (await calls.admit(call, "cloud")).fresh
    with pytest.raises(StoreFull, match="3 calls wait"):
        await calls.admit(a_call(), "cloud")
    assert (await calls.admit(kept[0], "cloud")).fresh is False
    await calls.finish(kept[0].call_id, "FAILED", DONE)
    assert (await calls.admit(a_call(), "cloud")).fresh


# ------------------------------------------------------------------ whatever was acknowledged is on
# the disk


async def test_after_every_acknowledged_write_a_copy_of_the_files_holds_it(tmp_path, hands):
    """A copy of database and WAL, opened as after a power cut, tells the whole story so far."""
    db = await open_db(tmp_path / "live")
    calls, call = call_store(db, hands), a_call()
    reported: list[str] = []
    for n, write in enumerate(
        (
            calls.admit(call, "local", keys=["k"]),
            calls.advance(call.call_id, "RUNNING"),
            calls.advance(call.call_id, "PENDING"),
            calls.finish(call.call_id, "ANSWERED", DONE),
            calls.tell_delivery(call.call_id, DeliveryReport(Delivery.SHOWN)),
        )
    ):
        await write
        copy = tmp_path / str(n)
        copy.mkdir()
        for name in ("glassd.db", "glassd.db-wal"):
            shutil.copyfile(tmp_path / "live" / name, copy / name)
        there = await open_db(copy)
        story = await call_store(there, hands).get(call.call_id)
        assert story == await calls.get(call.call_id)
        reported.append(story["state"])
        assert (await call_store(there, hands).known(a_call(), keys=["k"])).call_id == call.call_id
        await there.close()
    assert reported == ["ADMITTED", "RUNNING", "PENDING", "ANSWERED", "DELIVERED"]
    await db.close()


async def test_lives_too_short_to_trim_in_between_do_not_add_up(tmp_path):
    for life in range(6):
        db = await open_db(tmp_path)
        store = call_store(db, Hands(), rows=4)
        for n in range(3):
            call = a_call(call_id=f"{life}-{n}")
            await store.admit(call, "local")
            await store.advance(call.call_id, "RUNNING")
            await store.finish(call.call_id, "ANSWERED", ToolResponse(data=n))
        kept = await store.recent(100, pending=False)
        await db.close()
    assert len(kept) <= 4 + 3


async def test_the_size_of_a_call_counts_each_step(db, hands):
    calls = call_store(db, hands)
    await calls.admit(a_call(call_id="c1"), "local")

    def size(connection):
        sql = "SELECT size - length(request) FROM calls WHERE call_id = 'c1'"
        return connection.execute(sql).fetchone()[0]

    before = await db.read(size)
    await calls.advance("c1", "RUNNING")
    assert (before, await db.read(size)) == (ROW_BYTES, 2 * ROW_BYTES)


SECRET_CALL = {"args": {"ssid": "Home", "password": "hunter22"}}
KEPT = {"ssid": "Home", "password": "***"}


async def test_a_secret_argument_stays_only_until_the_call_has_run(calls, tmp_path):
    call = a_call(**SECRET_CALL)
    await calls.admit(call, "glasses", secret=("password",))
    assert (await calls.get(call.call_id))["request"]["args"] == KEPT, "nobody reads it"
    (open_call,) = await calls.unfinished()
    assert open_call.call.args == call.args, "it runs after a restart, too"
    await calls.advance(call.call_id, "RUNNING")
    assert await calls.finish(call.call_id, "ANSWERED", DONE)
    assert (await calls.get(call.call_id))["request"]["args"] == KEPT
    assert "hidden" not in (await calls.get(call.call_id))["request"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"***" in path.read_bytes() for path in files)
    assert not any(b"hunter22" in path.read_bytes() for path in files)


async def test_a_secret_argument_of_a_call_stored_with_its_answer_is_never_on_disk(
    calls, db, tmp_path
):
    call = a_call(**SECRET_CALL)
    failed = []
    await calls.admit_behind(call, "glasses", keys=(), failed=failed.append, secret=("password",))
    await calls.finish_behind(call.call_id, "ANSWERED", DONE, delivery=None, failed=failed.append)
    assert (await calls.get(call.call_id))["request"]["args"] == KEPT
    assert failed == []
    await db.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"Home" in path.read_bytes() for path in files)
    assert not any(b"hunter22" in path.read_bytes() for path in files)


def photo_answer(at):
    picture = {"type": "image", "data": f"{at}" * 400, "mimeType": "image/jpeg"}
    said = {"type": "text", "text": "A photo was taken"}
    return ToolResponse(data={"bytes": 300}, meta={"content": [said, picture]})


async def test_only_the_newest_answers_keep_their_pictures(calls, db):
    made = [a_call(idempotency_key=f"k{at}") for at in range(MOST_MEDIA + 2)]
    for at, call in enumerate(made):
        await calls.admit(call, "glasses", keys=(f"key:k{at}",))
        await calls.advance(call.call_id, "RUNNING")
        await calls.finish(call.call_id, "ANSWERED", photo_answer(at))
    gone = {"type": "text", "text": "The picture is not kept any longer"}
    for at, call in enumerate(made):
        again = (await calls.known(call, keys=(f"key:k{at}",))).response
        expected = photo_answer(at)
        assert again.ok
        assert again.data == expected.data
        assert again.meta["content"][0] == expected.meta["content"][0]
        kept = at >= 2
        assert again.meta["content"][1] == (expected.meta["content"][1] if kept else gone)
    first, last = [
        await db.read(
            lambda c, n=n: c.execute(
                "SELECT size FROM calls WHERE call_id = ?", (made[n].call_id,)
            ).fetchone()["size"]
        )
        for n in (0, -1)
    ]
    assert last - first > 300, "what is counted is what is there"


async def test_sounds_are_kept_no_longer_than_pictures(calls):
    sound = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    first = a_call()
    await calls.admit(first, "glasses")
    await calls.finish(first.call_id, "ANSWERED", ToolResponse(meta={"content": [sound]}))
    for at in range(MOST_MEDIA):
        call = a_call()
        await calls.admit(call, "glasses")
        await calls.finish(call.call_id, "ANSWERED", photo_answer(at))
    (block,) = (await calls.known(first)).response.meta["content"]
    assert block == {"type": "text", "text": "The sound is not kept any longer"}


async def test_an_answer_that_only_speaks_of_a_picture_stays(calls):
    words = ToolResponse(data={"text": '"type":"image" and {"type":"image"}'})
    first = a_call()
    await calls.admit(first, "local")
    await calls.finish(first.call_id, "ANSWERED", words)
    for at in range(MOST_MEDIA + 1):
        call = a_call()
        await calls.admit(call, "local")
        await calls.finish(call.call_id, "ANSWERED", photo_answer(at))
    assert (await calls.known(first)).response == words
