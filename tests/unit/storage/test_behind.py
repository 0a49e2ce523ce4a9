"""What an answer does not wait for: in its turn among all other work, on disk soon, and said
when it cannot be kept.
"""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading

import pytest

from edge.core.grants import Grant, Granted
from edge.storage.calls import CallStore
from edge.storage.confirmations import Confirmations
from edge.storage.sqlite import writer
from edge.storage.sqlite.database import SqliteDatabase, StoreClosed, StoreFull
from tests.unit.storage.support import a_call, call_store, open_db
from tools_cache.api.tool import Delivery, DeliveryReport, ToolResponse

LONG_S = 600.0
"""No test waits so long for a commit that does not come by itself."""


@pytest.fixture
async def numbers(tmp_path, monkeypatch):
    """A table of numbers, and a list in which each of its commits stands."""
    monkeypatch.setattr(writer, "SOON_S", LONG_S)
    db = await SqliteDatabase.open(tmp_path / "n.db", ("CREATE TABLE t(n INTEGER PRIMARY KEY);",))
    commits = []
    await db.read(
        lambda c: c.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    )
    commits.clear()
    yield db, commits
    await db.close()


def add(n):
    return lambda c: c.execute("INSERT INTO t VALUES (?)", (n,)).rowcount


def listed(c):
    return [row[0] for row in c.execute("SELECT n FROM t ORDER BY n")]


def on_disk(tmp_path):
    """What another program sees, which is what was committed."""
    connection = sqlite3.connect(tmp_path / "n.db")
    try:
        return listed(connection)
    finally:
        connection.close()


async def test_work_that_nobody_waits_for_is_committed_with_the_next_write(numbers, tmp_path):
    db, commits = numbers
    for n in range(3):
        await db.behind(add(n), failed=pytest.fail)
    assert await db.read(listed) == [0, 1, 2]
    assert (commits, on_disk(tmp_path)) == ([], [])
    await db.write(add(3))
    assert (commits, on_disk(tmp_path)) == (["COMMIT"], [0, 1, 2, 3])


async def test_work_that_nobody_waits_for_is_committed_by_itself_soon(
    numbers, tmp_path, monkeypatch
):
    db, commits = numbers
    monkeypatch.setattr(writer, "SOON_S", 0.01)
    assert await asyncio.wait_for(db.write(add(1), soon=True), 20) == 1
    assert (commits, on_disk(tmp_path)) == (["COMMIT"], [1])


async def test_so_much_stays_uncommitted_and_no_more(numbers, tmp_path):
    db, commits = numbers
    for n in range(writer.MOST_OPEN + 5):
        await db.behind(add(n), failed=pytest.fail)
        await db.read(listed)  # each in a batch of its own
    assert commits == ["COMMIT"]
    assert len(on_disk(tmp_path)) == writer.MOST_OPEN


async def test_a_piece_that_fails_takes_nothing_with_it_that_waits_to_be_committed(
    numbers, tmp_path
):
    db, _ = numbers
    why = asyncio.get_running_loop().create_future()
    await db.behind(add(1), failed=pytest.fail)
    await db.behind(add(1), failed=why.set_result)
    assert await db.read(listed) == [1]
    with pytest.raises(KeyError):
        await db.write(lambda _: {}["mine"])
    assert await db.read(listed) == [1]
    await db.write(add(2))
    assert "UNIQUE" in str(await why)
    assert on_disk(tmp_path) == [1, 2]


