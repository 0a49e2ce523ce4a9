"""`glassd lens --watch` of simulated glasses: keys for what the wearer does."""

import json
import os
import select
import socket
import termios
import threading
import tty
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from edge.commands.shared.console import Screen, plain
from edge.runtime.errors import UserError
from edge.runtime.paths import client_sockets

NAME: Final = "mock.sock"
"""The control channel of the simulator that the demos start, beside the daemon's socket."""
GESTURES: Final = {"t": "tap", "d": "double_tap", "h": "head_up"}
QUIT: Final = "q"
HINT: Final = "t tap · d double tap · h head up · q quit"
ANSWER_S: Final = 3.0
MAX_ANSWER: Final = 64 * 1024


class Simulator:
    """The control channel of simulated glasses."""

    def __init__(self, where: str) -> None:
        self._where = where

    def is_there(self) -> bool:
        try:
            self._connect().close()
        except OSError:
            return False
        return True

    def do(self, what: str) -> str:
        """Do what the wearer does; return why it failed, or ""."""
        try:
            with self._connect() as channel, channel.makefile("rb") as answers:
                channel.sendall(json.dumps({"do": what}).encode() + b"\n")
                answer = json.loads(answers.readline(MAX_ANSWER))
        except (OSError, ValueError) as e:
            why = e.strerror if isinstance(e, OSError) and e.strerror else "not understood"
            return f"the simulator does not answer: {why}"
        return str(answer.get("error") or "") if isinstance(answer, dict) else ""

    def _connect(self) -> socket.socket:
        if self._where.startswith("tcp:"):
            host, _, port = self._where.removeprefix("tcp:").rpartition(":")
            return socket.create_connection((host, int(port)), timeout=ANSWER_S)
        channel = socket.socket(socket.AF_UNIX)
        channel.settimeout(ANSWER_S)
        try:
            channel.connect(self._where)
        except OSError:
            channel.close()
            raise
        return channel


def simulator_of(args: Namespace, screen: Screen) -> Simulator | None:
    """Return the simulator whose wearer the keys are for; None without one, or without a person at
    a terminal.
    """
    if not (screen.live and os.isatty(0)):
        return None
    if args.control:
        return Simulator(args.control)
    sockets = (Path(args.socket),) if args.socket else client_sockets(os.environ)
    beside = next((path.with_name(NAME) for path in sockets if path.exists()), None)
    found = None if beside is None else Simulator(str(beside))
    return found if found is not None and found.is_there() else None


def watch(
    changes: Iterator[object], screen: Screen, simulator: Simulator, show: Callable[[], object]
) -> int:
    """Show the lens now and at every change, and pass keys on, until `q` or the end of the daemon,
    which `changes` raises.
    """
    following, note = _Following(changes), ""
    with _keys() as read:
        while True:
            show()
            screen.line(plain(note) or HINT)
            screen.flush()
            key = _next(following, read)
            if key == QUIT:
                return 0
            note = simulator.do(GESTURES[key]) if key else ""


def _next(following: "_Following", read: Callable[[], str]) -> str:
    """Wait for one of our keys, or for a change of the lens, which is ""."""
    while True:
        ready, _, _ = select.select([following.fd, 0], [], [])
        if following.fd in ready:
            following.take()
            return ""
        if (key := read()) in GESTURES or key == QUIT:
            return key


class _Following:
    """Follows changes in a thread, because a key may come first; `fd` is readable after a change,
    and when there are no more.
    """

    def __init__(self, changes: Iterator[object]) -> None:
        self.fd, self._write = os.pipe()
        self._error: UserError | None = None
        threading.Thread(target=self._follow, args=(changes,), daemon=True).start()

    def take(self) -> None:
        """Take what changed so far. Raise `UserError` if nothing can change any more."""
        os.read(self.fd, 4096)
        if self._error is not None:
            raise self._error

    def _follow(self, changes: Iterator[object]) -> None:
        try:
            for _ in changes:
                os.write(self._write, b".")
        except UserError as e:
            self._error = e
            os.write(self._write, b".")


@contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """Read single keys from the terminal, which is as before afterwards."""
    before = termios.tcgetattr(0)
    tty.setcbreak(0)
    try:
        yield _key
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _key() -> str:
    """Read one key; "" for one that sends several characters, as the arrows do (ESC [ A)."""
    key = os.read(0, 1)
    if key != b"\x1b":
        return key.decode("ascii", "ignore").lower() or QUIT
    if select.select([0], [], [], 0)[0] and os.read(0, 1) in (b"[", b"O"):
        while (more := os.read(0, 1)) and not b"@" <= more <= b"~":
            pass
    return ""
