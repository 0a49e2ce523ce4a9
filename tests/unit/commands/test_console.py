"""Output to a terminal: text from outside cannot move the cursor, colour text or change the
direction of writing.
"""

import json
from io import StringIO

import pytest

from edge.commands.shared.console import Screen, harmless, json_text
from edge.demo import main as demo

EVIL = "a\x9b31mb\x1b]0;title\x07\u202ec\u2066d\x7f\x85\U000e0001é 眼鏡 \ud800"
MOVES = ("\x9b", "\x1b", "\x07", "\u202e", "\u2066", "\x7f", "\x85", "\U000e0001", "\ud800")


class Terminal(StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.requirement("CLI-harmless")
@pytest.mark.parametrize("out", [StringIO, Terminal])
@pytest.mark.parametrize("lines", [True, False])
def test_json_has_no_control_characters_and_reads_back_the_same(out, lines):
    screen = Screen(written := out(), StringIO(), {}, as_json=True)
    screen.json({"text": EVIL, EVIL: [EVIL]}, lines=lines)
    text = written.getvalue()
    assert not [c for c in MOVES if c in text]
    assert "é 眼鏡" in text or not written.isatty()
    assert json.loads(text) == {"text": EVIL, EVIL: [EVIL]}
    assert ("\n" in text.rstrip("\n")) is (written.isatty() and not lines)


@pytest.mark.requirement("CLI-harmless")
def test_a_line_has_none_either_and_keeps_its_colours():
    screen = Screen(written := Terminal(), StringIO(), {"TERM": "xterm"}, as_json=False)
    screen.line(screen.paint("état", "red") + EVIL)
    text = written.getvalue()
    assert text.startswith("\x1b[31métat\x1b[0ma\\x9b31mb\\x1b]0;title\\x07\\u202ec")
    assert not [c for c in MOVES if c in text.replace("\x1b[31m", "").replace("\x1b[0m", "")]
    assert harmless("two\nlines") == "two\nlines"


@pytest.mark.parametrize(
    "env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "TERM": "xterm"}]
)
def test_a_terminal_that_wants_no_colours_gets_none(env):
    screen = Screen(Terminal(), Terminal(), env, as_json=False)
    assert screen.paint("state", "red") == "state"


@pytest.mark.parametrize("as_json", [True, False])
def test_the_demo_prints_none(capsys, as_json):
    show = demo._printer(as_json=as_json)
    show({"event": "problem", "text": EVIL.replace("\ud800", "")})
    assert not [c for c in MOVES if c in capsys.readouterr().out]


def test_indented_json_keeps_its_lines():
    assert json_text({"a": "x\ny\u202e"}, indent=1) == '{\n "a": "x\\ny\\u202e"\n}'
