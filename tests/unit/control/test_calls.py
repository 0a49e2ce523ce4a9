"""Calls over the control API: started, decided, cancelled, their results; and every malformed
request.
"""

import asyncio
import json

import pytest

from edge.control.http import HttpLimits
from edge.core.call_state import Submission
from edge.core.grants import Grant
from edge.ports import Wait
from tests.unit.control.house import ASKED, DEADLINE_S, Full, open_house, row
from tools_cache.api.tool import ErrorCode, Mode, ToolResponse

pytestmark = pytest.mark.enable_socket

DONE = ToolResponse(data={"event": 1}, meta={"route": "local"})


# ------------------------------------------------------------------ a call, whole


async def test_session_ids_and_order_reach_the_port(tmp_path):
    async with open_house(tmp_path) as house:
        await house.ask(
            "POST",
            "/v1/call",
            {
                "tool": "notes:add",
                "session": "s1",
                "provider_call_id": "toolu_1",
                "ordinal": 2,
                "replayed": True,
            },
        )
        ((call, _),) = house.calls.seen
    assert (call.session, call.provider_call_id, call.ordinal, call.replayed) == (
        "s1",
        "toolu_1",
        2,
        True,
    )


async def test_a_missing_field_has_its_default(tmp_path):
    async with open_house(tmp_path) as house:
        await house.ask("POST", "/v1/call", {"tool": "notes:add"})
        ((call, _),) = house.calls.seen
        assert not house.sessions.modes
    assert (call.session, call.provider_call_id, call.ordinal, call.replayed) == (
        "",
        None,
        None,
        False,
    )


@pytest.mark.requirement("I13-present")
@pytest.mark.parametrize("given", [True, False, None])
async def test_whether_to_show_the_answer_reaches_the_port(tmp_path, given):
    async with open_house(tmp_path) as house:
        await house.ask("POST", "/v1/call", {"tool": "notes:add", "present": given})
        ((call, _),) = house.calls.seen
    assert call.present is given


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"session": 5}, "session: must be text"),
        ({"tool": " "}, "tool: must not be empty"),
        ({"session": "s" * 65}, "session: must have at most 64"),
        ({"provider_call_id": "p" * 256}, "provider_call_id: must have at most 255"),
        ({"ordinal": -1}, "ordinal: must be a whole number"),
        ({"ordinal": True}, "ordinal"),
        ({"ordinal": 1.0}, "ordinal"),
        ({"ordinal": "1"}, "ordinal"),
        ({"ordinal": 10**9}, "ordinal"),
        ({"replayed": 1}, "replayed: must be true or false"),
        ({"present": "no"}, "present: must be true or false"),
        ({"ask": "loudly"}, "ask: must be one of block, return"),
        ({"confirm": 5}, "confirm: must be text"),
        (
            {"confirm": "a", "confirmation_token": "b"},
            "confirmation_token: is not the same as confirm",
        ),
        ({"confirm": "a", "wait": False}, "wait: must not be false together with confirm"),
        ({"mode": None}, "mode: must be one of"),
    ],
)
async def test_a_malformed_call_is_a_400_that_names_the_field(tmp_path, body, named):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask("POST", "/v1/call", {"tool": "notes:add", **body})
        assert (status, answer["error"]["code"]) == (400, "INVALID_REQUEST")
        assert named in answer["error"]["message"]
        assert [house.calls.seen, house.calls.begun, house.calls.decided, house.sessions.modes] == [
            [],
            [],
            [],
            {},
        ]


# ------------------------------------------------------------------ an id of the client's own, and
# progress

ID = "01a20334-977f-741a-b564-aa67f2966062"


async def test_a_client_may_choose_the_id_of_its_call(tmp_path):
    async with open_house(tmp_path) as house:
        await house.ask("POST", "/v1/call", {"tool": "notes:add", "call_id": ID.upper()})
        ((call, _),) = house.calls.seen
    assert call.call_id == ID


