"""The SDK's own rules: names are guarded twice, definitions come out as they went in."""

import subprocess
import sys

import pytest

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import AppTool, CallContext, create_tool, failure, params, reply
from tools_cache.api.tool import RateLimit, Source
from tools_cache.errors import BadDefinition, BadToolName
from tools_cache.registry.manifest import definition

SCHEMA = params(["text"], text={"type": "string"})


def nothing(args, context):
    return None


@pytest.mark.requirement("S0-07")
def test_a_colon_in_a_tool_name_is_refused():
    with pytest.raises(BadToolName, match=r'^Tool name "a:b" cannot contain colon character$'):
        create_tool("a:b", "d", SCHEMA, nothing)


@pytest.mark.requirement("S0-08")
def test_a_colon_is_refused_again_when_a_hand_made_tool_is_registered():
    with pytest.raises(BadToolName, match=r'^Tool name cannot contain ":"\. Got: a:b$'):
        AppServer("com.x.y").register_tool(AppTool("a:b", "d", SCHEMA, nothing))


def test_a_tool_name_may_be_registered_once():
    app = AppServer("com.x.y")
    app.register_tool(create_tool("a", "d", SCHEMA, nothing))
    with pytest.raises(BadToolName, match="a is registered already"):
        app.register_tool(create_tool("a", "other", SCHEMA, nothing))


@pytest.mark.parametrize(
    ("schema", "category", "named"),
    [({"type": "array"}, "utility", "inputSchema.type"), (SCHEMA, "games", "category")],
)
def test_a_bad_tool_is_refused_with_the_field_named(schema, category, named):
    with pytest.raises(BadDefinition, match=named):
        create_tool("a", "d", schema, nothing, category=category)


def test_a_package_name_with_a_colon_is_refused():
    with pytest.raises(BadDefinition, match="packageName"):
        AppServer("com.x:y")


@pytest.mark.requirement("S0-64")
def test_definitions_come_out_in_the_order_of_registration():
    app = AppServer("com.x.y")
    for name in ("zebra", "ant", "mole"):
        app.register_tool(create_tool(name, f"does {name}", SCHEMA, nothing))
    assert [d["name"] for d in app.get_tool_definitions()] == ["zebra", "ant", "mole"]


def test_a_definition_carries_mcp_fields_and_our_policy():
    made = create_tool(
        "a",
        "does a",
        SCHEMA,
        nothing,
        activation_phrases=["do a"],
        side_effects="read_only",
        idempotent=True,
        queueable=True,
        queue_ttl_s=60,
        timeout_s=5,
        category="media",
        wearer={"name": "the thing"},
    ).definition()
    assert made == {
        "name": "a",
        "description": "does a",
        "inputSchema": SCHEMA,
        "version": "1.0.0",
        "category": "media",
        "sideEffects": "read_only",
        "idempotent": True,
        "queueable": True,
        "queue_ttl_s": 60,
        "timeoutS": 5,
        "mentraExtensions": {
            "activationPhrases": ["do a"],
            "category": "media",
            "wearer": {"name": "the thing"},
        },
    }


def test_the_manifest_names_the_hardware_the_app_needs():
    app = AppServer(
        "com.x.y", name="Y", hardware_requirements=[{"type": "CAMERA", "level": "REQUIRED"}]
    )
    assert app.manifest() == {
        "packageName": "com.x.y",
        "name": "Y",
        "tools": [],
        "hardwareRequirements": [{"type": "CAMERA", "level": "REQUIRED"}],
    }


def test_a_reply_says_what_to_show_and_what_to_say():
    assert reply(1) == {"data": 1}
    assert reply(1, show="x")["render"] == {"display": {"layout": "text_wall", "text": "x"}}
    assert reply(1, show="x", title="t")["render"]["display"] == {
        "layout": "reference_card",
        "title": "t",
        "text": "x",
    }
    assert reply(1, say="hi")["render"] == {"audio": {"text": "hi"}}
    assert reply(1, say="hi", silent=True)["render"]["audio"] == {
        "text": "hi",
        "suppressVoiceResponse": True,
    }
    assert reply(1, follow_ups=["more?"])["render"] == {"suggestedFollowUps": ["more?"]}


def test_a_failure_is_in_the_wires_own_shape():
    assert failure("X", "no", retryable=True) == {
        "success": False,
        "error": {"code": "X", "message": "no", "retryable": True},
    }


def test_a_context_is_read_however_little_of_it_there_is():
    assert CallContext.from_json(None) == CallContext()
    assert CallContext.from_json(
        {"userId": "u", "timestamp": "t", "activatedForTool": True}
    ) == CallContext("u", "t", True)


def test_how_a_tool_is_run_stands_in_its_definition_only_when_said():
    made = create_tool(
        "a",
        "does a",
        SCHEMA,
        nothing,
        side_effects="read_only",
        category="retrieval",
        cache_ttl_s=60,
        requires_confirmation="always",
        rate_limit=RateLimit(2, 30.0),
        pending_ttl_s=5,
        activation_phrases=["a"],
        execution_type="internal",
    ).definition()
    more = {
        "requiresConfirmation": "always",
        "executionType": "internal",
        "pendingTtlS": 5,
        "cacheTtlS": 60,
        "rateLimit": {"calls": 2, "window": 30.0},
    }
    assert {k: v for k, v in made.items() if k in more} == more
    assert (made["category"], made["mentraExtensions"]) == (
        "retrieval",
        {"activationPhrases": ["a"]},
    )
    assert not set(more) & set(create_tool("a", "does a", SCHEMA, nothing).definition())
    assert definition("com.x.y", made, source=Source.CLOUD).cache_ttl_s == 60.0


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"cache_ttl_s": 60}, "a: cacheTtlS: only a tool that writes nothing"),
        ({"requires_confirmation": "maybe"}, "a: requiresConfirmation: "),
        ({"execution_type": "remote"}, "a: executionType: "),
        ({"pending_ttl_s": 0}, "a: pendingTtlS: "),
        ({"side_effects": "some"}, "a: sideEffects: "),
    ],
)
def test_a_tool_the_edge_would_refuse_cannot_be_made(more, named):
    with pytest.raises(BadDefinition, match=f"^{named}"):
        create_tool("a", "d", SCHEMA, nothing, **more)


def test_starting_an_app_does_not_load_what_only_the_cloud_needs():
    code = (
        "import sys, edge.devcloud.apps.calendar; "
        "sys.exit('pydantic' in sys.modules or 'httpx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("kind", "good"), [("external", True), ("space", True), ("gateway", False), ("internal", False)]
)
def test_only_a_tool_that_is_answered_later_may_be_without_a_handler(kind, good):
    if good:
        made = create_tool("a", "d", SCHEMA, execution_type=kind)
        assert made.handler({}, CallContext())["error"]["code"] == "UNSUPPORTED"
    else:
        with pytest.raises(BadDefinition, match="a: handler: "):
            create_tool("a", "d", SCHEMA, execution_type=kind)
