"""The settings of what listens. Small, because a daemon that does not listen has them too."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListeningSettings:
    """As configured; `recogniser` is a name or a server's address."""

    allow: bool = True
    recogniser: str = "auto"
    push_to_talk: str = "auto"
    wake_phrase: str = ""
