"""How old a stored row is, across suspends, clock jumps and reboots.

With a wall clock that nobody set an age is what this boot proves, never a guess.
"""

from typing import Final, NamedTuple

from edge.runtime.clock import Clock
from edge.storage.sqlite.database import Row

INTERACTIVE_S: Final = 60.0
"""A call of at most this life ends with its boot: nobody waits for it any more."""


class Timestamp(NamedTuple):
    """When a row was made: on which boot, at which second of it, and what the wall clock said.

    The fields are columns of most tables, which end with them in this order.
    """

    boot_id: str
    boot_at: float
    wall_at: float
    synced: bool

    @classmethod
    def of_row(cls, row: Row) -> "Timestamp":
        return cls(row["boot_id"], row["boot_at"], row["wall_at"], bool(row["synced"]))


class Stamper:
    """Makes stamps and reads them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self, *, age_s: float = 0.0) -> Timestamp:
        """Stamp something that is already `age_s` old."""
        c = self._clock
        return Timestamp(c.boot_id, c.boot() - age_s, c.wall() - age_s, c.synced())

    def same_boot(self, stamp: Timestamp) -> bool:
        """Tell whether `boot_at` can be compared; an unreadable boot id is never the same boot."""
        return bool(stamp.boot_id) and stamp.boot_id == self._clock.boot_id

    def age_s(self, stamp: Timestamp) -> float:
        """Return the exact age within a boot; after one, by the wall clock if it was set at both
        ends.

        It is never less than the time since this boot, which the row has certainly seen.
        """
        if self.same_boot(stamp):
            return max(0.0, self._clock.boot() - stamp.boot_at)
        seen = max(0.0, self._clock.boot())
        if stamp.synced and self._clock.synced():  # a clock put back must not stop the ageing
            return max(seen, self._clock.wall() - stamp.wall_at)
        return seen

    def sure(self, stamp: Timestamp) -> bool:
        """Tell whether its age is known, not only what it is at least."""
        if self.same_boot(stamp):
            return True
        return stamp.synced and self._clock.synced() and self._clock.wall() >= stamp.wall_at

    @staticmethod
    def between_s(first: Timestamp, second: Timestamp) -> float:
        """Return the time between two stamps; across a reboot what is certain of it."""
        if first.boot_id and first.boot_id == second.boot_id:
            return max(0.0, second.boot_at - first.boot_at)
        seen = max(0.0, second.boot_at)
        return max(seen, second.wall_at - first.wall_at) if first.synced and second.synced else seen

    def left_s(self, stamp: Timestamp, ttl_s: float) -> float:
        """Return what is left of a life of `ttl_s`; an interactive one ends with its boot."""
        if ttl_s <= INTERACTIVE_S and stamp.boot_id and not self.same_boot(stamp):
            return 0.0
        return max(0.0, ttl_s - self.age_s(stamp))
