"""Our own speech stops when the wearer speaks, and says so; a question that is spoken does not."""

import asyncio

from edge.ports import Question, Wait
from firmware_bridge.messages import Answer, EndAudio, Gesture
from tests.unit.display.fakes import AUDIO, FULL
from tools_cache.api.tool import Delivery, ToolResponse

LONG = ToolResponse(data="x", render={"audio": {"text": "One. Two. Three. Four. " * 20}})


async def test_speech_that_the_wearer_interrupts_was_not_heard_whole(open_stage) -> None:
    async with open_stage(FULL) as (stage, glasses):
        glasses.speed = 1.0
        assert not stage.speech.speaking
        speaking = asyncio.ensure_future(stage.present("a", LONG, wait=Wait.DELIVERY))
        await glasses.until(lambda: glasses.frames() > 0)
        assert stage.speech.speaking
        stage.speech.stop()
        report = await speaking
        assert (report.state, report.reason) == (Delivery.SPOKEN, "stopped by the wearer")
        assert not stage.speech.speaking
        assert glasses.told[-1] == EndAudio(1, flush=True), "what is buffered is not heard"


async def test_speech_that_is_stopped_before_it_began_is_dropped(open_stage) -> None:
    async with open_stage(FULL) as (stage, glasses):
        hold = glasses.hold()
        speaking = asyncio.ensure_future(stage.present("a", LONG, wait=Wait.DELIVERY))
        await glasses.until(lambda: stage._speech.speaking is not None)
        assert not stage.speech.speaking, "nothing can be heard yet: the microphone is used"
        stage.speech.stop()
        assert not stage.speech.speaking
        hold.set()
        report = await speaking
        assert report.state is not Delivery.SENT
        assert "stopped by the wearer" in report.reason or report.state is Delivery.DROPPED


async def test_a_question_is_spoken_to_its_end(open_stage) -> None:
    async with open_stage(AUDIO) as (stage, glasses):
        asking = asyncio.ensure_future(stage.ask(Question("q", "Send the message?", 60.0)))
        await glasses.until(lambda: glasses.frames() > 0)
        stage.speech.stop()
        await glasses.until(lambda: not stage.speech.speaking)
        await asyncio.sleep(0.8)  # a gesture this soon would be one for what was there before
        await glasses.say(Gesture.BUTTON)
        assert await asking is Answer.ALLOW


async def test_to_stop_what_is_silent_does_nothing(open_stage) -> None:
    async with open_stage(FULL) as (stage, glasses):
        stage.speech.stop()
        assert glasses.told == []
        report = await stage.present(
            "a",
            ToolResponse(data="x", render={"audio": {"text": "Hello."}}),
            wait=Wait.DELIVERY,
        )
        assert (report.state, report.reason) == (Delivery.SPOKEN, "")
