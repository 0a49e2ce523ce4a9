"""Which tools are offered: all that fit; else the essential, the used and the asked for, moved
at turn boundaries only.
"""

import pytest

from edge.core.tools import selection
from edge.core.tools.selection import Held, Kind, Loader, SelectionLimits

TEN = tuple(f"p:t{n}" for n in range(10))
HUNDRED = tuple(f"p:t{n:03}" for n in range(100))


def begun(available=HUNDRED, *, offered=11, idle=3, essential=(), needs=None):
    """A loader that began. With a hundred tools 4 of the places are kept for ours, so 11
    offered are 7 loaded.
    """
    state = Loader(
        available, frozenset(essential), limits=SelectionLimits(offered, idle), needs=needs or {}
    )
    return selection.initialize(state)


def kinds(events):
    return [(e.kind, e.tool) for e in events]


def after(state, turns):
    gone = []
    for _ in range(turns):
        state, events = selection.turn(state)
        gone += [e.tool for e in events]
    return state, gone


@pytest.mark.requirement("S4-54")
def test_as_long_as_all_fit_all_are_loaded_and_no_turn_unloads_any():
    state, events = begun(TEN)
    assert (state.crowded, tuple(state.loaded), state.turn) == (False, TEN, 0)
    assert events[0].kind is Kind.INITIALIZED
    state, gone = after(state, 100)
    assert (tuple(state.loaded), gone, state.turn) == (TEN, [], 100)


def test_no_more_are_offered_than_the_limit_with_our_own_tools_counted():
    for tools in (39, 40, 41, 200):
        state, _ = begun(tuple(f"p:t{n:03}" for n in range(tools)), offered=40)
        ours = (selection.META_TOOLS if state.crowded else 0) + (1 if state.many else 0)
        assert len(state.loaded) + ours <= 40
        assert len(state.loaded) == min(tools, 40 - ours), "and no place is left empty"


@pytest.mark.requirement("S4-21")
def test_essential_tools_come_first_and_stay_through_a_hundred_idle_turns():
    state, _ = begun(essential=["p:t050", "p:t099", "p:gone"])
    assert {"p:t050", "p:t099"} <= set(state.loaded)
    assert len(state.loaded) == 7
    state, gone = after(state, 100)
    assert set(state.loaded) == {"p:t050", "p:t099"}
    assert sorted(gone) == ["p:t000", "p:t001", "p:t002", "p:t003", "p:t004"]
    state, _ = selection.load(state, HUNDRED[:40])
    assert {"p:t050", "p:t099"} <= set(state.loaded), "nor does a crowd push them out"
    assert len(state.loaded) == 7


@pytest.mark.requirement("S4-55")
def test_a_regular_tool_goes_after_the_idle_turns_and_one_for_a_single_call_after_one():
    state, _ = begun(idle=3)
    state, _ = after(state, 10)
    state, _ = selection.load(state, ["p:t010"])
    state, _ = selection.load(state, ["p:t020"], passing=True)
    state, gone = after(state, 1)
    assert gone == [], "the turn in which it is listed first is not idle yet"
    state, gone = after(state, 1)
    assert gone == ["p:t020"]
    state, gone = after(state, 1)
    assert gone == []
    state, gone = after(state, 1)
    assert gone == ["p:t010"]


def test_use_restarts_the_idle_turns_of_a_tool_and_its_dependencies():
    state, _ = begun(idle=2, needs={"p:t000": ("p:t001",), "p:t001": ("p:t000", "p:nowhere")})
    for _ in range(5):
        state, gone = after(state, 2)
        assert not {"p:t000", "p:t001"} & set(gone)
        state, events = selection.use(state, "p:t000")
        assert kinds(events) == [(Kind.USED, "p:t000")]
    assert set(state.loaded) == {"p:t000", "p:t001"}


@pytest.mark.requirement("S4-57")
def test_loading_brings_dependencies_and_makes_room_of_what_was_used_longest_ago():
    state, _ = begun(needs={"p:t090": ("p:t091",), "p:t091": ("p:t090",)})
    state, _ = after(state, 1)
    for name in ("p:t000", "p:t001", "p:t002", "p:t003", "p:t004"):
        state, _ = selection.use(state, name)
    state, events = selection.load(state, ["p:t090"])
    assert kinds(events) == [
        (Kind.UNLOADED, "p:t006"),
        (Kind.UNLOADED, "p:t005"),
        (Kind.LOADED, "p:t090"),
        (Kind.LOADED, "p:t091"),
    ]
    assert len(state.loaded) == state.room == 7


