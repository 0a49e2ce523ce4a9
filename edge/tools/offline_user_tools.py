"""Reads the owner's tool files for `glassd tools` while no daemon runs.

`glassd doctor` reports what is wrong with them. Loaded only if there is such a folder.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

MAX_FILE: Final = 64 * 1024
MAX_FILES: Final = 200
Row = dict[str, Any]


def documents(folders: Iterable[Path]) -> Iterator[tuple[str, Row]]:
    """Yield (package, tool as listed in a registry) for everything that looks like a tool."""
    for folder in folders:
        try:
            files = sorted(
                p for p in folder.iterdir() if p.suffix in {".toml", ".json"} and p.is_file()
            )[:MAX_FILES]
        except OSError:
            continue
        for file in files:
            document = _document(file)
            listed = document.get("tools", [document])
            for tool in listed if isinstance(listed, list) else ():
                if (found := _tool(tool)) is not None:
                    yield found


def written(packages: Iterable[Path]) -> Iterator[tuple[str, Row]]:
    """Yield the same for the owner's Python tools; only their schemas are read, nothing is run."""
    for package in packages:
        try:
            files = sorted(package.glob("*/schema.json"))[:MAX_FILES]
        except OSError:
            continue
        for file in files:
            schema = _document(file)
            found = _tool({key: value for key, value in schema.items() if key != "execution"})
            if found is not None:
                arguments = schema.get("parameters") or {}
                effects = schema.get("sideEffects")
                yield found[0], {**found[1], "sideEffects": effects, "inputSchema": arguments}


def _document(file: Path) -> Row:
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_FILE)
        found = (
            json.loads(raw) if file.suffix == ".json" else tomllib.loads(raw.decode("utf-8-sig"))
        )
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _tool(tool: Any) -> tuple[str, Row] | None:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    package, _, name = tool["name"].partition(":")
    if not package or not name:
        return None
    execution = tool.get("execution")
    reads = isinstance(execution, dict) and execution.get("method") == "GET"
    return package, {
        "sideEffects": "read_only" if reads else "writes",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        **{key: value for key, value in tool.items() if key != "execution"},
        "name": name,
        "source": "local",
        "mentraExtensions": {"activationPhrases": tool.get("activationPhrases", [])},
    }
