"""Notes, ages, and the tables of a tool package."""

import asyncio

import pytest

from edge.runtime.clock import Clock, wall_is_set
from edge.storage.notes import Notes
from edge.storage.sqlite.database import StoreFull
from edge.storage.timestamps import Stamper
from edge.storage.tools.packages import MAX_ROWS, BadSql, Packages, PackageStorage
from tests.unit.storage.support import START, Hands, open_db


async def test_notes_survive_a_restart_and_none_forgets(tmp_path):
    db = await open_db(tmp_path)
    notes = Notes(db)
    assert await notes.get("glasses") is None
    await notes.put("glasses", {"address": "AA", "n": [1, None]})
    await notes.put("glasses", {"address": "BB"})
    await notes.put("scene", "s1")
    await notes.put("scene", None)
    await db.close()
    db = await open_db(tmp_path)
    assert await Notes(db).get("glasses") == {"address": "BB"}
    assert await Notes(db).get("scene") is None
    await db.close()


# ------------------------------------------------------------------ ages


def test_within_a_boot_only_the_boot_clock_counts():
    hands = Hands()
    stamp = hands.stamper().now()
    hands.wall -= 10**9
    hands.boot += 7
    assert hands.stamper().age_s(stamp) == 7.0
    assert hands.stamper().left_s(stamp, 10.0) == 3.0


def test_over_a_reboot_two_set_wall_clocks_give_the_age():
    hands = Hands()
    stamp = hands.stamper().now()
    hands.reboot(off_s=500)
    assert hands.stamper().age_s(stamp) == 500.0
    hands.wall -= 10_000
    assert (
        hands.stamper().age_s(stamp) == hands.boot
    )  # put back: still never less than this boot has seen
    hands.synced = False
    assert hands.stamper().age_s(stamp) == hands.boot


def test_an_age_is_certain_within_a_boot_or_between_set_clocks():
    hands = Hands()
    stamp = hands.stamper().now()
    hands.wall -= 10**9
    assert hands.stamper().sure(stamp)
    hands.reboot()
    assert not hands.stamper().sure(stamp)
    hands.wall += 2 * 10**9
    assert hands.stamper().sure(stamp)
    hands.synced = False
    assert not hands.stamper().sure(stamp)


def test_the_time_between_two_stamps_is_what_is_certain_of_it():
    hands = Hands()
    first = hands.stamper().now()
    hands.pass_s(4)
    hands.wall += 86_400
    assert Stamper.between_s(first, hands.stamper().now()) == 4.0
    hands.wall -= 86_400
    hands.reboot(off_s=100)
    assert Stamper.between_s(first, hands.stamper().now()) == 104.0
    hands.synced = False
    assert Stamper.between_s(first, hands.stamper().now()) == 5.0


def test_an_unset_clock_at_the_start_is_not_trusted_later():
    hands = Hands()
    hands.synced = False
    stamp = hands.stamper().now()
    hands.synced = True
    hands.reboot(off_s=10**9)
    assert hands.stamper().age_s(stamp) == 5.0


def test_an_unreadable_boot_id_is_never_the_same_boot():
    hands = Hands(boot_id="")
    stamp = hands.stamper().now()
    hands.boot = 3.0
    hands.wall += 50
    assert not hands.stamper().same_boot(stamp)
    assert hands.stamper().age_s(stamp) == 50.0


def test_a_row_can_be_stamped_with_an_age():
    hands = Hands()
    assert hands.stamper().now(age_s=2.0).boot_at == START - 2.0


def test_the_kernel_is_asked_whether_the_wall_clock_is_set():
    assert wall_is_set() in (True, False)
    assert Stamper(Clock()).now().synced is wall_is_set()


# ------------------------------------------------------------------ a package's own tables


@pytest.fixture
async def packages(tmp_path):
    files = Packages(tmp_path / "packages")
    yield files
    await files.close()


@pytest.fixture
async def notes(packages):
    storage = PackageStorage(packages, "notes")
    await storage.execute("CREATE TABLE IF NOT EXISTS n(id INTEGER PRIMARY KEY, text TEXT)")
    return storage


