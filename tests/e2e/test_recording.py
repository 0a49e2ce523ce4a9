"""An owner at a terminal validates glasses: real processes, a real pty, simulated glasses."""

import json
import os
import pty
import re
import select
import sys
import time
from pathlib import Path

import pytest

from edge.testing import wear
from firmware_bridge.recording.files import read
from firmware_bridge.recording.playback import play_to_central, play_to_glasses

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(300)]
WITHIN_S = 60.0


class Owner:
    """A command with a terminal of its own."""

    def __init__(self, *words, socket):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            env = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "xterm"}
            command = [sys.executable, "-m", "edge", *words, "--socket", str(socket)]
            os.execve(sys.executable, command, env)
        self.seen = ""

    def reads(self, text):
        """Wait until this comes; what came before it is read."""
        end = time.monotonic() + WITHIN_S
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 4096).decode("utf-8", "replace")
                except OSError:
                    break
        assert text in self.seen, self.seen
        self.seen = self.seen.partition(text)[2]

    def types(self, line):
        os.write(self.fd, f"{line}\n".encode())

    def end(self):
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return code


def test_an_owner_validates_glasses_and_the_answers_are_in_the_recording(tmp_path):
    path = tmp_path / "v.jsonl"
    with wear("mock:full") as glasses:
        owner = Owner("validate", str(path), socket=glasses.socket)
        owner.reads("texts of all pages, notifications")
        owner.reads("Type yes, then Enter: ")
        owner.types("yes")
        owner.reads("Does the lens show: glassd 1 2 3")
        assert "glassd 1 2 3" in " ".join(glasses.lens)
        owner.types("y")
        owner.reads("two full lines")
        wide = glasses.wait_for_lens("]")
        owner.types("no")
        owner.reads("Which of these can you read")
        owner.types("Greek and Russian only")
        glasses.mock.do("battery 40")
        owner.reads("a square with a line")
        owner.types("")
        owner.reads("Now: tap")
        glasses.mock.do("tap")
        owner.reads("  seen")
        owner.reads("Now: double tap")
        owner.reads("  not seen")
        owner.reads("battery of 40 %")
        owner.types("yes")
        owner.reads("Did you hear")
        owner.types("yes")
        owner.reads("Now speak")
        owner.reads("packets of sound")
        owner.reads("May the glasses take a photo now?")
        owner.types("no")
        owner.reads("packets of mock:full")
        assert owner.end() == 0
        address = glasses.status()["glasses"]["address"]
    recording = read(path)
    answers = {}
    for line in recording.lines:
        if line.answer:
            answers.setdefault(line.answer["check"], []).append(line.answer["said"])
    heard = answers["sound"].pop()
    assert re.fullmatch(r"\d+ packets of sound", heard)
    assert answers == {
        "text": ["yes"],
        "widths": ["no"],
        "scripts": ["Greek and Russian only"],
        "picture": [""],
        "taps": ["seen", "not seen", "not seen"],
        "battery": ["yes"],
        "sound": ["yes"],
        "photo": ["no"],
    }
    [called] = [
        line.answer["call"]
        for line in recording.lines
        if (line.answer or {}).get("check") == "text"
    ]
    assert called["ok"] is True
    assert [line[-1] for line in wide] == ["]", "]"]
    assert {line[0] for line in wide} == {"i", "W"}
    assert address.lower() not in path.read_text().lower()
    assert not play_to_central(recording).problems
    assert not play_to_glasses(recording).problems


def test_an_owner_who_says_no_records_nothing(tmp_path):
    with wear("mock:display") as glasses:
        owner = Owner("record", str(tmp_path / "r.jsonl"), socket=glasses.socket)
        owner.reads("Type yes, then Enter: ")
        owner.types("no")
        owner.reads("nothing was recorded")
        assert owner.end() == 1
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_a_recording_and_writes_it(tmp_path):
    path = tmp_path / "r.jsonl"
    with wear("sim:even_g1") as glasses:
        owner = Owner("record", str(path), "--yes", socket=glasses.socket)
        owner.reads("Ctrl-C ends it")
        glasses.wait_for(
            lambda: glasses.status()["glasses"]["state"] != "ready", what="the link is closed"
        )
        glasses.wait_for(
            lambda: glasses.status()["glasses"]["state"] == "ready", what="the link is open again"
        )
        assert glasses.call("notes:add", text="buy milk")["ok"]
        glasses.wait_for_lens("buy milk")
        os.write(owner.fd, b"\x03")
        owner.reads("packets of even_g1")
        assert owner.end() == 0
    assert "buy milk" in bytes(b"".join(x.content for x in read(path).lines if x.is_packet)).decode(
        "latin-1"
    )
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert re.match(r'\{"glassd_recording":1,"model":"even_g1"', path.read_text())
    assert json.loads(path.read_text().splitlines()[0])["sound"] is False
