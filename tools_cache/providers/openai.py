"""The OpenAI forms of a tool: plain, with the schema unchanged, and strict, where the model must
follow the schema.

Strict mode has no optional parameters: they become nullable, and `without_nulls` removes those
nulls before arguments are validated against the tool's own schema. Source: OpenAI documentation,
structured outputs.
"""

import copy
import json
from collections.abc import Mapping
from typing import Any, Final

from tools_cache.api.tool import Json
from tools_cache.providers.models import DATA, DescribedTool, ProviderForm, Withheld, root_is_plain

MAX_PROPERTIES: Final = 5000
MAX_LEVELS: Final = 10
MAX_STRINGS: Final = 120_000
"""Maximum characters of all property and definition names, enum and const values."""
MAX_ENUM: Final = 1000
LONG_ENUM: Final = 250
MAX_LONG_ENUM: Final = 15_000
"""Maximum characters of an enum that has more than `LONG_ENUM` values."""
REFUSED: Final = frozenset(
    "allOf not if then else dependentRequired dependentSchemas patternProperties propertyNames"
    " unevaluatedProperties unevaluatedItems prefixItems contains $dynamicRef".split()
)
"""Keywords that strict mode lacks and that would change the meaning if left out."""
KEPT: Final = frozenset(
    "type enum const anyOf $ref $defs properties required additionalProperties items description"
    " title pattern format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems"
    " maxItems".split()
)
FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_DEFS: Final = "#/$defs/"
_NULL: Final = {"type": "null"}


def form(tool: DescribedTool) -> ProviderForm:
    """Return the plain form with unchanged parameters. Raises `Withheld`."""
    root_is_plain(tool.parameters, "OpenAI")
    return _function(tool, dict(tool.parameters), strict=False)


def strict(tool: DescribedTool) -> ProviderForm:
    """Return the strict form. Raises `Withheld` if it would mean something else or is too large."""
    root_is_plain(tool.parameters, "OpenAI")
    losses: list[str] = []
    parameters = _strict(copy.deepcopy(dict(tool.parameters)), "", losses, level=1)
    _within_limits(parameters)
    made = _function(tool, parameters, strict=True)
    return ProviderForm(made.document, tuple(losses))


def without_nulls(schema: Mapping[str, Any], args: Any) -> Any:
    """Remove nulls by which a strict model omits a parameter, unless the schema allows null."""
    return _stripped(schema, args, schema.get("$defs", {}))


def _stripped(schema: Any, args: Any, defs: Mapping[str, Any]) -> Any:
    if isinstance(schema, Mapping) and "$ref" in schema:
        schema = defs.get(str(schema["$ref"]).removeprefix(_DEFS), {})
    if isinstance(args, list) and isinstance(schema, Mapping):
        return [_stripped(schema.get("items"), item, defs) for item in args]
    if not isinstance(args, dict) or not isinstance(schema, Mapping):
        return args
    parts, required = schema.get("properties", {}), schema.get("required", [])
    return {
        name: _stripped(parts.get(name), value, defs)
        for name, value in args.items()
        if value is not None or name in required or name not in parts or _takes_null(parts[name])
    }


def _function(tool: DescribedTool, parameters: dict[str, Json], *, strict: bool) -> ProviderForm:
    said = {
        "name": tool.alias,
        "description": tool.description,
        "parameters": parameters,
        "strict": strict,
    }
    return ProviderForm({"type": "function", "function": said})


def _strict(part: Any, path: str, losses: list[str], *, level: int, choice: bool = False) -> Any:
    """Convert one subschema. `choice`: below an anyOf, whose branch `without_nulls` cannot know."""
    where = path or "root"
    if not isinstance(part, dict) or not part:
        raise Withheld(f"{where}: strict mode needs a schema that says a type")
    if refused := sorted(REFUSED & set(part)):
        raise Withheld(f"{where}: strict mode knows no {refused[0]}")
    if level > MAX_LEVELS:
        raise Withheld(f"strict mode takes {MAX_LEVELS} levels of nesting")
    if "$ref" in part and (choice or not str(part["$ref"]).startswith(_DEFS)):
        raise Withheld(f"{where}: strict mode knows $ref into $defs only, and none in a choice")
    if "oneOf" in part:
        losses.append(f"{where}: oneOf reads anyOf")
        part["anyOf"] = [*part.pop("oneOf"), *part.get("anyOf", [])]
    _drop(part, where, losses)
    if "anyOf" in part:
        part["anyOf"] = [
            _strict(p, f"{path}/anyOf/{i}", losses, level=level, choice=True)
            for i, p in enumerate(part["anyOf"])
        ]
    if "items" in part:
        part["items"] = _strict(
            part["items"], f"{path}/items", losses, level=level + 1, choice=choice
        )
    if "$defs" in part:
        part["$defs"] = {
            n: _strict(p, f"{path}/$defs/{n}", losses, level=level)
            for n, p in part["$defs"].items()
        }
    if "properties" in part or _is_object(part):
        _closed(part, path, losses, level=level, choice=choice)
    return part


