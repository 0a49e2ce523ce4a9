"""The database: nothing acknowledged is ever lost, and nothing wrong with the disk stops the
daemon.
"""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from edge.storage.migrations import MIGRATIONS
from edge.storage.sqlite.database import (
    MIB,
    SqliteDatabase,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFull,
)
from tests.unit.storage.support import open_db

ONE = ("CREATE TABLE t(n INTEGER PRIMARY KEY, text TEXT);",)

BIG = [(n, "x" * 20_000) for n in range(150)]


def insert(n, text=""):
    return lambda c: c.execute("INSERT INTO t VALUES (?, ?)", (n, text)).rowcount


def count(c):
    return c.execute("SELECT count(*) FROM t").fetchone()[0]


@pytest.fixture
async def db(tmp_path):
    database = await SqliteDatabase.open(tmp_path / "x.db", ONE)
    yield database
    await database.close()


async def test_it_runs_wal_with_every_commit_synced(db):
    found = await db.read(
        lambda c: [
            c.execute(f"PRAGMA {p}").fetchone()[0]
            for p in ("journal_mode", "synchronous", "auto_vacuum")
        ]
    )
    assert found == ["wal", 2, 2]


async def test_the_next_read_and_the_next_start_see_a_write(db, tmp_path):
    assert await db.write(insert(1)) == 1
    assert await db.read(count) == 1
    await db.close()
    again = await SqliteDatabase.open(tmp_path / "x.db", ONE)
    assert await again.read(count) == 1
    assert again.damage == ""
    await again.close()


async def test_one_failing_write_undoes_itself_and_not_its_neighbours(db):
    def half(c):
        insert(50)(c)
        raise KeyError("mine")

    results = await asyncio.gather(
        *(db.write(insert(n)) for n in range(20)),
        db.write(half),
        db.write(insert(1)),
        *(db.write(insert(n)) for n in range(20, 40)),
        return_exceptions=True,
    )
    assert isinstance(results[20], KeyError)
    assert isinstance(results[21], StoreError)
    assert "UNIQUE" in str(results[21])
    assert await db.read(count) == 40


async def test_what_queues_during_a_commit_is_committed_together(db):
    commits = []
    await db.read(
        lambda c: c.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    )
    commits.clear()
    await asyncio.gather(*(db.write(insert(n)) for n in range(300)))
    assert await db.read(count) == 300
    assert len(commits) < 60


async def test_after_close_nothing_is_taken_and_closing_twice_is_fine(db):
    pending = asyncio.gather(*(db.write(insert(n)) for n in range(10)))
    await asyncio.sleep(0)
    await db.close()
    await db.close()
    assert sum(await pending) == 10
    with pytest.raises(StoreClosed):
        await db.write(insert(99))


async def test_a_cancelled_caller_does_not_hurt_the_others(db):
    waiting = [asyncio.ensure_future(db.write(insert(n))) for n in range(50)]
    await asyncio.sleep(0)
    for task in waiting[::2]:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert await db.read(count) >= 25


# ------------------------------------------------------------------ migrations


async def test_an_old_file_is_brought_up_to_date_once_and_opens_twice(tmp_path):
    path = tmp_path / "x.db"
    old = sqlite3.connect(path)
    old.executescript(
        "CREATE TABLE t(n INTEGER PRIMARY KEY, text TEXT); "
        "INSERT INTO t VALUES (7, 'old'); PRAGMA user_version=1;"
    )
    old.close()
    steps = (
        *ONE,
        "ALTER TABLE t ADD COLUMN more TEXT DEFAULT 'new';\nCREATE INDEX i ON t(more);\n",
    )
    for _ in range(2):
        db = await SqliteDatabase.open(path, steps)
        row = await db.read(lambda c: tuple(c.execute("SELECT n, text, more FROM t").fetchone()))
        assert row == (7, "old", "new")
        assert await db.read(lambda c: c.execute("PRAGMA user_version").fetchone()[0]) == 2
        await db.close()


async def test_a_failing_step_leaves_the_old_version_whole(tmp_path):
    db = await SqliteDatabase.open(tmp_path / "x.db", ONE)
    await db.write(insert(1))
    await db.close()
    with pytest.raises(StoreError, match="no such table"):
        await SqliteDatabase.open(
            tmp_path / "x.db", (*ONE, "ALTER TABLE t ADD COLUMN a TEXT;\nDROP TABLE missing;")
        )
    again = await SqliteDatabase.open(tmp_path / "x.db", ONE)
    assert await again.read(count) == 1
    assert await again.read(lambda c: len(c.execute("PRAGMA table_info(t)").fetchall())) == 2
    await again.close()


