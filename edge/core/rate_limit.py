"""Rate limits: a sliding window for each tool and user, in memory until the next restart."""

import math
from collections import OrderedDict, deque
from itertools import islice
from typing import Final

from tools_cache.api.tool import RateLimit

MAX_WINDOWS: Final = 512
MAX_SLICES: Final = 128
"""Above this limit, calls that leave the window within the same 1/128 of it are counted together,
until the last of them has left: a large limit takes little memory, and never lets more through.
"""

_Taken = deque[tuple[float, int]]
"""(when calls leave the window, how many), oldest first."""


class RateLimits:
    """Enforces `RateLimit`s: at most `calls` within any `window_s` seconds. The window used longest
    ago is forgotten first.
    """

    def __init__(self) -> None:
        self._windows: OrderedDict[tuple[str, str], _Taken] = OrderedDict()

    def take(self, user_id: str, tool: str, limit: RateLimit, now: float) -> float:
        """Count one call at `now` (CLOCK_BOOTTIME seconds); return 0.0 if it may run, else the
        seconds until one may.
        """
        taken = self._windows.setdefault((user_id, tool), deque())
        self._windows.move_to_end((user_id, tool))
        while len(self._windows) > MAX_WINDOWS:
            self._windows.popitem(last=False)
        while taken and taken[0][0] <= now:
            taken.popleft()
        over = sum(calls for _, calls in taken) - limit.calls
        if over < 0:
            _count(taken, limit, now)
            return 0.0
        each = (leaves_at for leaves_at, calls in taken for _ in range(calls))
        return next(islice(each, over, None)) - now

    def size(self) -> int:
        """Return how many moments are in memory."""
        return sum(len(taken) for taken in self._windows.values())


def _count(taken: _Taken, limit: RateLimit, now: float) -> None:
    leaves_at = now + limit.window_s
    if limit.calls > MAX_SLICES:
        slice_s = limit.window_s / MAX_SLICES
        leaves_at = math.ceil(leaves_at / slice_s) * slice_s
    if taken and taken[-1][0] >= leaves_at:
        taken[-1] = taken[-1][0], taken[-1][1] + 1
    else:
        taken.append((leaves_at, 1))
