"""Totals of waiting rows: right after each kind of change, also one that was undone."""

import pytest

from edge.storage.sqlite.totals import Totals
from tests.unit.storage.support import Hands, a_call, call_store, open_db

TABLE = "CREATE TABLE parcels (lane TEXT, body TEXT, size INTEGER)"
TOTALS = Totals(
    "parcels",
    counts="{row}.body IS NOT NULL",
    size="{row}.size",
    part="{row}.lane",
    changes="lane, body, size",
)
CHANGES = (
    "INSERT INTO parcels VALUES ('a', 'x', 10), ('a', 'y', 20), ('b', 'z', 5), ('b', NULL, 7)",
    "UPDATE parcels SET size = size + 1 WHERE lane = 'a'",
    "UPDATE parcels SET lane = 'b' WHERE body = 'x'",
    "UPDATE parcels SET body = NULL, size = 0 WHERE body = 'y'",
    "UPDATE parcels SET body = 'again', size = 3 WHERE body IS NULL",
    "DELETE FROM parcels WHERE lane = 'b'",
    "DELETE FROM parcels",
)


@pytest.fixture
async def db(tmp_path):
    opened = await open_db(tmp_path)
    await opened.write(lambda c: c.execute(TABLE))
    yield opened
    await opened.close()


def kept_and_counted(connection):
    sql = "SELECT count(*), coalesce(sum(size), 0) FROM parcels WHERE lane = ? AND body IS NOT NULL"
    kept = [TOTALS.of(connection, lane) for lane in "ab"]
    return kept, [tuple(connection.execute(sql, lane).fetchone()) for lane in "ab"]


@pytest.mark.parametrize("looked_at_first", [True, False])
async def test_totals_are_those_that_counting_gives(db, looked_at_first):
    seen = []
    for change in CHANGES:
        if looked_at_first or seen:
            await db.read(kept_and_counted)
        await db.write(lambda c, sql=change: c.execute(sql))
        kept, counted = await db.read(kept_and_counted)
        assert kept == counted, change
        seen.append(tuple(kept))
    assert len(set(seen)) == len(CHANGES)  # each change is one that could be missed


async def test_what_is_undone_is_not_counted(db):
    await db.write(lambda c: c.execute(CHANGES[0]))

    def fails(connection):
        TOTALS.of(connection, "a")
        connection.execute(CHANGES[0])
        assert TOTALS.of(connection, "a") == (4, 60)
        raise KeyError("undone")

    for _ in range(2):
        with pytest.raises(KeyError):
            await db.write(fails)
        kept, counted = await db.read(kept_and_counted)
        assert kept == counted == [(2, 30), (1, 5)]


async def test_open_calls_of_the_last_run_count_against_the_bound(tmp_path):
    hands = Hands()
    opened = await open_db(tmp_path)
    for _ in range(3):
        await call_store(opened, hands).admit(a_call(), "local")
    await opened.close()
    again = await open_db(tmp_path)
    store = call_store(again, hands, open=4)
    await store.admit(a_call(), "local")
    with pytest.raises(Exception, match="4 calls wait for an answer"):
        await store.admit(a_call(), "local")
    await again.close()


async def test_totals_hold_over_a_rewritten_file(db):
    await db.write(lambda c: c.execute(CHANGES[0]))
    await db.read(kept_and_counted)
    await db.compact(rewrite=True)
    await db.write(lambda c: c.execute(CHANGES[0]))
    kept, counted = await db.read(kept_and_counted)
    assert kept == counted == [(4, 60), (2, 10)]
