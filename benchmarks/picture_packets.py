"""A picture over the whole lens of each family: what its codec computes, what is sent, and how long
that takes by the family's own pace, over real Bluetooth stacks in this process.

The picture has as many shades as the lens, so nothing of it can be left out; then one corner of it
is another. Simulated glasses answer at once: real ones add a connection interval to each answer.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from benchmarks.table import Lines, Note, Row, bar
from firmware_bridge.catalog import MODELS
from firmware_bridge.driver import Driver
from firmware_bridge.errors import BridgeError
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
    """When each side got its last packet of the picture."""

    def add(self, packets: list[Any]) -> None:
        now = time.monotonic()
        for packet in packets:
            side = packet.side if isinstance(packet, SidePacket) else None
            self.packets += 1
            self.bytes += len(packet)
            self.last[side] = now

    @property
    def air_s(self) -> float:
        return max(self.last.values()) - self.began

    @property
    def apart_s(self) -> float:
        return max(self.last.values()) - min(self.last.values())


class MeteredCodec:
    """A codec whose computing is measured."""

    def __init__(self, codec: Any) -> None:
        self._codec = codec
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
                self.sent.cpu_s += time.thread_time() - began
            if name == "packets_to_send":
                self.sent.add(result)
            return result

        return measured


def measure() -> Lines:
    """Yield the rows of every model whose lens takes pictures; one of those that share a codec and
    a lens.
    """
    seen: set[tuple[object, ...]] = set()
    for model in MODELS:
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
    what = f"{model.title}, {width}×{height}, {bpp} bit"
    stride = (width * bpp + 7) // 8
    first = ShowPage("one", tiles=(Tile(0, 0, width, height, bpp, _shades(stride * height)),))
    other = replace(first, tiles=(_with_corner(first.tiles[0], stride),))
    async with _driven(model) as (driver, codec):
        await driver.request(Hello("glassd", "bench"), timeout_s=WAIT_S)
        # the first one may find modules to load; a family that keeps what was shown gets others
        inverse = bytes(255 - value for value in range(256))
        warm = replace(first.tiles[0], pixels=first.tiles[0].pixels.translate(inverse))
        shown = [await _show(driver, codec, replace(first, scene="warm", tiles=(warm,)))]
        shown += [await _show(driver, codec, page) for page in (first, other)]
    rows: list[Row | Note] = []
    for name, sent in zip(("a picture", "the same, one corner changed"), shown[1:], strict=True):
        if isinstance(sent, str):
            rows.append(Note(f"{name}, {what}: {sent}"))
            continue
        each = "of it" if name == "a picture" else "of that"
        rows += [
            Row(f"{name}, {what}: CPU", sent.cpu_s * 1e3, "ms"),
            Row(f"  packets {each}", sent.packets, ""),
            Row(f"  bytes {each}", sent.bytes, "B", "its pixels", stride * height),
            Row("  until its last packet", sent.air_s * 1e3, "ms"),
        ]
        if model.arms:
            rows.append(_apart(sent))
    return rows


def _apart(sent: Sent) -> Row | Note:
    if len([side for side in sent.last if side is not None]) < 2:
        return Note("  one side gets it, and gives it to the other")
    return Row("  the sides' last packets, apart", sent.apart_s * 1e3, "ms")


async def _show(driver: Driver[Any], codec: MeteredCodec, page: ShowPage) -> Sent | str:
    codec.sent = sent = Sent(began=time.monotonic())
    try:
        await driver.request(page, timeout_s=WAIT_S)
    except BridgeError as error:
        return str(error)
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


def _shades(size: int) -> bytes:
    """Return pixels without a pattern, always the same ones."""
    value, out = 1, bytearray()
    while len(out) < size:
        value = value * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        out.append(value >> 56)
    return bytes(out)


def _with_corner(tile: Tile, stride: int) -> Tile:
    changed = bytearray(tile.pixels)
    for row in range(CORNER):
        at = row * stride
        changed[at : at + CORNER] = bytes(byte ^ 0xFF for byte in changed[at : at + CORNER])
    return replace(tile, pixels=bytes(changed))
