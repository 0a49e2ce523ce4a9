"""Calls whose result is submitted later: stored across restarts, completed once, expired at their
deadline.
"""

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from enum import StrEnum
from typing import Final, Protocol

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.wire import MessageKind
from edge.devcloud.worker.job import PENDING, WAITS, Job, UnfinishedJob
from edge.devcloud.worker.journal import Journal
from edge.devcloud.worker.runner import Runner
from edge.storage.sqlite.database import StoreError
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import ErrorCode, Json, ToolResponse

log = logging.getLogger(__name__)

LOOK_AGAIN_S: Final = 60.0
"""Deadlines are checked at least this often: they are wall clock times, which may step."""
BUSY_MS: Final = 1000


class Submitted(StrEnum):
    """Outcome of submitting a result."""

    TAKEN = "taken"
    UNKNOWN = "unknown"
    """no such call of this edge"""
    OVER = "over"
    """it does not wait for a result (any more): resolved, cancelled, expired, or never deferred"""


class Conclude(Protocol):
    """Store an answer and publish it; returns False if there was one before, or with `only_held` if
    the call is running now.
    """

    def __call__(self, job: Job, response: ToolResponse, *, only_held: bool) -> Awaitable[bool]: ...


class Deferred:
    """`hold` adds a call, `submit` and `cancel` remove it, `expire()` runs in the background."""

    def __init__(self, journal: Journal, runner: Runner, conclude: Conclude) -> None:
        self._journal = journal
        self._runner = runner
        self._conclude = conclude
        self._changed = asyncio.Event()

    async def hold(self, job: Job) -> ToolResponse | None:
        """Store a call until its result is submitted; return the answer if it was not stored."""
        checked = self._runner.check(job.call)
        if isinstance(checked, ToolResponse):
            return self._runner.stamped(job.call, checked)
        if not await self._journal.hold(job, checked.args):
            problem = "Too many calls wait for their results"
            return ToolResponse.failure(ErrorCode.RATE_LIMIT, problem, retry_after_ms=BUSY_MS)
        self.look()
        return None

    def look(self) -> None:
        """Notify that a new call waits: its deadline may be the next one."""
        self._changed.set()

    async def submit(self, edge: str, call_id: str, result: Json) -> Submitted:
        """Accept a result (an envelope, or just its data); it is on disk on return. Raises
        ValueError naming the field.
        """
        left = await self._journal.find((edge, call_id))
        if left is None and not await self._journal.is_known((edge, call_id)):
            return Submitted.UNKNOWN
        if left is None or left.state != PENDING:
            return Submitted.OVER
        response = self._runner.stamped(left.job.call, _envelope(result))
        wire.encode(MessageKind.RESULT, wire.result_body(call_id, response), json=left.job.as_json)
        first = await self._conclude(left.job, response, only_held=True)
        return Submitted.TAKEN if first else Submitted.OVER

    async def cancel(self, key: tuple[str, str], reason: str) -> bool:
        """Cancel a waiting call; False if there is none."""
        left = await self._journal.find(key)
        if left is None or left.state not in (PENDING, WAITS):
            return False
        message = f"Cancelled: {reason}" if reason else "Cancelled"
        cancelled = ToolResponse.failure(ErrorCode.CANCELLED, message)
        response = self._runner.stamped(left.job.call, cancelled)
        return await self._conclude(left.job, response, only_held=True)

    async def expire(self) -> None:
        """End calls past their deadline, until cancelled."""
        while True:
            self._changed.clear()
            try:
                late, next_s = await self._journal.overdue()
                for left in late:
                    await self._conclude(left.job, self._too_late(left), only_held=True)
            except StoreError as e:
                log.warning("cannot check waiting calls: %s", e)
                late, next_s = [], None
            if not late:
                with suppress(TimeoutError):
                    async with timeout(min(next_s or LOOK_AGAIN_S, LOOK_AGAIN_S)):
                        await self._changed.wait()

    def _too_late(self, left: UnfinishedJob) -> ToolResponse:
        waited = "the call with the same key was not answered"
        if left.state == PENDING:
            waited = "no result was submitted"
        problem = f"The call's time is over: {waited}"
        late = ToolResponse.failure(ErrorCode.DEADLINE_EXPIRED, problem)
        return self._runner.stamped(left.job.call, late)


def _envelope(result: Json) -> ToolResponse:
    """Return an object with `ok` as an envelope, and anything else as the data of one."""
    if isinstance(result, dict) and "ok" in result:
        return ToolResponse.from_json({**result, "meta": {}})
    return ToolResponse(data=result)
