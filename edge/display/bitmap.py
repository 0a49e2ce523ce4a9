"""PNG (base64) → pixels for a lens of 1, 2 or 4 bits, with the standard library alone.

A lens's own PNG (grey, the bits of the lens, rows without a filter) holds the pixels of a tile as
they are: `write_packed` makes it in a child process, `read_packed` opens it in the daemon, in 0.1
to 0.5 ms.
Any other PNG is decoded pixel by pixel (`decode`, `fit`), in the child, where Pillow is missing.
Interlaced, huge and damaged images are refused; their words are shown instead.
"""

import base64
import binascii
import struct
import zlib
from dataclasses import dataclass
from typing import Final

from firmware_bridge.messages import Tile

MAX_BASE64: Final = 1_000_000
"""Characters; MentraOS refuses more."""
MAX_PIXELS: Final = 640 * 480
"""The largest canvas known; a larger picture is not meant for a lens."""
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_HEAD: Final = struct.Struct(">IIBBBBB")
_HEAD_AT: Final = 16
"""Where the first chunk, the header, has its content."""
_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


class BadImage(Exception):
    """Not a picture we can show; the text names why. `needs_library`: the extra would help."""

    def __init__(self, why: str, *, needs_library: bool = False) -> None:
        super().__init__(why)
        self.needs_library = needs_library


@dataclass(frozen=True, slots=True)
class Grey:
    """A picture as brightness, one byte a pixel, row-major; 0 is dark (transparent on a lens)."""

    width: int
    height: int
    pixels: bytes


def decode(data: str) -> Grey:
    """Read a base64 PNG. Raises `BadImage`."""
    if len(data) > MAX_BASE64:
        raise BadImage(f"the image is {len(data)} characters; at most {MAX_BASE64}")
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise BadImage("the image is not base64") from None
    if not raw.startswith(_SIGNATURE):
        raise BadImage("the image is not a PNG")
    try:
        return _png(raw)
    except (struct.error, zlib.error, IndexError, KeyError):
        raise BadImage("the PNG is damaged") from None


