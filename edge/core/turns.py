"""Which turn an utterance belongs to: a new one, or an earlier one that glasses repeat.

The last turn goes in and out as JSON, so it survives a restart.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tools_cache.api.tool import Json

REPLAY_S: Final = 30.0
"""Seconds; a transcript repeated later than this was said again."""


class Turn(Struct, frozen=True):
    """One utterance: id, text, time (boot clock of `boot_id`), and the link's connection."""

    turn_id: str
    text: str
    boot_id: str
    heard_at: float
    link: str

    def to_json(self) -> dict[str, Json]:
        return {
            "turn_id": self.turn_id,
            "text": self.text,
            "boot_id": self.boot_id,
            "heard_at": self.heard_at,
            "link": self.link,
        }


def last_turn(kept: Json) -> Turn | None:
    """Read a stored turn; None if it cannot be read."""
    if not isinstance(kept, Mapping):
        return None
    try:
        return Turn(
            str(kept["turn_id"]),
            str(kept["text"]),
            str(kept["boot_id"]),
            float(kept["heard_at"]),
            str(kept["link"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def is_replay(last: Turn | None, heard: Turn) -> bool:
    """Return whether the same text came again over a newer connection soon after: glasses repeat
    what was not acknowledged.
    """
    if (
        last is None
        or last.text != heard.text
        or last.link == heard.link
        or last.boot_id != heard.boot_id
    ):
        return False
    return heard.heard_at - last.heard_at <= REPLAY_S
