"""One pair of mock glasses: what they are, show, play and notice. Outlives its connections.

Knows messages and pixels; how a central talks to it is its session's business (peripheral.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from firmware_bridge.capabilities import Scalar
from firmware_bridge.catalog import Model
from firmware_bridge.codecs.reference import encode_info
from firmware_bridge.errors import LocalMisuse
from firmware_bridge.messages import (
    BatteryChanged,
    CapabilitiesChanged,
    Event,
    Gesture,
    GlassesInfo,
    TextLine,
    Transcript,
    WornChanged,
)
from firmware_bridge.sim.lens import Lens
from firmware_bridge.sim.microphone import Microphone
from firmware_bridge.sim.speaker import Heard, Speaker
from firmware_bridge.sim.time import SimTime

FIRMWARE: Final = "1.0.0"
MAX_CANVAS: Final = 4096
"""Pixels a side: positions on the wire end there."""
LIMITS: Final[Mapping[str, int]] = {"window": 32, "message": 65536, "tiles": 65536}


class Visit(Protocol):
    """A central that is here now."""

    def tell(self, event: Event) -> bool:
        """Queue an event for it. False when it takes no more."""

    def gestured(self, gesture: Gesture) -> bool:
        """Let a gesture answer its question, or tell it."""


class MockGlasses:
    """One pair of glasses. Outlives its connections; `tell` hears everything that happens to it."""

    def __init__(
        self, model: Model, *, out_dir: Path, time: SimTime | None = None, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        self.model = model
        self.time = time or SimTime()
        self.tell = tell
        self.out_dir = out_dir
        self.capabilities: dict[str, Scalar] = dict(model.capabilities)
        self.lens = _lens(self.capabilities)
        self.speaker = Speaker(out_dir, self.time)
        self.microphone = Microphone()
        self.battery = 87
        self.worn = True
        self.touched: Callable[[Gesture], bool] = lambda _gesture: False
        """Takes a gesture that is not for the visitor: an answer to a question of the glasses themselves."""
        self._visit: Visit | None = None

    @property
    def connected(self) -> bool:
        return self._visit is not None

    def info(self) -> GlassesInfo:
        serial = f"SIM-{self.model.key.partition(':')[2].upper()}-0001"
        return GlassesInfo(self.model.key, FIRMWARE, serial, dict(self.capabilities), dict(LIMITS))

    def info_bytes(self) -> bytes:
        """Value of the info characteristic; when the whole record is over what an attribute holds, only its flags."""
        info = self.info()
        try:
            return encode_info(info)
        except LocalMisuse:
            flags = {key: value for key, value in info.capabilities.items() if isinstance(value, bool)}
            return encode_info(replace(info, capabilities=flags))

    def begin(self, visit: Visit) -> None:
        """A central is here."""
        self._visit = visit

    def end(self) -> None:
        """Nobody is there any more: stop the sound, take the question away; the page stays, as on real glasses."""
        self._visit = None
        heard = self.speaker.interrupt()
        if heard is not None:
            self.heard(heard)
        self.lens.answered()

    # -------------------------------------------------------------- what the wearer does

    def gesture(self, gesture: Gesture) -> bool:
        """Tap, press, nod. False when nobody is connected to notice."""
        return self.touched(gesture) or (self._visit is not None and self._visit.gestured(gesture))

    def say(self, text: str) -> bool:
        """Speak: heard by the microphone when it is open, and recognised on the glasses."""
        self.microphone.say(text)
        return self._send(Transcript(text))

    def set_battery(self, level: int) -> bool:
        event = BatteryChanged(level)
        self.battery = level
        return self._send(event)

    def set_worn(self, *, worn: bool) -> bool:
        self.worn = worn
        return self._send(WornChanged(worn))

    def set_capabilities(self, changes: Mapping[str, Scalar | None]) -> bool:
        """Change what the glasses can do, as new firmware would; None forgets a key. Raises ValueError."""
        wanted = {key: value for key, value in {**self.capabilities, **changes}.items() if value is not None}
        if wanted.get("display") is not self.capabilities.get("display") or any(k.startswith("display.") for k in changes):
            self.lens = _lens(wanted)
        self.capabilities = wanted
        self.tell({"event": "capabilities", "capabilities": dict(self.capabilities)})
        return self._send(CapabilitiesChanged(dict(self.capabilities)))

    def _send(self, event: Event) -> bool:
        return self._visit is not None and self._visit.tell(event)

    # -------------------------------------------------------------- what can be seen and heard

    def shown(self) -> dict[str, Any]:
        """Describe the lens; the PNG is written first."""
        lens = self.lens
        if not self.capabilities.get("display"):
            return {"event": "lens", "scene": None, "page": 0, "pages": 0, "lines": [], "lit": 0, "png": None}
        png = lens.png(self.out_dir / "lens.png")
        return {
            "event": "lens", "scene": lens.scene, "page": lens.page, "pages": lens.pages, "lines": lens.text(),
            "pieces": [{"row": at.row, "x": at.x, "text": at.text} for at in lens.lines], "lit": lens.lit,
            "asking": lens.asking, "png": str(png),
        }  # fmt: skip

    def notice(self, lines: Sequence[str], event: Mapping[str, Any]) -> None:
        """Lay words of the glasses' own over the page (none: take them away), and tell what happened."""
        if lines:
            self.lens.ask(tuple(TextLine(row, line) for row, line in enumerate(lines) if line))
        else:
            self.lens.answered()
        shown = self.shown()
        if event:
            self.tell({**shown, **event})

    def heard(self, heard: Heard) -> None:
        self.tell({"event": "speaker", **describe(heard)})


def describe(heard: Heard | None) -> dict[str, Any]:
    """One played stream as JSON; zeros when nothing was ever played."""
    if heard is None:
        return {"seconds": 0.0, "samples": 0, "wav": None}
    return {
        "seconds": round(heard.seconds, 3), "samples": heard.samples, "wav": str(heard.wav), "stream": heard.stream,
        "format": heard.format.value, "flushed": heard.flushed, "bad_frames": heard.bad_frames,
    }  # fmt: skip


def _lens(capabilities: Mapping[str, Scalar]) -> Lens:
    def size(key: str, default: int) -> int:
        value = capabilities.get(f"display.{key}", default)
        if not isinstance(value, int) or not 0 < value <= MAX_CANVAS:
            raise ValueError(f"display.{key} is {value!r}; a whole number from 1 to {MAX_CANVAS} is needed")
        return value

    return Lens(size("width", 576), size("height", 136), size("bpp", 1), size("lines", 5))
