"""How a tool is run, for how long, how often: read from a definition, judged by the lint, kept
by the build.
"""

import pytest

from tests.unit.tools_cache.test_compiler import failures, write
from tools_cache.api.tool import ExecutionType, RateLimit, Source, ToolCall
from tools_cache.builder import compiler, lint
from tools_cache.errors import BadDefinition
from tools_cache.registry import manifest
from tools_cache.registry.manifest import definition, load

TOOL = {
    "name": "ask",
    "description": "Asks.",
    "inputSchema": {"type": "object", "properties": {}},
    "sideEffects": "read_only",
}


def made(**fields):
    return definition("com.x.y", {**TOOL, **fields}, source=Source.CLOUD)


def test_a_tool_that_says_nothing_of_it_is_run_inline_is_not_cached_and_not_limited():
    tool = made()
    assert (tool.execution_type, tool.endpoint, tool.asynchronous) == (
        ExecutionType.GATEWAY,
        "",
        False,
    )
    assert (tool.pending_ttl_s, tool.cache_ttl_s, tool.rate_limit) == (3600.0, None, None)


def test_what_a_tool_says_of_it_is_read():
    tool = made(
        executionType="internal",
        pendingTtlS=90,
        cacheTtlS=60,
        rateLimit={"calls": 3, "window": 0.5},
    )
    assert (tool.execution_type, tool.pending_ttl_s, tool.cache_ttl_s) == (
        ExecutionType.INTERNAL,
        90.0,
        60.0,
    )
    assert tool.rate_limit == RateLimit(3, 0.5)


@pytest.mark.requirement("S3-01")
@pytest.mark.requirement("S3-02")
@pytest.mark.requirement("S3-03")
@pytest.mark.requirement("S3-04")
@pytest.mark.parametrize(
    ("kind", "execution", "later"),
    [
        ("gateway", None, False),
        ("internal", None, False),
        ("space", None, True),
        ("external", None, True),
        ("external", {}, True),
        ("external", {"url": None}, True),
        ("external", {"url": "https://x/y"}, False),
        ("external", {"webhookUrl": "http://x"}, False),
        ("space", {"url": "https://x/y"}, True),
    ],
)
def test_a_question_to_the_wearer_and_a_tool_without_an_address_are_answered_later(
    kind, execution, later
):
    assert made(executionType=kind, execution=execution).asynchronous is later


@pytest.mark.requirement("C-41")
@pytest.mark.parametrize(
    ("execution", "endpoint"),
    [
        ({"url": "http://a", "webhookUrl": "http://b"}, "http://a"),
        ({"webhookUrl": "http://b"}, "http://b"),
        ({"url": None, "webhookUrl": "http://b"}, "http://b"),
        (None, ""),
    ],
)
def test_an_address_has_two_names_and_the_newer_one_comes_first(execution, endpoint):
    assert made(executionType="external", execution=execution).endpoint == endpoint


BAD = [
    ({"executionType": "remote"}, "executionType"),
    ({"execution": "http://x"}, "execution"),
    ({"execution": {"url": "ftp://x"}}, "execution.url"),
    ({"execution": {"webhookUrl": "http://"}}, "execution.webhookUrl"),
    ({"execution": {"url": "http://x/" + "y" * 2000}}, "execution.url"),
    ({"pendingTtlS": 0.5}, "pendingTtlS"),
    ({"pendingTtlS": 7 * 86400 + 1}, "pendingTtlS"),
    ({"pendingTtlS": "60"}, "pendingTtlS"),
    ({"cacheTtlS": 0}, "cacheTtlS"),
    ({"cacheTtlS": 30 * 86400 + 1}, "cacheTtlS"),
    ({"cacheTtlS": True}, "cacheTtlS"),
    ({"rateLimit": {"calls": 0, "window": 1}}, "rateLimit.calls"),
    ({"rateLimit": {"calls": 1.5, "window": 1}}, "rateLimit.calls"),
    ({"rateLimit": {"calls": 1, "window": 0}}, "rateLimit.window"),
    ({"rateLimit": {"calls": 1}}, "rateLimit.window"),
    ({"rateLimit": {"calls": 10**9, "window": 1}}, "rateLimit.calls"),
    ({"rateLimit": {"calls": 1, "window": 10**9}}, "rateLimit.window"),
    ({"rateLimit": 5}, "rateLimit"),
]


