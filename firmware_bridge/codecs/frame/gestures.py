"""Gestures of Frame and Halo: taps, which Frame reports one by one, clicks, and looking up."""

from typing import Final

from firmware_bridge.codecs.frame.wire import From
from firmware_bridge.messages import Gesture

SAME_TAP_S: Final = 0.04
"""A tap this soon after another is the same one, as in frame-msg."""
TAPS_S: Final = 0.3
"""Taps within this time are one gesture, as in frame-msg."""
BURST_S: Final = 1.0
"""Taps without end are a gesture each second."""
CODES: Final = frozenset({From.TAP, From.SDK_TAP, From.CLICK, From.HEAD})
_SINGLE, _DOUBLE, _LONG = 1, 2, 3
_KINDS: Final = {
    (From.TAP, _SINGLE): Gesture.TAP,
    (From.TAP, _DOUBLE): Gesture.DOUBLE_TAP,
    (From.CLICK, _SINGLE): Gesture.BUTTON,
    (From.CLICK, _DOUBLE): Gesture.DOUBLE_TAP,
    (From.CLICK, _LONG): Gesture.BUTTON_LONG,
    (From.HEAD, 1): Gesture.HEAD_UP,
    (From.HEAD, 0): Gesture.HEAD_DOWN,
}
"""Code and kind. A triple tap has no meaning in glassd."""


class Gestures:
    """Reads gestures, and counts taps that come one by one."""

    def __init__(self) -> None:
        self._taps: list[float] = []

    def receive(self, code: int, data: bytes, now: float) -> Gesture | None:
        """Return what one packet says, or what the taps before it were."""
        if code == From.SDK_TAP or (code == From.TAP and not data):
            return self._tap(now)
        return _KINDS.get((From(code), data[0])) if data else None

    def _tap(self, now: float) -> Gesture | None:
        before = self.count(now)
        if not self._taps or now - self._taps[-1] >= SAME_TAP_S:
            self._taps.append(now)
        return before

    def due(self) -> float | None:
        """When the taps so far are a gesture, or None."""
        if not self._taps:
            return None
        return min(self._taps[-1] + TAPS_S, self._taps[0] + BURST_S)

    def count(self, now: float) -> Gesture | None:
        """Return the gesture that the taps are by now."""
        end = self.due()
        if end is None or now < end:
            return None
        double, self._taps = len(self._taps) > 1, []
        return Gesture.DOUBLE_TAP if double else Gesture.TAP
