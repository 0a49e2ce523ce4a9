"""Texts of a result that begin a page each: a tap goes to the next one. Time is virtual."""

import asyncio
import json

import pytest

from edge.core.pages import CUT, MAX_SEPARATE
from edge.core.results import LayoutKind, Rendering, rendering_of
from edge.display import lens_plan
from edge.display.drawn_text import DrawnText
from edge.display.fallback import make_readable
from edge.display.lens_plan import SEPARATE_DWELL_S
from edge.ports import Wait
from edge.runtime.events import DeliveryChanged
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.messages import Gesture
from firmware_bridge.sides import Side
from tests.unit.display.conftest import stage_on
from tests.unit.display.fakes import AUDIO, DISPLAY, FULL, Notebook
from tests.unit.display.test_recall import lens, on_lens, show, some_results, tap
from tests.unit.firmware_bridge.virtual import virtual_time
from tools_cache.api.tool import Delivery, ToolResponse

pytestmark = [
    pytest.mark.usefixtures("reading_time"),
    pytest.mark.requirement("I15-separate-pages"),
]
LEFT, RIGHT = Side.LEFT, Side.RIGHT
STEPS = ["Station: 1.6 km\n1. Head south", "2. Turn left", "3. Turn right", "4. You are there"]


def pages(*texts, audio=None, **display):
    render = {"display": {"layout": "text_wall", "pages": list(texts), **display}}
    return ToolResponse(data="x", render=render | ({"audio": {"text": audio}} if audio else {}))


async def turned(stage, glasses, *sides):
    """Return what is on the lens after each of these taps."""
    seen = []
    for side in sides:
        await tap(glasses, side)
        seen.append(on_lens(stage))
    return seen


# ------------------------------------------------------------------ on the lens


@virtual_time
async def test_a_tap_goes_to_the_next_text_and_one_on_the_left_back():
    async with lens() as (stage, glasses):
        await stage.present("c1", pages(*STEPS))
        assert on_lens(stage) == "Station: 1.6 km 1. Head south 1/4"
        seen = await turned(stage, glasses, RIGHT, RIGHT, RIGHT, LEFT, LEFT, LEFT, LEFT)
        assert [text[0] for text in seen] == ["2", "3", "4", "3", "2", "S", "S"]
        assert seen[2] == "4. You are there 4/4"
        await turned(stage, glasses, RIGHT, RIGHT, RIGHT, RIGHT)
        assert stage.lens()["page"] == 0, "after the last page the lens is dark"


@virtual_time
async def test_a_text_longer_than_a_page_has_further_pages_before_the_next():
    async with lens() as (stage, glasses):
        await stage.present("c1", pages("one", "word " * 60, "three"))
        seen = [on_lens(stage), *await turned(stage, glasses, *[RIGHT] * 3)]
        assert seen[0] == "one 1/4"
        assert seen[1].count("word") + seen[2].count("word") == 60
        assert seen[3] == "three 4/4"


@virtual_time
async def test_a_page_stays_longer_where_a_tap_turns_it_and_then_the_next_one_comes():
    async with lens() as (stage, _):
        await stage.present("c1", pages(*STEPS))
        await asyncio.sleep(1)
        for page in (1, 2, 3, 4):
            assert stage.lens()["page"] == page
            await asyncio.sleep(SEPARATE_DWELL_S - 2)
            assert stage.lens()["page"] == page
            await asyncio.sleep(2)
        assert stage.lens()["page"] == 0


@virtual_time
async def test_without_gestures_pages_turn_by_their_reading_time():
    async with lens({**DISPLAY, "gestures": ""}) as (stage, _):
        await stage.present("c1", pages(*STEPS))
        seen = []
        for _ in range(18):
            seen.append(stage.lens()["page"])
            await asyncio.sleep(1)
        assert list(dict.fromkeys(seen)) == [1, 2, 3, 4, 0]
        assert all(3 <= seen.count(page) <= 5 for page in (1, 2, 3, 4)), seen


@virtual_time
async def test_a_single_text_stays_as_long_as_any_other():
    async with lens() as (stage, _):
        await stage.present("c1", pages("Turn left"))
        assert on_lens(stage) == "Turn left"
        await asyncio.sleep(5)
        assert stage.lens()["page"] == 0


