"""Names: split at the first colon, refused by one sentence; aliases that every provider takes
and nothing confuses.
"""

import re
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from tools_cache.errors import BadToolName
from tools_cache.names import MAX_ALIAS, alias, aliases, canonical, parse

ROOT = Path(__file__).parents[3]
EVERYWHERE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What OpenAI, Anthropic, Gemini and MCP all take."""
AWKWARD = "abx_-025f.é:Z"
NAMES = st.tuples(
    st.text(AWKWARD.replace(":", ""), min_size=1, max_size=30),
    st.text(AWKWARD, min_size=1, max_size=30),
).map(":".join)


@pytest.mark.parametrize(
    ("name", "halves"),
    [
        ("clock:now", ("clock", "now")),
        ("com.example.calc:evaluate", ("com.example.calc", "evaluate")),
        ("a:b:c", ("a", "b:c")),
        ("a::b", ("a", ":b")),
        ("a_b:c", ("a_b", "c")),
        ("a b:c d", ("a b", "c d")),
        ("ä:ö", ("ä", "ö")),
        ("1:2", ("1", "2")),
    ],
)
@pytest.mark.requirement("S0-03", "S0-04")
def test_a_name_is_split_at_its_first_colon(name, halves):
    assert parse(name) == halves
    assert str(parse(name)) == name


@pytest.mark.parametrize("name", ["", "nocolon", ":x", "pkg:", ":", "a" * 300 + ":b"])
@pytest.mark.requirement("S0-05", "S0-06")
def test_what_lacks_a_half_is_no_name(name):
    with pytest.raises(
        BadToolName, match=r"^Invalid tool name format: .*Expected format: packageName:toolName$"
    ):
        parse(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("notes:add", "notes__add"),
        ("com.mentra.display:show_text", "com-mentra-display__show_text"),
        ("my-server:my-tool", "my_x2dserver__my-tool"),
        ("a_b:c", "a_x5fb__c"),
        ("a:b_c", "a__b_c"),
        ("my:server_tool", "my__server_tool"),
        ("my_server:tool", "my_x5fserver__tool"),
        ("1st:x", "_x31st__x"),
        ("a:_b", "a___b"),
        ("a:x_x41y", "a__x_x5fx41y"),
        ("a:b:c", "a__b_x3ac"),
        ("é:ü", "_xc3_xa9___xc3_xbc"),
        ("a1:2", "a1__2"),
    ],
)
@pytest.mark.requirement("I5-alias")
def test_an_alias_is_written_so_and_read_back(name, told):
    assert alias(name) == told
    assert canonical(told) == name


@given(NAMES)
@example("-:-")
@example("a:_x5f")
@example("a.b:" + "c" * 59)
@pytest.mark.requirement("I5-alias")
def test_every_alias_is_taken_everywhere_and_read_back_unless_it_was_shortened(name):
    told = alias(name)
    assert EVERYWHERE.fullmatch(told)
    assert canonical(told) in ({name} if len(told) < MAX_ALIAS else {name, None})


@given(st.lists(NAMES, unique=True, max_size=30))
@pytest.mark.requirement("I5-alias", "C-05")
def test_a_table_of_aliases_finds_every_name_again(names):
    table = aliases(names)
    assert len(table) == len(names)
    assert {table[alias(name)] for name in names} == set(names)


def test_a_long_name_is_shortened_and_found_by_the_table_only():
    long = "com.example.a.very.long.company.name.indeed:tool_with_a_long_name_too"
    told = alias(long)
    assert len(told) == MAX_ALIAS
    assert told[:54] == "com-example-a-very-long-company-name-indeed__tool_wi_h"
    assert canonical(told) is None
    assert aliases([long, "a:b"])[told] == long


def test_no_name_passes_for_another_ones_shortened_alias():
    told = alias("com.example.a.very.long.company.name.indeed:tool_with_a_long_name_too")
    package, _, tool = told.partition("__")
    impostor = f"{package.replace('-', '.')}:{tool}"
    assert alias(impostor) != told
    assert (
        len(
            aliases(
                [impostor, "com.example.a.very.long.company.name.indeed:tool_with_a_long_name_too"]
            )
        )
        == 2
    )


@pytest.mark.parametrize(
    "told",
    [
        "",
        "__",
        "a__",
        "__b",
        "notes_add",
        "notes:add",
        "a__b__" + "c" * 80,
        "a_x5__b_xff",
        "1a__b",
        "a__x_x2d",
    ],
)
@pytest.mark.requirement("C-05")
def test_what_is_no_alias_reads_as_none(told):
    assert canonical(told) is None


def test_the_table_refuses_two_tools_with_one_alias(monkeypatch):
    monkeypatch.setattr("tools_cache.names.alias", lambda name: "same")
    with pytest.raises(
        BadToolName,
        match=r"a:b and c:d have the same alias same|c:d and a:b have the same alias same",
    ):
        aliases(["a:b", "c:d"])


@pytest.mark.requirement("C-05")
def test_nothing_that_serves_reads_an_alias_back():
    """`canonical` is for people and tests: a call is looked up in the table of its snapshot."""
    sources = [*(ROOT / "edge").rglob("*.py"), *(ROOT / "tools_cache").rglob("*.py")]
    used = {
        file.name
        for file in sources
        if re.search(
            r"names import [^\n]*\bcanonical\b|names\.canonical\(", file.read_text(encoding="utf-8")
        )
    }
    assert not used
