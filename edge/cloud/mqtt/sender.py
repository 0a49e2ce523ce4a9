"""Messages to the cloud, until their PUBACK: one pump, in order, within the window.

A call is sent until something is heard of it, everything else until the broker has it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from msgspec import Struct

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
from edge.cloud.mqtt.topics import Topics
from edge.cloud.mqtt.wire import BodyTooLarge, MessageKind
from edge.core import results
from edge.ports import Alongside
from edge.runtime.clock import Clock
from edge.storage.outbox import Outbox, OutboxLane, Put
from edge.storage.sqlite.errors import StoreError
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

LANES: Final[Mapping[MessageKind, OutboxLane]] = {
    MessageKind.CALL: OutboxLane.CALL,
    MessageKind.RESULT: OutboxLane.ANSWER,
}
"""Every other kind is in the lane of small facts."""

EndCall = Callable[[InflightMessage, ToolResponse], Awaitable[None]]


class Aside(Struct, frozen=True):
    """Something published once, best effort: it lives in memory only."""

    topic: str
    kind: MessageKind
    body: Mapping[str, Json]
    id: str = ""
    as_json: bool = False
    qos: int = 1


class UplinkState(Struct):
    """What the parts of the uplink share. The first three change when it moves to another cloud."""

    topics: Topics
    registry: str
    """The topic of the registry."""
    version: str
    clock: Clock
    inflight: InflightMessages
    refusals: Refusals


class OutboxSender:
    """`run(connection)` sends until the connection is over; between two everything waits."""

    def __init__(self, outbox: Outbox, state: UplinkState) -> None:
        self._outbox = outbox
        self._state = state
        self._inflight = state.inflight
        self._refusals = state.refusals
        self._clock = state.clock
        self.limit: int | None = None
        """Bytes of the largest packet that the broker took at the last connection."""
        self._undeleted: set[int] = set()
        self._asides: deque[tuple[Aside, float]] = deque(maxlen=ASIDES)
        self.wake = asyncio.Event()
        self.freed = asyncio.Event()
        """Something left the disk: what was held may fit now."""

    def say(self, aside: Aside) -> None:
        """Publish soon, or never."""
        self._asides.append((aside, self._clock.boot()))
        self.wake.set()

    async def store(
        self,
        kind: MessageKind,
        call_id: str,
        *,
        topic: str,
        body: dict[str, Json],
        ttl_s: float,
        as_json: bool = False,
    ) -> None:
        """Put one message on disk and on its way. Raise UplinkBusy, WireError."""
        message = self.message(kind, call_id, topic=topic, body=body, ttl_s=ttl_s, as_json=as_json)
        grows = LANES.get(kind) is OutboxLane.CALL
        message.stored(await self._outbox.store(message.work, grows=grows))

    def message(
        self,
        kind: MessageKind,
        call_id: str,
        *,
        topic: str,
        body: dict[str, Json],
        ttl_s: float,
        as_json: bool = False,
    ) -> Alongside:
        """Return how one message gets on disk with something else, and on its way. Raise WireError;
        its work raises UplinkBusy.
        """
        payload, _ = wire.encode(kind, body, json=as_json)  # what cannot be sent must not be stored
        if self.limit is not None and len(payload) > self.limit:
            raise BodyTooLarge(len(payload), self.limit)
        lane = LANES.get(kind, OutboxLane.TELL)

        def stored(put: Put) -> None:
            self._forget_dropped(put, lane)
            now = self._clock.boot()
            life = (now, now + ttl_s)
            self._inflight.add(
                InflightMessage(
                    put.seq, lane, kind.value, call_id, topic, *life, as_json=as_json, body=body
                )
            )
            self.wake.set()

        work = self._outbox.putting(
            lane, kind.value, call_id, topic=topic, body=body, ttl_s=ttl_s, as_json=as_json
        )
        return Alongside(work, stored)

    def _forget_dropped(self, put: Put, lane: str) -> None:
        for seq in put.dropped:
            self._inflight.remove(seq)
            self._refusals.over(seq)
        if put.dropped:
            count = len(put.dropped)
            _log.warning("the outbox was full: the %d oldest of lane %s were dropped", count, lane)

    def result(
        self, call_id: str, reply_to: str, body: dict[str, Json], *, as_json: bool
    ) -> Alongside | None:
        """Return how the result of an invocation is sent; None if one is on its way already. Raise
        WireError.
        """
        if self._inflight.answers(call_id):
            return None
        return self.message(
            MessageKind.RESULT,
            call_id,
            topic=reply_to,
            body=body,
            ttl_s=ANSWER_TTL_S,
            as_json=as_json,
        )

    async def answer(
        self, call_id: str, reply_to: str, body: dict[str, Json], *, as_json: bool
    ) -> None:
        """Send the result of an invocation, unless one is on its way already."""
        result = self.result(call_id, reply_to, body, as_json=as_json)
        if result is not None:
            result.stored(await self._outbox.store(result.work, grows=False))

    async def forget(self, message: InflightMessage) -> None:
        self._inflight.remove(message.seq)
        self._refusals.over(message.seq)
        await self._delete(message.seq)
        self.freed.set()

    async def _delete(self, seq: int) -> None:
        """Delete a row and those a full disk kept earlier; a failure must not end the link."""
        rows = [seq, *self._undeleted]
        self._undeleted.clear()

        def failed(error: BaseException) -> None:
            _log.debug("a delivered message stays on disk until it takes something: %s", error)
            self._undeleted.update(rows)

        try:
            await self._outbox.remove(rows, failed=failed)
        except StoreError as error:
            failed(error)

    # -------------------------------------------------------------- the pump

    async def run(self, link: MqttConnection, end_call: EndCall) -> None:
        """Send what is due, in order, until `link` is over. Raise a bare ConnectionOver."""
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
                fresh = [one for one in self._asides if now - one[1] < ASIDE_TTL_S]
                self._asides.clear()
                due = self._inflight.take_due(now)
                for send in (
                    *(partial(self._send_aside, link, *one) for one in fresh),
                    *(partial(self._send, link, message, end_call) for message in due),
                ):
                    await window.acquire()
                    group.create_task(_then_release(window, send))
                await wait_until(self.wake, self._inflight.next_due(), self._clock)

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
                self._refusals.note(aside.kind, error)
        else:
            self._refusals.over(aside.kind)

    async def _send(
        self, link: MqttConnection, message: InflightMessage, end_call: EndCall
    ) -> None:
        body = message.body or await self._outbox.body(message.seq)
        message.body = None
        now = self._clock.boot()
        left = message.dies_at - now
        if body is None or message.gone or left <= 0:
            return
        payload, content_type = wire.encode(
            message.kind, self._aged(message, body, left), json=message.as_json
        )
        try:
            code = await link.publish(
                self._state.topics.own(message.topic),
                payload,
                content_type=content_type,
                expiry_s=left,
                correlation=wire.correlation_of(message.id) if message.id else None,
                response_topic=self._state.topics.result if message.is_call else None,
                user_properties=self._properties(message.kind, message.born_at, message.attempt),
            )
        except PublishRefused as error:
            await self._refused(message, error, end_call)
            return
        message.refusal = None
        self._refusals.over(message.seq)
        if message.is_call or (message.lane == OutboxLane.ANSWER and code == NO_SUBSCRIBERS):
            self._inflight.sent(message, self._clock.boot())
            self.wake.set()  # the pump learns when the next send is due
        else:
            await self.forget(message)

    def _aged(
        self, message: InflightMessage, body: dict[str, Json], left: float
    ) -> dict[str, Json]:
        """Write remaining time and age as they are at this send."""
        if message.is_call:
            return {**body, "ttl_s": round(left, 3)}
        if "age" in body:
            waited_ms = round((self._clock.boot() - message.born_at) * 1000)
            return {**body, "age": body["age"] + waited_ms}
        return body

    def _properties(self, kind: str, born_at: float, attempt: int) -> tuple[tuple[str, str], ...]:
        age_ms = max(0, round((self._clock.boot() - born_at) * 1000))
        return ("k", str(kind)), ("a", str(attempt)), ("age", str(age_ms))

    async def _refused(
        self, message: InflightMessage, error: PublishRefused, end_call: EndCall
    ) -> None:
        """Offer again what the broker refused; if that cannot help, a call ends now."""
        if message.gone:
            return
        level = logging.DEBUG if message.refusal else logging.WARNING
        _log.log(level, "%s", error)
        if error.code not in FINAL:
            message.refusal = (error.code, str(error))
            self._refusals.note(message.seq, error)
            self._inflight.again(message, self._clock.boot())
            self.wake.set()
        elif not message.is_call:
            await self._replace(message, error)
        elif isinstance(error, PacketTooLarge):
            await end_call(message, ToolResponse(error=results.too_large(error.size, error.limit)))
        else:
            await end_call(message, refused(message, error.code, str(error)))

    async def _replace(self, message: InflightMessage, error: PublishRefused) -> None:
        """Drop what can never be sent; the caller who waits for a result gets an error."""
        left = message.dies_at - self._clock.boot()
        if isinstance(error, PacketTooLarge) and message.lane == OutboxLane.ANSWER and left > 0:
            failure = ToolResponse.failure(
                ErrorCode.EXECUTION_ERROR,
                f"The result cannot be sent: it has {error.size} bytes, "
                f"the broker takes {error.limit}",
                details={"size": error.size, "limit": error.limit},
            )
            kind, topic, as_json = MessageKind.RESULT, message.topic, message.as_json
            body = wire.result_body(message.id, failure)
            if len(wire.encode(kind, body)[0]) < error.size // 2:  # else it was one of these
                await self.store(
                    kind, message.id, topic=topic, body=body, ttl_s=left, as_json=as_json
                )
        await self.forget(message)


async def _then_release(window: asyncio.Semaphore, send: Callable[[], Awaitable[None]]) -> None:
    # Called in here: a task cancelled before it began must leave no coroutine behind.
    try:
        await send()
    finally:
        window.release()


async def wait_until(event: asyncio.Event, at: float | None, clock: Clock) -> None:
    """Wait for `event`, or until `at` on CLOCK_BOOTTIME.

    The loop's clock stops while the machine sleeps, so the boot clock is read now and then.
    """
    await asyncio.sleep(0)  # even if it is due: a sender with much work must not starve others
    while at is None or at > clock.boot():
        try:
            async with timeout(None if at is None else min(LOOK_S, max(0.0, at - clock.boot()))):
                await event.wait()
        except TimeoutError:
            continue
        return
