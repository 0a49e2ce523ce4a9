"""Value types of the reference profile, validated the same way in both directions."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from firmware_bridge.capabilities import MAX_KEYS
from firmware_bridge.messages import (
    MAX_CHUNK_BYTES,
    MAX_LINES,
    MAX_TEXT_BYTES,
    AudioFormat,
    TextLine,
)

MAX_NAME_BYTES: Final = 128
MAX_DETAIL_BYTES: Final = 256
MAX_PHOTO_PART_BYTES: Final = 32 * 1024
"""Bytes of one part of a photo."""
MAX_FRAMES: Final = 256
"""Coded frames in one chunk of sound."""

_MOST_U16: Final = 0xFFFF
_MOST_U32: Final = 0xFFFFFFFF


class Newer(Exception):
    """A message type or value of a later profile version."""


@dataclass(frozen=True, slots=True)
class Form:
    """`put` converts our value to the wire's, `take` the wire's to ours; both raise ValueError."""

    put: Callable[[Any], Any]
    take: Callable[[Any], Any]


def same(check: Callable[[Any], Any]) -> Form:
    return Form(check, check)


def integer(low: int, high: int) -> Form:
    def check(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"not an integer from {low} to {high}")
        return value

    return same(check)


def text(limit: int) -> Form:
    def check(value: Any) -> str:
        if not isinstance(value, str) or len(value.encode()) > limit:
            raise ValueError(f"not a text of at most {limit} bytes")
        return value

    return same(check)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError("not a finite number")
    return float(value)


def one_of(words: type[StrEnum]) -> Form:
    def take(value: Any) -> StrEnum:
        word = NAME.take(value)
        try:
            return words(word)
        except ValueError as error:
            raise Newer(f"{words.__name__} {value!r:.40}") from error

    return Form(lambda value: words(value).value, take)


def _frames(value: Any) -> list[bytes]:
    frames = list(value) if isinstance(value, list | tuple) else None
    if (
        frames is None
        or len(frames) > MAX_FRAMES
        or not all(isinstance(frame, bytes) for frame in frames)
    ):
        raise ValueError(f"not an array of at most {MAX_FRAMES} byte strings")
    if sum(map(len, frames)) > MAX_CHUNK_BYTES:
        raise ValueError(f"a chunk over {MAX_CHUNK_BYTES} bytes")
    return frames


def _photo_data(value: Any) -> bytes:
    if not isinstance(value, bytes) or len(value) > MAX_PHOTO_PART_BYTES:
        raise ValueError(f"not at most {MAX_PHOTO_PART_BYTES} bytes")
    return value


def _turned(value: Any) -> int:
    if type(value) is not int or value not in (0, 90, 180, 270):
        raise ValueError("not 0, 90, 180 or 270")
    return value


def _put_lines(lines: tuple[TextLine, ...]) -> list[list[Any]]:
    if len(lines) > MAX_LINES or sum(len(line.text.encode()) for line in lines) > MAX_TEXT_BYTES:
        raise ValueError(f"over {MAX_LINES} lines or {MAX_TEXT_BYTES} bytes of text")
    return [[line.row, line.text, line.x] if line.x else [line.row, line.text] for line in lines]


def _take_lines(value: Any) -> tuple[TextLine, ...]:
    if not isinstance(value, list) or len(value) > MAX_LINES:
        raise ValueError(f"not an array of at most {MAX_LINES} lines")
    lines = tuple(_take_line(item) for item in value)
    if sum(len(line.text.encode()) for line in lines) > MAX_TEXT_BYTES:
        raise ValueError(f"over {MAX_TEXT_BYTES} bytes of text")
    return lines


def _take_line(item: Any) -> TextLine:
    if not isinstance(item, list) or len(item) not in (2, 3):
        raise ValueError("a line is [row, text] or [row, text, x]")
    place = integer(0, _MOST_U16).take
    return TextLine(
        place(item[0]), text(MAX_TEXT_BYTES).take(item[1]), place(item[2]) if len(item) == 3 else 0
    )


def _facts(value: Any) -> dict[str, Any]:
    facts = dict(value) if isinstance(value, Mapping) else None
    if facts is None or len(facts) > MAX_KEYS:
        raise ValueError(f"not a map of at most {MAX_KEYS} facts")
    for key, fact in facts.items():
        NAME.take(key)
        if isinstance(fact, str):
            text(MAX_DETAIL_BYTES).take(fact)
        elif not isinstance(fact, bool):
            _number(fact)
    return facts


def _bounds(value: Any) -> dict[str, int]:
    limits = _facts(value)
    for limit in limits.values():
        integer(0, _MOST_U32).take(limit)
    return limits


NAME: Final = text(MAX_NAME_BYTES)
LINES: Final = Form(_put_lines, _take_lines)
FRAMES: Final = Form(_frames, lambda value: tuple(_frames(value)))
TILES: Final = same(lambda value: value)  # converted by the connection's tile table
NUMBER: Final = same(_number)
FACTS: Final = same(_facts)
LIMITS: Final = same(_bounds)
U16: Final = integer(0, _MOST_U16)
U32: Final = integer(0, _MOST_U32)
PAGE: Final = integer(1, _MOST_U16)
RATE: Final = integer(8000, 48000)
FLAG: Final = same(_flag)
FORMAT: Final = one_of(AudioFormat)
PHOTO_DATA: Final = same(_photo_data)
TURNED: Final = same(_turned)
