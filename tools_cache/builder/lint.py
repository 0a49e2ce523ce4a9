"""Checks a tool folder: its files and policy fields. Never imports a handler, never writes.

`lint_parameters` and `lint_texts` check the rest. Tools from elsewhere need not follow these rules.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from tools_cache.api.tool import ExecutionType, Mode, SideEffects, Source
from tools_cache.builder import config_form, lint_handler, lint_parameters, lint_texts
from tools_cache.builder.lint_findings import DOC, HANDLER, SCHEMA, SUMMARY, LintFinding
from tools_cache.errors import BadDefinition, BadToolName
from tools_cache.names import check_local_name, parse
from tools_cache.registry import documents
from tools_cache.registry.manifest import definition, problem_of

REQUIRED: Final = tuple(
    "toolId name version description category sideEffects idempotent requiresConfirmation"
    " allowedModes latencyBudgetMs parameters".split()
)
RUNNING: Final = tuple(
    "executionType execution pendingTtlS cacheTtlS rateLimit availableWhen dependsOn".split()
)
OPTIONAL: Final = (
    *"unasked source hardware timeoutS queueable queue_ttl_s openToCloud mentraExtensions".split(),
    *RUNNING,
)
CATEGORIES: Final = ("retrieval", "action", "utility")
CONFIRMATIONS: Final = ("never", "policy", "always")
HERE: Final = (Source.LOCAL.value, Source.GLASSES.value)
FILES: Final = (SCHEMA, SUMMARY, DOC, HANDLER)
SECTIONS: Final = lint_texts.SECTIONS
MAX_DESCRIPTION: Final = 1024
"""Characters that every model provider accepts; longer texts belong into doc.md."""


@dataclass(frozen=True, slots=True)
class Folder:
    """One tool as written: its folder's name and texts; a `space` tool has no handler."""

    name: str
    schema: Mapping[str, Any]
    summary: str
    doc: str
    handler: str
    config: str = ""


def folders(tools: Path) -> list[Path]:
    """Return the tool folders by name, without those starting with a dot or underscore."""
    return sorted(p for p in tools.iterdir() if p.is_dir() and not p.name.startswith((".", "_")))


def read(folder: Path) -> tuple[Folder | None, list[LintFinding]]:
    """Read one folder; return (folder, []) or (None, what is missing or unreadable)."""
    texts: dict[str, str] = {}
    found = []
    for file in (*FILES, config_form.FILE):
        try:
            texts[file] = (folder / file).read_text(encoding="utf-8")
        except FileNotFoundError:
            if file in FILES:
                found.append(LintFinding("file-missing", file, f"Missing required file: {file}"))
        except (OSError, UnicodeDecodeError) as e:
            found.append(LintFinding("file-unreadable", file, f"cannot be read: {e}"))
    try:
        schema = json.loads(texts.get(SCHEMA, "{}"))
    except (ValueError, RecursionError) as e:
        return None, [*found, LintFinding("not-json", SCHEMA, f"is not JSON: {e}")]
    if not isinstance(schema, dict):
        return None, [*found, LintFinding("not-object", SCHEMA, "must be an object")]
    if _asks_the_wearer(schema) and not (folder / HANDLER).exists():
        texts[HANDLER] = ""
        found = [f for f in found if f.file != HANDLER]
    if found:
        return None, found
    config = texts.get(config_form.FILE, "")
    return Folder(
        folder.name, schema, texts[SUMMARY].strip(), texts[DOC], texts[HANDLER], config
    ), []


