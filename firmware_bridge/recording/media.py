"""Leaves sound and photos out of a recording: their bytes become zeros, so that sizes, order and
times stay.

What is sound is known from the messages: their content is looked for in the packets. What arrives
while a microphone or a camera may be at work and belongs to no other message is emptied too.
"""

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
FOUND: Final = 0.9
"""The share of the content that must be found in the packets for the rest to be trusted."""
SOUND_IN: Final = frozenset({"MicrophoneChunk"})
SOUND_OUT: Final = frozenset({"AudioChunk"})
PHOTO: Final = frozenset({"PhotoTaken"})
_BEGINS: Final = {"StartMicrophone": SOUND_IN, "TakePhoto": PHOTO}
"""Command → what may arrive after it."""


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


def _content(line: Line) -> bytes:
    tree = line.message or line.command or {}
    parts = [tree["jpeg"]] if "jpeg" in tree else tree.get("frames", [])
    return b"".join(bytes.fromhex(each["hex"]) + bytes(each["zeros"]) for each in parts)


def _first(lines: Sequence[Line], kinds: Iterable[str]) -> int:
    """Return the index of the first line with one of these messages, or the number of lines."""
    return next((at for at, line in enumerate(lines) if _type(line) in kinds), len(lines))


def _empty(lines: list[Line], to: str, kinds: frozenset[str], began: set[str]) -> None:
    """Empty the content of these messages wherever a packet has it; where little of it is found,
    the packets carry it in another form, and all large ones are emptied.
    """
    content = b"".join(_content(line) for line in lines if _type(line) in kinds)
    if not content.strip(b"\0"):
        return
    places = {content[at : at + PIECE]: at for at in range(0, len(content) - PIECE + 1, PIECE)}
    found = 0
    for at, line in enumerate(lines):
        if line.to != to or not line.is_packet or len(line.content) <= PIECE:
            continue
        data, count = _emptied(line.content, content, places)
        found += count
        lines[at] = _with_data(line, data)
    if found < FOUND * len(content):
        for at in range(_first(lines, began | kinds), len(lines)):
            if lines[at].to == to:
                lines[at] = _only_head(lines[at])


def _emptied(data: bytes, content: bytes, places: dict[bytes, int]) -> tuple[bytes, int]:
    """Return the packet with every run of the content replaced by zeros, and their length."""
    result, at, found = bytearray(data), 0, 0
    while at <= len(data) - PIECE:
        place = places.get(data[at : at + PIECE])
        if place is None:
            at += 1
            continue
        start, end = at, at + PIECE
        while start > 0 and place > 0 and result[start - 1] == content[place - 1]:
            start, place = start - 1, place - 1
        offset = place - start
        while (
            end < len(data) and end + offset < len(content) and data[end] == content[end + offset]
        ):
            end += 1
        result[start:end] = bytes(end - start)
        found += end - start
        at = end
    return bytes(result), found


def _empty_the_unclear(lines: list[Line], kinds: frozenset[str], began: set[str]) -> None:
    """Empty large packets that arrive once sound or a photo may, and belong to no other message:
    half a photo, or sound that nobody had asked for.
    """
    first = _first(lines, began | kinds)
    other: tuple[Any, ...] | None = None
    for at in range(len(lines) - 1, first - 1, -1):
        line = lines[at]
        if line.message is not None:
            # the packet before a message completed it
            other = None if _type(line) in kinds else _kind(lines[at - 1])
        elif line.to == GLASSD and line.is_packet and _kind(line) != other:
            lines[at] = _only_head(line)


def _kind(line: Line) -> tuple[Any, ...] | None:
    """Return what packets of one message have in common."""
    return (line.side, line.channel, line.content[:1]) if line.is_packet else None


def _only_head(line: Line) -> Line:
    data = line.content
    if not line.is_packet or len(data) <= SMALL:
        return line
    return _with_data(line, data[:HEAD] + bytes(len(data) - HEAD))


def _with_data(line: Line, data: bytes) -> Line:
    body, zeros = split_zeros(data)
    return replace(line, data=body.hex(), zeros=zeros)


def _without_content(line: Line, kinds: frozenset[str]) -> Line:
    if _type(line) not in kinds:
        return line
    tree = dict(line.message or line.command or {})
    if "jpeg" in tree:
        tree["jpeg"] = _silence(tree["jpeg"])
    if "frames" in tree:
        tree["frames"] = [_silence(each) for each in tree["frames"]]
    return replace(line, message=tree) if line.message else replace(line, command=tree)


def _silence(content: dict[str, Any]) -> dict[str, Any]:
    size = len(content["hex"]) // 2 + content["zeros"]
    return {"hex": "", "zeros": size}
