"""Tools that are built when they are looked at: every list of them is as if all had been built, and
a start builds almost none.
"""

import json
import random
from types import SimpleNamespace

import pytest

from edge.core.tools.registry import Union
from edge.core.tools.selection import SelectionLimits
from edge.core.tools.selection_rules import Facts, UserRules
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.storage.tool_choices import Used
from edge.tools.selection import SelectionSettings, ToolSelection
from firmware_bridge.capabilities import Capabilities, Origin
from tests.unit.tools.test_registry import Rig, app, cloud, document  # noqa: F401 - `cloud` is a fixture
from tools_cache.registry import packed_tools, registry_index
from tools_cache.registry.manifest import load

pytestmark = pytest.mark.enable_socket
SEEDS = range(25)


@pytest.fixture
def built(monkeypatch):
    """The tools that were built, of chunks that were opened."""
    names, unpack = [], packed_tools._unpack

    def counted(chunk):
        tools = unpack(chunk)
        names.extend(tool.name for tool in tools)
        return tools

    monkeypatch.setattr(packed_tools, "_unpack", counted)
    return names


def many(chance, count=12):
    """Apps with needs, tools with needs of their own, conditions and dependencies; some share a
    package.
    """
    apps = []
    for number in range(count):
        package = f"com.a{chance.randrange(count)}"
        tools = [f"t{number}x{n}" for n in range(chance.randrange(4))]
        found = app(
            package, *tools, needs=chance.sample(["CAMERA", "DISPLAY"], chance.randrange(3))
        )
        for tool in found["tools"]:
            tool.update(
                chance.choice(
                    [
                        {},
                        {"_meta": {"io.glassd/hardware": [{"type": "SPEAKER"}]}},
                        {"availableWhen": {"uplink": True}},
                        {"dependsOn": [f"com.a1:t{number}"]},
                        {"mentraExtensions": {"forPrograms": True}},
                    ]
                )
            )
        apps.append(found)
    return load(json_of(apps), per_tool_hardware=True)


def json_of(apps):
    return json.dumps(document(*apps)).encode()


def some(chance, names):
    return dict.fromkeys(chance.sample(names, min(len(names), chance.randrange(3))), "because")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_snapshot_of_packed_tools_is_that_of_the_same_tools(seed):
    chance = random.Random(seed)
    registry = many(chance)
    local = many(chance, 3).apps
    names = [name for a in registry.apps for name in a.names]
    for _ in range(8):
        facts = {key: chance.random() < 0.5 for key in ("camera", "display", "speaker")}
        record = chance.choice([None, Capabilities.of("m", facts, origin=Origin.FIRMWARE, now=0.0)])
        disabled = {*some(chance, names), *chance.sample(["*", "com.a1:*", "x:y"], 1)} - {
            chance.choice(["*", ""])
        }
        more = {
            "stale": chance.random() < 0.5,
            "unusable": some(chance, names),
            "withheld": some(chance, names),
            "disabled": disabled if chance.random() < 0.5 else (),
        }
        plain, packed = (
            Union.of(local, apps).snapshot("v", record, **more)
            for apps in (registry.apps, registry.packed().apps)
        )
        assert (
            packed.active
            == plain.active
            == tuple(e.definition.name for e in plain.entries() if not e.hidden)
        )
        assert packed.filtered == plain.filtered
        assert packed.names == tuple(e.definition.name for e in plain.entries())
        assert tuple(packed.entries()) == tuple(plain.entries())
        assert packed.in_force == tuple(e for e in plain.entries() if not e.hidden)
        assert [packed.find(name) for name in names] == [plain.find(name) for name in names]
        assert packed.find("no:such") is None
        assert {e.definition.name for e in packed.particular()} == {*packed.names} - packed.plain
        assert packed == Union.of(local, registry.packed().apps).snapshot("v", record, **more)


def test_snapshots_differ_as_soon_as_one_tool_does():
    union = Union.of(
        (), load(json_of([app("a", "t", needs=["CAMERA"]), app("b", "t")])).packed().apps
    )
    none = union.snapshot("v", None, stale=False)
    camera = Capabilities.of("m", {"camera": True}, origin=Origin.FIRMWARE, now=0.0)
    others = [
        union.snapshot("w", None, stale=False),
        union.snapshot("v", camera, stale=False),
        union.snapshot("v", camera, stale=True),
        union.snapshot("v", None, stale=False, unusable={"b:t": "why"}),
        union.snapshot("v", None, stale=False, unusable={"b:t": "other"}),
        union.snapshot("v", None, stale=False, withheld={"b:t": "why"}),
        union.snapshot("v", None, stale=False, disabled={"b:t"}),
        union.snapshot("v", None, stale=False, disabled={"b:*"}),
        Union.of((), union.apps[:1]).snapshot("v", None, stale=False),
    ]
    assert none == union.snapshot("v", None, stale=False)
    for number, one in enumerate(others):
        assert one != none
        assert [one == other for other in others].index(True) == number


