"""Text of scripts that the glasses' font lacks: drawn by a real child, on pages with other text."""

import asyncio
import json
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edge.core.pages import DrawnLine, DrawnRow, Typeface, lay_out
from edge.core.results import LayoutKind, Rendering
from edge.core.words.drawable_text import name_lost
from edge.display import drawn_text
from edge.display.drawn_text import CannotDraw, DrawnText, Rows
from edge.display.lens import CannotShow, Sheet, canvas_of, in_corner, typeface_of
from edge.display.lens_plan import LensPlan, plan
from edge.display.presentation import Presentation
from edge.display.saved_scene import NOTE, to_note
from edge.runtime.clock import Clock
from firmware_bridge import catalog
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.messages import ShowPage, TextLine, Tile
from firmware_bridge.sim.lens import SimLens
from tests.unit.display.conftest import OpenStage
from tests.unit.display.fakes import DISPLAY, Notebook
from tools_cache.api.tool import Delivery, ToolResponse

HEBREW = "הרכבת לחיפה יוצאת בשעה 15:30"
UNDRAWABLE = "𗀀𗀁"
"""Tangut, for which there is no Noto Sans."""
ROWS = Rows(576, 27, 1)
TILES = {**DISPLAY, "display.tiles": True}


@pytest.fixture
async def drawn() -> AsyncIterator[DrawnText]:
    made = DrawnText(start_s=60.0, deadline_s=60.0)
    yield made
    await made.close()


def glasses(key: str, **changes: Any) -> Capabilities:
    facts = dict(catalog.find(key).capabilities)
    facts.update({name.replace("__", "."): value for name, value in changes.items()})
    return Capabilities.of(key, facts, origin=Origin.CATALOGUE, now=0.0)


FULL, G1 = glasses("mock:full"), glasses("even_g1")


def face() -> Typeface:
    return typeface_of(FULL)


async def planned(text: str, known: Capabilities, drawn: DrawnText, second: str = "") -> LensPlan:
    both = Rendering(layout=LayoutKind.DOUBLE_TEXT_WALL, first=text, second=second)
    return await plan(both if second else Rendering(LayoutKind.TEXT_WALL, text), known, drawn)


def children(drawn: DrawnText) -> list[Process]:
    return [child for child in (drawn._worker._child,) if child is not None]


def texts(sheet: Sheet) -> list[str]:
    return [line.text for line in sheet.lines]


def seen(sheet: Sheet, known: Capabilities) -> SimLens:
    """The lens with this page on it, of which nothing was cut off."""
    g1 = known is G1
    lens = SimLens(576, 136, 1, 5, font="g1-21" if g1 else "lens-22", margin=44 if g1 else 0)
    assert lens.show(ShowPage("s", lines=sheet.lines, tiles=sheet.tiles)).clipped == 0
    return lens


# ------------------------------------------------------------------ pages


async def test_plain_text_asks_nobody_to_draw() -> None:
    nobody = DrawnText(command=("/nonexistent",))
    (sheet,) = (await planned("Grüße — “hello” … → Привет", FULL, nobody)).sheets
    assert (len(sheet.lines), sheet.tiles, sheet.said) == (1, (), ())


@pytest.mark.requirement("I13-scripts")
async def test_hebrew_is_drawn_at_the_right_edge(drawn: DrawnText) -> None:
    plan_ = await planned(HEBREW, FULL, drawn)
    (sheet,) = plan_.sheets
    assert (sheet.lines, plan_.lost, plan_.remark) == ((), (), "")
    assert [line.text for line in sheet.said] == [HEBREW]
    box = seen(sheet, FULL).image.getbbox()
    assert box is not None
    assert (box[2], box[0] > 100) == (576, True)


@pytest.mark.requirement("I13-mixed-page")
async def test_a_page_draws_only_the_rows_that_need_it(drawn: DrawnText) -> None:
    lines = ["Milk", "Bread", "Well done 👍", "Eggs", "Tea"]
    (sheet,) = (await planned("\n".join(lines), FULL, drawn)).sheets
    assert [(line.row, line.text) for line in sheet.lines] == [
        (0, "Milk"),
        (1, "Bread"),
        (3, "Eggs"),
        (4, "Tea"),
    ]
    (tile,) = sheet.tiles
    assert 2 * 27 <= tile.y < tile.y + tile.height <= 3 * 27
    (long,) = (await planned("a b c d e f " * 14 + "👍", FULL, drawn)).sheets
    assert (len(long.lines), len(long.tiles)) == (2, 1), "rows of one paragraph, too"


