"""Lines, rectangles and circles that a Mentra Display draws, for its peripheral end.

A row of pixels is one number, its highest bit on the left.
"""

from math import isqrt
from typing import Final

from firmware_bridge.codecs.mentra_nex.wire import HEIGHT, WIDTH
from firmware_bridge.messages import Tile
from firmware_bridge.protobuf import Message

MAX_STROKE: Final = 16
FARTHEST: Final = 2 * WIDTH
"""Coordinates beyond this are taken as this: they are not on the canvas."""


def line(body: Message) -> Tile | None:
    """Return DrawLine as a tile; None if nothing of it is on the canvas."""
    x1, y1, x2, y2 = (_place(body, number) for number in (3, 4, 5, 6))
    stroke, rows = _stroke(body), [0] * HEIGHT
    steps = max(abs(x2 - x1), abs(y2 - y1), 1)
    for at in range(steps + 1):
        x, y = x1 + (x2 - x1) * at // steps, y1 + (y2 - y1) * at // steps
        _fill(rows, x - stroke // 2, y - stroke // 2, stroke, stroke)
    return _tile(rows)


def rect(body: Message) -> Tile | None:
    """Return DrawRect as a tile: its outline, inside it."""
    x, y, width, height = (_place(body, number) for number in (3, 4, 5, 6))
    stroke, rows = min(_stroke(body), max(width, 1), max(height, 1)), [0] * HEIGHT
    for top in (y, y + height - stroke):
        _fill(rows, x, top, width, stroke)
    for left in (x, x + width - stroke):
        _fill(rows, left, y, stroke, height)
    return _tile(rows)


def circle(body: Message) -> Tile | None:
    """Return DrawCircle as a tile: all points whose distance from the middle is the radius."""
    x, y, radius = (_place(body, number) for number in (3, 4, 5))
    stroke, rows = _stroke(body), [0] * HEIGHT
    far = radius + stroke // 2
    near = far - stroke
    for row in range(max(0, y - far), min(HEIGHT, y + far + 1)):
        outer = isqrt(far**2 - (row - y) ** 2)
        _fill(rows, x - outer, row, 2 * outer + 1, 1)
        if near > abs(row - y):
            inner = isqrt(near**2 - (row - y) ** 2)
            rows[row] &= ~_run(x - inner, 2 * inner + 1)
    return _tile(rows)


def _place(body: Message, number: int) -> int:
    return min(body.integer(number), FARTHEST)


def _stroke(body: Message) -> int:
    return max(1, min(body.integer(2), MAX_STROKE))


def _fill(rows: list[int], x: int, y: int, width: int, height: int) -> None:
    run = _run(x, width)
    for row in range(max(0, y), min(HEIGHT, y + height)):
        rows[row] |= run


def _run(x: int, width: int) -> int:
    """Return a row of these pixels, those on the canvas."""
    first, last = max(x, 0), min(x + width, WIDTH) - 1
    return 0 if last < first else ((1 << last - first + 1) - 1) << WIDTH - 1 - last


def _tile(rows: list[int]) -> Tile | None:
    lit = [at for at, row in enumerate(rows) if row]
    if not lit:
        return None
    every = 0
    for row in rows:
        every |= row
    left, beyond = WIDTH - every.bit_length(), (every & -every).bit_length() - 1
    width, top = WIDTH - left - beyond, lit[0]
    stride = (width + 7) // 8
    shown = (rows[at] >> beyond << stride * 8 - width for at in range(top, lit[-1] + 1))
    pixels = b"".join(row.to_bytes(stride, "big") for row in shown)
    return Tile(left, top, width, lit[-1] - top + 1, 1, pixels)
