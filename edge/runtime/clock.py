"""The two clocks, passed in wherever time is needed.

Deadlines and ages run on CLOCK_BOOTTIME (counts suspend, never jumps); wall time is for people and
for stored rows.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Clock:
    """`boot()` seconds since boot, suspend included · `wall()` seconds since 1970 · `boot_id`
    names this boot.
    """

    boot: Callable[[], float] = _boottime
    wall: Callable[[], float] = time.time
    boot_id: str = ""

    @classmethod
    def system(cls) -> "Clock":
        """The machine's clocks; an unreadable boot id reads as its own empty boot."""
        try:
            boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
        except OSError:
            boot_id = ""
        return cls(boot_id=boot_id)
