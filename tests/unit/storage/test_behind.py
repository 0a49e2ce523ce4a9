"""What an answer does not wait for: in its turn among all other work, on disk soon, and said
when it cannot be kept.
"""

import asyncio
import threading

from edge.core.grants import Grant, Granted
from edge.storage.calls import CallStore
from edge.storage.confirmations import Confirmations
from edge.storage.sqlite.database import StoreClosed
from tests.unit.storage.support import a_call, open_db
from tools_cache.api.tool import Delivery, DeliveryReport, ToolResponse


async def test_work_that_nobody_waits_for_comes_before_whatever_is_asked_later(db):
    gate = threading.Event()
    held = asyncio.ensure_future(db.read(lambda _: gate.wait(20)))
    await asyncio.sleep(0)
    await db.behind(
        lambda c: c.execute("CREATE TABLE t(n)"), failed=lambda _: None
    )  # returns while the thread is held
    asked = asyncio.ensure_future(
        db.read(lambda c: c.execute("SELECT count(*) FROM t").fetchone()[0])
    )
    await asyncio.sleep(0)
    gate.set()
    assert (await held, await asked) == (True, 0)


async def test_work_that_nobody_waits_for_is_on_disk_after_the_end(tmp_path):
    db = await open_db(tmp_path)
    await db.behind(lambda c: c.execute("CREATE TABLE t(n)"), failed=lambda _: None)
    await db.close()
    again = await open_db(tmp_path)
    assert await again.read(lambda c: c.execute("SELECT count(*) FROM t").fetchone()[0]) == 0
    await again.close()


async def test_work_that_nobody_waits_for_says_why_it_is_not_on_disk(db):
    reported = asyncio.get_running_loop().create_future()
    await db.behind(lambda c: c.execute("no SQL"), failed=reported.set_result)
    assert "syntax error" in str(await asyncio.wait_for(reported, 20))
    await db.close()
    try:
        await db.behind(lambda _: None, failed=reported.set_result)
    except StoreClosed:
        return
    raise AssertionError("a closed store took work")


async def test_a_call_that_is_admitted_running_has_both_steps_and_one_attempt(calls: CallStore):
    call = a_call()
    await calls.admit(call, "local", running=True)
    story = await calls.get(call.call_id)
    assert [step["state"] for step in story["steps"]] == ["ADMITTED", "RUNNING"]
    assert (story["state"], story["attempts"]) == ("RUNNING", 1)
    again = await calls.admit(call, "local", running=True)
    assert (again.fresh, (await calls.get(call.call_id))["attempts"]) == (False, 1)


async def test_the_next_reader_knows_that_an_answer_reached_nobody(calls: CallStore):
    call = a_call()
    await calls.admit(call, "local", running=True)
    await calls.finish(call.call_id, "ANSWERED", ToolResponse(data=1))
    await calls.tell_delivery(call.call_id, DeliveryReport(Delivery.DROPPED, "no glasses"))
    assert (await calls.get(call.call_id))["delivery"] == {
        "state": "dropped",
        "reason": "no glasses",
    }


async def test_grants_are_read_once_and_follow_every_change(db, hands):
    confirmations = Confirmations(db, hands.clock, lambda *_: None)
    reads = []
    real = db.read
    db.read = lambda work: (reads.append(work), real(work))[1]
    assert [await confirmations.granted("local", "bank:pay") for _ in range(3)] == [Granted()] * 3
    assert len(reads) == 1
    await confirmations.grant("local", "bank:pay", Granted(Grant.NEVER))
    assert (await confirmations.granted("local", "bank:pay")).grant is Grant.NEVER
    assert (await confirmations.granted("other", "bank:pay")).grant is Grant.ONCE
    await confirmations.grant("local", "bank:pay", Granted(Grant.ONCE))
    assert (await confirmations.granted("local", "bank:pay")).grant is Grant.ONCE


async def test_a_grant_that_is_given_while_grants_are_read_is_not_overlooked(db, hands):
    confirmations = Confirmations(db, hands.clock, lambda *_: None)
    asked, given = await asyncio.gather(
        confirmations.granted("local", "bank:pay"),
        confirmations.grant("local", "bank:pay", Granted(Grant.NEVER)),
    )
    assert (asked, given) == (Granted(), None)
    assert (await confirmations.granted("local", "bank:pay")).grant is Grant.NEVER
