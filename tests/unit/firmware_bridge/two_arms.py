"""Two arms of an Even G1 on a virtual air, each a GATT server of its own that obeys; and a central
made of real parts.

It draws nothing: it remembers what each arm was told, and when.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from firmware_bridge.catalog import find
from firmware_bridge.codec import NEED_DATA
from firmware_bridge.codecs.even_g1.peripheral import EvenG1Arm
from firmware_bridge.codecs.even_g1.wire import name_of
from firmware_bridge.errors import LinkLost, RemoteViolation
from firmware_bridge.messages import Command, Done
from firmware_bridge.sides import Side
from firmware_bridge.sim.air import Air
from firmware_bridge.sim.gatt import GattServer, by_name
from firmware_bridge.sim.radio_setup import RadioSetup
from firmware_bridge.sim.security import Security, way_of
from firmware_bridge.transports.bumble.keys import KeyFile

L, R = Side.LEFT, Side.RIGHT
ADDRESS = {L: "E1:73:64:CC:89:D6", R: "E1:73:64:8C:A1:D5"}
DEADLINE_S = 40.0


class TwoArms:
    """`shown[side]`: (moment, command) in order."""

    def __init__(self, air: Air, folder: Path, *, addresses=ADDRESS) -> None:
        self._air = air
        self._addresses = addresses
        self._folder = folder
        self.shown: dict[Side, list[tuple[float, Command]]] = {L: [], R: []}
        self.packets: dict[Side, list[bytes]] = {L: [], R: []}
        self.servers: dict[Side, GattServer] = {}
        self.deaf: set[Side] = set()
        self.links: dict[Side, int] = {L: 0, R: 0}
        self._news = asyncio.Event()

    @asynccontextmanager
    async def worn(self, *sides: Side, mtu: int = 251) -> AsyncIterator["TwoArms"]:
        mount = RadioSetup("inproc", self._air, radios=len(sides))
        await mount.open()
        for side, antenna in zip(sides, mount.antennas, strict=True):
            self.servers[side] = self._server(side, antenna, mtu)
        running = asyncio.ensure_future(self._run(sides))
        try:
            yield self
        finally:
            running.cancel()
            await asyncio.wait([running])
            await mount.close()

    def _server(self, side: Side, antenna, mtu: int) -> GattServer:
        model = find("even_g1")
        way, _ = way_of(model, None)
        address = self._addresses[side]
        keys = KeyFile(self._folder / f"{side}.json", address=address, at_once=True)
        return GattServer(
            antenna.source,
            antenna.sink,
            where=model.gatt,
            identity=by_name(name_of(47, side, address), address, serial="S100LAAL103842"),
            mtu=mtu,
            info=bytes,
            lose=antenna.lose,
            security=Security(
                way, required=False, keys=keys, show=lambda *_a, **_k: None, clock=time.monotonic
            ),
        )

    async def _run(self, sides) -> None:
        async with asyncio.TaskGroup() as tasks:
            for side in sides:
                tasks.create_task(
                    self.servers[side].run(partial(self._serve, side), lambda _event: None)
                )

    async def _serve(self, side: Side, link) -> None:
        arm = EvenG1Arm(side, max_packet=link.max_packet)
        self.links[side] += 1
        with suppress(LinkLost):
            async for packet in link.packets():
                if side in self.deaf:
                    continue
                self.packets[side].append(packet)
                with suppress(RemoteViolation):
                    arm.receive_packet(packet, time.monotonic())
                while (incoming := arm.next_event()) is not NEED_DATA:
                    self.shown[side].append((time.monotonic(), incoming.message))
                    arm.send(Done(), 0.0, re=incoming.number)
                for answer in arm.packets_to_send(0.0):
                    await link.notify(answer)
                self._news.set()

    def commands(self, side: Side) -> list[Command]:
        return [command for _, command in self.shown[side]]

    async def until(self, fits, *, at_most_s: float = DEADLINE_S) -> None:
        async with asyncio.timeout(at_most_s):
            while not fits():
                self._news.clear()
                await self._news.wait()
