"""The choice of tools on a real store, over snapshots made by hand: switches, gates, turns,
use, and what is told of it.
"""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from edge.core.tools.selection import SelectionLimits
from edge.core.tools.selection_rules import (
    AVAILABLE,
    HIDDEN,
    OFFERED,
    CannotSwitch,
    Facts,
    UserRules,
)
from edge.core.tools.snapshot import DISABLED, Entry, Snapshot
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import (
    GlassesReady,
    LoaderMoved,
    RegistrySynced,
    ToolSwitched,
    UplinkChanged,
)
from edge.storage.migrations import MIGRATIONS
from edge.storage.sqlite.database import SqliteDatabase
from edge.storage.tool_choices import ToolChoices
from edge.tools.selection import SelectionSettings, ToolSelection
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    ExecutionType,
    Mode,
    RateLimit,
    Source,
    ToolCall,
    ToolDefinition,
)

ME = "local"


def tool(name, *needs, source=Source.CLOUD, **more):
    return ToolDefinition(
        name=name,
        description=f"Does {name}.",
        input_schema={"type": "object"},
        source=source,
        depends_on=needs,
        **more,
    )


META = tuple(
    tool(f"registry:{name}", source=Source.LOCAL, execution_type=ExecutionType.INTERNAL)
    for name in ("search", "load", "invoke", "describe")
)
FEW = (
    tool("notes:add", source=Source.LOCAL),
    tool("notes:list", "notes:add", source=Source.LOCAL),
    tool("lens:show", source=Source.GLASSES, available_when={"glasses": True}),
    tool("desk:type", allowed_modes=frozenset({Mode.TEXT})),
    *META,
)
MANY = (tool("home:one", source=Source.LOCAL), *(tool(f"far:t{n:02}") for n in range(30)), *META)


class Registry:
    def __init__(self, tools):
        self.take(tools)

    def take(self, tools, **hidden):
        entries = [Entry(t, "app", hidden=hidden.get(t.name.replace(":", "_"), "")) for t in tools]
        self.now = Snapshot.of("1.0.00000000", entries)

    def snapshot(self):
        return self.now


@dataclass
class House:
    choice: ToolSelection
    registry: Registry
    bus: Bus
    world: dict
    audit: list = field(default_factory=list)
    said: list = field(default_factory=list)
    listed: list = field(default_factory=list)

    def stands(self, name, user=ME, mode=None):
        found = self.choice.choice(self.registry.snapshot().find(name), user, mode)
        return found.state, found.reason

    def names(self, user=ME, mode=None):
        return [e.definition.name for e in self.choice.offered(user, mode)]

    def refusal(self, name, user=ME):
        tool = self.registry.snapshot().find(name).definition
        return self.choice.refusal(
            ToolCall(call_id="c", tool=name, args={}, origin=CallOrigin.CLI, user_id=user), tool
        )

    def ran(self, name, **more):
        record = {
            "toolId": name,
            "userId": ME,
            "outcome": "answered",
            "version": "1",
            "route": "local",
            "ok": True,
            "origin": "cli",
        }
        self.choice.observe({**record, **more})

    def moves(self, kind=None):
        return [
            (m.what, m.tool)
            for m in self.said
            if isinstance(m, LoaderMoved) and kind in (None, m.what)
        ]


@asynccontextmanager
async def house(path, there=FEW, *, running=False, clock=None, **more):
    bus, registry, world = Bus(), Registry(there), {"facts": Facts()}
    clock = clock or Clock(boot=lambda: 1.0, wall=lambda: 100.0)
    db = await SqliteDatabase.open(path / "glassd.db", MIGRATIONS, reserve=False)
    inside = House(None, registry, bus, world)
    publish = bus.publish
    bus.publish = lambda happening: (inside.said.append(happening), publish(happening))
    inside.choice = ToolSelection(
        registry=registry,
        store=ToolChoices(db, clock),
        bus=bus,
        clock=clock,
        facts=lambda: world["facts"],
        audit=inside.audit.append,
        listed=lambda: inside.listed.append(inside.names()),
        settings=SelectionSettings(
            **{key: more.pop(key) for key in SelectionSettings._fields if key in more}
        ),
        **more,
    )
    task = None
    try:
        await inside.choice.load()
        if running:
            task = asyncio.ensure_future(inside.choice.run())
            await asyncio.sleep(0)
        yield inside
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await inside.choice.close()
        await db.close()


