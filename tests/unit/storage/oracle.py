"""What must be true of the store, as plain dicts: the oracle of `test_life.py`.

It knows no SQL and no files; it only counts on the rules: the table of steps, and that one
key gives one answer.
"""

from dataclasses import dataclass, field

from edge.core.call_state import STEPS, CallState, Submission, check
from edge.core.grants import Consumption
from edge.core.idempotency import replayable
from edge.storage.keys import LIFE_S, REPEATABLE_LIFE_S
from tests.unit.storage.support import Hands
from tools_cache.api.tool import Delivery, ErrorCode, ToolResponse

SESSION_CALLS = 2
QUESTION_S, LATER_S, DAY_S = 300.0, 900.0, 86_400.0
GOOD = ToolResponse(data="bread")
FINAL = ToolResponse.failure(ErrorCode.DENIED, "no")
PASSING = ToolResponse.failure(ErrorCode.NETWORK_ERROR, "no net")
ENDS = {"ANSWERED": GOOD, "FAILED": PASSING, "CANCELLED": FINAL, "EXPIRED": PASSING}
"""States with an answer, and the answer each gets here."""


@dataclass
class Moment:
    """When something was made, as the oracle remembers it."""

    boot_id: str
    boot: float
    wall: float


@dataclass
class Life:
    """One call as it should be."""

    session: str
    steps: list[str]
    answer: ToolResponse | None = None
    life_s: float = LIFE_S
    answered_at: Moment | None = None
    delivery: str | None = None

    @property
    def state(self) -> str:
        return self.steps[-1]


@dataclass
class Question:
    call_id: str
    session: str
    asked_at: Moment
    used_at: Moment | None = None
    void: bool = False


@dataclass
class Later:
    session: str
    put_at: Moment
    status: str = "pending"


@dataclass
class Model:
    """What must be true of the store, as plain dicts. `recent` lists calls that hold keys, the
    last hit at its end.
    """

    hands: Hands
    calls: dict[str, Life] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    recent: list[str] = field(default_factory=list)
    questions: dict[str, Question] = field(default_factory=dict)
    later: dict[str, Later] = field(default_factory=dict)
    unsure: dict[str, str | None] = field(default_factory=dict)
    """Call → its delivery before the last one, which a crash may forget: nobody waited for it."""

    def now(self) -> Moment:
        return Moment(self.hands.clock.boot_id, self.hands.boot, self.hands.wall)

    def age(self, moment: Moment) -> float:
        if moment.boot_id == self.hands.clock.boot_id:
            return self.hands.boot - moment.boot
        return max(self.hands.boot, self.hands.wall - moment.wall)

    def sure(self, moment: Moment) -> bool:
        return moment.boot_id == self.hands.clock.boot_id or self.hands.wall >= moment.wall

    def owner(self, session: str, key: str) -> str | None:
        call_id = self.keys.get((session, key))
        if call_id is None:
            return None
        life = self.calls[call_id]
        if life.answer is None:
            return call_id
        assert life.answered_at is not None
        return (
            call_id
            if self.age(life.answered_at) <= life.life_s and replayable(life.answer)
            else None
        )

    def find(self, call_id: str, session: str, keys: list[str]) -> str | None:
        return call_id if call_id in self.calls else self.owner(session, keys[0]) if keys else None

    def hit(self, call_id: str) -> None:
        if call_id in self.keys.values():
            self.recent = [one for one in self.recent if one != call_id] + [call_id]

    def arrive(
        self, call_id: str, session: str, keys: list[str], state: str, *, repeatable: bool
    ) -> str | None:
        """Give whose answer this call gets; None when it is a new one."""
        found = self.find(call_id, session, keys)
        if found is not None:
            if keys:
                self.hit(found)
            return found
        self.calls[call_id] = Life(
            session, [state], life_s=REPEATABLE_LIFE_S if repeatable else LIFE_S
        )
        for key in keys:
            if self.owner(session, key) is None:
                self.keys[session, key] = call_id
        self.hit(call_id)
        return None

    def step(self, call_id: str, state: str) -> None:
        check(self.calls[call_id].state, state)
        self.calls[call_id].steps.append(state)

    def finish(self, call_id: str, state: str) -> bool:
        life = self.calls[call_id]
        if life.answer is not None:
            return False
        self.step(call_id, state)
        life.answer, life.answered_at = ENDS[state], self.now()
        self.hit(call_id)
        held = [one for one in self.recent if self._holds(one, life.session)]
        for old in held[:-SESSION_CALLS]:
            self.keys = {key: one for key, one in self.keys.items() if one != old}
        return True

    def _holds(self, call_id: str, session: str) -> bool:
        return (
            self.calls[call_id].session == session
            and self.calls[call_id].answer is not None
            and call_id in self.keys.values()
        )

    def deliver(self, call_id: str, word: Delivery) -> None:
        life = self.calls.get(call_id)
        if life is None:
            return
        self.unsure.pop(call_id, None)
        if word in (Delivery.NONE, Delivery.DROPPED):
            self.unsure[call_id] = life.delivery
        else:
            self.unsure.clear()  # it was waited for, and takes along what was said before
        life.delivery = word.value
        reached = word in (Delivery.SHOWN, Delivery.SPOKEN) and life.answer is not None
        if reached and CallState.DELIVERED in STEPS[CallState(life.state)]:
            life.steps.append("DELIVERED")

    def late(self, question: Question) -> bool:
        """Over, or of an age that nobody can tell."""
        return not self.sure(question.asked_at) or self.age(question.asked_at) >= QUESTION_S

    def forgets(self, question: Question, asked: str) -> bool:
        """What goes for good when the call `asked` is asked about: what is over stays over,
        whatever the clock does later.
        """
        if question.used_at is not None:
            return self.age(question.used_at) > DAY_S
        return question.call_id == asked or self.late(question)

    def decide(self, question: Question | None, *, allow: bool, matches: bool) -> Consumption:
        if question is None or question.void:
            return Consumption.EXPIRED
        if question.used_at is not None:
            return Consumption.USED
        waits = self.calls[question.call_id].state == "AWAITING_CONFIRMATION"
        if not waits or self.late(question):
            return Consumption.EXPIRED
        if not matches:
            return Consumption.MISMATCH
        question.used_at = self.now()
        if allow:
            self.step(question.call_id, "ADMITTED")
        return Consumption.TAKEN

    def hand_in(self, call_id: str, session: str) -> Submission:
        later = self.later.get(call_id)
        if later is None or later.session != session:
            return Submission.UNKNOWN
        if later.status != "pending" or self.age(later.put_at) >= LATER_S:
            return Submission.OVER
        later.status = "resolved"
        return Submission.TAKEN
