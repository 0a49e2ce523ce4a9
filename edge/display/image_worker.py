"""Child process that makes pictures for a lens: it fits photographs, draws QR codes and text (the
only importer of Pillow and segno in this package).

`main` reads one JSON question from stdin: `{do: "fit", image, width, height, bpp}` or `{do: "qr",
text, side}`. It writes one answer to stdout: `{png}` (base64, grey, as many shades as the lens has)
or `{problem}`. Then it ends: a decoder that read a foreign picture draws nothing else.

`serve` answers one question after another, in frames, until it is idle: `{do: "set", paragraphs:
[{text, base}], width, height, bpp, fonts}` with `{rows: [[row of the first paragraph, …], …]}`. A
row has the fields of `typesetter.PixelRow`, its pixels in base64.
"""

import base64
import binascii
import io
import json
import resource
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from edge.runtime.stdio import serve_frames

if TYPE_CHECKING:
    from PIL import Image

    from edge.display.typesetting.typesetter import Typesetter

MAX_QUESTION: Final = 24 * 1024 * 1024
"""Bytes: a photograph of 16 MiB, which `glassd call` makes smaller before it sends it."""
MAX_TEXT: Final = 2 * 1024 * 1024
"""Bytes of a question about text."""
MAX_PIXELS: Final = 24_000_000
"""A photograph of a good camera; its pixels take 72 MB while it is scaled."""
MAX_PNG: Final = 130_000
"""Bytes of a fitted picture: as base64, and with its envelope, it must fit one result (192 KiB)."""
QUIET: Final = 2
"""Modules of light around a QR code: the standard wants 4, readers accept 2, and a lens is low."""
LEAST_SCALE: Final = 2
"""Pixels of a module: below it no camera reads a code off a lens."""
_MEMORY: Final = 1 << 30
_CPU_S: Final = 15


class Unfit(Exception):
    """It cannot be drawn; the text says why."""


def fitted(image: bytes, width: int, height: int, bpp: int) -> bytes:
    """Scale down to fit, make grey, dither to the shades there are. Raises `Unfit`."""
    picture = _grey(image, width, height)
    for dither in (True, False):
        raw = _png(_shaded(picture, bpp, dither=dither), bpp)
        if len(raw) <= MAX_PNG:
            return raw
    return fitted(_png(picture, 8), width * 3 // 4, height * 3 // 4, bpp)


def _grey(image: bytes, width: int, height: int) -> "Image.Image":
    from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415 - the extra may be missing: then an answer says so

    try:
        picture: Image.Image = Image.open(io.BytesIO(image), formats=("PNG", "JPEG"))
        if picture.width * picture.height > MAX_PIXELS:
            size = f"{picture.width} × {picture.height}"
            raise Unfit(f"the image has {size} pixels; at most {MAX_PIXELS} in all")
        picture.draft("L", (width * 2, height * 2))  # a JPEG is read at the size that is needed
        picture = ImageOps.exif_transpose(picture)
        lit = Image.new("RGBA", picture.size, (0, 0, 0, 255))
        # what is clear stays dark: on a lens that is clear
        lit.alpha_composite(picture.convert("RGBA"))
        grey = lit.convert("L")
    except UnidentifiedImageError:
        raise Unfit("the image is neither a PNG nor a JPEG") from None
    except (MemoryError, Image.DecompressionBombError):
        raise Unfit(f"the image is too large; it may have {MAX_PIXELS} pixels in all") from None
    except (OSError, ValueError, SyntaxError) as e:
        raise Unfit(f"the image is damaged: {str(e)[:100] or type(e).__name__}") from None
    grey.thumbnail((width, height), Image.Resampling.LANCZOS)
    return grey


def _shaded(picture: "Image.Image", bpp: int, *, dither: bool) -> "Image.Image":
    """Reduce to the shades of the lens, as grey values that its own rounding leaves unchanged."""
    from PIL import Image  # noqa: PLC0415 - as above

    shades = 1 << bpp
    palette = Image.new("P", (1, 1))
    palette.putpalette([round(at * 255 / (shades - 1)) for at in range(shades) for _ in "rgb"])
    how = Image.Dither.FLOYDSTEINBERG if dither else Image.Dither.NONE
    return picture.convert("RGB").quantize(colors=shades, palette=palette, dither=how).convert("L")


def _png(picture: "Image.Image", bpp: int) -> bytes:
    from PIL import Image  # noqa: PLC0415 - as above

    out = io.BytesIO()
    (picture.convert("1", dither=Image.Dither.NONE) if bpp == 1 else picture).save(
        out, format="PNG", optimize=True
    )
    return out.getvalue()


def code(text: str, side: int) -> bytes:
    """Draw a QR code of at most `side` pixels, lit where it is light. Raises `Unfit`."""
    import segno  # noqa: PLC0415 - as above

    try:
        made = segno.make(text, error="l", boost_error=False, micro=False)
    except segno.encoder.DataOverflowError:
        raise Unfit("the text is too long for a QR code") from None
    scale = side // made.symbol_size(scale=1, border=QUIET)[0]
    if scale < LEAST_SCALE:
        raise Unfit("the QR code has more detail than this lens")
    out = io.BytesIO()
    made.save(out, kind="png", scale=scale, border=QUIET)
    return out.getvalue()


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
        asked = json.loads(question)
        if asked["do"] == "set":
            return {"rows": draw_text(asked)}
        if asked["do"] == "qr":
            made = code(asked["text"], asked["side"])
        else:
            image = base64.b64decode(asked["image"], validate=True)
            made = fitted(image, asked["width"], asked["height"], asked["bpp"])
    except Unfit as e:
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


def main() -> None:
    """Answer one question, with limits: a hostile picture can harm only this process."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    question = sys.stdin.buffer.read(MAX_QUESTION + 1)
    fits = len(question) <= MAX_QUESTION
    reply = answer(question) if fits else {"problem": "the question is too long"}
    sys.stdout.buffer.write(json.dumps(reply).encode())


def serve() -> None:
    """Answer until idle; the argument is for how many seconds."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    serve_frames(
        lambda question: json.dumps(answer(question)).encode(),
        idle_s=float(sys.argv[1]),
        max_request=MAX_TEXT,
    )


if __name__ == "__main__":
    serve()
