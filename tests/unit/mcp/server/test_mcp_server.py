"""Our MCP server as clients of both revisions see it: what it lists, what a call gives, and
what it says when it cannot.
"""

import asyncio
import json
from contextlib import suppress
from types import SimpleNamespace

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from edge.control.http import HttpLimits
from edge.core.tools.snapshot import Entry
from edge.mcp.server.calls import CallRequest
from edge.mcp.server.daemon_client import DaemonClient
from edge.mcp.server.server import Facade
from edge.mcp.server.tools import KnownTool, alias_of
from edge.runtime.bus import Bus
from edge.runtime.events import LensChanged, ToolsListChanged
from tests.unit.control.house import DEADLINE_S, definition, open_house
from tests.unit.mcp.server.mcp_house import COLD, ERAS, NEWER, OLDER, SHOWN, mcp_house, ways, wire
from tools_cache.api.tool import ErrorCode, RateLimit, SideEffects, ToolResponse

pytestmark = pytest.mark.enable_socket
ADD = "notes__add"


async def until(condition):
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.005)


def text_of(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


# ------------------------------------------------------------------ what there is


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("MCP-eras")
async def test_one_server_speaks_both_revisions(tmp_path, era):
    async with mcp_house(tmp_path) as mcp, mcp.client(era) as client:
        listed = await client.list_tools()
        called = await client.call_tool(ADD, {"text": "milk"})
        assert client.protocol_version == ("2025-11-25" if era == OLDER else NEWER)
    assert [tool.name for tool in listed.tools] == [ADD, "get_pending_result"]
    assert (called.is_error, called.structured_content) == (
        False,
        {"id": 1, "text": "milk", **SHOWN},
    )
    assert json.loads(text_of(called)) == {"id": 1, "text": "milk"}


async def test_the_prompt_that_is_recommended_is_one_there_is(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(OLDER) as client:
        (prompt,) = (await client.list_prompts()).prompts
        assert f"The prompt {prompt.name} tells more" in client.instructions


@pytest.mark.requirement("MCP-names")
async def test_a_tool_is_called_by_its_alias_or_canonical_name_only(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        await client.call_tool(ADD, {})
        await client.call_tool("notes:add", {})
        with pytest.raises(
            MCPError, match=f"Unknown tool: notes_add; did you mean {ADD}"
        ) as unknown:
            await client.call_tool("notes_add", {})
        assert unknown.value.code == -32602
        assert [call.tool for call, _ in mcp.house.calls.seen] == ["notes:add"] * 2
        assert {call.origin for call, _ in mcp.house.calls.seen} == {"mcp"}


async def test_a_tool_that_came_since_the_last_look_is_found(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(OLDER) as client:
        await client.list_tools()
        mcp.house.registry.list += (Entry(definition("late:come"), "Late"),)
        mcp.house.calls.answers["late:come"] = ToolResponse(data="here")
        assert text_of(await client.call_tool("late__come", {})) == "here"


async def test_a_hidden_tool_is_not_listed_and_its_call_says_why(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        mcp.house.calls.answers["cam:shot"] = ToolResponse.failure(
            ErrorCode.HARDWARE_MISSING, "There is no camera"
        )
        assert "cam__shot" not in [tool.name for tool in (await client.list_tools()).tools]
        assert "There is no camera" in text_of(await client.call_tool("cam__shot", {}))


async def test_a_suite_may_have_its_tools_under_their_own_names(tmp_path):
    async with mcp_house(tmp_path, alias=alias_of({"notes"})) as mcp, mcp.client(NEWER) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "add",
            "get_pending_result",
        ]
        assert not (await client.call_tool("add", {})).is_error


@pytest.mark.requirement("MCP-metadata")
async def test_metadata_of_a_tool_becomes_hints_and_prefixed_keys(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        mcp.house.registry.list = (
            Entry(definition("a:reads", side_effects=SideEffects.READ_ONLY), "A"),
            Entry(definition("b:pays", requires_confirmation="always", idempotent=True), "B"),
            Entry(
                definition(
                    "c:own",
                    raw={
                        "title": "C",
                        "annotations": {"openWorldHint": True},
                        "_meta": {"x.y/z": 1},
                        "outputSchema": {"type": "array"},
                    },
                ),
                "C",
            ),
        )
        reads, pays, own, _ = (await client.list_tools()).tools
    assert (
        reads.annotations.read_only_hint,
        reads.annotations.open_world_hint,
        reads.annotations.destructive_hint,
    ) == (True, False, None)
    assert (
        pays.annotations.read_only_hint,
        pays.annotations.destructive_hint,
        pays.annotations.idempotent_hint,
    ) == (False, True, True)
    assert (own.title, own.annotations.open_world_hint, own.meta["x.y/z"], own.output_schema) == (
        "C",
        True,
        1,
        {"type": "array"},
    )
    assert (own.meta["io.glassd/toolId"], own.meta["io.glassd/category"]) == ("c:own", "utility")


async def test_an_older_client_gets_only_forms_that_it_knows(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(OLDER) as client:
        mcp.house.registry.list = (
            Entry(definition("c:own", raw={"outputSchema": {"type": "array"}}), "C"),
        )
        mcp.house.calls.answers["c:own"] = ToolResponse(data=[1, 2])
        tool, _ = (await client.list_tools()).tools
        called = await client.call_tool("c__own", {})
    assert (tool.output_schema, called.structured_content, text_of(called)) == (
        None,
        None,
        "[1, 2]",
    )


# ------------------------------------------------------------------ what a call gives


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("MCP-errors")
async def test_every_failure_of_a_known_tool_is_a_readable_result(tmp_path, era):
    async with mcp_house(tmp_path) as mcp, mcp.client(era) as client:
        mcp.house.calls.answers["notes:add"] = ToolResponse.failure(
            ErrorCode.OFFLINE, "Offline: add cannot be reached now", suggestion="Try later"
        )
        called = await client.call_tool(ADD, {})
    assert called.is_error
    assert text_of(called) == "OFFLINE: Offline: add cannot be reached now. Try later."
    assert called.structured_content["error"]["type"] == "TRANSIENT"
    assert not called.structured_content["ok"]


async def test_the_envelope_of_a_tool_with_a_promised_form_stands_beside_it(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        mcp.house.registry.list = (
            Entry(definition("c:own", raw={"outputSchema": {"type": "object"}}), "C"),
        )
        mcp.house.calls.answers["c:own"] = ToolResponse.failure(ErrorCode.TIMEOUT, "Too slow")
        called = await client.call_tool("c__own", {})
    assert called.is_error
    assert called.structured_content is None
    assert called.meta["io.glassd/envelope"]["error"]["code"] == "TIMEOUT"


@pytest.mark.requirement("MCP-content")
async def test_the_content_of_another_server_goes_out_as_it_came(tmp_path):
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        mcp.house.calls.answers["notes:add"] = ToolResponse(
            data="two blocks", meta={"content": [{"type": "text", "text": "a"}, image]}
        )
        called = await client.call_tool(ADD, {})
    assert [block.type for block in called.content] == ["text", "image"]
    assert (called.content[1].data, called.structured_content) == ("AAAA", SHOWN)
    assert "content" not in called.meta["io.glassd/meta"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("MCP-pending")
async def test_a_pending_call_names_the_tool_that_returns_its_result(tmp_path, era):
    async with mcp_house(tmp_path) as mcp, mcp.client(era) as client:
        mcp.house.calls.answers["notes:add"] = ToolResponse(
            data={"status": "pending", "pendingToolCallId": "c7"}
        )
        called = await client.call_tool(ADD, {})
        mcp.house.store.rows["c7"] = {"call_id": "c7", "state": "PENDING"}
        first = await client.call_tool("get_pending_result", {"id": "c7"})
        mcp.house.end("c7", ToolResponse(data={"done": True}))
        last = await client.call_tool("get_pending_result", {"id": "c7", "wait_s": 20})
        unknown = await client.call_tool("get_pending_result", {"id": "c8"})
    assert "get_pending_result with id c7" in text_of(called)
    assert first.structured_content["status"] == "pending"
    assert last.structured_content == {"done": True, **SHOWN}
    assert unknown.is_error
    assert "TOOL_NOT_FOUND" in text_of(unknown)


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"id": 5},
        {"id": "../x"},
        {"id": "c1", "wait_s": True},
        {"id": "c1", "wait_s": 51},
        {"id": "c1", "more": 1},
    ],
)
async def test_our_own_tool_refuses_wrong_arguments_as_any_tool_does(tmp_path, args):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        called = await client.call_tool("get_pending_result", args)
    assert called.is_error
    assert "INVALID_ARGUMENTS" in text_of(called)


async def test_our_keys_in_a_requests_meta_reach_the_call(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        meta = {
            "io.glassd/idempotencyKey": "k1",
            "io.glassd/turn": "t1",
            "io.glassd/session": "s1",
            "io.glassd/mode": "voice",
            "io.glassd/ttlS": 5,
        }
        await client.call_tool(ADD, {}, meta=meta)
        ((call, _),) = mcp.house.calls.seen
    assert (call.idempotency_key, call.turn_id, call.session, call.mode, call.ttl_s) == (
        "k1",
        "t1",
        "s1",
        "voice",
        5,
    )


@pytest.mark.requirement("I13-present")
@pytest.mark.parametrize(
    ("given", "sent"), [(True, True), (False, False), (None, None), ("x", None)]
)
async def test_a_client_says_whether_the_wearer_sees_the_answer(tmp_path, given, sent):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        await client.call_tool(ADD, {}, meta={"io.glassd/present": given})
        ((call, _),) = mcp.house.calls.seen
    assert call.present is sent


async def test_what_the_daemon_cannot_read_is_a_result_too(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        called = await client.call_tool(ADD, {}, meta={"io.glassd/mode": "whispering"})
    assert called.is_error
    assert "mode: must be one of" in text_of(called)


# ------------------------------------------------------------------ limits, and a daemon that is
# away


async def test_arguments_that_are_too_large_are_named_as_such(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        called = await client.call_tool(ADD, {"text": "x" * 300_000})
        error = called.structured_content["error"]
        assert (error["type"], error["retryable"]) == ("VALIDATION", False)
        assert "larger than 262144 bytes" in text_of(called)
        assert not (await client.call_tool(ADD, {})).is_error


@pytest.mark.requirement("MCP-rate")
async def test_calls_beyond_the_rate_limit_get_a_retry_time(tmp_path):
    async with mcp_house(tmp_path, rate=RateLimit(2, 3600.0)) as mcp, mcp.client(NEWER) as client:
        results = [await client.call_tool(ADD, {}) for _ in range(3)]
        assert len(mcp.house.calls.seen) == 2
    assert [r.is_error for r in results] == [False, False, True]
    error = results[2].structured_content["error"]
    assert (error["code"], error["retryable"]) == ("RATE_LIMIT", True)
    assert error["retryAfterMs"] > 0


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("MCP-absent")
async def test_without_a_daemon_tools_are_listed_from_disk_and_calls_fail(tmp_path, era):
    facade = Facade(DaemonClient((tmp_path / "nobody.sock",)), ways())
    async with facade.running(), Client(wire(facade), mode=era) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            ADD,
            "get_pending_result",
        ]
        called = await client.call_tool(ADD, {})
    assert called.is_error
    assert "glassd is not running" in text_of(called)
    assert "systemctl start glassd" in text_of(called)


@pytest.mark.parametrize(
    ("row", "meta", "again"),
    [
        ({}, {}, False),
        ({"sideEffects": "read_only"}, {}, True),
        ({"idempotent": True}, {}, True),
        ({}, {"io.glassd/idempotencyKey": "k1"}, True),
    ],
)
@pytest.mark.requirement("MCP-absent")
async def test_a_call_lost_with_the_daemon_is_retryable_only_if_harmless(
    tmp_path, row, meta, again
):
    async def dies(reader, writer):
        with suppress(asyncio.IncompleteReadError):  # some connections are only looked at
            await reader.readuntil(b"\r\n\r\n")
        writer.close()

    facade = Facade(
        DaemonClient((tmp_path / "dies.sock",)),
        ways(offline=lambda: [{**COLD[0], **row}], new_id=lambda: "call-1"),
    )
    async with (
        await asyncio.start_unix_server(dies, tmp_path / "dies.sock"),
        facade.running(),
        Client(wire(facade), mode=NEWER) as client,
    ):
        called = await client.call_tool(ADD, {}, meta=meta)
    error = called.structured_content["error"]
    assert (error["type"], error["code"], error["retryable"], error["partialSideEffects"]) == (
        "TRANSIENT",
        "INTERRUPTED",
        again,
        not again,
    )
    assert "get_pending_result with id call-1" in text_of(called)


async def test_an_unknown_cursor_is_refused(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        with pytest.raises(MCPError) as refused:
            await client.list_tools(cursor="x")
    assert refused.value.code == -32602


# ------------------------------------------------------------------ progress, calling off


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("MCP-progress")
async def test_progress_is_reported_in_order_and_before_the_result(tmp_path, era):
    said = []

    async def progress(done, _total, message):
        said.append((done, message))

    async def working(call, *, progress=None, wait=None, live=False, new_id=False):
        for word in ("one", "two", "three"):
            if progress is not None:
                await progress(word)
        return ToolResponse(data="done")

    async with mcp_house(tmp_path) as mcp, mcp.client(era) as client:
        mcp.house.calls.call = working
        assert text_of(await client.call_tool(ADD, {}, progress_callback=progress)) == "done"
        heard = list(said)
        await client.call_tool(ADD, {})
    assert heard == [(1, "one"), (2, "two"), (3, "three")]
    assert said == heard


async def test_a_tool_that_babbles_is_not_passed_on_word_for_word(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.mcp.server.calls.PROGRESS", RateLimit(3, 3600.0))
    said = []

    async def progress(done, _total, _message):
        said.append(done)

    async def babbling(call, *, progress=None, wait=None, live=False, new_id=False):
        for _ in range(60):
            await progress("la")
        return ToolResponse(data="done")

    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        mcp.house.calls.call = babbling
        await client.call_tool(ADD, {}, progress_callback=progress)
    assert said == [1, 2, 3]


async def test_calls_beyond_those_whose_progress_can_be_followed_run_without_it(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(OLDER) as client:
        await until(lambda: mcp.house.server.streams == 1)  # the news
        mcp.house.calls.gate.clear()
        calling = [asyncio.ensure_future(client.call_tool(ADD, {})) for _ in range(12)]
        await until(lambda: len(mcp.house.calls.seen) == 12)
        assert mcp.house.server.streams == 1 + 8
        mcp.house.calls.gate.set()
        assert not any(called.is_error for called in await asyncio.gather(*calling))


async def test_a_call_runs_without_progress_if_no_stream_is_free(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(streams=1)) as house:
        facade = Facade(DaemonClient((house.path,)), ways())
        async with facade.running(), Client(wire(facade), mode=OLDER) as client:
            await until(lambda: house.server.streams == 1)  # the news
            assert not (await client.call_tool(ADD, {})).is_error
        assert len(house.calls.seen) == 1


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("MCP-cancel")
async def test_a_call_its_client_gives_up_is_called_off_in_the_daemon(tmp_path, era):
    async with mcp_house(tmp_path) as mcp, mcp.client(era) as client:
        mcp.house.calls.gate.clear()
        calling = asyncio.ensure_future(client.call_tool(ADD, {}))
        await until(lambda: mcp.house.calls.seen)
        call_id = mcp.house.calls.seen[0][0].call_id
        mcp.house.calls.running[call_id] = ""
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
        await until(lambda: mcp.house.calls.running[call_id])
        mcp.house.calls.gate.set()
    assert mcp.house.calls.running[call_id] == "called off by the MCP client"


@pytest.mark.requirement("MCP-cancel")
async def test_a_server_that_is_ended_calls_off_what_still_runs(tmp_path):
    daemon, caller = (
        DaemonClient((tmp_path / "control.sock",)),
        SimpleNamespace(modern=True, capabilities={}, listens=False),
    )

    async def served():
        facade = Facade(daemon, ways())
        async with facade.running():
            await facade._calls.run(CallRequest(KnownTool(ADD, "notes:add"), {}, {}), caller)

    async with open_house(tmp_path) as house:
        house.calls.gate.clear()
        serving = asyncio.ensure_future(served())
        await until(lambda: house.calls.seen)
        call_id = house.calls.seen[0][0].call_id
        house.calls.running[call_id] = ""
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        assert house.calls.running[call_id] == "called off by the MCP client"
        house.calls.gate.set()


# ------------------------------------------------------------------ news


def _changed(bus: Bus):
    bus.publish(ToolsListChanged("8", 1))
    bus.publish(LensChanged("s", 1, 1, ("Hi",)))


@pytest.mark.requirement("MCP-news")
async def test_older_clients_hear_of_other_tools_and_of_the_lens_they_watch(tmp_path):
    heard = []

    async def message(told):
        heard.append(type(told).__name__)

    async with mcp_house(tmp_path) as mcp, mcp.client(OLDER, message_handler=message) as client:
        assert client.server_capabilities.tools.list_changed
        watch = types.SubscribeRequest(params=types.SubscribeRequestParams(uri="glasses://lens"))
        await client.session.send_request(watch, types.EmptyResult)
        await until(lambda: mcp.house.server.streams == 1)
        _changed(mcp.house.bus)
        await until(lambda: len(heard) >= 2)
    assert heard == ["ToolListChangedNotification", "ResourceUpdatedNotification"]


@pytest.mark.requirement("MCP-news")
async def test_newer_clients_hear_what_they_listen_for(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        await until(lambda: mcp.house.server.streams == 1)
        async with client.listen(
            tools_list_changed=True, resource_subscriptions=["glasses://lens"]
        ) as events:
            _changed(mcp.house.bus)
            async with asyncio.timeout(DEADLINE_S):
                heard = [type(await anext(events)).__name__ for _ in range(2)]
    assert heard == ["ToolsListChanged", "ResourceUpdated"]
