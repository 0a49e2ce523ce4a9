"""What is on its way to the cloud and when it is due: the outbox's index in memory.

Also how a call ends unanswered. Pure: every moment (CLOCK_BOOTTIME seconds) is passed in.
"""

import heapq
from typing import Final

from msgspec import Struct

from edge.core.backoff import Chance, resend_after
from edge.storage.outbox import OutboxLane
from tools_cache.api.tool import ErrorCode, Json, ToolResponse

_SPARE: Final = 64
"""The heap of ends may hold so many removed messages beyond the number of living ones."""
ASK_AGAIN_S: Final = 30.0
"""An accepted call without a result is offered again this often: the result may be lost.

A broker can keep our session without its messages. A worker answers a known id with the stored
result.
"""
CALLS_A_SECOND: Final = 100
"""What a small cloud answers. A call among more of them waits its turn there: it is not lost."""
REFUSED_AGAIN_S: Final = 15.0
"""Longest pause before a message that the broker refused is offered again."""


class InflightMessage(Struct, eq=False):
    """One outbox row. `body` is kept until the first send; `heard`: progress was reported."""

    seq: int
    lane: str
    kind: str
    id: str
    topic: str
    born_at: float
    dies_at: float
    as_json: bool = False
    accepted: bool = False
    heard: bool = False
    attempt: int = 0
    body: dict[str, Json] | None = None
    due_at: float | None = 0.0
    gone: bool = False
    refusal: tuple[int, str] | None = None
    """Reason code and text of the broker's last refusal."""

    @property
    def is_call(self) -> bool:
        return self.lane == OutboxLane.CALL


class InflightMessages:
    """All messages by row number, and calls by id; due ones come in order of age."""

    def __init__(self, chance: Chance, *, resend_s: float = 1.0) -> None:
        self._chance = chance
        self._resend_s = resend_s
        self._by_seq: dict[int, InflightMessage] = {}
        self._calls: dict[str, InflightMessage] = {}
        self._due: list[tuple[float, int]] = []
        self._deaths: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._by_seq)

    def __contains__(self, seq: int) -> bool:
        return seq in self._by_seq

    def oldest_age_s(self, now: float) -> float:
        """Return the age of what waits longest; they stand in the order they were stored."""
        oldest = next(iter(self._by_seq.values()), None)
        return 0.0 if oldest is None else max(0.0, now - oldest.born_at)

    def add(self, message: InflightMessage) -> None:
        """Take a new message; one already known (a call submitted twice) is kept as it is."""
        if message.seq in self._by_seq:
            return
        self._by_seq[message.seq] = message
        if message.is_call:
            self._calls[message.id] = message
        heapq.heappush(self._deaths, (message.dies_at, message.seq))
        has_it = message.is_call and message.accepted
        self._schedule(message, message.born_at + ASK_AGAIN_S if has_it else 0.0)

    def call(self, call_id: str) -> InflightMessage | None:
        return self._calls.get(call_id)

    def answers(self, call_id: str) -> bool:
        """Tell whether a result for this invocation is on its way already."""
        return any(
            f.id == call_id and not f.is_call and f.kind == "result" for f in self._by_seq.values()
        )

    def accept(self, call_id: str, now: float) -> InflightMessage | None:
        """Stop sending a call for now: a worker has it."""
        message = self._calls.get(call_id)
        if message is not None:
            message.accepted = True
            self._schedule(message, now + ASK_AGAIN_S)
        return message

    def remove(self, seq: int) -> None:
        message = self._by_seq.pop(seq, None)
        if message is not None:
            message.gone = True
            if message.is_call:
                self._calls.pop(message.id, None)
            if len(self._deaths) > 2 * len(self._by_seq) + _SPARE:
                # One long life at the top would keep the entries of all that are gone.
                self._deaths = [(at, known) for at, known in self._deaths if known in self._by_seq]
                heapq.heapify(self._deaths)

    def take_due(self, now: float) -> list[InflightMessage]:
        """Return what is due, oldest first; it is not due again until `sent` or `all_due`."""
        found: list[InflightMessage] = []
        while self._due and self._due[0][0] <= now:
            at, seq = heapq.heappop(self._due)
            message = self._by_seq.get(seq)
            if message is None or message.due_at != at or message.dies_at <= now:
                continue  # removed, re-scheduled, or left to `take_dead`
            message.due_at = None
            message.attempt += 1
            found.append(message)
        return sorted(found, key=lambda f: f.seq)

    def sent(self, message: InflightMessage, now: float) -> None:
        """The broker has it, which is no delivery: send it again unless a sign of it comes."""
        if not message.gone and message.due_at is None:
            again = resend_after(message.attempt, self._chance, first_s=self._resend_s)
            again += len(self._calls) // CALLS_A_SECOND
            self._schedule(message, now + (ASK_AGAIN_S if message.accepted else again))

    def again(self, message: InflightMessage, now: float) -> None:
        """The broker did not take it: offer it again, while it may still be delivered."""
        if not message.gone:
            self._schedule(message, now + self.refused_again_after(message.attempt))

    def refused_again_after(self, attempt: int) -> float:
        """Seconds until a message is offered again after a refused `attempt`."""
        return min(REFUSED_AGAIN_S, resend_after(attempt, self._chance, first_s=self._resend_s))

    def all_due(self, *, accepted_too: bool) -> None:
        """After a connect send all that is unaccepted; with a lost session all calls.

        A result may be lost with the session; a worker answers a known id with the stored result.
        """
        for message in self._by_seq.values():
            if accepted_too or not message.accepted:
                self._schedule(message, 0.0)

    def next_due(self) -> float | None:
        while self._due:
            at, seq = self._due[0]
            message = self._by_seq.get(seq)
            if message is not None and message.due_at == at:
                return at
            heapq.heappop(self._due)
        return None

    def take_dead(self, now: float) -> list[InflightMessage]:
        """Return, once, everything whose life is over; the caller then removes it."""
        found: list[InflightMessage] = []
        while self._deaths and self._deaths[0][0] <= now:
            message = self._by_seq.get(heapq.heappop(self._deaths)[1])
            if message is not None:
                message.due_at = None
                found.append(message)
        return found

    def rearm(self) -> None:
        """Let everything expire again: a reader may have stopped before it was done."""
        self._deaths = [(message.dies_at, message.seq) for message in self._by_seq.values()]
        heapq.heapify(self._deaths)

    def next_death(self) -> float | None:
        while self._deaths and self._deaths[0][1] not in self._by_seq:
            heapq.heappop(self._deaths)
        return self._deaths[0][0] if self._deaths else None

    def _schedule(self, message: InflightMessage, at: float) -> None:
        message.due_at = at
        heapq.heappush(self._due, (at, message.seq))


