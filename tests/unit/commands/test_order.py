"""Options may be anywhere after their verb."""

import argparse

import pytest

from edge.cli import build_parser
from edge.runtime.errors import UserError

WORDS = {"ADDRESS": "AA:BB", "TOKEN": "ab12", "RESULT": "done"}
VALUES = {"_seconds": "5", "_count": "5", "_rate": "5", "_six_digits": "012345"}


def leaves(parser, path=()):
    """Every verb, or action of a verb, that has no actions of its own: (its words, its parser)."""
    branches = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not branches:
        yield path, parser
    for branch in branches:
        for name, inner in branch.choices.items():
            yield from leaves(inner, (*path, name))


def option_words(action):
    name = action.option_strings[-1]
    if action.nargs == 0:
        return [name]
    value = (
        action.choices[0]
        if action.choices
        else VALUES.get(getattr(action.type, "__name__", ""), "v")
    )
    return [name, value]


def cases():
    for path, parser in leaves(build_parser()):
        places = [a for a in parser._actions if not a.option_strings]
        words = [str(a.choices[0]) if a.choices else WORDS.get(a.metavar, "word") for a in places]
        words += words[-1:] if any(a.nargs in ("*", "+") for a in places) else []
        options = [a for a in parser._actions if a.option_strings and a.dest != "help"]
        if words:
            assert all(a.nargs in (None, 0) for a in options), (
                "only an option with one value or none can stand before other words"
            )
            yield from (
                pytest.param(
                    path, words, option_words(a), id=f"{' '.join(path)} {a.option_strings[-1]}"
                )
                for a in options
            )


@pytest.mark.parametrize(("path", "words", "option"), list(cases()))
@pytest.mark.requirement("I12-options-anywhere")
def test_an_option_means_the_same_wherever_it_stands(path, words, option):
    parser = build_parser()
    expected = parser.parse_args([*path, *option, *words])
    for at in range(len(words) + 1):
        assert parser.parse_args([*path, *words[:at], *option, *words[at:]]) == expected


@pytest.mark.requirement("I12-options-anywhere")
@pytest.mark.parametrize(
    ("words", "tool", "args", "key"),
    [
        (["notes:add", "--key", "k1", "text=milk"], "notes:add", ["text=milk"], "k1"),
        (["notes:add", "--key=k1", "text=milk", "--json"], "notes:add", ["text=milk"], "k1"),
        (["--json", "notes:add", "a=1", "--key", "k1", "b=2"], "notes:add", ["a=1", "b=2"], "k1"),
        (
            ["notes:add", "--key", "k1", "--", "--text=milk", "--key"],
            "notes:add",
            ["--text=milk", "--key"],
            "k1",
        ),
        (
            ["notes:add", "text=milk", "--key", "k1", "--", "b=2"],
            "notes:add",
            ["text=milk", "b=2"],
            "k1",
        ),
        (["--", "notes:add", "--json"], "notes:add", ["--json"], None),
        (["notes:add", "--key", "k1", "-"], "notes:add", ["-"], "k1"),
        (["notes:add", "--key", "k1", "-5"], "notes:add", ["-5"], "k1"),
    ],
)
def test_a_word_after_two_dashes_is_no_option(words, tool, args, key):
    found = build_parser().parse_args(["call", *words])
    assert (found.tool, found.args, found.key) == (tool, args, key)


@pytest.mark.requirement("I12-options-anywhere")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["call", "a:b", "--key"], "argument --key: expected one argument"),
        (["call", "a:b", "--key", "--json", "c=1"], "argument --key: expected one argument"),
        (["call", "a:b", "--key", "--", "c=1"], "argument --key: expected one argument"),
        (["call", "a:b", "--nope", "c=1"], "unrecognized arguments: --nope"),
        (["status", "more", "--json"], "unrecognized arguments: more"),
        (["call", "--json"], "the following arguments are required: TOOL"),
        (["call", "a:b", "--mode", "loud", "c=1"], "invalid choice: 'loud'"),
        (["confirm", "--always", "ab12", "--never"], "not allowed with argument --always"),
    ],
)
def test_wrong_options_are_refused_as_before(words, said):
    with pytest.raises(UserError, match=said.replace("(", r"\(")):
        build_parser().parse_args(words)


@pytest.mark.requirement("I12-options-anywhere")
def test_an_optional_value_stays_with_its_option():
    parsed = build_parser().parse_args(["devcloud", "--tls", "cloud.lan", "--http", "127.0.0.1:0"])
    assert (parsed.tls, parsed.http) == ("cloud.lan", "127.0.0.1:0")
