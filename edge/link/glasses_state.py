"""What is known of the glasses and of the link to them: status, capability record, saved note."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from edge.core.link_state import LinkState, check
from edge.core.recovery import RecoveryStep
from edge.ports import GlassesStatus, SideStatus
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import CapabilitiesLearned, LinkChanged
from edge.storage.notes import Notes
from firmware_bridge.capabilities import Capabilities, Origin, Scalar
from firmware_bridge.catalog import Model
from firmware_bridge.messages import BatteryChanged, Event, SideChanged, WornChanged
from firmware_bridge.sides import Side
from firmware_bridge.transports.radio_errors import MTU_STUCK

log = logging.getLogger(__name__)

NOTE: Final = "glasses.last"
"""Where the last-known glasses are kept between runs."""
SMALLEST_MTU: Final = 23


class GlassesState:
    """`status` is what others may see; `state` changes only by the table, and is published."""

    def __init__(
        self, *, bus: Bus, clock: Clock, notes: Notes, configured: Mapping[str, Scalar]
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._notes = notes
        self._configured = dict(configured)
        self.state = LinkState.OFF
        self.status = GlassesStatus()

    # -------------------------------------------------------------- the link

    def move(self, new: LinkState, reason: str = "") -> None:
        """Go to another state. Raise `IllegalLinkStep` if the table does not allow it."""
        self.state = check(self.state, new)
        ready = new is LinkState.READY
        if ready:
            self.status = replace(
                self.status, hint="", issue="", step="", stale=False, attempts=0, gone_at=None
            )
        self.status = replace(self.status, state=new.value, reason=reason, ready=ready)
        self._bus.publish(LinkChanged(new.value, reason))

    def met(self, model: Model, *, firmware: str, address: str, mtu: int, transport: str) -> None:
        """A connection was greeted: who it is, and how it is reached."""
        self.status = replace(
            self.status,
            model=model.key,
            firmware=firmware,
            address=address,
            mtu=mtu,
            transport=transport,
            link=self.status.link + 1,
            sides={},
            skew_ms=None,
        )

    def lost(self) -> None:
        """A ready link is gone, and each side with it; also when only the radio is lent."""
        sides = {
            side: replace(how, state="lost", reason="") for side, how in self.status.sides.items()
        }
        stale = self.status.capabilities is not None
        self.status = replace(self.status, gone_at=self._clock.boot(), sides=sides, stale=stale)

    def failed(self, issue: str, step: RecoveryStep, hint: str) -> int:
        """An attempt or connection failed; return how many have since the last good one."""
        attempts = self.status.attempts + 1
        stale = self.status.capabilities is not None
        self.status = replace(
            self.status, hint=hint, issue=issue, step=step.value, attempts=attempts, stale=stale
        )
        return attempts

    def carries(self, mtu: int) -> None:
        """Update the MTU, which may grow while the link lives; a stuck one gets a hint."""
        stuck = mtu <= SMALLEST_MTU
        if mtu != self.status.mtu or stuck != bool(self.status.issue):
            issue, hint = ("mtu_23", MTU_STUCK) if stuck else ("", "")
            self.status = replace(self.status, mtu=mtu, issue=issue, hint=hint)

    def drew(self, skew_s: float) -> None:
        """Both sides drew a page, this much apart."""
        self.status = replace(self.status, skew_ms=round(skew_s * 1000, 1))

    def hides(self, unseen: str, covered: str) -> None:
        """The page is hidden, by a setting or for a while, or can be seen again ("")."""
        if (unseen, covered) != (self.status.unseen, self.status.covered):
            self.status = replace(self.status, unseen=unseen, covered=covered)

    # -------------------------------------------------------------- the glasses

    def said(self, event: Event) -> None:
        """What the glasses say of themselves, as far as it is status."""
        match event:
            case BatteryChanged(level=level, side=None):
                self.status = replace(self.status, battery=level)
            case BatteryChanged(level=level, side=Side() as side):
                self._side(side, battery=level)
                levels = [s.battery for s in self.status.sides.values() if s.battery is not None]
                self.status = replace(self.status, battery=min(levels))
            case SideChanged(side=side, up=up, reason=reason):
                self._side(side, state="up" if up else "lost", reason=reason)
            case WornChanged(worn=worn):
                self.status = replace(self.status, worn=worn)

    def _side(self, side: Side, **news: Any) -> None:
        before = self.status.sides.get(side, SideStatus())
        self.status = replace(
            self.status, sides={**self.status.sides, side: replace(before, **news)}
        )

    async def learn(self, entry: Model, announced: Mapping[str, Scalar]) -> None:
        """Merge what these glasses can do: catalogue, firmware, configuration; and save it."""
        now = self._clock.boot()
        record = Capabilities.of(entry.key, entry.capabilities, origin=Origin.CATALOGUE, now=now)
        record = record.merged(
            Capabilities.of(entry.key, announced, origin=Origin.FIRMWARE, now=now)
        )
        record = record.merged(
            Capabilities.of(entry.key, self._configured, origin=Origin.CONFIGURED, now=now)
        )
        self.status = replace(self.status, capabilities=record, stale=False)
        note = {
            "model": record.model,
            "firmware": self.status.firmware,
            "report": record.report(now),
            "wall": self._clock.wall(),
        }
        try:
            await self._notes.put(NOTE, note)
        except Exception as e:  # noqa: BLE001 - a disk's fault costs the memory of these glasses, never the glasses
            log.warning("the glasses are not remembered over a restart: %s", e)
        self._bus.publish(CapabilitiesLearned(record.model, stale=False))

    async def recall(self) -> None:
        """Take up the last-known glasses, marked stale; a damaged note is as good as none."""
        note = await self._notes.get(NOTE)
        if not isinstance(note, dict):
            return
        try:
            # Time spent switched off makes the values older; a clock set back must not make them
            # younger.
            off_s = max(0.0, self._clock.wall() - float(note["wall"]))
            record = Capabilities.from_report(
                note["model"], note["report"], now=self._clock.boot() - off_s
            )
        except (KeyError, ValueError, TypeError) as damaged:
            log.warning(
                "the note of the last glasses is unreadable and was left aside: %r", damaged
            )
            return
        self.status = replace(
            self.status,
            model=record.model,
            firmware=str(note.get("firmware", "")),
            capabilities=record,
            stale=True,
        )
        self._bus.publish(CapabilitiesLearned(record.model, stale=True))