async def until(condition):
    async with asyncio.timeout(40):
        while not condition():
            await asyncio.sleep(0)


# ------------------------------------------------------------------ on and off


@pytest.mark.requirement("S0-69", "S4-23")
async def test_a_tool_that_is_switched_off_is_hidden_refused_and_off_after_a_restart(tmp_path):
    async with house(tmp_path) as h:
        assert h.stands("notes:add") == (OFFERED, "")
        assert h.refusal("notes:add") is None
        done = await h.choice.disable(ME, "notes:add", origin="cli")
        assert done.warnings == ("notes:list depends on it and may not work without it",)
    async with house(tmp_path) as h:
        assert h.stands("notes:add") == (HIDDEN, "disabled: glassd tools enable notes:add")
        assert "notes:add" not in h.names()
        error = h.refusal("notes:add")
        assert (error.code, error.type, error.retryable) == (
            ErrorCode.USER_DISABLED,
            "PERMANENT",
            False,
        )
        assert "glassd tools enable notes:add" in error.message
        assert h.refusal("notes:add", user="ann") is None, "each user's own"
        await h.choice.enable(ME, "notes:list", origin="cli")
        assert (h.stands("notes:add"), h.refusal("notes:add")) == ((OFFERED, ""), None), (
            "enabled with what depends on it"
        )


async def test_of_many_tools_one_that_is_switched_on_is_offered_at_once(tmp_path):
    async with house(tmp_path, MANY, limits=SMALL) as h:
        await h.choice.disable(ME, "far:t29", origin="cli")
        assert "far:t29" not in h.names()
        await h.choice.enable(ME, "far:t29", origin="cli")
        assert "far:t29" in h.names()
        assert len(h.names()) == 10


async def test_a_switch_is_on_the_bus_and_in_the_audit_log(tmp_path):
    async with house(tmp_path) as h:
        await h.choice.disable(ME, "notes:add", origin="cli")
        await h.choice.disable(ME, "notes:add", origin="cli")
        await h.choice.enable(ME, "notes:list", origin="mcp")
        switched = [s for s in h.said if isinstance(s, ToolSwitched)]
        assert switched == [
            ToolSwitched("notes:add", ME, False),
            ToolSwitched("notes:list", ME, True, ("notes:add",)),
        ]
        assert [(line["toolId"], line["outcome"], line["origin"]) for line in h.audit] == [
            ("notes:add", "disabled", "cli"),
            ("notes:add", "enabled", "mcp"),
        ]
        assert h.listed[-2:] == [
            ["desk:type", "notes:list"],
            ["desk:type", "notes:add", "notes:list"],
        ], "listed once a change"


@pytest.mark.requirement("S0-69")
async def test_the_configuration_denies_tools_and_sets_rates_user_by_user(tmp_path):
    rules = {"ann": UserRules(("notes:*",), {"desk:type": RateLimit(1, 60.0)})}
    async with house(tmp_path, users=rules) as h:
        assert h.refusal("notes:add", user="ann").code is ErrorCode.USER_DISABLED
        assert h.refusal("notes:add") is None
        assert h.stands("notes:add", user="ann") == (HIDDEN, DISABLED)
        assert (h.choice.rate("ann", "desk:type"), h.choice.rate(ME, "desk:type")) == (
            RateLimit(1, 60.0),
            None,
        )
        with pytest.raises(CannotSwitch, match="disabled in the configuration"):
            await h.choice.enable("ann", "notes:add", origin="cli")


async def test_a_tool_the_registry_hides_for_the_owner_cannot_be_enabled(tmp_path):
    async with house(tmp_path) as h:
        h.registry.take(FEW, notes_add=DISABLED)
        with pytest.raises(CannotSwitch, match="disabled in the configuration"):
            await h.choice.enable(ME, "notes:add", origin="cli")
        done = await h.choice.enable(ME, "notes:list", origin="cli")
        assert done.warnings == ("it depends on notes:add, which is disabled in the configuration",)


async def test_two_switches_at_once_leave_disk_and_memory_the_same(tmp_path):
    async with house(tmp_path) as h:
        acts = [
            (h.choice.disable if n % 2 else h.choice.enable)(ME, "notes:add", origin="cli")
            for n in range(9)
        ]
        await asyncio.gather(*acts)
        now = h.stands("notes:add")
    async with house(tmp_path) as h:
        assert h.stands("notes:add") == now


