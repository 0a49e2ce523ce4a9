"""What is asked of a client before a call goes on: our "may it?", and what tools of other
servers want to know.
"""

import asyncio
from contextlib import suppress

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from edge.core.grants import Grant
from edge.core.tools.snapshot import Entry
from edge.mcp.server.elicitation import Answered, asking
from tests.unit.control.house import ASKED, definition
from tests.unit.mcp.server.mcp_house import ERAS, NEWER, OLDER, SHOWN, mcp_house
from tests.unit.mcp.server.test_mcp_server import ADD, text_of, until
from tools_cache.api.tool import ErrorCode, ToolResponse

pytestmark = pytest.mark.enable_socket
PAY = "cal__add"


def says(answer, seen=None):
    async def elicit(_context, params):
        if seen is not None:
            seen.append(params)
        return types.ElicitResult(
            action=answer, content={"confirm": True} if answer == "accept" else None
        )

    return elicit


@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        ({"action": "accept", "content": {"confirm": True}}, True),
        ({"action": "accept", "content": {"confirm": False}}, False),
        ({"action": "accept", "content": {"confirm": "yes"}}, False),
        ({"action": "accept"}, False),
        ({"action": "accept", "content": "x"}, False),
        ({"action": "decline", "content": {"confirm": True}}, False),
        ({"action": "cancel"}, False),
        ("yes", None),
        (None, None),
    ],
)
def test_only_an_accepted_form_with_its_box_ticked_is_a_yes(said, allowed):
    assert Answered({"confirm": said}).allowed is allowed


def to_pay(mcp):
    mcp.house.registry.list += (
        Entry(definition("cal:add", requires_confirmation="always"), "Calendar"),
    )
    mcp.house.calls.asked["cal:add"] = ASKED
    begin = mcp.house.calls.begin

    async def admitted(call, *, progress=None):
        mcp.house.store.rows[call.call_id] = {
            "call_id": call.call_id,
            "state": "AWAITING_CONFIRMATION",
        }
        return await begin(call)

    mcp.house.calls.begin = admitted


# ------------------------------------------------------------------ a yes


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("MCP-confirm")
async def test_a_call_that_needs_confirmation_asks_the_clients_user(tmp_path, era):
    seen = []
    async with mcp_house(tmp_path, confirm_in_client=True) as mcp:
        to_pay(mcp)
        async with mcp.client(era, elicitation_callback=says("accept", seen)) as client:
            called = await client.call_tool(PAY, {})
        (begun,), ((call_id, allow, grant, _),) = mcp.house.calls.begun, mcp.house.calls.decided
    assert (called.is_error, called.structured_content) == (False, {"event": 1, **SHOWN})
    assert "Create calendar event with 2 attendees" in seen[0].message
    assert (call_id, allow, grant) == (begun.call_id, True, Grant.ONCE)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("answer", ["decline", "cancel"])
@pytest.mark.requirement("MCP-confirm")
async def test_a_no_is_a_no(tmp_path, era, answer):
    async with mcp_house(tmp_path, confirm_in_client=True) as mcp:
        to_pay(mcp)
        async with mcp.client(era, elicitation_callback=says(answer)) as client:
            called = await client.call_tool(PAY, {})
        ((_, allow, _, _),) = mcp.house.calls.decided
    assert allow is False
    assert called.is_error
    assert "DENIED" in text_of(called)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.requirement("MCP-confirm", "CONSENT-roles")
async def test_a_client_neither_answers_nor_gets_the_token(tmp_path, era, asks):
    seen = []
    async with mcp_house(tmp_path) as mcp:
        to_pay(mcp)
        more = {"elicitation_callback": says("accept", seen)} if asks else {}
        async with mcp.client(era, **more) as client:
            called = await client.call_tool(PAY, {})
        assert (mcp.house.calls.decided, seen) == ([], [])
    assert called.is_error
    assert called.structured_content["error"]["code"] == "CONFIRMATION_REQUIRED"
    assert "tok-1" not in called.model_dump_json()
    assert "glassd confirm in a terminal" in text_of(called)
    assert f"get_pending_result with id {mcp.house.calls.begun[0].call_id}" in text_of(called)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("confirm_in_client", [True, False])
@pytest.mark.requirement("CONSENT-roles")
async def test_a_token_over_mcp_is_refused_aloud(tmp_path, era, confirm_in_client):
    async with mcp_house(tmp_path, confirm_in_client=confirm_in_client) as mcp:
        to_pay(mcp)
        async with mcp.client(era) as client:
            called = await client.call_tool(PAY, {}, meta={"io.glassd/confirmationToken": "tok-1"})
        assert (mcp.house.calls.decided, mcp.house.calls.begun) == ([], [])
    assert called.is_error
    assert "DENIED: io.glassd/confirmationToken is not taken" in text_of(called)


