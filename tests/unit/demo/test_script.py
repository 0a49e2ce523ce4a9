"""The language of demo scripts: what is understood, and how mistakes are reported."""

import pytest

from edge.demo.script import (
    BadScript,
    Expectation,
    ScriptStep,
    load,
    parse,
    parse_line,
    seconds,
    split_call,
    split_caps,
)
from edge.demo.view import View


def test_a_script_has_steps_titles_and_comments():
    assert parse("# c\n\n== Title ==\ncall a:b {}\ntap\n") == [
        ScriptStep("title", "Title", 3),
        ScriptStep("call", "a:b {}", 4),
        ScriptStep("tap", "", 5),
    ]


def test_the_tour_can_be_read():
    assert len(load("tour")) > 20
    own = load("tour", "sim:even_g1")
    assert ScriptStep("fault", "away:3:left", own[[s.verb for s in own].index("fault")].line) in own
    assert load("tour", "mock:full") == load("tour")


def test_a_bad_line_of_a_script_is_named_by_its_number():
    with pytest.raises(BadScript, match=r"^line 2: 'jump' is not a verb"):
        parse("tap\njump\n")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("call a:b {", "not JSON"),
        ("invoke a:b hello", "neither JSON nor key=value"),
        ("caps camera=maybe", "neither yes nor no"),
        ("wait soon", "seconds from 0"),
        ('expect "foo', "close the quotation"),
        ("quit", "only for a person"),
        ("help", "only for a person"),
    ],
)
def test_a_script_is_checked_whole_before_its_first_step(line, says):
    with pytest.raises(BadScript, match=rf"^line 2: .*{says}"):
        parse(f"tap\n{line}\n")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("tap offline", "tap stands alone"),
        ("say", "say needs more: say TEXT"),
        ("call", "call needs more"),
        ("caps", "caps needs more"),
        ("expect", "expect needs more"),
    ],
)
def test_too_much_and_too_little_are_refused(line, says):
    with pytest.raises(BadScript, match=says):
        parse_line(line)


@pytest.mark.parametrize(
    ("rest", "args"),
    [
        ("a:b", {}),
        ('a:b {"x": 1}', {"x": 1}),
        ("a:b x=1 y=two", {"x": 1, "y": "two"}),
        ('a:b text="buy milk"', {"text": "buy milk"}),
    ],
)
def test_arguments_are_json_or_pairs_as_on_the_command_line(rest, args):
    assert split_call(rest) == ("a:b", args)


@pytest.mark.parametrize("rest", ['a:b {"x":', "a:b hello", 'a:b text="open', "a:b =1"])
def test_arguments_that_are_neither_are_refused(rest):
    with pytest.raises(BadScript):
        split_call(rest)


def test_capabilities_are_changed_with_yes_or_no():
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
def test_a_malformed_expectation_is_refused(rest):
    with pytest.raises(BadScript):
        Expectation.parse(rest)


def test_a_wait_is_some_seconds():
    assert seconds("1.5") == 1.5
    for wrong in ("-1", "soon", "nan", "1e9"):
        with pytest.raises(BadScript, match="0 to 3600"):
            seconds(wrong)


def lens(same: bool, **connected: bool) -> dict:
    sides = {side: {"connected": there} for side, there in connected.items()}
    return {
        "event": "lens",
        "lines": ["hello"],
        "pages": 1,
        "side": "right",
        "same": same,
        "sides": sides,
    }


def test_a_page_is_drawn_once_both_arms_have_it():
    view = View(colour=False)
    assert view.text(lens(same=False, left=True, right=True)) == ""
    assert "hello" in view.text(lens(same=True, left=True, right=True))
    assert "right arm alone" in view.text(lens(same=False, left=False, right=True))
    assert "left arm is lost" in view.text(
        {"event": "glasses.event", "said": {"type": "SideChanged", "side": "left", "up": False}}
    )
    assert (
        view.text({"event": "glasses.event", "said": {"type": "WornChanged", "worn": True}}) == ""
    )
    assert "drop:left" in view.text({"event": "fault", "fault": "drop:left"})
