"""Photo: reads a picture's header and brightness, using only the standard library.

Pictures that are too large are refused before they are decompressed. Needs glasses with a camera.
"""

import base64
import binascii
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, params, reply, string

MAX_PIXELS: Final = 4_000_000
BINS: Final = 8
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""PNG colour type → samples a pixel: grey, RGB, palette, grey+alpha, RGBA."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A decoded picture, reduced to brightness: one byte a pixel."""

    format: str
    width: int
    height: int
    channels: int
    luma: bytes


def decode(data: bytes) -> Picture:
    """Decode PNG (8 bit, not interlaced) or binary PGM/PPM. Raises ValueError that says what
    cannot be read.
    """
    if data.startswith(_PNG):
        return _png(data)
    if data[:2] in (b"P5", b"P6"):
        return _pnm(data)
    raise ValueError("image: neither PNG nor PGM/PPM (P5, P6)")


def _checked(width: int, height: int) -> None:
    if not (width > 0 and height > 0 and width * height <= MAX_PIXELS):
        raise ValueError(f"image: {width}×{height} is empty or larger than {MAX_PIXELS} pixels")


def _pnm(data: bytes) -> Picture:
    fields, at = list[int](), 2
    while len(fields) < 3:
        token, at = _token(data, at)
        fields.append(token)
    width, height, top = fields
    _checked(width, height)
    if not 0 < top < 256:
        raise ValueError("image: only 8 bit samples are read")
    channels = 3 if data[:2] == b"P6" else 1
    size = width * height * channels
    body = data[at : at + size]  # `at` is after the white space that follows the last field
    if len(body) < size:
        raise ValueError("image: it ends before its last pixel")
    form = "PPM" if channels == 3 else "PGM"
    return Picture(form, width, height, channels, _luma(body, channels))


def _token(data: bytes, at: int) -> tuple[int, int]:
    while at < len(data) and (data[at : at + 1].isspace() or data[at : at + 1] == b"#"):
        at = data.find(b"\n", at) + 1 or len(data) if data[at : at + 1] == b"#" else at + 1
    end = at
    while end < len(data) and data[end : end + 1].isdigit() and end - at < 9:
        end += 1
    if end == at:
        raise ValueError("image: its header is damaged")
    return int(data[at:end]), end + 1


def _png(data: bytes) -> Picture:
    header, palette, packed = b"", b"", bytearray()
    for kind, body in _chunks(data):
        if kind == b"IHDR":
            header = body
        elif kind == b"PLTE":
            palette = body
        elif kind == b"IDAT":
            packed += body
    if len(header) != 13:
        raise ValueError("image: no header")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    _checked(width, height)
    if depth != 8 or interlaced or colour not in _CHANNELS:
        raise ValueError("image: only 8 bit PNG without interlacing is read")
    channels = _CHANNELS[colour]
    raw = _unpack(bytes(packed), height * (width * channels + 1))
    rows = _unfilter(raw, width * channels, channels)
    if colour == 3:
        rows, channels = _look_up(rows, palette), 3
    return Picture("PNG", width, height, channels, _luma(rows, channels))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_PNG)
    while at + 12 <= len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body, check = data[at + 8 : at + 8 + length], data[at + 8 + length : at + 12 + length]
        if len(check) != 4 or zlib.crc32(kind + body) != int.from_bytes(check, "big"):
            raise ValueError("image: a part of it is damaged")
        yield kind, body
        at += 12 + length


def _unpack(packed: bytes, size: int) -> bytes:
    try:
        raw = zlib.decompressobj().decompress(packed, size)
    except zlib.error:
        raise ValueError("image: its pixels are damaged") from None
    if len(raw) < size:
        raise ValueError("image: it ends before its last pixel")
    return raw


def _unfilter(raw: bytes, stride: int, bpp: int) -> bytes:
    """Undo PNG's row filters (none, sub, up, average, Paeth)."""
    out, above = bytearray(), bytearray(stride)
    for at in range(0, len(raw), stride + 1):
        kind, row = raw[at], bytearray(raw[at + 1 : at + 1 + stride])
        if kind > 4:
            raise ValueError("image: a row has an unknown filter")
        for i in range(stride if kind else 0):
            left, corner = (row[i - bpp], above[i - bpp]) if i >= bpp else (0, 0)
            row[i] = (row[i] + _predicted(kind, left, above[i], corner)) & 255
        out += row
        above = row
    return bytes(out)


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    guess = left + up - corner
    # the first of equals wins, as PNG defines it
    return min((left, up, corner), key=lambda v: abs(guess - v))


def _look_up(indices: bytes, palette: bytes) -> bytes:
    if max(indices) * 3 + 3 > len(palette):
        raise ValueError("image: a pixel lies outside its palette")
    return b"".join(palette[i * 3 : i * 3 + 3] for i in indices)


def _luma(pixels: bytes, channels: int) -> bytes:
    if channels < 3:
        return pixels[::channels]
    red, green, blue = (pixels[c::channels] for c in range(3))
    # ITU-R BT.601 weights, in 1/1000
    return bytes(
        (299 * r + 587 * g + 114 * b) // 1000 for r, g, b in zip(red, green, blue, strict=True)
    )


def histogram(luma: bytes) -> list[float]:
    """Return the share of pixels in each of `BINS` equal steps of brightness, dark first."""
    step = 256 // BINS
    counts = [luma.count(value) for value in range(256)]
    return [round(sum(counts[b * step : (b + 1) * step]) / len(luma), 4) for b in range(BINS)]


def _inspect_tool(args: dict[str, Any], _: CallContext) -> Any:
    try:
        data = base64.b64decode(args["image"], validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("image: not base64") from None
    picture = decode(data)
    bars, mean = histogram(picture.luma), sum(picture.luma) / len(picture.luma)
    mood = "dark" if mean < 85 else "bright" if mean > 170 else "evenly lit"
    found = {
        "format": picture.format,
        "width": picture.width,
        "height": picture.height,
        "meanBrightness": round(mean, 1),
        "histogram": bars,
        "mood": mood,
    }
    shown = f"{picture.format} {picture.width}×{picture.height}, {mood}"
    return reply(found, show=f"{shown}\nmean brightness {mean:.0f} of 255")


app = AppServer(
    "com.example.photo",
    name="Photo",
    hardware_requirements=[
        {"type": "CAMERA", "level": "REQUIRED", "description": "It looks at what the wearer sees"},
    ],
)
app.register_tool(
    create_tool(
        "inspect",
        "Reads a picture (PNG, PGM, PPM as base64): format, size, brightness and its histogram.",
        params(["image"], image=string("base64", 1_000_000, least=8)),
        _inspect_tool,
        activation_phrases=["how bright is it"],
        category="media",
        side_effects="read_only",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