def failures(folder: Folder) -> list[LintFinding]:
    """Return everything that is wrong with a folder; empty if it may be built."""
    beside = [*lint_texts.summary(folder.summary), *lint_texts.doc(folder.doc), *_handler(folder)]
    beside += config_form.read(folder.config)[1] if folder.config else []
    if missing := [f for f in REQUIRED if f not in folder.schema]:
        found = [_schema("field-missing", f, f"Missing required field: {f}") for f in missing]
        return [*found, *beside]
    unknown = sorted(set(folder.schema) - {*REQUIRED, *OPTIONAL})
    found = [_schema("field-unknown", f, f"Unknown field: {f}") for f in unknown]
    checks = (_names, _words, _modes, _flags, _texts, _category, _unasked, _numbers, _running)
    for check in (*checks, _hardware, _configured):
        found += check(folder)
    return [*found, *lint_parameters.findings(folder.schema["parameters"]), *beside]


def warnings(folder: Folder) -> list[LintFinding]:
    """Return warnings about a valid folder."""
    s = folder.schema
    text = (
        "requiresConfirmation: action that writes asks for no "
        'confirmation; if that is right, say why in "unasked"'
    )
    warned = _writes_unasked(s) and s["category"] == "action" and "unasked" not in s
    return [
        *([_schema("unconfirmed", "requiresConfirmation", text)] if warned else []),
        *lint_parameters.warnings(s["parameters"]),
    ]


def _schema(rule: str, field: str, text: str) -> LintFinding:
    return LintFinding(rule, SCHEMA, text, field)


def _names(folder: Folder) -> Iterator[LintFinding]:
    tool_id, name = folder.schema["toolId"], folder.schema["name"]
    if tool_id != (expected := folder.name.replace("-", "_")):
        text = (
            f'toolId "{tool_id}" doesn\'t match directory "{folder.name}" (expected "{expected}")'
        )
        yield _schema("tool-id", "toolId", text)
    if not isinstance(name, str):
        yield _schema("name", "name", "name: must be text")
        return
    try:
        check_local_name(parse(name).tool)
    except BadToolName as e:
        yield _schema("name", "name", f"name: {e}")
    if name.replace(":", "_") != tool_id:
        text = f'name "{name}" doesn\'t match toolId "{tool_id}" (":" reads "_")'
        yield _schema("name", "name", text)


def _words(folder: Folder) -> Iterator[LintFinding]:
    s = {"source": Source.LOCAL, **folder.schema}
    for rule, field, allowed in (
        ("category", "category", CATEGORIES),
        ("side-effects", "sideEffects", tuple(SideEffects)),
        ("confirmation", "requiresConfirmation", CONFIRMATIONS),
        ("source", "source", HERE),
    ):
        if s[field] not in allowed:
            text = f"Invalid {field}: {s[field]} (must be one of: {', '.join(allowed)})"
            yield _schema(rule, field, text)


def _modes(folder: Folder) -> Iterator[LintFinding]:
    modes = folder.schema["allowedModes"]
    if not isinstance(modes, list) or not modes or any(m not in tuple(Mode) for m in modes):
        text = f"Invalid allowedModes: {modes} (must be a non-empty list of: {', '.join(Mode)})"
        yield _schema("modes", "allowedModes", text)


def _flags(folder: Folder) -> Iterator[LintFinding]:
    for field in ("idempotent", "queueable", "openToCloud"):
        if not isinstance(folder.schema.get(field, False), bool):
            yield _schema("flag", field, f"{field}: must be true or false")


def _texts(folder: Folder) -> Iterator[LintFinding]:
    for field in ("version", "description"):
        value = folder.schema[field]
        if not isinstance(value, str) or not value.strip():
            yield _schema("text", field, f"{field}: must be text")
        elif len(value) > MAX_DESCRIPTION:
            text = f"{field}: too long ({len(value)} chars, max {MAX_DESCRIPTION})"
            yield _schema("text-long", field, text)


def _category(folder: Folder) -> Iterator[LintFinding]:
    """Check what a category implies for its tools."""
    s = folder.schema
    writes = s["sideEffects"] == SideEffects.WRITES
    if s["category"] == "retrieval" and writes:
        text = "sideEffects: A retrieval tool cannot have sideEffects: writes"
        yield _schema("retrieval-writes", "sideEffects", text)
    if s["category"] == "retrieval" and s["idempotent"] is False:
        text = "idempotent: A retrieval tool must be idempotent"
        yield _schema("retrieval-repeats", "idempotent", text)
    if s["category"] == "utility" and writes:
        text = "sideEffects: A utility tool cannot have sideEffects: writes (make it an action)"
        yield _schema("utility-writes", "sideEffects", text)