# ------------------------------------------------------------------ gates


@pytest.mark.requirement("S4-11", "S4-18", "C-39")
async def test_a_gated_tool_is_hidden_with_its_reason_and_returns_when_its_condition_holds(
    tmp_path,
):
    async with house(tmp_path, running=True) as h:
        why = "it works only while the glasses are connected"
        assert h.stands("lens:show") == (HIDDEN, why)
        with pytest.raises(CannotSwitch, match=why):
            await h.choice.enable(ME, "lens:show", origin="cli")
        h.world["facts"] = Facts(glasses=True)
        h.bus.publish(GlassesReady("mock:display", "1", "AA", 247, "inproc"))
        await until(lambda: "lens:show" in h.names())
        assert h.stands("lens:show") == (OFFERED, "")
        h.world["facts"] = Facts()
        h.bus.publish(UplinkChanged(up=False, broker=""))
        await until(lambda: h.listed[-1] == ["desk:type", "notes:add", "notes:list"])


@pytest.mark.requirement("S4-20", "C-39")
async def test_a_gate_is_asked_at_every_call(tmp_path):
    answers = iter(["", "no calendar is configured", ""])

    async with house(tmp_path) as h:
        h.choice._gates = (lambda t: next(answers) if t.name == "notes:add" else "",)
        first, second, third = (h.refusal("notes:add") for _ in range(3))
        assert first is third is None
        assert (second.code, second.type) == (ErrorCode.TOOL_UNAVAILABLE, "PERMANENT")
        assert second.message == "Tool notes:add is not available now: no calendar is configured"


async def test_a_gate_hides_from_the_list_what_it_refuses(tmp_path):
    async with house(
        tmp_path, gates=[lambda t: "no calendar is configured" if t.name == "notes:add" else ""]
    ) as h:
        assert h.choice.version() is None, "a gate may change at any time"
        assert h.stands("notes:add") == (HIDDEN, "no calendar is configured")
        assert h.names() == ["desk:type", "notes:list"]


async def test_what_is_not_for_a_way_of_talking_is_not_listed_for_it(tmp_path):
    async with house(tmp_path) as h:
        assert h.stands("desk:type", mode=Mode.VOICE) == (HIDDEN, "not for voice mode")
        assert "desk:type" in h.names(mode=Mode.TEXT)
        assert "desk:type" not in h.names(mode=Mode.VOICE)


# ------------------------------------------------------------------ offered, loaded, idle


async def test_where_all_fit_all_are_offered_and_our_own_tools_take_no_place(tmp_path):
    async with house(tmp_path) as h:
        assert h.names() == ["desk:type", "notes:add", "notes:list"]
        assert h.stands("registry:load") == (
            AVAILABLE,
            "offered once there are more tools than fit",
        )


SMALL = SelectionLimits(10, 2)


async def test_of_many_those_of_the_glasses_come_first_then_small_packages_here(tmp_path):
    glasses = [tool(f"lens:t{n}", source=Source.GLASSES) for n in range(4)]
    large = [tool(f"big:t{n}", source=Source.LOCAL) for n in range(5)]
    small = [tool(f"little:t{n}", source=Source.LOCAL) for n in range(2)]
    far = [tool("away:one")]
    async with house(tmp_path, (*far, *large, *small, *glasses, *META), limits=SMALL) as h:
        offered = [name for name in h.names() if not name.startswith("registry:")]
        nearest = ["lens:t0", "lens:t1", "lens:t2", "lens:t3"]
        assert offered == ["big:t0", *nearest, "little:t0", "little:t1"]
        h.ran("big:t4")
        h.choice.turn("t1")
    async with house(tmp_path, (*far, *large, *small, *glasses, *META), limits=SMALL) as h:
        assert "big:t4" in h.names()


