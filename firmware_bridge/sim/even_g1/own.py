"""What commands do to the own functions of a simulated Even G1: its dashboard, notes,
translation, navigation.
"""

import time
import zlib
from collections.abc import Callable, Mapping
from operator import or_
from typing import Any, Final

from msgspec.structs import replace

from firmware_bridge import lc3
from firmware_bridge.codecs.even_g1.answers import ArmFacts
from firmware_bridge.codecs.even_g1.wire import LC3_FRAME_BYTES
from firmware_bridge.messages import (
    Command,
    Done,
    Failed,
    OwnCommand,
    Reply,
    SetClock,
    ShowPage,
    TextLine,
    VoiceNote,
    VoiceNoteFetched,
    VoiceNotesChanged,
)
from firmware_bridge.own_commands import (
    DeleteVoiceNote,
    EndNavigation,
    FetchVoiceNote,
    Navigate,
    SetCalendar,
    SetDashboard,
    SetDisplayPosition,
    SetHeadUpAction,
    SetLanguage,
    SetMap,
    SetNote,
    SetNotificationTime,
    SetWeather,
    ShowRoute,
    ShowTranslation,
    StartTranslation,
)
from firmware_bridge.sides import Side
from firmware_bridge.sim.even_g1.dashboard import Face, rows
from firmware_bridge.sim.glasses import MockGlasses

MAX_VOICE_NOTES: Final = 4
"""Spoken notes that the glasses keep; the oldest goes."""
_TRANSLATING: Final = 0x13
_NAVIGATING: Final = 0x0A


