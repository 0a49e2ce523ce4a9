"""Navigation of the Even G1: messages ↔ packets 0A. All of it is from one host (Fahrplan)."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from firmware_bridge.codecs.even_g1.picture import centred
from firmware_bridge.codecs.even_g1.pieces import PieceJoiner, cut
from firmware_bridge.codecs.even_g1.wire import Op
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import Command, Tile
from firmware_bridge.own_commands import EndNavigation, Navigate, ShowRoute, Turn

START: Final = 0x00
DIRECTIONS: Final = 0x01
PICTURE: Final = 0x02
END: Final = 0x05
SIZE: Final = 136
"""Width and height of the map."""
ROOM: Final = 185
_BITS: Final = SIZE * SIZE
_MAX_RUN: Final = 255
_MAX_BYTES: Final = 255 * ROOM
_HEAD: Final = 10
_TEXTS: Final = 5
_ROUNDABOUT: Final = "roundabout_"
_FIRST_CIRCLE: Final = 0x0C
"""Roundabouts have two codes each, for traffic on the right and on the left."""


def _codes() -> dict[tuple[Turn, bool], int]:
    """Return the code of each turn, by whether people drive on the left."""
    codes: dict[tuple[Turn, bool], int] = {}
    code = 1
    for turn in Turn:
        in_circle = turn.startswith(_ROUNDABOUT)
        codes[turn, False] = code
        codes[turn, True] = code + in_circle
        code += 1 + in_circle
    return codes


CODES: Final = _codes()
_TURNS: Final = {code: (turn, left) for (turn, left), code in reversed(CODES.items())}


def start(number: int) -> bytes:
    return bytes((Op.NAVIGATION, 6, 0, number & 0xFF, START, 1))


def end(number: int) -> bytes:
    return bytes((Op.NAVIGATION, 6, 0, number & 0xFF, END, 1))


def directions(message: Navigate, number: int, max_packet: int) -> bytes:
    """Return the packet of a turn: its code, a place that is always 0, and five texts that end with
    NUL. Raises `CommandRefused`: too long for a packet.
    """
    texts = b"".join(text.encode() + b"\0" for text in message.texts())
    size, most = _HEAD + len(texts), min(max_packet, 255)
    if size > most:
        raise CommandRefused("too_big", f"the texts of a turn have {size} bytes; {most} fit")
    code = CODES[message.turn, message.left_traffic]
    head = (Op.NAVIGATION, size, 0, number & 0xFF, DIRECTIONS, code, 0, 0, 0, 0)
    return bytes(head) + texts


def route(message: ShowRoute, numbers: Iterator[int], max_packet: int) -> tuple[bytes, ...]:
    """Return the packets of a map: runs (count, bit) of its bits, and of those of the way on it.
    Raises `CommandRefused`: too large, or too many runs.
    """
    picture = centred("map", message.picture, SIZE, SIZE)
    way = message.overlay
    overlay = bytes(len(picture)) if way is None else centred("way", way, SIZE, SIZE)
    data = _runs(picture + overlay)
    return cut(Op.NAVIGATION, PICTURE, data, numbers, room=ROOM, max_packet=max_packet)


def _runs(pixels: bytes) -> bytes:
    out = bytearray()
    for bit, run in groupby("".join(f"{byte:08b}" for byte in pixels)):
        left = sum(1 for _ in run)
        while left:
            count = min(left, _MAX_RUN)
            out += bytes((count, bit == "1"))
            left -= count
    return bytes(out)


# ------------------------------------------------------------------ as the glasses read them


class NavigationReader:
    """Reads the packets of one arm."""

    def __init__(self) -> None:
        self._picture = PieceJoiner(_MAX_BYTES)

    def read(self, packet: bytes) -> Command | None:
        """Return the command that a packet completes; None if there is none, or more packets
        follow. Raises `RemoteViolation`, ValueError or IndexError.
        """
        sub = packet[4]
        if sub == DIRECTIONS:
            return _read_directions(packet)
        if sub == PICTURE:
            data = self._picture.add(packet)
            return None if data is None else _read_picture(data)
        return EndNavigation() if sub == END else None


def _read_directions(packet: bytes) -> Navigate:
    """Read a turn; one of an unknown code is a dot, and texts may be missing at the end."""
    if len(packet) < _HEAD:
        raise RemoteViolation(Violation.TRUNCATED, f"0A 01 of {len(packet)} bytes")
    turn, left = _TURNS.get(packet[5], (Turn.DOT, False))
    texts = [*packet[_HEAD:].decode(errors="replace").split("\0"), *[""] * _TEXTS]
    trip_time, trip_distance, street, distance, speed = texts[:_TEXTS]
    return Navigate(turn, street, distance, trip_time, trip_distance, speed, left)


def _read_picture(data: bytes) -> ShowRoute:
    if len(data) % 2 or sum(data[::2]) != 2 * _BITS or any(bit > 1 for bit in data[1::2]):
        raise RemoteViolation(Violation.BAD_MESSAGE, "0A 02: the runs are not two pictures")
    bits = "".join("01"[bit] * count for count, bit in zip(data[::2], data[1::2], strict=True))
    pixels = int(bits, 2).to_bytes(2 * _BITS // 8, "big")
    picture, overlay = (
        Tile(0, 0, SIZE, SIZE, 1, half) for half in (pixels[: _BITS // 8], pixels[_BITS // 8 :])
    )
    return ShowRoute(picture, overlay if any(overlay.pixels) else None)
