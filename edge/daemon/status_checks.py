"""Checks of this machine for the status: the radio while no link shows that it works, the
configured folders, and what can speak.

Run when the status is requested, with the doctor's own checks.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from edge.config import folders
from edge.config.model import Settings
from edge.core.recovery import ADAPTER_ISSUES
from edge.daemon.status import MachineLook, StatusFault
from edge.ports import GlassesStatus
from edge.runtime.clock import Clock
from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import RadioReason

if TYPE_CHECKING:
    from edge.doctor.machine import Machine

LOOK_S: Final = 3.0
"""A check that takes longer is given up; the earlier result stays."""
AGAIN_S: Final = 2.0
"""A status requested again within this time gets the earlier result."""

ENGINES_AGAIN_S: Final = 30.0
"""Seconds for which the engines of the voice are not looked at again: one is a program that is
started, one may be a server.
"""
ENGINE_S: Final = 1.0

_log: Final = logging.getLogger(__name__)


def _this_machine(env: Mapping[str, str]) -> "Machine":
    from edge.doctor.this_machine import this_machine  # noqa: PLC0415 - see `look`

    return this_machine(env)


@dataclass(eq=False, repr=False)
class StatusLook:
    """One per daemon; `seen` is what the last check found."""

    settings: Callable[[], Settings]
    env: Mapping[str, str]
    _: KW_ONLY
    glasses: Callable[[], GlassesStatus]
    radio_open: Callable[[], bool]
    clock: Clock
    machine: "Callable[[Mapping[str, str]], Machine]" = _this_machine
    _listened: float = field(default_factory=lambda: float("-inf"), init=False)
    _server: str = field(default="", init=False)
    _looked: float = field(default_factory=lambda: float("-inf"), init=False)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    seen: MachineLook = field(default_factory=MachineLook, init=False)

    async def look(self) -> None:
        """Check again unless that was done just now. Never raises for faults of the machine."""
        async with self._looking:
            if self.clock.boot() - self._looked < AGAIN_S:
                return
            for what, look in (
                ("radio", self._look_at_radio),
                ("folders", self._look_at_folders),
                ("voice", self._look_at_engines),
            ):
                try:
                    async with timeout(LOOK_S):
                        await look()
                except TimeoutError:
                    _log.debug("checking the %s took more than %g s", what, LOOK_S)
                except Exception:  # noqa: BLE001 - the status must be there above all when something is wrong
                    _log.exception("the %s could not be checked", what)
            self._looked = self.clock.boot()

    async def _look_at_radio(self) -> None:
        """A link that is up, or that failed for a reason of the glasses, shows that the radio
        works. A virtual radio has room for one client: while the link may be connecting to it, only
        the link can tell whether it is there.
        """
        glasses, moniker = self.glasses(), self.settings().glasses.radio
        shown = glasses.ready or (
            glasses.issue and glasses.issue not in {*ADAPTER_ISSUES, RadioReason.NOT_PAIRED}
        )
        if shown or moniker == "inproc" or self.radio_open():
            self.seen = replace(self.seen, radio=None, radio_works=True)
            return
        if moniker.startswith("tcp:") and glasses.issue != RadioReason.NOT_PAIRED:
            self.seen = replace(self.seen, radio=None, radio_works=None)
            return
        from edge.doctor.bluetooth import BluetoothChecks  # noqa: PLC0415 - only for who asks while no link is up
        from edge.doctor.machine import ExaminedMachine  # noqa: PLC0415

        patient = ExaminedMachine(self.machine(self.env), settings=self.settings(), env=self.env)
        found = await BluetoothChecks(patient).first_fault()
        fault = None
        if found is not None:
            kind, finding = found
            fault = StatusFault(kind.value, finding.said, finding.fix.text if finding.fix else "")
        self.seen = replace(self.seen, radio=fault, radio_works=fault is None)

    async def _look_at_folders(self) -> None:
        from edge.doctor.subprocesses import in_thread  # noqa: PLC0415 - a thread of its own: a mount that hangs must not hold the others

        settings = self.settings()
        found = await in_thread(lambda: folders.unreadable(settings))
        self.seen = replace(
            self.seen,
            folders=tuple(
                StatusFault(
                    "folder", f"{key} {folder}: {problem}", folders.fix(key, folder, settings)
                )
                for key, folder, problem in found
            ),
        )

    async def _look_at_engines(self) -> None:
        server, built_in = self.settings().audio.server, find_spec("py_nanotts") is not None
        if server == self._server and self.clock.boot() - self._listened < ENGINES_AGAIN_S:
            return
        from edge.display.voice.engines import survey  # noqa: PLC0415 - only for who asks for the status
        from edge.doctor.subprocesses import in_thread  # noqa: PLC0415

        found = await in_thread(lambda: survey(server, has_built_in=built_in, limit_s=ENGINE_S))
        self.seen = replace(self.seen, engines=tuple(asdict(engine) for engine in found))
        self._listened, self._server = self.clock.boot(), server
