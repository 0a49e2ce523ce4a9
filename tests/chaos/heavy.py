"""Heavy load: 200 invocations and 400 durable calls wait while the daemon is killed again and
again, on a broker with stock settings. After each kill the uplink must be back in time; in the end
nothing may be lost or done twice.
"""

import random
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos import judge
from tests.chaos.callers import BrokeOff, Callers, NotThere, request, tool_and_args
from tests.chaos.cast import Cast, until
from tests.chaos.records import Record
from tests.chaos.schedule import Call

INVOCATIONS = 200
DURABLE = 400
BACK_S = 20.0
"""From the start of the next daemon until its uplink is up."""
ROUND = 50
"""Kills between two times of quiet, in which everything that waits is answered."""
DRAIN_S = 300.0
CALLERS = 8
TTL_S = 1200.0


@dataclass
class Result:
    """What happened, and what the judge says."""

    kills: int = 0
    back_s: list[float] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    """Messages in the outbox at each kill."""
    open: list[int] = field(default_factory=list)
    """Invocations without a result at each start."""
    found: dict[str, Any] = field(default_factory=dict)
    took_s: float = 0.0

    @property
    def late(self) -> int:
        return sum(took > BACK_S for took in self.back_s)

    @property
    def whole(self) -> bool:
        return not (
            self.late or self.found["lost"] or self.found["doubled"] or self.found["untold"]
        )


def run(
    folder: Path, seed: int, kills: int, *, say: Callable[[str], None] = lambda _text: None
) -> Result:
    """Kill `kills` times. One state directory for all lives, as in the storm."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    load = Load(folder, random.Random(seed), say)
    try:
        load.start()
        while load.result.kills < kills:
            load.round(min(ROUND, kills - load.result.kills))
    finally:
        load.close()
    load.result.found = judge.verdict(folder, folder / "state" / "packages" / "notes.db")
    load.result.took_s = time.monotonic() - began
    return load.result


def printed(result: Result) -> str:
    """The report for people."""
    found, back = result.found, sorted(result.back_s)
    return "\n".join(
        [
            f"heavy load: {result.kills} kills in {result.took_s:.0f} s; waiting at a kill: "
            f"{min(result.waiting)} to {max(result.waiting)} messages in the outbox, "
            f"{min(result.open)} to {max(result.open)} invocations",
            (
                f"uplink   back after {back[len(back) // 2]:.1f} s (median), "
                f"{back[-1]:.1f} s (longest); later than {BACK_S:g} s: {result.late}"
            ),
            f"calls    {found['calls']}: "
            + ", ".join(f"{k} {n}" for k, n in found["calls_by_kind"].items())
            + f"; refused {found['refused']}",
            "answers  " + ", ".join(f"{k} {n}" for k, n in found["answers_by_code"].items()),
            *(
                f"  {o['verdict'].upper()} {o['id']}: {o['rule']}: {o['why']} [{o['where']}]"
                for o in found["offences"][:40]
            ),
            f"lost {found['lost']}, doubled {found['doubled']}, untold {found['untold']}",
        ]
    )


class Load:
    """Keeps so many calls and invocations waiting, kills, and measures."""

    def __init__(self, folder: Path, chance: random.Random, say: Callable[[str], None]) -> None:
        self.result = Result()
        self._cast = Cast(folder, glasses=False, stock_broker=True)
        self._callers = Callers(self._cast.socket, Record(folder / "callers.jsonl"))
        self._chance = chance
        self._say = say
        self._number = 0
        self._lock = threading.Lock()

    def start(self) -> None:
        self._cast.start()
        self._cast.start_daemon()
        self._cast.await_daemon()
        self._cast.await_ready()

    def close(self) -> None:
        self._cast.close()
        self._callers.record.close()

    def round(self, kills: int) -> None:
        """The workers are away, calls pile up, the daemon is killed so many times; then all are
        answered.
        """
        self._cast.children["cloud"].kill9()
        self._fill_outbox()
        end = self.result.kills + kills
        while self.result.kills < end:
            self._kill()
            self._cast.start_daemon()
            if self._chance.random() < 0.5 and self.result.kills < end:
                self._kill_early()
            self._up()
        self._cast.start_cloud()
        self._drain()
        self._say(
            f"heavy: {self.result.kills} kills, longest "
            f"{max(self.result.back_s):.1f} s without the uplink"
        )

    # -------------------------------------------------------------- one kill

    def _kill(self) -> None:
        """Any moment of the first second after the uplink came up; what was invoked meanwhile
        waits at the broker.
        """
        time.sleep(self._chance.uniform(0.0, 0.8))
        self.result.waiting.append(int(self._cast.status().get("outbox", {}).get("waiting", 0)))
        self._cast.kill_daemon()
        self.result.kills += 1
        self._invoke()

    def _kill_early(self) -> None:
        """Right after the daemon answers: what it was sent is not acknowledged, and comes again
        all at once.
        """
        self._cast.await_daemon()
        time.sleep(self._chance.uniform(0.0, 0.25))
        self._cast.kill_daemon()
        self.result.kills += 1
        self._cast.start_daemon()

    def _up(self) -> None:
        began = time.monotonic()
        with suppress(TimeoutError):
            until(
                lambda: self._cast.status().get("uplink", {}).get("state") == "up",
                "the uplink is back",
                within_s=4 * BACK_S,
                every_s=0.05,
            )
        self.result.back_s.append(time.monotonic() - began)

    # -------------------------------------------------------------- load

    def _next(self, kind: str) -> Call:
        with self._lock:
            self._number += 1
            return Call(0.0, f"H{self._number:06d}", kind, 0.0)

    def _open(self) -> list[str]:
        found: list[str] = self._cast.children["witness"].ask('{"do": "open"}')["open"]
        return found

    def _invoke(self) -> None:
        """Fill up to so many invocations without a result."""
        waiting = len(self._open())
        for _ in range(INVOCATIONS - waiting):
            call = self._next("jot_invoked")
            tool, args = tool_and_args(call)
            call_id = str(uuid.uuid5(uuid.NAMESPACE_OID, call.token))
            self._callers.record.say(ev="invoke", token=call.token, kind=call.kind, id=call_id)
            self._cast.invoke(id=call_id, tool=tool, args=args, ttl_s=TTL_S)
        self.result.open.append(len(self._open()))

    def _fill_outbox(self) -> None:
        """So many durable calls that no worker takes, from several callers at once."""
        wanted = [self._next("mark") for _ in range(DURABLE - len(self._callers.open))]

        def ask() -> None:
            with suppress(IndexError):
                while True:
                    self._ask(wanted.pop())

        threads = [threading.Thread(target=ask) for _ in range(CALLERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _ask(self, call: Call) -> None:
        tool, args = tool_and_args(call)
        self._callers.record.say(ev="asked", token=call.token, kind=call.kind, key=None)
        status, answer = request(
            self._cast.socket, "POST", "/v1/call", {"tool": tool, "args": args, "wait": False}
        )
        if status == 202:
            self._callers.promise(answer["call_id"], call.token)
        else:
            self._callers.record.say(ev="refused", token=call.token, status=status, answer=answer)

    def _drain(self) -> None:
        """Everybody is there; wait until every promise is kept."""

        def quiet() -> bool:
            with suppress(NotThere, BrokeOff):
                return not self._callers.look_up(most=DURABLE) and not self._open()
            return False

        with suppress(TimeoutError):
            until(quiet, "every call is answered", within_s=DRAIN_S, every_s=0.5)
