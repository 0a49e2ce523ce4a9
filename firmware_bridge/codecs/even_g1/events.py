"""Translates unsolicited packets of an Even G1 into events, each reported once."""

import re
from collections import deque
from typing import Final

from firmware_bridge.codecs.even_g1.answers import SUB_NOT_WORN, SUB_WORN
from firmware_bridge.codecs.even_g1.wire import SUPERVISION_S, Op, Sub
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import (
    BatteryChanged,
    ButtonReleased,
    CaseChanged,
    Event,
    Gesture,
    Gestured,
    Hiding,
    HidingChanged,
    PageClosed,
    UncertainTap,
    WornChanged,
)
from firmware_bridge.sides import Side

REPEAT_S: Final = 0.5
"""Seconds within which repeated reports of a long press, or of a double tap by both arms, count as
one: no wearer makes two in that time.
"""
ECHO_S: Final = SUPERVISION_S
"""Seconds within which the other arm may report the same gesture, over its own link: a report can
arrive as late as a link survives without an answer.
"""
MOST_ALONE: Final = 64
"""Gestures that may wait for the other arm's report; no wearer makes more within `ECHO_S`."""
SAME_TAP_S: Final = 1.0
"""Seconds within which the other arm's report is taken for the same tap. A later one may be the
same tap over a slow link, or another tap.
"""
_TOUCHED: Final = frozenset({Gesture.TAP, Gesture.DOUBLE_TAP})
"""Gestures that are made on one arm; heads have no side."""
_ONE_SIDE: Final = 0x66
_GESTURES: Final = {
    Sub.DOUBLE_TAP: Gesture.DOUBLE_TAP,
    Sub.TAP: Gesture.TAP,
    Sub.HEAD_UP: Gesture.HEAD_UP,
    Sub.HEAD_DOWN: Gesture.HEAD_DOWN,
    Sub.LONG_PRESS: Gesture.BUTTON_LONG,
    Sub.BOUND_DOUBLE_TAP: Gesture.DOUBLE_TAP,
}
_HIDING: Final = {
    Sub.SILENT_ON: (Hiding.SILENT, True),
    Sub.SILENT_OFF: (Hiding.SILENT, False),
    Sub.DASHBOARD_OPENED: (Hiding.DASHBOARD, True),
    Sub.DASHBOARD_CLOSED: (Hiding.DASHBOARD, False),
    Sub.HEAD_UP: (Hiding.LOOKED_UP, True),
    Sub.HEAD_DOWN: (Hiding.LOOKED_UP, False),
}
_SILENCE: Final = {0x0C: True, 0x0A: False}
_WORN: Final = {Sub.WORN: True, Sub.NOT_WORN: False, Sub.CASE_OPEN: False, Sub.CASE_CLOSED: False}
_STATES: Final = {SUB_WORN: True, SUB_NOT_WORN: False, 0x08: False, 0x0A: False, 0x0B: False}
_VERSION: Final = re.compile(r"\bver ([\w.]{1,20})", re.ASCII)