@virtual_time
async def test_the_duration_of_the_whole_counts_for_all_its_pages():
    async with lens() as (stage, _):
        await stage.present("c1", pages(*STEPS, durationMs=10_000))
        await asyncio.sleep(11)
        assert stage.lens()["page"] == 0


@virtual_time
async def test_recalled_pages_are_turned_by_taps_too():
    async with lens() as (stage, glasses):
        await some_results(stage, names=("Ann",))
        await stage.present("c1", pages(*STEPS, durationMs=2000))
        await asyncio.sleep(4)
        seen = await turned(stage, glasses, *[RIGHT] * 5)
        assert "1. Head south" in seen[0]
        assert "1 of 2" in seen[0]
        assert [text[:2] for text in seen[1:4]] == ["2.", "3.", "4."]
        assert "Ann" in seen[4]


# ------------------------------------------------------------------ delivery, restarts


@pytest.mark.parametrize(("taps", "changes"), [(2, [Delivery.SUPERSEDED]), (3, [])])
@virtual_time
async def test_what_is_cut_before_its_last_page_was_not_shown(taps, changes):
    async with lens() as (stage, glasses):
        with glasses.bus.listen() as heard:
            assert (await stage.present("c1", pages(*STEPS))).state is Delivery.SHOWN
            await turned(stage, glasses, *[RIGHT] * taps)
            await asyncio.sleep(2)
            await stage.present("c2", show("newer", durationMs=3_600_000))
            reports = [each for each in heard._queue if isinstance(each, DeliveryChanged)]
        assert [each.report.state for each in reports if each.call_id == "c1"] == changes


@virtual_time
async def test_the_page_is_there_again_after_a_lost_link_and_after_a_restart():
    notes = Notebook()
    async with lens(notes=notes) as (stage, glasses):
        await stage.present("c1", pages(*STEPS))
        await turned(stage, glasses, RIGHT, RIGHT)
        glasses.leave()
        glasses.come_back()
        await asyncio.sleep(1)
        again = glasses.pages()[-1]
        assert (again.page, again.pages, again.lines[0].text) == (3, 4, "3. Turn right")
    async with lens(notes=notes) as (stage, glasses):
        await asyncio.sleep(1)
        assert on_lens(stage) == "3. Turn right 3/4"
        assert await turned(stage, glasses, LEFT, RIGHT, RIGHT) == [
            "2. Turn left 2/4",
            "3. Turn right 3/4",
            "4. You are there 4/4",
        ]


# ------------------------------------------------------------------ voice


async def test_the_words_for_the_voice_are_spoken_once_and_no_page_when_it_is_turned():
    async with stage_on(FULL) as (stage, glasses):
        report = await stage.present("c1", pages(*STEPS, audio="First step"), wait=Wait.DELIVERY)
        assert report.state is Delivery.SPOKEN
        for page in (2, 3):
            await glasses.say(Gesture.TAP)
            await glasses.until(lambda page=page: stage.lens()["page"] == page)
        assert stage.speech.speaking is False
        assert len(glasses.streams) == 1


def test_glasses_without_a_display_hear_all_of_it_if_no_words_are_for_the_voice():
    assert rendering_of(pages(*STEPS)).words == "\n".join(STEPS)


async def test_without_a_display_pages_are_spoken():
    async with stage_on(AUDIO) as (stage, glasses):
        report = await stage.present("c1", pages("one", "two"), wait=Wait.DELIVERY)
        assert (report.state, report.downgrade) == (Delivery.SPOKEN, "display→speech")
        assert len(glasses.streams) == 1


# ------------------------------------------------------------------ texts


@virtual_time
async def test_more_texts_than_pages_are_cut_and_that_is_said():
    async with lens() as (stage, glasses):
        report = await stage.present("c1", pages(*map(str, range(1000))))
        assert (report.state, report.reason) == (Delivery.SHOWN, "the text was cut")
        assert glasses.pages()[0].pages == MAX_SEPARATE
        await turned(stage, glasses, *[RIGHT] * (MAX_SEPARATE - 1))
        assert on_lens(stage) == f"{MAX_SEPARATE - 1}{CUT} {MAX_SEPARATE}/{MAX_SEPARATE}"


@virtual_time
async def test_no_text_of_others_can_begin_a_page():
    async with lens() as (stage, glasses):
        await stage.present("c1", show("a\f" * 40 + "b\x0b\n---\n\\f\u2028c"))
        assert glasses.pages()[0].pages == 1


