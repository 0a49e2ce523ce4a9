"""`glassd lens`: what the lens shows now, as text or as a picture; again and again with `--watch`."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from edge.verbs.extras import load
from edge.verbs.screen import CliError, Screen, plain
from edge.verbs.talk import ask, follow

NEVER: Final = "never seen"
AWAY: Final = {"away": "the glasses are away; this is what they showed last", NEVER: "no glasses were ever connected"}
CHANGES: Final = frozenset({"lens.acknowledged", "glasses.ready", "glasses.lost", "missed"})


def run(args: Namespace, screen: Screen) -> int:
    _look(args, screen, lines=args.watch)
    if args.watch:
        for _, _, data in follow(args):
            if json.loads(data).get("event") in CHANGES:
                _look(args, screen, lines=True)
    return 0


def _look(args: Namespace, screen: Screen, *, lines: bool) -> None:
    lens = ask(args, "GET", "/v1/lens")
    glasses = str(ask(args, "GET", "/v1/status").get("glasses", {}).get("state", ""))
    if glasses == NEVER and not args.watch:
        raise CliError("NO_GLASSES", "no glasses were ever connected", "switch them on; see: glassd status", exit_code=4)
    if args.png:
        _draw(args, lens)
    if screen.as_json:
        screen.json({**lens, "png": args.png} if args.png else lens, lines=lines)
        return
    if lines:
        screen.clear()
    for line in framed([_text(line) for line in lens.get("lines") or []]):
        screen.line(line)
    screen.line(_below(lens))
    if glasses in AWAY:
        screen.line(AWAY[glasses])
    screen.flush()


def _text(line: Any) -> str:
    return plain(line.get("text", "") if isinstance(line, dict) else line)


def framed(lines: list[str]) -> list[str]:
    """Put a frame around lines of text; no lines are a dark lens."""
    shown = lines or ["(dark)"]
    width = max(24, *(len(line) for line in shown))
    edge = "─" * (width + 2)
    return [f"╭{edge}╮", *(f"│ {line:<{width}} │" for line in shown), f"╰{edge}╯"]


def _below(lens: dict[str, Any]) -> str:
    pages = f"page {lens.get('page', 1)} of {lens['pages']}" if (lens.get("pages") or 0) > 1 else ""
    return plain(" · ".join(part for part in (pages, f"scene {lens['scene']}" if lens.get("scene") else "") if part))


# ------------------------------------------------------------------ the picture


def _draw(args: Namespace, lens: dict[str, Any]) -> None:
    """Draw the acknowledged lines with the mock's own font, on a display of these glasses' size."""
    drawing, messages = load("firmware_bridge.sim.lens", "lens --png"), load("firmware_bridge.messages", "lens --png")
    known = ask(args, "GET", "/v1/status").get("glasses", {}).get("capabilities") or {}
    width, height, rows = (_number(known, f"display.{key}", default) for key, default in _SIZE.items())
    picture = drawing.Lens(width, height, 1, rows)
    texts = [_text(line) for line in lens.get("lines") or []]
    if texts:
        shown = tuple(messages.TextLine(row, text) for row, text in enumerate(texts[:rows]))
        picture.show(messages.ShowPage(scene=str(lens.get("scene") or "lens"), page=1, pages=1, lines=shown))
    try:
        picture.png(Path(args.png))
    except OSError as e:
        raise CliError("CANNOT_WRITE", f"{args.png}: cannot be written: {e.strerror}", "choose another file") from None


_SIZE: Final = {"width": 576, "height": 136, "lines": 5}


def _number(known: dict[str, Any], key: str, default: int) -> int:
    value = known.get(key)
    found = value.get("value") if isinstance(value, dict) else value
    return found if isinstance(found, int) and 0 < found <= 4096 else default
