"""Reads the settings of a tool's `config.py` (a pydantic model named `Config`) from its syntax
tree.

Never imports it: pydantic costs 13 MiB that showing or building a tool does not need.
"""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tools_cache.builder.lint_findings import LintFinding

FILE: Final = "config.py"
CLASS: Final = "Config"
SHARED: Final = "tools_cache.everyday."
"""A shipped package may keep the one `Config` of all its tools in a module whose name begins so."""
MAX_STEPS: Final = 8
"""Files and base classes that lead to a field, at most."""
OFF_AT_FIRST: Final = "offAtFirst"
"""Key in the build's notes of a tool: true where its owner must switch it on."""
NEEDED: Final = "needs"
"""Key in the build's notes of a tool: the settings without which it is not offered."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key as written: its type, its default (None: it has none) and its description."""

    name: str
    type: str
    default: str | None
    description: str = ""


def read(text: str) -> tuple[tuple[Setting, ...], list[LintFinding]]:
    """Return the settings, those of base classes first, and everything that is wrong with the
    file.
    """
    try:
        found = _settings(ast.parse(text), CLASS)
    except (SyntaxError, ValueError, OSError) as e:
        return (), [LintFinding("config", FILE, f"is not Python: {e}")]
    if found is None:
        return (), [LintFinding("config", FILE, f"has no class {CLASS}(BaseModel)", CLASS)]
    settings, wrong = tuple(found.values()), []
    if not any(s.name == "enabled" and s.type == "bool" for s in settings):
        wrong.append(LintFinding("config", FILE, f"{CLASS} has no enabled: bool", "enabled"))
    return settings, wrong


def needed(settings: tuple[Setting, ...]) -> list[str]:
    """Return the settings without a default: the tool is not offered before they are set."""
    return [setting.name for setting in settings if setting.default is None]


def build_notes(text: str) -> dict[str, object]:
    """Return what a listing must know of a tool's settings without reading its `config.py`."""
    settings, _ = read(text)
    off = any(s.name == "enabled" and s.default == "False" for s in settings)
    needs = needed(settings)
    return {**({OFF_AT_FIRST: True} if off else {}), **({NEEDED: needs} if needs else {})}


def _settings(tree: ast.Module, name: str, steps: int = MAX_STEPS) -> dict[str, Setting] | None:
    """Return the settings of a model in the order of its fields; None if no such model can be read.
    It is in this file, or imported from a shared one.
    """
    if not steps:
        return None
    models = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    if not models:
        shared = _shared(tree, name)
        return None if shared is None else _settings(shared, name, steps - 1)
    bases = [ast.unparse(base) for base in reversed(models[-1].bases)]
    inherited = [{} if _is_root(base) else _settings(tree, base, steps - 1) for base in bases]
    if all(fields is None for fields in inherited):
        return None
    found: dict[str, Setting] = {}
    for fields in filter(None, inherited):  # a base that cannot be read is no model
        found |= fields
    for node in models[-1].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = _setting(node, node.target.id)
    return found


def _is_root(base: str) -> bool:
    return base.rpartition(".")[2] == "BaseModel"


def _shared(tree: ast.Module, name: str) -> ast.Module | None:
    """Return the module of the shipped packages that a class is imported from."""
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom) or all(n.name != name for n in node.names):
            continue
        if (module := node.module or "").startswith(SHARED):
            return _parsed(Path(__file__).parents[2] / (module.replace(".", "/") + ".py"))
    return None


@cache
def _parsed(shared: Path) -> ast.Module:
    return ast.parse(shared.read_text(encoding="utf-8"))


def _setting(node: ast.AnnAssign, name: str) -> Setting:
    value = node.value
    if not (isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "Field"):
        return Setting(name, ast.unparse(node.annotation), ast.unparse(value) if value else None)
    said = {k.arg: k.value for k in value.keywords}
    default = value.args[0] if value.args else said.get("default", said.get("default_factory"))
    about = said.get("description")
    text = about.value if isinstance(about, ast.Constant) and isinstance(about.value, str) else ""
    return Setting(
        name, ast.unparse(node.annotation), ast.unparse(default) if default else None, text
    )
