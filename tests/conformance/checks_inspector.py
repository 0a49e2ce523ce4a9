"""The Inspector as an agent over stdio, in both eras (issue 6, Show 2). Run by `make
conformance`.
"""

import pytest

from tests.conformance import stage
from tests.conformance.inspected import Inspector

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    home = tmp_path_factory.mktemp("agent")
    with stage.daemon(home, upstream=False) as control:
        yield Inspector.at(home), ("glassd", "mcp", "--socket", str(control))


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_lists_tools_over_stdio(agent, era):
    inspector, command = agent
    tools = {
        tool["name"]: tool
        for tool in inspector.ask(
            *command, "--method", "tools/list", "--strict", "--protocol-era", era
        )["tools"]
    }
    assert tools["clock__now"]["annotations"]["readOnlyHint"] is True
    assert tools["notes__add"]["inputSchema"]["required"] == ["text"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_calls_a_tool_over_stdio(agent, era):
    inspector, command = agent
    told = inspector.ask(
        *command,
        "--method",
        "tools/call",
        "--tool-name",
        "clock__now",
        "--tool-args-json",
        '{"timezone": "UTC"}',
        "--protocol-era",
        era,
    )
    assert told["isError"] is False
    assert "UTC" in told["content"][0]["text"]
    assert told["_meta"]["io.glassd/meta"]["tool"] == "clock:now"
