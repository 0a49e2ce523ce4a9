"""Detect another daemon with our edge id.

Many brokers only close the older connection. The sign is a retained presence of another process
where ours should be, and a newer one of it the next time.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from edge.cloud.mqtt.connection import ConnectionFailed, MqttConnection
from edge.cloud.mqtt.topics import Topics
from tools_cache.api.tool import Json

_log = logging.getLogger(__name__)

LOOKS: Final = 5
"""Attempts in a row that may end the connection: some brokers close it instead of refusing."""


class Duplicates:
    """Reads the retained presence after a connection was lost. `found` is called at every proof."""

    def __init__(self, instance: str, found: Callable[[], None]) -> None:
        self._instance = instance
        self._found = found
        self._seen: tuple[Json, Json] | None = None
        self._looks_left = LOOKS

    async def look(self, link: MqttConnection, topics: Topics) -> None:
        """Ask for the retained presence, before ours takes its place."""
        if not self._looks_left:
            return
        self._looks_left -= 1
        try:
            await link.subscribe(topics.presence, qos=0, own=False)
        except ConnectionFailed as error:
            _log.debug("the own presence cannot be read: %s", error)
            self._looks_left = 0
        else:
            self._looks_left = LOOKS
            link.unsubscribe(topics.presence)  # some brokers send it to a new subscription only

    def saw(self, presence: Mapping[str, Json]) -> None:
        """Compare: a dead process leaves one presence, a living one counts its connections."""
        one = presence.get("instance") or presence.get("boot"), presence.get("seq")
        if one[0] == self._instance:
            return
        before, self._seen = self._seen, one
        if before is not None and before[0] == one[0] and before[1] != one[1]:
            self._found()
