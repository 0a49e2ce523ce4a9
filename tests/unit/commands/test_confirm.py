"""Confirming at a terminal: everything is shown, only what is typed afterwards counts, and the
right socket is used.
"""

import asyncio
import os
import pty
import select
import signal
import sys
import termios
import time

import pytest

from edge.commands.shared.terminal import rows
from tests.unit.commands.test_cli import environment, glassd
from tests.unit.control.house import ASKED, open_house, row
from tools_cache.api.tool import ToolResponse

pytestmark = pytest.mark.enable_socket

WITHIN_S = 60.0
ARGS = {
    "note": "thanks",
    "amount": 99999,
    "to": ["evil@example.org"],
    "express": True,
    "a\nkey": "b\u202ec",
}


class Person:
    """A command with its own terminal: reads what it shows, and types."""

    def __init__(self, *words, lines=0):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            if lines:
                termios.tcsetwinsize(0, (lines, 80))
            os.execve(
                sys.executable,
                [sys.executable, "-m", "edge.cli", *words],
                environment(COLUMNS="300"),
            )
        self.seen = ""

    def reads(self, text):
        """Wait until this is on the screen."""
        end = time.monotonic() + WITHIN_S
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.2)[0] and not self._more():
                break
        assert text in self.seen, self.seen

    def types(self, line):
        os.write(self.fd, f"{line}\n".encode())

    def end(self):
        """The exit code, once it is over."""
        end = time.monotonic() + WITHIN_S
        while time.monotonic() < end and (
            not select.select([self.fd], [], [], 0.2)[0] or self._more()
        ):
            pass
        if time.monotonic() >= end:
            os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _more(self):
        try:
            data = os.read(self.fd, 65536).decode("utf-8", "replace")
        except OSError:  # the other end is gone
            return False
        self.seen += data.replace("\r\n", "\n")
        return bool(data)


def at_terminal(work, *words, lines=0):
    def run():
        person = Person(*words, lines=lines)
        work(person)
        return person.end(), person.seen

    return asyncio.to_thread(run)


async def ask_about(house, args=ARGS):
    house.calls.asked["cal:add"] = ASKED
    await house.ask(
        "POST", "/v1/call", {"tool": "cal:add", "args": args, "ask": "return", "origin": "mcp"}
    )


@pytest.mark.requirement("CONSENT-terminal")
@pytest.mark.parametrize(
    ("typed", "decided", "code"),
    [
        ("yes", ("id-1", True, "once"), 0),
        ("always", ("id-1", True, "always"), 0),
        ("no", ("id-1", False, "once"), 0),
        ("never", ("id-1", False, "never"), 0),
    ],
)
async def test_all_of_a_question_is_shown_and_the_typed_answer_decides(
    tmp_path, typed, decided, code
):
    def answer(person):
        person.reads("Run it?")
        person.types(typed)

    async with open_house(tmp_path) as house:
        await ask_about(house)
        ended, seen = await at_terminal(answer, "confirm", "--socket", str(house.path))
        ((call_id, allow, grant, _),) = house.calls.decided
    assert (ended, (call_id, allow, grant.value)) == (code, decided)
    for shown in (
        "cal:add",
        "asked by   mcp",
        "amount (not declared): 99,999",
        "to (1) (not declared):",
        "1. evil@example.org",
        "express (not declared): yes",
        '"a\\nkey" (not declared): "b\\u202ec"',
        "Cal: Add?",
        "cal:add, from ",
    ):
        assert shown in seen


@pytest.mark.requirement("CONSENT-terminal")
async def test_text_typed_before_the_question_is_no_answer(tmp_path):
    def hasty(person):
        person.types("yes")
        person.types("yes")
        person.reads("Run it?")
        person.types("")

    async with open_house(tmp_path) as house:
        await ask_about(house)
        code, _ = await at_terminal(hasty, "confirm", "--socket", str(house.path))
    assert (code, house.calls.decided) == (0, [])


@pytest.mark.requirement("CONSENT-terminal")
async def test_a_question_longer_than_the_screen_is_read_part_by_part_before_a_yes(tmp_path):
    def read_on(person):
        while "Run it?" not in person.seen:
            beginning = len(person.seen)
            while not person.seen[beginning:].rstrip(" ").endswith(":"):
                assert select.select([person.fd], [], [], WITHIN_S)[0]
                assert person._more()
            assert person.seen[beginning:].count("\n") <= 24
            if "Run it?" not in person.seen:
                person.types("yes")
        person.types("no")

    args = {"amount": 999} | {f"note{number}": "thanks" for number in range(60)}
    async with open_house(tmp_path) as house:
        await ask_about(house, args)
        _, seen = await at_terminal(read_on, "confirm", "--socket", str(house.path), lines=24)
        assert [decided[:2] for decided in house.calls.decided] == [("id-1", False)]
    assert all(f"{key} (not declared): {value}" in seen for key, value in args.items())


