"""The little of Protocol Buffers (proto3) that glasses need: messages ↔ bytes, within limits.

Field numbers and types are known by the caller; there are no schemas here.
"""

import struct
from collections.abc import Mapping
from typing import Final

from firmware_bridge.errors import RemoteViolation, Violation

MAX_FIELDS: Final = 256
"""Fields of one message; glasses send a dozen."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED: Final = {_FIXED64: 8, _FIXED32: 4}
_FLOAT: Final = struct.Struct("<f")
_MAX_NUMBER: Final = (1 << 29) - 1
_LONGEST_VARINT: Final = 10

Value = int | float | str | bytes | list[int]


def encode(fields: Mapping[int, Value]) -> bytes:
    """Return a message. Numbers that are 0 and empty texts are left out, as proto3 does; bytes are
    those of a message inside, and stay. A list is a packed field of numbers.
    """
    out = bytearray()
    for number, value in fields.items():
        match value:
            case bytes():
                out += _sized(number, value)
            case str() if value:
                out += _sized(number, value.encode())
            case list() if value:
                out += _sized(number, b"".join(map(varint, value)))
            case float() if value:
                out += varint(number << 3 | _FIXED32) + _FLOAT.pack(value)
            case int() if value:
                out += varint(number << 3 | _VARINT) + varint(value)
    return bytes(out)


def _sized(number: int, data: bytes) -> bytes:
    return varint(number << 3 | _BYTES) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """Return a number of at most 64 bits; negative ones as their two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


class Message:
    """A parsed message: fields by number. What is missing, or of another type, is its default."""

    def __init__(self, data: bytes) -> None:
        """Raises `RemoteViolation` for bytes that are no message."""
        self._fields: dict[int, list[int | bytes]] = {}
        at = count = 0
        while at < len(data):
            tag, at = _read_varint(data, at)
            number, kind = tag >> 3, tag & 7
            value, at = _read_value(data, at, kind)
            count += 1
            if not 0 < number <= _MAX_NUMBER or count > MAX_FIELDS:
                raise RemoteViolation(Violation.BAD_MESSAGE, f"field {number}, the {count}th")
            self._fields.setdefault(number, []).append(value)

    def has(self, number: int) -> bool:
        return number in self._fields

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the fields that are there."""
        return tuple(self._fields)

    def integer(self, number: int) -> int:
        value = self._last(number)
        return value if isinstance(value, int) else 0

    def flag(self, number: int) -> bool:
        return self.integer(number) != 0

    def data(self, number: int) -> bytes:
        value = self._last(number)
        return value if isinstance(value, bytes) else b""

    def text(self, number: int) -> str:
        """Return a text, of at most 200 characters unless the message is the wearer's."""
        return self.data(number).decode("utf-8", "replace")

    def real(self, number: int) -> float:
        data = self.data(number)
        return float(_FLOAT.unpack(data)[0]) if len(data) == _FLOAT.size else 0.0

    def message(self, number: int) -> "Message":
        """Return a message inside; an empty one if it is missing. Raises `RemoteViolation`."""
        return Message(self.data(number))

    def integers(self, number: int) -> list[int]:
        """Return a repeated number, packed or not. Raises `RemoteViolation`."""
        found: list[int] = []
        for value in self._fields.get(number, ()):
            if isinstance(value, int):
                found.append(value)
                continue
            at = 0
            while at < len(value):
                each, at = _read_varint(value, at)
                found.append(each)
        return found

    def _last(self, number: int) -> int | bytes:
        return self._fields.get(number, [0])[-1]


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(_LONGEST_VARINT):
        if at + index >= len(data):
            raise RemoteViolation(Violation.TRUNCATED, "a number without its end")
        byte = data[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & (1 << 64) - 1, at + index + 1
    raise RemoteViolation(Violation.BAD_MESSAGE, "a number of more than 64 bits")


def _read_value(data: bytes, at: int, kind: int) -> tuple[int | bytes, int]:
    """Return a value and where the next field begins; fixed numbers stay bytes."""
    if kind == _VARINT:
        return _read_varint(data, at)
    if kind == _BYTES:
        size, at = _read_varint(data, at)
    elif kind in _FIXED:
        size = _FIXED[kind]
    else:
        raise RemoteViolation(Violation.BAD_MESSAGE, f"a field of wire type {kind}")
    if at + size > len(data):
        raise RemoteViolation(Violation.TRUNCATED, f"a field of {size} bytes")
    return data[at : at + size], at + size
