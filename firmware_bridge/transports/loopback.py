"""Two transports connected in memory, for tests, with optional packet faults."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Final

from firmware_bridge.errors import LinkLost, LocalMisuse, LostReason
from firmware_bridge.packets import MIN_PACKET

Air = Callable[[bytes], Iterable[bytes]]
"""Fate of a packet: `()` loses it, `(p, p)` doubles it; a held one may follow later."""

QUEUE_PACKETS: Final = 256
"""Packets in transit per direction; writers wait when it is full, as on a radio."""


def clear_air(packet: bytes) -> Iterable[bytes]:
    """Deliver everything once."""
    return (packet,)


class Faults:
    """An `Air` that loses, doubles or delays (by `late[i]` packets) by position, from 0."""

    def __init__(
        self,
        *,
        lost: Iterable[int] = (),
        doubled: Iterable[int] = (),
        late: Mapping[int, int] | None = None,
    ) -> None:
        self._lost = frozenset(lost)
        self._doubled = frozenset(doubled)
        self._late = dict(late or {})
        self._waiting: list[tuple[int, bytes]] = []
        self.seen = 0

    def __call__(self, packet: bytes) -> list[bytes]:
        at, self.seen = self.seen, self.seen + 1
        due = [held for until, held in self._waiting if until <= at]
        self._waiting = [(until, held) for until, held in self._waiting if until > at]
        if at in self._late:
            self._waiting.append((at + self._late[at], packet))
            return due
        if at in self._lost:
            return due
        return [packet] * (2 if at in self._doubled else 1) + due


class _Pipe:
    """One direction."""

    def __init__(self, air: Air) -> None:
        self.air = air
        self.queue: deque[bytes] = deque()
        self.changed = asyncio.Condition()
        self.closed = False

    async def put(self, packet: bytes) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.closed or len(self.queue) < QUEUE_PACKETS)
            if self.closed:
                raise LinkLost(LostReason.DISCONNECTED, "the loopback was closed")
            self.queue.extend(self.air(packet))
            self.changed.notify_all()

    async def get(self) -> bytes | None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.closed or bool(self.queue))
            packet = self.queue.popleft() if self.queue else None
            self.changed.notify_all()
            return packet

    async def close(self) -> None:
        async with self.changed:
            self.closed = True
            self.changed.notify_all()


class LoopbackTransport:
    """One end; implements `Transport`. `max_packet` may be raised at any time, like an ATT MTU."""

    name: Final = "loopback"

    def __init__(self, address: str, outbound: _Pipe, inbound: _Pipe, *, max_packet: int) -> None:
        self.address = address
        self.max_packet = max_packet
        self._outbound = outbound
        self._inbound = inbound

    async def write(self, packet: bytes) -> None:
        """Send one packet. Raises `LinkLost` if either end was closed."""
        if len(packet) > self.max_packet:
            raise LocalMisuse(
                f"a packet of {len(packet)} bytes; this link carries {self.max_packet}"
            )
        await self._outbound.put(packet)

    async def packets(self) -> AsyncIterator[bytes]:
        """Yield packets from the other end, including those in transit when it closed."""
        while (packet := await self._inbound.get()) is not None:
            yield packet

    async def close(self) -> None:
        """End the connection for both; idempotent."""
        await self._outbound.close()
        await self._inbound.close()


def loopback_pair(
    *, max_packet: int = MIN_PACKET, to_glasses: Air = clear_air, to_central: Air = clear_air
) -> tuple[LoopbackTransport, LoopbackTransport]:
    """Return the central's end and the glasses' end of one connection."""
    down, up = _Pipe(to_glasses), _Pipe(to_central)
    central = LoopbackTransport("loopback:glasses", down, up, max_packet=max_packet)
    glasses = LoopbackTransport("loopback:central", up, down, max_packet=max_packet)
    return central, glasses
