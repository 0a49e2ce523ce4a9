"""One item to show or speak, and how far its delivery got."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from edge.core.results import Rendering
from edge.display.lens import Sheet
from firmware_bridge.messages import Done
from tools_cache.api.tool import Delivery, DeliveryReport

OnReport = Callable[[str, DeliveryReport], None]
"""(call id, report): called when a delivery changed after its first report."""
BRIEF_RANK: Final = -100
ASKING_RANK: Final = 100
"""Rank of a question's spoken form."""
NEWER: Final = "by something newer"
_NOTHING: Final = DeliveryReport(Delivery.NONE)


class SpeechState(Enum):
    """How far the speech of an item is."""

    NOT_BEGUN = auto()
    BEGUN = auto()
    OVER = auto()


def _future() -> "asyncio.Future[DeliveryReport]":
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True, eq=False)
class Presentation:
    """One item. `rank`: lower gives way; `expires_at`: when it becomes pointless (boot clock).

    `first` resolves when the lens has, or has not, acknowledged it; `final` when nothing more will
    come.
    """

    call_id: str
    scene: str
    rendering: Rendering
    rank: int
    expires_at: float
    on_report: OnReport
    progress_of: str = ""
    """The call whose progress this is; "" for anything else."""
    sheets: tuple[Sheet, ...] = ()
    page: int = 0
    seen: int = 0
    lit: bool = False
    until: float = 0.0
    leave_at: float | None = None
    speech: SpeechState = SpeechState.NOT_BEGUN
    downgrade: str = ""
    remark: str = ""
    lost: tuple[str, ...] = ()
    """Characters that boxes stand for on the lens."""
    report: DeliveryReport = _NOTHING
    first: "asyncio.Future[DeliveryReport]" = field(default_factory=_future)
    final: "asyncio.Future[DeliveryReport]" = field(default_factory=_future)

    @property
    def brief(self) -> bool:
        return self.rank <= BRIEF_RANK

    @property
    def asks(self) -> bool:
        return self.rank >= ASKING_RANK

    @property
    def reached(self) -> bool:
        """Whether the wearer really got something of it."""
        return self.report.state in (Delivery.SHOWN, Delivery.SPOKEN, Delivery.ACKNOWLEDGED)

    def say(self, state: Delivery, reason: str = "", *, final: bool = False) -> None:
        """Change the report, and resolve what waits for it."""
        report = DeliveryReport(state, reason, self.downgrade)
        changed = report != self.report
        self.report = report
        if not self.first.done():
            self.first.set_result(report)
        elif changed:
            self.on_report(self.call_id, report)
        if final:
            self.settle()

    def light(self, done: Done, now: float) -> None:
        """The glasses acknowledged its first page."""
        self.lit, self.page, self.seen = True, 1, 1
        if self.rendering.duration_s is not None:
            self.leave_at = now + self.rendering.duration_s
        self._stay(now)
        remarks = (self.remark, f"{done.clipped} clipped" if done.clipped else "")
        readable = done.drawn is not None and not self.lost
        state = Delivery.SHOWN if readable else Delivery.ACKNOWLEDGED
        self.say(state, "; ".join(filter(None, remarks)))

    def turn(self, now: float) -> None:
        """Go to the next page."""
        self.page += 1
        self._stay(now)

    def hold(self, seconds: float) -> None:
        """Something else had the lens for so long: extend the reading time by it."""
        self.until += seconds
        if self.leave_at is not None:
            self.leave_at += seconds

    def _stay(self, now: float) -> None:
        """Set how long this page stays: its reading time, within the duration of the whole."""
        self.until = now + self.sheets[self.page - 1].dwell_s
        if self.leave_at is not None:
            last = self.page >= len(self.sheets)
            self.until = self.leave_at if last else min(self.until, self.leave_at)

    def drop(self, why: list[str]) -> None:
        """Nothing could be shown or spoken, so nothing replaced anything either."""
        self.downgrade = ""
        self.say(Delivery.DROPPED, "; ".join(dict.fromkeys(why)) or "nothing was shown", final=True)

    def settle(self) -> None:
        """Resolve both futures with the report as it is."""
        for future in (self.first, self.final):
            if not future.done():
                future.set_result(self.report)

    def supersede(self, reason: str) -> None:
        """Something else took its place; what was read decides whether it was delivered."""
        if self.reached and self.seen >= len(self.sheets):
            self.settle()
        else:
            self.say(Delivery.SUPERSEDED, reason, final=True)
