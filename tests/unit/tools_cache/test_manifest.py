import copy
import json
import logging

import pytest

from tools_cache.api.tool import Mode, SideEffects, Source
from tools_cache.api.wearer import NO_TEXTS, Undo
from tools_cache.errors import BadDefinition, BadManifest
from tools_cache.frozen import frozen
from tools_cache.registry import manifest
from tools_cache.registry.manifest import definition, digest, from_tool_list, load
from tools_cache.registry.models import Detail, Requirement

TOOL = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "properties": {}}}


def document(*tools, package="com.x", **app):
    return {
        "packageName": package,
        "name": "X",
        "hardwareRequirements": [],
        "tools": list(tools),
        **app,
    }


def body(*apps, **head):
    return json.dumps(
        {"version": "7", "sha256": digest(list(apps)), "apps": list(apps), **head}
    ).encode()


def tools_of(registry):
    return [t.name for app in registry.apps for t in app.tools]


def only(registry):
    (app,) = registry.apps
    (tool,) = app.tools
    return tool


def test_two_apps_with_three_tools_are_read_with_canonical_names():
    registry = load(body(document(TOOL, {**TOOL, "name": "sub"}), document(TOOL, package="org.y")))
    assert tools_of(registry) == ["com.x:add", "com.x:sub", "org.y:add"]
    assert (registry.version, registry.dropped) == ("7", ())


@pytest.mark.requirement("S0-15")
def test_unknown_fields_pass_through_untouched():
    authored = {
        **TOOL,
        "x-mine": {"deep": [1, {"a": None}]},
        "annotations": {"title": "T"},
        "queueable": True,
        "inputSchema": {
            "type": "object",
            "x-mcp-header": {"k": 1},
            "properties": {"ü": {"type": "string"}},
        },
    }
    assert only(load(body(document(authored)))).raw == authored


def test_policy_metadata_is_read():
    tool = only(
        load(
            body(
                document(
                    {
                        **TOOL,
                        "version": "2.1",
                        "category": "retrieval",
                        "sideEffects": "read_only",
                        "idempotent": True,
                        "requiresConfirmation": "policy",
                        "allowedModes": ["text"],
                        "latencyBudgetMs": 800,
                        "timeoutS": 5,
                        "queueable": True,
                        "queue_ttl_s": 60,
                        "mentraExtensions": {"activationPhrases": ["add it"]},
                    }
                )
            )
        )
    )
    assert (tool.version, tool.category, tool.side_effects) == (
        "2.1",
        "retrieval",
        SideEffects.READ_ONLY,
    )
    assert (tool.idempotent, tool.requires_confirmation, tool.allowed_modes) == (
        True,
        "policy",
        frozenset({Mode.TEXT}),
    )
    assert (tool.latency_budget_ms, tool.timeout_s, tool.queueable, tool.queue_ttl_s) == (
        800,
        5.0,
        True,
        60.0,
    )
    assert (tool.activation_phrases, tool.source) == (("add it",), Source.CLOUD)


@pytest.mark.parametrize(
    ("given", "read"), [(True, "always"), (False, "never"), ("policy", "policy")]
)
def test_confirmation_may_be_written_as_a_truth_value(given, read):
    assert (
        only(load(body(document({**TOOL, "requiresConfirmation": given})))).requires_confirmation
        == read
    )


def test_null_activation_phrases_are_none_and_no_crash():
    assert (
        only(
            load(body(document({**TOOL, "mentraExtensions": {"activationPhrases": None}})))
        ).activation_phrases
        == ()
    )
    assert only(load(body(document({**TOOL, "mentraExtensions": None})))).activation_phrases == ()


WEARER = {
    "name": "the adder",
    "ask": "Add it?",
    "later": "I'll add “{{input.what}}” later",
    "undo": {"tool": "com.x:remove", "args": {"id": "{{data.id}}", "why": "{{input.what}}"}},
}


def wearer(**said):
    return {**TOOL, "mentraExtensions": {"wearer": {**WEARER, **said}}}


