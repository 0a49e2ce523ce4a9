"""Validates arguments against a JSON schema; the only importer of jsonschema_rs, loaded at first
use.

Foreign schemas are untrusted: limited before compiling, never fetching anything (`offline`), and
with formats checked, which JSON Schema 2020-12 does not do by default.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from tools_cache.defaults import fill_defaults
from tools_cache.errors import BadDefinition
from tools_cache.frozen import Packed
from tools_cache.nearest import nearest

MAX_DEPTH: Final = 64
"""Maximum nesting; the validator fails near 500, people stop near 10."""
MAX_SUBSCHEMAS: Final = 2000
"""Maximum objects in one schema, counted before compiling: each takes about 10 kB compiled."""
MAX_SCHEMA_BYTES: Final = 64 * 1024
MAX_ARGS_BYTES: Final = 256 * 1024
"""Maximum bytes: as many as the body of one MQTT message."""
MAX_ARGS_DEPTH: Final = 128
"""Maximum nesting of arguments; Python's own limit differs between versions."""
MAX_ERRORS: Final = 100
MAX_PROBLEM: Final = 300
"""Maximum characters of one problem: the library quotes the offending value in full."""
KEPT: Final = 128
"""Compiled validators kept, about 14 kB each; the least recently used is dropped."""

BEFORE: Final = "x-glassd-before"
"""Keyword next to `properties`: one moment → the moment it must precede.

JSON Schema cannot express it, and a person should not be asked to confirm what is impossible.
"""

_SCALARS: Final = (str, int, float, type(None))
Problem = dict[str, str]
"""`{path, problem}`: a JSON pointer (`root` for the whole) and a message for people."""


class Validator:
    """One compiled schema, created by `compile_schema`."""

    def __init__(self, schema: Mapping[str, Any], compiled: Any) -> None:
        self._schema = schema
        self._compiled = compiled

    def errors(self, value: Any, *, most_bytes: int = MAX_ARGS_BYTES) -> list[Problem]:
        """Return everything wrong with `value`, at most `MAX_ERRORS`. Never raises."""
        try:
            return list(self._problems(value, most_bytes))
        except (TypeError, ValueError, RecursionError) as e:
            return [{"path": "root", "problem": f"cannot be checked: {_short(e)}"}]

    def filled(self, value: Any) -> Any:
        """Return a copy of `value` with this schema's defaults."""
        return fill_defaults(self._schema, value, self._holds)

    def _problems(self, value: Any, most_bytes: int) -> Iterator[Problem]:
        if len(json.dumps(value, allow_nan=False)) > most_bytes:
            yield {"path": "root", "problem": f"is larger than {most_bytes // 1024} KiB"}
            return
        if _deeper_than(value, MAX_ARGS_DEPTH):
            yield {"path": "root", "problem": f"is nested deeper than {MAX_ARGS_DEPTH} levels"}
            return
        for count, error in enumerate(self._compiled.iter_errors(value)):
            if count == MAX_ERRORS:
                return
            yield {
                "path": pointer(error.instance_path),
                "problem": _short(error.message) + self._suggestion(error),
            }
        yield from _out_of_order(self._schema.get(BEFORE), value)

    def _suggestion(self, error: Any) -> str:
        """Return a hint with the properties probably meant by unknown ones; "" for other errors."""
        part: Any = self._schema
        for step in error.schema_path[:-1]:
            part = part.get(step) if isinstance(part, dict) else None
        known = part.get("properties") if isinstance(part, dict) else None
        if not isinstance(known, dict) or not isinstance(error.instance, dict):
            return ""
        missing = [name for name in known if name not in error.instance]
        unknown = getattr(error.kind, "unexpected", None) or ()
        found = [near[:80] for name in unknown if (near := nearest(name, missing))]
        return f"; did you mean {', '.join(dict.fromkeys(found))}?" if found else ""

    def _holds(self, condition: Mapping[str, Any], value: Any) -> bool:
        """Evaluate an `if`; its `$ref`s point to the whole schema's definitions."""
        shared = {k: v for k, v in self._schema.items() if k in ("$schema", "$defs", "definitions")}
        try:
            return bool(compile_schema({**shared, **condition})._compiled.is_valid(value))  # noqa: SLF001 - own class
        except (BadDefinition, ValueError, RecursionError):
            return False


