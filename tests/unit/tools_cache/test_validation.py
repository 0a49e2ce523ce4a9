"""JSON Schema 2020-12 as it really behaves behind our wrapper: keywords, formats, references,
defaults, bounds, errors.

Vectors written from the specification's own rules; nothing here knows which library stands behind
`compile_schema`.
"""

import http.server
import threading

import pytest
from hypothesis import given, strategies as st

from tests.unit.tools_cache.folders import closed, write
from tools_cache import schema as schemas
from tools_cache.api.tool import Source
from tools_cache.builder import compiler, lint_parameters
from tools_cache.errors import BadDefinition
from tools_cache.registry import manifest
from tools_cache.schema import check_schema, compile_schema


def paths(value, schema):
    return sorted(problem["path"] for problem in compile_schema(schema).errors(value))


def good(value, schema):
    return paths(value, schema) == []


REFS = {
    "$defs": {"A": {"$anchor": "a", "type": "integer"}},
    "properties": {"x": {"$ref": "#a"}, "y": {"$ref": "#/$defs/A"}},
}
TREE = {
    "$id": "urn:tree",
    "$dynamicAnchor": "node",
    "properties": {"kids": {"items": {"$dynamicRef": "#node"}}, "v": {"type": "integer"}},
}
KEYWORDS = {
    "type list": ({"type": ["string", "null"]}, [None, "a"], [1, [], False]),
    "integer": ({"type": "integer"}, [3, 3.0, -1, 2**70], [3.5, "3", True, None]),
    "number": ({"type": "number"}, [3, 3.5], ["3", False]),
    "const": ({"const": {"a": 1}}, [{"a": 1}, {"a": 1.0}], [{"a": 2}, 1]),
    "enum tells false from 0": ({"enum": [0]}, [0, 0.0], [False, ""]),
    "multipleOf": ({"multipleOf": 0.01}, [0.07, 19.99, 1], [0.075]),
    "exclusive bounds": ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.5], [0, 1]),
    "length counts characters": ({"maxLength": 2}, ["äö", "😀😀"], ["abc"]),
    "pattern is a search": ({"pattern": "b+"}, ["abc"], ["ac"]),
    "pattern knows unicode classes": ({"pattern": r"^\p{L}+$"}, ["Grüße", "λόγος"], ["a1", ""]),
    "prefixItems": (
        {"prefixItems": [{"type": "integer"}], "items": False},
        [[1], []],
        [["a"], [1, 2]],
    ),
    "items follow prefixItems": (
        {"prefixItems": [True], "items": {"type": "integer"}},
        [["a", 1]],
        [["a", "b"]],
    ),
    "contains": (
        {"contains": {"const": 1}, "minContains": 2, "maxContains": 3},
        [[1, 1]],
        [[1], [1, 1, 1, 1]],
    ),
    "uniqueItems": (
        {"uniqueItems": True},
        [[1, True], [0, False]],
        [[1, 1.0], [{"a": 1}, {"a": 1}]],
    ),
    "unevaluatedItems": ({"prefixItems": [True], "unevaluatedItems": False}, [[1]], [[1, 2]]),
    "unevaluatedProperties": (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        [{"a": 1}],
        [{"b": 1}, {"a": 1, "b": 1}],
    ),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, [{}, {"a": 1, "b": 1}], [{"a": 1}]),
    "dependentSchemas": (
        {"dependentSchemas": {"a": {"maxProperties": 1}}},
        [{"a": 1}],
        [{"a": 1, "b": 2}],
    ),
    "propertyNames": ({"propertyNames": {"maxLength": 1}}, [{"a": 1}], [{"ab": 1}]),
    "patternProperties": (
        {"patternProperties": {"^n_": {"type": "number"}}, "additionalProperties": False},
        [{"n_a": 1}],
        [{"n_a": "x"}, {"a": 1}],
    ),
    "if then else": (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
        [{"a": 1, "b": 1}, {"c": 1}],
        [{"a": 1}, {}],
    ),
    "oneOf is exactly one": ({"oneOf": [{"type": "number"}, {"minimum": 2}]}, [1, "a"], [3]),
    "not": ({"not": {"type": "null"}}, [0], [None]),
    "true and false": ({"properties": {"a": False, "b": True}}, [{"b": 1}], [{"a": 1}]),
    "$ref to an anchor": (REFS, [{"x": 1, "y": 2}], [{"x": "a"}, {"y": "a"}]),
    "$ref beside keywords": (
        {"$defs": {"A": {"type": "integer"}}, "$ref": "#/$defs/A", "minimum": 3},
        [3],
        [2, "a"],
    ),
    "a tree by $dynamicRef": (
        TREE,
        [{"kids": [{"kids": [{"v": 1}]}]}],
        [{"kids": [{"kids": [{"v": "x"}]}]}],
    ),
    "content is an annotation": (
        {"contentEncoding": "base64", "contentMediaType": "application/json"},
        ["not base64!"],
        [],
    ),
    "unknown keywords pass": (
        {"x-mcp-header": {"k": 1}, "nullable": True, "type": "string"},
        ["a"],
        [None],
    ),
}


