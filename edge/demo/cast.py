"""The cast of the demo: child processes that announce themselves with one JSON line, and end with
us.

Refuses to know the play. Children are started by argument vector, watched, and ended by pid.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from edge.devcloud.children import bound_to_us
from firmware_bridge.deadlines import timeout

STARTED_WITHIN_S: Final = 20.0
"""A cold Pi needs several seconds to import a Bluetooth stack; nobody waits longer than this."""
ENDED_WITHIN_S: Final = 6.0
READY_S: Final = 15.0
SIMULATED: Final = "sim:"
"""A simulated real family is known to the daemon by its own name."""
LINE_BYTES: Final = 1 << 20


class CastError(Exception):
    """A child did not start; the text says which, and what it said last."""


def without_settings(env: Mapping[str, str]) -> dict[str, str]:
    """Leave the settings and sockets of another daemon out: in the environment they would win
    over a configuration file.
    """
    return {name: value for name, value in env.items() if not name.startswith("GLASSD_")}


class Member:
    """One child process. `announcement` is the first JSON object it printed."""

    def __init__(
        self, name: str, argv: list[str], *, log_dir: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.announcement: dict[str, Any] = {}
        self._argv = argv
        self._log = log_dir / f"{name}.log"
        self._env = {**without_settings(os.environ), **(env or {})}
        self._process: Process | None = None
        self._drain: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, *, announces: bool = True) -> dict[str, Any]:
        """Start, and wait for the announcement. Raises `CastError`."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *bound_to_us(self._argv, by=signal.SIGTERM),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=PIPE if announces else log,
                stderr=log,
                env=self._env,
                limit=LINE_BYTES,
                start_new_session=True,
            )
        if announces:
            self.announcement = await self._first_line()
        return self.announcement

    async def _first_line(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            async with timeout(STARTED_WITHIN_S):
                line = await self._process.stdout.readline()
        except TimeoutError:
            line = b""
        try:
            said = dict(json.loads(line))
        except ValueError:
            await self.stop()
            raise CastError(f"{self.name} did not start: {self.last_words()}") from None
        if isinstance(error := said.get("error"), dict):
            await self.stop()
            raise CastError(
                (
                    f"{self.name} did not start: {error.get('message')}. {error.get('fix') or ''}"
                ).rstrip()
            )
        return said

    def last_words(self) -> str:
        """Give the end of the child's log."""
        try:
            return (
                self._log.read_text(encoding="utf-8", errors="replace").strip()[-600:]
                or "it said nothing"
            )
        except OSError:
            return "it said nothing"

    async def wait(self) -> int:
        """Wait until the child ends by itself, reading on so that its pipe never fills; its
        exit code.
        """
        assert self._process is not None
        await self._process.communicate()
        return self._process.returncode or 0

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        if self.running and self._process is not None:
            self._process.kill()

    async def stop(self) -> None:
        """Ask the child to end, then insist; idempotent."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with timeout(ENDED_WITHIN_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def glassd(*words: str) -> list[str]:
    """Argument vector for another glassd process of this very installation."""
    return [sys.executable, "-m", "edge.cli", *words]


async def until_there(control: Path, daemon: Member) -> None:
    """Wait until the daemon answers on its socket. Raises `CastError`."""
    try:
        async with timeout(READY_S):
            while True:
                try:
                    _, writer = await asyncio.open_unix_connection(str(control))
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    return
    except TimeoutError:
        raise CastError(f"the daemon did not start: {daemon.last_words()}") from None
