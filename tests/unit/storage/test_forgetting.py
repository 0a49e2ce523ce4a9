"""Finished calls are emptied of what is forgotten, on disk too; that they were done stays known."""

import json

import pytest

from edge.core.call_state import Submission
from edge.storage.forgetting import CallForgetting
from edge.storage.inbox import Arrival, Inbox
from edge.storage.outbox import Outbox, OutboxLane
from edge.storage.pending import PendingCalls
from edge.storage.results import ResultCache
from tests.unit.storage.support import WALL, a_call, call_store, open_db
from tools_cache.api.history import HistoryQuery
from tools_cache.api.tool import ErrorCode, ToolResponse

WORD = "Quokkaberg"
EVERYTHING = HistoryQuery()


def about(*words, **more):
    return HistoryQuery(words=words, **more)


def answered(text, **more):
    render = {"display": {"layout": "text_wall", "text": text}}
    return ToolResponse(data={"text": text}, render=render, meta={"route": "local"}, **more)


@pytest.fixture
async def secure(tmp_path):
    """The daemon's database as the daemon opens it."""
    database = await open_db(tmp_path, secure_delete=True)
    yield database
    await database.close()


@pytest.fixture
def calls(secure, hands):
    return call_store(secure, hands)


async def finish(calls, text=WORD, *, response=None, keys=(), **more):
    call = a_call(**({"args": {"text": text}} | more))
    await calls.admit(call, "local", keys=keys, then="RUNNING")
    await calls.finish(call.call_id, "ANSWERED", response or answered(text))
    return call


