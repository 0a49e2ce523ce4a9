"""The forms in which providers are told of a tool: what each says, what it loses, and when
there is none.
"""

import copy
import json

import pytest
from hypothesis import given, strategies as st

from tests.unit.tools_cache.folders import closed, named, write
from tools_cache.api.tool import Source
from tools_cache.builder import compiler
from tools_cache.errors import MissingForm
from tools_cache.names import aliases
from tools_cache.providers import openai
from tools_cache.providers.forms import MAKERS, PROVIDERS, find, form_of, forms
from tools_cache.providers.models import DescribedTool, Withheld
from tools_cache.registry import manifest
from tools_cache.schema import compile_schema

SEARCH = {
    "type": "object",
    "additionalProperties": False,
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "description": "What to look for.", "minLength": 1},
        "top_k": {
            "type": "integer",
            "minimum": 1,
            "maximum": 20,
            "default": 5,
            "description": "How many.",
        },
        "filters": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "since": {"type": "string", "format": "date-time"},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 9},
            },
        },
        "order": {"type": "string", "enum": ["new", "best"]},
        "score": {"type": "number"},
        "exact": {"type": "boolean"},
    },
}


def told(schema=SEARCH, **changes):
    return DescribedTool(
        **{
            "name": "kb:search",
            "description": "Search.",
            "parameters": copy.deepcopy(schema),
            **changes,
        }
    )


def form(provider, schema=SEARCH, **changes):
    return MAKERS[provider](told(schema, **changes))


def withheld(provider, schema, **changes):
    with pytest.raises(Withheld) as e:
        form(provider, schema, **changes)
    return str(e.value)


# ------------------------------------------------------------------ each provider


@pytest.mark.requirement("S2-28")
def test_openai_gets_the_parameters_as_they_are():
    said, losses = form("openai")
    assert said == {
        "type": "function",
        "function": {
            "name": "kb__search",
            "description": "Search.",
            "parameters": SEARCH,
            "strict": False,
        },
    }
    assert losses == ()


def test_anthropic_gets_the_parameters_as_they_are():
    assert form("anthropic") == (
        {"name": "kb__search", "description": "Search.", "input_schema": SEARCH},
        (),
    )


@pytest.mark.requirement("S2-29")
def test_gemini_gets_json_schema_without_extensions():
    schema = {
        **SEARCH,
        "x-order": 1,
        "properties": {
            **SEARCH["properties"],
            "x-axis": {"type": "integer", "x-unit": "px", "default": {"x-a": 1}},
        },
    }
    assert "x-axis: Gemini takes parameter names" in withheld("gemini", schema)
    schema["properties"]["x_axis"] = schema["properties"].pop("x-axis")
    said, losses = form("gemini", schema)
    assert sorted(said) == ["description", "name", "parametersJsonSchema"]
    assert said["parametersJsonSchema"] == {
        **SEARCH,
        "properties": {
            **SEARCH["properties"],
            "x_axis": {"type": "integer", "default": {"x-a": 1}},
        },
    }
    assert losses == ("root: x-order is left out", "/properties/x_axis: x-unit is left out")


@pytest.mark.requirement("S2-29", "S2-30")
def test_the_older_gemini_form_reports_every_loss():
    said, losses = form("geminiNative")
    assert said["parameters"] == {
        "type": "OBJECT",
        "required": ["query"],
        "properties": {
            "query": {"type": "STRING", "description": "What to look for."},
            "top_k": {"type": "NUMBER", "description": "How many."},
            "filters": {
                "type": "OBJECT",
                "properties": {
                    "since": {"type": "STRING"},
                    "tags": {"type": "ARRAY", "items": {"type": "STRING"}},
                },
            },
            "order": {"type": "STRING", "enum": ["new", "best"]},
            "score": {"type": "NUMBER"},
            "exact": {"type": "BOOLEAN"},
        },
    }
    assert set(losses) == {
        "root: additionalProperties is left out",
        "/properties/query: minLength is left out",
        "/properties/top_k: minimum is left out",
        "/properties/top_k: maximum is left out",
        "/properties/top_k: default is left out",
        "/properties/top_k: type integer reads NUMBER",
        "/properties/filters: additionalProperties is left out",
        "/properties/filters/properties/since: format is left out",
        "/properties/filters/properties/tags: maxItems is left out",
    }