def fit(picture: Grey, width: int, height: int, bpp: int) -> Tile:
    """Scale down into the canvas if need be (never up), centre it and quantise to `bpp` bits."""
    scale = max(1.0, picture.width / width, picture.height / height)
    w, h = max(1, int(picture.width / scale)), max(1, int(picture.height / scale))
    columns = [min(picture.width - 1, int((x + 0.5) * scale)) for x in range(w)]
    rows = []
    for y in range(h):
        start = min(picture.height - 1, int((y + 0.5) * scale)) * picture.width
        rows.append(_packed([picture.pixels[start + x] for x in columns], bpp))
    return Tile((width - w) // 2, (height - h) // 2, w, h, bpp, b"".join(rows))


def _packed(row: list[int], bpp: int) -> bytes:
    per_byte = 8 // bpp
    levels = (1 << bpp) - 1
    out = bytearray()
    for at in range(0, len(row), per_byte):
        byte = 0
        for value in (*row[at : at + per_byte], *(0,) * per_byte)[:per_byte]:
            byte = byte << bpp | (value * levels + 127) // 255
        out.append(byte)
    return bytes(out)


# ------------------------------------------------------------------ the PNG of a lens


def write_packed(width: int, height: int, bpp: int, pixels: bytes) -> bytes:
    """Return the PNG of a tile's pixels."""
    stride = (width * bpp + 7) // 8
    rows = (pixels[at : at + stride] for at in range(0, stride * height, stride))
    body = zlib.compress(b"\0" + b"\0".join(rows), 1)
    parts = {b"IHDR": _HEAD.pack(width, height, bpp, 0, 0, 0, 0), b"IDAT": body, b"IEND": b""}
    return _SIGNATURE + b"".join(
        len(part).to_bytes(4, "big") + name + part + zlib.crc32(name + part).to_bytes(4, "big")
        for name, part in parts.items()
    )


def read_packed(data: str, width: int, height: int, bpp: int) -> Tile | None:
    """Return a base64 PNG in the middle of a lens, if it is of the lens's own form and not larger
    than the lens; None: it must be fitted first.
    """
    try:
        w, h, *form = _HEAD.unpack_from(base64.b64decode(data[:64]), _HEAD_AT)
        if len(data) > MAX_BASE64 or form != [bpp, 0, 0, 0, 0] or w > width or h > height:
            return None
        chunks = _chunks(base64.b64decode(data))
        stride = (w * bpp + 7) // 8
        size = (stride + 1) * h
        body = zlib.decompressobj().decompress(chunks["IDAT"], size)
        if len(body) < size or any(body[:: stride + 1]) or "tRNS" in chunks:
            return None
        pixels = b"".join([body[at : at + stride] for at in range(1, size, stride + 1)])
        return Tile((width - w) // 2, (height - h) // 2, w, h, bpp, pixels)
    except (ValueError, struct.error, zlib.error, KeyError):
        return None


# ------------------------------------------------------------------ PNG (ISO/IEC 15948)


def _png(raw: bytes) -> Grey:
    chunks = _chunks(raw)
    width, height, depth, colour, _, _, interlace = _HEAD.unpack(chunks["IHDR"][:13])
    if not 0 < width * height <= MAX_PIXELS:
        raise BadImage(f"the image has {width} × {height} pixels; at most {MAX_PIXELS} in all")
    if interlace or depth not in (1, 2, 4, 8, 16):
        raise BadImage("interlaced PNG is not supported")
    channels = _CHANNELS[colour]
    stride = (width * channels * depth + 7) // 8
    bound = (stride + 1) * height
    body = zlib.decompressobj().decompress(chunks["IDAT"], bound)
    if len(body) < bound:
        raise BadImage("the PNG is cut off")
    rows = _unfiltered(body, stride, height, max(1, channels * depth // 8))
    palette, clear = chunks.get("PLTE", b""), chunks.get("tRNS", b"")
    shades = _shades(palette, clear) if colour == 3 else None
    pixels = b"".join(
        _brightness(_samples(row, depth, width * channels), channels, depth, shades) for row in rows
    )
    return Grey(width, height, pixels)


def _chunks(raw: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    at = len(_SIGNATURE)
    while at + 12 <= len(raw):
        size, name = struct.unpack_from(">I4s", raw, at)
        key = name.decode("latin-1")
        found[key] = found.get(key, b"") + raw[at + 8 : at + 8 + size]
        at += size + 12
    return found


def _unfiltered(body: bytes, stride: int, height: int, step: int) -> list[bytearray]:
    rows: list[bytearray] = []
    above = bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        row = bytearray(body[start + 1 : start + 1 + stride])
        _undo(body[start], row, above, step)
        rows.append(row)
        above = row
    return rows


def _undo(kind: int, row: bytearray, above: bytearray, step: int) -> None:
    """Undo one row's filter in place; spelled out per filter because it runs for every byte."""
    size = len(row)
    if kind == 1:
        for i in range(step, size):
            row[i] = (row[i] + row[i - step]) & 0xFF
    elif kind == 2:
        row[:] = bytes((a + b) & 0xFF for a, b in zip(row, above, strict=True))
    elif kind == 3:
        for i in range(size):
            left = row[i - step] if i >= step else 0
            row[i] = (row[i] + (left + above[i] >> 1)) & 0xFF
    elif kind == 4:
        _undo_paeth(row, above, step)
    elif kind:
        raise BadImage("the PNG is damaged")


def _undo_paeth(row: bytearray, above: bytearray, step: int) -> None:
    for i in range(min(step, len(row))):
        row[i] = (row[i] + above[i]) & 0xFF
    for i in range(step, len(row)):
        left, up, corner = row[i - step], above[i], above[i - step]
        to_left, to_up = abs(up - corner), abs(left - corner)
        to_corner = abs(left + up - corner - corner)
        guess = up if to_up <= to_corner else corner
        if to_left <= to_up and to_left <= to_corner:
            guess = left
        row[i] = (row[i] + guess) & 0xFF


def _samples(row: bytearray, depth: int, count: int) -> list[int]:
    if depth == 8:
        return list(row)
    if depth == 16:
        return list(row[::2])
    per_byte = 8 // depth
    mask = (1 << depth) - 1
    return [row[i // per_byte] >> (8 - depth * (i % per_byte + 1)) & mask for i in range(count)]


def _shades(palette: bytes, clear: bytes) -> list[int]:
    count = len(palette) // 3
    opaque = clear.ljust(count, b"\xff")
    colours = (palette[i * 3 : i * 3 + 3] for i in range(count))
    return [_luma(*colour) * alpha // 255 for colour, alpha in zip(colours, opaque, strict=False)]


def _brightness(samples: list[int], channels: int, depth: int, shades: list[int] | None) -> bytes:
    if shades is not None:
        return bytes(shades[value] for value in samples)
    if depth < 8:
        top = (1 << depth) - 1
        return bytes(value * 255 // top for value in samples)
    if channels == 1:
        return bytes(samples)
    if channels == 2:
        return bytes(v * a // 255 for v, a in zip(samples[::2], samples[1::2], strict=True))
    alpha = samples[3::4] if channels == 4 else [255] * (len(samples) // 3)
    reds, greens, blues = (samples[i::channels] for i in range(3))
    return bytes(
        (r * 299 + g * 587 + b * 114) // 1000 * a // 255
        for r, g, b, a in zip(reds, greens, blues, alpha, strict=True)
    )


def _luma(red: int, green: int, blue: int) -> int:
    return (red * 299 + green * 587 + blue * 114) // 1000
