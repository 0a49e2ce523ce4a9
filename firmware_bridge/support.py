"""Generates the table of supported glasses from the catalogue.

Usage: `python -m firmware_bridge.support [--check] [README.md]`.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from firmware_bridge.capabilities import Scalar
from firmware_bridge.catalog import MODELS
from firmware_bridge.models import Model, Pairing

BEGIN: Final = "<!-- supported glasses: python -m firmware_bridge.support README.md -->"
END: Final = "<!-- end of supported glasses -->"
_HEAD: Final = (
    "Glasses",
    "Key",
    "Radios",
    "Lens",
    "Text",
    "Microphone",
    "Speaker",
    "Camera",
    "What the wearer can do",
    "Pairing",
)
_PAIRING: Final = {
    Pairing.NONE: "none",
    Pairing.JUST_WORKS: "without a code",
    Pairing.CODE: "with a code",
}
_UNKNOWN: Final = "what it announces"


def table() -> str:
    """Render all models, one row each, in the catalogue's order."""
    rows = [_HEAD, tuple("---" for _ in _HEAD), *map(_row, MODELS)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _row(model: Model) -> tuple[str, ...]:
    known = model.capabilities
    return (
        model.title,
        f"`{model.key}`",
        "two, one a side" if model.arms else "one",
        _lens(known),
        _text(known),
        _sound(known, "microphone"),
        _sound(known, "speaker"),
        _flag(known, "camera"),
        str(known.get("gestures", _UNKNOWN)).replace("_", " ").replace(",", ", ") or "–",
        _PAIRING[model.pairing],
    )


def _lens(known: Mapping[str, Scalar]) -> str:
    if known.get("display") is not True:
        return _flag(known, "display")
    bits = known["display.bpp"]
    picture = ", pictures" if known.get("display.bitmap") is True else ""
    return f"{known['display.width']} × {known['display.height']}, {bits} bit{picture}"


def _text(known: Mapping[str, Scalar]) -> str:
    if known.get("display") is not True:
        return _flag(known, "display")
    width = known.get("display.text_width", known["display.width"])
    return f"{known['display.lines']} lines of {width} px"


def _sound(known: Mapping[str, Scalar], what: str) -> str:
    if known.get(what) is not True:
        return _flag(known, what)
    return str(known[f"{what}.codecs"]).replace(",", ", ")


def _flag(known: Mapping[str, Scalar], what: str) -> str:
    value = known.get(what)
    return _UNKNOWN if value is None else "yes" if value else "–"


def placed(page: str) -> str:
    """Insert the table between its markers. Raises ValueError if they are missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN if not begin else END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the table of supported glasses.")
    parser.add_argument(
        "page",
        type=Path,
        nargs="?",
        help="a Markdown file with the table's marks; without, it is printed",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="fail when the page's table is not what would be written",
    )
    options = parser.parse_args(arguments)
    if options.page is None:
        sys.stdout.write(table() + "\n")
        return 0
    page = options.page.read_text(encoding="utf-8")
    fresh = placed(page)
    if not options.check:
        options.page.write_text(fresh, encoding="utf-8")
    elif fresh != page:
        sys.stderr.write(
            f"{options.page} is stale; run: python -m firmware_bridge.support {options.page}\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
