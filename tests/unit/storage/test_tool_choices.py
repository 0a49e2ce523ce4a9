"""Switched tools and counted calls: kept over a restart, bounded, each user's own."""

import asyncio
import json
import sqlite3
import threading

import pytest
from msgspec.structs import replace

from edge.storage import tool_choices
from edge.storage.migrations import MIGRATIONS
from edge.storage.sqlite.database import SqliteDatabase, StoreFull
from edge.storage.tool_choices import ToolChoices, Used
from tests.unit.storage.support import Hands, open_db


@pytest.fixture
async def db(tmp_path):
    opened = await open_db(tmp_path)
    yield opened
    await opened.close()


async def test_what_users_switched_is_there_after_a_restart_each_its_own(tmp_path):
    db = await open_db(tmp_path)
    kept = ToolChoices(db, Hands().clock)
    await kept.switch("ann", {"notes:add": False, "timer:start": False})
    await kept.switch("bob", {"notes:add": False})
    await kept.switch("ann", {"notes:add": True})
    await db.close()
    db = await open_db(tmp_path)
    assert await ToolChoices(db, Hands().clock).switches() == {
        "ann": {"notes:add": True, "timer:start": False},
        "bob": {"notes:add": False},
    }
    await db.close()


async def test_a_full_table_takes_no_new_switch_and_keeps_the_old_ones(db):
    kept = ToolChoices(db, Hands().clock, switch_rows=2)
    await kept.switch("ann", {"a:a": False, "b:b": False})
    with pytest.raises(StoreFull):
        await kept.switch("ann", {"a:a": True, "c:c": False})
    assert await kept.switches() == {"ann": {"a:a": False, "b:b": False}}, (
        "all of a change, or nothing of it"
    )
    await kept.switch("ann", {"b:b": True})
    assert (await kept.switches())["ann"]["b:b"] is True


async def test_the_copy_for_listings_ends_with_the_last_switch(tmp_path, db, monkeypatch):
    kept, entered, go, real = (
        ToolChoices(db, Hands().clock),
        threading.Event(),
        threading.Event(),
        tool_choices._copy,
    )

    def slow_at_first(path, switches):
        if not entered.is_set():
            entered.set()
            go.wait(30)
        real(path, switches)

    monkeypatch.setattr(tool_choices, "_copy", slow_at_first)
    first = asyncio.create_task(kept.switch("ann", {"a:a": False}))
    assert await asyncio.to_thread(entered.wait, 30)
    second = asyncio.create_task(kept.switch("ann", {"b:b": False}))
    await asyncio.wait({second}, timeout=0.2)  # time enough, were nobody in the way
    go.set()
    await asyncio.gather(first, second)
    assert json.loads((tmp_path / tool_choices.COPY).read_text()) == {"ann": ["a:a", "b:b"]}


@pytest.mark.requirement("S0-69")
async def test_counted_calls_add_up_and_the_oldest_make_room(db):
    kept = ToolChoices(db, Hands().clock, usage_rows=2)
    await kept.add_usage("ann", [Used("a:a", 2, 1, 10.0), Used("b:b", 1, 0, 11.0)])
    await kept.add_usage("ann", [Used("a:a", 3, 0, 20.0)])
    assert await kept.usage("ann") == [Used("a:a", 5, 1, 20.0), Used("b:b", 1, 0, 11.0)]
    await kept.add_usage("bob", [Used("c:c", 1, 0, 30.0)])
    assert [await kept.usage(user) for user in ("ann", "bob")] == [
        [Used("a:a", 5, 1, 20.0)],
        [Used("c:c", 1, 0, 30.0)],
    ]


async def test_a_database_of_schema_2_gets_both_tables_and_keeps_rows(tmp_path):
    await (await SqliteDatabase.open(tmp_path / "glassd.db", MIGRATIONS[:2])).close()
    connection = sqlite3.connect(tmp_path / "glassd.db")
    connection.execute("INSERT INTO notes VALUES ('glasses', '\"AA\"')")
    connection.commit()
    connection.close()
    for _ in range(2):  # and opens again
        db = await open_db(tmp_path)
        kept = ToolChoices(db, replace(Hands().clock, wall=lambda: 5.0))
        await kept.switch("ann", {"a:a": False})
        assert await kept.switches() == {"ann": {"a:a": False}}
        assert await db.read(lambda c: c.execute("SELECT value FROM notes").fetchone()[0]) == '"AA"'
        await db.close()
