"""Plays a recording to the codecs of its model: without glasses, without time."""

import math
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from firmware_bridge.catalog import find
from firmware_bridge.codec import NEED_DATA, Codec, Incoming, Role
from firmware_bridge.errors import BridgeError, LocalMisuse, RemoteViolation
from firmware_bridge.messages import (
    AudioChunk,
    Command,
    Event,
    MicrophoneChunk,
    PhotoTaken,
    Reply,
    VoiceNoteFetched,
)
from firmware_bridge.models import Model
from firmware_bridge.recording.files import Recording
from firmware_bridge.recording.lines import GLASSD, GLASSES, Line, from_tree
from firmware_bridge.sides import Side

MAX_TEXT: Final = 300
"""Characters of a problem."""
CLOSE: Final = 0.001
"""By how much a number may differ that was rounded."""
LATE_S: Final = 1.0
"""Seconds between a packet and the line of what was understood by it, at most: a slow write takes
as long. A recording may be ended between the two.
"""
SLACK_S: Final = (0.0, 0.01, 0.05, 0.2)
"""Seconds after a recorded write within which the codec may want to write: it counts its pauses
from when it was asked, which no recording says exactly.
"""
_MEDIA: Final = MicrophoneChunk | PhotoTaken | AudioChunk | VoiceNoteFetched


class Played(Struct):
    """What came of it: the messages that were understood, and all that went wrong."""

    messages: list[Command | Event | Reply] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def play_to_central(recording: Recording) -> Played:
    """Give the recorded commands and notifications to the central's codec, and compare what it
    makes of them with what was recorded.
    """
    played, model = Played(), find(recording.header.model)
    for number, lines in enumerate(recording.sessions(), 1):
        where = f"connection {number}"
        central = _Central(model, lines, played, where, recording.header.clock)
        central.run()
    return played


class _Central:
    """One connection, played to a codec of the central."""

    def __init__(
        self, model: Model, lines: Sequence[Line], played: Played, where: str, clock: float
    ) -> None:
        self._lines = lines
        self._clock = clock
        self._played = played
        self._where = where
        self._codec: Codec[Any] = model.codec(lines[0].session)
        self._two_sided = model.arms is not None
        self._to_write: deque[Any] = deque()
        self._messages: deque[tuple[float, Incoming]] = deque()
        """Each with its time in the recording."""

    def run(self) -> None:
        for line in self._lines:
            try:
                self._play(line)
            except (BridgeError, ValueError) as error:
                self._problem(line, f"{type(error).__name__}: {error}")
        ended_at = self._lines[-1].at
        if missing := [each for at, each in self._messages if at < ended_at - LATE_S]:
            more = ", ".join(type(each.message).__name__ for each in missing)
            self._problem(self._lines[-1], f"understood, but not recorded: {more}")

    def _problem(self, line: Line, text: str) -> None:
        self._played.problems.append(_shorten(f"{self._where}, {line.at:.3f} s: {text}"))

    def _now(self, line: Line) -> float:
        return round(self._clock + line.at, 6)

    def _play(self, line: Line) -> None:
        if line.packet_size:
            self._codec.set_max_packet(line.packet_size)
        elif line.command is not None:
            command: Any = from_tree(line.command)
            self._codec.send(command, self._now(line))
        elif line.message is not None:
            self._compare(line)
        elif line.to and (line.side is None) is self._two_sided:
            raise ValueError("side: left or right is needed for these glasses, and for no others")
        elif line.to == GLASSD:
            try:
                self._codec.receive_packet(line.packet(), self._now(line))
            finally:
                self._take(line)
        elif line.to:
            self._write(line)

    def _write(self, line: Line) -> None:
        """Take from the codec what it wrote here; its content is its own business."""
        for slack_s in SLACK_S:
            if not self._to_write:
                self._turn(line, slack_s)
        if not self._to_write:
            self._problem(line, f"the codec does not write here: {line.data or line.side}")
        else:
            self._to_write.popleft()

    def _turn(self, line: Line, slack_s: float = 0.0) -> None:
        now = self._now(line) + slack_s
        self._codec.handle_timer(now)
        self._to_write.extend(self._codec.packets_to_send(now))
        self._take(line)

    def _take(self, line: Line) -> None:
        while (incoming := self._codec.next_event()) is not NEED_DATA:
            self._messages.append((line.at, incoming))

    def _compare(self, line: Line) -> None:
        if not self._messages:
            self._turn(line)
        recorded = from_tree(line.message or {})
        if not self._messages:
            self._problem(line, f"not understood: {_show(recorded)}")
            return
        _, incoming = self._messages.popleft()
        self._played.messages.append(incoming.message)
        if incoming.re != line.re or not same(incoming.message, recorded):
            found, wanted = _show(incoming.message), _show(recorded)
            self._problem(line, f"{found} to {incoming.re}, not {wanted} to {line.re}")


