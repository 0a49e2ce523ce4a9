"""Live captions: rows that roll up in place, a tap that leads back, and what covers or ends them.

Time is virtual.
"""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from edge.display.listening.captions import HELD_S, KEPT_S
from edge.ports import Question
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import GlassesSaid, GlassesUnpaired
from firmware_bridge.messages import Gesture, Gestured, Transcript
from tests.unit.display.conftest import stage_on
from tests.unit.display.fakes import AUDIO, DISPLAY, FakeGlasses, Notebook
from tests.unit.display.test_listening import Seen, show
from tests.unit.firmware_bridge.virtual import virtual_time
from tools_cache.api.tool import Delivery, ToolResponse

pytestmark = pytest.mark.usefixtures("reading_time")


@dataclass
class Room:
    """A stage that shows captions, and somebody who speaks."""

    stage: object
    glasses: FakeGlasses
    left: list[str] = field(default_factory=list)

    @property
    def rows(self):
        return list(Seen(self.glasses).rows.values())

    async def say(self, *words, final=True):
        for text in words:
            self.stage.captions.hear(Transcript(text, final))
            await asyncio.sleep(0.1)

    async def gesture(self, made=Gesture.TAP):
        self.glasses.bus.publish(GlassesSaid(Gestured(made)))
        await asyncio.sleep(0.2)


@asynccontextmanager
async def room(facts=DISPLAY, **more):
    loop = asyncio.get_running_loop()
    clock, glasses = Clock(boot=loop.time, wall=loop.time), FakeGlasses(Bus(), facts)
    async with stage_on(facts, clock=clock, glasses=glasses, **more) as (stage, _):
        await asyncio.sleep(1)
        here = Room(stage, glasses)

        def left():
            here.left.append("left")
            stage.captions.end()

        stage.captions.begin(left)
        await asyncio.sleep(0.1)
        yield here


@virtual_time
async def test_captions_say_that_they_are_on_and_then_show_what_is_said():
    async with room() as here:
        assert here.rows == ["Captions are on…"]
        await here.say("Good morning.", "How are you?")
        assert here.rows == ["Good morning.", "How are you?"]


@virtual_time
async def test_partial_words_are_corrected_in_place_and_only_their_row_is_sent():
    async with room() as here:
        await here.say("Good morning.")
        before = len(here.glasses.told)
        await here.say("how", "how are", final=False)
        await here.say("How old are you?")
        assert here.rows == ["Good morning.", "How old are you?"]
        sent = [[line.row for line in command.lines] for command in here.glasses.told[before:]]
        assert sent == [[1], [1], [1]]


@virtual_time
async def test_rows_roll_up_with_no_new_page():
    async with room() as here:
        await here.say(*(f"Line {n}." for n in range(1, 9)))
        assert here.rows == [f"Line {n}." for n in range(4, 9)]
        assert len(here.glasses.pages()) == 1, "all but the first was changed in place"
        assert here.glasses.clears() == 0


@virtual_time
async def test_rows_do_not_roll_down_when_words_become_fewer():
    async with room() as here:
        await here.say(*(f"Line {n}." for n in range(1, 5)))
        await here.say("many words " * 12, final=False)
        first = here.rows[0]
        await here.say("Few words.")
        assert here.rows[0] == first
        assert here.rows[-1] == "Few words."


@virtual_time
async def test_words_taken_back_leave_no_row():
    async with room() as here:
        await here.say("Hello.")
        await here.say("hm", final=False)
        await here.say("")
        assert here.rows == ["Hello."]


@virtual_time
async def test_taps_lead_back_through_what_was_said_and_then_to_the_newest():
    async with room() as here:
        await here.say(*(f"Line {n}." for n in range(1, 13)))
        newest = here.rows
        await here.gesture()
        assert here.rows == [*(f"Line {n}." for n in range(4, 8)), "just now"]
        await here.gesture()
        assert here.rows == [*(f"Line {n}." for n in range(1, 4)), "just now"]
        await here.gesture()
        assert here.rows == newest


@virtual_time
async def test_an_earlier_page_stays_for_a_while_although_somebody_speaks():
    async with room() as here:
        await here.say(*(f"Line {n}." for n in range(1, 13)))
        await here.gesture()
        earlier = here.rows
        await here.say("New.")
        assert here.rows == earlier
        await asyncio.sleep(HELD_S)
        await here.say("Newer.")
        assert here.rows[-2:] == ["New.", "Newer."]


@virtual_time
async def test_what_was_said_minutes_ago_is_forgotten():
    async with room() as here:
        await here.say(*(f"Line {n}." for n in range(1, 13)))
        await asyncio.sleep(KEPT_S)
        await here.say("New.")
        assert here.rows == ["New."]
        await here.gesture()
        assert here.rows == ["New."]


