"""Reads the configuration again on SIGHUP (`systemctl reload glassd`), and applies it.

A configuration that cannot be read, or whose secrets cannot, changes nothing.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from edge.calls.turns import OpenTurns
from edge.config.model import Settings
from edge.config.validators import BadSettings
from edge.daemon.apply_settings import SettingsApplier
from edge.runtime.bus import Bus
from edge.runtime.deadlines import Within, unwatched
from edge.runtime.events import Alarmed, ConfigurationReloaded
from edge.runtime.sd_notify import Notifier

if TYPE_CHECKING:
    from edge.core.config_changes import ReloadPlan

ALARM: Final = "configuration"
LONGEST_S: Final = 200.0
"""One reload: a child for the settings, one for the owner's tools, and one for this installation's
if they are not locked, each with its own deadline. With less time the watchdog would end a daemon
that is only slow.
"""

log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class Reload:
    """`ask()` from anywhere in the loop; `run()` is the service. `settings` are the active ones."""

    settings: Settings
    _: KW_ONLY
    read: Callable[[], Awaitable[Settings]]
    applier: SettingsApplier
    bus: Bus
    notifier: Notifier
    turns: OpenTurns
    within: Within = unwatched
    _asked: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _restart: tuple[str, ...] = field(default=(), init=False)
    _error: str = field(default="", init=False)
    _count: int = field(default=0, init=False)

    def ask(self) -> None:
        self._asked.set()

    async def run(self) -> None:
        """Reload whenever it was requested."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            self.notifier.reloading("reading the configuration again")
            try:
                with self.within(LONGEST_S, "configuration: reloading"):
                    await self.once()
            finally:
                self.notifier.ready(self._error or "the configuration was read again")

    async def once(self) -> None:
        """Read, and apply what can be applied; a fault is reported and changes nothing."""
        whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.turns.begin(whole)  # all changes are one change for clients that list tools
        try:
            await self._once()
        finally:
            whole.cancel()

    async def _once(self) -> None:
        from edge.core.config_changes import plan  # noqa: PLC0415 - most daemons are never reloaded

        try:
            found = plan(self.settings, await self.read())
            take = self.applier.prepared(found.effective)
            held = await self.applier.read_tools(found.effective)
        except BadSettings as e:
            self._refuse(str(e))
            return
        self.settings = found.effective
        take()
        self._tell(found, held)

    def describe(self) -> Mapping[str, Any]:
        """Return its part of the status."""
        source = str(self.settings.source or "")
        return {
            "file": source,
            "reloads": self._count,
            "needs_restart": list(self._restart),
            "error": self._error,
        }

    def _refuse(self, why: str) -> None:
        self._error = f"the new configuration is refused; the previous one stays active: {why}"
        log.error("%s", self._error)
        self.bus.publish(Alarmed(ALARM, self._error))

    def _tell(self, found: "ReloadPlan", held: str) -> None:
        self._count += 1
        self._restart = (*found.restart, *((held,) if held else ()))
        log.info(
            "the configuration and your own tools were read again; settings that changed now: %s",
            ", ".join(found.live) or "nothing",
        )
        if self._restart:
            log.warning("takes effect only after a restart: %s", ", ".join(self._restart))
        if self._error:
            self._error = ""
            self.bus.publish(Alarmed(ALARM, "the configuration is good again", over=True))
        self.bus.publish(ConfigurationReloaded(found.live, self._restart))


# ------------------------------------------------------------------ the signal


@contextmanager
def on_hangup(ask: Callable[[], None]) -> Iterator[None]:
    """Reload on SIGHUP; but if our terminal was closed, stop as on SIGTERM.

    Ignored SIGHUP (nohup) stays ignored. An earlier handler is not restored: this is for the whole
    life of a daemon.
    """
    loop, at_start = asyncio.get_running_loop(), has_terminal()

    def on_signal() -> None:
        if at_start and not has_terminal():
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            ask()

    ours = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    with suppress(ValueError, RuntimeError):  # not the main thread: nobody can signal us alone
        if ours:
            loop.add_signal_handler(signal.SIGHUP, on_signal)
    yield


def has_terminal() -> bool:
    """Return whether this process has a controlling terminal that is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
