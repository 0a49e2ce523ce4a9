"""Is a tool on, what hangs on it, may it be switched; and which of our own tools are worth a
place.
"""

import pytest

from edge.core.tools import selection, selection_rules
from edge.core.tools.selection import Loader, SelectionLimits
from edge.core.tools.selection_rules import (
    BY_OWNER,
    CannotSwitch,
    Catalogue,
    UserRules,
    disable,
    enable,
    off_because,
)
from tools_cache.api.tool import ExecutionType, Source, ToolDefinition

NO_RULES = UserRules()


def tool(name, *needs, source=Source.LOCAL, **more):
    return ToolDefinition(
        name=name,
        description="d",
        input_schema={"type": "object"},
        source=source,
        depends_on=needs,
        **more,
    )


CHAIN = (
    tool("a:a", "b:b"),
    tool("b:b", "c:c"),
    tool("c:c"),
    tool("x:x", "y:y"),
    tool("y:y", "x:x"),
    tool("lone:one", "no:where"),
)
BUILT_IN = tool("registry:load", execution_type=ExecutionType.INTERNAL)


def catalogue(*tools, switches=None, shut=None, denied=()):
    known = {t.name: t for t in tools}
    switches, shut, rules = switches or {}, shut or {}, UserRules(tuple(denied))
    return Catalogue(
        known.get,
        known.values,
        lambda t: off_because(t, rules, switches),
        lambda t: shut.get(t.name, ""),
    )


@pytest.mark.requirement("S4-17")
def test_enabling_a_tool_enables_what_it_depends_on_all_the_way_down():
    done = enable("a:a", catalogue(*CHAIN, switches={"a:a": False, "b:b": False, "c:c": False}))
    assert (done.changed, done.warnings, done.on) == (("a:a", "b:b", "c:c"), (), True)
    done = enable("a:a", catalogue(*CHAIN, switches={"b:b": True, "c:c": False}))
    assert done.changed == ("c:c",), "only what is off is switched"


@pytest.mark.requirement("S4-17")
def test_a_circle_of_dependencies_ends_where_it_began():
    done = enable("x:x", catalogue(*CHAIN, switches={"x:x": False, "y:y": False}))
    assert done.changed == ("x:x", "y:y")
    assert enable("x:x", catalogue(*CHAIN)).changed == ()


def test_a_dependency_that_cannot_be_had_is_a_warning_that_names_it():
    assert enable("lone:one", catalogue(*CHAIN)).warnings == (
        "it depends on no:where, which does not exist",
    )
    assert enable("a:a", catalogue(*CHAIN, denied=["c:*"])).warnings == (
        f"it depends on c:c, which is {BY_OWNER}",
    )
    shut = enable("a:a", catalogue(*CHAIN, shut={"b:b": "no calendar is configured"}))
    assert shut.warnings == ("it depends on b:b: no calendar is configured",)


@pytest.mark.requirement("S4-18")
def test_a_gated_tool_cannot_be_enabled_and_says_why():
    with pytest.raises(CannotSwitch) as refused:
        enable("c:c", catalogue(*CHAIN, shut={"c:c": "it works only while the glasses are worn"}))
    assert (refused.value.code, str(refused.value)) == (
        "CONFLICT",
        "c:c cannot be enabled: it works only while the glasses are worn",
    )


@pytest.mark.requirement("S4-19")
def test_disabling_a_tool_names_those_that_need_it():
    done = disable("c:c", catalogue(*CHAIN))
    assert (done.changed, done.on) == (("c:c",), False)
    assert done.warnings == (
        "a:a depends on it and may not work without it",
        "b:b depends on it and may not work without it",
    )
    done = disable("c:c", catalogue(*CHAIN, switches={"a:a": False}))
    assert done.warnings == ("b:b depends on it and may not work without it",), (
        "what is off already misses nothing"
    )
    assert disable("y:y", catalogue(*CHAIN)).warnings == (
        "x:x depends on it and may not work without it",
    )


def test_switching_what_is_so_already_changes_nothing():
    assert disable("c:c", catalogue(*CHAIN, switches={"c:c": False})).changed == ()
    assert enable("c:c", catalogue(*CHAIN)).changed == ()


@pytest.mark.parametrize("switch", [enable, disable])
def test_an_unknown_tool_cannot_be_switched(switch):
    with pytest.raises(CannotSwitch) as refused:
        switch("no:such", catalogue(*CHAIN))
    assert (refused.value.code, str(refused.value)) == ("NOT_FOUND", "there is no tool no:such")


@pytest.mark.requirement("S3-19")
def test_a_built_in_tool_is_not_configurable():
    with pytest.raises(CannotSwitch) as refused:
        disable("registry:load", catalogue(BUILT_IN))
    assert (refused.value.code, "built in and not configurable" in str(refused.value)) == (
        "CONFLICT",
        True,
    )
    assert off_because(BUILT_IN, UserRules(("registry:*",)), {"registry:load": False}) == ""
    clouds = tool("registry:load", source=Source.CLOUD, execution_type=ExecutionType.INTERNAL)
    assert off_because(clouds, UserRules(("registry:*",)), {}) == BY_OWNER, "only ours are built in"


def test_the_owners_no_stands_above_the_users_yes():
    assert off_because(CHAIN[0], UserRules(("a:*",)), {"a:a": True}) == BY_OWNER
    with pytest.raises(CannotSwitch, match=BY_OWNER):
        enable("a:a", catalogue(*CHAIN, denied=["a:a"]))


@pytest.mark.requirement("C-37")
@pytest.mark.parametrize("source", [Source.LOCAL, Source.GLASSES, Source.CLOUD])
def test_own_and_cloud_tools_are_on_until_switched_off(source):
    one = tool("p:t", source=source)
    assert off_because(one, NO_RULES, {}) == ""
    assert off_because(one, NO_RULES, {"p:t": False}) == "disabled: glassd tools enable p:t"


@pytest.mark.requirement("C-37")
def test_tools_of_other_servers_that_the_owner_named_are_on_until_switched_off():
    """That only those are there at all, `core/tools/mcp_tools.py` sees to."""
    one = tool("p:t", source=Source.UPSTREAM)
    assert off_because(one, NO_RULES, {}) == ""
    assert off_because(one, NO_RULES, {"p:t": False}) == "disabled: glassd tools enable p:t"


@pytest.mark.parametrize(
    ("patterns", "hit"),
    [
        ((), False),
        (("a:b",), True),
        (("a:*",), True),
        (("*",), True),
        (("a:",), False),
        (("a",), False),
        (("aa:*", "a:bb"), False),
    ],
)
def test_a_denied_name_is_a_tool_a_package_or_all(patterns, hit):
    assert selection_rules.named("a:b", patterns) is hit


def helpers(tools, offered=40):
    state, _ = selection.initialize(
        Loader(tuple(f"p:t{n}" for n in range(tools)), limits=SelectionLimits(offered))
    )
    return selection_rules.helpers(state, {*selection_rules.META, selection_rules.DESCRIBE})


@pytest.mark.requirement("S2-118")
def test_our_own_tools_take_a_place_only_where_they_are_needed():
    assert helpers(5) == helpers(19) == ()
    assert helpers(20) == helpers(39) == ("registry:describe",)
    assert helpers(40) == (
        "registry:search",
        "registry:load",
        "registry:invoke",
        "registry:describe",
    )
    assert helpers(12, offered=8) == ("registry:search", "registry:load", "registry:invoke")
