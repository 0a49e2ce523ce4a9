"""The mock's Bluetooth side: a GATT server with info, rx and tx on a bumble host stack, advertising by its name.

Knows UUIDs, MTU and subscriptions; what the packets mean is the glasses' business.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from bumble import att, gatt, hci
from bumble.core import UUID, AdvertisingData
from bumble.device import Connection, Device, DeviceConfiguration

from firmware_bridge.catalog import Gatt
from firmware_bridge.errors import LinkLost, LostReason
from firmware_bridge.sim.peripheral import Link
from firmware_bridge.sim.security import Security

log = logging.getLogger(__name__)

ADVERTISING_MS: Final = 25
"""Fast advertising (20 to 30 ms) is what Apple's and Android's guides ask of accessories that want to be found at once."""
MAX_QUEUED_PACKETS: Final = 1024
"""A central keeps to the window (at most 255 frames); who sends four times as much is cut off."""
MAX_QUEUED_ACL: Final = 32
HCI_S: Final = 1.0
"""A controller answers a command in milliseconds."""
_PROPERTY = gatt.Characteristic.Properties
_PERMISSION = att.Attribute.Permissions

Serve = Callable[[Link], Awaitable[None]]


class Subscription:
    """One central listening to tx: a `Link`. Ends when it unsubscribes or is gone. Used once."""

    def __init__(self, connection: Connection, device: Device, tx: Any) -> None:
        self._connection = connection
        self._device = device
        self._tx = tx
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._over = asyncio.Event()

    @property
    def peer(self) -> str:
        return str(self._connection.peer_address.to_string(False))

    @property
    def max_packet(self) -> int:
        return int(self._connection.att_mtu) - 3

    async def packets(self) -> AsyncIterator[bytes]:
        while (packet := await self._inbox.get()) is not None:
            yield packet

    async def notify(self, packet: bytes) -> None:
        while (queue := self._connection.data_packet_queue) is not None and queue.pending > MAX_QUEUED_ACL:
            await self._flow(queue)
        if self._over.is_set():
            raise LinkLost(LostReason.DISCONNECTED)
        await self._device.notify_subscriber(self._connection, self._tx, packet)

    async def _flow(self, queue: Any) -> None:
        """Wait until the controller took something, or the central is gone."""
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
            log.warning("%s sends without looking at its credit; cut off", self.peer)
            self.end()
            return
        self._inbox.put_nowait(packet)

    def end(self) -> None:
        """Idempotent."""
        if not self._over.is_set():
            self._over.set()
            self._inbox.put_nowait(None)


class GattServer:
    """Advertise, take one central, serve it until it is gone, advertise again; `run()` does that for ever."""

    def __init__(
        self, source: Any, sink: Any, *, where: Gatt, name: str, address: str, mtu: int, info: Callable[[], bytes],
        security: Security,
    ) -> None:  # fmt: skip
        config = DeviceConfiguration(
            name=name, address=hci.Address(address),
            advertising_interval_min=ADVERTISING_MS, advertising_interval_max=ADVERTISING_MS,
        )  # fmt: skip
        self._device = Device.from_config_with_hci(config, source, sink)
        self._device.gatt_server.max_mtu = mtu
        self._security = security
        security.attach(self._device)
        self._device.advertising_data = advertisement(name, where.service)
        self._device.on("connection", self._on_connection)
        self._tx = gatt.Characteristic(where.tx, _PROPERTY.NOTIFY, _PERMISSION.READABLE, b"")
        self._tx.on(self._tx.EVENT_SUBSCRIPTION, self._on_subscription)
        self._device.add_service(gatt.Service(where.service, [*self._receivers(where, info), self._tx]))
        self._guard_subscriptions()
        self._connections: asyncio.Queue[Connection] = asyncio.Queue()
        self._subscriptions: asyncio.Queue[Subscription | None] = asyncio.Queue()
        self._current: Subscription | None = None

    def _receivers(self, where: Gatt, info: Callable[[], bytes]) -> list[Any]:
        rx: Any = gatt.Characteristic(
            where.rx, _PROPERTY.WRITE_WITHOUT_RESPONSE | _PROPERTY.WRITE, _PERMISSION.WRITEABLE,
            gatt.CharacteristicValue[bytes](read=_no_reading, write=self._on_write),
        )  # fmt: skip
        if where.info is None:
            return [rx]
        read: Any = gatt.CharacteristicValue(read=lambda _connection: info(), write=_no_writing)
        return [gatt.Characteristic(where.info, _PROPERTY.READ, _PERMISSION.READABLE, read), rx]

    def _guard_subscriptions(self) -> None:
        """Let only those subscribe who may write; bumble makes the descriptor itself, without asking."""
        server = self._device.gatt_server
        descriptor: Any = next(
            a for a in server.attributes
            if a.type == gatt.GATT_CLIENT_CHARACTERISTIC_CONFIGURATION_DESCRIPTOR and a.handle > self._tx.handle
        )  # fmt: skip
        subscribe = descriptor.value

        def guarded(bearer: Any, value: bytes) -> Any:
            self._security.check(getattr(bearer, "connection", bearer))
            return subscribe.write(bearer, value)

        descriptor.value = att.AttributeValueV2(subscribe.read, write=guarded)

    async def run(self, serve: Serve, tell: Callable[[dict[str, Any]], None]) -> None:
        """Be a peripheral until cancelled. `serve` is called once for each subscription."""
        await _whole(self._device.power_on())
        while True:
            await _whole(self._device.start_advertising(own_address_type=hci.OwnAddressType.RANDOM))
            log.debug("advertising")
            connection = await self._connections.get()
            peer = connection.peer_address.to_string(False)
            tell({"event": "connected", "peer": peer})
            while (subscription := await self._subscriptions.get()) is not None:
                tell({"event": "subscribed", "peer": peer, "mtu": int(connection.att_mtu)})
                await serve(subscription)
                subscription.end()
            tell({"event": "disconnected", "peer": peer})

    async def hang_up(self) -> None:
        """Disconnect whoever is connected, politely."""
        for connection in list(self._device.connections.values()):
            await connection.disconnect()

    def _on_connection(self, connection: Connection) -> None:
        connection.on("disconnection", lambda _reason: self._on_disconnection())
        self._connections.put_nowait(connection)

    def _on_disconnection(self) -> None:
        self._end_current()
        self._subscriptions.put_nowait(None)

    def _on_subscription(self, connection: Connection, notify: bool, _indicate: bool) -> None:  # noqa: FBT001 - bumble's
        self._end_current()
        if notify:
            self._current = Subscription(connection, self._device, self._tx)
            self._subscriptions.put_nowait(self._current)

    def _end_current(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            current.end()

    def _on_write(self, connection: Connection, value: bytes) -> None:
        self._security.check(connection)
        if self._current is not None:
            self._current.received(bytes(value))


def _no_reading(_connection: Connection) -> bytes:
    """Refuse: bumble 0.0.236 checks permissions of plain values only, and leaves the asker without an answer."""
    raise att.ATT_Error(error_code=att.ErrorCode.READ_NOT_PERMITTED)


def _no_writing(_connection: Connection, _value: bytes) -> None:
    raise att.ATT_Error(error_code=att.ErrorCode.WRITE_NOT_PERMITTED)


async def _whole(conversation: Awaitable[None]) -> None:
    """Await HCI commands without ever cutting one in half: bumble loses count of its answers, and on Python 3.11 its
    `wait_for` can swallow the cancellation.
    """
    talking = asyncio.ensure_future(conversation)
    try:
        await asyncio.shield(talking)
    except asyncio.CancelledError:
        await asyncio.wait([talking], timeout=HCI_S)
        raise


def advertisement(name: str, service: str) -> bytes:
    """Build the 31 bytes of a legacy advertisement: flags, the service, and as much of the name as fits (8 bytes)."""
    structures = [
        (AdvertisingData.FLAGS, bytes([0x06])),
        (AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS, bytes(UUID(service))),
    ]
    encoded = name.encode()
    room = 31 - len(bytes(AdvertisingData(structures))) - 2
    kind = AdvertisingData.COMPLETE_LOCAL_NAME if len(encoded) <= room else AdvertisingData.SHORTENED_LOCAL_NAME
    return bytes(AdvertisingData([*structures, (kind, encoded[:room])]))