@pytest.mark.parametrize(
    ("part", "said", "loss"),
    [
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}, ()),
        (
            {"type": ["integer", "null"]},
            {"type": "NUMBER", "nullable": True},
            ("/properties/p: type ['integer', 'null'] reads NUMBER",),
        ),
        (
            {"type": ["string", "integer"]},
            {"type": "STRING"},
            ("/properties/p: type ['string', 'integer'] reads STRING",),
        ),
        ({}, {"type": "STRING"}, ("/properties/p: no type reads STRING",)),
        (True, {"type": "STRING"}, ("/properties/p: True reads STRING",)),
        (
            {"type": "integer", "enum": [1, 2, None]},
            {"type": "NUMBER", "enum": ["1", "2"]},
            ("/properties/p: type integer reads NUMBER", "/properties/p: enum reads text"),
        ),
    ],
)
@pytest.mark.requirement("S2-30")
def test_the_older_gemini_form_of_what_it_cannot_say(part, said, loss):
    made, losses = form("geminiNative", {"type": "object", "properties": {"p": part}})
    assert (made["parameters"]["properties"]["p"], losses) == (said, loss)


def test_mcp_gets_the_hints_that_follow_from_side_effects():
    def hints(**changes):
        return form("mcp", **changes)[0]["annotations"]

    assert hints(writes=False) == {"readOnlyHint": True, "openWorldHint": False}
    assert hints(writes=True, idempotent=True, confirmed=True) == {
        "readOnlyHint": False,
        "openWorldHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
    }
    assert form("mcp")[0]["inputSchema"] == SEARCH


@pytest.mark.requirement("S2-04")
def test_what_writes_is_no_read_only_tool_for_mcp(tmp_path):
    named(
        write(tmp_path),
        "demo_get",
        category="retrieval",
        sideEffects="read_only",
        idempotent=True,
        requiresConfirmation="never",
    )
    tools = {
        t["name"]: t["providerSchemas"]["mcp"]["annotations"]
        for t in json.loads(compiler.compile_tools(tmp_path).text)["tools"]
    }
    assert [tools[name]["readOnlyHint"] for name in ("demo:do", "demo:get")] == [False, True]


@pytest.mark.parametrize("provider", ["openai", "openaiStrict", "anthropic"])
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf", "not", "enum"])
def test_a_root_that_is_more_than_an_object_is_withheld_by_name(provider, keyword):
    assert f"takes no {keyword} at the root" in withheld(
        provider, {"type": "object", keyword: {"const": 1} if keyword == "not" else [{}]}
    )


# ------------------------------------------------------------------ OpenAI, strict


@pytest.mark.requirement("I5-strict")
def test_strict_requires_everything_and_lets_what_was_optional_be_null():
    said, losses = form("openaiStrict")
    function = said["function"]
    assert function["strict"] is True
    made = function["parameters"]
    assert made["required"] == list(SEARCH["properties"])
    assert made["properties"]["query"] == {"type": "string", "description": "What to look for."}
    assert made["properties"]["top_k"] == {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": 20,
        "description": "How many.",
    }
    assert made["properties"]["order"] == {
        "type": ["string", "null"],
        "enum": ["new", "best", None],
    }
    assert made["properties"]["filters"]["required"] == ["since", "tags"]
    assert made["properties"]["filters"]["type"] == ["object", "null"]
    assert set(losses) == {
        "/properties/query: minLength is left out",
        "/properties/top_k: default is left out",
    }


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (closed(a={"allOf": [{}]}), "/properties/a: strict mode knows no allOf"),
        (closed(a={"not": {}}), "knows no not"),
        (closed(a={"if": {}}), "knows no if"),
        ({**closed(), "dependentRequired": {}}, "knows no dependentRequired"),
        (closed(a={}), "/properties/a: strict mode needs a schema that says a type"),
        (closed(a=True), "says a type"),
        (closed(a={"type": "object", "additionalProperties": {"type": "string"}}), "knows no maps"),
        (closed(a={"$ref": "#"}), "$ref into $defs only"),
        (
            closed(a={"anyOf": [closed(b={"type": "string"}), {"type": "null"}]}),
            "no optional properties in a choice",
        ),
        (
            {"type": "object", "required": ["a"]},
            "needs 'a', which is required, among the properties",
        ),
        (
            closed(a={"enum": [f"{n}" for n in range(1001)]}),
            "takes 1000 enum values; these are 1001",
        ),
        (closed(a={"enum": [f"{n:060}" for n in range(251)]}), "15000 characters of an enum"),
        (
            closed(**{"a" * 60001: {"type": "null"}, "b" * 60000: {"type": "null"}}),
            "takes 120000 characters of names and values; these are 120001",
        ),
        (
            closed(**{f"p{n}": {"type": "null"} for n in range(5001)}),
            "takes 5000 properties; these are 5001",
        ),
    ],
)
@pytest.mark.requirement("I5-strict")
def test_what_strict_mode_cannot_say_is_withheld_with_the_reason(schema, says):
    assert says in withheld("openaiStrict", schema)
    assert form("openai", schema).document["function"]["parameters"] == schema


