"""Compile the tool folders into `tool_registry.json`: lint all, print every failure, write only what is whole.

Deterministic: same folders, same bytes, on every machine (no time, no commit). Never imports a handler.
Run: `python -m tools_cache.build [--check]`.
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools_cache import lint, manifest
from tools_cache.names import parse
from tools_cache.registry import BUILD_KEY, HARDWARE_KEY
from tools_cache.tool import ENVELOPE_VERSION, Json, Source

TOOLS: Final = Path(__file__).parent / "tools"
ARTIFACT: Final = Path(__file__).parent / "tool_registry.json"
SUMMARY_KEY: Final = "io.glassd/summary"
_COPIED: Final = (
    "version", "description", "category", "sideEffects", "idempotent", "requiresConfirmation", "allowedModes",
    "latencyBudgetMs", "timeoutS", "queueable", "queue_ttl_s", "mentraExtensions", *lint.RUNNING,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """What a build found. `text` is the artifact, None when anything failed."""

    text: str | None
    tools: int
    version: str
    failures: tuple[str, ...]
    warnings: tuple[str, ...]


def compile_tools(tools: Path = TOOLS) -> Report:
    """Lint and compile every folder. Raises OSError when `tools` itself cannot be read."""
    failures: list[str] = []
    warnings: list[str] = []
    entries: list[tuple[str, dict[str, Json]]] = []
    for path in lint.folders(tools):
        folder, problems = lint.read(path)
        problems = problems if folder is None else lint.failures(folder)
        failures += [f"{path.name}: {problem}" for problem in problems]
        if folder is not None and not problems:
            warnings += [f"{path.name}: {warning}" for warning in lint.warnings(folder)]
            entries.append((parse(folder.schema["name"]).package, _entry(folder)))
    if failures:
        return Report(None, len(entries), "", tuple(failures), tuple(warnings))
    document = _document(_apps(entries))
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return Report(text, len(entries), document["version"], (), tuple(warnings))


def write(text: str, artifact: Path = ARTIFACT) -> None:
    """Replace the artifact in one step: a reader sees the old one or the new one. Raises OSError."""
    temporary = artifact.with_name(f".{artifact.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(artifact)
    finally:
        temporary.unlink(missing_ok=True)


def up_to_date(text: str, artifact: Path = ARTIFACT) -> bool:
    """Is the artifact on disk what the folders compile to?"""
    try:
        return artifact.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _entry(folder: lint.Folder) -> dict[str, Json]:
    """One tool as the registry lists it. Hashes of its text files make every change a new version (C-09)."""
    schema = folder.schema
    meta: dict[str, Json] = {
        SUMMARY_KEY: folder.summary,
        BUILD_KEY: {
            "toolId": schema["toolId"], "folder": folder.name,
            "docSha256": _sha256(folder.doc), "handlerSha256": _sha256(folder.handler),
        },
    }  # fmt: skip
    if schema.get("hardware"):
        meta[HARDWARE_KEY] = schema["hardware"]
    copied = {key: schema[key] for key in _COPIED if key in schema}
    return {
        "name": parse(schema["name"]).tool, "description": copied.pop("description"),
        "inputSchema": schema["parameters"], "source": schema.get("source", Source.LOCAL.value), **copied, "_meta": meta,
    }  # fmt: skip


def _apps(entries: list[tuple[str, dict[str, Json]]]) -> list[dict[str, Json]]:
    """Group by package, all sorted. What one of our tools needs stands on the tool (S0-70), so an app needs nothing."""
    packages: dict[str, list[dict[str, Json]]] = {}
    for package, entry in sorted(entries, key=lambda e: (e[0], e[1]["name"])):
        packages.setdefault(package, []).append(entry)
    return [
        {"packageName": package, "name": package.capitalize(), "hardwareRequirements": [], "tools": tools}
        for package, tools in packages.items()
    ]


def _document(apps: list[dict[str, Json]]) -> dict[str, Json]:
    sha256 = manifest.digest(apps)
    return {"version": f"1.0.{sha256[:8]}", "sha256": sha256, "envelopeVersion": ENVELOPE_VERSION, "apps": apps}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def documentation(raw: Mapping[str, Any], tools: Path = TOOLS) -> str | None:
    """Give the whole doc.md of one of our built tools, or None when it has none (S2-58)."""
    build = (raw.get("_meta") or {}).get(BUILD_KEY) or {}
    try:
        return (tools / str(build["folder"]) / "doc.md").read_text(encoding="utf-8")
    except (KeyError, OSError):
        return None


def main(argv: list[str] | None = None) -> int:
    """Build, or with `--check` compare. 0 done, 1 something failed (or the artifact is not up to date)."""
    parser = argparse.ArgumentParser(prog="python -m tools_cache.build", description="Compile the tool folders.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the artifact is not up to date")
    parser.add_argument("--tools", type=Path, default=TOOLS, help="folder of tool folders")
    parser.add_argument("--out", type=Path, default=ARTIFACT, help="the artifact")
    options = parser.parse_args(argv)
    report = compile_tools(options.tools)
    for warning in report.warnings:
        _say(f"warning: {warning}")
    for failure in report.failures:
        _say(f"error: {failure}")
    if report.text is None:
        return 1
    if options.check and not up_to_date(report.text, options.out):
        _say(f"error: {options.out.name} is not what the folders compile to: run python -m tools_cache.build")
        return 1
    if not options.check:
        write(report.text, options.out)
    _say(f"{report.tools} tools, version {report.version}, {len(report.warnings)} warnings")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
