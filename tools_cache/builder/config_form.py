"""Reads the settings of a tool's `config.py` (a pydantic model named `Config`) from its syntax
tree.

Never imports it: pydantic costs 13 MiB that showing or building a tool does not need.
"""

import ast
from dataclasses import dataclass
from typing import Final

from tools_cache.builder.lint_findings import LintFinding

FILE: Final = "config.py"
CLASS: Final = "Config"


@dataclass(frozen=True, slots=True)
class Setting:
    """One key as written: its type, its default (None: it has none) and its description."""

    name: str
    type: str
    default: str | None
    description: str = ""


def read(text: str) -> tuple[tuple[Setting, ...], list[LintFinding]]:
    """Return the settings, and everything that is wrong with the file."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as e:
        return (), [LintFinding("config", FILE, f"is not Python: {e}")]
    models = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == CLASS]
    if not models or not any(
        ast.unparse(b).rpartition(".")[2] == "BaseModel" for b in models[-1].bases
    ):
        return (), [LintFinding("config", FILE, f"has no class {CLASS}(BaseModel)", CLASS)]
    settings = tuple(
        _setting(n, n.target.id)
        for n in models[-1].body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    )
    unset = "has no default: a tool works before anybody configures it"
    names = [s.name for s in settings if s.default is None]
    wrong = [LintFinding("config", FILE, f"{name} {unset}", name) for name in names]
    if not any(s.name == "enabled" and s.type == "bool" for s in settings):
        wrong.append(LintFinding("config", FILE, f"{CLASS} has no enabled: bool", "enabled"))
    return settings, wrong


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
