"""Orders and retries the requests to both arms of an Even G1: one open request per lane, right
after left.

Each side has two lanes, one for the lens and one for the rest, with different opcodes: an answer
names only its opcode, so no two requests with the same opcode may be open on one arm.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from firmware_bridge.codecs.even_g1.wire import ACCEPTED, CONTINUE, REFUSED
from firmware_bridge.errors import LocalMisuse
from firmware_bridge.sides import Side, SidePacket

MAX_ERRANDS: Final = 64
"""Maximum number of unfinished errands; beyond it the caller is not waiting for answers."""
ANSWER_S: Final = 0.8
"""Seconds for one answer (26 to 40 ms captured); 3 tries on each arm stay below a page's 5 s."""
TRIES: Final = 3


class Verdict(Enum):
    TAKEN = auto()
    REFUSED = auto()
    OTHER = auto()


class End(Enum):
    """How one side's part ended. SILENT: no answer, nor anything else from that side."""

    TAKEN = auto()
    REFUSED = auto()
    UNANSWERED = auto()
    SILENT = auto()
    GONE = auto()
    DROPPED = auto()


class Order(Enum):
    """LEFT_FIRST: right after left; TOGETHER: independently; EITHER: right if left is silent."""

    LEFT_FIRST = auto()
    TOGETHER = auto()
    EITHER = auto()


class Kind(Enum):
    LENS = auto()
    TALK = auto()


def verdict(answer: bytes) -> Verdict:
    """Judge a generic answer by its byte 1."""
    match answer[1:2]:
        case b"\xc9" | b"\xcb":
            return Verdict.TAKEN
        case b"\xca":
            return Verdict.REFUSED
        case _:
            return Verdict.OTHER


def anything(_answer: bytes) -> Verdict:
    """Accept any answer."""
    return Verdict.TAKEN


@dataclass(frozen=True, slots=True)
class Ask:
    """A packet and the opcode of its answer, or None for packets without answer.

    `rest_s`: seconds before the next packet or retry. `restart`: a refusal sends all packets again.
    `optional`: the errand continues without an answer.
    """

    packet: bytes
    answer: int | None = None
    timeout_s: float = ANSWER_S
    tries: int = TRIES
    rest_s: float = 0.0
    judge: Callable[[bytes], Verdict] = verdict
    restart: bool = False
    optional: bool = False


@dataclass(slots=True, eq=False)
class Errand:
    """Packets of one command for one or both sides; `number` 0 for our own requests. Used once."""

    legs: dict[Side, tuple[Ask, ...]]
    order: Order = Order.LEFT_FIRST
    kind: Kind = Kind.TALK
    number: int = 0
    about: object = None
    begun: list[Side] = field(default_factory=list)
    ends: dict[Side, End] = field(default_factory=dict)
    ended_at: dict[Side, float] = field(default_factory=dict)
    answers: list[bytes] = field(default_factory=list)
    stale: bool = False

    def skew_s(self) -> float | None:
        """Seconds between both sides taking it; None unless both did."""
        if [self.ends.get(side) for side in Side] != [End.TAKEN, End.TAKEN]:
            return None
        return abs(self.ended_at[Side.RIGHT] - self.ended_at[Side.LEFT])


@dataclass(slots=True, eq=False)
class _Leg:
    """One side's part of an errand, and its progress."""

    errand: Errand
    asks: tuple[Ask, ...]
    at: int = 0
    tries: int = 0
    since: float = 0.0

    @property
    def ask(self) -> Ask:
        return self.asks[self.at]


class Lane:
    """Sends one request at a time to one side; calls `ended` for every finished leg."""

    def __init__(self, side: Side, ended: Callable[["_Leg", Side, End, float], None]) -> None:
        self._side = side
        self._ended = ended
        self._legs: deque[_Leg] = deque()
        self._waiting = False
        self._due = float("-inf")

    def add(self, errand: Errand) -> None:
        self._legs.append(_Leg(errand, errand.legs[self._side]))

    def errands(self) -> list[Errand]:
        return [leg.errand for leg in self._legs]

    def backlog(self) -> int:
        return sum(len(ask.packet) for leg in self._legs for ask in leg.asks[leg.at :])

    def due(self) -> float | None:
        """The time of the next action, or None."""
        return self._due if self._legs else None

    def emit(self, now: float) -> list[bytes]:
        """Return the packets to send now."""
        out: list[bytes] = []
        while self._legs and not self._waiting and now >= self._due:
            leg = self._legs[0]
            if leg.errand.stale:
                self._end(leg, End.DROPPED, now)
                continue
            ask = leg.ask
            out.append(ask.packet)
            if leg.tries == 0:
                leg.since = now
            if ask.answer is None:
                self._due = now + ask.rest_s
                self._next(leg, now)
            else:
                self._waiting, self._due = True, now + ask.timeout_s
        return out

    def heard(self, packet: bytes, now: float) -> bool:
        """Process an answer; return whether it was the expected one."""
        if not self._waiting or packet[0] != self._legs[0].ask.answer:
            return False
        leg = self._legs[0]
        judged = leg.ask.judge(packet)
        if judged is Verdict.OTHER:
            return False
        self._waiting, self._due = False, now
        if judged is Verdict.TAKEN:
            leg.errand.answers.append(packet)
            self._next(leg, now)
        else:
            self._again(leg, End.REFUSED, now)
        return True

    def timer(self, now: float) -> None:
        if self._waiting and now >= self._due:
            self._waiting, self._due = False, now
            self._again(self._legs[0], End.UNANSWERED, now)

    def clear(self, now: float) -> None:
        """Drop everything: the side is gone."""
        self._waiting = False
        while self._legs:
            self._end(self._legs[0], End.GONE, now)

    def _next(self, leg: _Leg, now: float) -> None:
        leg.at, leg.tries = leg.at + 1, 0
        if leg.at == len(leg.asks):
            self._end(leg, End.TAKEN, now)

    def _again(self, leg: _Leg, why: End, now: float) -> None:
        ask = leg.ask
        leg.tries += 1
        if leg.tries < ask.tries:
            self._due = now + ask.rest_s
            if ask.restart and why is End.REFUSED:
                leg.at, leg.asks = 0, (*leg.asks[:-1], _less(ask))
                leg.tries = 0
        elif ask.optional:
            self._next(leg, now)
        else:
            self._end(leg, why, now)

    def _end(self, leg: _Leg, end: End, now: float) -> None:
        self._legs.popleft()
        self._ended(leg, self._side, end, now)


