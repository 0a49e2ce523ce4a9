"""Reads, as an arm of an Even G1, what a central says of the glasses' own functions, and builds
what they say of them.
"""

from typing import Final, NamedTuple

from firmware_bridge.codecs.even_g1 import dashboard, navigation, quick_notes, translation
from firmware_bridge.codecs.even_g1.answers import ArmFacts
from firmware_bridge.codecs.even_g1.wire import (
    ACCEPTED,
    POSITION,
    REFUSED,
    RESTART,
    STOCK,
    Dialect,
    Op,
    Sub,
    padded,
)
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import (
    CaseChanged,
    Command,
    Event,
    Reply,
    RunningAppChanged,
    VoiceNoteFetched,
    VoiceNotesChanged,
)
from firmware_bridge.own_commands import (
    ClearNotification,
    FetchVoiceNote,
    Restart,
    SetDisplayPosition,
)

OPS: Final = frozenset(
    {
        Op.DASHBOARD,
        Op.NAVIGATION,
        Op.LANGUAGES,
        Op.ORIGINAL,
        Op.TRANSLATED,
        Op.NOTE,
        Op.NOTIFICATION_CLEAR,
    }
)
"""Opcodes that are read here only."""
_WITH_DEPTH: Final = 8
"""Length of the packet of the position; an older one has no depth."""


class Asked(NamedTuple):
    """What a packet asks for: a command, or None; the answer if it is carried out, or not."""

    command: Command | None
    done: bytes
    failed: bytes


class OwnReader:
    """Reads the packets of one arm. Raises `RemoteViolation`, ValueError or IndexError."""

    def __init__(self, facts: ArmFacts, dialect: Dialect = STOCK) -> None:
        self._facts = facts
        self._dashboard = dashboard.DashboardReader(dialect)
        self._navigation = navigation.NavigationReader()

    def read(self, packet: bytes) -> Asked | None:
        """Return what a packet asks for; None for one that is not read here."""
        if packet == RESTART:
            return Asked(Restart(), b"", b"")
        if packet[:1] == bytes((Op.SETTINGS,)) and packet[4:5] == bytes((POSITION,)):
            return self._place(packet)
        if packet[0] not in OPS:
            return None
        match packet[0]:
            case Op.DASHBOARD:
                done, failed = (dashboard.answer(packet, refused=bad) for bad in (False, True))
                return Asked(self._dashboard.read(packet), done, failed)
            case Op.NOTE:
                command = quick_notes.read(packet)
                done = b"" if type(command) is FetchVoiceNote else quick_notes.answer(packet)
                return Asked(command, done, padded(Op.NOTE, REFUSED))
            case Op.NAVIGATION:
                return _generic(self._navigation.read(packet), packet)
            case Op.NOTIFICATION_CLEAR:
                if len(packet) < 5:
                    raise RemoteViolation(Violation.TRUNCATED, f"4C of {len(packet)} bytes")
                return _generic(ClearNotification(int.from_bytes(packet[1:5], "big")), packet)
        return _generic(translation.read(packet), packet)

    def _place(self, packet: bytes) -> Asked:
        """Keep a position only if it was shown before, as real glasses do. The older form has no
        depth, and nothing is known of a preview in it.
        """
        done, failed = (bytes((Op.SETTINGS, 6, 0, *packet[3:5], v)) for v in (ACCEPTED, REFUSED))
        facts, (on, height) = self._facts, packet[5:7]
        if len(packet) < _WITH_DEPTH:
            command = SetDisplayPosition(height, facts.depth)
        else:
            command = SetDisplayPosition(height, packet[7], preview=bool(on))
            shown, facts.shown = facts.shown, (height, packet[7]) if on else None
            if not on and shown != (height, packet[7]):
                return Asked(None, failed, failed)
        if not command.preview:
            facts.height, facts.depth = command.height, command.depth
        return Asked(command, done, failed)


def _generic(command: Command | None, packet: bytes) -> Asked:
    return Asked(command, padded(packet[0], ACCEPTED), padded(packet[0], REFUSED))


def own_event(message: Command | Event | Reply, max_packet: int) -> list[bytes]:
    """Return the packets of an event of the glasses' own functions; none if it is no such event."""
    match message:
        case CaseChanged(level, charging):
            states = ((Sub.CASE_CHARGING, charging), (Sub.CASE_BATTERY, level))
            return [bytes((Op.EVENT, sub, value)) for sub, value in states if value is not None]
        case VoiceNotesChanged():
            return [quick_notes.listed(message, 1)]
        case VoiceNoteFetched():
            return quick_notes.sound_packets(message, max_packet)
        case RunningAppChanged(app):
            return [bytes((Op.RUNNING_APP, 5, 0, 0, 1, app))]
    return []
