"""org.bluez on a private bus, below the code that asks it: one adapter whose power can be switched,
and paired devices.

Run: fake_bluez.py BUS_ADDRESS [--off] [--no-adapter] [--device ADDRESS…]. Says "ready" when it owns
its name.
"""

import asyncio
import sys

from dbus_fast import PropertyAccess
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_property


class Adapter(ServiceInterface):
    def __init__(self, *, powered):
        super().__init__("org.bluez.Adapter1")
        self.powered = powered

    @dbus_property(access=PropertyAccess.READ)
    def Address(self) -> "s":  # noqa: N802, F821 - D-Bus names and signatures
        return "00:11:22:33:44:55"

    @dbus_property()
    def Powered(self) -> "b":  # noqa: N802, F821
        return self.powered

    @Powered.setter
    def Powered(self, value: "b"):  # noqa: N802, F821
        self.powered = value


class Device(ServiceInterface):
    def __init__(self, address):
        super().__init__("org.bluez.Device1")
        self.address = address

    @dbus_property(access=PropertyAccess.READ)
    def Address(self) -> "s":  # noqa: N802, F821
        return self.address

    @dbus_property(access=PropertyAccess.READ)
    def Paired(self) -> "b":  # noqa: N802, F821
        return True

    @dbus_property(access=PropertyAccess.READ)
    def Adapter(self) -> "o":  # noqa: N802, F821
        return "/org/bluez/hci0"


async def main(address, *words):
    bus = await MessageBus(address).connect()
    if "--no-adapter" not in words:
        bus.export("/org/bluez/hci0", Adapter(powered="--off" not in words))
    for device in words[words.index("--device") + 1 :] if "--device" in words else ():
        bus.export(f"/org/bluez/hci0/dev_{device.replace(':', '_')}", Device(device))
    await bus.request_name("org.bluez")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await bus.wait_for_disconnect()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
