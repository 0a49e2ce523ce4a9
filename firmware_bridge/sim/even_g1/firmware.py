"""The firmware variant of one simulated arm: refuses what this variant does not accept."""

from typing import Final, Literal

from firmware_bridge.codec import Incoming, _NeedData
from firmware_bridge.codecs.even_g1.answers import ArmFacts
from firmware_bridge.codecs.even_g1.peripheral import EvenG1Arm
from firmware_bridge.codecs.even_g1.wire import REFUSED, Op, padded
from firmware_bridge.errors import LinkLost
from firmware_bridge.messages import Command, Event, Reply
from firmware_bridge.sides import Side
from firmware_bridge.sim.even_g1.quirks import Firmware
from firmware_bridge.sim.glasses import MockGlasses

_JSON_AT: Final[dict[int, tuple[int, int, int]]] = {
    Op.WHITELIST: (1, 2, 3),
    Op.NOTIFICATION: (2, 3, 4),
}
"""Where a JSON packet carries its message's packet count, its index, and its data."""


class PickyArm:
    """An arm that only accepts what its firmware variant accepts. Used once."""

    def __init__(
        self, side: Side, max_packet: int, like: Firmware, facts: ArmFacts, glasses: MockGlasses
    ) -> None:
        self.tired = False
        """Seconds of silence (32 s) after which it disconnects."""
        self._side = side
        self._like = like
        self._facts = facts
        self._glasses = glasses
        self._arm = EvenG1Arm(side, max_packet=max_packet, dialect=like.dialect, facts=facts)
        self._mute = like.first is not None
        self._refusals: list[bytes] = []
        self._json: dict[int, bytes] = {}

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one packet. Raises `RemoteViolation`."""
        self._know_thyself()
        if self._mute and packet != self._like.first:
            return
        self._mute = False
        if packet and self._like.refuses(packet, self._side, self._json_of(packet)):
            self._refusals.append(refusal(packet))
            return
        self._arm.receive_packet(packet, now)
        self._look_at_clock(packet)

    def _know_thyself(self) -> None:
        batteries = self._glasses.batteries
        self._facts.battery = batteries[self._side]
        self._facts.other_battery = next(
            level for side, level in batteries.items() if side is not self._side
        )
        self._facts.worn = self._glasses.worn

    def _json_of(self, packet: bytes) -> bytes:
        """Return the whole JSON text if this packet ends it, else b""."""
        where = _JSON_AT.get(packet[0])
        if where is None or len(packet) < where[2]:
            return b""
        total, index, text = where
        self._json = {**(self._json if packet[index] else {}), packet[index]: packet[text:]}
        whole = len(self._json) == packet[total] == packet[index] + 1
        return b"".join(piece for _, piece in sorted(self._json.items())) if whole else b""

    def _look_at_clock(self, packet: bytes) -> None:
        """Report what the dashboard clock (06 01) understood: its hour format is a quirk."""
        if packet[0] == Op.DASHBOARD and len(packet) >= 21 and packet[4] == 1:
            twelve = (packet[20] == 1) == (self._like.dialect.twelve_hour == 1)
            celsius = int.from_bytes(packet[18:19], "little", signed=True)
            self._glasses.tell(
                {
                    "event": "dashboard",
                    "side": self._side,
                    "local_s": int.from_bytes(packet[5:9], "little"),
                    "icon": packet[17],
                    "celsius": celsius,
                    "hours": 12 if twelve else 24,
                }
            )

    def packets_to_send(self, now: float) -> list[bytes]:
        refusals, self._refusals = self._refusals, []
        return refusals + self._arm.packets_to_send(now)

    # -------------------------------------------------------------- the rest is the arm's

    def set_max_packet(self, size: int) -> None:
        self._arm.set_max_packet(size)

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        return self._arm.next_event()

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:
        return self._arm.send(message, now, re=re)

    def backlog(self) -> int:
        return self._arm.backlog()

    def next_timer(self) -> float | None:
        return self._arm.next_timer()

    def handle_timer(self, now: float) -> None:
        try:
            self._arm.handle_timer(now)
        except LinkLost:
            self.tired = True
            raise


def refusal(packet: bytes) -> bytes:
    """Return CA as in the opcode's own answer: settings and the microphone echo the request."""
    match packet[0]:
        case Op.SETTINGS:
            return bytes((*packet[:5], REFUSED))
        case Op.MICROPHONE:
            return bytes((Op.MICROPHONE, REFUSED, packet[1]))
        case op:
            return padded(op, REFUSED)
