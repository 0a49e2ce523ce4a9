"""Orders and retries the requests to both arms of an Even G1: one open request per lane, right
after left.

Each side has two lanes, one for the lens and one for the rest, with different opcodes: an answer
names only its opcode, so no two requests with the same opcode may be open on one arm.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from firmware_bridge.errors import LocalMisuse
from firmware_bridge.sides import Side, SidePacket

MAX_REQUESTS: Final = 64
"""Maximum number of unfinished requests; beyond it the caller is not waiting for answers."""
ANSWER_S: Final = 0.8
"""Seconds for one answer (26 to 40 ms captured); 3 tries on each arm stay below a page's 5 s."""
TRIES: Final = 3


class StepResult(Enum):
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


class LaneKind(Enum):
    LENS = auto()
    TALK = auto()


def verdict(answer: bytes) -> StepResult:
    """Judge a generic answer by its byte 1."""
    match answer[1:2]:
        case b"\xc9" | b"\xcb":
            return StepResult.TAKEN
        case b"\xca":
            return StepResult.REFUSED
        case _:
            return StepResult.OTHER


def anything(_answer: bytes) -> StepResult:
    """Accept any answer."""
    return StepResult.TAKEN


@dataclass(frozen=True, slots=True)
class Step:
    """A packet and the opcode of its answer, or None for packets without answer.

    `rest_s`: seconds before the next packet or retry. `restart`: a refusal sends all packets again.
    `optional`: the request continues without an answer.
    """

    packet: bytes
    answer: int | None = None
    timeout_s: float = ANSWER_S
    tries: int = TRIES
    rest_s: float = 0.0
    judge: Callable[[bytes], StepResult] = verdict
    restart: bool = False
    optional: bool = False


@dataclass(slots=True, eq=False)
class PairRequest:
    """Packets of one command for one or both sides; `number` 0 for our own requests. Used once."""

    steps: dict[Side, tuple[Step, ...]]
    order: Order = Order.LEFT_FIRST
    kind: LaneKind = LaneKind.TALK
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
class _SideRequest:
    """One side's part of a request, and its progress."""

    request: PairRequest
    steps: tuple[Step, ...]
    at: int = 0
    tries: int = 0
    since: float = 0.0

    @property
    def step(self) -> Step:
        return self.steps[self.at]


class Lane:
    """Sends one request at a time to one side; calls `ended` for every finished part."""

    def __init__(
        self, side: Side, ended: Callable[["_SideRequest", Side, End, float], None]
    ) -> None:
        self._side = side
        self._ended = ended
        self._queue: deque[_SideRequest] = deque()
        self._waiting = False
        self._due = float("-inf")

    def add(self, request: PairRequest) -> None:
        self._queue.append(_SideRequest(request, request.steps[self._side]))

    def requests(self) -> list[PairRequest]:
        return [part.request for part in self._queue]

    def backlog(self) -> int:
        return sum(len(step.packet) for part in self._queue for step in part.steps[part.at :])

    def due(self) -> float | None:
        """The time of the next action, or None."""
        return self._due if self._queue else None

    def emit(self, now: float) -> list[bytes]:
        """Return the packets to send now."""
        out: list[bytes] = []
        while self._queue and not self._waiting and now >= self._due:
            part = self._queue[0]
            if part.request.stale:
                self._end(part, End.DROPPED, now)
                continue
            step = part.step
            out.append(step.packet)
            if part.tries == 0:
                part.since = now
            if step.answer is None:
                self._due = now + step.rest_s
                self._next(part, now)
            else:
                self._waiting, self._due = True, now + step.timeout_s
        return out

    def receive(self, packet: bytes, now: float) -> bool:
        """Process an answer; return whether it was the expected one."""
        if not self._waiting or packet[0] != self._queue[0].step.answer:
            return False
        part = self._queue[0]
        judged = part.step.judge(packet)
        if judged is StepResult.OTHER:
            return False
        self._waiting, self._due = False, now
        if judged is StepResult.TAKEN:
            part.request.answers.append(packet)
            self._next(part, now)
        else:
            self._again(part, End.REFUSED, now)
        return True

    def timer(self, now: float) -> None:
        if self._waiting and now >= self._due:
            self._waiting, self._due = False, now
            self._again(self._queue[0], End.UNANSWERED, now)

    def clear(self, now: float) -> None:
        """Drop everything: the side is gone."""
        self._waiting = False
        while self._queue:
            self._end(self._queue[0], End.GONE, now)

    def _next(self, part: _SideRequest, now: float) -> None:
        part.at, part.tries = part.at + 1, 0
        if part.at == len(part.steps):
            self._end(part, End.TAKEN, now)

    def _again(self, part: _SideRequest, why: End, now: float) -> None:
        step = part.step
        part.tries += 1
        if part.tries < step.tries:
            self._due = now + step.rest_s
            if step.restart and why is End.REFUSED:
                # with one try fewer: whole messages are not repeated indefinitely
                last = replace(step, tries=step.tries - 1)
                part.at, part.tries, part.steps = 0, 0, (*part.steps[:-1], last)
        elif step.optional and why is End.UNANSWERED:
            self._next(part, now)
        else:
            self._end(part, why, now)

    def _end(self, part: _SideRequest, end: End, now: float) -> None:
        self._queue.popleft()
        self._ended(part, self._side, end, now)


