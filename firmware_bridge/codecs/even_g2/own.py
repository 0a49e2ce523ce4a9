"""What an Even G2 shows and measures by itself, as messages and back: weather, calendar and list of
its dashboard, the place of the picture, the motion sensor.
"""

import re
from typing import Any, Final

from firmware_bridge.codecs.even_g2 import config
from firmware_bridge.codecs.even_g2.hub import BODY, Cmd
from firmware_bridge.codecs.even_g2.lanes import Answer, Exchange, Flow, ask
from firmware_bridge.codecs.even_g2.wire import STOCK, Dialect, Sid
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import Command, Done, Failed, OwnCommand, SetClock, SetHeadUpAngle
from firmware_bridge.own_commands import (
    MAX_ENTRIES,
    MAX_NOTES,
    CalendarEntry,
    MotionRead,
    SetCalendar,
    SetDisplayPosition,
    SetHeadUpAction,
    SetNote,
    SetWeather,
    Sky,
)
from firmware_bridge.protobuf import Fields, Message

CONTENT: Final = 2
CONTENT_BODY: Final = 4
_DISPLAY, _PARTS = 2, 3
_WEATHER, _LISTS, _CALENDAR = 1, 2, 3
_CELSIUS, _FAHRENHEIT = 1, 2
LIST: Final = 2
LIST_BODY: Final = 4
_ADD, _CHANGE, _DELETE = 2, 3, 4
MOST_VERTICAL: Final = 12
MOST_DEPTH: Final = 2
MOTION_RATE: Final = 100
"""Rate of the motion sensor in the vendor's own unit, its lowest known value."""
_OLD_MOTION: Final = 20
_SKIES: Final = (
    Sky.UNKNOWN,
    Sky.SUNNY,
    Sky.CLOUDS,
    Sky.DRIZZLE,
    Sky.HEAVY_DRIZZLE,
    Sky.RAIN,
    Sky.HEAVY_RAIN,
    Sky.THUNDER,
    Sky.THUNDERSTORM,
    Sky.SNOW,
    Sky.MIST,
    Sky.FOG,
    Sky.SAND,
    Sky.SQUALLS,
    Sky.TORNADO,
    Sky.FREEZING_RAIN,
    Sky.NIGHT,
)
"""By their numbers on the wire."""
_TIME: Final = re.compile(r"(Tmr )?.*?(\d\d):(\d\d)\s*$")
_DAY_S: Final = 86_400


# ------------------------------------------------------------------ the host's side


class OwnEncoder:
    """Creates the flows of these commands. `clock_s`: wall time of the wearer, as last set."""

    def __init__(self, dialect: Dialect = STOCK) -> None:
        self.clock_s = 0
        self._dialect = dialect
        self._listed: set[int] = set()
        self._head_up, self._angle = True, 30
        self._motion_field = dialect.motion_field

    def flow(self, command: OwnCommand | SetClock | SetHeadUpAngle) -> Flow:
        """Return how a command is carried out. Raises `CommandRefused`: not with these glasses."""
        match command:
            case SetWeather():
                weather = _content({_WEATHER: {1: _weather(command)}})
                clock = SetClock(command.local_s, command.twelve_hour)
                return _all_of([*self.clock(clock), weather])
            case SetHeadUpAngle(degrees):
                self._angle = degrees
                return _all_of([self._looking_up()])
            case SetHeadUpAction(dashboard):
                self._head_up = dashboard
                return _all_of([self._looking_up()])
            case SetClock():
                return _all_of(self.clock(command))
            case SetCalendar():
                return _all_of(list(map(_calendar, self._entries(command))))
            case SetNote():
                return self._note(command)
            case SetDisplayPosition(preview=False):
                return _all_of(_position(command))
        raise CommandRefused("unsupported", f"an Even G2 has no {type(command).__name__}")

    def learn(self, settings: Message) -> None:
        """Learn what the glasses have set: two settings share a message, and one shall stay."""
        self._head_up, self._angle = bool(settings.integer(7)), min(60, settings.integer(8))

    def _looking_up(self) -> Exchange:
        return config.change(config.HEAD_UP, {1: int(self._head_up), 2: self._angle})

    def clock(self, command: SetClock) -> list[Exchange]:
        """Return the messages that set the clock, and how the dashboard writes it."""
        self.clock_s = command.local_s
        time = config.setting(command, self._dialect)
        return [time, display(twelve_hour=command.twelve_hour)]

    def _entries(self, command: SetCalendar) -> list[dict[int, Any]]:
        """Return one message for each entry, each with the total; one without an entry if none."""
        total = len(command.entries)
        if not total:
            return [{1: 0, 2: 0}]
        return [
            {
                1: total,
                2: number,
                3: {1: number, 2: e.title, 3: e.place, 4: e.time, 5: self._ends(e.time)},
                4: 1,
            }
            for number, e in enumerate(command.entries, 1)
        ]

    def _ends(self, time: str) -> int:
        """Return when an entry ends: at its last time of day, else with the day; 0: not known."""
        if not self.clock_s:
            return 0
        today = self.clock_s - self.clock_s % _DAY_S
        found = _TIME.match(time)
        if found is None:
            return today + _DAY_S
        return today + (_DAY_S if found[1] else 0) + 3600 * int(found[2]) + 60 * int(found[3])

    def _note(self, note: SetNote) -> Flow:
        """Return the flow that adds, changes or deletes an entry of the list of things to do."""
        title = ": ".join(filter(None, (note.title, " ".join(note.text.split()))))
        kind = _DELETE if not title else _CHANGE if note.slot in self._listed else _ADD
        entry = {1: note.slot, 2: note.slot, **({5: title} if title else {})}
        body = {1: kind, 2: 1, 3: [entry]}
        answer = yield ask({1: LIST, LIST_BODY: body}, Sid.QUICK_LIST)
        if answer is None:
            return None
        if answer.result:
            return _refused(answer)
        (self._listed.add if title else self._listed.discard)(note.slot)
        return Done()

    def motion(self, *, on: bool) -> Flow:
        """Switch the motion sensor; in the other field where the glasses do not take the first."""
        for _ in range(2):
            body = {1: 1, 2: MOTION_RATE} if on else {1: 0}
            answer = yield ask({1: int(Cmd.MOTION), self._motion_field: body}, tries=1)
            if answer is not None and not answer.result:
                return Done()
            known = BODY[Cmd.MOTION]
            self._motion_field = _OLD_MOTION if self._motion_field == known else known
        return None if answer is None else _refused(answer)


