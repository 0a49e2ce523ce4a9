"""Cutting and reassembling: whatever is cut comes back, and nothing grows over its bound."""

import pytest
from hypothesis import given, strategies as st

from firmware_bridge.errors import LocalMisuse, RemoteViolation, Violation
from firmware_bridge.packets import Cutter, Reassembler, clamp_packet, serial_distance


def pieces_of(message, room):
    cutter = Cutter(message)
    pieces = []
    while cutter.left:
        pieces.append(cutter.cut(room))
    return pieces


@given(st.binary(max_size=2000), st.integers(5, 300))
def test_what_was_cut_comes_back_whole_after_the_last_piece_only(message, room):
    assembler = Reassembler(2000)
    pieces = pieces_of(message, room)
    assert all(len(piece) <= room for piece, _, _ in pieces)
    assert [first for _, first, _ in pieces] == [True] + [False] * (len(pieces) - 1)
    given_back = [assembler.add(piece, first=first, last=last) for piece, first, last in pieces]
    assert given_back == [None] * (len(pieces) - 1) + [message]


def test_a_cutter_knows_what_is_left():
    cutter = Cutter(b"abcdef")
    assert cutter.left == 10
    assert cutter.cut(7) == (b"\x06\x00\x00\x00abc", True, False)
    assert cutter.left == 3
    assert cutter.cut(7) == (b"def", False, True)
    assert cutter.left == 0


@pytest.mark.parametrize(
    ("piece", "first", "last", "reason"),
    [
        (b"\x05\x00\x00", True, False, Violation.TRUNCATED),
        (b"\x0b\x00\x00\x00", True, False, Violation.OVERSIZED),
        (b"\x02\x00\x00\x00abc", True, False, Violation.OVERSIZED),
        (b"\x04\x00\x00\x00abc", True, True, Violation.TRUNCATED),
        (b"abc", False, True, Violation.BAD_ORDER),
    ],
)
def test_a_wrong_piece_is_refused_and_the_next_message_is_whole(piece, first, last, reason):
    assembler = Reassembler(10)
    with pytest.raises(RemoteViolation) as refused:
        assembler.add(piece, first=first, last=last)
    assert refused.value.reason is reason
    assert assembler.add(b"the rest", first=False, last=False) is None, "said once for each message"
    assert assembler.add(b"\x02\x00\x00\x00ok", first=True, last=True) == b"ok"


def test_a_message_inside_another_ends_both_and_the_next_is_whole():
    assembler = Reassembler(10)
    assembler.add(b"\x04\x00\x00\x00a", first=True, last=False)
    with pytest.raises(RemoteViolation) as refused:
        assembler.add(b"\x02\x00\x00\x00ok", first=True, last=True)
    assert refused.value.reason is Violation.BAD_ORDER
    assert assembler.add(b"\x02\x00\x00\x00ok", first=True, last=True) == b"ok"


def test_more_than_announced_is_refused_in_any_piece():
    assembler = Reassembler(10)
    assembler.add(b"\x04\x00\x00\x00abc", first=True, last=False)
    with pytest.raises(RemoteViolation) as refused:
        assembler.add(b"de", first=False, last=True)
    assert refused.value.reason is Violation.OVERSIZED


@given(st.integers(0, 10**9), st.integers(-0x8000, 0x7FFF))
def test_distance_is_taken_the_shorter_way_round(here, distance):
    assert serial_distance((here + distance) & 0xFFFF, here) == distance


@pytest.mark.parametrize(
    ("size", "used"), [(20, 20), (244, 244), (512, 512), (513, 512), (514, 512)]
)
def test_a_packet_fits_the_radio_and_an_attribute(size, used):
    assert clamp_packet(size) == used


def test_a_packet_size_below_att_is_misuse():
    with pytest.raises(LocalMisuse, match="at least 20"):
        clamp_packet(19)
