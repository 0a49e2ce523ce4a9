"""A small protobuf wire encoder and decoder, without schemas: messages by field number.

Bounded: a decoded message has a limited size and number of fields; groups are refused.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from firmware_bridge.errors import RemoteViolation, Violation

Value = Any
"""What a field can be. int: varint (negative: 64-bit two's complement). float: fixed 32 bit,
`Double`: 64 bit. str, bytes and a nested message: with their length. A list of messages: one field
for each.
"""
Fields = Mapping[int, Value]

MAX_BYTES: Final = 1 << 20
MAX_FIELDS: Final = 1024
MAX_FIELD_NUMBER: Final = (1 << 29) - 1
_MAX_VARINT_BYTES: Final = 10
_MASK: Final = (1 << 64) - 1
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


class Double(float):
    """A number that is sent in 64 bits."""


def encode(fields: Fields, *, zeros: bool = True) -> bytes:
    """Encode a message in the order of the dict; without `zeros`, leave out scalars that are 0.

    Strings, bytes and messages are always written, also empty ones. Raises ValueError for a field
    number or an integer out of range.
    """
    out = bytearray()
    for number, value in fields.items():
        if isinstance(value, int | float) and not zeros and not value:
            continue
        if isinstance(value, list | tuple):
            for each in value:
                _append(out, number, each, zeros=zeros)
        else:
            _append(out, number, value, zeros=zeros)
    return bytes(out)


def _append(out: bytearray, number: int, value: object, *, zeros: bool) -> None:
    if not 1 <= number <= MAX_FIELD_NUMBER:
        raise ValueError(f"field number {number}; 1 to {MAX_FIELD_NUMBER} are allowed")
    match value:
        case Double():
            out += varint(number << 3 | _FIXED64) + _DOUBLE.pack(value)
        case float():
            out += varint(number << 3 | _FIXED32) + _FLOAT.pack(value)
        case int():
            out += varint(number << 3 | _VARINT) + varint(value)
        case str():
            _append_bytes(out, number, value.encode())
        case bytes():
            _append_bytes(out, number, value)
        case Mapping():
            _append_bytes(out, number, encode(value, zeros=zeros))
        case _:
            raise ValueError(f"field {number} cannot be {type(value).__name__}")


def _append_bytes(out: bytearray, number: int, value: bytes) -> None:
    out += varint(number << 3 | _LENGTH) + varint(len(value)) + value


def varint(value: int) -> bytes:
    """Encode an integer; a negative one takes ten bytes. Raises ValueError beyond 64 bits."""
    if 0 <= value <= 0x7F:
        return _ONE_BYTE[value]
    if not -(1 << 63) <= value <= _MASK:
        raise ValueError(f"{value} does not fit 64 bits")
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def packed(values: Sequence[int]) -> bytes:
    """Encode a packed repeated field of varints."""
    return b"".join(map(varint, values))


class Message:
    """A decoded message. Unknown fields are kept; of a scalar that is repeated, the last counts.

    Getters return a default where the field is missing, and raise `RemoteViolation` where it has
    another wire type.
    """

    __slots__ = ("_fields",)

    def __init__(self, data: bytes = b"", *, max_fields: int = MAX_FIELDS) -> None:
        """Decode a message. Raises `RemoteViolation`."""
        if len(data) > MAX_BYTES:
            raise RemoteViolation(Violation.OVERSIZED, f"a message of {len(data)} bytes")
        self._fields: dict[int, list[tuple[int, int | bytes]]] = {}
        for count, (number, kind, value) in enumerate(_read(data)):
            if count >= max_fields:
                raise RemoteViolation(Violation.OVERSIZED, f"more than {max_fields} fields")
            self._fields.setdefault(number, []).append((kind, value))

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def numbers(self) -> list[int]:
        """Return the numbers of its fields, in the order of their first appearance."""
        return list(self._fields)

    def integer(self, number: int, default: int = 0) -> int:
        """Return a varint as an unsigned number."""
        found: int | None = self._last(number, _VARINT)
        return default if found is None else found

    def signed(self, number: int, default: int = 0) -> int:
        """Return a varint as a signed number in two's complement."""
        value = self.integer(number, default & _MASK)
        return value - (1 << 64) if value >> 63 else value

    def decimal(self, number: int, default: float = 0.0) -> float:
        """Return a floating-point number of 32 or 64 bits."""
        entries = self._fields.get(number)
        if not entries:
            return default
        kind, value = entries[-1]
        if kind not in (_FIXED32, _FIXED64) or not isinstance(value, bytes):
            raise _wrong(number)
        (number_read,) = (_FLOAT if kind == _FIXED32 else _DOUBLE).unpack(value)
        return float(number_read)

    def data(self, number: int, default: bytes = b"") -> bytes:
        """Return bytes."""
        found: bytes | None = self._last(number, _LENGTH)
        return default if found is None else found

    def text(self, number: int, default: str = "") -> str:
        """Return a string; bytes that are not UTF-8 are replaced."""
        found: bytes | None = self._last(number, _LENGTH)
        return default if found is None else found.decode(errors="replace")

    def message(self, number: int) -> "Message":
        """Return a nested message; an empty one if it is missing."""
        return Message(self.data(number))

    def messages(self, number: int, limit: int = MAX_FIELDS) -> list["Message"]:
        """Return all nested messages of a repeated field. Raises beyond `limit` of them."""
        entries = self._fields.get(number, [])
        if len(entries) > limit:
            raise RemoteViolation(Violation.OVERSIZED, f"field {number} comes {len(entries)} times")
        if any(kind != _LENGTH for kind, _ in entries):
            raise _wrong(number)
        return [Message(value) for _, value in entries if isinstance(value, bytes)]

    def texts(self, number: int, limit: int = MAX_FIELDS) -> list[str]:
        """Return all strings of a repeated field. Raises `RemoteViolation` beyond `limit`."""
        entries = self._fields.get(number, [])
        if len(entries) > limit:
            raise RemoteViolation(Violation.OVERSIZED, f"field {number} comes {len(entries)} times")
        found = [value for kind, value in entries if kind == _LENGTH and isinstance(value, bytes)]
        if len(found) < len(entries):
            raise _wrong(number)
        return [value.decode(errors="replace") for value in found]

    def integers(self, number: int, limit: int = MAX_FIELDS) -> list[int]:
        """Return a repeated varint, packed or not. Raises `RemoteViolation` beyond `limit`."""
        found: list[int] = []
        for kind, value in self._fields.get(number, ()):
            if kind == _LENGTH and isinstance(value, bytes):
                found += unpack(value, limit)
            elif kind == _VARINT and isinstance(value, int):
                found.append(value)
            else:
                raise _wrong(number)
        if len(found) > limit:
            raise RemoteViolation(Violation.OVERSIZED, f"more than {limit} numbers")
        return found

    def _last(self, number: int, kind: int) -> Any:
        entries = self._fields.get(number)
        if not entries:
            return None
        if entries[-1][0] != kind:
            raise _wrong(number)
        return entries[-1][1]


def unpack(data: bytes, limit: int = MAX_FIELDS) -> list[int]:
    """Return the varints of a packed repeated field. Raises `RemoteViolation`."""
    values: list[int] = []
    at = 0
    while at < len(data):
        if len(values) >= limit:
            raise RemoteViolation(Violation.OVERSIZED, f"more than {limit} packed numbers")
        value, at = _varint(data, at)
        values.append(value)
    return values


def _wrong(number: int) -> RemoteViolation:
    return RemoteViolation(Violation.BAD_MESSAGE, f"field {number} has an unexpected wire type")


def _read(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield (field number, wire type, value). Raises `RemoteViolation`."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if not 1 <= number <= MAX_FIELD_NUMBER:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"field number {number}")
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, kind, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _LENGTH:
            size, at = _varint(data, at)
        if size is None:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"field {number} has wire type {kind}")
        if size > len(data) - at:
            detail = f"field {number}: {size} bytes announced, {len(data) - at} left"
            raise RemoteViolation(Violation.TRUNCATED, detail)
        yield number, kind, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at a position, and the position after it. Raises `RemoteViolation`."""
    value = 0
    for count, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            if value > _MASK:
                raise RemoteViolation(Violation.BAD_MESSAGE, "a varint of more than 64 bits")
            return value, at + count + 1
    if len(data) - at >= _MAX_VARINT_BYTES:
        raise RemoteViolation(Violation.BAD_MESSAGE, "a varint of more than ten bytes")
    raise RemoteViolation(Violation.TRUNCATED, "a varint without its end")