def test_what_is_loaded_for_one_call_makes_room_first_and_asked_for_it_stays():
    state, _ = begun()
    state, _ = selection.turn(state)
    state, _ = selection.load(state, ["p:t050"], passing=True)
    state, _ = selection.load(state, ["p:t000"], passing=True)
    assert state.loaded["p:t000"] == Held(1), "what is here to stay does not become a guest"
    state, events = selection.load(state, ["p:t060"])
    assert [e.tool for e in events if e.kind is Kind.UNLOADED] == ["p:t050"], (
        "though it was used last"
    )
    state, _ = selection.load(state, ["p:t050"], passing=True)
    state, events = selection.load(state, ["p:t050"])
    assert (state.loaded["p:t050"].passing, events) == (False, ())


def test_only_what_is_available_is_loaded_and_not_more_than_there_is_room_for():
    state, _ = begun()
    same, events = selection.load(state, ["p:nowhere"])
    assert (same.loaded, events) == (state.loaded, ())
    state, _ = selection.load(state, HUNDRED)
    assert len(state.loaded) == 7


@pytest.mark.requirement("S4-56")
def test_the_events_tell_the_whole_story_in_order():
    state, first = begun(offered=10, idle=1)
    story = list(first)
    for step in (
        lambda s: selection.load(s, ["p:t050"]),
        lambda s: selection.use(s, "p:t050"),
        selection.turn,
        selection.turn,
        selection.turn,
    ):
        state, events = step(state)
        story += events
    assert story[0].kind is Kind.INITIALIZED
    assert "100 tools" in story[0].why
    of_it = [(e.kind, e.why) for e in story if e.tool == "p:t050"]
    assert of_it == [
        (Kind.LOADED, "asked for"),
        (Kind.USED, ""),
        (Kind.UNLOADED, "not used for 1 turn"),
    ]
    assert state.turn == 3


def test_another_set_of_tools_keeps_what_is_still_there_and_loads_all_once_they_fit():
    state, _ = begun()
    state, events = selection.adopt(state, HUNDRED[3:])
    assert [e.tool for e in events] == ["p:t000", "p:t001", "p:t002"]
    assert set(state.loaded) == {"p:t003", "p:t004", "p:t005", "p:t006"}
    state, events = selection.adopt(state, HUNDRED[3:8])
    assert set(state.loaded) == set(HUNDRED[3:8])
    assert kinds(events) == [(Kind.LOADED, "p:t007")]


def test_many_new_tools_push_out_no_more_than_they_must():
    state, _ = begun(TEN, essential=["p:t9"])
    state, events = selection.adopt(state, (*TEN, *HUNDRED))
    assert len(state.loaded) == state.room == 7
    assert "p:t9" in state.loaded
    assert all(e.kind is Kind.UNLOADED for e in events)
    assert set(state.loaded) < set(TEN), "what is new waits to be asked for"


def test_new_tools_that_are_among_the_first_are_loaded_and_the_last_make_room():
    """The glasses' own, when they are connected."""
    state, _ = begun(HUNDRED, essential=["p:t001"])
    own = ("glasses:show_text", "glasses:notify")
    state, events = selection.adopt(state, (*own, *HUNDRED))
    assert set(state.loaded) == {*own, *HUNDRED[:5]}
    assert kinds(events) == [
        (Kind.LOADED, "glasses:show_text"),
        (Kind.LOADED, "glasses:notify"),
        (Kind.UNLOADED, "p:t006"),
        (Kind.UNLOADED, "p:t005"),
    ]
    same, events = selection.adopt(state, (*own, *HUNDRED))
    assert (same, events) == (state, ()), "they are new once"
    many = tuple(f"g:t{n}" for n in range(9))
    state, _ = selection.adopt(state, (*many, *own, *HUNDRED))
    assert set(state.loaded) == {"p:t001", *many[:6]}, "the essential stay"


def test_an_essential_tool_that_comes_later_is_loaded_when_it_comes():
    state, _ = begun(HUNDRED[:50], essential=["p:t099"])
    state, events = selection.adopt(state, HUNDRED)
    assert "p:t099" in state.loaded
    assert (Kind.LOADED, "p:t099") in kinds(events)
    assert len(state.loaded) == 7
