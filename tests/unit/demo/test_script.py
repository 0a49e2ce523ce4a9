"""The language of the demo: what is meant is understood, what is mistyped is said and stops nobody."""

import pytest

from edge.demo.script import BadScript, Expectation, Step, load, parse, parse_line, split_call, split_caps


def test_a_script_has_steps_titles_and_comments():
    assert parse("# c\n\n== Title ==\ncall a:b {}\ntap\n") == [
        Step("title", "Title", 3), Step("call", "a:b {}", 4), Step("tap", "", 5),
    ]  # fmt: skip


def test_the_tour_can_be_read():
    assert len(load("tour")) > 20


def test_a_bad_line_of_a_script_is_named_by_its_number():
    with pytest.raises(BadScript, match=r"^line 2: 'jump' is not a verb"):
        parse("tap\njump\n")


@pytest.mark.parametrize(("line", "says"), [
    ("tap offline", "tap stands alone"), ("say", "say needs more: say TEXT"), ("call", "call needs more"),
    ("caps", "caps needs more"), ("expect", "expect needs more"),
])  # fmt: skip
def test_too_much_and_too_little_are_refused(line, says):
    with pytest.raises(BadScript, match=says):
        parse_line(line)


@pytest.mark.parametrize(("rest", "args"), [
    ("a:b", {}), ('a:b {"x": 1}', {"x": 1}), ("a:b x=1 y=two", {"x": 1, "y": "two"}), ('a:b text="buy milk"', {"text": "buy milk"}),
])  # fmt: skip
def test_arguments_are_json_or_pairs_as_on_the_command_line(rest, args):
    assert split_call(rest) == ("a:b", args)


@pytest.mark.parametrize("rest", ['a:b {"x":', "a:b hello", 'a:b text="open', "a:b =1"])
def test_arguments_that_are_neither_are_refused(rest):
    with pytest.raises(BadScript):
        split_call(rest)


def test_capabilities_are_said_with_yes_or_no():
    assert split_caps("camera=false light=on") == {"camera": False, "light": True}
    for wrong in ("camera", "camera=maybe", "=true"):
        with pytest.raises(BadScript):
            split_caps(wrong)


def test_an_expectation_compares_and_contains():
    wanted = Expectation.parse('lens lines~"Your table" page=1')
    assert wanted.met_by({"event": "lens", "lines": ["your TABLE is ready"], "page": 1})
    assert not wanted.met_by({"event": "lens", "lines": ["nothing"], "page": 1})
    assert not wanted.met_by({"event": "lens", "lines": ["Your table"], "page": 2})
    assert not wanted.met_by({"event": "speaker", "lines": ["Your table"], "page": 1})


@pytest.mark.parametrize("rest", ["", 'x "open', "x word"])
def test_an_expectation_that_cannot_be_read_is_refused(rest):
    with pytest.raises(BadScript):
        Expectation.parse(rest)