async def test_a_disk_that_takes_one_piece_not_takes_the_others_alone(numbers, tmp_path):
    db, commits = numbers
    full = sqlite3.OperationalError("full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL

    def refuse(connection):
        add(7)(connection)
        raise full

    await db.behind(add(1), failed=pytest.fail)
    await db.read(listed)
    with pytest.raises(StoreFull):
        await db.write(refuse)
    assert await db.read(listed) == on_disk(tmp_path) == [1]
    assert commits


async def test_what_is_cut_off_the_file_is_cut_after_all_that_was_asked_before(numbers, tmp_path):
    db, _ = numbers
    gate = threading.Event()
    held = asyncio.ensure_future(db.read(lambda _: gate.wait(20)))
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(db.write(add(1), soon=True))
    await asyncio.sleep(0)
    compacting = asyncio.ensure_future(db.compact())  # in the same batch
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(held, compacting)
    assert waiting.done()
    assert (await waiting, on_disk(tmp_path)) == (1, [1])


async def test_a_database_that_is_closed_answers_what_waits_to_be_committed(numbers, tmp_path):
    db, _ = numbers
    waiting = asyncio.ensure_future(db.write(add(1), soon=True))
    await db.read(listed)
    await db.close()
    assert await asyncio.wait_for(waiting, 20) == 1
    assert on_disk(tmp_path) == [1]


WRITER = textwrap.dedent("""
    import asyncio, os, signal, sys
    from pathlib import Path
    from edge.storage.sqlite import writer
    from edge.storage.sqlite.database import SqliteDatabase

    writer.SOON_S = 600.0

    async def main():
        db = await SqliteDatabase.open(Path(sys.argv[1]), ("CREATE TABLE t(n INTEGER PRIMARY KEY);",))
        def add(n):
            return lambda c: c.execute("INSERT INTO t VALUES (?)", (n,)).rowcount
        await db.behind(add(1), failed=print)
        await db.behind(add(2), failed=print)
        if sys.argv[2] == "written":
            await db.write(add(3))
        await db.read(lambda c: c.execute("SELECT count(*) FROM t").fetchone()[0])
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())
""")  # noqa: E501


@pytest.mark.parametrize(("what", "left"), [("written", [1, 2, 3]), ("asked", [])])
def test_a_kill_leaves_all_that_a_write_took_along_or_nothing(tmp_path, what, left):
    argv = [sys.executable, "-c", WRITER, str(tmp_path / "n.db"), what]
    ended = subprocess.run(argv, timeout=60, check=False, env={**os.environ})
    assert ended.returncode == -signal.SIGKILL
    assert on_disk(tmp_path) == left


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
    await calls.admit(call, "local", then="RUNNING")
    story = await calls.get(call.call_id)
    assert [step["state"] for step in story["steps"]] == ["ADMITTED", "RUNNING"]
    assert (story["state"], story["attempts"]) == ("RUNNING", 1)
    again = await calls.admit(call, "local", then="RUNNING")
    assert (again.fresh, (await calls.get(call.call_id))["attempts"]) == (False, 1)


async def test_the_next_reader_knows_that_an_answer_reached_nobody(calls: CallStore):
    call = a_call()
    await calls.admit(call, "local", then="RUNNING")
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


async def test_work_that_nobody_waits_for_does_not_wake_the_thread(numbers):
    db, _ = numbers
    ran = threading.Event()
    await db.behind(lambda _: ran.set(), failed=pytest.fail)
    assert not ran.wait(0.05)
    await db.read(listed)
    assert ran.is_set()


async def test_what_is_queued_behind_can_be_replaced_until_it_is_with_the_thread(numbers):
    db, _ = numbers
    job = await db.behind(add(1), failed=pytest.fail)
    assert db.replace(job, add(2))
    assert await db.read(listed) == [2]
    assert not db.replace(job, add(3))
    await db.write(add(4))
    assert await db.read(listed) == [2, 4]


async def stored_whole(db, calls, call, *, asked_between):
    """What is on disk of a read that ran before it was stored: its row, keys and statements."""
    statements: list[str] = []
    await db.read(lambda c: c.set_trace_callback(statements.append))
    await calls.admit_behind(call, "local", keys=("key:1",), failed=pytest.fail)
    if asked_between:
        assert (await calls.get(call.call_id))["state"] == "RUNNING"
    await calls.finish_behind(
        call.call_id,
        "ANSWERED",
        ToolResponse(data="yes"),
        delivery=DeliveryReport(Delivery.DROPPED, "no glasses"),
        failed=pytest.fail,
    )
    row = await db.read(lambda c: dict(c.execute("SELECT * FROM calls").fetchone()))
    keys = await db.read(lambda c: [tuple(k) for k in c.execute("SELECT * FROM call_keys")])
    await db.read(lambda c: c.set_trace_callback(None))
    return row, keys, await calls.get(call.call_id), statements


async def test_a_read_is_stored_alike_in_one_piece_with_its_answer_and_in_two(
    tmp_path, hands, monkeypatch
):
    monkeypatch.setattr(writer, "SOON_S", LONG_S)
    call, found = a_call(), []
    for name in ("one", "two"):
        db = await open_db(tmp_path / name)
        found.append(
            await stored_whole(db, call_store(db, hands), call, asked_between=name == "two")
        )
        await db.close()
    (row, keys, story, once), (row_two, keys_two, story_two, twice) = found
    assert [step["state"] for step in story["steps"]] == ["ADMITTED", "RUNNING", "ANSWERED"]
    assert (story["attempts"], story["delivery"]["state"]) == (1, "dropped")
    assert story == story_two
    assert row == row_two
    assert [key[:6] for key in keys] == [key[:6] for key in keys_two]
    assert not any("UPDATE calls" in sql for sql in once)
    assert any("UPDATE calls" in sql for sql in twice)


async def test_an_id_that_is_on_disk_already_takes_no_second_answer(db, hands, monkeypatch):
    monkeypatch.setattr(writer, "SOON_S", LONG_S)
    calls, call, why = call_store(db, hands), a_call(), []
    await calls.admit(call, "local")
    await calls.finish(call.call_id, "ANSWERED", ToolResponse(data="first"))
    await calls.admit_behind(call, "local", keys=(), failed=why.append)
    await calls.finish_behind(
        call.call_id, "ANSWERED", ToolResponse(data="second"), delivery=None, failed=pytest.fail
    )
    await db.write(lambda _: None)
    assert "on disk already" in str(why)
    assert (await calls.get(call.call_id))["response"]["data"] == "first"


async def test_so_much_waits_for_the_thread_and_no_more(numbers, tmp_path):
    db, commits = numbers
    async with asyncio.timeout(20):
        for n in range(writer.MOST_OPEN - 1):
            await db.behind(add(n), failed=pytest.fail)
        assert len(db._writer._soon) == writer.MOST_OPEN - 1
        assert await db.write(add(writer.MOST_OPEN), soon=True) == 1  # committed with the others
    assert commits == ["COMMIT"]
    assert len(on_disk(tmp_path)) == writer.MOST_OPEN
