"""A lens drawn from what somebody tells of it: size and shades from a capability report, lines and
pictures as they were sent.

Refuses to trust what it is told: what does not fit the lens is left out. Knows no daemon and no
socket.
"""

import base64
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from firmware_bridge.messages import ShowPage, TextLine, Tile
from firmware_bridge.sim.lens import Lens

T = TypeVar("T")
_SIZE: Final = {"width": 576, "height": 136, "bpp": 1, "lines": 5}


def png(lens: Mapping[str, Any], capabilities: Mapping[str, Any]) -> bytes:
    """Draw `GET /v1/lens` (with `drawn` exactly, else its rows of text) on a display as
    `capabilities` tell of it.
    """
    width, height, bpp, rows = (
        _number(capabilities, f"display.{key}", default) for key, default in _SIZE.items()
    )
    picture = Lens(width, height, bpp if bpp in (1, 2, 4) else 1, rows)
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


def _read(told: Any, make: Callable[[Mapping[str, Any]], T]) -> Iterator[T]:
    for each in told if isinstance(told, list) else ():
        with suppress(KeyError, TypeError, ValueError):
            yield make(each)


def _line(told: Mapping[str, Any]) -> TextLine:
    return TextLine(int(told["row"]), _text(told["text"]), int(told["x"]))


def _tile(told: Mapping[str, Any]) -> Tile:
    x, y, width, height, bpp = (int(told[key]) for key in ("x", "y", "width", "height", "bpp"))
    return Tile(x, y, width, height, bpp, base64.b64decode(told["pixels"], validate=True))


def _text(told: Any) -> str:
    return " ".join(str(told).split("\n"))


def _number(known: Mapping[str, Any], key: str, default: int) -> int:
    value = known.get(key)
    found = value.get("value") if isinstance(value, Mapping) else value
    return found if isinstance(found, int) and 0 < found <= 4096 else default
