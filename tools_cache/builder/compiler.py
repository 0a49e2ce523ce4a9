"""Compiles the tool folders into `tool_registry.json`, after linting all of them.

The same folders give the same bytes on every machine, except for the commit stamp. Handlers are
never imported. The daemon reads `apps`; `tools` and `prompts` are for models. Run: `python -m
tools_cache.build [--check]`.
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools_cache.api.tool import ENVELOPE_VERSION, Json, Mode, Source, ToolDefinition
from tools_cache.builder import config_form, lint, lint_texts, prompts
from tools_cache.builder.build_info import BuildInfo, stamp, stamped, unstamped
from tools_cache.builder.lint_findings import DOC, HANDLER, SCHEMA, SUMMARY, LintFinding, Placed
from tools_cache.errors import BadDefinition, BadToolName
from tools_cache.files import write_atomic
from tools_cache.names import aliases, parse
from tools_cache.providers.forms import Forms, forms
from tools_cache.providers.models import DescribedTool
from tools_cache.registry import documents, manifest
from tools_cache.registry.models import BUILD_KEY, HARDWARE_KEY
from tools_cache.registry.tool_docs import SUMMARY_KEY

TOOLS: Final = Path(__file__).parents[1] / "tools"
ARTIFACT: Final = Path(__file__).parents[1] / "tool_registry.json"
LONG_ALIAS: Final = 48
"""Hosts put a server's name before it, and take 64 characters together."""
_COPIED: Final = (
    *"version description category sideEffects idempotent requiresConfirmation".split(),
    *"allowedModes latencyBudgetMs timeoutS queueable queue_ttl_s openToCloud".split(),
    "mentraExtensions",
    *lint.RUNNING,
)


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a build. `text`: the artifact, None if anything failed; `forms`: by tool."""

    text: str | None
    tools: int
    version: str
    failures: tuple[Placed, ...]
    warnings: tuple[Placed, ...]
    forms: dict[str, Forms] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Built:
    """One valid folder: as a document, as read by the daemon, and as described to models."""

    folder: lint.Folder
    entry: dict[str, Json]
    definition: ToolDefinition
    forms: Forms

    @property
    def name(self) -> str:
        return self.definition.name


def compile_tools(tools: Path = TOOLS, texts: Path = prompts.TEXTS) -> Report:
    """Lint and compile every folder. Raises OSError if `tools` itself cannot be read."""
    failures: list[Placed] = []
    warnings: list[Placed] = []
    built: list[_Built] = []
    for path in lint.folders(tools):
        folder, findings = lint.read(path)
        findings = findings if folder is None else lint.failures(folder)
        if folder is not None and not findings:
            one = _build(folder)
            findings = [one] if isinstance(one, LintFinding) else []
            warnings += _placed(folder.name, lint.warnings(folder))
            built += [one] if isinstance(one, _Built) else []
        failures += _placed(path.name, findings)
    failures += _together(built, {placed.folder.replace("-", "_") for placed in failures}) + (
        _prompts(texts, built) + _dependencies(built) + _undos(built) if not failures else []
    )
    built.sort(key=lambda b: b.name)
    if failures:
        return Report(None, len(built), "", tuple(failures), tuple(warnings))
    warnings += _long_aliases(built)
    document = _document(built)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return Report(
        text, len(built), document["version"], (), tuple(warnings), {b.name: b.forms for b in built}
    )


def names(paths: Iterable[Path]) -> frozenset[str]:
    """Return the names of the tools in these folders; a schema without a name is skipped."""
    read = (lint.read(path)[0] for path in paths)
    return frozenset(str(folder.schema.get("name", "")) for folder in read if folder is not None)


def compile_folder(
    path: Path, known: Collection[str]
) -> tuple[ToolDefinition | None, list[LintFinding]]:
    """Lint and compile one tool alone; return the definition, or what is wrong.

    Its texts may refer to the `known` tools. The definition records the folder's path, because it
    is not among the installation's tools.
    """
    folder, findings = lint.read(path)
    findings = findings if folder is None else lint.failures(folder)
    if folder is None or findings:
        return None, findings
    one = _build(folder, at=str(path.absolute()))
    if isinstance(one, LintFinding):
        return None, [one]
    texts = {
        SCHEMA: json.dumps(folder.schema, ensure_ascii=False),
        SUMMARY: folder.summary,
        DOC: folder.doc,
    }
    findings = [f for file, text in texts.items() for f in _unknown(file, text, known)]
    others = _dependencies([one], known) + _undos([one])
    findings += [placed.finding for placed in others]
    return (None, findings) if findings else (one.definition, [])


def write(text: str, artifact: Path = ARTIFACT, *, made: BuildInfo | None = None) -> None:
    """Replace the artifact atomically. Raises OSError."""
    write_atomic(artifact, (text if made is None else stamped(text, made)).encode(), 0o666)


def up_to_date(text: str, artifact: Path = ARTIFACT) -> bool:
    """Return whether the artifact on disk is up to date, ignoring its commit stamp."""
    try:
        return unstamped(artifact.read_text(encoding="utf-8")) == text
    except (OSError, UnicodeDecodeError):
        return False


# ------------------------------------------------------------------ one tool


def _build(folder: lint.Folder, *, at: str = "") -> _Built | LintFinding:
    """Create a tool's document and load it as the daemon will. `at`: path of an owner's tool."""
    entry = _entry(folder)
    if at:
        entry["_meta"][BUILD_KEY]["at"] = at
    package = parse(folder.schema["name"]).package
    made = forms(DescribedTool.of(package, entry))
    entry["_meta"][BUILD_KEY]["formsSha256"] = hashlib.sha256(
        manifest.canonical(made.to_json())
    ).hexdigest()
    try:
        definition = manifest.definition(package, entry, source=Source(entry["source"]))
    except (BadDefinition, BadToolName) as e:
        return LintFinding("loadable", SCHEMA, str(e), str(e).partition(":")[0])
    return _Built(folder, entry, definition, made)


def _entry(folder: lint.Folder) -> dict[str, Json]:
    """Return one tool as listed in the registry, with hashes of its files."""
    schema = folder.schema
    meta: dict[str, Json] = {
        SUMMARY_KEY: folder.summary,
        BUILD_KEY: {
            "toolId": schema["toolId"],
            "folder": folder.name,
            "docSha256": _sha256(folder.doc),
            "handlerSha256": _sha256(folder.handler),
        },
    }
    if folder.config:
        meta[BUILD_KEY]["configSha256"] = _sha256(folder.config)
        meta[BUILD_KEY] |= config_form.build_notes(folder.config)
    if schema.get("hardware"):
        meta[HARDWARE_KEY] = schema["hardware"]
    copied = {key: schema[key] for key in _COPIED if key in schema}
    return {
        "name": parse(schema["name"]).tool,
        "description": copied.pop("description"),
        "inputSchema": schema["parameters"],
        "source": schema.get("source", Source.LOCAL.value),
        **copied,
        "_meta": meta,
    }


def _for_models(built: _Built) -> dict[str, Json]:
    """Return a tool as described to models, with the place of its documentation."""
    folder = built.folder.name
    return {
        "name": built.name,
        "toolId": built.folder.schema["toolId"],
        "encodedName": DescribedTool.of(*_place(built)).alias,
        "summary": built.folder.summary,
        "documentation": f"{folder}/{DOC}",
        "handlerPath": f"{folder}/{HANDLER}" if built.folder.handler else None,
        **built.forms.to_json(),
    }


def _place(built: _Built) -> tuple[str, dict[str, Json]]:
    return parse(built.name).package, built.entry


# ------------------------------------------------------------------ all of them


def _document(built: list[_Built]) -> dict[str, Json]:
    apps = _apps(built)
    sha256 = manifest.digest(apps)
    return {
        "version": f"1.0.{sha256[:8]}",
        "sha256": sha256,
        "gitCommit": None,
        "buildTimestamp": None,
        "envelopeVersion": ENVELOPE_VERSION,
        "apps": apps,
        "tools": [_for_models(b) for b in built],
        "prompts": {
            mode.value: prompts.prompt(
                [b.definition for b in built if mode in b.definition.allowed_modes], mode
            )
            for mode in Mode
        },
    }


def _apps(built: list[_Built]) -> list[dict[str, Json]]:
    """Group by package, sorted. Hardware needs of our tools are on the tools, so apps have none."""
    packages: dict[str, list[dict[str, Json]]] = {}
    for one in sorted(built, key=lambda b: parse(b.name)):
        packages.setdefault(parse(one.name).package, []).append(one.entry)
    return [
        {"packageName": p, "name": p.capitalize(), "hardwareRequirements": [], "tools": tools}
        for p, tools in packages.items()
    ]


def _together(built: list[_Built], broken: Collection[str]) -> list[Placed]:
    """Check what involves several folders: no two define the same tool, and texts refer to existing
    tools.

    The tool of a `broken` folder counts as existing, so that its mistake is reported only once.
    """
    first: dict[str, str] = {}
    failures: list[Placed] = []
    for one in built:
        other = first.setdefault(one.name, one.folder.name)
        if other != one.folder.name:
            finding = LintFinding(
                "twice", SCHEMA, f"name: {one.name} is made by the folder {other} already", "name"
            )
            failures.append(Placed(one.folder.name, finding))
    for one in built:
        texts = {
            SCHEMA: json.dumps(one.folder.schema, ensure_ascii=False),
            SUMMARY: one.folder.summary,
            DOC: one.folder.doc,
        }
        for file, text in texts.items():
            unknown = _unknown(file, text, first)
            failures += _placed(
                one.folder.name, [f for f in unknown if f.field.replace(":", "_") not in broken]
            )
    return failures


def _dependencies(built: list[_Built], others: Collection[str] = ()) -> list[Placed]:
    """Check that dependencies exist, as they are enabled together, and are not the tool itself."""
    known = {*others, *(one.name for one in built)}
    failures: list[Placed] = []
    for one in built:
        for name in one.definition.depends_on:
            if name == one.name or name not in known:
                what = "is this tool itself" if name == one.name else "is no tool here"
                text = f"dependsOn: {name} {what}"
                finding = LintFinding("depends-on", SCHEMA, text, "dependsOn")
                failures.append(Placed(one.folder.name, finding))
    return failures


def _undos(built: list[_Built]) -> list[Placed]:
    """Check that the arguments that `wearer` fills in, and those of its `undo`, are declared. That
    the tool exists is checked with all names in the texts.
    """
    by_name = {one.name: one.definition for one in built}
    failures: list[Placed] = []
    for one in built:
        wearer = one.definition.wearer
        texts = [wearer.later, *(wearer.undo.args.values() if wearer.undo else ())]
        found = [
            f"{{{{input.{name}}}}}: the tool has no such argument"
            for name in documents.inputs(texts)
            if name not in one.definition.input_schema.get("properties", {})
        ]
        if wearer.undo is not None and wearer.undo.tool in by_name:
            taken = by_name[wearer.undo.tool].input_schema.get("properties", {})
            keys = wearer.undo.args
            found += [
                f"undo: {wearer.undo.tool} has no argument {k}" for k in keys if k not in taken
            ]
        at = "mentraExtensions.wearer"
        failures += _placed(
            one.folder.name, (LintFinding("wearer", SCHEMA, f"{at}.{text}", at) for text in found)
        )
    return failures


def _prompts(texts: Path, built: list[_Built]) -> list[Placed]:
    """Check the agent loop's texts: every placeholder is known, every named tool exists."""
    known = [one.name for one in built]
    failures: list[Placed] = []
    for mode in Mode:
        file, text = f"{mode.value}.md", (texts / f"{mode.value}.md").read_text(encoding="utf-8")
        places = [
            LintFinding("reference", file, f"{{{place}}}: nothing fills it", place)
            for place in prompts.unknown_places(text)
        ]
        failures += _placed(texts.name, [*places, *_unknown(file, text, known)])
    return failures


