"""Generates the metrics table of the mock's font: `python -m firmware_bridge.sim.make_metrics [--check]`.

Knows the font and the table's form; what text is laid out with it is not its business.
"""

import argparse
import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any, Final

from firmware_bridge import metrics
from firmware_bridge.sim.font import BASELINE, LINE_HEIGHT, NAME, LensFont

TABLE: Final = Path(metrics.__file__).with_name("metrics_lens22.json")
_RANGES: Final = (
    range(0x20, 0x3000),  # Latin, Greek, Cyrillic, punctuation, arrows, box drawing, symbols
    range(0xA640, 0xA7FF + 1),
    range(0xAB30, 0xAB6F + 1),
    range(0xFB00, 0xFB06 + 1),
    range(0xFFFD, 0xFFFD + 1),
)


def table() -> dict[str, Any]:
    """Measure every glyph the font has; glyphs of the same box share a row."""
    font = LensFont()
    rows: dict[metrics.Box, str] = {}
    for ch in map(chr, chain(*_RANGES)):
        box = font.box(ch)
        if box is not None:
            rows[box] = rows.get(box, "") + ch
    return {
        "font": NAME,
        "source": "Source Sans Pro Semibold, 22 px, 1 bit; glyphs: [advance, left, right, characters]",
        "line_height": LINE_HEIGHT,
        "baseline": BASELINE,
        "missing": list(font.missing),
        "glyphs": [[*box, characters] for box, characters in sorted(rows.items())],
    }


def text() -> str:
    """Render the table as it is committed: one row a line."""
    content = table()
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=True) for row in content.pop("glyphs"))
    head = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in content.items())
    return f'{{\n{head},\n "glyphs": [\n{rows}\n ]\n}}\n'


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Generate the lens font's metrics table.")
    parser.add_argument("--check", action="store_true", help="fail when the committed table is not what would be written")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    fresh = text()
    if not options.check:
        options.table.write_text(fresh, encoding="utf-8")
        return 0
    if options.table.is_file() and options.table.read_text(encoding="utf-8") == fresh:
        return 0
    sys.stderr.write(f"{options.table.name} is stale; run: python -m firmware_bridge.sim.make_metrics\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
