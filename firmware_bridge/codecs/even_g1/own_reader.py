"""Reads, as an arm of an Even G1, what a central says of the glasses' own functions, and builds
what they say of them.
"""

from typing import Final, NamedTuple

from firmware_bridge.codecs.even_g1 import dashboard, navigation, quick_notes, translation
from firmware_bridge.codecs.even_g1.answers import ArmFacts, refusal
from firmware_bridge.codecs.even_g1.wire import (
    ACCEPTED,
    DOUBLE_TAP,
    DOUBLE_TAP_ACTIONS,
    HEAD_UP_NOTHING,
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
    SetDoubleTap,
    VoiceNoteFetched,
    VoiceNotesChanged,
)
from firmware_bridge.own_commands import (
    ClearNotification,
    DashboardSeen,
    FetchVoiceNote,
    Restart,
    SetDashboard,
    SetDisplayPosition,
    SetHeadUpAction,
    SetLanguage,
    SetNotificationTime,
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
_ACTIONS: Final = {code: action for action, code in DOUBLE_TAP_ACTIONS.items()}
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
        self._dialect = dialect
        self._dashboard = dashboard.DashboardReader(dialect)
        self._navigation = navigation.NavigationReader()

    def read(self, packet: bytes) -> Asked | None:
        """Return what a packet asks for; None for one that is not read here."""
        if packet == RESTART:
            return Asked(Restart(), b"", b"")
        if packet[:1] == bytes((Op.SETTINGS,)) and packet[4:5] == bytes((POSITION,)):
            return self._place(packet)
        if packet[0] not in OPS:
            return self._preference(packet)
        match packet[0]:
            case Op.DASHBOARD:
                done, failed = (dashboard.answer(packet, refused=bad) for bad in (False, True))
                filled = self._dashboard.read(packet)
                if isinstance(filled, SetDashboard):
                    self._facts.layout, self._facts.pane = filled.layout, filled.pane
                return Asked(filled, done, failed)
            case Op.NOTE:
                command = quick_notes.read(packet)
                done = b"" if type(command) is FetchVoiceNote else quick_notes.answer(packet)
                return Asked(command, done, padded(Op.NOTE, REFUSED))
            case Op.NAVIGATION:
                return self._assumed(self._navigation.read(packet), packet)
            case Op.NOTIFICATION_CLEAR:
                if 1 < len(packet) < 5:
                    raise RemoteViolation(Violation.TRUNCATED, f"4C of {len(packet)} bytes")
                return _generic(ClearNotification(int.from_bytes(packet[1:5], "big")), packet)
        return self._assumed(translation.read(packet), packet)

    def _assumed(self, command: Command | None, packet: bytes) -> Asked:
        """Answer what no source saw answered: generically, or not at all."""
        if self._dialect.functions_answered:
            return _generic(command, packet)
        return Asked(command, b"", b"")

    def _preference(self, packet: bytes) -> Asked | None:
        """Read a setting of the glasses themselves; None for what is read elsewhere."""
        match packet[0]:
            case Op.HEAD_UP_ACTION:
                self._facts.opens_looking_up = packet[5] != HEAD_UP_NOTHING
                return _generic(SetHeadUpAction(self._facts.opens_looking_up), packet)
            case Op.LANGUAGE:
                return _generic(SetLanguage(translation.language_of(packet[5])), packet)
            case Op.NOTIFICATIONS_SET:
                self._facts.notification_s = packet[2] if packet[1] else 0
                return _generic(SetNotificationTime(self._facts.notification_s), packet)
            case Op.SETTINGS if packet[4] in DOUBLE_TAP:
                done = bytes((Op.SETTINGS, 6, 0, *packet[3:5], ACCEPTED))
                action = _ACTIONS.get(packet[5])
                command = None if action is None else SetDoubleTap(action)
                return Asked(command, done, refusal(packet))
        return None

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


def own_event(
    message: Command | Event | Reply, max_packet: int, dialect: Dialect = STOCK
) -> list[bytes]:
    """Return the packets of an event of the glasses' own functions; none if it is no such event."""
    end = b"\0" * dialect.case_padded
    match message:
        case CaseChanged(level, charging):
            states = ((Sub.CASE_CHARGING, charging), (Sub.CASE_BATTERY, level))
            known = [(sub, value) for sub, value in states if value is not None]
            return [bytes((Op.EVENT, sub, value)) + end for sub, value in known]
        case DashboardSeen():
            return [dashboard.shown(message)]
        case VoiceNotesChanged():
            return [quick_notes.listed(message, 1)]
        case VoiceNoteFetched():
            return quick_notes.sound_packets(message, max_packet)
        case RunningAppChanged(app):
            return [bytes((Op.RUNNING_APP, 5, 0, 0, 1, app))]
    return []
