"""What becomes of a text that the lens cannot draw: Latin letters, speech, or nothing; never boxes
that are called shown.
"""

import pytest

from edge.ports import Wait
from tests.unit.display.fakes import DISPLAY, FULL
from tests.unit.display.test_presenter import text
from tools_cache.api.tool import Delivery

PLAIN = {"display.bitmap": False}
"""Glasses that show letters only."""


async def test_a_text_that_is_drawn_whole_is_shown(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, _glasses):
        report = await stage.present("c1", text("שלום 👍"), wait=Wait.DELIVERY)
        assert (report.state, report.reason, report.downgrade) == (Delivery.SHOWN, "", "")
        assert stage.lens()["lines"] == ["שלום 👍"]


@pytest.mark.requirement("I13-lost-named")
async def test_a_text_with_a_box_is_acknowledged_and_the_lost_character_named(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        report = await stage.present("c1", text("press 𗀀 then C"), wait=Wait.DELIVERY)
        assert report.state is Delivery.ACKNOWLEDGED
        assert report.reason == "not readable on this lens: 𗀀"
        assert len(glasses.pages()) == 1


@pytest.mark.requirement("I13-readable")
async def test_letters_that_can_be_spelled_are_written_in_latin_ones(open_stage) -> None:
    async with open_stage({**DISPLAY, **PLAIN}) as (stage, _glasses):
        report = await stage.present("c1", text("Grüße აბ"), wait=Wait.DELIVERY)
        assert (report.state, report.downgrade) == (Delivery.ACKNOWLEDGED, "script→latin")
        assert report.reason == "not readable on this lens: ა ბ; these glasses show no bitmaps"
        assert stage.lens()["lines"] == ["Grüße ab"], "what can be drawn stays as it is"


@pytest.mark.requirement("I13-readable")
async def test_a_few_lost_characters_are_spelled_even_where_a_voice_could_say_them(
    open_stage,
) -> None:
    async with open_stage({**FULL, **PLAIN}) as (stage, _glasses):
        report = await stage.present("c1", text("To 北京 at 15:30, press ⌥"), wait=Wait.DELIVERY)
        assert (report.state, report.downgrade) == (Delivery.ACKNOWLEDGED, "script→latin")
        assert "not readable on this lens: 北 京 ⌥" in report.reason
        assert stage.lens()["lines"] == ["To bei jing at 15:30, press :option key:"]


@pytest.mark.requirement("I13-readable")
async def test_without_a_voice_latin_letters_are_better_than_nothing(open_stage) -> None:
    async with open_stage({**DISPLAY, **PLAIN}) as (stage, _glasses):
        report = await stage.present("c1", text("האם להתקשר לרופא"), wait=Wait.DELIVERY)
        assert (report.state, report.downgrade) == (Delivery.ACKNOWLEDGED, "script→latin")
        assert "these glasses show no bitmaps" in report.reason
        (line,) = stage.lens()["lines"]
        assert line.isascii()


@pytest.mark.requirement("I13-readable")
async def test_mostly_boxes_are_spoken_instead(open_stage) -> None:
    async with open_stage(FULL) as (stage, glasses):
        report = await stage.present("c1", text("𜽐𜽑𜽒𜽓𜽔 hello"), wait=Wait.DELIVERY)
        assert (report.state, report.downgrade) == (Delivery.SPOKEN, "display→speech")
        assert not glasses.pages()


@pytest.mark.requirement("I13-readable")
async def test_what_no_voice_can_say_goes_to_the_lens_after_all(open_stage, without_espeak) -> None:
    async with open_stage({**FULL, **PLAIN}) as (stage, glasses):
        report = await stage.present("c1", text("האם להתקשר לרופא"), wait=Wait.DELIVERY)
        assert (report.state, report.downgrade) == (Delivery.ACKNOWLEDGED, "script→latin")
        assert len(glasses.pages()) == 1


@pytest.mark.requirement("I13-readable")
async def test_glasses_without_a_speaker_spell_it_whatever_sound_they_would_take(
    open_stage,
) -> None:
    async with open_stage({**FULL, **PLAIN, "speaker": False}) as (stage, glasses):
        report = await stage.present("c1", text("האם להתקשר לרופא"), wait=Wait.DELIVERY)
        assert (report.state, report.downgrade) == (Delivery.ACKNOWLEDGED, "script→latin")
        assert len(glasses.pages()) == 1


@pytest.mark.requirement("I13-readable")
async def test_without_the_library_of_latin_letters_boxes_are_dropped_and_it_says_why(
    open_stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "anyascii", None)
    async with open_stage({**DISPLAY, **PLAIN}) as (stage, glasses):
        report = await stage.present("c1", text("האם להתקשר לרופא"), wait=Wait.DELIVERY)
        assert report.state is Delivery.DROPPED
        assert report.reason.startswith("not readable on this lens: ה א ם ל ת ק ש ר and 2 more;")
        assert not glasses.pages()
        few = await stage.present("c2", text("Call אבא now"), wait=Wait.DELIVERY)
        assert (few.state, few.downgrade) == (Delivery.ACKNOWLEDGED, "")
        assert stage.lens()["lines"] == ["Call □□□ now"]
