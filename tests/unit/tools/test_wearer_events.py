"""Waiting for the wearer: what counts, what is told of it, and that nothing between two waits
is lost.
"""

import asyncio

import pytest

from edge.runtime.clock import Clock
from edge.tools.wearer_events import KEPT, SAID_S, WearerEvents
from firmware_bridge.messages import (
    BatteryChanged,
    Gesture,
    Gestured,
    Transcript,
    UncertainTap,
    WornChanged,
)
from firmware_bridge.sides import Side

TAP, NOD = Gestured(Gesture.TAP), Gestured(Gesture.NOD)


@pytest.fixture
def boot():
    return [100.0]


@pytest.fixture
def doings(boot):
    return WearerEvents(Clock(boot=lambda: boot[0], wall=lambda: 0.0))


async def waiting(doings, *events, after=None, timeout_s=30.0):
    """A wait that has begun."""
    task = asyncio.ensure_future(doings.next(events or None, after=after, timeout_s=timeout_s))
    await asyncio.sleep(0)
    return task


@pytest.mark.requirement("I6-wait")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        *((Gestured(gesture), {"event": gesture.value}) for gesture in Gesture),
        (Gestured(Gesture.TAP, Side.LEFT), {"event": "tap", "side": "left"}),
        (WornChanged(worn=True), {"event": "worn"}),
        (WornChanged(worn=False), {"event": "not_worn"}),
        (BatteryChanged(12, charging=True), {"event": "battery", "level": 12, "charging": True}),
        (
            BatteryChanged(12, side=Side.LEFT),
            {"event": "battery", "level": 12, "charging": False, "side": Side.LEFT.value},
        ),
    ],
)
async def test_whatever_the_wearer_does_ends_a_wait_and_says_which_it_was(doings, said, told):
    task = await waiting(doings)
    doings.note(said)
    assert await task == {**told, "age_s": 0.0, "after": 1}


async def test_only_what_was_named_counts_and_everybody_who_waits_hears_it(doings):
    tap, nod, either = (
        await waiting(doings, "tap"),
        await waiting(doings, "nod"),
        await waiting(doings, "nod", "tap"),
    )
    doings.note(NOD)
    assert [(await task)["event"] for task in (nod, either)] == ["nod", "nod"]
    assert not tap.done()
    doings.note(TAP)
    assert (await tap)["after"] == 2


async def test_a_tap_that_may_be_the_one_before_is_no_event(doings):
    doings.note(UncertainTap(Side.LEFT))
    assert await doings.next(None, after=0, timeout_s=0.01) == {"event": None, "after": 0}


@pytest.mark.requirement("I13-said")
async def test_words_are_given_only_to_those_who_name_them(doings):
    doings.note(Transcript("my sec", final=False))
    doings.note(Transcript("  "))
    doings.note(Transcript("my secret "))
    assert await doings.next(None, after=0, timeout_s=0.01) == {"event": None, "after": 1}
    words = {"event": "said", "text": "my secret", "age_s": 0.0, "after": 1}
    assert await doings.next(["tap", "said"], after=0, timeout_s=30) == words


@pytest.mark.requirement("I13-said")
async def test_words_are_kept_for_a_minute(doings, boot):
    doings.note(Transcript("my secret"))
    boot[0] += SAID_S
    assert (await doings.next(["said"], after=0, timeout_s=30))["text"] == "my secret"
    boot[0] += 0.1
    doings.note(TAP)
    assert await doings.next(["said"], after=0, timeout_s=0.01) == {"event": None, "after": 2}
    assert (await doings.next(None, after=0, timeout_s=30))["missed"] == 1
    assert "secret" not in repr(list(doings._events))


@pytest.mark.requirement("I14-sorry-once")
async def test_words_are_wanted_while_somebody_waits_for_them_and_a_minute_longer(doings, boot):
    await doings.next(["tap"], after=0, timeout_s=0.01)
    assert not doings.words_wanted()
    waiting = asyncio.create_task(doings.next(["said"], after=0, timeout_s=30))
    await asyncio.sleep(0)
    boot[0] += 2 * SAID_S
    assert doings.words_wanted()
    doings.note(Transcript("hello", confidence=0.876))
    assert (await waiting)["confidence"] == 0.88
    boot[0] += SAID_S - 1
    assert doings.words_wanted()
    boot[0] += 2
    assert not doings.words_wanted()


@pytest.mark.requirement("I13-said")
async def test_very_long_words_are_cut(doings):
    doings.note(Transcript("x" * 5000))
    assert len((await doings.next(["said"], after=0, timeout_s=30))["text"]) == 2000


@pytest.mark.requirement("I6-wait")
async def test_silence_says_from_where_to_go_on_and_nothing_is_missed_between_two_waits(
    doings, boot
):
    doings.note(TAP)
    assert await doings.next(None, after=None, timeout_s=0.01) == {"event": None, "after": 1}, (
        "only what comes from now on"
    )
    doings.note(NOD)
    doings.note(TAP)
    boot[0] += 2.0
    assert await doings.next(None, after=1, timeout_s=30) == {
        "event": "nod",
        "age_s": 2.0,
        "after": 2,
    }
    assert (await doings.next(None, after=2, timeout_s=30))["event"] == "tap"


async def test_what_is_too_long_ago_is_counted(doings):
    for _ in range(KEPT + 5):
        doings.note(TAP)
    assert await doings.next(None, after=2, timeout_s=30) == {
        "event": "tap",
        "age_s": 0.0,
        "after": 6,
        "missed": 3,
    }


async def test_a_number_of_an_earlier_daemon_hides_nothing(doings):
    doings.note(TAP)
    assert await doings.next(None, after=900, timeout_s=1) == {
        "event": "tap",
        "age_s": 0.0,
        "after": 1,
    }


async def test_a_wait_that_is_called_off_leaves_the_others_alone(doings):
    one, other = await waiting(doings), await waiting(doings)
    one.cancel()
    await asyncio.wait({one})
    doings.note(TAP)
    assert (await other)["event"] == "tap"
