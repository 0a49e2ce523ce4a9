"""Items that wait for the lens: one for glasses that are away, a few behind what is being read."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from edge.display.presentation import Presentation
from tools_cache.api.tool import Delivery

AWAY: Final = "glasses away"
LATER: Final = 4
"""Results that wait for the lens; the fifth supersedes the oldest. Alarms and the like go last."""


class DisplayQueue:
    """`parked` waits for the glasses, the others for the lens."""

    def __init__(self) -> None:
        self.parked: Presentation | None = None
        self._later: deque[Presentation] = deque()

    def __iter__(self) -> Iterator[Presentation]:
        return iter((*self._later, self.parked) if self.parked is not None else self._later)

    @property
    def first(self) -> Presentation | None:
        return self._later[0] if self._later else None

    def pop(self) -> Presentation:
        return self._later.popleft()

    def park(self, act: Presentation) -> None:
        """Keep the newest result for glasses that may come back; brief words are not worth it."""
        if act.brief:
            act.say(Delivery.DROPPED, AWAY, final=True)
        elif act.lit:
            act.settle()  # the wearer had it; the scene comes back by itself
        else:
            if self.parked is not None and self.parked is not act:
                self.parked.supersede("by something newer")
            self.parked = act
            act.say(Delivery.QUEUED, AWAY)

    def take_parked(self) -> Presentation | None:
        act, self.parked = self.parked, None
        return act

    def unpark(self) -> None:
        """The glasses are there: what waited for them waits for the lens, before all others."""
        if (act := self.take_parked()) is not None:
            self._later.appendleft(act)

    def wait(self, act: Presentation, why: str, *, at_least_until: float) -> None:
        """Let a result wait until it expires, an alarm until it can be shown."""
        if act.brief:
            act.say(Delivery.DROPPED, why, final=True)
            return
        if not act.call_id:
            act.expires_at = max(act.expires_at, at_least_until)
        if len(self._later) >= LATER:
            oldest = next((waiting for waiting in self._later if waiting.call_id), self._later[0])
            self._later.remove(oldest)
            oldest.supersede("by something newer")
        self._later.append(act)
        act.say(Delivery.QUEUED, why)

    def give_up(self, now: float) -> None:
        """Let go what nobody can see in time."""
        if self.parked is not None and self.parked.expires_at <= now:
            act, self.parked = self.parked, None
            act.say(Delivery.DROPPED, AWAY, final=True)
        for act in [act for act in self._later if act.expires_at <= now]:
            self._later.remove(act)
            act.say(Delivery.EXPIRED, "the lens was busy", final=True)
