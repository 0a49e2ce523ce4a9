"""What a worker says to edges: accepted, progress, the one result; and that the broker has it.

Refuses to know how a call is answered, and in which order things are said.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from edge.devcloud.job import Job
from edge.devcloud.journal import Journal
from edge.devcloud.link import Link, NotConnected
from edge.store.db import StoreError
from edge.uplink import wire
from edge.uplink.wire import Kind
from tools_cache.tool import Json, ToolResponse

log = logging.getLogger(__name__)

MAX_REPLIES: Final = 256
"""Words to edges on their way at once; one more is not said: whoever misses it asks again."""
RESULT_EXPIRY_S: Final = 24 * 3600.0
"""A result outlives its call: the edge takes a late one too, and reports it as `expired`."""


class Replies:
    """`link` and `tasks` are lent by the executor that runs; before that nothing is said."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._on_their_way = 0
        self.link: Link | None = None
        self.tasks: asyncio.TaskGroup | None = None

    def beside(self, reply: Callable[[], Awaitable[object]]) -> None:
        """Say something without waiting for it: a publish waits for its PUBACK, which is read
        by whoever brought us here.
        """
        if self.tasks is None or self._on_their_way >= MAX_REPLIES:
            return
        self._on_their_way += 1
        self.tasks.create_task(self._replied(reply), name="reply")

    async def _replied(self, reply: Callable[[], Awaitable[object]]) -> None:
        try:
            await reply()
        finally:
            self._on_their_way -= 1

    async def accept(self, job: Job) -> None:
        await self.say(job, Kind.ACCEPTED, {"id": job.call.call_id})

    async def tell(self, job: Job, response: ToolResponse) -> None:
        """Publish a stored answer; once the broker has it, it is not told again by itself."""
        if await self.say(job, Kind.RESULT, wire.result_body(job.call.call_id, response)):
            try:
                await self._journal.told(job)
            except StoreError as e:
                log.debug("call %s: told, but not noted: %s", job.call.call_id, e)

    async def say(self, job: Job, kind: Kind, body: dict[str, Json]) -> bool:
        """Words on the way are of no use after the call's end; a result is."""
        life = RESULT_EXPIRY_S if kind is Kind.RESULT else max(1.0, job.call.ttl_s)
        return await self.send(
            job.reply_to, kind, body, as_json=job.as_json, call_id=job.call.call_id, life_s=life
        )

    async def send(
        self,
        topic: str,
        kind: Kind,
        body: dict[str, Json],
        *,
        as_json: bool,
        call_id: str,
        life_s: float,
    ) -> bool:
        """False while the broker is away."""
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
