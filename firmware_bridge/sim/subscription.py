"""One subscribed central: packets in, notifications out, with flow control, loss and delay."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

from bumble.device import Connection, Device

from firmware_bridge.errors import LinkLost, LostReason
from firmware_bridge.sim.radio_faults import RadioFaults

log = logging.getLogger(__name__)

MAX_QUEUED_PACKETS: Final = 1024
"""Packets not yet processed: four times the largest window (255 frames); more disconnects."""
MAX_QUEUED_ACL: Final = 32
MAX_LATE_PACKETS: Final = 256
"""Packets a slow link holds; the glasses wait when it is full."""


class Subscription:
    """One central subscribed to tx, until it unsubscribes or disconnects. Used once."""

    def __init__(
        self,
        connection: Connection,
        device: Device,
        tx: Any,
        trouble: RadioFaults,
        hang_up: Callable[[], object],
    ) -> None:
        self._connection = connection
        self._device = device
        self._tx = tx
        self._trouble = trouble
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

    async def packets(self) -> AsyncIterator[bytes]:
        while (packet := await self._inbox.get()) is not None:
            yield packet

    async def notify(self, packet: bytes) -> None:
        if self._over.is_set():
            raise LinkLost(LostReason.DISCONNECTED)
        if self._trouble.loses():
            return
        if not self._trouble.late_s and not self._on_the_way:
            await self._send(packet)
            return
        self._on_the_way += 1
        await self._late.put((asyncio.get_running_loop().time() + self._trouble.late_s, packet))

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
        await self._device.notify_subscriber(self._connection, self._tx, packet)

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
