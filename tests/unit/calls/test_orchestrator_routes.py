"""Each call runs by the route that counts after the yes, and by no other backend."""

import asyncio

import pytest
from msgspec.structs import replace

from edge.core.routing import HERE, RouteKind, kind_of
from edge.core.tools.snapshot import Entry
from edge.ports import CallResult
from edge.runtime.events import CallCompleted
from firmware_bridge.messages import Answer
from tests.unit.calls.orchestrator_house import FakeRegistry, FakeTools, house, make, tool
from tools_cache.api.tool import ErrorCode, ExecutionType, SideEffects, Source, ToolResponse

ARGS = {"text": "x"}


def change(h, name, **changes):
    """Put another registry in force, in which this tool is another one."""
    entry = h.registry.entries[name]
    h.registry.entries[name] = replace(entry, definition=replace(entry.definition, **changes))
    h.registry.version = "1.0.0def456"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("notes:add", RouteKind.LOCAL),
        ("glasses:show_text", RouteKind.GLASSES),
        ("files:read", RouteKind.UPSTREAM),
        ("my:weather", RouteKind.GATEWAY),
    ],
)
async def test_a_call_runs_in_the_backend_of_its_route_only(tmp_path, name, kind):
    async with house(tmp_path) as h:
        h.registry.entries["my:weather"] = Entry(tool("my:weather", endpoint="http"), "app")
        answer = await h.call(name, ARGS)
        assert (answer.ok, answer.meta["route"]) == (True, kind)
        assert h.tools.ran == [(kind, "1.2.3")]
        assert h.tools.handed == []


@pytest.mark.requirement("C-17")
async def test_within_a_turn_a_call_runs_where_its_tool_is_now(tmp_path):
    """What another server offered under this name must not reach it when the name is ours now."""
    async with house(tmp_path) as h:
        await h.call("files:read", turn_id="t")
        change(h, "files:read", source=Source.GLASSES, version="2.0.0")
        assert (await h.call("files:read", {"text": "2"}, turn_id="t")).meta["route"] == "glasses"
        assert h.tools.ran == [(RouteKind.UPSTREAM, "1.2.3"), (RouteKind.GLASSES, "2.0.0")]


@pytest.mark.requirement("I12-what-ran")
async def test_within_a_turn_a_call_is_reported_with_the_definition_that_ran(tmp_path):
    async with house(tmp_path) as h:
        await h.call("notes:list", turn_id="t")
        change(h, "notes:list", version="2.0.0")
        answer = await h.call("notes:list", {"text": "2"}, turn_id="t")
        assert h.tools.ran[-1] == (RouteKind.LOCAL, "2.0.0")
        assert answer.meta["toolVersion"] == h.audit[-1]["version"] == "2.0.0"


@pytest.mark.requirement("I12-what-ran")
async def test_a_tool_that_became_asynchronous_within_a_turn_leaves_no_pending_row(tmp_path):
    async with house(tmp_path) as h:
        await h.call("notes:add", ARGS, turn_id="t")
        change(h, "notes:add", execution_type=ExecutionType.EXTERNAL, pending_ttl_s=60.0)
        pending = await h.call("notes:add", {"text": "2"}, turn_id="t")
        call_id = pending.data["pendingToolCallId"]
        assert [waiting for waiting, _ in await h.shelves.pending.open()] == [call_id]
        await h.orchestrator.cancel(call_id, "not needed")
        await h.happened(CallCompleted)
        assert await h.shelves.pending.open() == []


async def test_a_tool_removed_within_a_turn_is_not_found_and_does_not_run(tmp_path):
    async with house(tmp_path) as h:
        await h.call("notes:list", turn_id="t")
        del h.registry.entries["notes:list"]
        h.registry.version = "1.0.0def456"
        answer = await h.call("notes:list", {"text": "2"}, turn_id="t")
        assert (answer.error.code, answer.error.message) == (
            ErrorCode.TOOL_NOT_FOUND,
            "Tool notes:list not found",
        )
        assert len(h.tools.runs) == 1


async def test_glasses_that_leave_while_the_wearer_is_asked_decide_the_route(tmp_path):
    async with house(tmp_path) as h:
        change(h, "glasses:show_text", requires_confirmation="always")
        caller = asyncio.create_task(h.call("glasses:show_text", ARGS))
        await h.wearer.question()
        h.glasses.leave()
        h.wearer.say(Answer.ALLOW)
        answer = await caller
        assert (answer.error.code, answer.meta["route"]) == (
            ErrorCode.SESSION_INACTIVE,
            "fallback",
        )
        assert not h.tools.runs


async def test_a_network_that_returns_while_the_wearer_is_asked_decides_the_route(tmp_path):
    async with house(tmp_path) as h:
        change(h, "mail:send", requires_confirmation="always")
        h.uplink.up = False
        h.uplink.worker = lambda call: h.uplink.say(CallResult(call.call_id, ToolResponse()))
        caller = asyncio.create_task(h.call("mail:send", ARGS))
        await h.wearer.question()
        h.uplink.up = True
        h.wearer.say(Answer.ALLOW)
        answer = await caller
        assert (answer.ok, answer.meta["route"]) == (True, "cloud")


@pytest.mark.parametrize(("source", "runs"), [(Source.LOCAL, 1), (Source.UPSTREAM, 0)])
async def test_a_call_is_run_again_after_a_restart_only_where_it_ran_before(tmp_path, source, runs):
    call, registry, tools = make("notes:list"), FakeRegistry(), FakeTools()
    entry = registry.entries["notes:list"]
    async with house(tmp_path) as h:
        await h.store.admit(call, "local")
        await h.store.advance(call.call_id, "RUNNING")
    registry.entries["notes:list"] = replace(
        entry, definition=replace(entry.definition, source=source)
    )
    async with house(tmp_path, registry=registry, tools=tools) as h:
        assert (await h.happened(CallCompleted)).ok is bool(runs)
        assert len(tools.runs) == runs


@pytest.mark.parametrize("source", Source)
@pytest.mark.parametrize("execution_type", ExecutionType)
@pytest.mark.parametrize("endpoint", ["", "http"])
def test_each_tool_has_one_kind_of_route(source, execution_type, endpoint):
    kind = kind_of(
        tool(
            "a:b",
            source,
            execution_type=execution_type,
            endpoint=endpoint,
            side_effects=SideEffects.READ_ONLY,
        )
    )
    assert kind in HERE | {RouteKind.LATER, RouteKind.WEARER, RouteKind.CLOUD}
    assert (kind is RouteKind.WEARER) == (execution_type is ExecutionType.SPACE)
