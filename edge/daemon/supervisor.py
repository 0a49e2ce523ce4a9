"""Keeps named services running in one TaskGroup.

A crashed service restarts with full jitter; five crashes in a minute end the process, and systemd
starts it again.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from edge.core.recovery import LeftToSystemd
from edge.runtime.bus import Bus
from edge.runtime.events import ServiceCrashed

log = logging.getLogger(__name__)

CRASHES: Final = 5
WINDOW_S: Final = 60.0
FIRST_S: Final = 0.5
CAP_S: Final = 10.0
"""Five doublings of half a second fit the window, so constant crashes do end the process."""
LAST_WORK_S: Final = 2.0
"""Seconds for what a service does for the wearer when it stops, over what others still serve."""


class TooManyCrashes(Exception):
    """A service does not stay up; the process should end and be started again."""


@dataclass(slots=True)
class Service:
    """One named service and its state."""

    name: str
    run: Callable[[], Awaitable[None]]
    state: str = "waiting"
    error: str = ""
    crashes: deque[float] = field(default_factory=lambda: deque(maxlen=CRASHES))

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "state": self.state, "error": self.error}


@dataclass(eq=False, repr=False)
class Supervisor:
    """Runs services until cancelled, or until one of them crashes too often. Those named in
    `stop_first` stop one after the other before all others, which they still need.
    """

    services: list[Service]
    _: KW_ONLY
    bus: Bus
    now: Callable[[], float]
    stop_first: tuple[str, ...] = ()
    _stopping: bool = field(default=False, init=False)

    async def run(self) -> None:
        """Run every service. Raises an ExceptionGroup with `TooManyCrashes` if one gives up."""
        async with asyncio.TaskGroup() as group:
            kept = [group.create_task(self._keep(s), name=s.name) for s in self.services]
            try:
                await asyncio.wait(kept)
            finally:
                self._stopping = True
                for task in (
                    task for name in self.stop_first for task in kept if task.get_name() == name
                ):
                    task.cancel()
                    await asyncio.wait([task], timeout=LAST_WORK_S)

    async def _keep(self, service: Service) -> None:
        while True:
            service.state, service.error = "running", ""
            try:
                await service.run()
            except (Exception, asyncio.CancelledError) as crash:
                if self._stopping:  # what a cleanup raises must not become a restart
                    if isinstance(crash, asyncio.CancelledError):
                        raise
                    log.warning("service %s did not stop cleanly: %r", service.name, crash)
                    return
                self._note(service, crash)
            else:
                service.state = "done"
                return
            pause = random.uniform(0, min(CAP_S, FIRST_S * 2 ** len(service.crashes)))
            self.bus.publish(ServiceCrashed(service.name, service.error, round(pause, 2)))
            await asyncio.sleep(pause)

    def _note(self, service: Service, crash: BaseException) -> None:
        service.state, service.error = "crashed", f"{type(crash).__name__}: {crash}"[:300]
        if isinstance(crash, LeftToSystemd):
            self._stopping = True
            raise TooManyCrashes(f"{service.name}: {crash}")
        log.error("service %s crashed", service.name, exc_info=crash)
        now = self.now()
        service.crashes.append(now)
        if len(service.crashes) == CRASHES and now - service.crashes[0] <= WINDOW_S:
            self._stopping = True  # the group cancels the others before it wakes `run`
            raise TooManyCrashes(
                f"{service.name} crashed {CRASHES} times in "
                f"{WINDOW_S:.0f} s; the last: {service.error}"
            )
