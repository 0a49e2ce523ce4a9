"""Messages to the cloud, until their PUBACK: one pump, in order, within the window.

A call is sent until something is heard of it, everything else until the broker has it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import (
    NO_SUBSCRIBERS,
    WINDOW,
    ConnectionOver,
    MqttConnection,
    PublishRefused,
)
from edge.cloud.mqtt.connection_types import PacketTooLarge
from edge.cloud.mqtt.inflight import InflightMessage, InflightMessages, refused
from edge.cloud.mqtt.refusals import FINAL, Refusals
from edge.cloud.mqtt.wire import BodyTooLarge, MessageKind, Topics
from edge.core import results
from edge.runtime.clock import Clock
from edge.storage.outbox import Outbox, OutboxLane
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import ErrorCode, Json, ToolResponse

_log = logging.getLogger(__name__)

LOOK_S: Final = 30.0
"""Longest sleep at once of a wait on CLOCK_BOOTTIME."""

ASIDES: Final = 256
"""Messages said beside the outbox; the oldest goes first."""
ASIDE_TTL_S: Final = 60.0
"""A tap or an `accepted` older than a minute is useless."""
ANSWER_TTL_S: Final = 24 * 3600.0
"""As long as a broker keeps a session: the caller may come back for it."""

EndCall = Callable[[InflightMessage, ToolResponse], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Aside:
    """Something published once, best effort: it lives in memory only."""

    topic: str
    kind: MessageKind
    body: Mapping[str, Json]
    id: str = ""
    as_json: bool = False
    qos: int = 1


class OutboxSender:
    """`run(connection)` sends until the connection is over; between two everything waits."""

    def __init__(
        self,
        outbox: Outbox,
        flights: InflightMessages,
        topics: Topics,
        clock: Clock,
        refusals: Refusals,
    ) -> None:
        self._outbox = outbox
        self._flights = flights
        self._topics = topics
        self._clock = clock
        self.refusals = refusals
        self.limit: int | None = None
        """Bytes of the largest packet that the broker took at the last connection."""
        self._undeleted: set[int] = set()
        self._asides: deque[tuple[Aside, float]] = deque(maxlen=ASIDES)
        self.wake = asyncio.Event()
        self.freed = asyncio.Event()
        """Something left the disk: what was held may fit now."""

    def move(self, topics: Topics) -> None:
        """Speak as this edge of this tenant from the next connection on."""
        self._topics, self.limit = topics, None

    def now(self) -> float:
        """The moment on CLOCK_BOOTTIME by which everything here is due."""
        return self._clock.boot()

    # -------------------------------------------------------------- what is to be said

    def say(self, aside: Aside) -> None:
        """Publish soon, or never."""
        self._asides.append((aside, self._clock.boot()))
        self.wake.set()

    async def store(
        self,
        lane: str,
        kind: MessageKind,
        call_id: str,
        *,
        topic: str,
        body: dict[str, Json],
        ttl_s: float,
        as_json: bool = False,
    ) -> InflightMessage:
        """Put one message on disk and on its way. Raise UplinkBusy, WireError."""
        payload, _ = wire.encode(kind, body, json=as_json)  # what cannot be sent must not be stored
        if self.limit is not None and len(payload) > self.limit:
            raise BodyTooLarge(len(payload), self.limit)
        put = await self._outbox.put(
            lane, kind.value, call_id, topic=topic, body=body, ttl_s=ttl_s, as_json=as_json
        )
        for seq in put.dropped:
            self._flights.remove(seq)
            self.refusals.over(seq)
        if put.dropped:
            _log.warning(
                "the outbox was full: the %d oldest of lane %s were dropped", len(put.dropped), lane
            )
        now = self._clock.boot()
        flight = InflightMessage(
            put.seq, lane, kind.value, call_id, topic, now, now + ttl_s, as_json=as_json, body=body
        )
        self._flights.add(flight)
        self.wake.set()
        return flight

    async def answer(
        self, call_id: str, reply_to: str, body: dict[str, Json], *, as_json: bool
    ) -> None:
        """Send the result of an invocation, unless one is on its way already."""
        if not self._flights.answers(call_id):
            await self.store(
                OutboxLane.ANSWER,
                MessageKind.RESULT,
                call_id,
                topic=reply_to,
                body=body,
                ttl_s=ANSWER_TTL_S,
                as_json=as_json,
            )

    async def forget(self, flight: InflightMessage) -> None:
        self._flights.remove(flight.seq)
        self.refusals.over(flight.seq)
        await self._delete(flight.seq)
        self.freed.set()

    async def _delete(self, seq: int) -> None:
        """Delete a row and those a full disk kept earlier; a failure must not end the link."""
        try:
            await self._outbox.remove(seq)
            while self._undeleted:
                await self._outbox.remove(self._undeleted.pop())
        except Exception as error:  # noqa: BLE001 - the store's errors are its own
            _log.debug("a delivered message stays on disk until it takes something: %s", error)
            self._undeleted.add(seq)

    # -------------------------------------------------------------- the pump

    async def run(self, link: MqttConnection, end_call: EndCall) -> None:
        """Send what is due, in order, until `link` is over. Raise ConnectionOver, bare."""
        try:
            await self._pump(link, end_call)
        except* ConnectionOver:
            pass
        raise ConnectionOver(link.lost.result())

    async def _pump(self, link: MqttConnection, end_call: EndCall) -> None:
        window = asyncio.Semaphore(WINDOW)
        async with asyncio.TaskGroup() as group:
            while True:
                self.wake.clear()
                now = self._clock.boot()
                for aside, born_at in self._fresh_asides(now):
                    await window.acquire()
                    group.create_task(
                        _then_release(window, partial(self._send_aside, link, aside, born_at))
                    )
                for flight in self._flights.take_due(now):
                    await window.acquire()
                    group.create_task(
                        _then_release(window, partial(self._send, link, flight, end_call))
                    )
                await wait_until(self.wake, self._flights.next_due(), self._clock)

    def _fresh_asides(self, now: float) -> list[tuple[Aside, float]]:
        fresh = [(aside, born_at) for aside, born_at in self._asides if now - born_at < ASIDE_TTL_S]
        self._asides.clear()
        return fresh

    async def _send_aside(self, link: MqttConnection, aside: Aside, born_at: float) -> None:
        payload, content_type = wire.encode(aside.kind, aside.body, json=aside.as_json)
        try:
            await link.publish(
                aside.topic,
                payload,
                qos=aside.qos,
                content_type=content_type,
                expiry_s=ASIDE_TTL_S,
                correlation=wire.correlation_of(aside.id) if aside.id else None,
                user_properties=self._properties(aside.kind, born_at, 1),
            )
        except PublishRefused as error:
            _log.warning("%s", error)
            if not aside.id:  # the result of a call is tried again, and is what the alarm is about
                self.refusals.note(aside.kind, error)
        else:
            self.refusals.over(aside.kind)

    async def _send(self, link: MqttConnection, flight: InflightMessage, end_call: EndCall) -> None:
        body = flight.body or await self._outbox.body(flight.seq)
        flight.body = None
        now = self._clock.boot()
        left = flight.dies_at - now
        if body is None or flight.gone or left <= 0:
            return
        payload, content_type = wire.encode(
            flight.kind, self._aged(flight, body, left), json=flight.as_json
        )
        try:
            code = await link.publish(
                self._topics.own(flight.topic),
                payload,
                content_type=content_type,
                expiry_s=left,
                correlation=wire.correlation_of(flight.id) if flight.id else None,
                response_topic=self._topics.result if flight.is_call else None,
                user_properties=self._properties(flight.kind, flight.born_at, flight.attempt),
            )
        except PublishRefused as error:
            await self._refused(flight, error, end_call)
            return
        flight.refusal = None
        self.refusals.over(flight.seq)
        if flight.is_call or (flight.lane == OutboxLane.ANSWER and code == NO_SUBSCRIBERS):
            self._flights.sent(flight, self._clock.boot())
            self.wake.set()  # the pump learns when the next send is due
        else:
            await self.forget(flight)

    def _aged(self, flight: InflightMessage, body: dict[str, Json], left: float) -> dict[str, Json]:
        """Write remaining time and age as they are at this send."""
        if flight.is_call:
            return {**body, "ttl_s": round(left, 3)}
        if "age" in body:
            return {
                **body,
                "age": body["age"] + round((self._clock.boot() - flight.born_at) * 1000),
            }
        return body

    def _properties(self, kind: str, born_at: float, attempt: int) -> tuple[tuple[str, str], ...]:
        age_ms = max(0, round((self._clock.boot() - born_at) * 1000))
        return ("k", str(kind)), ("a", str(attempt)), ("age", str(age_ms))

    async def _refused(
        self, flight: InflightMessage, error: PublishRefused, end_call: EndCall
    ) -> None:
        """Offer again what the broker refused; if that cannot help, a call ends now."""
        if flight.gone:
            return
        level = logging.DEBUG if flight.refusal else logging.WARNING
        _log.log(level, "%s", error)
        if error.code not in FINAL:
            flight.refusal = (error.code, str(error))
            self.refusals.note(flight.seq, error)
            self._flights.again(flight, self._clock.boot())
            self.wake.set()
        elif not flight.is_call:
            await self._replace(flight, error)
        elif isinstance(error, PacketTooLarge):
            await end_call(flight, ToolResponse(error=results.too_large(error.size, error.limit)))
        else:
            await end_call(flight, refused(flight, error.code, str(error)))

    async def _replace(self, flight: InflightMessage, error: PublishRefused) -> None:
        """Drop what can never be sent; whoever waits for a result hears so."""
        left = flight.dies_at - self._clock.boot()
        if isinstance(error, PacketTooLarge) and flight.lane == OutboxLane.ANSWER and left > 0:
            failure = ToolResponse.failure(
                ErrorCode.EXECUTION_ERROR,
                f"The result cannot be sent: it has {error.size} bytes, "
                f"the broker takes {error.limit}",
                details={"size": error.size, "limit": error.limit},
            )
            body = wire.result_body(flight.id, failure)
            if (
                len(wire.encode(MessageKind.RESULT, body)[0]) < error.size // 2
            ):  # else it was one of these
                await self.store(
                    OutboxLane.ANSWER,
                    MessageKind.RESULT,
                    flight.id,
                    topic=flight.topic,
                    body=body,
                    ttl_s=left,
                    as_json=flight.as_json,
                )
        await self.forget(flight)


async def _then_release(window: asyncio.Semaphore, work: Callable[[], Awaitable[None]]) -> None:
    # `work` is called in here: a task that is cancelled before it began must leave no coroutine
    # behind.
    try:
        await work()
    finally:
        window.release()


async def wait_until(event: asyncio.Event, at: float | None, clock: Clock) -> None:
    """Wait for `event`, or until `at` on CLOCK_BOOTTIME.

    The loop's clock stops while the machine sleeps, so the boot clock is read now and then.
    """
    await asyncio.sleep(
        0
    )  # also when it is due already: a pump that always finds work must not starve the others
    while at is None or at > clock.boot():
        try:
            async with timeout(None if at is None else min(LOOK_S, max(0.0, at - clock.boot()))):
                await event.wait()
        except TimeoutError:
            continue
        return
