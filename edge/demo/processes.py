"""The processes of the demo: children that announce themselves with one JSON line, and end with
this process.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from edge.runtime.subprocesses import Child
from firmware_bridge.deadlines import timeout

STARTED_WITHIN_S: Final = 60.0
"""A Raspberry Pi with a cold disk needs several seconds to import a Bluetooth stack; a busy one
many. A child that ends is noticed at once.
"""
ENDED_WITHIN_S: Final = 6.0
READY_S: Final = 60.0
SIMULATED: Final = "sim:"
"""The prefix of simulated glasses of a real model; the daemon knows them without it."""
MAX_SOCKET_PATH: Final = 107
"""Bytes of the path of a unix socket (sun_path without its final null byte)."""
LONGEST_SOCKET: Final = "control.sock"
SHORT: Final = "/tmp"  # noqa: S108 - mkdtemp makes a folder of its own in it


class StartFailed(Exception):
    """A child did not start; the text has its name and its last output."""


@contextmanager
def folder_for_sockets(out: Path) -> Iterator[Path]:
    """Yield this folder, or a short one for the time of the block if the paths of sockets in it
    would be too long. Raise `StartFailed`.
    """
    if len(os.fsencode(out / LONGEST_SOCKET)) <= MAX_SOCKET_PATH:
        yield out
        return
    try:
        short = tempfile.TemporaryDirectory(prefix="glassd-demo-", dir=SHORT)
    except OSError as e:
        problem = f"{out} is too long for sockets, and {SHORT} takes none: {e.strerror}"
        raise StartFailed(f"{problem}; set TMPDIR to a shorter folder") from None
    with short as name:
        yield Path(name)


def without_settings(env: Mapping[str, str]) -> dict[str, str]:
    """Leave out the settings and sockets of another daemon: in the environment they overrule a
    configuration file.
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
        """Start, and wait for the announcement. Raise `StartFailed`."""
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
            announced = dict(json.loads(await child.first_line(STARTED_WITHIN_S)))
        except ValueError:
            await self.stop()
            raise StartFailed(f"{self.name} did not start: {self.last_words()}") from None
        if isinstance(error := announced.get("error"), dict):
            await self.stop()
            problem = f"{error.get('message')}. {error.get('fix') or ''}"
            raise StartFailed(f"{self.name} did not start: {problem}".rstrip())
        return announced

    def last_words(self) -> str:
        """Return the end of the child's log."""
        return (self._child.last_words() if self._child else "") or "it said nothing"

    async def stop(self) -> None:
        """Terminate the child, and kill it if it does not end; idempotent."""
        if self.running and self._child is not None:
            await self._child.stop()


def glassd(*words: str) -> list[str]:
    """Return the argument vector of another glassd process of this installation."""
    return [sys.executable, "-m", "edge.cli", *words]


async def start(
    stack: AsyncExitStack, out: Path, name: str, *words: str, announces: bool = True
) -> ChildProcess:
    """Start `glassd` with these words; it ends with `stack`. Raise `StartFailed`."""
    child = ChildProcess(name, glassd(*words), log_dir=out)
    stack.push_async_callback(child.stop)
    await child.start(announces=announces)
    return child


async def start_daemon(
    stack: AsyncExitStack, out: Path, config: Path, control: Path
) -> ChildProcess:
    """Start the daemon, and wait until it answers on its socket. Raise `StartFailed`, at once if it
    ends.
    """
    daemon = await start(stack, out, "daemon", "run", "--config", str(config), announces=False)
    try:
        async with timeout(READY_S):
            while daemon.running:
                try:
                    _, writer = await asyncio.open_unix_connection(str(control))
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    return daemon
    except TimeoutError:
        pass
    raise StartFailed(f"the daemon did not start: {daemon.last_words()}")
