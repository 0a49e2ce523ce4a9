"""The dashboard of the Even G1: messages ↔ packets 06."""

import struct
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from firmware_bridge.codecs.even_g1.picture import centred
from firmware_bridge.codecs.even_g1.pieces import PieceJoiner, cut
from firmware_bridge.codecs.even_g1.wire import (
    HEIGHT,
    MAP_WIDTH,
    STOCK,
    Dialect,
    Op,
    dashboard_time,
)
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import Command, Event, SetClock, Tile
from firmware_bridge.own_commands import (
    CalendarEntry,
    DashboardLayout,
    DashboardPane,
    DashboardSeen,
    SetCalendar,
    SetDashboard,
    SetMap,
    SetWeather,
    Sky,
)

TIME: Final = 0x01
CALENDAR: Final = 0x03
STOCK_PRICES: Final = 0x04
NEWS: Final = 0x05
PANES: Final = 0x06
MAP: Final = 0x07
CHUNKED: Final = frozenset({CALENDAR, STOCK_PRICES, NEWS, MAP})
"""Sub-commands whose packets are counted."""
ROOM: Final = 180
"""Bytes of data in a packet of the vendor's app, which has 189 in all."""
MAP_SIZE: Final = (MAP_WIDTH, HEIGHT)
ARROW_SIZE: Final = (32, 32)
_MAX_BYTES: Final = 16384
_LAYOUTS: Final = tuple(DashboardLayout)
_PANES: Final = tuple(DashboardPane)
_SKIES: Final = tuple(Sky)
_CALENDAR_HEAD: Final = b"\x01\x03\x03"
_FIELDS = _TITLE, _TIME, _PLACE = 1, 2, 3
_MAP_HEAD: Final = b"\x00\x04"
_LOADING, _PICTURE, _ARROW = 0, 2, 3
_ON_LOOKING_UP, _ON_TAP = 1, 2
_SPOT: Final = struct.Struct("<HH")
_TIME_BYTES: Final = 21


def weather(message: SetWeather, number: int, dialect: Dialect = STOCK) -> bytes:
    """Return `06 15 00 seq 01` + time, icon, temperature, unit and hours."""
    packet = dashboard_time(number, message.local_s, dialect, twelve_hour=message.twelve_hour)
    kind = struct.pack("<BbB", _SKIES.index(message.sky), message.celsius, message.fahrenheit)
    return packet[:17] + kind + packet[20:]


def panes(message: SetDashboard, number: int) -> bytes:
    layout, pane = _LAYOUTS.index(message.layout), _PANES.index(message.pane)
    return bytes((Op.DASHBOARD, 7, 0, number & 0xFF, PANES, layout, pane))


def calendar(message: SetCalendar, numbers: Iterator[int], max_packet: int) -> tuple[bytes, ...]:
    """Return the packets of `01 03 03 n` and for each entry title, time and place, each after its
    length.
    """
    data = _CALENDAR_HEAD + bytes((len(message.entries),))
    for entry in message.entries:
        fields = (_TITLE, entry.title), (_TIME, entry.time), (_PLACE, entry.place)
        for kind, words in fields:
            data += bytes((kind, len(words.encode()))) + words.encode()
    return _cut(CALENDAR, data, numbers, max_packet)


def map_of(message: SetMap, numbers: Iterator[int], max_packet: int) -> tuple[bytes, ...]:
    """Return the packets of a map, or of an arrow on it. Raises `CommandRefused`: too large."""
    if message.picture is not None:
        data = bytes((_PICTURE, 1)) + centred("map", message.picture, *MAP_SIZE)
    elif message.arrow is not None:
        if (message.arrow.width, message.arrow.height) != ARROW_SIZE:
            size = f"{message.arrow.width} × {message.arrow.height}"
            raise CommandRefused("bad_message", f"an arrow of {size}; it must be 32 × 32")
        data = bytes((_ARROW,)) + _SPOT.pack(message.arrow.x, message.arrow.y)
        data += message.arrow.pixels
    else:
        data = bytes((_LOADING,))
    return _cut(MAP, _MAP_HEAD + data, numbers, max_packet)


def _cut(sub: int, data: bytes, numbers: Iterator[int], max_packet: int) -> tuple[bytes, ...]:
    return cut(Op.DASHBOARD, sub, data, numbers, room=ROOM, max_packet=max_packet)


def seen(packet: bytes) -> list[Event]:
    """Return what the wearer sees of the dashboard: on looking up, and after a tap meanwhile.
    Nothing for other packets, shorter ones, and layouts or panes that no source names.
    """
    at = {_ON_LOOKING_UP: 7, _ON_TAP: 5}.get(int.from_bytes(packet[4:5]), len(packet))
    places = packet[at : at + 3].ljust(3, b"\0")
    if len(packet) < at + 2 or places[0] >= len(_LAYOUTS) or places[1] >= len(_PANES):
        return []
    known = DashboardSeen(_LAYOUTS[places[0]], _PANES[places[1]], places[2])
    if at == 7:
        known = replace(known, unread=packet[5], low_power=bool(packet[6]))
    return [known]


