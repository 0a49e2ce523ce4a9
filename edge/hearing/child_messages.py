"""The messages between the daemon and the child that recognises words, as bytes of frames.

Sound goes as it came from the glasses, all else as JSON.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from edge.core.hearing.expected import ExpectedWords
from edge.listening_ports import SpeechBegan
from firmware_bridge.messages import AudioFormat, MicrophoneChunk, Reading, Transcript

MAX_FRAME: Final = 1 << 20
"""Bytes of one message: the sentences of some hundred tools are 100 KiB."""
SOUND: Final = b"s"
_JSON: Final = b"{"
_HEAD: Final = struct.Struct(">cdIIH")
"""Kind, arrival (boot clock), stream, index, number of frames."""
_SIZE: Final = struct.Struct(">H")

Message = Mapping[str, Any]


class BadChildMessage(Exception):
    """The other side wrote something that is no message."""


def pack(do: str, **fields: Any) -> bytes:
    return json.dumps({"do": do, **fields}, separators=(",", ":")).encode()


def unpack(body: bytes) -> Message:
    """Raises `BadChildMessage`."""
    try:
        found = json.loads(body) if body[:1] == _JSON else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("do"), str):
        raise BadChildMessage("it is not an object with `do`")
    return found


def pack_sound(chunk: MicrophoneChunk, at: float) -> bytes:
    """`at`: when it arrived, on the boot clock."""
    head = _HEAD.pack(SOUND, at, chunk.stream, chunk.index, len(chunk.frames))
    return head + b"".join(_SIZE.pack(len(frame)) + frame for frame in chunk.frames)


def unpack_sound(body: bytes) -> tuple[MicrophoneChunk, float]:
    _kind, arrived, stream, index, count = _HEAD.unpack_from(body)
    frames, at = [], _HEAD.size
    for _ in range(count):
        (size,) = _SIZE.unpack_from(body, at)
        at += _SIZE.size + size
        frames.append(body[at - size : at])
    return MicrophoneChunk(stream, index, tuple(frames)), arrived


def pack_begin(stream: int, form: AudioFormat, rate: int, expected: ExpectedWords) -> bytes:
    return pack("begin", stream=stream, format=form.value, rate=rate, **_plain(expected))


def pack_expect(expected: ExpectedWords) -> bytes:
    return pack("expect", **_plain(expected))


def expected_of(message: Message) -> ExpectedWords:
    lists = {name: tuple(words) for name, words in message["lists"].items()}
    return ExpectedWords(tuple(message["sentences"]), lists)


def pack_words(stream: int, words: Transcript) -> bytes:
    return pack(
        "words",
        stream=stream,
        text=words.text,
        final=words.final,
        began_at=words.began_at,
        ended_at=words.ended_at,
        confidence=words.confidence,
        readings=[[reading.text, reading.log_probability] for reading in words.readings],
    )


def pack_began(stream: int, at: float) -> bytes:
    return pack("began", stream=stream, at=at)


def began_of(message: Message) -> SpeechBegan:
    """Raises `BadChildMessage`."""
    at = message.get("at")
    if not isinstance(at, float | int):
        raise BadChildMessage("no time at which speech began")
    return SpeechBegan(at)


def words_of(message: Message) -> Transcript:
    """Raises `BadChildMessage`."""
    try:
        return Transcript(
            text=str(message["text"]),
            final=bool(message["final"]),
            began_at=_number(message["began_at"]),
            ended_at=_number(message["ended_at"]),
            confidence=_number(message["confidence"]),
            readings=tuple(Reading(str(text), float(lp)) for text, lp in message["readings"]),
        )
    except (KeyError, TypeError, ValueError) as e:
        raise BadChildMessage("a field of the words is missing or has another form") from e


def _plain(expected: ExpectedWords) -> dict[str, Any]:
    return {"sentences": expected.sentences, "lists": dict(expected.lists)}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
