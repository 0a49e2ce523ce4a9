"""`glassd lens`: what the lens shows now, as text or as a picture; with `--watch` again whenever it
changes. `glassd lens preview`: how a text would look.
"""

import json
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon import ask, client
from edge.commands.shared.extras import load
from edge.commands.shared.lens_frame import PLACE, save, show, tiles_of
from edge.runtime.errors import UserError

NEVER: Final = "never seen"
AWAY: Final = {
    "away": "the glasses are away; this is what they showed last",
    NEVER: "no glasses were ever connected",
}
CHANGES: Final = frozenset({"lens.acknowledged", "glasses.ready", "glasses.lost", "missed"})


def lens(args: Namespace, screen: Screen) -> int:
    if args.what:
        from edge.commands.lens_preview import show_preview  # noqa: PLC0415 - lays text out itself

        if args.watch:
            raise UserError("USAGE", "--watch and preview exclude each other", "leave one out")
        return show_preview(args, screen)
    if args.glasses:
        fix = "glassd lens preview TEXT --glasses MODEL"
        raise UserError("USAGE", "--glasses is for the preview of a text", fix)
    if args.watch:
        return _watch(args, screen)
    _look(args, screen, lines=False)
    return 0


def _watch(args: Namespace, screen: Screen) -> int:
    from edge.commands import lens_keys  # noqa: PLC0415 - a terminal's own modules

    look = partial(_look, args, screen, lines=True)
    if (simulator := lens_keys.simulator_of(args, screen)) is not None:
        return lens_keys.watch(_changes(args), screen, simulator, look)
    look()
    for _ in _changes(args):
        look()
    return 0


def _changes(args: Namespace) -> Iterator[object]:
    """Yield after each change of the lens. Raise `UserError` at the end of the daemon."""
    for _, _, data in client(args).events():
        if json.loads(data).get("event") in CHANGES:
            yield data


def _look(args: Namespace, screen: Screen, *, lines: bool) -> None:
    content = ask(args, "GET", "/v1/lens?exact=true")
    glasses = str(ask(args, "GET", "/v1/status").get("glasses", {}).get("state", ""))
    if glasses == NEVER and not args.watch:
        raise UserError("NO_GLASSES", AWAY[NEVER], "switch them on; see: glassd status")
    if args.png:
        _draw(args, content)
    tiles = tiles_of(content)
    if screen.as_json:
        shown = {key: value for key, value in content.items() if key != "drawn"}
        shown["tiles"] = [{key: tile[key] for key in PLACE} for tile in tiles]
        screen.json({**shown, "png": args.png} if args.png else shown, lines=lines)
        return
    if lines:
        screen.clear()
    words = [_text(line) for line in content.get("lines") or []]
    show(screen, words, tiles, dark=not content.get("page"))
    screen.line(_below(content))
    if glasses in AWAY:
        screen.line(AWAY[glasses])
    screen.flush()


def _text(line: Any) -> str:
    return plain(line.get("text", "") if isinstance(line, dict) else line)


def _below(lens: dict[str, Any]) -> str:
    pages = f"page {lens.get('page', 1)} of {lens['pages']}" if (lens.get("pages") or 0) > 1 else ""
    scene = f"scene {lens['scene']}" if lens.get("scene") else ""
    return plain(" · ".join(filter(None, (pages, scene))))


# ------------------------------------------------------------------ the picture


def _draw(args: Namespace, lens: dict[str, Any]) -> None:
    """Draw the acknowledged content with the simulator's font, at the size of these glasses."""
    drawing = load("firmware_bridge.sim.lens", "lens --png")
    known = ask(args, "GET", "/v1/status").get("glasses", {}).get("capabilities") or {}
    save(Path(args.png), drawing.draw_png(lens, known))