def nested(levels):
    schema = {"type": "object", "properties": {}}
    for _ in range(levels - 1):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_strict_mode_takes_ten_levels():
    form("openaiStrict", nested(10))
    assert "10 levels" in withheld("openaiStrict", nested(11))


@pytest.mark.parametrize(
    ("schema", "args", "stripped"),
    [
        (SEARCH, {"query": "x", "top_k": None, "filters": None}, {"query": "x"}),
        (
            SEARCH,
            {"query": "x", "filters": {"since": None, "tags": ["a"]}},
            {"query": "x", "filters": {"tags": ["a"]}},
        ),
        (closed(a={"type": ["string", "null"]}), {"a": None}, {"a": None}),
        (closed(a={"enum": ["x", None]}), {"a": None}, {"a": None}),
        ({**closed(a={"type": "null"}), "required": ["a"]}, {"a": None}, {"a": None}),
        (
            closed(a={"type": "array", "items": closed(b={"type": "string"})}),
            {"a": [{"b": None}, {"b": "x"}]},
            {"a": [{}, {"b": "x"}]},
        ),
        (
            {**closed(a={"$ref": "#/$defs/A"}), "$defs": {"A": closed(b={"type": "string"})}},
            {"a": {"b": None}},
            {"a": {}},
        ),
        (SEARCH, {"query": None, "bogus": None}, {"query": None, "bogus": None}),
        (SEARCH, [None], [None]),
        (SEARCH, None, None),
    ],
)
@pytest.mark.requirement("I5-strict")
def test_nulls_of_a_strict_model_are_taken_out_before_validation(schema, args, stripped):
    before = copy.deepcopy(args)
    assert openai.without_nulls(schema, args) == stripped
    assert args == before


LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 1},
        {"type": ["boolean", "null"]},
        {"type": "string", "enum": ["a", "b"]},
        {"const": 3},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "null"},
    ]
)
WHERE = st.text("abc", min_size=1, max_size=2)


def objects(inner):
    return st.dictionaries(WHERE, inner, max_size=3).flatmap(
        lambda parts: (
            st.sets(st.sampled_from(sorted(parts))).map(
                lambda required: {**closed(**parts), "required": sorted(required)}
            )
            if parts
            else st.just(closed())
        )
    )


SCHEMAS = objects(
    st.recursive(
        LEAVES,
        lambda inner: objects(inner) | inner.map(lambda i: {"type": "array", "items": i}),
        max_leaves=6,
    )
)
VALUES = {"string": "a", "integer": 1, "boolean": True, "null": None}


def sample(schema, pick):
    """Some value that this strict schema accepts; `pick` chooses null where it may."""
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return (
            None
            if {"type": "null"} in schema["anyOf"] and pick()
            else sample(schema["anyOf"][0], pick)
        )
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "null" in kinds and pick():
        return None
    if kinds[0] == "object":
        return {name: sample(part, pick) for name, part in schema["properties"].items()}
    return [sample(schema["items"], pick)] if kinds[0] == "array" else VALUES[kinds[0]]


