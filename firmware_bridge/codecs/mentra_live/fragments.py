"""Messages of later builds of a Mentra Live ("v2"): in fragments, some with short keys.

They are understood whenever they come. We offer them to no glasses: what these must do to accept is
in no source that can be trusted, and all of them understand the older frames.
"""

from typing import Any, Final

from firmware_bridge.codecs.mentra_live import layers
from firmware_bridge.codecs.mentra_live.layers import KEYS, ChipCommand, Json
from firmware_bridge.codecs.mentra_live.wire import (
    FIRST,
    HANDSHAKE,
    LAST,
    MAX_FRAGMENT,
    Fragment,
    refuse,
)

OFFER: Final = Fragment(1, 0, 1, b"v2", FIRST | LAST | HANDSHAKE)
"""How a peer says that it has such frames."""
SESSIONS: Final = 8
"""Messages that may be incomplete at a time."""
_SHORT: Final = {long: short for short, long in KEYS.items()}


class FragmentJoiner:
    """Joins fragments to messages, within limits."""

    def __init__(self) -> None:
        self._sessions: dict[int, tuple[int, dict[int, bytes]]] = {}

    def add(self, part: Fragment) -> Json | ChipCommand | None:
        """Add a fragment; return the message when it is whole, None also for an offer. Raises
        `RemoteViolation`.
        """
        if part.flags & HANDSHAKE:
            return None
        count, pieces = self._sessions.pop(part.message, (part.count, {}))
        if count != part.count:
            count, pieces = part.count, {}
        pieces[part.index] = part.payload
        if sum(map(len, pieces.values())) > layers.MAX_TEXT:
            raise refuse(f"a message of more than {layers.MAX_TEXT} bytes")
        if len(pieces) < count:
            while len(self._sessions) >= SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[part.message] = count, pieces
            return None
        return layers.read(b"".join(pieces[at] for at in range(count)))


def shorten(message: Json) -> dict[str, Any]:
    """Return a message as such builds send it: short keys, and no values that are false or
    empty.
    """
    there = {key: value for key, value in message.items() if value or type(value) is int}
    return {_SHORT.get(key, key): value for key, value in there.items()}


def fragments_of(payload: bytes, number: int) -> list[Fragment]:
    """Return the fragments of a message."""
    pieces = [payload[at : at + MAX_FRAGMENT] for at in range(0, len(payload), MAX_FRAGMENT)]
    last = len(pieces) - 1
    return [
        Fragment(
            number,
            at,
            len(pieces),
            piece,
            (FIRST if at == 0 else 0) | (LAST if at == last else 0),
        )
        for at, piece in enumerate(pieces)
    ]
