"""Messages from the cloud: decoded, stored, then acknowledged and handed on.

Bytes that cannot be read are answered or counted, never fatal.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import Inbound
from edge.cloud.mqtt.inflight import InflightMessage
from edge.cloud.mqtt.sender import Aside, OutboxSender, UplinkState
from edge.cloud.mqtt.wire import MessageKind, WireError, WireMessage
from edge.ports import (
    Alongside,
    CallAccepted,
    CallProgress,
    CallResult,
    InvokeCancelled,
    Invoked,
    RegistryNotice,
    UplinkMessage,
)
from edge.runtime.first_completed import race
from edge.storage.inbox import Arrival, Inbox, InRow, TakenMessage, handle
from edge.storage.sqlite.database import Connection
from edge.storage.sqlite.errors import UplinkBusy
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import ErrorCode, Json, ToolResponse

_log = logging.getLogger(__name__)

EXPIRED: Final = "expired"
"""Kind of the inbox row of an answer made on this edge, because none came or the call was refused;
a real one that comes late has its own row.
"""
RESULT_TTL_S: Final = 24 * 3600.0
"""How long a result's id is remembered: as long as a broker keeps our session."""
JOBS: Final = 4
"""Batches waiting to be stored; a link that brings more is not read meanwhile."""
FULL_RETRY_S: Final = 5.0
"""Pause before a full store is tried again when nothing was freed meanwhile."""
HOLD_S: Final = 10.0
"""How long an invocation without room stays unacknowledged; then it is answered RATE_LIMIT.

What is behind it waits, too (MQTT-4.6.0-2), and uses up Receive Maximum, results of our own calls
included.
"""
HELD: Final = 256
"""Unacknowledged packets; only a broker that ignores Receive Maximum exceeds it: reading stops."""


class _Item(Struct, frozen=True):
    """One decoded packet: what to store, and what to hand on. Neither: only acknowledge it."""

    arrival: Arrival | None = None
    message: UplinkMessage | None = None


class _Slot(Struct, eq=False):
    """A packet between receipt and acknowledgement; `item` is None once it is handled. `storing`:
    it is handed on already, and acknowledged when it is on disk.
    """

    packet: Inbound
    item: _Item | None
    since: float
    link: int
    storing: bool = False


