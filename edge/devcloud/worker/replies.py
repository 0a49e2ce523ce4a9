"""Publishes a worker's messages to edges: accepted, progress, and the single result."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.wire import MessageKind
from edge.devcloud.link import CloudLink, NotConnected
from edge.devcloud.worker.job import Job
from edge.devcloud.worker.journal import Journal
from edge.storage.sqlite.database import StoreError
from tools_cache.api.tool import Json, ToolResponse

log = logging.getLogger(__name__)

MAX_REPLIES: Final = 256
"""Messages being published at once; more are skipped: edges ask again."""
RESULT_EXPIRY_S: Final = 24 * 3600.0
"""Seconds after its call's end that a result is sent: the edge reports it as `expired`."""


class Replies:
    """`link` and `tasks` are set by the running executor; before that nothing is published."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._on_their_way = 0
        self.link: CloudLink | None = None
        self.tasks: asyncio.TaskGroup | None = None

    def beside(self, reply: Callable[[], Awaitable[object]]) -> None:
        """Publish without waiting: the PUBACK is read by the caller's own task."""
        if self.tasks is None or self._on_their_way >= MAX_REPLIES:
            return
        self._on_their_way += 1
        self.tasks.create_task(self._run(reply), name="reply")

    async def _run(self, reply: Callable[[], Awaitable[object]]) -> None:
        try:
            await reply()
        finally:
            self._on_their_way -= 1

    async def accept(self, job: Job) -> None:
        await self.say(job, MessageKind.ACCEPTED, {"id": job.call.call_id})

    async def tell(self, job: Job, response: ToolResponse) -> None:
        """Publish a stored answer; once the broker has it, it is not published again."""
        if await self.say(job, MessageKind.RESULT, wire.result_body(job.call.call_id, response)):
            try:
                await self._journal.mark_published(job)
            except StoreError as e:
                log.debug("call %s: published, but not recorded: %s", job.call.call_id, e)

    async def say(self, job: Job, kind: MessageKind, body: dict[str, Json]) -> bool:
        """Publish a message; progress is dropped after the call's end, results are not."""
        life = RESULT_EXPIRY_S if kind is MessageKind.RESULT else max(1.0, job.call.ttl_s)
        return await self.send(
            job.reply_to, kind, body, as_json=job.as_json, call_id=job.call.call_id, life_s=life
        )

    async def send(
        self,
        topic: str,
        kind: MessageKind,
        body: dict[str, Json],
        *,
        as_json: bool,
        call_id: str,
        life_s: float,
    ) -> bool:
        """Publish; return False while the broker is away."""
        assert self.link is not None
        correlation = wire.correlation_of(call_id)
        try:
            await self.link.publish(
                topic, kind, body, json=as_json, correlation=correlation, expiry_s=life_s
            )
        except NotConnected as e:
            log.debug("%s of %s waits for the broker: %s", kind.value, call_id, e)
            return False
        return True
