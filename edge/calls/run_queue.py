"""The queue in front of the running calls: so many run at once, the others wait for a place in
the order they came.
"""

from collections import deque
from contextlib import suppress
from functools import partial
from typing import Final

from edge.calls.call import Call, MayRun
from edge.calls.dependencies import CallRules
from tools_cache.api.tool import CallOrigin

MOST_WAITING: Final = 2000
"""Calls that may wait, the cloud's and those of this machine counted apart."""


class RunQueue:
    """Lets each call run in its turn. This machine's own calls go before the cloud's, and the cloud
    never has the last quarter of the places. What the wearer says, and what a running tool calls,
    does not wait. A call that only waits for a person or for the cloud has no place: when the yes
    comes, it runs at once.
    """

    def __init__(self, rules: CallRules) -> None:
        self._rules = rules
        self._own: deque[Call] = deque()
        self._cloud: deque[Call] = deque()
        self._running = self._running_cloud = 0

    def full(self, call: Call) -> bool:
        """Is there no room to wait?"""
        return not _runs_at_once(call) and len(self._line(call)) >= MOST_WAITING

    def enter(self, call: Call) -> None:
        """Take a call in; it gets `MayRun` now or later."""
        if _runs_at_once(call):
            call.events.put(MayRun())
            return
        self._line(call).append(call)
        self._fill()

    def leave(self, call: Call) -> None:
        """Forget a call that waits no longer."""
        with suppress(ValueError):  # it has had its turn
            self._line(call).remove(call)

    def _line(self, call: Call) -> deque[Call]:
        return self._cloud if call.request.origin is CallOrigin.CLOUD else self._own

    def _fill(self) -> None:
        most = self._rules.limits.running
        while self._own and self._running < most:
            self._start(self._own.popleft(), cloud=0)
        while self._cloud and self._running < most and self._running_cloud < most - most // 4:
            self._start(self._cloud.popleft(), cloud=1)

    def _start(self, call: Call, *, cloud: int) -> None:
        self._running += 1
        self._running_cloud += cloud
        call.place.add_done_callback(partial(self._ended, cloud))
        call.events.put(MayRun())

    def _ended(self, cloud: int, _place: object) -> None:
        self._running -= 1
        self._running_cloud -= cloud
        self._fill()


def _runs_at_once(call: Call) -> bool:
    return call.request.depth > 0 or call.request.origin in (CallOrigin.VOICE, CallOrigin.GLASSES)
