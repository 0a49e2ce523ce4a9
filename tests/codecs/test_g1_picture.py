"""Pictures of the Even G1: tiles, the file, its packets, its checksum (§7); and joining what
comes in pieces.
"""

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.codecs.even_g1.notifications import read_whitelist
from firmware_bridge.codecs.even_g1.picture import END, PictureIn, bmp, checksum, cut, read
from firmware_bridge.codecs.even_g1.text import read_page
from firmware_bridge.codecs.even_g1.wire import Joiner, Op, split
from firmware_bridge.errors import CommandRefused, RemoteViolation
from firmware_bridge.messages import ShowPage, TextLine, Tile

WIDTH, HEIGHT = 576, 136


def crc32_by_the_book(data):
    """§7 step 3: polynomial 04C11DB7 reflected, start and final XOR FFFFFFFF; bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def plotted(tiles):
    """Pixel by pixel, as slow as it is plain."""
    lens = [[0] * WIDTH for _ in range(HEIGHT)]
    for tile in tiles:
        stride = (tile.width * tile.bpp + 7) // 8
        for y in range(tile.height):
            for x in range(tile.width):
                if tile.y + y < HEIGHT and tile.x + x < WIDTH:
                    byte = tile.pixels[y * stride + x * tile.bpp // 8]
                    value = byte >> (8 - tile.bpp - x * tile.bpp % 8) & ((1 << tile.bpp) - 1)
                    lens[tile.y + y][tile.x + x] = int(value >= 1 << tile.bpp - 1)
    return b"".join(int("".join(map(str, row)), 2).to_bytes(72, "big") for row in lens)


@st.composite
def tiles(draw):
    bpp, width, height = (
        draw(st.sampled_from([1, 2, 4])),
        draw(st.integers(1, 70)),
        draw(st.integers(1, 6)),
    )
    size = (width * bpp + 7) // 8 * height
    return Tile(
        draw(st.integers(0, 600)),
        draw(st.integers(0, 140)),
        width,
        height,
        bpp,
        draw(st.binary(min_size=size, max_size=size)),
    )


@settings(max_examples=15, deadline=None)
@given(st.lists(tiles(), max_size=3))
def test_tiles_become_the_picture_that_plotting_gives(some):
    assert read(bmp(some)).pixels == plotted(some)


def test_the_file_is_a_one_bit_bitmap_with_62_header_bytes():
    """§4: 576 × 136, 1 bit, 62-byte header (ED)."""
    file = bmp([Tile(0, 0, 8, 1, 1, b"\xff")])
    assert (file[:2], len(file), int.from_bytes(file[10:14], "little")) == (
        b"BM",
        62 + 72 * 136,
        62,
    )
    assert (int.from_bytes(file[18:22], "little"), int.from_bytes(file[22:26], "little")) == (
        576,
        136,
    )
    assert file[28:30] == b"\x01\x00"
    assert file[54:62] == b"\0\0\0\0\xff\xff\xff\0"
    assert file[-72:-71] == b"\xff", "the first row comes last"


def test_the_file_goes_in_51_packets_with_the_address_first():
    """§7 step 1: 15 00 00 1C 00 00 + piece, then 15 n + piece; 51 packets (ED)."""
    file = bmp([])
    packets = cut(file, max_packet=248)
    assert len(packets) == 51
    assert packets[0] == bytes.fromhex("15 00 00 1C 00 00") + file[:194]
    assert [packet[:2] for packet in packets[1:]] == [bytes((0x15, n)) for n in range(1, 51)]
    assert {len(packet) for packet in packets[1:-1]} == {196}
    assert bytes.fromhex("20 0D 0E") == END


@settings(max_examples=20, deadline=None)
@given(st.binary(max_size=300))
def test_the_checksum_is_that_of_zip_over_place_and_file_big_endian(file):
    assert checksum(file) == crc32_by_the_book(bytes.fromhex("00 1C 00 00") + file).to_bytes(
        4, "big"
    )


@pytest.mark.parametrize("max_packet", [46, 100, 182, 244, 512])
def test_packets_of_any_order_and_twice_join_to_the_file(max_packet):
    file = bmp([Tile(3, 4, 40, 2, 1, bytes(range(10)))])
    packets = cut(file, max_packet=max_packet)
    assert max(map(len, packets)) <= max_packet
    joined = PictureIn()
    for packet in (packets[0], *reversed(packets[1:]), packets[3]):
        joined.add(packet)
    assert joined.file() == file


def test_a_missing_packet_is_noticed_and_the_next_picture_starts_fresh():
    packets = cut(bmp([]), max_packet=248)
    joined = PictureIn()
    for packet in (*packets[:7], *packets[8:]):
        joined.add(packet)
    assert joined.file() is None
    for packet in packets:
        joined.add(packet)
    assert joined.file() == bmp([])


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file[:40],
        lambda file: b"XX" + file[2:],
        lambda file: file[:18] + b"\x80\x02" + file[20:],
        lambda file: file[:22] + b"\xc8\x00" + file[24:],
        lambda file: file[:28] + b"\x04" + file[29:],
        lambda file: file[:-1],
    ],
    ids=["short", "magic", "640-wide", "200-high", "4-bit", "cut-off"],
)
def test_a_file_that_is_not_for_this_lens_is_refused(change):
    with pytest.raises(RemoteViolation):
        read(change(bmp([])))


def test_the_vendors_picture_of_135_rows_is_taken():
    """§4: the shipped image_1.bmp is 576 × 135 (ED)."""
    file = bmp([])
    assert read(file[:22] + b"\x87\x00" + file[24:]).height == 135


class Pages:
    """Joins text packets, and reads the page when it is complete."""

    def __init__(self):
        self._joiner = Joiner(Op.TEXT)

    def add(self, packet):
        data = self._joiner.add(packet)
        return None if data is None else read_page(data, packet)


def text(number, total, index, piece):
    return bytes((0x4E, number, total, index, 0x71, 0, 0, 1, 1)) + piece


@pytest.mark.parametrize(
    "stray", [text(2, 2, 1, b"B"), text(1, 2, 1, b"B")], ids=["another-number", "another-total"]
)
def test_pieces_of_two_pages_never_become_one(stray):
    """§6 seq: one number per message, same in all its packets (ED)."""
    joined = Pages()
    assert joined.add(text(1, 3, 0, b"a")) is None
    assert joined.add(stray) is None
    assert joined.add(text(3, 1, 0, b"whole")) == ShowPage("g1", lines=(TextLine(0, "whole"),))


def test_a_piece_that_comes_twice_counts_once():
    joined = Pages()
    for packet in (text(1, 2, 0, b"He"), text(1, 2, 0, b"He"), text(1, 2, 1, b"llo")):
        page = joined.add(packet)
    assert (
        page == joined.add(text(1, 2, 1, b"llo")) == ShowPage("g1", lines=(TextLine(0, "Hello"),))
    )


@pytest.mark.parametrize(
    "packet",
    [text(1, 2, 2, b"x"), text(1, 0, 0, b"x"), text(1, 1, 0, b"x")[:8], text(1, 1, 0, b"\n" * 40)],
)
def test_a_text_packet_no_correct_host_sends_is_refused(packet):
    with pytest.raises(RemoteViolation):
        Pages().add(packet)


def test_a_message_has_at_most_255_packets():
    assert len(split(bytes(510), 2, "text")) == 255
    with pytest.raises(CommandRefused, match="too_big: 511 bytes of text; 510 fit at this MTU"):
        split(bytes(511), 2, "text")


def test_pieces_of_two_notifications_never_become_one():
    """§8: 4B id total index (ED)."""
    joined = Joiner(Op.NOTIFICATION)
    assert joined.add(b"\x4b\x01\x03\x00{") is None
    assert joined.add(b"\x4b\x02\x02\x01}") is None
    assert joined.add(b"\x4b\x02\x02\x00{") is None
    assert joined.add(b"\x4b\x02\x02\x01}") == b"{}"


@pytest.mark.parametrize("body", [b"[]", b"nonsense", b"\xff", b'{"a":' * 5000])
def test_json_no_correct_host_sends_is_refused(body):
    with pytest.raises(RemoteViolation):
        read_whitelist(body)
