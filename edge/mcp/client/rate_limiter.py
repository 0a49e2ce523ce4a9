"""How fast a server may talk to us: a bucket that a flood empties, and then waits for. Knows
neither pipes nor MCP.

A server that floods slows itself down; the others and the daemon do not notice.
"""

import asyncio
from typing import Final

RATE: Final = 500.0
"""Messages a second, each with 64 KiB of text; progress of a busy tool is ten a second."""
BURST: Final = 1000.0
CHUNK: Final = 64 * 1024


class RateLimiter:
    """One per connection."""

    def __init__(self, rate: float = RATE, burst: float = BURST) -> None:
        self._rate = rate
        self._burst = burst
        self._left = burst
        self._at = asyncio.get_running_loop().time()

    async def take(self, messages: float, size: int) -> None:
        """Wait until this much may be taken."""
        now = asyncio.get_running_loop().time()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        self._left -= messages + size / CHUNK
        if self._left < 0:
            await asyncio.sleep(-self._left / self._rate)
