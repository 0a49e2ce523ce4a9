"""The life of calls under any interleaving of arrivals, decisions, answers, crashes, restarts and
clock jumps.

The oracle is a few dicts; the code under test is the real store on a real file. A crash goes on
with a copy of the files as they lie on the disk at that moment: what was acknowledged is in it.
`GLASSD_LIFE_EXAMPLES=2000` looks longer.
"""

import asyncio
import os
import shutil
import tempfile
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from edge.core.call_state import ANSWERED_STATES, STEPS, CallState, UnlistedStep, check
from edge.core.grants import Asked, Consumption
from edge.core.idempotency import replayable
from edge.storage.calls import CallStore, UnknownCall
from edge.storage.confirmations import Confirmations
from edge.storage.migrations import MIGRATIONS
from edge.storage.pending import PendingCalls
from edge.storage.sqlite.database import SqliteDatabase
from tests.unit.storage.oracle import (
    ENDS,
    GOOD,
    LATER_S,
    QUESTION_S,
    SESSION_CALLS,
    Later,
    Model,
    Question,
)
from tests.unit.storage.support import Hands
from tools_cache.api.tool import CallOrigin, Delivery, DeliveryReport, ToolCall, ToolResponse

LONG = os.environ.get("GLASSD_LIFE_EXAMPLES")
EXAMPLES = int(LONG or "25")
PHASES = tuple(Phase) if LONG else (Phase.explicit, Phase.reuse, Phase.generate)
"""Shrinking a failure takes minutes; a long look does it, and finds the failure of a short one
again.
"""

PICK = st.integers(0, 19)
"""Picks one of the calls, or of the tokens, there are; the newest are picked most often."""
SESSIONS = st.sampled_from(["", "", "", "s"])
KEYS = st.sampled_from([[], ["k1"], ["k2"], ["k3"], ["k4"], ["k1", "h"], ["k2", "h"], ["h"]])
STATES = st.sampled_from(sorted(ENDS))


