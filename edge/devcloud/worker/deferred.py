"""Calls whose result is submitted later: stored across restarts, completed once, expired at their
deadline.
"""

import asyncio
import logging
from collections.abc import Awaitable
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
"""At least this often ends are looked for: the wall clock they are stored by may step."""
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
        """Store a call until its result is submitted; a returned response means it was
        not stored.
        """
        checked = self._runner.check(job.call)
        if isinstance(checked, ToolResponse):
            return self._runner.stamped(job.call, checked)
        if not await self._journal.hold(job, checked.args):
            return ToolResponse.failure(
                ErrorCode.RATE_LIMIT,
                "Too many calls wait for their results",
                retry_after_ms=BUSY_MS,
            )
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
        if left is None:
            return (
                Submitted.OVER
                if await self._journal.is_known((edge, call_id))
                else Submitted.UNKNOWN
            )
        if left.state != PENDING:
            return Submitted.OVER
        response = self._runner.stamped(left.job.call, _envelope(result))
        wire.encode(MessageKind.RESULT, wire.result_body(call_id, response), json=left.job.as_json)
        return (
            Submitted.TAKEN
            if await self._conclude(left.job, response, only_held=True)
            else Submitted.OVER
        )

    async def cancel(self, key: tuple[str, str], reason: str) -> bool:
        """Cancel a waiting call; False if there is none."""
        left = await self._journal.find(key)
        if left is None or left.state not in (PENDING, WAITS):
            return False
        message = f"Cancelled: {reason}" if reason else "Cancelled"
        response = self._runner.stamped(
            left.job.call, ToolResponse.failure(ErrorCode.CANCELLED, message)
        )
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
                await _wait(
                    self._changed, LOOK_AGAIN_S if next_s is None else min(next_s, LOOK_AGAIN_S)
                )

    def _too_late(self, left: UnfinishedJob) -> ToolResponse:
        waited = (
            "no result was submitted"
            if left.state == PENDING
            else "the call with the same key was not answered"
        )
        response = ToolResponse.failure(
            ErrorCode.DEADLINE_EXPIRED, f"The call's time is over: {waited}"
        )
        return self._runner.stamped(left.job.call, response)


def _envelope(result: Json) -> ToolResponse:
    """Return an envelope: an object with `ok` is one, anything else is the data of a successful
    one.
    """
    if isinstance(result, dict) and "ok" in result:
        return ToolResponse.from_json({**result, "meta": {}})
    return ToolResponse(data=result)


async def _wait(event: asyncio.Event, at_most_s: float) -> None:
    try:
        async with timeout(at_most_s):
            await event.wait()
    except TimeoutError:
        return
