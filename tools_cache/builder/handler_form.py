"""Reads a handler's form from its syntax tree: a function `execute`, or a class derived from
`Tool`.

Never imports the handler. The daemon applies the same rules when it loads it.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tools_cache.api.base import INJECTED, Tool
from tools_cache.builder.lint_findings import HANDLER, LintFinding
from tools_cache.old_paths import MOVED

_ROOT: Final = f"{Tool.__module__}.{Tool.__name__}"
_PARTS: Final = {f"{t.__module__}.{t.__qualname__}": part for t, part in INJECTED.items()}
OFFERED: Final = ", ".join(sorted(name.rpartition(".")[2] for name in _PARTS))


@dataclass(frozen=True, slots=True)
class HandlerForm:
    """`tool_class` is "" for a function; `asks`: constructor parameter → type."""

    tool_class: str = ""
    asks: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Class:
    """One class of the file; `abstract` lists the methods it still lacks."""

    node: ast.ClassDef
    methods: dict[str, ast.FunctionDef | ast.AsyncFunctionDef]
    abstract: set[str]


def read(folder: str, tree: ast.Module) -> tuple[HandlerForm, list[LintFinding]]:
    """Return the form, and everything that is wrong with it."""
    execute = [
        n
        for n in tree.body
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.name == "execute"
    ]
    names = _imported(tree)
    classes = _tool_classes(tree, names)
    if not classes:
        return HandlerForm(), list(_function(folder, execute))
    if execute:
        return HandlerForm(), [
            _wrong(
                "handler-one",
                next(iter(classes)),
                f"has both execute and a Tool: {next(iter(classes))}",
            )
        ]
    return _class(classes, names)


def _function(
    folder: str, execute: list[ast.FunctionDef | ast.AsyncFunctionDef]
) -> Iterator[LintFinding]:
    if not execute or not isinstance(execute[-1], ast.AsyncFunctionDef):
        text = (
            f"Handler for {folder} doesn't export execute function (async def "
            "execute(args, ctx)), nor a class of Tool"
        )
        yield LintFinding("handler-execute", HANDLER, text, "execute")
    elif [a.arg for a in execute[-1].args.args] != ["args", "ctx"]:
        yield LintFinding(
            "handler-execute", HANDLER, "execute must take exactly (args, ctx)", "execute"
        )


def _class(
    classes: Mapping[str, _Class], names: Mapping[str, str]
) -> tuple[HandlerForm, list[LintFinding]]:
    whole = {name: c for name, c in classes.items() if not c.abstract}
    if not whole:
        name, last = list(classes.items())[-1]
        return HandlerForm(), [
            _wrong("handler-run", name, f"class {name} has no {', '.join(sorted(last.abstract))}")
        ]
    if len(whole) > 1:
        return HandlerForm(), [
            _wrong(
                "handler-one",
                list(whole)[1],
                f"has {len(whole)} tools: {', '.join(whole)}; one a folder",
            )
        ]
    ((name, found),) = whole.items()
    asks, wrong = _parameters(name, found, names)
    run = found.methods["run"]
    if not isinstance(run, ast.AsyncFunctionDef) or [a.arg for a in run.args.args] != [
        "self",
        "args",
    ]:
        wrong.append(
            _wrong("handler-run", f"{name}.run", f"{name}.run must be async def run(self, args)")
        )
    return HandlerForm(name, asks), wrong


def _wrong(rule: str, field: str, text: str) -> LintFinding:
    return LintFinding(rule, HANDLER, text, field)


def _parameters(
    name: str, found: _Class, names: Mapping[str, str]
) -> tuple[dict[str, str], list[LintFinding]]:
    init = found.methods.get("__init__")
    if init is None:
        return {}, []
    a = init.args
    asks: dict[str, str] = {}
    wrong = []
    for parameter in [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))][
        1:
    ]:
        asked = _dotted(parameter.annotation, names) if parameter.annotation else "no annotation"
        if asked not in _PARTS or parameter in (*a.posonlyargs, a.vararg, a.kwarg):
            text = (
                f"{name}({parameter.arg}: {asked}) asks for what cannot "
                f"be handed in; there are: {OFFERED}"
            )
            wrong.append(_wrong("handler-parts", parameter.arg, text))
        asks[parameter.arg] = asked.rpartition(".")[2]
    return asks, wrong


# ------------------------------------------------------------------ names and classes


def _imported(tree: ast.Module) -> dict[str, str]:
    """Map the names used in this file to their full names."""
    names = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            names.update(
                {
                    a.asname or a.name.partition(".")[0]: a.name
                    if a.asname
                    else a.name.partition(".")[0]
                    for a in node.names
                }
            )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = MOVED.get(node.module or "", node.module)
            names.update({a.asname or a.name: f"{module}.{a.name}" for a in node.names})
        elif isinstance(node, ast.ClassDef):
            names.pop(node.name, None)  # a definition in this file hides the import
        elif isinstance(node, ast.Assign):
            names.update(
                {t.id: _dotted(node.value, names) for t in node.targets if isinstance(t, ast.Name)}
            )
    return names


def _dotted(node: ast.expr | None, names: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):  # an annotation in quotes
        try:
            return _dotted(ast.parse(node.value, mode="eval").body, names)
        except SyntaxError:
            return str(node.value)
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        module = _dotted(node.value, names)
        return f"{MOVED.get(module, module)}.{node.attr}"
    return ast.unparse(node) if node is not None else ""


def _tool_classes(tree: ast.Module, names: Mapping[str, str]) -> dict[str, _Class]:
    """Find the classes of this file that are derived from `Tool`, directly or not."""
    found: dict[str, _Class] = {}
    for node in (n for n in tree.body if isinstance(n, ast.ClassDef)):
        bases = [_dotted(b, names) for b in node.bases]
        above = [found[b] for b in bases if b in found]
        if _ROOT not in bases and not above:
            continue
        methods = {name: m for c in reversed(above) for name, m in c.methods.items()}
        own = {
            m.name: m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        lacking = {"run"} if not above else set().union(*(c.abstract for c in above))
        marked = {
            m.name
            for m in own.values()
            if any("abstractmethod" in ast.unparse(d) for d in m.decorator_list)
        }
        found[node.name] = _Class(node, {**methods, **own}, (lacking - set(own)) | marked)
    return found