@pytest.mark.requirement("I13-wearer")
def test_what_a_tool_says_to_the_wearer_is_read():
    said = only(load(body(document(wearer())))).wearer
    assert (said.name, said.ask, said.later) == (
        "the adder",
        "Add it?",
        "I'll add “{{input.what}}” later",
    )
    assert said.undo == Undo("com.x:remove", {"id": "{{data.id}}", "why": "{{input.what}}"})
    assert only(load(body(document(TOOL)))).wearer is NO_TEXTS
    null = {**TOOL, "mentraExtensions": {"wearer": None}}
    assert only(load(body(document(null)))).wearer is NO_TEXTS


def test_how_to_check_a_call_is_one_short_line():
    def checked(text):
        return {**TOOL, "mentraExtensions": {"howToCheck": text}}

    assert only(load(body(document(TOOL)))).how_to_check == ""
    assert only(load(body(document(checked("look there"))))).how_to_check == "look there"
    for wrong in ("x" * 201, "two\nlines", " "):
        assert not load(body(document(checked(wrong)))).apps[0].tools


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"name": "x" * 61}, "mentraExtensions.wearer.name: "),
        ({"name": "two\nlines"}, "mentraExtensions.wearer.name: Value error, must be one line"),
        ({"name": "right\u202eleft"}, "mentraExtensions.wearer.name: Value error, must be one"),
        ({"ask": " "}, "mentraExtensions.wearer.ask: Value error, must be one line"),
        ({"ask": "Add {{input.what}}?"}, "mentraExtensions.wearer.ask: Value error, takes no {{"),
        ({"later": "{{data.id}}"}, "{{data.id}} is not a placeholder; there is {{input.NAME}}"),
        ({"later": "{{input.what"}, "mentraExtensions.wearer.later: Value error, has a {{ without"),
        ({"undo": {"tool": "remove"}}, "mentraExtensions.wearer.undo.tool: "),
        ({"undo": {"tool": "com.y:remove"}}, "undo.tool: must be another tool of com.x, not com.y"),
        ({"undo": {"tool": "com.x:add"}}, "undo.tool: must be another tool of com.x, not com.x"),
        ({"undo": {"tool": "com.x:r", "args": {"a": "{{env.X}}"}}}, "{{env.X}} is not a place"),
        ({"undo": {"tool": "com.x:r", "args": {"a": ["{{data"]}}}, "has a {{ without its }}"),
        ({"undo": {"tool": "com.x:r", "args": {str(n): n for n in range(17)}}}, "undo.args: "),
    ],
)
@pytest.mark.requirement("I13-wearer")
def test_a_tool_with_wrong_texts_for_the_wearer_is_dropped_with_the_reason(said, says):
    registry = load(body(document(wearer(**said), {**TOOL, "name": "good"})))
    assert tools_of(registry) == ["com.x:good"]
    assert says in registry.dropped[0].reason


@pytest.mark.parametrize(
    ("tool", "read"),
    [
        ({"category": "action"}, "action"),
        ({}, "utility"),
        ({"mentraExtensions": {"category": "media"}}, "media"),
        ({"category": "retrieval", "mentraExtensions": {"category": "media"}}, "retrieval"),
    ],
)
def test_category_is_the_policy_one_or_else_the_mentra_one(tool, read):
    assert only(load(body(document({**TOOL, **tool})))).category == read


@pytest.mark.requirement("S0-38")
def test_an_unknown_category_reads_other_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        assert only(load(body(document({**TOOL, "category": "weird"})))).category == "other"
    assert "weird" in caplog.text


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"name": "a:b"}, 'Tool name cannot contain ":". Got: a:b'),
        ({"name": "a b"}, "printable word"),
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"description": None}, "description"),
        ({"inputSchema": {"type": "array"}}, "inputSchema.type"),
        ({"inputSchema": None}, "inputSchema"),
        ({"sideEffects": "sometimes"}, "sideEffects"),
        ({"idempotent": "yes"}, "idempotent"),
        ({"requiresConfirmation": "maybe"}, "requiresConfirmation"),
        ({"allowedModes": []}, "allowedModes"),
        ({"allowedModes": ["x"]}, "allowedModes"),
        ({"latencyBudgetMs": 0}, "latencyBudgetMs"),
        ({"latencyBudgetMs": "5"}, "latencyBudgetMs"),
        ({"timeoutS": -1}, "timeoutS"),
        ({"queueable": 1}, "queueable"),
        ({"queue_ttl_s": 0}, "queue_ttl_s"),
        ({"mentraExtensions": {"activationPhrases": [1]}}, "activationPhrases"),
    ],
)
@pytest.mark.requirement("S0-35")
def test_one_bad_tool_is_dropped_by_name_and_the_rest_serve(bad, says):
    registry = load(
        body(document({**TOOL, **bad}, {**TOOL, "name": "good"}), document(TOOL, package="org.y"))
    )
    assert tools_of(registry) == ["com.x:good", "org.y:add"]
    ((name, reason),) = registry.dropped
    assert name.startswith("com.x:")
    assert says in reason


