"""PNG to pixels, with the standard library alone."""

import base64
import random
import struct
import zlib

import pytest
from hypothesis import given, settings, strategies as st

from edge.display.bitmap import (
    MAX_BASE64,
    BadImage,
    Grey,
    decode,
    fit,
    read_packed,
    write_packed,
)


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(
    width: int,
    height: int,
    pixels: bytes,
    *,
    colour: int = 0,
    depth: int = 8,
    filters: int = 0,
    extra: bytes = b"",
    interlace: int = 0,
) -> str:
    """Write a PNG by hand: filter types are applied for real."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    stride = (width * channels * depth + 7) // 8
    step = max(1, channels * depth // 8)
    rows, above = b"", bytes(stride)
    for y in range(height):
        row = pixels[y * stride : (y + 1) * stride]
        out = bytearray()
        for i, value in enumerate(row):
            left = row[i - step] if i >= step else 0
            corner = above[i - step] if i >= step else 0
            estimate = left + above[i] - corner
            near = [abs(estimate - v) for v in (left, above[i], corner)]
            paeth = (left, above[i], corner)[near.index(min(near))]
            out.append((value - (0, left, above[i], (left + above[i]) // 2, paeth)[filters]) & 0xFF)
        rows += bytes([filters]) + bytes(out)
        above = row
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    raw = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + extra
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    return base64.b64encode(raw).decode()


@given(
    st.integers(1, 20),
    st.integers(1, 12),
    st.sampled_from([0, 2, 4, 6]),
    st.integers(0, 4),
    st.randoms(),
)
@settings(max_examples=60, deadline=None)
def test_every_filter_and_colour_type_comes_out_as_it_went_in(
    w: int, h: int, colour: int, filters: int, rng: random.Random
) -> None:
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    pixels = rng.randbytes(w * h * channels)
    got = decode(png(w, h, pixels, colour=colour, filters=filters))
    assert (got.width, got.height, len(got.pixels)) == (w, h, w * h)
    x = rng.randrange(w * h)
    p = pixels[x * channels : (x + 1) * channels]
    luma = (p[0] * 299 + p[1] * 587 + p[2] * 114) // 1000 if channels >= 3 else p[0]
    alpha = p[-1] if channels in (2, 4) else 255
    assert got.pixels[x] == luma * alpha // 255


def test_palettes_and_small_depths_are_read() -> None:
    palette = chunk(b"PLTE", bytes([0, 0, 0, 255, 255, 255])) + chunk(b"tRNS", b"\xff\x80")
    assert decode(png(8, 1, b"\x55", colour=3, depth=1, extra=palette)).pixels == bytes(
        [0, 128] * 4
    )
    assert decode(png(2, 1, b"\x0f", depth=4)).pixels == bytes([0, 255])
    assert decode(png(1, 1, b"\x80\x00", depth=16)).pixels == b"\x80"


def test_a_picture_is_scaled_down_into_the_canvas_and_centred() -> None:
    tile = fit(Grey(1000, 100, bytes([255]) * 100_000), 576, 136, 1)
    assert (tile.width, tile.height, tile.x, tile.y) == (576, 57, 0, 39)
    assert set(tile.pixels) == {0xFF}
    small = fit(Grey(3, 1, bytes([255, 0, 255])), 576, 136, 1)
    assert (small.width, small.height, small.pixels) == (3, 1, b"\xa0")


def test_brightness_is_quantised_to_the_bits_of_the_lens() -> None:
    assert fit(Grey(4, 1, bytes([0, 85, 170, 255])), 4, 1, 2).pixels == bytes([0b00011011])
    assert fit(Grey(2, 1, bytes([0, 255])), 2, 1, 4).pixels == b"\x0f"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("not base64!", "not base64"),
        (base64.b64encode(b"GIF89a").decode(), "not a PNG"),
        ("A" * (MAX_BASE64 + 4), "at most"),
        (png(2, 2, bytes(4), interlace=1), "interlaced"),
        (png(1000, 1000, b""), "at most"),
        (png(4, 4, bytes(4)), "cut off"),
        (png(0, 4, b""), "at most"),
        (base64.b64encode(base64.b64decode(png(4, 4, bytes(16)))[:40]).decode(), "damaged"),
    ],
)
def test_what_cannot_be_shown_well_is_refused_with_its_reason(data: str, why: str) -> None:
    with pytest.raises(BadImage, match=why):
        decode(data)


@given(st.binary(max_size=200))
def test_junk_is_refused_and_never_crashes(junk: bytes) -> None:
    for raw in (junk, b"\x89PNG\r\n\x1a\n" + junk):
        with pytest.raises(BadImage):
            decode(base64.b64encode(raw).decode())


@given(st.integers(1, 40), st.integers(1, 12), st.sampled_from([1, 2, 4]), st.randoms())
@settings(max_examples=60, deadline=None)
def test_pixels_of_a_lens_come_out_of_its_png_as_they_went_in(
    w: int, h: int, bpp: int, rng: random.Random
) -> None:
    pixels = rng.randbytes((w * bpp + 7) // 8 * h)
    data = base64.b64encode(write_packed(w, h, bpp, pixels)).decode()
    tile = read_packed(data, 50, 20, bpp)
    assert tile is not None
    assert (tile.width, tile.height, tile.bpp, tile.pixels) == (w, h, bpp, pixels)
    assert (tile.x, tile.y) == ((50 - w) // 2, (20 - h) // 2)
    assert read_packed(data, w - 1, h, bpp) is None
    assert read_packed(data, w, h - 1, bpp) is None
    shades = decode(data).pixels
    assert shades[0] == (pixels[0] >> 8 - bpp) * 255 // ((1 << bpp) - 1)


@pytest.mark.parametrize(
    "data",
    [
        png(8, 1, b"\x55", depth=1, filters=1),
        png(8, 1, b"\x55", depth=2),
        png(8, 1, bytes(8)),
        png(8, 1, b"\x55", depth=1, interlace=1),
        png(8, 1, b"\x55", depth=1, extra=chunk(b"tRNS", b"\0\0")),
        png(8, 1, b"\x55", depth=1, colour=3, extra=chunk(b"PLTE", bytes(6))),
        png(8, 2, b"\x55", depth=1),
        png(0, 1, b"", depth=1),
        base64.b64encode(write_packed(8, 1, 1, b"\x55")[:45]).decode(),
        "A" * (MAX_BASE64 + 4),
        "é" * 80,
        "",
    ],
)
def test_any_other_png_must_be_fitted_first(data: str) -> None:
    assert read_packed(data, 576, 136, 1) is None


@given(st.binary(max_size=200))
def test_junk_is_no_png_of_a_lens(junk: bytes) -> None:
    whole = write_packed(8, 1, 1, b"\x55")
    for raw in (junk, whole[:33] + junk, whole[:41] + junk + whole[41:]):
        read_packed(base64.b64encode(raw).decode(), 576, 136, 1)
