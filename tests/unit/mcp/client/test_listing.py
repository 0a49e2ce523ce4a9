"""The list of a server's tools is read up to its limits, and says what was left out."""

from types import SimpleNamespace

import pytest
from mcp_types import Tool

from edge.mcp.client.listing import MAX_LIST, MAX_NAME, MAX_PAGES, Listing


def tool(name, **more):
    return Tool(name=name, input_schema={"type": "object"}, **more)


class Server:
    """Answers `tools/list` with `page(number)`; `following` gives the next cursor."""

    def __init__(self, page, following=lambda number: str(number + 1)):
        self.page, self.following, self.asked = page, following, []

    async def list_tools(self, params=None):
        self.asked.append(None if params is None else params.cursor)
        number = len(self.asked) - 1
        return SimpleNamespace(
            tools=self.page(number), next_cursor=self.following(number), ttl_ms=None
        )


async def read(server, max_tools=512):
    listing = Listing(max_tools)
    await listing.read(server)
    return listing


@pytest.mark.requirement("S1-46")
@pytest.mark.parametrize(
    ("each", "max_tools", "pages", "kept"),
    [(10, 40, 4, 40), (30, 40, 2, 40), (0, 40, MAX_PAGES, 0)],
)
async def test_a_list_without_end_is_asked_for_no_further_than_it_is_kept(
    each, max_tools, pages, kept
):
    server = Server(lambda page: [tool(f"t{page}-{n}") for n in range(each)])
    listing = await read(server, max_tools)
    assert (len(server.asked), len(listing.tools)) == (pages, kept)
    assert f"has no end: the first {kept} were taken" in listing.notes[-1]


async def test_a_list_that_goes_round_is_read_once():
    server = Server(lambda page: [tool(f"t{page}")], lambda page: "ab"[page % 2])
    listing = await read(server)
    assert server.asked == [None, "a", "b"]
    assert listing.notes == ["its list of tools goes round in a circle: read up to there"]


async def test_of_two_tools_of_one_name_the_first_is_taken():
    listing = await read(
        Server(lambda _: [tool("a", description="1"), tool("a", description="2")], lambda _: None)
    )
    assert [one.description for one in listing.tools] == ["1"]
    assert listing.notes == ["tool a is listed twice: the first is taken"]


async def test_a_tool_beyond_the_size_of_a_list_is_left_out_and_a_smaller_one_is_not():
    large = tool("large", meta={"x": "y" * (MAX_LIST * 2 // 3)})
    other = tool("other", meta={"x": "y" * (MAX_LIST * 2 // 3)})
    listing = await read(Server(lambda _: [large, other, tool("small")], lambda _: None))
    assert [one.name for one in listing.tools] == ["large", "small"]
    assert listing.notes == ["tool other is left out: the list is longer than 512 KiB"]


@pytest.mark.parametrize(("length", "kept"), [(MAX_NAME, 1), (MAX_NAME + 1, 0)])
def test_a_name_has_a_limit(length, kept):
    listing = Listing(512)
    page = listing.keep_valid(
        {"tools": [{"name": "n" * length, "inputSchema": {"type": "object"}}]}
    )
    assert (len(page["tools"]), len(listing.notes)) == (kept, 1 - kept)
