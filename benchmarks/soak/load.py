"""The mixed load: so many acts a second in a drawn order, and faults on a timetable. Counts what
came of each.

It does not saturate: an act that finds too many others under way is left out, and counted.
"""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from functools import partial

import httpx

from benchmarks.soak.acts import MIX, Acts
from benchmarks.soak.cast import Cast
from benchmarks.soak.wires import Wires

AT_ONCE = 40
ACT_S = 90.0
"""Longest an act may take: beyond every deadline of a call."""
UNTIMED = frozenset({"follow", "hangup"})
"""Acts whose length the load decides, not the daemon."""
TROUBLES = 20
ALIKE = 24
"""Characters by which two broken promises are of one kind; two of each are reported."""
AWAY_S = 20.0
CLOUD_MORE = 200
"""Beyond the 5,000, as some are forgotten by their age."""
AWAY_EVERY_S = 300.0
DROP_EVERY_S = 420.0
CHANGE_EVERY_S = 120.0


class Tally:
    """Outcomes by act, latencies since the last look, and the first broken promises in words."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self.latencies: dict[str, list[float]] = defaultdict(list)
        self.broken: list[str] = []
        self.broken_count = 0
        self.left_out = 0

    @property
    def done(self) -> int:
        return sum(sum(counter.values()) for counter in self.outcomes.values())

    def note(self, name: str, outcome: str, took_s: float) -> None:
        if outcome.startswith("BROKEN"):
            self.broken_count += 1
            text = f"{name}: {outcome}"
            if (
                len(self.broken) < TROUBLES
                and sum(known[:ALIKE] == text[:ALIKE] for known in self.broken) < 2
            ):
                self.broken.append(text)
            outcome = "BROKEN"
        elif name not in UNTIMED:
            self.latencies[name].append(took_s * 1e3)
        self.outcomes[name][outcome] += 1

    def window(self) -> dict[str, list[float]]:
        taken, self.latencies = self.latencies, defaultdict(list)
        return taken


class Load:
    """`preload` fills what is bounded; `run` goes on until it is cancelled."""

    def __init__(self, wires: Wires, cast: Cast, *, rate: float, seed: int) -> None:
        self._wires = wires
        self._cast = cast
        self._rate = rate
        self._chance = random.Random(seed)
        self._acts = Acts(wires, self._chance)
        self._broker_away = False
        self.tally = Tally()
        self.in_flight = 0

    async def preload(self, calls: int, *, at_once: int = 16) -> float:
        """So many quick calls, and twice as many to and from the cloud before them, as fast as
        they go; calls a second.
        """
        began, invoked = time.monotonic(), calls // 2
        # The store remembers 5,000 of the cloud's ids, invocations with their answers, and 2,000
        # calls: all are full, in about the proportion that the load will keep, when the sampling
        # begins.
        await asyncio.gather(
            self._quickly(
                self._acts.quick_cloud, 2 * calls - invoked + CLOUD_MORE, at_once * 3 // 4
            ),
            self._quickly(self._acts.invoke, invoked, at_once // 4),
        )
        await self._quickly(self._acts.quick, calls, at_once)
        self.tally.window()
        return (3 * calls + CLOUD_MORE) / (time.monotonic() - began)

    async def _quickly(self, act: Callable[[], Awaitable[str]], number: int, at_once: int) -> None:
        left = iter(range(number))

        async def one_after_another() -> None:
            for _ in left:
                await self._do("preload", act)

        await asyncio.gather(*(one_after_another() for _ in range(at_once)))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                self._every(AWAY_EVERY_S, "broker away", self._without_broker), name="soak.broker"
            )
            tasks.create_task(
                self._every(DROP_EVERY_S, "glasses dropped", self._drop), name="soak.drop"
            )
            tasks.create_task(
                self._every(CHANGE_EVERY_S, "registry changed", self._acts.reregister),
                name="soak.registry",
            )
            await self._paced(tasks)

    async def _paced(self, tasks: asyncio.TaskGroup) -> None:
        names, weights = list(MIX), [weight for _, weight in MIX.values()]
        due = time.monotonic()
        while True:
            due = max(
                due + self._chance.expovariate(self._rate), time.monotonic() - 1.0
            )  # never catch up on more than a second
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            (name,) = self._chance.choices(names, weights)
            if self.in_flight >= AT_ONCE:
                self.tally.left_out += 1
                continue
            tasks.create_task(
                self._do(name, partial(MIX[name][0], self._acts)), name=f"soak.{name}"
            )

    async def _every(self, period_s: float, name: str, act: Callable[[], Awaitable[str]]) -> None:
        await asyncio.sleep(period_s / 4)
        while True:
            began = time.monotonic()
            await self._do(name, act)
            await asyncio.sleep(max(0.0, began + period_s - time.monotonic()))

    async def _do(self, name: str, act: Callable[[], Awaitable[str]]) -> None:
        """Do one act; whatever it meets becomes an outcome, so that one bad act does not end
        the soak.
        """
        self.in_flight += 1
        began = time.monotonic()
        try:
            async with asyncio.timeout(ACT_S):
                outcome = await act()
        except TimeoutError:
            outcome = f"BROKEN: no answer in {ACT_S:.0f} s"
        except (httpx.HTTPError, OSError, ValueError, KeyError, TypeError) as e:
            outcome = f"BROKEN: {type(e).__name__}: {e}"
        finally:
            self.in_flight -= 1
        self.tally.note(name, outcome, time.monotonic() - began)

    # -------------------------------------------------------------- faults on the timetable

    async def _without_broker(self) -> str:
        self._broker_away = True
        if not await self._cast.stop_broker():
            await self._wires.ask_cloud("/devcloud/broker", {"running": False})
        await asyncio.sleep(AWAY_S)
        await self.mend()
        return "gone and back"

    async def mend(self) -> None:
        """Bring back what the timetable took away; the load may have been ended in between."""
        if not self._broker_away:
            return
        if not await self._cast.start_broker():
            await self._wires.ask_cloud("/devcloud/broker", {"running": True})
        self._broker_away = False

    async def _drop(self) -> str:
        return "dropped" if (await self._wires.mock(do="drop")).get("noticed") else "nobody there"
