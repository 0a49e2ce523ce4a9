"""What a tool folder of ours must be: the rules of S2-02 … S2-20, each with the words of its failure.

Reads folders and judges; never imports a handler, never writes. Foreign tools are not held to this (C-07, C-27).
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools_cache.defaults import misplaced_defaults
from tools_cache.errors import BadDefinition, BadToolName
from tools_cache.manifest import definition
from tools_cache.names import check_local_name, parse
from tools_cache.schema import check_schema
from tools_cache.tool import ExecutionType, Mode, SideEffects, Source

REQUIRED: Final = (
    "toolId", "name", "version", "description", "category", "sideEffects", "idempotent", "requiresConfirmation",
    "allowedModes", "latencyBudgetMs", "parameters",
)  # fmt: skip
RUNNING: Final = ("executionType", "execution", "pendingTtlS", "cacheTtlS", "rateLimit", "availableWhen")
OPTIONAL: Final = ("source", "hardware", "timeoutS", "queueable", "queue_ttl_s", "mentraExtensions", *RUNNING)
CATEGORIES: Final = ("retrieval", "action", "utility")
CONFIRMATIONS: Final = ("never", "policy", "always")
HERE: Final = (Source.LOCAL.value, Source.GLASSES.value)
HANDLER: Final = "handler.py"
FILES: Final = ("schema.json", "doc_summary.md", "doc.md", HANDLER)
SECTIONS: Final = (
    "Summary", "Preconditions", "Postconditions", "Invariants", "Failure Modes", "Examples", "Common Mistakes",
)  # fmt: skip
MAX_SUMMARY: Final = 250


@dataclass(frozen=True, slots=True)
class Folder:
    """One tool as written: its folder's name and the text of its four files; a `space` tool may do without a handler."""

    name: str
    schema: Mapping[str, Any]
    summary: str
    doc: str
    handler: str


def folders(tools: Path) -> list[Path]:
    """List the tool folders, by name; files and names with a leading dot or underscore are none (S2-18)."""
    return sorted(p for p in tools.iterdir() if p.is_dir() and not p.name.startswith((".", "_")))


def read(folder: Path) -> tuple[Folder | None, list[str]]:
    """Read one folder: (the folder, nothing) or (nothing, what is missing or unreadable)."""
    texts: dict[str, str] = {}
    failures = []
    for file in FILES:
        try:
            texts[file] = (folder / file).read_text(encoding="utf-8")
        except FileNotFoundError:
            failures.append(f"Missing required file: {file}")
        except (OSError, UnicodeDecodeError) as e:
            failures.append(f"{file}: cannot be read: {e}")
    try:
        schema = json.loads(texts.get("schema.json", "{}"))
    except ValueError as e:
        return None, [*failures, f"schema.json: is not JSON: {e}"]
    if _asks_the_wearer(schema) and not (folder / HANDLER).exists():
        texts[HANDLER] = ""
        failures.remove(f"Missing required file: {HANDLER}")
    if failures or not isinstance(schema, dict):
        return None, failures or ["schema.json: must be an object"]
    return Folder(folder.name, schema, texts["doc_summary.md"].strip(), texts["doc.md"], texts[HANDLER]), []


def failures(folder: Folder) -> list[str]:
    """Say everything that is wrong with a folder; empty when it may be built."""
    missing = [f"Missing required field: {f}" for f in REQUIRED if f not in folder.schema]
    if missing:
        return [*missing, *_doc(folder), *_handler(folder)]
    checks = (_names, _policy, _numbers, _running, _parameters, _hardware, _doc, _handler)
    unknown = sorted(set(folder.schema) - {*REQUIRED, *OPTIONAL})
    return [*(f"Unknown field: {f}" for f in unknown), *(text for check in checks for text in check(folder))]


def warnings(folder: Folder) -> list[str]:
    """Say what is allowed and still worth a look (S2-11)."""
    s = folder.schema
    writes = s.get("sideEffects") == SideEffects.WRITES and s.get("requiresConfirmation") == "never"
    return ["action that writes asks for no confirmation"] if writes and s.get("category") == "action" else []


def _names(folder: Folder) -> Iterator[str]:
    tool_id, name, expected = folder.schema["toolId"], folder.schema["name"], folder.name.replace("-", "_")
    if tool_id != expected:
        yield f'toolId "{tool_id}" doesn\'t match directory "{folder.name}" (expected "{expected}")'
    if not isinstance(name, str):
        yield "name: must be text"
        return
    try:
        check_local_name(parse(name).tool)
    except BadToolName as e:
        yield str(e)
    if name.replace(":", "_") != tool_id:
        yield f'name "{name}" doesn\'t match toolId "{tool_id}" (":" reads "_")'