@given(SCHEMAS, st.data())
@pytest.mark.requirement("I5-strict")
def test_whatever_a_strict_model_says_is_valid_once_its_nulls_are_out(schema, data):
    strict = form("openaiStrict", schema).document["function"]["parameters"]
    said = sample(strict, lambda: data.draw(st.booleans()))
    assert compile_schema(strict).errors(said) == []
    assert compile_schema(schema).errors(openai.without_nulls(schema, said)) == []


# ------------------------------------------------------------------ in the artifact


@pytest.mark.requirement("I5-withheld")
def test_a_form_that_cannot_be_made_is_withheld_from_its_provider_only(tmp_path):
    report = compiler.compile_tools(
        write(tmp_path, parameters=closed(**{"a-b": {"type": "string"}}))
    )
    (only,) = json.loads(report.text)["tools"]
    assert set(only["providerSchemas"]) == set(PROVIDERS) - {"gemini", "geminiNative"}
    assert set(only["withheld"]) == {"gemini", "geminiNative"}
    assert "/properties/a-b: Gemini takes parameter names" in only["withheld"]["gemini"]
    with pytest.raises(MissingForm, match=r"^Tool demo:do missing gemini schema: /properties/a-b"):
        form_of(only, "gemini")
    assert form_of(only, "openai")["function"]["name"] == "demo__do"


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.requirement("S2-27")
def test_every_form_is_always_built_and_one_that_is_gone_is_missed_by_name(tmp_path, provider):
    document = json.loads(compiler.compile_tools(write(tmp_path)).text)
    for name in ("demo:do", "demo__do"):
        assert form_of(find(document, name), provider)
    del document["tools"][0]["providerSchemas"][provider]
    with pytest.raises(MissingForm, match=rf"^Tool demo:do missing {provider} schema$"):
        form_of(find(document, "demo:do"), provider)


@pytest.mark.requirement("S2-30")
def test_the_report_tells_every_loss(tmp_path):
    report = compiler.compile_tools(
        write(tmp_path, parameters=closed(n={"type": "integer", "maximum": 3}))
    )
    lost = report.forms["demo:do"].losses["geminiNative"]
    assert lost == (
        "root: additionalProperties is left out",
        "/properties/n: maximum is left out",
        "/properties/n: type integer reads NUMBER",
    )
    (only,) = json.loads(report.text)["tools"]
    assert only["losses"]["geminiNative"] == list(lost)


def test_a_change_of_a_form_alone_is_a_new_version(tmp_path, monkeypatch):
    before = compiler.compile_tools(write(tmp_path)).version
    monkeypatch.setattr(
        "tools_cache.builder.compiler.forms",
        lambda tool: forms(DescribedTool(name=tool.name, description="?", parameters={})),
    )
    assert compiler.compile_tools(tmp_path).version != before


def test_all_forms_of_what_we_ship_are_made_and_known_by_one_alias():
    document = json.loads(compiler.compile_tools().text)
    for tool in document["tools"]:
        assert set(tool["providerSchemas"]) >= {
            "mcp",
            "openai",
            "anthropic",
            "gemini",
            "geminiNative",
        }, tool["name"]
        made = tool["providerSchemas"]
        names = {(f.get("function") or f)["name"] for f in made.values()}
        assert names == {tool["encodedName"]}
        assert find(document, tool["encodedName"]) is tool
        assert aliases(t["name"] for t in document["tools"])[tool["encodedName"]] == tool["name"]


def test_the_daemon_reads_none_of_it(tmp_path):
    """What models are told costs the daemon nothing: it is not in what `manifest` keeps, nor
    looked through.
    """
    text = compiler.compile_tools(
        write(tmp_path, parameters=closed(only_here={"type": "string"}))
    ).text
    (app,) = manifest.load(text.encode()).apps
    (tool,) = app.tools
    assert "providerSchemas" not in str(tool.raw)
    assert str(tool.raw).count("only_here") == 1
    document = json.loads(text)
    deep: list = []
    for _ in range(manifest.MAX_NESTING + 5):
        deep = [deep]
    document["tools"] = deep
    assert (
        manifest.load(json.dumps(document).encode(), source=Source.LOCAL).version
        == document["version"]
    )