def _drop(part: dict[str, Any], where: str, losses: list[str]) -> None:
    for key in sorted(set(part) - KEPT):
        losses.append(f"{where}: {key} is left out")
        del part[key]
    if part.get("format", "date") not in FORMATS:
        losses.append(f"{where}: format {part.pop('format')} is left out")


def _closed(
    part: dict[str, Any], path: str, losses: list[str], *, level: int, choice: bool
) -> None:
    """Make every property required and forbid others; optional ones become nullable."""
    where = path or "root"
    if isinstance(part.get("additionalProperties"), dict):
        raise Withheld(f"{where}: strict mode knows no maps (additionalProperties with a schema)")
    if part.get("additionalProperties", True) is not False:
        losses.append(f"{where}: further properties are not allowed")
    required, parts = part.get("required", []), part.get("properties", {})
    if unknown := sorted(set(required) - set(parts)):
        raise Withheld(
            f"{where}: strict mode needs {unknown[0]!r}, which is required, among the properties"
        )
    if choice and set(parts) - set(required):
        raise Withheld(f"{where}: strict mode knows no optional properties in a choice")
    strict_parts = {}
    for name, inner in parts.items():
        one = _strict(inner, f"{path}/properties/{name}", losses, level=level + 1, choice=choice)
        strict_parts[name] = one if name in required else _nullable(one)
    part |= {"properties": strict_parts, "required": list(parts), "additionalProperties": False}


def _nullable(part: dict[str, Any]) -> dict[str, Any]:
    if _takes_null(part):
        return part
    kind = part.get("type")
    if kind is None or "const" in part:
        described: dict[str, Any] = {k: part.pop(k) for k in ("description", "title") if k in part}
        return {"anyOf": [part, dict(_NULL)], **described}
    kinds = kind if isinstance(kind, list) else [kind]
    more = {"enum": [*part["enum"], None]} if "enum" in part else {}
    return {**part, "type": [*kinds, "null"], **more}


def _takes_null(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return part is True
    if "enum" in part:
        return None in part["enum"]
    if "const" in part:
        return part["const"] is None
    kind = part.get("type")
    if kind is None:
        choices = part.get("anyOf") or part.get("oneOf")
        return any(map(_takes_null, choices)) if choices else "$ref" not in part
    return kind == "null" or (isinstance(kind, list) and "null" in kind)


def _is_object(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _within_limits(schema: Any) -> None:
    count = strings = values = 0
    level: list[Any] = [schema]
    while level:
        for part in (p for p in level if isinstance(p, dict)):
            names = [*part.get("properties", {}), *part.get("$defs", {})]
            enum = [
                str(v) if isinstance(v, str) else json.dumps(v)
                for v in (*part.get("enum", []), part.get("const", ""))
            ]
            count += len(part.get("properties", {}))
            values += len(enum) - 1
            size = sum(map(len, enum))
            strings += sum(map(len, names)) + size
            if len(enum) - 1 > LONG_ENUM and size > MAX_LONG_ENUM:
                raise Withheld(
                    f"strict mode takes {MAX_LONG_ENUM} characters of an enum "
                    f"with more than {LONG_ENUM} values"
                )
        level = [inner for part in level for inner in _inside(part)]
    for found, most, what in (
        (count, MAX_PROPERTIES, "properties"),
        (strings, MAX_STRINGS, "characters of names and values"),
        (values, MAX_ENUM, "enum values"),
    ):
        if found > most:
            raise Withheld(f"strict mode takes {most} {what}; these are {found}")


def _inside(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return [value for key, value in part.items() if key not in DATA]
    return part if isinstance(part, list) else []
