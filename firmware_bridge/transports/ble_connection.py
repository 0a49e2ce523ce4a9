"""One BLE connection through bleak: connect, read `info`, subscribe, move packets."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import LinkLost, LostReason, RadioError, RadioReason
from firmware_bridge.models import Channel
from firmware_bridge.packets import SUBSCRIBE, ChannelPacket, channel_of
from firmware_bridge.transports.ble import GATT_TIMEOUT_S, Radio, Sighting
from firmware_bridge.transports.radio_errors import classify

log = logging.getLogger(__name__)
T = TypeVar("T")

CLOSE_TIMEOUT_S: Final = 3.0
"""Seconds for a disconnect; bluetoothd takes about 2 s (measured 1.9 to 2.7)."""
MTU_SETTLE_S: Final = 1.0
"""Seconds to wait for the MTU: right after connecting BlueZ may report the smallest one."""
SMALLEST_PACKET: Final = 20
MAX_QUEUED_PACKETS: Final = 1024
"""Packets not yet read; the codec grants 32 frames, so a peer sending 1,024 is disconnected."""


async def connect(radio: Radio, sighting: Sighting, *, timeout_s: float) -> "BleTransport":
    """Connect, read `info`, subscribe. Raises `RadioError`."""
    # two connects at once fail both, and a scan beside one slows it (seen on BlueZ)
    async with radio.lock:
        transport = BleTransport(radio, sighting)
        try:
            if radio.open is not None:
                await radio.open()
            async with timeout(timeout_s):
                await _open(transport, timeout_s)
        except asyncio.CancelledError:
            await transport.close()
            raise
        except RadioError:
            await transport.close()
            raise
        except Exception as error:  # as in _listen
            await transport.close()
            doing = f"connecting to {sighting.address}"
            raise classify(error, doing, radio=radio.moniker, bonded=sighting.bonded) from error
        return transport


async def _open(transport: "BleTransport", timeout_s: float) -> None:
    """Open the connection, unless BlueZ is lost: then waiting for the timeout is useless."""
    opening = asyncio.ensure_future(transport.open(timeout_s))
    gone = asyncio.ensure_future(transport.adapter_gone.wait())
    try:
        await asyncio.wait({opening, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():
            raise ConnectionError(transport.why)
        opening.result()
    finally:
        opening.cancel()
        gone.cancel()
        await asyncio.wait({opening, gone}, timeout=CLOSE_TIMEOUT_S)


class BleTransport:
    """One connection, made by `connect`; implements `Transport`. Used once."""

    def __init__(self, radio: Radio, sighting: Sighting) -> None:
        self._radio = radio
        self._sighting = sighting
        self._client: Any = None
        self._rx: Any = None
        self._channels: dict[str, Any] = {}
        self._on_request: set[str] = set()
        self._carries: int | None = None
        self._packets: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._lost: LostReason | None = None
        self.why = ""
        """Details about the end, beyond its reason, if any."""
        self.adapter_gone = asyncio.Event()
        self._unwatch: Callable[[], None] | None = None
        self.info_bytes = b""
        """Value of the family's info characteristic; empty if it has none."""

    @property
    def name(self) -> str:
        return self._radio.name

    @property
    def address(self) -> str:
        return self._sighting.address

    @property
    def max_packet(self) -> int:
        """Bytes one write can carry now; may grow while the MTU is being negotiated."""
        if self._carries is not None:
            return max(SMALLEST_PACKET, self._carries)
        size = (
            SMALLEST_PACKET if self._rx is None else int(self._rx.max_write_without_response_size)
        )
        return max(SMALLEST_PACKET, size)

    async def open(self, timeout_s: float) -> None:
        """Connect and subscribe; called once, by `connect`."""
        from bleak import BleakClient  # noqa: PLC0415 - as in _listen

        options = {} if self._radio.client is None else {"backend": self._radio.client}
        self._client = BleakClient(
            self._sighting.device,
            disconnected_callback=lambda _client: self._end(LostReason.DISCONNECTED),
            timeout=timeout_s,
            **options,
        )
        if self._radio.watch is not None:
            details = self._sighting.device.details
            self._unwatch = self._radio.watch(
                self._adapter_lost, details["path"] if isinstance(details, dict) else ""
            )
        await self._client.connect()
        where = self._sighting.entry.gatt
        self._rx = self._characteristic(where.rx or where.tx or where.channels[0].uuid)
        if self._radio.mtu is not None:
            await self._settle(self._radio.mtu)
        if where.info is not None:
            self.info_bytes = bytes(
                await _timed(self._client.read_gatt_char(self._characteristic(where.info)))
            )
        for channel in where.channels:
            await self._open_channel(channel)
        if where.tx:
            tx = self._characteristic(where.tx)
            await _timed(self._client.start_notify(tx, self._received))

    async def _open_channel(self, channel: Channel) -> None:
        if channel.optional and self._client.services.get_characteristic(channel.uuid) is None:
            return
        try:
            await self._begin_channel(channel)
        except Exception as error:  # as in _listen
            if not channel.optional or self._lost is not None:
                raise
            log.debug("%s: no %s: %s", self.address, channel.name, classify(error, "opening it"))

    async def _begin_channel(self, channel: Channel) -> None:
        self._channels[channel.name] = self._characteristic(channel.uuid)
        if channel.first:
            await self._read(channel.name)
        if channel.on_request:
            self._on_request.add(channel.name)
        elif channel.notify:
            await self._subscribe(channel.name)

    async def _subscribe(self, name: str) -> None:
        receive = partial(self._received, channel=name)
        await _timed(self._client.start_notify(self._channels[name], receive))

    async def _read(self, name: str) -> None:
        """Read a channel; its value arrives as a packet."""
        found = self._channels[name]
        self._received(found, await _timed(self._client.read_gatt_char(found)), channel=name)

    def _characteristic(self, uuid: str) -> Any:
        if self._client is None or self._lost is not None or not self._client.is_connected:
            raise ConnectionError("disconnected during the connection")
        found = self._client.services.get_characteristic(uuid)
        if found is None:
            raise RadioError(
                RadioReason.STALE_CACHE,
                f"{self.address} has no characteristic {uuid}",
                "these are other glasses than their advertisement says; update their firmware",
            )
        return found

    async def _settle(self, mtu: Callable[[str], Awaitable[int]]) -> None:
        """Query the MTU, and give BlueZ a moment to learn it; bleak keeps that of an earlier
        connection (bleak 3.1), and a packet too large for this one ends it.
        """
        try:
            async with timeout(MTU_SETTLE_S):
                while self._lost is None and (self._carries or 0) <= SMALLEST_PACKET:
                    self._carries = await mtu(self._rx.obj[0]) - 3
                    await asyncio.sleep(0 if self._carries > SMALLEST_PACKET else 0.05)
        except Exception as error:  # noqa: BLE001 - BlueZ before 5.62 lacks it; then bleak's value is used
            log.debug("the MTU of %s: %s", self.address, classify(error, "asking BlueZ"))

    async def write(self, packet: bytes) -> None:
        """Send one packet, without response where the characteristic allows that, or read a channel
        that is only read, or switch the notifications of one `on_request`. Raises `LinkLost`;
        ValueError for a packet that is too large.
        """
        if self._lost is not None:
            raise LinkLost(self._lost)
        if len(packet) > self.max_packet:
            raise ValueError(f"a packet of {len(packet)} bytes; {self.max_packet} fit one write")
        name = channel_of(packet)
        characteristic = self._channels.get(name) if name else self._rx
        if characteristic is None:
            log.debug("%s has no %s; a packet for it is dropped", self.address, name)
            return
        try:
            if name in self._on_request:
                await self._switch(name, on=packet == SUBSCRIBE)
            else:
                await self._write(characteristic, packet, name)
        except Exception as error:  # as in _listen
            self._end(LostReason.WRITE_FAILED)
            raise LinkLost(self._lost_because(), str(classify(error, "writing"))) from error

    async def _write(self, characteristic: Any, packet: bytes, name: str) -> None:
        can = characteristic.properties
        if "write" in can or "write-without-response" in can:
            response = "write-without-response" not in can
            write = self._client.write_gatt_char(characteristic, packet, response=response)
            await _timed(write)
        else:
            await self._read(name)

    async def _switch(self, name: str, *, on: bool) -> None:
        if on:
            await self._subscribe(name)
        else:
            await _timed(self._client.stop_notify(self._channels[name]))

    async def packets(self) -> AsyncIterator[bytes]:
        """Yield packets until the connection is lost; raises `LinkLost` if the reason is known."""
        while (packet := await self._packets.get()) is not None:
            yield packet
        self._packets.put_nowait(None)  # later readers also see the end
        if self._lost in (LostReason.ADAPTER_LOST, LostReason.PROTOCOL):
            raise LinkLost(self._lost, self.why)

    async def close(self) -> None:
        """Disconnect; idempotent, never raises."""
        client, self._client = self._client, None
        self._end(LostReason.CLOSED)
        unwatch, self._unwatch = self._unwatch, None
        if unwatch is not None:
            unwatch()
        if client is None:
            return
        try:
            async with timeout(CLOSE_TIMEOUT_S):
                await client.disconnect()
        except Exception as error:  # noqa: BLE001 - it is over anyway; as in _listen
            log.debug("disconnecting %s: %s", self.address, classify(error, "disconnecting"))

    def _received(self, _characteristic: Any, data: bytearray, *, channel: str = "") -> None:
        if self._lost is not None:
            return
        if self._packets.qsize() >= MAX_QUEUED_PACKETS:
            log.warning("%s ignores its credit; disconnected", self.address)
            self._end(LostReason.PROTOCOL, "the glasses ignore their credit")
            return
        self._packets.put_nowait(ChannelPacket(bytes(data), channel) if channel else bytes(data))

    def _lost_because(self) -> LostReason:
        return self._lost or LostReason.DISCONNECTED

    def _adapter_lost(self, why: str) -> None:
        self._end(LostReason.ADAPTER_LOST, why)
        self.adapter_gone.set()

    def _end(self, reason: LostReason, why: str = "") -> None:
        if self._lost is None:
            self._lost, self.why = reason, why
            self._packets.put_nowait(None)


async def _timed(operation: Awaitable[T]) -> T:
    """Await an operation in a task of its own: on Python 3.11 bumble's `wait_for` can swallow our
    cancellation, and then we would go on for ever.
    """
    doing = asyncio.ensure_future(operation)
    try:
        async with timeout(GATT_TIMEOUT_S):
            await asyncio.wait([doing])
        return doing.result()
    finally:
        if doing.done():  # perhaps in the moment in which we were cancelled
            _look_at(doing)
        else:
            doing.cancel()
            doing.add_done_callback(_look_at)


def _look_at(ended: "asyncio.Future[Any]") -> None:
    """Nobody waits for it any more: its error is none."""
    if not ended.cancelled():
        ended.exception()
