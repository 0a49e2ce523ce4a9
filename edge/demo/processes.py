"""The cast of the demo: child processes that announce themselves with one JSON line, and end with
us.

Refuses to know the play. Children are started by argument vector, watched, and ended by pid.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from edge.runtime.subprocesses import Child
from firmware_bridge.deadlines import timeout

STARTED_WITHIN_S: Final = 20.0
"""A cold Pi needs several seconds to import a Bluetooth stack; nobody waits longer than this."""
ENDED_WITHIN_S: Final = 6.0
READY_S: Final = 15.0
SIMULATED: Final = "sim:"
"""A simulated real family is known to the daemon by its own name."""


class CastError(Exception):
    """A child did not start; the text says which, and what it said last."""


def without_settings(env: Mapping[str, str]) -> dict[str, str]:
    """Leave the settings and sockets of another daemon out: in the environment they would win
    over a configuration file.
    """
    return {name: value for name, value in env.items() if not name.startswith("GLASSD_")}


class ChildProcess:
    """One child process. `announcement` is the first JSON object it printed."""

    def __init__(
        self, name: str, argv: list[str], *, log_dir: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.announcement: dict[str, Any] = {}
        self._argv = argv
        self._log = log_dir / f"{name}.log"
        self._env = {**without_settings(os.environ), **(env or {})}
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        return self._child.pid if self._child else 0

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    async def start(self, *, announces: bool = True) -> dict[str, Any]:
        """Start, and wait for the announcement. Raises `CastError`."""
        self._child = await Child.start(
            self._argv,
            name=self.name,
            log_file=self._log,
            env=self._env,
            by=signal.SIGTERM,
            stop_s=ENDED_WITHIN_S,
            speaks=announces,
        )
        if announces:
            self.announcement = await self._announced(self._child)
        return self.announcement

    async def _announced(self, child: Child) -> dict[str, Any]:
        try:
            said = dict(json.loads(await child.first_line(STARTED_WITHIN_S)))
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
        return (self._child.last_words() if self._child else "") or "it said nothing"

    async def stop(self) -> None:
        """Ask the child to end, then insist; idempotent."""
        if self.running and self._child is not None:
            await self._child.stop()


def glassd(*words: str) -> list[str]:
    """Argument vector for another glassd process of this very installation."""
    return [sys.executable, "-m", "edge.cli", *words]


async def until_there(control: Path, daemon: ChildProcess) -> None:
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