@pytest.mark.parametrize("name", KEYWORDS)
@pytest.mark.requirement("I5-json-schema", "C-27")
def test_a_keyword_of_2020_12_means_what_the_specification_says(name):
    schema, taken, refused = KEYWORDS[name]
    assert [v for v in taken if not good(v, schema)] == []
    assert [v for v in refused if good(v, schema)] == []


FORMATS = {
    "date": (
        ["2026-02-28", "2024-02-29"],
        ["2026-02-29", "26-2-28", "2026-02-28T00:00:00Z", "tomorrow"],
    ),
    "date-time": (
        ["2026-11-21T10:00:00Z", "2026-11-21t10:00:00.5+01:00", "1998-12-31T23:59:60Z"],
        [
            "tomorrow",
            "2026-11-21",
            "2026-11-21T10:00:00",
            "2026-11-21T10:00:00Z\n",
            "2026-11-21T25:00:00Z",
        ],
    ),
    "time": (["10:00:00Z", "23:59:59.999+00:00"], ["10:00", "24:00:00Z"]),
    "duration": (["P1D", "PT36H", "P1Y2M3DT4H5M6S", "P4W"], ["1D", "P", "PT", "P1D2W"]),
    "email": (
        ["a@example.org", "a.b+c@example.org"],
        ["nope", "a@", "@b", "a b@example.org", "2962"],
    ),
    "hostname": (["example.org", "localhost"], ["-a.org", "a_b.org", "a..b"]),
    "ipv4": (["127.0.0.1"], ["256.0.0.1", "127.0.0", "127.0.0.01", "0x7f000001"]),
    "ipv6": (["::1", "fe80::1:2"], ["::g", "1:2:3", "12345::"]),
    "uri": (
        ["https://example.org/a?b#c", "urn:isbn:1"],
        ["example.org", "/relative", "http://a b", "\\\\share"],
    ),
    "uri-reference": (["/relative", "#x"], ["a b", "\\\\share"]),
    "uri-template": (["/a/{b}"], ["/a/{b"]),
    "iri": (["https://ü.example/ä"], ["ä b"]),
    "uuid": (
        ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
        ["2eb8aa08", "2eb8aa08-aa98-11ea-b4aa73b441d16380"],
    ),
    "json-pointer": (["", "/a/0", "/a~1b"], ["a", "/~"]),
    "relative-json-pointer": (["0", "1/a"], ["/a", "-1/a", "01/a"]),
    "regex": (["^a+$"], ["(", "a{2,1}"]),
    "idn-email": (["ä@example.org"], ["nope"]),
    "idn-hostname": (["ü.example"], ["-ü"]),
    "iri-reference": (["/ä"], ["\\\\share"]),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.requirement("I5-json-schema", "S2-38", "C-28")
def test_a_format_is_asserted(name):
    schema = {"properties": {"v": {"type": "string", "format": name}}}
    taken, refused = FORMATS[name]
    assert [v for v in taken if not good({"v": v}, schema)] == []
    assert [v for v in refused if paths({"v": v}, schema) != ["/v"]] == []
    assert good(5, {"format": name}), "a format judges text only"


def test_the_lint_knows_exactly_the_formats_that_are_asserted():
    assert set(FORMATS) == lint_parameters.FORMATS
    assert good("x", {"format": "never-heard-of"}), "which is why our own schemas may not name it"


@pytest.fixture
def served():
    """A real server that would be glad to hand out a schema, and counts who asks."""
    asked = []

    class Schema(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Schema) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/schema.json", asked
        server.shutdown()
        thread.join()


@pytest.mark.enable_socket
@pytest.mark.requirement("I5-json-schema")
def test_no_reference_ever_leaves_the_schema(served, tmp_path):
    url, asked = served
    file = tmp_path / "schema.json"
    file.write_text("true")
    for where in (url, file.as_uri(), "//127.0.0.1/schema", "other.json", "urn:other"):
        for wrap in (
            lambda ref: {"$ref": ref},
            lambda ref: {"allOf": [{"$dynamicRef": ref}]},
            lambda ref: {"$schema": ref},
        ):
            with pytest.raises(BadDefinition, match=r"^Invalid JSON Schema in parameters: "):
                compile_schema(
                    {"properties": {"x": wrap(where)}}
                    if "$schema" not in wrap(where)
                    else wrap(where)
                )
    assert asked == []


KB = {
    "type": "object",
    "additionalProperties": False,
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
        "filters": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "since": {"type": "string", "format": "date-time"},
                "lang": {"type": "string", "default": "en"},
            },
        },
    },
}


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({"query": "x"}, []),
        ({"query": "x", "top_k": 3}, []),
        ({"query": "x", "top_k": 3.0}, []),
        ({"query": "x", "filters": {}}, []),
        ({"query": "x", "top_k": "3"}, ["/top_k"]),
        ({"query": "x", "top_k": 3.5}, ["/top_k"]),
        ({"query": "x", "top_k": True}, ["/top_k"]),
        ({"query": "x", "top_k": None}, ["/top_k"]),
        ({"query": "x", "filters": None}, ["/filters"]),
        ({"query": "x", "filters": []}, ["/filters"]),
        ({"query": 5}, ["/query"]),
        ({"query": "x", "bogus": 1}, ["root"]),
        ({"query": "x", "filters": {"since": 5}}, ["/filters/since"]),
        ({"query": "x", "filters": {"since": "tomorrow", "z": 1}}, ["/filters", "/filters/since"]),
        (
            {"top_k": 99, "filters": {"since": "tomorrow"}, "bogus": 1},
            ["/filters/since", "/top_k", "root", "root"],
        ),
    ],
)
@pytest.mark.requirement("S2-36", "S2-37", "S2-48", "S0-52", "S0-53", "S0-54")
def test_arguments_are_validated_in_depth_and_never_converted(args, wrong):
    validator = compile_schema(KB)
    assert sorted(p["path"] for p in validator.errors(validator.filled(args))) == wrong


