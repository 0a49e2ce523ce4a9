"""A private D-Bus and a small bluetoothd on it: real bus, real bleak and our code above; only the
daemon is played.

It keeps adapters, glasses in the air and their GATT objects as BlueZ shows them, and can be hurt as
BlueZ is. The glasses behind a device object are the mock's own: what is written and notified is the
real protocol.
"""

import asyncio
import shutil
import subprocess
from contextlib import asynccontextmanager, suppress

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from firmware_bridge.codecs.reference.uuids import INFO_UUID, RX_UUID, SERVICE_UUID, TX_UUID
from firmware_bridge.sim.peripheral import serve
from firmware_bridge.transports.bluez import recovery
from firmware_bridge.transports.bluez.watch import ADAPTER, BLUEZ, DEVICE, OBJECTS, PROPERTIES

DBUS = shutil.which("dbus-daemon")
HCI0 = "/org/bluez/hci0"
ADDRESS = "F0:F1:F2:F3:F4:F5"
SERVICE, CHARACTERISTIC = "org.bluez.GattService1", "org.bluez.GattCharacteristic1"

CONFIG = """<busconfig><type>system</type><listen>unix:path={socket}</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>"""  # noqa: E501


class Bus:
    """A dbus-daemon of our own; may be killed and started again at the same address."""

    def __init__(self, folder):
        self.address = f"unix:path={folder / 'bus'}"
        self._config = folder / "bus.conf"
        self._config.write_text(CONFIG.format(socket=folder / "bus"))
        self._folder = folder
        self._process = None

    def start(self):
        with suppress(FileNotFoundError):
            (self._folder / "bus").unlink()
        command = [DBUS, f"--config-file={self._config}", "--nofork", "--print-address"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout.readline()

    def kill(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._process = None


class Near:
    """The glasses' end of one connection, in the shape the mock wants."""

    def __init__(self, bluez, peer):
        self._bluez = bluez
        self.peer = "central"
        self.max_packet = peer.mtu - 3
        self._path = peer.tx
        self.heard = asyncio.Queue()

    async def packets(self):
        while (packet := await self.heard.get()) is not None:
            yield packet

    async def notify(self, packet):
        self._bluez.change(self._path, CHARACTERISTIC, Value=Variant("ay", bytes(packet)))


class Peer:
    """One pair of glasses near the adapter."""

    def __init__(self, glasses, *, address=ADDRESS, adapter=HCI0, mtu=247):
        self.glasses = glasses
        self.address, self.adapter, self.mtu = address, adapter, mtu
        self.path = f"{adapter}/dev_{address.replace(':', '_')}"
        self.tx = f"{self.path}/service0001/char0006"
        self.paired = False
        self.hides = False
        self.connect_error = None
        self.near = None
        self.serving = None

    def device(self):
        name = self.glasses.model.names[0]
        return {
            "Address": Variant("s", self.address),
            "Alias": Variant("s", name),
            "Name": Variant("s", name),
            "UUIDs": Variant("as", [SERVICE_UUID]),
            "Adapter": Variant("o", self.adapter),
            "RSSI": Variant("n", -50),
            "Connected": Variant("b", False),
            "ServicesResolved": Variant("b", False),
            "Paired": Variant("b", self.paired),
        }

    def gatt(self):
        service = f"{self.path}/service0001"
        flags = {INFO_UUID: ["read"], RX_UUID: ["write-without-response"], TX_UUID: ["notify"]}
        chars = {
            f"{service}/char000{2 * n}": {
                "UUID": Variant("s", uuid),
                "Service": Variant("o", service),
                "Flags": Variant("as", flag),
                "MTU": Variant("q", self.mtu),
                "Value": Variant("ay", b""),
            }
            for n, (uuid, flag) in enumerate(flags.items(), 1)
        }
        head = {
            service: {
                SERVICE: {
                    "UUID": Variant("s", SERVICE_UUID),
                    "Device": Variant("o", self.path),
                    "Primary": Variant("b", True),
                }
            }
        }
        return head | {path: {CHARACTERISTIC: has} for path, has in chars.items()}


class FakeBluez:
    """`start()` takes the name org.bluez; `die()` gives it up without a word, as SIGKILL does."""

    def __init__(self, address):
        self._address = address
        self.objects = {}
        self.peers = []
        self.calls = []
        self.errors = {}
        """member → D-Bus error to answer it with, as often as it stands in the list."""
        self.silent = set()
        """members that are never answered"""
        self._bus = None
        self._scanning = False

    async def start(self, *adapters, powered=True):
        self._bus = await MessageBus(bus_address=self._address).connect()
        self._bus.add_message_handler(self._asked)
        self.objects = {}
        for path in adapters or (HCI0,):
            self.objects[path] = {ADAPTER: self._adapter(powered=powered)}
        await self._bus.request_name(BLUEZ)
        for peer in self.peers:
            if peer.paired:
                self._add(peer.path, {DEVICE: peer.device()})

    async def die(self):
        bus, self._bus, self._scanning = self._bus, None, False
        for peer in self.peers:
            await self._hang_up(peer, tell=False)
        if bus is not None:
            bus.disconnect()

    # -------------------------------------------------------------- the world

    def put_near(self, peer):
        self.peers.append(peer)
        self._advertise()
        return peer

    async def walk_away(self, peer):
        """The link is lost, as 0x08 tells it."""
        await self._hang_up(peer)

    def connected(self, peer):
        return peer.near is not None

    async def power(self, path=HCI0, *, on):
        for peer in self.peers if not on else ():
            await self._hang_up(
                peer, tell=peer.adapter != path
            )  # BlueZ tells only later: the watch must be first
        self.change(path, ADAPTER, Powered=Variant("b", on))

    async def unplug(self, path=HCI0):
        for peer in self.peers:
            await self._hang_up(peer, tell=False)
        for gone in [p for p in self.objects if p.startswith(path)]:
            self._remove(gone)

    def plug_in(self, path=HCI0, *, powered=True):
        self._add(path, {ADAPTER: self._adapter(powered=powered)})

    def _adapter(self, *, powered):
        return {
            "Powered": Variant("b", powered),
            "Roles": Variant("as", ["central"]),
            "Address": Variant("s", "00:11:22:33:44:55"),
        }

    # -------------------------------------------------------------- D-Bus

    def change(self, path, interface, **news):
        if path not in self.objects or self._bus is None:
            return
        self.objects[path][interface] |= news
        self._tell(path, PROPERTIES, "PropertiesChanged", "sa{sv}as", interface, news, [])

    def _add(self, path, interfaces):
        self.objects[path] = interfaces
        self._tell("/", OBJECTS, "InterfacesAdded", "oa{sa{sv}}", path, interfaces)

    def _remove(self, path):
        interfaces = self.objects.pop(path, None)
        if interfaces is not None:
            self._tell("/", OBJECTS, "InterfacesRemoved", "oas", path, list(interfaces))

    def _tell(self, path, interface, member, signature, *body):
        if self._bus is not None and self._bus.connected:
            self._bus.send(
                Message(
                    message_type=MessageType.SIGNAL,
                    path=path,
                    interface=interface,
                    member=member,
                    signature=signature,
                    body=list(body),
                )
            )

    def _asked(self, message):
        if self._bus is None:
            # killed with the question unread: nobody answers it, and the bus tells who asked
            return True
        if message.message_type is not MessageType.METHOD_CALL or message.destination not in (
            BLUEZ,
            self._bus.unique_name,
        ):
            return None
        self.calls.append((message.member, message.path))
        if message.member in self.silent:
            return True
        if waiting := self.errors.get(message.member):
            name, text = waiting.pop(0)
            return Message.new_error(message, name, text)
        answer = getattr(self, f"_on_{message.member}", None)
        if answer is None or (message.path != "/" and message.path not in self.objects):
            return Message.new_error(
                message, "org.freedesktop.DBus.Error.UnknownObject", "Method does not exist"
            )
        return answer(message)

    def _on_GetManagedObjects(self, message):  # noqa: N802 - D-Bus's name, as below
        return Message.new_method_return(message, "a{oa{sa{sv}}}", [self.objects])

    def _on_SetDiscoveryFilter(self, message):  # noqa: N802
        return Message.new_method_return(message)

    def _on_StartDiscovery(self, message):  # noqa: N802
        self._scanning = True
        asyncio.get_running_loop().call_soon(self._advertise)
        return Message.new_method_return(message)

    def _on_StopDiscovery(self, message):  # noqa: N802
        self._scanning = False
        for interfaces in self.objects.values():
            interfaces.get(DEVICE, {}).pop("RSSI", None)
        return Message.new_method_return(message)

    def _advertise(self):
        for peer in self.peers if self._scanning else ():
            there = (
                peer.adapter in self.objects
                and self.objects[peer.adapter][ADAPTER]["Powered"].value
            )
            if not there or peer.near is not None or peer.hides:
                continue
            if peer.path in self.objects:
                self.change(peer.path, DEVICE, RSSI=Variant("n", -50))
            else:
                self._add(peer.path, {DEVICE: peer.device()})

    def _on_Set(self, message):  # noqa: N802
        interface, name, value = message.body
        if name == "Powered":
            self._later(self.power(message.path, on=value.value))
        else:
            self.change(message.path, interface, **{name: value})
        return Message.new_method_return(message)

    def _on_RemoveDevice(self, message):  # noqa: N802
        for gone in [p for p in self.objects if p.startswith(message.body[0])]:
            self._remove(gone)
        return Message.new_method_return(message)

    def _on_Connect(self, message):  # noqa: N802
        peer = next(p for p in self.peers if p.path == message.path)
        if peer.connect_error:
            return Message.new_error(message, *peer.connect_error)
        self.link(peer)
        return Message.new_method_return(message)

    def link(self, peer):
        """Be connected, whoever asked for it."""
        if peer.path not in self.objects:
            self._add(peer.path, {DEVICE: peer.device()})
        self.objects[peer.path][DEVICE].pop("RSSI", None)
        peer.near = Near(self, peer)
        peer.serving = asyncio.ensure_future(serve(peer.glasses, peer.near))
        self.change(peer.path, DEVICE, Connected=Variant("b", True))
        for path, interfaces in peer.gatt().items():
            self._add(path, interfaces)
        self.change(peer.path, DEVICE, ServicesResolved=Variant("b", True))

    def _on_Disconnect(self, message):  # noqa: N802
        peer = next(p for p in self.peers if p.path == message.path)
        self._later(self._hang_up(peer))
        return Message.new_method_return(message)

    async def _hang_up(self, peer, *, tell=True):
        near, peer.near = peer.near, None
        if near is not None:
            near.heard.put_nowait(None)
            await asyncio.wait([peer.serving], timeout=40)
        if tell and peer.path in self.objects:
            for gone in [p for p in self.objects if p.startswith(f"{peer.path}/")]:
                self._remove(gone)
            self.change(
                peer.path,
                DEVICE,
                Connected=Variant("b", False),
                ServicesResolved=Variant("b", False),
            )
            self._advertise()

    def _on_ReadValue(self, message):  # noqa: N802
        peer = next(p for p in self.peers if message.path.startswith(p.path))
        return Message.new_method_return(message, "ay", [peer.glasses.info_bytes()])

    def _on_StartNotify(self, message):  # noqa: N802
        return Message.new_method_return(message)

    def _on_WriteValue(self, message):  # noqa: N802
        peer = next(p for p in self.peers if message.path.startswith(p.path))
        if peer.near is None:
            return Message.new_error(message, "org.bluez.Error.Failed", "Not connected")
        peer.near.heard.put_nowait(bytes(message.body[0]))
        return Message.new_method_return(message)

    def _later(self, work):
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda done: done.cancelled() or done.result())


@asynccontextmanager
async def private_bluez(folder, monkeypatch):
    """A bus, a bluetoothd on it, and everything of ours pointed there."""
    assert DBUS, "no dbus-daemon: apt-get install dbus"
    bus = Bus(folder)
    bus.start()
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.address)
    bluez = FakeBluez(bus.address)
    bluez.bus = bus
    await bluez.start()
    try:
        yield bluez
    finally:
        await bluez.die()
        recovery.forget()
        bus.kill()
        await asyncio.sleep(0)


def no_bluetoothctl(monkeypatch):
    """bleak asks a program for the version of BlueZ, and warns when there is none."""
    from bleak.backends.bluezdbus.version import BlueZFeatures

    monkeypatch.setattr(BlueZFeatures, "checked_bluez_version", True)
