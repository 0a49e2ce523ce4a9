"""The uplink: keeps one link to the broker alive; all that the daemon knows of the cloud."""

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import (
    BrokerOptions,
    ConnectionFailed,
    ConnectionOver,
    MqttConnection,
    PublishRefused,
    Will,
)
from edge.cloud.mqtt.duplicates import Duplicates
from edge.cloud.mqtt.faults import HINTS, BrokerVerdict, Fault
from edge.cloud.mqtt.inflight import InflightMessage, InflightMessages, unanswered
from edge.cloud.mqtt.receiver import InboxReceiver
from edge.cloud.mqtt.refusals import Refusals
from edge.cloud.mqtt.retained import RETAINED_S, Retained
from edge.cloud.mqtt.sender import Aside, OutboxSender, UplinkState, wait_until
from edge.cloud.mqtt.tls import CLOCK_FLOOR, MakeContext, context, dated
from edge.cloud.mqtt.topics import Topics
from edge.cloud.mqtt.wire import MessageKind, WireError, call_to_body
from edge.core.backoff import Backoff, Chance
from edge.ports import Alongside, Invoked, UplinkMessage, UplinkStatus
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.deadlines import Within, unwatched
from edge.runtime.events import Alarmed, UplinkChanged
from edge.runtime.first_completed import race
from edge.storage.inbox import Inbox
from edge.storage.outbox import Outbox, Put
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import DeliveryReport, ErrorCode, Json, ToolCall, ToolResponse

_log = logging.getLogger(__name__)

STEP_S: Final = 60.0  # what opening a connection may take beyond its own time-out, and closing one
TELL_TTL_S: Final = 24 * 3600.0
BATCH: Final = 64  # received messages stored in one commit
CLOCK_LOOK_S: Final = 1.0
"""How often a clock that is not set is looked at: nothing announces that it was set."""
FLEETING: Final = frozenset({"head"})
"""Event kinds that come often and mean nothing later: QoS 0."""


class UplinkOptions(Struct, frozen=True, kw_only=True):
    """Where the cloud is, and timeouts. `host` None: there is none."""

    edge_id: str
    host: str | None = None
    port: int = 1883
    tenant: str = "default"
    pool: str = "tools"
    username: str | None = None
    password: str | None = None
    tls: MakeContext | None = None
    version: str = ""
    keepalive_s: int = 8
    user_timeout_s: float = 15.0
    session_expiry_s: int = 24 * 3600
    will_delay_s: float = 15.0
    connect_timeout_s: float = 10.0
    ack_timeout_s: float = 10.0
    reconnect_min_s: float = 0.5
    reconnect_max_s: float = 60.0
    stable_s: float = 60.0
    takeover_wait_s: float = 30.0
    resend_s: float = 1.0


