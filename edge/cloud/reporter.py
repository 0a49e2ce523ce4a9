"""Report what the glasses are and do to the registry and to the cloud."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from edge.core.tools.snapshot import Entry, Snapshot
from edge.ports import GlassesPort, UplinkPort
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import (
    CapabilitiesLearned,
    ConfigurationReloaded,
    DaemonEvent,
    GlassesLost,
    GlassesReady,
    GlassesSaid,
    PrivateWords,
    RegistrySynced,
    ToolSwitched,
)
from firmware_bridge.capabilities import Capabilities
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import (
    BatteryChanged,
    Event,
    Gesture,
    Gestured,
    Transcript,
    WornChanged,
)
from tools_cache.api.tool import Json, Source

QUIET_S: Final = 5.0
"""Glasses that are back within this time were never away: nothing is reported."""
ELSEWHERE: Final = frozenset({Source.CLOUD, Source.UPSTREAM})
"""Not reported to the cloud: its own tools, and which other servers a person uses."""
SETTLE_S: Final = 0.05
"""Connecting changes much within milliseconds: one report covers it all."""


_KIND_OF: Final[Mapping[Gesture, str]] = {
    Gesture.TAP: "tap",
    Gesture.DOUBLE_TAP: "tap",
    Gesture.BUTTON: "button",
    Gesture.BUTTON_LONG: "button",
    Gesture.HEAD_UP: "head",
    Gesture.HEAD_DOWN: "head",
    Gesture.NOD: "head",
    Gesture.SHAKE: "head",
}
"""The last level of the topic `event/{kind}` for each gesture."""


class ToolRegistry(Protocol):
    """What the reporter needs of the registry."""

    def snapshot(self) -> Snapshot: ...
    def set_capabilities(self, record: Capabilities | None, *, stale: bool) -> None: ...


class CapabilityReporter:
    """`run()` is the service; what happened before is read from the glasses' status.

    `shown` decides which tools the cloud sees; `noted` gets every event of the glasses.
    """

    def __init__(
        self,
        *,
        bus: Bus,
        glasses: GlassesPort,
        uplink: UplinkPort,
        registry: ToolRegistry,
        clock: Clock,
        host: Mapping[str, Json],
        shown: Callable[[Entry], bool] = lambda entry: not entry.hidden,
        noted: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        self._bus = bus
        self._glasses = glasses
        self._uplink = uplink
        self._registry = registry
        self._clock = clock
        self._host = dict(host)
        self._shown = shown
        self._noted = noted
        self._stale_report = asyncio.Event()
        self._ready = asyncio.Event()

    async def run(self) -> None:
        """Pass events on until cancelled."""
        with self._bus.listen(calls=False) as events:
            self._update_registry()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._report(), name="report")
                async for event in events:
                    await self._pass_on(event)

    async def _pass_on(self, event: DaemonEvent) -> None:
        match event:
            case CapabilitiesLearned():
                self._update_registry()
            case GlassesReady():
                self._ready.set()
                self._stale_report.set()
            case GlassesLost() | RegistrySynced() | ToolSwitched() | ConfigurationReloaded():
                self._stale_report.set()
            case GlassesSaid(event=said) if not isinstance(event, PrivateWords):
                self._noted(said)  # before the cloud, which may keep us waiting
                if (report := as_event(said)) is not None:
                    await self._uplink.tell_event(*report)
                if isinstance(said, BatteryChanged | WornChanged):
                    self._stale_report.set()
            case _:
                pass

    def _update_registry(self) -> None:
        """Update the registry from the glasses as they are, and report."""
        status = self._glasses.status()
        self._registry.set_capabilities(status.capabilities, stale=status.stale)
        self._stale_report.set()

    # -------------------------------------------------------------- the report

    async def _report(self) -> None:
        while True:
            await self._stale_report.wait()
            await asyncio.sleep(SETTLE_S)
            await self._wait_for_return()
            self._stale_report.clear()
            await self._uplink.announce(capabilities=self.report(), glasses=self._presence())

    async def _wait_for_return(self) -> None:
        """After a link was lost, wait until it is back, or away for long enough to report it."""
        gone_at = self._glasses.status().gone_at
        if gone_at is None:
            return
        self._ready.clear()
        with suppress(TimeoutError):
            async with timeout(gone_at + QUIET_S - self._clock.boot()):
                await self._ready.wait()

    def _presence(self) -> str:
        status = self._glasses.status()
        if status.ready:
            return "asleep" if status.worn is False else "connected"
        return "none" if status.capabilities is None else "away"

    def report(self) -> dict[str, Any] | None:
        """Compose the capability report; None while no glasses were ever known."""
        status = self._glasses.status()
        if status.capabilities is None:
            return None
        snapshot = self._registry.snapshot()
        ours = [
            e.definition
            for e in snapshot.particular()
            if e.definition.source not in ELSEWHERE and self._shown(e)
        ]
        return {
            "model": status.model,
            "firmware": status.firmware,
            "battery": status.battery,
            "worn": status.worn,
            "connected": status.ready,
            "stale": status.stale,
            "capabilities": status.capabilities.report(self._clock.boot()),
            "host": self._host,
            "registry": {"version": snapshot.version},
            "tools": [
                {"name": d.name, "description": d.description, "inputSchema": dict(d.input_schema)}
                for d in ours
            ],
        }


def as_event(event: Event) -> tuple[str, dict[str, Json]] | None:
    """Return topic kind and body of an event; None if it is not reported (audio, prompts)."""
    match event:
        case Gestured(gesture=gesture):
            return _KIND_OF[gesture], {"gesture": gesture.value}
        case BatteryChanged(level=level, charging=charging):
            return "battery", {"level": level, "charging": charging}
        case WornChanged(worn=worn):
            return "worn", {"worn": worn}
        case Transcript():
            return "transcript", _transcript(event)
        case _:
            return None


def _transcript(said: Transcript) -> dict[str, Json]:
    """Return the words, and of recognised ones how sure they are and how long they took."""
    data: dict[str, Json] = {"text": said.text, "final": said.final}
    if said.confidence is not None:
        data["confidence"] = round(said.confidence, 2)
    if said.began_at is not None and said.ended_at is not None:
        data["duration_s"] = round(max(0.0, said.ended_at - said.began_at), 2)
    if said.began_at is not None:
        data["addressed"] = said.addressed
    return data
