"""The defaults filler against what Ajv 8 gave for the same schema and arguments (run side by
side once, by hand).
"""

import copy

import pytest

from tools_cache.defaults import fill_defaults, misplaced_defaults, newly_filled
from tools_cache.schema import compile_schema

X1 = {"properties": {"x": {"default": 1}}}

VECTORS = {
    "absent is filled": ({"properties": {"a": {"default": 5}}}, {}, {"a": 5}),
    "given stays": ({"properties": {"a": {"default": 5}}}, {"a": 6}, {"a": 6}),
    "null stays": ({"properties": {"a": {"default": 5}}}, {"a": None}, {"a": None}),
    "false stays": ({"properties": {"a": {"default": True}}}, {"a": False}, {"a": False}),
    "a null default is one": ({"properties": {"a": {"default": None}}}, {}, {"a": None}),
    "nested in a present parent": ({"properties": {"p": X1}}, {"p": {}}, {"p": {"x": 1}}),
    "not in an absent parent": ({"properties": {"p": X1}}, {}, {}),
    "a parent's default gets its own children": (
        {"properties": {"p": {"default": {}, **X1}}},
        {},
        {"p": {"x": 1}},
    ),
    "a parent of another type is left": (
        {"properties": {"p": {"type": "object", **X1}}},
        {"p": []},
        {"p": []},
    ),
    "items": (
        {"properties": {"l": {"items": X1}}},
        {"l": [{}, None, {"x": None}, 3]},
        {"l": [{"x": 1}, None, {"x": None}, 3]},
    ),
    "a default of items itself is none": (
        {"properties": {"l": {"items": {"default": 5}}}},
        {"l": [None]},
        {"l": [None]},
    ),
    "allOf": ({"allOf": [X1]}, {}, {"x": 1}),
    "allOf beats a sibling": (
        {"properties": {"a": {"default": 1}}, "allOf": [{"properties": {"a": {"default": 2}}}]},
        {},
        {"a": 2},
    ),
    "allOf inside a property": ({"properties": {"p": {"allOf": [X1]}}}, {"p": {}}, {"p": {"x": 1}}),
    "then": (
        {"if": {"required": ["m"]}, "then": X1, "else": {"properties": {"y": {"default": 2}}}},
        {"m": 1},
        {"m": 1, "x": 1},
    ),
    "else": (
        {"if": {"required": ["m"]}, "then": X1, "else": {"properties": {"y": {"default": 2}}}},
        {},
        {"y": 2},
    ),
    "if true": ({"if": True, "then": X1}, {}, {"x": 1}),
    "if false": (
        {"if": False, "then": X1, "else": {"properties": {"y": {"default": 2}}}},
        {},
        {"y": 2},
    ),
    "if is asked before own defaults": (
        {
            "properties": {"m": {"default": "x"}},
            "if": {"required": ["m"]},
            "then": X1,
            "else": {"properties": {"y": {"default": 2}}},
        },
        {},
        {"y": 2, "m": "x"},
    ),
    "if is asked after allOf": (
        {"allOf": [{"properties": {"m": {"default": "x"}}}], "if": {"required": ["m"]}, "then": X1},
        {},
        {"m": "x", "x": 1},
    ),
    "then beats own": (
        {
            "if": {},
            "then": {"properties": {"a": {"default": 2}}},
            "properties": {"a": {"default": 1}},
        },
        {},
        {"a": 2},
    ),
    "nothing inside if": ({"if": {"properties": {"m": {"default": 1}}}, "then": X1}, {}, {"x": 1}),
    "then without if": ({"then": X1}, {}, {}),
    "nothing under anyOf": ({"anyOf": [X1]}, {}, {}),
    "nothing under oneOf": ({"oneOf": [X1]}, {}, {}),
    "nothing under not": ({"not": {"required": ["z"], **X1}}, {}, {}),
    "nothing under contains": ({"properties": {"l": {"contains": X1}}}, {"l": [{}]}, {"l": [{}]}),
    "nothing through $ref": (
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"default": 5}}},
        {},
        {},
    ),
    "beside $ref": (
        {
            "properties": {"a": {"$ref": "#/$defs/A", "default": 7}},
            "$defs": {"A": {"type": "integer"}},
        },
        {},
        {"a": 7},
    ),
    "whatever the type says": (
        {"type": "array", "properties": {"a": {"default": 1}}},
        {},
        {"a": 1},
    ),
    "an if that points into $defs": (
        {"$defs": {"M": {"required": ["m"]}}, "if": {"$ref": "#/$defs/M"}, "then": X1},
        {"m": 1},
        {"m": 1, "x": 1},
    ),
    "a property named like a keyword": (
        {"properties": {"default": {"default": 3}, "if": {"default": 4}}},
        {},
        {"default": 3, "if": 4},
    ),
}


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.requirement("S2-34")
def test_defaults_are_filled_as_ajv_does(name):
    schema, args, expected = VECTORS[name]
    before = copy.deepcopy(args)
    assert compile_schema(schema).filled(args) == expected
    assert args == before, "the caller's arguments are left alone"


def test_a_filled_default_is_a_copy_of_its_own():
    schema = {"properties": {"a": {"default": {"list": []}}}}
    first = fill_defaults(schema, {}, lambda s, v: False)
    first["a"]["list"].append(1)
    assert fill_defaults(schema, {}, lambda s, v: False) == {"a": {"list": []}}


def test_a_bad_default_fails_validation_afterwards():
    validator = compile_schema(
        {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}
    )
    assert [e["path"] for e in validator.errors(validator.filled({}))] == ["/a"]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "not", "if"])
def test_a_default_that_is_never_used_is_found_by_the_lint(keyword):
    inner = {"properties": {"x": {"default": 1}}}
    schema = {"properties": {"p": {keyword: [inner] if keyword.endswith("Of") else inner}}}
    where = (
        "/properties/p/"
        + keyword
        + ("/0" if keyword.endswith("Of") else "")
        + "/properties/x/default"
    )
    assert misplaced_defaults(schema) == [where]


def test_a_default_in_its_place_is_no_finding():
    assert (
        misplaced_defaults(
            {"properties": {"default": {"type": "string"}, "not": {"default": 1}}, "allOf": [X1]}
        )
        == []
    )


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1, "b": 2}, ["/b"]),
        ({"a": None}, {"a": None}, []),
        ({"p": {}}, {"p": {"x/y~z": 1}}, ["/p/x~1y~0z"]),
        ({}, {"p": {"x": 1}}, ["/p"]),
        ({"l": [{}, 1]}, {"l": [{"a": 1}, 1], "b": 2}, ["/l/0/a", "/b"]),
        (3, 3, []),
    ],
)
@pytest.mark.requirement("S2-35")
def test_what_was_filled_is_listed_by_pointer(before, after, paths):
    assert newly_filled(before, after) == paths
