"""Results beside a form that the tool promised, and content that is not repeated."""

import pytest
from mcp.client import Client
from msgspec.structs import replace

from edge.control.http import HttpLimits
from edge.core.tools.snapshot import Entry
from edge.mcp.server.calls import refusal_of
from edge.mcp.server.daemon_client import DaemonClient
from edge.mcp.server.server import Facade
from edge.runtime.errors import UserError
from tests.unit.control.house import definition, open_house
from tests.unit.mcp.server.mcp_house import NEWER, mcp_house, ways, wire
from tests.unit.mcp.server.test_mcp_server import ADD, text_of
from tools_cache.api.tool import ErrorCode, ToolResponse

pytestmark = pytest.mark.enable_socket


@pytest.mark.parametrize("data", [{"status": "pending", "pendingToolCallId": "c7"}, None])
async def test_a_pending_result_is_not_validated_against_the_output_schema(tmp_path, data):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        promised = {
            "type": "object",
            "required": ["sum"],
            "properties": {"sum": {"type": "integer"}},
        }
        mcp.house.registry.list = (Entry(definition("c:own", raw={"outputSchema": promised}), "C"),)
        await client.list_tools()
        mcp.house.calls.answers["c:own"] = ToolResponse(data=data)
        called = await client.call_tool("c__own", {})
    assert called.is_error
    assert (called.structured_content, called.meta["io.glassd/envelope"]["data"]) == (None, data)
    assert ("get_pending_result with id c7" in text_of(called)) is (data is not None)
    assert ("The call succeeded" in text_of(called)) is (data is None)


async def test_too_many_waits_for_pending_results_can_be_retried(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(polls=0)) as house:
        facade = Facade(DaemonClient((house.path,)), ways())
        async with facade.running(), Client(wire(facade), mode=NEWER) as client:
            called = await client.call_tool("get_pending_result", {"id": "c1", "wait_s": 5})
    error = called.structured_content["error"]
    assert (error["type"], error["code"], error["retryable"]) == ("RATE_LIMIT", "RATE_LIMIT", True)


async def test_the_content_of_a_failure_is_not_repeated(tmp_path):
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        blocks = {"content": [{"type": "text", "text": "It is broken"}]}
        failed = ToolResponse.failure(ErrorCode.EXECUTION_ERROR, "It is broken")
        mcp.house.calls.answers["notes:add"] = replace(failed, meta={**failed.meta, **blocks})
        called = await client.call_tool(ADD, {})
    assert [block.text for block in called.content] == ["It is broken"]
    assert "content" not in called.structured_content["meta"]


@pytest.mark.parametrize(("looked_up", "retryable"), [(True, True), (False, False)])
def test_after_a_timeout_a_look_may_be_repeated_and_a_call_not(looked_up, retryable):
    error = refusal_of(UserError("TIMEOUT", "too late"), looked_up=looked_up)["error"]
    assert (error["code"], error["retryable"]) == ("TIMEOUT", retryable)
