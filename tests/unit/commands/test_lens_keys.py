"""Keys in `glassd lens --watch`: what the wearer of simulated glasses does."""

import asyncio
import json
import os
import signal
from types import SimpleNamespace

import pytest

from edge.commands.lens_keys import HINT, Simulator, simulator_of
from edge.commands.shared.console import Screen
from edge.runtime.events import LensChanged
from tests.unit.commands.test_cli import start
from tests.unit.commands.test_confirm import at_terminal
from tests.unit.commands.test_console import Terminal
from tests.unit.control.house import open_house

pytestmark = pytest.mark.enable_socket
WITHIN_S = 60.0


async def open_simulator(path, *, answer=None):
    """A control channel that notes what it is asked to do."""
    done = []

    async def serve(reader, writer):
        try:
            while line := await reader.readline():
                done.append(json.loads(line)["do"])
                writer.write(json.dumps(answer or {"ok": True}).encode() + b"\n")
        finally:
            writer.close()

    server = await asyncio.start_unix_server(serve, str(path))
    return SimpleNamespace(done=done, close=server.close)


async def watch(tmp_path, work, *more, answer=None, beside=True):
    async with open_house(tmp_path) as house:
        simulator = await open_simulator(
            tmp_path / ("mock.sock" if beside else "other.sock"), answer=answer
        )
        words = ("lens", "--watch", "--socket", str(house.path), *more)
        loop = asyncio.get_running_loop()

        def change(text):
            house.lens["lines"] = [text]
            event = LensChanged("s", 1, 1, (text,))
            loop.call_soon_threadsafe(house.bus.publish, event)

        code, seen = await at_terminal(lambda person: work(person, change), *words)
        simulator.close()
        return code, seen, simulator.done


def press(person, key):
    os.write(person.fd, key.encode())


@pytest.mark.requirement("I13-lens-keys")
async def test_keys_do_what_the_wearer_does_until_q(tmp_path):
    def work(person, _change):
        person.reads(HINT)
        for key in "tdhxT":
            person.seen = ""
            press(person, key)
            if key != "x":
                person.reads(HINT)
        press(person, "q")

    code, _, done = await watch(tmp_path, work)
    assert (code, done) == (0, ["tap", "double_tap", "head_up", "tap"])


async def test_the_arrow_keys_do_nothing(tmp_path):
    """They send ESC [ A to D, and a D is no double tap."""

    def work(person, _change):
        person.reads(HINT)
        press(person, "\x1b[D\x1b[1;5D\x1bODt")
        person.seen = ""
        person.reads(HINT)
        press(person, "q")

    code, _, done = await watch(tmp_path, work)
    assert (code, done) == (0, ["tap"])


async def test_changes_are_shown_between_keys(tmp_path):
    def work(person, change):
        person.reads("Hello")
        person.reads(HINT)
        person.seen = ""
        while "Bye" not in person.seen:  # the first may come before anybody follows
            change("Bye")
            person.reads(HINT)
        press(person, "q")

    code, _, done = await watch(tmp_path, work)
    assert (code, done) == (0, [])


async def test_what_the_simulator_refuses_is_said(tmp_path):
    def work(person, _change):
        person.reads(HINT)
        press(person, "t")
        person.reads("nobody is connected")
        press(person, "q")

    answer = {"ok": False, "error": "nobody is connected"}
    assert (await watch(tmp_path, work, answer=answer))[0] == 0


async def test_another_control_channel_can_be_named(tmp_path):
    def work(person, _change):
        person.reads(HINT)
        press(person, "t")
        press(person, "q")

    where = ("--control", str(tmp_path / "other.sock"))
    assert (await watch(tmp_path, work, *where, beside=False))[2] == ["tap"]


async def test_without_a_simulator_there_are_no_keys(tmp_path):
    def work(person, _change):
        person.reads("Hello")
        os.write(person.fd, b"\x03")

    code, seen, done = await watch(tmp_path, work, beside=False)
    assert (code, done) == (130, [])
    assert HINT not in seen


async def test_beside_a_simulator_that_has_ended_there_are_no_keys(tmp_path):
    """Its socket may be left behind."""

    def work(person, _change):
        person.reads("Hello")
        os.write(person.fd, b"\x03")

    (tmp_path / "mock.sock").touch()
    code, seen, _ = await watch(tmp_path, work, beside=False)
    assert (code, HINT in seen) == (130, False)


async def test_a_pipe_gets_no_keys_even_beside_a_simulator(tmp_path):
    async with open_house(tmp_path) as house:
        simulator = await open_simulator(tmp_path / "mock.sock")
        process = await start("lens", "--watch", "--socket", str(house.path))
        async with asyncio.timeout(WITHIN_S):
            while not house.server.streams:
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
        simulator.close()
    assert (process.returncode, err) == (130, b"")
    assert b"Hello" in out
    assert HINT.encode() not in out


def test_a_simulator_that_is_gone_is_said(tmp_path):
    gone = Simulator(str(tmp_path / "none.sock"))
    assert not gone.is_there()
    assert gone.do("tap") == "the simulator does not answer: No such file or directory"


def test_there_are_no_keys_where_the_input_is_no_terminal(tmp_path, monkeypatch):
    args = SimpleNamespace(control=str(tmp_path / "m.sock"), socket=None)
    screen = Screen(Terminal(), Terminal(), {"TERM": "xterm"}, as_json=False)
    monkeypatch.setattr(os, "isatty", lambda fd: fd != 0)
    assert simulator_of(args, screen) is None
    monkeypatch.setattr(os, "isatty", lambda _fd: True)
    assert simulator_of(args, screen) is not None
