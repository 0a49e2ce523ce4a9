"""How often a tool may be called: one token bucket a tool and user, filled by the clock that is handed in.

Refuses to know why there is a limit; it says how long to wait. Buckets live in memory: a restart fills them.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from tools_cache.tool import RateLimit

MAX_BUCKETS: Final = 512


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class RateLimits:
    """`take` at CLOCK_BOOTTIME seconds. The bucket used longest ago is forgotten first (it was full again)."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()

    def take(self, user_id: str, tool: str, limit: RateLimit, now: float) -> float:
        """Use one token up: 0.0 when there was one, else the seconds until there is."""
        per_s = limit.calls / limit.window_s
        bucket = self._buckets.setdefault((user_id, tool), _Bucket(float(limit.calls), now))
        self._buckets.move_to_end((user_id, tool))
        bucket.left = min(float(limit.calls), bucket.left + max(0.0, now - bucket.at) * per_s)
        bucket.at = now
        while len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)
        if bucket.left < 1.0:
            return (1.0 - bucket.left) / per_s
        bucket.left -= 1.0
        return 0.0
