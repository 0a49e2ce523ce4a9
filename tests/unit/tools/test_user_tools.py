"""The files of `tools.d`: what an owner may write, what is said of a slip, and that one bad
file costs nobody else.
"""

import json
import os
import pickle
import subprocess
import sys

import pytest

from edge.core.tools.user_tools import RequestPlan, ServerDefinition
from edge.tools import user_tools, user_tools_schema
from tools_cache.api.tool import ExecutionType, Mode, RateLimit, SideEffects, Source
from tools_cache.schema import check_schema

WEATHER = """
name = "my:weather"
description = "The weather of a town, as it is now."

[inputSchema]
type = "object"
required = ["town"]
properties.town = { type = "string" }

[execution]
method = "GET"
url = "https://weather.example/{{input.town}}?format=3"
"""
TOWN = {"type": "object", "required": ["town"], "properties": {"town": {"type": "string"}}}


def read(folder, **files):
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(
            text if isinstance(text, str) else json.dumps(text)
        )
    return user_tools.read([folder])


def tool(**fields):
    return {
        "name": "my:tool",
        "description": "Does it.",
        "execution": {"url": "https://h.example/x"},
        **fields,
    }


def slip(folder, document):
    """The one problem of a file that cannot be used."""
    found = read(folder, t_json=document)
    assert (found.apps, found.plans) == ((), {})
    (problem,) = found.problems
    return str(problem.reason)


def test_ten_lines_make_a_tool(tmp_path):
    found = read(tmp_path, weather_toml=WEATHER)
    assert found.problems == ()
    (made,) = found.tools
    assert (made.name, made.source, made.execution_type) == (
        "my:weather",
        Source.LOCAL,
        ExecutionType.GATEWAY,
    )
    assert (made.side_effects, made.idempotent, made.asynchronous) == (
        SideEffects.READ_ONLY,
        True,
        False,
    )  # a GET only reads
    assert found.plans == {
        "my:weather": RequestPlan(
            url="https://weather.example/{{input.town}}?format=3", method="GET"
        )
    }


@pytest.mark.requirement("S3-39")
def test_what_a_model_sees_is_what_the_author_wrote_and_nothing_of_how_it_is_asked(tmp_path):
    schema = {
        **TOWN,
        "x-mine": [1, {"a": None}],
        "additionalProperties": False,
        "description": "mine",
    }
    found = read(
        tmp_path,
        t_json=tool(
            inputSchema=schema,
            execution={"url": "https://h.example/${env.KEY}", "headers": {"A": "hush"}},
        ),
    )
    (made,) = found.tools
    assert made.input_schema == schema
    assert made.raw["inputSchema"] == schema
    assert "h.example" not in json.dumps(made.raw, default=dict)
    assert "h.example" not in repr(made)
    assert "hush" not in repr(made)


@pytest.mark.requirement("S3-11")
def test_every_field_of_a_file_is_read(tmp_path):
    found = read(
        tmp_path,
        t_json=tool(
            title="Mine",
            executionType="external",
            visible=False,
            display={"customUI": "card"},
            sideEffects="none",
            idempotent=True,
            requiresConfirmation="always",
            allowedModes=["text"],
            latencyBudgetMs=10,
            pendingTtlS=60,
            cacheTtlS=5,
            category="action",
            version="2",
            rateLimit={"calls": 1, "window": 2},
            availableWhen={"glasses": True},
            activationPhrases=["go"],
            openToCloud=True,
            inputSchema=TOWN,
            execution={
                "url": "https://h.example/x",
                "method": "PUT",
                "headers": {"A": "b"},
                "query": {"q": 1},
                "body": {"t": "{{input.town}}"},
                "timeout": 1500,
            },
        ),
    )
    assert found.problems == ()
    (made,) = found.tools
    assert (made.version, made.category, made.allowed_modes, made.timeout_s) == (
        "2",
        "action",
        frozenset({Mode.TEXT}),
        1.5,
    )
    assert (made.pending_ttl_s, made.cache_ttl_s, made.rate_limit) == (60.0, 5.0, RateLimit(1, 2.0))
    assert (made.activation_phrases, dict(made.available_when), made.requires_confirmation) == (
        ("go",),
        {"glasses": True},
        "always",
    )
    assert made.open_to_cloud
    assert (made.raw["title"], made.raw["visible"], made.raw["display"]) == (
        "Mine",
        False,
        {"customUI": "card"},
    )
    assert found.plans["my:tool"] == RequestPlan(
        url="https://h.example/x",
        method="PUT",
        headers={"A": "b"},
        query={"q": 1},
        body={"t": "{{input.town}}"},
    )
    assert not read(tmp_path, t_json=tool()).tools[0].open_to_cloud, (
        "private unless it says otherwise"
    )