async def test_a_package_writes_and_reads_its_tables(notes):
    assert await notes.execute("INSERT INTO n(text) VALUES (?)", "bread") == 1
    assert await notes.execute("INSERT INTO n(text) VALUES (?)", "'); DROP TABLE n; --") == 2
    assert await notes.execute("UPDATE n SET text = text || '!'") == 2
    assert await notes.fetch("SELECT * FROM n WHERE id = ?", 1) == [{"id": 1, "text": "bread!"}]
    assert await notes.execute("DELETE FROM n WHERE id = ?", 1) == 1
    assert len(await notes.fetch("SELECT * FROM n")) == 1


async def test_two_packages_have_two_files_and_a_restart_keeps_them(tmp_path, packages, notes):
    other = PackageStorage(packages, "../../evil/name")
    with pytest.raises(BadSql, match="no such table"):
        await other.fetch("SELECT * FROM n")
    await notes.execute("INSERT INTO n(text) VALUES ('x')")
    await packages.close()
    again = PackageStorage(Packages(tmp_path / "packages"), "notes")
    assert await again.fetch("SELECT text FROM n") == [{"text": "x"}]
    await again._packages.close()
    assert {p.parent for p in (tmp_path).rglob("*.db")} == {tmp_path / "packages"}


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH DATABASE '/tmp/x.db' AS x",
        "DETACH DATABASE main",
        "PRAGMA user_version = 3",
        "PRAGMA writable_schema=1",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT s",
        "VACUUM INTO '/tmp/y.db'",
        "CREATE VIRTUAL TABLE v USING fts5(x)",
        "SELECT load_extension('x')",
        "INSERT INTO n(text) VALUES ('a'); DELETE FROM n",
        "SELEKT 1",
        "",
    ],
)
async def test_nothing_but_one_plain_statement_is_run(notes, sql):
    await notes.execute("INSERT INTO n(text) VALUES ('kept')")
    if sql:
        with pytest.raises(BadSql):
            await notes.execute(sql)
    else:
        assert await notes.execute(sql) == 0
    assert len(await notes.fetch("SELECT * FROM n")) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM n",
        "INSERT INTO n(text) VALUES ('x') RETURNING id",
        "PRAGMA table_info(n)",
        "DROP TABLE n",
    ],
)
async def test_fetch_only_reads(notes, sql):
    await notes.execute("INSERT INTO n(text) VALUES ('kept')")
    with pytest.raises(BadSql):
        await notes.fetch(sql)
    assert len(await notes.fetch("SELECT * FROM n")) == 1


async def test_rows_bytes_and_time_are_bounded(notes, monkeypatch):
    many = (
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 "
        "FROM c {}) SELECT n, {} AS t FROM c"
    )
    assert len(await notes.fetch(many.format("LIMIT 5000", "''"))) == MAX_ROWS
    with pytest.raises(BadSql, match="MiB"):
        await notes.fetch(many.format("LIMIT 900", "hex(zeroblob(10000))"))
    with pytest.raises(BadSql, match="too big"):
        await notes.fetch("SELECT zeroblob(2000000)")
    monkeypatch.setattr("edge.storage.tools.packages.STATEMENT_S", 0.05)
    with pytest.raises(BadSql, match="interrupted"):
        await notes.fetch(
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
        )
    assert await notes.execute("INSERT INTO n(text) VALUES ('still works')") == 1


async def test_a_package_that_fills_its_file_can_still_delete(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.storage.tools.packages.FILE_BYTES", 2 * 1024 * 1024)
    files = Packages(tmp_path)
    storage = PackageStorage(files, "p")
    await storage.execute("CREATE TABLE t(x)")
    with pytest.raises(StoreFull):
        for _ in range(1000):
            await storage.execute("INSERT INTO t VALUES (?)", "x" * 50_000)
    assert await storage.execute("DELETE FROM t") > 0
    assert await storage.execute("INSERT INTO t VALUES (1)") > 0
    await files.close()


async def test_many_at_once_share_the_file(notes):
    await asyncio.gather(
        *(notes.execute("INSERT INTO n(text) VALUES (?)", str(k)) for k in range(100))
    )
    assert (await notes.fetch("SELECT count(*) AS n FROM n"))[0]["n"] == 100
