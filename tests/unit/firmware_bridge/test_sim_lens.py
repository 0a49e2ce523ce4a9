"""The mock's display: what is drawn is what was decoded, and it is counted truthfully."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from PIL import Image

from firmware_bridge.messages import ShowPage, TextLine, Tile, UpdatePage
from firmware_bridge.pixels import unpack
from firmware_bridge.sim import font
from firmware_bridge.sim.lens import SimLens


@pytest.fixture
def lens() -> SimLens:
    return SimLens(576, 136, 1, 5)


def page(*texts: str, scene: str = "s", **more) -> ShowPage:
    return ShowPage(
        scene, lines=tuple(TextLine(row, text) for row, text in enumerate(texts)), **more
    )


def test_drawn_counts_the_pixels_that_are_lit(lens: SimLens) -> None:
    drawn = lens.show(page("Hello"))
    assert drawn.lit == sum(1 for v in lens.image.tobytes() if v) > 0
    assert drawn.clipped == 0


def test_a_page_of_blanks_lights_nothing(lens: SimLens) -> None:
    assert lens.show(page("   ")).lit == 0


def test_different_texts_are_different_pictures(lens: SimLens) -> None:
    lens.show(page("Milk"))
    milk = lens.image.tobytes()
    lens.show(page("Silk"))
    assert lens.image.tobytes() != milk


def test_lines_are_kept_as_decoded_and_pieces_of_a_row_are_joined(lens: SimLens) -> None:
    lens.show(
        ShowPage("s", lines=(TextLine(2, "right", 300), TextLine(0, "top"), TextLine(2, "left")))
    )
    assert lens.text() == ["top", "", "left  right"]
    assert [(at.row, at.x) for at in lens.lines] == [(0, 0), (2, 0), (2, 300)]


def test_what_does_not_fit_is_counted(lens: SimLens) -> None:
    assert lens.show(page("w" * 100)).clipped == 1
    assert (
        lens.show(ShowPage("s", lines=(TextLine(5, "below"), TextLine(0, "x", 570)))).clipped == 2
    )
    assert lens.show(ShowPage("s", tiles=(Tile(570, 0, 16, 1, 1, b"\xff\xff"),))).clipped == 1


def test_update_changes_its_rows_and_no_others(lens: SimLens) -> None:
    lens.show(page("one", "two", "three"))
    before = lens.image.copy()
    drawn = lens.update(UpdatePage("s", lines=(TextLine(1, "deux"),)))
    assert drawn is not None
    assert drawn.lit == sum(1 for v in lens.image.tobytes() if v)
    assert lens.text() == ["one", "deux", "three"]
    for top, same in ((0, True), (27, False), (54, True)):
        box = (0, top, 576, top + 27)
        assert (before.crop(box).tobytes() == lens.image.crop(box).tobytes()) is same


def test_update_of_a_scene_that_is_not_there_changes_nothing(lens: SimLens) -> None:
    lens.show(page("one"))
    assert lens.update(UpdatePage("other", lines=(TextLine(0, "x"),))) is None
    assert lens.update(UpdatePage("s", page=2, lines=(TextLine(0, "x"),))) is None
    assert lens.text() == ["one"]


def test_clear_makes_it_dark_and_forgets_the_scene(lens: SimLens) -> None:
    lens.show(page("one"))
    assert lens.clear().lit == 0
    assert (lens.scene, lens.text(), lens.image.getbbox()) == (None, [], None)


def test_a_question_lies_over_the_page_and_leaves_it_whole(lens: SimLens) -> None:
    lens.show(page("underneath"))
    before = lens.image.tobytes()
    assert lens.ask((TextLine(0, "Delete?"),)).lit > 0
    assert lens.text() == ["Delete?"]
    lens.answered()
    assert lens.text() == ["underneath"]
    assert lens.image.tobytes() == before


@pytest.mark.parametrize(
    ("bpp", "pixels", "levels"),
    [
        (1, b"\xa0", [1, 0, 1]),
        (2, b"\x1b\x00", [0, 1, 2]),
        (4, b"\x0f\x80", [0, 15, 8]),
    ],
)
def test_tiles_unpack_most_significant_bits_first(
    bpp: int, pixels: bytes, levels: list[int]
) -> None:
    size = (3 * bpp + 7) // 8
    assert list(unpack(pixels[:size], 3, bpp)) == levels


@given(st.integers(1, 40), st.integers(1, 8), st.sampled_from([1, 2, 4]), st.data())
def test_a_tile_lights_exactly_its_lit_pixels(width: int, height: int, bpp: int, data) -> None:
    stride = (width * bpp + 7) // 8
    pixels = data.draw(st.binary(min_size=stride * height, max_size=stride * height))
    tile = Tile(3, 2, width, height, bpp, pixels)
    lens = SimLens(64, 16, 4, 1)
    levels = unpack(pixels, width, bpp)
    assert lens.show(ShowPage("s", tiles=(tile,))).lit == sum(1 for level in levels if level)


def test_grey_tiles_on_a_one_bit_lens_take_the_nearest_level() -> None:
    lens = SimLens(8, 8, 1, 1)
    lens.show(ShowPage("s", tiles=(Tile(0, 0, 4, 1, 4, b"\x07\x8f"),)))
    assert [lens.image.getpixel((x, 0)) for x in range(4)] == [0, 0, 255, 255]


def test_the_png_is_the_framebuffer(lens: SimLens, tmp_path: Path) -> None:
    lens.show(page("Hello"))
    path = lens.png(tmp_path / "lens.png")
    with Image.open(path) as picture:
        assert (picture.size, picture.mode) == ((576, 136), "1")
        assert picture.convert("L").tobytes() == lens.image.tobytes()
    assert not list(tmp_path.glob("*.tmp"))


def test_braille_is_narrow_enough_and_shows_ink_where_it_is(lens: SimLens) -> None:
    lens.show(ShowPage("s", tiles=(Tile(288, 0, 288, 48, 1, b"\xff" * 36 * 48),)))
    rows = lens.braille()
    assert max(map(len, rows)) <= 100
    assert rows[0][:48].strip("\u2800") == ""
    assert set(rows[0][48:96]) == {"\u28ff"}
    assert rows[-1] == ""


def test_the_frame_holds_every_line(lens: SimLens) -> None:
    lens.show(page("one", "two"))
    framed = lens.framed()
    assert len(framed) == 7
    assert framed[1].strip("│ ") == "one"
    assert len(set(map(len, framed))) == 1


@pytest.mark.requirement("I13-own-glyphs")
@pytest.mark.parametrize("text", ["你", "，", "さ", "ド", "！", "안"])
def test_declared_characters_are_drawn_with_the_second_font(text: str) -> None:
    """A box, as of a lens that lacks them, would make the framebuffer worthless as evidence."""
    pytest.importorskip("manimgx_fonts_cjk")
    glyphs = "3000-30ff:18 4e00-9fff:18 ff01-ff5e:18 ac00-d7a3:24"
    drawn, boxed = SimLens(64, 27, 1, 1, glyphs=glyphs), SimLens(64, 27, 1, 1)
    for lens in (drawn, boxed):
        lens.show(ShowPage("s", lines=(TextLine(0, text),)))
    assert drawn.lit
    assert drawn.image.tobytes() != boxed.image.tobytes()
    twice = SimLens(64, 27, 1, 1, glyphs=glyphs)
    twice.show(ShowPage("s", lines=(TextLine(0, text * 2),)))
    assert twice.lit == 2 * drawn.lit


def test_declared_characters_are_boxes_of_their_width_without_the_second_font(monkeypatch) -> None:
    monkeypatch.setattr(font, "_wide_font", lambda pixels: None)
    plain, declared = SimLens(64, 27, 1, 1), SimLens(64, 27, 1, 1, glyphs="4e00-9fff:18")
    for lens in (plain, declared):
        lens.show(ShowPage("s", lines=(TextLine(0, "你"),)))
    assert declared.image.tobytes() == plain.image.tobytes()