def _unknown(file: str, text: str, known: Iterable[str]) -> list[LintFinding]:
    names = lint_texts.references(text, frozenset(known))
    return [
        LintFinding("reference", file, f"names {name}, which is no tool", name) for name in names
    ]


def _long_aliases(built: list[_Built]) -> list[Placed]:
    """Warn about aliases that are too long for some hosts. Raises `BadToolName` for equal ones."""
    alias_of = {name: alias for alias, name in aliases(b.name for b in built).items()}
    text = f"name: models know it as {{}}, more than {LONG_ALIAS} characters"
    return [
        Placed(
            b.folder.name, LintFinding("alias-long", SCHEMA, text.format(alias_of[b.name]), "name")
        )
        for b in built
        if len(alias_of[b.name]) > LONG_ALIAS
    ]


def _placed(folder: str, findings: Iterable[LintFinding]) -> list[Placed]:
    return [Placed(folder, finding) for finding in findings]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# ------------------------------------------------------------------ command line


def main(argv: list[str] | None = None) -> int:
    """Build, or with `--check` compare; return 1 if something failed or is not up to date."""
    parser = argparse.ArgumentParser(
        prog="python -m tools_cache.build", description="Compile the tool folders."
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; fail when the artifact is not up to date",
    )
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
        _say(
            f"error: {options.out.name} is not what the folders compile "
            "to: run python -m tools_cache.build"
        )
        return 1
    if not options.check:
        write(report.text, options.out, made=stamp(options.tools, os.environ))
    _say(f"{report.tools} tools, version {report.version}, {len(report.warnings)} warnings")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
