"""The voice session as the tools that steer it see it: whether it is there. They change it by
intents only.

Refuses to know microphone and speaker.
"""

from typing import Final, Protocol

from tools_cache.tool import ToolContext

FAREWELL: Final = "farewell_spoken"
"""`after` of an intent: carried out once the wearer got the answer it came with."""


class SessionContext(ToolContext, Protocol):
    """What the tools of the voice session are handed."""

    @property
    def voice_active(self) -> bool: ...
