"""What is known of the glasses and of the link to them: status, capability record, saved note."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from edge.core.link_state import LinkState, check
from edge.core.recovery import RecoveryStep
from edge.ports import GlassesStatus, SideStatus
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import CapabilitiesLearned, LinkChanged
from edge.storage.notes import Notes
from firmware_bridge.capabilities import Capabilities, Origin, Scalar
from firmware_bridge.messages import (
    BatteryChanged,
    CaseChanged,
    Event,
    SideChanged,
    VoiceNotesChanged,
    WornChanged,
)
from firmware_bridge.models import Model
from firmware_bridge.sides import Side
from firmware_bridge.transport import Transport
from firmware_bridge.transports.radio_errors import MTU_STUCK

log = logging.getLogger(__name__)

NOTE: Final = "glasses.last"
"""Where the last-known glasses are kept between runs."""
SMALLEST_MTU: Final = 23


class GlassesState:
    """`status` is what others may see; `state` changes only by the table, and is published."""

    def __init__(
        self, bus: Bus, clock: Clock, notes: Notes, configured: Mapping[str, Scalar]
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
            self.update(hint="", issue="", step="", stale=False, attempts=0, gone_at=None)
        self.update(state=new.value, reason=reason, ready=ready)
        self._bus.publish(LinkChanged(new.value, reason))

    def update(self, **changes: Any) -> None:
        """Change fields of the status."""
        self.status = replace(self.status, **changes)

    def identify(self, model: Model, firmware: str, transport: Transport[Any]) -> None:
        """Set who was greeted over a new connection, and how it is reached."""
        same = transport.address == self.status.address
        self.update(
            voice_notes=self.status.voice_notes if same else None,
            model=model.key,
            firmware=firmware,
            address=transport.address,
            mtu=transport.max_packet + 3,
            transport=transport.name,
            link=self.status.link + 1,
            sides={},
            skew_ms=None,
        )

    def lose(self) -> None:
        """A ready link is gone, and each side with it; also when only the radio is lent."""
        lost = {s: replace(how, state="lost", reason="") for s, how in self.status.sides.items()}
        stale = self.status.capabilities is not None
        self.update(gone_at=self._clock.boot(), sides=lost, stale=stale)

    def count_failure(self, issue: str, step: RecoveryStep, hint: str) -> int:
        """An attempt or connection failed; return how many have since the last good one."""
        attempts = self.status.attempts + 1
        stale = self.status.capabilities is not None
        self.update(hint=hint, issue=issue, step=step.value, attempts=attempts, stale=stale)
        return attempts

    def set_mtu(self, mtu: int) -> None:
        """Update the MTU, which may grow while the link lives; a stuck one gets a hint."""
        stuck = mtu <= SMALLEST_MTU
        if mtu != self.status.mtu or stuck != bool(self.status.issue):
            issue, hint = ("mtu_23", MTU_STUCK) if stuck else ("", "")
            self.update(mtu=mtu, issue=issue, hint=hint)

    # -------------------------------------------------------------- the glasses

    def take_event(self, event: Event) -> None:
        """Take what the glasses report of themselves, as far as it is status."""
        match event:
            case BatteryChanged(level=level, side=None):
                self.update(battery=level)
            case BatteryChanged(level=level, side=Side() as side):
                self._update_side(side, battery=level)
                levels = [s.battery for s in self.status.sides.values() if s.battery is not None]
                self.update(battery=min(levels))
            case SideChanged(side=side, up=up, reason=reason):
                self._update_side(side, state="up" if up else "lost", reason=reason)
            case CaseChanged(level=level) if level is not None:
                self.update(case=level)
            case WornChanged(worn=worn):
                self.update(worn=worn)
            case VoiceNotesChanged(notes=notes):
                self.update(voice_notes=notes)

    def _update_side(self, side: Side, **changes: Any) -> None:
        before = self.status.sides.get(side, SideStatus())
        self.update(sides={**self.status.sides, side: replace(before, **changes)})

    async def learn(self, entry: Model, announced: Mapping[str, Scalar]) -> None:
        """Merge what these glasses can do: catalogue, firmware, configuration; and save it."""
        now = self._clock.boot()
        record = Capabilities(entry.key, {})
        for origin, values in (
            (Origin.CATALOGUE, entry.capabilities),
            (Origin.FIRMWARE, announced),
            (Origin.CONFIGURED, self._configured),
        ):
            record = record.merged(Capabilities.of(entry.key, values, origin=origin, now=now))
        self.update(capabilities=record, stale=False)
        note = {
            "model": record.model,
            "firmware": self.status.firmware,
            "report": record.report(now),
            "wall": self._clock.wall(),
        }
        try:
            await self._notes.put(NOTE, note)
        except Exception as e:  # noqa: BLE001 - without the note the glasses still work
            log.warning("the glasses are not remembered over a restart: %s", e)
        self._bus.publish(CapabilitiesLearned(record.model, stale=False))

    async def recall(self) -> None:
        """Restore the last-known glasses, marked stale; a damaged note is ignored."""
        note = await self._notes.get(NOTE)
        if not isinstance(note, dict):
            return
        try:
            # Time spent switched off makes values older; a clock set back must not make them newer.
            off_s = max(0.0, self._clock.wall() - float(note["wall"]))
            learned_at = self._clock.boot() - off_s
            record = Capabilities.from_report(note["model"], note["report"], now=learned_at)
        except (KeyError, ValueError, TypeError) as damaged:
            log.warning("the note of the last glasses is unreadable and is ignored: %r", damaged)
            return
        firmware = str(note.get("firmware", ""))
        self.update(model=record.model, firmware=firmware, capabilities=record, stale=True)
        self._bus.publish(CapabilitiesLearned(record.model, stale=True))