class Scheduler:
    """All lanes of a pair. `finished`: completed requests; `silent`: sides to give up."""

    def __init__(self) -> None:
        self.up: set[Side] = set()
        self.finished: deque[PairRequest] = deque()
        self.silent: deque[Side] = deque()
        self.sent_at: dict[Side, float] = {}
        self._heard_at: dict[Side, float] = {}
        self._held: deque[PairRequest] = deque()
        self._lanes = {(side, kind): Lane(side, self._ended) for side in Side for kind in LaneKind}

    def begin(self, request: PairRequest, now: float) -> None:
        """Start a request. Raises `LocalMisuse` beyond the limit, never for our own few."""
        under_way = len(self._held) + sum(len(lane.requests()) for lane in self._lanes.values())
        if request.number and under_way >= MAX_REQUESTS:
            raise LocalMisuse(f"{MAX_REQUESTS} commands are under way: wait for their answers")
        if not self.sent_at and not self.up:
            self._held.append(request)  # wait for the first side
        else:
            self._go_on(request, now)

    def supersede(self) -> None:
        """End the requests on their way to the lens after the current answer: a page follows."""
        for (_, kind), lane in self._lanes.items():
            for request in lane.requests() if kind is LaneKind.LENS else ():
                request.stale = True

    def side_up(self, side: Side, now: float) -> None:
        self.up.add(side)
        self.sent_at[side] = self._heard_at[side] = now
        while self._held:
            self._go_on(self._held.popleft(), now)

    def side_down(self, side: Side, now: float) -> None:
        self.up.discard(side)
        for kind in LaneKind:
            self._lanes[side, kind].clear(now)

    def noticed(self, side: Side, now: float) -> None:
        """Record that something was received from a side: it is alive."""
        self._heard_at[side] = now

    def receive(self, side: Side, packet: bytes, now: float) -> bool:
        """Pass a packet to the lane that waits for it."""
        return any(self._lanes[side, kind].receive(packet, now) for kind in LaneKind)

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
        due = [lane.due() for lane in self._lanes.values()]
        return min((moment for moment in due if moment is not None), default=None)

    def backlog(self) -> int:
        return sum(lane.backlog() for lane in self._lanes.values())

    # -------------------------------------------------------------- the order of sides

    def _ended(self, part: _SideRequest, side: Side, end: End, now: float) -> None:
        request = part.request
        if end is End.UNANSWERED and self._heard_at.get(side, now) < part.since:
            end = End.SILENT
            self.silent.append(side)
        request.ends[side], request.ended_at[side] = end, now
        self._go_on(request, now)

    def _go_on(self, request: PairRequest, now: float) -> None:
        """Start the sides that are due; a request without any left is finished."""
        for side in self._turn(request):
            request.begun.append(side)
            if side in self.up:
                self._lanes[side, request.kind].add(request)
            else:
                request.ends[side], request.ended_at[side] = End.GONE, now
        if len(request.ends) < len(request.begun):
            return
        if self._turn(request):
            self._go_on(request, now)
        else:
            self.finished.append(request)

    def _turn(self, request: PairRequest) -> list[Side]:
        waiting = [side for side in Side if side in request.steps and side not in request.begun]
        if request.order is Order.TOGETHER or not request.begun:
            return waiting if request.order is Order.TOGETHER else waiting[:1]
        last = request.ends.get(request.begun[-1])
        stop = End.REFUSED if request.order is Order.LEFT_FIRST else End.TAKEN
        return [] if request.stale or last in (None, End.DROPPED, stop) else waiting[:1]
