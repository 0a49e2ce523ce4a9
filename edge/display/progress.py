"""Progress of calls: the newest brief text for the lens, and which calls the wearer cancelled."""

from collections import deque
from typing import Final

from edge.display.presentation import Presentation

_OF_CALL: Final = "/word"
"""How the scene of a call's working mark ends (`calls/execution.py`)."""
_CALLED_OFF: Final = 64
"""Calls whose late progress is not shown again: twice as many as may run."""


def call_of(scene: str) -> str:
    """The call a mark is about; empty when it is about none."""
    return scene.removesuffix(_OF_CALL) if scene.endswith(_OF_CALL) else ""


class ProgressIndicator:
    """One slot, so that its size does not depend on who talks how much."""

    def __init__(self) -> None:
        self.waiting: Presentation | None = None
        self._off: deque[str] = deque(maxlen=_CALLED_OFF)
        self._unseen, self._unseen_until = "", 0.0

    def put(self, act: Presentation) -> None:
        """The newest word takes the place of the one before it."""
        if self.waiting is not None:
            self.waiting.supersede("by something newer")
        self.waiting = act

    def take(self) -> Presentation | None:
        act, self.waiting = self.waiting, None
        return act

    def over(self, call_id: str) -> None:
        """A call has its result: nothing it said before is worth showing."""
        if self.waiting is not None and call_of(self.waiting.scene) == call_id:
            self.waiting.supersede("by its result")
            self.waiting = None
        if call_of(self._unseen) == call_id:
            self._unseen = ""

    def unseen(self, scene: str, until: float) -> None:
        """There is no lens for this progress; the call is awaited (until: boot clock)."""
        self._unseen, self._unseen_until = scene, until

    def awaited(self, now: float) -> str:
        """The call whose progress would be shown if there were a lens; "" when there is none."""
        return self._unseen if call_of(self._unseen) and now < self._unseen_until else ""

    def call_off(self, scene: str) -> None:
        """The wearer does not want this call any more; what it still says is not shown."""
        self._off.append(scene)
        self.over(call_of(scene))

    def is_off(self, scene: str) -> bool:
        return scene in self._off
