"""What an arm of an Even G2 reports by itself, and its answers to queries, as events."""

from collections.abc import Callable
from typing import Final

from firmware_bridge.codecs.even_g2.config import PUSH, PUSH_BODY, QUERY_BODY
from firmware_bridge.codecs.even_g2.hub import BODY, Cmd, HubEvent
from firmware_bridge.codecs.even_g2.wire import Sid
from firmware_bridge.messages import (
    BatteryChanged,
    ButtonReleased,
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
_ONBOARDED: Final = 3


class EventDecoder:
    """Remembers what is reported as a change. `doubt()` is called when the page may be gone."""

    def __init__(self, doubt: Callable[[], None]) -> None:
        self._doubt = doubt
        self._hidden = dict.fromkeys(Hiding, False)

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
        return []

    def settings(self, side: Side, answer: Message) -> list[Event]:
        """Return the events of an answer to the settings query. Raises `RemoteViolation`."""
        body = answer.message(QUERY_BODY)
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

    def _hub(self, event: Message) -> list[Event]:
        """Return the event of a page. A swipe has no meaning here: pages fit the lens."""
        source: Side | None = None
        if 3 in event:
            system = event.message(3)
            kind, source = system.integer(1), SOURCES.get(system.integer(2))
        elif 2 in event:
            kind = event.message(2).integer(3)
        else:
            kind = event.message(1).integer(5)
        if kind in _GONE:
            self._doubt()
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