async def _asked(client, name=PAY, args=None):
    """One round of a newer client by hand: the sealed state."""
    answer = await client.session.call_tool(name, args or {}, allow_input_required=True)
    assert isinstance(answer, types.InputRequiredResult)
    return answer


YES = {"confirm": types.ElicitResult(action="accept", content={"confirm": True})}


@pytest.mark.requirement("MCP-confirm-once")
async def test_a_yes_counts_once_for_the_very_call_it_was_given_for(tmp_path):
    async with mcp_house(tmp_path, confirm_in_client=True) as mcp:
        to_pay(mcp)
        async with mcp.client(NEWER, elicitation_callback=says("accept")) as client:
            state = (await _asked(client)).request_state
            for args, changed in (({"more": 1}, state), ({}, state[:-4] + "AAAA")):
                with pytest.raises(MCPError) as refused:
                    await client.session.call_tool(
                        PAY, args, input_responses=YES, request_state=changed
                    )
                assert refused.value.code == -32602
            assert mcp.house.calls.decided == []
            first = await client.session.call_tool(
                PAY, {}, input_responses=YES, request_state=state
            )
            mcp.house.end(mcp.house.calls.begun[0].call_id, ToolResponse(data="done once"))
            second = await client.session.call_tool(
                PAY, {}, input_responses=YES, request_state=state
            )
    assert first.structured_content == {"event": 1, **SHOWN}
    assert text_of(second) == "done once", (
        "a repetition is given the answer there is; the daemon takes a token once"
    )


async def test_a_client_that_brings_no_answer_is_asked_again(tmp_path):
    async with mcp_house(tmp_path, confirm_in_client=True) as mcp:
        to_pay(mcp)
        async with mcp.client(NEWER, elicitation_callback=says("accept")) as client:
            state = (await _asked(client)).request_state
            again = await client.session.call_tool(
                PAY, {}, input_responses={}, request_state=state, allow_input_required=True
            )
        assert mcp.house.calls.decided == []
    assert "Create calendar event" in again.input_requests["confirm"].params.message


@pytest.mark.requirement("MCP-confirm")
async def test_a_wearer_who_answers_first_ends_the_question_in_an_older_client(tmp_path):
    async def never(_context, _params):
        await asyncio.Event().wait()

    async with mcp_house(tmp_path, confirm_in_client=True) as mcp:
        to_pay(mcp)
        async with mcp.client(OLDER, elicitation_callback=never) as client:
            calling = asyncio.ensure_future(client.call_tool(PAY, {}))
            await until(lambda: mcp.house.calls.begun)
            mcp.house.end(mcp.house.calls.begun[0].call_id, ToolResponse(data="tapped"))
            called = await calling
    assert text_of(called) == "tapped"


@pytest.mark.requirement("MCP-cancel")
async def test_giving_up_while_asked_calls_the_waiting_call_off(tmp_path):
    asked = asyncio.Event()

    async def never(_context, _params):
        asked.set()
        await asyncio.Event().wait()

    async with mcp_house(tmp_path, confirm_in_client=True) as mcp:
        to_pay(mcp)
        async with mcp.client(OLDER, elicitation_callback=never) as client:
            calling = asyncio.ensure_future(client.call_tool(PAY, {}))
            await asked.wait()
            call_id = mcp.house.calls.begun[0].call_id
            mcp.house.calls.running[call_id] = ""
            calling.cancel()
            with suppress(asyncio.CancelledError):
                await calling
            await until(lambda: mcp.house.calls.running[call_id])


# ------------------------------------------------------------------ what a tool wants to know

NAME = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}
MODEL = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
        "maxTokens": 5,
    },
}


def wants(mcp, requests, state=None, rounds=1):
    """The tool asks `rounds` times, then says what it got."""
    got = []

    async def call(call, *, progress=None, wait=None, live=False, new_id=False):
        given = call.input
        got.append(given)
        if len(got) <= rounds:
            details = {"inputRequests": requests} | (
                {"requestState": state} if state is not None else {}
            )
            return ToolResponse.failure(
                ErrorCode.UNSUPPORTED, "The tool asks back", details=details
            )
        return ToolResponse(data="thanks")

    mcp.house.calls.call = call
    return got


async def named(_context, _params):
    return types.ElicitResult(action="accept", content={"name": "Ada"})


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("state", [None, "remember"])
@pytest.mark.requirement("MCP-asks-back")
async def test_what_a_tool_asks_reaches_the_client_and_the_answer_the_tool(tmp_path, era, state):
    async with mcp_house(tmp_path) as mcp, mcp.client(era, elicitation_callback=named) as client:
        got = wants(mcp, {"who": NAME}, state)
        called = await client.call_tool(ADD, {})
    assert text_of(called) == "thanks"
    assert got[0] == {"canAnswer": ["elicitation/create"]}, "it is asked, and not the wearer"
    assert got[1]["inputResponses"]["who"]["content"] == {"name": "Ada"}
    assert got[1].get("requestState") == state