def _unasked(folder: Folder) -> Iterator[LintFinding]:
    """Check the author's reason for not asking, which is for reviewers only."""
    s = folder.schema
    if "unasked" not in s:
        return
    if not isinstance(s["unasked"], str) or not s["unasked"].strip():
        yield _schema("unasked", "unasked", "unasked: must be text, why nobody is asked")
    elif not _writes_unasked(s):
        text = "unasked: only a tool that writes and never asks says why"
        yield _schema("unasked", "unasked", text)


def _writes_unasked(schema: Mapping[str, Any]) -> bool:
    return bool(
        schema["sideEffects"] == SideEffects.WRITES and schema["requiresConfirmation"] == "never"
    )


def _numbers(folder: Folder) -> Iterator[LintFinding]:
    for field in ("latencyBudgetMs", "timeoutS", "queue_ttl_s"):
        value = folder.schema.get(field, 1)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            yield _schema("number", field, f"{field}: must be a positive number, not {value!r}")


def _running(folder: Folder) -> Iterator[LintFinding]:
    """Check how it is run, one field at a time, with the loader's own validation."""
    said, effects = folder.schema, folder.schema["sideEffects"]
    probe = {
        "name": "probe",
        "description": "",
        "inputSchema": {"type": "object"},
        "sideEffects": effects if effects in tuple(SideEffects) else SideEffects.NONE.value,
    }
    for field in (f for f in RUNNING if f in said):
        try:
            definition("io.glassd", {**probe, field: said[field]}, source=Source.LOCAL)
        except BadDefinition as e:
            yield _schema("running", field, str(e))
    if "execution" in said and said.get("executionType") != ExecutionType.EXTERNAL:
        text = "execution: only a tool of executionType external is asked elsewhere"
        yield _schema("running", "execution", text)


def _configured(folder: Folder) -> Iterator[LintFinding]:
    """Check that a tool which needs settings declares it, and no other does."""
    needs = config_form.needed(config_form.read(folder.config)[0]) if folder.config else []
    conditions = folder.schema.get("availableWhen")
    declared = isinstance(conditions, dict) and conditions.get("configured") is True
    if not declared:
        unset = "has no default: a tool works before anybody configures it, or its schema says"
        for name in needs:
            text = f'{name} {unset} "availableWhen": {{"configured": true}}'
            yield LintFinding("config", config_form.FILE, text, name)
    elif not needs:
        text = f"availableWhen: configured, but {config_form.FILE} has no setting without default"
        yield _schema("running", "availableWhen", text)


def _asks_the_wearer(schema: Any) -> bool:
    """Return whether it is a `space` tool: a question on the lens, with nothing to run."""
    return isinstance(schema, dict) and schema.get("executionType") == ExecutionType.SPACE


def _hardware(folder: Folder) -> Iterator[LintFinding]:
    needs = folder.schema.get("hardware", [])
    good = isinstance(needs, list) and all(
        isinstance(n, dict)
        and isinstance(n.get("type"), str)
        and n.get("level") in ("REQUIRED", "OPTIONAL")
        for n in needs
    )
    if not good:
        text = "hardware: must be a list of {type, level: REQUIRED|OPTIONAL, description?, where?}"
        yield _schema("hardware", "hardware", text)
        return
    try:
        documents.HardwareDocument.model_validate({"list": needs})
    except ValidationError as e:
        yield _schema("hardware", "hardware", f"hardware: {problem_of(e).removeprefix('list.')}")


def _handler(folder: Folder) -> list[LintFinding]:
    if _asks_the_wearer(folder.schema) and not folder.handler:
        return []
    return list(lint_handler.findings(folder.name, folder.handler))