@pytest.mark.requirement("S3-11")
def test_the_schema_of_a_file_is_a_json_schema_and_says_of_each_field_of_execution_what_it_is():
    check_schema(user_tools_schema.FILE)
    assert all(
        "description" in field for field in user_tools_schema.EXECUTION["properties"].values()
    )


def test_a_child_brings_it_home_as_it_was_read(tmp_path):
    found = read(
        tmp_path,
        t_json={
            "tools": [tool(execution={"url": "https://h", "query": {"a": [1]}})],
            "servers": [{"name": "s", "url": "https://s"}],
        },
    )
    assert found.problems == ()
    assert pickle.loads(pickle.dumps(found)) == found


SLIPS = [
    ({"name": "my:tool"}, '"description" is a required'),
    (tool(exection={}), "exection: there is no such field; did you mean execution?"),
    (
        tool(execution={"url": "https://h", "methd": "GET"}),
        "execution.methd: there is no such field; did you mean method?",
    ),
    (tool(name="weather"), "name: must be package:tool in small letters, for example my:weather"),
    (tool(name="My Tool:x"), "name: must be package:tool"),
    (tool(name="a:b:c"), "name: must be package:tool"),
    (tool(execution={}), "execution.url: is missing"),
    (tool(execution={"url": "ftp://h"}), "execution.url: must begin with https://"),
    (
        tool(execution={"url": "https://{{input.h}}"}),
        "execution.url: a call's values may not choose the host",
    ),
    (
        tool(execution={"url": "https://h", "method": "get"}),
        'execution.method: "get" is not one of',
    ),
    (tool(execution={"url": "https://h", "timeout": 0}), "execution.timeout: "),
    (
        tool(execution={"url": "https://h", "method": "GET", "body": {}}),
        "execution.body: GET has none; use execution.query",
    ),
    (
        tool(execution={"url": "https://h", "body": '{"n": {{input.n}}}'}),
        "execution.body: is no JSON",
    ),
    (
        tool(execution={"url": "https://h/{{input.twon}}"}, inputSchema=TOWN),
        "execution.url: {{input.twon}} is no argument of this tool; did you mean {{input.town}}?",
    ),
    (
        tool(execution={"url": "https://h", "body": {"a": "{{input.x}}"}}),
        "execution.body: {{input.x}} is no argument of this tool; add it to inputSchema.properties",
    ),
    (
        tool(execution={"url": "https://h", "query": {"a": "{{inptu}}"}}),
        "execution.query: {{inptu}} is not a placeholder",
    ),
    (
        tool(execution={"url": "https://h", "headers": {"A": "{{call.id}}"}}),
        "execution.headers.A: a call's values have no place in headers",
    ),
    (
        tool(execution={"url": "https://h", "headers": {"Host": "x"}}),
        "execution.headers.Host: is written by glassd itself",
    ),
    (tool(execution={"url": "https://h", "headers": {"A": "x\ny"}}), "execution.headers.A: "),
    (
        tool(execution={"url": "https://h", "headers": {"A": "${env.a b}"}}),
        "execution.headers: a ${ that is no ${env.NAME}",
    ),
    (
        tool(executionType="gateway", execution={"url": "https://h", "answer": "later"}),
        "execution.answer: later is for",
    ),
    (tool(executionType="space"), "execution: a tool of executionType space is a question"),
    (
        tool(executionType="external", execution={"method": "GET"}),
        "execution.method: is for an address, and there is none",
    ),
    (tool(executionType="remote"), 'executionType: "remote" is not one of'),
    (tool(visible="yes"), "visible: "),
    (tool(openToCloud="yes"), "openToCloud: "),
    (
        tool(display={"customUi": "x"}),
        "display.customUi: there is no such field; did you mean customUI?",
    ),
    (tool(inputSchema={"type": "array"}), "inputSchema.type: "),
    (tool(inputSchema={"type": "object", "properties": 5}), "Invalid JSON Schema"),
    (tool(cacheTtlS=5), "cacheTtlS: only a tool that writes nothing"),
    ([tool()], "must be an object with name"),
    ({"tools": [], "name": "x"}, "name: stands beside a list"),
    ({"tools": {}}, "tools: must be a list"),
    ({"tools": [5]}, "tools.0: must be a table"),
    ({"servers": [{"name": "s"}]}, "servers.0: url: a server has an address"),
    (
        {"servers": [{"name": "s", "url": "https://s", "headers": {"A": "${x}"}}]},
        "servers.0: a ${ that is no",
    ),
]


