"""Pixels in bytes and back, and a picture in braille: dots where pixels are lit, and no wider than
there are columns.
"""

import re

import pytest
from hypothesis import given, strategies as st

from firmware_bridge.pixels import braille, pack, sixel, unpack


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


def seen(sequence):
    """What a terminal draws of it: the rows, each pixel its brightness in percent."""
    head = re.match(r'\x1bP0;1;0q"1;1;(\d+);(\d+)((?:#\d+;2;\d+;\d+;\d+)*)', sequence)
    width, height = int(head[1]), int(head[2])
    shares = {n: int(share) for n, share in re.findall(r"#(\d+);2;(\d+)", head[3])}
    assert sequence.endswith("\x1b\\")
    rows = [[0] * width for _ in range(height)]
    for band, text in enumerate(sequence[head.end() : -2].split("-")):
        for shade, line in re.findall(r"#(\d+)([^#$]*)", text):
            columns = re.sub(r"!(\d+)(.)", lambda m: m[2] * int(m[1]), line)
            for x, ch in enumerate(columns):
                for y in range(6):
                    if (ord(ch) - 63) >> y & 1:
                        rows[band * 6 + y][x] = shares[shade]
    return rows


@given(st.integers(1, 30), st.integers(1, 20), st.data())
def test_a_terminal_that_reads_the_sixels_sees_the_picture(width, height, data):
    levels = data.draw(
        st.lists(st.sampled_from([0, 0, 7, 15]), min_size=width * height, max_size=width * height)
    )
    most = max(levels) or 1
    expected = [100 * level // most for level in levels]
    rows = seen(sixel(bytes(levels), width))
    assert [pixel for row in rows for pixel in row] == expected


def test_long_runs_are_written_short():
    assert len(sixel(bytes([1]) * 576 * 136, 576)) < 400


@given(st.sampled_from([1, 2, 4]), st.integers(1, 40), st.integers(0, 5), st.data())
def test_a_level_is_read_where_each_pixel_is(bpp, width, height, data):
    stride = (width * bpp + 7) // 8
    size = stride * height
    pixels = data.draw(st.binary(min_size=size, max_size=size))
    bits = "".join(f"{byte:08b}" for byte in pixels)
    starts = [y * stride * 8 + x * bpp for y in range(height) for x in range(width)]
    assert list(unpack(pixels, width, bpp)) == [int(bits[at : at + bpp], 2) for at in starts]


def test_a_row_that_ends_early_has_the_pixels_there_are():
    assert unpack(b"\x12\x34\x56", 3, 4) == b"\1\2\3\5\6"


@pytest.mark.parametrize(
    ("bpp", "levels", "packed"),
    [
        (1, [1, 0, 0, 0, 0, 0, 0, 1, 1], "8180"),
        (2, [3, 0, 1, 2, 3], "c6c0"),
        (4, [1, 2, 15], "12f0"),
        (4, [], ""),
    ],
)
def test_levels_are_packed_from_the_highest_bit(bpp, levels, packed):
    assert pack(bytes(levels), bpp).hex() == packed
