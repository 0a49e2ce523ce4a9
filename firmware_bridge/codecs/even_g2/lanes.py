"""Orders, paces and repeats the messages to one arm of an Even G2: one unanswered at a time.

A flow is a generator that yields what to send and gets the answer: it returns the reply to its
command.
"""

from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from firmware_bridge.codecs.even_g2 import FILE
from firmware_bridge.codecs.even_g2.wire import (
    PACE_S,
    REQUEST,
    Dialect,
    Kind,
    Manner,
    Received,
    Sid,
    cut,
)
from firmware_bridge.errors import CommandRefused, RemoteViolation
from firmware_bridge.messages import Done, Failed, Reply
from firmware_bridge.packets import MIN_PACKET, ChannelPacket
from firmware_bridge.protobuf import Message, encode
from firmware_bridge.sides import Side, Sided, SidePacket

ANSWER_S: Final = 0.8
"""Seconds for one answer; 50 to 500 ms were observed."""
TRIES: Final = 2
BEAT_S: Final = 10.0
"""Seconds from one heartbeat of an arm to the next; hosts send one every 5 to 15 s."""
NEVER: Final = float("inf")
_LAST_MAGIC: Final = 0xFF
"""Requests with a larger number are never answered (g2-kit)."""


Contents = Mapping[int, Any] | Callable[[Dialect], Mapping[int, Any]]


class Exchange(Struct, frozen=True):
    """A request: `fields` of its message without the number, perhaps by dialect, or `raw` bytes of
    the file service.

    `answer`: first byte of the answer to raw bytes, None: there is none. `vital`: an arm that does
    not answer it, and says nothing else, is lost.
    """

    sid: int
    fields: Contents | None = None
    raw: bytes = b""
    answer: int | None = None
    flag: int = REQUEST
    timeout_s: float = ANSWER_S
    tries: int = TRIES
    vital: bool = False


class Rest(Struct, frozen=True):
    """A pause in a flow."""

    seconds: float


class Answer(Struct, frozen=True):
    """What came back: the result code of its frame, and its contents."""

    result: int
    message: Message
    raw: bytes = b""


Flow = Generator[Exchange | Rest, Answer | None, Reply | None]
"""Gets None where no answer came."""


@dataclass(slots=True, eq=False)
class Task:
    """A flow on its way. `number`: of the command it carries out, 0 for our own. Used once."""

    flow: Flow
    number: int = 0
    about: object = None
    lens: bool = False
    stale: bool = False
    begun: bool = False
    answer: Answer | None = None


@dataclass(slots=True)
class _Open:
    """The exchange under way: the numbers of all its tries count."""

    task: Task
    exchange: Exchange
    left: int
    since: float
    magics: set[int] = field(default_factory=set)
    seqs: set[int] = field(default_factory=set)