@pytest.mark.requirement("S3-11")
@pytest.mark.parametrize(("document", "told"), SLIPS)
def test_a_mistake_is_reported_with_file_field_and_fix(tmp_path, document, told):
    assert told in slip(tmp_path, document)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("t.toml", "name = ", "is not valid TOML"),
        ("t.json", "{", "is not valid JSON"),
        ("t.toml", "when = 2026-01-01", "holds a date"),
        ("t.toml", "x = nan", "is not valid TOML"),
        ("t.json", "[" * 5000 + "]" * 5000, ""),
        ("t.json", " " * 70_000, "is larger than 64 KiB"),
        ("t.json", '{"name": "\\ud800"}', "is not valid JSON"),
    ],
)
def test_an_unreadable_file_says_why_and_does_not_affect_others(tmp_path, name, text, told):
    (tmp_path / "good.toml").write_text(WEATHER)
    (tmp_path / name).write_text(text)
    found = user_tools.read([tmp_path])
    assert [made.name for made in found.tools] == ["my:weather"]
    (problem,) = found.problems
    assert problem.name == name
    assert told in problem.reason


@pytest.mark.parametrize("body", ["[" * 3000 + "]" * 3000, "[" * 300 + "]" * 300, '{"a": NaN}'])
def test_a_body_written_as_text_is_held_to_what_json_is(tmp_path, body):
    (tmp_path / "good.toml").write_text(WEATHER)
    found = read(tmp_path, t_json=tool(execution={"url": "https://h.example/x", "body": body}))
    assert [made.name for made in found.tools] == ["my:weather"]
    assert "execution.body: " in found.problems[0].reason


def test_a_file_with_any_name_does_not_affect_others(tmp_path):
    (tmp_path / "good.toml").write_text(WEATHER)
    (tmp_path / os.fsdecode(b"\xff.toml")).write_text("name =")
    found = user_tools.read([tmp_path])
    assert [made.name for made in found.tools] == ["my:weather"]
    assert found.problems[0].name.encode() == "\ufffd.toml".encode()


def test_a_file_that_anybody_may_write_decides_nothing(tmp_path):
    file = tmp_path / "t.toml"
    file.write_text(WEATHER)
    file.chmod(0o666)
    found = user_tools.read([tmp_path])
    assert found.tools == ()
    assert "anybody may write it" in found.problems[0].reason


def test_a_folder_that_anybody_may_put_files_into_decides_nothing(tmp_path):
    (tmp_path / "t.toml").write_text(WEATHER)
    tmp_path.chmod(0o777)
    found = user_tools.read([tmp_path])
    assert found.tools == ()
    assert "anybody may put files into it" in found.problems[0].reason


def test_what_is_no_file_of_tools_is_passed_by_and_a_missing_folder_is_no_problem(tmp_path):
    (tmp_path / "x.toml").mkdir()
    for name in (".hidden.toml", "README", "t.toml~"):
        (tmp_path / name).write_text("no")
    os.mkfifo(tmp_path / "pipe.toml")
    found = user_tools.read([tmp_path / "gone", tmp_path])
    assert [problem.name for problem in found.problems] == ["pipe.toml", "x.toml"]
    assert found.problems[0].reason == "is no file"
    assert found.digest == ""


def test_the_first_of_two_tools_of_one_name_stands(tmp_path):
    found = read(tmp_path, a_json=tool(description="First."), b_json=tool(description="Second."))
    assert [made.description for made in found.tools] == ["First."]
    assert found.problems[0].name == "b.json (my:tool)"
    assert "is taken by another one" in found.problems[0].reason


def test_one_bad_tool_of_a_list_does_not_affect_others(tmp_path):
    found = read(
        tmp_path,
        t_json={
            "tools": [tool(), tool(name="my:bad", execution={"url": "x"}), tool(name="my:other")]
        },
    )
    assert [made.name for made in found.tools] == ["my:tool", "my:other"]
    assert found.problems[0].name == "t.json (my:bad)"
    assert found.problems[0].reason.startswith("tools.1: execution.url: ")


@pytest.mark.requirement("C-41", "S3-17")
def test_an_older_name_of_the_address_is_read_and_the_newer_one_comes_first(tmp_path):
    found = read(
        tmp_path,
        a_json=tool(executionType="external", execution={"webhookUrl": "https://old"}),
        b_json=tool(
            name="my:b",
            executionType="external",
            execution={"webhookUrl": "https://old", "url": "https://new"},
        ),
    )
    assert {name: plan.url for name, plan in found.plans.items()} == {
        "my:tool": "https://old",
        "my:b": "https://new",
    }
    assert not any(made.asynchronous for made in found.tools)


