"""A storm over the link alone: random faults of the air and the adapter, one after the other and
one upon the other.

A whole daemon with its stock timing, real host stacks on both sides, HCI through a cable that can
be cut. Before each fault a page is on the lens; a fault is recovered when that very page is on the
lens again. `python -m tests.chaos.links --links 1000`.
"""

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firmware_bridge.messages import ShowPage, TextLine
from firmware_bridge.sim.faults import SimFault, parse_fault
from tests.scenarios.network import Cable
from tests.scenarios.world import World, until, world

MODEL = "mock:display"
PATIENCE_S = 60.0
"""The longest rest is 30 s, the longest step of the ladder 30 s; what takes longer is not
recovered.
"""
PAGE_S = 90.0
"""How long a page stays: longer than any recovery, else it would rightly not come back."""
TRIES = 3
HEARTBEAT_S = 0.3
"""Instead of 5 s, so that a silent link costs the storm under a second; everything else is as
shipped.
"""
TWICE = 0.2
"""Share of faults that another one meets while the link recovers."""
LONG = ShowPage(
    "long",
    lines=tuple(
        TextLine(row, f"row {row}: " + "many words in many packets " * 8) for row in range(5)
    ),
)
KINDS = {
    "drop": 30,  # the link is lost
    "cut": 15,  # in the middle of a message
    "stream": 15,  # the HCI stream ends; the next one is there at once
    "unplug": 10,  # it ends, and there is none for a while
    "away": 10,  # out of range, and back
    "mtu": 10,  # back with another MTU
    "mute": 10,  # a link that lives, and nothing comes over it
}
"""Kind → how often, by weight."""


@dataclass(frozen=True)
class Strike:
    """One fault: what, for how long or how much, and whether another follows `after_s` into the
    recovery.
    """

    kind: str
    amount: float = 0.0
    then: str = ""
    after_s: float = 0.0


@dataclass
class Report:
    """What the storm found."""

    seed: int
    wanted: int
    took_s: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    waits_s: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    @property
    def recovered(self) -> int:
        return len(self.waits_s)

    def line(self) -> str:
        """The report for people."""
        waits = sorted(self.waits_s) or [0.0]
        p50, p95 = waits[len(waits) // 2], waits[min(len(waits) - 1, len(waits) * 95 // 100)]
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(self.kinds.items()))
        rows = [
            f"links, seed {self.seed}: {self.wanted} faults ({kinds}); {self.took_s:.0f} s",
            (
                f"         recovered {self.recovered}; time to page restored p50 "
                f"{p50:.2f} s, p95 {p95:.2f} s, max {waits[-1]:.2f} s"
            ),
            *(f"  NOT RECOVERED {what}" for what in self.lost),
        ]
        return "\n".join(rows)


def plan(seed: int, number: int) -> list[Strike]:
    """The same seed is the same storm; a storm of enough faults has every kind."""
    chance = random.Random(seed)
    return [_strike(chance, kind) for kind in _dealt(chance, number)]


def _dealt(chance: random.Random, number: int) -> Iterator[str]:
    kinds = list(KINDS)
    chance.shuffle(kinds)
    yield from kinds[:number]
    yield from chance.choices(tuple(KINDS), tuple(KINDS.values()), k=max(0, number - len(kinds)))


def _strike(chance: random.Random, kind: str) -> Strike:
    amount = {
        "mtu": float(chance.choice((23, 185, 247, 517))),
        "away": chance.uniform(0.1, 1.0),
        "unplug": chance.uniform(0.05, 0.5),
    }
    then = chance.choice(("drop", "stream")) if chance.random() < TWICE else ""
    return Strike(kind, round(amount.get(kind, 0.0), 2), then, round(chance.uniform(0.0, 0.4), 3))


