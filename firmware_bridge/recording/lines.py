"""The lines of a recording: what a driver shows, as JSON, and back."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from firmware_bridge import own_commands
from firmware_bridge.codec import Incoming
from firmware_bridge.driver import Passing
from firmware_bridge.messages import Command, Event, Reply
from firmware_bridge.packets import ChannelPacket, channel_of
from firmware_bridge.sides import Side, Sided, SideNews, SidePacket

GLASSES: Final = "glasses"
GLASSD: Final = "glassd"
_HEX, _ZEROS = "hex", "zeros"
MAX_ZEROS: Final = 4 << 20
"""Zeros at the end of what a message has; the largest photo is smaller."""
_KINDS: Final = (
    *(*Command.__args__, *Event.__args__, *Reply.__args__),
    *(each for each in vars(own_commands).values() if isinstance(each, type)),
)
_TYPES: Final = {each.__name__: each for each in _KINDS if issubclass(each, Struct)}
"""Name of a message → the message."""


class Header(Struct, frozen=True, forbid_unknown_fields=True):
    """The first line. `sound` and `photos`: whether their content was left in. `clock`: what the
    recorder's clock showed at the beginning; some glasses acknowledge a number that depends on it.
    """

    glassd_recording: Literal[1]
    model: str
    mtu: int
    glassd: str
    sound: bool = False
    photos: bool = False
    clock: float = 0.0


class Line(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line after the header; `at` is in seconds since the first one.

    A packet has `to`, `data` (and that many `zeros` behind it), and `side` and `channel` where
    there are several. A side that came or went has `to`, `side` and `up`. The others have one
    of `session` (a new connection), `packet_size`, `command`, `message` and `answer`.
    """

    at: float
    to: Literal["", "glasses", "glassd"] = ""
    side: Side | None = None
    channel: str = ""
    data: str | None = None
    zeros: int = 0
    up: bool | None = None
    reason: str = ""
    session: int = 0
    """Bytes that one packet could carry when the connection began."""
    packet_size: int = 0
    command: dict[str, Any] | None = None
    number: int = 0
    message: dict[str, Any] | None = None
    re: int | None = None
    answer: dict[str, Any] | None = None
    """What the owner said to a check of `glassd validate`."""

    @property
    def is_packet(self) -> bool:
        return self.data is not None

    @property
    def content(self) -> bytes:
        """The content of a packet. Raise `ValueError`."""
        try:
            return bytes.fromhex(self.data or "") + bytes(self.zeros)
        except ValueError:
            raise ValueError("data: two digits of 0 to 9 and a to f are needed a byte") from None

    def one_packet(self) -> bytes:
        """The packet as the codec of one radio takes it: with its channel. Raise `ValueError`."""
        return ChannelPacket(self.content, self.channel) if self.channel else self.content

    def packet(self) -> Any:
        """The packet as a central's codec takes it: with its side. Raise `ValueError`."""
        if self.side is not None and self.up is not None:
            return SideNews(self.side, self.up, self.reason)
        packet = self.one_packet()
        return packet if self.side is None else SidePacket(self.side, packet)


def line_of(at: float, passing: Passing, value: Any) -> Line:
    """Return what a tap was given as a line."""
    at = round(at, 6)
    match passing:
        case Passing.CONNECTED:
            return Line(at, session=value[1].max_packet)
        case Passing.SIZE:
            return Line(at, packet_size=value)
        case Passing.COMMAND:
            return Line(at, command=to_tree(value[0]), number=value[1])
        case Passing.MESSAGE:
            incoming: Incoming = value
            return Line(at, message=to_tree(incoming.message), re=incoming.re)
        case Passing.OUT:
            return _packet(at, GLASSES, value)
        case Passing.IN:
            return _packet(at, GLASSD, value)


def _packet(at: float, to: Literal["glasses", "glassd"], packet: bytes | Sided) -> Line:
    if isinstance(packet, SideNews):
        return Line(at, to, packet.side, up=packet.up, reason=packet.reason)
    side = packet.side if isinstance(packet, SidePacket) else None
    data = packet.data if isinstance(packet, SidePacket) else packet
    body, zeros = split_zeros(bytes(data))
    return Line(at, to, side, channel_of(data), body.hex(), zeros)


def split_zeros(data: bytes) -> tuple[bytes, int]:
    """Return the bytes before the zeros at the end, and the number of zeros (0: less than 8)."""
    body = data.rstrip(b"\0")
    zeros = len(data) - len(body)
    return (body, zeros) if zeros >= 8 else (data, 0)


# ------------------------------------------------------------------ messages


def to_tree(message: Command | Event | Reply) -> dict[str, Any]:
    """Return a message as JSON values, with its `type`; bytes as `{"hex": …, "zeros": n}`."""
    fields = msgspec.to_builtins(message, builtin_types=(bytes,))
    return {"type": type(message).__name__, **_without_bytes(fields)}


def from_tree(tree: Mapping[str, Any]) -> Command | Event | Reply:
    """Return the message. Raise `ValueError` for one that there is not, or that is invalid."""
    if _zeros_in(tree) > MAX_ZEROS:
        raise ValueError(f"zeros: more than {MAX_ZEROS} in one message")
    fields = dict(tree)
    kind = _TYPES.get(str(fields.pop("type", "")))
    if kind is None:
        raise ValueError(f"there is no message {str(tree.get('type'))[:40]!r}")
    try:
        message: Command | Event | Reply = msgspec.convert(_with_bytes(fields), kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{tree['type']}: {error}") from None
    return message


def _zeros_in(value: Any) -> int:
    """Return the zeros of all bytes in a tree. Raise `ValueError` for a number that is none."""
    if isinstance(value, Mapping):
        zeros = value.get(_ZEROS, 0)
        if not isinstance(zeros, int) or zeros < 0:
            raise ValueError(f"zeros: {str(zeros)[:20]}; a whole number from 0 on is needed")
        return zeros + sum(map(_zeros_in, value.values()))
    return sum(map(_zeros_in, value)) if isinstance(value, list) else 0


def _without_bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        body, zeros = split_zeros(value)
        return {_HEX: body.hex(), _ZEROS: zeros}
    if isinstance(value, dict):
        return {key: _without_bytes(each) for key, each in value.items()}
    return [_without_bytes(each) for each in value] if isinstance(value, list | tuple) else value


def _with_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_HEX, _ZEROS}:
            return bytes.fromhex(str(value[_HEX])) + bytes(value[_ZEROS])
        return {key: _with_bytes(each) for key, each in value.items()}
    return [_with_bytes(each) for each in value] if isinstance(value, list) else value
