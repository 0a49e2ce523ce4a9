"""The simulator's GATT server with info, rx and tx on a bumble host stack, and its advertising."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bumble import att, core, gatt, hci
from bumble.core import UUID, AdvertisingData
from bumble.device import Connection, Device, DeviceConfiguration

from firmware_bridge.errors import LinkLost, LocalMisuse, LostReason
from firmware_bridge.models import Channel, Gatt
from firmware_bridge.packets import SUBSCRIBE, UNSUBSCRIBE, ChannelPacket, channel_of
from firmware_bridge.sim.faults import RadioFaults
from firmware_bridge.sim.peripheral import PeripheralLink
from firmware_bridge.sim.security import Security

log = logging.getLogger(__name__)

ADVERTISING_MS: Final = 25
"""Fast advertising (20 to 30 ms), as Apple and Android recommend for quick discovery."""
UNASSIGNED_MAKER: Final = 0xFFFF
"""Company identifier for devices without one (Bluetooth Assigned Numbers)."""
HCI_S: Final = 1.0
"""Seconds for a controller's answer, which normally takes milliseconds."""
_PROPERTY = gatt.Characteristic.Properties
_PERMISSION = att.Attribute.Permissions

_BASE: Final = "-0000-1000-8000-00805f9b34fb"
"""Tail of the UUIDs that the Bluetooth SIG assigned."""

Serve = Callable[[PeripheralLink], Awaitable[None]]
Read = Callable[[str], bytes]
"""Name of a channel → its value."""


@dataclass(frozen=True, slots=True)
class GattIdentity:
    """Address, name and advertising data of one radio (31 bytes each)."""

    address: str
    name: str
    advertised: bytes
    scan_response: bytes = b""


