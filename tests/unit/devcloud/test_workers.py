"""Several workers over one file, as several processes have it: whose a call is, who lives, and
what a dead one leaves.
"""

import asyncio
import contextlib
import fcntl
import os
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from edge.devcloud.database import MIGRATIONS, open_shared
from edge.devcloud.worker.job import ELSEWHERE, SENT, TAKEN
from edge.devcloud.worker.journal import Journal
from edge.devcloud.worker.worker import WorkerLimits, a_worker
from edge.devcloud.worker.workers import Workers, alone
from edge.storage.sqlite.database import SqliteDatabase
from tests.unit.devcloud.test_journal import Wall, a_job
from tests.unit.devcloud.test_keys import a_job as keyed
from tools_cache.api.tool import ErrorCode, ToolResponse

pytestmark = pytest.mark.requirement("I5-cloud-workers")
GOOD = ToolResponse(data="done")


class Desk:
    """One worker's journal and entry; `die` is what the kernel does for a killed process."""

    def __init__(self, journal, workers):
        self.journal, self._workers = journal, workers

    def die(self):
        os.close(self._workers._handle)
        self._workers._handle = None


@contextlib.asynccontextmanager
async def desks(tmp_path, count=2):
    async with AsyncExitStack() as stack:
        made = []
        for number in range(count):
            workers = stack.enter_context(Workers(tmp_path, f"w{number}"))
            journal = Journal(
                await open_shared(tmp_path / "j.db"),
                wall=Wall(),
                me=workers.name,
                alive=workers.alive,
            )
            stack.push_async_callback(journal.close)
            made.append(Desk(journal, workers))
        yield made


# ------------------------------------------------------------------ who lives


def test_a_worker_lives_until_it_leaves(tmp_path):
    with Workers(tmp_path, "other") as other:
        with Workers(tmp_path, "me") as me:
            assert (
                me.alive("me"),
                me.alive("other"),
                other.alive("me"),
                me.alive("nobody"),
                me.alive(""),
            ) == (True, True, True, False, False)
        assert (other.alive("me"), me.alive("me")) == (False, False)


def test_a_killed_worker_is_known_at_once(tmp_path):
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[2]); "
        "from edge.devcloud.worker.workers import Workers\n"
        "with Workers(pathlib.Path(sys.argv[1]), 'child'): "
        "print('in', flush=True); sys.stdin.read()"
    )
    with Workers(tmp_path, "me") as me:
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), str(Path.cwd())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with child:
            assert child.stdout.readline() == b"in\n"
            assert me.alive("child") is True
            child.kill()
        assert me.alive("child") is False
        assert not (tmp_path / "workers" / "child").exists(), "what it left is cleared away"


def test_a_name_is_taken_once(tmp_path):
    with (
        Workers(tmp_path, "me"),
        pytest.raises(OSError, match="another worker has this name"),
        Workers(tmp_path, "me"),
    ):
        pass


async def test_openings_do_not_cross(tmp_path):
    def free():
        handle = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True

    path = tmp_path / "deep" / "auth"
    async with alone(path):
        assert free() is False
        with pytest.raises(OSError, match=r"auth: another process has held it for 0\.05 s"):
            async with alone(path, within_s=0.05):
                pass
    assert free() is True


async def test_many_may_open_at_once(tmp_path):
    opened = await asyncio.gather(*(open_shared(tmp_path / "j.db") for _ in range(4)))
    assert [
        await db.read(lambda c: c.execute("PRAGMA user_version").fetchone()[0]) for db in opened
    ] == [len(MIGRATIONS)] * 4
    for db in opened:
        await db.close()


async def test_a_file_of_a_newer_cloud_is_said_in_words(tmp_path):
    newer = await SqliteDatabase.open(
        tmp_path / "devcloud.db", (*MIGRATIONS, "CREATE TABLE later (x);")
    )
    await newer.close()
    with pytest.raises(
        OSError, match=r"devcloud\.db: the database is of schema 6, this program knows 5"
    ):
        async with a_worker(
            [], state_dir=tmp_path, tenant="default", pool="tools", limits=WorkerLimits()
        ):
            pass


# ------------------------------------------------------------------ whose a call is