@pytest.mark.parametrize("era", ERAS)
async def test_for_a_client_that_takes_no_questions_others_are_asked(tmp_path, era):
    async with mcp_house(tmp_path) as mcp, mcp.client(era) as client:
        got = wants(mcp, {}, rounds=0)
        assert text_of(await client.call_tool(ADD, {})) == "thanks"
    assert got == [None]


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_without_roots_is_not_asked_for_them(tmp_path, era):
    async with mcp_house(tmp_path) as mcp, mcp.client(era, elicitation_callback=named) as client:
        got = wants(mcp, {"r": {"method": "roots/list"}}, "s")
        assert text_of(await client.call_tool(ADD, {})) == "thanks"
    assert got[1]["inputResponses"] == {"r": {"roots": []}}
    assert got[1]["requestState"] == "s"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_with_roots_alone_leaves_other_questions_to_the_wearer(tmp_path, era):
    async def roots(_context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv")])

    async with mcp_house(tmp_path) as mcp, mcp.client(era, list_roots_callback=roots) as client:
        got = wants(mcp, {"r": {"method": "roots/list"}}, "s")
        await client.call_tool(ADD, {})
    assert got[0] == {"canAnswer": ["roots/list"]}
    assert got[1]["inputResponses"]["r"]["roots"][0]["uri"] == "file:///srv"
    assert got[1]["canAnswer"] == ["roots/list"]


@pytest.mark.requirement("MCP-asks-back")
async def test_a_newer_client_is_asked_only_what_it_can_answer(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER, elicitation_callback=named) as client:
        wants(mcp, {"who": NAME, "hello": MODEL})
        assert list((await _asked(client, ADD)).input_requests) == ["who"]


async def test_a_newer_client_without_elicitation_learns_what_it_lacks(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        wants(mcp, {"hello": MODEL})
        with pytest.raises(MCPError) as refused:
            await client.call_tool(ADD, {})
    assert (refused.value.code, refused.value.data) == (
        -32021,
        {"requiredCapabilities": {"sampling": {}}},
    )


async def test_an_older_client_that_cannot_answer_gets_a_result_that_says_so(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(OLDER) as client:
        wants(mcp, {"hello": MODEL})
        called = await client.call_tool(ADD, {})
    assert called.is_error
    assert "lacks: sampling" in text_of(called)


async def test_a_tool_that_asks_an_older_client_without_end_is_ended(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(OLDER, elicitation_callback=named) as client:
        got = wants(mcp, {"who": NAME}, rounds=1000)
        called = await client.call_tool(ADD, {})
    assert "asks again and again" in text_of(called)
    assert len(got) == 8


@pytest.mark.parametrize(
    "details",
    [
        {"inputRequests": "x"},
        {"inputRequests": {"a": {"method": "tools/call"}}},
        {"inputRequests": {str(n): NAME for n in range(17)}},
        {"requestState": 5},
    ],
)
async def test_what_is_no_question_is_a_failure_like_any_other(tmp_path, details):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER, elicitation_callback=named) as client:
        mcp.house.calls.answers["notes:add"] = ToolResponse.failure(
            ErrorCode.UNSUPPORTED, "What?", details=details
        )
        called = await client.call_tool(ADD, {})
    assert called.is_error
    assert "UNSUPPORTED: What?" in text_of(called)


@pytest.mark.requirement("I11-consent-everywhere")
def test_the_clients_user_sees_every_line_that_the_wearer_sees():
    said = ["Execute bank:pay", "From the cloud.", "amount: 99999", "to: <!-- mallory"]
    request = {"token": "t", "preview": said[0], "particulars": said}
    asked = asking(
        {
            "ok": False,
            "error": {"code": "CONFIRMATION_REQUIRED", "confirmation_request": request},
            "meta": {"callId": "c1"},
        }
    )
    params = asked.requests["confirm"]["params"]
    assert params["message"] == (
        "Allow this?\n\n    Execute bank:pay\n    From the cloud.\n   "
        " amount: 99999\n    to: <!-- mallory"
    )
    assert asked.state == "\n".join(said), "and again when it is asked again"


# ------------------------------------------------------------------ who may answer in the owner's
# place


@pytest.mark.requirement("CONSENT-roles")
def test_a_client_without_the_owners_socket_cannot_confirm(tmp_path, monkeypatch):
    import socket

    from edge.commands.mcp import _check_owner
    from edge.runtime.errors import UserError

    def shut(*_):
        raise PermissionError(13, "Permission denied")

    _check_owner((tmp_path / "owner.sock",))  # no daemon yet: it is waited for
    monkeypatch.setattr(socket.socket, "connect", shut)
    with pytest.raises(
        UserError, match="--confirm-in-client answers for the owner, but you may not use"
    ) as refused:
        _check_owner((tmp_path / "owner.sock",))
    assert (refused.value.exit_code, refused.value.fix.startswith("leave it out, or ")) == (3, True)
