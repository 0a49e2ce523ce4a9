"""What comes in of another server's list, under which name, and what is believed of it; and the
ids of the seed.
"""

import pytest

from edge.core.tools import legacy_ids, mcp_tools
from edge.core.tools.mcp_tools import admitted, canonical
from edge.core.tools.registry import Union
from edge.core.tools.scope import SERVER_KEY, origin
from edge.core.tools.user_tools import ServerDefinition, ready_server
from tools_cache.api.tool import SideEffects, Source, ToolDefinition
from tools_cache.names import aliases
from tools_cache.registry.models import App

ALL = frozenset({"*"})
OBJECT = {"type": "object"}


def server(name="home", **more):
    return ServerDefinition(**{"name": name, "url": "https://h", "allowed_tools": ALL, **more})


def listed(*names, **more):
    return [
        {"name": name, "description": f"About {name}.", "inputSchema": OBJECT, **more}
        for name in names
    ]


def names(found):
    return [tool.name for tool in found.app.tools]


# ------------------------------------------------------------------ what comes in


@pytest.mark.requirement("S3-34", "C-37")
def test_only_what_the_owner_named_comes_in_and_under_the_servers_own_name():
    found = admitted(
        server(allowed_tools=frozenset({"light", "gone"})), listed("light", "unlock_door")
    )
    assert (found.app.package, names(found), found.not_allowed) == (
        "home",
        ["home:light"],
        ("unlock_door",),
    )
    assert names(admitted(server(allowed_tools=frozenset()), listed("x"))) == []
    assert names(admitted(server(), listed("x", "y"))) == ["home:x", "home:y"]


@pytest.mark.requirement("S1-03", "S1-04", "S1-24", "S1-50")
def test_every_tool_says_whose_it_is_and_its_name_there_and_is_of_one_source():
    (tool,) = admitted(server(title="My home"), listed("light", _meta={"a/b": 1})).app.tools
    assert tool.raw["_meta"] == {
        "a/b": 1,
        SERVER_KEY: {"id": "home", "name": "My home", "tool": "light"},
    }
    assert (tool.source, tool.source.value) == (Source.UPSTREAM, "mcp")
    renamed = admitted(server(title="Another name"), listed("light"))
    assert (names(renamed), renamed.origins) == (["home:light"], {"home:light": "light"})


@pytest.mark.requirement("S1-37")
def test_what_its_author_wrote_is_passed_on_whole():
    schema = {
        "type": "object",
        "$defs": {"a": {"type": "string"}},
        "properties": {"x": {"$ref": "#/$defs/a", "x-mine": 1}},
    }
    whole = {
        "title": "T",
        "outputSchema": OBJECT,
        "annotations": {"readOnlyHint": True},
        "icons": [{"src": "data:,"}],
        "x-other": [1],
    }
    (tool,) = admitted(server(), listed("light", **{**whole, "inputSchema": schema})).app.tools
    assert {key: tool.raw[key] for key in whole} == whole
    assert (tool.raw["inputSchema"], tool.input_schema) == (schema, schema)


@pytest.mark.requirement("S3-36", "C-17")
def test_a_server_that_offers_show_text_does_not_replace_ours_nor_add_to_our_packages():
    ours = App(
        package="glasses",
        name="glasses",
        tools=(
            ToolDefinition(
                name="glasses:show_text",
                description="ours",
                input_schema=OBJECT,
                source=Source.GLASSES,
            ),
        ),
    )
    came, evil = (
        admitted(server(), listed("show_text")).app,
        admitted(server("glasses"), listed("show_text", "other")).app,
    )
    union = Union.of([ours], [], upstream=[came, evil])
    snapshot = union.snapshot("1", None, stale=False)
    assert snapshot.find("glasses:show_text").definition.description == "ours"
    assert snapshot.find("home:show_text").definition.description == "About show_text."
    assert {refused.name for refused in union.refused} == {"glasses:show_text", "glasses:other"}


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"name": "", "inputSchema": OBJECT}, "no name"),
        ({"name": "a", "inputSchema": {"type": "array"}}, "no object"),
        ({"name": "a"}, "no object"),
    ],
)
def test_an_invalid_tool_is_left_out_alone(raw, why):
    found = admitted(server(), [raw, *listed("good")])
    assert names(found) == ["home:good"]
    assert why in found.dropped[0].reason


