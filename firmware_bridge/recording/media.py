"""Leaves sound and photos out of a recording: their bytes become zeros, so that sizes, order and
times stay.

What is sound is known from the messages: their content is looked for in the packets. What arrives
while a microphone or a camera may be at work and belongs to no other message is emptied too.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from firmware_bridge.recording.lines import GLASSD, GLASSES, Line, split_zeros

PIECE: Final = 8
"""Bytes that are compared at once; a shorter piece of sound than two of these may stay."""
SMALL: Final = 20
"""A packet of at most so many bytes carries an answer or an event, never a photo."""
HEAD: Final = 8
"""Bytes kept of a packet that is emptied without being understood: opcode and numbers."""
FRAME: Final = 40
"""Bytes beside its content that a packet of sound or of a photo may have."""
TEXT: Final = 0.9
"""The share of letters from which on a packet is text: of sound or a photo it is about a third."""
_CODED: Final = re.compile(rb"[0-9A-Za-z+/_-]{40}")
"""More letters without a space or a sign than any word has."""
FOUND: Final = 0.9
"""The share of the content that must be found in the packets for the rest to be trusted."""
SOUND_IN: Final = frozenset({"MicrophoneChunk", "VoiceNoteFetched"})
SOUND_OUT: Final = frozenset({"AudioChunk"})
PHOTO: Final = frozenset({"PhotoTaken"})
_BEGIN, _END = b"\xff\xd8\xff", b"\xff\xd9"
"""Marks at the beginning and end of a JPEG file."""
_BEGINS: Final = {"StartMicrophone": SOUND_IN, "FetchVoiceNote": SOUND_IN, "TakePhoto": PHOTO}
"""Command → what may arrive after it."""
_WHOLE: Final = ("jpeg", "sound")
"""Fields of messages that have a whole photo or a whole spoken note."""


def leave_out(lines: Sequence[Line], *, sound: bool, photos: bool) -> list[Line]:
    """Return the lines of one connection without the content of what is not wanted."""
    kinds = (SOUND_IN if not sound else frozenset()) | (PHOTO if not photos else frozenset())
    result = list(lines)
    if kinds:
        began = {name for name, kind in _BEGINS.items() if kind & kinds}
        _empty(result, GLASSD, kinds, began)
        _empty_the_unclear(result, kinds, began)
    if not sound:
        _empty(result, GLASSES, SOUND_OUT, {"StartAudio"})
    unwanted = kinds | (SOUND_OUT if not sound else frozenset())
    return [_without_content(line, unwanted) for line in result]


def _type(line: Line) -> str:
    return str((line.message or line.command or {}).get("type", ""))


def _parts(line: Line) -> list[bytes]:
    """Return the frames of sound, the spoken note, or the photo, that a message has."""
    tree = line.message or line.command or {}
    parts = [tree[each] for each in _WHOLE if each in tree] or tree.get("frames", [])
    return [bytes.fromhex(each["hex"]) + bytes(each["zeros"]) for each in parts]


def _first(lines: Sequence[Line], kinds: Iterable[str]) -> int:
    """Return the index of the first line with one of these messages, or the number of lines."""
    return next((at for at, line in enumerate(lines) if _type(line) in kinds), len(lines))


def _empty(lines: list[Line], to: str, kinds: frozenset[str], began: set[str]) -> None:
    """Empty the content of these messages wherever a packet has it; where little of it is found,
    the packets carry it in another form, and all large ones are emptied.
    """
    parts = [part for line in lines if _type(line) in kinds for part in _parts(line)]
    places = {
        piece: (part, at)
        for part in parts
        for at in range(0, len(part) - PIECE + 1, PIECE)
        if any(piece := part[at : at + PIECE])
    }
    found = _empty_whole_parts(lines, to, kinds)
    for at, line in enumerate(lines):
        if line.to == to and line.is_packet and len(line.content) > PIECE:
            data, count = _emptied(line.content, places)
            found += count
            lines[at] = _with_data(line, data)
    if found < FOUND * sum(len(part) - part.count(0) for part in parts):
        for at in range(_first(lines, began | kinds), len(lines)):
            if lines[at].to == to:
                lines[at] = _only_head(lines[at])


def _empty_whole_parts(lines: list[Line], to: str, kinds: frozenset[str]) -> int:
    """Empty the frames of sound that came whole in the packet before their message: they may be so
    alike that a piece of one is found in another. Return how many bytes were not zero.
    """
    found = 0
    for at in range(1, len(lines)):
        packet = lines[at - 1]
        if _type(lines[at]) not in kinds or packet.to != to or not packet.is_packet:
            continue
        data, start = packet.content, 0
        for part in _parts(lines[at]):
            if len(part) >= PIECE and (place := data.find(part, start)) >= 0:
                start = place + len(part)
                data = data[:place] + _without_pixels(part) + data[start:]
                found += len(part) - part.count(0)
        lines[at - 1] = _with_data(packet, data)
    return found


def _emptied(data: bytes, places: dict[bytes, tuple[bytes, int]]) -> tuple[bytes, int]:
    """Return the packet with every run of a part replaced by zeros, and how many bytes were not."""
    result, at, found = bytearray(data), 0, 0
    while at <= len(data) - PIECE:
        if (place := places.get(data[at : at + PIECE])) is None:
            at += 1
            continue
        part, offset = place
        start, end, shift = at, at + PIECE, offset - at
        while start > 0 and start + shift > 0 and data[start - 1] == part[start - 1 + shift]:
            start -= 1
        while end < len(data) and end + shift < len(part) and data[end] == part[end + shift]:
            end += 1
        found += sum(map(bool, result[start:end]))
        result[start:end] = _without_pixels(part)[start + shift : end + shift]
        if part.startswith(_BEGIN):
            _keep_sum(result, data, (start + end) // 2)
        at = end
    return bytes(result), found


def _keep_sum(result: bytearray, data: bytes, at: int) -> None:
    """Change one byte so that the sum of all, which some packets have in them, is what it was."""
    result[at] = (result[at] + sum(data) - sum(result)) & 0xFF


def _without_pixels(part: bytes) -> bytes:
    """Return as many zeros; of a whole JPEG file the marks at its beginning and end stay, by which
    a photo is recognised.
    """
    end = len(part.rstrip(b"\0"))
    if not part.startswith(_BEGIN) or part[end - 2 : end] != _END:
        return bytes(len(part))
    return _BEGIN + bytes(end - 5) + _END + bytes(len(part) - end)


def _empty_the_unclear(lines: list[Line], kinds: frozenset[str], began: set[str]) -> None:
    """Empty large packets that arrive once sound or a photo may, and belong to no other message:
    half a photo, or sound that nobody had asked for.
    """
    first = _first(lines, began | kinds)
    kind, media = None, False
    for at in range(len(lines) - 1, first - 1, -1):
        line = lines[at]
        if line.message is not None:
            # the packet before a message completed it
            kind, media = _kind(lines[at - 1]), _type(line) in kinds
        elif line.to == GLASSD and line.is_packet:
            full = sum(map(bool, line.content)) > FRAME
            if _kind(line) != kind or (media and full):
                lines[at] = _only_head(line)


def _kind(line: Line) -> tuple[Any, ...] | None:
    """Return what packets of one message have in common."""
    return (line.side, line.channel, line.content[:1]) if line.is_packet else None


def _only_head(line: Line) -> Line:
    data = line.content if line.is_packet else b""
    if len(data) <= SMALL or sum(map(bool, data)) <= HEAD or _is_text(data):
        return line
    return _with_data(line, data[:HEAD] + bytes(len(data) - HEAD))


def _is_text(data: bytes) -> bool:
    """Return whether it is words, and neither bytes nor what stands for bytes (base64)."""
    printable = sum(32 <= byte < 127 for byte in data)
    return printable >= TEXT * len(data) and not _CODED.search(data)


def _with_data(line: Line, data: bytes) -> Line:
    body, zeros = split_zeros(data)
    return replace(line, data=body.hex(), zeros=zeros)


def _without_content(line: Line, kinds: frozenset[str]) -> Line:
    if _type(line) not in kinds:
        return line
    tree = dict(line.message or line.command or {})
    if "jpeg" in tree:
        data, zeros = split_zeros(_without_pixels(_parts(line)[0]))
        tree["jpeg"] = {"hex": data.hex(), "zeros": zeros}
    if "sound" in tree:
        tree["sound"] = _silence(tree["sound"])
    if "frames" in tree:
        tree["frames"] = [_silence(each) for each in tree["frames"]]
    return replace(line, message=tree) if line.message else replace(line, command=tree)


def _silence(content: dict[str, Any]) -> dict[str, Any]:
    size = len(content["hex"]) // 2 + content["zeros"]
    return {"hex": "", "zeros": size}