class GattServer:
    """Advertises, serves one central until it disconnects, and advertises again; `run()` repeats
    this until cancelled.

    `lose` drops every link as distance would (None on hardware: it disconnects instead).
    `more_follow` returns whether more packets of a message follow. `read` returns the value of a
    channel.
    """

    def __init__(
        self,
        source: Any,
        sink: Any,
        *,
        where: Gatt,
        identity: GattIdentity,
        mtu: int,
        info: Callable[[], bytes],
        security: Security,
        faults: RadioFaults | None = None,
        lose: Callable[[], bool] | None = None,
        more_follow: Callable[[bytes], bool] | None = None,
        read: Read | None = None,
    ) -> None:
        config = DeviceConfiguration(
            name=identity.name,
            address=hci.Address(identity.address),
            advertising_interval_min=ADVERTISING_MS,
            advertising_interval_max=ADVERTISING_MS,
        )
        self._device = Device.from_config_with_hci(config, source, sink)
        self._device.gatt_server.max_mtu = mtu
        self._security = security
        security.attach(self._device)
        self._device.advertising_data = identity.advertised
        self._device.scan_response_data = identity.scan_response
        self._device.on("connection", self._on_connection)
        self._notifying: dict[str, Any] = {}
        """Characteristics that notify, by the name of their channel; "" is tx."""
        self._subscribed: set[str] = set()
        self._on_request = {each.name for each in where.channels if each.on_request}
        for service in self._services(where, info, read or _no_values):
            self._device.add_service(service)
        for characteristic in self._notifying.values():
            self._guard_subscription(characteristic)
        self._faults = faults or RadioFaults()
        self._lose = lose
        self._more_follow = more_follow or (lambda _packet: False)
        self._connections: asyncio.Queue[Connection] = asyncio.Queue()
        self._subscriptions: asyncio.Queue[Subscription | None] = asyncio.Queue()
        self._partings: asyncio.Queue[Connection] = asyncio.Queue()
        self._current: Subscription | None = None
        self._near = asyncio.Event()
        self._near.set()
        self._news = asyncio.Event()
        self._cut = False

    def _services(self, where: Gatt, info: Callable[[], bytes], read: Read) -> list[Any]:
        """Return the services with rx, tx, info and all channels, each in its own service."""
        mounted: dict[str, list[Any]] = {where.service: self._receivers(where, info)}
        if where.tx:
            mounted[where.service].append(self._notifier(where.tx, ""))
        for channel in where.channels:
            mounted.setdefault(channel.service, []).append(self._characteristic(channel, read))
        return [gatt.Service(_uuid(uuid), parts) for uuid, parts in mounted.items()]

    def _notifier(self, uuid: str, channel: str, more: Any = 0, value: Any = b"") -> Any:
        can = _PROPERTY.NOTIFY | more
        allowed = _PERMISSION.READABLE
        if can & _PROPERTY.WRITE:
            allowed |= _PERMISSION.WRITEABLE
        made: Any = gatt.Characteristic(_uuid(uuid), can, allowed, value)
        made.on(made.EVENT_SUBSCRIPTION, partial(self._on_subscription, channel=channel))
        self._notifying[channel] = made
        return made

    def _characteristic(self, channel: Channel, read: Read) -> Any:
        can = _PROPERTY(0)
        if channel.read or channel.first:
            can |= _PROPERTY.READ
        if channel.write:
            can |= _PROPERTY.WRITE | _PROPERTY.WRITE_WITHOUT_RESPONSE
        value: Any = gatt.CharacteristicValue(
            read=lambda _connection: read(channel.name),
            write=partial(self._on_write, channel=channel.name),
        )
        if channel.notify:
            return self._notifier(channel.uuid, channel.name, can, value)
        permissions = _PERMISSION.READABLE | _PERMISSION.WRITEABLE
        return gatt.Characteristic(_uuid(channel.uuid), can, permissions, value)

    def _receivers(self, where: Gatt, info: Callable[[], bytes]) -> list[Any]:
        if not where.rx:
            return []
        rx: Any = gatt.Characteristic(
            where.rx,
            _PROPERTY.WRITE_WITHOUT_RESPONSE | _PROPERTY.WRITE,
            _PERMISSION.WRITEABLE,
            gatt.CharacteristicValue[bytes](read=_no_reading, write=self._on_write),
        )
        if where.info is None:
            return [rx]
        read: Any = gatt.CharacteristicValue(read=lambda _connection: info(), write=_no_writing)
        return [gatt.Characteristic(where.info, _PROPERTY.READ, _PERMISSION.READABLE, read), rx]

    def _guard_subscription(self, characteristic: Any) -> None:
        """Let only centrals that may write subscribe: bumble's own descriptor is unprotected."""
        server = self._device.gatt_server
        descriptor: Any = next(
            a
            for a in server.attributes
            if a.type == gatt.GATT_CLIENT_CHARACTERISTIC_CONFIGURATION_DESCRIPTOR
            and a.handle > characteristic.handle
        )
        subscribe = descriptor.value

        def guarded(bearer: Any, value: bytes) -> Any:
            self._security.check(getattr(bearer, "connection", bearer))
            return subscribe.write(bearer, value)

        descriptor.value = att.AttributeValueV2(subscribe.read, write=guarded)

    async def run(self, serve: Serve, tell: Callable[[dict[str, Any]], None]) -> None:
        """Act as peripheral until cancelled. `serve` is called once per subscription."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._part())
            await _whole(self._device.power_on())
            while True:
                connection = await self._meet()
                peer = connection.peer_address.to_string(False)
                tell({"event": "connected", "peer": peer})
                while (subscription := await self._subscriptions.get()) is not None:
                    tell({"event": "subscribed", "peer": peer, "mtu": int(connection.att_mtu)})
                    late = tasks.create_task(subscription.deliver_late())
                    await serve(subscription)
                    subscription.end()
                    late.cancel()
                tell({"event": "disconnected", "peer": peer})

    async def _meet(self) -> Connection:
        """Advertise, unless out of range, until a central connects."""
        while True:
            await self._near.wait()
            await _whole(self._device.start_advertising(own_address_type=hci.OwnAddressType.RANDOM))
            log.debug("advertising")
            while self._near.is_set() and self._connections.empty():
                self._news.clear()
                await self._news.wait()
            if not self._connections.empty():
                return self._connections.get_nowait()
            await _whole(self._device.stop_advertising())

    async def _part(self) -> None:
        """Disconnect, on hardware, where a link cannot simply be dropped."""
        while True:
            connection = await self._partings.get()
            with suppress(core.BaseBumbleError, hci.HCI_Error):  # it was gone already
                await _whole(connection.disconnect())

    # -------------------------------------------------------------- what can happen to a radio

    def drop(self) -> bool:
        """Drop the link as if the wearer had walked away. False if there was none."""
        if self._lose is not None:
            return self._lose()
        links = list(self._device.connections.values())
        for connection in links:
            self._partings.put_nowait(connection)
        return bool(links)

    def leave(self) -> bool:
        """Drop the link and stop advertising. False if there was no link."""
        self._near.clear()
        self._news.set()
        return self.drop()

    def come_back(self) -> None:
        """Advertise again. Idempotent."""
        self._near.set()

    def offer_mtu(self, mtu: int) -> None:
        """Offer this ATT MTU (bytes) from the next connection on."""
        self._device.gatt_server.max_mtu = mtu

    def _on_connection(self, connection: Connection) -> None:
        connection.on("disconnection", lambda _reason: self._on_disconnection())
        self._connections.put_nowait(connection)
        self._news.set()
        if not self._near.is_set():  # connected in the moment we went out of range
            asyncio.get_running_loop().call_soon(self.drop)

    def _on_disconnection(self) -> None:
        self._cut = False
        self._subscribed.clear()
        self._end_current()
        self._subscriptions.put_nowait(None)

    def _on_subscription(
        self,
        connection: Connection,
        notify: bool,  # noqa: FBT001 - bumble's
        _indicate: bool,  # noqa: FBT001 - bumble's
        channel: str,
    ) -> None:
        """Begin with the first subscription (again with one of tx), end with the last. Those on
        request are also packets.
        """
        (self._subscribed.add if notify else self._subscribed.discard)(channel)
        if channel == "" or not self._subscribed:
            self._end_current()
        if notify and self._current is None:
            self._current = Subscription(
                connection, self._device, self._notifying, self._faults, self.drop
            )
            self._subscriptions.put_nowait(self._current)
        if channel in self._on_request and self._current is not None:
            switch = SUBSCRIBE if notify else UNSUBSCRIBE
            self._current.received(ChannelPacket(switch, channel))

    def _end_current(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            current.end()

    def _on_write(self, connection: Connection, value: bytes, channel: str = "") -> None:
        self._security.check(connection)
        if self._current is None or self._cut:
            return
        packet = ChannelPacket(value, channel) if channel else bytes(value)
        self._current.received(packet)
        if self._faults.cutting and self._more_follow(packet):
            self._faults.cutting = False
            self._cut = True  # what is still in the air is lost with the link
            asyncio.get_running_loop().call_soon(self.drop)


def _no_values(channel: str) -> bytes:
    raise LocalMisuse(f"these glasses have no value for {channel!r}")


def _uuid(uuid: str) -> UUID:
    """Return a UUID, in 16 bits where the Bluetooth SIG assigned it."""
    assigned = uuid.startswith("0000") and uuid.endswith(_BASE)
    return UUID.from_16_bits(int(uuid[4:8], 16)) if assigned else UUID(uuid)


def _no_reading(_connection: Connection) -> bytes:
    """Refuse a read: bumble 0.0.236 checks permissions of static values only."""
    raise att.ATT_Error(error_code=att.ErrorCode.READ_NOT_PERMITTED)


def _no_writing(_connection: Connection, _value: bytes) -> None:
    raise att.ATT_Error(error_code=att.ErrorCode.WRITE_NOT_PERMITTED)


async def _whole(conversation: Awaitable[None]) -> None:
    """Await HCI commands without cancelling one half-way: bumble loses track of its answers, and on
    Python 3.11 its `wait_for` can swallow the cancellation.
    """
    talking = asyncio.ensure_future(conversation)
    try:
        await asyncio.shield(talking)
    except asyncio.CancelledError:
        await asyncio.wait([talking], timeout=HCI_S)
        raise


def by_service(name: str, address: str, service: str) -> GattIdentity:
    """Return an identity recognised by its service; the name is cut to the remaining room."""
    return GattIdentity(address, name, advertisement(name, service))


def by_name(name: str, address: str, *, serial: str) -> GattIdentity:
    """Return an identity recognised by a long name; manufacturer data carries the serial number."""
    advertised = AdvertisingData(
        [(AdvertisingData.FLAGS, b"\x06"), (AdvertisingData.COMPLETE_LOCAL_NAME, name.encode())]
    )
    maker = UNASSIGNED_MAKER.to_bytes(2, "little") + serial.encode()
    response = AdvertisingData([(AdvertisingData.MANUFACTURER_SPECIFIC_DATA, maker)])
    return GattIdentity(address, name, bytes(advertised), bytes(response))


def advertisement(name: str, service: str) -> bytes:
    """Return a legacy advertisement (31 bytes): flags, service, and 8 bytes of the name."""
    structures = [
        (AdvertisingData.FLAGS, bytes([0x06])),
        (AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS, bytes(UUID(service))),
    ]
    encoded = name.encode()
    room = 31 - len(bytes(AdvertisingData(structures))) - 2
    whole, short = AdvertisingData.COMPLETE_LOCAL_NAME, AdvertisingData.SHORTENED_LOCAL_NAME
    named = (whole if len(encoded) <= room else short, encoded[:room])
    return bytes(AdvertisingData([*structures, named]))


MAX_QUEUED_PACKETS: Final = 1024
"""Packets not yet processed: four times the largest window (255 frames); more disconnects."""
MAX_QUEUED_ACL: Final = 32
MAX_LATE_PACKETS: Final = 256
"""Packets a slow link holds; the glasses wait when it is full."""


class Subscription:
    """One central that subscribed, until it unsubscribes or disconnects. Used once."""

    def __init__(
        self,
        connection: Connection,
        device: Device,
        notifying: Mapping[str, Any],
        faults: RadioFaults,
        hang_up: Callable[[], object],
    ) -> None:
        self._connection = connection
        self._device = device
        self._notifying = notifying
        self._faults = faults
        self._late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(MAX_LATE_PACKETS)
        self._on_the_way = 0
        self.hang_up = hang_up
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._over = asyncio.Event()

    @property
    def peer(self) -> str:
        return str(self._connection.peer_address.to_string(False))

    @property
    def max_packet(self) -> int:
        return int(self._connection.att_mtu) - 3

    @property
    def encrypted(self) -> bool:
        return bool(self._connection.encryption)

    def ask_for_bond(self) -> None:
        self._connection.request_pairing()

    async def packets(self) -> AsyncIterator[bytes]:
        while (packet := await self._inbox.get()) is not None:
            yield packet

    async def notify(self, packet: bytes) -> None:
        if self._over.is_set():
            raise LinkLost(LostReason.DISCONNECTED)
        if self._faults.loses():
            return
        if not self._faults.late_s and not self._on_the_way:
            await self._send(packet)
            return
        self._on_the_way += 1
        await self._late.put((asyncio.get_running_loop().time() + self._faults.late_s, packet))

    async def deliver_late(self) -> None:
        """Send delayed packets in order, until the central disconnects or this is cancelled."""
        with suppress(LinkLost):
            while True:
                due, packet = await self._late.get()
                await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
                await self._send(packet)
                self._on_the_way -= 1

    async def _send(self, packet: bytes) -> None:
        while (
            queue := self._connection.data_packet_queue
        ) is not None and queue.pending > MAX_QUEUED_ACL:
            await self._flow(queue)
        if self._over.is_set():
            raise LinkLost(LostReason.DISCONNECTED)
        characteristic = self._notifying[channel_of(packet)]
        await self._device.notify_subscriber(self._connection, characteristic, bytes(packet))

    async def _flow(self, queue: Any) -> None:
        """Wait until the controller took something, or the central disconnected."""
        flowed = asyncio.Event()
        queue.once("flow", flowed.set)
        waits = [asyncio.ensure_future(flowed.wait()), asyncio.ensure_future(self._over.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._over.is_set():
            raise LinkLost(LostReason.DISCONNECTED)

    def received(self, packet: bytes) -> None:
        if self._over.is_set():
            return
        if self._inbox.qsize() >= MAX_QUEUED_PACKETS:
            log.warning("%s ignores its credit; disconnected", self.peer)
            self.end()
            return
        self._inbox.put_nowait(packet)

    def end(self) -> None:
        """Idempotent."""
        if not self._over.is_set():
            self._over.set()
            self._inbox.put_nowait(None)
