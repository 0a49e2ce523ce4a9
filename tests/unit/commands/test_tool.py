"""`glassd tools ACT`: what is printed."""

from argparse import Namespace
from io import StringIO

import pytest

from edge.commands import tools
from edge.commands.shared.console import Screen
from edge.runtime.errors import UserError


@pytest.fixture
def person(monkeypatch):
    """Run an act on an answer of the daemon; return what is printed."""

    def run(act, answer, name="kb:get", **more):
        out = StringIO()
        monkeypatch.setattr(tools, "_ask", lambda *_, **__: answer)
        monkeypatch.setattr(tools, "_document", lambda _: answer)
        screen = Screen(out, StringIO(), {}, as_json=False)
        given = {"all": False, "category": None, **more}
        args = Namespace(act=act, tool=name, socket=None, **given)
        assert tools.tools(args, screen) == 0
        return out.getvalue().splitlines()

    return run


@pytest.mark.requirement("I5-tools-switch", "S4-19")
def test_a_switch_prints_what_changed_with_it(person):
    done = {
        "tool": "kb:get",
        "enabled": True,
        "changed": ["kb:get", "kb:search"],
        "warnings": [],
        "state": "hidden",
        "reason": "needs a display",
    }
    assert person("enable", done) == [
        "kb:get is enabled",
        "with what it depends on: kb:search",
        "It is still hidden: needs a display",
    ]
    done = {
        "tool": "kb:search",
        "enabled": False,
        "changed": [],
        "warnings": ["kb:get depends on it"],
        "state": "hidden",
        "reason": "x",
    }
    assert person("disable", done, "kb:search") == [
        "kb:search is disabled already",
        "warning: kb:get depends on it",
    ]


def test_a_tool_is_shown_with_policy_and_documentation(person):
    told = person(
        "show",
        {
            "tool": "kb:get",
            "summary": "Gives a document.",
            "app": "Kb",
            "source": "local",
            "state": "available",
            "reason": "not loaded",
            "policy": {"idempotent": True, "allowedModes": ["text", "voice"]},
            "dependsOn": ["kb:search"],
            "documentation": "# kb:get\n\x1b[2J",
        },
    )
    assert [" ".join(line.split()) for line in told[:8]] == [
        "tool kb:get",
        "about Gives a document.",
        "app Kb",
        "source local",
        "state available; models find it by searching",
        "idempotent yes",
        "allowedModes text, voice",
        "dependsOn kb:search",
    ]
    assert told[9] == "# kb:get"
    assert "\x1b" not in "".join(told)


def test_a_tool_is_shown_with_its_parameters(person):
    properties = {
        "id": {"type": "string", "description": "Its id."},
        "part": {"enum": ["all", 1], "default": "all"},
        "odd": True,
        "many": {"type": ["string", "null"]},
    }
    told = {
        "tool": "my:a",
        "summary": "s",
        "app": "my",
        "source": "local",
        "state": "offered",
        "reason": "",
        "policy": {},
        "dependsOn": [],
        "documentation": "",
        "inputSchema": {"properties": properties, "required": ["id"]},
    }
    assert [line.split(maxsplit=1) for line in person("show", told)[5:]] == [
        [],
        ["parameters"],
        ["id*", "string        Its id."],
        ["part", 'all, 1        (default "all")'],
        ["odd", "anything"],
        ["many", "string, null"],
    ]
    assert "parameters" not in person(
        "show", {**told, "inputSchema": {"type": "object", "properties": 5}}
    )


def test_usage_is_a_table_or_one_sentence(person):
    used = {
        "tools": [
            {"tool": "kb:get", "calls": 1, "failed": 0, "last_wall": 0.0},
            {"tool": "a:b", "calls": 12, "failed": 3, "last_wall": 0.0},
        ]
    }
    lines = person("usage", used, None)
    assert [" ".join(line.split()[:3]) for line in lines] == ["kb:get 1 call", "a:b 12 calls"]
    assert "3 failed" in lines[1]
    assert person("usage", {"tools": []}, None) == ["No tool has been called yet."]


def test_a_long_listing_prints_how_many_tools_models_get(person):
    row = {
        "description": "Does it.",
        "category": "utility",
        "source": "local",
        "hidden": "",
        "warnings": [],
        "reason": "not loaded",
    }
    listed = {
        "tools": [
            {**row, "name": "a:a", "state": "offered"},
            {**row, "name": "b:b", "state": "available"},
        ],
        "loader": {"crowded": True},
        "counts": {"offered": 1, "available": 1, "hidden": 0},
    }
    first, second, last = person("", listed, None, mode=None, all=True)
    found = "(available; models find it by searching)"
    assert (found in first, found in second) == (False, True)
    assert not any("search" in line for line in person("", listed, None, mode=None))
    assert last == "1 of 2 are offered to models; they find the others with registry:search"


@pytest.mark.parametrize("act", ["show", "enable", "disable"])
def test_an_act_without_a_tool_is_wrong_usage(person, act):
    with pytest.raises(UserError) as wrong:
        person(act, {}, None)
    assert (wrong.value.exit_code, wrong.value.fix) == (
        2,
        f"for example: glassd tools {act} notes:add",
    )
