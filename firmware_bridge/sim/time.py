"""The simulator's time: real, or faster by a factor for tests. Radio links run in real time."""

import asyncio
import time


class SimTime:
    """Simulated seconds: playing sound, waiting for a wearer, pauses of a script."""

    def __init__(self, speed: float = 1.0) -> None:
        if speed <= 0:
            raise ValueError(f"speed {speed}; it must be above 0")
        self.speed = speed

    def now(self) -> float:
        return time.monotonic() * self.speed

    def real(self, seconds: float) -> float:
        """Return the real seconds for simulated ones."""
        return seconds / self.speed

    async def rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.speed)
