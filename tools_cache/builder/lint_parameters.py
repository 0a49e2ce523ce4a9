"""Checks the parameters of our own tools: closed, valid, and without keywords that would be
ignored.

Stricter than JSON Schema, like Ajv's strict mode: otherwise a misspelt keyword or format has no
effect. Schemas from elsewhere need not follow these rules.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tools_cache.builder.lint_findings import SCHEMA, LintFinding
from tools_cache.defaults import misplaced_defaults
from tools_cache.errors import BadDefinition
from tools_cache.schema import check_schema, compile_schema

FORMATS: Final = frozenset(
    """
    date date-time duration email hostname idn-email idn-hostname ipv4 ipv6 iri iri-reference
    json-pointer regex relative-json-pointer time uri uri-reference uri-template uuid
    """.split()
)
"""Keywords of JSON Schema 2020-12; the validator checks each."""
BY_NAME: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
"""Keywords that map names to schemas."""
ONE: Final = frozenset(
    "items additionalProperties contains propertyNames not if then else unevaluatedItems"
    " unevaluatedProperties".split()
)
MANY: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
KEYWORDS: Final = BY_NAME.union(
    ONE,
    MANY,
    """
    $schema $id $ref $anchor $dynamicRef $dynamicAnchor $comment $vocabulary type enum const
    multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern
    maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required
    dependentRequired format contentEncoding contentMediaType contentSchema title description
    default deprecated readOnly writeOnly examples
    """.split(),
)
HARD: Final = ("$ref", "allOf", "oneOf", "not", "if")
MAX_LEVELS: Final = 2
"""Maximum levels of nested objects below the root."""
_SHARED: Final = ("$schema", "$defs", "definitions")
"""Definitions that a `$ref` may point to."""


class Part(NamedTuple):
    """One subschema, and the JSON pointer to it."""

    path: str
    schema: Mapping[str, Any]


def subschemas(schema: Any, path: str = "") -> Iterator[Part]:
    """Yield all subschemas of a bounded schema, itself first."""
    if not isinstance(schema, Mapping):
        return
    yield Part(path, schema)
    for key, value in schema.items():
        if key in BY_NAME and isinstance(value, Mapping):
            for name, part in value.items():
                yield from subschemas(part, f"{path}/{key}/{_escaped(name)}")
        elif key in ONE:
            yield from subschemas(value, f"{path}/{key}")
        elif key in MANY and isinstance(value, list):
            for index, part in enumerate(value):
                yield from subschemas(part, f"{path}/{key}/{index}")


def findings(parameters: Any) -> list[LintFinding]:
    """Return everything that is wrong with `parameters`."""
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        return [_finding("parameters-object", ".type", 'must be "object"')]
    found = []
    if parameters.get("additionalProperties") is not False:
        text = "must be exactly false (reject hallucinated params)"
        found.append(_finding("parameters-closed", ".additionalProperties", text))
    try:
        check_schema(parameters)
    except BadDefinition as e:
        return [*found, LintFinding("parameters-schema", SCHEMA, str(e), "parameters")]
    found += [
        _finding("parameters-unused-default", p, "a default is never used there")
        for p in misplaced_defaults(parameters)
    ]
    for part in subschemas(parameters):
        for check in (_keywords, _format, _required):
            found += check(part)
        found += _default(part, {key: parameters[key] for key in _SHARED if key in parameters})
    return found


def warnings(parameters: Mapping[str, Any]) -> list[LintFinding]:
    """Return warnings about valid parameters that not every model understands."""
    found = []
    for part in subschemas(parameters):
        hard = [key for key in HARD if key in part.schema]
        problems = {f"{part.path}/{key}": "some models do not understand it" for key in hard}
        if any(not isinstance(value, str | None) for value in part.schema.get("enum", ())):
            problems[f"{part.path}/enum"] = "some models take enums of text only"
        if "properties" in part.schema and part.path.count("/properties/") > MAX_LEVELS:
            problems[part.path] = f"nested deeper than {MAX_LEVELS} levels of objects"
        found += [_finding("parameters-plain", path, text) for path, text in problems.items()]
    return found


def _keywords(part: Part) -> Iterator[LintFinding]:
    for key in part.schema:
        if key not in KEYWORDS and not key.startswith("x-"):
            text = "no keyword of JSON Schema (extensions begin with x-)"
            yield _finding("parameters-keyword", f"{part.path}/{_escaped(key)}", text)


def _format(part: Part) -> Iterator[LintFinding]:
    said = part.schema.get("format", "uri")
    if said not in FORMATS:
        text = f"unknown format {said!r}: it would not be asserted"
        yield _finding("parameters-format", f"{part.path}/format", text)


def _required(part: Part) -> Iterator[LintFinding]:
    if "properties" not in part.schema and part.path:
        return  # a branch that only requires properties defined next to it
    for name in part.schema.get("required", []):
        if name not in part.schema.get("properties", {}):
            text = f"{name!r} is not among the properties"
            yield _finding("parameters-required", f"{part.path}/required", text)


def _default(part: Part, shared: Mapping[str, Any]) -> Iterator[LintFinding]:
    """Check that a default is valid: filled before validation, it would fail calls."""
    if "default" not in part.schema:
        return
    validator = compile_schema({**shared, **part.schema})
    value = part.schema["default"]
    problems = validator.errors(validator.filled(value))
    if problems:
        text = f"{value!r} does not fit: {problems[0]['problem']}"
        yield _finding("parameters-bad-default", f"{part.path}/default", text)


def _finding(rule: str, path: str, text: str) -> LintFinding:
    return LintFinding(rule, SCHEMA, f"parameters{path}: {text}", f"parameters{path}")


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
