"""Translation on the Even G1, known from one host (Fahrplan): messages ↔ packets 1C, 0F, 0D."""

from collections.abc import Iterator
from typing import Final

from firmware_bridge.codecs.even_g1.wire import Op
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import Command
from firmware_bridge.own_commands import ShowTranslation, StartTranslation

SET_UP: Final = bytes((Op.RUNNING_APP, 5, 0, 0, 0x13))
RIGHT_BEGINS: Final = bytes((Op.ECHO, 6, 0, 0, 1, 1))
"""To the right arm only."""
LANGUAGES: Final = {
    "zh": 0x01,
    "en": 0x02,
    "ja": 0x03,
    "ko": 0x04,
    "fr": 0x05,
    "de": 0x06,
    "es": 0x07,
    "nl": 0x09,
    "it": 0x0E,
}
"""Languages of the translation (zh, en, fr, nl), and of the glasses themselves, which agree."""
UNKNOWN: Final = "xx"
"""A language whose code no source names."""
_CODES: Final = {code: language for language, code in LANGUAGES.items()}
_HEAD: Final = 8
_TEXT, _OPENING = 0x20, 0x00


def languages(message: StartTranslation) -> bytes:
    """Return `1C 00 from to`. Raises `CommandRefused`: a language without a known code."""
    return bytes((Op.LANGUAGES, 0, code_of(message.source), code_of(message.target)))


def code_of(language: str) -> int:
    """Return the glasses' code of a language. Raises `CommandRefused`."""
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise CommandRefused("unsupported", f"an Even G1 does not know {language!r}; {known}")
    return LANGUAGES[language]


def language_of(code: int) -> str:
    return _CODES.get(code, UNKNOWN)


def opening(numbers: Iterator[int]) -> tuple[bytes, bytes]:
    """Return the packets of the empty screen."""
    return _line(Op.ORIGINAL, next(numbers), _OPENING), _line(
        Op.TRANSLATED, next(numbers), _OPENING
    )


def lines(message: ShowTranslation, numbers: Iterator[int], max_packet: int) -> list[bytes]:
    """Return a packet for each text that is there. Raises `CommandRefused`: too long for one."""
    packets = []
    for op, text in ((Op.ORIGINAL, message.original), (Op.TRANSLATED, message.translated)):
        if len(text.encode()) > max_packet - _HEAD:
            detail = f"a translation of {len(text.encode())} bytes; {max_packet - _HEAD} fit"
            raise CommandRefused("too_big", detail)
        if text:
            packets.append(_line(op, next(numbers), _TEXT, text))
    return packets


def _line(op: Op, number: int, kind: int, text: str = "") -> bytes:
    return bytes((op, number & 0xFF, 1, 0, 0, 0, kind, 0x0D)) + text.encode()


def read(packet: bytes) -> Command | None:
    """Read what a central says; None for the empty screen. Raises `RemoteViolation`."""
    if packet[0] == Op.LANGUAGES:
        if len(packet) < 4:
            raise RemoteViolation(Violation.TRUNCATED, f"1C of {len(packet)} bytes")
        return StartTranslation(*map(language_of, packet[2:4]))
    if len(packet) < _HEAD:
        raise RemoteViolation(Violation.TRUNCATED, f"{packet[0]:02X} of {len(packet)} bytes")
    text = packet[_HEAD:].decode(errors="replace")
    if packet[6] == _OPENING or not text:
        return None
    return ShowTranslation(**{"original" if packet[0] == Op.ORIGINAL else "translated": text})
