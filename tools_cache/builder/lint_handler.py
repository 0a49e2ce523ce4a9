"""Checks a handler by its syntax tree: one function `execute`, or one class derived from `Tool`.

Imports nothing. What passes here is what the daemon loads.
"""

import ast
from collections.abc import Iterator
from typing import Final

from tools_cache.builder import handler_form
from tools_cache.builder.lint_findings import HANDLER, LintFinding

DAEMON: Final = ("edge", "firmware_bridge")
"""Packages a handler must not import: storage, clock and glasses are passed in."""
Def = ast.FunctionDef | ast.AsyncFunctionDef


def findings(folder: str, source: str) -> Iterator[LintFinding]:
    """Return everything that is wrong with a handler's source."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as e:
        yield _finding("handler-python", "", f"is not Python: {e}")
        return
    form, wrong = handler_form.read(folder, tree)
    yield from wrong
    for name in sorted(_imported(tree) & set(DAEMON)):
        yield _finding("handler-import", name, f"imports {name}: what a handler needs is handed in")
    for run in (
        node
        for node in ast.walk(tree)
        if isinstance(node, Def) and node.name == ("run" if form.tool_class else "execute")
    ):
        if _says_success(run):
            text = (
                f'{run.name} returns "success": give {{data, render, '
                f"intents}} or raise ToolFailure; the daemon adds success"
            )
            yield _finding("handler-success", run.name, text)


def _imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def _says_success(function: Def) -> bool:
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    keys = [key for value in returned if isinstance(value, ast.Dict) for key in value.keys]
    return any(isinstance(key, ast.Constant) and key.value == "success" for key in keys)


def _finding(rule: str, field: str, text: str) -> LintFinding:
    return LintFinding(rule, HANDLER, text, field)