def traces(folder, word=WORD):
    """Return the files that have the word."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if word.casefold().encode() in path.read_bytes().lower()]


@pytest.mark.requirement("I15-calls-forgotten")
async def test_no_file_has_the_words_of_a_forgotten_call(secure, calls, tmp_path):
    for number in range(250):
        text = f"{WORD} {number} " + "x" * (40 * number)
        await finish(calls, text)
    assert traces(tmp_path)
    assert await CallForgetting(secure).forget("local", about(WORD.lower())) == 250
    assert not traces(tmp_path)
    assert await CallForgetting(secure).forget("local", EVERYTHING) == 0


async def test_words_deleted_before_by_a_build_that_leaves_them_are_gone(tmp_path, hands):
    old = await open_db(tmp_path)
    await old.write(lambda c: c.execute("PRAGMA secure_delete=OFF").fetchall())
    store = call_store(old, hands, rows=1)
    for number in range(32):
        await finish(store, WORD if number < 31 else "plain")
    await old.close()
    assert traces(tmp_path)
    db = await open_db(tmp_path, secure_delete=True)
    await CallForgetting(db).forget("local", EVERYTHING)
    assert not traces(tmp_path)
    await db.close()


@pytest.mark.requirement("I15-calls-forgotten")
async def test_a_forgotten_call_is_not_done_again(secure, calls):
    first = await finish(calls, keys=("key:once",), tool="email:send")
    await CallForgetting(secure).forget("local", EVERYTHING)
    again = await calls.admit(a_call(tool="email:send"), "local", keys=("key:once",))
    assert not again.fresh
    assert again.call_id == first.call_id
    assert again.response.ok
    assert again.response.data["forgotten"] is True
    kept = await calls.get(first.call_id)
    assert kept["request"]["args"] == {}
    assert (kept["state"], kept["keys"], kept["route"]) == ("ANSWERED", ["key:once"], "local")


async def test_a_failure_keeps_its_code_and_that_it_may_have_been_done(secure, calls):
    failure = ToolResponse.failure(
        ErrorCode.INTERRUPTED,
        f"no answer about {WORD}",
        suggestion=WORD,
        partial_side_effects=True,
        idempotency_required=True,
    )
    call = await finish(calls, "plain", response=failure)
    assert await CallForgetting(secure).forget("local", about(WORD)) == 1
    kept = (await calls.get(call.call_id))["response"]
    assert WORD not in json.dumps(kept)
    error = ToolResponse.from_json(kept).error
    assert (error.code, error.partial_side_effects) == (ErrorCode.INTERRUPTED, True)
    assert error.idempotency_required


async def test_open_calls_and_other_users_stay(secure, calls):
    running = a_call(args={"text": WORD})
    await calls.admit(running, "local", then="RUNNING")
    other = await finish(calls, user_id="eva")
    assert await CallForgetting(secure).forget("local", EVERYTHING) == 0
    (open_call,) = await calls.unfinished()
    assert open_call.call.args == {"text": WORD}
    assert (await calls.get(other.call_id))["request"]["args"] == {"text": WORD}


@pytest.mark.parametrize(
    ("since", "until", "gone"),
    [
        (WALL - 10, WALL, 0),
        (WALL, WALL + 1, 1),
        (WALL + 20, WALL + 40, 1),
        (WALL + 31, WALL + 40, 0),
        (None, WALL + 5, 1),
        (WALL + 5, None, 1),
    ],
)
async def test_a_call_is_of_the_time_in_which_it_ran(secure, calls, hands, since, until, gone):
    call = a_call(args={"text": WORD})
    await calls.admit(call, "local", then="RUNNING")
    hands.pass_s(30)
    await calls.finish(call.call_id, "ANSWERED", answered("done"))
    query = HistoryQuery(since=since, until=until)
    assert await CallForgetting(secure).forget("local", query) == gone


async def test_all_words_must_occur_and_names_of_fields_do_not_count(secure, calls):
    await finish(calls, "Gate B12 for Änna")
    forgetting = CallForgetting(secure)
    assert await forgetting.forget("local", about("route")) == 0
    assert await forgetting.forget("local", about("text")) == 0
    assert await forgetting.forget("local", about("gate", "berta")) == 0
    assert await forgetting.forget("local", about("anna", "GATE")) == 1


async def test_what_a_tool_of_another_server_was_told_goes_too(secure, calls):
    call = await finish(calls, "plain", input={"name": WORD})
    assert await CallForgetting(secure).forget("local", about(WORD)) == 1
    assert "input" not in (await calls.get(call.call_id))["request"]


async def test_stored_results_and_late_results_go_too(secure, calls, hands, tmp_path):
    cache, pending = ResultCache(secure, hands.clock), PendingCalls(secure, hands.clock)
    await cache.keep("local", "weather:now", "hash", answered(WORD), ttl_s=600.0)
    await cache.keep("local", "maps:find", "hash", answered("other"), ttl_s=600.0)
    call = a_call(args={})
    await calls.admit(call, "local", then="RUNNING")
    await pending.put(call, ttl_s=60.0)
    who = {"user_id": call.user_id, "session": call.session}
    assert await pending.resolve(call.call_id, answered(WORD), **who) is Submission.TAKEN
    await calls.finish(call.call_id, "ANSWERED", answered(WORD))
    await CallForgetting(secure).forget("local", about(WORD))
    assert not traces(tmp_path)
    assert await cache.last("local", "weather:now", "hash") is None
    assert await cache.last("local", "maps:find", "hash") is not None
    assert (await pending.result(call.call_id)).data["forgotten"] is True
    assert await pending.resolve(call.call_id, answered("again"), **who) is Submission.OVER


async def test_an_answer_the_cloud_has_is_emptied_and_one_it_has_not_stays(secure, calls, hands):
    inbox, outbox = Inbox(secure, hands.clock), Outbox(secure, hands.clock)
    call = a_call(args={"text": WORD})
    arrival = Arrival("call", call.call_id, {"args": {"text": WORD}}, 60.0)
    (taken,) = await inbox.take([arrival])
    await calls.admit(call, "local", then="RUNNING")
    await calls.finish(call.call_id, "ANSWERED", answered(WORD))
    body = {"id": call.call_id, **answered(WORD).to_json()}
    lane = OutboxLane.ANSWER
    put = await outbox.put(lane, "result", call.call_id, topic="t", body=body, ttl_s=60.0)
    await inbox.handled(taken.seq)
    await CallForgetting(secure).forget("local", EVERYTHING)
    assert (await outbox.body(put.seq))["data"] == {"text": WORD}
    (copy,) = await inbox.take([arrival])
    assert (copy.answer["id"], copy.answer["ok"]) == (call.call_id, True)
    assert WORD not in json.dumps(copy.answer)
    await outbox.remove([put.seq], failed=pytest.fail)
    await CallForgetting(secure).forget("local", EVERYTHING)
    assert not traces(secure.path.parent)


async def test_the_words_of_the_forgetting_itself_are_gone_with_its_answer(secure, calls, tmp_path):
    await finish(calls, "plain")
    call = await finish(calls, tool="continuum:forget", response=answered("Forgotten"))
    assert not traces(tmp_path)
    assert (await calls.get(call.call_id))["request"]["args"] == {}


async def test_damaged_files_that_were_put_aside_are_deleted(secure, tmp_path):
    for name in ("glassd.db.bad-1", "glassd.db.bad-2-wal", "other.db.bad-1"):
        (tmp_path / name).write_text(WORD)
    await CallForgetting(secure).forget("local", about("nothing"))
    assert traces(tmp_path) == ["other.db.bad-1"]


async def test_sizes_stay_those_of_what_is_stored(secure, calls):
    await finish(calls, "x" * 5000)
    await CallForgetting(secure).forget("local", EVERYTHING)
    (size,) = await secure.read(lambda c: list(c.execute("SELECT size FROM calls").fetchone()))
    assert 500 < size < 2000
