"""The history: found by words, encrypted, bounded, and gone when it is forgotten."""

import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest

from edge.storage import history
from edge.storage.history import HistoryStore, Retention
from edge.storage.sqlite.database import MIB, DiskUnavailable
from edge.storage.tools.encryption import KeyLost
from edge.storage.tools.user_stores import PrivateStores
from tools_cache.api.history import HistoryEntry, HistoryQuery

DAY = 86_400.0
EVERYTHING = HistoryQuery()


def said(text, **more):
    return HistoryEntry(0.0, "said", text, **more)


def words(*each, **more):
    return HistoryQuery(words=each, **more)


class Shelf:
    """A store that can be opened again, on the same files."""

    def __init__(self, folder, hands):
        self.folder, self.hands, self.open = folder, hands, []

    def store(self, **more):
        keyring = PrivateStores(self.folder / "users", key=self.folder / "tools.key").keyring
        made = HistoryStore(self.folder / "history.db", keyring, self.hands.clock, **more)
        self.open.append(made)
        return made

    def on_disk(self):
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return b"".join(path.read_bytes() for path in files)

    def rows(self, table):
        connection = sqlite3.connect(self.folder / "history.db")
        try:
            return connection.execute(f"SELECT * FROM {table}").fetchall()
        finally:
            connection.close()


@pytest.fixture
async def shelf(tmp_path, hands):
    made = Shelf(tmp_path, hands)
    yield made
    for store in made.open:
        await store.close()


@pytest.fixture
def store(shelf):
    return shelf.store()


async def texts(store, query=EVERYTHING, user="eva"):
    return [entry.text for entry in (await store.search(user, query)).entries]


async def test_all_words_must_occur_whatever_their_case_and_accents(store):
    await store.add("eva", said("Das Café schließt um ACHT"))
    await store.add("eva", said("Um acht fährt der Zug"))
    assert await texts(store, words("acht", "cafe")) == ["Das Café schließt um ACHT"]
    assert await texts(store, words("FÄHRT")) == ["Um acht fährt der Zug"]
    assert await texts(store, words("acht", "zebra")) == []


async def test_the_newest_is_first_and_all_are_counted(store):
    for number in range(12):
        await store.add("eva", said(f"train {number}"))
    found = await store.search("eva", words("train"))
    assert [entry.text for entry in found.entries] == [f"train {n}" for n in range(11, 1, -1)]
    assert found.total == 12


async def test_kind_and_time_restrict_what_is_found(store, hands):
    began = hands.wall
    await store.add("eva", said("early"))
    hands.pass_s(DAY)
    await store.add("eva", HistoryEntry(0.0, "called", "late", "clock:now", "shown"))
    assert await texts(store, HistoryQuery(since=began + 1)) == ["late"]
    assert await texts(store, HistoryQuery(until=began + DAY)) == ["early"]
    assert await texts(store, HistoryQuery(kind="said")) == ["early"]
    entry = (await store.search("eva", words("clock"))).entries[0]
    assert entry == HistoryEntry(began + DAY, "called", "late", "clock:now", "shown")


async def test_a_user_finds_and_forgets_only_their_own(store, shelf):
    await store.add("eva", said("secret plan"))
    await store.add("ben", said("secret plan"))
    assert (await store.search("ben", words("secret"))).total == 1
    assert await store.forget("ben", EVERYTHING) == 1
    assert (await store.search("eva", words("secret"))).total == 1
    assert await texts(store, user="ben") == []


async def test_the_same_word_of_two_users_looks_different(store, shelf):
    await store.add("eva", said("secret"))
    await store.add("ben", said("secret"))
    tokens = [token for token, _ in shelf.rows("words")]
    assert len(set(tokens)) == 2


@pytest.mark.requirement("I15-history-encrypted")
async def test_no_text_is_readable_in_any_file(store, shelf):
    await store.add("eva", said("Xylophone lesson with Quentin", tool="zither:play"))
    await store.sweep(Retention())
    await store.close()
    for word in (b"Xylo", b"xylo", b"Quent", b"quent", b"zither", b"lesson"):
        assert word not in shelf.on_disk()


