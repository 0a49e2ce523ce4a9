"""Answers of an Even G1 arm to queries: heartbeats, states, versions, as a table from opcode to
answer.

Commands with an effect are in peripheral.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from firmware_bridge.codecs.even_g1 import dashboard
from firmware_bridge.codecs.even_g1.wire import (
    ACCEPTED,
    REFUSED,
    STOCK,
    BatteryForm,
    Dialect,
    Op,
    padded,
)
from firmware_bridge.own_commands import DashboardLayout, DashboardPane, DashboardSeen
from firmware_bridge.sides import Side

SUB_WORN: Final = 0x06
SUB_NOT_WORN: Final = 0x07
_SERIAL_BYTES: Final = 14
_SERIAL_PADDED: Final = 18
"""Characters of the serial number; the vendor's demo reads bytes 2 to 17 of the answer to 34."""


@dataclass(slots=True)
class ArmFacts:
    """State an arm reports. `other_battery`: percent, as received from the other arm."""

    side: Side = Side.LEFT
    battery: int = 87
    other_battery: int = 87
    charging: bool = False
    worn: bool = True
    silent: bool = False
    wear_detection: bool = True
    brightness: int = 0x15
    auto_brightness: bool = False
    angle: int = 30
    height: int = 4
    depth: int = 5
    shown: tuple[int, int] | None = None
    """Height and depth that are shown, but not kept yet."""
    layout: DashboardLayout = DashboardLayout.FULL
    pane: DashboardPane = DashboardPane.NOTES
    page: int = 0
    looks_up: bool = False
    opens_looking_up: bool = True
    """Whether looking up opens the dashboard."""
    notification_s: int = 5
    debug: bool = False
    calibrated: bytes = b""
    """What follows when the wearer confirms a calibration that was begun."""
    app: int = 0
    voice_notes: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """Number → time and sound of each spoken note."""
    serial: str = "S100LAAL103842"
    frame: str = "A"
    firmware: str = (
        "net build time: 2024-12-28 20:21:57, app build time 2024-12-28 "
        "20:20:45, ver 1.4.5, JBD DeviceID 4010"
    )


def answer(packet: bytes, facts: ArmFacts, dialect: Dialect = STOCK) -> bytes:
    """Answer a packet without effect; refuse unknown opcodes. Raises IndexError if too short."""
    known = _ANSWERS.get(packet[0])
    if known is not None:
        return known(packet, facts, dialect)
    return padded(packet[0], ACCEPTED if packet[0] in _TAKEN else REFUSED)


def _battery(_packet: bytes, facts: ArmFacts, dialect: Dialect) -> bytes:
    if dialect.battery_form is BatteryForm.BOTH:
        levels = (facts.battery, facts.other_battery)
        if facts.side is Side.RIGHT:
            levels = levels[::-1]
        return padded(Op.BATTERY, ord(facts.frame), *levels, 0, 0, 0, 1, 4, 5, 1, 4, 5)
    return padded(Op.BATTERY, 0x66, facts.battery, 0, 0xE6, 0xA0, 0x19, 0, 0, 0, 1, 5, 0)


def _system(packet: bytes, facts: ArmFacts, _dialect: Dialect) -> bytes:
    match packet[1]:
        case 0x72:
            return b""  # restarts without an answer
        case 0x74:
            return facts.firmware.encode()
        case 0x6C:
            facts.debug = packet[2] == 0
            return padded(Op.SYSTEM, ACCEPTED)
        case _:
            return padded(Op.SYSTEM, ACCEPTED)


def _running(packet: bytes, facts: ArmFacts, dialect: Dialect) -> bytes:
    """Not padded, as captured for sub-command 01."""
    value = facts.app if packet[4] == 1 else 0
    if packet[4] != 1 and not dialect.functions_answered:
        return b""
    return bytes((Op.RUNNING_APP, 5, 0, packet[3], packet[4], value))


def _serial(packet: bytes, facts: ArmFacts, dialect: Dialect) -> bytes:
    serial = facts.serial.encode()[:_SERIAL_BYTES].ljust(_SERIAL_BYTES, b"0")
    answer = bytes((packet[0], packet[0])) + serial
    return answer.ljust(_SERIAL_PADDED, b"\0") if dialect.serial_padded else answer


