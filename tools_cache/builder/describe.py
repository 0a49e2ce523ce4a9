"""Describes a tool to people who use, configure or change it: parameters, settings, dependencies.

Reads texts only, never imports the handler or `config.py`: the tool may be broken.
"""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tools_cache.api.tool import Json, ToolDefinition
from tools_cache.builder import config_form, handler_form
from tools_cache.builder.config_form import Setting
from tools_cache.builder.handler_form import HandlerForm
from tools_cache.builder.lint_findings import HANDLER
from tools_cache.names import parse
from tools_cache.registry.models import BUILD_KEY

ENABLED: Final = Setting("enabled", "bool", "True")
"""Settings of a tool without a `config.py`."""


@dataclass(frozen=True, slots=True)
class Written:
    """Contents of a tool's folder besides its schema."""

    form: HandlerForm = field(default_factory=HandlerForm)
    settings: tuple[Setting, ...] = (ENABLED,)


def read(tool: ToolDefinition, tools: Path) -> Written:
    """Read the folder of a built tool. Unreadable parts are left out: the build reported them."""
    build = (tool.raw.get("_meta") or {}).get(BUILD_KEY) or {}
    folder = tools / str(build.get("folder", ""))
    try:
        form = handler_form.read(folder.name, ast.parse(_text(folder / HANDLER)))[0]
    except (SyntaxError, ValueError):
        form = HandlerForm()
    config = _text(folder / config_form.FILE)
    return Written(form, config_form.read(config)[0] if config else (ENABLED,))


def data(tool: ToolDefinition, written: Written) -> dict[str, Json]:
    """Return the description as JSON."""
    return {
        "form": "class" if written.form.tool_class else "function",
        "asks": dict(written.form.asks),
        "dependsOn": list(tool.depends_on),
        "section": section(tool),
        "settings": [
            {"name": s.name, "type": s.type, "default": s.default, "description": s.description}
            for s in written.settings
        ],
    }


def text(tool: ToolDefinition, written: Written) -> str:
    """Return the description as formatted text."""
    parts = [f"{tool.name}: {tool.description}"]
    parts += _block("parameters", _parameters(tool.input_schema))
    parts += _block(
        f"settings [{section(tool)}]",
        ((s.name, f"{s.type} = {s.default}", s.description) for s in written.settings),
    )
    parts += _block("asks for", ((name, kind, "") for name, kind in written.form.asks.items()))
    if tool.depends_on:
        parts.append(f"depends on {', '.join(tool.depends_on)}")
    return "\n".join(parts)


def section(tool: ToolDefinition) -> str:
    """Return the name of its table in glassd.toml; a package with dots is quoted."""
    words = ["tool", *parse(tool.name)]
    bare = [word.replace("_", "").replace("-", "").isalnum() for word in words]
    return ".".join(w if plain else f'"{w}"' for w, plain in zip(words, bare, strict=True))


def _parameters(schema: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        kind = one.get("type", "any")
        kind = "|".join(kind) if isinstance(kind, list) else str(kind)
        if name in required:
            kind += ", required"
        else:
            kind += f" = {one['default']!r}" if "default" in one else ", optional"
        yield name, kind, str(one.get("description", ""))


def _block(title: str, rows: Iterable[tuple[str, str, str]]) -> list[str]:
    rows = list(rows)
    if not rows:
        return []
    first, second = (max(len(row[n]) for row in rows) for n in (0, 1))
    return [title, *(f"  {a:{first}}  {b:{second}}  {c}".rstrip() for a, b, c in rows)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