async def test_reading_and_forgetting_create_no_file(store, shelf):
    assert await texts(store) == []
    assert await store.forget("eva", EVERYTHING) == 0
    assert await store.sweep(Retention()) == 0
    assert list(shelf.folder.iterdir()) == []


@pytest.mark.requirement("I15-history-forgotten")
async def test_forgotten_bytes_are_gone_while_the_store_is_open(store, shelf):
    for number in range(300):
        await store.add("eva", said(f"train number{number} " + "x" * 500))
    bodies = [row[4] for row in shelf.rows("entries")]
    assert all(body in shelf.on_disk() for body in bodies)
    tokens = {token for token, _ in shelf.rows("words")}
    assert await store.forget("eva", EVERYTHING) == 300
    left = shelf.on_disk()
    assert not [body for body in bodies if body[-32:] in left]
    assert not [token for token in tokens if token in left]
    assert (shelf.folder / "history.db-wal").stat().st_size == 0
    assert (shelf.folder / "history.db").stat().st_size < 64 * 1024


@pytest.mark.requirement("I15-history-forgotten")
async def test_the_bytes_of_a_forgotten_word_are_gone_among_others(store, shelf):
    for number in range(90):
        await store.add("eva", said(f"{'zebra' if number % 3 else 'train'} a{number}"))
    rows = [row for row in shelf.rows("entries") if row[0] % 3 != 1]
    tokens = {token for token, entry in shelf.rows("words") if entry % 3 != 1}
    assert await store.forget("eva", words("zebra")) == 60
    left = shelf.on_disk()
    assert not [row for row in rows if row[4][-24:] in left]
    assert not [token for token in tokens if token in left]
    assert (await store.search("eva", words("train"))).total == 30


async def test_a_forgotten_word_takes_longer_words_and_tools_with_it(store):
    for text in ("Anna calls", "Annas train", "Ben calls"):
        await store.add("eva", said(text))
    await store.add("eva", HistoryEntry(0.0, "called", "Done", "annals:read"))
    assert await store.forget("eva", words("ANNA")) == 3
    assert await texts(store) == ["Ben calls"]
    assert (await store.search("eva", words("calls"))).total == 1


async def test_only_the_range_is_forgotten(store, hands, monkeypatch):
    monkeypatch.setattr(history, "BATCH", 2)
    began = hands.wall
    for day in range(9):
        await store.add("eva", said(f"day {day}"))
        hands.pass_s(DAY)
    query = HistoryQuery(since=began + 2 * DAY, until=began + 8 * DAY)
    assert await store.forget("eva", replace(query, words=("day",))) == 6
    assert await texts(store) == ["day 8", "day 1", "day 0"]


async def test_damaged_files_that_were_put_aside_are_forgotten_too(store, shelf):
    await store.add("eva", said("one"))
    (shelf.folder / "history.db.bad-1").write_bytes(b"old")
    await store.forget("eva", words("zebra"))
    assert not (shelf.folder / "history.db.bad-1").exists()


async def test_another_key_is_refused_and_everything_can_still_be_forgotten(store, shelf):
    await store.add("eva", said("one"))
    await store.close()
    (shelf.folder / "tools.key").write_text("ab" * 32)
    (shelf.folder / "tools.key.id").unlink()
    again = shelf.store()
    for work in (again.search("eva", EVERYTHING), again.add("eva", said("two"))):
        with pytest.raises(KeyLost, match="another key"):
            await work
    with pytest.raises(KeyLost):
        await again.forget("eva", words("one"))
    assert await again.forget("eva", EVERYTHING) == 1
    await again.add("eva", said("three"))
    assert await texts(again) == ["three"]


async def test_a_key_that_is_gone_is_named(store, shelf):
    await store.add("eva", said("one"))
    await store.close()
    (shelf.folder / "tools.key").unlink()
    with pytest.raises(KeyLost, match="is gone"):
        await shelf.store().search("eva", EVERYTHING)


async def test_an_altered_entry_is_left_out(store, shelf):
    for text in ("one", "two"):
        await store.add("eva", said(text))
    connection = sqlite3.connect(shelf.folder / "history.db")
    sql = "UPDATE entries SET body = (SELECT body FROM entries WHERE seq = 1) WHERE seq = 2"
    connection.execute(sql)
    connection.commit()
    connection.close()
    assert await texts(store) == ["one"]


