"""What one caller may see of other servers' tools: mentions add, an allow-list restricts, and
saying nothing is nothing.
"""

import pytest

from edge.core.tools.mcp_tools import admitted
from edge.core.tools.scope import Scope, admits
from edge.core.tools.user_tools import ServerDefinition
from tools_cache.api.tool import Source, ToolDefinition

TOOLS = [
    tool
    for name in ("fs", "web")
    for tool in admitted(
        ServerDefinition(name=name, url="https://h", allowed_tools=frozenset({"*"})),
        [{"name": t, "inputSchema": {"type": "object"}} for t in ("read", "write")],
    ).app.tools
]
OURS = ToolDefinition(name="notes:add", description="", input_schema={}, source=Source.LOCAL)
EVERYTHING = ["fs:read", "fs:write", "web:read", "web:write"]


def seen(value):
    scope = Scope.of(value)
    assert admits(scope, OURS)
    return [tool.name for tool in TOOLS if admits(scope, tool)]


def server(name):
    return {"type": "mcpServer", "serverId": name}


def tool(name, tool_name):
    return {"type": "mcpTool", "serverId": name, "name": tool_name}


AGENT = {"type": "agent", "agentId": "x"}
MENTIONS = [
    ([], EVERYTHING),
    ([AGENT], []),
    ([server("fs")], ["fs:read", "fs:write"]),
    ([server("gone")], []),
    ([tool("fs", "read")], ["fs:read"]),
    ([tool("fs", "read"), tool("fs", "write")], ["fs:read", "fs:write"]),
    ([tool("fs", "read"), server("fs")], ["fs:read", "fs:write"]),
    ([server("fs"), tool("fs", "read")], ["fs:read", "fs:write"]),
    ([tool("fs", "read"), tool("web", "write"), AGENT], ["fs:read", "web:write"]),
    ([tool("fs", "fs:read")], []),
    ([tool("web", "gone")], []),
]


@pytest.mark.requirement("S1-16", "S1-17", "S1-18", "S1-19", "S1-20")
@pytest.mark.parametrize(("mentions", "names"), MENTIONS)
def test_mentions_add_up_and_none_at_all_is_everything(mentions, names):
    assert seen({"mentions": mentions}) == names


@pytest.mark.requirement("S1-14", "S1-21", "S1-22")
@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ({}, []),
        ({"allowedMcpServers": {}}, []),
        ({"allowedMcpServers": None}, []),
        ({"allowedMcpServers": {"fs": {}}}, []),
        ({"allowedMcpServers": {"fs": {"tools": ["read"]}, "gone": {"tools": ["x"]}}}, ["fs:read"]),
        ({"allowedMcpServers": {"fs": {"tools": []}}}, []),
        ({"allowedMcpServers": {"fs": {"tools": ["*"]}}}, []),
    ],
)
def test_an_allow_list_restricts_and_none_at_all_is_nothing(scope, names):
    assert seen(scope) == names


@pytest.mark.requirement("S1-23")
@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ({"mentions": []}, EVERYTHING),
        ({"allowedMcpServers": {}}, []),
        ({"mentions": [server("web")]}, ["web:read", "web:write"]),
        ({"allowedMcpServers": {"web": {"tools": ["read"]}}}, ["web:read"]),
        ({"mentions": [AGENT]}, []),
        ({}, []),
    ],
)
def test_the_two_filters_are_unlike_on_purpose(scope, names):
    assert seen(scope) == names


@pytest.mark.requirement("S1-13")
def test_mentions_win_over_the_allow_list():
    assert seen(
        {"mentions": [tool("fs", "write")], "allowedMcpServers": {"web": {"tools": ["read"]}}}
    ) == ["fs:write"]
    assert seen({"mentions": [], "allowedMcpServers": {"web": {"tools": ["read"]}}}) == EVERYTHING


def test_a_caller_without_a_scope_sees_what_is_in_force():
    assert all(admits(None, one) for one in (*TOOLS, OURS))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (5, "scope: must be an object"),
        ({"mention": []}, "scope.mention: unknown key; known: mentions, allowedMcpServers"),
        ({"mentions": {}}, "scope.mentions: must be a list"),
        ({"mentions": [5]}, "scope.mentions.0: must be an object"),
        ({"mentions": [{"type": "mcpServer"}]}, "scope.mentions.0.serverId: must be text"),
        ({"mentions": [{"type": "mcpTool", "serverId": "a"}]}, "scope.mentions.0.name"),
        ({"mentions": [AGENT] * 257}, "at most 256"),
        ({"allowedMcpServers": []}, "scope.allowedMcpServers: must be an object"),
        (
            {"allowedMcpServers": {"fs": {"tools": "read"}}},
            "scope.allowedMcpServers.fs.tools: must be a list",
        ),
    ],
)
def test_an_invalid_scope_names_its_field(value, told):
    with pytest.raises(ValueError, match=r"^scope") as caught:
        Scope.of(value)
    assert told in str(caught.value)
