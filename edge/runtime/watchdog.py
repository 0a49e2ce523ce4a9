"""Ping systemd's watchdog and set its status line, from inside the event loop.

This proves that the loop turns and that no operation is overdue (`deadlines.py`), not that the
world answers: glasses and brokers may be away for days.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from edge.runtime.sd_notify import Notifier

log = logging.getLogger(__name__)

IDLE_S: Final = 60.0
"""Between status lines when no watchdog asks for more."""
PART: Final = 3
"""Pings in each watchdog interval: two may be late before systemd acts."""


class Watchdog:
    """`run()` is the service. It runs in the loop that serves the calls: both hang together.

    While `overdue` names anything there is no ping, and systemd restarts the daemon.
    """

    def __init__(
        self,
        notifier: Notifier,
        status: Callable[[], Mapping[str, Any]],
        *,
        overdue: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._notifier = notifier
        self._status = status
        self._overdue = overdue
        self._line = ""
        self._stuck = False

    async def run(self) -> None:
        """Ping until cancelled."""
        watchdog_s = self._notifier.watchdog_s
        pause = watchdog_s / PART if watchdog_s else IDLE_S
        while True:
            stuck = self._overdue()
            if watchdog_s and not stuck:
                self._notifier.watchdog()
            self._log_change(stuck)
            line = f"stuck: {'; '.join(stuck)}" if stuck else summary(self._status())
            if line != self._line:
                self._line = line
                self._notifier.status(line)
            await asyncio.sleep(pause)

    def _log_change(self, stuck: Sequence[str]) -> None:
        """Log once a cycle: it is the last thing in the journal before systemd acts."""
        if stuck and not self._stuck:
            why = "an operation is overdue, so the watchdog is not pinged: %s"
            log.error(why, "; ".join(stuck))
        elif self._stuck and not stuck:
            log.info("the overdue operation has ended; the watchdog is pinged again")
        self._stuck = bool(stuck)


def summary(status: Mapping[str, Any]) -> str:
    """One line for `systemctl status`: the glasses, the cloud, and what to do next."""
    glasses, uplink = status["glasses"], status["uplink"]
    parts = [f"glasses {glasses['state']}" + (f" ({glasses['model']})" if glasses["model"] else "")]
    parts.append(f"cloud {uplink['state']}")
    parts.append(f"{status['registry'].get('compatible', 0)} tools")
    if status["next_action"]:
        parts.append(str(status["next_action"]))
    return "; ".join(parts)