def _out_of_order(pairs: Any, value: Any) -> Iterator[Problem]:
    """Check moments that must follow one another; invalid moments are reported by their format."""
    if not isinstance(pairs, dict) or not isinstance(value, dict):
        return
    for first, then in pairs.items():
        begins = _moment(value.get(first))
        ends = _moment(value.get(then)) if isinstance(then, str) else None
        if begins is not None and ends is not None and begins >= ends:
            yield {"path": pointer([first]), "problem": f"must be before {pointer([then])}"}


def _moment(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.upper()) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _deeper_than(value: Any, levels: int) -> bool:
    """Measure level by level, so that no depth can exhaust the stack."""
    level = [value]
    for _ in range(levels):
        parts = [part.values() if isinstance(part, dict) else part for part in level]
        level = [child for part in parts if not isinstance(part, _SCALARS) for child in part]
        if not level:
            return False
    return True


_compiled: OrderedDict[str | tuple[bytes, str], Validator] = OrderedDict()


def compile_schema(schema: Any) -> Validator:
    """Compile a schema, or return the cached one. Raises `BadDefinition` with the problem."""
    packed = isinstance(schema, Packed)
    key = schema.identity if packed else _bounded(schema)
    found = _compiled.pop(key, None)
    if found is None:
        found = _compile(_bounded(schema.opened()) if packed else key)
    _compiled[key] = found
    if len(_compiled) > KEPT:
        _compiled.popitem(last=False)
    return found


def check_schema(schema: Any) -> None:
    """Compile without keeping the result. Raises `BadDefinition`."""
    _compile(_bounded(schema.opened() if isinstance(schema, Packed) else schema))


def _compile(text: str) -> Validator:
    import jsonschema_rs  # noqa: PLC0415 - 31 ms and 8 MiB; a daemon that checks nothing does not pay

    plain = json.loads(text)
    make = jsonschema_rs.validator_for if "$schema" in plain else jsonschema_rs.Draft202012Validator
    try:
        return Validator(plain, make(plain, validate_formats=True, offline=True))
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as e:
        raise BadDefinition(f"Invalid JSON Schema in parameters: {_short(e)}") from None


def _bounded(schema: Any) -> str:
    """Check depth, width and length; return the text that identifies the schema."""
    if not isinstance(schema, dict):
        raise BadDefinition("Invalid JSON Schema in parameters: must be an object")
    _count(schema)
    try:
        text = json.dumps(schema, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise BadDefinition(f"Invalid JSON Schema in parameters: not JSON: {_short(e)}") from None
    if len(text) > MAX_SCHEMA_BYTES:
        raise BadDefinition(
            f"Invalid JSON Schema in parameters: {len(text)} bytes; "
            f"at most {MAX_SCHEMA_BYTES} are taken"
        )
    return text


def _count(schema: Any) -> None:
    """Count without recursion, so that a hostile schema meets the limit before the stack does."""
    level, subschemas, depth = [schema], 0, 0
    while level:
        depth += 1
        subschemas += sum(isinstance(part, dict) for part in level)
        if depth > MAX_DEPTH:
            raise BadDefinition(
                f"Invalid JSON Schema in parameters: nested deeper than {MAX_DEPTH} levels"
            )
        if subschemas > MAX_SUBSCHEMAS:
            raise BadDefinition(
                f"Invalid JSON Schema in parameters: more than {MAX_SUBSCHEMAS} subschemas"
            )
        level = [child for part in level for child in _children(part)]


def _children(part: Any) -> list[Any]:
    values = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [child for child in values if isinstance(child, dict | list)]


def pointer(path: list[Any]) -> str:
    """Return a path as JSON pointer (RFC 6901); `root` if it is empty."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path) or "root"


def _short(problem: object) -> str:
    first = str(problem).split("\n", 1)[0]
    if len(first) <= MAX_PROBLEM:
        return first
    half = (MAX_PROBLEM - 1) // 2  # what is wrong stands behind the value
    return f"{first[:half]}…{first[-half:]}"
