"""Applies faults to simulated glasses below their own logic: at the radio or its link."""

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from firmware_bridge.deadlines import timeout
from firmware_bridge.sides import Side
from firmware_bridge.sim.faults import FaultError, SimFault, SoundFaults
from firmware_bridge.sim.glasses import MockGlasses

log = logging.getLogger(__name__)

MAX_WAITING: Final = 32_768
"""Maximum number of pending faults: more than a whole script has, for two arms."""


class Station(Protocol):
    """The parts of one radio that faults use."""

    def drop(self) -> bool:
        """Drop the link. False if there was none."""

    def leave(self) -> bool:
        """Drop the link and stop advertising."""

    def come_back(self) -> None:
        """Advertise again."""

    def offer_mtu(self, mtu: int) -> None:
        """Offer this ATT MTU from the next connection on."""


class FaultGuard(Protocol):
    """The parts of one radio's security manager that faults use."""

    def refuse(self) -> None:
        """Refuse to pair from now on."""

    async def forget(self) -> None:
        """Forget every bond."""


class FaultInjector:
    """Applies faults to one pair of simulated glasses, at once or at their time."""

    def __init__(
        self,
        glasses: MockGlasses,
        stations: Mapping[Side | None, Station],
        guards: Mapping[Side | None, FaultGuard],
    ) -> None:
        self._glasses = glasses
        self._stations = stations
        self._guards = guards
        self._later: list[tuple[float, int, Callable[[], Awaitable[object]]]] = []
        self._count = 0
        self._news = asyncio.Event()

    def check(self, fault: SimFault) -> None:
        """Raise `FaultError` for a fault these glasses cannot have."""
        if fault.side is not None and fault.side not in self._stations:
            raise FaultError(f"{fault}: {self._glasses.model.key} is one radio; leave the side out")

    async def inject(self, fault: SimFault) -> bool:
        """Apply or schedule a fault; False if there was no link to drop. Raises `FaultError`."""
        self.check(fault)
        if fault.at_s is None:
            return await self._do(fault)
        self._at(fault.at_s, lambda: self._do(fault))
        return True

    async def run(self) -> None:
        """Apply scheduled faults, until cancelled."""
        while True:
            self._news.clear()
            with suppress(TimeoutError):
                async with timeout(self._patience()):
                    await self._news.wait()
            while self._later and self._later[0][0] <= self._glasses.time.now():
                try:
                    await heapq.heappop(self._later)[2]()
                except FaultError as full:
                    log.warning("fault skipped: %s", full)

    def _patience(self) -> float | None:
        if not self._later:
            return None
        return max(0.0, self._glasses.time.real(self._later[0][0] - self._glasses.time.now()))

    def _at(self, seconds: float, action: Callable[[], Awaitable[object]]) -> None:
        if len(self._later) >= MAX_WAITING:
            raise FaultError(f"{MAX_WAITING} faults wait for their moment already")
        self._count += 1
        heapq.heappush(self._later, (self._glasses.time.now() + seconds, self._count, action))
        self._news.set()

    # -------------------------------------------------------------- the faults

    async def _do(self, fault: SimFault) -> bool:
        log.info("fault: %s", fault)
        self._glasses.tell({"event": "fault", "fault": str(fault)})
        match fault.kind:
            case "battery":
                return self._glasses.set_battery(int(fault.value), side=fault.side)
            case "refuse-pairing":
                for guard in self._guards.values():
                    guard.refuse()
                return True
            case "forget-bond":
                for guard in self._guards.values():
                    await guard.forget()
                return True
        sides = list(self._stations) if fault.side is None else [fault.side]
        return sum(self._apply(fault.kind, side, fault.value) for side in sides) == len(sides)

    def _apply(self, kind: str, side: Side | None, value: float) -> bool:
        station, faults = self._stations[side], self._glasses.faults[side]
        match kind:
            case "drop":
                return station.drop()
            case "away":

                async def come_back() -> None:
                    station.come_back()

                self._at(value, come_back)
                return station.leave()
            case "mtu":
                station.offer_mtu(int(value))
                station.drop()
            case "cut":
                faults.cutting = True
            case "delay":
                faults.delay_s = value / 1000
            case "lose-acks":
                faults.lose_every = int(value)
            case "refuse":
                faults.refuse_every = int(value)
            case _:
                self._apply_to_sound(kind, faults.sound, value)
        return True

    def _apply_to_sound(self, kind: str, faults: SoundFaults, value: float) -> None:
        match kind:
            case "lose-sound":
                faults.lose_percent = value
            case "sound-gap":
                faults.gap_until = self._glasses.time.now() + value
            case "swap-sound":
                faults.swap_every = int(value)
            case "double-sound":
                faults.double_every = int(value)
            case "cut-speech":
                faults.cutting = True