class InboxReceiver:
    """Takes packets in batches; gives messages to one consumer until each is handled."""

    def __init__(
        self,
        inbox: Inbox,
        sender: OutboxSender,
        state: UplinkState,
        *,
        presence: Callable[[Mapping[str, Json]], None] = lambda _presence: None,
    ) -> None:
        """`presence` gets what stands on our own presence topic."""
        self._inbox = inbox
        self._sender = sender
        self._state = state
        self._inflight = state.inflight
        self._clock = state.clock
        self._presence = presence
        self._slots: deque[_Slot] = deque()
        self._holding = asyncio.Event()
        self._full = False
        self._link = 0
        self._open: dict[int, tuple[UplinkMessage, int | None]] = {}
        self._ready: deque[UplinkMessage] = deque()
        self._jobs: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue(JOBS)
        self._wake = asyncio.Event()
        self._freed = sender.freed
        self.dropped = 0

    # -------------------------------------------------------------- to the consumer

    async def messages(self) -> AsyncIterator[UplinkMessage]:
        """Return messages in order; a new iteration begins again with everything not handled."""
        self._ready = deque(message for message, _ in self._open.values())
        while True:
            while self._ready:
                yield self._ready.popleft()
            self._wake.clear()
            await self._wake.wait()

    async def handled(self, message: UplinkMessage) -> None:
        """See `UplinkPort`."""
        _, seq = self._open.pop(id(message), (None, None))
        if seq is not None:
            await self._inbox.handled(seq)
            self._freed.set()

    def handling(self, message: UplinkMessage) -> Alongside:
        """See `UplinkPort`."""
        _, seq = self._open.get(id(message), (None, None))

        def work(connection: Connection) -> None:
            if seq is not None:
                handle(connection, seq)

        def stored(_nothing: None) -> None:
            self._open.pop(id(message), None)
            self._freed.set()

        return Alongside(work, stored)

    def _hand_on(self, message: UplinkMessage, seq: int | None) -> None:
        # By identity, not by value: messages hold dicts, and two equal progress lines are two
        # messages.
        self._open[id(message)] = (message, seq)
        self._ready.append(message)
        self._wake.set()

    async def load(self) -> None:
        """Hand on stored messages that nobody has: from a restart, or a job cut off."""
        known = {seq for _, seq in self._open.values()}
        for row in await self._inbox.unhandled():
            if row.seq in known:
                continue
            try:
                self._hand_on(_from_row(row), row.seq)
            except ValueError as error:  # stored by another version
                _log.warning("a stored %s cannot be read and is dropped: %s", row.kind, error)
                await self._inbox.handled(row.seq)

    # -------------------------------------------------------------- from the broker

    async def run(self) -> None:
        """Store and hand on, one job after the other, across connections.

        A lost link must not stop this between commit and handing on: repeated messages are dropped
        as known.
        """
        await race(self._work(), self._retry())

    async def _work(self) -> None:
        while True:
            job = await self._jobs.get()
            await job()

    async def _retry(self) -> None:
        """Offer what is held again, as soon as there may be room."""
        while True:
            await self._holding.wait()
            await self._pause()
            await self._jobs.put(self._work_off)

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with timeout(FULL_RETRY_S):
                await self._freed.wait()
        self._freed.clear()

    def begin_link(self) -> None:
        """On a new connection the broker repeats what the last one left unacknowledged."""
        self._link += 1

    async def take(self, packets: Sequence[Inbound]) -> None:
        """Queue received packets; waits while we are behind."""
        await self._jobs.put(partial(self._take, packets, self._link))

    async def close_call(self, sent: InflightMessage, response: ToolResponse) -> None:
        """Queue the end of a call with an answer made here."""
        await self._jobs.put(partial(self._close, sent, response))

    async def _take(self, packets: Sequence[Inbound], link: int) -> None:
        now = self._clock.boot()
        self._slots.extend(_Slot(packet, self._read(packet), now, link) for packet in packets)
        await self._work_off()
        while len(self._slots) > HELD:
            await self._pause()
            await self._work_off()

    async def _work_off(self) -> None:
        """Store what fits in one commit, acknowledge from the front, hand on."""
        for slot in [slot for slot in self._slots if slot.item is not None]:
            await self._accept_soon(slot)
        slots = ((slot, self._what_to_store(slot)) for slot in self._slots if not slot.storing)
        waiting = [(slot, item) for slot, item in slots if item is not None]
        arrivals = [item.arrival for _, item in waiting if item.arrival is not None]
        taken = iter(await self._offer(arrivals))
        done: list[tuple[_Item, TakenMessage | None]] = []
        for slot, item in waiting:
            stored = next(taken) if item.arrival is not None else None
            if stored is None or not stored.held:
                slot.item = None
                done.append((item, stored))
        self._acknowledge()
        for item, stored in done:
            await self._settle(item, stored)

    async def _accept_soon(self, slot: _Slot) -> None:
        """Hand on that a worker has a call before that is on disk: until it is there, its packet is
        not acknowledged and comes again.
        """
        item = slot.item
        if slot.storing or item is None or item.arrival is None or not item.arrival.accepts:
            return

        def stored() -> None:
            slot.item = None
            self._acknowledge()

        def failed(error: BaseException) -> None:
            _log.debug("that call %s is accepted is not on disk: %s", arrival.id, error)
            slot.storing = False
            slot.item = _Item(arrival)  # offered again, and not handed on again
            self._holding.set()

        slot.storing, arrival = True, item.arrival
        await self._settle(item, None)
        await self._inbox.accept(arrival.id, stored=stored, failed=failed)

    def _acknowledge(self) -> None:
        """Acknowledge in the order of receipt, as MQTT demands."""
        while self._slots and (self._slots[0].item is None or self._slots[0].link != self._link):
            slot = self._slots.popleft()
            if slot.link == self._link:
                slot.packet.ack()
        if self._slots:
            self._holding.set()
        else:
            self._holding.clear()

    def _what_to_store(self, slot: _Slot) -> _Item | None:
        """Return the item, an invocation with the life it has left; None if the packet is handled,
        or was an invocation that waited too long and is answered here.
        """
        item, waited = slot.item, self._clock.boot() - slot.since
        if item is None or item.arrival is None or not isinstance(item.message, Invoked):
            return item
        if waited <= 0:
            return item
        left = item.message.call.ttl_s - waited
        if waited < HOLD_S and left > 0:
            call = replace(item.message.call, ttl_s=left)
            return _Item(replace(item.arrival, ttl_s=left), replace(item.message, call=call))
        arrival, slot.item = item.arrival, None
        failure = ToolResponse.failure(
            ErrorCode.RATE_LIMIT,
            "This edge takes no new calls now: too much waits to be delivered",
            retry_after_ms=round(FULL_RETRY_S * 1000),
            suggestion="Fetch the answers that wait, or call again later",
        )
        self._answer(arrival.reply_to, arrival.id, failure, as_json=arrival.as_json)
        return None

    def _answer(self, reply_to: str, call_id: str, failure: ToolResponse, *, as_json: bool) -> None:
        """Answer an invocation that is not taken, once and without storing it."""
        body = wire.result_body(call_id, failure)
        self._sender.say(Aside(reply_to, MessageKind.RESULT, body, id=call_id, as_json=as_json))

    async def _close(self, sent: InflightMessage, response: ToolResponse) -> None:
        """Store the answer and delete the call's outbox row in one commit; an answer that is
        stored already stays.
        """
        if sent.gone:
            return
        body = wire.result_body(sent.id, response)
        arrival = Arrival(EXPIRED, sent.id, body, RESULT_TTL_S, closes=True)
        while (stored := (await self._offer([arrival]))[0]).held:
            await self._pause()
        await self._settle(_Item(arrival, CallResult(sent.id, response, own=True)), stored)

    async def _offer(self, arrivals: Sequence[Arrival]) -> Sequence[TakenMessage]:
        """Store a batch, or as much of it as there is room for."""
        if not arrivals:
            return []
        try:
            taken = await self._inbox.take(arrivals)
        except UplinkBusy as error:
            taken = [TakenMessage(held=str(error))] * len(arrivals)
        held = [one.held for one in taken if one.held]
        if held and not self._full:
            _log.warning("%d messages from the cloud wait at the broker: %s", len(held), held[0])
        elif self._full and not held:
            _log.info("messages from the cloud are taken again")
        self._full = bool(held)
        return taken

    async def _settle(self, item: _Item, stored: TakenMessage | None) -> None:
        arrival = item.arrival
        if arrival is not None:
            sent = self._inflight.call(arrival.id)
            if arrival.accepts:
                self._inflight.accept(arrival.id, self._clock.boot())
            if sent is not None and arrival.closes:
                self._inflight.remove(sent.seq)
                self._state.refusals.over(sent.seq)
            if stored is not None and stored.seq is None and not arrival.accepts:
                if arrival.kind == MessageKind.CALL and stored.answer is not None:
                    await self._sender.answer(
                        arrival.id, arrival.reply_to, stored.answer, as_json=arrival.as_json
                    )
                return
        if item.message is not None:
            self._hand_on(item.message, None if stored is None else stored.seq)

    # -------------------------------------------------------------- decoding

    def _read(self, packet: Inbound) -> _Item:
        call_id, topics = wire.id_of(packet.correlation), self._state.topics
        is_registry = packet.topic == self._state.registry
        try:
            message = wire.decode(
                packet.payload,
                content_type=packet.content_type,
                user_properties=packet.user_properties,
                correlation=packet.correlation,
                default_kind=MessageKind.REGISTRY if is_registry else None,
            )
            call_id = message.id
            if packet.topic == topics.result:
                return self._read_result(message)
            if packet.topic == topics.invoke:
                return self._read_invoke(message, packet)
            if packet.topic == topics.presence and message.kind is MessageKind.PRESENCE:
                self._presence(message.body)
                return _Item()
            if is_registry and message.kind is MessageKind.REGISTRY:
                return _Item(message=_notice(message))
        except WireError as error:
            return self._complain(packet, error, call_id)
        self._drop("a %s on %s has no meaning here", message.kind, packet.topic)
        return _Item()

    def _read_result(self, message: WireMessage) -> _Item:
        call_id, ours = message.id, self._inflight.call(message.id)
        if message.kind is MessageKind.RESULT:
            try:
                response = wire.response_of(message)
            except WireError as error:
                # A worker that cannot write an envelope has still ended the call: say so now, not
                # at the deadline.
                response = ToolResponse.failure(
                    ErrorCode.EXECUTION_ERROR, f"The cloud's answer cannot be read: {error}"
                )
                message = replace(message, body=wire.result_body(call_id, response))
            arrival = Arrival(MessageKind.RESULT, call_id, message.body, RESULT_TTL_S, closes=True)
            return _Item(arrival, CallResult(call_id, response))
        if ours is None:
            self._drop("%s for a call that is over: %s", message.kind, call_id, quiet=True)
            return _Item()
        if message.kind is MessageKind.ACCEPTED:
            if ours.accepted:
                return _Item()
            return _Item(_acceptance(message), CallAccepted(call_id))
        if message.kind is MessageKind.PROGRESS:
            ours.heard = True
            text = wire.text_of(message, "text")
            # A worker that reports progress has the call, even when its `accepted` was lost.
            accepts = None if ours.accepted else _acceptance(message)
            return _Item(accepts, CallProgress(call_id, text))
        self._drop("a %s on the result topic has no meaning here", message.kind)
        return _Item()

    def _read_invoke(self, message: WireMessage, packet: Inbound) -> _Item:
        if message.kind is MessageKind.CANCEL:
            reason = wire.text_of(message, "reason", most=200)
            arrival = Arrival(message.kind, message.id, {"reason": reason}, RESULT_TTL_S)
            return _Item(arrival, InvokeCancelled(message.id, reason))
        if message.kind is not MessageKind.CALL:
            self._drop("a %s on the invoke topic has no meaning here", message.kind)
            return _Item()
        reply_to, topics = packet.response_topic or "", self._state.topics
        if not topics.may_answer_to(reply_to):
            why = "an invoke whose response topic is not under %s/ is refused"
            self._drop(why, topics.prefix)
            return _Item()
        call = wire.body_to_call(message)
        if packet.expiry_s is not None:
            # The broker counts this down while it holds a message for us; the body cannot know.
            call = replace(call, ttl_s=min(call.ttl_s, float(packet.expiry_s)))
        what = (MessageKind.CALL, call.call_id, message.body, call.ttl_s)
        arrival = Arrival(*what, reply_to=reply_to, as_json=message.json)
        return _Item(arrival, Invoked(call, reply_to, message.json))

    def _complain(self, packet: Inbound, error: WireError, call_id: str) -> _Item:
        """Answer an unreadable invocation, if its id and response topic can be used."""
        self._drop("a message on %s cannot be taken: %s", packet.topic, error)
        reply_to, topics = packet.response_topic or "", self._state.topics
        if packet.topic == topics.invoke and call_id and topics.may_answer_to(reply_to):
            failure = ToolResponse.failure(
                ErrorCode.INVALID_REQUEST,
                f"{error.field}: {error.problem}",
                suggestion=error.fix,
                details=error.to_json(),
            )
            as_json = wire.wants_json(packet.content_type)
            self._answer(reply_to, call_id, failure, as_json=as_json)
        return _Item()

    def _drop(self, text: str, *args: object, quiet: bool = False) -> None:
        """Count it; the first of a row of them is a WARNING. Remote text is made printable."""
        self.dropped += not quiet
        level = logging.WARNING if self.dropped == 1 and not quiet else logging.DEBUG
        shown = ("".join(c if c.isprintable() else "?" for c in str(a))[:300] for a in args)
        _log.log(level, text, *shown)


