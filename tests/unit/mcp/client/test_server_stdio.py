"""One MCP server over stdio: what it may do to us, and what a call makes of it. The servers are
scripts without the SDK.
"""

import asyncio
import fcntl
import json
import logging
import os
import signal
import socket
import sys
import termios
from pathlib import Path

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from edge.mcp.client import frames, held, server as server_module
from edge.mcp.client.models import CallFault, McpServer, Status
from edge.mcp.client.server import FEW, McpServerClient, serving
from edge.mcp.client.stdio import stdio_wire
from tests.system import runs, state
from tests.unit.mcp.client.places import SOON_S, raw, until


def ask(server, tool, args=None, *, timeout_s=SOON_S, **more):
    return server.call(tool, args or {}, timeout_s=timeout_s, **more)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    """Nobody here needs two seconds to end, nor 64 MiB to be known as endless."""
    monkeypatch.setattr("edge.mcp.client.process.GRACE_S", 0.3)
    monkeypatch.setattr("edge.mcp.client.stdio.PATIENCE", 16 * 1024 * 1024)


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "notes"


def read(notes):
    return notes.read_text().split("\n")[:-1] if notes.exists() else []


async def test_a_connection_that_is_left_with_an_answer_unread_leaves_no_stream_open():
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list")
    async with stdio_wire(raw("legacy"), ended=asyncio.Event(), log_line=print) as wire:
        streams = wire.read.statistics
        await wire.write.send(SessionMessage(request))
        await until(lambda: streams().tasks_waiting_send == 1)
    assert (streams().open_send_streams, streams().open_receive_streams) == (0, 0)


# ------------------------------------------------------------------ both eras, answers


@pytest.mark.requirement("S1-25")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_arguments_reach_the_tool_as_they_are_in_both_eras(era):
    args = {"ü": [1, 2.5, None, {"a": "\u2028"}], "": True, "n": 2**53}
    async with serving(raw(era)) as server:
        outcome = await ask(server, "echo", args)
    assert outcome.ok, outcome
    assert json.loads(outcome.content[0]["text"]) == args
    assert server.news.protocol == {"modern": "2026-07-28", "legacy": "2025-11-25"}[era]


@pytest.mark.requirement("S1-46")
@pytest.mark.requirement("S1-27")
async def test_content_stays_verbatim_and_json_in_text_is_parsed():
    blocks = [
        {"type": "text", "text": "a", "_meta": {"x.y/z": 1}},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {
            "type": "audio",
            "data": "AAAA",
            "mimeType": "audio/wav",
            "annotations": {"audience": ["user"]},
        },
        {"type": "resource_link", "uri": "test://x", "name": "x"},
        {
            "type": "resource",
            "resource": {"uri": "test://y", "text": "y", "mimeType": "text/plain"},
        },
    ]
    async with serving(raw()) as server:
        assert (await ask(server, "text", {"content": blocks})).content == tuple(blocks)
        known = await ask(
            server,
            "text",
            {"content": [], "more": {"structuredContent": {"a": 1}, "_meta": {"x.y/z": 2}}},
        )
        assert (known.structured, known.meta) == ({"a": 1}, {"x.y/z": 2})
        for text, structured in [
            ('{"a":1}', {"a": 1}),
            ("[1]", None),
            ("{a", None),
            ('{"a":NaN}', None),
        ]:
            found = await ask(server, "text", {"content": [{"type": "text", "text": text}]})
            assert (found.structured, found.content[0]["text"]) == (structured, text)
        failed = await ask(server, "fail")
        assert failed.is_error
        assert failed.fault is None
        assert failed.message == "no such \\x1b[31mlist"


@pytest.mark.requirement("S1-33")
@pytest.mark.requirement("S1-26")
async def test_an_invalid_answer_has_a_clear_outcome_and_the_connection_stays():
    async with serving(raw(max_answer_bytes=100_000)) as server:
        for tool, args, kind, words in [
            ("null", {}, CallFault.INVALID, "null"),
            ("silly", {}, CallFault.INVALID, "no MCP"),
            ("deep", {}, CallFault.INVALID, "something that is no "),
            ("lie", {}, CallFault.INVALID, "/n"),
            ("big", {"size": 10_000_000}, CallFault.TOO_LARGE, "100000 bytes"),
            ("error", {"code": -32000}, None, None),
            ("error", {"code": -32603}, CallFault.FAILED, "not \\x1b[31mtoday"),
            ("nonsense", {}, CallFault.FAILED, "Unknown tool"),
        ]:
            outcome = await ask(server, tool, args)
            assert outcome.is_error
            if kind is not None:
                assert outcome.fault is kind, outcome
                assert words in outcome.message
        assert (await ask(server, "garbage")).ok
        assert (await ask(server, "echo")).ok
        assert server.in_progress == 0


