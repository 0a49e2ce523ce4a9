"""What is on a lens, for people: its text in a frame, its pictures in braille, or all of it in a
file.
"""

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, columns_of
from edge.runtime.errors import UserError
from edge.runtime.files import write_atomic

PLACE: Final = ("x", "y", "width", "height")
_MOST: Final = 4096
"""Pixels of a side; more than any lens has."""
_FRAME: Final = 4
"""Columns that the frame takes."""


def framed(lines: list[str], *, dark: bool = False) -> list[str]:
    """Return lines of text in a frame."""
    shown = lines or (["(dark)"] if dark else [""])
    widths = [columns_of(line) for line in shown]
    width = max(24, *widths)
    edge = "─" * (width + 2)
    rows = [line + " " * (width - w) for line, w in zip(shown, widths, strict=True)]
    return [f"╭{edge}╮", *(f"│ {row} │" for row in rows), f"╰{edge}╯"]


def save(path: Path, picture: bytes) -> None:
    """Write a picture. Raise `UserError`."""
    try:
        write_atomic(path, picture, 0o666)
    except OSError as e:
        problem = f"{path}: cannot be written: {e.strerror}"
        raise UserError("CANNOT_WRITE", problem, "choose another file") from None


# ------------------------------------------------------------------ pictures


def tiles_of(lens: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pictures on the lens that are whole."""
    drawn = lens.get("drawn")
    sent = drawn.get("tiles") if isinstance(drawn, dict) else None
    return [tile for tile in sent or () if isinstance(tile, dict) and _is_whole(tile)]


def _is_whole(tile: dict[str, Any]) -> bool:
    numbers = [tile.get(key) for key in (*PLACE, "bpp")]
    return (
        all(isinstance(number, int) and 0 <= number <= _MOST for number in numbers)
        and tile["bpp"] in (1, 2, 4)
        and tile["width"] * tile["height"] > 0
        and isinstance(tile.get("pixels"), str)
    )


def show(screen: Screen, lines: list[str], tiles: list[dict[str, Any]], *, dark: bool) -> None:
    """Show what is on the lens: its text in a frame, its pictures in it as braille, or below it on
    a terminal that draws sixels.
    """
    sixels = bool(tiles) and screen.live and not screen.ascii and _draws_sixels()
    if lines or not sixels:
        for line in framed([*lines, *([] if sixels else _braille(screen, tiles))], dark=dark):
            screen.line(line)
    if sixels:
        from firmware_bridge.pixels import sixel  # noqa: PLC0415 - only for a picture

        screen.picture(sixel(*_canvas(tiles)))


@cache
def _draws_sixels() -> bool:
    from edge.commands.shared.terminal import draws_sixels  # noqa: PLC0415 - only for a picture

    return draws_sixels()


def _braille(screen: Screen, tiles: list[dict[str, Any]]) -> list[str]:
    """Return the pictures in braille, cut to the part of the lens that they cover."""
    if not tiles:
        return []
    if screen.ascii:
        return [f"(a picture of {tile['width']} x {tile['height']} pixels)" for tile in tiles]
    from firmware_bridge.pixels import braille  # noqa: PLC0415 - only for a picture

    return braille(*_canvas(tiles), max(10, (screen.width or 100) - _FRAME))


def _canvas(tiles: list[dict[str, Any]]) -> tuple[bytes, int]:
    """Return the part of the lens that the pictures cover, one byte a pixel, and its width."""
    import base64  # noqa: PLC0415 - only for a picture

    from firmware_bridge.pixels import unpack  # noqa: PLC0415

    left, top = (min(tile[key] for tile in tiles) for key in "xy")
    width = max(tile["x"] + tile["width"] for tile in tiles) - left
    height = max(tile["y"] + tile["height"] for tile in tiles) - top
    canvas = bytearray(width * height)
    for tile in tiles:
        with suppress(ValueError):  # not base64
            levels = unpack(base64.b64decode(tile["pixels"]), tile["width"], tile["bpp"])
            for row in range(min(tile["height"], len(levels) // tile["width"])):
                at = (tile["y"] - top + row) * width + tile["x"] - left
                pixels = levels[row * tile["width"] : (row + 1) * tile["width"]]
                canvas[at : at + len(pixels)] = pixels
    return bytes(canvas), width
