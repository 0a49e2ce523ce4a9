"""What a tap leads to after the last page: all of a summary, and links as codes."""

import asyncio
import base64

import pytest

from edge.core.pages import Layout
from edge.core.results import LayoutKind, Link, Rendering, TapOffer
from edge.display import lens_plan
from edge.display.bitmap import write_packed
from edge.display.drawn_text import DrawnText
from edge.display.lens import Sheet
from edge.display.saved_scene import NOTE
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.messages import Gesture, TextLine, Tile
from tests.unit.display.fakes import DISPLAY, Notebook
from tools_cache.api.tool import ToolResponse

MANY = {"orders": [{"id": n, "total": 12.5} for n in range(30)], "currency": "NOK"}
TILES = {**DISPLAY, "display.bitmap": True, "display.tiles": True}
LINK = "Lunch is on. [The menu](https://www.a.example/menu?day=1) has changed."


def picture(width=90, height=90):
    lit = b"\xff" * ((width + 7) // 8 * height)
    return base64.b64encode(write_packed(width, height, 1, lit)).decode()


@pytest.mark.requirement("I13-data")
async def test_a_summary_is_one_page_and_a_tap_shows_all_of_it(open_stage):
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", ToolResponse(data=MANY))
        (page,) = glasses.pages()
        assert [line.text for line in page.lines] == [
            "orders: 30 items",
            "currency: NOK",
            "tap: more",
        ]
        await tap(glasses)
        await glasses.until(lambda: len(glasses.pages()) == 2)
        assert glasses.texts()[1].startswith("orders: ")
        assert "1: id 0, total 12.5" in glasses.texts()[1]


@pytest.mark.requirement("I13-data")
async def test_a_link_comes_with_its_code_and_the_page_before_stays_until_it_is_made(open_stage):
    asked, made = [], asyncio.Event()

    async def code(address):
        asked.append(address)
        await made.wait()
        return picture()

    async with open_stage(TILES, code=code) as (stage, glasses):
        await stage.present("c1", ToolResponse(data=LINK))
        assert glasses.texts() == ["Lunch is on. The menu has changed. tap: link"]
        assert asked == []
        await tap(glasses)
        await glasses.until(lambda: asked)
        made.set()
        await glasses.until(lambda: len(glasses.pages()) == 2)
        assert glasses.texts()[1] == "The menu a.example"
        assert glasses.pages()[1].tiles
        assert asked == ["https://www.a.example/menu?day=1"]


async def test_without_pictures_a_link_is_its_words_and_its_address(open_stage):
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", ToolResponse(data=LINK))
        await tap(glasses)
        await glasses.until(lambda: len(glasses.pages()) > 1)
        assert glasses.texts()[-1] == "The menu https://www.a.example/menu?day=1"


async def test_a_code_whose_words_are_drawn_stays_long_enough_to_be_scanned():
    facts = {**TILES, "display.tiles": False}
    known = Capabilities.of("mock", facts, origin=Origin.FIRMWARE, now=0.0)
    link = Rendering(LayoutKind.TEXT_WALL, "x", links=(Link("תפריט", "https://a.example"),))
    drawn = Sheet(tiles=(Tile(0, 0, 8, 1, 1, b"\xff"),), opens=link)  # words as pixels: no lines

    async def code(_address):
        return picture()

    drawer = DrawnText()
    pages = await lens_plan.open_sheet(drawn, known, drawer, code)
    await drawer.close()
    assert [page.dwell_s for page in pages] == [lens_plan.LINK_DWELL_S] * 2


async def test_what_no_tap_has_opened_does_not_come_by_time_after_a_restart(open_stage):
    notes = Notebook()
    links = "[a](https://a.example) and [b](https://b.example)"
    async with open_stage(DISPLAY, notes=notes) as (stage, glasses):
        await stage.present("c1", ToolResponse(data=links))
        await tap(glasses)
        await glasses.until(lambda: len(glasses.pages()) == 2)
        await glasses.until(lambda: notes.kept[NOTE]["page"] == 2)
    rows = [[line[1] for line in sheet["lines"]] for sheet in notes.kept[NOTE]["sheets"]]
    assert rows == [["a and b", "tap: link"], ["a", "https://a.example"]]


async def test_a_result_that_offers_something_says_what_a_tap_does_and_nothing_else(open_stage):
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", ToolResponse(data=LINK), offer=TapOffer("tap to undo"))
        assert glasses.texts() == ["Lunch is on. The menu has changed. tap to undo"]


async def pictured(words, width=90, height=90):
    known = Capabilities.of("mock", TILES, origin=Origin.FIRMWARE, now=0.0)
    both = Rendering(LayoutKind.BITMAP_VIEW, "x", second=words, image=picture(width, height))
    return await lens_plan.plan(both, known, DrawnText())


async def test_words_have_a_page_of_their_own_beside_a_picture_that_leaves_no_room():
    planned = await pictured("The Alps", 400, 90)
    assert [bool(sheet.tiles) for sheet in planned.sheets] == [False, True]


async def test_a_picture_with_few_words_stays_as_long_as_a_picture():
    (page,) = (await pictured("The Alps")).sheets
    assert (page.dwell_s, [line.text for line in page.lines]) == (10.0, ["The Alps"])


async def test_words_that_do_not_fit_beside_a_picture_are_said_to_be_cut():
    planned = await pictured("word " * 200)
    assert (len(planned.sheets), planned.remark) == (1, "the text was cut")


def tile_at(y, width):
    width = (width + 7) // 8 * 8
    return Tile(0, y, width, 20, 1, bytes(width // 8 * 20))


@pytest.mark.parametrize(
    ("tile", "line", "place"),
    [
        (tile_at(0, 100), TextLine(1, "x", 30), (30, 27)),
        (tile_at(0, 100), TextLine(1, "x", 540), (472, 27)),
        (tile_at(0, 600), TextLine(0, "x", 0), (0, 0)),
        (tile_at(20, 100), TextLine(4, "x", 0), (0, 116)),
    ],
)
def test_a_drawn_row_is_never_placed_beyond_the_lens(tile, line, place):
    known = Capabilities.of("mock", DISPLAY, origin=Origin.FIRMWARE, now=0.0)
    found = lens_plan.placed(tile, line, known)
    assert (found.x, found.y) == place


async def test_all_of_a_summary_has_its_own_reading_time():
    known = Capabilities.of("mock", DISPLAY, origin=Origin.FIRMWARE, now=0.0)
    more = Sheet(opens=Rendering(LayoutKind.TEXT_WALL, "word"))
    (page,) = await lens_plan.open_sheet(more, known, DrawnText(), lens_plan.no_code)
    assert page.dwell_s < lens_plan.LINK_DWELL_S


async def test_what_a_tap_leads_to_never_comes_by_time(open_stage):
    async with open_stage(DISPLAY) as (stage, glasses):
        shown = {"display": {"layout": "text_wall", "text": LINK, "durationMs": 300}}
        await stage.present("c1", ToolResponse(render=shown))
        await glasses.until(lambda: stage.lens()["page"] == 0)
        assert len(glasses.pages()) == 1


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://user@www.a.example:8080/x?y", "a.example"),
        ("mailto:ann@a.example", "ann@a.example"),
        ("tel:+4722", "+4722"),
        ("https://[", "https://["),
    ],
)
def test_a_link_names_its_host(address, host):
    assert lens_plan.host_of(address) == host


async def test_a_full_page_says_in_a_line_of_its_own_that_there_is_more(open_stage):
    full = "\n".join(["[x](https://a.example)", *(f"{n} " + "word " * 40 for n in range(9))])
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", ToolResponse(data=full))
        for number in range(1, glasses.pages()[0].pages):
            await tap(glasses)
            await glasses.until(lambda number=number: len(glasses.pages()) == number + 1)
        assert "tap: link" in glasses.texts()[-1]


async def tap(glasses):
    await glasses.say(Gesture.TAP)


async def test_a_picture_that_cannot_stand_beside_its_words_is_named_in_the_delivery():
    facts = {**TILES, "display.tiles": False}
    known = Capabilities.of("mock", facts, origin=Origin.FIRMWARE, now=0.0)
    both = Rendering(LayoutKind.BITMAP_VIEW, "Alps", second="The Alps", image=picture())
    planned = await lens_plan.plan(both, known, DrawnText())
    assert [bool(sheet.tiles) for sheet in planned.sheets] == [False, True]
    assert [line.text for line in planned.sheets[0].lines] == ["The Alps", "tap: picture"]
    assert planned.remark == "the picture has a page of its own, after the words"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "1 character has no glyph on this lens and was replaced"),
        (2, "2 characters have no glyph on this lens and were replaced"),
    ],
)
def test_replaced_characters_are_counted_in_words(count, said):
    assert lens_plan._remarks(Layout((), replaced=count)) == said


async def test_while_a_picture_is_fitted_the_wearer_can_turn_pages(open_stage):
    asked, made = asyncio.Event(), asyncio.Event()

    async def fit(_image, _known):
        asked.set()
        await made.wait()
        return picture()

    shown = {"display": {"layout": "bitmap_view", "data": "a photograph", "alt": "The Alps"}}
    async with open_stage(TILES, fit=fit) as (stage, glasses):
        await stage.present("c1", ToolResponse(data=MANY))
        following = asyncio.ensure_future(stage.present("c2", ToolResponse(data="", render=shown)))
        await asked.wait()
        await tap(glasses)
        await glasses.until(lambda: len(glasses.pages()) == 2)
        assert "1: id 0, total 12.5" in glasses.texts()[1]
        made.set()
        await following
