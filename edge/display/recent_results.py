"""The last results on the lens, which a tap on the dark lens brings back. Only in memory."""

from collections import deque
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.core.results import Rendering
from edge.core.words.wearer_forms import age
from edge.display.page_life import place
from edge.display.presentation import OnReport, Presentation
from edge.runtime.clock import Clock

KEPT: Final = 3
KEPT_S: Final = 3600.0
"""Seconds after which a result is old news."""
_RANK: Final = -1


class _Result(Struct, frozen=True):
    scene: str
    rendering: Rendering
    at: float


class RecentResults:
    """The newest first. Only results of calls: no questions, progress, alarms, sign-in codes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._results: deque[_Result] = deque(maxlen=KEPT)

    def keep(self, item: Presentation) -> None:
        """Remember what got on the lens; of one scene only the newest."""
        if not item.call_id or not item.rendering.recall:
            return
        others = [result for result in self._results if result.scene != item.scene]
        newest = _Result(item.scene, item.rendering, self._clock.boot())
        self._results = deque((newest, *others[: KEPT - 1]), maxlen=KEPT)

    def forget(self) -> None:
        self._results.clear()

    def has_any(self) -> bool:
        return self._forget_old(self._clock.boot()) > 0

    def _forget_old(self, now: float) -> int:
        """Forget what is old news; return how many results are left."""
        while self._results and now - self._results[-1].at > KEPT_S:
            self._results.pop()
        return len(self._results)

    def before(self, number: int, on_report: OnReport) -> Presentation | None:
        """Return what was shown before result `number` (0: the newest of all); None if there is
        none.
        """
        now = self._clock.boot()
        if number >= self._forget_old(now):
            return None
        result = self._results[number]
        plain = replace(
            result.rendering, silent=True, duration_s=None, more="", links=(), offer=None
        )
        where = place(number + 1, len(self._results))
        item = Presentation("", f"recalled/{number + 1}", plain, _RANK, now, on_report)
        item.recalled = number + 1
        item.corner = (f"{where} · {age(now - result.at)}", where)
        return item
