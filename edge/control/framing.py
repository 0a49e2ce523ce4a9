"""HTTP/1.1 by h11: all that is not plain (`plain_http`), replies without a length, event streams.

No I/O. Imported by the first connection that needs it: h11 takes 0.4 MiB.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

import h11

from edge.control.plain_http import Headers, InvalidHttp

_MAY_REPLY: Final = frozenset({h11.IDLE, h11.SEND_RESPONSE})


class Head(NamedTuple):
    """The head of a request; the names of its headers are in lower case."""

    method: bytes
    target: bytes
    headers: dict[str, str]


class Sign(Enum):
    """What comes between heads and bodies."""

    NEED_DATA = "need data"
    END = "end"
    """of the request, or of the connection"""


class Framing:
    """The protocol of one connection, from the server's side."""

    NEED_DATA: Final = Sign.NEED_DATA

    def __init__(self, most_head: int) -> None:
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=most_head)

    # -------------------------------------------------------------- requests

    @property
    def has_more(self) -> bool:
        """Whether bytes of the next request are there."""
        return bool(self._h11.trailing_data[0])

    @property
    def awaits_continue(self) -> bool:
        """Whether the client waits for a 100 Continue before it sends the body."""
        return self._h11.they_are_waiting_for_100_continue

    def receive(self, data: bytes) -> None:
        """Take what was read; empty bytes are the end of the connection."""
        self._h11.receive_data(data)

    def next(self) -> Head | bytes | Sign:
        """Return the next head, piece of a body, or sign. Raise `InvalidHttp`."""
        try:
            event = self._h11.next_event()
        except h11.RemoteProtocolError as e:
            raise InvalidHttp(str(e), e.error_status_hint) from None
        if isinstance(event, h11.Request):
            named = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
            return Head(event.method, event.target, named)
        if isinstance(event, h11.Data):
            return bytes(event.data)
        return Sign.NEED_DATA if event is h11.NEED_DATA else Sign.END

    def take_whole(self, request: bytes) -> None:
        """Take a request that was read as a plain one, to reply to it here."""
        self._h11.receive_data(request)
        while self.next() is not Sign.END:
            continue

    # -------------------------------------------------------------- replies

    @property
    def may_reply(self) -> bool:
        """Whether no reply has begun."""
        return self._h11.our_state in _MAY_REPLY

    def go_on(self) -> Iterator[bytes]:
        """Yield what tells the client to send the body."""
        return self._bytes(h11.InformationalResponse(status_code=100, headers=[]))

    def begin(self, status: int, headers: Headers) -> Iterator[bytes]:
        """Yield the head of a reply."""
        return self._bytes(h11.Response(status_code=status, headers=list(headers)))

    def body(self, *parts: bytes) -> Iterator[bytes]:
        """Yield parts of a reply's body, without a copy."""
        return self._bytes(*(h11.Data(data=part) for part in parts))

    def end(self) -> Iterator[bytes]:
        """Yield the end of a reply."""
        return self._bytes(h11.EndOfMessage())

    def start_next(self) -> bool:
        """Make ready for the next request; False if the connection cannot carry another."""
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            return False
        self._h11.start_next_cycle()
        return True

    def _bytes(self, *events: Any) -> Iterator[bytes]:
        for event in events:
            yield from self._h11.send_with_data_passthrough(event) or ()
