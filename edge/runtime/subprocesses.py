"""Child processes that end with this one, and write to a file, so that they never block."""

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from firmware_bridge.deadlines import timeout

log = logging.getLogger(__name__)

_BOOT: Final = (
    "import ctypes,os,signal,sys;"
    # PR_SET_PDEATHSIG: end when the parent does, kill -9 included
    "ctypes.CDLL(None).prctl(1,int(sys.argv[2]),0,0,0);"
    # the parent died before the line above took hold
    "os.getppid()==int(sys.argv[1]) or os._exit(1);"
    "os.execvp(sys.argv[3],sys.argv[3:])"
)
STOP_S: Final = 3.0
"""How long a child may take to leave after SIGTERM."""
LINE_BYTES: Final = 1 << 20
_LAST_WORDS: Final = 600
"""Bytes at the end of a child's log that are shown to explain why it ended."""


def bound_to_us(command: Sequence[str], *, by: signal.Signals = signal.SIGKILL) -> list[str]:
    """Return the argument vector that runs `command` and signals it when this process dies."""
    return [sys.executable, "-I", "-S", "-c", _BOOT, str(os.getpid()), str(int(by)), *command]


class Child:
    """One process, used once: start, watch, end."""

    def __init__(self, process: Process, name: str, log_file: Path, stop_s: float) -> None:
        self._process = process
        self._log_file = log_file
        self._stop_s = stop_s
        self.name = name

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        name: str,
        log_file: Path,
        env: Mapping[str, str] | None = None,
        by: signal.Signals = signal.SIGKILL,
        stop_s: float = STOP_S,
        speaks: bool = False,
    ) -> "Child":
        """Start a command; it gets `by` when this process dies. Raise OSError.

        It has `stop_s` seconds to leave after SIGTERM. With `speaks`, `first_line` reads its
        stdout.
        """
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *bound_to_us(command, by=by),
                stdin=DEVNULL,
                stdout=PIPE if speaks else out,
                stderr=out,
                env=env,
                limit=LINE_BYTES,
                start_new_session=True,  # ^C in the terminal is ours to handle
            )
        log.debug("started %s as pid %d", name, process.pid)
        return cls(process, name, log_file, stop_s)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    async def first_line(self, within_s: float) -> bytes:
        """Return what it wrote first; b"" when that took too long, or it wrote nothing."""
        assert self._process.stdout is not None
        try:
            async with timeout(within_s):
                return await self._process.stdout.readline()
        except TimeoutError:
            return b""

    async def ended(self) -> int:
        """Wait for its end; return the exit code."""
        return await self._process.wait()

    def last_words(self) -> str:
        """The end of what it wrote, on one line, to explain a failure."""
        try:
            with self._log_file.open("rb") as file:
                file.seek(max(0, self._log_file.stat().st_size - _LAST_WORDS))
                text = file.read(_LAST_WORDS).decode(errors="replace")
        except OSError:
            return ""
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())

    async def stop(self) -> None:
        """Ask it to leave, make it leave; fine when it has left already."""
        self._signal(signal.SIGTERM)
        try:
            async with timeout(self._stop_s):
                await self._process.wait()
        except TimeoutError:
            log.warning("%s (pid %d) does not stop, it is killed", self.name, self.pid)
            await self.kill()
        except asyncio.CancelledError:
            self._signal(signal.SIGKILL)
            raise

    def reread(self) -> None:
        """Tell it to read its files again."""
        self._signal(signal.SIGHUP)

    async def kill(self) -> None:
        """End it as a power cut would."""
        self._signal(signal.SIGKILL)
        await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            try:
                self._process.send_signal(number)
            except ProcessLookupError:
                log.debug("%s had left already", self.name)