async def test_a_newer_file_is_refused_and_not_touched(tmp_path):
    db = await SqliteDatabase.open(tmp_path / "x.db", (*ONE, "CREATE TABLE u(n);"))
    await db.close()
    with pytest.raises(StoreError, match="newer program"):
        await SqliteDatabase.open(tmp_path / "x.db", ONE)
    assert not list(tmp_path.glob("*.bad-*"))


async def test_the_daemons_own_schema_opens_twice(tmp_path):
    for _ in range(2):
        db = await open_db(tmp_path)
        tables = await db.read(
            lambda c: {
                row[0] for row in c.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            }
        )
        assert {"calls", "outbox", "inbox", "notes"} <= tables
        await db.close()
    assert MIGRATIONS


# ------------------------------------------------------------------ damage


@pytest.mark.parametrize("harm", ["not a database", "hole"])
@pytest.mark.requirement("K4-quarantine")
async def test_a_damaged_file_is_put_aside_and_a_fresh_one_started(tmp_path, harm):
    path = tmp_path / "x.db"
    for round_ in (1, 2):
        db = await SqliteDatabase.open(path, ONE)
        await db.write(
            lambda c: c.executemany(
                "INSERT INTO t VALUES (?, ?)", [(n, "x" * 500) for n in range(500)]
            )
        )
        await db.close()
        data = bytearray(path.read_bytes())
        if harm == "hole":
            data[4096 * 3 : 4096 * 9] = bytes(4096 * 6)
        else:
            data = bytearray(b"\x00garbage" * 2000)
        path.write_bytes(data)
        db = await SqliteDatabase.open(path, ONE)
        assert f"x.db.bad-{round_}" in db.damage
        assert (tmp_path / f"x.db.bad-{round_}").read_bytes()[4096:] == bytes(data)[4096:]
        assert await db.read(count) == 0
        await db.write(insert(1))
        await db.write(lambda c: c.execute("DELETE FROM t").rowcount)
        await db.close()


async def test_damage_met_while_running_is_called_damage(tmp_path):
    db = await SqliteDatabase.open(tmp_path / "x.db", ONE)
    await db.write(
        lambda c: c.executemany(
            "INSERT INTO t VALUES (?, ?)", [(n, "x" * 900) for n in range(3000)]
        )
    )
    other = sqlite3.connect(tmp_path / "x.db")
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    other.close()
    with (tmp_path / "x.db").open("r+b") as file:
        file.seek(4096 * 5)
        file.write(b"\xff" * 4096 * 300)
    with pytest.raises(StoreDamaged, match="restart"):
        await db.read(lambda c: c.execute("SELECT sum(length(text)) FROM t").fetchone()[0])
    await db.close()


async def test_a_file_we_may_not_open_is_an_error_and_not_damage(tmp_path):
    (tmp_path / "x.db").mkdir()
    with pytest.raises(StoreError):
        await SqliteDatabase.open(tmp_path / "x.db", ONE)
    assert (tmp_path / "x.db").is_dir()


# ------------------------------------------------------------------ no room


async def test_at_its_cap_only_new_work_is_refused(tmp_path):
    db = await SqliteDatabase.open(tmp_path / "x.db", ONE, max_bytes=2 * MIB)
    taken = 0
    with pytest.raises(StoreFull, match="2 MiB"):
        for taken in range(1000):
            await db.write(insert(taken, "x" * 10_000))
    assert taken > 50
    assert await db.read(count) == taken
    await db.write(
        lambda c: c.execute("UPDATE t SET text = text || ? WHERE n = 0", ("y" * 10_000,)).rowcount,
        grows=False,
    )
    await db.write(lambda c: c.execute("DELETE FROM t WHERE n < 50").rowcount, grows=False)
    await db.write(insert(5000, "again"))
    assert await db.read(lambda c: c.execute("PRAGMA integrity_check").fetchone()[0]) == "ok"
    await db.close()


async def test_closing_gives_a_mebibyte_of_deleted_pages_back_to_the_disk(db):
    await db.write(lambda c: c.executemany("INSERT INTO t VALUES (?, ?)", BIG).rowcount)
    full = await size_of(db)
    await db.write(lambda c: c.execute("DELETE FROM t").rowcount, grows=False)
    assert await size_of(db) == full
    await db.close()
    assert full - db.path.stat().st_size == MIB


async def test_compacting_gives_all_deleted_pages_back_and_empties_the_log(db):
    await db.write(lambda c: c.executemany("INSERT INTO t VALUES (?, ?)", BIG).rowcount)
    full = await size_of(db)
    await db.write(lambda c: c.execute("DELETE FROM t").rowcount, grows=False)
    await db.compact()
    assert full > 2 * MIB
    assert db.path.stat().st_size < 32 * 1024
    assert db.path.with_name("x.db-wal").stat().st_size == 0


async def size_of(db):
    """Return the bytes of the database, those that are still in its log included."""
    return 4096 * await db.read(lambda c: c.execute("PRAGMA page_count").fetchone()[0])