@pytest.mark.parametrize(
    "bad",
    [
        5,
        None,
        "x",
        {"name": "no package"},
        {"packageName": "a:b"},
        {"packageName": "c", "hardwareRequirements": 3},
    ],
)
def test_one_bad_app_is_dropped_and_the_rest_serve(bad):
    registry = load(body(bad, document(TOOL)))
    assert tools_of(registry) == ["com.x:add"]
    assert len(registry.dropped) == 1


def test_a_tool_that_is_there_twice_stands_once():
    registry = load(body(document(TOOL, {**TOOL, "description": "Other."}), document(TOOL)))
    assert tools_of(registry) == ["com.x:add"]
    assert (
        only(load(body(document(TOOL, {**TOOL, "description": "Other."})))).description == "Adds."
    )
    assert [d.name for d in registry.dropped] == ["com.x:add", "com.x:add"]


@pytest.mark.parametrize("app", [{"tools": []}, {"tools": None}])
def test_an_app_without_tools_is_no_error(app):
    assert load(body({**document(), **app})).dropped == ()


def test_hardware_needs_are_read_and_words_newer_than_us_are_kept():
    needs = [
        {"type": "camera", "level": "REQUIRED", "description": "to see"},
        {"type": "GPS", "level": "optional"},
    ]
    (app,) = load(body(document(TOOL, hardwareRequirements=needs))).apps
    assert app.requirements == (Requirement("CAMERA", True, "to see"), Requirement("GPS", False))


def test_what_a_need_asks_below_its_type_is_read():
    where = {
        "maxTextLines": {"min": 5},
        "resolution.width": {"min": 1, "max": 640},
        "canDisplayBitmap": True,
        "color": "green",
    }
    (app,) = load(
        body(
            document(
                TOOL,
                hardwareRequirements=[{"type": "DISPLAY", "level": "REQUIRED", "where": where}],
            )
        )
    ).apps
    assert app.requirements[0].details == (
        Detail("maxTextLines", least=5.0),
        Detail("resolution.width", least=1.0, most=640.0),
        Detail("canDisplayBitmap", equal=True),
        Detail("color", equal="green"),
    )


@pytest.mark.requirement("S2-133")
@pytest.mark.parametrize(
    "where",
    [
        {"lines": {"regex": ".*"}},
        {"lines": {}},
        {"lines": {"min": "5"}},
        {"lines": [5]},
        {"__import__('os')": True},
        ["lines"],
        "lines > 5",
        {"lines": {"min": 1, "eval": "1"}},
        {"lines": None},
        {f"f{n}": True for n in range(17)},
    ],
)
def test_a_need_that_cannot_be_compared_drops_its_app_and_is_named(where):
    bad = document(
        TOOL, hardwareRequirements=[{"type": "DISPLAY", "level": "REQUIRED", "where": where}]
    )
    registry = load(body(bad, document(TOOL, package="com.y")))
    assert tools_of(registry) == ["com.y:add"]
    assert registry.dropped[0].reason.startswith("hardwareRequirements.0.where")


HARDWARE = {"_meta": {"io.glassd/hardware": [{"type": "DISPLAY", "level": "REQUIRED"}]}}


