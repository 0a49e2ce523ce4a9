"""What the three texts beside a schema must be: the summary, the documentation, the handler's source.

Reads no file and runs nothing: a handler is judged by its syntax tree alone.
"""

import ast
import re
from collections.abc import Collection, Iterator
from typing import Final

from tools_cache.findings import DOC, HANDLER, SUMMARY, Finding

SECTIONS: Final = (
    "Summary", "Preconditions", "Postconditions", "Invariants", "Failure Modes", "Examples", "Common Mistakes",
)  # fmt: skip
MAX_SUMMARY: Final = 250
DAEMON: Final = ("edge", "firmware_bridge")
"""Packages a handler may not import: storage, clock, glasses are handed in (house, section 2)."""
_QUOTED: Final = re.compile(r"`([^`\n]+)`")
_NAME: Final = re.compile(r"([A-Za-z][\w.-]*):([A-Za-z][\w-]*)")


def summary(text: str) -> Iterator[Finding]:
    """`text` is trimmed: a trailing newline is not counted (S2-13)."""
    if len(text) > MAX_SUMMARY:
        yield Finding("summary-long", SUMMARY, f"too long ({len(text)} chars, max {MAX_SUMMARY})")
    if not text:
        yield Finding("summary-empty", SUMMARY, "is empty")


def doc(text: str) -> Iterator[Finding]:
    """Seven headings of the second level; one may go on after its name (C-31)."""
    for section in SECTIONS:
        if not re.search(rf"^## {section}\b", text, re.MULTILINE):
            yield Finding("section", DOC, f"Missing required section: ## {section}", f"## {section}")


def references(text: str, known: Collection[str]) -> list[str]:
    """Give the tools that `text` names and nobody knows: any `package:tool` in backticks, and unquoted ones of our packages."""
    packages = {name.partition(":")[0] for name in known}
    quoted = {found.group() for span in _QUOTED.findall(text) if (found := _NAME.fullmatch(span))}
    plain = {found.group() for found in _NAME.finditer(_QUOTED.sub(" ", text)) if found.group(1) in packages}
    return sorted((quoted | plain) - set(known))


def handler(folder: str, source: str) -> Iterator[Finding]:
    """`async def execute(args, ctx)`, importing nothing of the daemon, giving parts of an answer and no verdict."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as e:
        yield Finding("handler-python", HANDLER, f"is not Python: {e}")
        return
    found = [n for n in tree.body if isinstance(n, ast.AsyncFunctionDef) and n.name == "execute"]
    if not found:
        text = f"Handler for {folder} doesn't export execute function (async def execute(args, ctx))"
        yield Finding("handler-execute", HANDLER, text, "execute")
    elif [a.arg for a in found[-1].args.args] != ["args", "ctx"]:
        yield Finding("handler-execute", HANDLER, "execute must take exactly (args, ctx)", "execute")
    for name in sorted(_imported(tree) & set(DAEMON)):
        yield Finding("handler-import", HANDLER, f"imports {name}: what a handler needs is handed in with ctx", name)
    if found and _says_success(found[-1]):
        text = 'execute returns "success": give {data, render, intents} or raise ToolFailure; the daemon tells success'
        yield Finding("handler-success", HANDLER, text, "execute")


def _imported(tree: ast.Module) -> set[str]:
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names}


def _says_success(function: ast.AsyncFunctionDef) -> bool:
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    keys = [key for value in returned if isinstance(value, ast.Dict) for key in value.keys]
    return any(isinstance(key, ast.Constant) and key.value == "success" for key in keys)
