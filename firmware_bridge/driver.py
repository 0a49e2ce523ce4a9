"""Connects one codec with one transport: pumps packets, matches answers to requests, detects
silence.

A driver is used once; reconnecting is up to the caller.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final, Generic

from msgspec import Struct, field

from firmware_bridge.codec import NEED_DATA, Codec, Incoming, P
from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import (
    CommandRefused,
    CommandTimeout,
    LinkLost,
    LocalMisuse,
    LostReason,
    RemoteViolation,
    Violation,
)
from firmware_bridge.messages import (
    Command,
    Done,
    Event,
    Failed,
    GlassesInfo,
    MicrophoneChunk,
    Ping,
    Reply,
)
from firmware_bridge.transport import Transport

log = logging.getLogger(__name__)

HEARTBEAT_S: Final = 5.0
"""Seconds of silence after which a ping is sent, and seconds allowed for its answer."""
BACKLOG_BYTES: Final = 16 * 1024
"""Bytes that may wait for the radio: half a second at the 29 kB/s measured on BlueZ; more would
only delay urgent messages.
"""
MAX_EVENTS: Final = 256
"""Events not yet consumed: 5 s of microphone chunks at 20 ms."""
MAX_VIOLATIONS: Final = 16
"""Consecutive bad packets, without a good message between, before the peer is rejected."""
WRITE_S: Final = 10.0
"""Seconds for one write without response; BlueZ answers in milliseconds or never."""
CLOSE_S: Final = 5.0
POST_S: Final = 10.0


class Passing(StrEnum):
    """What passes through a driver, and the value that a tap is given with it."""

    CONNECTED = "connected"
    """a new connection: the model, and the transport"""
    SIZE = "size"
    """bytes that one packet can carry from here on"""
    COMMAND = "command"
    """a command and the number that its answer will have"""
    OUT = "out"
    """a packet to the glasses"""
    IN = "in"
    """a packet from the glasses"""
    MESSAGE = "message"
    """what the packets of the glasses meant: an `Incoming`"""


Tap = Callable[[float, Passing, Any], None]
"""Takes (time, what passes, its value); it neither waits nor raises."""


class DriverCounters(Struct):
    """Counters of one connection, shown by `glassd status`."""

    packets_in: int = 0
    packets_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    violations: Counter[Violation] = field(default_factory=Counter)
    events_dropped: int = 0
    late_answers: int = 0
    pings: int = 0


class Driver(Generic[P]):
    """One connection, used once. `run()` is the service; the other methods may be called while it
    runs.

    After the end every call raises the `LinkLost` that ended it: the first error, not its
    consequences.
    """

    def __init__(
        self,
        transport: Transport[P],
        codec: Codec[P],
        *,
        clock: Callable[[], float],
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        self.counters = DriverCounters()
        self.tap: Tap | None = None
        """Is shown all that passes, while somebody records."""
        self._transport = transport
        self._codec = codec
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._max_packet = 0
        self._heard_at = clock()
        self._bad_in_a_row = 0
        self._started = False
        self._lost: LinkLost | None = None
        self._pending: dict[int, asyncio.Future[Reply]] = {}
        self._events: deque[Event] = deque()
        self._wake = asyncio.Event()  # there may be something to send
        self._progress = asyncio.Event()  # the backlog may have become smaller
        self._news = asyncio.Event()  # there may be an event to take

    # -------------------------------------------------------------- life

    async def run(self) -> None:
        """Pump until the connection ends, then raise the `LinkLost` that ended it."""
        if self._started:
            raise LocalMisuse("a driver is used once")
        self._started = True
        self._heard_at = self._clock()
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump_in(), name="driver-in")
                pumps.create_task(self._pump_out(), name="driver-out")
                pumps.create_task(self._heartbeat(), name="driver-heartbeat")
        except* LinkLost as group:
            self._end(_first(group))
        finally:
            self._end(LinkLost(LostReason.CLOSED, "the driver was stopped"))
            await self._close()
        raise self._over()

    def _end(self, lost: LinkLost) -> None:
        """Record the reason once and wake everything that waits; idempotent."""
        if self._lost is None:
            self._lost = lost
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(self._over())
        for waiting in (self._wake, self._progress, self._news):
            waiting.set()

    def _over(self) -> LinkLost:
        """Return a new error for each caller: a shared one would collect all their tracebacks."""
        lost = self._lost or LinkLost(LostReason.CLOSED)
        copy = LinkLost(lost.reason)
        copy.args = lost.args
        return copy

    async def _close(self) -> None:
        try:
            async with timeout(CLOSE_S):
                await self._transport.close()
        except TimeoutError:
            log.warning(
                "%s %s did not close within %g s",
                self._transport.name,
                self._transport.address,
                CLOSE_S,
            )

    # -------------------------------------------------------------- requests and events

    async def request(self, command: Command, *, timeout_s: float) -> Reply:
        """Send, return the answer. Raises `CommandRefused`, `CommandTimeout`, `LinkLost`."""
        try:
            async with timeout(timeout_s):
                await self._room()
                with self._awaiting(command) as answer:
                    reply = await answer
        except TimeoutError:
            raise CommandTimeout(
                f"{type(command).__name__}: no answer in {timeout_s:g} s"
            ) from None
        if isinstance(reply, Failed):
            raise CommandRefused(reply.code, reply.detail)
        return reply

    async def post(self, command: Command, *, timeout_s: float = POST_S) -> None:
        """Send a command without answer when there is room; raises as `request` does."""
        try:
            async with timeout(timeout_s):
                await self._room()
        except TimeoutError:
            raise CommandTimeout(f"{type(command).__name__}: no room in {timeout_s:g} s") from None
        self._send(command)

    def _send(self, command: Command) -> int:
        """Queue a command; return the number that its answer will have."""
        now = self._clock()
        number = self._codec.send(command, now)
        if self.tap is not None:
            self.tap(now, Passing.COMMAND, (command, number))
        self._wake.set()
        return number

    @contextmanager
    def _awaiting(self, command: Command) -> Iterator[asyncio.Future[Reply]]:
        """Queue the command and register for its answer, with no await between."""
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        number = self._send(command)
        if number == 0:
            raise LocalMisuse(f"{type(command).__name__} has no answer: post it")
        self._pending[number] = answer
        try:
            yield answer
        finally:
            del self._pending[number]
            if answer.done() and not answer.cancelled():
                answer.exception()  # seen, also when the asker was cancelled in the same moment

    async def _room(self) -> None:
        """Wait until the backlog is small enough. Raises `LinkLost`."""
        while self._lost is None and self._codec.backlog() > BACKLOG_BYTES:
            self._progress.clear()
            await self._progress.wait()
        if self._lost is not None:
            raise self._over()

    async def events(self) -> AsyncIterator[Event]:
        """Yield events in order, each once, until the connection ends; `run()` raises why."""
        while self._events or self._lost is None:
            if self._events:
                yield self._events.popleft()
            else:
                self._news.clear()
                await self._news.wait()

    # -------------------------------------------------------------- pumps

    async def _pump_in(self) -> None:
        async for packet in self._transport.packets():
            self.counters.packets_in += 1
            self.counters.bytes_in += len(packet)
            self._heard_at = self._clock()
            self._update_packet_size()
            if self.tap is not None:
                self.tap(self._heard_at, Passing.IN, packet)
            try:
                self._codec.receive_packet(packet, self._heard_at)
            except RemoteViolation as violation:
                self._violated(violation)
            self._take()
            self._wake.set()
            self._progress.set()
        raise LinkLost(LostReason.DISCONNECTED)

    def _take(self) -> None:
        """Process the codec's new messages: received ones, and its own after a timeout."""
        while (incoming := self._codec.next_event()) is not NEED_DATA:
            self._bad_in_a_row = 0
            if self.tap is not None:
                self.tap(self._clock(), Passing.MESSAGE, incoming)
            self._dispatch(incoming)

    async def _pump_out(self) -> None:
        """The only writer, and the only caller of the codec's timer."""
        while True:
            self._wake.clear()
            now = self._clock()
            self._codec.handle_timer(now)
            self._update_packet_size()
            for packet in self._codec.packets_to_send(now):
                if self.tap is not None:
                    self.tap(now, Passing.OUT, packet)
                await self._write(packet)
            self._take()
            self._progress.set()
            due = self._codec.next_timer()
            await self._sleep(None if due is None else due - self._clock())

    def _update_packet_size(self) -> None:
        """Update the packet size before the codec cuts packets, also those for a returning side."""
        if self._max_packet != self._transport.max_packet:
            self._max_packet = self._transport.max_packet
            self._codec.set_max_packet(self._max_packet)
            if self.tap is not None:
                self.tap(self._clock(), Passing.SIZE, self._max_packet)

    async def _write(self, packet: P) -> None:
        try:
            async with timeout(WRITE_S):
                await self._transport.write(packet)
        except TimeoutError:
            raise LinkLost(
                LostReason.WRITE_FAILED, f"a write took more than {WRITE_S:g} s"
            ) from None
        self.counters.packets_out += 1
        self.counters.bytes_out += len(packet)

    async def _sleep(self, seconds: float | None) -> None:
        """Wait until there may be something to send, or until the timer is due."""
        if seconds is not None and seconds <= 0:
            return
        try:
            async with timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _heartbeat(self) -> None:
        """Ping after a silence; any answer, even a refusal, shows that the glasses are there."""
        while True:
            quiet_s = self._clock() - self._heard_at
            if quiet_s < self._heartbeat_s:
                await asyncio.sleep(self._heartbeat_s - quiet_s)
                continue
            await self._ping()

    async def _ping(self) -> None:
        asked_after = self._heard_at
        self.counters.pings += 1
        try:
            await self.request(Ping(), timeout_s=self._heartbeat_s)
        except CommandRefused as refused:
            log.debug("a ping was refused: %s", ascii(str(refused))[:200])
        except CommandTimeout:
            if self._heard_at == asked_after:  # else they are busy, not gone
                raise LinkLost(
                    LostReason.SILENT, f"nothing heard for {self._clock() - asked_after:.1f} s"
                ) from None

    # -------------------------------------------------------------- what came in

    def _dispatch(self, incoming: Incoming) -> None:
        message = incoming.message
        if isinstance(message, GlassesInfo | Done | Failed):
            self._answered(message, incoming.re)
        elif isinstance(message, Event):
            self._enqueue(message)
        else:
            log.debug("glasses sent a command: %s", type(message).__name__)

    def _answered(self, reply: Reply, number: int | None) -> None:
        answer = None if number is None else self._pending.get(number)
        if answer is None:
            self.counters.late_answers += 1
            log.debug("unexpected answer: %s to %s", type(reply).__name__, number)
        elif not answer.done():
            answer.set_result(reply)

    def _enqueue(self, event: Event) -> None:
        """Keep the newest `MAX_EVENTS`; sound is dropped before the wearer's actions."""
        if len(self._events) >= MAX_EVENTS:
            self.counters.events_dropped += 1
            log.log(_once(self.counters.events_dropped), "event queue full; oldest sound dropped")
            sound = next((old for old in self._events if isinstance(old, MicrophoneChunk)), None)
            self._events.remove(self._events[0] if sound is None else sound)
        self._events.append(event)
        self._news.set()

    def _violated(self, violation: RemoteViolation) -> None:
        self.counters.violations[violation.reason] += 1
        self._bad_in_a_row += 1
        level = _once(self.counters.violations[violation.reason])
        log.log(level, "glasses %s: %s", self._transport.address, ascii(str(violation))[:200])
        if self._bad_in_a_row >= MAX_VIOLATIONS:
            raise LinkLost(
                LostReason.PROTOCOL,
                f"{self._bad_in_a_row} bad packets in a row, last {violation.reason}",
            )


def _once(count: int) -> int:
    return logging.WARNING if count == 1 else logging.DEBUG


def _first(group: ExceptionGroup[LinkLost]) -> LinkLost:
    """Return the error of the pump that failed first; TaskGroup keeps the order."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error