@pytest.mark.requirement("C-44")
def test_a_tools_own_hardware_is_ignored_with_a_warning_unless_the_extension_is_on(caplog):
    bytes_ = body(document({**TOOL, **HARDWARE}))
    assert load(bytes_).apps[0].tool_requirements == {}
    assert "hardware belongs to the app" in caplog.text
    assert load(bytes_, per_tool_hardware=True).apps[0].tool_requirements == {
        "com.x:add": (Requirement("DISPLAY"),)
    }
    assert load(bytes_, source=Source.LOCAL).apps[0].tool_requirements == {
        "com.x:add": (Requirement("DISPLAY"),)
    }


def test_only_our_own_build_may_say_that_a_tool_lives_on_the_glasses():
    bytes_ = body(document({**TOOL, "source": "glasses"}))
    assert only(load(bytes_)).source is Source.CLOUD
    assert only(load(bytes_, source=Source.LOCAL)).source is Source.GLASSES


@pytest.mark.requirement("S0-43")
def test_a_legacy_tool_schema_is_migrated():
    legacy = {
        "id": "remind",
        "description": "Reminds.",
        "activationPhrases": ["remind me"],
        "parameters": {
            "what": {
                "type": "string",
                "description": "What",
                "enum": ["a"],
                "required": True,
                "junk": 1,
            },
            "when": {"type": "string"},
        },
    }
    tool = only(load(body(document(legacy))))
    assert tool.raw == {
        "name": "remind",
        "description": "Reminds.",
        "mentraExtensions": {"activationPhrases": ["remind me"]},
        "inputSchema": {
            "type": "object",
            "required": ["what"],
            "properties": {
                "what": {"type": "string", "description": "What", "enum": ["a"]},
                "when": {"type": "string"},
            },
        },
    }
    assert tool.name == "com.x:remind"


def test_a_legacy_tool_without_parameters_takes_none():
    assert only(load(body(document({"id": "go", "description": "Goes."})))).input_schema == {
        "type": "object",
        "properties": {},
    }


def test_a_legacy_tool_with_broken_parameters_is_dropped():
    assert (
        load(body(document({"id": "go", "description": "Goes.", "parameters": [1]})))
        .dropped[0]
        .name
        == "com.x:go"
    )


