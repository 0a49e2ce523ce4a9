"""Compressed pictures, as the simulated glasses take them."""

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from firmware_bridge.codecs.even_g2.hub import LZ4, Rect
from firmware_bridge.codecs.even_g2.lz4 import decompress
from firmware_bridge.codecs.even_g2.page_in import HubPageIn
from firmware_bridge.codecs.even_g2.picture import bmp, read_lz4
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import Tile
from firmware_bridge.protobuf import Message, encode
from tests.codecs.even_g2.test_page_in import IMAGE, TEXT, parse

PLACE = Rect(0, 0, 21, 20)


def literals(data: bytes) -> bytes:
    """Return a block of nothing but literals."""
    long = len(data) - 15
    if long < 0:
        return bytes([len(data) << 4]) + data
    return b"\xf0" + b"\xff" * (long // 255) + bytes([long % 255]) + data


@pytest.mark.parametrize(
    ("block", "whole"),
    [
        ("", ""),
        ("00", ""),
        ("30616263", "616263"),
        ("1061", "61"),
        ("11610100" + "1062", "61" * 6 + "62"),
        ("22616202001063", "6162" + "616261626162" + "63"),
        ("1f610100001061", "61" * 20 + "61"),
        ("1f610100ff011061", "61" * (1 + 19 + 256) + "61"),
        ("f00061" + "62" * 14, "61" + "62" * 14),
    ],
)
def test_blocks_are_decompressed(block, whole):
    assert decompress(bytes.fromhex(block), 1000).hex() == whole


@pytest.mark.parametrize(
    "block", ["30", "306162", "10610200", "1f6101", "1f610100ff", "f0", "106100"]
)
def test_damaged_blocks_are_refused(block):
    with pytest.raises(RemoteViolation, match="a damaged LZ4 block"):
        decompress(bytes.fromhex(block), 1000)


@pytest.mark.parametrize(
    "block", ["1f610100" + "ff" * 200 + "00", "f0" + "ff" * 4 + "00" + "61" * 1035]
)
def test_a_block_has_a_limit(block):
    with pytest.raises(RemoteViolation) as refused:
        decompress(bytes.fromhex(block), 1000)
    assert refused.value.reason is Violation.OVERSIZED


@given(st.binary(max_size=80))
def test_any_block_is_survived(block):
    with suppress(RemoteViolation):
        assert len(decompress(block, 100)) <= 100


@given(st.binary(max_size=600))
def test_literals_come_through(data):
    assert decompress(literals(data), 600) == data


@pytest.mark.parametrize("shift", [0, 4])
def test_a_byte_is_a_pixel(shift):
    levels = bytes((at % 16) << shift for at in range(21 * 20))
    tile = read_lz4(literals(levels), PLACE)
    assert (tile.width, tile.height, tile.pixels[:11].hex()) == (21, 20, "0123456789abcdef012340")


def test_a_compressed_file_is_a_picture_too():
    file = bmp(b"\x1f" * (576 * 144), Rect(0, 0, 20, 20))
    assert read_lz4(literals(file), Rect(0, 0, 20, 20)).pixels == b"\x1f" * 200


def test_too_few_pixels_are_refused():
    with pytest.raises(RemoteViolation, match="420 are needed"):
        read_lz4(literals(bytes(419)), PLACE)


def shown(page: HubPageIn, packing: int) -> Tile | None:
    block = literals(b"\x0f" * 420)
    update = {1: 10, 3: 1, 4: len(block), 5: packing, 6: 0, 7: len(block), 8: block}
    page.add(Message(encode(update)))
    return page.images[10].tile


def test_the_glasses_show_a_compressed_picture():
    place = {**IMAGE, 3: 21, 4: 20}
    tile = shown(parse(TEXT, images=[place]), LZ4)
    assert tile is not None
    assert tile.pixels[:11] == b"\xff" * 10 + b"\xf0"
    assert shown(parse(TEXT, images=[place]), 1) is None, "a run-length code is not known"
