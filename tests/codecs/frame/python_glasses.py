"""A Monocle on which our program runs for real, with stubs of its firmware's modules: by this
Python, whose language has all of MicroPython's that the program needs (tests/foreign runs it in
MicroPython itself).

It has the interface of a codec, so that `FramePair` can join it to a central.
"""

import builtins
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from firmware_bridge.codecs.frame.monocle import MonoclePeripheral
from firmware_bridge.codecs.frame.terminal import FIRMWARE, MonocleDevice

POLL_MS = 5
FONT_WIDTH, FONT_HEIGHT = 24, 48


class Pause(BaseException):
    """The program sleeps between two steps."""


class PythonGlasses(MonoclePeripheral):
    """The prompt is the simulator's; what `run` starts is the program that is stored."""

    def __init__(self, device: MonocleDevice, max_packet: int = 253) -> None:
        super().__init__(device=device, max_packet=max_packet)
        self.now = 0.0
        self.shown: list[tuple[str, int, int]] = []
        self.lit: int | None = None
        self.broken = ""
        self.busy = 0
        """Times that the radio is still busy."""
        self.photo: bytes | None = None
        self.photo_at = 0.0
        self.sound = b""
        self.recordings: list[dict[str, Any]] = []
        self.lights: list[tuple[float, str, str]] = []
        self.pads: dict[str, Any] = {}
        self.level, self.charging = 87, False
        self.connected = True
        self._module: dict[str, Any] | None = None
        self._received: Any = None
        self._step_at = 0.0

    # -------------------------------------------------------------- the codec's interface

    def receive_packet(self, packet: bytes, now: float) -> None:
        self.now = max(self.now, now)
        if self._module is not None and not getattr(packet, "channel", ""):
            self._received(bytes(packet))
            return
        super().receive_packet(packet, now)
        if self.device.program is None:
            self._module = None

    def _inform(self) -> None:
        """Begin the program, which says itself who it is."""
        self._module = {"__builtins__": {**vars(builtins), "__import__": self._imported}}
        self._module["__builtins__"]["print"] = self._printed
        exec(self.device.files["glassd_app.py"], self._module)
        self._go_on("run")

    def _printed(self, *values: object) -> None:
        self._print(" ".join(map(str, values)))

    def handle_timer(self, now: float) -> None:
        self.now = max(self.now, now)
        if self._module is None:
            super().handle_timer(now)
        elif now >= self._step_at:
            self._go_on("step")

    def _go_on(self, name: str) -> None:
        with suppress(Pause):
            self._module[name]()
        self._step_at = self.now + POLL_MS / 1000

    def next_timer(self) -> float | None:
        return super().next_timer() if self._module is None else self._step_at

    # -------------------------------------------------------------- the firmware

    def _imported(self, name: str, *_: object) -> object:
        return SimpleNamespace(**getattr(self, f"_{name}"))

    @property
    def _bluetooth(self) -> dict[str, Any]:
        def receive_callback(handler):
            self._received = handler

        return {
            "max_length": lambda: self._max_packet,
            "connected": lambda: self.connected,
            "receive_callback": receive_callback,
            "send": self._send,
        }

    def _send(self, data: bytes) -> None:
        if len(data) > self._max_packet:
            raise ValueError("input buffer is too large")
        if self.busy or not self.connected:
            self.busy = max(0, self.busy - 1)
            raise OSError("raw data service is busy")
        self._out.append(bytes(data))

    @property
    def _time(self) -> dict[str, Any]:
        def sleep_ms(milliseconds):
            if milliseconds == POLL_MS:
                raise Pause

        return {
            "sleep_ms": sleep_ms,
            "ticks_ms": lambda: round(self.now * 1000),
            "ticks_diff": lambda later, earlier: later - earlier,
            "ticks_add": lambda ticks, more: ticks + more,
        }

    @property
    def _device(self) -> dict[str, Any]:
        return {
            "VERSION": FIRMWARE,
            "battery_level": lambda: self.level,
            "is_charging": lambda: self.charging,
        }

    @property
    def _display(self) -> dict[str, Any]:
        def show(texts):
            if self.broken:
                raise ValueError(self.broken)
            boxes = [(x, x + FONT_WIDTH * len(text), y, y + FONT_HEIGHT) for text, x, y in texts]
            for at, (left, right, top, bottom) in enumerate(boxes):
                for other in boxes[at + 1 :]:
                    if left <= other[1] and right >= other[0] and top <= other[3]:
                        assert bottom < other[2], "TextOverlapError"
            self.shown = list(texts)

        return {
            "WHITE": 0xFFFFFF,
            "Text": lambda text, x, y, _colour: (text, x, y),
            "show": show,
            "clear": lambda: show([]),
            "brightness": lambda level: setattr(self, "lit", level),
        }

    @property
    def _camera(self) -> dict[str, Any]:
        def capture():
            if self.broken:
                raise RuntimeError(self.broken)
            self.photo_at = self.now + 0.5

        def read(size):
            assert size <= 254
            if self.now < self.photo_at or not self.photo:
                return None
            data, self.photo = self.photo[:size], self.photo[size:]
            return data

        return {"capture": capture, "read": read}

    @property
    def _microphone(self) -> dict[str, Any]:
        def read(samples):
            assert samples <= 127
            data, self.sound = self.sound[: 2 * samples], self.sound[2 * samples :]
            return data or None

        return {"record": lambda **how: self.recordings.append(how), "read": read}

    @property
    def _led(self) -> dict[str, Any]:
        def switch(word):
            return lambda colour: self.lights.append((self.now, colour, word))

        return {"RED": "RED", "GREEN": "GREEN", "on": switch("on"), "off": switch("off")}

    @property
    def _touch(self) -> dict[str, Any]:
        return {"A": "A", "B": "B", "callback": self.pads.__setitem__}