class EventDecoder:
    """Packets of both sides → events. Raises `RemoteViolation`: too short, or out of range."""

    def __init__(self) -> None:
        self._alone: dict[Gesture, deque[tuple[Side, float]]] = {}
        self._pressed_at = float("-inf")
        self._held = False
        self._battery: dict[Side, tuple[int | None, bool]] = {}
        self._case = CaseChanged()
        self._worn: bool | None = None
        self._hiding: dict[Hiding, bool] = {}
        self.opens_looking_up = True
        """Whether looking up opens the dashboard, which hides the page."""

    def event(self, side: Side, packet: bytes, now: float) -> list[Event]:
        """Process an F5 packet. Unused and unknown events return no event."""
        sub = _byte(packet, 1)
        try:
            known = Sub(sub)
        except ValueError:
            return []
        hiding: list[Event] = []
        if known in _HIDING and (known is not Sub.HEAD_UP or self.opens_looking_up):
            hiding = self.hides(*_HIDING[known])
        if known in _GESTURES:
            return [*hiding, *self._gesture(side, _GESTURES[known], now)]
        if known is Sub.LONG_PRESS_OVER:
            held, self._held = self._held, False
            return [ButtonReleased(side)] if held else []
        if known is Sub.RIGHT_LONG_PRESS_OVER:
            return [] if self._held else [ButtonReleased(side)]
        if known in _WORN:
            return self._wear(worn=_WORN[known])
        if known is Sub.BATTERY:
            return self._charge(side, level=_byte(packet, 2))
        if known is Sub.CHARGING:
            return self._charge(side, charging=bool(_byte(packet, 2)))
        if known is Sub.CASE_BATTERY:
            return self._case_is(_byte(packet, 2), self._case.charging)
        if known is Sub.CASE_CHARGING:
            return self._case_is(self._case.level, bool(_byte(packet, 2)))
        return hiding

    def _gesture(self, side: Side, gesture: Gesture, now: float) -> list[Event]:
        """Report a gesture once, however many arms report it; two taps on one arm are two gestures.
        A double tap closes the page, also one that may be the same again.

        A lost tap is a nuisance, but an extra tap could confirm something: what may be the same tap
        again is reported as uncertain.
        """
        if gesture is Gesture.BUTTON_LONG:
            before, self._pressed_at = self._pressed_at, now
            self._held = True
            return [] if now - before < REPEAT_S else [Gestured(gesture, side)]
        alone = self._alone.setdefault(gesture, deque(maxlen=MOST_ALONE))
        while alone and now - alone[0][1] > ECHO_S:
            alone.popleft()
        if alone and alone[0][0] is not side:
            since = now - alone[-1][1]
            alone.popleft()
            if gesture is Gesture.TAP and since > SAME_TAP_S:
                return [UncertainTap(side)]
            return [PageClosed()] if gesture is Gesture.DOUBLE_TAP and since > REPEAT_S else []
        alone.append((side, now))
        closed = [PageClosed()] if gesture is Gesture.DOUBLE_TAP else []
        return [Gestured(gesture, side if gesture in _TOUCHED else None), *closed]

    def _wear(self, *, worn: bool) -> list[Event]:
        if worn is self._worn:
            return []
        self._worn = worn
        return [WornChanged(worn)]

    def hides(self, by: Hiding, hidden: bool) -> list[Event]:  # noqa: FBT001 - a pair of one table
        """Report what hides the page if it changed; of both arms the latest report counts."""
        if self._hiding.get(by) is hidden:
            return []
        self._hiding[by] = hidden
        return [HidingChanged(by, hidden)]

    def state(self, packet: bytes) -> list[Event]:
        """`2B 69 0C/0A state`: silent mode, and among others the wear state."""
        silent, worn = _SILENCE.get(_byte(packet, 2)), _STATES.get(_byte(packet, 3))
        return [
            *self._first_word(Hiding.SILENT, silent),
            *([] if worn is None else self._wear(worn=worn)),
        ]

    def brightness(self, packet: bytes) -> list[Event]:
        """`29 65 level auto`."""
        return self._first_word(Hiding.DARK, _byte(packet, 2) == 0 and not _byte(packet, 3))

    def _first_word(self, by: Hiding, hidden: bool | None) -> list[Event]:  # noqa: FBT001 - as above
        """Process an arm's answer to our greeting; it may not know what the other arm knows."""
        return [] if hidden is None or by in self._hiding else self.hides(by, hidden)

    def battery(self, side: Side, packet: bytes) -> list[Event]:
        """Battery answer 2C: 66 and one arm's charge, or the frame letter and both arms'."""
        if _byte(packet, 1) == _ONE_SIDE:
            return self._charge(side, level=_byte(packet, 2))
        if packet[1:2] not in (b"A", b"B"):
            return []
        both = zip(Side, (_byte(packet, 2), _byte(packet, 3)), strict=True)
        return [event for each, level in both for event in self._charge(each, level=level)]

    def _case_is(self, level: int | None, charging: bool | None) -> list[Event]:  # noqa: FBT001 - as above
        """Report what either arm says of the case, if it changed."""
        if level is not None and level > 100:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"a battery of the case of {level} %")
        before, self._case = self._case, CaseChanged(level, charging)
        return [] if self._case == before else [self._case]

    def _charge(
        self, side: Side, *, level: int | None = None, charging: bool | None = None
    ) -> list[Event]:
        if level is not None and level > 100:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"a battery of {level} %")
        was = before, was_charging = self._battery.get(side, (None, False))
        level = before if level is None else level
        now = self._battery[side] = level, was_charging if charging is None else charging
        return [] if now == was or level is None else [BatteryChanged(level, now[1], side)]


def firmware(answers: list[bytes]) -> str:
    """Return the version from the firmware text (which has no opcode); "" if there is none."""
    text = next((packet for packet in answers if packet[0] == Op.FIRMWARE), b"")
    found = _VERSION.search(text.decode("ascii", "replace"))
    return found[1] if found else ""


def serial(answers: list[bytes]) -> str:
    """Return the serial number: `34 34` + 14 letters and digits; other characters are left out."""
    packet = next((packet for packet in answers if packet[0] == Op.SERIAL), b"")
    letters = packet[2:16].decode("ascii", "replace")
    return "".join(ch for ch in letters if ch.isascii() and ch.isalnum())


def _byte(packet: bytes, at: int) -> int:
    if at >= len(packet):
        raise RemoteViolation(Violation.TRUNCATED, f"{packet[0]:02X} of {len(packet)} bytes")
    return packet[at]
