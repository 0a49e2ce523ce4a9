"""A damaged database: what can be read is saved, what is lost is said, and nothing that may
have run runs again.
"""

import asyncio
import json
import random
import shutil
import sqlite3
import threading
from contextlib import closing

import pytest

from edge.core.call_state import CallState
from edge.storage.call_promises import TABLES, CallPromises
from edge.storage.inbox import Arrival, Inbox
from edge.storage.migrations import MIGRATIONS
from edge.storage.notes import Notes
from edge.storage.outbox import Outbox
from edge.storage.sqlite import marker
from edge.storage.sqlite.database import SqliteDatabase
from tests.unit.storage.support import Hands, a_call, call_store
from tools_cache.api.tool import ToolResponse

PAGE = 4096
PROMISED = 30


async def open_db(folder, boot="boot-1"):
    return await SqliteDatabase.open(
        folder / "glassd.db", MIGRATIONS, promises=CallPromises(edge_id="edge-1", boot_id=boot)
    )


def killed(folder, into):
    """What a daemon that was killed at this moment leaves on the disk."""
    into.mkdir()
    for file in folder.glob("glassd.db*"):
        shutil.copyfile(file, into / file.name)
    return into


async def promise(db, hands, first, count):
    calls = call_store(db, hands)
    for n in range(first, first + count):
        await calls.admit(
            a_call(call_id=f"call-{n:02d}", args={"text": "x" * 400}), "cloud", keys=[f"key:{n}"]
        )


@pytest.fixture(params=["young", "old"])
async def left(request, tmp_path):
    """30 promised calls, a note and an answered call; young: all in the WAL, old: the most of
    it in the file.
    """
    db, hands = await open_db(tmp_path / "live"), Hands()
    if request.param == "young":
        await db.read(lambda c: c.execute("PRAGMA wal_autocheckpoint=0").fetchall())
    calls = call_store(db, hands)
    await calls.admit(a_call(call_id="done"), "local")
    await calls.finish("done", "ANSWERED", ToolResponse(data=1))
    await Notes(db).put("glasses", "AA")
    await promise(db, hands, 0, PROMISED - 10)
    if request.param == "old":
        with closing(sqlite3.connect(tmp_path / "live" / "glassd.db")) as other:
            other.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
    await promise(db, hands, PROMISED - 10, 10)
    yield killed(tmp_path / "live", tmp_path / "left")
    await db.close()


async def opened(folder):
    """(calls that wait, what is said about damage), after a start; a second start has nothing
    to say any more.
    """
    db = await open_db(folder)
    waiting = [left.call.call_id for left in await call_store(db, Hands()).unfinished()]
    assert await db.read(lambda c: c.execute("PRAGMA integrity_check").fetchone()[0]) == "ok"
    await db.write(lambda c: c.execute("INSERT OR REPLACE INTO notes VALUES ('new', '1')").rowcount)
    said = db.damage
    await db.close()
    again = await open_db(folder)
    assert again.damage == ""
    assert len(await call_store(again, Hands()).unfinished()) == len(waiting)
    await again.close()
    return waiting, said


def flip(path, count, seed=1):
    rng, data = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(count):
        data[rng.randrange(100, len(data))] ^= 0xFF
    path.write_bytes(data)


def overwrite(path, at, data):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def cut(path, part):
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * part))


def db_of(folder):
    return folder / "glassd.db"


def wal_of(folder):
    return folder / "glassd.db-wal"


def shm_of(folder):
    return folder / "glassd.db-shm"


