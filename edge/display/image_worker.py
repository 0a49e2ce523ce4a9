"""Child process that makes pictures for a lens: it fits photographs, draws QR codes and text, and
turns photos of glasses into JPEG (the only importer of Pillow and segno in this package).

A question is a line of JSON; that of a picture is followed by the picture in base64:
`{do: "fit", width, height, bpp}` and `{do: "qr", text, side, bpp}` are answered with `{png}`
(base64, grey, in the form of `bitmap.read_packed` for 1, 2 and 4 bits) or `{problem}`; `{do:
"jpeg"}`, which an AVIF follows, with `{jpeg}` (base64) or `{problem}`; `{do: "set", paragraphs:
[{text, base}], width, height, bpp, fonts}` with `{rows: [[row of the first paragraph, …], …]}`. A
row has the fields of `typesetter.PixelRow`, its pixels in base64.

`serve` answers one question after another, in frames, until it is idle. A process is asked either
for foreign pictures or for text: what attacks a decoder never draws what the wearer decides on.
`main` answers one question on stdin, and ends.
"""

import base64
import binascii
import io
import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from edge.display.bitmap import BadImage, decode, fit, write_packed
from edge.runtime.stdio import serve_frames

if TYPE_CHECKING:
    from PIL import Image

    from edge.display.typesetting.typesetter import Typesetter

MAX_QUESTION: Final = 24 * 1024 * 1024
"""Bytes: a photograph of 16 MiB, which `glassd call` makes smaller before it sends it."""
MAX_SERVED: Final = 2 * 1024 * 1024
"""Bytes of a question to `serve`: a picture has at most `bitmap.MAX_BASE64`."""
MAX_PIXELS: Final = 24_000_000
"""A photograph of a good camera; its pixels take 72 MB while it is scaled."""
MAX_PNG: Final = 130_000
"""Bytes of a fitted picture: as base64, and with its envelope, it must fit one result (192 KiB)."""
MAX_JPEG: Final = 2 * 1024 * 1024
"""Bytes of a photo as JPEG: what the glasses could have sent."""
JPEG_QUALITY: Final = 85
QUIET: Final = 2
"""Modules of light around a QR code: the standard wants 4, readers accept 2, and a lens is low."""
LEAST_SCALE: Final = 2
"""Pixels of a module: below it no camera reads a code off a lens."""
_MEMORY: Final = 1 << 30
_CPU_S: Final = 15
"""Seconds a question may compute: should the daemon be gone, nobody else ends a stuck decoder."""
_SIDEWAYS: Final = (5, 6, 7, 8)
"""EXIF orientations in which width and height change places."""
_ORIENTATION: Final = 0x0112


class Unfit(Exception):
    """It cannot be drawn; the text says why."""