class LinkStorm:
    """One daemon, one pair of glasses, one cable between them."""

    def __init__(self, place: World, cable: Cable, report: Report) -> None:
        self._place = place
        self._cable = cable
        self._report = report

    async def strike(self, number: int, strike: Strike) -> None:
        """Put a page on the lens, do one fault, and wait until the page is back."""
        self._report.kinds[strike.kind] += 1
        try:
            scene = await self._page(number, strike)
            links, since = await self._hit(strike)
            if strike.then:
                await asyncio.sleep(strike.after_s)
                links, since = await self._hit(Strike(strike.then))
            await until(lambda: self._back(scene, links), lambda: str(self._status()), PATIENCE_S)
        except AssertionError as error:
            self._report.lost.append(f"{number} {strike}: {str(error)[:300]}")
        else:
            self._report.waits_s.append(time.monotonic() - since)

    async def _hit(self, strike: Strike) -> tuple[int, float]:
        """Do it to a lens thrown dark; gives how many links there were, and the moment from
        which one could come back.
        """
        links = self._status().link
        self._place.mock.glasses.lens.clear()  # what comes back was drawn again
        return links, await self._do(strike)

    async def _page(self, number: int, strike: Strike) -> str:
        """Show a page; what the fault before left behind (a cut that waited for a message) may
        cost a try.
        """
        text = (
            f"Fault number {number} is {strike.kind}. "
            + "It is read for a while before it goes. " * 4
        )
        for _ in range(TRIES):
            await until(
                lambda: self._status().ready,
                lambda: f"not even ready: {self._status()}",
                PATIENCE_S,
            )
            args = {"text": text, "duration_s": PAGE_S}
            shown = await self._place.call("glasses:show_text", args)
            if shown.meta["delivery"] == "shown":
                return str(shown.meta["callId"])
        raise AssertionError(f"the page before the fault: {shown}")

    def _status(self) -> Any:
        return self._place.daemon.link.status()

    def _back(self, scene: str, links: int) -> bool:
        status = self._status()
        return status.ready and status.link > links and self._place.mock.glasses.lens.scene == scene

    # -------------------------------------------------------------- faults

    async def _do(self, strike: Strike) -> float:
        """Do it; gives when it was over."""
        match strike.kind:
            case "stream":
                await self._cable.cut()
            case "unplug":
                await self._cable.pull_out()
                await asyncio.sleep(strike.amount)
                await self._cable.plug_in()
            case "away":
                await self._inject("away", strike.amount)
                await asyncio.sleep(strike.amount)
            case "mute":
                await self._silent()
            case "cut":
                await self._inject("cut")
                await self._long_message()
            case kind:
                await self._inject(kind, strike.amount)
        return time.monotonic()

    async def _inject(self, kind: str, value: float = 0.0) -> None:
        await self._place.mock.injector.inject(
            SimFault(kind, value) if value else parse_fault(kind)
        )

    async def _silent(self) -> None:
        """Nothing comes from the glasses until the daemon has noticed."""
        links = self._status().link
        await self._inject("lose-acks", 1)
        await until(
            lambda: not self._status().ready or self._status().link > links,
            "the silence is noticed",
            PATIENCE_S,
        )
        await self._place.mock.injector.inject(parse_fault("lose-acks:0"))

    async def _long_message(self) -> None:
        """Say something of more than one packet, which the glasses will not hear to its end."""
        links = self._status().link
        driver = self._place.daemon.link
        words = asyncio.ensure_future(driver.request(LONG))
        try:
            await until(
                lambda: self._status().link > links or not self._status().ready,
                "the cut is noticed",
                PATIENCE_S,
            )
        finally:
            words.cancel()
            await asyncio.wait([words])
            if not words.cancelled():
                words.exception()


async def storm(folder: Path, seed: int, number: int, say: Any = lambda _text: None) -> Report:
    """One storm of `number` faults."""
    report = Report(seed, number)
    began = time.monotonic()
    stock = {"backoff_min_s": 0.5, "backoff_max_s": 30.0, "scan_s": 10.0}
    async with world(folder, MODEL) as place:
        mock = await place.switch_glasses_on(radio="tcp:127.0.0.1:0")
        cable = Cable(int(mock.mount.radio.rpartition(":")[2]))
        await cable.plug_in()
        try:
            await place.start_daemon(glasses={"radio": f"tcp:127.0.0.1:{cable.port}", **stock})
            place.daemon.link._heartbeat_s = HEARTBEAT_S
            await place.ready()
            rage = LinkStorm(place, cable, report)
            for count, strike in enumerate(plan(seed, number), 1):
                await rage.strike(count, strike)
                place.happened.clear()
                place.shown.clear()
                if count % 100 == 0:
                    say(f"{count} faults, {report.recovered} recovered")
        finally:
            await place.stop_daemon()
            await cable.pull_out()
    report.took_s = time.monotonic() - began
    return report


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.links", description="Break the link again and again."
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--links", type=int, default=1000)
    words = parser.parse_args()
    report = run(words.seed, words.links)
    return 0 if report.recovered == words.links else 1


def run(seed: int, number: int) -> Report:
    """Storm, and print what came of it; of the log only what went wrong."""
    for name in ("edge.link.manager", "bumble"):
        logging.getLogger(name).setLevel(logging.ERROR)

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory(prefix="links-") as folder:
        report = asyncio.run(storm(Path(folder), seed, number, say))
    say(report.line())
    return report


if __name__ == "__main__":
    sys.exit(main())
