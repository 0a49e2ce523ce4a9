"""The console's checks: every mistake named by its field, good ones through untouched."""

import pytest

from edge.devcloud.definitions import BadSubmission, check_submission

GOOD = {"name": "go", "description": "goes", "inputSchema": {"type": "object", "properties": {}}}


def fields(body, package="com.x.y"):
    with pytest.raises(BadSubmission) as caught:
        check_submission(package, body)
    assert all(m.problem and m.fix for m in caught.value.mistakes)
    return {m.field for m in caught.value.mistakes}


def test_a_good_definition_passes_untouched_unknown_fields_included():
    tool = {
        **GOOD,
        "title": "Go!",
        "annotations": {"readOnlyHint": True},
        "inputSchema": {
            "type": "object",
            "x-mcp-header": "h",
            "properties": {"a": {"type": "string", "deep": {"x": [1]}}},
        },
    }
    assert check_submission("com.x.y", {"tools": [tool]}).tools == (tool,)


@pytest.mark.requirement("I13-wearer")
def test_what_a_tool_says_to_the_wearer_passes_untouched_or_is_named():
    said = {"name": "the thing", "undo": {"tool": "com.x.y:back", "args": {"id": "{{data.id}}"}}}
    tool = {**GOOD, "mentraExtensions": {"wearer": said}}
    assert check_submission("com.x.y", [tool]).tools == (tool,)
    at = "tools[0].mentraExtensions.wearer"
    assert fields([tool], "com.x.z") == {f"{at}.undo.tool"}
    long = {**GOOD, "mentraExtensions": {"wearer": {"ask": "x" * 61}}}
    assert fields([long]) == {f"{at}.ask"}


def test_a_bare_list_is_a_list_of_tools():
    assert check_submission("com.x.y", [GOOD]).tools == (GOOD,)


def test_absent_fields_are_none():
    made = check_submission("com.x.y", {"tools": []})
    assert (made.name, made.public_url, made.api_key_hash, made.hardware) == (
        None,
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    "package", ["calc", "com.x:y", "com x.y", "../x.y", "com..x", "a" * 199 + ".b"]
)
def test_a_package_name_must_be_a_reverse_domain(package):
    assert fields({"tools": []}, package) == {"packageName"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "a:b"}, "tools[0].name"),
        ({"name": ""}, "tools[0].name"),
        ({"name": "a b"}, "tools[0].name"),
        ({"name": 5}, "tools[0].name"),
        ({"description": None}, "tools[0].description"),
        ({"inputSchema": []}, "tools[0].inputSchema"),
        ({"inputSchema": {"type": "array"}}, "tools[0].inputSchema.type"),
        ({"inputSchema": {}}, "tools[0].inputSchema.type"),
        (
            {"inputSchema": {"type": "object", "properties": {"a": {"type": "text"}}}},
            "tools[0].inputSchema",
        ),
        (
            {
                "inputSchema": {
                    "type": "object",
                    "properties": {"a": {"$ref": "http://example.com/x.json"}},
                }
            },
            "tools[0].inputSchema",
        ),
        ({"sideEffects": "many"}, "tools[0].sideEffects"),
        ({"idempotent": "yes"}, "tools[0].idempotent"),
        ({"queueable": 1}, "tools[0].queueable"),
        ({"timeoutS": 31}, "tools[0].timeoutS"),
        ({"timeoutS": 0}, "tools[0].timeoutS"),
        ({"queue_ttl_s": -1}, "tools[0].queue_ttl_s"),
        ({"allowedModes": []}, "tools[0].allowedModes"),
        (
            {"mentraExtensions": {"activationPhrases": "hello"}},
            "tools[0].mentraExtensions.activationPhrases",
        ),
        (
            {"mentraExtensions": {"activationPhrases": [1]}},
            "tools[0].mentraExtensions.activationPhrases[0]",
        ),
        ({"extra": 2**60}, "tools[0]"),
    ],
)
def test_a_bad_definition_is_refused_with_the_field_named(change, field):
    assert fields({"tools": [{**GOOD, **change}]}) == {field}