FULL_DISK = """
import asyncio, os, sys
from pathlib import Path
from edge.storage.sqlite.database import SqliteDatabase, StoreFull

async def main(folder):
    db = await SqliteDatabase.open(folder / "x.db", ("CREATE TABLE t(n INTEGER PRIMARY KEY, text TEXT);",))
    n = 0
    try:
        while n < 10_000:
            await db.write(lambda c: c.execute("INSERT INTO t VALUES (?, ?)", (n, "x" * 20_000)).rowcount)
            n += 1
    except StoreFull as error:
        print("refused after", n, error)
    for _ in range(3):
        try:
            await db.write(lambda c: c.execute("INSERT INTO t VALUES (99999, ?)", ("x" * 20_000,)).rowcount)
            print("TAKEN")
        except StoreFull:
            pass
    assert await db.read(lambda c: c.execute("SELECT count(*) FROM t").fetchone()[0]) == n
    gone = 0
    for k in range(10):
        gone += await db.write(lambda c: c.execute("DELETE FROM t WHERE n = ?", (k,)).rowcount, grows=False)
    free = await db.read(lambda c: c.execute("PRAGMA freelist_count").fetchone()[0])
    print("deleted", gone, "free pages", free, "ballast", (folder / "x.db.ballast").exists(), bool(db.trouble))
    for k in range(10, n):
        await db.write(lambda c: c.execute("DELETE FROM t WHERE n = ?", (k,)).rowcount, grows=False)
    await db.write(lambda c: c.execute("INSERT INTO t VALUES (100000, 'room again')").rowcount)
    print("again", (folder / "x.db.ballast").exists(), bool(db.trouble))
    print(await db.read(lambda c: c.execute("PRAGMA integrity_check").fetchone()[0]))
    await db.close()

asyncio.run(main(Path(sys.argv[1])))
"""  # noqa: E501


def test_on_a_full_disk_the_reserve_allows_deletions_and_returns(tmp_path):
    script = tmp_path / "full.py"
    script.write_text(FULL_DISK)
    folder = tmp_path / "small"
    folder.mkdir()
    inside = f"mount -t tmpfs -o size=12m none {folder} && exec {sys.executable} {script} {folder}"
    command = ["unshare", "-Urm", "sh", "-c", inside]
    env = dict(os.environ, PYTHONPATH=str(Path.cwd()))
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=env)
    if "Operation not permitted" in run.stderr or "mount" in run.stderr:
        pytest.skip("this machine lets nobody mount a small file system")
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0].startswith("refused after")
    assert "is full" in lines[0]
    assert "TAKEN" not in run.stdout
    assert lines[1:] == ["deleted 10 free pages 0 ballast False True", "again True False", "ok"]


# ------------------------------------------------------------------ kill -9

WRITER = textwrap.dedent("""
    import asyncio, os, sys
    from pathlib import Path
    from edge.storage.sqlite.database import SqliteDatabase

    async def main():
        db = await SqliteDatabase.open(Path(sys.argv[1]), ("CREATE TABLE t(n INTEGER PRIMARY KEY, text TEXT);",))
        first = await db.read(lambda c: c.execute("SELECT coalesce(max(n), 0) FROM t").fetchone()[0]) + 1
        async def storm(start):
            n = start
            while True:
                await db.write(lambda c: c.execute("INSERT INTO t VALUES (?, ?)", (n, "x" * 300)).rowcount)
                os.write(1, b"%d\\n" % n)
                n += 8
        await asyncio.gather(*(storm(first + k) for k in range(8)))

    asyncio.run(main())
""")  # noqa: E501


def test_kill_9_in_a_storm_of_writes_loses_nothing_that_was_acknowledged(tmp_path):
    path, acknowledged = tmp_path / "x.db", set()
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        while len(seen := acknowledged) < 10_000:
            line = child.stdout.readline()
            seen.add(int(line))
            if len(seen) % 150 == 0:
                break
        os.kill(child.pid, signal.SIGKILL)
        acknowledged |= {int(line) for line in child.stdout.read().split(b"\n")[:-1]}
        child.wait(10)
        child.stdout.close()
    connection = sqlite3.connect(path)
    kept = {row[0] for row in connection.execute("SELECT n FROM t")}
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()
    assert len(acknowledged) >= 150
    assert acknowledged <= kept


async def test_an_opening_that_is_called_off_leaves_no_thread_behind(tmp_path):
    others = set(threading.enumerate())
    opening = asyncio.ensure_future(SqliteDatabase.open(tmp_path / "a.db", MIGRATIONS))
    await asyncio.sleep(0)  # the thread is at work
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    for thread in set(threading.enumerate()) - others:
        if thread.name == "store":
            await asyncio.to_thread(thread.join, 5)
            assert not thread.is_alive()
