"""`glassd lens`: what the lens shows now, as text or as a picture; with `--watch` again whenever it
changes.
"""

import json
from argparse import Namespace
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon import ask, client
from edge.commands.shared.extras import load
from edge.runtime.errors import UserError
from edge.runtime.files import write_atomic

NEVER: Final = "never seen"
AWAY: Final = {
    "away": "the glasses are away; this is what they showed last",
    NEVER: "no glasses were ever connected",
}
CHANGES: Final = frozenset({"lens.acknowledged", "glasses.ready", "glasses.lost", "missed"})


def lens(args: Namespace, screen: Screen) -> int:
    _look(args, screen, lines=args.watch)
    if args.watch:
        for _, _, data in client(args).events():
            if json.loads(data).get("event") in CHANGES:
                _look(args, screen, lines=True)
    return 0


def _look(args: Namespace, screen: Screen, *, lines: bool) -> None:
    content = ask(args, "GET", "/v1/lens?exact=true")
    glasses = str(ask(args, "GET", "/v1/status").get("glasses", {}).get("state", ""))
    if glasses == NEVER and not args.watch:
        raise UserError("NO_GLASSES", AWAY[NEVER], "switch them on; see: glassd status")
    if args.png:
        _draw(args, content)
    tiles = _tiles(content)
    if screen.as_json:
        shown = {key: value for key, value in content.items() if key != "drawn"}
        shown["tiles"] = [{key: tile[key] for key in _PLACE} for tile in tiles]
        screen.json({**shown, "png": args.png} if args.png else shown, lines=lines)
        return
    if lines:
        screen.clear()
    words = [_text(line) for line in content.get("lines") or []]
    for line in framed([*words, *_picture(screen, tiles)], dark=not content.get("page")):
        screen.line(line)
    screen.line(_below(content))
    if glasses in AWAY:
        screen.line(AWAY[glasses])
    screen.flush()


def _text(line: Any) -> str:
    return plain(line.get("text", "") if isinstance(line, dict) else line)


def framed(lines: list[str], *, dark: bool = False) -> list[str]:
    """Return lines of text in a frame."""
    shown = lines or (["(dark)"] if dark else [""])
    width = max(24, *(len(line) for line in shown))
    edge = "─" * (width + 2)
    return [f"╭{edge}╮", *(f"│ {line:<{width}} │" for line in shown), f"╰{edge}╯"]


def _below(lens: dict[str, Any]) -> str:
    pages = f"page {lens.get('page', 1)} of {lens['pages']}" if (lens.get("pages") or 0) > 1 else ""
    scene = f"scene {lens['scene']}" if lens.get("scene") else ""
    return plain(" · ".join(filter(None, (pages, scene))))


# ------------------------------------------------------------------ pictures

_PLACE: Final = ("x", "y", "width", "height")
_MOST: Final = 4096
"""Pixels of a side; more than any lens has."""
_FRAME: Final = 4
"""Columns that the frame takes."""


def _tiles(lens: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pictures on the lens that are whole."""
    drawn = lens.get("drawn")
    sent = drawn.get("tiles") if isinstance(drawn, dict) else None
    return [tile for tile in sent or () if isinstance(tile, dict) and _is_whole(tile)]


def _is_whole(tile: dict[str, Any]) -> bool:
    numbers = [tile.get(key) for key in (*_PLACE, "bpp")]
    return (
        all(isinstance(number, int) and 0 <= number <= _MOST for number in numbers)
        and tile["bpp"] in (1, 2, 4)
        and tile["width"] * tile["height"] > 0
        and isinstance(tile.get("pixels"), str)
    )


def _picture(screen: Screen, tiles: list[dict[str, Any]]) -> list[str]:
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


def _draw(args: Namespace, lens: dict[str, Any]) -> None:
    """Draw the acknowledged content with the simulator's font, at the size of these glasses."""
    drawing = load("firmware_bridge.sim.lens", "lens --png")
    known = ask(args, "GET", "/v1/status").get("glasses", {}).get("capabilities") or {}
    picture = drawing.draw_png(lens, known)
    try:
        write_atomic(Path(args.png), picture, 0o666)
    except OSError as e:
        problem = f"{args.png}: cannot be written: {e.strerror}"
        raise UserError("CANNOT_WRITE", problem, "choose another file") from None
