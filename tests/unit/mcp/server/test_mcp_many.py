"""Many tools over MCP: all pages of them, and an unchanged list is neither sent nor built again."""

from types import SimpleNamespace

import pytest

from edge.control import listings
from edge.core.tools.registry import Union
from edge.mcp.server.daemon_client import DaemonClient
from edge.mcp.server.server import Facade
from tests.unit.control.house import open_house
from tests.unit.mcp.server.mcp_house import COLD, ways
from tests.unit.tools.test_snapshot import app

pytestmark = pytest.mark.enable_socket


def snapshot(*found, version="1"):
    return Union.of((), found).snapshot(version, None, stale=False)


@pytest.fixture
async def served(tmp_path, monkeypatch):
    """A daemon with small pages, and our MCP server before it; `sizes`: of each answer."""
    monkeypatch.setattr(listings, "MAX_PAGE", 3_000)
    registry = SimpleNamespace(now=snapshot(app("a", *(f"t{n:02}" for n in range(20)))))
    registry.snapshot = lambda: registry.now
    async with open_house(tmp_path, registry=registry) as house:
        facade = Facade(DaemonClient((house.path,)), ways())
        sizes, look = [], facade._daemon.look

        async def counted(path, tag="", **more):
            found = await look(path, tag, **more)
            sizes.append(0 if found is None else len(found[1]["tools"]))
            return found

        facade._daemon.look = counted
        async with facade.running():
            yield SimpleNamespace(registry=registry, facade=facade, house=house, sizes=sizes)


async def names(facade):
    table = await facade._refresh()
    return [tool["name"] for tool in table.listed]


async def test_tools_of_all_pages_are_listed(served):
    assert await names(served.facade) == [f"a__t{n:02}" for n in range(20)]
    assert 0 < served.sizes[0] < 20


async def test_an_unchanged_list_is_not_sent_again_and_a_changed_one_is(served):
    first = await served.facade._refresh()
    assert await served.facade._refresh() is first
    assert served.sizes[1] == 0
    served.registry.now = snapshot(app("b", "t"), version="2")
    assert await names(served.facade) == ["b__t"]
    served.registry.now = snapshot(app("c", "t"), version="2")
    assert await names(served.facade) == ["c__t"]


async def test_after_the_daemon_was_away_its_tools_are_listed_anew(served, tmp_path):
    before = await names(served.facade)
    here, served.facade._daemon._sockets = served.facade._daemon._sockets, (tmp_path / "no",)
    served.facade._daemon.close()
    assert len(await names(served.facade)) == len(list(COLD)) != len(before)
    served.facade._daemon._sockets = here
    assert await names(served.facade) == before


async def test_the_sdk_does_not_list_again_after_an_unchanged_list(served):
    await served.facade._refresh()
    served.facade.server.get_tool_input_schema = None
    await served.facade._refresh()
    assert served.sizes[-1] == 0
    assert served.facade.server.get_tool_input_schema is not None
