"""Which turn an utterance belongs to: a new one, or, when glasses say it again after a reconnect,
the one it was.

Pure. Nothing is stored here: the last turn goes in and out as JSON, and outlives a restart that
way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tools_cache.api.tool import Json

REPLAY_S: Final = 30.0
"""A transcript that comes again later than this was said again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance: its id, its words (or what stands for them), when it was heard (boot clock
    of `boot_id`), over which connection of the link.
    """

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
    """Read a kept turn; what cannot be read is no turn."""
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
    """True when the same words come over a newer connection soon after: glasses repeat what
    they saw no answer to.
    """
    if (
        last is None
        or last.text != heard.text
        or last.link == heard.link
        or last.boot_id != heard.boot_id
    ):
        return False
    return heard.heard_at - last.heard_at <= REPLAY_S
