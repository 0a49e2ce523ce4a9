"""`/v1/tools`: tools and their state, one in detail, switched, counted; and every malformed
request.
"""

from types import SimpleNamespace
from urllib.parse import quote

import pytest

from edge.core.tools.selection_rules import (
    AVAILABLE,
    HIDDEN,
    OFFERED,
    CannotSwitch,
    Choice,
    Switched,
)
from edge.storage.tool_choices import Used
from tests.unit.control.house import Full, open_house

pytestmark = pytest.mark.enable_socket


class Chosen:
    """A hand-written `ChoicePort`."""

    def __init__(self):
        self.stands = {
            "notes:add": Choice(AVAILABLE, "not loaded", loaded=False),
            "cam:shot": Choice(HIDDEN, "needs a camera"),
        }
        self.acts = []
        self.fails = None

    def choice(self, entry, user_id, mode=None):
        return (
            Choice(HIDDEN, f"not for {mode} mode")
            if mode
            else self.stands.get(entry.definition.name, Choice(OFFERED))
        )

    def version(self):
        return None

    def describe(self):
        return {"turn": 3, "loaded": {}}

    async def described(self, tool, user_id, mode=None):
        return None if tool == "no:such" else {"tool": tool, "documentation": "# it"}

    async def enable(self, user_id, tool, *, origin):
        if self.fails:
            raise self.fails
        self.acts.append((user_id, tool, True, origin))
        return Switched(tool, True, (tool, "b:b"), ("it depends on c:c, which does not exist",))

    async def disable(self, user_id, tool, *, origin):
        self.acts.append((user_id, tool, False, origin))
        return Switched(tool, False, (tool,))

    async def usage(self, user_id):
        return [Used("notes:add", 3, 1, 5.0)]


@pytest.fixture
def chosen():
    return Chosen()


async def test_a_listing_has_state_reason_counts_and_the_loader(tmp_path, chosen):
    async with open_house(tmp_path, choice=chosen) as house:
        _, listed = await house.ask("GET", "/v1/tools")
        _, everything = await house.ask("GET", "/v1/tools?all=1")
        _, voice = await house.ask("GET", "/v1/tools?mode=voice")
    assert [(t["name"], t["state"], t["reason"], t["hidden"]) for t in listed["tools"]] == [
        ("notes:add", AVAILABLE, "not loaded", "")
    ]
    assert [(t["name"], t["hidden"]) for t in everything["tools"]] == [
        ("notes:add", ""),
        ("cam:shot", "needs a camera"),
    ]
    assert (everything["counts"], everything["loader"]["turn"]) == (
        {"offered": 0, "available": 1, "hidden": 1},
        3,
    )
    assert voice["tools"] == []


async def test_a_switch_reports_changes_and_warnings(tmp_path, chosen):
    async with open_house(tmp_path, choice=chosen) as house:
        status, done = await house.ask_as_owner(
            "PUT", "/v1/tools", {"tool": "notes:add", "enabled": True}
        )
        assert (status, done) == (
            200,
            {
                "tool": "notes:add",
                "enabled": True,
                "changed": ["notes:add", "b:b"],
                "state": AVAILABLE,
                "reason": "not loaded",
                "warnings": ["it depends on c:c, which does not exist"],
            },
        )
        assert (
            await house.ask_as_owner(
                "PUT", "/v1/tools", {"tool": "notes:add", "enabled": False, "origin": "mcp"}
            )
        )[0] == 200
    assert chosen.acts == [
        ("local", "notes:add", True, "cli"),
        ("local", "notes:add", False, "mcp"),
    ]


