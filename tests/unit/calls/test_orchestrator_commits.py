"""When a call is on disk: before its caller hears of it, or, of what only reads, a moment later."""

import asyncio

import pytest
from msgspec.structs import replace

from edge.ports import CallResult, Invoked
from edge.storage.sqlite import writer
from edge.storage.sqlite.database import DiskUnavailable
from tests.unit.calls.orchestrator_house import QUICK, house, make
from tools_cache.api.tool import CallOrigin, ErrorCode, Mode, ToolResponse

LONG_S = 600.0


def refuse(h, monkeypatch):
    """The disk takes no new call that nobody waits for."""
    behind = h.store._db.behind

    async def full(work, *, failed, grows=False):
        if not grows:
            return await behind(work, failed=failed)
        return failed(DiskUnavailable("the disk is full"))

    monkeypatch.setattr(h.store._db, "behind", full)


async def calls_of(h):
    return await h.store.recent(10, pending=False)


async def test_a_call_that_is_shown_waits_for_one_commit_after_the_glasses(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "GROUP", 1)
    monkeypatch.setattr(writer, "SOON_S", LONG_S)
    async with house(tmp_path) as h:
        commits, pages = [], []

        def traced(sql):
            if sql == "COMMIT":
                commits.append(sql)
                pages.append(len(h.glasses.pages()))

        await h.call("notes:add", {"text": "before"}, origin=CallOrigin.GLASSES)
        await h.store._db.write(lambda c: c.execute("DELETE FROM notes").rowcount)
        await h.store._db.read(lambda c: c.set_trace_callback(traced))
        commits.clear()
        pages.clear()
        shown = await h.call("notes:add", {"text": "x"}, origin=CallOrigin.GLASSES)
        assert shown.meta["delivery"] == "shown"
        assert pages[-1] == len(h.glasses.pages())
        assert len([n for n in pages if n == pages[-1]]) == 1


async def test_a_read_runs_on_a_disk_that_takes_nothing(tmp_path, monkeypatch, caplog):
    async with house(tmp_path) as h:
        refuse(h, monkeypatch)
        answer = await h.orchestrator.call(make("notes:list"), live=True)
        assert answer.ok
        assert await calls_of(h) == []
        assert "is not on disk: the disk is full" in caplog.text


async def test_a_read_of_the_cloud_is_answered_on_a_disk_that_takes_no_new_call(
    tmp_path, monkeypatch
):
    async with house(tmp_path) as h:
        refuse(h, monkeypatch)
        message = Invoked(make("glasses:status"), "reply")
        h.uplink.say(message)
        await h.uplink.until(lambda: message in h.uplink.done)
        assert [a if a is None else a.ok for _, a in h.uplink.answers] == [None, True]
        assert await calls_of(h) == []
        assert h.orchestrator._delivery._waiting_for_disk == 0  # nothing is tried again


@pytest.mark.parametrize(
    ("name", "live", "first"),
    [
        ("notes:list", True, True),
        ("notes:list", False, False),
        ("notes:add", True, False),
        ("files:read", True, False),
        ("glasses:status", True, True),
        ("glasses:status", False, False),
        ("glasses:show_card", True, True),
        ("glasses:show_card", False, False),
        ("glasses:show_text", True, False),  # here twice is more than once
    ],
)
async def test_only_a_live_callers_local_read_or_harmless_page_runs_before_it_is_on_disk(
    tmp_path, monkeypatch, name, live, first
):
    monkeypatch.setattr(writer, "SOON_S", LONG_S)
    async with house(tmp_path) as h:
        behind = []
        admit = h.store.admit_behind

        async def noted(*args, **more):
            behind.append(args)
            await admit(*args, **more)

        h.store.admit_behind = noted
        call = make(name, {"text": "x"})
        assert (await h.orchestrator.call(call, live=live)).ok
        assert bool(behind) == first
        assert (await h.store.get(call.call_id))["response"]["ok"]