@pytest.mark.requirement("I13-mixed-page")
async def test_a_page_with_a_drawn_row_is_one_picture_where_tiles_are_not_taken(
    drawn: DrawnText,
) -> None:
    text = "\n".join(["Well done 👍", *(f"Line {n}" for n in range(2, 12))])
    first, second, third = (await planned(text, G1, drawn)).sheets
    assert first.lines == ()
    assert [line.text for line in first.said][-2:] == ["Line 5", "1/3"]
    assert len(first.tiles) == 6
    assert (second.tiles, texts(second)[-1]) == ((), "2/3")
    assert (third.tiles, texts(third)[0]) == ((), "Line 11")
    box = seen(first, G1).image.getbbox()
    assert box is not None
    assert box[0] == 44, "text has its margin as a picture, too"


async def test_the_words_of_a_row_have_no_signs_for_directions(drawn: DrawnText) -> None:
    (sheet,) = (
        await planned("a \u202e\u2067שלום\u2069\u202c\u200f می\u200cخواهم", FULL, drawn)
    ).sheets
    assert [line.text for line in sheet.said] == ["a שלום می\u200cخواهم"]


async def test_rows_of_pixels_take_no_bytes_of_a_pages_text(drawn: DrawnText) -> None:
    first, *_ = (await planned("नमस्ते दुनिया " * 60, G1, drawn)).sheets
    assert len(first.said) == 6, "five rows and the footer"
    assert sum(len(line.text.encode()) for line in first.said) > 390


async def test_a_footer_and_drawn_rows_do_not_touch(drawn: DrawnText) -> None:
    for known in (FULL, G1):
        sheets = (await planned("שלום עולם " * 80, known, drawn)).sheets
        assert len(sheets) > 1
        assert len(sheets[0].said) == (6 if known is G1 else 5)
        for sheet in sheets:
            image = seen(sheet, known).image
            lit = sum(
                sum(byte.bit_count() for byte in seen(part, known).image.tobytes()) // 8
                for part in (Sheet(sheet.lines), *(Sheet(tiles=(tile,)) for tile in sheet.tiles))
            )
            assert lit == sum(byte.bit_count() for byte in image.tobytes()) // 8


async def test_columns_are_drawn_side_by_side(drawn: DrawnText) -> None:
    (sheet,) = (await planned("חלב\nלחם", FULL, drawn, second="2 l\n3")).sheets
    assert [(line.row, line.text) for line in sheet.lines] == [(0, "2 l"), (1, "3")]
    assert [tile.x + tile.width for tile in sheet.tiles] == [259, 259]
    (right,) = (await planned("Milk", FULL, drawn, second="חלב")).sheets
    (tile,) = right.tiles
    assert tile.x + tile.width == 316 + 259


async def test_grey_lenses_get_grey_edges(drawn: DrawnText) -> None:
    (sheet,) = (await planned("你好", glasses("mock:full", display__bpp=4), drawn)).sheets
    (tile,) = sheet.tiles
    shades = {byte >> 4 for byte in tile.pixels} | {byte & 15 for byte in tile.pixels}
    assert tile.bpp == 4
    assert len(shades) > 4


# ------------------------------------------------------------------ what cannot be drawn


@pytest.mark.requirement("I13-lost-named")
async def test_characters_of_no_font_are_named(drawn: DrawnText) -> None:
    plan_ = await planned(f"press {UNDRAWABLE} then שלום", FULL, drawn)
    assert plan_.lost == tuple(UNDRAWABLE)
    assert plan_.remark == "not readable on this lens: 𗀀 𗀁"
    assert len(plan_.sheets[0].tiles) == 1
    private = await planned("a \ue000 b", FULL, drawn)
    assert private.remark == "not readable on this lens: U+E000"


def test_of_many_lost_characters_eight_are_named() -> None:
    assert name_lost(()) == ""
    assert name_lost(tuple("абвгдежзийк")) == (
        "not readable on this lens: а б в г д е ж з and 3 more"
    )


@pytest.mark.requirement("I13-lost-named")
@pytest.mark.parametrize(
    ("known", "why"),
    [
        (glasses("mock:full", display__bitmap=False), "these glasses show no bitmaps"),
        (FULL, "other scripts are not installed (pip install 'glassd[scripts]')"),
    ],
    ids=["no-bitmaps", "no-extra"],
)
async def test_where_nothing_can_be_drawn_boxes_are_lost_and_it_says_why(
    known: Capabilities, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_text, "find_spec", lambda name: None)
    drawn_text.is_installed.cache_clear()
    plan_ = await planned("Say שלום to them", known, DrawnText())
    drawn_text.is_installed.cache_clear()
    assert plan_.lost == ("ש", "ל", "ו", "ם")
    assert plan_.remark == f"not readable on this lens: ש ל ו ם; {why}"
    assert texts(plan_.sheets[0]) == ["Say □□□□ to them"]