@pytest.mark.requirement("S0-50")
def test_every_missing_field_is_named():
    problems = compile_schema({"required": ["first", "second", "third"]}).errors({})
    assert len(problems) == 3
    assert {
        w for w in ("first", "second", "third") if any(w in p["problem"] for p in problems)
    } == {"first", "second", "third"}


@pytest.mark.requirement("S0-51", "C-07")
def test_further_arguments_are_taken_unless_the_schema_closes():
    assert good({"a": 1, "more": 2}, {"type": "object", "properties": {"a": {"type": "integer"}}})
    assert not good({"a": 1, "more": 2}, closed(a={"type": "integer"}))


DEFAULTS = {
    "null is an answer": (KB, {"query": "x", "top_k": None}, {"query": "x", "top_k": None}),
    "filled beside what is given": (KB, {"query": "x"}, {"query": "x", "top_k": 5}),
    "children of a parent that is there": (
        KB,
        {"query": "x", "filters": {}},
        {"query": "x", "top_k": 5, "filters": {"lang": "en"}},
    ),
    "not through a reference": (
        {
            "properties": {"a": {"$ref": "#/$defs/D"}},
            "$defs": {"D": {"type": "object", "properties": {"b": {"default": 1}}}},
        },
        {"a": {}},
        {"a": {}},
    ),
    "nothing in a choice": (
        {
            "anyOf": [{"properties": {"a": {"default": 1}}}],
            "oneOf": [{"properties": {"b": {"default": 1}}}],
        },
        {},
        {},
    ),
    "every object of a list": (
        {"properties": {"l": {"items": {"properties": {"a": {"default": []}}}}}},
        {"l": [{}, {"a": 1}]},
        {"l": [{"a": []}, {"a": 1}]},
    ),
    "not in prefixItems": (
        {"properties": {"l": {"prefixItems": [{"properties": {"a": {"default": 1}}}]}}},
        {"l": [{}]},
        {"l": [{}]},
    ),
    "nothing under additionalProperties": (
        {"additionalProperties": {"properties": {"a": {"default": 1}}}},
        {"x": {}},
        {"x": {}},
    ),
}


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.requirement("I5-json-schema", "S2-34")
def test_defaults_are_filled_in_their_places_only(name):
    schema, args, filled = DEFAULTS[name]
    assert compile_schema(schema).filled(args) == filled


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(.*a){20}$", "(x+x+)+y", "^([a-z]+)*[A-Z]$"]
)
@pytest.mark.requirement("I5-json-schema")
def test_a_pattern_made_to_hang_does_not(pattern):
    """A backtracking engine needs minutes for these; the test's own time limit is the proof."""
    value = ("a" * 40 + "x" * 40) * 100 + "!"
    assert paths({"v": value}, {"properties": {"v": {"pattern": pattern}}}) in (["/v"], ["root"])


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"const": "x" * schemas.MAX_SCHEMA_BYTES}, "bytes; at most 65536"),
        ({"anyOf": [{}] * 2001}, "more than 2000 subschemas"),
    ],
)
@pytest.mark.requirement("I5-json-schema")
def test_a_schema_beyond_the_bounds_is_refused_before_it_is_compiled(schema, says):
    with pytest.raises(BadDefinition, match=says):
        check_schema(schema)


