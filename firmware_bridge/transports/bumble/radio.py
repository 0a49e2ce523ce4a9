"""A bleak backend over bumble: our own host stack for machines whose kernel has no Bluetooth."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeVar

from bleak.assigned_numbers import gatt_char_props_to_strs
from bleak.backends.adapter import BaseBleakAdapter
from bleak.backends.characteristic import BleakGATTCharacteristic
from bleak.backends.client import BaseBleakClient, NotifyCallback
from bleak.backends.descriptor import BleakGATTDescriptor
from bleak.backends.device import BLEDevice
from bleak.backends.scanner import AdvertisementData, AdvertisementDataCallback, BaseBleakScanner
from bleak.backends.service import BleakGATTService, BleakGATTServiceCollection
from bleak.exc import BleakDeviceNotFoundError, BleakError, BleakGATTProtocolError
from bumble import att, core, hci
from bumble.core import AdvertisingData
from bumble.device import Connection, Peer

from firmware_bridge.deadlines import timeout
from firmware_bridge.transports.bumble.host import AdapterSlot, OpenAdapter
from firmware_bridge.transports.bumble.pairing import BumbleBonding

T = TypeVar("T")

DISCONNECT_S: Final = 2.0
WANTED_MTU: Final = 517
"""The largest useful ATT MTU: 512 bytes of attribute, 3 of ATT header, rounded as phones do."""
MAX_QUEUED_ACL: Final = 32
"""ACL packets the controller has not yet accepted; half a virtual controller's buffers."""


# ------------------------------------------------------------------ bleak's three classes


class BumbleScanner(BaseBleakScanner):
    """bleak's scanner; `bind` sets `slot`."""

    slot: ClassVar[AdapterSlot]

    def __init__(
        self,
        detection_callback: AdvertisementDataCallback | None,
        service_uuids: list[str] | None,
        scanning_mode: str = "active",
        **_platform: Any,
    ) -> None:
        super().__init__(detection_callback, service_uuids)
        self._active = scanning_mode != "passive"
        self._adapter: OpenAdapter | None = None

    async def start(self) -> None:
        self.seen_devices = {}
        adapter = await self.slot.adapter()
        await adapter.listen(self, active=self._active)
        self._adapter = adapter

    async def stop(self) -> None:
        adapter, self._adapter = self._adapter, None
        if adapter is not None:
            await adapter.stop_listening(self)

    def on_advertisement(self, advertisement: Any) -> None:
        address = advertisement.address.to_string(False)
        data = _advertisement_data(advertisement, self.seen_devices.get(address))
        if self.is_allowed_uuid(data.service_uuids):
            device = self.create_or_update_device(
                address, address, data.local_name, advertisement.address, data
            )
            self.call_detection_callbacks(device, data)