WAYS = {
    "one flipped byte in the file": lambda f: flip(db_of(f), 1),
    "20 flipped bytes in the file": lambda f: flip(db_of(f), 20),
    "one flipped byte in the WAL": lambda f: flip(wal_of(f), 1),
    "20 flipped bytes in the WAL": lambda f: flip(wal_of(f), 20),
    "junk behind the WAL": lambda f: overwrite(wal_of(f), wal_of(f).stat().st_size, b"junk" * 3000),
    "junk at the beginning of the WAL": lambda f: overwrite(wal_of(f), 0, b"junk" * 8),
    "the WAL cut in the middle": lambda f: cut(wal_of(f), 0.5),
    "the WAL cut to nothing": lambda f: cut(wal_of(f), 0),
    "junk in the index": lambda f: shm_of(f).write_bytes(b"junk" * 8192),
    "the index gone": lambda f: shm_of(f).unlink(),
    "a zeroed page": lambda f: overwrite(
        db_of(f), max(0, db_of(f).stat().st_size // PAGE - 2) * PAGE, bytes(PAGE)
    ),
    "the pointer map zeroed": lambda f: overwrite(db_of(f), PAGE, bytes(PAGE)),
    "the file cut": lambda f: cut(db_of(f), 0.5),
    "a junk header": lambda f: overwrite(db_of(f), 0, b"\xff" * 100),
    "a junk first page": lambda f: overwrite(db_of(f), 0, b"\xff" * PAGE),
    "an empty file": lambda f: db_of(f).write_bytes(b""),
    "an empty file without a WAL": lambda f: [
        db_of(f).write_bytes(b""),
        wal_of(f).unlink(),
        shm_of(f).unlink(),
    ],
    "the file gone": lambda f: db_of(f).unlink(),
    "everything but the marks gone": lambda f: [
        file.unlink() for file in f.glob("glassd.db*") if file.suffix != ".marks"
    ],
    "the WAL and its index empty": lambda f: [
        wal_of(f).write_bytes(b""),
        shm_of(f).write_bytes(b""),
    ],
    "text of the schema that nobody can read": lambda f: db_of(f).write_bytes(
        db_of(f).read_bytes().replace(b"CREATE INDEX", b"CREATE \xab\xabDEX")
    ),
    "the WAL gone": lambda f: wal_of(f).unlink(),
    "the WAL and its index gone": lambda f: [wal_of(f).unlink(), shm_of(f).unlink()],
}


@pytest.mark.requirement("I11-damage-said", "I11-damage-saved")
@pytest.mark.parametrize("way", WAYS)
async def test_no_promised_call_is_lost_silently(left, way):
    WAYS[way](left)
    waiting, said = await opened(left)
    assert len(set(waiting)) == len(waiting) <= PROMISED
    if len(waiting) < PROMISED:
        assert "promised call" in said, f"{PROMISED - len(waiting)} lost without a word"
        assert said.startswith("The database was damaged")
        assert "Next: " in said


@pytest.mark.requirement("I11-damage-saved")
@pytest.mark.parametrize(
    "way",
    [
        "one flipped byte in the file",
        "junk behind the WAL",
        "junk in the index",
        "the index gone",
        "a junk header",
        "a junk first page",
        "the pointer map zeroed",
    ],
)
async def test_what_the_files_still_hold_is_saved_whole(left, way):
    WAYS[way](left)
    waiting, _ = await opened(left)
    assert len(waiting) == PROMISED


@pytest.mark.requirement("I11-damage-saved")
@pytest.mark.parametrize("left", ["young"], indirect=True)
@pytest.mark.parametrize("way", ["an empty file", "the file gone", "a zeroed page", "the file cut"])
async def test_a_wal_alone_that_holds_every_page_is_a_whole_database(left, way):
    WAYS[way](left)
    waiting, said = await opened(left)
    assert len(waiting) == PROMISED
    assert not said or f"All {PROMISED} promised calls were saved" in said


@pytest.mark.requirement("I11-damage-saved")
async def test_each_page_that_is_lost_costs_its_own_rows_only(tmp_path):
    db = await open_db(tmp_path / "live")
    await promise(db, Hands(), 0, PROMISED)
    await db.close()
    pages = (tmp_path / "live" / "glassd.db").stat().st_size // PAGE
    found = {}
    for page in range(pages):
        folder = killed(tmp_path / "live", tmp_path / f"page-{page}")
        overwrite(db_of(folder), page * PAGE, bytes(PAGE))
        waiting, said = await opened(folder)
        assert len(waiting) == PROMISED or "promised calls" in said
        found[page] = len(waiting)
    assert min(found.values()) >= PROMISED - 7, f"four kilobytes hold about five calls: {found}"


@pytest.mark.requirement("I11-damage-said")
async def test_how_many_were_lost_is_said_in_numbers(tmp_path):
    db = await open_db(tmp_path / "live")
    await promise(db, Hands(), 0, PROMISED)
    await db.close()
    for page in range(3, db_of(tmp_path / "live").stat().st_size // PAGE):
        folder = killed(tmp_path / "live", tmp_path / f"page-{page}")
        overwrite(db_of(folder), page * PAGE, bytes(PAGE))
        waiting, said = await opened(folder)
        if len(waiting) < PROMISED:
            assert f"{len(waiting)} of at least {PROMISED} promised calls were saved" in said
            return
    pytest.fail("no page holds a call")


@pytest.mark.requirement("I11-damage-said")
async def test_an_older_copy_is_noticed_after_a_clean_stop(tmp_path):
    db = await open_db(tmp_path / "live")
    await promise(db, Hands(), 0, 3)
    await db.close()
    shutil.copyfile(db_of(tmp_path / "live"), tmp_path / "backup")
    db = await open_db(tmp_path / "live")
    await promise(db, Hands(), 3, 4)
    await db.close()
    shutil.copyfile(tmp_path / "backup", db_of(tmp_path / "live"))
    waiting, said = await opened(tmp_path / "live")
    assert (len(waiting), "it is an older copy, without the last 4 rows" in said) == (3, True)


@pytest.mark.requirement("I11-damage-said")
async def test_another_installations_database_is_noticed(tmp_path):
    for name in ("one", "two"):
        db = await open_db(tmp_path / name)
        await promise(db, Hands(), 0, 2)
        await db.close()
    shutil.copyfile(db_of(tmp_path / "two"), db_of(tmp_path / "one"))
    _, said = await opened(tmp_path / "one")
    assert "not the database that was here before" in said


async def test_a_first_start_and_a_whole_database_say_nothing(tmp_path):
    for _ in range(3):
        assert (await opened(tmp_path / "state"))[1] == ""
    assert not list((tmp_path / "state").glob("*.bad-*"))


async def test_an_older_index_after_a_power_cut_is_no_damage(left):
    """Its memory is written to the disk whenever the system likes: here long before the WAL
    began again.
    """
    older_index = shm_of(left).read_bytes()
    with closing(sqlite3.connect(db_of(left))) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db = await open_db(left, boot="boot-2")
    await promise(db, Hands(), PROMISED, 1)
    cut_off = killed(left, left.with_name("cut"))
    await db.close()
    shm_of(cut_off).write_bytes(older_index)
    db = await open_db(cut_off, boot="boot-3")
    assert db.damage == ""
    assert len(await call_store(db, Hands()).unfinished()) == PROMISED + 1
    await db.close()


async def test_a_database_without_a_marker_file_is_accepted(tmp_path):
    (tmp_path / "state").mkdir()
    with closing(sqlite3.connect(db_of(tmp_path / "state"))) as old:
        old.executescript(
            f"PRAGMA auto_vacuum=INCREMENTAL; {MIGRATIONS[0]}; PRAGMA user_version=1;"
        )
    assert (await opened(tmp_path / "state"))[1] == ""


@pytest.mark.requirement("I11-damage-said")
async def test_marks_written_just_before_a_commit_that_never_came_are_no_damage(tmp_path):
    db, hands = await open_db(tmp_path / "live"), Hands()
    begun, go = threading.Event(), threading.Event()
    await promise(db, hands, 0, 3)
    async with asyncio.TaskGroup() as one_batch:
        one_batch.create_task(db.read(lambda _: begun.set() or go.wait(40)))
        await asyncio.to_thread(begun.wait, 40)
        one_batch.create_task(promise(db, hands, 3, 1))
        await asyncio.sleep(0)
        one_batch.create_task(db.mark())
        one_batch.create_task(db.read(lambda _: killed(tmp_path / "live", tmp_path / "left")))
        while db._writer._jobs.qsize() < 3:
            await asyncio.sleep(0)
        go.set()
    await db.close()
    db = await open_db(tmp_path / "left")
    assert db.damage == ""
    assert len(await call_store(db, hands).unfinished()) == 3
    await db.close()


@pytest.mark.requirement("I11-damage-said")
async def test_an_upgrade_that_rebuilds_a_table_is_no_older_copy(tmp_path):
    db, hands = await open_db(tmp_path), Hands()
    await promise(db, hands, 0, 3)
    await db.write(lambda c: c.execute("INSERT INTO sqlite_sequence VALUES ('gone', 7)"))
    await db.close()
    newer = (*MIGRATIONS, "DELETE FROM sqlite_sequence WHERE name = 'gone';")
    db = await SqliteDatabase.open(
        tmp_path / "glassd.db", newer, promises=CallPromises(edge_id="edge-1", boot_id="boot-1")
    )
    assert db.damage == ""
    await db.close()


async def test_a_database_of_an_older_schema_is_saved_too(tmp_path):
    (tmp_path / "state").mkdir()
    with closing(sqlite3.connect(db_of(tmp_path / "state"))) as old:
        old.executescript(f"PRAGMA auto_vacuum=INCREMENTAL; {MIGRATIONS[0]} PRAGMA user_version=1;")
        old.executemany("INSERT INTO notes VALUES (?, 'x')", [(f"n{n}",) for n in range(3000)])
        old.commit()
    upgraded = await open_db(tmp_path / "state")
    await promise(upgraded, Hands(), 0, PROMISED)
    await upgraded.close()
    overwrite(db_of(tmp_path / "state"), 0, b"\xff" * PAGE)
    waiting, _ = await opened(tmp_path / "state")
    assert len(waiting) == PROMISED


@pytest.mark.requirement("I11-damage-said")
async def test_a_call_with_damaged_text_ends_and_affects_no_other(tmp_path):
    db = await open_db(tmp_path)
    await promise(db, Hands(), 0, 3)
    await db.write(
        lambda c: (
            c.execute(
                "UPDATE calls SET request = CAST(X'7B22FF22' AS TEXT) WHERE call_id = 'call-01'"
            ).rowcount
        )
    )
    await db.write(
        lambda c: (
            c.execute(
                "UPDATE calls SET tool = CAST(X'FF41' AS TEXT) WHERE call_id = 'call-02'"
            ).rowcount
        )
    )
    await db.close()
    db = await open_db(tmp_path)
    calls = call_store(db, Hands())
    assert [left.call.call_id for left in await calls.unfinished()] == ["call-00"]
    assert "2 promised calls or messages could not be read" in db.damage
    assert (await calls.get("call-01"))["code"] == "INTERRUPTED"
    assert len(await calls.recent(10, pending=False)) == 3
    await db.close()


# ------------------------------------------------------------------ nothing runs twice


async def with_invocation(folder, *, admitted):
    """A call of the cloud in the inbox, and one of this machine that was about to run."""
    db, hands = await open_db(folder), Hands()
    calls, inbox = call_store(db, hands), Inbox(db, hands.clock)
    await inbox.take(
        [Arrival("call", "invoked", {"tool": "notes:add", "args": {}, "user_id": "local"}, 60.0)]
    )
    await calls.admit(a_call(call_id="mine"), "local")
    if admitted:
        await calls.admit(a_call(call_id="invoked"), "local")
    return db, calls


@pytest.mark.requirement("I11-damage-once")
async def test_after_a_lost_wal_what_may_have_run_does_not_run_again(tmp_path):
    db, calls = await with_invocation(tmp_path / "live", admitted=True)
    with closing(sqlite3.connect(db_of(tmp_path / "live"))) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for call in ("mine", "invoked"):
        await calls.advance(call, "RUNNING")
        await calls.finish(call, "ANSWERED", ToolResponse(data="done"))
    folder = killed(tmp_path / "live", tmp_path / "left")
    await db.close()
    wal_of(folder).unlink()
    db = await open_db(folder)
    assert "glassd.db-wal is missing" in db.damage
    found = await call_store(db, Hands()).unfinished()
    assert {left.state for left in found} == {CallState.RUNNING}, (
        "which ends as INTERRUPTED unless it may be repeated"
    )
    await db.close()


@pytest.mark.requirement("I11-damage-once")
async def test_an_invocation_whose_call_was_lost_is_answered_as_interrupted(tmp_path):
    db, calls = await with_invocation(tmp_path / "live", admitted=False)
    with closing(sqlite3.connect(db_of(tmp_path / "live"))) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    await calls.admit(a_call(call_id="invoked"), "local", then="RUNNING")
    folder = killed(tmp_path / "live", tmp_path / "left")
    await db.close()
    wal_of(folder).unlink()
    db = await open_db(folder)
    known = await call_store(db, Hands()).known(a_call(call_id="invoked"))
    assert known.response.error.code == "INTERRUPTED"
    assert known.response.error.partial_side_effects
    await db.close()


@pytest.mark.requirement("I11-damage-once")
async def test_what_was_delivered_is_not_sent_again(tmp_path):
    db, hands = await open_db(tmp_path / "live"), Hands()
    outbox = Outbox(db, hands.clock)
    for n in range(40):
        put = await outbox.put(
            "call", "call", f"sent-{n}", topic="t", body={"x": "y" * 900}, ttl_s=60.0
        )
        if n != 20:
            await outbox.remove([put.seq], failed=pytest.fail)
    await db.close()
    overwrite(db_of(tmp_path / "live"), 0, b"\xff" * PAGE)
    db = await open_db(tmp_path / "live")
    assert [row.id for row in await Outbox(db, hands.clock).load()] == ["sent-20"], (
        "rows of free pages stay deleted"
    )
    await db.close()


# ------------------------------------------------------------------ around it


async def test_marks_are_not_written_for_each_call(tmp_path):
    db = await open_db(tmp_path)
    before = marker.path_of(db_of(tmp_path)).stat().st_mtime_ns
    await promise(db, Hands(), 0, 5)
    assert marker.path_of(db_of(tmp_path)).stat().st_mtime_ns == before
    await db.mark()
    assert marker.read(db_of(tmp_path)).promised == 5
    await db.close()
    assert marker.read(db_of(tmp_path)).running is False


@pytest.mark.parametrize(
    "text",
    [
        "",
        "junk",
        "[]",
        '{"version": 1}',
        '{"version": 1, "id": "x", "running": 1, "numbers": {}, "labels": []}',
        "\x00" * 99,
    ],
)
async def test_damaged_marks_are_no_damage_of_the_database(tmp_path, text):
    await (await open_db(tmp_path)).close()
    marker.path_of(db_of(tmp_path)).write_text(text)
    assert (await opened(tmp_path))[1] == ""


async def test_damaged_marks_still_say_that_there_was_a_database(tmp_path):
    await (await open_db(tmp_path)).close()
    marker.path_of(db_of(tmp_path)).write_text("junk")
    db_of(tmp_path).unlink()
    assert "missing" in (await opened(tmp_path))[1]


async def test_few_damaged_databases_stay(tmp_path):
    for n in range(6):
        db = await open_db(tmp_path)
        await promise(db, Hands(), n, 1)
        await db.close()
        overwrite(db_of(tmp_path), 0, b"\xff" * 100)
    waiting, said = await opened(tmp_path)
    assert len(waiting) == 6
    assert "glassd.db.bad-6" in said
    assert sorted(p.name for p in tmp_path.glob("*.bad-?")) == [
        "glassd.db.bad-4",
        "glassd.db.bad-5",
        "glassd.db.bad-6",
    ]


@pytest.mark.parametrize("step", ["while it was written", "before the last step"])
async def test_a_rescue_that_was_cut_off_is_done_again_or_finished(tmp_path, step):
    db = await open_db(tmp_path)
    await promise(db, Hands(), 0, 3)
    await db.close()
    if step == "before the last step":
        db_of(tmp_path).rename(tmp_path / "glassd.db.new")
    else:
        (tmp_path / "glassd.db.new").write_bytes(b"half")
        overwrite(db_of(tmp_path), 0, b"\xff" * 100)
    waiting, _ = await opened(tmp_path)
    assert len(waiting) == 3
    assert not (tmp_path / "glassd.db.new").exists()


async def test_a_stored_note_and_an_answered_call_are_saved_too(left):
    overwrite(db_of(left), 0, b"\xff" * PAGE)
    db = await open_db(left)
    assert await Notes(db).get("glasses") == "AA"
    story = await call_store(db, Hands()).get("done")
    assert (story["state"], json.dumps(story["response"]["data"])) == ("ANSWERED", "1")
    assert not (await call_store(db, Hands()).admit(a_call(), "cloud", keys=["key:3"])).fresh, (
        "its key is known too"
    )
    await db.close()


async def test_every_table_of_the_schema_is_saved(tmp_path):
    db = await open_db(tmp_path)
    tables = await db.read(
        lambda c: {
            row[0]
            for row in c.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        }
    )
    await db.close()
    assert set(TABLES) == tables


async def test_with_nothing_promised_the_alarm_says_that(tmp_path):
    db = await open_db(tmp_path)
    await Notes(db).put("glasses", "AA")
    await db.close()
    overwrite(db_of(tmp_path), 0, b"\xff" * 100)
    _, said = await opened(tmp_path)
    assert "No promised call waited for its answer, and everything in it was saved" in said
