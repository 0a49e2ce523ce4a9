"""Starts mini-apps when one of their tools is called, and tracks which are running.

Started apps keep running until the cloud ends, whatever the result of their calls.
"""

import asyncio
import hashlib
import logging
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from edge.devcloud.apps.state import STATE_ENV
from edge.devcloud.appserver import API_KEY_ENV
from edge.devcloud.broker import HOST, free_port
from edge.devcloud.registry import InstalledApp
from edge.devcloud.worker.app_processes import AppProcesses, Elsewhere
from edge.runtime.subprocesses import Child
from edge.storage.sqlite.database import StoreError
from firmware_bridge.deadlines import timeout

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)


CONNECT_S: Final = 10.0
POLL_S: Final = 0.2
_HEALTH_S: Final = 1.0


class ActivationFailed(Exception):
    """The app could not be started; retrying would not help."""


class ActivationTimeout(Exception):
    """The app was started and did not connect in time; nothing was delivered to it."""


@dataclass(frozen=True, slots=True)
class Running:
    """Address of a running app. `activated`: this request started it."""

    url: str
    api_key_hash: str
    activated: bool


@dataclass(slots=True)
class _AppProcess:
    """State of one app's process."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    child: Child | None = None
    url: str = ""
    api_key_hash: str = ""
    connected: bool = False
    starts: int = 0


class Launcher:
    """`ensure(app)` returns a running app; `aclose()` ends every process it started, by pid."""

    def __init__(
        self,
        http: "httpx.AsyncClient",
        *,
        state_dir: Path,
        connect_s: float = CONNECT_S,
        poll_s: float = POLL_S,
        processes: AppProcesses | None = None,
    ) -> None:
        self._http = http
        self._state_dir = state_dir
        self._connect_s = connect_s
        self._poll_s = poll_s
        self._processes: dict[str, _AppProcess] = {}
        self._others = processes

    async def ensure(self, app: InstalledApp) -> Running:
        """Return the running app, starting it if necessary; one process for all workers. Raises
        ActivationFailed, ActivationTimeout.
        """
        if not app.command:
            return Running(app.public_url, app.api_key_hash, activated=False)
        process = self._processes.setdefault(app.package, _AppProcess())
        async with process.lock:
            alive = process.child is not None and process.child.running
            if alive and process.connected:
                return Running(process.url, process.api_key_hash, activated=False)
            if not alive and (running := await self._here_or_elsewhere(app, process)) is not None:
                return running
            await self._connect(app, process)
            return Running(process.url, process.api_key_hash, activated=not alive)

    async def _here_or_elsewhere(self, app: InstalledApp, process: _AppProcess) -> Running | None:
        """Start the app, unless another worker runs it. On failure or cancellation the app is
        released: others wait for it.
        """
        try:
            if (running := await self._elsewhere(app)) is None:
                await self._start(app, process)
        except BaseException:
            await asyncio.shield(self._share(app.package, process))
            raise
        return running

    async def _elsewhere(self, app: InstalledApp) -> Running | None:
        """Return the app if another worker runs it; None if this one must start it. Raises
        ActivationTimeout.
        """
        if self._others is None:
            return None
        silent: Elsewhere | None = None
        try:
            async with timeout(self._connect_s):
                while there := await self._others.take(app.package, instead_of=silent):
                    answers = await self._answers(app, there.url) if there.connected else None
                    if answers:
                        return Running(there.url, there.api_key_hash, activated=False)
                    silent = there if answers is False else None
                    await asyncio.sleep(self._poll_s)
        except TimeoutError:
            raise self._too_late(app) from None
        except StoreError as e:
            log.warning("the worker of %s cannot be read, so it starts here: %s", app.package, e)
        return None

    async def _share(self, package: str, process: _AppProcess) -> None:
        """Publish the address to the other workers; one that misses it starts its own process."""
        if self._others is None:
            return
        url, key = process.url, process.api_key_hash
        try:
            if process.child is None or not process.child.running:
                await self._others.leave(package)
            else:
                await self._others.say(
                    package, url=url, api_key_hash=key, connected=process.connected
                )
        except StoreError as e:
            log.warning("where %s runs cannot be stored: %s", package, e)

    def _too_late(self, app: InstalledApp) -> ActivationTimeout:
        limit_ms = round(self._connect_s * 1000)
        return ActivationTimeout(f"App {app.package} did not connect within {limit_ms}ms")

    def status(self) -> dict[str, dict[str, object]]:
        """Return state, address, pid and number of starts of every app requested so far."""
        return {package: _line(process) for package, process in sorted(self._processes.items())}

    async def stop(self, package: str) -> bool:
        """End one app, as if it had crashed or been updated; False if it is not running."""
        process = self._processes.get(package)
        if process is None or process.child is None or not process.child.running:
            return False
        await process.child.stop()
        await self._share(package, process)
        return True

    async def aclose(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for process in self._processes.values():
                if process.child is not None:
                    tasks.create_task(process.child.stop())

    async def _start(self, app: InstalledApp, process: _AppProcess) -> None:
        folder = self._state_dir / app.package
        process.connected = False
        process.url = f"http://{HOST}:{(port := free_port())}"
        process.api_key_hash = hashlib.sha256(secrets.token_bytes(32)).hexdigest()
        env = {"PORT": str(port), API_KEY_ENV: process.api_key_hash, STATE_ENV: str(folder)}
        env = os.environ | env
        try:
            process.child = await Child.start(
                app.command, name=app.package, log_file=folder / "app.log", env=env
            )
        except OSError as e:
            raise ActivationFailed(f"Failed to activate app: {e.strerror or e}") from None
        process.starts += 1
        await self._share(app.package, process)
        log.info("app %s started (pid %d)", app.package, process.child.pid)

    async def _connect(self, app: InstalledApp, process: _AppProcess) -> None:
        """Poll until it answers. After a timeout it keeps running: it may still come up."""
        assert process.child is not None
        try:
            async with timeout(self._connect_s):
                while process.child.running and not process.connected:
                    process.connected = await self._answers(app, process.url) is True
                    if not process.connected:
                        await asyncio.sleep(self._poll_s)
        except TimeoutError:
            raise self._too_late(app) from None
        await self._share(app.package, process)
        if process.connected:
            return
        problem = f"{app.package} ended at once: {process.child.last_words() or 'without output'}"
        raise ActivationFailed(f"Failed to activate app: {problem}")

    async def _answers(self, app: InstalledApp, url: str) -> bool | None:
        """Return whether the app answers; False if another or none does, None if it fails."""
        import httpx  # noqa: PLC0415 - already loaded by the code that made the client

        try:
            response = await self._http.get(f"{url}/health", timeout=_HEALTH_S)
            if response.status_code != 200:
                return None
            return bool(response.json().get("packageName", app.package) == app.package)
        except httpx.ConnectError:
            return False
        except (httpx.HTTPError, ValueError, AttributeError):
            return None


def _line(process: _AppProcess) -> dict[str, object]:
    alive = process.child is not None and process.child.running
    state = "RUNNING" if alive and process.connected else "STARTING" if alive else "STOPPED"
    pid = process.child.pid if process.child is not None and alive else None
    return {"state": state, "url": process.url, "pid": pid, "starts": process.starts}