# ------------------------------------------------------------------ as the glasses read them


def shown(event: DashboardSeen) -> bytes:
    """Return the packet that reports what the wearer sees."""
    places = bytes((_LAYOUTS.index(event.layout), _PANES.index(event.pane), event.page))
    if event.unread is None:
        return bytes((Op.LOOKED_UP, 8, 0, 0, _ON_TAP)) + places
    head = (Op.LOOKED_UP, 10, 0, 0, _ON_LOOKING_UP, event.unread, event.low_power is True)
    return bytes(head) + places


def answer(packet: bytes, *, refused: bool = False) -> bytes:
    """Return the answer to a packet: length and number of the packet, and count and index where it
    has them; the last byte is 0 if it was taken.
    """
    pieces = packet[5:9] if packet[4] in CHUNKED else bytes((1, 0, 1, 0))
    return packet[:5] + pieces.ljust(4, b"\0") + bytes((refused,))


class DashboardReader:
    """Reads the packets of one arm."""

    def __init__(self, dialect: Dialect = STOCK) -> None:
        self._dialect = dialect
        self._joiners = {sub: PieceJoiner(_MAX_BYTES) for sub in (CALENDAR, MAP)}

    def read(self, packet: bytes) -> Command | None:
        """Return the command that a packet completes; None if there is none, or more packets
        follow. Raises `RemoteViolation`, ValueError or IndexError.
        """
        sub = packet[4]
        if sub == TIME:
            return self._time(packet)
        if sub == PANES:
            layout, pane = packet[5], packet[6]
            if layout >= len(_LAYOUTS) or pane >= len(_PANES):
                detail = f"06 06: layout {layout:02X}, pane {pane:02X}"
                raise RemoteViolation(Violation.BAD_MESSAGE, detail)
            return SetDashboard(_LAYOUTS[layout], _PANES[pane])
        if sub not in self._joiners:
            return None
        data = self._joiners[sub].add(packet)
        if data is None:
            return None
        return _read_calendar(data) if sub == CALENDAR else _read_map(data)

    def _time(self, packet: bytes) -> Command:
        """Read the clock, and the weather if there is any. One source has a byte more."""
        if len(packet) < _TIME_BYTES:
            raise RemoteViolation(Violation.TRUNCATED, f"06 01 of {len(packet)} bytes")
        local_s = int.from_bytes(packet[5:9], "little")
        icon, celsius, fahrenheit = struct.unpack_from("<BbB", packet, 17)
        twelve = packet[20] == self._dialect.twelve_hour
        if not (icon or celsius):
            return SetClock(local_s, twelve)
        sky = _SKIES[icon] if icon < len(_SKIES) else Sky.UNKNOWN
        return SetWeather(local_s, sky, celsius, twelve, bool(fahrenheit))


def _read_calendar(data: bytes) -> SetCalendar:
    """Read the entries, whatever the first three bytes are: two hosts differ in them. An entry may
    lack its time and its place; what is of another kind means nothing.
    """
    at, entries, count = len(_CALENDAR_HEAD) + 1, list[dict[int, str]](), data[len(_CALENDAR_HEAD)]
    while at + 1 < len(data) and (len(entries) < count or data[at] != _TITLE):
        kind, end = data[at], at + 2 + data[at + 1]
        if kind in _FIELDS and (end > len(data) or not (entries or kind == _TITLE)):
            raise RemoteViolation(Violation.BAD_MESSAGE, "06 03: a calendar entry is damaged")
        if not entries and kind != _TITLE:
            break
        if kind == _TITLE:
            entries.append({})
        entries[-1].setdefault(kind, data[at + 2 : end].decode(errors="replace"))
        at = end
    if len(entries) < count:
        detail = f"06 03: {len(entries)} of {count} calendar entries"
        raise RemoteViolation(Violation.BAD_MESSAGE, detail)
    fields = [[entry.get(kind, "") for kind in _FIELDS] for entry in entries]
    return SetCalendar(tuple(CalendarEntry(*each) for each in fields))


def _read_map(data: bytes) -> SetMap:
    kind, data = data[len(_MAP_HEAD)], data[len(_MAP_HEAD) + 1 :]
    if kind == _LOADING:
        return SetMap()
    if kind == _PICTURE:
        return SetMap(Tile(0, 0, *MAP_SIZE, 1, data[1:]))
    if kind == _ARROW:
        if len(data) < _SPOT.size:
            raise RemoteViolation(Violation.TRUNCATED, f"06 07: an arrow of {len(data)} bytes")
        x, y = _SPOT.unpack_from(data)
        return SetMap(arrow=Tile(x, y, *ARROW_SIZE, 1, data[_SPOT.size :]))
    raise RemoteViolation(Violation.BAD_MESSAGE, f"06 07: kind {kind:02X}")