async def test_more_values_than_memory_is_meant_for_are_too_large():
    async with serving(raw()) as server:
        outcome = await ask(server, "wide", {"size": 150_000})
        assert outcome.fault is CallFault.TOO_LARGE
        assert (await ask(server, "echo")).ok


async def test_an_endless_line_ends_the_connection_with_little_memory():
    async with serving(raw(max_answer_bytes=100_000)) as server:
        outcome = await ask(server, "endless")
        assert outcome.fault is CallFault.TOO_LARGE
        assert (await ask(server, "echo")).ok  # on a new connection


async def test_a_server_that_writes_only_garbage_is_given_up():
    async with serving(raw()) as server:
        outcome = await ask(server, "garbage", {"times": 2000})
        assert outcome.fault is CallFault.INVALID
        assert "stdout must carry nothing else" in outcome.message


async def test_a_flood_of_notices_slows_only_its_server():
    async with serving(raw()) as flooding, serving(raw(id="other")) as other:
        assert (await ask(other, "echo")).ok
        assert (await ask(flooding, "flood", {"times": 1500})).ok
        assert (await ask(other, "echo")).ok


# ------------------------------------------------------------------ deadlines, cancelling


@pytest.mark.requirement("S1-28")
async def test_a_hanging_server_is_asked_to_stop_and_has_no_call_left(notes):
    async with serving(raw(f"notes={notes}")) as server:
        await server.connected(SOON_S)
        while not any(
            line.startswith("hang") for line in read(notes)
        ):  # on a busy machine it may not even be sent in time
            assert (await ask(server, "hang", timeout_s=0.2)).fault is CallFault.TIMEOUT
        assert server.in_progress == 0
        await until(lambda: any(line.startswith("cancelled") for line in read(notes)))
        hung = next(line for line in read(notes) if line.startswith("hang"))
        assert hung.replace("hang", "cancelled") in read(notes)
        assert (await ask(server, "echo")).ok


async def test_a_server_that_never_answers_gets_a_new_start(notes):
    async with serving(raw(f"notes={notes}")) as server:
        await server.connected(SOON_S)
        for _ in range(3):
            await ask(server, "hang", timeout_s=0.05)
        await until(lambda: server.news.status is Status.DISCONNECTED)
        assert (await ask(server, "echo")).ok
        assert read(notes).count("list") == 2


@pytest.mark.requirement("S1-41")
async def test_cancelling_a_call_cancels_it_at_the_server(notes):
    async with serving(raw(f"notes={notes}")) as server:
        await server.connected(SOON_S)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(ask(server, "hang"))
            await until(lambda: any(line.startswith("hang") for line in read(notes)))
            call.cancel()
        await until(lambda: any(line.startswith("cancelled") for line in read(notes)))
        assert server.in_progress == 0


async def test_progress_is_passed_on_if_requested():
    async with serving(raw()) as server:
        said = []
        outcome = await ask(server, "steps", on_progress=said.append, call_id="c")
        assert outcome.content[0]["text"] == "done"
        steps = [(p.call_id, p.progress, p.total, p.message) for p in said]
        assert steps[0] == ("c", 1, 3, "step 1")
        assert set(steps) <= {
            ("c", n, 3, f"step {n}") for n in (1, 2, 3)
        }  # what comes too quickly is left out
        assert steps == sorted(steps)
        assert (await ask(server, "steps")).content[0]["text"] == "nobody asked"


# ------------------------------------------------------------------ questions back


async def test_a_modern_servers_question_is_answered_in_a_second_call():
    async with serving(raw("modern")) as server:
        first = await ask(server, "ask")
        assert not first.ok
        assert first.fault is None
        assert (first.input_requests["q"]["params"]["message"], first.request_state) == (
            "sure?",
            "sealed",
        )
        answers = {"q": {"action": "accept", "content": {"ok": True}}}
        second = await ask(
            server, "ask", input={"inputResponses": answers, "requestState": first.request_state}
        )
        assert second.structured == {"got": answers, "state": "sealed"}
        wrong = await ask(
            server, "ask", input={"inputResponses": {"q": 5}, "requestState": first.request_state}
        )
        assert (wrong.fault, "was not sent" in wrong.message) == (CallFault.INVALID, True)
        assert (await ask(server, "roots")).structured == {"r": {"roots": []}}