def _policy(folder: Folder) -> Iterator[str]:
    s = folder.schema
    yield from _one_of(s, "category", CATEGORIES)
    yield from _one_of(s, "sideEffects", tuple(SideEffects))
    yield from _one_of(s, "requiresConfirmation", CONFIRMATIONS)
    yield from _one_of({"source": Source.LOCAL, **s}, "source", HERE)
    modes = s["allowedModes"]
    if not isinstance(modes, list) or not modes or any(m not in tuple(Mode) for m in modes):
        yield f"Invalid allowedModes: {modes} (must be a non-empty list of: {', '.join(Mode)})"
    for field in ("idempotent", "queueable"):
        if not isinstance(s.get(field, False), bool):
            yield f"{field}: must be true or false"
    for field in ("version", "description"):
        if not isinstance(s[field], str) or not s[field].strip():
            yield f"{field}: must be text"
    if s["category"] == "retrieval" and s["sideEffects"] == SideEffects.WRITES:
        yield "A retrieval tool cannot have sideEffects: writes"
    if s["category"] == "retrieval" and s["idempotent"] is False:
        yield "A retrieval tool must be idempotent"
    if s["category"] == "utility" and s["sideEffects"] == SideEffects.WRITES:
        yield "A utility tool cannot have sideEffects: writes (make it an action)"


def _numbers(folder: Folder) -> Iterator[str]:
    for field in ("latencyBudgetMs", "timeoutS", "queue_ttl_s"):
        value = folder.schema.get(field, 1)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            yield f"{field}: must be a positive number, not {value!r}"


def _running(folder: Folder) -> Iterator[str]:
    """How it is run, for how long, how often: judged by whoever will load it, one field at a time."""
    said, effects = folder.schema, folder.schema["sideEffects"]
    probe = {"name": "probe", "description": "", "inputSchema": {"type": "object"},
             "sideEffects": effects if effects in tuple(SideEffects) else SideEffects.NONE.value}  # fmt: skip
    for field in (f for f in RUNNING if f in said):
        try:
            definition("io.glassd", {**probe, field: said[field]}, source=Source.LOCAL)
        except BadDefinition as e:
            yield str(e)
    if "execution" in said and said.get("executionType") != ExecutionType.EXTERNAL:
        yield "execution: only a tool of executionType external is asked elsewhere"


def _asks_the_wearer(schema: Any) -> bool:
    """A `space` tool is a question on the lens: the answer is a person's, there is nothing to run."""
    return isinstance(schema, dict) and schema.get("executionType") == ExecutionType.SPACE


def _parameters(folder: Folder) -> Iterator[str]:
    parameters = folder.schema["parameters"]
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        yield 'parameters.type: must be "object"'
        return
    if parameters.get("additionalProperties") is not False:
        yield "parameters.additionalProperties: must be exactly false (reject hallucinated params)"
    yield from (f"parameters{p}: a default is never used there" for p in misplaced_defaults(parameters))
    try:
        check_schema(parameters)
    except BadDefinition as e:
        yield str(e)


def _hardware(folder: Folder) -> Iterator[str]:
    needs = folder.schema.get("hardware", [])
    good = isinstance(needs, list) and all(
        isinstance(n, dict) and isinstance(n.get("type"), str) and n.get("level") in ("REQUIRED", "OPTIONAL") for n in needs)
    if not good:
        yield "hardware: must be a list of {type, level: REQUIRED|OPTIONAL, description?}"


def _doc(folder: Folder) -> Iterator[str]:
    size = len(folder.summary)
    if size > MAX_SUMMARY:
        yield f"doc_summary.md: too long ({size} chars, max {MAX_SUMMARY})"
    if not size:
        yield "doc_summary.md: is empty"
    for section in SECTIONS:
        if not re.search(rf"^## {section}\b", folder.doc, re.MULTILINE):
            yield f"Missing required section: ## {section}"


def _handler(folder: Folder) -> Iterator[str]:
    """Look for `async def execute(args, ctx)` in the syntax tree; the code is not run (S2-15)."""
    if _asks_the_wearer(folder.schema) and not folder.handler:
        return
    try:
        tree = ast.parse(folder.handler)
    except (SyntaxError, ValueError) as e:
        yield f"handler.py: is not Python: {e}"
        return
    found = [n for n in tree.body if isinstance(n, ast.AsyncFunctionDef) and n.name == "execute"]
    if not found:
        yield f"Handler for {folder.name} doesn't export execute function (async def execute(args, ctx))"
    elif [a.arg for a in found[-1].args.args] != ["args", "ctx"]:
        yield "handler.py: execute must take exactly (args, ctx)"


def _one_of(schema: Mapping[str, Any], field: str, allowed: tuple[str, ...]) -> Iterator[str]:
    if schema[field] not in allowed:
        yield f"Invalid {field}: {schema[field]} (must be one of: {', '.join(allowed)})"
