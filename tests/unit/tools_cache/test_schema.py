import pytest

from tools_cache import schema as schemas
from tools_cache.errors import BadDefinition
from tools_cache.frozen import frozen
from tools_cache.schema import MAX_ARGS_DEPTH, compile_schema

REMINDER = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text", "at"],
    "properties": {
        "text": {"type": "string", "minLength": 1},
        "at": {"type": "string", "format": "date-time"},
        "n": {"type": "integer", "minimum": 1},
        "to": {"type": "array", "items": {"type": "string", "format": "email"}},
        "a/b~c": {"type": "null"},
        "o": {"type": "object"},
    },
}
GOOD = {"text": "x", "at": "2026-11-21T10:00:00Z"}


def paths(args, schema=REMINDER):
    return sorted(e["path"] for e in compile_schema(schema).errors(args))


def test_good_arguments_have_no_errors():
    assert paths(GOOD) == []


@pytest.mark.requirement("S2-48")
def test_every_error_is_reported_with_its_json_pointer():
    assert paths(
        {"text": "", "at": "tomorrow", "n": "3", "to": ["a@b.io", "nope"], "a/b~c": 1}
    ) == ["/at", "/a~1b~0c", "/n", "/text", "/to/1"]


def test_both_missing_fields_are_reported_at_the_root():
    problems = compile_schema(REMINDER).errors({})
    assert [p["path"] for p in problems] == ["root", "root"]
    assert {"text", "at"} <= {word.strip("\"'") for p in problems for word in p["problem"].split()}


TOWN = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"place": {"$ref": "#/$defs/place"}, "text": {}, "title": {}},
    "$defs": {
        "place": {"type": "object", "additionalProperties": False, "properties": {"town": {}}}
    },
}


@pytest.mark.requirement("I12-did-you-mean")
@pytest.mark.parametrize(
    ("args", "ends"),
    [
        ({"txt": 1}, "; did you mean text?"),
        ({"place": {"twon": 1}}, "; did you mean town?"),
        ({"titel": 1, "txt": 2}, "; did you mean title, text?"),
        ({"qqqq": 1}, "('qqqq' was unexpected)"),
        ({"text": 1, "txt": 2}, "('txt' was unexpected)"),
    ],
    ids=str,
)
def test_an_unknown_argument_is_answered_with_the_nearest_that_is_not_there_yet(args, ends):
    [problem] = compile_schema(TOWN).errors(args)
    assert problem["problem"].endswith(ends)


@pytest.mark.requirement("C-07")
def test_unknown_arguments_are_refused_only_when_the_schema_says_so():
    assert paths({**GOOD, "zz": 1}) == ["root"]
    assert paths({"zz": 1}, {"type": "object"}) == []


@pytest.mark.parametrize(
    ("value", "good"),
    [(3, True), (3.0, True), (3.5, False), ("3", False), (True, False), (None, False)],
)
def test_an_integer_is_a_whole_number_and_nothing_is_coerced(value, good):
    assert (paths({**GOOD, "n": value}) == []) is good


@pytest.mark.parametrize(
    ("start", "end", "wrong"),
    [
        ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00+00:00", ["/from"]),
        ("2026-11-21T11:00:00+02:00", "2026-11-21T09:00:01Z", []),
        ("2026-11-21T10:00:00Z", "2026-11-21T09:59:59.9Z", ["/from"]),
        ("soon", "2026-11-21T09:00:00Z", []),
        ("2026-11-21T10:00:00Z", 5, []),
        ("2026-11-21T10:00:00", "2026-11-21T09:00:00Z", []),
    ],
)
def test_one_moment_can_be_required_before_another(start, end, wrong):
    assert (
        paths(
            {"from": start, "to": end},
            {"type": "object", "x-glassd-before": {"from": "to", "to": ["x"]}},
        )
        == wrong
    )


@pytest.mark.parametrize("said", [["from"], "from", {"from": {}}, None])
def test_an_invalid_order_is_ignored(said):
    assert (
        paths({"from": "2026-11-21T10:00:00Z"}, {"type": "object", "x-glassd-before": said}) == []
    )


def test_null_is_no_object():
    assert paths({**GOOD, "o": None}) == ["/o"]


@pytest.mark.parametrize("bad", [{"x": b"bytes"}, {"x": float("nan")}, {"x": {1, 2}}])
def test_arguments_that_are_not_json_are_an_error_not_a_crash(bad):
    assert paths(bad, {"type": "object"}) == ["root"]


def test_arguments_nested_without_end_are_an_error_not_a_crash():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    assert paths({"x": deep}, {"type": "object"}) == ["root"]


