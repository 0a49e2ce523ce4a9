"""Constants of the protocol of Omi, OMI Glass and OpenGlass, and `Dialect` for differences between
firmwares.

As in the sources of BasedHardware/OpenGlass (`firmware.ino`) and BasedHardware/omi
(`omiGlass/firmware`, `omi/firmware`, the app's `omi_connection.dart`, `Protocol.mdx`). Where the
documents and the firmware disagree, the firmware counts.
"""

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from firmware_bridge.messages import AudioFormat, Gesture
from firmware_bridge.own_commands import Vibration

STREAM: Final = 0
"""The glasses know one microphone and give it no number."""


class SoundForm(Struct, frozen=True):
    """How the sound of a codec id is packed."""

    format: AudioFormat
    rate: int


SOUND: Final[Mapping[int, SoundForm]] = MappingProxyType(
    {
        0: SoundForm(AudioFormat.PCM16, 16000),
        1: SoundForm(AudioFormat.PCM16, 8000),
        10: SoundForm(AudioFormat.MULAW, 16000),
        11: SoundForm(AudioFormat.MULAW, 8000),
        20: SoundForm(AudioFormat.OPUS, 16000),
        21: SoundForm(AudioFormat.OPUS, 16000),
    }
)
"""Value of the codec characteristic → what is sent."""
OLDEST_CODEC: Final = 1
"""That of firmware which does not say one."""
SOUND_HEAD: Final = 3
"""Bytes before the sound in a packet: 16-bit number, little-endian, and fragment."""

PHOTO_HEAD: Final = 2
PHOTO_BYTES: Final = 200
"""Bytes of the picture in a packet; one less beside the orientation."""
PHOTO_END: Final = b"\xff\xff"
TAKE_ONE: Final = 0xFF
STOP: Final = 0
SHORTEST_INTERVAL: Final = 5
LONGEST_INTERVAL: Final = 127

BUTTON_BYTES: Final = 8
"""Two 32-bit integers; the second is always 0."""
BUTTON: Final[Mapping[int, Gesture]] = MappingProxyType(
    {1: Gesture.BUTTON, 2: Gesture.DOUBLE_TAP, 3: Gesture.BUTTON_LONG}
)
PRESSED: Final = 4
RELEASED: Final = 5

HAS_MOTION: Final = 1 << 1
HAS_BUTTON: Final = 1 << 2
HAS_HAPTIC: Final = 1 << 5
HAS_DIM: Final = 1 << 7
HAS_GAIN: Final = 1 << 8
FEATURES: Final = HAS_BUTTON | 1 << 3 | HAS_HAPTIC | HAS_DIM | HAS_GAIN
"""What a simulated Omi says: button, battery, vibration, LED dimming, microphone gain."""
VIBRATION: Final = {length: code for code, length in enumerate(Vibration, 1)}
"""Length → what is written: `haptic.c` and the app's `omi_connection.dart`."""
MOTION: Final = struct.Struct("<12i")
"""Acceleration and rotation, each of three axes: whole units and millionths (`accel.c`)."""
LEAST_MTU: Final = 100
"""An Omi sends sound only where a packet is at least that large, with its ATT header."""
MAX_DIM: Final = 100
MAX_GAIN: Final = 8


def gain_of(percent: int) -> int:
    """Return the step of the microphone's gain that is nearest to so many percent."""
    return (percent * MAX_GAIN + 50) // 100


def percent_of(gain: int) -> int:
    """Return a step of the microphone's gain in percent."""
    return round(gain * 100 / MAX_GAIN)


class Dialect(Struct, frozen=True):
    """One firmware: what differs between the three, and what sources disagree about.

    `oriented`: a photo begins with its orientation. `burst`: packets of a photo every `pause_s`.
    `numbers_frames`: all pieces of a frame have its number. `overlong`: pieces are three bytes
    longer than fit. `narrow`: samples of codec 1 have 8 bits. `fixed_interval_s`: photos come so
    often, whatever interval is asked for. `repeats`: photos are taken before anybody asks for one.
    `says_long`: a long press is reported. `features`: the mask of what it was built with.
    `settings`: it has those of an Omi, and says whether it is charged. `short_address`: the length
    of the address of new firmware has one byte.
    """

    codec: int
    oriented: bool = False
    burst: int = 1
    pause_s: float = 0.02
    numbers_frames: bool = False
    overlong: bool = False
    narrow: bool = False
    fixed_interval_s: float | None = None
    repeats: bool = False
    says_long: bool = False
    features: int = FEATURES
    settings: bool = False
    short_address: bool = False


def interval(value: int, dialect: Dialect) -> float | None:
    """Return the seconds between photos that a control byte asks for; None if it is ignored."""
    if not SHORTEST_INTERVAL <= value <= LONGEST_INTERVAL:
        return None
    if dialect.fixed_interval_s is not None:
        return dialect.fixed_interval_s
    return value // 5 * 5.0
