"""Commands that change what the wearer sees without a page, but never during a question."""

import asyncio
from collections.abc import Callable
from typing import Final

from edge.ports import GlassesPort, QuestionWaits
from edge.runtime.clock import Clock
from firmware_bridge.messages import Command, Done, ShowNotification

NOTIFIED_S: Final = 10.0
"""How long glasses may lay a notification over the page; a question waits for its end."""


class SideCommands:
    """Implements `SendPort`. `turn` is held while a question is shown or a command is sent."""

    def __init__(
        self, glasses: GlassesPort, clock: Clock, question_waits: Callable[[], bool]
    ) -> None:
        self._glasses = glasses
        self._clock = clock
        self._question_waits = question_waits
        self.turn = asyncio.Lock()
        self.over_at = float("-inf")
        """When the newest notification has left the lens (boot clock)."""

    async def send(self, command: Command, *, timeout_s: float) -> Done:
        """Send it unless a question waits. Raises `QuestionWaits` or as `GlassesPort.request`."""
        async with self.turn:
            if self._question_waits():
                raise QuestionWaits
            try:
                return await self._glasses.request(command, timeout_s=timeout_s)
            finally:  # also without an answer: the glasses may have taken it
                if isinstance(command, ShowNotification):
                    self.over_at = self._clock.boot() + NOTIFIED_S
