"""The queue in front of the running calls: so many run at once, the others wait for a place in
the order they came.
"""

from collections import deque
from contextlib import suppress
from functools import partial
from typing import Final

from edge.calls.admission import CallLimits
from edge.calls.call import PendingCall, Turn
from tools_cache.api.tool import CallOrigin

MOST_WAITING: Final = 2000
"""Calls that may wait, the cloud's and those of this machine counted apart."""


class RunQueue:
    """Gives each call its `Turn`. This machine's own calls go before the cloud's, and the cloud
    never has the last quarter of the places. What the wearer says, and what a running tool calls,
    does not wait. A call that only waits for a person or for the cloud has no place: when the yes
    comes, it runs at once.
    """

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self._own: deque[PendingCall] = deque()
        self._cloud: deque[PendingCall] = deque()
        self._running = self._running_cloud = 0

    def full(self, ticket: PendingCall) -> bool:
        """Is there no room to wait?"""
        return not _runs_at_once(ticket) and len(self._line(ticket)) >= MOST_WAITING

    def enter(self, ticket: PendingCall) -> None:
        """Take a call in; it gets `Turn` now or later."""
        if _runs_at_once(ticket):
            ticket.put(Turn())
            return
        self._line(ticket).append(ticket)
        self._fill()

    def leave(self, ticket: PendingCall) -> None:
        """Forget a call that waits no longer."""
        with suppress(ValueError):  # it has had its turn
            self._line(ticket).remove(ticket)

    def _line(self, ticket: PendingCall) -> deque[PendingCall]:
        return self._cloud if ticket.call.origin is CallOrigin.CLOUD else self._own

    def _fill(self) -> None:
        most = self._limits.running
        while self._own and self._running < most:
            self._start(self._own.popleft(), cloud=0)
        while self._cloud and self._running < most and self._running_cloud < most - most // 4:
            self._start(self._cloud.popleft(), cloud=1)

    def _start(self, ticket: PendingCall, *, cloud: int) -> None:
        self._running += 1
        self._running_cloud += cloud
        ticket.place.add_done_callback(partial(self._ended, cloud))
        ticket.put(Turn())

    def _ended(self, cloud: int, _place: object) -> None:
        self._running -= 1
        self._running_cloud -= cloud
        self._fill()


def _runs_at_once(ticket: PendingCall) -> bool:
    return ticket.call.depth > 0 or ticket.call.origin in (CallOrigin.VOICE, CallOrigin.GLASSES)