async def test_nothing_to_see_is_nothing_to_show(drawn: DrawnText) -> None:
    with pytest.raises(CannotShow, match="nothing to show"):
        await planned("\u200f\u200e", FULL, drawn)


# ------------------------------------------------------------------ the child


async def test_paragraphs_are_asked_for_once(drawn: DrawnText) -> None:
    first = await drawn.draw(["你好", "again"], ROWS)
    drawn._worker._command = ("/nonexistent",)
    await drawn._worker.close()
    assert await drawn.draw(["again", "你好"], ROWS) == first[::-1]
    with pytest.raises(CannotDraw, match="cannot be drawn now"):
        await drawn.draw(["other"], ROWS)


async def test_a_long_question_reaches_the_child_whole(drawn: DrawnText) -> None:
    text = "👍" * 7900  # 95 KB as JSON; a pipe hands over 64
    (rows,) = await drawn.draw([text], ROWS)
    assert "".join(row.text for row in rows) == text


async def test_what_is_remembered_is_bounded(
    drawn: DrawnText, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_text, "REMEMBERED", 3)
    for text in "abcd":
        await drawn.draw([text], ROWS)
    await drawn.draw(["b", "e"], ROWS)
    assert [key[0] for key in drawn._known] == ["d", "b", "e"]
    assert len(await drawn.draw(list("vwxyz"), ROWS)) == 5


async def test_rows_are_forgotten_when_nothing_is_drawn_for_a_while() -> None:
    forgotten = asyncio.Event()

    class Known(dict[Any, Any]):
        def clear(self) -> None:
            super().clear()
            forgotten.set()

    drawn = DrawnText(idle_s=0.05, start_s=60.0)
    drawn._known = Known()
    await drawn.draw(["你好"], ROWS)
    async with asyncio.timeout(60):
        await forgotten.wait()
    assert not drawn._known
    await drawn.close()


@pytest.mark.requirement("I13-worker-ends")
async def test_the_child_ends_when_it_is_idle_and_is_replaced() -> None:
    drawn = DrawnText(idle_s=0.05, start_s=60.0)
    for text in ("你好", "שלום"):
        (rows,) = await drawn.draw([text], ROWS)
        assert rows[0].tile is not None
        child = drawn._worker._child
        assert child is not None
        assert await child.wait() == 0
    await drawn.close()


@pytest.mark.requirement("I13-worker-ends")
async def test_a_killed_child_is_replaced_once(drawn: DrawnText, tmp_path: Path) -> None:
    await drawn.draw(["你好"], ROWS)
    child = drawn._worker._child
    assert child is not None
    child.kill()
    await child.wait()
    (rows,) = await drawn.draw(["שלום"], ROWS)
    assert rows[0].tile is not None
    starts = tmp_path / "starts"
    broken = DrawnText(command=(sys.executable, "-c", f"open({str(starts)!r}, 'a').write('x')"))
    with pytest.raises(CannotDraw, match="could not be drawn"):
        await broken.draw(["x"], ROWS)
    await broken.close()
    assert starts.read_text() == "xx"


async def test_a_child_that_is_stuck_or_answers_nonsense_is_a_reason() -> None:
    stuck = DrawnText(start_s=0.2, command=(sys.executable, "-c", "import time; time.sleep(600)"))
    with pytest.raises(CannotDraw, match="too long"):
        await stuck.draw(["x"], ROWS)
    await stuck.close()
    for said, why in ((b"nonsense", "could not be drawn"), (b'{"problem": "no"}', "drawn: no")):
        answer = len(said).to_bytes(4, "big") + said
        code = f"import sys; sys.stdin.buffer.read(4); sys.stdout.buffer.write({answer!r})"
        odd = DrawnText(command=(sys.executable, "-c", code), start_s=60.0)
        with pytest.raises(CannotDraw, match=why):
            await odd.draw(["x"], ROWS)
        await odd.close()


@pytest.mark.parametrize(("rest_s", "asked"), [(drawn_text.REST_S, 1), (0.0, 6)])
async def test_a_stuck_child_holds_up_what_waits_for_the_lens_once_only(
    open_stage: OpenStage, monkeypatch: pytest.MonkeyPatch, rest_s: float, asked: int
) -> None:
    monkeypatch.setattr(drawn_text, "REST_S", rest_s)
    stuck = DrawnText(start_s=0.2, command=(sys.executable, "-c", "import time; time.sleep(600)"))
    asks, ask = [], stuck._worker.ask

    async def counted(request: bytes) -> bytes:
        asks.append(request)
        return await ask(request)

    monkeypatch.setattr(stuck._worker, "ask", counted)
    async with open_stage(DISPLAY, drawn=stuck) as (stage, _):
        results = (
            stage.present(f"call {number}", ToolResponse(data=text))
            for number, text in enumerate((HEBREW, "שלום", "בוקר טוב"))
        )
        tea = stage.tell("Time's up: tea")
        *reports, alarm = await asyncio.gather(*results, tea)
    assert alarm.state in (Delivery.SHOWN, Delivery.QUEUED), alarm
    assert "too long to draw" in reports[0].reason
    assert len(asks) == asked


