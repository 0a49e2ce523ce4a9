"""`glassd lens preview`: how a text would look on a model of glasses; needs neither glasses nor the
daemon.
"""

import asyncio
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.extras import load
from edge.commands.shared.lens_frame import framed, save
from edge.display.preview import CannotPreview, Preview, preview
from edge.runtime.errors import UserError
from firmware_bridge.catalog import CATALOG
from firmware_bridge.models import UnknownModel
from tools_cache.nearest import did_you_mean

DEFAULT: Final = "mock:display"
MAX_TEXT: Final = 64 * 1024
"""Bytes of standard input; the lens gets 8,000 characters of a text at most."""


def show_preview(args: Namespace, screen: Screen) -> int:
    if not args.text:
        fix = "for example: glassd lens preview 'Hello' --glasses even_g1"
        raise UserError("USAGE", "the text is missing", fix)
    text = _stdin() if args.text == ["-"] else " ".join(args.text)
    if not text.strip():
        raise UserError("USAGE", "the text is empty", "give a text that can be seen")
    model = (args.glasses or DEFAULT).removeprefix("sim:")
    try:
        made = asyncio.run(preview(text, model))
    except UnknownModel:
        known = [found.key for found in CATALOG.models]
        near = did_you_mean(model, known) or f"one of: {', '.join(known)}"
        raise UserError("USAGE", f"--glasses: there is no model {model!r}", near) from None
    except CannotPreview as e:
        raise UserError("CANNOT_SHOW", f"{model}: {e}", "name other glasses: --glasses") from None
    pictures = _draw(args.png, made) if args.png else []
    if screen.as_json:
        return screen.result({**made.document, "png": pictures} if pictures else made.document)
    _show(screen, made.document)
    for path in pictures:
        screen.line(f"written: {path}")
    return 0


def _stdin() -> str:
    raw = sys.stdin.buffer.read(MAX_TEXT + 1)
    if len(raw) > MAX_TEXT:
        raise UserError("USAGE", f"stdin has more than {MAX_TEXT // 1024} KiB", "send less at once")
    return raw.decode("utf-8", "replace").rstrip("\n")


def _show(screen: Screen, document: Any) -> None:
    pages = document["pages"]
    for number, page in enumerate(pages, 1):
        facts = (
            f"page {number} of {len(pages)}",
            f"{page['pixels']} of {document['text_width']} pixels wide",
            f"{page['bytes']} bytes",
            f"{page['drawn']} drawn" if page["drawn"] else "",
            f"{page['seconds']:g} s",
        )
        screen.line(" · ".join(filter(None, facts)))
        for line in framed([plain(line) for line in page["lines"]]):
            screen.line(line)
    if document["missing"]:
        screen.line(f"missing   {plain(' '.join(document['missing']))}")
    if document["remark"]:
        screen.line(f"note      {plain(document['remark'])}")
    screen.line(f"reading   {document['seconds']:g} s on {plain(document['glasses'])}")


def _draw(file: str, made: Preview) -> list[str]:
    """Write each page as a picture: the first under this name, the others numbered; return the
    files.
    """
    drawing = load("firmware_bridge.sim.lens", "lens preview --png")
    first, paths = Path(file), []
    for number, page in enumerate(made.pages, 1):
        path = first if number == 1 else first.with_stem(f"{first.stem}-{number}")
        save(path, drawing.draw_png(page, made.capabilities))
        paths.append(str(path))
    return paths
