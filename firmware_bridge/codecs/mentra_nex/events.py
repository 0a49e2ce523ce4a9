"""Translates what a Mentra Display reports unasked into events."""

import math
from typing import Final

from firmware_bridge.codecs.mentra_nex.wire import FRAME, MIC_ID, Schema, ToPhone
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import (
    BatteryChanged,
    Event,
    Gesture,
    Gestured,
    MicrophoneChunk,
)
from firmware_bridge.own_commands import MotionRead, Vector
from firmware_bridge.protobuf import Message
from firmware_bridge.sides import Side

PRESSES: Final = {0: Gesture.TAP, 1: Gesture.DOUBLE_TAP, 3: Gesture.BUTTON_LONG}
"""Schema B; 2 is a triple tap, which has no meaning here."""
HEAD: Final = {0: Gesture.NOD, 1: Gesture.SHAKE, 2: Gesture.HEAD_UP, 3: Gesture.HEAD_DOWN}
"""4 and 5 are tilts to the sides."""
SIDES: Final = {0: Side.LEFT, 1: Side.RIGHT}
_OLD_SIDES: Final = {0: None, 1: Side.LEFT, 2: Side.RIGHT}
_DOWN: Final = 1
_LATE: Final = 32


class EventReader:
    """Messages of the glasses → events, each reported once."""

    def __init__(self) -> None:
        self._battery: BatteryChanged | None = None

    def read(self, message: Message, schema: Schema) -> list[Event]:
        """Return the events of a message. Raises `RemoteViolation`."""
        if ToPhone.BATTERY in message:
            body = message.message(ToPhone.BATTERY)
            return self._charge(body.integer(1), charging=body.integer(2) != 0)
        if ToPhone.CHARGING in message and self._battery is not None:
            state = message.message(ToPhone.CHARGING)
            return self._charge(self._battery.level, charging=state.integer(1) == 1)
        if ToPhone.BUTTON in message:
            body = message.message(ToPhone.BUTTON)
            return _press(body.integer(1), body.integer(2), schema)
        if ToPhone.GESTURE in message:
            gesture = HEAD.get(message.message(ToPhone.GESTURE).integer(1))
            return [] if gesture is None else [Gestured(gesture)]
        if ToPhone.MOTION in message:
            body = message.message(ToPhone.MOTION)
            return [MotionRead(*(_vector(body.message(number)) for number in (1, 2, 3)))]
        return []

    def _charge(self, level: int, *, charging: bool) -> list[Event]:
        if level > 100:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"a battery of {level} %")
        was, self._battery = self._battery, BatteryChanged(level, charging)
        return [] if self._battery == was else [self._battery]


def _vector(body: Message) -> Vector:
    x, y, z = (body.decimal(number) for number in (1, 2, 3))
    if not all(map(math.isfinite, (x, y, z))):
        raise RemoteViolation(Violation.BAD_MESSAGE, "a motion that is no number")
    return x, y, z


def _press(button: int, event: int, schema: Schema) -> list[Event]:
    if schema is Schema.A:
        return [Gestured(Gesture.TAP, _OLD_SIDES.get(button))] if event == _DOWN else []
    gesture = PRESSES.get(event)
    return [] if gesture is None else [Gestured(gesture, SIDES.get(button))]


class MicrophoneStream:
    """One open microphone. The byte after A0 is a number that runs, or always the same id: then
    packets are counted as they come.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._index = -1
        self._byte = 0

    def receive(self, packet: bytes) -> MicrophoneChunk:
        """Return a chunk. Raises `RemoteViolation`."""
        body = packet[2:]
        if not body or len(body) % FRAME:
            raise RemoteViolation(Violation.TRUNCATED, f"sound packet of {len(packet)} bytes")
        if self._index < 0:
            self._index = 0
        elif packet[1] == self._byte == MIC_ID:
            self._index += 1
        else:
            self._index = max(0, self._index + (packet[1] - self._byte + _LATE) % 256 - _LATE)
        self._byte = packet[1]
        frames = tuple(body[at : at + FRAME] for at in range(0, len(body), FRAME))
        return MicrophoneChunk(self.number, self._index, frames)