@pytest.mark.requirement("I13-older-questions")
@pytest.mark.parametrize(
    "answer", [{"action": "accept", "content": {"ok": True}}, {"action": "decline"}]
)
async def test_an_older_servers_question_goes_to_the_caller_and_the_call_goes_on(notes, answer):
    async with serving(raw(f"notes={notes}")) as server:
        first = await ask(server, "ask")
        asked = first.input_requests["question"]
        assert asked["method"] == "elicitation/create"
        assert asked["params"]["message"] == "sure?"
        back = {"requestState": first.request_state}
        wrong = await ask(server, "ask", input={**back, "inputResponses": {"question": 5}})
        assert (wrong.fault, "was not sent" in wrong.message) == (CallFault.INVALID, True)
        answers = {**back, "inputResponses": {"question": answer}}
        outcome = await ask(server, "ask", input=answers)
        assert f'"{answer["action"]}"' in outcome.content[0]["text"]
        assert outcome.is_error is (answer["action"] != "accept")
        again = await ask(server, "ask", input=answers)
        assert (again.fault, again.message) == (CallFault.DENIED, held.OVER)
        assert server.in_progress == 0


@pytest.mark.requirement("I13-older-questions")
async def test_with_two_calls_under_way_nobody_knows_who_is_asked():
    async with serving(raw()) as server:
        first = asyncio.ensure_future(ask(server, "ask"))
        while not server.in_progress:
            await asyncio.sleep(0)
        held_one = await first
        second = await ask(server, "ask")
        assert "while another of its calls was under way" in second.message
        assert "“sure?”" in second.message
        answers = {"inputResponses": {"question": {"action": "accept", "content": {}}}}
        done = await ask(server, "ask", input={**answers, "requestState": held_one.request_state})
        assert not done.is_error


@pytest.mark.requirement("I13-older-questions")
async def test_a_caller_that_goes_away_while_it_answers_ends_the_call(notes):
    async def never():
        await asyncio.Event().wait()

    async with serving(raw(f"notes={notes}")) as server:
        first = await ask(server, "ask")
        answers = {"inputResponses": {"question": {"action": "accept", "content": {}}}}
        given = {**answers, "requestState": first.request_state}
        going_on = asyncio.ensure_future(ask(server, "ask", input=given, sending=never))
        await asyncio.sleep(0)
        going_on.cancel()
        await until(lambda: "cancelled" in " ".join(read(notes)))
        assert server.in_progress == 0


@pytest.mark.requirement("I13-older-questions")
async def test_a_question_that_nobody_answers_ends_its_call(notes, monkeypatch):
    monkeypatch.setattr(server_module, "HOLD_S", 0.1)
    async with serving(raw(f"notes={notes}")) as server:
        first = await ask(server, "ask")
        async with asyncio.timeout(30):
            while server.in_progress or "cancelled" not in " ".join(read(notes)):
                await asyncio.sleep(0.02)
        answers = {"inputResponses": {"question": {"action": "accept", "content": {}}}}
        late = await ask(server, "ask", input={**answers, "requestState": first.request_state})
        assert (late.fault, late.message) == (CallFault.DENIED, held.OVER)
        assert (await ask(server, "env")).ok


async def test_a_client_that_is_closed_holds_no_call():
    async with serving(raw()) as server:
        assert (await ask(server, "ask")).input_requests
        server.close()
        assert server.in_progress == 0


@pytest.mark.requirement("I13-older-questions")
async def test_every_question_of_a_call_is_answered_and_only_a_few_may_wait(notes):
    """The call is over when it is told no; what waits then is cancelled."""
    many = 40
    async with serving(raw(f"notes={notes}")) as server:
        await ask(server, "ask", {"more": many})
        answered = await until(lambda: len(found := _answers(notes)) == many and found)
    assert set(answered) == {"decline", "cancel"}
    assert answered.count("cancel") <= held.MAX_QUESTIONS + 1


def _answers(notes):
    return [line.split()[-1] for line in read(notes) if line.startswith("answered")]


@pytest.mark.requirement("I13-older-questions")
async def test_a_call_that_was_given_up_may_still_ask_so_nobody_is_asked(notes, monkeypatch):
    async with serving(raw(f"notes={notes}")) as server:
        lost = await ask(server, "hang", timeout_s=0.5)
        assert lost.fault is CallFault.TIMEOUT
        doubtful = await ask(server, "ask")
        assert "while another of its calls was under way" in doubtful.message
        monkeypatch.setattr("edge.mcp.client.connection.GIVEN_UP_S", 0.0)
        assert (await ask(server, "ask")).input_requests


# ------------------------------------------------------------------ losing it