@pytest.mark.requirement("S4-54", "S4-55", "S4-57")
async def test_of_many_the_home_tools_come_first_and_an_idle_one_goes_at_a_turn_boundary(tmp_path):
    async with house(tmp_path, MANY, limits=SMALL, essential=["far:t20"]) as h:
        assert h.names() == [
            "far:t00",
            "far:t01",
            "far:t02",
            "far:t03",
            "far:t20",
            "home:one",
            *sorted(t.name for t in META),
        ]
        assert h.stands("far:t09") == (
            AVAILABLE,
            "not loaded: registry:search and registry:load bring it",
        )
        assert h.refusal("far:t09") is None, "it can be called by name all the same"
        for turn in ("t1", "t2", "t2", "t2"):
            h.choice.turn(turn)
            h.ran("home:one")
        assert len(h.names()) == 10, "the calls of one turn are one turn"
        h.choice.turn("t3")
        assert h.names() == ["far:t20", "home:one", *sorted(t.name for t in META)]
        state = h.choice.describe()
        assert (state["turn"], state["available"], state["crowded"], sorted(state["loaded"])) == (
            3,
            31,
            True,
            ["far:t20", "home:one"],
        )


@pytest.mark.requirement("S4-57", "C-36")
async def test_what_is_loaded_is_listed_at_the_next_boundary_and_not_before(tmp_path):
    boundary = asyncio.Event()
    async with house(tmp_path, MANY, limits=SMALL, running=True, boundary=boundary.wait) as h:
        assert h.choice.load_tools(["far:t29", "far:none"]) == {"far:t29"}
        for _ in range(50):
            await asyncio.sleep(0)
            assert "far:t29" not in h.names()
        boundary.set()
        await until(lambda: "far:t29" in h.names())
        assert len(h.names()) == 10


@pytest.mark.requirement("S4-27", "S4-56")
async def test_only_tools_that_ran_are_counted_as_used(
    tmp_path,
):
    async with house(tmp_path, MANY, limits=SMALL) as h:
        h.said.clear()
        h.ran("registry:invoke")
        h.ran("registry:search")
        h.ran("far:t00", outcome="refused")
        h.ran("far:t00", outcome="pending")
        h.ran("far:t00", route="fallback", ok=False)
        h.ran("nobody:knows", version=None)
        assert h.said == []
        h.ran("far:t00")
        h.ran("far:t00", outcome="completed", ok=False)
        assert h.moves() == [("used", "far:t00")] * 2
        assert [(u.tool, u.calls, u.failed) for u in await h.choice.usage(ME)] == [
            ("far:t00", 2, 1)
        ]


@pytest.mark.requirement("S4-56")
async def test_the_sequence_of_loader_events_is_on_the_bus_and_in_the_audit_log(tmp_path):
    async with house(tmp_path, MANY, limits=SMALL) as h:
        h.choice.load_tools(["far:t29"], passing=True)
        h.ran("far:t29")
        for turn in ("t1", "t2"):
            h.choice.turn(turn)
        assert h.moves()[0] == ("initialized", "")
        assert [what for what, name in h.moves() if name == "far:t29"] == [
            "loaded",
            "used",
            "unloaded",
        ]
        assert [(a["outcome"], a["reason"]) for a in h.audit if a["toolId"] == "far:t29"] == [
            ("tool_loaded", "for one call"),
            ("tool_unloaded", "not used for 1 turn"),
        ]


async def test_a_model_that_calls_an_unloaded_tool_by_name_has_it_listed_for_a_turn(tmp_path):
    async with house(tmp_path, MANY, limits=SMALL, running=True) as h:
        h.ran("far:t29", origin="cli")
        assert "far:t29" not in h.choice.describe()["loaded"], (
            "a person at the command line is no model"
        )
        h.ran("far:t29", origin="mcp")
        await until(lambda: "far:t29" in h.names())
        assert h.choice.describe()["loaded"]["far:t29"]["passing"]


async def test_after_a_restart_the_tools_that_were_used_most_have_their_places_first(tmp_path):
    async with house(tmp_path, MANY, limits=SMALL) as h:
        for _ in range(3):
            h.ran("far:t25")
        h.ran("far:t27")
        h.ran("far:t28", userId="ann")
    async with house(tmp_path, MANY, limits=SMALL) as h:
        assert {"far:t25", "far:t27", "home:one"} <= set(h.names())
        assert "far:t28" not in h.names()
        assert [(u.tool, u.calls, u.last_wall) for u in await h.choice.usage(ME)] == [
            ("far:t25", 3, 100.0),
            ("far:t27", 1, 100.0),
        ]