def test_a_tool_whose_schema_cannot_be_used_is_left_out_with_the_reason():
    found = admitted(
        server(),
        listed("bad", "good"),
        problems={"bad": "its inputSchema: nested deeper than 64 levels"},
    )
    assert (names(found), found.dropped[0].name) == (["home:good"], "home:bad")


def test_a_server_that_offers_thousands_of_tools_is_cut_and_the_rest_named():
    found = admitted(server(), listed(*(f"t{n}" for n in range(mcp_tools.MAX_TOOLS + 3))))
    assert (len(found.app.tools), len(found.dropped)) == (mcp_tools.MAX_TOOLS, 3)
    assert "name those you use" in found.dropped[0].reason


# ------------------------------------------------------------------ names


@pytest.mark.requirement("S1-11", "S1-12", "S1-10")
def test_no_two_tools_share_a_name_or_an_alias_and_each_finds_its_way_back_by_table():
    servers = [
        admitted(server("my_server".replace("_", ".")), listed("tool")),
        admitted(server("my"), listed("server_tool", "t" * 300)),
        admitted(server("s"), listed("t" * 300)),
    ]
    back = {
        (found.app.package, ours): theirs
        for found in servers
        for ours, theirs in found.origins.items()
    }
    assert len(back) == 4
    assert len(aliases(ours for _, ours in back)) == 4
    assert back["s", canonical("s", "t" * 300)] == "t" * 300
    assert all(len(ours) <= 255 for _, ours in back)


@pytest.mark.parametrize(
    "odd", ["two words", "a:b", "tab\tbed", "x" * 255, "\u2028", "zero\u200bwidth"]
)
def test_a_name_that_cannot_be_one_of_ours_is_replaced_and_kept_apart(odd):
    ours = canonical("home", odd)
    assert ours.startswith("home:")
    assert ours.isprintable()
    assert (":" in ours.partition(":")[2], " " in ours, len(ours) <= 255) == (False, False, True)
    assert ours != canonical("home", odd + "!")
    assert admitted(server(), listed(odd)).origins == {ours: odd}


def test_of_two_tools_of_one_name_the_first_stands():
    found = admitted(server(), [*listed("x"), *listed("x", description="second")])
    assert found.app.tools[0].description == "About x."
    assert "two tools of this name" in found.dropped[0].reason


# ------------------------------------------------------------------ what is believed


def test_a_servers_hints_count_only_if_the_owner_trusts_it():
    said = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
    (tool,) = admitted(server(), listed("x", annotations=said)).app.tools
    assert (tool.side_effects, tool.idempotent, tool.requires_confirmation) == (
        SideEffects.WRITES,
        False,
        "policy",
    )
    (trusted,) = admitted(
        server(trusted=True, confirm="never"), listed("x", annotations=said)
    ).app.tools
    assert (trusted.side_effects, trusted.idempotent, trusted.requires_confirmation) == (
        SideEffects.READ_ONLY,
        True,
        "never",
    )
    assert mcp_tools.believed({"idempotentHint": True}, trusted=True) == (SideEffects.WRITES, True)
    assert mcp_tools.believed("nonsense", trusted=True) == (SideEffects.WRITES, False)


@pytest.mark.requirement("S1-45")
def test_the_owners_words_replace_the_authors_and_unknown_tools_get_none():
    own = server(
        prompt="Only in the evening.",
        tool_prompts={"light": "Switches the lamp.", "gone": "Never seen."},
    )
    found = admitted(own, listed("light", "door"))
    assert [tool.description for tool in found.app.tools] == [
        "Only in the evening.\nAbout door."
        if "door" in t.name
        else "Only in the evening.\nSwitches the lamp."
        for t in found.app.tools
    ]
    assert found.app.tools[0].raw["description"] == found.app.tools[0].description
    assert "Never seen." not in str([dict(tool.raw) for tool in found.app.tools])


def test_where_a_tool_is_from_is_nobody_elses_to_say():
    (tool,) = admitted(
        server(), listed("x", _meta={SERVER_KEY: {"id": "glasses", "tool": "clear"}})
    ).app.tools
    assert (origin(tool).server, origin(tool).tool) == ("home", "x")


