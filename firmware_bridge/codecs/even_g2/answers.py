"""What an arm of an Even G2 knows of itself: its answers to queries, and settings it takes."""

from dataclasses import dataclass, field

from firmware_bridge.codecs.even_g2 import config
from firmware_bridge.codecs.even_g2.own import MOST_DEPTH, MOST_VERTICAL, read_position
from firmware_bridge.messages import (
    Command,
    SetBrightness,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
)
from firmware_bridge.protobuf import Fields, Message


@dataclass(slots=True)
class ArmFacts:
    """State an arm reports."""

    battery: int = 87
    charging: bool = False
    worn: bool = True
    silent: bool = False
    wear_detection: bool = True
    brightness: int = 35
    vertical: int = 6
    depth: int = 1
    head_up: bool = True
    auto_brightness: bool = False
    angle: int = 30
    firmware: str = "2.2.20"
    serial: str = "S211GABB090499"
    case: dict[int, int] = field(default_factory=lambda: {1: 90, 2: 0, 3: 0, 4: 0})


def settings(facts: ArmFacts) -> Fields:
    """Return the body of the answer to the settings query."""
    return {
        1: 1,
        2: facts.brightness,
        3: facts.vertical,
        4: facts.depth,
        5: facts.firmware,
        6: facts.firmware,
        7: int(facts.head_up),
        8: facts.angle,
        10: int(facts.wear_detection),
        12: facts.battery,
        13: int(facts.charging),
        14: int(facts.silent),
        18: int(facts.auto_brightness),
    }


def setting(body: Message, facts: ArmFacts) -> Command | None:
    """Take a setting and return its command; None for one that has no effect here.

    Raises `RemoteViolation`, and ValueError for a value out of range.
    """
    if config.BRIGHTNESS in body:
        inner = body.message(config.BRIGHTNESS)
        facts.auto_brightness = bool(inner.integer(1))
        facts.brightness = min(100, inner.integer(2))
        return SetBrightness(facts.brightness, facts.auto_brightness)
    if config.VERTICAL in body or config.DEPTH in body:
        if config.VERTICAL in body:
            facts.vertical = min(MOST_VERTICAL, body.message(config.VERTICAL).integer(1))
        if config.DEPTH in body:
            facts.depth = min(MOST_DEPTH, body.message(config.DEPTH).integer(1))
        return read_position(facts.vertical, facts.depth)
    if config.HEAD_UP in body:
        head_up = body.message(config.HEAD_UP)
        command = SetHeadUpAngle(head_up.integer(2))
        facts.head_up, facts.angle = bool(head_up.integer(1)), command.degrees
        return command
    if config.WEAR in body:
        facts.wear_detection = bool(body.message(config.WEAR).integer(1))
        return SetWearDetection(facts.wear_detection)
    if config.SILENT in body:
        facts.silent = bool(body.message(config.SILENT).integer(1))
        return SetSilentMode(facts.silent)
    return None