def _refused(answer: Answer) -> Failed:
    return Failed("busy", f"the glasses refused it with result {answer.result}")


def _all_of(exchanges: list[Exchange]) -> Flow:
    """Send one after the other, until one is refused or not answered."""
    for exchange in exchanges:
        answer = yield exchange
        if answer is None:
            return None
        if answer.result:
            return _refused(answer)
    return Done()


def _content(parts: Fields) -> Exchange:
    return ask({1: CONTENT, CONTENT_BODY: {_PARTS: parts}}, Sid.DASHBOARD)


def _calendar(entry: dict[int, Any]) -> Exchange:
    return _content({_LISTS: {_CALENDAR: entry}})


def display(*, twelve_hour: bool) -> Exchange:
    """Return the layout of the dashboard, as the vendor's app sends it at each start."""
    body = {1: 4, 2: 3, 3: b"\1\2\3", 4: 4, 5: b"\1\3\2\2", 6: int(twelve_hour), 7: _CELSIUS}
    return ask({1: CONTENT, CONTENT_BODY: {_DISPLAY: body}}, Sid.DASHBOARD, tries=1)


def _weather(command: SetWeather) -> Fields:
    celsius = float(command.celsius)
    degrees = celsius * 9 / 5 + 32 if command.fahrenheit else celsius
    unit = _FAHRENHEIT if command.fahrenheit else _CELSIUS
    return {1: degrees, 2: unit, 3: _SKIES.index(command.sky), 4: 1000 * command.local_s}


def _position(command: SetDisplayPosition) -> list[Exchange]:
    """Return the messages for height (0 to 8) and depth (1 to 9)."""
    vertical, depth = (3 * command.height + 1) // 2, (command.depth - 1) // 3
    return [
        config.change(config.VERTICAL, {1: vertical}),
        config.change(config.DEPTH, {1: depth}),
    ]


# ------------------------------------------------------------------ the glasses' side


def read_position(vertical: int, depth: int) -> SetDisplayPosition:
    """Return the place that these numbers mean."""
    height = (2 * min(MOST_VERTICAL, vertical) + 1) // 3
    return SetDisplayPosition(height, 1 + 4 * min(MOST_DEPTH, depth))


class OwnReader:
    """Reads what a host puts on the dashboard."""

    def __init__(self) -> None:
        self._entries: dict[int, CalendarEntry] = {}

    def read(self, sid: int, message: Message) -> Command | None:
        """Return the command of a message; None for one without effect here. Raises
        `RemoteViolation`, and ValueError for a value out of range.
        """
        if message.integer(1) != CONTENT:
            return None
        if sid == Sid.QUICK_LIST:
            return _read_note(message.message(LIST_BODY))
        if sid != Sid.DASHBOARD:
            return None
        parts = message.message(CONTENT_BODY).message(_PARTS)
        if _WEATHER in parts:
            return _read_weather(parts.message(_WEATHER).message(1))
        lists = parts.message(_LISTS)
        return self._calendar(lists.message(_CALENDAR)) if _CALENDAR in lists else None

    def _calendar(self, body: Message) -> SetCalendar | None:
        """Return the calendar when its last entry is there; they are numbered from 0 or from 1."""
        total, number = body.integer(1), body.integer(2)
        if total > MAX_ENTRIES:
            raise RemoteViolation(Violation.OVERSIZED, f"a calendar of {total} entries")
        if total and number <= total:
            entry = body.message(3)
            self._entries[number] = CalendarEntry(entry.text(2), entry.text(4), entry.text(3))
        if len(self._entries) < total:
            return None
        entries, self._entries = self._entries, {}
        return SetCalendar(tuple(entries[at] for at in sorted(entries))[-total:] if total else ())


def _read_weather(body: Message) -> SetWeather:
    kind, fahrenheit = body.integer(3), body.integer(2) == _FAHRENHEIT
    degrees = body.decimal(1)
    if kind >= len(_SKIES) or not abs(degrees) < 1000:
        raise RemoteViolation(Violation.BAD_MESSAGE, f"weather {kind} of {degrees} degrees")
    celsius = round((degrees - 32) * 5 / 9 if fahrenheit else degrees)
    return SetWeather(body.integer(4) // 1000, _SKIES[kind], celsius, fahrenheit=fahrenheit)


def _read_note(body: Message) -> SetNote | None:
    """Return the note of a single entry; the list takes more than we have notes."""
    entries = body.messages(3)
    if len(entries) != 1 or not 1 <= entries[0].integer(1) <= MAX_NOTES:
        return None
    deleted = body.integer(1) == _DELETE
    return SetNote(entries[0].integer(1), "" if deleted else entries[0].text(5))


def read_motion(system: Message) -> MotionRead | None:
    """Return the motion in an event, of 32 or 64 bits each; None if it has none."""
    if 3 not in system:
        return None
    x, y, z = (system.message(3).decimal(axis) for axis in (1, 2, 3))
    return MotionRead((x, y, z))