async def test_only_an_id_that_the_daemon_made_is_new(tmp_path):
    async with open_house(tmp_path) as house:
        await house.ask("POST", "/v1/call", {"tool": "notes:add", "call_id": ID})
        await house.ask("POST", "/v1/call", {"tool": "notes:add"})
        assert house.calls.new_ids == [False, True]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"call_id": "mine"}, "call_id: must be a UUID"),
        ({"call_id": 5}, "call_id: must be text"),
        ({"progress": "yes"}, "progress: must be true or false"),
        ({"input": {"inputResponses": 5}}, "input: inputResponses must be an object"),
        ({"input": {"requestState": {}}}, "input: inputResponses must be an object"),
        ({"input": {"canAnswer": "roots/list"}}, "input: canAnswer must be a list of methods"),
        ({"input": {"canAnswer": [5]}}, "input: canAnswer must be a list of methods"),
        ({"progress": True, "wait": False}, "progress: cannot be combined"),
        ({"progress": True, "confirm": "tok-1"}, "progress: cannot be combined"),
    ],
)
async def test_a_malformed_id_or_contradicting_fields_are_a_400(tmp_path, body, named):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask("POST", "/v1/call", {"tool": "notes:add", **body})
        assert (status, house.calls.seen, house.calls.begun) == (400, [], [])
        assert named in answer["error"]["message"]


async def told(house, **more):
    """Return the events of a call with progress."""
    payload = json.dumps({"tool": "notes:add", "progress": True, **more}).encode()
    head = f"POST /v1/call HTTP/1.1\r\nHost: x\r\nContent-Length: {len(payload)}\r\n\r\n"
    raw = (await house.exchange(head.encode() + payload, eof=False)).decode()
    return [
        json.loads(line[line.index("{") :])
        for line in raw.splitlines()
        if line.startswith("data: ")
    ]


async def test_progress_comes_in_order_and_the_answer_last(tmp_path):
    async with open_house(tmp_path) as house:

        async def working(call, *, progress, wait, live):
            for number in range(70):
                await progress(f"step {number}")
            return DONE

        house.calls.call = working
        *words, last = await told(house)
    assert [w["text"] for w in words] == [f"step {n}" for n in range(64)], (
        "a client that is behind misses the newest, and is not waited for"
    )
    assert (last["event"], last["envelope"]["data"]) == ("answer", {"event": 1})