def _state(_packet: bytes, facts: ArmFacts, _dialect: Dialect) -> bytes:
    worn = SUB_WORN if facts.worn else SUB_NOT_WORN
    return padded(Op.SILENT_GET, 0x69, 0x0C if facts.silent else 0x0A, worn)


def _calibrate(packet: bytes, facts: ArmFacts, _dialect: Dialect) -> bytes:
    """Begin a calibration; the same packet with the next number follows when it is confirmed."""
    number, sub = packet[3], packet[4]
    begun = packet[5:7] in (b"", b"\x01\x00")  # clear the zero position; start
    confirmed = padded(Op.CALIBRATE, 6, 0, (number + 1) & 0xFF, sub, ACCEPTED)
    facts.calibrated = confirmed if begun else b""
    return padded(Op.CALIBRATE, 6, 0, number, sub, ACCEPTED)


def dashboard_seen(facts: ArmFacts, *, looking_up: bool = True) -> DashboardSeen:
    seen = DashboardSeen(facts.layout, facts.pane, facts.page)
    return replace(seen, unread=0, low_power=False) if looking_up else seen


def _status(packet: bytes, facts: ArmFacts, _dialect: Dialect) -> bytes:
    """Answer with what is seen on looking up, and the request's number if it has one."""
    seen = dashboard.shown(dashboard_seen(facts))
    return seen[:3] + (packet[3:4] or b"\0") + seen[4:]


def _fixed(*values: int) -> Callable[[bytes, ArmFacts, Dialect], bytes]:
    return lambda _packet, _facts, _dialect: padded(*values)


_ANSWERS: Final[dict[int, Callable[[bytes, ArmFacts, Dialect], bytes]]] = {
    Op.HEARTBEAT: lambda packet, _f, _d: packet,
    Op.ECHO: lambda packet, _f, _d: packet,
    Op.BATTERY: _battery,
    Op.SYSTEM: _system,
    Op.SERIAL: _serial,
    Op.LENS_SERIAL: _serial,
    Op.SILENT_GET: _state,
    Op.RUNNING_APP: _running,
    Op.SETTINGS: lambda packet, _f, _d: bytes((Op.SETTINGS, 6, 0, packet[3], packet[4], ACCEPTED)),
    Op.CALIBRATE: _calibrate,
    Op.FIRMWARE: lambda _packet, facts, _d: facts.firmware.encode(),
    Op.BRIGHTNESS_GET: lambda _p, facts, _d: padded(
        Op.BRIGHTNESS_GET, 0x65, facts.brightness, facts.auto_brightness
    ),
    Op.ANGLE_GET: lambda _p, facts, _d: padded(Op.ANGLE_GET, ACCEPTED, facts.angle),
    Op.WEAR_GET: lambda _p, facts, _d: padded(Op.WEAR_GET, ACCEPTED, facts.wear_detection),
    Op.CHANNEL_GET: _fixed(Op.CHANNEL_GET, ACCEPTED, 47),
    Op.PENDING_GET: _fixed(Op.PENDING_GET, ACCEPTED, 0),
    Op.UPTIME: _fixed(Op.UPTIME, 0x49, 0x1A, 0, 0, 0),
    Op.DEPTH_GET: lambda _p, facts, _d: padded(Op.DEPTH_GET, ACCEPTED, facts.height, facts.depth),
    Op.NOTIFICATIONS_GET: lambda _p, facts, _d: padded(
        Op.NOTIFICATIONS_GET, ACCEPTED, facts.notification_s > 0, facts.notification_s
    ),
    Op.LOOKED_UP: _status,
    Op.USAGE: _fixed(Op.USAGE, ACCEPTED, *b"{}"),
}
_TAKEN: Final = {Op.FIRST, Op.MTU, Op.EVENT} | set(bytes.fromhex("07 09 2A 2D 2E 3F 58"))
"""Functions of which no source has more than the number: accepted and ignored."""


def refusal(packet: bytes) -> bytes:
    """Return a refusal (CA) in the form of the opcode's answers: those to settings and to the
    microphone echo the request.
    """
    match packet[0]:
        case Op.SETTINGS if len(packet) > 4:
            return bytes((Op.SETTINGS, 6, 0, packet[3], packet[4], REFUSED))
        case Op.MICROPHONE if len(packet) > 1:
            return bytes((Op.MICROPHONE, REFUSED, packet[1]))
        case op:
            return padded(op, REFUSED)