@pytest.mark.parametrize(
    "given",
    ["x", 3, None, [], [1, None, {"text": "a"}], ["", " \n"], {"0": "a"}],
    ids=str,
)
def test_pages_of_another_form_are_left_out(given):
    response = ToolResponse(render={"display": {"text": "the text", "pages": given}})
    wanted = rendering_of(response)
    assert (wanted.text, wanted.pages) == ("the text", ())


def test_pages_take_the_place_of_a_text_and_are_of_one_layout_only():
    wanted = rendering_of(pages("a", 5, "b", text="c"))
    assert (wanted.text, wanted.pages, wanted.words) == ("", ("a", "b"), "a\nb")
    card = {"layout": "reference_card", "title": "t", "text": "c", "pages": ["a"]}
    assert rendering_of(ToolResponse(render={"display": card})).pages == ()


def test_all_of_a_page_that_is_data_is_shown_to_those_who_ask():
    orders = {"orders": [{"id": n, "total": 12.5} for n in range(90)]}
    wanted = rendering_of(pages("a", json.dumps(orders)))
    assert wanted.pages == ("a", "orders: 90 items")
    assert "1: id 0, total 12.5" in wanted.more


def test_an_old_result_says_its_age_on_its_first_page():
    old = pages("a", "b").with_meta(stale=True, ageS=720)
    assert rendering_of(old).pages == ("a\n12 min ago", "b")


@virtual_time
async def test_each_page_is_made_readable_and_the_last_one_offers_links():
    async with lens() as (stage, glasses):
        texts = ("**1.** `Go`", '{"level": 80}', "See [the map](https://a.example)")
        await stage.present("c1", pages(*texts))
        seen = [on_lens(stage), *await turned(stage, glasses, RIGHT, RIGHT, RIGHT)]
        assert seen[:2] == ["1. Go 1/3", "level: 80 2/3"]
        assert " ".join(seen[2].split()) == "See the map tap: link 3/3"
        assert "https://a.example" in seen[3]


async def planned(facts, *texts):
    known = Capabilities.of("mock", facts, origin=Origin.FIRMWARE, now=0.0)
    wanted, drawer = Rendering(LayoutKind.TEXT_WALL, pages=texts), DrawnText()
    try:
        found = await lens_plan.plan(wanted, known, drawer)
        if found.lost:
            _, found = await make_readable(wanted, found, known, drawer, has_voice=False)
    finally:
        await drawer.close()
    return found.sheets


@pytest.mark.parametrize("tiles", [True, False])
async def test_pages_whose_letters_have_to_be_drawn_stay_separate(tiles):
    facts = {**DISPLAY, "display.tiles": tiles}
    first, second, third = await planned(facts, "Turn left", "פנה שמאלה", "Arrive")
    assert [line.text for line in first.lines] == ["Turn left", "1/3"]
    assert [line.text for line in second.said][:1] == ["פנה שמאלה"]
    assert second.tiles
    assert [line.text for line in third.lines] == ["Arrive", "3/3"]


async def test_a_table_and_a_cut_in_letters_that_have_to_be_drawn_are_drawn_too():
    (_, table) = await planned({**DISPLAY, "display.tiles": True}, "a", "שלום\t12:04")
    assert [line.text for line in table.said] == ["שלום · 12:04"]
    many = await planned({**DISPLAY, "display.tiles": True}, *["שלום"] * (MAX_SEPARATE + 1))
    assert len(many) == MAX_SEPARATE
    assert [line.text for line in many[-1].said] == [f"שלום{CUT}"]


async def test_pages_in_letters_that_glasses_lack_are_spelled_page_by_page():
    first, second = await planned({**DISPLAY, "display.bitmap": False}, "აბ", "ბა")
    assert [sheet.rows[0] for sheet in (first, second)] == ["ab", "ba"]


async def test_a_hint_without_room_in_the_corner_is_the_last_line_of_the_last_page():
    full = "\n".join(["W" * 28] * 5)
    known = Capabilities.of("mock", DISPLAY, origin=Origin.FIRMWARE, now=0.0)
    wanted = Rendering(LayoutKind.TEXT_WALL, pages=("a", full), more="x")
    found = await lens_plan.plan(wanted, known, DrawnText())
    assert found.sheets[0].rows == ("a", f"1/{len(found.sheets)}")
    assert any("tap: more" in row for row in found.sheets[-1].rows)
