"""Tiles of the reference profile: run-length coding, and the table for sending a tile once."""

import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from firmware_bridge.messages import MAX_BITMAP_BYTES, Tile

MAX_TILES: Final = 256
"""Maximum tiles in one message; 1024 × 512 pixels in squares of 32 would be twice that."""
MAX_TABLE_BYTES: Final = 256 * 1024
"""Bytes of pixels kept for tiles, whatever the glasses announce: more than any full 4-bit lens."""

_RAW: Final = 0
_PACKBITS: Final = 1
_RUN: Final = re.compile(rb"\0{2,}")
_LONGER_RUN: Final = re.compile(rb"\0{3,}")
_HEADS: Final = tuple(bytes((n,)) for n in range(256))
_LONG: Final = 8 * 1024
"""Bytes; of longer data runs of three are left out: they save 1 % and take a third of the time."""
_Pixels = tuple[int, int, int, bytes]


def packbits(data: bytes) -> bytes:
    """Apple PackBits: `n` 0…127 → the next n+1 bytes; 129…255 → the next byte 257−n times."""
    # a zero for each byte that is followed by the same: found without a step for each byte
    differ = int.from_bytes(data[1:], "big") ^ int.from_bytes(data[:-1], "big")
    runs = _RUN if len(data) < _LONG else _LONGER_RUN
    out: list[bytes] = []
    at = 0
    for run in runs.finditer(differ.to_bytes(max(0, len(data) - 1), "big")):
        start, end = run.start(), run.end() + 1
        if at < start:
            out += _literals(data[at:start])
        if end - start > 128:
            whole, rest = divmod(end - start, 128)
            out.append(bytes((129, data[start])) * whole)
            at = end - rest
            if rest < 2:
                continue
            start = at
        out += _HEADS[257 - (end - start)], data[start : start + 1]
        at = end
    if at < len(data):
        out += _literals(data[at:])
    return b"".join(out)


def _literals(data: bytes) -> Sequence[bytes]:
    if len(data) <= 128:
        return _HEADS[len(data) - 1], data
    pieces = (data[at : at + 128] for at in range(0, len(data), 128))
    return [part for piece in pieces for part in (_HEADS[len(piece) - 1], piece)]


def unpackbits(data: bytes, size: int) -> bytes:
    """Inverse of `packbits`, for exactly `size` bytes, with bounded memory. Raises ValueError."""
    out = bytearray()
    at = 0
    while at < len(data):
        n = data[at]
        at += 1
        if n < 128:
            piece = data[at : at + n + 1]
            at += n + 1
            if len(piece) != n + 1:
                raise ValueError("run-length data ends inside a run")
        elif n > 128:
            piece = data[at : at + 1] * (257 - n)
            at += 1
        else:
            continue  # 128 does nothing, by definition
        out += piece
        if len(out) > size:
            break
    if len(out) != size:
        raise ValueError(f"run-length data of another size than the {size} bytes of the tile")
    return bytes(out)


class TileTable:
    """The tiles both sides remember; the oldest leave first. Both sides see the same messages, so
    both hold the same tiles.

    A key is only a name: the sender references a tile only if its own copy is equal byte for byte.
    Clearing the sender's table is always safe, because the glasses then hold more than the sender
    assumes.
    """

    def __init__(self) -> None:
        self._tiles: dict[int, _Pixels] = {}
        self._capacity = 0
        self._bytes = 0

    def resize(self, capacity: int) -> None:
        """Start empty with room for `capacity` bytes of pixels; 0: every tile has its pixels."""
        self.clear()
        self._capacity = min(max(0, capacity), MAX_TABLE_BYTES)

    def clear(self) -> None:
        self._tiles.clear()
        self._bytes = 0

    def put(self, tiles: Iterable[Tile]) -> list[list[Any]]:
        """Return the wire form of a message's tiles. Raises ValueError if there are too many."""
        tiles = tuple(tiles)
        _bounds(len(tiles), sum(len(tile.pixels) for tile in tiles))
        return [self._put(tile) for tile in tiles]

    def take(self, items: Any) -> tuple[Tile, ...]:
        """Inverse of `put`. Raises ValueError, also for a key that is not held."""
        if not isinstance(items, list):
            raise ValueError("tiles are no array")
        tiles: list[Tile] = []
        size = 0
        _bounds(len(items), 0)
        for item in items:
            tiles.append(self._take(item))
            size += len(tiles[-1].pixels)
            _bounds(len(items), size)
        return tuple(tiles)

    def _put(self, tile: Tile) -> list[Any]:
        _canvas(tile.x, tile.y, tile.width, tile.height)
        content = (tile.width, tile.height, tile.bpp, tile.pixels)
        key = zlib.crc32(
            tile.pixels, zlib.crc32(bytes((tile.bpp, tile.width & 0xFF, tile.height & 0xFF)))
        )
        named = [tile.x, tile.y, tile.width, tile.height, tile.bpp, key]
        if self._tiles.get(key) == content:
            return named
        self._keep(key, content)
        packed = packbits(tile.pixels)
        return (
            [*named, _PACKBITS, packed]
            if len(packed) < len(tile.pixels)
            else [*named, _RAW, tile.pixels]
        )

    def _take(self, item: Any) -> Tile:
        if (
            not isinstance(item, list)
            or len(item) not in (6, 8)
            or any(type(v) is not int for v in item[:7])
        ):
            raise ValueError("a tile is [x, y, width, height, bpp, key] or [… key, coding, data]")
        x, y, width, height, bpp, key = item[:6]
        _canvas(x, y, width, height)
        if len(item) == 6:
            held = self._tiles.get(key)
            if held is None or held[:3] != (width, height, bpp):
                raise ValueError(f"tile {key} is not held")
            return Tile(x, y, width, height, bpp, held[3])
        tile = Tile(
            x, y, width, height, bpp, _pixels(item[6], item[7], (width * bpp + 7) // 8 * height)
        )
        self._keep(key, (width, height, bpp, tile.pixels))
        return tile

    def _keep(self, key: int, content: _Pixels) -> None:
        """Add a tile as the newest, evicting the oldest; one that never fits clears the table."""
        known = self._tiles.pop(key, None)
        if known is not None:
            self._bytes -= len(known[3])
        while self._tiles and self._bytes + len(content[3]) > self._capacity:
            oldest = next(iter(self._tiles))
            self._bytes -= len(self._tiles.pop(oldest)[3])
        if len(content[3]) <= self._capacity:
            self._tiles[key] = content
            self._bytes += len(content[3])


def _pixels(coding: int, data: Any, size: int) -> bytes:
    if not isinstance(data, bytes) or size > MAX_BITMAP_BYTES:
        raise ValueError(f"no tile of {size} bytes")
    if coding == _PACKBITS:
        return unpackbits(data, size)
    if coding == _RAW:
        return data
    raise ValueError(f"pixel coding {coding}")


def _canvas(*values: int) -> None:
    if not all(0 <= value < 4096 for value in values):
        raise ValueError("a tile outside the canvas of 4096 × 4096")


def _bounds(count: int, size: int) -> None:
    if count > MAX_TILES or size > MAX_BITMAP_BYTES:
        raise ValueError(
            f"{count} tiles of {size} bytes; at most {MAX_TILES} of {MAX_BITMAP_BYTES}"
        )