@virtual_time
async def test_what_is_forgotten_moves_nothing_on_the_lens():
    async with room() as here:
        await here.say(*(f"Old {n}." for n in range(1, 7)))
        await asyncio.sleep(KEPT_S - 10)
        await here.say(*(f"Line {n}." for n in range(1, 7)))
        await here.gesture()
        assert here.rows[:4] == ["Old 4.", "Old 5.", "Old 6.", "Line 1."]
        await asyncio.sleep(HELD_S)
        await here.gesture(Gesture.TAP)
        await asyncio.sleep(7)
        await here.gesture(Gesture.TAP)  # the newest
        await here.gesture(Gesture.TAP)  # those before
        await here.say("New.")
        assert here.rows == ["Line 1.", "just now"], "what is left of the earlier page"
        await asyncio.sleep(HELD_S)
        await here.say("Newer.")
        assert here.rows == ["Line 4.", "Line 5.", "Line 6.", "New.", "Newer."]


@virtual_time
async def test_a_lens_that_is_cleared_shows_the_captions():
    async with room() as here:
        await here.say("Hello.")
        await here.stage.present("a", show("Bob"))
        clear = ToolResponse(data="", render={"display": {"layout": "clear_view"}})
        assert (await here.stage.present("b", clear)).state is Delivery.ACKNOWLEDGED
        assert here.rows == ["Hello."]


@virtual_time
async def test_memory_is_bounded():
    async with room() as here:
        for n in range(2000):
            here.stage.captions.hear(Transcript(f"{n} " * 2000))
        kept = here.stage.captions._utterances
        assert sum(len(each.text) for each in kept) <= 300_000


@virtual_time
async def test_a_result_covers_them_and_they_come_back_with_what_was_said_meanwhile():
    async with room() as here:
        await here.say("Hello.")
        await here.stage.present("a", show("Bob", durationMs=3000))
        assert here.rows == ["Bob", "Listening…"]
        await here.say("Anybody here?")
        assert here.rows == ["Bob", "Listening…"]
        await asyncio.sleep(3)
        assert here.rows == ["Hello.", "Anybody here?"]


@virtual_time
async def test_a_question_covers_them_and_a_tap_answers_it():
    async with room() as here:
        await here.say("Hello.")
        here.glasses.prompts = False
        asking = asyncio.ensure_future(here.stage.ask(Question("q", "Send it?", 30.0)))
        await asyncio.sleep(1)
        assert here.rows[0] == "Send it?"
        await here.gesture()
        assert asking.done()
        await asyncio.sleep(0.5)
        assert here.rows == ["Hello."]


@virtual_time
async def test_a_double_tap_ends_them_and_the_lens_says_so_for_a_moment():
    async with room() as here:
        await here.say("Hello.")
        await here.gesture(Gesture.DOUBLE_TAP)
        assert here.left == ["left"]
        assert here.rows == ["Captions are off."]
        await asyncio.sleep(4)
        assert here.rows == []


@virtual_time
async def test_after_their_end_nothing_is_kept():
    async with room() as here:
        await here.say("Hello.")
        here.stage.captions.end()
        await asyncio.sleep(0.2)
        assert here.rows == []
        here.stage.captions.hear(Transcript("late"))
        assert not here.stage.captions._utterances
        here.stage.captions.begin(lambda: None)
        await asyncio.sleep(0.2)
        assert here.rows == ["Captions are on…"]


@virtual_time
async def test_unpaired_glasses_end_them():
    async with room() as here:
        await here.say("Hello.")
        here.glasses.bus.publish(GlassesUnpaired("mock", "AA"))
        await asyncio.sleep(0.2)
        assert here.left == ["left"]
        assert "Hello." not in here.rows


@virtual_time
async def test_no_word_is_in_a_report_an_event_or_a_note():
    notes = Notebook()
    async with room(notes=notes) as here:
        with here.glasses.bus.listen() as events:
            await here.say("A secret plan.", "Another secret.")
            await here.gesture()
            for exact in (False, True):
                report = here.stage.lens(exact=exact)
                assert "secret" not in str(report)
                assert report["lines"] == ["(captions)"]
            here.glasses.bus.publish(GlassesUnpaired("mock", "AA"))
            async for event in events:
                assert "secret" not in str(event)
                if isinstance(event, GlassesUnpaired):
                    break
        assert "secret" not in str(notes.kept)


@virtual_time
async def test_glasses_with_no_lens_show_none():
    async with room(AUDIO) as here:
        assert here.stage.captions.why_not() == "These glasses have no display."
        await here.say("Hello.")
        assert here.glasses.told == []


@virtual_time
async def test_words_that_the_lens_cannot_write_come_in_latin_letters():
    async with room() as here:
        await here.say("ありがとう")
        assert here.rows == ["arigatou"]


@virtual_time
async def test_a_page_of_wide_letters_stays_within_the_bytes_of_the_lens():
    async with room({**DISPLAY, "display.page_bytes": 100}) as here:
        await here.say(*(f"{n} {'i' * 60}" for n in range(6)))
        last = here.rows
        assert sum(len(row.encode()) + 1 for row in last) <= 100
        assert last[-1].startswith("5 ")