async def test_a_read_that_is_begun_for_nobody_is_on_disk_before_it_is_accepted(tmp_path):
    async with house(tmp_path) as h:
        h.store.admit_behind = None
        call = make("notes:list")
        assert await h.orchestrator.begin(call) is None
        async with asyncio.timeout(20):
            while (await h.store.get(call.call_id))["response"] is None:
                await asyncio.sleep(0)


async def test_a_slow_read_is_on_disk_before_its_caller_is_told_to_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "SOON_S", LONG_S)
    async with house(tmp_path, limits=replace(QUICK, run_s=20)) as h:
        done = asyncio.Event()

        async def slow(_call, _progress):
            await done.wait()
            return ToolResponse(data={"text": "late"})

        h.tools.handler = slow
        answered = []
        finish = h.store.finish

        async def noted(*args, **more):
            answered.append(args)
            return await finish(*args, **more)

        h.store.finish = noted
        call = make("notes:list", mode=Mode.VOICE, ttl_s=30.0)
        pending = await h.orchestrator.call(call, live=True)
        assert pending.data["status"] == "pending"
        assert h.store._db._writer._open == []
        assert (await h.store.get(call.call_id))["state"] == "PENDING"
        done.set()
        async with asyncio.timeout(20):
            while (await h.store.get(call.call_id))["response"] is None:
                await asyncio.sleep(0)
        assert answered


async def test_an_answer_that_came_first_is_not_lost_by_a_later_one(tmp_path):
    async with house(tmp_path) as h:
        call = make("shop:buy")
        h.uplink.worker = lambda sent: h.uplink.say(CallResult(sent.call_id, ToolResponse(data=1)))
        first = await h.orchestrator.call(call)
        again = CallResult(call.call_id, ToolResponse(data=2))
        h.uplink.say(again)
        await h.uplink.until(lambda: again in h.uplink.done)
        assert (await h.store.get(call.call_id))["response"]["data"] == first.data == 1


async def test_a_joined_invocation_gets_a_result_of_its_own(tmp_path):
    async with house(tmp_path) as h:
        done = asyncio.Event()

        async def slow(_call, _progress):
            await done.wait()
            return ToolResponse(data=1)

        h.tools.handler = slow
        call = make("notes:add", {"text": "x"})
        messages = [Invoked(call, "reply"), Invoked(call, "reply", as_json=True)]
        for message in messages:
            h.uplink.say(message)
        await h.uplink.until(lambda: h.uplink.answers.count((call.call_id, None)) == 2)
        done.set()
        await h.uplink.until(lambda: all(message in h.uplink.done for message in messages))
        told = [answer for _, answer in h.uplink.answers if answer is not None]
        assert [answer.data for answer in told] == [1, 1]
        assert len(h.tools.runs) == 1


async def test_a_refused_invocation_is_handled_with_its_result(tmp_path):
    async with house(tmp_path) as h:
        message = Invoked(make("notes:none", origin=CallOrigin.CLOUD), "reply")
        h.uplink.say(message)
        await h.uplink.until(lambda: message in h.uplink.done)
        assert h.uplink.answers[-1][1].error.code is ErrorCode.TOOL_NOT_FOUND
        assert h.uplink.done.count(message) == 1


@pytest.mark.parametrize(
    ("more", "new_id", "asked"),
    [
        ({}, True, 0),
        ({}, False, 1),
        ({"idempotency_key": "k1"}, True, 1),
        ({"turn_id": "t1"}, True, 1),
    ],
)
async def test_only_what_an_earlier_call_can_have_is_looked_for_on_disk(
    tmp_path, more, new_id, asked
):
    async with house(tmp_path) as h:
        looks = []
        known = h.store.known

        async def noted(*args, **keys):
            looks.append(args)
            return await known(*args, **keys)

        h.store.known = noted
        call = make("notes:add", {"text": "x"}, **more)
        assert (await h.orchestrator.call(call, live=True, new_id=new_id)).ok
        assert len(looks) == asked
