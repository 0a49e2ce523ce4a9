"""`glassd lens`: what the lens shows now, as text or as a picture; with `--watch` again whenever it
changes.
"""

import json
from argparse import Namespace
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
    content = ask(args, "GET", "/v1/lens?exact=true" if args.png else "/v1/lens")
    glasses = str(ask(args, "GET", "/v1/status").get("glasses", {}).get("state", ""))
    if glasses == NEVER and not args.watch:
        raise UserError("NO_GLASSES", AWAY[NEVER], "switch them on; see: glassd status")
    if args.png:
        _draw(args, content)
    if screen.as_json:
        shown = {key: value for key, value in content.items() if key != "drawn"}
        screen.json({**shown, "png": args.png} if args.png else shown, lines=lines)
        return
    if lines:
        screen.clear()
    for line in framed([_text(line) for line in content.get("lines") or []]):
        screen.line(line)
    screen.line(_below(content))
    if glasses in AWAY:
        screen.line(AWAY[glasses])
    screen.flush()


def _text(line: Any) -> str:
    return plain(line.get("text", "") if isinstance(line, dict) else line)


def framed(lines: list[str]) -> list[str]:
    """Return lines of text in a frame; without lines the lens is shown as dark."""
    shown = lines or ["(dark)"]
    width = max(24, *(len(line) for line in shown))
    edge = "─" * (width + 2)
    return [f"╭{edge}╮", *(f"│ {line:<{width}} │" for line in shown), f"╰{edge}╯"]


def _below(lens: dict[str, Any]) -> str:
    pages = f"page {lens.get('page', 1)} of {lens['pages']}" if (lens.get("pages") or 0) > 1 else ""
    scene = f"scene {lens['scene']}" if lens.get("scene") else ""
    return plain(" · ".join(filter(None, (pages, scene))))


# ------------------------------------------------------------------ the picture


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