@pytest.mark.requirement("I13-call-progress")
async def test_a_tool_that_may_ask_first_reports_progress_when_it_need_not_ask(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.reports = ["looking", "found"]
        house.store.rows["id-1"] = row("id-1", ok=None, state="RUNNING", delivery=None)
        telling = asyncio.ensure_future(told(house, tool="cal:add", ask="return"))
        while not house.calls.begun:
            await asyncio.sleep(0.01)
        house.end("id-1", DONE)
        *words, last = await telling
    assert [w["text"] for w in words] == ["looking", "found"]
    assert (last["event"], last["envelope"]["data"]) == ("answer", {"event": 1})


async def test_the_question_of_a_call_with_progress_comes_whole(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.asked["cal:add"] = ASKED
        body = {"tool": "cal:add", "ask": "return", "progress": True}
        status, answer = await house.ask("POST", "/v1/call", body)
    assert (status, answer["error"]["code"]) == (200, "CONFIRMATION_REQUIRED")


async def test_a_call_with_progress_times_out_too(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.control.calls.GRACE_S", 0.0)
    async with open_house(tmp_path) as house:
        house.calls.gate.clear()
        (last,) = await told(house, ttl_s=0.05)
        house.calls.gate.set()
    assert (last["event"], last["error"]["code"]) == ("late", "TIMEOUT")


# ------------------------------------------------------------------ a session keeps its mode


@pytest.mark.requirement("S2-83")
async def test_a_call_without_a_mode_has_that_of_its_session(tmp_path):
    async with open_house(tmp_path) as house:
        house.sessions.modes["local", "s1"] = "voice"
        await house.ask("POST", "/v1/call", {"tool": "notes:add", "session": "s1"})
        ((call, _),) = house.calls.seen
    assert call.mode is Mode.VOICE


@pytest.mark.requirement("S2-83")
async def test_only_the_first_call_of_a_session_sets_its_mode(tmp_path):
    async with open_house(tmp_path) as house:
        first, _ = await house.ask(
            "POST", "/v1/call", {"tool": "notes:add", "session": "s1", "mode": "voice"}
        )
        again, _ = await house.ask(
            "POST", "/v1/call", {"tool": "notes:add", "session": "s1", "mode": "voice"}
        )
        status, refused = await house.ask(
            "POST", "/v1/call", {"tool": "notes:add", "session": "s1", "mode": "text"}
        )
        assert (first, again, status, refused["error"]["code"]) == (200, 200, 409, "CONFLICT")
        assert "mode: the session s1 is a voice session" in refused["error"]["message"]
        assert refused["error"]["fix"]
        assert len(house.calls.seen) == 2
    assert house.sessions.modes == {("local", "s1"): "voice"}


async def test_without_sessions_a_call_has_its_own_mode(tmp_path):
    async with open_house(tmp_path, sessions=None) as house:
        await house.ask("POST", "/v1/call", {"tool": "notes:add", "session": "s1", "mode": "voice"})
        ((call, _),) = house.calls.seen
    assert (call.mode, call.session) == (Mode.VOICE, "s1")


# ------------------------------------------------------------------ calls nobody waits for


async def test_a_call_without_wait_is_answered_202_once_it_is_on_disk(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.gate.clear()
        asking = asyncio.ensure_future(
            house.ask("POST", "/v1/call", {"tool": "notes:add", "wait": False})
        )
        async with asyncio.timeout(DEADLINE_S):
            while not house.calls.begun:
                await asyncio.sleep(0)
            assert not asking.done()
            house.calls.gate.set()
            status, answer = await asking
        assert not house.calls.seen
    assert (status, answer) == (202, {"call_id": house.calls.begun[0].call_id, "state": "admitted"})


@pytest.mark.parametrize(
    "asked",
    [
        ASKED,
        ToolResponse.failure(ErrorCode.TOOL_NOT_FOUND, "no"),
        ToolResponse(data={"status": "pending"}),
    ],
)
async def test_an_immediate_answer_comes_as_an_envelope(tmp_path, asked):
    async with open_house(tmp_path) as house:
        house.calls.asked["cal:add"] = asked
        status, envelope = await house.ask_as_owner(
            "POST", "/v1/call", {"tool": "cal:add", "wait": False}
        )
    assert (status, envelope["ok"]) == (200, asked.ok)
    assert envelope["meta"]["callId"] == house.calls.begun[0].call_id
    assert envelope.get("error", {}).get("confirmation_request") == (
        asked.error and asked.error.confirmation_request
    )


async def test_calls_being_started_are_limited(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(begins=1)) as house:
        house.calls.gate.clear()
        body = {"tool": "notes:add", "wait": False}
        first = asyncio.ensure_future(house.ask("POST", "/v1/call", body))
        async with asyncio.timeout(DEADLINE_S):
            while not house.calls.begun:
                await asyncio.sleep(0)
        status, answer = await house.ask("POST", "/v1/call", body)
        assert (status, answer["error"]["code"], len(house.calls.begun)) == (503, "BUSY", 1)
        house.calls.gate.set()
        assert (await first)[0] == 202
        assert (await house.ask("POST", "/v1/call", body))[0] == 202


# ------------------------------------------------------------------ calls that need a yes


@pytest.mark.requirement("S2-71")
async def test_ask_return_gives_the_question_at_once(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.asked["cal:add"] = ASKED
        status, envelope = await house.ask_as_owner(
            "POST", "/v1/call", {"tool": "cal:add", "ask": "return"}
        )
        assert not house.calls.seen
    assert (status, envelope["error"]["code"]) == (200, "CONFIRMATION_REQUIRED")
    assert envelope["error"]["confirmation_request"]["token"] == "tok-1"
    assert envelope["error"]["retryable"] is False


async def test_ask_block_waits_for_the_confirmation(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.answers["cal:add"] = DONE
        _, envelope = await house.ask("POST", "/v1/call", {"tool": "cal:add"})
        ((call, wait),) = house.calls.seen
        assert not house.calls.begun
    assert (envelope["data"], call.tool, wait) == ({"event": 1}, "cal:add", Wait.ANSWER)


@pytest.mark.parametrize("tool", ["notes:add", "no:such"])
async def test_a_tool_that_never_asks_reads_no_record(tmp_path, tool):
    async with open_house(tmp_path) as house:
        await house.ask("POST", "/v1/call", {"tool": tool, "ask": "return", "wait": "delivery"})
        ((_, wait),) = house.calls.seen
        assert (wait, house.calls.begun, house.store.reads) == (Wait.DELIVERY, [], 0)


async def test_a_tool_that_did_not_ask_gives_its_answer(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.gate.clear()
        asking = asyncio.ensure_future(
            house.ask("POST", "/v1/call", {"tool": "cal:add", "ask": "return"})
        )
        async with asyncio.timeout(DEADLINE_S):
            while not house.calls.begun:
                await asyncio.sleep(0)
            call_id = house.calls.begun[0].call_id
            house.store.rows[call_id] = row(
                call_id, state="RUNNING", ok=None, delivery=None, response=None
            )
            house.calls.gate.set()
            while not house.store.reads:
                await asyncio.sleep(0)
            house.end(call_id, DONE, delivery={"state": "dropped", "reason": "glasses away"})
            status, envelope = await asking
    assert (status, envelope["data"]) == (200, {"event": 1})
    assert envelope["meta"]["delivery"] == {"state": "dropped", "reason": "glasses away"}


async def test_a_pending_tool_replies_pending(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.gate.clear()
        asking = asyncio.ensure_future(
            house.ask("POST", "/v1/call", {"tool": "cal:add", "ask": "return"})
        )
        async with asyncio.timeout(DEADLINE_S):
            while not house.calls.begun:
                await asyncio.sleep(0)
            call_id = house.calls.begun[0].call_id
            house.store.rows[call_id] = {
                "call_id": call_id,
                "state": "PENDING",
                "response": None,
                "delivery": None,
            }
            house.calls.gate.set()
            _, envelope = await asking
    assert (envelope["ok"], envelope["data"]) == (
        True,
        {"status": "pending", "pendingToolCallId": call_id},
    )
    assert envelope["meta"]["callId"] == call_id


# ------------------------------------------------------------------ tokens


@pytest.mark.requirement("C-22")
@pytest.mark.parametrize("key", ["confirm", "confirmation_token"])
async def test_a_token_is_never_part_of_the_arguments(tmp_path, key):
    async with open_house(tmp_path) as house:
        body = {"tool": "cal:add", "args": {"text": "x"}, key: "tok-1", "session": "s1"}
        _, envelope = await house.ask_as_owner("POST", "/v1/call", body)
        assert [house.calls.seen, house.calls.begun] == [[], []]
    ((token, allow, grant, call),) = house.calls.decided
    assert (envelope["data"], token, allow, grant) == ({"event": 1}, "tok-1", True, Grant.ONCE)
    assert (call.tool, call.args, call.session) == ("cal:add", {"text": "x"}, "s1")


@pytest.mark.requirement("C-22")
@pytest.mark.parametrize("key", ["token", "confirmation_token"])
async def test_a_token_is_enough_to_decide_a_call(tmp_path, key):
    async with open_house(tmp_path) as house:
        status, envelope = await house.ask_as_owner(
            "POST", "/v1/confirm", {key: "tok-1", "allow": True, "grant": "always"}
        )
        used, second = await house.ask_as_owner(
            "POST", "/v1/confirm", {key: "tok-1", "allow": True}
        )
    assert (status, envelope["data"]) == (200, {"event": 1})
    assert (used, second["error"]["type"], second["error"]["code"]) == (
        200,
        "CONFIRMATION_EXPIRED",
        "USED",
    )
    assert house.calls.decided[0] == ("tok-1", True, Grant.ALWAYS, None)
    assert house.calls.decided[1] == ("tok-1", True, Grant.ONCE, None)


async def test_a_denial_may_be_permanent(tmp_path):
    async with open_house(tmp_path) as house:
        _, envelope = await house.ask_as_owner(
            "POST", "/v1/confirm", {"token": "tok-1", "allow": False, "grant": "never"}
        )
    assert envelope["error"]["code"] == "DENIED"
    assert house.calls.decided == [("tok-1", False, Grant.NEVER, None)]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"allow": True}, "token: must be text"),
        ({"token": "", "allow": True}, "token"),
        ({"token": 1, "allow": True}, "token"),
        ({"token": "t" * 256, "allow": True}, "token: must have at most"),
        ({"token": "t"}, "allow: must be true or false"),
        ({"token": "t", "allow": "yes"}, "allow"),
        ({"token": "t", "allow": True, "grant": "maybe"}, "grant: must be one of"),
        ({"token": "t", "allow": True, "grant": "never"}, "grant: never needs allow false"),
        ({"token": "t", "allow": False, "grant": "always"}, "grant: always needs allow true"),
        ({"token": "t", "allow": True, "tool": "a:b"}, "tool: unknown key"),
    ],
)
async def test_a_malformed_decision_is_a_400_that_names_the_field(tmp_path, body, named):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask_as_owner("POST", "/v1/confirm", body)
        assert (status, house.calls.decided) == (400, [])
        assert named in answer["error"]["message"]


# ------------------------------------------------------------------ called off


async def test_a_running_call_is_cancelled_with_its_reason(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.running = {"c7": None, "c8": None}
        assert await house.ask("POST", "/v1/calls/c7/cancel", {"reason": "changed my mind"}) == (
            200,
            {"call_id": "c7", "cancelled": True},
        )
        assert (await house.ask("POST", "/v1/calls/c8/cancel"))[0] == 200
    assert house.calls.running == {"c7": "changed my mind", "c8": "cancelled over the control API"}


async def test_a_finished_or_unknown_call_cannot_be_cancelled(tmp_path):
    async with open_house(tmp_path) as house:
        over, told = await house.ask("POST", "/v1/calls/c1/cancel")
        unknown, none = await house.ask("POST", "/v1/calls/nope/cancel")
        wrong, bad = await house.ask("POST", "/v1/calls/c1/cancel", {"reason": "x" * 201})
    assert (over, told["error"]["code"], unknown, none["error"]["code"]) == (
        409,
        "CONFLICT",
        404,
        "NOT_FOUND",
    )
    assert "c1 is DELIVERED" in told["error"]["message"]
    assert (wrong, "reason" in bad["error"]["message"]) == (400, True)


# ------------------------------------------------------------------ results handed in


@pytest.mark.requirement("S3-26")
@pytest.mark.parametrize(
    ("body", "ok", "value"),
    [
        ({"data": {"answer": "yes"}}, True, {"answer": "yes"}),
        ({"data": None}, True, None),
        ({"ok": True}, True, None),
        (
            {"ok": True, "data": 5, "render": {"display": {"layout": "text_wall", "text": "x"}}},
            True,
            5,
        ),
        ({"error": {"type": "TRANSIENT", "message": "later"}}, False, "later"),
        (
            {
                "ok": False,
                "error": {"type": "PERMANENT", "code": "DENIED", "message": "no"},
                "intents": [],
            },
            False,
            "no",
        ),
    ],
)
async def test_a_result_is_data_or_a_whole_envelope(tmp_path, body, ok, value):
    async with open_house(tmp_path, user_id="ann") as house:
        status, answer = await house.ask("POST", "/v1/calls/c9/result", {**body, "session": "s1"})
    ((call_id, response, user, session),) = house.calls.submitted
    assert (status, answer) == (200, {"call_id": "c9", "submission": "taken"})
    assert (call_id, response.ok, user, session) == ("c9", ok, "ann", "s1")
    assert (response.data if ok else response.error.message) == value


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "not JSON"),
        ({}, "data: exactly one of data and error"),
        ({"data": 1, "error": {}}, "data: exactly one of"),
        ({"ok": 1, "data": 2}, "ok: must be true or false"),
        ({"ok": True, "error": {}}, "error: must be absent"),
        ({"error": "no"}, "error: must be an object"),
        ({"error": {"message": "x"}}, "error.type: must be a string"),
        ({"error": {"type": "X", "message": "x"}}, "error.type: 'X' is not one"),
        ({"data": 1, "result": 1}, "result: unknown key"),
        ({"data": 1, "render": 5}, "render: must be an object"),
        ({"data": 1, "session": 5}, "session: must be text"),
    ],
)
async def test_a_malformed_result_is_a_400_and_is_not_submitted(tmp_path, body, named):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask("POST", "/v1/calls/c9/result", body)
        assert (status, house.calls.submitted) == (400, [])
        assert named in answer["error"]["message"]


@pytest.mark.requirement("S3-27", "S3-28")
async def test_a_result_for_an_unknown_or_foreign_call_is_a_404(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.submission = Submission.UNKNOWN
        status, answer = await house.ask("POST", "/v1/calls/c1/result", {"data": 1})
    assert (status, answer["error"]["code"]) == (404, "NOT_FOUND")
    assert "--pending" in answer["error"]["fix"]


@pytest.mark.requirement("S3-25")
async def test_a_second_result_is_a_409(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.submission = Submission.OVER
        status, answer = await house.ask("POST", "/v1/calls/c1/result", {"data": 1})
    assert (status, answer["error"]["code"]) == (409, "CONFLICT")
    assert "its first answer stands" in answer["error"]["message"]


# ------------------------------------------------------------------ a disk that takes nothing


async def test_a_full_disk_is_reported(tmp_path, caplog):
    async with open_house(tmp_path) as house:
        house.confirmations.broken = Full("no room for new durable work")
        status, answer = await house.ask_as_owner(
            "PUT", "/v1/grants", {"tool": "cal:add", "grant": "always"}
        )
        assert (status, answer["error"]["code"]) == (507, "DISK_FULL")
        assert "no room" in answer["error"]["message"]
        house.confirmations.broken = ValueError("ours")
        status, answer = await house.ask_as_owner(
            "PUT", "/v1/grants", {"tool": "cal:add", "grant": "always"}
        )
        assert (status, answer["error"]["code"]) == (500, "INTERNAL")
    assert "ours" not in json.dumps(answer)


async def test_a_started_call_is_never_refused_as_busy(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(polls=0)) as house:
        house.calls.gate.clear()
        asking = asyncio.ensure_future(
            house.ask("POST", "/v1/call", {"tool": "cal:add", "ask": "return"})
        )
        async with asyncio.timeout(DEADLINE_S):
            while not house.calls.begun:
                await asyncio.sleep(0)
            house.end(house.calls.begun[0].call_id, DONE, told=False)
            house.store.rows[house.calls.begun[0].call_id]["delivery"] = "shown"
            house.calls.gate.set()
            assert (await asking)[0] == 200


def test_clients_that_read_or_cancel_still_get_in():
    limits = HttpLimits()
    assert max(limits.begins, limits.polls, limits.streams) < limits.connections
