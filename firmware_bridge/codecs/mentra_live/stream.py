"""Video that a Mentra Live streams to an address, over its own Wi-Fi: it goes on only as long as it
is told so (DOC), and its orders have two names, by age: `start_rtmp_stream`, later `start_stream`.
"""

from typing import Final

from msgspec import Struct

from firmware_bridge.codecs.mentra_live.layers import Json, text
from firmware_bridge.messages import Command
from firmware_bridge.own_commands import EndStream, StreamChanged, StreamVideo

OLD_NAME: Final = "rtmp_stream"
NAMES: Final = (OLD_NAME, "stream")
"""What both ages call it, in the order in which they are tried."""
TRY_S: Final = 6.0
"""Seconds until the glasses say something about a stream; then the other name is tried."""
ALIVE_S: Final = 15.0
"""Seconds between two orders to go on (MentraOS' cloud)."""
UNANSWERED: Final = 4
"""Orders to go on without an answer, after which the stream is taken as ended."""
_URLS: Final = ("streamUrl", "rtmpUrl", "srtUrl", "whipUrl")
_ENDED: Final = frozenset({"stopped", "stopping"})


class Stream:
    """The stream of one connection, as the central follows it."""

    def __init__(self) -> None:
        self.due: float | None = None
        """When `handle_timer` must be called."""
        self._order = StreamOrder("stop", {})
        self._names: tuple[str, ...] = NAMES
        self._acks = 0
        self._unanswered = 0
        self._last: StreamChanged | None = None

    def order(self, command: Command, now: float) -> Json | None:
        """Return the message that begins or ends a stream; None for another command."""
        match command:
            case StreamVideo(url):
                ids = {"rtmpUrl": url, "streamUrl": url, "streamId": f"glassd-{now:.0f}"}
                self._order = StreamOrder("start", {**ids, "flash": True, "sound": True})
            case EndStream():
                self._order = StreamOrder("stop", {})
            case _:
                return None
        self.due, self._unanswered, self._last = now + TRY_S, 0, None
        return self._order.message(self._names[0])

    def is_news(self, event: StreamChanged, now: float) -> bool:
        """Take note of what the glasses say; return whether it is new: they repeat it."""
        is_new, self._last = event != self._last, event
        ended = bool(event.problem) or event.state in _ENDED or self._order.verb == "stop"
        self.due = None if ended or self.due is None else now + ALIVE_S
        self._unanswered = 0
        return is_new

    def answered(self) -> None:
        """The glasses go on."""
        self._unanswered = 0

    def handle_timer(self, now: float) -> Json | StreamChanged:
        """Return the order in its other name if nothing was heard, or the one to go on; or, where
        that is not answered, that there is no stream.
        """
        self.due = now + ALIVE_S
        if self._last is None and len(self._names) > 1:
            self._names = self._names[1:]
            return self._order.message(self._names[0])
        self._unanswered += 1
        if self._unanswered > UNANSWERED or self._order.verb == "stop":
            self.due = None
            return StreamChanged(False, "timeout", "the glasses say nothing about a stream")
        self._acks += 1
        ids = {"streamId": self._order.details["streamId"], "ackId": f"a{self._acks}"}
        return {"type": f"keep_{self._names[0]}_alive", **ids}


class StreamOrder(Struct, frozen=True):
    """What was ordered last. `verb`: start or stop."""

    verb: str
    details: Json

    def message(self, name: str) -> Json:
        return {"type": f"{self.verb}_{name}", **self.details}


def command_of(kind: str, message: Json, name: str) -> Command | None:
    """Return the order that a message is for glasses that call it so; None for another."""
    if kind == f"stop_{name}":
        return EndStream()
    if kind != f"start_{name}":
        return None
    try:
        return StreamVideo(next((text(message, key) for key in _URLS if key in message), ""))
    except ValueError:
        return None