def _less(ask: Ask) -> Ask:
    """Return the request with one try fewer: whole messages are not repeated indefinitely."""
    return Ask(
        ask.packet,
        ask.answer,
        ask.timeout_s,
        ask.tries - 1,
        ask.rest_s,
        ask.judge,
        ask.restart,
        ask.optional,
    )


class Scheduler:
    """All lanes of a pair. `finished`: completed errands; `silent`: sides to give up."""

    def __init__(self) -> None:
        self.up: set[Side] = set()
        self.finished: deque[Errand] = deque()
        self.silent: deque[Side] = deque()
        self.sent_at: dict[Side, float] = {}
        self._heard_at: dict[Side, float] = {}
        self._held: deque[Errand] = deque()
        self._lanes = {(side, kind): Lane(side, self._ended) for side in Side for kind in Kind}

    def begin(self, errand: Errand, now: float) -> None:
        """Start a request. Raises `LocalMisuse` beyond the limit, never for our own few."""
        if (
            errand.number
            and len(self._held) + sum(len(lane.errands()) for lane in self._lanes.values())
            >= MAX_ERRANDS
        ):
            raise LocalMisuse(f"{MAX_ERRANDS} commands are under way: wait for their answers")
        if not self.sent_at and not self.up:
            self._held.append(errand)  # before the first side is there nobody can be asked
        else:
            self._go_on(errand, now)

    def supersede(self) -> None:
        """End the requests on their way to the lens after the current answer: a page follows."""
        for (_, kind), lane in self._lanes.items():
            for errand in lane.errands() if kind is Kind.LENS else ():
                errand.stale = True

    def side_up(self, side: Side, now: float) -> None:
        self.up.add(side)
        self.sent_at[side] = self._heard_at[side] = now
        while self._held:
            self._go_on(self._held.popleft(), now)

    def side_down(self, side: Side, now: float) -> None:
        self.up.discard(side)
        for kind in Kind:
            self._lanes[side, kind].clear(now)

    def noticed(self, side: Side, now: float) -> None:
        """Record that something was received from a side: it is alive."""
        self._heard_at[side] = now

    def heard(self, side: Side, packet: bytes, now: float) -> bool:
        """Pass a packet to the lane that waits for it."""
        return any(self._lanes[side, kind].heard(packet, now) for kind in Kind)

    def emit(self, now: float) -> list[SidePacket]:
        """Return the packets to send now, left before right."""
        out: list[SidePacket] = []
        for (side, _), lane in self._lanes.items():
            for packet in lane.emit(now) if side in self.up else ():
                out.append(SidePacket(side, packet))
                self.sent_at[side] = now
        return out

    def timer(self, now: float) -> None:
        for lane in self._lanes.values():
            lane.timer(now)

    def due(self) -> float | None:
        return min(
            (due for lane in self._lanes.values() if (due := lane.due()) is not None), default=None
        )

    def backlog(self) -> int:
        return sum(lane.backlog() for lane in self._lanes.values())

    # -------------------------------------------------------------- the order of sides

    def _ended(self, leg: _Leg, side: Side, end: End, now: float) -> None:
        errand = leg.errand
        if end is End.UNANSWERED and self._heard_at.get(side, now) < leg.since:
            end = End.SILENT
            self.silent.append(side)
        errand.ends[side], errand.ended_at[side] = end, now
        self._go_on(errand, now)

    def _go_on(self, errand: Errand, now: float) -> None:
        """Start the sides that are due; an errand without any left is finished."""
        for side in self._turn(errand):
            errand.begun.append(side)
            if side in self.up:
                self._lanes[side, errand.kind].add(errand)
            else:
                errand.ends[side], errand.ended_at[side] = End.GONE, now
        if len(errand.ends) < len(errand.begun):
            return
        if self._turn(errand):
            self._go_on(errand, now)
        else:
            self.finished.append(errand)

    def _turn(self, errand: Errand) -> list[Side]:
        waiting = [side for side in Side if side in errand.legs and side not in errand.begun]
        if errand.order is Order.TOGETHER or not errand.begun:
            return waiting if errand.order is Order.TOGETHER else waiting[:1]
        last = errand.ends.get(errand.begun[-1])
        stops = (
            {None, End.REFUSED, End.DROPPED}
            if errand.order is Order.LEFT_FIRST
            else {None, End.TAKEN, End.DROPPED}
        )
        return [] if errand.stale or last in stops else waiting[:1]


__all__ = [
    "ACCEPTED",
    "ANSWER_S",
    "CONTINUE",
    "REFUSED",
    "TRIES",
    "Ask",
    "End",
    "Errand",
    "Kind",
    "Lane",
    "Order",
    "Scheduler",
    "Verdict",
    "anything",
    "verdict",
]
