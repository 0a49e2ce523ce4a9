"""halo-ws-simulator's Halo (halo-emulator's Lua machine) with a radio: this repository's virtual
one, since neither package has any. Its bytes are carried, not read.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from halo_ws_sim import HaloDeviceBridge

from firmware_bridge.catalog import find
from firmware_bridge.errors import LinkLost
from firmware_bridge.packets import channel_of
from firmware_bridge.sim.gatt import GattIdentity, advertisement
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.inproc import Mock
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.peripheral import PeripheralLink
from firmware_bridge.sim.radio_setup import RadioSetup
from firmware_bridge.transports.ble import Radio

MAX_WAITING = 1024
"""Notifications that wait for the radio."""
MTU = 247
"""What the emulator says of itself: 243 bytes of data in a packet."""


class EmulatedHalo:
    """One Halo: the emulator outlives its connections, as the glasses do. `sound`: what arrived at
    the characteristic of its speaker, which the emulator does not have.
    """

    def __init__(self, flash: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._said: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING)
        self.sound: list[bytes] = []
        self.device = HaloDeviceBridge(flash, on_rx=self._say)
        self.emulator = self.device.emu

    def _say(self, data: bytes) -> None:
        """Called by the thread that runs Lua."""
        self._loop.call_soon_threadsafe(self._said.put_nowait, data)

    async def serve(self, _glasses: MockGlasses, _side: object, link: PeripheralLink) -> None:
        """Carry packets between a central and the emulator until the central leaves."""
        telling = asyncio.ensure_future(self._tell(link))
        try:
            async for packet in link.packets():
                if channel_of(packet):
                    self.sound.append(bytes(packet))
                elif packet[0] == 1:
                    self.device.tx_data(packet)
                else:
                    self.device.tx_string(packet)
        finally:
            telling.cancel()
            await asyncio.wait([telling])

    async def _tell(self, link: PeripheralLink) -> None:
        with suppress(LinkLost):
            while True:
                await link.notify(await self._said.get())


@asynccontextmanager
async def halo_on_air(
    radio: Radio, folder: Path, *, model: str, name: str
) -> AsyncIterator[EmulatedHalo]:
    """Switch an emulated Halo on, which advertises `name` and has the radio of `model`."""
    halo = EmulatedHalo(folder / "flash")

    def identity(_model: object, _side: object) -> GattIdentity:
        advertised = advertisement(name, find(model).gatt.service)
        return GattIdentity(address_of(name), name, advertised)

    def battery(_glasses: MockGlasses, _side: object, _channel: str) -> bytes:
        return bytes((halo.emulator._system.battery_level(),))

    parts = ModelParts((None,), halo.serve, lambda _packet: False, identity, MTU, read=battery)
    setup = RadioSetup("inproc", radio.air)
    await setup.open()
    mock = Mock(find(model), setup, folder, None, lambda _event: None, parts=parts)
    mock.start()
    try:
        yield halo
    finally:
        await mock.close()
        halo.device.close()