@pytest.mark.requirement("S1-31")
@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_lost_call_is_repeated_once_if_allowed(notes, idempotent):
    async with serving(raw(f"notes={notes}")) as server:
        outcome = await ask(server, "die_once", idempotent=idempotent)
        if idempotent:
            assert outcome.ok
            assert outcome.attempts == 2
        else:
            assert outcome.fault is CallFault.LOST
            assert "ended with 3" in outcome.message
        assert read(notes).count("die_once") == 1 + idempotent
        again = await ask(server, "die", idempotent=True)
        assert again.fault is CallFault.LOST
        assert read(notes).count("die") == 2
        assert server.in_progress == 0


@pytest.mark.requirement("S1-31")
async def test_a_server_killed_between_calls_does_not_affect_the_next_one():
    async with serving(raw()) as server:
        pid = int((await ask(server, "env")).structured["PID"])
        known = server.news.tools
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not runs(pid))
        outcome = await ask(server, "echo")  # not idempotent: provably unsent
        assert outcome.ok, outcome
        assert known == server.news.tools


@pytest.mark.requirement("S1-31")
async def test_a_call_that_a_dead_server_never_read_is_no_sent_call():
    async with serving(raw()) as server, asyncio.TaskGroup() as group:
        pid = int((await ask(server, "env")).structured["PID"])
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: state(pid) == "T")
        call = group.create_task(ask(server, "echo"))  # not idempotent
        await until(lambda: _unread(pid))
        os.kill(pid, signal.SIGKILL)
        outcome = await call
        assert outcome.ok, outcome
        assert outcome.attempts == 2


def _unread(pid):
    """Bytes that wait in its stdin."""
    with Path(f"/proc/{pid}/fd/0").open("rb", 0) as pipe:
        return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


async def test_a_call_left_in_a_dead_servers_pipe_counts_as_unsent():
    async with serving(raw()) as server:
        assert (await ask(server, "close")).ok
        assert (await ask(server, "echo")).ok


async def test_a_failing_start_says_why_and_is_not_repeated_for_every_call():
    config = McpServer(id="none", command="/nonexistent/server")
    async with serving(config, chance=lambda: 1.0) as server:
        first = await ask(server, "echo")
        assert first.fault is CallFault.UNSENT
        assert "No such file or directory: /nonexistent/server" in first.message
        assert (await ask(server, "echo")).message == first.message
        assert server.news.status is Status.DISCONNECTED
        assert not server.news.available


async def test_a_silent_server_is_awaited_until_its_start_timeout():
    async with serving(raw("mute", start_timeout_s=0.3)) as server:
        outcome = await ask(server, "echo")
        assert outcome.fault is CallFault.UNSENT
        assert "did not start within 0.3 s" in outcome.message


async def test_a_server_that_is_still_starting_is_let_go_at_once():
    async with asyncio.timeout(SOON_S), serving(raw("mute", start_timeout_s=600)) as server:
        server.start()
        await until(lambda: server._current._deadline is not None)
    assert server.news.status is not Status.CONNECTED


async def test_a_server_that_dies_of_the_probe_gets_the_older_protocol():
    async with serving(raw("dies-of-questions")) as server:
        assert (await ask(server, "echo")).ok
        assert server.news.protocol == "2025-11-25"


async def test_what_a_server_forked_ends_with_it(notes):
    async with serving(raw("stubborn", f"notes={notes}")) as server:
        assert (await ask(server, "echo")).ok
        pid = int(next(line for line in read(notes) if line.startswith("grandchild")).split()[1])
    await until(lambda: not runs(pid))


# ------------------------------------------------------------------ idleness


@pytest.mark.requirement("S1-29")
@pytest.mark.requirement("S1-36")
async def test_an_idle_server_is_disconnected_until_the_next_call(notes):
    told = []
    async with serving(raw(f"notes={notes}", idle_s=0.3), report=told.append) as server:
        server.start()
        await until(
            lambda: (
                [n.status for n in told] == [Status.LOADING, Status.CONNECTED, Status.DISCONNECTED]
            )
        )
        assert server.news.available
        assert server.news.tools is not None
        assert server.resting
        assert (await ask(server, "echo")).ok
        assert read(notes).count("list") == 2


@pytest.mark.requirement("S1-30")
async def test_a_running_call_keeps_the_connection_however_long_it_takes(notes):
    async with serving(raw(f"notes={notes}", idle_s=0.05)) as server:
        for _ in range(2):
            outcome = await ask(server, "steps", on_progress=lambda _: None)  # 0.45 s
            assert outcome.ok, outcome
            assert outcome.attempts == 1


# ------------------------------------------------------------------ lists of tools