@pytest.mark.parametrize(
    ("fails", "status", "code"),
    [
        (CannotSwitch("NOT_FOUND", "there is no tool x:y", "see"), 404, "NOT_FOUND"),
        (
            CannotSwitch(
                "CONFLICT",
                "x:y cannot be enabled: it works only while the glasses are worn",
                "wait",
            ),
            409,
            "CONFLICT",
        ),
        (Full("no room"), 507, "DISK_FULL"),
    ],
)
async def test_a_tool_that_cannot_be_switched_is_refused_with_the_reason(
    tmp_path, chosen, fails, status, code
):
    chosen.fails = fails
    async with open_house(tmp_path, choice=chosen) as house:
        answered, error = await house.ask_as_owner(
            "PUT", "/v1/tools", {"tool": "x:y", "enabled": True}
        )
    assert (answered, error["error"]["code"], str(fails) in error["error"]["message"]) == (
        status,
        code,
        True,
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"enabled": True}, "tool"),
        ({"tool": "a:b"}, "enabled"),
        ({"tool": "a:b", "enabled": "yes"}, "enabled"),
        ({"tool": 5, "enabled": True}, "tool"),
        ({"tool": "a:b", "enabled": True, "more": 1}, "more"),
        ({"tool": "a:b", "enabled": True, "origin": "cloud"}, "origin"),
        ({"tool": "a" * 256, "enabled": True}, "tool"),
    ],
)
async def test_a_malformed_switch_names_the_field(tmp_path, chosen, body, field):
    async with open_house(tmp_path, choice=chosen) as house:
        status, error = await house.ask_as_owner("PUT", "/v1/tools", body)
    assert (status, error["error"]["message"].startswith(field)) == (400, True)
    assert chosen.acts == []


@pytest.mark.requirement("S2-58", "S2-59")
async def test_one_tool_is_described_and_an_unknown_one_is_not_found(tmp_path, chosen):
    async with open_house(tmp_path, choice=chosen) as house:
        assert (await house.ask("GET", "/v1/tools/one?tool=notes:add"))[1] == {
            "tool": "notes:add",
            "documentation": "# it",
        }
        assert (await house.ask("GET", "/v1/tools/one?tool=no:such"))[0] == 404
        assert (await house.ask("GET", "/v1/tools/one"))[0] == 400
        assert (await house.ask("GET", "/v1/tools?mode=song"))[0] == 400
        _, usage = await house.ask("GET", "/v1/tools/usage")
    assert usage == {
        "user": "local",
        "tools": [{"tool": "notes:add", "calls": 3, "failed": 1, "last_wall": 5.0}],
    }


async def test_without_a_tool_selection_the_registry_decides(
    tmp_path,
):
    async with open_house(tmp_path) as house:
        _, listed = await house.ask("GET", "/v1/tools?all=1")
        assert [(t["name"], t["state"]) for t in listed["tools"]] == [
            ("notes:add", OFFERED),
            ("cam:shot", HIDDEN),
        ]
        assert (
            await house.ask_as_owner("PUT", "/v1/tools", {"tool": "notes:add", "enabled": True})
        )[0] == 501
    assert SimpleNamespace(**listed["counts"]).hidden == 1


@pytest.mark.requirement("S4-24")
async def test_arguments_come_as_an_object_or_as_its_json_text(tmp_path):
    async with open_house(tmp_path) as house:
        assert (await house.ask("POST", "/v1/call", {"tool": "notes:add", "args": '{"a": 1}'}))[
            0
        ] == 200
        for wrong in ("x", "[1]", '{"a": NaN}', 5, "[" * 5000):
            status, error = await house.ask(
                "POST", "/v1/call", {"tool": "notes:add", "args": wrong}
            )
            assert (status, error["error"]["message"].startswith("args: ")) == (400, True), wrong
    ((call, _),) = house.calls.seen
    assert call.args == {"a": 1}


@pytest.mark.parametrize("scope", ["{", "9" * 5000, "[" * 5000, "5", '{"mentions": 5}'])
async def test_a_malformed_scope_is_refused_by_name(tmp_path, scope):
    async with open_house(tmp_path) as house:
        status, error = await house.ask("GET", f"/v1/tools?scope={quote(scope)}")
    assert (status, error["error"]["message"].startswith("scope")) == (400, True)