NAMES = st.text("abz", min_size=1, max_size=2)
PARTS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "format": "date"},
            {"type": "integer", "minimum": 1, "default": 2},
            {"type": ["string", "null"]},
            {"type": "number", "default": "x"},
            {"enum": ["a", "b"]},
            {"const": 1},
            {"type": "strin"},
            {"pattern": "("},
            {"format": "nope"},
            {"minLenght": 1},
            {"anyOf": [{"default": 1}]},
            {"$ref": "#/nowhere"},
            True,
            {},
        ]
    ),
    lambda inner: (
        st.dictionaries(NAMES, inner, max_size=3).map(lambda p: closed(**p))
        | inner.map(lambda i: {"type": "array", "items": i})
    ),
    max_leaves=5,
)
PARAMETERS = st.dictionaries(NAMES, PARTS, max_size=3).map(lambda parts: closed(**parts))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tools")


@given(parameters=PARAMETERS)
@pytest.mark.requirement("S2-20")
def test_what_the_build_accepts_never_fails_to_load(folder, parameters):
    report = compiler.compile_tools(write(folder, parameters=parameters))
    if report.text is None:
        assert {p.finding.rule for p in report.failures} <= {
            "parameters-schema",
            "parameters-format",
            "parameters-keyword",
            "parameters-bad-default",
            "parameters-unused-default",
        }
        return
    registry = manifest.load(report.text.encode(), source=Source.LOCAL)
    assert registry.dropped == ()
    (tool,) = registry.apps[0].tools
    validator = compile_schema(tool.input_schema)
    assert validator.errors(validator.filled({})) == []
