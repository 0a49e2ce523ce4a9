"""The mock's own time: real, or a whole number of times faster for tests.

Knows one factor. Radio timing is not its business: links run on real time.
"""

import asyncio
import time


class SimTime:
    """Seconds of the mock's world: playing sound, waiting for a wearer, pauses of a script."""

    def __init__(self, speed: float = 1.0) -> None:
        if speed <= 0:
            raise ValueError(f"speed {speed}; it must be above 0")
        self._speed = speed

    def now(self) -> float:
        return time.monotonic() * self._speed

    def real(self, seconds: float) -> float:
        """How long that takes for whoever waits."""
        return seconds / self._speed

    async def rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._speed)