def _notice(message: WireMessage) -> RegistryNotice:
    body = message.body
    for key in ("version", "sha256", "url"):
        value = body.get(key)
        if not isinstance(value, str) or not value or len(value) > 2000:
            problem, fix = "is missing or no short text", "send {version, sha256, url}"
            raise WireError(wire.WireCode.MALFORMED, key, problem, fix)
    return RegistryNotice(body["version"], body["sha256"], body["url"])


def _acceptance(message: WireMessage) -> Arrival:
    """Return what is stored of an `accepted`, or of a progress that stands for it."""
    return Arrival(message.kind, message.id, {}, RESULT_TTL_S, accepts=True)


def _from_row(row: InRow) -> UplinkMessage:
    """Read a stored message back. Raise ValueError."""
    if row.kind == MessageKind.ACCEPTED:
        return CallAccepted(row.id)
    if row.kind == MessageKind.PROGRESS:
        return CallProgress(row.id, str(row.body.get("text", "")))
    if row.kind in (MessageKind.RESULT, EXPIRED):
        return CallResult(row.id, ToolResponse.from_json(row.body), own=row.kind == EXPIRED)
    if row.kind == MessageKind.CANCEL:
        return InvokeCancelled(row.id, str(row.body.get("reason", "")))
    if row.kind == MessageKind.CALL:
        call = wire.body_to_call(WireMessage(MessageKind.CALL, row.id, row.body, row.as_json))
        return Invoked(replace(call, ttl_s=row.left_s), row.reply_to, row.as_json)
    raise ValueError(f"unknown kind {row.kind}")