@pytest.mark.requirement("S1-44")
@pytest.mark.requirement("S1-37")
async def test_a_changed_list_is_read_again():
    told = []
    async with serving(raw(), report=told.append) as server:
        assert (await ask(server, "change")).ok
        await until(lambda: any(t.name == "fresh" for t in server.news.tools))
        assert any(t.name == "fresh" for t in told[-1].tools)
        lie = next(t for t in server.news.tools if t.name == "lie")
        assert lie.output_schema["required"] == ["n"]


@pytest.mark.requirement("I6-hostile")
async def test_a_server_that_plays_with_its_list_is_listed_ever_more_rarely(monkeypatch):
    at = [1000.0]
    monkeypatch.setattr("edge.mcp.client.server._now", lambda: at[0])
    server, pauses = McpServerClient(raw(), None), []
    for _ in range(FEW + 9):
        pauses.append(server._pause())
        at[0] += pauses[-1]
    assert pauses == [1] * (FEW + 1) + [2, 4, 8, 16, 32, 60, 60, 60], (
        "a few changes one after the other are nothing odd"
    )
    at[0] += 60
    assert server._pause() == 1  # it kept still for a while


@pytest.mark.parametrize(
    ("flag", "count", "note"),
    [
        ("circle", 25, "goes round in a circle"),
        ("endless-list", 64, "has no end"),
        ("crowd", 40, "more than 40 tools"),
    ],
)
async def test_a_list_without_end_is_read_up_to_a_bound(flag, count, note):
    async with serving(raw(flag, max_tools=40 if flag == "crowd" else 512)) as server:
        assert await server.connected(SOON_S) is None
        assert len(server.news.tools) >= min(count, 25)
        assert len(server.news.tools) <= max(count, 40)
        assert any(note in n for n in server.news.notes), server.news.notes


@pytest.mark.enable_socket
async def test_an_invalid_tool_is_left_out_and_no_reference_is_followed():
    with socket.create_server(("127.0.0.1", 0)) as far:
        far.setblocking(False)
        await _understood_without(far)


async def _understood_without(far):
    async with serving(
        raw("odd-schemas", f"far=http://127.0.0.1:{far.getsockname()[1]}")
    ) as server:
        assert await server.connected(SOON_S) is None
        assert [t.name for t in server.news.tools] == ["echo"]
        notes = "\n".join(server.news.notes)
        for word in (
            "tool deep is left out",
            "nested deeper than 64",
            "tool far is left out",
            "tool shapeless is left out",
            "listed twice",
        ):
            assert word in notes
        with pytest.raises(BlockingIOError):  # nobody has come
            far.accept()


# ------------------------------------------------------------------ what a server sees, and says
# aside


@pytest.mark.requirement("I6-hostile")
async def test_a_list_that_is_too_long_loses_only_its_excess():
    async with serving(raw("odd-numbers")) as server:
        assert await server.connected(SOON_S) is None
        assert {"echo"} <= {tool.name for tool in server.news.tools}
        assert not {"nan", "x" * 256} & {tool.name for tool in server.news.tools}
        assert any("a number that JSON has not" in note for note in server.news.notes)
        assert any("its name is longer than 255" in note for note in server.news.notes)
        frames.pack(frames.plain(server.news))
    async with serving(raw("heavy")) as server:
        assert await server.connected(SOON_S) is None
        assert {"echo", "t0.0"} <= {tool.name for tool in server.news.tools}
        assert len(frames.pack(frames.plain(server.news))) < 600 * 1024
        assert any("the list is longer than 512 KiB" in note for note in server.news.notes)


async def test_a_server_gets_a_clean_environment(monkeypatch):
    monkeypatch.setenv("GLASSD_SECRET", "s3cret")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:pass@proxy")
    async with serving(raw(env={"TOKEN": "t"}, cwd="/")) as server:
        seen = (await ask(server, "env")).structured
    assert seen["TOKEN"] == "t"
    assert not {"GLASSD_SECRET", "HTTPS_PROXY", "PYTHONPATH"} & set(seen)
    assert seen["PATH"] == os.environ["PATH"]
    assert "TOKEN" not in repr(raw(env={"TOKEN": "t"}))


async def test_what_a_server_whispers_is_bounded_and_cannot_move_a_cursor(caplog):
    caplog.set_level(logging.DEBUG, "edge.mcp.client")
    async with serving(raw()) as server:
        await ask(server, "whisper")
        await until(lambda: sum("[raw]" in r.getMessage() for r in caplog.records) >= 2)
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("[raw]")]
    assert lines[0] == "[raw] one\\x1b[2J line"
    assert max(map(len, lines)) <= 410
    assert {r.levelno for r in caplog.records if r.getMessage().startswith("[raw]")} == {
        logging.DEBUG
    }
