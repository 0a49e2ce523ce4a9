"""The last call by voice: for some seconds it may be corrected, stopped or taken back."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec.structs import replace

from edge.calls.call import Caller, Recognition
from edge.calls.cloud_calls import InFlight, Start
from edge.calls.undo import Undos
from edge.core.phrases import Match
from edge.runtime.clock import Clock
from edge.runtime.first_completed import Tasks
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolCall, ToolError, ToolResponse

WITHIN_S: Final = 10.0
"""Seconds after the answer in which a correction is understood as one."""
_UNDO_LIFE_S: Final = 60.0
"""Long enough for the wearer to answer the question of a tool that needs a yes."""
_ENDING_S: Final = 5.0
"""How long a cancelled call may take to end."""


@dataclass(frozen=True, slots=True)
class CallEntry:
    """How calls are started and ended. `refuse` answers one that is none: (call, error, reason)."""

    start: Start
    cancel: Callable[[str, str], Awaitable[bool]]
    refuse: Callable[[ToolCall, ToolError, str], ToolResponse]
    tasks: Tasks


@dataclass
class _Running:
    """A call by voice, and its answer once it is there."""

    call: ToolCall
    found: Match
    over: asyncio.Event
    answer: ToolResponse
    over_at: float | None = None


class MadeWay(NamedTuple):
    """`refusal`: why the call must not be replaced. `undo`: takes back what it did. `stands`: that
    cannot be taken back.
    """

    refusal: ToolResponse | None = None
    undo: tuple[ToolCall, Caller] | None = None
    stands: bool = False


class LastSpoken:
    """One per daemon; in memory only."""

    def __init__(self, clock: Clock, undos: Undos, entry: CallEntry) -> None:
        self._clock = clock
        self._undos = undos
        self._start = entry.start
        self._cancel = entry.cancel
        self._last: _Running | None = None

    @contextmanager
    def running(self, call: ToolCall, found: Match) -> Iterator[_Running]:
        """Be the call that a correction is about, from now on."""
        nothing_yet = ToolResponse.failure(ErrorCode.CANCELLED, "The call has no answer yet")
        last = self._last = _Running(call, found, asyncio.Event(), nothing_yet)
        try:
            yield last
        finally:
            last.over_at = self._clock.boot()
            last.over.set()

    def former(self, began_at: float | None = None) -> Match | None:
        """Return what a correction would change that was begun at this moment; None: nothing."""
        last = self._recent(began_at)
        return None if last is None else last.found

    async def stop(self) -> ToolResponse | None:
        """Cancel the call if it runs, or waits for a yes; None if it does not."""
        last = self._recent()
        if last is None or not await self._cancel(last.call.call_id, "the wearer said so"):
            return None
        return ToolResponse(data={"text": "Cancelled"})

    async def take_back(self, heard: Recognition | None) -> ToolResponse | None:
        """Cancel or undo the call; None if neither can be done."""
        stopped = await self.stop()
        if stopped is not None:
            return stopped
        last = self._recent()
        undo = None if last is None else self._undo(last, heard)
        return None if undo is None else await wait_for_answer(await self._start(*undo))

    async def make_way(self) -> MadeWay:
        """Cancel the call, or take back what it did, so that another may run in its place."""
        last = self._recent()
        if last is None:
            return MadeWay()
        await self._cancel(last.call.call_id, "the wearer said it in other words")
        try:
            async with timeout(_ENDING_S):
                await last.over.wait()
        except TimeoutError:
            busy = ToolResponse.failure(
                ErrorCode.CONFLICT, "The first call still runs, so the other was not made"
            )
            return MadeWay(refusal=busy)
        error = last.answer.error
        if last.found.tool.read_only:
            return MadeWay()
        if error is not None:
            return MadeWay(stands=error.partial_side_effects)
        undo = self._undo(last, None)
        if undo is None:
            return MadeWay(stands=True)
        return MadeWay(undo=(replace(undo[0], present=False), undo[1]))

    def _undo(self, last: _Running, heard: Recognition | None) -> tuple[ToolCall, Caller] | None:
        """Return the call that takes the last one back because the wearer said so. That is no
        consent: a tool that needs one asks for it.
        """
        undo = self._undos.take(last.call.call_id)
        if undo is None:
            return None
        call = replace(undo[0], origin=CallOrigin.VOICE, ttl_s=_UNDO_LIFE_S)
        return call, replace(undo[1], agreed_to="", heard=heard)

    def _recent(self, began_at: float | None = None) -> _Running | None:
        last = self._last
        if last is None or last.over_at is None:
            return last
        now = self._clock.boot() if began_at is None else began_at
        return last if now - last.over_at <= WITHIN_S else None


async def wait_for_answer(started: InFlight | ToolResponse) -> ToolResponse:
    """Return the answer of a call that was started, or refused."""
    return started if isinstance(started, ToolResponse) else await started.response()