@pytest.mark.parametrize("missing", ["name", "description", "inputSchema"])
def test_a_missing_field_is_named(missing):
    assert f"tools[0].{missing}" in fields(
        {"tools": [{k: v for k, v in GOOD.items() if k != missing}]}
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"tools": [], "publicUrl": "ftp://x"}, "publicUrl"),
        ({"tools": [], "publicUrl": "http://x/?q"}, "publicUrl"),
        ({"tools": [], "apiKeyHash": "a b"}, "apiKeyHash"),
        ({"tools": [], "surprise": 1}, "surprise"),
        (
            {"tools": [], "hardwareRequirements": [{"type": "LASER", "level": "REQUIRED"}]},
            "hardwareRequirements[0].type",
        ),
        (
            {"tools": [], "hardwareRequirements": [{"type": "CAMERA"}]},
            "hardwareRequirements[0].level",
        ),
        ({}, "tools"),
        (None, "body"),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [GOOD] * 201}, "tools"),
    ],
)
def test_a_bad_submission_is_refused_with_the_field_named(body, field):
    assert fields(body) == {field}


def test_every_mistake_is_reported_at_once():
    tools = [{**GOOD, "name": "a:b"}, {**GOOD, "inputSchema": {"type": "array"}}, GOOD]
    assert fields({"tools": tools}) == {
        "tools[0].name",
        "tools[1].inputSchema.type",
        "tools[2].name",
    }


def test_a_name_may_be_there_once():
    assert fields([GOOD, {**GOOD, "name": "other"}, GOOD]) == {"tools[2].name"}


def test_an_unknown_category_reads_other_and_warns(caplog):
    made = check_submission(
        "com.x.y", [{**GOOD, "category": "games", "mentraExtensions": {"category": "fun"}}]
    )
    assert (made.tools[0]["category"], made.tools[0]["mentraExtensions"]["category"]) == (
        "other",
        "other",
    )
    assert caplog.text.count("is unknown; treated as other") == 2


def test_a_known_category_stays():
    made = check_submission("com.x.y", [{**GOOD, "category": "media"}])
    assert made.tools[0]["category"] == "media"


def test_a_legacy_tool_schema_is_translated():
    legacy = {
        "id": "remind",
        "description": "reminds",
        "activationPhrases": ["remind me"],
        "parameters": {
            "text": {"type": "string", "description": "what", "required": True, "icon": "bell"},
            "level": {"type": "number", "enum": [1, 2]},
        },
    }
    assert check_submission("com.x.y", [legacy]).tools == (
        {
            "name": "remind",
            "description": "reminds",
            "mentraExtensions": {"activationPhrases": ["remind me"]},
            "inputSchema": {
                "type": "object",
                "required": ["text"],
                "properties": {
                    "text": {"type": "string", "description": "what"},
                    "level": {"type": "number", "enum": [1, 2]},
                },
            },
        },
    )


def test_a_legacy_tool_without_parameters_takes_none():
    made = check_submission(
        "com.x.y", [{"id": "go", "description": "goes", "activationPhrases": None}]
    )
    assert made.tools[0]["inputSchema"] == {"type": "object", "properties": {}}


def test_a_broken_legacy_tool_is_refused_by_field():
    assert fields([{"id": "go", "description": "goes", "parameters": "none"}]) == {
        "tools[0].parameters"
    }


def test_how_a_tool_is_run_is_checked_by_field_and_passed_on():
    good = {
        "executionType": "external",
        "execution": {"webhookUrl": "https://x/y"},
        "pendingTtlS": 60,
        "cacheTtlS": 5,
        "rateLimit": {"calls": 1, "window": 60},
        "sideEffects": "read_only",
        "availableWhen": {"worn": True, "uplink": False},
    }
    assert check_submission("com.x.y", [{**GOOD, **good}]).tools[0].items() >= good.items()
    for field, value in (
        ("executionType", "remote"),
        ("pendingTtlS", 0),
        ("cacheTtlS", 31 * 86400),
        ("execution.url", {"url": "x"}),
        ("rateLimit.calls", {"calls": 0, "window": 1}),
        ("rateLimit.window", {"calls": 1, "window": 0}),
        ("availableWhen", ["worn"]),
        ("availableWhen.worn", {"worn": 1}),
        ("availableWhen.online", {"online": True}),
    ):
        said = {**good, field.partition(".")[0]: value}
        assert fields([{**GOOD, **said}]) == {f"tools[0].{field}"}, field


@pytest.mark.parametrize("effects", [{}, {"sideEffects": "writes"}])
def test_a_cache_for_a_tool_that_writes_is_refused(effects):
    assert fields([{**GOOD, "cacheTtlS": 60, **effects}]) == {"tools[0].cacheTtlS"}


@pytest.mark.parametrize("category", ["retrieval", "action", "utility"])
def test_the_policy_categories_stay_as_they_are(category, caplog):
    assert (
        check_submission("com.x.y", [{**GOOD, "category": category}]).tools[0]["category"]
        == category
    )
    assert caplog.text == ""
