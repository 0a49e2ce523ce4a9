"""`glassd lens --watch` of simulated glasses: keys for what the wearer does."""

import os
import select
import termios
import threading
import tty
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.simulator import Simulator, simulator_beside
from edge.runtime.errors import UserError

GESTURES: Final = {"t": "tap", "d": "double_tap", "h": "head_up"}
QUIT: Final = "q"
HINT: Final = "t tap · d double tap · h head up · q quit"
REST_OF_KEY_S: Final = 0.1
"""What a key sends comes at once, over a slow line within this."""


def simulator_of(args: Namespace, screen: Screen) -> Simulator | None:
    """Return the simulator whose wearer the keys are for; None without one, or without a person at
    a terminal.
    """
    return simulator_beside(args) if screen.live and os.isatty(0) else None


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
    more = _rest_of_key()
    while more and (more in (b"[", b"O") or not b"@" <= more <= b"~"):
        more = _rest_of_key()
    return ""


def _rest_of_key() -> bytes:
    """Return the next character of the key; b"" if there is none."""
    return os.read(0, 1) if select.select([0], [], [], REST_OF_KEY_S)[0] else b""
