"""One item to show or speak, and how far its delivery got."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from msgspec import Struct, field

from edge.core.results import Rendering
from edge.display.lens import Sheet
from edge.display.page_life import PageReading, Previous, cut
from firmware_bridge.messages import Done
from tools_cache.api.tool import Delivery, DeliveryReport

OnReport = Callable[[str, DeliveryReport], None]
"""(call id, report): called when a delivery changed after its first report."""
LIFE_S: Final = 60.0
"""Seconds after which a result that could not be shown is no answer any more."""
BRIEF_RANK: Final = -100
ASKING_RANK: Final = 100
"""Rank of a question's spoken form."""
AWAY: Final = "glasses away"
NEWER: Final = "by something newer"
_NOTHING: Final = DeliveryReport(Delivery.NONE)


class SpeechState(Enum):
    """How far the speech of an item is."""

    NOT_BEGUN = auto()
    BEGUN = auto()
    OVER = auto()


def _future() -> "asyncio.Future[DeliveryReport]":
    return asyncio.get_running_loop().create_future()


class Presentation(Struct, eq=False):
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
    mark: bool = False
    """Progress that says no more than that its call is running."""
    until_shown: bool = False
    """Whoever waits for its first report does not want to hear that it waits for the lens."""
    sheets: tuple[Sheet, ...] = ()
    on_tap: tuple[Sheet, ...] = ()
    """Pages after the last one, for a wearer who wants more: only a tap leads there."""
    page: int = 0
    seen: int = 0
    lit: bool = False
    lit_at: float = 0.0
    """When its first page was drawn (boot clock), later by the time in which others covered it."""
    drawn_at: float = 0.0
    """When the page that is on the lens was drawn last (boot clock)."""
    lost_at: float | None = None
    """When another page replaced it; None while it has the lens."""
    tapped: bool = False
    recalled: int = 0
    """Which of the last results this is, shown again because the wearer tapped: 1 is the newest; 0:
    it is none.
    """
    forgotten: bool = False
    """It is not restored after a restart: the wearer wants nothing of it on disk."""
    corner: tuple[str, ...] = ()
    """What is written in the corner of its pages: the longest that fits."""
    offered_until: float | None = None
    """Until when a tap takes what it offers; None if it offers nothing, or not yet."""
    until: float = 0.0
    leave_at: float | None = None
    speech: SpeechState = SpeechState.NOT_BEGUN
    downgrade: str = ""
    remark: str = ""
    unspoken: str = ""
    """Why its words are on the lens although they were to be spoken."""
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

    @property
    def pages(self) -> tuple[Sheet, ...]:
        """Its pages; once a tap has led beyond the last one, those too."""
        return self.sheets if self.page <= len(self.sheets) else self.sheets + self.on_tap

    @property
    def takes_s(self) -> float:
        """Seconds that all of it takes on the lens."""
        asked = self.rendering.duration_s
        return sum(sheet.dwell_s for sheet in self.sheets) if asked is None else asked

    @property
    def offers(self) -> bool:
        """Whether a tap takes what it offers."""
        return self.offered_until is not None and self.page == len(self.sheets)

    def offered_for_s(self, now: float) -> float:
        """Return for how many seconds the offer has been on the lens, since it was drawn last."""
        if self.offered_until is None or self.rendering.offer is None:
            return 0.0
        return now - max(self.offered_until - self.rendering.offer.for_s, self.drawn_at)

    def reading(self, now: float) -> PageReading:
        """Return how far it is read, or was when it lost the lens."""
        at = now if self.lost_at is None else self.lost_at
        rest = sum(sheet.dwell_s for sheet in self.sheets[self.page :])
        left = self.until - at + rest if self.leave_at is None else self.leave_at - at
        return PageReading(at - self.lit_at, self.tapped, self.seen >= len(self.sheets), left)

    def say(self, state: Delivery, reason: str = "", *, final: bool = False) -> None:
        """Change the report, and resolve what waits for it."""
        report = DeliveryReport(state, reason, self.downgrade)
        changed = report != self.report
        self.report = report
        waits = state is Delivery.QUEUED and reason != AWAY
        if not self.first.done():
            if not (self.until_shown and waits):
                self.first.set_result(report)
        elif changed:
            self.on_report(self.call_id, report)
        if final:
            self.settle()

    def light(self, done: Done, now: float) -> None:
        """The glasses acknowledged its first page."""
        self.lit, self.page, self.seen = True, 1, 1
        self.lit_at = self.drawn_at = now
        self.lost_at = None
        if self.rendering.duration_s is not None:
            self.leave_at = now + self.rendering.duration_s
        self._stay(now)
        remarks = (self.unspoken, self.remark, f"{done.clipped} clipped" if done.clipped else "")
        readable = done.drawn is not None and not self.lost
        state = Delivery.SHOWN if readable else Delivery.ACKNOWLEDGED
        self.say(state, "; ".join(filter(None, remarks)))

    def turn(self, now: float) -> None:
        """Go to the next page. A wearer who asks for more is given the time to read it."""
        self.page += 1
        if self.page > len(self.sheets):
            self.leave_at = None
        self._stay(now)

    def miss_page(self) -> None:
        """The glasses did not take the page it is at; what comes after a tap only is no loss."""
        on_lens = self.report.state in (Delivery.SHOWN, Delivery.ACKNOWLEDGED)
        if on_lens and self.page <= len(self.sheets):
            reasons = filter(None, (self.report.reason, f"page {self.page} was not taken"))
            self.say(Delivery.ACKNOWLEDGED, "; ".join(reasons))

    def turn_back(self, now: float) -> None:
        """Go to the page before."""
        self.page -= 1
        self._stay(now)

    def open(self, sheets: tuple[Sheet, ...], now: float) -> None:
        """Put these pages in the place of the one to which a tap has led."""
        at = self.page - 1 - len(self.sheets)
        self.on_tap = (*self.on_tap[:at], *sheets, *self.on_tap[at + 1 :])
        self._stay(now)

    def return_at(self, now: float) -> None:
        """It has the lens again, with the time it had left."""
        if self.lost_at is not None:
            self.hold(now - self.lost_at)
            self.lost_at = None

    def hold(self, seconds: float) -> None:
        """Something else had the lens for so long: extend the reading time by it."""
        self.lit_at += seconds
        self.until += seconds
        if self.leave_at is not None:
            self.leave_at += seconds
        if self.offered_until is not None:
            self.offered_until += seconds

    def _stay(self, now: float) -> None:
        """Set how long this page stays: its reading time, within the duration of the whole."""
        self.until = now + self.pages[self.page - 1].dwell_s
        last = self.page >= len(self.sheets)
        if self.leave_at is not None:
            self.until = self.leave_at if last else min(self.until, self.leave_at)
        offer = self.rendering.offer
        if offer is not None and self.page == len(self.sheets):
            self.offered_until = now + offer.for_s
            if self.leave_at is None:
                self.until = max(self.until, self.offered_until)

    def drop(self, why: list[str]) -> None:
        """Nothing could be shown or spoken, so nothing replaced anything either."""
        self.downgrade = ""
        self.say(Delivery.DROPPED, "; ".join(dict.fromkeys(why)) or "nothing was shown", final=True)

    def fail(self) -> None:
        """Something unforeseen happened while it was shown or spoken."""
        if self.lit:
            self.settle()
        else:
            self.drop(["it could not be rendered"])

    def settle(self) -> None:
        """Resolve both futures with the report as it is."""
        for future in (self.first, self.final):
            if not future.done():
                future.set_result(self.report)

    def supersede(self, reason: str) -> None:
        """It was given up before the wearer got anything of it."""
        self.say(Delivery.SUPERSEDED, reason, final=True)

    def cut(self, reason: str, now: float) -> None:
        """It lost its place for good: what was read decides whether it was delivered. While it is
        still being spoken, the end of its speech decides.
        """
        if self.speech is SpeechState.BEGUN:
            return
        read = not self.lit or cut(self.reading(now)) is Previous.DELIVERED
        if self.report.state is Delivery.SPOKEN or (self.reached and read):
            self.settle()
        else:
            self.supersede(reason)