class LifeOfCalls(RuleBasedStateMachine):
    """Each rule does one thing to the store and to the oracle, and compares what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="glassd-life-"))
        self.files = 0
        self.boots = 1
        self.hands = Hands()
        self.model = Model(self.hands)
        self.answers: dict[str, ToolResponse] = {}
        self.taken: list[str] = []

    def teardown(self) -> None:
        self.run(self.db.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize()
    def begin(self) -> None:
        self.open()

    def open(self) -> None:
        self.db = self.run(
            SqliteDatabase.open(self.folder / f"{self.files}.db", MIGRATIONS, reserve=False)
        )
        self.calls = CallStore(
            self.db,
            self.hands.clock,
            check,
            replayable=replayable,
            session_calls=SESSION_CALLS,
        )
        self.confirmations = Confirmations(self.db, self.hands.clock, check)
        self.pending = PendingCalls(self.db, self.hands.clock)

    def call(self, call_id: str, session: str) -> ToolCall:
        return ToolCall(
            call_id=call_id,
            tool="notes:add",
            args={"id": call_id},
            origin=CallOrigin.CLI,
            ttl_s=3600.0,
            session=session,
        )

    # -------------------------------------------------------------- arrivals

    def pick(self, number: int) -> str:
        """One of the known calls, or one nobody knows."""
        known = list(self.model.calls)[::-1]
        return (
            known[number % (len(known) + 1)]
            if number % (len(known) + 1) < len(known)
            else f"new {len(known)}"
        )

    @rule(number=PICK, session=SESSIONS, keys=KEYS, asks=st.booleans(), repeatable=st.booleans())
    def arrive_again(self, number, session, keys, asks, repeatable):
        self.arrives(self.pick(number), session, keys, asks=asks, repeatable=repeatable)

    @rule(session=SESSIONS, keys=KEYS, asks=st.booleans(), repeatable=st.booleans())
    def arrive(self, session, keys, asks, repeatable):
        self.arrives(f"c{len(self.model.calls)}", session, keys, asks=asks, repeatable=repeatable)

    @rule(session=SESSIONS, keys=KEYS, end=STATES, repeatable=st.booleans())
    def live_through(self, session, keys, end, repeatable):
        """A call's plain way from beginning to end, so that whole lives are not rare."""
        call_id = f"c{len(self.model.calls)}"
        self.arrives(call_id, session, keys, asks=False, repeatable=repeatable)
        self.advances(call_id, "RUNNING")
        self.finishes(call_id, end)

    def arrives(self, call_id, session, keys, *, asks, repeatable):
        state = "AWAITING_CONFIRMATION" if asks else "ADMITTED"
        said = self.run(
            self.calls.admit(
                self.call(call_id, session), "local", keys=keys, repeatable=repeatable, state=state
            )
        )
        found = self.model.arrive(call_id, session, keys, state, repeatable=repeatable)
        self.same_admission(said, found, call_id)

    @rule(number=PICK, session=SESSIONS, keys=KEYS)
    def look(self, number, session, keys):
        call_id = self.pick(number)
        said = self.run(self.calls.known(self.call(call_id, session), keys=keys))
        found = self.model.find(call_id, session, keys)
        assert (said is None) == (found is None)
        if said is not None:
            if keys:
                self.model.hit(found)
            self.same_admission(said, found, call_id)

    def same_admission(self, said, found, call_id):
        answer = None if found is None else self.model.calls[found].answer
        assert (said.fresh, said.call_id, said.response) == (
            found is None,
            found or call_id,
            answer,
        )

    # -------------------------------------------------------------- steps and answers

    @rule(number=PICK, state=st.sampled_from(["RUNNING", "PENDING", "ADMITTED"]))
    def advance(self, number, state):
        self.advances(self.pick(number), state)

    def advances(self, call_id, state):
        self.same_error(self.calls.advance(call_id, state), lambda: self.model.step(call_id, state))

    @rule(number=PICK, state=STATES)
    def finish(self, number, state):
        self.finishes(self.pick(number), state)

    def finishes(self, call_id, state):
        self.same_error(
            self.calls.finish(call_id, state, ENDS[state]),
            lambda: self.model.finish(call_id, state),
        )

    def same_error(self, work, oracle):
        outcomes = []
        for one in (lambda: self.run(work), oracle):
            try:
                outcomes.append(one())
            except (UnlistedStep, UnknownCall, KeyError) as error:
                outcomes.append(UnknownCall if isinstance(error, KeyError) else type(error))
        assert outcomes[0] == outcomes[1]

    @rule(
        number=PICK,
        word=st.sampled_from([Delivery.SENT, Delivery.SHOWN, Delivery.SPOKEN, Delivery.DROPPED]),
    )
    def deliver(self, number, word):
        call_id = self.pick(number)
        self.run(self.calls.tell_delivery(call_id, DeliveryReport(word)))
        self.model.deliver(call_id, word)

    # -------------------------------------------------------------- a yes

    @rule(session=SESSIONS, keys=KEYS)
    def arrive_and_ask(self, session, keys):
        call_id = f"c{len(self.model.calls)}"
        self.arrives(call_id, session, keys, asks=True, repeatable=False)
        self.asks(call_id)

    @rule(number=PICK)
    def ask_again(self, number):
        self.asks(self.pick(number))

    def asks(self, call_id):
        if (
            call_id not in self.model.calls
            or self.model.calls[call_id].state != "AWAITING_CONFIRMATION"
        ):
            return
        session, token = self.model.calls[call_id].session, f"t{len(self.model.questions) + 1}"
        self.run(
            self.confirmations.ask(
                Asked(call_id, token, "notes:add", call_id, "local", session, QUESTION_S)
            )
        )
        for older in self.model.questions.values():
            older.void = older.void or self.model.forgets(older, call_id)
        self.model.questions[token] = Question(call_id, session, self.model.now())

    @rule(number=PICK, allow=st.booleans(), other=st.sampled_from([False, False, True]))
    def confirm(self, number, allow, other):
        token = f"t{len(self.model.questions) - number % 3}"
        question = self.model.questions.get(token)
        session = question.session if question else ""
        args_hash = "another" if other else question.call_id if question else "x"
        said = self.run(
            self.confirmations.consume(
                token,
                allow=allow,
                tool="notes:add",
                args_hash=args_hash,
                user_id="local",
                session=session,
            )
        )
        assert said.outcome == self.model.decide(question, allow=allow, matches=not other)
        if said.outcome is Consumption.TAKEN:
            self.taken.append(token)

    @rule(number=PICK, allow=st.booleans())
    def wearer_decides(self, number, allow):
        call_id = self.pick(number)
        said = self.run(self.confirmations.consume_call(call_id, allow=allow))
        token, question = self.question_about(call_id)
        assert said.outcome == self.model.decide(question, allow=allow, matches=True)
        if said.outcome is Consumption.TAKEN:
            self.taken.append(token)

    def question_about(self, call_id):
        asked = [
            (token, one)
            for token, one in self.model.questions.items()
            if one.call_id == call_id and not one.void
        ]
        return asked[-1] if asked else ("", None)

    # -------------------------------------------------------------- results that come later

    @rule(number=PICK)
    def wait_for_result(self, number):
        call_id = self.pick(number)
        if (life := self.model.calls.get(call_id)) is not None:
            self.run(self.pending.put(self.call(call_id, life.session), ttl_s=LATER_S))
            self.model.later.setdefault(call_id, Later(life.session, self.model.now()))

    @rule(number=PICK, session=SESSIONS)
    def hand_in(self, number, session):
        call_id = ([*self.model.later, "nobody"])[number % (len(self.model.later) + 1)]
        for _ in range(2):
            said = self.run(self.pending.resolve(call_id, GOOD, user_id="local", session=session))
            assert said == self.model.hand_in(call_id, session)

    @rule(number=PICK, status=st.sampled_from(["expired", "cancelled"]))
    def close_pending(self, number, status):
        call_id = self.pick(number)
        self.run(self.pending.close(call_id, status))
        if call_id in self.model.later and self.model.later[call_id].status == "pending":
            self.model.later[call_id].status = status

    # -------------------------------------------------------------- the world

    @rule(seconds=st.sampled_from([1.0, 250.0, 800.0, 3601.0, 86_401.0]))
    def time_passes(self, seconds):
        self.hands.pass_s(seconds)

    @rule(days=st.sampled_from([-1, 1]))
    def wall_clock_jumps(self, days):
        self.hands.wall += days * 86_400.0

    @rule()
    def restart(self):
        self.run(self.db.close())
        self.model.unsure.clear()
        self.open()

    @rule(off_s=st.sampled_from([1.0, 100.0, 100_000.0]))
    def reboot(self, off_s):
        self.run(self.db.close())
        self.model.unsure.clear()
        self.boots += 1
        self.hands.reboot(f"boot-{self.boots}", off_s=off_s)
        self.open()

    @rule()
    def crash(self):
        self.copy_files()
        self.go_on_with_the_copy()

    @rule(session=SESSIONS, keys=KEYS, landed=st.booleans())
    def crash_while_a_call_arrives(self, session, keys, landed):
        call_id = f"c{len(self.model.calls)}"
        self.crash_in(
            self.calls.admit(self.call(call_id, session), "local", keys=keys), landed=landed
        )
        if landed:
            self.model.arrive(call_id, session, keys, "ADMITTED", repeatable=False)

    @rule(number=PICK, state=STATES, landed=st.booleans())
    def crash_while_a_call_ends(self, number, state, landed):
        call_id = self.pick(number)
        if (
            call_id in self.model.calls
            and CallState(state) in STEPS[CallState(self.model.calls[call_id].state)]
        ):
            self.crash_in(self.calls.finish(call_id, state, ENDS[state]), landed=landed)
            if landed:
                self.model.finish(call_id, state)

    @rule(number=PICK, allow=st.booleans(), landed=st.booleans())
    def crash_while_the_wearer_decides(self, number, allow, landed):
        call_id = self.pick(number)
        self.crash_in(self.confirmations.consume_call(call_id, allow=allow), landed=landed)
        token, question = self.question_about(call_id)
        if landed and self.model.decide(question, allow=allow, matches=True) is Consumption.TAKEN:
            self.taken.append(token)

    def crash_in(self, work, *, landed):
        """Nobody hears of `work`: the files are taken just before its commit, or just after."""

        async def until_the_crash() -> None:
            inside, go = threading.Event(), threading.Event()
            before = asyncio.ensure_future(self.db.read(lambda _c: (inside.set(), go.wait(10))))
            while not inside.is_set():
                await asyncio.sleep(0)
            # What queues now is one transaction: the work, and behind it the copy of what is on the
            # disk meanwhile.
            doing = asyncio.ensure_future(work)
            await asyncio.sleep(0)
            copying = asyncio.ensure_future(
                self.db.read(lambda _c: None if landed else self.copy_files())
            )
            await asyncio.sleep(0)
            go.set()
            await asyncio.gather(before, doing, copying)

        self.run(until_the_crash())
        if landed:
            self.copy_files()
        self.go_on_with_the_copy()

    def copy_files(self):
        for suffix in (".db", ".db-wal"):
            shutil.copyfile(
                self.folder / f"{self.files}{suffix}", self.folder / f"{self.files + 1}{suffix}"
            )

    def go_on_with_the_copy(self):
        old, self.files = self.db, self.files + 1
        self.run(old.close())
        self.open()
        for call_id, before in self.model.unsure.items():
            if self.run(self.calls.get(call_id))["delivery"] == before:
                self.model.calls[call_id].delivery = before
        self.model.unsure.clear()

    # -------------------------------------------------------------- what is always true

    def seen(self, model: Model) -> dict[str, Any]:
        return {
            "calls": {
                i: (life.state, life.steps, life.answer, life.delivery)
                for i, life in model.calls.items()
            },
            "keys": {
                key: call for key, call in model.keys.items() if model.owner(*key) is not None
            },
            "unfinished": [i for i, life in model.calls.items() if life.answer is None],
        }

    async def observe(self, model: Model) -> dict[str, Any]:
        """The same of the store; what a dead key stands for is nobody's business."""
        sql = "SELECT k.session, k.key, c.call_id FROM call_keys k JOIN calls c ON c.seq = k.call"
        unfinished, rows, *stories = await asyncio.gather(
            self.calls.unfinished(),
            self.db.read(lambda c: c.execute(sql).fetchall()),
            *(self.calls.get(i) for i in (*model.calls, "nobody")),
        )
        reported = {
            story["call_id"]: (
                story["state"],
                [s["state"] for s in story["steps"]],
                None if story["response"] is None else ToolResponse.from_json(story["response"]),
                story["delivery"],
            )
            for story in stories
            if story is not None
        }
        keys = {(row[0], row[1]): row[2] for row in rows if model.owner(row[0], row[1]) is not None}
        return {"calls": reported, "keys": keys, "unfinished": [u.call.call_id for u in unfinished]}

    @invariant()
    def the_store_is_as_the_oracle_says(self):
        if hasattr(self, "db"):
            assert self.run(self.observe(self.model)) == self.seen(self.model)

    @invariant()
    def one_answer_per_call_that_never_changes(self):
        for call_id, life in self.model.calls.items():
            assert sum(
                state in ANSWERED_STATES - {CallState.DELIVERED} for state in life.steps
            ) == (life.answer is not None)
            if life.answer is not None:
                assert self.answers.setdefault(call_id, life.answer) == life.answer

    @invariant()
    def only_listed_steps(self):
        for life in self.model.calls.values():
            for before, after in zip(life.steps, life.steps[1:], strict=False):
                check(before, after)

    @invariant()
    def a_token_is_consumed_at_most_once(self):
        assert len(self.taken) == len(set(self.taken))

    @invariant()
    def open_questions_and_pending_calls_are_as_the_oracle_says(self):
        if not hasattr(self, "db"):
            return
        model = self.model
        waiting = {
            token
            for token, one in model.questions.items()
            if not (one.used_at or one.void or model.late(one))
            and model.calls[one.call_id].answer is None
        }
        assert {asked.token_hash for asked in self.run(self.confirmations.open())} == waiting
        later = {
            i: max(0.0, LATER_S - model.age(one.put_at))
            for i, one in model.later.items()
            if one.status == "pending"
        }
        assert dict(self.run(self.pending.open())) == pytest.approx(later)


TestLifeOfCalls = LifeOfCalls.TestCase
TestLifeOfCalls.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=60,
    phases=PHASES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
