"""Joins the connections of both sides of a pair into one, and reconnects a lost side."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Final

from firmware_bridge.errors import BridgeError, LinkLost, LostReason, RadioError
from firmware_bridge.sides import Side, Sided, SideNews, SidePacket
from firmware_bridge.transport import Transport

log = logging.getLogger(__name__)

Join = Callable[[Side], Awaitable[Transport[bytes]]]
"""Finds and connects one side. Raises `RadioError`."""

FIRST_REST_S: Final = 1.0
LONGEST_REST_S: Final = 30.0
"""Seconds between attempts to join a side; each also listens, so it hears a returning side."""
STABLE_S: Final = 10.0
"""A side connected for this many seconds is rejoined at once when lost, else after a pause."""
MAX_QUEUED: Final = 2048
"""Packets of both sides not yet read; each connection has its own limit as well."""


class SidePair:
    """One connection to a pair; implements `Transport[Sided]`. Used once.

    First reports which sides are connected. A lost side becomes `SideNews` and is rejoined with
    growing pauses while the other continues; the connection ends when no side is left. A codec
    gives a side up with `SideNews(side, up=False)`.
    """

    def __init__(
        self,
        address: str,
        join: Join,
        there: Mapping[Side, Transport[bytes]],
        *,
        rest: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._address = address
        self._join = join
        self._rest = rest
        self._there = dict(there)
        self._first = next(iter(self._there.values()))
        self._queue: asyncio.Queue[Sided | BaseException | None] = asyncio.Queue()
        self._over = False
        self._dropped = {side: asyncio.Event() for side in Side}
        for side in sorted(self._there):
            self._queue.put_nowait(SideNews(side, up=True))
        self._running = self._start()

    @property
    def name(self) -> str:
        return self._first.name

    @property
    def address(self) -> str:
        """The pair's name: the same whichever side is connected."""
        return self._address

    @property
    def max_packet(self) -> int:
        """Bytes that both sides can carry."""
        return min(
            (each.max_packet for each in self._there.values()), default=self._first.max_packet
        )

    async def write(self, packet: Sided) -> None:
        """Send a packet to its side, or drop it if that side is away, as the codec is informed.

        Raises `LinkLost` if no side is left.
        """
        there = self._there.get(packet.side)
        if isinstance(packet, SideNews):
            if not packet.up:
                self._dropped[
                    packet.side
                ].set()  # closing takes its time: that must not hold the other side up
            return
        if self._over:
            raise LinkLost(LostReason.DISCONNECTED, "neither side is there")
        if there is None:
            return
        # cut before this side came back with less; joined again it gets its own
        if len(packet.data) > there.max_packet:
            log.debug(
                "the %s side carries %d bytes, not %d",
                packet.side,
                there.max_packet,
                len(packet.data),
            )
            self._dropped[packet.side].set()
            return
        try:
            await there.write(packet.data)
        except LinkLost as lost:
            log.debug("the %s side did not take a packet: %s", packet.side, lost)
            # it may be back by now, over a connection that has no fault
            if self._there.get(packet.side) is there:
                self._dropped[packet.side].set()

    async def packets(self) -> AsyncIterator[Sided]:
        """Yield packets, losses and returns of both sides, until no side is left."""
        while (packet := await self._queue.get()) is not None:
            if isinstance(packet, BaseException):
                raise packet
            yield packet
        self._queue.put_nowait(None)  # later readers also see the end

    async def close(self) -> None:
        """Disconnect both sides; idempotent, never raises."""
        self._end(None)
        self._running.cancel()
        await self._close(wait_for=[self._running])
        if self._there:  # a join that was over in this very moment
            await self._close()

    async def _close(self, wait_for: Iterable["asyncio.Future[None]"] = ()) -> None:
        closing = [asyncio.ensure_future(each.close()) for each in self._there.values()]
        try:
            await asyncio.wait([*wait_for, *closing])
        finally:
            for each in closing:
                each.cancel()

    # -------------------------------------------------------------- one side's life

    def _start(self) -> "asyncio.Task[None]":
        """Start the service; `close` ends it, and it ends itself when no side is left."""
        return asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as lives:
                for side in Side:
                    lives.create_task(self._live(side), name=f"side-{side}")
        except* LinkLost:
            self._end(None)
        except* Exception as fault:  # noqa: BLE001 - a bug must not look like silent glasses
            self._end(fault)

    async def _live(self, side: Side) -> None:
        """Read one side while connected, rejoin it otherwise. Raises `LinkLost` if none is left."""
        time = asyncio.get_running_loop().time
        flaps = 0
        while True:
            there, since = self._there.get(side), time()
            if there is not None:
                await self._read(side, there, again=flaps > 0)
                flaps = 0 if time() - since >= STABLE_S else flaps + 1
            await self._again(side, flaps)

    async def _read(self, side: Side, there: Transport[bytes], *, again: bool) -> None:
        reading = asyncio.ensure_future(self._pump(side, there))
        dropped = asyncio.ensure_future(self._dropped[side].wait())
        try:
            await asyncio.wait({reading, dropped}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
        finally:
            reading.cancel()
            dropped.cancel()
            await asyncio.wait({reading, dropped})
        del self._there[side]
        if self._there:
            level = logging.DEBUG if again else logging.WARNING
            log.log(level, "the %s side is lost; the other carries on", side)
            self._queue.put_nowait(SideNews(side, up=False, reason="lost"))
        else:
            self._end(None)
        await there.close()
        if self._over:
            raise LinkLost(LostReason.DISCONNECTED)

    async def _pump(self, side: Side, there: Transport[bytes]) -> None:
        async for packet in there.packets():
            if self._queue.qsize() >= MAX_QUEUED:
                log.warning("packets of the %s side are not read; disconnected", side)
                return
            self._queue.put_nowait(SidePacket(side, packet))

    async def _again(self, side: Side, flaps: int) -> None:
        rest_s = FIRST_REST_S
        if flaps > 1:
            rest_s = min(LONGEST_REST_S, FIRST_REST_S * 2 ** min(flaps - 2, 8))
            await self._rest(rest_s)
        while True:
            try:
                joined = await self._join(side)
            except (RadioError, BridgeError) as error:
                log.debug("the %s side is not there: %s", side, error)
                await self._rest(rest_s)
                rest_s = min(LONGEST_REST_S, rest_s * 2)
                continue
            self._there[side] = joined
            self._dropped[side].clear()
            log.log(logging.DEBUG if flaps > 1 else logging.INFO, "the %s side is there", side)
            self._queue.put_nowait(SideNews(side, up=True))
            return

    def _end(self, fault: BaseException | None) -> None:
        if not self._over:
            self._over = True
            self._queue.put_nowait(fault)
            self._queue.put_nowait(None)
