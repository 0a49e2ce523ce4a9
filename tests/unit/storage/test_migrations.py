"""Upgrades: a database an older daemon left opens with everything in it, and keeps its promises."""

import json
import os
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from edge.storage.migrations import MIGRATIONS
from edge.storage.notes import Notes
from edge.storage.outbox import Outbox
from edge.storage.sqlite.database import SqliteDatabase
from tests.unit.storage.support import START, WALL, Hands, a_call, call_store, open_db
from tools_cache.api.tool import ToolResponse

DONE = ToolResponse(data={"text": "bread"})
_OLD_ROW = (
    "INSERT INTO calls(call_id, user_id, idempotency_key, tool, route, "
    "state, request, response, ttl_s, boot_id, boot_at,"
    " wall_at, synced, size, answered_wall) VALUES "
    "(?,'local',?,'notes:list','cloud',?,?,?,3600.0,'boot-1',?,?,1,100,?)"
)


def _old_call(connection, call_id, key, state, response=None):
    request = {
        "call_id": call_id,
        "tool": "notes:list",
        "args": {"n": 1},
        "origin": "cli",
        "mode": "text",
        "turn_id": "t",
        "user_id": "local",
        "idempotency_key": key,
    }
    text = None if response is None else json.dumps(response.to_json())
    connection.execute(
        _OLD_ROW,
        (
            call_id,
            key,
            state,
            json.dumps(request),
            text,
            START,
            WALL,
            None if text is None else WALL + 1,
        ),
    )


@pytest.fixture
async def old(tmp_path):
    """A folder with a database of schema 1 that has lived."""
    await (await SqliteDatabase.open(tmp_path / "glassd.db", MIGRATIONS[:1])).close()
    connection = sqlite3.connect(tmp_path / "glassd.db")
    _old_call(connection, "done", "k1", "ANSWERED", DONE)
    _old_call(connection, "running", "k2", "RUNNING")
    _old_call(connection, "failed", "k3", "FAILED", ToolResponse(data={"text": "first"}))
    _old_call(connection, "again", "k3\x1fattempt 2", "ANSWERED", DONE)
    _old_call(connection, "plain", None, "ADMITTED")
    connection.execute("INSERT INTO notes VALUES ('glasses', '\"AA\"')")
    connection.execute(
        "INSERT INTO outbox(size, lane, kind, id, topic, body, as_json, "
        "ttl_s, boot_id, boot_at, wall_at, synced)"
        " VALUES (2, 'call', 'call', 'running', 't', '{}', 0, 3600.0, 'boot-1', ?, ?, 1)",
        (START, WALL),
    )
    connection.commit()
    connection.close()
    return tmp_path


async def test_what_the_first_schema_held_is_still_there(old):
    hands = Hands()
    db = await open_db(old)
    calls = call_store(db, hands)
    found = await calls.unfinished()
    assert [
        (u.call.call_id, u.state, u.attempts, u.call.session, u.call.ordinal) for u in found
    ] == [
        ("running", "RUNNING", 1, "", None),
        ("plain", "ADMITTED", 0, "", None),
    ]
    story = await calls.get("done")
    assert (story["response"]["data"], story["keys"], story["delivery"]) == (
        {"text": "bread"},
        [],
        None,
    )
    assert [(s["state"], s["at_wall"]) for s in story["steps"]] == [("ADMITTED", WALL)]
    assert await Notes(db).get("glasses") == "AA"
    assert [row.id for row in await Outbox(db, hands.clock).load()] == ["running"]
    await db.close()


async def test_an_old_key_still_gives_its_answer_and_the_newest_attempt_stands(old):
    db = await open_db(old)
    calls = call_store(db, Hands())
    found = {key: await calls.known(a_call(), keys=[f"key:{key}"]) for key in ("k1", "k2", "k3")}
    assert {key: (a.call_id, a.response) for key, a in found.items()} == {
        "k1": ("done", DONE),
        "k2": ("running", None),
        "k3": ("again", DONE),
    }
    assert not (await calls.admit(a_call(), "local", keys=["key:k1"])).fresh
    await db.close()


