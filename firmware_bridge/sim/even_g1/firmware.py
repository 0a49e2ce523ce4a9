"""The firmware variant of one simulated arm: refuses what this variant does not accept.

What it accepts is answered by `codecs/even_g1/peripheral.py`.
"""

from contextlib import suppress

from firmware_bridge.codecs.even_g1.answers import ArmFacts, refusal
from firmware_bridge.codecs.even_g1.peripheral import EvenG1Arm
from firmware_bridge.codecs.even_g1.wire import Joiner, Op
from firmware_bridge.errors import LinkLost, RemoteViolation
from firmware_bridge.sides import Side
from firmware_bridge.sim.even_g1.quirks import Firmware
from firmware_bridge.sim.glasses import MockGlasses


class FirmwareArm(EvenG1Arm):
    """An arm that only accepts what its firmware variant accepts. Used once."""

    def __init__(
        self, side: Side, max_packet: int, variant: Firmware, facts: ArmFacts, glasses: MockGlasses
    ) -> None:
        super().__init__(side, max_packet=max_packet, dialect=variant.dialect, facts=facts)
        self.timed_out = False
        """Whether it disconnects because of silence (32 s)."""
        self._variant = variant
        self._glasses = glasses
        self._waits_for_first = variant.first is not None
        self._json = {op: Joiner(op) for op in (Op.WHITELIST, Op.NOTIFICATION)}

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one packet. Raises `RemoteViolation`."""
        batteries = self._glasses.batteries
        self.facts.battery = batteries[self.side]
        self.facts.other_battery = next(batteries[each] for each in batteries if each != self.side)
        self.facts.worn = self._glasses.worn
        if self._waits_for_first and packet != self._variant.first:
            return
        self._waits_for_first = False
        if packet and self._variant.refuses(packet, self.side, self._json_of(packet)):
            self._say(refusal(packet))
            return
        super().receive_packet(packet, now)

    def _json_of(self, packet: bytes) -> bytes:
        """Return the whole JSON text if this packet ends it, else b""."""
        with suppress(KeyError, ValueError, RemoteViolation):
            return self._json[Op(packet[0])].add(packet) or b""
        return b""

    def handle_timer(self, now: float) -> None:
        try:
            super().handle_timer(now)
        except LinkLost:
            self.timed_out = True
            raise
