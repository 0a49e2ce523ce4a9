"""Translates what only an Even G1 says of its own functions into events."""

from firmware_bridge.codecs.even_g1 import dashboard, quick_notes
from firmware_bridge.codecs.even_g1.wire import Op
from firmware_bridge.messages import Event, RunningAppChanged, VoiceNotesChanged
from firmware_bridge.own_commands import DeleteVoiceNote

_RUNNING: int = 0x01


class OwnEventDecoder:
    """Packets of both arms → events. Raises `RemoteViolation`."""

    def __init__(self) -> None:
        self._sound = quick_notes.SoundReader()
        self._notes: VoiceNotesChanged | None = None

    def events(self, packet: bytes) -> list[Event]:
        """Process a packet; answers to commands mean no event."""
        match packet[0]:
            case Op.VOICE_NOTES if packet[4:5] in (b"", bytes((quick_notes.LIST,))):
                self._notes = quick_notes.read_list(packet)
                return [self._notes]
            case Op.NOTE if packet[4:5] == bytes((quick_notes.SOUND,)):
                note = self._sound.read(packet)
                return [] if note is None else [note]
            case Op.LOOKED_UP:
                return dashboard.seen(packet)
            case Op.RUNNING_APP if packet[4:5] == bytes((_RUNNING,)) and len(packet) > 5:
                return [RunningAppChanged(packet[5])]
        return []

    def done(self, command: object) -> list[Event]:
        """Return what a command changed that the glasses took: their list lacks a deleted note."""
        if not isinstance(command, DeleteVoiceNote) or self._notes is None:
            return []
        left = tuple(each for each in self._notes.notes if each.note != command.note)
        self._notes = VoiceNotesChanged(left)
        return [self._notes]
