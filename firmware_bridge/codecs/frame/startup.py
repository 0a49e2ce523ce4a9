"""Brings our program to run on the glasses: asks for it, starts it, and uploads it if needed."""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from firmware_bridge.codecs.frame.program import BUILD_BYTES, Program
from firmware_bridge.codecs.frame.prompts import Prompt
from firmware_bridge.codecs.frame.wire import MIN_PROMPT, To, cut
from firmware_bridge.errors import LinkLost, LostReason

ASK_S: Final = 1.0
"""Seconds for the program to say which it is; it may be drawing."""
START_S: Final = 3.0
REPLY_S: Final = 5.0
"""Seconds for the prompt to print a reply, as in frame-ble."""
REST_S: Final = 0.2
"""Seconds after a break or reset, as in frame-ble."""
MAX_DETAIL: Final = 200


class _Step(Enum):
    ASKING = auto()
    GREETED = auto()
    """it said who it is; the acknowledgement of the question is still to come"""
    STOPPING = auto()
    STARTING = auto()
    UPLOADING = auto()
    RUNNING = auto()


class Startup:
    """One start, from a connection to our running program. Used once.

    `firmware`, `battery`: as the program said; set once `running`.
    """

    def __init__(self, program: Program, prompt: Prompt) -> None:
        self.prompt = prompt
        self.firmware = ""
        self.battery = 0
        self.uploaded = False
        self._program = program
        self._step = _Step.ASKING
        self._after = _Step.STARTING
        self._due: float | None = None
        self._stops: list[bytes] = []
        self._upload: Iterator[tuple[str, str]] = iter(())
        self._awaited = ""
        self._out: list[bytes] = []
        self._failure: LinkLost | None = None
        self._unanswered = False

    @property
    def running(self) -> bool:
        return self._step is _Step.RUNNING

    def due(self) -> float | None:
        """The time when `timer` must be called, or None."""
        return self._due

    def begin(self, now: float, max_packet: int) -> None:
        self._out = list(cut(To.HELLO, b"", max_packet))
        self._due = now + ASK_S

    def emit(self) -> list[bytes]:
        """Return the packets to send now."""
        out, self._out = self._out, []
        return out

    def timer(self, now: float, max_packet: int) -> None:
        """Go on after a pause, or without an answer. Raises `LinkLost`."""
        if self._failure is not None:
            raise self._failure
        if self._due is None or now < self._due:
            return
        match self._step:
            case _Step.ASKING:
                self._unanswered = True
                self._stop(now, then=_Step.STARTING)
            case _Step.STOPPING if self._stops:
                self._out.append(self._stops.pop(0))
                self._due = now + REST_S
            case _Step.STOPPING:
                self._begin(self._after, now, max_packet)
            case _Step.STARTING if not self.uploaded:
                self._stop(now, then=_Step.UPLOADING)
            case _:
                self._due = None
                doing = "uploading the program" if self._awaited else "starting the program"
                raise LinkLost(LostReason.SILENT, f"no answer while {doing}")

    def _stop(self, now: float, *, then: _Step) -> None:
        """Stop what runs on the glasses: a running program first, then the rest of it."""
        self._step, self._after, self._stops = _Step.STOPPING, then, list(self.prompt.stop)
        self._due = now

    def _begin(self, step: _Step, now: float, max_packet: int) -> None:
        self._step = step
        if max_packet < MIN_PROMPT:
            what = f"packets of {max_packet} bytes are too small to start our program"
            self._fail(what, f"{MIN_PROMPT} are needed", now)
        elif step is _Step.STARTING:
            self._out += self.prompt.type(self.prompt.start, max_packet)
            self._due = now + START_S
        else:
            self.uploaded = True
            self._upload = self.prompt.upload(self._program.text, max_packet)
            self._next_piece(now, max_packet)

    def _next_piece(self, now: float, max_packet: int) -> None:
        piece, self._awaited = next(self._upload, ("", ""))
        if piece:
            self._out += self.prompt.type(piece, max_packet)
            self._due = now + REPLY_S
        else:
            self._stop(now, then=_Step.STARTING)

    # -------------------------------------------------------------- what the glasses say

    def printed(self, text: str, now: float, max_packet: int) -> None:
        """Process a text: a reply of the prompt, or an error."""
        is_late = text.endswith(self.prompt.breaks)  # of one of our breaks
        failed = self.prompt.is_error(text) and not is_late
        if self._step is _Step.UPLOADING:
            if text == self._awaited:
                self._next_piece(now, max_packet)
            elif failed:
                self._fail("the glasses did not store our program", text, now)
        elif self._step is _Step.STARTING and failed:
            if self.uploaded:
                self._fail("our program does not run on these glasses", text, now)
            else:
                self._begin(_Step.UPLOADING, now, max_packet)

    def _fail(self, what: str, text: str, now: float) -> None:
        self._failure = LinkLost(LostReason.PROTOCOL, f"{what}: {text[:MAX_DETAIL]}")
        self._due = now

    def acknowledged(self) -> None:
        """Process an acknowledgement: that of the question, if it was answered."""
        if self._step is _Step.GREETED:
            self._step, self._due = _Step.RUNNING, None

    def informed(self, data: bytes, now: float) -> None:
        """Process what a program says about itself: battery, build, firmware."""
        if self._step not in (_Step.ASKING, _Step.STARTING):
            return
        build = data[1 : 1 + BUILD_BYTES].decode("ascii", "replace")
        if build == self._program.build:
            self.battery = min(data[0], 100)
            self.firmware = data[1 + BUILD_BYTES :].decode("utf-8", "replace")[:MAX_DETAIL]
            asked = self._step is _Step.ASKING
            self._step = _Step.GREETED if asked else _Step.RUNNING
            self._due = now + REPLY_S if asked else None
        elif self.uploaded:
            self._fail("another program runs than was uploaded", build, now)
        else:
            self._stop(now, then=_Step.UPLOADING)

    def takes_late_answer(self) -> bool:
        """Return, once, whether a program that is already running may say again who it is: glasses
        that keep data until a program takes it hand it the question from before it ran.
        """
        unanswered, self._unanswered = self._unanswered, False
        return unanswered
