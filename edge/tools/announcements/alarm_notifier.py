"""Announces due alarms to the wearer, in order, each until it was really shown or spoken."""

import asyncio
import logging
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final

from edge.ports import GlassesPort, RenderPort
from edge.runtime.bus import Bus, Listener
from edge.runtime.clock import Clock
from edge.runtime.events import GlassesReady
from edge.tools.announcements.alarms import Alarm, AlarmClock
from edge.tools.announcements.reminders import DueReminder, Reminders
from tools_cache.api.durations import spoken
from tools_cache.api.tool import Delivery

if TYPE_CHECKING:
    from edge.tools.announcements.mail_watch import MailNotice, MailWatch

log = logging.getLogger(__name__)

GOT: Final = frozenset(
    {Delivery.SHOWN, Delivery.SPOKEN, Delivery.ACKNOWLEDGED, Delivery.SUPERSEDED}
)
"""Delivery states in which the wearer got the alarm."""
WAITS: Final = frozenset({Delivery.QUEUED, Delivery.EXPIRED})
"""Delivery states of an alarm for which the lens had no place yet."""
AGAIN_S: Final = 1.0
"""Pause before an alarm that only waited for the lens is given to it again, in its own place."""
LATE_S: Final = 60.0
"""Seconds from which the text says how late the alarm is."""


@dataclass(eq=False, repr=False)
class AlarmNotifier:
    """`run()` is the service. While the glasses are away, later alarms wait behind the first."""

    alarms: "AlarmClock | Reminders | MailWatch"
    _: KW_ONLY
    stage: RenderPort
    glasses: GlassesPort
    bus: Bus
    clock: Clock

    async def run(self) -> None:
        """Announce until cancelled; an interrupted alarm stays on disk for the next daemon."""
        with self.bus.listen(calls=False) as events:
            async for alarm in self.alarms.fired():
                await self._announce(alarm, events)

    async def _announce(self, alarm: "Alarm | DueReminder | MailNotice", events: Listener) -> None:
        due_at = self.clock.boot() - alarm.late_s
        while True:
            late_s = self.clock.boot() - due_at
            late = f" ({spoken(late_s // 60 * 60)} late)" if late_s >= LATE_S else ""
            was_ready = self.glasses.status().ready
            report = await self.stage.tell(
                f"{alarm.text}{late}", scene=alarm.scene, until_shown=True
            )
            if report.state in GOT:
                return
            here = was_ready and self.glasses.status().ready
            if here and report.state in WAITS:
                await asyncio.sleep(AGAIN_S)  # it is not announced yet: a kill must not lose it
            elif here:
                if report.state is Delivery.DROPPED:
                    log.warning(
                        "%s cannot be announced on these glasses: %s", alarm.scene, report.reason
                    )
                return
            await self._wait_for_glasses(events)
            if not await self.alarms.is_due(alarm.id):
                return  # done or moved while it waited

    async def _wait_for_glasses(self, events: Listener) -> None:
        if self.glasses.status().ready:
            return
        async for event in events:
            if isinstance(event, GlassesReady):
                return