@pytest.mark.requirement("S3-03", "S3-17")
def test_an_external_tool_may_be_answered_later_with_or_without_somebody_to_tell(tmp_path):
    later = tool(executionType="external", execution={"webhookUrl": "https://h", "answer": "later"})
    nobody = {"name": "my:b", "description": "d", "executionType": "external"}
    found = read(
        tmp_path,
        a_json=later,
        b_json=nobody,
        c_json={**nobody, "name": "my:ask", "executionType": "space"},
    )
    assert found.problems == ()
    assert [made.asynchronous for made in found.tools] == [True, True, True]
    assert found.plans == {"my:tool": RequestPlan(url="https://h", later=True)}


@pytest.mark.requirement("S3-13")
@pytest.mark.parametrize(
    "document",
    [
        tool(execution={"url": "https://h", "headers": {"Authorization": "Bearer hushhush\n"}}),
        tool(execution={"url": "https://h", "headers": {"A": "hushhush\u00e9"}}),
        tool(execution={"url": "https://h", "headers": "hushhush"}),
        tool(execution={"url": "https://h/?key=hushhush x"}),
        tool(execution={"webhookUrl": "https://hushhush \n"}),
        {"servers": [{"name": "s", "url": "https://s", "headers": {"A": "hushhush\n"}}]},
        {"servers": [{"name": "s", "url": "https://hushhush /"}]},
    ],
)
def test_what_may_be_a_secret_somebody_wrote_down_is_not_quoted(tmp_path, document):
    (problem,) = read(tmp_path, t_json=document).problems
    assert "hush" not in problem.reason
    assert " must be " in problem.reason


@pytest.mark.parametrize("body", ['{"q": "{{input.x}}"}', {"q": "{{input.x}}"}])
def test_a_body_written_as_text_is_the_json_it_spells(tmp_path, body):
    found = read(
        tmp_path,
        t_json=tool(execution={"url": "https://h", "body": body}, inputSchema={"type": "object"}),
    )
    assert found.plans["my:tool"].body == {"q": "{{input.x}}"}


@pytest.mark.requirement("S3-15")
@pytest.mark.parametrize(
    "config",
    [
        {"agentConfig": {"model": "m"}, "includeContext": True, "timeout": 60_000},
        {"provider": "p", "model": "m", "size": "s", "quality": "q"},
    ],
)
def test_what_only_a_cloud_runs_is_known_for_what_it_is(tmp_path, config):
    found = read(tmp_path, t_json=tool(execution=config))
    assert found.problems == ()
    assert "runs in a cloud" in found.plans["my:tool"].only_cloud


@pytest.mark.requirement("S3-34")
def test_servers_stand_in_the_same_file_and_allow_nothing_unless_it_is_named(tmp_path):
    servers = [
        {
            "name": "home",
            "url": "https://h/mcp",
            "transport": "streamable-http",
            "headers": {"A": "${env.T}"},
            "allowedTools": ["light"],
        },
        {"name": "other", "url": "https://o"},
    ]
    found = read(tmp_path, t_json={"tools": [tool()], "servers": servers})
    assert found.problems == ()
    assert found.servers == (
        ServerDefinition(
            name="home",
            url="https://h/mcp",
            transport="streamable-http",
            headers={"A": "${env.T}"},
            allowed_tools=frozenset({"light"}),
        ),
        ServerDefinition(name="other", url="https://o"),
    )
    assert found.servers[1].allowed_tools == frozenset()


def test_the_digest_changes_with_any_file(tmp_path):
    first = read(tmp_path, weather_toml=WEATHER).digest
    assert first == user_tools.read([tmp_path]).digest != ""
    assert read(tmp_path, weather_toml=WEATHER.replace("now", "then")).digest != first


def test_the_schema_can_be_printed_for_an_editor():
    printed = subprocess.run(
        [sys.executable, "-m", "edge.tools.user_tools_schema"],
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert json.loads(printed.stdout) == user_tools_schema.FILE


@pytest.mark.requirement("CONSENT-grants")
@pytest.mark.parametrize(
    "change",
    [
        {"execution": {"url": "https://else.example/pay"}},
        {"execution": {"url": "https://bank.example/pay", "method": "PUT"}},
        {"description": "Pays twice."},
    ],
)
def test_a_grant_is_bound_to_where_an_owners_tool_sends_its_calls(tmp_path, change):
    from edge.core.confirmation import definition_digest
    from edge.tools.user_tools import _tool

    document = {
        "name": "bank:pay",
        "description": "Pays.",
        "execution": {"url": "https://bank.example/pay"},
    }
    digests = [definition_digest(_tool({**document, **more})[0]) for more in ({}, {}, change)]
    assert digests[0] == digests[1] != digests[2]


def test_the_fields_of_a_server_reach_its_definition(tmp_path):
    server = {"name": "s", "url": "https://s", "requiresConfirmation": "always", "idle": 60}
    found = read(tmp_path, t_json={"servers": [server]}).servers
    assert found == (ServerDefinition(name="s", url="https://s", confirm="always", idle_s=60),)
