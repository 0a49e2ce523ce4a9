"""One pair of simulated glasses: state, lens, speaker, wearer; peripheral.py has connections."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec.structs import replace

from firmware_bridge.capabilities import Scalar
from firmware_bridge.codecs.reference.messages import encode_info
from firmware_bridge.errors import LocalMisuse
from firmware_bridge.messages import (
    BatteryChanged,
    CapabilitiesChanged,
    CaseChanged,
    Event,
    Gesture,
    GlassesInfo,
    Hiding,
    HidingChanged,
    TextLine,
    Transcript,
    WornChanged,
)
from firmware_bridge.models import Model
from firmware_bridge.sides import Side
from firmware_bridge.sim.camera import SimCamera
from firmware_bridge.sim.faults import RadioFaults
from firmware_bridge.sim.font import NAME
from firmware_bridge.sim.lens import LENS_SIZE, SimLens, margin_of
from firmware_bridge.sim.microphone import SimMicrophone
from firmware_bridge.sim.sound import HeardSound, SimSpeaker
from firmware_bridge.sim.time import SimTime

FIRMWARE: Final = "1.0.0"
MAX_CANVAS: Final = 4096
"""Maximum canvas size in pixels: wire positions end there."""
LONG_PRESS_S: Final = 1.0
"""Length of a long press, where no other is given."""
LIMITS: Final[Mapping[str, int]] = {"window": 32, "message": 65536, "tiles": 65536}


class Visit(Protocol):
    """The connection of a central."""

    def tell(self, event: Event) -> bool:
        """Queue an event for it. False if its queue is full."""

    def gestured(self, gesture: Gesture, *, side: Side | None = None) -> bool:
        """Answer the prompt, or report it; False if not reported. `side`: where it was made; None:
        the usual one.
        """


class MockGlasses:
    """One pair of glasses. `tell` receives all events; `sides`: its radios, (None,) if only one."""

    def __init__(
        self,
        model: Model,
        *,
        out_dir: Path,
        time: SimTime | None = None,
        tell: Callable[[dict[str, Any]], None],
        sides: tuple[Side | None, ...] = (None,),
    ) -> None:
        self.model = model
        self.time = time or SimTime()
        self.tell = tell
        self.out_dir = out_dir
        self.capabilities: dict[str, Scalar] = dict(model.capabilities)
        if self.time.speed > 1 and self.capabilities.get("speaker") is True:
            self.capabilities["speaker.speed"] = self.time.speed
        self.sides = sides
        self.lenses = {side: _lens(self.capabilities) for side in sides}
        self.faults = {side: RadioFaults() for side in sides}
        self.batteries = dict.fromkeys(sides, 87)
        self.microphone = SimMicrophone(self.time, tell)
        echo = self.microphone.echo
        self.speaker = SimSpeaker(out_dir, self.time, play=echo.play, stop=echo.stop)
        self.camera = SimCamera()
        self.worn = True
        self.held_s = LONG_PRESS_S
        """Seconds until a long press that is made now ends."""
        self.settings: dict[str, Any] = {}
        """Settings a central has made: brightness, silent mode …"""
        self.touched: Callable[[Gesture], bool] = lambda _gesture: False
        """Handles gestures that answer a question of the glasses themselves, not of the central."""
        self._visits: dict[Side | None, Visit] = {}

    @property
    def connected(self) -> bool:
        return bool(self._visits)

    @property
    def lens(self) -> SimLens:
        """The lens, or that of the first side."""
        return self.lenses[self.sides[0]]

    @property
    def battery(self) -> int:
        """Percent; for a pair, the lower of both sides."""
        return min(self.batteries.values())

    def by_side(self) -> dict[str, dict[str, Any]]:
        """Return connection and battery of each side of a pair."""
        return {
            str(at): {"connected": at in self._visits, "battery": self.batteries[at]}
            for at in self.sides
        }

    def info(self) -> GlassesInfo:
        serial = f"SIM-{self.model.key.partition(':')[2].upper()}-0001"
        return GlassesInfo(self.model.key, FIRMWARE, serial, dict(self.capabilities), dict(LIMITS))

    def info_bytes(self) -> bytes:
        """Return the info characteristic's value; only flags if the record is too large."""
        info = self.info()
        try:
            return encode_info(info)
        except LocalMisuse:
            flags = {k: v for k, v in info.capabilities.items() if isinstance(v, bool)}
            return encode_info(replace(info, capabilities=flags))

    def begin(self, visit: Visit, side: Side | None = None) -> None:
        """A central connected."""
        self._visits[side] = visit

    def end(self, side: Side | None = None) -> None:
        """The central left: stop sound, remove the prompt; the page stays, as on real glasses."""
        self._visits.pop(side, None)
        heard = self.speaker.interrupt()
        if heard is not None:
            self.report_sound(heard)
        self.lenses[side].answered()

    # -------------------------------------------------------------- what the wearer does

    def gesture(self, gesture: Gesture, *, side: Side | None = None) -> bool:
        """Tap, press or nod, at one side or the usual one. False if unreported."""
        if self.touched(gesture):
            return True
        if side in self.sides:  # of a pair
            return side in self._visits and self._visits[side].gestured(gesture, side=side)
        return sum(visit.gestured(gesture, side=side) for visit in self._visits.values()) > 0

    def hold(self, seconds: float) -> bool:
        """Press long, for so many seconds. False if unreported."""
        self.held_s = seconds
        try:
            return self.gesture(Gesture.BUTTON_LONG)
        finally:
            self.held_s = LONG_PRESS_S

    def say(self, text: str) -> bool:
        """Speak: picked up by the open microphone, and recognised on the glasses."""
        self.microphone.say(text)
        return self._send(Transcript(text))

    def hear(self, pcm: bytes, name: str = "sound") -> float:
        """Play 16 kHz mono samples to the microphone; return the seconds until they are over.
        Nothing is recognised on the glasses. Raises `SoundError`.
        """
        return self.microphone.hear(pcm, name)

    def set_battery(self, level: int, *, side: Side | None = None) -> bool:
        event = BatteryChanged(level)
        wanted = self.sides if side is None else (side,)
        self.batteries.update(dict.fromkeys(wanted, level))
        return sum(self._visits[at].tell(event) for at in wanted if at in self._visits) > 0

    def set_case(self, level: int) -> bool:
        """Set the charge of the charging case. False if unreported."""
        return self._send(CaseChanged(level))

    def set_worn(self, *, worn: bool) -> bool:
        self.worn = worn
        return self._send(WornChanged(worn))

    def hide(self, by: Hiding, *, hidden: bool) -> bool:
        """Hide or show the page as the wearer does at the glasses: silent mode or dashboard."""
        return self._send(HidingChanged(by, hidden))

    def set_capabilities(self, changes: Mapping[str, Scalar | None]) -> bool:
        """Change the capabilities, as new firmware would; None removes a key. Raises ValueError."""
        both = {**self.capabilities, **changes}
        wanted = {key: value for key, value in both.items() if value is not None}
        switched = wanted.get("display") is not self.capabilities.get("display")
        if switched or any(key.startswith("display.") for key in changes):
            self.lenses = {side: _lens(wanted) for side in self.sides}
        self.capabilities = wanted
        self.tell({"event": "capabilities", "capabilities": dict(self.capabilities)})
        return self._send(CapabilitiesChanged(dict(self.capabilities)))

    def _send(self, event: Event) -> bool:
        return sum(visit.tell(event) for visit in self._visits.values()) > 0

    # -------------------------------------------------------------- what can be seen and heard

    def lens_report(self) -> dict[str, Any]:
        """Return what the lens shows, and write the PNG; of a pair both, a connected side first."""
        if not self.capabilities.get("display"):
            nothing = dict.fromkeys(("page", "pages", "lit"), 0)
            return {"event": "lens", "scene": None, "lines": [], "png": None, **nothing}
        if None in self.lenses:
            return {"event": "lens", **self._picture(None)}
        here = {side: side in self._visits for side in self.sides}
        sides = {side: {**self._picture(side), "connected": here[side]} for side in self.sides}
        seen = next((side for side in self.sides if here[side]), self.sides[0])
        same = len({lens.image.tobytes() for lens in self.lenses.values()}) == 1
        return {"event": "lens", **sides[seen], "side": seen, "same": same, "sides": sides}

    def _picture(self, side: Side | None) -> dict[str, Any]:
        lens = self.lenses[side]
        png = lens.png(self.out_dir / ("lens.png" if side is None else f"lens-{side}.png"))
        return {
            "scene": lens.scene,
            "page": lens.page,
            "pages": lens.pages,
            "lines": lens.text(),
            "pieces": [{"row": at.row, "x": at.x, "text": at.text} for at in lens.lines],
            "lit": lens.lit,
            "asking": lens.asking,
            "png": str(png),
        }

    def notice(self, lines: Sequence[str], event: Mapping[str, Any]) -> None:
        """Show the glasses' own text over the page (none: remove it), and report the event."""
        for lens in self.lenses.values():
            if lines:
                lens.ask(tuple(TextLine(row, line) for row, line in enumerate(lines) if line))
            else:
                lens.answered()
        shown = self.lens_report()
        if event:
            self.tell({**shown, **event})

    def report_sound(self, heard: HeardSound) -> None:
        self.tell({"event": "speaker", **describe(heard)})


def describe(heard: HeardSound | None) -> dict[str, Any]:
    """Return one played stream as JSON; zeros if nothing was played yet."""
    if heard is None:
        return {"seconds": 0.0, "samples": 0, "wav": None}
    return {
        "seconds": round(heard.seconds, 3),
        "samples": heard.samples,
        "wav": str(heard.wav),
        "stream": heard.stream,
        "format": heard.format.value,
        "flushed": heard.flushed,
        "bad_frames": heard.bad_frames,
    }


def _lens(capabilities: Mapping[str, Scalar]) -> SimLens:
    def size(key: str, default: int) -> int:
        value = capabilities.get(f"display.{key}", default)
        if not isinstance(value, int) or not 0 < value <= MAX_CANVAS:
            needed = f"a whole number from 1 to {MAX_CANVAS} is needed"
            raise ValueError(f"display.{key} is {value!r}; {needed}")
        return value

    width, height, bpp, lines = (size(*each) for each in LENS_SIZE.items())
    margin = margin_of(width, size("text_width", width))
    font = str(capabilities.get("display.font", NAME))
    glyphs = str(capabilities.get("display.glyphs", ""))
    return SimLens(width, height, bpp, lines, font=font, margin=margin, glyphs=glyphs)
