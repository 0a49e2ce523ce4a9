"""An invalid field in the metadata of a tool is left out; the list stays."""

import pytest

from edge.core.tools.snapshot import Entry
from tests.unit.control.house import definition
from tests.unit.mcp.server.mcp_house import ERAS, NEWER, SHOWN, mcp_house
from tools_cache.api.tool import ToolResponse

pytestmark = pytest.mark.enable_socket
ODD = [
    ("title", 5),
    ("title", {"en": "x"}),
    ("icons", "x.png"),
    ("icons", [{"href": "x"}]),
    ("icons", [{"src": 5}]),
    ("_meta", ["x"]),
    ("annotations", {"readOnlyHint": "perhaps"}),
    ("annotations", {"title": 5}),
    ("annotations", "x"),
    ("outputSchema", True),
    ("outputSchema", "x"),
    ("icons", [{"src": "x", "sizes": "48x48"}]),
    ("icons", [{"src": "x", "theme": ["dark"]}]),
    ("icons", ["x"]),
]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("MCP-metadata")
async def test_invalid_metadata_of_one_tool_does_not_affect_the_others(tmp_path, era):
    async with mcp_house(tmp_path) as mcp, mcp.client(era) as client:
        for number, (key, odd) in enumerate(ODD):
            mcp.house.registry.list += (Entry(definition(f"odd:t{number}", raw={key: odd}), "Odd"),)
            mcp.house.calls.answers[f"odd:t{number}"] = ToolResponse(data={"n": number})
        listed = [tool.name for tool in (await client.list_tools()).tools]
        called = [await client.call_tool(f"odd__t{number}", {}) for number in range(len(ODD))]
    assert listed == [
        "notes__add",
        *sorted(f"odd__t{number}" for number in range(len(ODD))),
        "get_pending_result",
    ]
    assert [result.structured_content for result in called] == [
        {"n": number, **SHOWN} for number in range(len(ODD))
    ]


async def test_valid_metadata_is_listed_without_the_invalid_parts(tmp_path):
    good = {"src": "https://x.example/a.png", "sizes": ["48x48"], "theme": "dark"}
    raw = {
        "title": "A",
        "icons": [good, "x"],
        "annotations": {"title": "B", "readOnlyHint": "perhaps", "openWorldHint": True},
    }
    async with mcp_house(tmp_path) as mcp, mcp.client(NEWER) as client:
        mcp.house.registry.list = (Entry(definition("odd:one", raw=raw), "Odd"),)
        tool, _ = (await client.list_tools()).tools
    assert (tool.title, [icon.src for icon in tool.icons]) == ("A", [good["src"]])
    assert (tool.annotations.title, tool.annotations.open_world_hint) == ("B", True)
