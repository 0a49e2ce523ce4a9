"""What is on disk after each commit of a call: the states in which a kill may leave it. What
belongs together is never there in part.
"""

import shutil
import sqlite3
from contextlib import asynccontextmanager, closing

import pytest
import pytest_asyncio

from benchmarks.usage import DATABASE, commits
from edge.ports import Wait
from edge.storage.sqlite import writer
from tests.scenarios.world import all_apps, until, world
from tools_cache.api.tool import CallOrigin, ToolCall

pytestmark = [pytest.mark.enable_socket, pytest.mark.asyncio(loop_scope="session")]
LONG_S = 600.0


@pytest.fixture(scope="module", autouse=True)
def apart():
    """Each piece of work that is waited for has a commit of its own, and the others have none."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writer, "GROUP", 1)
        patched.setattr(writer, "SOON_S", LONG_S)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(tmp_path_factory):
    """A daemon with a cloud and without glasses."""
    async with world(tmp_path_factory.mktemp("stages")) as made:
        await made.start_cloud(apps=all_apps())
        daemon = await made.start_daemon(policy={"cloud_may": ["notes:*", "declared"]})
        await until(lambda: daemon.uplink.status().up, "uplink up")
        await until(lambda: daemon.registry.describe()["origin"] == "cloud", "its registry")
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def kept(place, tmp_path):
    async with copies(place, tmp_path) as found:
        yield found


@asynccontextmanager
async def copies(place, tmp_path):
    """Copies of the database after each commit, and at last what is not committed by itself."""
    store, found, seen = place.daemon.db, [], [0]
    database = place.folder / "state" / DATABASE

    def copy() -> None:
        if (number := commits(database)) != seen[0]:
            seen[0] = number
            found.append(tmp_path / f"{len(found)}.db")
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{database}{suffix}", f"{found[-1]}{suffix}")

    def traced(sql: str) -> None:
        if sql.startswith("BEGIN"):
            copy()

    await store.write(lambda c: c.execute("DELETE FROM notes WHERE name = 'nothing'").rowcount)
    await store.read(lambda c: c.set_trace_callback(traced))
    seen[0] = commits(database)
    yield found
    await store.read(lambda c: c.set_trace_callback(None))


async def states(place, kept, call_id):
    """Return, without repetitions, how the call and its messages stood on disk."""
    await place.daemon.db.write(lambda c: c.execute("DELETE FROM notes WHERE 0").rowcount)
    await place.daemon.db.read(lambda _: None)  # begins what comes after that commit
    found = []
    for copy in kept:
        with closing(sqlite3.connect(copy)) as connection:
            state = _state(connection, call_id)
        if state != (found or [("", "", "")])[-1]:
            found.append(state)
    return found


def _state(connection, call_id):
    """(the call's state, what of it is in the outbox, and in the inbox)"""
    call = connection.execute(
        "SELECT state, response IS NOT NULL, delivery IS NOT NULL FROM calls WHERE call_id = ?",
        (call_id,),
    ).fetchone()
    out = connection.execute(
        "SELECT kind || CASE accepted WHEN 0 THEN '' ELSE ' accepted' END"
        " FROM outbox WHERE id = ? ORDER BY seq",
        (call_id,),
    )
    taken = connection.execute(
        "SELECT kind || CASE WHEN body IS NULL THEN ' handled' ELSE '' END"
        " FROM inbox WHERE id = ? ORDER BY seq",
        (call_id,),
    )
    words = "" if call is None else call[0] + " delivery" * call[2]
    assert call is None or bool(call[1]) == (call[0] not in ("ADMITTED", "RUNNING"))
    return words, *(", ".join(row[0] for row in rows) for rows in (out, taken))


@pytest.mark.requirement("I16-together")
async def test_a_read_of_the_cloud_is_there_as_its_message_or_with_its_result(place, kept):
    async with place.onlooker() as cloud_side:
        call_id = await cloud_side.invokes("clock:now", {})
        assert (await cloud_side.answer_to(call_id))["ok"]
    assert (await states(place, kept, call_id))[:2] == [
        ("", "", "call"),
        ("ANSWERED delivery", "result", "call handled"),
    ]


@pytest.mark.requirement("I16-together")
async def test_a_call_of_the_cloud_is_answered_with_its_result_and_handled(place, kept):
    async with place.onlooker() as cloud_side:
        call_id = await cloud_side.invokes("notes:add", {"text": "milk"})
        assert (await cloud_side.answer_to(call_id))["ok"]
    assert (await states(place, kept, call_id))[:3] == [
        ("", "", "call"),
        ("RUNNING", "", "call"),
        ("ANSWERED delivery", "result", "call handled"),
    ]


@pytest.mark.requirement("I16-together")
async def test_a_call_to_the_cloud_is_accepted_with_its_message(place, kept):
    answer = await place.call("com.test.echo:answer", {"data": 1}, wait=Wait.ANSWER)
    assert answer.ok
    found = await states(place, kept, answer.meta["callId"])
    accepted = ("RUNNING", "call accepted", "")
    assert [state for state in found if state != accepted] == [
        ("RUNNING", "call", ""),
        ("RUNNING", "", "result"),
        ("ANSWERED delivery", "delivery", "result handled"),
    ]


@pytest.mark.requirement("I16-together")
async def test_a_call_here_is_accepted_as_running(place, kept):
    answer = await place.call("notes:add", {"text": "bread"}, wait=Wait.ANSWER)
    assert answer.ok
    assert await states(place, kept, answer.meta["callId"]) == [
        ("RUNNING", "", ""),
        ("ANSWERED delivery", "", ""),
    ]


@pytest.mark.requirement("I16-answered-first")
async def test_a_read_here_is_answered_first_and_then_there_as_a_whole(place, kept):
    answer = await place.call("clock:now", wait=Wait.ANSWER)
    assert (answer.ok, kept) == (True, [])
    assert await states(place, kept, answer.meta["callId"]) == [("ANSWERED delivery", "", "")]


@pytest.mark.requirement("I16-answered-first")
async def test_a_read_that_nobody_waits_for_is_there_before_it_is_accepted(place, kept):
    call = ToolCall(call_id="promised", tool="clock:now", args={}, origin=CallOrigin.CLI)
    assert await place.daemon.calls.begin(call) is None
    assert await states(place, kept, "promised") == [
        ("RUNNING", "", ""),
        ("ANSWERED delivery", "", ""),
    ]


@pytest.mark.requirement("I16-answered-first")
async def test_a_read_that_was_answered_is_known_before_it_is_there(place, kept):
    first = await place.call("clock:now", idempotency_key="again", wait=Wait.ANSWER)
    again = await place.call("clock:now", idempotency_key="again", wait=Wait.ANSWER)
    assert (again.data, kept) == (first.data, [])
    assert again.meta["_idempotent_cache_hit"]


@pytest.mark.requirement("I16-together")
@pytest.mark.parametrize(
    ("tool", "args", "delivery", "state", "written"),
    [
        ("glasses:show_text", {"text": "bread", "duration_s": LONG_S}, "shown", "DELIVERED", 1),
        ("glasses:clear", {}, "acknowledged", "ANSWERED", 2),  # one: what was shown is forgotten
    ],
)
async def test_what_the_glasses_do_is_there_as_a_whole_before_its_caller_hears_it(
    tmp_path, tool, args, delivery, state, written
):
    (folder := tmp_path / "world").mkdir()
    async with world(folder) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        async with copies(place, tmp_path) as kept:
            database = folder / "state" / DATABASE
            before = commits(database)
            answer = await place.call(tool, args, wait=Wait.ANSWER)
            assert (answer.ok, answer.meta["delivery"]) == (True, delivery)
            assert commits(database) == before + written
            found = await states(place, kept, answer.meta["callId"])
    assert found[-1] == (f"{state} delivery", "", "")
    assert written > 1 or len(found) == 1