# ------------------------------------------------------------------ layout alone


def test_a_drawn_row_too_wide_for_the_footer_goes_to_the_next_page() -> None:
    def row(text: str, width: int) -> DrawnRow:
        return DrawnRow(text, Tile(0, 0, width, 1, 1, bytes((width + 7) // 8)))

    rows = [row(f"row {n}", 570) for n in range(7)]
    laid = lay_out("x", canvas_of(FULL), face(), {"x": rows})
    assert [[line.text for line in page.lines] for page in laid.pages] == [
        ["row 0", "row 1", "row 2", "row 3", "1/2"],
        ["row 4", "row 5", "row 6", "2/2"],
    ]
    assert all(isinstance(line, DrawnLine) for page in laid.pages for line in page.lines[:-1])


# ------------------------------------------------------------------ on a stage


@pytest.mark.requirement("I13-drawn-returns")
async def test_a_drawn_page_returns_after_a_restart(open_stage: OpenStage) -> None:
    notes = Notebook()
    async with open_stage(TILES, notes=notes) as (stage, glasses):
        await stage.present("c1", ToolResponse(data=f"Timetable\n{HEBREW}"))
        (before,) = glasses.pages()
        assert (len(before.lines), len(before.tiles)) == (1, 1)
    json.dumps(notes.kept)
    async with open_stage(TILES, notes=notes) as (stage, glasses):
        await glasses.until(lambda: bool(glasses.pages()))
        (after,) = glasses.pages()
        assert (after.lines, after.tiles) == (before.lines, before.tiles)
        assert stage.lens()["lines"] == ["Timetable", HEBREW]


@pytest.mark.requirement("I13-drawn-returns")
async def test_very_much_drawn_text_is_not_kept(open_stage: OpenStage) -> None:
    notes = Notebook()
    async with open_stage(TILES, notes=notes) as (stage, _):
        many = " ".join(chr(0x4E00 + n * 7 % 20000) for n in range(3900))
        await stage.present("c1", ToolResponse(data=many))
    assert notes.kept[NOTE] == {"picture": True}


async def test_of_a_picture_with_drawn_words_only_that_there_was_one_is_kept() -> None:
    words, clock = Rendering(LayoutKind.BITMAP_VIEW, HEBREW), Clock.system()
    item = Presentation("c1", "c1", words, 0, clock.boot() + 9, lambda *_: None)
    tile = Tile(0, 0, 8, 1, 1, b"x")
    item.sheets = (Sheet(tiles=(tile, tile), said=(TextLine(0, HEBREW),)),)
    assert to_note(item, clock) == {"picture": True}


async def test_without_work_no_child_is_started(open_stage: OpenStage) -> None:
    drawn = DrawnText()
    async with open_stage(TILES, drawn=drawn) as (stage, _):
        await stage.present("c1", ToolResponse(data="Grüße — “hello” …\n" * 30))
        await stage.present("c2", ToolResponse(data="Milk"))
        assert children(drawn) == []
        await stage.present("c3", ToolResponse(data=HEBREW))
        (child,) = children(drawn)
    await child.wait()
    assert children(drawn) == [], "it ends with the stage"


async def test_a_mark_stands_in_the_corner_of_a_drawn_page_where_there_is_room(
    drawn: DrawnText,
) -> None:
    (short,) = (await planned(HEBREW, FULL, drawn)).sheets
    marked = in_corner(short, "…", FULL)
    assert marked is not None
    assert (texts(marked), marked.tiles) == (["…"], short.tiles)
    (full,) = (await planned(f"{HEBREW}\n" * 5, FULL, drawn)).sheets
    left = in_corner(full, "…", FULL)
    assert left is not None
    assert left.lines[0].x < full.tiles[-1].x - 12, "beside the last row"
    (wide,) = (await planned("一\n二\n三\n四\n" + "五 " * 19, FULL, drawn)).sheets
    assert in_corner(wide, "working …", FULL) is None
    (picture,) = (await planned(HEBREW, G1, drawn)).sheets
    assert in_corner(picture, "…", G1) is None, "text or a picture, not both"
