"""The lens says that the microphone is on: as a page, or as a mark on the page that is there.

Time is virtual.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from edge.ports import GlassesAway, Question
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import GlassesSaid, GlassesUnpaired, LensChanged
from firmware_bridge.messages import Gesture, Gestured, ShowPage, UpdatePage
from tests.unit.display.conftest import listening_for, stage_on
from tests.unit.display.fakes import AUDIO, DISPLAY, FakeGlasses, Notebook
from tests.unit.firmware_bridge.virtual import virtual_time
from tools_cache.api.tool import ToolResponse

pytestmark = pytest.mark.usefixtures("reading_time")
NO_TILES = {**DISPLAY, "display.tiles": False}
PIXEL = (  # one white pixel, as PNG
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAWk1v8QAAAABJRU5ErkJggg=="
)


def show(words, **display):
    return ToolResponse(
        data=words, render={"display": {"layout": "text_wall", "text": words, **display}}
    )


@asynccontextmanager
async def lens(facts=DISPLAY, **more):
    loop = asyncio.get_running_loop()
    clock, glasses = Clock(boot=loop.time, wall=loop.time), FakeGlasses(Bus(), facts)
    async with stage_on(facts, clock=clock, glasses=glasses, **more) as (stage, _):
        await asyncio.sleep(1)
        yield stage, glasses, Seen(glasses)


class Seen:
    """The rows on the lens, from what the glasses were sent."""

    def __init__(self, glasses):
        self._glasses = glasses

    @property
    def rows(self):
        rows = {}
        for command in self._glasses.told:
            if isinstance(command, ShowPage):
                rows = {}
            elif isinstance(command, UpdatePage):
                for line in command.lines:
                    rows[line.row] = ""
            elif type(command).__name__ == "ClearPage":
                rows = {}
            for line in getattr(command, "lines", ()):
                rows[line.row] = f"{rows.get(line.row, '')} {line.text}".strip()
        return {row: text for row, text in rows.items() if text}


async def mark(stage, text=""):
    stage.listening_mark.show(text)
    await asyncio.sleep(0.1)


async def gesture(glasses, made):
    glasses.bus.publish(GlassesSaid(Gestured(made)))
    await asyncio.sleep(0.2)


@virtual_time
async def test_a_dark_lens_says_that_it_listens_and_is_dark_at_once_afterwards():
    async with lens() as (stage, glasses, seen):
        await mark(stage)
        assert seen.rows == {0: "Listening…"}
        stage.listening_mark.clear()
        await asyncio.sleep(0.05)
        assert seen.rows == {}
        assert glasses.clears() == 1


@virtual_time
async def test_the_words_so_far_come_under_it_and_only_changed_rows_are_sent():
    async with lens() as (stage, glasses, seen):
        await mark(stage)
        for words in ("set", "set a time", "set a timer for ten minutes"):
            await mark(stage, words)
            assert seen.rows == {0: "Listening…", 1: words}
        sent = [[line.row for line in update.lines] for update in glasses.updates()]
        assert sent == [[1], [1], [1]]
        assert len(glasses.pages()) == 1


@virtual_time
async def test_of_many_words_the_last_ones_are_shown():
    async with lens() as (stage, _, seen):
        await mark(stage, " ".join(f"word{n}" for n in range(200)))
        assert seen.rows[0] == "Listening…"
        assert seen.rows[4].endswith("word199")


@virtual_time
async def test_a_page_that_stays_gets_a_mark_in_its_corner_and_loses_it():
    async with lens() as (stage, glasses, seen):
        await stage.present("a", show("The train leaves at nine."))
        await mark(stage, "words are not shown here")
        assert seen.rows == {0: "The train leaves at nine.", 4: "Listening…"}
        stage.listening_mark.clear()
        await asyncio.sleep(0.1)
        assert seen.rows == {0: "The train leaves at nine."}
        assert len(glasses.pages()) == 1, "only the corner was drawn"


@virtual_time
async def test_a_page_that_comes_meanwhile_has_the_mark_and_the_listening_page_returns():
    async with lens() as (stage, _, seen):
        await mark(stage)
        await stage.present("a", show("Bob", durationMs=3000))
        assert seen.rows == {0: "Bob", 4: "Listening…"}
        await asyncio.sleep(3.2)
        assert seen.rows == {0: "Listening…"}


@virtual_time
async def test_on_a_brief_page_the_words_stand_above_the_mark():
    async with lens() as (stage, _, seen):
        await stage.tell("Looking for trains", call_id="c", brief=True)
        await mark(stage, "stop that")
        assert seen.rows == {0: "Looking for trains", 3: "stop that", 4: "Listening…"}
        assert "stop that" not in str(stage.lens(exact=True))


@virtual_time
async def test_a_full_page_gives_the_end_of_its_last_row():
    async with lens() as (stage, _, seen):
        await stage.present("a", show("M" * 179))
        before = seen.rows
        await mark(stage)
        assert seen.rows[4] != before[4]
        assert "mic" in seen.rows[4]
        assert {row: seen.rows[row] for row in range(4)} == {row: before[row] for row in range(4)}
        stage.listening_mark.clear()
        await asyncio.sleep(0.1)
        assert seen.rows == before


@virtual_time
async def test_a_full_alarm_is_left_as_it_is():
    async with lens() as (stage, _, seen):
        await stage.tell("M" * 179)
        before = seen.rows
        await mark(stage)
        assert len(before) == 5
        assert seen.rows == before


async def test_on_glasses_with_no_tiles_a_picture_gives_way_and_comes_back():
    async with stage_on(NO_TILES) as (stage, glasses):
        picture = ToolResponse(
            data="x", render={"display": {"layout": "bitmap_view", "data": PIXEL}}
        )
        await stage.present("a", picture)
        assert glasses.pages()[-1].tiles
        stage.listening_mark.show()
        await glasses.until(lambda: Seen(glasses).rows == {0: "Listening…"})
        stage.listening_mark.clear()
        await glasses.until(lambda: bool(glasses.pages()[-1].tiles))


async def test_a_picture_that_comes_while_the_microphone_is_on_is_shown():
    async with stage_on(NO_TILES) as (stage, glasses):
        stage.listening_mark.show()
        await glasses.until(lambda: Seen(glasses).rows == {0: "Listening…"})
        picture = ToolResponse(
            data="x", render={"display": {"layout": "bitmap_view", "data": PIXEL}}
        )
        await stage.present("a", picture)
        stage.listening_mark.show("more words")
        await asyncio.sleep(0.1)
        assert glasses.pages()[-1].tiles


@virtual_time
async def test_a_question_is_never_covered_and_the_mark_is_right_after_it():
    async with lens() as (stage, glasses, seen):
        glasses.prompts = False
        await mark(stage)
        asking = asyncio.ensure_future(stage.ask(Question("q", "Send it?", 30.0)))
        await asyncio.sleep(0.2)
        question = seen.rows
        assert question[0] == "Send it?"
        await mark(stage, "some words")
        assert seen.rows == question
        stage.listening_mark.clear()
        await asyncio.sleep(1)
        await gesture(glasses, Gesture.TAP)
        assert await asking
        await asyncio.sleep(0.5)
        assert seen.rows == {}


@virtual_time
async def test_after_a_question_the_lens_says_again_that_it_listens():
    async with lens() as (stage, _glasses, seen):
        await mark(stage)
        asking = asyncio.ensure_future(stage.ask(Question("q", "Send it?", 30.0)))
        await asyncio.sleep(1)
        asking.cancel()
        await asyncio.sleep(0.5)
        assert seen.rows == {0: "Listening…"}
        assert stage.lens()["lines"] == ["Listening…"]


@virtual_time
async def test_words_are_in_no_report_and_no_event():
    async with lens() as (stage, glasses, _seen):
        with glasses.bus.listen() as events:
            await mark(stage, "my secret")
            stage.listening_mark.clear()
            await asyncio.sleep(0.1)
            glasses.bus.publish(GlassesUnpaired("mock", "AA"))
            changes = []
            async for event in events:
                if isinstance(event, GlassesUnpaired):
                    break
                changes.append(event)
        pages = [event.lines for event in changes if isinstance(event, LensChanged)]
        assert pages == [("Listening…",), ()]
        assert "secret" not in str(changes)


@virtual_time
async def test_lost_glasses_show_it_again_only_while_it_listens():
    async with lens() as (stage, glasses, seen):
        await mark(stage)
        glasses.leave()
        stage.listening_mark.clear()
        await asyncio.sleep(1)
        glasses.come_back()
        await asyncio.sleep(1)
        assert seen.rows == {}
        glasses.leave()
        await mark(stage)
        glasses.come_back()
        await asyncio.sleep(1)
        assert seen.rows == {0: "Listening…"}


@virtual_time
async def test_a_mark_that_was_lost_on_the_way_is_drawn_when_the_glasses_return():
    def lose(command):
        if isinstance(command, ShowPage):
            raise GlassesAway

    async with lens() as (stage, glasses, seen):
        glasses.refuse = lose
        await mark(stage)
        glasses.leave()
        glasses.refuse = lambda _: None
        glasses.come_back()
        await asyncio.sleep(1)
        assert seen.rows == {0: "Listening…"}


@virtual_time
async def test_a_mark_that_has_left_is_nothing_to_the_next_daemon():
    notes = Notebook()
    async with lens(notes=notes) as (stage, _, _seen):
        await mark(stage)
        stage.listening_mark.clear()
        await asyncio.sleep(0.2)
    async with lens(notes=notes) as (stage, glasses, _):
        assert glasses.told == []


@virtual_time
async def test_the_next_daemon_clears_it_and_finds_no_words():
    notes = Notebook()
    async with lens(notes=notes) as (stage, glasses, _seen):
        await mark(stage, "my secret")
        assert "secret" not in str(notes.kept)
        glasses.leave()  # so this daemon cannot clear it
    async with lens(notes=notes) as (stage, glasses, _):
        assert glasses.clears() == 1


@virtual_time
async def test_a_page_that_is_on_the_lens_when_the_daemon_ends_is_restored_unmarked():
    notes = Notebook()
    async with lens(notes=notes) as (stage, _, _seen):
        await stage.present("a", show("Bob"))
        await mark(stage)
    async with lens(notes=notes) as (_, _glasses, seen):
        assert seen.rows == {0: "Bob"}


@virtual_time
async def test_gestures_on_the_listening_page_are_reported():
    unused = []
    async with lens(listens=listening_for(unused)) as (stage, glasses, _):
        await stage.present("a", show("Bob", durationMs=2000))
        await asyncio.sleep(4)
        await mark(stage)
        for made in (Gesture.TAP, Gesture.DOUBLE_TAP, Gesture.BUTTON_LONG):
            await gesture(glasses, made)
        taps = [Gesture.TAP, Gesture.DOUBLE_TAP, Gesture.BUTTON_LONG]
        assert [made for made, _side in unused] == taps


@virtual_time
async def test_glasses_with_no_lens_are_sent_nothing():
    async with lens(AUDIO) as (stage, glasses, _):
        await mark(stage, "words")
        stage.listening_mark.clear()
        await asyncio.sleep(0.2)
        assert glasses.told == []


@virtual_time
async def test_words_that_come_faster_than_the_panel_takes_them_skip_none_of_the_last():
    async with lens(min_gap_s=0.5) as (stage, glasses, seen):
        stage.listening_mark.show("")
        for n in range(50):
            stage.listening_mark.show(" ".join(["word"] * (n % 7)) + f" {n}")
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        assert seen.rows[1].endswith("49")
        assert len(glasses.updates()) <= 7


@virtual_time
async def test_the_lens_does_not_go_dark_between_the_words_and_their_answer():
    async with lens() as (stage, glasses, seen):
        await mark(stage, "what time is it")
        stage.listening_mark.clear(answered=True)
        await asyncio.sleep(0.2)
        assert seen.rows == {0: "Listening…", 1: "what time is it"}
        await stage.present("a", show("Nine.", durationMs=3000))
        assert (seen.rows, glasses.clears()) == ({0: "Nine."}, 0)
        await asyncio.sleep(3.2)
        assert seen.rows == {}


@virtual_time
async def test_without_an_answer_the_lens_is_dark_after_half_a_second():
    async with lens() as (stage, glasses, seen):
        await mark(stage, "what time is it")
        stage.listening_mark.clear(answered=True)
        await asyncio.sleep(0.45)
        assert seen.rows
        await asyncio.sleep(0.1)
        assert (seen.rows, glasses.clears()) == ({}, 1)
