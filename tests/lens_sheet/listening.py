"""What is on the lens while glassd listens: the mark, words so far, captions, spoken answers."""

import asyncio
import time
from typing import Any

from firmware_bridge.messages import Gesture, Transcript
from tests.lens_sheet.acts import STORY, Act, photo
from tests.lens_sheet.stage import Stage

SENTENCE = "remind me to water the plants at ten past nine"
TALK = (
    "Good morning, is this seat free?",
    "Yes, of course, please sit down.",
    "Thank you. Does this train stop in Oxford?",
    "It does, at half past three, and then it goes on to Banbury and Birmingham.",
    "Then I have time for a coffee.",
    "The dining car is two carriages further on, next to the one with the bicycles.",
)


def _presenter(stage: Stage) -> Any:
    assert stage.world.daemon is not None
    return stage.world.daemon.stage


async def _speak(stage: Stage, *words: str) -> None:
    """The wearer speaks: partial words, each a little longer."""
    for text in words:
        stage.film.takes[-1].acts.append(time.monotonic())
        _presenter(stage).listening_mark.show(text)
        await stage.rest(0.5)


async def _fall_silent(stage: Stage) -> None:
    stage.film.takes[-1].acts.append(time.monotonic())
    _presenter(stage).listening_mark.clear()


async def push_to_talk(stage: Stage) -> None:
    await _speak(stage, "", "remind me", "remind me to water the pants", SENTENCE)
    await stage.rest(1.5)
    await _fall_silent(stage)
    await stage.rest(0.5)


def while_shown(tool: str, **args: object) -> Act:
    """The microphone is on while a page is there."""

    async def act(stage: Stage) -> None:
        await stage.call(tool, **args)
        await stage.rest(1.5)
        await _speak(stage, "", SENTENCE)
        await stage.rest(1.5)
        await _fall_silent(stage)
        await stage.rest(1.5)

    return act


async def while_a_call_works(stage: Stage) -> None:
    calling = stage.begin("town:weather", town="slow")
    await stage.rest(1.5)
    await _speak(stage, "", "and what", "and what about tomorrow")
    await _fall_silent(stage)
    await calling
    await stage.rest(1.5)


async def captions(stage: Stage) -> None:
    page = _presenter(stage).captions
    page.begin(lambda: None)
    await stage.rest(1.3)
    for sentence in TALK:
        words = sentence.split()
        for count in (len(words) // 2, len(words)):
            stage.film.takes[-1].acts.append(time.monotonic())
            page.hear(Transcript(" ".join(words[:count]), final=count == len(words)))
            await stage.rest(0.6)
    stage.does(Gesture.TAP)
    await stage.rest(1.5)
    await stage.call("glasses:show_text", text="A result over the captions", duration_s=2)
    await stage.rest(3.0)
    stage.does(Gesture.DOUBLE_TAP)
    await stage.rest(4.0)


class _Ears:
    """Hears every answer."""

    def opened(self, _question: object) -> bool:
        return True

    def closed(self) -> None: ...


def spoken_answer(said: str, tool: str, **args: object) -> Act:
    """A question that says what may be said, and an answer by voice."""

    async def act(stage: Stage) -> None:
        prompter = _presenter(stage)._prompter
        before, prompter._listens = prompter._listens, _Ears
        try:
            asking = asyncio.create_task(stage.call(tool, **args))
            await stage.rest(2.5)
            stage.film.takes[-1].acts.append(time.monotonic())
            if not _presenter(stage).answer_by_words(Transcript(said)):
                stage.note(f"{said!r} is no answer")
                stage.does(Gesture.DOUBLE_TAP)
            await asking
            await stage.rest(2.0)
        finally:
            prompter._listens = before

    return act


LISTENING: dict[str, Act] = {
    "listening": push_to_talk,
    "listening, page": while_shown("glasses:show_text", text="Milk, bread and eggs"),
    "listening, full page": while_shown("glasses:show_text", text=STORY),
    "listening, picture": while_shown("glasses:show_image", image=photo(), alt="mountains"),
    "listening, call works": while_a_call_works,
    "captions": captions,
    "spoken yes": spoken_answer("yes", "glasses:ask", question="Shall I call the dentist?"),
    "spoken choice": spoken_answer(
        "the second", "glasses:ask", question="Which line?", choices=["Central", "Jubilee"]
    ),
    "spoken yes to a consent": spoken_answer(
        "yes",
        "calendar:create_event",
        title="Lunch",
        start="2026-12-01T12:00:00Z",
        end="2026-12-01T13:00:00Z",
    ),
}
