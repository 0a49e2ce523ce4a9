import dataclasses
import time

import pytest

from edge.core.tools.registry import Union
from firmware_bridge.capabilities import Capabilities, Origin
from tools_cache.api.tool import Source, ToolDefinition
from tools_cache.registry.models import App, Requirement


def tool(name, source=Source.CLOUD):
    return ToolDefinition(
        name=name, description=name, input_schema={"type": "object"}, source=source
    )


def app(package, *names, needs=(), source=Source.CLOUD, own=None):
    tools = tuple(tool(f"{package}:{n}", source) for n in names)
    return App(
        package=package,
        name=package.title(),
        requirements=tuple(map(Requirement, needs)),
        tools=tools,
        tool_requirements=own or {},
    )


def glasses(**facts):
    return Capabilities.of("m", facts, origin=Origin.FIRMWARE, now=0.0)


LOCAL = [app("notes", "add", "list", source=Source.LOCAL)]
CLOUD = [app("photo", "take", "share", needs=["CAMERA"]), app("calc", "add")]


def names(snapshot):
    return [e.definition.name for e in snapshot.entries()]


def hidden(snapshot):
    return {e.definition.name: e.hidden for e in snapshot.entries() if e.hidden}


@pytest.mark.requirement("S0-02")
def test_the_list_is_the_union_in_one_order_whatever_the_order_of_the_documents():
    one = Union.of(LOCAL, CLOUD).snapshot("1", None, stale=False)
    other = Union.of(LOCAL, CLOUD[::-1]).snapshot("1", None, stale=False)
    assert (
        names(one)
        == names(other)
        == ["calc:add", "notes:add", "notes:list", "photo:share", "photo:take"]
    )


def test_a_tool_is_found_by_its_canonical_name_hidden_ones_too():
    snapshot = Union.of(LOCAL, CLOUD).snapshot("1", None, stale=False)
    assert snapshot.find("photo:take").missing == ("CAMERA",)
    assert snapshot.find("photo:take").app_name == "Photo"
    assert snapshot.find("photo:nope") is None
    assert snapshot.find("nope:take") is None


@pytest.mark.requirement("S0-10")
def test_an_app_lacking_required_hardware_loses_all_its_tools_and_no_other_does():
    assert hidden(Union.of(LOCAL, CLOUD).snapshot("1", glasses(display=True), stale=False)) == {
        "photo:take": "needs a camera; these glasses have none",
        "photo:share": "needs a camera; these glasses have none",
    }
    assert hidden(Union.of(LOCAL, CLOUD).snapshot("1", glasses(camera=True), stale=False)) == {}


@pytest.mark.requirement("S0-12")
def test_tools_of_glasses_that_are_away_stay_and_are_stale():
    snapshot = Union.of(LOCAL, CLOUD).snapshot("1", glasses(camera=True), stale=True)
    assert hidden(snapshot) == {}
    assert {e.definition.name for e in snapshot.entries() if e.stale} == {
        "photo:take",
        "photo:share",
    }


def test_a_tools_own_needs_add_to_its_apps():
    apps = [
        app("g", "show", "status", source=Source.GLASSES, own={"g:show": (Requirement("DISPLAY"),)})
    ]
    assert list(hidden(Union.of(apps, []).snapshot("1", glasses(speaker=True), stale=False))) == [
        "g:show"
    ]
    apps = [app("g", "show", needs=["MICROPHONE"], own={"g:show": (Requirement("DISPLAY"),)})]
    assert Union.of(apps, []).snapshot("1", glasses(), stale=False).find("g:show").missing == (
        "MICROPHONE",
        "DISPLAY",
    )


@pytest.mark.parametrize("source", [Source.LOCAL, Source.GLASSES])
@pytest.mark.requirement("C-17")
def test_a_cloud_tool_never_stands_in_for_one_that_lives_here(source):
    union = Union.of([app("notes", "add", source=source)], [app("notes", "add", "share")])
    snapshot = union.snapshot("1", None, stale=False)
    assert snapshot.find("notes:add").definition.source is source
    assert snapshot.find("notes:share").definition.source is Source.CLOUD
    assert [d.name for d in union.refused] == ["notes:add"]
    assert "refused" in union.refused[0].reason


def test_a_tool_can_be_unusable_or_unwanted_and_says_so():
    snapshot = Union.of(LOCAL, CLOUD).snapshot(
        "1",
        glasses(camera=True),
        stale=False,
        unusable={"calc:add": "bad schema", "notes:list": "not ours to break"},
        disabled={"notes:add", "photo:*"},
    )
    off = "disabled in the configuration"
    assert hidden(snapshot) == {
        "calc:add": "bad schema",
        "notes:add": off,
        "photo:take": off,
        "photo:share": off,
    }
    assert snapshot.find("photo:take").missing == ()
    assert [e.definition.name for e in snapshot.in_force] == ["notes:list"]


def test_a_snapshot_cannot_be_changed():
    snapshot = Union.of(LOCAL, CLOUD).snapshot("1", None, stale=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.version = "2"
    with pytest.raises(TypeError):
        snapshot._by_name["x"] = None
    assert isinstance(snapshot.entries(), tuple)


def test_a_thousand_tools_are_listed_and_found_in_no_time():
    apps = [
        app(f"com.a{i}", *(f"t{j}" for j in range(5)), needs=["CAMERA"] if i % 2 else [])
        for i in range(200)
    ]
    snapshot = Union.of(LOCAL, apps).snapshot("1", glasses(), stale=False)
    took = []
    for i in range(1000):
        start = time.perf_counter()
        assert len(snapshot.entries()) == 1002
        assert snapshot.find(f"com.a{i % 200}:t3") is not None
        took.append(time.perf_counter() - start)
    assert sorted(took)[989] < 0.005
