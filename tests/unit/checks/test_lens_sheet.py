"""The contact sheet finds what it is made to find, and plays a situation from call to picture."""

import shutil
import time
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from PIL import Image

from edge.display.drawn_text import DrawnText, Rows
from edge.display.typesetting.fonts import family, find_fonts, font_folders
from firmware_bridge.messages import ShowPage, TextLine
from firmware_bridge.sim.lens import SimLens
from tests.lens_sheet import sheet, situations
from tests.lens_sheet.__main__ import everything
from tests.lens_sheet.boxes import _boxes
from tests.lens_sheet.film import Film

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]


@pytest.fixture
def lens():
    return SimLens(576, 136, 1, 5)


@pytest.fixture
def film(lens, monkeypatch):
    """A film of this lens whose clock is moved by `film.later`."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    made = Film(lambda: SimpleNamespace(lens=lens))
    made.cut("a situation")

    def later(seconds, *rows):
        now[0] += seconds
        lens.show(ShowPage("s", lines=tuple(TextLine(n, row) for n, row in enumerate(rows))))
        made.append({"event": "lens"})

    made.later = later
    return made


def judged(film):
    take = film.takes[-1]
    take.judge()
    return take.problems


async def test_readable_pages_are_no_problem(film):
    film.later(0, "Milk, bread and eggs")
    film.later(3, "The train leaves at 15:30")
    film.later(3)
    assert judged(film) == []
    assert len(film.takes[-1].lit) == 2


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["press ⌥ then C"], "boxes for ⌥"),
        (["a □ of its own"], "boxes for □"),
        (["W" * 60], "cut: W"),
        (["1", "2", "3", "4", "5", "the sixth row"], "cut: the sixth row"),
    ],
)
async def test_boxes_and_cut_lines_are_found(film, rows, problem):
    film.later(0, *rows)
    assert problem in judged(film)[0]


async def test_boxes_in_rows_that_we_drew_are_found_by_their_pixels(film, lens, tmp_path):
    """Its font for Hebrew calls itself so and is for Thai: what it draws are boxes."""
    pytest.importorskip("uharfbuzz", reason="pip install 'glassd[scripts]'")
    wheels = {family(font): font for font in find_fonts(font_folders())}
    if "NotoSansThai" not in wheels:
        pytest.skip("no Noto fonts: pip install 'glassd[scripts]'")
    for name in wheels:
        if "Hebrew" in name or name == "NotoSans":
            shutil.copy(wheels["NotoSansThai"], tmp_path / f"{name}-Regular.ttf")
    for fonts, found in (([], set()), ([str(tmp_path)], set("רכבת"))):
        drawn = DrawnText(fonts)
        film.drawn.watch(drawn)
        ((row,),) = await drawn.draw(["Tel רכבת"], Rows(576, 27, 1))
        await drawn.close()
        assert _boxes(row.text, tuple(fonts)) == found
        lens.show(ShowPage("s", tiles=(replace(row.tile, y=54 + row.tile.y),)))
        film.append({"event": "lens"})
        assert film.drawn.on(lens.to_image().convert("L")) == [row]
        film.drawn.rows.clear()
        film.later(3)
    (problem,) = judged(film)
    assert problem.startswith("boxes for ב כ ר ת")


async def test_a_page_that_another_one_replaces_at_once_is_found(film):
    film.later(0, "Result 1 of 2")
    film.later(0.1, "Another one, with other words")
    film.later(3)
    assert judged(film) == ["a page was gone for 0.10 s: Result 1 of 2"]


async def test_an_address_that_stands_for_a_moment_below_the_same_heading_is_found(film):
    film.later(0, "Tickets", "https://rail.example/t/1")
    film.later(0.2, "Tickets", "rail.example")
    film.later(0.6, "Tickets", "rail.example on time")
    film.later(3)
    assert judged(film) == [
        "a page was gone for 0.20 s: Tickets / https://rail.example/t/1",
    ]


async def test_an_old_page_that_comes_back_for_a_moment_is_found(film):
    film.later(0, "An old error")
    film.later(3, "Shall I call the dentist?")
    film.later(3, "An old error")
    film.later(0.6, "Added: Lunch, Tuesday at noon")
    film.later(3)
    assert judged(film) == ["an old page came back for 0.60 s: An old error"]


async def test_what_the_wearer_or_a_mark_on_the_page_does_is_no_flash(film):
    film.later(0, "first page")
    film.takes[-1].acts.append(time.monotonic() + 0.1)
    film.later(0.1, "second page of this text")
    film.later(0.1, "second page of this text", "…")
    film.later(0.1, "second page of this text", "and all of it")
    film.later(3)
    assert judged(film) == []


async def test_a_situation_is_played_and_its_lens_is_on_the_sheet(tmp_path, monkeypatch):
    one = situations.Part({"short text": situations.TEXTS["short text"]})
    monkeypatch.setattr(situations, "of", lambda model: [one])
    (take,) = await everything(["mock:full"], "short")
    assert (take.name, take.deliveries, take.problems) == ("full: short text", ["shown"], [])
    assert take.lit[0].text == ("Milk, bread and eggs",)
    (path,) = sheet.write([take], tmp_path)
    drawn = Image.open(path).convert("RGB")
    assert drawn.getcolors(1 << 20)
    assert sheet._LIT in {colour for _, colour in drawn.getcolors(1 << 20)}


async def test_there_are_a_hundred_lenses_to_look_at():
    parts = [part for model in ("mock:full", "sim:even_g1") for part in situations.of(model)]
    assert sum(len(part.acts) for part in parts) >= 220
