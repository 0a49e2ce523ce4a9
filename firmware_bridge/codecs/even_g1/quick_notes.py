"""Notes of the Even G1, written ones and spoken ones: messages ↔ packets 1E and 21."""

import struct
from typing import Final

from firmware_bridge.codecs.even_g1.pieces import PieceJoiner
from firmware_bridge.codecs.even_g1.wire import Op
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import (
    MAX_VOICE_NOTE_BYTES,
    MAX_VOICE_NOTES,
    Command,
    VoiceNote,
    VoiceNoteFetched,
    VoiceNotesChanged,
)
from firmware_bridge.own_commands import DeleteVoiceNote, FetchVoiceNote, SetNote

SOUND: Final = 0x02
TEXT: Final = 0x03
DELETE: Final = 0x04
LIST: Final = 0x01
_ONE: Final = b"\x01\x00\x01\x00"
"""Count and index of a message in one packet."""
_DELETED: Final = b"\x00\x01\x00\x01\x00\x00"
_HEAD: Final = 14
_SOUND_HEAD: Final = 10
_ENTRY: Final = struct.Struct("<BII")
_LIST_HEAD: Final = 6


def written(message: SetNote, number: int, max_packet: int) -> bytes:
    """Return the packet that adds, changes or deletes a note. Raises `CommandRefused`: too long."""
    head = bytes((number & 0xFF, TEXT)) + _ONE + bytes((message.slot,))
    if not (message.title or message.text):
        return bytes((Op.NOTE, 16, 0)) + head + _DELETED
    title, text = message.title.encode(), message.text.encode()
    size, most = _HEAD + len(title) + len(text), min(max_packet, 255)
    if size > most:
        raise CommandRefused("too_big", f"a note of {size - _HEAD} bytes; {most - _HEAD} fit")
    body = bytes((1, len(title))) + title + len(text).to_bytes(2, "little") + text
    return bytes((Op.NOTE, size, 0)) + head + body


def fetch(message: FetchVoiceNote, number: int) -> bytes:
    sub = DELETE if isinstance(message, DeleteVoiceNote) else SOUND
    return bytes((Op.NOTE, 6, 0, number & 0xFF, sub, message.note))


def read_list(packet: bytes) -> VoiceNotesChanged:
    """Read the list of spoken notes. Raises `RemoteViolation`."""
    if len(packet) < _LIST_HEAD or len(packet) < _LIST_HEAD + packet[5] * _ENTRY.size:
        raise RemoteViolation(Violation.TRUNCATED, f"21 of {len(packet)} bytes")
    if packet[5] > MAX_VOICE_NOTES:
        raise RemoteViolation(Violation.OVERSIZED, f"21: {packet[5]} notes")
    starts = range(_LIST_HEAD, _LIST_HEAD + packet[5] * _ENTRY.size, _ENTRY.size)
    return VoiceNotesChanged(tuple(VoiceNote(*_ENTRY.unpack_from(packet, at)) for at in starts))


class SoundReader:
    """Joins the packets of a spoken note."""

    def __init__(self) -> None:
        self._note = -1
        self._joiner = PieceJoiner(MAX_VOICE_NOTE_BYTES)

    def read(self, packet: bytes) -> VoiceNoteFetched | None:
        """Return a note with its last packet, else None. Raises `RemoteViolation`."""
        if len(packet) < _SOUND_HEAD:
            raise RemoteViolation(Violation.TRUNCATED, f"1E 02 of {len(packet)} bytes")
        count, index, note = struct.unpack_from("<HHB", packet, 5)
        if note != self._note:
            self._note, self._joiner = note, PieceJoiner(MAX_VOICE_NOTE_BYTES)
        data = self._joiner.piece(count, index, packet[_SOUND_HEAD:])
        return None if data is None else VoiceNoteFetched(note, data)


# ------------------------------------------------------------------ as the glasses do


def listed(message: VoiceNotesChanged, number: int) -> bytes:
    entries = b"".join(_ENTRY.pack(note.note, note.at, note.crc) for note in message.notes)
    size = _LIST_HEAD + len(entries)
    return bytes((Op.VOICE_NOTES, size & 0xFF, size >> 8, number & 0xFF, LIST)) + (
        bytes((len(message.notes),)) + entries
    )


def sound_packets(message: VoiceNoteFetched, max_packet: int) -> list[bytes]:
    room = min(max_packet, 255) - _SOUND_HEAD
    pieces = [message.sound[at : at + room] for at in range(0, len(message.sound), room)] or [b""]
    return [
        bytes((Op.NOTE, _SOUND_HEAD + len(piece), 0, index & 0xFF, SOUND))
        + struct.pack("<HHB", len(pieces), index, message.note)
        + piece
        for index, piece in enumerate(pieces, 1)
    ]


def answer(packet: bytes) -> bytes:
    """Return the answer to a packet: its length and number, although the answer is shorter."""
    return bytes((Op.NOTE, packet[1], 0, packet[3], packet[4])) + _ONE + b"\0"


def read(packet: bytes) -> Command | None:
    """Read what a central says; None for what has no effect. Raises ValueError or IndexError."""
    sub = packet[4]
    if sub == SOUND:
        return FetchVoiceNote(packet[5])
    if sub == DELETE:
        return DeleteVoiceNote(packet[5])
    return _read_written(packet) if sub == TEXT else None


def _read_written(packet: bytes) -> SetNote:
    slot, there = packet[9], packet[10]
    if not there:
        return SetNote(slot)
    text_at = 12 + packet[11] + 2
    size = int.from_bytes(packet[text_at - 2 : text_at], "little")
    if len(packet) < text_at + size:
        raise RemoteViolation(Violation.TRUNCATED, f"1E 03 of {len(packet)} bytes")
    title, text = packet[12 : text_at - 2], packet[text_at : text_at + size]
    return SetNote(slot, title.decode(errors="replace"), text.decode(errors="replace"))
