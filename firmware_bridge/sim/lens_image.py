"""Draws a lens as PNG from the control API's data: size and levels from a capability report, lines
and pictures as sent.

The input is untrusted: what does not fit the lens is left out.
"""

import base64
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from firmware_bridge.messages import ShowPage, TextLine, Tile
from firmware_bridge.sim.lens import SimLens

T = TypeVar("T")
_SIZE: Final = {"width": 576, "height": 136, "bpp": 1, "lines": 5}


def png(lens: Mapping[str, Any], capabilities: Mapping[str, Any]) -> bytes:
    """Draw the answer of `GET /v1/lens`: `drawn` exactly, else its rows of text."""
    width, height, bpp, rows = (
        _number(capabilities, f"display.{key}", default) for key, default in _SIZE.items()
    )
    picture = SimLens(width, height, bpp if bpp in (1, 2, 4) else 1, rows)
    lines, tiles = _drawn(lens)
    if lines or tiles:
        picture.show(
            ShowPage(scene=str(lens.get("scene") or "lens"), lines=lines[: rows * 2], tiles=tiles)
        )
    image = (
        picture.image
        if picture.bpp > 1
        else picture.image.point(lambda v: 255 if v else 0, mode="1")
    )
    out = io.BytesIO()
    image.save(out, format="PNG")
    return out.getvalue()


def _drawn(lens: Mapping[str, Any]) -> tuple[tuple[TextLine, ...], tuple[Tile, ...]]:
    drawn = lens.get("drawn")
    if not isinstance(drawn, Mapping):
        return tuple(
            TextLine(row, _text(line)) for row, line in enumerate((lens.get("lines") or ())[:32])
        ), ()
    return tuple(_read(drawn.get("lines"), _line)), tuple(_read(drawn.get("tiles"), _tile))


def _read(sent: Any, make: Callable[[Mapping[str, Any]], T]) -> Iterator[T]:
    for each in sent if isinstance(sent, list) else ():
        with suppress(KeyError, TypeError, ValueError):
            yield make(each)


def _line(sent: Mapping[str, Any]) -> TextLine:
    return TextLine(int(sent["row"]), _text(sent["text"]), int(sent["x"]))


def _tile(sent: Mapping[str, Any]) -> Tile:
    x, y, width, height, bpp = (int(sent[key]) for key in ("x", "y", "width", "height", "bpp"))
    return Tile(x, y, width, height, bpp, base64.b64decode(sent["pixels"], validate=True))


def _text(sent: Any) -> str:
    return " ".join(str(sent).split("\n"))


def _number(known: Mapping[str, Any], key: str, default: int) -> int:
    value = known.get(key)
    found = value.get("value") if isinstance(value, Mapping) else value
    return found if isinstance(found, int) and 0 < found <= 4096 else default