async def test_a_duplicate_is_left_to_the_worker_that_has_the_call(tmp_path):
    async with desks(tmp_path) as (a, b):
        assert (await a.journal.take(a_job())).fresh is True
        assert (await b.journal.take(a_job())).state == ELSEWHERE
        await a.journal.sending(a_job())
        assert (await b.journal.take(a_job())).state == ELSEWHERE
        assert (await a.journal.take(a_job())).state == SENT
        await a.journal.finish(a_job(), GOOD)
        assert (await b.journal.take(a_job())).response.data == "done"


async def test_a_duplicate_of_a_dead_workers_call_takes_it_over(tmp_path):
    async with desks(tmp_path, 3) as (a, b, c):
        await a.journal.take(a_job())
        await a.journal.sending(a_job())
        a.die()
        assert (await b.journal.take(a_job())).state == SENT
        assert (await c.journal.take(a_job())).state == ELSEWHERE, "the first who asked has it now"
        assert [left.state for left in await b.journal.left()] == [SENT]


async def test_of_a_dead_workers_estate_each_call_goes_to_exactly_one(tmp_path):
    async with desks(tmp_path, 3) as (a, b, c):
        await a.journal.take(a_job())
        await a.journal.take(a_job("e2"))
        await a.journal.finish(a_job("e2"), GOOD)
        assert await b.journal.inherited() == [], "it lives"
        a.die()
        found = await b.journal.inherited()
        assert [
            (left.job.edge, left.state, left.response and left.response.data) for left in found
        ] == [("e1", TAKEN, None), ("e2", "done", "done")]
        assert (
            await b.journal.inherited(),
            await c.journal.inherited(),
            await c.journal.left(),
        ) == ([], [], [])
        assert len(await b.journal.left()) == 2


async def test_published_answers_are_not_taken_over(tmp_path):
    async with desks(tmp_path) as (a, b):
        await a.journal.take(a_job())
        await a.journal.finish(a_job(), GOOD)
        await a.journal.mark_published(a_job())
        a.die()
        assert await b.journal.left(by_the_dead=True) == []


async def test_a_starting_worker_takes_the_estate_with_its_own(tmp_path):
    async with desks(tmp_path) as (a, b):
        await a.journal.take(a_job())
        a.die()
        assert [left.state for left in await b.journal.left(by_the_dead=True)] == [TAKEN]


async def test_the_worker_that_answers_a_waiting_call_owns_it_until_published(tmp_path):
    async with desks(tmp_path, 3) as (a, b, c):
        await a.journal.take(a_job())
        assert await a.journal.hold(a_job(), {"n": 1}) is True
        assert (await b.journal.finish(a_job(), GOOD, only_held=True)).stands is True
        b.die()
        (left,) = await c.journal.inherited()
        assert left.response.data == "done"


async def test_the_heir_of_a_key_runs_where_its_first_call_ended(tmp_path):
    async with desks(tmp_path) as (a, b):
        first, second = keyed(1), keyed(2)
        await a.journal.take(first)
        await b.journal.take(second)
        ended = await a.journal.finish(
            first, ToolResponse.failure(ErrorCode.RATE_LIMIT, "m", retryable=True)
        )
        assert ended.heir.key == second.key
        assert (await b.journal.take(second)).state == ELSEWHERE


async def test_two_that_write_at_once_wait_for_each_other(tmp_path):
    """A read before the write would fail at once if the transaction did not begin as a writer's."""
    async with desks(tmp_path) as (a, b):
        await asyncio.gather(*(d.journal.take(keyed(n)) for n in range(1, 41) for d in (a, b)))
        totals = await a.journal.totals()
        assert totals["calls"] == 40


async def test_a_file_of_one_workers_time_is_taken_over(tmp_path):
    old = await SqliteDatabase.open(tmp_path / "j.db", MIGRATIONS[:2])
    insert = (
        "INSERT INTO calls (edge, id, tool, state, request, ends_wall, "
        "taken_wall) VALUES ('e1', ?, 'com.x.app:read', 'taken', ?, 1, 1)"
    )
    await old.write(lambda db: db.execute(insert, (a_job().call.call_id, a_job().text())).rowcount)
    await old.close()
    async with desks(tmp_path, 1) as (a,):
        assert [left.state for left in await a.journal.left(by_the_dead=True)] == [TAKEN]