def _show(message: Any) -> str:
    """Return a message for a line of text; of sound and photos only which they are."""
    if isinstance(message, PhotoTaken):
        return f"PhotoTaken({message.photo}, {len(message.jpeg)} bytes)"
    if isinstance(message, MicrophoneChunk | AudioChunk):
        return f"{type(message).__name__}({message.stream}, {message.index})"
    return _shorten(str(message))


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def same(one: Any, other: Any) -> bool:
    """Return whether two messages are equal: numbers nearly, sound and photos in their sizes."""
    return type(one) is type(other) and _alike(_comparable(one), _comparable(other))


def _comparable(message: Any) -> Any:
    if not isinstance(message, _MEDIA):
        return msgspec.to_builtins(message)
    if isinstance(message, PhotoTaken):
        return [message.photo, len(message.jpeg), message.turned]
    if isinstance(message, VoiceNoteFetched):
        return [message.note, len(message.sound), message.format]
    return [message.stream, message.index, [len(frame) for frame in message.frames]]


def _alike(one: Any, other: Any, close: float = CLOSE) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=close)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _alike(one[key], other[key], SLACK_S[-1] if key.endswith("_s") else CLOSE)
            for key in one
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)


# ------------------------------------------------------------------ as the glasses


def play_to_glasses(recording: Recording) -> Played:
    """Give the recorded writes to the codec of the glasses' role; it says meanwhile what the
    recorded glasses said, as their central acknowledges it. The messages are those it read.
    """
    played, model = Played(), find(recording.header.model)
    for number, lines in enumerate(recording.sessions(), 1):
        sides: list[Side | None] = [*sorted({line.side for line in lines if line.side})]
        for side in sides or [None]:
            _Glasses(model, side, lines, played, f"connection {number}").run()
    return played


class _Glasses:
    """One connection to one side, played to a codec of the peripheral."""

    def __init__(
        self, model: Model, side: Side | None, lines: Sequence[Line], played: Played, where: str
    ) -> None:
        self._lines = [line for line in lines if line.side is side or not line.to]
        self._played = played
        self._where = f"{where}, {side} side" if side else where
        size = lines[0].session
        self._new = partial(model.codec, size, role=Role.PERIPHERAL, side=side)
        self._codec: Codec[Any] = self._new()
        self._only_read = {
            each.name for each in model.gatt.channels if not (each.write or each.on_request)
        }
        self._says = deque(line for line in lines if line.message)

    def run(self) -> None:
        for line in self._lines:
            if line.packet_size:
                self._codec.set_max_packet(line.packet_size)
            elif line.up:
                self._codec = self._new()
            elif line.message is not None:
                self._say(line.at, line)
            elif line.to == GLASSES and line.is_packet and line.channel not in self._only_read:
                self._read(line)

    def _say(self, now: float, line: Line | None = None) -> bool:
        """Say the next message, or that of this line if it was not said yet. False if there is
        none.
        """
        if not self._says or (line is not None and self._says[0] is not line):
            return False
        said = self._says.popleft()
        with suppress(LocalMisuse, ValueError):  # what only the central concludes
            self._codec.send(from_tree(said.message or {}), now, re=said.re)
        self._codec.packets_to_send(now)
        return True

    def _read(self, line: Line) -> None:
        self._codec.packets_to_send(line.at)
        try:
            self._receive(line)
        except RemoteViolation as violation:
            self._played.problems.append(f"{self._where}, {line.at:.3f} s: {violation}")
        while (incoming := self._codec.next_event()) is not NEED_DATA:
            self._played.messages.append(incoming.message)

    def _receive(self, line: Line) -> None:
        """Give a packet to the codec; where it acknowledges the beginning of what the glasses were
        just saying, that is said first. Raise `RemoteViolation`.
        """
        try:
            self._codec.receive_packet(line.one_packet(), line.at)
        except RemoteViolation:
            if not self._say(line.at):
                raise
            self._codec.receive_packet(line.one_packet(), line.at)