class OwnFunctions:
    """The own functions of one arm, over one connection. `say` queues an event."""

    def __init__(
        self,
        glasses: MockGlasses,
        side: Side,
        facts: ArmFacts,
        face: Face,
        say: Callable[[Any], object],
    ) -> None:
        self._glasses = glasses
        self._side = side
        self._facts = facts
        self._face = face
        self._say = say
        self._page: dict[str, str] = {}

    def carry_out(self, command: Command) -> Reply | None:
        """Carry out a command; None if it is none of these."""
        match command:
            case SetClock() | SetWeather():
                return self._clock(command)
            case DeleteVoiceNote(note):
                known = self._facts.voice_notes.pop(note, None)
                return Failed("no_scene", f"voice note {note}") if known is None else Done()
            case FetchVoiceNote(note):
                return self._fetch(note)
            case OwnCommand() if (setting := _setting_of(command)) is not None:
                return self._set(setting)
            case OwnCommand():
                return self._show(command)
        return None

    def left(self) -> None:
        """The wearer or the central left the function."""
        self._facts.app = 0
        self._page.clear()

    def look(self, *, up: bool) -> None:
        """The wearer looks at the dashboard, which lies over the page, or away from it."""
        lens, facts = self._glasses.lenses[self._side], self._facts
        if not up:
            lens.answered()
        elif facts.opens_looking_up:
            settings, now = self._glasses.settings, self._glasses.time.now()
            shown = rows(self._face, facts.layout, facts.pane, settings, now)[: lens.rows]
            lens.ask(tuple(TextLine(row, text) for row, text in enumerate(shown) if text))
        self._glasses.tell(self._glasses.lens_report())

    def _clock(self, clock: SetClock | SetWeather) -> Reply:
        self._face.set(clock, self._glasses.time.now())
        self._glasses.tell(
            {
                "event": "dashboard",
                "side": self._side,
                "local_s": clock.local_s,
                "sky": clock.sky.value if isinstance(clock, SetWeather) else None,
                "celsius": clock.celsius if isinstance(clock, SetWeather) else None,
                "hours": 12 if clock.twelve_hour else 24,
            }
        )
        return Done()

    def _set(self, settings: Mapping[str, Any]) -> Reply:
        self._glasses.settings.update(settings)
        self._glasses.tell({"event": "setting", "side": self._side, **settings})
        return Done()

    def _show(self, command: OwnCommand) -> Reply:
        """Draw translation or navigation on this arm's lens."""
        lens = self._glasses.lenses[self._side]
        match command:
            case StartTranslation(source, target):
                self._facts.app, self._page = _TRANSLATING, {"from": f"{source} → {target}"}
            case ShowTranslation(original, translated):
                shown = {"original": original, "translated": translated}
                self._page |= {name: text for name, text in shown.items() if text}
                self._page.pop("from", None)
            case Navigate():
                self._facts.app = _NAVIGATING
                first = f"{command.turn.value}: {command.distance}"
                rest = f"{command.trip_time}  {command.trip_distance}  {command.speed}"
                self._page = {"turn": first, "street": command.street, "trip": rest.strip()}
            case ShowRoute(picture, overlay):
                way = picture.pixels if overlay is None else overlay.pixels
                both = bytes(map(or_, picture.pixels, way))
                lens.show(ShowPage("route", tiles=(replace(picture, pixels=both),)))
                self._glasses.tell(self._glasses.lens_report())
                return Done(drawn=lens.lit)
            case EndNavigation():
                self.left()
            case _:
                return Failed("unsupported", type(command).__name__)
        page = [row for text in self._page.values() for row in text.split("\n")]
        lines = tuple(TextLine(row, text) for row, text in enumerate(page[: lens.rows]) if text)
        drawn = lens.show(ShowPage("own", lines=lines)) if lines else lens.clear()
        self._glasses.tell(self._glasses.lens_report())
        return Done(drawn=drawn.lit)

    # -------------------------------------------------------------- spoken notes

    def record(self, seconds: float) -> None:
        """Keep a note of what the microphone hears, as after a long press on the right; nothing
        where this machine cannot code LC3.
        """
        notes = self._facts.voice_notes
        if not lc3.why_not():
            encoder = lc3.Encoder(LC3_FRAME_BYTES)
            with self._glasses.microphone.recording() as read:
                pcm = read(round(seconds * 16000) // lc3.FRAME_SAMPLES * lc3.FRAME_SAMPLES)
            starts = range(0, len(pcm), lc3.FRAME_BYTES)
            sound = b"".join(encoder.encode(pcm[at : at + lc3.FRAME_BYTES]) for at in starts)
            kept = [(int(time.time()), sound), *notes.values()][:MAX_VOICE_NOTES]
            notes.clear()
            notes.update(enumerate(kept, 1))
        self._say(
            VoiceNotesChanged(
                tuple(VoiceNote(n, at, zlib.crc32(sound)) for n, (at, sound) in notes.items())
            )
        )

    def _fetch(self, note: int) -> Reply:
        if note not in self._facts.voice_notes:
            return Failed("no_scene", f"voice note {note}")
        self._say(VoiceNoteFetched(note, self._facts.voice_notes[note][1]))
        return Done()


def _setting_of(command: OwnCommand) -> dict[str, Any] | None:
    """Return what a command sets, as the simulator reports it; None if it sets nothing."""
    match command:
        case SetDisplayPosition(height, depth, preview):
            return {"position": [height, depth], "preview": preview}
        case SetDashboard(layout, pane):
            return {"dashboard": [layout.value, pane.value]}
        case SetCalendar(entries):
            return {"calendar": [[e.title, e.time, e.place] for e in entries]}
        case SetMap(picture, arrow):
            kind = "picture" if picture else "arrow" if arrow else "loading"
            return {"map": [kind, arrow.x, arrow.y] if arrow else [kind]}
        case SetHeadUpAction(dashboard):
            return {"head_up": "dashboard" if dashboard else "nothing"}
        case SetLanguage(language):
            return {"language": language}
        case SetNotificationTime(seconds):
            return {"notification_s": seconds}
        case SetNote(slot, title, text):
            return {f"note {slot}": [title, text] if title or text else None}
    return None