# ------------------------------------------------------------------ bounds


@pytest.mark.requirement("I15-history-bounded")
async def test_entries_go_after_their_days(store, shelf, hands, monkeypatch):
    monkeypatch.setattr(history, "BATCH", 2)
    for number in range(5):
        await store.add("eva", said(f"old {number}"))
    hands.pass_s(10 * DAY)
    await store.add("eva", said("new"))
    assert await store.sweep(Retention(days=10)) == 0
    hands.pass_s(1.0)
    assert await store.sweep(Retention(days=10)) == 5
    assert await texts(store) == ["new"]
    assert len(shelf.rows("words")) == 1


@pytest.mark.requirement("I15-history-bounded")
async def test_the_newest_of_too_many_stay(store, monkeypatch):
    monkeypatch.setattr(history, "BATCH", 3)
    for number in range(12):
        await store.add("eva", said(f"n {number}"))
    assert await store.sweep(Retention(max_entries=4)) == 8
    assert await texts(store) == ["n 11", "n 10", "n 9", "n 8"]


@pytest.mark.requirement("I15-history-bounded")
async def test_a_full_file_gives_up_its_oldest_entries(shelf):
    store = shelf.store(max_bytes=2 * MIB)
    for number in range(400):
        await store.add("eva", said(f"n{number} " + "x" * 3990))
    found = await store.search("eva", EVERYTHING)
    assert found.entries[0].text.startswith("n399 ")
    assert 0 < found.total < 400
    assert (shelf.folder / "history.db").stat().st_size <= 2 * MIB


async def test_a_long_text_is_cut(store):
    await store.add("eva", said("y" * 10_000))
    assert len((await texts(store))[0]) == history.MAX_TEXT


# ------------------------------------------------------------------ clocks, kills, disks


async def test_the_order_is_that_of_recording_whatever_the_clock_does(store, hands):
    await store.add("eva", said("first"))
    hands.wall -= 5 * DAY
    await store.add("eva", said("second"))
    assert await texts(store) == ["second", "first"]


async def test_a_clock_that_is_not_set_dates_nothing_before_the_last_entry(store, hands):
    await store.add("eva", said("first"))
    hands.synced, hands.wall = False, 100.0
    await store.add("eva", said("second"))
    hands.synced, hands.wall = True, history_wall(hands)
    assert await store.sweep(Retention()) == 0
    assert await texts(store) == ["second", "first"]


def history_wall(hands):
    return type(hands)().wall + 60.0


async def test_a_jump_of_an_unset_clock_to_a_far_year_deletes_nothing(store, hands):
    await store.add("eva", said("first"))
    hands.synced = False
    hands.wall += 3650 * DAY
    assert await store.sweep(Retention()) == 0


async def test_what_was_added_survives_a_kill(shelf):
    code = f"""
import asyncio, os, signal
from pathlib import Path
from edge.runtime.clock import Clock
from edge.storage.history import HistoryStore
from edge.storage.tools.user_stores import PrivateStores
from tools_cache.api.history import HistoryEntry
async def main():
    folder = Path({str(shelf.folder)!r})
    keyring = PrivateStores(folder / "users", key=folder / "tools.key").keyring
    store = HistoryStore(folder / "history.db", keyring, Clock.system())
    await store.add("eva", HistoryEntry(0.0, "said", "the last words"))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert ran.returncode == -9
    store = shelf.store()
    assert await texts(store, words("last")) == ["the last words"]
    await store.add("eva", said("later"))
    assert await texts(store) == ["later", "the last words"]


async def test_a_full_disk_refuses_new_entries_and_still_forgets(store, shelf, monkeypatch):
    for number in range(50):
        await store.add("eva", said(f"n {number}"))
    db = store._db
    await db.read(lambda c: c.execute("PRAGMA max_page_count=1").fetchall())
    with pytest.raises(DiskUnavailable):
        for _ in range(50):
            await store.add("eva", said("z" * 4000))
    assert (await store.search("eva", words("n"))).total == 50
    assert await store.forget("eva", EVERYTHING) >= 50
    assert await texts(store) == []
