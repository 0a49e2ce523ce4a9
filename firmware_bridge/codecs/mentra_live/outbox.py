"""Messages to a Mentra Live: one write at a time with a pause after it, repeated until the glasses
acknowledge them where they do so (`mId`, from build 5 on).
"""

from collections import deque
from typing import Final

from msgspec import Struct

from firmware_bridge.codecs.mentra_live.layers import Json, chip, parts
from firmware_bridge.codecs.mentra_live.wire import cut, json_frame
from firmware_bridge.errors import LocalMisuse

GAP_S: Final = 0.16
"""Seconds between two writes (M26)."""
ACK_S: Final = 2.0
PART_S: Final = 0.05
"""Seconds until an acknowledgement is late: 2; for a message in parts 2 more and 0.05 a part."""
TRIES: Final = 4
"""The first and three repetitions, each waiting a second longer (M26)."""
MAX_FRAMES: Final = 256
"""Frames that may wait: some 40 s of writing. What the glasses make us say is dropped beyond it."""
RESERVE: Final = 32
"""Frames kept free for that: a command must find so much room."""


class _Pending(Struct):
    """A message that is not acknowledged. `about`: the number of the command it is part of."""

    frames: list[bytes]
    about: int
    tries: int = 1
    due: float | None = None


class Outbox:
    """Messages that wait to be written or acknowledged."""

    def __init__(self) -> None:
        self.acknowledges = False
        """Whether the glasses acknowledge messages."""
        self.given_up: deque[int] = deque()
        """Commands whose message was never acknowledged."""
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._pending: dict[int, _Pending] = {}
        self._free_at = 0.0
        self._last_mid = 0

    def check_room(self) -> None:
        """Raise `LocalMisuse` if too much waits for another command."""
        if len(self._waiting) > MAX_FRAMES - RESERVE:
            raise LocalMisuse(f"{len(self._waiting)} messages wait for the glasses already")

    def put(self, message: Json, now: float, *, wake: bool = False, about: int = 0) -> int:
        """Queue a message; return its `mId`, or 0 if no acknowledgement is expected.

        Glasses ignore an `mId` that they had within the last 10 s, so numbers go on with time, also
        over a reconnection.
        """
        mid = self._last_mid = max(self._last_mid + 1, int(now * 1000) + 1)
        numbered = {**message, "mId": mid} if self.acknowledges else message
        frames = [json_frame(part, "little") for part in parts(numbered, mid, wake=wake)]
        if not self._queue(frames, mid if self.acknowledges else 0) or not self.acknowledges:
            return 0
        self._pending[mid] = _Pending(frames, about)
        return mid

    def put_once(self, message: Json) -> None:
        """Queue a message that nobody misses if it is lost."""
        self._queue([json_frame(part, "little") for part in parts(message, 0)], 0)

    def put_chip(self, name: str, body: object = "", *, version: bool = False) -> bytes:
        """Queue a command for the chip, which acknowledges none; return its frame."""
        frame = json_frame(chip(name, body, version=version), "little")
        self._queue([frame], 0)
        return frame

    def is_waiting(self, frame: bytes) -> bool:
        """Return whether a frame was not written yet."""
        return any(each == frame for each, _ in self._waiting)

    def _queue(self, frames: list[bytes], mid: int) -> bool:
        if len(self._waiting) + len(frames) > MAX_FRAMES:
            return False
        self._waiting += [(frame, 0) for frame in frames[:-1]]
        self._waiting.append((frames[-1], mid))
        return True

    def acknowledged(self, mid: int) -> int:
        """The glasses have a message; return the command it is about, 0 if none or unknown."""
        found = self._pending.pop(mid, None)
        return 0 if found is None else found.about

    def settle(self, about: int) -> None:
        """Stop repeating messages of a command: its effect was seen."""
        for mid in [mid for mid, each in self._pending.items() if each.about == about]:
            del self._pending[mid]

    def emit(self, now: float, max_packet: int) -> list[bytes]:
        """Return the packets of the next frame, unless the last was written a moment ago."""
        if not self._waiting or now < self._free_at:
            return []
        frame, mid = self._waiting.popleft()
        self._free_at = now + GAP_S
        if (pending := self._pending.get(mid)) is not None:
            count = len(pending.frames)
            longer = 0.0 if count == 1 else ACK_S + PART_S * count
            pending.due = now + ACK_S + longer + (pending.tries - 1)
        return cut(frame, max_packet)

    def due(self) -> float | None:
        """Return when `emit` or `repeat` has something to do."""
        dues = [each.due for each in self._pending.values() if each.due is not None]
        if self._waiting:
            dues.append(self._free_at)
        return min(dues, default=None)

    def repeat(self, now: float) -> None:
        """Queue again what was not acknowledged in time."""
        late = [mid for mid, p in self._pending.items() if p.due is not None and p.due <= now]
        for mid in late:
            pending = self._pending[mid]
            if pending.tries >= TRIES:
                self.given_up.append(self._pending.pop(mid).about)
                continue
            queued = self._queue(pending.frames, mid)
            pending.tries, pending.due = pending.tries + 1, None if queued else now + ACK_S

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return sum(len(frame) for frame, _ in self._waiting)