@pytest.mark.requirement("CONSENT-terminal")
async def test_a_pipe_is_no_terminal(tmp_path):
    async with open_house(tmp_path) as house:
        await ask_about(house)
        ran = await glassd("confirm", "--socket", str(house.path), stdin=b"yes\nyes\n")
        assert (ran.code, house.calls.decided) == (1, [])
        assert "an answer can be typed only at a terminal" in ran.err
        assert "amount (not declared): 99,999" in ran.out
        listed = await glassd("confirm", "--json", "--socket", str(house.path))
    assert [question["args"] for question in listed.json["questions"]] == [ARGS]


async def test_nothing_to_confirm_is_reported(tmp_path):
    async with open_house(tmp_path) as house:
        ran = await glassd("confirm", "--socket", str(house.path))
    assert (ran.code, ran.out.strip()) == (0, "No call waits for confirmation.")


@pytest.mark.parametrize("words", [("--deny",), ("--always",), ("--never",)])
async def test_without_a_token_the_answer_is_typed(tmp_path, words):
    async with open_house(tmp_path) as house:
        ran = await glassd("confirm", *words, "--socket", str(house.path))
    assert (ran.code, "typed at the terminal" in ran.err) == (2, True)


@pytest.mark.requirement("CONSENT-terminal")
async def test_a_call_at_a_terminal_asks_there_and_prints_its_answer(tmp_path):
    def answer(person):
        person.reads("Run it?")
        person.types("yes")

    async with open_house(tmp_path) as house:
        house.calls.asked["cal:add"] = ASKED
        house.store.rows["id-1"] = row(
            "id-1",
            tool="cal:add",
            state="AWAITING_CONFIRMATION",
            ok=None,
            delivery=None,
            response=None,
        )
        code, seen = await at_terminal(
            answer, "call", "cal:add", "title=x", "--socket", str(house.path)
        )
        ((call_id, allow, _, _),) = house.calls.decided
    assert (code, call_id, allow) == (0, "id-1", True)
    assert "title (not declared): x" in seen


async def test_an_answer_from_elsewhere_ends_the_question_at_the_terminal(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.asked["cal:add"] = ASKED
        house.store.rows["id-1"] = row(
            "id-1",
            tool="cal:add",
            state="AWAITING_CONFIRMATION",
            ok=None,
            delivery=None,
            response=None,
        )
        loop = asyncio.get_running_loop()

        def tapped():
            house.calls.open = []
            house.end("id-1", ToolResponse(data={"event": 7}))

        def waits(person):
            person.reads("Run it?")
            loop.call_soon_threadsafe(tapped)
            person.reads("answered elsewhere")

        code, seen = await at_terminal(waits, "call", "cal:add", "--socket", str(house.path))
    assert (code, house.calls.decided) == (0, [])
    assert '"event": 7' in seen


# ------------------------------------------------------------------ the socket a verb needs


@pytest.mark.requirement("CONSENT-roles")
@pytest.mark.parametrize(
    "words",
    [
        ("confirm", "tok-1"),
        ("confirm",),
        ("grants", "--always", "cal:add"),
        ("say", "hello"),
        ("tools", "disable", "notes:add"),
        ("pair", "--cancel"),
        ("unpair",),
        ("up", "-"),
    ],
)
async def test_a_verb_that_decides_names_the_group_it_needs(tmp_path, words):
    """`owner.sock` cannot be opened; `control.sock` can."""
    async with open_house(tmp_path) as house:
        owners = tmp_path / "shut.sock"
        owners.symlink_to("/proc/1/root/owner.sock" if os.geteuid() else "/nonexistent/owner.sock")
        ran = await glassd(
            *words, "--socket", str(house.path), stdin=b"CODE\n", GLASSD_OWNER_SOCKET=str(owners)
        )
        assert (ran.code, house.calls.decided, house.said) == (3, [], [])
    assert "shut.sock" in ran.err


async def test_a_caller_still_calls_and_learns_where_to_confirm(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.asked["cal:add"] = ASKED
        ran = await glassd(
            "call",
            "cal:add",
            "--no-wait",
            "--socket",
            str(house.path),
            GLASSD_OWNER_SOCKET=str(tmp_path / "none.sock"),
        )
    assert ran.code == 0
    assert "tok-1" not in ran.out + ran.err
    assert ran.out.rstrip().endswith("or: glassd confirm")


@pytest.mark.requirement("I11-consent-visible", "I11-consent-everywhere")
def test_a_line_that_wraps_at_a_terminal_is_marked_and_whole():
    forged = "note: " + "x" * 34 + "amount: 1 EUR" + "字" * 30
    shown = rows(forged, 40)
    assert shown[0].startswith("  note: x")
    assert all(row.startswith("  | ") for row in shown[1:])
    assert "".join([shown[0][2:], *(row[4:] for row in shown[1:])]) == forged
    assert all(sum(2 if ch == "字" else 1 for ch in row) <= 40 for row in shown)
    assert rows(forged, 0) == ["  " + forged]