@pytest.mark.parametrize(("fields", "named"), BAD)
def test_a_field_out_of_bounds_drops_the_tool_and_is_named(fields, named):
    with pytest.raises(BadDefinition, match=f"^{named}: "):
        made(**fields)


@pytest.mark.parametrize("effects", ["writes", None])
def test_a_tool_that_writes_may_not_be_answered_from_a_cache(effects):
    tool = {
        k: v for k, v in {**TOOL, "sideEffects": effects, "cacheTtlS": 60}.items() if v is not None
    }
    with pytest.raises(
        BadDefinition, match=r"^cacheTtlS: only a tool that writes nothing .* say sideEffects"
    ):
        definition("com.x.y", tool, source=Source.CLOUD)


@pytest.mark.parametrize(
    ("calls", "window"), [(0, 1.0), (1, 0.0), (1, -1.0), (10**6, 1.0), (1, 10.0**6)]
)
def test_a_rate_limit_is_valid_or_does_not_exist(calls, window):
    with pytest.raises(ValueError, match=r"^(calls|window): must be"):
        RateLimit(calls, window)


def test_a_call_without_a_session_has_one_of_its_own():
    call = ToolCall(call_id="c", tool="a:b", args={}, origin="cli")
    assert (call.session, call.provider_call_id, call.ordinal, call.replayed) == (
        "",
        None,
        None,
        False,
    )


# ------------------------------------------------------------------ our own folders


@pytest.mark.parametrize(("fields", "named"), BAD)
def test_the_lint_finds_what_the_loader_would_refuse(tmp_path, fields, named):
    assert f"demo_do/schema.json: {named}: " in failures(
        write(tmp_path, sideEffects="read_only", **fields)
    )


def test_the_lint_refuses_a_cache_for_what_writes_and_an_address_for_what_is_run_here(tmp_path):
    found = failures(write(tmp_path, cacheTtlS=60, execution={"url": "http://x"}))
    assert "demo_do/schema.json: cacheTtlS: only a tool that writes nothing" in found
    assert (
        "demo_do/schema.json: execution: only a tool of executionType external is asked elsewhere"
        in found
    )


def test_what_the_lint_passes_is_built_and_loads_as_written(tmp_path):
    said = {
        "executionType": "external",
        "execution": {"url": "https://x/y"},
        "pendingTtlS": 60,
        "cacheTtlS": 5,
        "rateLimit": {"calls": 1, "window": 60},
    }
    report = compiler.compile_tools(
        write(tmp_path, sideEffects="read_only", category="retrieval", idempotent=True, **said)
    )
    assert report.failures == ()
    (app,) = load(report.text.encode(), source=Source.LOCAL).apps
    (tool,) = app.tools
    assert {key: tool.raw[key] for key in said} == said
    assert (tool.endpoint, tool.rate_limit) == ("https://x/y", RateLimit(1, 60.0))


@pytest.mark.requirement("S3-04")
def test_a_question_to_the_wearer_needs_no_handler_and_everything_else_does(tmp_path):
    report = compiler.compile_tools(
        write(tmp_path / "a", executionType="space", without=["handler.py"])
    )
    assert (report.failures, report.tools) == ((), 1)
    assert "Missing required file: handler.py" in failures(
        write(tmp_path / "b", executionType="external", without=["handler.py"])
    )
    assert "Missing required file: doc.md" in failures(
        write(tmp_path / "c", executionType="space", without=["doc.md", "handler.py"])
    )
    assert "doesn't export execute" in failures(
        write(tmp_path / "d", executionType="space", handler="x = 1\n")
    )


def test_every_word_about_running_is_compiled_and_none_is_unknown():
    assert set(lint.RUNNING) <= set(compiler._COPIED) & set(lint.OPTIONAL)
    assert set(lint.RUNNING) <= {
        f.alias or n for n, f in manifest.documents.ToolDocument.model_fields.items()
    }
