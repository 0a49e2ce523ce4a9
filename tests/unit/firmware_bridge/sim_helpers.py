"""What tests of the mock share: an ear for its events, a central made of real parts, a link in
memory.
"""

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from firmware_bridge.catalog import find
from firmware_bridge.driver import Driver
from firmware_bridge.errors import LinkLost, LostReason
from firmware_bridge.messages import Hello
from firmware_bridge.sim.faults import SimFault
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.inproc import Mock, start_mock
from firmware_bridge.sim.peripheral import serve
from firmware_bridge.sim.time import SimTime
from firmware_bridge.transport import Transport
from firmware_bridge.transports.ble import Radio, Sighting, open_radio, scan
from firmware_bridge.transports.ble_connection import connect
from firmware_bridge.transports.side_radio import connect_any

DEADLINE_S = 40.0


def loudness(pcm: bytes) -> float:
    """The mean of the samples' amounts, of 32768."""
    samples = struct.unpack(f"<{len(pcm) // 2}h", pcm)
    return sum(map(abs, samples)) / max(1, len(samples))


class Ear:
    """Hears events and lets a test wait for one."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._news = asyncio.Event()

    def __call__(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        self._news.set()

    async def wait(
        self, name: str, *, count: int = 1, where: Callable[[dict[str, Any]], bool] = bool
    ) -> dict[str, Any]:
        """Give the `count`-th event of this name that fits."""
        async with asyncio.timeout(DEADLINE_S):
            while len(found := [e for e in self.events if e["event"] == name and where(e)]) < count:
                self._news.clear()
                await self._news.wait()
        return found[count - 1]

    def count(self, name: str) -> int:
        return sum(e["event"] == name for e in self.events)


@asynccontextmanager
async def driving(transport: Transport, sighting: Sighting | None = None) -> AsyncIterator[Driver]:
    """A driver that runs; losing the link ends it quietly."""
    entry = sighting.entry if sighting else find("mock:full")
    driver = Driver(transport, entry.codec(transport.max_packet), clock=time.monotonic)
    running = asyncio.ensure_future(driver.run())
    try:
        yield driver
    finally:
        running.cancel()
        await asyncio.wait([running])
        if not running.cancelled():
            assert isinstance(running.exception(), LinkLost)


@asynccontextmanager
async def meet(radio: Radio, **wanted: Any) -> AsyncIterator[tuple[Driver, Transport]]:
    """Scan, connect, drive."""
    sighting = await scan(radio, timeout_s=DEADLINE_S, **wanted)
    transport = await connect(radio, sighting, timeout_s=DEADLINE_S)
    async with driving(transport, sighting) as driver:
        yield driver, transport


class Listener(Protocol):
    """What a test knows of glasses that are worn."""

    async def listen(self) -> None:
        """Take the driver's events until the link is lost."""


Worn = TypeVar("Worn", bound=Listener)


@asynccontextmanager
async def worn(
    model: str, out: Path, make: Callable[[Mock, Driver[Any], Ear], Worn], **options: Any
) -> AsyncIterator[Worn]:
    """Simulated glasses, connected and driven, and `make` of them. `options`: of `start_mock`."""
    radio, ear = await open_radio("inproc"), Ear()
    mock = await start_mock(model, radio.air, out_dir=out, tell=ear, **options)
    try:
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        transport: Any = await connect_any(radio, sighting, timeout_s=DEADLINE_S)
        codec = sighting.entry.codec(transport.max_packet)
        driver: Driver[Any] = Driver(transport, codec, clock=time.monotonic)
        made = make(mock, driver, ear)
        running = [asyncio.ensure_future(driver.run()), asyncio.ensure_future(made.listen())]
        try:
            await driver.request(Hello("glassd", "test"), timeout_s=DEADLINE_S)
            yield made
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)
            await transport.close()
    finally:
        await radio.close()
        await mock.close()


def noting(did: list[str]) -> Callable[[SimFault], Awaitable[bool]]:
    """Faults that only leave a note; as where there is no link to lose."""

    async def inject(fault: SimFault) -> bool:
        did.append(str(fault))
        return False

    return inject


class _End:
    """One end of a link in memory; to the driver a `Transport`, to the mock a `Link`."""

    name = "memory"
    address = peer = "00:00:00:00:00:01"

    def __init__(self, max_packet: int) -> None:
        self.max_packet = max_packet
        self.inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.other: _End = self

    async def write(self, packet: bytes) -> None:
        assert len(packet) <= self.max_packet
        if self.other is self:
            raise LinkLost(LostReason.DISCONNECTED)
        self.other.inbox.put_nowait(packet)

    notify = write

    async def packets(self) -> AsyncIterator[bytes]:
        while (packet := await self.inbox.get()) is not None:
            yield packet

    def cut(self) -> None:
        other = self.other
        for end in (self, other):
            end.other = end
            end.inbox.put_nowait(None)

    async def close(self) -> None:
        self.cut()


@asynccontextmanager
async def visit(
    model: str, out_dir: Path, *, speed: float = 50.0, max_packet: int = 244
) -> AsyncIterator[tuple[MockGlasses, Driver, Ear]]:
    """Glasses and a driver, joined in memory."""
    ear = Ear()
    glasses = MockGlasses(find(model), out_dir=out_dir, time=SimTime(speed), tell=ear)
    ours, theirs = _End(max_packet), _End(max_packet)
    ours.other, theirs.other = theirs, ours
    serving = asyncio.ensure_future(serve(glasses, theirs))
    try:
        async with driving(ours) as driver:
            yield glasses, driver, ear
    finally:
        ours.cut()
        async with asyncio.timeout(DEADLINE_S):
            await serving