def test_arguments_larger_than_a_message_are_refused():
    assert paths({"x": "a" * schemas.MAX_ARGS_BYTES}, {"type": "object"}) == ["root"]


def test_a_problem_does_not_quote_a_megabyte():
    problems = compile_schema({"properties": {"x": {"type": "integer"}}}).errors(
        {"x": "a" * 100_000}
    )
    assert len(problems[0]["problem"]) <= schemas.MAX_PROBLEM
    assert problems[0]["problem"].endswith('a" is not of type "integer"')


def test_there_are_at_most_a_hundred_errors():
    problems = compile_schema({"properties": {"x": {"items": {"type": "string"}}}}).errors(
        {"x": [1] * 1000}
    )
    assert len(problems) == schemas.MAX_ERRORS


@pytest.mark.parametrize(
    "bad",
    [
        {"type": "strin"},
        {"pattern": "("},
        {"$ref": "#/$defs/none"},
        {"$schema": "urn:never-heard-of"},
        [],
        None,
        {"x": b""},
    ],
)
def test_a_schema_that_is_none_is_refused(bad):
    with pytest.raises(BadDefinition, match="Invalid JSON Schema in parameters: "):
        compile_schema(bad)


@pytest.mark.parametrize("where", ["http://127.0.0.1:9/schema.json", "file:///etc/hostname"])
def test_a_reference_to_the_outside_is_never_fetched(where):
    with pytest.raises(BadDefinition, match=r"disabled|cannot"):
        compile_schema({"properties": {"x": {"$ref": where}}})


def nested(levels):
    schema: dict = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


def test_depth_is_bounded_before_compiling():
    compile_schema(nested(schemas.MAX_DEPTH - 1))
    with pytest.raises(BadDefinition, match="deeper than 64"):
        compile_schema(nested(schemas.MAX_DEPTH))
    with pytest.raises(BadDefinition, match="deeper"):
        compile_schema(nested(100_000))


def test_the_number_of_subschemas_is_bounded():
    with pytest.raises(BadDefinition, match="subschemas"):
        compile_schema({"anyOf": [{} for _ in range(schemas.MAX_SUBSCHEMAS)]})


def test_the_size_is_bounded():
    with pytest.raises(BadDefinition, match="bytes; at most"):
        compile_schema({"description": "a" * schemas.MAX_SCHEMA_BYTES})


def test_a_hostile_pattern_does_not_hang():
    assert paths({"x": "a" * 40 + "b"}, {"properties": {"x": {"pattern": "^(a+)+$"}}}) == ["/x"]


def test_draft_7_is_honoured_when_it_is_named():
    draft7 = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"x": {"items": [{"type": "string"}]}},
    }
    assert paths({"x": [1]}, draft7) == ["/x/0"]


def test_compiled_schemas_are_reused_and_the_least_used_forgotten(monkeypatch):
    monkeypatch.setattr(schemas, "KEPT", 2)
    schemas._compiled.clear()
    one, two, three = ({"const": n} for n in (1, 2, 3))
    first = compile_schema(one)
    second = compile_schema(two)
    assert compile_schema(dict(one)) is first
    compile_schema(three)
    assert compile_schema(one) is first
    assert compile_schema(two) is not second


def test_a_changed_schema_is_not_mistaken_for_its_old_self():
    schema = {"properties": {"x": {"type": "string"}}}
    assert paths({"x": 1}, schema) == ["/x"]
    schema["properties"]["x"]["type"] = "integer"
    assert paths({"x": 1}, schema) == []


def test_frozen_schemas_compile():
    assert paths({}, frozen(REMINDER)) == ["root", "root"]


def test_the_bound_on_nesting_is_the_same_on_every_python():
    def nested(levels):
        value = 1
        for _ in range(levels):
            value = [value]
        return {"x": value}

    assert paths(nested(MAX_ARGS_DEPTH - 2), {"type": "object"}) == []
    assert paths(nested(MAX_ARGS_DEPTH), {"type": "object"}) == ["root"]


@pytest.mark.parametrize("moment", ["2026-11-23T{}:00:00Z", "2026-11-23t{}:00:00z"])
def test_moments_in_the_wrong_order_are_seen_however_they_are_written(moment):
    found = list(
        schemas._out_of_order(
            {"start": "end"}, {"start": moment.format("10"), "end": moment.format("09")}
        )
    )
    assert found == [{"path": "/start", "problem": "must be before /end"}]


@pytest.mark.parametrize(("levels", "good"), [(127, True), (128, False)])
def test_arguments_are_127_levels_deep_at_most(levels, good):
    value = "x"
    for _ in range(levels):
        value = [value]
    assert (compile_schema({}).errors(value) == []) is good
