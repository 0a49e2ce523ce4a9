"""The purposes that need the microphone now, as a table."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from edge.core.hearing.purposes import LIMITS, Purpose, over_at
from edge.listening_ports import CannotListen

HELD_S: Final = 1.5
"""A press that is longer, after it was reported, is held to speak."""
LAST_SOUND_S: Final = 0.3
"""Sound that was recorded before the wearer let go arrives a little later."""


@dataclass(slots=True, eq=False)
class Use:
    """One purpose, from its beginning to its end (boot clock). `alone`: the microphone goes on for
    it alone; else it only uses one that is on.
    """

    purpose: Purpose
    began_at: float
    heard_at: float
    alone: bool = True
    ends_at: float | None = None
    """When it is over in any case."""
    started: "asyncio.Future[None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Done when the microphone is on for it, or it is known that it is not."""

    def start(self) -> None:
        if not self.started.done():
            self.started.set_result(None)

    def fail(self, why: str) -> None:
        """Pass the reason to the waiter for its start, if there is one."""
        if not self.started.done():
            self.started.set_exception(CannotListen(why))
            self.started.exception()


class Uses:
    """At most one use of each purpose."""

    def __init__(self) -> None:
        self._uses: dict[Purpose, Use] = {}
        self.away_since: float | None = None
        """When the glasses went away; None while they are there."""

    def open(self, purpose: Purpose, now: float, *, alone: bool = True) -> Use:
        """Begin it; one that is open goes on, and counts as begun now."""
        use = self._uses.setdefault(purpose, Use(purpose, now, now))
        use.began_at = use.heard_at = now
        use.alone, use.ends_at = alone, None
        return use

    def close(self, purpose: Purpose, why: str = "") -> Use | None:
        """End it; return what it was."""
        use = self._uses.pop(purpose, None)
        if use is not None:
            use.fail(why)
        return use

    def let_go(self, now: float) -> None:
        """The wearer lets go of what is pressed for push to talk. Held while speaking, that is the
        end of the sentence; a short press only began it.
        """
        use = self._uses.get(Purpose.PUSH_TO_TALK)
        if use is not None and now - use.began_at >= HELD_S and use.heard_at > use.began_at:
            use.ends_at = now + LAST_SOUND_S

    def note_speech(self, now: float) -> None:
        """Somebody speaks."""
        for use in self._uses.values():
            use.heard_at = now

    def over(self, now: float) -> list[Purpose]:
        """Return those that are over by themselves."""
        ends = ((use.purpose, self._over_at(use)) for use in self._uses.values())
        return [purpose for purpose, end in ends if end is not None and now >= end]

    def due_at(self) -> float | None:
        """Return when the next one is over by itself."""
        ends = (self._over_at(use) for use in self._uses.values())
        return min((end for end in ends if end is not None), default=None)

    def _over_at(self, use: Use) -> float | None:
        end = over_at(
            use.purpose,
            began_at=use.began_at,
            heard_at=use.heard_at,
            away_since=self.away_since,
        )
        return min((at for at in (end, use.ends_at) if at is not None), default=None)

    def needed(self) -> set[Purpose]:
        """Return the open purposes, if one of them is enough to turn the microphone on."""
        alone = any(use.alone for use in self._uses.values())
        return {*self._uses} if alone else set()

    def marked(self) -> bool:
        """Whether the lens is to say that the microphone is on."""
        return any(LIMITS[purpose].marked for purpose in self._uses)

    def __contains__(self, purpose: Purpose) -> bool:
        return purpose in self._uses

    def __iter__(self) -> Iterator[Use]:
        return iter([*self._uses.values()])