# ------------------------------------------------------------------ how a call ends unanswered

_REFUSED: Final = {0x87: ErrorCode.AUTH, 0x97: ErrorCode.RATE_LIMIT}


def unanswered(message: InflightMessage) -> ToolResponse:
    """Tell apart: the broker refused it · nobody took it · taken, then silent · ran too long."""
    if message.refusal is not None and not message.accepted:
        return refused(message, *message.refusal)
    if not message.accepted:
        code, phase = ErrorCode.NOT_ACCEPTED, "not_accepted"
        text = "The cloud was not reachable in time."
        if message.attempt:
            text = "Nobody in the cloud took the call in time."
    elif not message.heard:
        code, phase = ErrorCode.TIMEOUT, "accepted_silent"
        text = "The cloud took the call and then said nothing in time."
    else:
        code, phase = ErrorCode.DEADLINE_EXPIRED, "ran_too_long"
        text = "The call was still running when its time was over."
    # A worker that took it may have done it; whether that does harm depends on the tool.
    details = {"phase": phase, "attempts": message.attempt}
    return ToolResponse.failure(code, text, details=details, partial_side_effects=message.accepted)


def refused(message: InflightMessage, code: int, why: str) -> ToolResponse:
    """Return the answer of a call that the broker itself refused."""
    error = _REFUSED.get(code, ErrorCode.NETWORK_ERROR)
    hint = f"Let this edge publish to {message.topic}." if error is ErrorCode.AUTH else None
    details = {"phase": "refused", "reason_code": code, "attempts": message.attempt}
    text = f"The broker refused the call: {why}"
    return ToolResponse.failure(error, text, suggestion=hint, details=details)
