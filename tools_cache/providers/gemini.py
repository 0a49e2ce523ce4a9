"""The Gemini forms of a tool: JSON Schema (`parametersJsonSchema`), and the older OpenAPI-like one
(`parameters`).

The older form cannot express most of a schema; each loss is reported. Source: Gemini API
documentation, function calling.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from tools_cache.api.tool import Json
from tools_cache.providers.models import DescribedTool, ProviderForm, Withheld, properties

TYPES: Final = {
    "string": "STRING",
    "number": "NUMBER",
    "integer": "NUMBER",
    "boolean": "BOOLEAN",
    "array": "ARRAY",
    "object": "OBJECT",
}
"""Type names of the older form. An integer is NUMBER there; `parametersJsonSchema` has integer."""
NATIVE: Final = frozenset({"type", "properties", "required", "items", "enum", "description"})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def form(tool: DescribedTool) -> ProviderForm:
    """Return the JSON Schema form; only extensions (`x-…`) are left out. Raises `Withheld`."""
    _names(tool)
    losses: list[str] = []
    parameters = _without_extensions(tool.parameters, "", losses)
    return ProviderForm(
        {"name": tool.alias, "description": tool.description, "parametersJsonSchema": parameters},
        tuple(losses),
    )


def native(tool: DescribedTool) -> ProviderForm:
    """Return the older, lossy form. Raises `Withheld`."""
    _names(tool)
    losses: list[str] = []
    parameters = _native(tool.parameters, "", losses)
    return ProviderForm(
        {"name": tool.alias, "description": tool.description, "parameters": parameters},
        tuple(losses),
    )


def _names(tool: DescribedTool) -> None:
    for path, name in properties(tool.parameters):
        if not _NAME.fullmatch(name):
            raise Withheld(
                f"{path}/properties/{name}: Gemini takes parameter names of "
                "letters, digits and _, at most 64"
            )


def _without_extensions(part: Any, path: str, losses: list[str], *, names: bool = False) -> Any:
    if isinstance(part, list):
        return [_without_extensions(inner, f"{path}/{i}", losses) for i, inner in enumerate(part)]
    if not isinstance(part, Mapping):
        return part
    dropped = () if names else tuple(key for key in part if key.startswith("x-"))
    losses += [f"{path or 'root'}: {key} is left out" for key in dropped]
    return {
        key: value
        if not names and key in ("default", "const", "enum", "examples")
        else _without_extensions(
            value, f"{path}/{key}", losses, names=not names and key in ("properties", "$defs")
        )
        for key, value in part.items()
        if key not in dropped
    }


def _native(part: Any, path: str, losses: list[str]) -> dict[str, Json]:
    where = path or "root"
    if not isinstance(part, Mapping):
        losses.append(f"{where}: {part!r} reads STRING")
        return {"type": "STRING"}
    losses += [f"{where}: {key} is left out" for key in part if key not in NATIVE]
    out = _kind(part.get("type"), where, losses)
    if isinstance(part.get("properties"), Mapping):
        out["properties"] = {
            n: _native(p, f"{path}/properties/{n}", losses) for n, p in part["properties"].items()
        }
    if part.get("required"):
        out["required"] = list(part["required"])
    if "items" in part:
        out["items"] = _native(part["items"], f"{path}/items", losses)
    if "enum" in part:
        out["enum"] = _enum(part["enum"], where, losses)
    if "description" in part:
        out["description"] = part["description"]
    return out


def _kind(kind: Any, where: str, losses: list[str]) -> dict[str, Json]:
    """Convert a type: a union with null is nullable; other unions, and no type, become text."""
    several = [k for k in kind if k != "null"] if isinstance(kind, list) else []
    nullable = {"nullable": True} if isinstance(kind, list) and "null" in kind else {}
    said = several[0] if len(several) == 1 else kind
    known = TYPES.get(said) if isinstance(said, str) else None
    if known is None or said == "integer":
        losses.append(
            f"{where}: {'no type' if kind is None else f'type {kind}'} reads {known or 'STRING'}"
        )
    return {"type": known or "STRING", **nullable}


def _enum(values: list[Any], where: str, losses: list[str]) -> list[str]:
    """Return enum values as text, also numbers: the older form accepts nothing else."""
    if all(isinstance(v, str) for v in values):
        return list(values)
    losses.append(f"{where}: enum reads text")
    return [
        v if isinstance(v, str) else str(v).lower() if isinstance(v, bool) else f"{v}"
        for v in values
        if v is not None
    ]