# ------------------------------------------------------------------ secrets


def test_secrets_are_put_in_and_a_server_that_lacks_one_says_which():
    waits = server(headers={"Authorization": "Bearer ${env.T}"})
    with pytest.raises(ValueError, match=r"\$\{env\.T\} is not set"):
        ready_server(waits, lambda _name: None)
    made, used = ready_server(waits, {"T": "hush"}.get)
    assert (made.headers, used) == ({"Authorization": "Bearer hush"}, {"hush"})
    program = ServerDefinition(
        name="p", command="run", args=("--key", "${env.T}"), env={"K": "${env.T}"}
    )
    made, _ = ready_server(program, {"T": "hush"}.get)
    assert (made.args, made.env) == (("--key", "hush"), {"K": "hush"})
    with pytest.raises(ValueError, match="sse is not supported"):
        ready_server(server(transport="sse"), lambda _name: None)
    assert (
        ready_server(server(client_secret="${env.T}"), {"T": "hush"}.get)[0].client_secret == "hush"
    )
    with pytest.raises(ValueError, match="more than one line"):
        ready_server(waits, lambda _name: "a\nb")


def test_a_stored_list_belongs_to_its_server_and_has_no_secret():
    one = server(headers={"A": "${env.T}"})
    assert mcp_tools.fingerprint(one) == mcp_tools.fingerprint(
        server(title="Another", allowed_tools=frozenset())
    )
    assert mcp_tools.fingerprint(one) != mcp_tools.fingerprint(server(url="https://other"))


# ------------------------------------------------------------------ the ids of the seed


@pytest.mark.requirement("S1-06", "S1-07")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "_"),
        ("abc", "abc"),
        ("1abc", "_1abc"),
        ("-x", "_-x"),
        (".x", "_.x"),
        ("_x", "_x"),
        ("a b", "a_b"),
        ("a:b", "a_b"),
        ("a/b", "a_b"),
        ("ä", "_"),
        ("aä", "a_"),
        ("\U0001f600", "__"),
        ("a\U0001f600b", "a__b"),
        ("a.b-c_d", "a.b-c_d"),
        ("9", "_9"),
        ("日本", "__"),
        ("a\n", "a_"),
        ("A1", "A1"),
    ],
)
def test_an_id_of_the_seed_is_made_as_the_seed_makes_it(name, told):
    assert legacy_ids.sanitised(name) == told


@pytest.mark.requirement("S1-05", "S1-08", "S1-09")
@pytest.mark.parametrize(
    ("server", "tool", "told"),
    [
        ("fs", "read", "fs_read"),
        ("my server", "do it", "my_server_do_it"),
        ("s" * 62, "t" * 62, "s" * 61 + "_" + "t" * 62),
        ("s" * 200, "t" * 200, "s" * 61 + "_" + "t" * 62),
        ("s" * 61, "t" * 62, "s" * 61 + "_" + "t" * 62),
        ("s", "t" * 300, "_" + "t" * 123),
    ],
)
def test_a_long_id_of_the_seed_is_shared_out_in_proportion(server, tool, told):
    assert legacy_ids.tool_id(server, tool) == told
    assert len(told) <= 124
    assert legacy_ids.sanitised("1" + "a" * 124) == "_1" + "a" * 122


@pytest.mark.requirement("S1-11")
def test_two_tools_that_share_an_id_of_the_seed_are_two_here():
    assert legacy_ids.tool_id("my_server", "tool") == legacy_ids.tool_id("my", "server_tool")
    assert canonical("my_server", "tool") != canonical("my", "server_tool")


@pytest.mark.requirement("CONSENT-grants")
@pytest.mark.parametrize(
    "more",
    [
        {"url": "https://else"},
        {"url": "", "command": "npx", "args": ("files",)},
        {"name": "work"},
        {"prompt": "Harmless."},
    ],
)
def test_a_grant_is_bound_to_the_server_a_tool_is_from(more):
    """The same words from somewhere else are another tool."""
    from edge.core.confirmation import definition_digest

    (tool,), (same,), (other,) = (
        admitted(one, listed("light")).app.tools for one in (server(), server(), server(**more))
    )
    assert definition_digest(tool) == definition_digest(same)
    assert definition_digest(tool) != definition_digest(other)
