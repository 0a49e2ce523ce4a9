"""Fills the defaults of a JSON schema into arguments, as Ajv's `useDefaults` does. Does not
validate.

Filled: absent properties (an explicit null stays), in `properties` and in object `items`, also
below `allOf` and the taken branch of `if`. Not filled: anything through `$ref`, under
`anyOf`/`oneOf`/`not`/`if`, inside an absent parent. The order is Ajv's, as observed: `allOf`, then
`if`, then `items`, then own properties, each parent before its children; so a default below `allOf`
beats a sibling one, and `if` is evaluated before the object's own defaults are filled.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final

Holds = Callable[[Mapping[str, Any], Any], bool]
"""Returns whether this subschema (of `if`) accepts this value."""

_BY_NAME: Final = ("properties", "patternProperties", "$defs", "definitions")
UNFILLED: Final = ("anyOf", "oneOf", "not", "if")
"""Places where a default is never used; the build refuses one there."""


def fill_defaults(schema: Mapping[str, Any], value: Any, holds: Holds) -> Any:
    """Return a deep copy of `value` with defaults filled in; `value` itself is not changed."""
    filled = copy.deepcopy(value)
    _fill(schema, filled, holds)
    return filled


def _fill(schema: Any, value: Any, holds: Holds) -> None:
    if not isinstance(schema, Mapping):
        return
    for part in _list(schema.get("allOf")):
        _fill(part, value, holds)
    if "if" in schema:
        branch = "then" if holds_bool(schema["if"], value, holds) else "else"
        _fill(schema.get(branch), value, holds)
    if isinstance(value, list):
        for item in value:
            _fill(schema.get("items"), item, holds)
    if isinstance(value, dict):
        _fill_object(schema.get("properties"), value, holds)


def _fill_object(properties: Any, value: dict[str, Any], holds: Holds) -> None:
    if not isinstance(properties, Mapping):
        return
    for key, part in properties.items():
        if key not in value and isinstance(part, Mapping) and "default" in part:
            value[key] = copy.deepcopy(part["default"])
    for key, part in properties.items():
        if key in value:
            _fill(part, value[key], holds)


def newly_filled(before: Any, after: Any, path: str = "") -> list[str]:
    """Return a JSON pointer to each value that filling added, in order."""
    if isinstance(before, list) and isinstance(after, list):
        pairs = enumerate(zip(before, after, strict=False))
        return [p for i, (old, new) in pairs for p in newly_filled(old, new, f"{path}/{i}")]
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return []
    found = []
    for key, value in after.items():
        where = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
        found += newly_filled(before[key], value, where) if key in before else [where]
    return found


def holds_bool(condition: Any, value: Any, holds: Holds) -> bool:
    """Evaluate `if`, which may be plain true or false."""
    return holds(condition, value) if isinstance(condition, Mapping) else condition is not False


def misplaced_defaults(schema: Any, path: str = "", *, unfilled: bool = False) -> list[str]:
    """Return a JSON pointer to each default that would never be used, for the build lint."""
    found: list[str] = []
    if isinstance(schema, list):
        for i, part in enumerate(schema):
            found += misplaced_defaults(part, f"{path}/{i}", unfilled=unfilled)
    if not isinstance(schema, Mapping):
        return found
    if unfilled and "default" in schema:
        found.append(f"{path}/default")
    for key, part in schema.items():
        if key in _BY_NAME and isinstance(part, Mapping):
            for name, sub in part.items():
                found += misplaced_defaults(sub, f"{path}/{key}/{name}", unfilled=unfilled)
        elif key not in ("default", "const", "enum", "examples"):
            found += misplaced_defaults(part, f"{path}/{key}", unfilled=unfilled or key in UNFILLED)
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
