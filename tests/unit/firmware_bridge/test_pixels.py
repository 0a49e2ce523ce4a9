"""A picture in braille: dots where pixels are lit, and no wider than there are columns."""

import pytest

from firmware_bridge.pixels import braille


def picture(*rows):
    return bytes(1 if ch == "#" else 0 for row in rows for ch in row), len(rows[0])


def test_each_pixel_of_a_small_picture_is_a_dot():
    small = picture("#..", ".#.", "...", "..#", "###")
    assert braille(*small, 80) == [
        "\u2811\u2840",
        "\u2809\u2801",
    ]


@pytest.mark.parametrize(("columns", "widest"), [(8, 8), (5, 4), (1, 1)])
def test_a_larger_one_is_made_smaller(columns, widest):
    rows = braille(bytes([255]) * 16 * 16, 16, columns)
    assert max(map(len, rows)) == widest <= columns
    assert set("".join(rows)) <= {"\u28ff", "\u2809", "\u281b", "\u283f", "\u2847", "\u2801"}


def test_strokes_stay_and_specks_vanish():
    stroke = picture(*["#..."] * 4)
    speck = picture("#...", "....", "....", "....")
    assert braille(*stroke, 1) == ["\u2803"]
    assert braille(*speck, 1) == [""]
