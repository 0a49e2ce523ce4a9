"""Glasses as a person sees them, gathered from a scan: two sides of a pair are one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final

from edge.core.pairing_state import HeardGlasses
from firmware_bridge.catalog import Catalog
from firmware_bridge.errors import RadioError, RadioReason
from firmware_bridge.sides import Side
from firmware_bridge.transports import ble

MAX_HEARD: Final = 256
"""Glasses listed by one scan; a trade fair has fewer."""
LOUDER_DB: Final = 6
"""A change of signal worth reporting: twice the distance, or half of it."""


@dataclass(frozen=True, slots=True)
class ScannedGlasses:
    """One pair of glasses: its sightings by side ("" for glasses of one radio), the left first."""

    id: str
    sides: dict[str, ble.Sighting] = field(default_factory=dict)

    @property
    def missing(self) -> str:
        """The side of a pair that was not heard yet; empty when the glasses are whole."""
        return "" if "" in self.sides else next((s for s in Side if s not in self.sides), "")

    @property
    def rssi(self) -> int:
        """The stronger signal of both sides, in dBm."""
        return max(sighting.rssi for sighting in self.sides.values())

    def with_side(self, side: str, sighting: ble.Sighting) -> "ScannedGlasses":
        sides = {**self.sides, side: sighting}
        return replace(self, sides={name: sides[name] for name in ("", *Side) if name in sides})


def heard_of(glasses: ScannedGlasses, *, ours: bool) -> HeardGlasses:
    first = next(iter(glasses.sides.values()))
    return HeardGlasses(
        id=glasses.id,
        model=first.entry.key,
        title=first.entry.title,
        name=first.name,
        address=first.address,
        rssi=glasses.rssi,
        ours=ours,
        missing=glasses.missing,
    )


class ScanResults:
    """One scan. Used once."""

    def __init__(self, catalog: Catalog, *, settle_s: float | None = None) -> None:
        self._catalog = catalog
        self._settle_s = settle_s
        self._found: dict[str, ScannedGlasses] = {}
        self._reported: dict[str, int] = {}
        self._news: asyncio.Queue[ScannedGlasses] = asyncio.Queue(MAX_HEARD)

    async def listen(
        self, radio: ble.Radio, seconds: float
    ) -> AsyncGenerator[ScannedGlasses, None]:
        """Yield glasses as they are heard, and again for a new side or a clearly different signal,
        until time is over (or nothing new came for `settle_s` after whole glasses). Raises
        `RadioError`.
        """
        scanning = asyncio.ensure_future(
            ble.scan_all(radio, self._catalog, timeout_s=seconds, tell=self._hear)
        )
        try:
            while (glasses := await self._next(scanning)) is not None:
                yield glasses
            if scanning.done():
                scanning.result()
        finally:
            scanning.cancel()
            await asyncio.wait([scanning])

    async def one(self, radio: ble.Radio, wanted: str, seconds: float) -> ScannedGlasses:
        """Wait for the glasses of this id or address, whole. Raises `RadioError`."""
        last: ScannedGlasses | None = None
        async with aclosing(self.listen(radio, seconds)) as heard:
            async for glasses in heard:
                if _named(glasses, wanted):
                    last = glasses
                    if not glasses.missing:
                        return glasses
        if last is not None:
            raise RadioError(
                RadioReason.NOT_FOUND,
                f"of {last.id} the {last.missing} side was not heard",
                "take both sides out of the case",
            )
        raise RadioError(
            RadioReason.NOT_FOUND,
            f"{wanted} was not heard in {seconds:g} s",
            "switch the glasses on and bring them near; which are heard: glassd scan",
        )

    async def all(self, radio: ble.Radio, seconds: float) -> list[ScannedGlasses]:
        """Return all that were heard, strongest first. Raises `RadioError`, NOT_FOUND for none."""
        async for _ in self.listen(radio, seconds):
            pass
        found = [g for g in self._found.values() if not g.missing]
        if not found:
            raise RadioError(
                RadioReason.NOT_FOUND,
                f"no glasses heard in {seconds:g} s",
                "switch the glasses on and bring them near",
            )
        return sorted(found, key=lambda glasses: -glasses.rssi)

    def _hear(self, sighting: ble.Sighting) -> None:
        pair = sighting.entry.side_of(sighting.name)
        name, side = (pair[0], str(pair[1])) if pair else (sighting.address, "")
        known = self._found.get(name)
        if known is None and len(self._found) >= MAX_HEARD:
            return
        glasses = (known or ScannedGlasses(name)).with_side(side, sighting)
        self._found[name] = glasses
        fresh = (
            known is None
            or side not in known.sides
            or abs(sighting.rssi - self._reported.get(sighting.address, 0)) >= LOUDER_DB
        )
        if fresh and not self._news.full():
            self._reported[sighting.address] = sighting.rssi
            self._news.put_nowait(glasses)

    async def _next(self, scanning: "asyncio.Future[list[ble.Sighting]]") -> ScannedGlasses | None:
        settled = self._settle_s if any(not g.missing for g in self._found.values()) else None
        fresh = asyncio.ensure_future(self._news.get())
        waits: list[asyncio.Future[Any]] = [fresh, scanning]
        try:
            await asyncio.wait(waits, timeout=settled, return_when=asyncio.FIRST_COMPLETED)
            return fresh.result() if fresh.done() else None
        finally:
            fresh.cancel()


def _named(glasses: ScannedGlasses, wanted: str) -> bool:
    names = (glasses.id, *(sighting.address for sighting in glasses.sides.values()))
    return wanted.upper() in {name.upper() for name in names}