@pytest.mark.parametrize(
    "broken", [b"", b"{", b"[]", b"null", b'"x"', b'{"version": NaN}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_document_that_is_none_is_refused_whole(broken):
    with pytest.raises(BadManifest):
        load(broken)


def test_a_document_nested_too_deep_is_refused_whole():
    with pytest.raises(BadManifest, match="nested"):
        load(b'{"apps": ' + b"[" * 500 + b"]" * 500 + b"}")


def test_a_document_over_8_mib_is_refused_whole():
    with pytest.raises(BadManifest, match="at most"):
        load(b" " * (manifest.MAX_BYTES + 1))


def test_a_document_with_too_many_tools_is_refused_whole(monkeypatch):
    monkeypatch.setattr(manifest, "MAX_TOOLS", 2)
    with pytest.raises(BadManifest, match="more than 2 tools"):
        load(body(document(TOOL, TOOL, TOOL)))


def test_a_wrong_hash_is_refused_whole_unless_the_copy_is_our_own():
    wrong = body(document(TOOL), sha256="0" * 64)
    with pytest.raises(BadManifest, match="sha256"):
        load(wrong)
    assert tools_of(load(wrong, trusted=True)) == ["com.x:add"]


@pytest.mark.requirement("S2-49")
def test_a_wrong_envelope_version_is_refused_whole():
    with pytest.raises(BadManifest, match=r"Incompatible ToolResponse schema version: 2\.0\.0"):
        load(body(document(TOOL), envelopeVersion="2.0.0"))
    load(body(document(TOOL), envelopeVersion="1.0.0"))


@pytest.mark.parametrize("head", [{"version": 7}, {"version": ""}, {"sha256": "abc"}, {"apps": {}}])
def test_a_bad_head_is_refused_whole(head):
    with pytest.raises(BadManifest):
        load(body(document(TOOL), **head))


def test_the_hash_is_over_canonical_json():
    assert digest([{"b": 1.0, "a": "ü"}]) == digest(json.loads('[{"a":"\\u00fc","b":1}]'))
    # RFC 8785: keys sorted, no blanks, 1.0 is 1; sha256 of exactly these bytes
    assert (
        manifest.canonical([{"b": 1.0, "a": "ü", "c": 1e21}])
        == '[{"a":"ü","b":1,"c":1e+21}]'.encode()
    )


def test_an_integer_beyond_a_double_is_hashed_as_the_double_others_read():
    """`maximum: 9223372036854775807` is common; JavaScript reads and writes 9223372036854776000."""
    assert manifest.canonical({"maximum": 2**63 - 1}) == b'{"maximum":9223372036854776000}'
    tool = {
        **TOOL,
        "inputSchema": {
            "type": "object",
            "properties": {"n": {"type": "integer", "maximum": 2**63 - 1}},
        },
    }
    assert only(load(body(document(tool)))).input_schema["properties"]["n"]["maximum"] == 2**63 - 1


def test_a_document_that_has_no_canonical_form_is_refused_whole():
    bad = b'{"version":"1","sha256":"' + b"0" * 64 + b'","apps":["\\ud800"]}'
    with pytest.raises(BadManifest, match="hashed"):
        load(bad)


def test_what_a_registry_gives_cannot_be_changed():
    tool = only(load(body(document({**TOOL, "list": [1]}))))
    for change in (
        lambda: tool.raw.update(a=1),
        lambda: tool.raw["list"].append(2),
        lambda: tool.raw.__setitem__("a", 1),
        tool.input_schema["properties"].clear,
        lambda: tool.raw.__ior__({"a": 1}),
        tool.raw["list"].sort,
    ):
        with pytest.raises(TypeError, match="read-only"):
            change()
    assert tool.raw == {**TOOL, "list": [1]}


def test_a_deep_copy_of_frozen_json_is_plain_and_changeable():
    plain = copy.deepcopy(frozen({"a": [{"b": 1}]}))
    plain["a"][0]["b"] = 2
    plain["a"].append(3)
    assert (type(plain), type(plain["a"]), plain) == (dict, list, {"a": [{"b": 2}, 3]})


def test_frozen_json_dumps_like_plain_json():
    value = {"a": [1, {"b": None}], "c": "x"}
    assert json.dumps(frozen(value)) == json.dumps(value)


def test_a_flat_tool_list_becomes_a_registry():
    flat = {
        "tools": [
            {**TOOL, "name": "org.y:b", "x-k": 1},
            {**TOOL, "name": "com.x:a"},
            {**TOOL, "name": "com.x:c:d"},
            {**TOOL, "name": "nocolon"},
            {**TOOL, "name": ":x"},
            {**TOOL, "name": "p:"},
            5,
        ]
    }
    made, nameless = from_tool_list(json.dumps(flat).encode())
    registry = load(made)
    assert tools_of(registry) == ["com.x:a", "org.y:b"]
    assert registry.apps[1].tools[0].raw == {**TOOL, "name": "b", "x-k": 1}
    assert [d.name for d in registry.dropped] == ["com.x:c:d"]
    assert [d.name for d in nameless] == ["nocolon", ":x", "p:", "(unnamed)"]
    assert from_tool_list(json.dumps(flat).encode())[0] == made, (
        "the same list is the same registry"
    )


@pytest.mark.parametrize("bad", [b"[]", b"{}", b'{"tools": {}}', b"x"])
def test_a_flat_list_that_is_none_is_refused(bad):
    with pytest.raises(BadManifest):
        from_tool_list(bad)


def test_a_definition_that_is_no_object_is_refused():
    with pytest.raises(BadDefinition):
        manifest.definition("p", [1], source=Source.CLOUD)


@pytest.mark.requirement("S2-133")
@pytest.mark.parametrize(
    "condition",
    ["__import__('os').system('true')", {"glasses": "yes"}, {"moon": True}, ["glasses"], 1],
)
def test_a_condition_is_a_table_of_known_facts_and_never_an_expression(condition):
    tool = {
        "name": "t",
        "description": "d",
        "inputSchema": {"type": "object"},
        "availableWhen": condition,
    }
    with pytest.raises(BadDefinition, match="availableWhen"):
        definition("p", tool, source=Source.LOCAL)
    good = definition("p", {**tool, "availableWhen": {"glasses": True}}, source=Source.LOCAL)
    assert good.available_when == {"glasses": True}
