"""The pulse: systemd's watchdog and its status line, from inside the event loop.

Refuses to judge progress by the outside world: glasses and brokers may be away for days. What it proves is that the loop
turns and that every service is being kept.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from edge.sdnotify import Notifier

IDLE_S: Final = 60.0
"""Between status lines when no watchdog asks for more."""
PART: Final = 3
"""Pings a watchdog interval: two may be late before systemd acts."""


class Pulse:
    """`run()` is the service. The watchdog is fed by the very loop that serves the calls: if that hangs, so does this."""

    def __init__(self, notifier: Notifier, status: Callable[[], Mapping[str, Any]]) -> None:
        self._notifier = notifier
        self._status = status
        self._line = ""

    async def run(self) -> None:
        """Beat until cancelled."""
        watchdog_s = self._notifier.watchdog_s
        pause = watchdog_s / PART if watchdog_s else IDLE_S
        while True:
            if watchdog_s:
                self._notifier.watchdog()
            line = summary(self._status())
            if line != self._line:
                self._line = line
                self._notifier.status(line)
            await asyncio.sleep(pause)


def summary(status: Mapping[str, Any]) -> str:
    """One line for `systemctl status`: the glasses, the cloud, and what to do next."""
    glasses, uplink = status["glasses"], status["uplink"]
    parts = [f"glasses {glasses['state']}" + (f" ({glasses['model']})" if glasses["model"] else "")]
    parts.append(f"cloud {uplink['state']}")
    parts.append(f"{status['registry'].get('compatible', 0)} tools")
    if status["next_action"]:
        parts.append(str(status["next_action"]))
    return "; ".join(parts)
