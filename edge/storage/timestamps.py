"""How old a stored row is, across suspends, clock jumps and reboots.

With a wall clock that nobody set an age is what this boot proves, never a guess.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from edge.runtime.clock import Clock
from edge.storage.sqlite.database import Row

INTERACTIVE_S: Final = 60.0
"""A call of at most this life ends with its boot: nobody waits for it any more."""
_STA_UNSYNC: Final = 0x40
_TIMEX_BYTES: Final = 208
_TIMEX_STATUS: Final = 40
"""Size of struct timex and offset of its status word, on 64-bit Linux."""


def wall_is_set() -> bool:
    """Ask the kernel whether something keeps the wall clock true; a machine without an RTC
    starts anywhere.
    """
    libc = _libc()
    if libc is None:
        return False
    import ctypes  # noqa: PLC0415 - as below

    timex = bytearray(_TIMEX_BYTES)  # modes 0: only reads, needs no privilege
    if libc.adjtimex((ctypes.c_char * _TIMEX_BYTES).from_buffer(timex)) < 0:
        return False
    return not int.from_bytes(timex[_TIMEX_STATUS : _TIMEX_STATUS + 4], sys.byteorder) & _STA_UNSYNC


@cache
def _libc() -> Any:
    import ctypes  # noqa: PLC0415 - an idle daemon stores nothing, so it does not need it

    try:
        libc = ctypes.CDLL(None)
    except OSError:
        return None
    return libc if hasattr(libc, "adjtimex") else None


@dataclass(frozen=True, slots=True)
class Timestamp:
    """When a row was made: on which boot, at which second of it, and what the wall clock said."""

    boot_id: str
    boot_at: float
    wall_at: float
    synced: bool

    @classmethod
    def of_row(cls, row: Row) -> "Timestamp":
        return cls(row["boot_id"], row["boot_at"], row["wall_at"], bool(row["synced"]))


class Stamper:
    """Makes stamps and reads them. `synced` tells whether the wall clock can be trusted now."""

    def __init__(self, clock: Clock, synced: Callable[[], bool] = wall_is_set) -> None:
        self._clock = clock
        self._synced = synced

    def now(self, *, age_s: float = 0.0) -> Timestamp:
        """Stamp something that is already `age_s` old."""
        c = self._clock
        return Timestamp(c.boot_id, c.boot() - age_s, c.wall() - age_s, self._synced())

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
        if stamp.synced and self._synced():
            return max(
                seen, self._clock.wall() - stamp.wall_at
            )  # a wall clock put back must not stop the ageing
        return seen

    def sure(self, stamp: Timestamp) -> bool:
        """Tell whether its age is known, not only what it is at least."""
        if self.same_boot(stamp):
            return True
        return stamp.synced and self._synced() and self._clock.wall() >= stamp.wall_at

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