def fitted(image: bytes, width: int, height: int, bpp: int) -> bytes:
    """Scale down to fit, make grey, dither to the shades of the lens; with 8 bits a grey PNG of any
    form. Raises `Unfit`.
    """
    picture = _grey(image, width, height)
    while True:
        for dither in (True, False) if bpp < 8 else (True,):
            raw = _png(picture, bpp, dither=dither)
            if len(raw) <= MAX_PNG:
                return raw
        picture.thumbnail((picture.width * 3 // 4, picture.height * 3 // 4))


def _grey(image: bytes, width: int, height: int) -> "Image.Image":
    from PIL import Image, ImageOps  # noqa: PLC0415 - the extra may be missing: then an answer says so

    with _opened(image, "PNG", "JPEG") as picture:
        sideways = picture.getexif().get(_ORIENTATION) in _SIDEWAYS
        box = (height, width) if sideways else (width, height)
        share = min(1.0, box[0] / picture.width, box[1] / picture.height)
        # a JPEG is read at about twice the size that is needed, which takes less time
        picture.draft("L", (round(picture.width * share * 2), round(picture.height * share * 2)))
        grey = _in_grey(picture)
        grey.thumbnail(box, Image.Resampling.LANCZOS)
        return ImageOps.exif_transpose(grey)


def jpeg(image: bytes) -> bytes:
    """Return an AVIF as JPEG, upright and without what is beside the picture. Raises `Unfit`."""
    from PIL import ImageOps, features  # noqa: PLC0415 - as above

    if not features.check("avif"):
        raise Unfit("this Pillow reads no AVIF; that of 11.3 does")
    with _opened(image, "AVIF") as picture:
        upright = ImageOps.exif_transpose(picture).convert("RGB")
    while True:
        out = io.BytesIO()
        upright.save(out, "JPEG", quality=JPEG_QUALITY)
        if len(out.getvalue()) <= MAX_JPEG:
            return out.getvalue()
        upright.thumbnail((upright.width * 3 // 4, upright.height * 3 // 4))


@contextmanager
def _opened(image: bytes, *forms: str) -> "Iterator[Image.Image]":
    """Open a picture of one of these forms. Raises `Unfit`, also while it is read."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - as above

    try:
        picture = Image.open(io.BytesIO(image), formats=forms)
        if picture.width * picture.height > MAX_PIXELS:
            size = f"{picture.width} × {picture.height}"
            raise Unfit(f"the image has {size} pixels; at most {MAX_PIXELS} in all")
        yield picture
    except UnidentifiedImageError:
        words = "neither a PNG nor a JPEG" if len(forms) > 1 else f"no {forms[0]} that can be read"
        raise Unfit(f"the image is {words}") from None
    except (MemoryError, Image.DecompressionBombError):
        raise Unfit(f"the image is too large; it may have {MAX_PIXELS} pixels in all") from None
    except (OSError, ValueError, SyntaxError) as e:
        raise Unfit(f"the image is damaged: {str(e)[:100] or type(e).__name__}") from None


def _in_grey(picture: "Image.Image") -> "Image.Image":
    """Return it in grey. What is clear becomes dark: on a lens that is clear."""
    if picture.has_transparency_data:
        with_alpha = picture.convert("RGBA").convert("LA")
        return with_alpha.convert("La").getchannel(0)  # "a": multiplied by how opaque it is
    if picture.mode.startswith("I"):  # 16 bits, which Pillow would cut at 255
        picture = picture.convert("I").point(lambda value: value * (1 / 257))
    return picture.convert("L")


def _png(picture: "Image.Image", bpp: int, *, dither: bool) -> bytes:
    if bpp < 8:
        return write_packed(*picture.size, bpp, _packed(picture, bpp, dither=dither))
    out = io.BytesIO()
    picture.save(out, format="PNG")
    return out.getvalue()


def _packed(picture: "Image.Image", bpp: int, *, dither: bool) -> bytes:
    """Return the pixels of a grey picture in the shades of the lens, as in a `Tile`.

    Each pixel gets the shade below it, and one more where the dithering of what it is above that
    shade lights it: as good as dithering to a palette, and six times as fast.
    """
    from PIL import Image, ImageChops  # noqa: PLC0415 - as above

    top = (1 << bpp) - 1
    how = Image.Dither.FLOYDSTEINBERG if dither else Image.Dither.NONE
    if bpp == 1:
        return picture.convert("1", dither=how).tobytes()
    below = picture.point([value * top // 255 for value in range(256)])
    above = picture.point([value * top % 255 for value in range(256)])
    lit = above.convert("1", dither=how).convert("L").point([0] * 255 + [1])
    shades = ImageChops.add(below, lit)
    # of the modes of one byte only that of palettes can be packed
    as_palette = Image.frombytes("P", shades.size, shades.tobytes())
    return as_palette.tobytes("raw", f"P;{bpp}")


def _fitted_plainly(image: str, width: int, height: int, bpp: int) -> bytes:
    """Fit a PNG without the picture library. Raises `BadImage`."""
    tile = fit(decode(image), width, height, bpp)
    return write_packed(tile.width, tile.height, bpp, tile.pixels)


def code(text: str, side: int, bpp: int) -> bytes:
    """Draw a QR code of at most `side` pixels, lit where it is light. Raises `Unfit`."""
    import segno  # noqa: PLC0415 - as above

    try:
        made = segno.make(text, error="l", boost_error=False, micro=False)
    except segno.encoder.DataOverflowError:
        raise Unfit("the text is too long for a QR code") from None
    scale = side // made.symbol_size(scale=1, border=QUIET)[0]
    if scale < LEAST_SCALE:
        raise Unfit("the QR code has more detail than this lens")
    rows = [
        "".join(("1", "0")[dark] * bpp for dark in row)
        for row in made.matrix_iter(scale=scale, border=QUIET)
    ]
    width = len(rows[0])
    stride = (width + 7) // 8
    pixels = b"".join(int(row.ljust(stride * 8, "0"), 2).to_bytes(stride, "big") for row in rows)
    return write_packed(width // bpp, len(rows), bpp, pixels)


def draw_text(asked: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Draw paragraphs as rows. Raises `Unfit` if there are no fonts, ImportError."""
    fonts = _fonts(tuple(asked["fonts"]))
    if not fonts:
        raise Unfit("no Noto fonts are installed")
    setter = _typesetter(fonts, asked["height"], asked["bpp"])
    width = asked["width"]
    return [
        [
            {**row._asdict(), "pixels": base64.b64encode(row.pixels).decode()}
            for row in setter.set_paragraph(part["text"], width, base=part["base"])
        ]
        for part in asked["paragraphs"]
    ]


@lru_cache(maxsize=1)
def _fonts(folders: tuple[str, ...]) -> tuple[str, ...]:
    from edge.display.typesetting.fonts import find_fonts, font_folders  # noqa: PLC0415 - as above

    return tuple(find_fonts(font_folders(folders)))


@lru_cache(maxsize=2)
def _typesetter(fonts: tuple[str, ...], height: int, bpp: int) -> "Typesetter":
    from edge.display.typesetting import typesetter  # noqa: PLC0415 - as above

    return typesetter.Typesetter(fonts, height, bpp)


def answer(question: bytes) -> dict[str, Any]:
    """Carry out one question; any failure becomes a problem, so the parent gets an answer."""
    try:
        head, _, image = question.partition(b"\n")
        asked = json.loads(head)
        if asked["do"] == "set":
            return {"rows": draw_text(asked)}
        if asked["do"] == "qr":
            made = code(asked["text"], asked["side"], asked["bpp"])
        elif asked["do"] == "jpeg":
            return {"jpeg": base64.b64encode(jpeg(base64.b64decode(image, validate=True))).decode()}
        else:
            made = _picture(image, asked["width"], asked["height"], asked["bpp"])
    except (Unfit, BadImage) as e:
        return {"problem": str(e)}
    except ImportError as e:
        return {"problem": f"{e.name} is not installed", "absent": e.name}
    except MemoryError:
        return {"problem": "it takes too much memory"}
    except binascii.Error:
        return {"problem": "the image is not base64"}
    except Exception as e:  # noqa: BLE001 - a foreign library; its errors cross the pipe as texts
        return {"problem": f"the image could not be read ({type(e).__name__})"}
    return {"png": base64.b64encode(made).decode()}


def _picture(image: bytes, width: int, height: int, bpp: int) -> bytes:
    raw = base64.b64decode(image, validate=True)
    try:
        return fitted(raw, width, height, bpp)
    except ImportError as e:
        try:
            return _fitted_plainly(image.decode(), width, height, bpp)
        except BadImage:
            raise e from None


def main() -> None:
    """Answer one question, with limits: a hostile picture can harm only this process."""
    _limit()
    question = sys.stdin.buffer.read(MAX_QUESTION + 1)
    fits = len(question) <= MAX_QUESTION
    reply = answer(question) if fits else {"problem": "the question is too long"}
    sys.stdout.buffer.write(json.dumps(reply).encode())


def serve() -> None:
    """Answer until idle; the argument is for how many seconds."""
    serve_frames(_served, idle_s=float(sys.argv[1]), max_request=MAX_SERVED)


def _served(question: bytes) -> bytes:
    _limit()
    return json.dumps(answer(question)).encode()


def _limit() -> None:
    """Limit the memory of this process, and the CPU time from now on."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + _CPU_S, hard))


if __name__ == "__main__":
    serve()
