"""What the wearer forgets is not written down again by the lens. Time is virtual."""

import asyncio

import pytest

from edge.ports import Question
from firmware_bridge.messages import Gesture
from tests.unit.display.fakes import Notebook
from tests.unit.display.test_recall import LONG, lens, on_lens, show, some_results, tap
from tests.unit.firmware_bridge.virtual import virtual_time

pytestmark = pytest.mark.usefixtures("reading_time")


def saved(notes):
    return str(notes.kept.get("stage.scene"))


@pytest.mark.requirement("I15-calls-forgotten")
@virtual_time
async def test_a_page_stays_on_the_lens_and_is_not_saved_when_it_is_turned():
    notes = Notebook()
    async with lens(notes=notes) as (stage, glasses):
        await stage.present("c1", show(LONG))
        assert "word0" in saved(notes)
        await stage.forget_saved()
        assert "word" in on_lens(stage)
        await tap(glasses)
        assert stage.lens()["page"] == 2
        assert saved(notes) == "{'picture': True}", "the next daemon clears it"


@virtual_time
async def test_a_page_under_another_comes_back_without_being_saved():
    notes = Notebook()
    async with lens(notes=notes) as (stage, _):
        await stage.present("c1", show("old words", durationMs=20_000))
        await stage.present("c2", show("urgent", durationMs=3_000, priority="urgent"))
        await stage.forget_saved()
        await asyncio.sleep(4.0)
        assert on_lens(stage) == "old words"
        assert "old words" not in saved(notes)


@virtual_time
async def test_a_question_that_is_open_meanwhile_is_still_removed_by_the_next_daemon():
    notes = Notebook()
    async with lens(notes=notes) as (stage, glasses):
        await stage.present("c1", show("old words", durationMs=20_000))
        asked = asyncio.ensure_future(stage.ask(Question("q", "Pay?", timeout_s=60)))
        await asyncio.sleep(2.0)
        assert "old words" in saved(notes)
        await stage.forget_saved()
        assert saved(notes) == "{'picture': True, 'question': True}"
        await tap(glasses)
        await asked


@virtual_time
async def test_results_of_before_are_not_recalled_and_later_ones_are_saved():
    notes = Notebook()
    async with lens(notes=notes) as (stage, glasses):
        await some_results(stage)
        await stage.forget_saved()
        assert notes.kept["stage.scene"] is None
        await tap(glasses)
        assert stage.lens()["page"] == 0
        await tap(glasses, gesture=Gesture.DOUBLE_TAP)
        await stage.present("c9", show("new words"))
        assert "new words" in saved(notes)
