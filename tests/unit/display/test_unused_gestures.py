"""Gestures that mean nothing to what is shown or spoken are reported: one may start listening."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from edge.display.prompts import TOO_SOON_S
from edge.ports import Question, Wait
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import GlassesSaid
from firmware_bridge.messages import Gesture, Gestured
from firmware_bridge.sides import Side
from tests.unit.display.conftest import listening_for, stage_on
from tests.unit.display.fakes import AUDIO, DISPLAY, FULL, FakeGlasses
from tests.unit.firmware_bridge.virtual import virtual_time
from tools_cache.api.tool import ToolResponse

pytestmark = pytest.mark.usefixtures("reading_time")
EVERY = tuple(Gesture)


def show(words, **display):
    return ToolResponse(
        data=words, render={"display": {"layout": "text_wall", "text": words, **display}}
    )


@asynccontextmanager
async def lens(facts=DISPLAY):
    """A stage whose clock is the loop's, glasses, and what was reported as unused."""
    loop, unused = asyncio.get_running_loop(), []
    clock, glasses = Clock(boot=loop.time, wall=loop.time), FakeGlasses(Bus(), facts)

    listens = listening_for(unused)
    async with stage_on(facts, clock=clock, glasses=glasses, listens=listens) as (stage, _):
        await asyncio.sleep(1)
        yield stage, glasses, unused


async def make(glasses, gesture, side=None):
    glasses.bus.publish(GlassesSaid(Gestured(gesture, side)))
    await asyncio.sleep(0.2)


@virtual_time
async def test_on_a_dark_lens_with_nothing_to_recall_every_gesture_is_unused():
    async with lens() as (_, glasses, unused):
        for gesture in EVERY:
            await make(glasses, gesture, Side.LEFT)
        assert unused == [(gesture, Side.LEFT) for gesture in EVERY]


@virtual_time
async def test_a_tap_that_recalls_a_result_is_used():
    async with lens() as (stage, glasses, unused):
        await stage.present("a", show("Bob", durationMs=2000))
        await asyncio.sleep(4)
        await make(glasses, Gesture.TAP)
        assert stage.lens()["lines"] != []
        assert unused == []


@virtual_time
async def test_a_gesture_just_after_the_page_left_was_meant_for_it():
    async with lens() as (stage, glasses, unused):
        await stage.present("a", show("Bob", durationMs=2000))
        await asyncio.sleep(2 + TOO_SOON_S / 2)
        assert stage.lens()["page"] == 0
        await make(glasses, Gesture.DOUBLE_TAP)
        assert unused == []
        await asyncio.sleep(TOO_SOON_S)
        await make(glasses, Gesture.DOUBLE_TAP)
        assert unused == [(Gesture.DOUBLE_TAP, None)]


@virtual_time
async def test_a_page_uses_taps_and_leaves_the_long_press():
    async with lens() as (stage, glasses, unused):
        await stage.present("a", show("Bob"))
        await make(glasses, Gesture.BUTTON_LONG)
        await make(glasses, Gesture.DOUBLE_TAP)
        assert stage.lens()["page"] == 0
        assert unused == [(Gesture.BUTTON_LONG, None)]


@virtual_time
async def test_a_question_uses_the_gestures_that_answer_also_too_early():
    async with lens() as (stage, glasses, unused):
        asking = asyncio.ensure_future(stage.ask(Question("q", "Send it?", 30.0)))
        await asyncio.sleep(0.1)
        for gesture in (Gesture.TAP, Gesture.BUTTON_LONG, Gesture.NOD):
            await make(glasses, gesture)
        asking.cancel()
        assert unused == [(Gesture.NOD, None)]


@virtual_time
async def test_running_calls_use_the_gesture_that_cancels_them():
    async with lens() as (stage, glasses, unused):
        await stage.tell("Working…", call_id="c", brief=True, mark=True)
        await make(glasses, Gesture.DOUBLE_TAP)
        assert unused == []


@virtual_time
async def test_without_a_lens_the_long_press_is_unused_unless_a_call_is_awaited():
    async with lens({**AUDIO, "gestures": "button,button_long"}) as (stage, glasses, unused):
        await make(glasses, Gesture.BUTTON_LONG)
        assert unused == [(Gesture.BUTTON_LONG, None)]
        await stage.tell("Working…", call_id="c", brief=True, mark=True)
        await make(glasses, Gesture.BUTTON_LONG)
        assert unused == [(Gesture.BUTTON_LONG, None)]


async def test_a_tap_that_stops_our_voice_is_used():
    unused = []
    async with stage_on(FULL, listens=listening_for(unused)) as (stage, glasses):
        glasses.speed = 1.0
        speech = ToolResponse(data="x", render={"audio": {"text": "One. Two. Three. " * 40}})
        speaking = asyncio.ensure_future(stage.present("a", speech, wait=Wait.DELIVERY))
        await glasses.until(lambda: glasses.frames() > 0)
        await glasses.say(Gesture.TAP)
        assert "stopped by the wearer" in (await speaking).reason
        assert unused == []
