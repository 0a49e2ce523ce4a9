"""What a handler must be, judged by its syntax tree alone: one function `execute`, or one class derived from `Tool` (S2-15).

Runs nothing and imports no handler. What is right here is what `edge/tool_loader.py` will load.
"""

import ast
from collections.abc import Iterator
from typing import Final

from tools_cache.base import INJECTED
from tools_cache.findings import HANDLER, Finding

DAEMON: Final = ("edge", "firmware_bridge")
"""Packages a handler may not import: storage, clock, glasses are handed in (house, section 2)."""
BASE: Final = "tools_cache.base"
HANDED: Final = frozenset(kind.__name__ for kind in INJECTED)
Def = ast.FunctionDef | ast.AsyncFunctionDef


def findings(folder: str, source: str) -> Iterator[Finding]:
    """Everything wrong with a handler's source."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as e:
        yield _finding("handler-python", "", f"is not Python: {e}")
        return
    classes = _tools(tree)
    functions = [node for node in tree.body if isinstance(node, Def) and node.name == "execute"]
    if classes and functions:
        yield _finding("handler-one", classes[0].name, f"has both execute and a Tool: {classes[0].name}")
    elif classes:
        yield from _class(classes)
    else:
        yield from _function(folder, functions)
    for name in sorted(_imported(tree) & set(DAEMON)):
        yield _finding("handler-import", name, f"imports {name}: what a handler needs is handed in")
    for run in (*functions, *(run for tool in classes if (run := _method(tool, "run")))):
        if _says_success(run):
            text = f'{run.name} returns "success": give {{data, render, intents}} or raise ToolFailure; the daemon tells success'
            yield _finding("handler-success", run.name, text)


def _function(folder: str, functions: list[Def]) -> Iterator[Finding]:
    if not functions or not isinstance(functions[-1], ast.AsyncFunctionDef):
        text = f"Handler for {folder} doesn't export execute function (async def execute(args, ctx)), nor a class of Tool"
        yield _finding("handler-execute", "execute", text)
    elif _arguments(functions[-1]) != ["args", "ctx"]:
        yield _finding("handler-execute", "execute", "execute must take exactly (args, ctx)")


def _class(classes: list[ast.ClassDef]) -> Iterator[Finding]:
    whole = [tool for tool in classes if _method(tool, "run")]
    if not whole:
        yield _finding("handler-run", classes[-1].name, f"class {classes[-1].name} has no run")
        return
    if len(whole) > 1:
        yield _finding("handler-one", whole[1].name, f"has {len(whole)} tools: {', '.join(t.name for t in whole)}; one a folder")
    for tool in whole:
        run = _method(tool, "run")
        if not isinstance(run, ast.AsyncFunctionDef) or _arguments(run) != ["self", "args"]:
            yield _finding("handler-run", f"{tool.name}.run", f"{tool.name}.run must be async def run(self, args)")
        yield from _parts(tool)


def _parts(tool: ast.ClassDef) -> Iterator[Finding]:
    """Every parameter of a constructor names by its annotation something that is handed in (S4-05)."""
    made = _method(tool, "__init__")
    if made is None:
        return
    for one in (*made.args.args[1:], *made.args.kwonlyargs):
        asked = ast.unparse(one.annotation).strip("'\"") if one.annotation else "no annotation"
        if asked.rpartition(".")[2] not in HANDED:
            text = f"{tool.name}({one.arg}: {asked}) asks for what cannot be handed in; there are: {', '.join(sorted(HANDED))}"
            yield _finding("handler-parts", one.arg, text)


def _tools(tree: ast.Module) -> list[ast.ClassDef]:
    """The classes of this file that derive from `Tool`, through others of this file too."""
    known = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == BASE:
            known |= {alias.asname or alias.name for alias in node.names if alias.name == "Tool"}
        elif isinstance(node, ast.ImportFrom) and f"{node.module}." == BASE.removesuffix("base"):
            known |= {f"{alias.asname or alias.name}.Tool" for alias in node.names if alias.name == "base"}
        elif isinstance(node, ast.Import):
            known |= {f"{alias.asname or alias.name}.Tool" for alias in node.names if alias.name == BASE}
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and known & {ast.unparse(base) for base in node.bases}:
            known.add(node.name)
            found.append(node)
    return found


def _method(tool: ast.ClassDef, name: str) -> Def | None:
    return next((node for node in reversed(tool.body) if isinstance(node, Def) and node.name == name), None)


def _arguments(function: Def) -> list[str]:
    return [argument.arg for argument in function.args.args]


def _imported(tree: ast.Module) -> set[str]:
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names}


def _says_success(function: Def) -> bool:
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    keys = [key for value in returned if isinstance(value, ast.Dict) for key in value.keys]
    return any(isinstance(key, ast.Constant) and key.value == "success" for key in keys)


def _finding(rule: str, field: str, text: str) -> Finding:
    return Finding(rule, HANDLER, text, field)
