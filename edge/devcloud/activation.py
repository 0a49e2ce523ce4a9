"""Starting mini-apps when a tool of theirs is called, and knowing which run.

Refuses to know tools and calls. Apps it started stay running until the cloud ends, whatever their
calls came to.
"""

import asyncio
import hashlib
import logging
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from edge.devcloud.appserver import API_KEY_ENV
from edge.devcloud.broker import HOST, free_port
from edge.devcloud.registry import App
from edge.devcloud.seats import Elsewhere, Seats
from edge.runtime.subprocesses import Child
from edge.store.db import StoreError
from firmware_bridge.deadlines import timeout

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

STATE_ENV: Final = "GLASSD_APP_STATE_DIR"
CONNECT_S: Final = 10.0
POLL_S: Final = 0.2
_HEALTH_S: Final = 1.0


class ActivationFailed(Exception):
    """The app could not be started; asking again would not help."""


class ActivationTimeout(Exception):
    """The app was started and did not connect in time; nothing was delivered to it."""


@dataclass(frozen=True, slots=True)
class Running:
    """Where an app answers now. `activated` when this very request started it."""

    url: str
    api_key_hash: str
    activated: bool


@dataclass(slots=True)
class _Seat:
    """What is known of one app's process."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    child: Child | None = None
    url: str = ""
    api_key_hash: str = ""
    connected: bool = False
    starts: int = 0


class Launcher:
    """`ensure(app)` gives a running app; `aclose()` ends every process it started, by pid."""

    def __init__(
        self,
        http: "httpx.AsyncClient",
        *,
        state_dir: Path,
        connect_s: float = CONNECT_S,
        poll_s: float = POLL_S,
        seats: Seats | None = None,
    ) -> None:
        self._http = http
        self._state_dir = state_dir
        self._connect_s = connect_s
        self._poll_s = poll_s
        self._seats: dict[str, _Seat] = {}
        self._others = seats

    async def ensure(self, app: App) -> Running:
        """Give the app, started if it must be; one process for all workers. Raises
        ActivationFailed, ActivationTimeout.
        """
        if not app.command:
            return Running(app.public_url, app.api_key_hash, activated=False)
        seat = self._seats.setdefault(app.package, _Seat())
        async with seat.lock:
            alive = seat.child is not None and seat.child.running
            if alive and seat.connected:
                return Running(seat.url, seat.api_key_hash, activated=False)
            if not alive and (running := await self._here_or_elsewhere(app, seat)) is not None:
                return running
            await self._connect(app, seat)
            return Running(seat.url, seat.api_key_hash, activated=not alive)

    async def _here_or_elsewhere(self, app: App, seat: _Seat) -> Running | None:
        """Start the app, unless another worker runs it. Whoever fails, or is called off, gives
        its seat up: others wait for it.
        """
        try:
            if (running := await self._elsewhere(app)) is None:
                await self._start(app, seat)
        except BaseException:
            await asyncio.shield(self._tell(app.package, seat))
            raise
        return running

    async def _elsewhere(self, app: App) -> Running | None:
        """The app where another worker runs it; None when it is ours to start. Raises
        ActivationTimeout.
        """
        if self._others is None:
            return None
        silent: Elsewhere | None = None
        try:
            async with timeout(self._connect_s):
                while (
                    there := await self._others.take(app.package, instead_of=silent)
                ) is not None:
                    answers = await self._answers(app, there.url) if there.connected else None
                    if answers:
                        return Running(there.url, there.api_key_hash, activated=False)
                    silent = there if answers is False else None
                    await asyncio.sleep(self._poll_s)
        except TimeoutError:
            raise self._too_late(app) from None
        except StoreError as e:
            log.warning(
                "which worker runs %s cannot be read, so it is started here: %s", app.package, e
            )
        return None

    async def _tell(self, package: str, seat: _Seat) -> None:
        """Let the other workers know; one that cannot be told starts a process of its own,
        which costs memory only.
        """
        if self._others is None:
            return
        try:
            if seat.child is None or not seat.child.running:
                await self._others.leave(package)
            else:
                await self._others.say(
                    package, url=seat.url, api_key_hash=seat.api_key_hash, connected=seat.connected
                )
        except StoreError as e:
            log.warning("where %s runs cannot be stored: %s", package, e)

    def _too_late(self, app: App) -> ActivationTimeout:
        return ActivationTimeout(
            f"App {app.package} did not connect within {round(self._connect_s * 1000)}ms"
        )

    def status(self) -> dict[str, dict[str, object]]:
        """State, address, pid and number of starts of every app that was ever asked for."""
        return {package: _line(seat) for package, seat in sorted(self._seats.items())}

    async def stop(self, package: str) -> bool:
        """End one app, as if it had crashed or been updated; False when it does not run."""
        seat = self._seats.get(package)
        if seat is None or seat.child is None or not seat.child.running:
            return False
        await seat.child.stop()
        await self._tell(package, seat)
        return True

    async def aclose(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for seat in self._seats.values():
                if seat.child is not None:
                    tasks.create_task(seat.child.stop())

    async def _start(self, app: App, seat: _Seat) -> None:
        folder = self._state_dir / app.package
        seat.connected = False
        seat.url = f"http://{HOST}:{(port := free_port())}"
        seat.api_key_hash = hashlib.sha256(secrets.token_bytes(32)).hexdigest()
        env = os.environ | {
            "PORT": str(port),
            API_KEY_ENV: seat.api_key_hash,
            STATE_ENV: str(folder),
        }
        try:
            seat.child = await Child.start(
                app.command, name=app.package, log_file=folder / "app.log", env=env
            )
        except OSError as e:
            raise ActivationFailed(f"Failed to activate app: {e.strerror or e}") from None
        seat.starts += 1
        await self._tell(app.package, seat)
        log.info("app %s started (pid %d)", app.package, seat.child.pid)

    async def _connect(self, app: App, seat: _Seat) -> None:
        """Ask every `poll_s` until it answers. Nothing is cleaned up when it does not: it may
        yet come.
        """
        assert seat.child is not None
        try:
            async with timeout(self._connect_s):
                while seat.child.running and not seat.connected:
                    seat.connected = await self._answers(app, seat.url) is True
                    if not seat.connected:
                        await asyncio.sleep(self._poll_s)
        except TimeoutError:
            raise self._too_late(app) from None
        await self._tell(app.package, seat)
        if seat.connected:
            return
        words = seat.child.last_words()
        raise ActivationFailed(
            f"Failed to activate app: {app.package} ended at once: {words or 'without a word'}"
        )

    async def _answers(self, app: App, url: str) -> bool | None:
        """Tell whether the app is there: False when nobody is, or another app; None when
        whoever is there is slow or unwell.
        """
        import httpx  # noqa: PLC0415 - loaded long before, by whoever made the client

        try:
            response = await self._http.get(f"{url}/health", timeout=_HEALTH_S)
            if response.status_code != 200:
                return None
            return bool(response.json().get("packageName", app.package) == app.package)
        except httpx.ConnectError:
            return False
        except (httpx.HTTPError, ValueError, AttributeError):
            return None


def _line(seat: _Seat) -> dict[str, object]:
    alive = seat.child is not None and seat.child.running
    state = "RUNNING" if alive and seat.connected else "STARTING" if alive else "STOPPED"
    pid = seat.child.pid if seat.child is not None and alive else None
    return {"state": state, "url": seat.url, "pid": pid, "starts": seat.starts}