@pytest.mark.parametrize("packed", [False, True])
def test_of_two_tools_with_one_name_the_first_stays(packed):
    apps = [
        load(json_of([app("a", *names, needs=needs)])).apps[0]
        for names, needs in ((("t", "u"), ["CAMERA"]), (("t", "v"), []))
    ]
    union = Union.of([found.packed() if packed else found for found in apps], ())
    snapshot = union.snapshot("v", None, stale=False)
    assert [(e.definition.name, bool(e.hidden)) for e in snapshot.entries()] == [
        ("a:t", True),
        ("a:u", True),
        ("a:v", False),
    ]
    assert snapshot.active == ("a:v",)


class Store:
    """What users switched and called."""

    def __init__(self, switched=None, used=()):
        self.switched, self.used = switched or {}, used

    async def switches(self):
        return {"local": self.switched}

    async def usage(self, _user):
        return [Used(name, 5) for name in self.used]


async def chosen(snapshot, store, **more):
    choice = ToolSelection(
        registry=SimpleNamespace(snapshot=lambda: snapshot),
        store=store,
        bus=Bus(),
        clock=Clock.system(),
        facts=lambda: Facts(uplink=True),
        **more,
    )
    await choice.load()
    return choice


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("gates", [(), (lambda tool: "shut" * tool.name.endswith("x0"),)])
async def test_packed_tools_are_chosen_as_the_same_tools(seed, gates):
    chance = random.Random(seed)
    registry = many(chance)
    names = [name for a in registry.apps for name in a.names]
    store = Store(dict.fromkeys(some(chance, names), False), [*some(chance, names)])
    settings = SelectionSettings(
        limits=SelectionLimits(offered=chance.choice([5, 48])),
        users={"local": UserRules(denied=(*some(chance, names),))} if seed % 2 else {},
    )
    found = []
    for apps in (registry.apps, registry.packed().apps):
        snapshot = Union.of((), apps).snapshot("v", None, stale=False)
        choice = await chosen(snapshot, store, settings=settings, gates=gates)
        states = [choice.choice(entry, "local") for entry in snapshot.entries()]
        offered = [entry.definition.name for entry in choice.offered("local")]
        found.append((choice._loader, states, offered, choice._conditional))
    assert found[0] == found[1]


async def test_a_choice_of_thousands_builds_those_it_offers(built):
    registry = load(
        json_of([app(f"com.a{n:02}", *(f"t{m:03}" for m in range(200))) for n in range(5)])
    )
    snapshot = Union.of((), registry.packed().apps).snapshot("v", None, stale=False)
    assert (len(snapshot.names), len(snapshot.active), built) == (1000, 1000, [])
    choice = await chosen(snapshot, Store())
    assert (choice.describe()["available"], built) == (1000, [])
    assert len(choice.offered("local")) == 44
    assert len(built) <= 44 + packed_tools.CHUNK


# ------------------------------------------------------------------ in use


async def test_a_restart_reads_the_index_that_a_sync_wrote_and_builds_nothing(
    tmp_path,
    cloud,  # noqa: F811
    built,
    monkeypatch,
):
    cloud.document = document(app("com.many", *(f"t{n:03}" for n in range(300))))
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    assert (rig.state / registry_index.NAME).exists()
    assert rig.cache._generation.body == b"", "it is on disk"
    built.clear()
    read = registry_index.read
    reads = []
    monkeypatch.setattr(
        registry_index, "read", lambda *args: reads.append(read(*args)) or reads[-1]
    )
    again = Rig(tmp_path, cloud)
    assert [found is not None for found in reads] == [True]
    assert again.cache.snapshot() == rig.cache.snapshot()
    assert built == []
    assert again.cache.snapshot().find("com.many:t123").definition.description == "t123"
    assert len(built) == packed_tools.CHUNK


async def test_an_unchanged_registry_is_not_kept_in_memory_and_not_stored_again(
    tmp_path,
    cloud,  # noqa: F811
):
    cloud.etags = False
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    times = [path.stat().st_mtime_ns for path in sorted(rig.state.iterdir())]
    await rig.cache.sync()
    assert rig.cache._generation.body == b""
    assert [path.stat().st_mtime_ns for path in sorted(rig.state.iterdir())] == times


@pytest.mark.parametrize("etags", [True, False])
async def test_a_document_that_cannot_be_stored_stays_in_memory_until_it_can(
    tmp_path,
    cloud,  # noqa: F811
    monkeypatch,
    etags,
):
    cloud.etags = etags
    rig = Rig(tmp_path, cloud)
    save = rig.cache._generations.save

    def full(_generation):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(rig.cache._generations, "save", full)
    await rig.cache.sync()
    assert rig.cache._generation.body
    assert not (rig.state / registry_index.NAME).exists()
    monkeypatch.setattr(rig.cache._generations, "save", save)
    await rig.cache.sync()
    assert rig.cache._generation.body == b""
    assert Rig(tmp_path, cloud).cache.snapshot() == rig.cache.snapshot()
