"""Generates the metrics tables of the simulator's fonts.

Usage: `python -m firmware_bridge.sim.make_metrics [--check]`.
"""

import argparse
import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any, Final

from firmware_bridge import metrics
from firmware_bridge.sim.font import BASELINE, LINE_HEIGHT, NAME, SIZES, LensFont

TABLE: Final = Path(metrics.__file__).with_name("metrics_lens22.json")
TABLES: Final = {NAME: TABLE, "g1-21": TABLE.with_name("metrics_g1_21.json")}
_RANGES: Final = (
    range(0x20, 0x3000),  # Latin, Greek, Cyrillic, punctuation, arrows, box drawing, symbols
    range(0xA640, 0xA7FF + 1),
    range(0xAB30, 0xAB6F + 1),
    range(0xFB00, 0xFB06 + 1),
    range(0xFFFD, 0xFFFD + 1),
)


def table(name: str = NAME) -> dict[str, Any]:
    """Measure every glyph of the font; glyphs with the same box share a row."""
    font = LensFont(SIZES[name])
    rows: dict[metrics.Box, str] = {}
    for ch in map(chr, chain(*_RANGES)):
        box = font.box(ch)
        if box is not None:
            rows[box] = rows.get(box, "") + ch
    return {
        "font": name,
        "source": (
            f"Source Sans Pro Semibold, {SIZES[name]} px, 1 bit; glyphs: "
            "[advance, left, right, characters]"
        ),
        "line_height": LINE_HEIGHT,
        "baseline": BASELINE,
        "missing": list(font.missing),
        "glyphs": [[*box, characters] for box, characters in sorted(rows.items())],
    }


def text(name: str = NAME) -> str:
    """Render the table as committed: one row per line."""
    content = table(name)
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=True) for row in content.pop("glyphs"))
    head = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in content.items())
    return f'{{\n{head},\n "glyphs": [\n{rows}\n ]\n}}\n'


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Generate the lens font's metrics table.")
    parser.add_argument(
        "--check",
        action="store_true",
        help="fail when the committed table is not what would be written",
    )
    parser.add_argument("--table", type=Path, help=f"only {NAME}, into this file")
    options = parser.parse_args(arguments)
    wanted = {NAME: options.table} if options.table else TABLES
    if not options.check:
        for name, path in wanted.items():
            path.write_text(text(name), encoding="utf-8")
        return 0
    stale = [
        path.name
        for name, path in wanted.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text(name)
    ]
    if stale:
        sys.stderr.write(
            f"stale: {', '.join(stale)}; run: python -m firmware_bridge.sim.make_metrics\n"
        )
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