class Lane:
    """Sends to one arm. `ended(task, reply)` is called for each finished task, `silent()` when an
    arm from which nothing comes did not answer.
    """

    def __init__(
        self,
        side: Side,
        ended: Callable[[Task, Reply | None], None],
        silent: Callable[[], None],
        manner: Manner,
    ) -> None:
        self.max_packet = MIN_PACKET
        self.heard_at = self.beat_at = self.free_at = float("-inf")
        self._side = side
        self._ended = ended
        self._silent = silent
        self._manner = manner
        self._queue: deque[Task] = deque()
        self._urgent: deque[Task] = deque()
        self._packets: deque[Sided] = deque()
        self._open: _Open | None = None
        self._resting: Task | None = None
        self._due = float("-inf")
        self._seq = self._magic = 0

    # -------------------------------------------------------------- tasks

    def add(self, task: Task, *, urgent: bool = False) -> None:
        """Queue a task; an urgent one goes between the messages of others."""
        (self._urgent if urgent else self._queue).append(task)

    def tasks(self) -> list[Task]:
        """Return all tasks that have not ended."""
        under_way = [self._open.task] if self._open else []
        resting = [self._resting] if self._resting else []
        return [*under_way, *resting, *self._urgent, *self._queue]

    def clear(self, why: str) -> None:
        """Drop everything: the arm is gone."""
        tasks = self.tasks()
        self._queue.clear()
        self._urgent.clear()
        self._packets.clear()
        self._open = self._resting = None
        for task in tasks:
            task.flow.close()
            self._ended(task, Failed("busy", why))

    def backlog(self) -> int:
        """Bytes of the message under way."""
        return sum(map(len, self._packets))

    # -------------------------------------------------------------- out

    def emit(self, now: float, out: list[Sided]) -> bool:
        """Append the packets to send now; return whether more than that has changed."""
        packets, changed = self._packets, False
        while True:
            if packets:
                if now < self.free_at:
                    return changed
                out.append(packets.popleft())
                self.free_at = now + PACE_S
                if packets:
                    return changed
                changed = True
                self._sent(now)
            elif self._open is not None or self._resting is not None:
                return changed
            elif (self._urgent or self._queue) and self._go_on(now):
                changed = True
            else:
                return changed

    def _sent(self, now: float) -> None:
        """The message is out: wait for its answer, if it has one."""
        waiting = self._open
        assert waiting is not None
        self._due = now + waiting.exchange.timeout_s
        if waiting.exchange.fields is None and waiting.exchange.answer is None:
            self._answered(None)

    def _go_on(self, now: float) -> bool:
        """Begin the next exchange; False if there is none."""
        while self._urgent or self._queue:
            task = (self._urgent or self._queue).popleft()
            if self._step(task, now):
                return True
        return False

    def _step(self, task: Task, now: float) -> bool:
        """Continue a flow; whether the lane is busy with it."""
        if task.stale:
            task.flow.close()
            self._ended(task, Failed("interrupted", "a newer page replaced it"))
            return False
        try:
            wanted = task.flow.send(task.answer) if task.begun else next(task.flow)
        except StopIteration as end:
            self._ended(task, end.value)
            return False
        except CommandRefused as refused:
            self._ended(task, _failure(refused))
            return False
        except RemoteViolation as violation:
            self._ended(task, Failed("busy", f"an answer cannot be read: {violation.detail}"))
            return False
        task.begun, task.answer = True, None
        if isinstance(wanted, Rest):
            self._resting, self._due = task, now + wanted.seconds
        else:
            self._open = _Open(task, wanted, wanted.tries, now)
            self._transmit(now)
        return True

    def _transmit(self, now: float) -> None:
        waiting = self._open
        assert waiting is not None
        exchange = waiting.exchange
        self._seq = (self._seq + 1) % 256
        self._magic = self._magic % _LAST_MAGIC + 1
        waiting.left -= 1
        waiting.seqs.add(self._seq)
        waiting.magics.add(self._magic)
        payload, fields, dialect = exchange.raw, exchange.fields, self._manner.dialect
        if fields is not None:
            whole = fields(dialect) if callable(fields) else fields
            command, *bodies = whole.items()
            payload = encode(dict([command, (2, self._magic), *bodies]), zeros=dialect.zeros)
        try:
            packets = cut(
                payload,
                Kind.HOST,
                self._seq,
                exchange.sid,
                exchange.flag,
                max_packet=self.max_packet,
                way=dialect.cut,
            )
        except CommandRefused as refused:
            self._open = None
            waiting.task.flow.close()
            self._ended(waiting.task, _failure(refused))
            return
        if fields is None:
            packets = [ChannelPacket(packet, FILE) for packet in packets]
        self._packets.extend([SidePacket(self._side, packet) for packet in packets])
        self._due = now + exchange.timeout_s

    # -------------------------------------------------------------- in

    def receive(self, received: Received, now: float) -> bool:
        """Take a message; return whether it answers the exchange under way."""
        waiting = self._open
        if waiting is None or received.sid != waiting.exchange.sid:
            return False
        payload = received.payload
        if payload is None:
            if received.seq not in waiting.seqs:
                return False
            self._manner.change()
            self._failed(Answer(received.result or 1, Message()), now)
            return True
        if waiting.exchange.fields is None:
            if payload[:1] != bytes([waiting.exchange.answer or 0]):
                return False
            self._answered(Answer(received.result, Message(), payload))
            return True
        message = Message(payload)
        if message.integer(2) not in waiting.magics:
            return False
        self._answered(Answer(received.result, message))
        return True

    def _answered(self, answer: Answer | None) -> None:
        waiting, self._open = self._open, None
        assert waiting is not None
        self._packets.clear()  # of a repetition
        waiting.task.answer = answer
        self._queue.appendleft(waiting.task)

    def _failed(self, answer: Answer | None, now: float) -> None:
        """Repeat the exchange, or let the flow go on with this answer."""
        waiting = self._open
        assert waiting is not None
        self._packets.clear()
        if waiting.left > 0:
            self._transmit(now)
            return
        lost = answer is None and waiting.exchange.vital and self.heard_at < waiting.since
        self._answered(answer)
        if lost:
            self._silent()

    # -------------------------------------------------------------- time

    def has_packets(self) -> bool:
        """Return whether packets wait to be sent; the next one goes at `free_at`."""
        return bool(self._packets)

    def due(self) -> float:
        """The time of the next action; infinity if there is none, or packets come first."""
        if self._packets:
            return NEVER
        if self._open is not None or self._resting is not None:
            return self._due
        return self.free_at if self._urgent or self._queue else NEVER

    def beat_due(self) -> float:
        """The time of the next heartbeat; other messages do not count in its place."""
        return self.beat_at + BEAT_S

    def timer(self, now: float) -> None:
        """Repeat what was not answered in time; end a pause."""
        if self._packets or now < self._due:
            return
        if self._resting is not None:
            task, self._resting = self._resting, None
            self._queue.appendleft(task)
        elif self._open is not None:
            self._failed(None, now)


def ask(fields: Contents, sid: int = Sid.HUB, **options: Any) -> Exchange:
    """Return a request with a protobuf message."""
    return Exchange(sid, fields, **options)


def once(exchange: Exchange) -> Flow:
    """One request whose answer, of whatever contents, is success."""
    answer = yield exchange
    if answer is None:
        return None
    if answer.result:
        return Failed("busy", f"the glasses refused it with result {answer.result}")
    return Done()


def _failure(refused: CommandRefused) -> Failed:
    return Failed(refused.code, str(refused).removeprefix(f"{refused.code}: "))