class BumbleClient(BaseBleakClient):
    """bleak's client; `bind` sets `slot`."""

    slot: ClassVar[AdapterSlot]

    def __init__(
        self,
        address_or_ble_device: BLEDevice | str,
        services: set[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            address_or_ble_device,
            disconnected_callback=options["disconnected_callback"],
            timeout=options["timeout"],
        )
        known = address_or_ble_device if isinstance(address_or_ble_device, BLEDevice) else None
        self._peer_address: hci.Address | None = known.details if known else None
        self._name = known.name if known else None
        self._only = services
        self._adapter: OpenAdapter | None = None
        self._link: Connection | None = None
        self._subscriptions: dict[int, Callable[[bytes], None]] = {}

    @property
    def name(self) -> str:
        return self._name or self.address.replace(":", "-")

    @property
    def mtu_size(self) -> int:
        return 23 if self._link is None else int(self._link.att_mtu)

    @property
    def is_connected(self) -> bool:
        return self._link is not None

    async def connect(self, pair: bool, **kwargs: Any) -> None:  # noqa: FBT001 - bleak's signature
        if self._link is not None:
            raise BleakError("the client is already connected")
        address = self._peer_address or await self._find_address()
        async with timeout(kwargs.get("timeout", self._timeout)):
            adapter = await self.slot.adapter()
            link = await adapter.connect(address)
            self._adapter, self._link = adapter, link
            link.on("disconnection", lambda _reason: self.on_link_lost())
            # lost before we could hear of it
            if adapter.device.connections.get(link.handle) is not link:
                self.on_link_lost()
            try:
                await self._prepare(link, pair=pair)
            except BaseException:
                await self.disconnect()
                raise

    async def _find_address(self) -> hci.Address:
        from bleak import BleakScanner  # noqa: PLC0415 - only for a bare address, which the daemon never uses

        backend = type("Scanner", (BumbleScanner,), {"slot": self.slot})
        device = await BleakScanner.find_device_by_address(
            self.address, timeout=self._timeout, backend=backend
        )
        if device is None:
            raise BleakDeviceNotFoundError(self.address, f"device {self.address} was not found")
        self._name = device.name
        found: hci.Address = device.details
        return found

    async def _prepare(self, link: Connection, *, pair: bool) -> None:
        peer = Peer(link)
        if pair:
            await self.pair()
        elif self.slot.keys.known(str(link.peer_address)) is not None:
            await self._encrypt(link)
        await self._gatt(peer.request_mtu(WANTED_MTU))
        services = BleakGATTServiceCollection()
        wanted = [core.UUID(u) for u in self._only or ()]
        for service in await self._gatt(peer.discover_services(wanted)):
            await self._add_service(services, service)
        self.services = services

    async def _encrypt(self, link: Connection) -> None:
        """Encrypt with the bond's key before any other traffic, as BlueZ does."""
        try:
            await self._gatt(link.encrypt())
        except BleakError as error:
            raise BleakError(f"the glasses do not take our key any more: {error}") from error

    async def _add_service(self, services: BleakGATTServiceCollection, service: Any) -> None:
        entry = BleakGATTService(service, service.handle, _text(service.uuid))
        services.add_service(entry)
        for found in await self._gatt(service.discover_characteristics()):
            properties = list(gatt_char_props_to_strs(found.properties))
            characteristic = BleakGATTCharacteristic(
                found, found.handle, _text(found.uuid), properties, lambda: self.mtu_size - 3, entry
            )
            services.add_characteristic(characteristic)
            for descriptor in await self._gatt(found.discover_descriptors()):
                services.add_descriptor(
                    BleakGATTDescriptor(
                        descriptor, descriptor.handle, _text(descriptor.type), characteristic
                    )
                )

    def on_link_lost(self) -> None:
        """Drop the link and notify bleak, exactly once per connection."""
        if self._link is None:
            return
        self._link = None
        self.services = None
        self._subscriptions = {}
        if self._disconnected_callback is not None:
            self._disconnected_callback()

    async def disconnect(self) -> None:
        link, adapter = self._link, self._adapter
        if link is not None and adapter is not None and adapter.dead is None:
            try:
                async with timeout(DISCONNECT_S):
                    # it was gone already
                    with contextlib.suppress(BleakError, core.BaseBumbleError):
                        await adapter.run(link.disconnect())
            except TimeoutError:
                # An unowned link would block the glasses for everyone: close the adapter instead.
                await adapter.close("the controller does not answer a disconnect")
        self.on_link_lost()

    async def pair(self, *_args: Any, **_kwargs: Any) -> None:
        link = self._up()
        await self._gatt(link.pair())
        keys = self.slot.keys.known(str(link.peer_address))
        # bumble 0.0.236 swaps the roles' keys of a legacy bond and can never use it
        if keys is None or keys.ltk is None:
            raise BleakError("pairing left no key of LE Secure Connections")

    async def unpair(self) -> None:
        await self.disconnect()
        await BumbleBonding(self.slot).forget(self.address)

    def _up(self) -> Connection:
        if self._link is None:
            raise BleakError("not connected")
        return self._link

    async def _gatt(self, operation: Coroutine[Any, Any, T], *, answered: bool = True) -> T:
        """Run an operation of bumble, which would use a lost link and wait 30 s for its answer."""
        assert self._adapter is not None
        if self._link is None:
            operation.close()
            raise BleakError("disconnected")
        try:
            return await self._adapter.run(
                _while_up(self._link, operation) if answered else operation
            )
        except att.ATT_Error as error:
            raise BleakGATTProtocolError(error.error_code) from error
        except core.BaseBumbleError as error:
            raise BleakError(str(error)) from error

    async def read_gatt_char(
        self, characteristic: BleakGATTCharacteristic, **_options: Any
    ) -> bytearray:
        self._up()
        return bytearray(await self._gatt(characteristic.obj.read_value()))

    async def read_gatt_descriptor(
        self, descriptor: BleakGATTDescriptor, **_options: Any
    ) -> bytearray:
        self._up()
        return bytearray(await self._gatt(descriptor.obj.read_value()))

    async def write_gatt_char(
        self,
        characteristic: BleakGATTCharacteristic,
        data: Any,
        response: bool,  # noqa: FBT001 - bleak's signature
    ) -> None:
        link = self._up()
        value = bytes(data)
        if not response:
            if len(value) > self.mtu_size - 3:
                raise BleakError(f"{len(value)} bytes do not fit a write of {self.mtu_size - 3}")
            await self._room(link)
        await self._gatt(
            characteristic.obj.write_value(value, with_response=response), answered=response
        )

    async def _room(self, link: Connection) -> None:
        """Wait until the controller has accepted enough packets: bumble's queue is unbounded."""
        while (
            (queue := link.data_packet_queue) is not None
            and queue.pending > MAX_QUEUED_ACL
            and self._link is link
        ):
            flowed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            queue.once("flow", lambda done=flowed: done.done() or done.set_result(None))
            assert self._adapter is not None
            await self._adapter.run(link.cancel_on_disconnection(flowed))
        self._up()

    async def write_gatt_descriptor(self, descriptor: BleakGATTDescriptor, data: Any) -> None:
        self._up()
        await self._gatt(descriptor.obj.write_value(bytes(data), with_response=True))

    async def start_notify(
        self, characteristic: BleakGATTCharacteristic, callback: NotifyCallback, **_kwargs: Any
    ) -> None:
        self._up()

        def deliver(value: bytes) -> None:
            callback(bytearray(value))

        self._subscriptions[characteristic.handle] = deliver
        await self._gatt(characteristic.obj.subscribe(deliver, prefer_notify=True))

    async def stop_notify(self, characteristic: BleakGATTCharacteristic) -> None:
        self._up()
        subscriber = self._subscriptions.pop(characteristic.handle, None)
        await self._gatt(characteristic.obj.unsubscribe(subscriber))


async def _while_up(link: Connection, operation: Coroutine[Any, Any, T]) -> T:
    """Await an answer of the other side; cancelled when the link is lost."""
    asking = asyncio.ensure_future(operation)

    def lost(*_reason: object) -> None:
        if not asking.done():
            asking.cancel()
            # Python 3.11's `wait_for`, in bumble, can swallow the first
            asyncio.get_running_loop().call_soon(lost)

    link.on("disconnection", lost)
    try:
        return await asking
    finally:
        asking.cancel()
        link.remove_listener("disconnection", lost)


class BumbleAdapter(BaseBleakAdapter):
    """bleak's adapter; `bind` sets `slot`."""

    slot: ClassVar[AdapterSlot]

    def __init__(self, adapter: OpenAdapter) -> None:
        self._adapter = adapter

    @classmethod
    async def get(cls, **_options: Any) -> Self:
        return cls(await cls.slot.adapter())

    async def get_connected_devices(self, service_uuids: frozenset[str]) -> list[BLEDevice]:  # noqa: ARG002 - bleak's signature
        """Return every link of this adapter; virtual links end with their host."""
        links = self._adapter.device.connections.values()
        return [
            BLEDevice(link.peer_address.to_string(False), None, link.peer_address) for link in links
        ]


class Bound:
    """The three classes bound to one radio; bleak takes classes, not instances."""

    def __init__(self, moniker: str, air: Any = None, keys: Path | None = None) -> None:
        self.slot = AdapterSlot(moniker, air, keys)
        self.bonding = BumbleBonding(self.slot)
        self.scanner: type[BumbleScanner] = type(
            "BoundScanner", (BumbleScanner,), {"slot": self.slot}
        )
        self.client: type[BumbleClient] = type("BoundClient", (BumbleClient,), {"slot": self.slot})
        self.adapter: type[BumbleAdapter] = type(
            "BoundAdapter", (BumbleAdapter,), {"slot": self.slot}
        )


# ------------------------------------------------------------------ advertisements


def _text(identifier: Any) -> str:
    """Return lower-case 128-bit UUID strings, as bleak requires."""
    return str(uuid.UUID(bytes=bytes(reversed(identifier.to_bytes(force_128=True)))))


def _uuids(payload: bytes, size: int) -> list[str]:
    whole = len(payload) - len(payload) % size
    return [_text(core.UUID.from_bytes(payload[i : i + size])) for i in range(0, whole, size)]


_NAMES: Final = (AdvertisingData.COMPLETE_LOCAL_NAME, AdvertisingData.SHORTENED_LOCAL_NAME)
_SERVICES: Final = {
    AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS: 2,
    AdvertisingData.INCOMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS: 2,
    AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS: 16,
    AdvertisingData.INCOMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS: 16,
}


def _advertisement_data(
    advertisement: Any, earlier: tuple[BLEDevice, AdvertisementData] | None
) -> AdvertisementData:
    """Parse an advertisement, merged with earlier ones: its parts may come in two packets."""
    name: str | None = earlier[1].local_name if earlier else None
    uuids = list(earlier[1].service_uuids) if earlier else []
    makers = dict(earlier[1].manufacturer_data) if earlier else {}
    service_data = dict(earlier[1].service_data) if earlier else {}
    power: int | None = None
    for kind, payload in advertisement.data.ad_structures:
        if kind in _NAMES:
            name = payload.decode(errors="replace")
        elif kind in _SERVICES:
            uuids += _uuids(payload, _SERVICES[kind])
        elif kind == AdvertisingData.MANUFACTURER_SPECIFIC_DATA and len(payload) >= 2:
            makers[int.from_bytes(payload[:2], "little")] = payload[2:]
        elif kind == AdvertisingData.SERVICE_DATA_128_BIT_UUID and len(payload) >= 16:
            service_data[_uuids(payload[:16], 16)[0]] = payload[16:]
        elif kind == AdvertisingData.TX_POWER_LEVEL and payload:
            power = int.from_bytes(payload[:1], "little", signed=True)
    return AdvertisementData(
        name,
        makers,
        service_data,
        list(dict.fromkeys(uuids)),
        power,
        advertisement.rssi,
        (advertisement,),
    )
