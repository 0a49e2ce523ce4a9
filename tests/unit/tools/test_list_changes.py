"""What is told when the list of offered tools changed: once, at a turn boundary, on the real
bus.
"""

import asyncio
import contextlib

import pytest
from msgspec.structs import replace

from edge.calls.dependencies import CallLimits
from edge.calls.turns import OpenTurns
from edge.core.tools.snapshot import Entry, Snapshot
from edge.runtime.bus import Bus
from edge.runtime.events import ToolsListChanged, as_json
from edge.tools import list_changes
from edge.tools.list_changes import ListChanges
from tests.unit.calls.orchestrator_house import house
from tools_cache.api.tool import Source, ToolDefinition


def tool(name, **more):
    return ToolDefinition(
        name=name, description=name, input_schema={"type": "object"}, source=Source.CLOUD, **more
    )


class Turns(OpenTurns):
    """Says when somebody waits for the boundary."""

    def __init__(self):
        super().__init__()
        self.asked = asyncio.Event()

    async def boundary(self):
        self.asked.set()
        await super().boundary()


class Rig:
    def __init__(self):
        self.bus, self.turns = Bus(), Turns()
        self.entries, self.changed = {}, asyncio.Event()
        self.news = ListChanges(
            lambda: Snapshot.of(f"v{len(self.entries)}", self.entries.values()),
            offered=lambda: [entry for entry in self.entries.values() if not entry.hidden],
            changed=self.changed,
            bus=self.bus,
            boundary=self.turns.boundary,
        )

    def offer(self, name, *, hidden="", **more):
        self.entries[name] = Entry(tool(name, **more), "app", hidden=hidden)
        self.changed.set()

    def turn(self):
        answer = asyncio.get_running_loop().create_future()
        self.turns.begin(answer)
        return answer


@contextlib.asynccontextmanager
async def telling(rig):
    """`rig` with its service running; gives the iterator of what it says."""
    with rig.bus.listen() as listener:
        task = asyncio.ensure_future(rig.news.run())
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(40):
                yield aiter(listener)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@pytest.mark.requirement("I5-list-changed")
async def test_changes_within_a_turn_are_announced_once_at_its_end():
    rig = Rig()
    rig.offer("a:gone")
    rig.offer("a:kept")
    async with telling(rig) as told:
        first, second = rig.turn(), rig.turn()
        del rig.entries["a:gone"]
        rig.offer("b:new")
        await rig.turns.asked.wait()
        rig.offer("a:kept", version="2")
        rig.offer("b:other", hidden="needs a camera")
        first.set_result(None)
        rig.offer("c:last")
        second.set_result(None)
        said = await anext(told)
        assert said == ToolsListChanged(
            "v4", 3, added=("b:new", "c:last"), removed=("a:gone",), changed=("a:kept",)
        )
        rig.offer("d:next")
        assert (await anext(told)).added == ("d:next",), (
            "one event for all of it, and none for what stays hidden"
        )


async def test_a_turn_without_end_hides_a_change_from_nobody_for_long(monkeypatch):
    monkeypatch.setattr(list_changes, "PATIENCE_S", 0.02)
    rig = Rig()
    async with telling(rig) as told:
        rig.turn()
        rig.offer("b:new")
        assert (await anext(told)).added == ("b:new",)


async def test_an_unchanged_list_is_not_announced():
    rig = Rig()
    async with telling(rig) as told:
        rig.offer("a:hidden", hidden="needs a camera")
        await rig.turns.asked.wait()
        rig.turns.asked.clear()
        rig.offer("b:new")
        assert (await anext(told)).tools == 1
        rig.entries["b:new"] = replace(rig.entries["b:new"], hidden="switched off")
        rig.changed.set()
        assert as_json(await anext(told)) == {
            "event": "tools_list_changed",
            "version": "v2",
            "tools": 0,
            "added": [],
            "removed": ["b:new"],
            "changed": [],
        }


async def test_of_thousands_of_new_tools_the_first_are_named_and_the_rest_counted():
    rig = Rig()
    async with telling(rig) as told:
        for number in range(1000):
            rig.offer(f"a:t{number:04}")
        said = await anext(told)
        assert (said.tools, len(said.added), said.added[0], said.added[-1]) == (
            1000,
            51,
            "a:t0000",
            "… and 950 more",
        )


@pytest.mark.requirement("C-36")
async def test_a_call_is_a_turn_under_way_until_it_is_answered(tmp_path):
    turns = OpenTurns()
    async with house(tmp_path, turns=turns, limits=CallLimits()) as h:
        running, may_end = asyncio.Event(), asyncio.Event()

        async def slow(call, progress):
            running.set()
            await may_end.wait()
            return await h.tools.echo(call, progress)

        h.tools.handler = slow
        async with asyncio.timeout(40):
            await turns.boundary()
            call = asyncio.ensure_future(h.call("notes:list"))
            await running.wait()
            late = asyncio.ensure_future(turns.boundary())
            await asyncio.sleep(0)
            assert not late.done(), "within a turn there is no boundary"
            may_end.set()
            assert (await call).ok
            await late
