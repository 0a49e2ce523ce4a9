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


class Pace:
    """Waits for the end of one stretch of simulated time after another. A simulation that cannot
    keep up takes longer: what it does is not done in bursts.
    """

    def __init__(self, time: SimTime, seconds: float) -> None:
        self._time = time
        self._seconds = seconds
        self._due = time.now()

    async def wait(self) -> None:
        """Wait until the next stretch is over."""
        now = self._time.now()
        self._due = max(self._due, now - self._seconds) + self._seconds
        await self._time.rest(max(0.0, self._due - now))
