"""A picture over the whole lens of each family: what its codec computes, what is sent, and how long
that takes by the family's own pace, over real Bluetooth stacks in this process.

The picture has as many shades as the lens, so nothing of it can be left out; then one corner of it
is another. Simulated glasses answer at once: real ones add a connection interval to each answer.
"""

import asyncio
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from benchmarks.table import Lines, Note, Row, bar
from firmware_bridge.catalog import supported
from firmware_bridge.driver import Driver
from firmware_bridge.messages import Hello, ShowPage, Tile
from firmware_bridge.models import Model
from firmware_bridge.sides import SidePacket
from firmware_bridge.sim.inproc import Mock, start_mock
from firmware_bridge.sim.options import SIMULATED
from firmware_bridge.transports.ble import Radio, open_radio, scan
from firmware_bridge.transports.side_radio import connect_any

WAIT_S: Final = 60.0
CPU_BAR_MS: Final = 10.0
SIDES_BAR_MS: Final = 60.0
TURNS: Final = 5
CLOCK_READINGS: Final = 1000
PICTURE: Final = "a picture"
CHANGED: Final = "the same, one corner changed"
CORNER: Final = 8
"""Bytes of the first rows that are changed."""
_MEASURED: Final = frozenset(
    {"receive_packet", "next_event", "send", "packets_to_send", "next_timer", "handle_timer"}
)


@dataclass
class Sent:
    """What a codec computed and sent since the last `clear`."""

    cpu_s: float = 0.0
    packets: int = 0
    bytes: int = 0
    began: float = 0.0
    last: dict[Any, float] = field(default_factory=dict)
    """When each side got its last packet."""
    counts: Counter[Any] = field(default_factory=Counter)

    def add(self, packets: list[Any]) -> None:
        now = time.monotonic()
        for packet in packets:
            side = packet.side if isinstance(packet, SidePacket) else None
            self.packets += 1
            self.bytes += len(packet)
            self.counts[side] += 1
            self.last[side] = now

    @property
    def air_s(self) -> float:
        """Seconds from the command to the last packet."""
        return max(self.last.values()) - self.began


class MeteredCodec:
    """A codec whose computing is measured."""

    def __init__(self, codec: Any) -> None:
        self._codec = codec
        pairs = [-time.thread_time() + time.thread_time() for _ in range(CLOCK_READINGS)]
        self._clock_s = statistics.median(pairs)
        """What of each measurement is the clock's own: up to 20 µs in a sandbox."""
        self.sent = Sent()

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._codec, name)
        if name not in _MEASURED:
            return inner

        def measured(*args: Any, **more: Any) -> Any:
            began = time.thread_time()
            try:
                result = inner(*args, **more)
            finally:
                self.sent.cpu_s += time.thread_time() - began - self._clock_s
            if name == "packets_to_send":
                self.sent.add(result)
            return result

        return measured


def measure() -> Lines:
    """Yield the rows of every model whose lens takes pictures; one of those that share a codec and
    a lens.
    """
    seen: set[tuple[object, ...]] = set()
    for model in supported():
        known = model.capabilities
        alike = (model.codec, *(known.get(f"display.{key}") for key in ("width", "height", "bpp")))
        if known.get("display.bitmap") and alike not in seen:
            seen.add(alike)
            yield from asyncio.run(_model(model))
    yield bar(CPU_BAR_MS, "ms", "what a codec computes for a picture")
    yield bar(SIDES_BAR_MS, "ms", "what both sides get their last packet apart")


async def _model(model: Model) -> list[Row | Note]:
    known = model.capabilities
    width, height, bpp = (int(known[f"display.{key}"]) for key in ("width", "height", "bpp"))
    stride = (width * bpp + 7) // 8
    seen: dict[str, list[Sent]] = {PICTURE: [], CHANGED: []}
    rows: list[Row | Note] = []
    async with _driven(model) as (driver, codec):
        await driver.request(Hello("glassd", "bench"), timeout_s=WAIT_S)
        for turn in range(TURNS + 1):  # the first one may find modules to load
            tile = Tile(0, 0, width, height, bpp, _shades(stride * height, turn))
            seen[PICTURE].append(await _show(driver, codec, tile))
            seen[CHANGED].append(await _show(driver, codec, _with_corner(tile, stride)))
    for name, sent in seen.items():
        best = min(sent[1:], key=lambda each: each.cpu_s)
        what = f"{name}, {model.title}, {width}×{height}, {bpp} bit"
        rows += [
            Row(f"{what}: CPU", best.cpu_s * 1e3, "ms"),
            Row("  packets", best.packets, ""),
            Row("  bytes", best.bytes, "B", "the pixels", stride * height),
            Row("  until its last packet", best.air_s * 1e3, "ms"),
        ]
        if model.arms and name == PICTURE:
            rows.append(_apart(best))
    return rows


def _apart(sent: Sent) -> Row | Note:
    """Return how far apart both sides got the last packet; a side with a few has heartbeats."""
    ends = [sent.last[side] for side, count in sent.counts.items() if count > sent.packets // 4]
    if len(ends) < 2:
        return Note("  one side gets it, and gives it to the other")
    return Row("  the sides' last packets, apart", (max(ends) - min(ends)) * 1e3, "ms")


async def _show(driver: Driver[Any], codec: MeteredCodec, tile: Tile) -> Sent:
    codec.sent = sent = Sent(began=time.monotonic())
    await driver.request(ShowPage(f"{tile.pixels[0]}", tiles=(tile,)), timeout_s=WAIT_S)
    return sent


@asynccontextmanager
async def _driven(model: Model) -> AsyncIterator[tuple[Driver[Any], MeteredCodec]]:
    """Simulated glasses of a model, connected."""
    word = f"{SIMULATED}{model.key}" if model.simulator else model.key
    radio: Radio = await open_radio("inproc")
    with tempfile.TemporaryDirectory() as folder:
        mock: Mock = await start_mock(word, radio.air, out_dir=Path(folder))
        sighting = await scan(radio, timeout_s=WAIT_S)
        transport: Any = await connect_any(radio, sighting, timeout_s=WAIT_S)
        codec = MeteredCodec(sighting.entry.codec(transport.max_packet))
        driver: Driver[Any] = Driver(transport, codec, clock=time.monotonic)
        running = asyncio.ensure_future(driver.run())
        try:
            yield driver, codec
        finally:
            running.cancel()
            await asyncio.wait([running])
            await transport.close()
            await mock.close()
            await radio.close()


def _shades(size: int, turn: int) -> bytes:
    """Return pixels without a pattern, others in each turn."""
    return random.Random(turn).randbytes(size)


def _with_corner(tile: Tile, stride: int) -> Tile:
    changed = bytearray(tile.pixels)
    for row in range(CORNER):
        at = row * stride
        changed[at : at + CORNER] = bytes(byte ^ 0xFF for byte in changed[at : at + CORNER])
    return replace(tile, pixels=bytes(changed))
