"""The two clocks, passed in wherever time is needed.

Deadlines and ages run on CLOCK_BOOTTIME (counts suspend, never jumps); wall time is for people and
for stored rows.
"""

import math
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_STA_UNSYNC: Final = 0x40
_TIMEX_BYTES: Final = 208
_TIMEX_STATUS: Final = 40
"""Size of struct timex and offset of its status word, on 64-bit Linux."""


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall_is_set() -> bool:
    """Ask the kernel whether the wall clock is kept true; without an RTC it starts anywhere."""
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


def once_a_second(
    ask: Callable[[], bool], monotonic: Callable[[], float] = time.monotonic
) -> Callable[[], bool]:
    """Return `ask` with its answer kept for a second: each stored row asks it twice."""
    asked_at, answer = -math.inf, False

    def state() -> bool:
        nonlocal asked_at, answer
        now = monotonic()
        if now - asked_at >= 1.0:
            asked_at, answer = now, ask()
        return answer

    return state


class Clock(Struct, frozen=True):
    """`boot()`: seconds since boot with suspend; `wall()`: since 1970; `boot_id`: this one."""

    boot: Callable[[], float] = _boottime
    wall: Callable[[], float] = time.time
    boot_id: str = ""
    synced: Callable[[], bool] = wall_is_set
    """Whether the wall clock can be trusted now."""

    @classmethod
    def system(cls) -> "Clock":
        """The machine's clocks; an unreadable boot id reads as its own empty boot."""
        try:
            boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
        except OSError:
            boot_id = ""
        return cls(boot_id=boot_id, synced=once_a_second(wall_is_set))
