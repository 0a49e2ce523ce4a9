"""Writes what is generated in `docs/builtin-tools.md`: the table of the tools, from their schemas,
and the sample sentences.

Run: `python -m tools_cache.builder.guide FILE`.
"""

import argparse
import json
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
SAMPLES: Final = TOOLS.parent / "sample_sentences.json"
SENTENCES: Final = "## What can be said"
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


def sentences(samples: Mapping[str, Any]) -> list[str]:
    """Return the section of the sample sentences; `samples` as in `sample_sentences.json`."""
    lines = [
        SENTENCES,
        "",
        "Sample sentences of the everyday tools, each with the call it becomes.",
    ]
    for package, sample in samples.items():
        lines += ["", f"### `{package}`", "", "| sentence | call |", "|---|---|"]
        for each in sample["sentences"]:
            args = json.dumps(each["args"], ensure_ascii=False) if each["args"] else ""
            said = each["say"] + (f" ({each['language']})" if "language" in each else "")
            lines.append(f"| {said} | `{' '.join(filter(None, (each['call'], args)))}` |")
    return lines


def generated(text: str, tools: Path = TOOLS) -> str:
    """Return a document with its table and its sample sentences written again."""
    body, _, after = text.partition(SENTENCES + "\n")
    rest = after[after.index("\n## ") + 1 :] if "\n## " in after else ""
    samples = json.loads(SAMPLES.read_text(encoding="utf-8"))
    whole = with_table(body, tools).rstrip("\n")
    return "\n".join([whole, "", *sentences(samples), *(["", rest] if rest else [""])])


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
    write_atomic(file, generated(file.read_text(encoding="utf-8")).encode(), 0o644)


if __name__ == "__main__":
    main()