class MqttUplink:
    """`UplinkPort`. `run()` keeps the link; everything else works without one."""

    def __init__(
        self,
        options: UplinkOptions,
        *,
        outbox: Outbox,
        inbox: Inbox,
        bus: Bus,
        clock: Clock,
        chance: Chance = random.random,
        within: Within = unwatched,
    ) -> None:
        self._o = self._next = options
        self._moved = asyncio.Event()
        self._bus, self._within = bus, within
        self._clock = clock
        self._outbox = outbox
        self._inflight = InflightMessages(chance, resend_s=options.resend_s)
        topics = Topics(options.tenant, options.edge_id)
        self._state = UplinkState(
            topics,
            topics.registry(options.pool),
            options.version,
            clock,
            self._inflight,
            Refusals(lambda text: self._alarm("uplink.refused", text, over=not text)),
        )
        self._sender = OutboxSender(outbox, self._state)
        self._backoff = Backoff(
            chance,
            first_s=options.reconnect_min_s,
            most_s=options.reconnect_max_s,
            stable_s=options.stable_s,
        )
        self._loading = asyncio.Lock()
        self._loaded = False
        self._deadlines = asyncio.Event()
        self._retained = Retained(self._state, bus)
        self._duplicates = Duplicates(self._retained.instance, self._note_duplicate)
        self._contested = False
        presence = self._duplicates.saw
        self._receiver = InboxReceiver(inbox, self._sender, self._state, presence=presence)
        self._alarms: set[str] = set()
        self._up = False
        self._up_at: float | None = None
        self._verdict: BrokerVerdict | None = None
        self._changed_at = clock.boot()
        if options.host is not None:
            self._broker_options(None)  # refuse a bad address now, not at the first connect

    # -------------------------------------------------------------- UplinkPort

    def status(self) -> UplinkStatus:
        reason = hint = ""
        if self._o.host is None:
            hint = "enrol with a code (glassd up CODE), or set uplink.host, to reach a cloud"
        elif not self._up and self._verdict is not None:
            reason, hint = f"{self._verdict.fault}: {self._verdict.detail}", self._verdict.hint
        elif not self._up:
            reason = "connecting"
        return UplinkStatus(
            configured=self._o.host is not None,
            up=self._up,
            broker=self._broker,
            reason=reason,
            hint=hint,
            since_s=max(0.0, self._clock.boot() - self._changed_at),
            outbox=len(self._inflight),
            outbox_oldest_s=self._inflight.oldest_age_s(self._clock.boot()),
        )

    async def submit(self, call: ToolCall) -> None:
        """Store a call in the outbox. Raise UplinkBusy, or UplinkTooLarge: never sent."""
        await self._load()
        sending = self.submission(call)
        sending.stored(await self._outbox.store(sending.work, grows=True))

    def submission(self, call: ToolCall) -> Alongside:
        kind, topic, body = MessageKind.CALL, self._topics.call(self._o.pool), call_to_body(call)
        sending = self._sender.message(kind, call.call_id, topic=topic, body=body, ttl_s=call.ttl_s)

        def stored(put: Put) -> None:
            sending.stored(put)
            self._deadlines.set()

        return Alongside(sending.work, stored)

    async def withdraw(self, call_id: str, reason: str) -> None:
        message = self._inflight.call(call_id)
        if message is None:
            return
        if message.attempt or message.accepted:  # else no worker knows of it
            kind, body = MessageKind.CANCEL, {"id": call_id, "reason": reason[:200]}
            left = max(1.0, message.dies_at - self._clock.boot())
            topic = self._topics.cancel
            await self._sender.store(kind, call_id, topic=topic, body=body, ttl_s=left)
        await self._sender.forget(message)

    def messages(self) -> AsyncIterator[UplinkMessage]:
        return self._receiver.messages()

    async def handled(self, message: UplinkMessage) -> None:
        await self._receiver.handled(message)

    def handling(self, message: UplinkMessage) -> Alongside:
        return self._receiver.handling(message)

    async def answer(self, invoked: Invoked, answer: ToolResponse | str | None) -> None:
        """Send `accepted`, progress, or the result."""
        call_id, reply_to, as_json = invoked.call.call_id, invoked.reply_to, invoked.as_json
        if isinstance(answer, ToolResponse):
            result = self.result(invoked, answer)
            result.stored(await self._outbox.store(result.work, grows=False))
            return
        kind, body = MessageKind.ACCEPTED, {"id": call_id}
        if answer is not None:
            kind, body = MessageKind.PROGRESS, {"id": call_id, "text": answer[:2000]}
        self._sender.say(Aside(reply_to, kind, body, id=call_id, as_json=as_json))

    def result(self, invoked: Invoked, response: ToolResponse) -> Alongside:
        """See `UplinkPort`; a result too large for the wire is sent as an error."""
        call_id, reply_to, as_json = invoked.call.call_id, invoked.reply_to, invoked.as_json
        body = wire.result_body(call_id, response)
        try:
            sent = self._sender.result(call_id, reply_to, body, as_json=as_json)
        except WireError as error:
            code, text = ErrorCode.EXECUTION_ERROR, f"The result cannot be sent: {error}"
            failure = ToolResponse.failure(code, text, details=error.to_json())
            body = wire.result_body(call_id, failure)
            sent = self._sender.result(call_id, reply_to, body, as_json=as_json)
        handled = self._receiver.handling(invoked)
        return Alongside.all_of(sent, handled) or handled

    def delivery(self, call_id: str, report: DeliveryReport, *, age_s: float) -> Alongside:
        kind, topic = MessageKind.DELIVERY, self._topics.delivery
        body = wire.delivery_body(call_id, report, age_s=age_s)
        return self._sender.message(kind, call_id, topic=topic, body=body, ttl_s=TELL_TTL_S)

    async def tell_delivery(self, call_id: str, report: DeliveryReport, *, age_s: float) -> None:
        await self._load()
        told = self.delivery(call_id, report, age_s=age_s)
        told.stored(await self._outbox.store(told.work, grows=False, soon=True))

    async def tell_event(self, kind: str, data: Mapping[str, Json]) -> None:
        body = {"event": kind, "data": dict(data)}
        wire.encode(MessageKind.EVENT, body)
        qos = 0 if kind in FLEETING else 1
        self._sender.say(Aside(self._topics.event(kind), MessageKind.EVENT, body, qos=qos))

    async def announce(self, *, capabilities: Mapping[str, Json] | None, glasses: str) -> None:
        self._retained.announce(capabilities, glasses)

    # -------------------------------------------------------------- the service

    async def run(self) -> None:
        """Keep the link forever; without a host, only keep the deadlines of what is queued."""
        await self._load()
        await self._receiver.load()
        self._inflight.rearm()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._receiver.run())
            group.create_task(self._watch_deadlines())
            group.create_task(self._keep_link())

    async def _load(self) -> None:
        """Read the outbox, once."""
        async with self._loading:
            if self._loaded:
                return
            now = self._clock.boot()
            for row in await self._outbox.load():
                if row.seq in self._inflight:  # stored with its call while this was read
                    continue
                what = (row.seq, row.lane, row.kind, row.id, row.topic)
                life = (now - row.age_s, now + row.left_s)
                self._inflight.add(InflightMessage(*what, *life, row.as_json, row.accepted))
            self._loaded = True

    async def _watch_deadlines(self) -> None:
        while True:
            self._deadlines.clear()
            for message in self._inflight.take_dead(self._clock.boot()):
                if message.is_call:
                    await self._receiver.close_call(message, unanswered(message))
                else:
                    why = "a %s could not be delivered in its time and is dropped"
                    _log.warning(why, message.kind)
                    await self._sender.forget(message)
            await wait_until(self._deadlines, self._inflight.next_death(), self._clock)

    async def _keep_link(self) -> None:
        while True:
            self._move()
            if self._o.host is None:
                await self._moved.wait()
                continue
            up_s, verdict = await self._one_link()
            self._state.refusals.disconnected()
            if self._contested and verdict.fault is Fault.LOST:
                why = "another daemon with this edge id took the connection over"
                verdict = BrokerVerdict(Fault.TAKEN_OVER, why)
            self._note_down(verdict)
            wait_s = self._o.takeover_wait_s if verdict.fault is Fault.TAKEN_OVER else 0.0
            pause_s = self._backoff.after(up_s, at_least_s=wait_s)
            await race(self._pause(pause_s, verdict.fault), self._wait_moved())

    async def _pause(self, seconds: float, fault: Fault) -> None:
        """Wait for the next try; for a clock that is not set, until it is."""
        while fault is Fault.CLOCK and self._clock.wall() < CLOCK_FLOOR:  # noqa: ASYNC110 - see CLOCK_LOOK_S
            await asyncio.sleep(CLOCK_LOOK_S)
        await asyncio.sleep(0.0 if fault is Fault.CLOCK else seconds)

    def use(self, options: UplinkOptions) -> None:
        """Take another broker, tenant or credentials: the present link is closed with a goodbye,
        and `_keep_link` connects with the new options.
        """
        self._next = options
        self._moved.set()

    async def _wait_moved(self) -> None:
        await self._moved.wait()

    def _move(self) -> None:
        """Adopt the options that `use` was given, if any."""
        self._moved.clear()
        if self._next is self._o:
            return
        o = self._o = self._next
        self._state.topics = Topics(o.tenant, o.edge_id)
        self._state.registry, self._state.version = self._topics.registry(o.pool), o.version
        self._sender.limit = None
        self._verdict, self._changed_at = None, self._clock.boot()
        self._note_alone()

    @property
    def _topics(self) -> Topics:
        return self._state.topics

    async def _one_link(self) -> tuple[float, BrokerVerdict]:
        """Serve one connection; return how long it was up and why it ended."""
        self._up_at = None
        self._retained.connections += 1
        try:
            with self._within(STEP_S + self._o.connect_timeout_s, "uplink: connecting") as step:
                tls = await context(self._o.tls, self._clock.wall())
                async with MqttConnection(self._broker_options(tls)) as link:
                    await self._talk(link, step.done)
                    step.again(STEP_S, "uplink: closing")
            verdict = link.lost.result()
            if self._moved.is_set():
                verdict = BrokerVerdict(Fault.CLOSED, "for other credentials")
        except (ConnectionFailed, ConnectionOver) as error:
            verdict = dated(error.verdict, self._clock.wall())
        return self._up_s(), verdict

    def _up_s(self) -> float:
        """For how long this connection has been up; 0 when it never was."""
        return 0.0 if self._up_at is None else self._clock.boot() - self._up_at

    async def _talk(self, link: MqttConnection, on_up: Callable[[], None]) -> None:
        """Receive packets before subscribing too: a resumed session's messages come before the
        SUBACK, and there may be many.
        """
        self._receiver.begin_link()
        with suppress(ConnectionOver):  # `link.lost` explains it
            await race(self._receive(link), self._live(link, on_up))

    async def _receive(self, link: MqttConnection) -> None:
        while True:
            batch = [await link.receive()]
            while link.waiting() and len(batch) < BATCH:
                batch.append(await link.receive())
            await self._receiver.take(batch)

    async def _live(self, link: MqttConnection, on_up: Callable[[], None]) -> None:
        """Serve a link until it is lost; when we stop or move, publish `offline` first."""
        topics = self._topics
        await link.subscribe(topics.result, topics.invoke, self._state.registry)
        self._up_at = self._clock.boot()
        self._note_up()
        on_up()
        self._sender.limit = link.max_packet
        if self._verdict is not None and self._verdict.fault in (Fault.LOST, Fault.TAKEN_OVER):
            await self._duplicates.look(link, self._topics)
        self._inflight.all_due(accepted_too=not link.session_present)
        try:
            await race(
                self._sender.run(link, self._receiver.close_call),
                self._retained.keep(link),
                self._calm_down(),
                self._wait_moved(),
            )
        except asyncio.CancelledError:
            await self._say_goodbye(link)
            raise
        if self._moved.is_set():
            await self._say_goodbye(link)

    async def _say_goodbye(self, link: MqttConnection) -> None:
        with suppress(TimeoutError, ConnectionOver, PublishRefused):
            async with timeout(1.0):
                await self._retained.publish_presence(link, "offline")

    async def _calm_down(self) -> None:
        """Forget another client with our id when the link has been stable for a while."""
        await asyncio.sleep(self._o.stable_s)
        self._note_alone()
        await asyncio.Event().wait()

    # -------------------------------------------------------------- the link's own state

    @property
    def _broker(self) -> str:
        return f"{self._o.host}:{self._o.port}" if self._o.host is not None else ""

    def _broker_options(self, tls: ssl.SSLContext | None) -> BrokerOptions:
        o = self._o
        kind = MessageKind.PRESENCE
        will = Will(
            self._topics.presence,
            *wire.encode(kind, self._retained.presence("offline")),
            delay_s=o.will_delay_s,
            expiry_s=RETAINED_S,
            user_properties=(("k", kind.value),),
        )
        return BrokerOptions(
            host=o.host or "",
            port=o.port,
            client_id=o.edge_id,
            username=o.username,
            password=o.password,
            tls=tls,
            keepalive_s=o.keepalive_s,
            session_expiry_s=o.session_expiry_s,
            will=will,
            user_timeout_s=o.user_timeout_s,
            connect_timeout_s=o.connect_timeout_s,
            ack_timeout_s=o.ack_timeout_s,
        )

    def _note_up(self) -> None:
        self._up, self._changed_at = True, self._clock.boot()
        _log.info("uplink to %s is up", self._broker)
        self._bus.publish(UplinkChanged(True, self._broker))

    def _note_down(self, verdict: BrokerVerdict) -> None:
        """First failure of a cycle WARNING, repeats DEBUG; only changes are published."""
        was, self._verdict = self._verdict if not self._up else None, verdict
        news = self._up or was is None or was.fault is not verdict.fault
        level = logging.INFO if verdict.fault is Fault.CLOSED else logging.WARNING
        what = (self._broker, verdict.fault, verdict.detail)
        _log.log(level if news else logging.DEBUG, "no uplink to %s: %s: %s", *what)
        if news:
            self._up, self._changed_at = False, self._clock.boot()
            self._bus.publish(UplinkChanged(False, self._broker, verdict.fault.value))
        if verdict.fault is Fault.TAKEN_OVER:
            self._alarm_taken_over()

    def _note_duplicate(self) -> None:
        if not self._contested:
            self._contested = True
            why = "another daemon uses the edge id %s: both take the connection from each other"
            _log.warning(why, self._o.edge_id)
            self._alarm_taken_over()

    def _alarm_taken_over(self) -> None:
        text = f"Another client uses the edge id {self._o.edge_id}: {HINTS[Fault.TAKEN_OVER]}."
        self._alarm("uplink.taken_over", text)

    def _note_alone(self) -> None:
        """No other client is known to use this edge id."""
        self._contested = False
        self._alarm("uplink.taken_over", "", over=True)

    def _alarm(self, name: str, text: str, *, over: bool = False) -> None:
        if over == (name not in self._alarms):
            return
        (self._alarms.discard if over else self._alarms.add)(name)
        self._bus.publish(Alarmed(name, text, over))
