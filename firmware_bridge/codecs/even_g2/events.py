"""What an arm of an Even G2 reports by itself, and its answers to queries, as events."""

from collections.abc import Callable
from typing import Final

from firmware_bridge.codecs.even_g2.config import CASE_BODY, PUSH, PUSH_BODY, QUERY, QUERY_BODY
from firmware_bridge.codecs.even_g2.hub import BODY, Cmd, HubEvent
from firmware_bridge.codecs.even_g2.own import read_motion
from firmware_bridge.codecs.even_g2.wire import Sid
from firmware_bridge.messages import (
    BatteryChanged,
    ButtonReleased,
    CaseChanged,
    Event,
    Gesture,
    Gestured,
    Hiding,
    HidingChanged,
    WornChanged,
)
from firmware_bridge.protobuf import Message
from firmware_bridge.sides import Side

SOURCES: Final = {1: Side.RIGHT, 3: Side.LEFT}
"""Where a gesture was made. 2 is the ring, and 0 unknown: no side."""
_GESTURES: Final = {
    HubEvent.TAP: Gesture.TAP,
    HubEvent.DOUBLE_TAP: Gesture.DOUBLE_TAP,
    HubEvent.LONG_PRESS: Gesture.BUTTON_LONG,
}
_GONE: Final = (HubEvent.ABNORMAL_EXIT, HubEvent.SYSTEM_EXIT)
_IN_FRONT: Final = {HubEvent.FOREGROUND: True, HubEvent.BACKGROUND: False}
_ONBOARDED: Final = 3


class EventDecoder:
    """Remembers what is reported as a change. `doubt()` is called when the page may be gone."""

    def __init__(self, doubt: Callable[[], None]) -> None:
        self._doubt = doubt
        self._hidden = dict.fromkeys(Hiding, False)
        self._case: CaseChanged | None = None

    def decode(self, side: Side, sid: int, message: Message) -> list[Event]:
        """Return the events of a message. Raises `RemoteViolation`."""
        match sid:
            case Sid.HUB if message.integer(1) == Cmd.EVENT and side is Side.RIGHT:
                return self._hub(message.message(BODY[Cmd.EVENT]))
            case Sid.ONBOARDING if message.integer(1) == _ONBOARDED and 5 in message:
                return [WornChanged(bool(message.message(5).integer(2)))]
            case Sid.FOREGROUND if side is Side.RIGHT and 3 in message:
                return self._foreground(message.message(3))
            case Sid.SETTINGS if message.integer(1) == PUSH and PUSH_BODY in message:
                return self.hides(Hiding.SILENT, bool(message.message(PUSH_BODY).integer(2)))
            case Sid.SETTINGS if message.integer(1) == QUERY and QUERY_BODY in message:
                return self._settings(side, message.message(QUERY_BODY))
            case Sid.CASE if CASE_BODY in message:
                return self._charge(message.message(CASE_BODY))
        return []

    def _settings(self, side: Side, body: Message) -> list[Event]:
        """Return the events of the settings of an arm."""
        events: list[Event] = []
        if 12 in body:
            level = min(100, body.integer(12))
            events.append(BatteryChanged(level, bool(body.integer(13)), side))
        if side is Side.RIGHT:
            events += self.hides(Hiding.SILENT, bool(body.integer(14)))
        return events

    def hides(self, by: Hiding, hidden: bool) -> list[Event]:  # noqa: FBT001 - the state itself
        """Return the event of a change of what hides the page."""
        if self._hidden[by] is hidden:
            return []
        self._hidden[by] = hidden
        return [HidingChanged(by, hidden)]

    def _charge(self, body: Message) -> list[Event]:
        """Return the event of the case, if it is another than before."""
        level = min(100, body.integer(1)) if 1 in body else None
        case = CaseChanged(level, bool(body.integer(2)))
        changed, self._case = case != self._case, case
        return [case] if changed else []

    def _hub(self, event: Message) -> list[Event]:
        """Return the event of a page. A swipe has no meaning here: pages fit the lens."""
        source: Side | None = None
        motion: Event | None = None
        if 3 in event:
            system = event.message(3)
            kind, source = system.integer(1), SOURCES.get(system.integer(2))
            motion = read_motion(system) if kind == HubEvent.MOTION else None
        elif 2 in event:
            kind = event.message(2).integer(3)
        else:
            kind = event.message(1).integer(5)
        if motion is not None:
            return [motion]
        if kind in _GONE:
            self._doubt()
        if kind in _IN_FRONT:
            return self.hides(Hiding.DASHBOARD, not _IN_FRONT[HubEvent(kind)])
        if kind == HubEvent.RELEASE:
            return [ButtonReleased(source)]
        gesture = _GESTURES.get(HubEvent(kind)) if kind in set(HubEvent) else None
        return [] if gesture is None else [Gestured(gesture, source)]

    def _foreground(self, state: Message) -> list[Event]:
        """Return whether something of the glasses' own is in front of the page."""
        shown = {state.integer(1), state.integer(2)} - {0, int(Sid.HUB)}
        if not shown:
            self._doubt()
        return self.hides(Hiding.DASHBOARD, bool(shown))