async def test_a_registry_that_grows_and_shrinks_is_followed(tmp_path):
    async with house(tmp_path, FEW, limits=SMALL, running=True) as h:
        h.registry.take((*FEW, *MANY[:-4]))
        h.bus.publish(RegistrySynced("2", 40, 40, "cloud"))
        await until(lambda: "registry:load" in h.names())
        assert {"notes:add", "notes:list", "desk:type"} <= set(h.names()), "what was offered stays"
        assert len(h.names()) <= 10
        h.registry.take(FEW)
        h.bus.publish(RegistrySynced("3", 8, 8, "cloud"))
        await until(lambda: h.names() == ["desk:type", "notes:add", "notes:list"])


async def test_an_unreadable_store_loses_the_switches_not_the_tools(tmp_path, caplog):
    class Broken:
        async def switches(self):
            raise OSError("gone")

    registry = Registry(FEW)
    choice = ToolSelection(registry=registry, store=Broken(), bus=Bus(), clock=Clock(), facts=Facts)
    await choice.load()
    assert [e.definition.name for e in choice.offered(ME)] == [
        "desk:type",
        "notes:add",
        "notes:list",
    ]
    assert "cannot be read: gone" in caplog.text


async def test_counts_that_find_no_room_are_lost_and_nothing_else(tmp_path):
    async with house(tmp_path, FEW) as h:
        h.choice._store = replace_store(h.choice._store)
        h.ran("notes:add")
        await h.choice.close()
        h.ran("notes:add")
        assert [e.definition.name for e in h.choice.offered(ME)] == [
            "desk:type",
            "notes:add",
            "notes:list",
        ]


def replace_store(store):
    class Full:
        def __getattr__(self, name):
            return getattr(store, name)

        async def add_usage(self, user_id, counts):
            raise OSError("disk full")

    return Full()


# ------------------------------------------------------------------ told whole


@pytest.mark.requirement("S2-58", "S2-59")
async def test_a_tool_is_described_with_documentation_read_on_request(tmp_path):
    folder = tmp_path / "tools" / "notes_add"
    folder.mkdir(parents=True)
    ours = replace(
        FEW[0],
        raw={
            "_meta": {
                "io.glassd/build": {"folder": "notes_add"},
                "io.glassd/summary": "Keeps a note.",
            }
        },
    )
    theirs = tool("far:spy", raw={"_meta": {"io.glassd/build": {"folder": "notes_add"}}})
    async with house(tmp_path, (ours, theirs), tools=tmp_path / "tools") as h:
        (folder / "doc.md").write_text("# notes:add\n\nAll of it.")
        told = await h.choice.described("notes:add", ME)
        assert told["documentation"] == "# notes:add\n\nAll of it."
        assert (told["state"], told["summary"], told["enabled"]) == (OFFERED, "Keeps a note.", True)
        assert sorted(told["policy"]) == [
            "allowedModes",
            "category",
            "idempotent",
            "latencyBudgetMs",
            "requiresConfirmation",
            "sideEffects",
            "toolId",
            "version",
        ]
        assert (await h.choice.described("far:spy", ME))["documentation"] is None, (
            "a cloud names no folder of ours"
        )
        assert await h.choice.described("no:such", ME) is None


async def test_changed_settings_apply_at_once(tmp_path):
    async with house(tmp_path, MANY, limits=SMALL) as h:
        rules = {ME: UserRules(("home:*",))}
        h.choice.apply(SelectionSettings(ME, SelectionLimits(8, 2), ("far:t20",), (), rules))
        assert len(h.names()) == 8
        assert "far:t20" in h.names()
        assert h.refusal("home:one").code is ErrorCode.USER_DISABLED
        h.choice.apply(SelectionSettings(ME, SelectionLimits(60, 2), cloud_may=()))
        assert {"home:one", "far:t29"} <= set(h.names())


async def test_the_code_of_an_unloaded_tool_is_dropped(tmp_path):
    gone = []
    async with house(tmp_path, MANY, limits=SMALL, forget=lambda t: gone.append(t.name)) as h:
        for turn in ("t1", "t2", "t3"):
            h.choice.turn(turn)
        assert "home:one" in gone
        assert h.stands("home:one")[0] == AVAILABLE


async def test_a_mistake_in_counting_does_not_affect_the_call(tmp_path, caplog):
    async with house(tmp_path) as h:
        h.choice._bus = None
        h.ran("notes:add")
        assert "the use of a tool could not be counted" in caplog.text
