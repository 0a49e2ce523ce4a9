"""Typed input: one line at a time, with a timeout; and the choice among several glasses."""

import io
import os
import sys
from argparse import Namespace
from types import SimpleNamespace

import pytest

from edge.commands import pairing, up
from edge.commands.shared.console import Screen
from edge.commands.shared.terminal import typed
from edge.runtime.errors import UserError


@pytest.fixture
def keyboard(monkeypatch):
    """The writing end of stdin."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "wb", buffering=0) as keys:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield keys


def test_lines_are_taken_one_by_one_and_the_rest_stays(keyboard):
    keyboard.write(b"1\n 012345 \r\n\nl\xc3\xa4st")
    assert [typed(1.0), typed(1.0), typed(1.0)] == ["1", "012345", ""]
    keyboard.close()
    assert typed(1.0) == "l\u00e4st"
    assert typed(1.0) is None


def test_typing_has_a_timeout(keyboard):
    keyboard.write(b"unfinished")
    with pytest.raises(TimeoutError):
        typed(0.05)


def test_a_line_has_an_end(keyboard):
    keyboard.write(b"x" * 1000 + b"\n")
    assert len(typed(1.0)) == 256


@pytest.mark.parametrize(("line", "chosen"), [("2\n", "B"), ("a\n", "A"), ("1\n", "A")])
def test_glasses_are_chosen_by_number_or_name(keyboard, line, chosen):
    keyboard.write(line.encode())
    asked = io.StringIO()
    assert (
        up._ask_which(Screen(io.StringIO(), asked, {}, as_json=False), ["A", "B"]).upper() == chosen
    )
    assert asked.getvalue() == "Which ones? [1-2] "


def test_a_late_answer_reports_what_ended_the_window(monkeypatch):
    def late(*_, **__):
        raise UserError("NOTHING_ASKED", "nothing of this kind is asked now")

    def told(*_, **__):
        yield {"event": "step", "state": "ASKING", "ask": "passkey"}
        yield {
            "event": "failed",
            "code": "TIMEOUT",
            "text": "the pairing window closed",
            "fix": "glassd pair",
        }

    monkeypatch.setattr(pairing, "ask", late)
    daemon = SimpleNamespace(stream=told)
    monkeypatch.setattr(pairing, "client", lambda *_: daemon)
    screen = Screen(io.StringIO(), io.StringIO(), {}, as_json=False)
    with pytest.raises(UserError) as caught:
        pairing._one_window(Namespace(code="012345"), screen, None, 60.0)
    assert (caught.value.code, caught.value.exit_code) == ("TIMEOUT", 5)


def test_connected_glasses_are_not_paired_again(monkeypatch):
    glasses = {"state": "ready", "bond": "passkey", "address": "F0:5A:6F:52:8B:15"}
    monkeypatch.setattr(up, "ask", lambda *_: {"glasses": glasses})
    monkeypatch.setattr(
        up, "pair_with", lambda *_, **__: pytest.fail("their bond would be forgotten first")
    )
    screen = Screen(io.StringIO(), io.StringIO(), {}, as_json=False)
    for address in (None, "F0:5A:6F:52:8B:15", "f0:5a:6f:52:8b:15"):
        assert up.glasses_up(Namespace(address=address), screen) == glasses


@pytest.mark.parametrize("line", ["0\n", "3\n", "C\n", "\n", ""])
def test_an_invalid_choice_is_wrong_usage_that_names_the_glasses(keyboard, line):
    keyboard.write(line.encode())
    keyboard.close()
    with pytest.raises(UserError) as error:
        up._ask_which(Screen(io.StringIO(), io.StringIO(), {}, as_json=False), ["A", "B"])
    assert (
        error.value.exit_code,
        "A, B" in error.value.message,
        "--address" in error.value.fix,
    ) == (2, True, True)
