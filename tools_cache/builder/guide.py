"""Writes the table of built-in tools into `docs/builtin-tools.md`, from the tools' schemas.

Run: `python -m tools_cache.builder.guide FILE`.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tools_cache.builder import config_form, lint
from tools_cache.builder.compiler import TOOLS
from tools_cache.files import write_atomic

HEAD: Final = (
    "| tool | mode | effect | asks first | budget | what it does |",
    "|---|---|---|---|---|---|",
)
EFFECTS: Final = {"none": "–", "read_only": "reads", "writes": "writes"}
ASKED: Final = {"never": "–", "policy": "as you set it", "always": "always"}
OFF: Final = "off at first"
UNSET: Final = "needs settings"


def row(schema: Mapping[str, Any], config: str = "") -> str:
    """Return the line of one tool; `config` is the text of its `config.py`, if it has one."""
    notes = config_form.build_notes(config) if config else {}
    state = UNSET if config_form.NEEDED in notes else OFF if notes else ""
    name = f"`{schema['name']}`" + (f" ({state})" if state else "")
    return (
        f"| {name} | {', '.join(schema['allowedModes'])} | {EFFECTS[schema['sideEffects']]} | "
        f"{ASKED[schema['requiresConfirmation']]} | {schema['latencyBudgetMs']} ms | "
        f"{schema['description']} |"
    )


def with_table(text: str, tools: Path = TOOLS) -> str:
    """Return a document with its table of tools written again."""
    lines, rows = text.splitlines(), []
    for path in lint.folders(tools):
        folder, _ = lint.read(path)
        if folder is not None:
            rows.append(row(folder.schema, folder.config))
    start = lines.index(HEAD[0])
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith("|"))
    return "\n".join([*lines[:start], *HEAD, *sorted(rows), *lines[end:]]) + "\n"


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Writes the table of built-in tools.")
    parser.add_argument("file", type=Path)
    file = parser.parse_args(argv).file
    write_atomic(file, with_table(file.read_text(encoding="utf-8")).encode(), 0o644)


if __name__ == "__main__":
    main()
