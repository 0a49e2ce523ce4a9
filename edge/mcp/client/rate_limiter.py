"""A token bucket for what a server sends: one that floods is read more slowly, without effect on
the other servers.
"""

import asyncio
from typing import Final

RATE: Final = 500.0
"""Messages of up to 64 KiB a second; a busy tool's progress is ten a second."""
BURST: Final = 1000.0
CHUNK: Final = 64 * 1024


class RateLimiter:
    """One per connection."""

    def __init__(self) -> None:
        self._left = BURST
        self._at = asyncio.get_running_loop().time()

    async def take(self, messages: float, size: int) -> None:
        """Wait until this much may be read."""
        now = asyncio.get_running_loop().time()
        self._left = min(BURST, self._left + (now - self._at) * RATE)
        self._left -= messages + size / CHUNK
        self._at = now
        if self._left < 0:
            await asyncio.sleep(-self._left / RATE)