async def test_an_upgraded_call_goes_on_to_its_end(old):
    db = await open_db(old)
    calls = call_store(db, Hands())
    assert await calls.finish("running", "ANSWERED", DONE)
    assert [s["state"] for s in (await calls.get("running"))["steps"]] == ["ADMITTED", "ANSWERED"]
    await db.close()


async def test_every_step_leads_to_the_same_schema(old, tmp_path):
    await (await open_db(old)).close()
    fresh = tmp_path / "fresh"
    await (await open_db(fresh)).close()
    schemas = []
    for folder in (old, fresh):
        connection = sqlite3.connect(folder / "glassd.db")
        schemas.append(
            connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        )
        connection.close()
    assert schemas[0] == schemas[1]


UPGRADE_ON_A_FULL_DISK = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from edge.runtime.clock import Clock
    from edge.storage.sqlite.database import SqliteDatabase, StoreFull
    from edge.storage.migrations import MIGRATIONS
    from edge.storage.notes import Notes
    from edge.storage.confirmations import Confirmations
    from edge.core.grants import Grant, Granted

    async def main():
        path = Path(sys.argv[1]) / "glassd.db"
        db = await SqliteDatabase.open(path, MIGRATIONS[:1])
        await Notes(db).put("glasses", "AA")
        await db.close()
        with open(path.parent / "junk", "wb", buffering=0) as junk:
            try:
                while True:
                    junk.write(b"x" * 4096)
            except OSError:
                pass
        db = await SqliteDatabase.open(path, MIGRATIONS)
        print(await Notes(db).get("glasses"), "is full" in db.trouble)
        confirmations = Confirmations(db, Clock(), lambda a, b: None)
        try:
            await confirmations.grant("local", "t", Granted(Grant.ALWAYS))
        except StoreFull as error:
            print("refused:", error)
        (path.parent / "junk").unlink()
        await confirmations.grant("local", "t", Granted(Grant.ALWAYS))
        print((await confirmations.granted("local", "t")).grant.value, path.with_name("glassd.db.ballast").exists())
        await db.close()

    asyncio.run(main())
""")  # noqa: E501


def test_an_upgrade_on_a_full_disk_uses_the_reserve(tmp_path):
    script, folder = tmp_path / "upgrade.py", tmp_path / "small"
    script.write_text(UPGRADE_ON_A_FULL_DISK)
    folder.mkdir()
    inside = f"mount -t tmpfs -o size=4m none {folder} && exec {sys.executable} {script} {folder}"
    env = dict(os.environ, PYTHONPATH=str(Path.cwd()))
    command = ["unshare", "-Urm", "sh", "-c", inside]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=env)
    if "Operation not permitted" in run.stderr or "mount" in run.stderr:
        pytest.skip("this machine lets nobody mount a small file system")
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "AA True",
        f"refused: the disk under {folder} is full; free some space",
        "always True",
    ]


@pytest.mark.requirement("CONSENT-grants")
async def test_grants_of_schema_3_stay_and_its_always_ends(tmp_path):
    from edge.core.grants import Grant, Granted
    from edge.storage.confirmations import Confirmations

    await (await SqliteDatabase.open(tmp_path / "glassd.db", MIGRATIONS[:3])).close()
    connection = sqlite3.connect(tmp_path / "glassd.db")
    connection.executemany(
        "INSERT INTO grants VALUES ('local', ?, ?, 5.0)",
        [("bank:pay", "always"), ("bank:close", "never")],
    )
    connection.commit()
    connection.close()
    db = await open_db(tmp_path)
    confirmations = Confirmations(db, Hands().clock, lambda _before, _after: None)
    assert await confirmations.granted("local", "bank:pay") == Granted(Grant.ALWAYS)
    assert await confirmations.granted("local", "bank:close") == Granted(Grant.NEVER)
    assert {row["tool"]: row["since_wall"] for row in await confirmations.grants("local")} == {
        "bank:close": 5.0,
        "bank:pay": 5.0,
    }
    await db.close()
