"""Generates the tables of supported glasses from the catalogue: what they can do, and what that was
tried with.

Usage: `python -m firmware_bridge.support [--check] [docs/supported-glasses.md]`.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from firmware_bridge.capabilities import Scalar
from firmware_bridge.catalog import supported
from firmware_bridge.models import Feature, Model, Pairing

BEGIN: Final = (
    "<!-- supported glasses: python -m firmware_bridge.support docs/supported-glasses.md -->"
)
END: Final = "<!-- end of supported glasses -->"
WITH: Final = "What each was tried with:"
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
    return _table(_HEAD, map(_row, supported()))


def proofs() -> str:
    """Render what each feature of every product was tried with."""
    products = [model for model in supported() if model.simulator]
    return _table(("Glasses", *Feature), map(_proof_row, products))


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    rows = [head, tuple("---" for _ in head), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _proof_row(model: Model) -> list[str]:
    tried: dict[Feature, list[str]] = {}
    for proof in model.proofs:
        tried.setdefault(proof.feature, []).append(proof.tried_with)
    return [model.title, *(_tried(model, feature, tried) for feature in Feature)]


def _tried(model: Model, feature: Feature, tried: Mapping[Feature, list[str]]) -> str:
    if not _has(model.capabilities, feature):
        return "–"
    return ", ".join(["simulator", *tried.get(feature, ())])


def _has(known: Mapping[str, Scalar], feature: Feature) -> bool:
    match feature:
        case Feature.TEXT:
            return known.get("display") is True
        case Feature.PICTURES:
            return known.get("display.bitmap") is True
        case Feature.MICROPHONE | Feature.SPEAKER:
            return known.get(feature.value) is True
        case Feature.PHOTOS:
            return known.get("camera") is True
        case Feature.GESTURES:
            return bool(known.get("gestures"))
        case Feature.BATTERY:
            return True


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
    """Insert the tables between their markers. Raises ValueError if they are missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN if not begin else END}")
    return f"{before}{BEGIN}\n{table()}\n\n{WITH}\n\n{proofs()}\n{END}{after}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the tables of supported glasses.")
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
