"""The worker: takes calls from the shared subscription, publishes accepted, progress and exactly
one result.

A call that must not run twice never does: the journal is checked first, and written before a call
is acknowledged.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import Inbound
from edge.cloud.mqtt.topics import BadTopicWord, Topics
from edge.cloud.mqtt.wire import MessageKind, WireCode, WireError
from edge.devcloud.link import CloudLink, TopicRoute, decode
from edge.devcloud.worker.deferred import BUSY_MS, Deferred
from edge.devcloud.worker.job import (
    BUSY,
    ELSEWHERE,
    PENDING,
    SENT,
    WAITS,
    Job,
    TakenJob,
    UnfinishedJob,
    fitting,
)
from edge.devcloud.worker.journal import Journal
from edge.devcloud.worker.replies import RESULT_EXPIRY_S, Replies
from edge.devcloud.worker.runner import Runner
from edge.runtime.first_completed import run_unless
from edge.storage.sqlite.database import StoreError
from tools_cache.api.tool import ErrorCode, ToolCall, ToolResponse
from tools_cache.app_results import clean

log = logging.getLogger(__name__)

MAX_RUNNING: Final = 32
"""Calls in progress; one more gets RATE_LIMIT, which costs its edge one retry."""
MAX_WAITING: Final = 1024
"""Calls waiting, accepted or queued; one more is not accepted, and so offered again by its edge."""
PROGRESS_FREELY: Final = 20
PROGRESS_EVERY_S: Final = 0.25
"""Progress messages before they are thinned out, so that they cannot delay the result."""
MAX_CANCELLED: Final = 256
LOOK_S: Final = 1.0
"""Seconds between checks for dead workers, whose calls have waiting callers."""


@dataclass(slots=True)
class _Work:
    """A call in progress in this worker."""

    job: Job
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str = ""
    sent: bool = False
    ended: bool = False
    reports: int = 0
    reported_at: float = 0.0


class Executor:
    """`routes()` are for the link, `resend` for its `on_up`; `run()` owns the calls' tasks.
    `own_tools`: the tools that run within this worker, by name; they must be repeatable.
    """

    def __init__(
        self,
        journal: Journal,
        runner: Runner,
        *,
        tenant: str,
        pool: str,
        max_running: int = MAX_RUNNING,
        wall: Callable[[], float] = time.time,
        look_s: float = LOOK_S,
        refresh: Callable[[], Awaitable[None]] | None = None,
        own_tools: Mapping[str, Callable[[Job], Awaitable[ToolResponse]]] = MappingProxyType({}),
    ) -> None:
        self._journal = journal
        self._runner = runner
        self._topics = Topics.for_cloud(tenant)
        self._tenant = tenant
        self._pool = pool
        self._max_running = max_running
        self._wall = wall
        self._look_s = look_s
        self._refresh = refresh
        self._own_tools = own_tools
        self._replies = Replies(journal)
        self._began = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[tuple[str, str], _Work] = {}
        self._turns = asyncio.Semaphore(max_running)
        self._cancelled: OrderedDict[tuple[str, str], str] = OrderedDict()
        """Reasons of cancels that arrived before their calls."""
        self.deferred = Deferred(journal, runner, self._conclude)
        self.seen = 0
        """Calls that arrived, duplicates included."""

    def routes(self) -> tuple[TopicRoute, ...]:
        tail, calls = f"/call/{self._pool}", self._topics.shared_call(self._pool)
        return (
            TopicRoute(calls, lambda t: t.endswith(tail), self._on_call),
            TopicRoute(self._topics.cancel, lambda t: t.endswith("/cancel"), self._on_cancel),
        )

    async def run(self, link: CloudLink) -> None:
        """Process calls, including those left by earlier runs and dead workers, until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            self._replies.link, self._replies.tasks = link, self._tasks
            self._tasks.create_task(self.deferred.expire(), name="ends of deferred calls")
            for left in await self._left_undone():
                if left.response is None:
                    self._resume(left)
            self._began.set()
            while True:
                await asyncio.sleep(self._look_s)
                await self._inherit()

    async def _left_undone(self) -> list[UnfinishedJob]:
        """Return calls left by earlier runs. A busy store is retried: it must not end the cloud."""
        level = logging.WARNING
        while True:
            try:
                return await self._journal.left(by_the_dead=True)
            except StoreError as e:
                log.log(level, "calls left by earlier runs cannot be read: %s", e)
                level = logging.DEBUG
            await asyncio.sleep(self._look_s)

    async def _inherit(self) -> None:
        try:
            found = await self._journal.inherited()
        except StoreError as e:
            log.debug("cannot check for dead workers: %s", e)
            return
        for left in found:
            log.info("call %s is taken over from a dead worker", left.job.call.call_id)
            if left.response is None:
                self._resume(left)
            else:
                self._replies.beside(partial(self._replies.tell, left.job, left.response))
        if found:
            self.deferred.look()

    async def resend(self) -> None:
        """Publish results that the broker has not received, those of dead workers first."""
        await self._began.wait()
        try:
            unpublished = await self._journal.left()
        except StoreError as e:
            log.warning("unpublished results cannot be read: %s", e)  # the caller asks again
            return
        for left in unpublished:
            if left.response is not None and left.job.key not in self._running:
                await self._replies.tell(left.job, left.response)

    @property
    def running(self) -> int:
        return len(self._running)

    # -------------------------------------------------------------- in

    async def _on_call(self, inbound: Inbound) -> None:
        self.seen += 1
        try:
            job = self._read(inbound)
        except WireError as e:
            log.warning("a call on %.120r cannot be read: %s", inbound.topic, e)
            self._replies.beside(partial(self._refuse, inbound, e))
            inbound.ack()
            return
        work = self._running.get(job.key)
        if work is not None and not work.ended:  # repeated offers must not cause disk writes
            inbound.ack()
            self._replies.beside(partial(self._replies.accept, job))
            return
        if self._refresh is not None:  # another process may have added the tool
            await self._refresh()
        may_wait = self._runner.queueable(job.call.tool)
        try:
            most = MAX_WAITING if may_wait else self._max_running
            full = work is None and len(self._running) >= most
            repeatable = self._runner.repeatable(job.call.tool)
            taken = await self._journal.take(job, repeatable=repeatable, room=not full)
        except StoreError as e:
            # Not stored is not accepted: the edge will offer it again, here or to another worker.
            log.warning("a call cannot be stored: %s", e)
            inbound.ack()
            return
        inbound.ack()
        self._go_on(job, taken, may_wait=may_wait)

    def _go_on(self, job: Job, taken: TakenJob, *, may_wait: bool = False) -> None:
        """Continue a call according to its state in the journal."""
        if taken.response is not None:
            self._replies.beside(partial(self._replies.tell, job, fitting(job, taken.response)))
        elif taken.state == BUSY and may_wait:  # its edge offers it again
            log.debug("call %s is not accepted now: too many are waiting", job.call.call_id)
        elif taken.state == BUSY:
            code, problem = ErrorCode.RATE_LIMIT, "Every worker is busy"
            busy = ToolResponse.failure(code, problem, retry_after_ms=BUSY_MS)
            body = wire.result_body(job.call.call_id, busy)
            self._replies.beside(partial(self._replies.say, job, MessageKind.RESULT, body))
        elif taken.state in (WAITS, PENDING):
            self.deferred.look()
            self._replies.beside(partial(self._accept_waiting, job))
        elif taken.state == ELSEWHERE or self._journal.claimed(job.key):
            self._replies.beside(partial(self._replies.accept, job))
        elif taken.fresh:
            self._begin(job)
        else:
            self._resume(UnfinishedJob(job, taken.state))

    def _read(self, inbound: Inbound) -> Job:
        edge, message = decode(inbound, MessageKind.CALL)
        if message.kind is not MessageKind.CALL:
            problem = f"is {message.kind.value}"
            raise WireError(WireCode.MALFORMED, "k", problem, "send calls on this topic")
        call = wire.body_to_call(message)
        if inbound.expiry_s is not None:
            # What is left after the broker held it; whole seconds, so up to one more than it says.
            call = replace(call, ttl_s=min(call.ttl_s, inbound.expiry_s + 1.0))
        reply_to, ends_wall = self._reply_to(edge, inbound), self._wall() + call.ttl_s
        return Job(edge, call, reply_to, message.json, ends_wall)

    def _reply_to(self, edge: str, inbound: Inbound) -> str:
        """Return the response topic if it is below the sender's own prefix: answers never go to
        another edge.
        """
        own = Topics(self._tenant, edge)
        asked = inbound.response_topic
        if asked is None or asked == own.result:
            return own.result
        if not own.may_answer_to(asked):
            problem, fix = f"is {asked[:80]!r}", f"use {own.result}"
            raise WireError(WireCode.MALFORMED, "response topic", problem, fix)
        return asked

    async def _refuse(self, inbound: Inbound, error: WireError) -> None:
        """Answer an unreadable message with an error, if its id can be read."""
        call_id = wire.id_of(inbound.correlation)
        if not call_id:
            return
        try:
            topic = Topics(self._tenant, wire.edge_of(inbound.topic)).result
        except (WireError, BadTopicWord):
            return
        details = error.to_json()
        response = ToolResponse.failure(ErrorCode.INVALID_REQUEST, str(error), details=details)
        await self._replies.send(
            topic,
            MessageKind.RESULT,
            wire.result_body(call_id, response),
            call_id=call_id,
            life_s=RESULT_EXPIRY_S,
            as_json=wire.wants_json(inbound.content_type),
        )

    async def _on_cancel(self, inbound: Inbound) -> None:
        inbound.ack()
        try:
            edge, message = decode(inbound, MessageKind.CANCEL)
            key, reason = (edge, message.id), clean(wire.text_of(message, "reason", most=200))
        except WireError as e:
            log.warning("a cancel on %.120r cannot be read: %s", inbound.topic, e)
            return
        if self._cancel_running(key, reason):
            return
        self._cancelled[key] = reason  # the call itself may still be on its way
        if len(self._cancelled) > MAX_CANCELLED:
            self._cancelled.popitem(last=False)
        self._replies.beside(partial(self._cancel_any, key, reason))

    async def _cancel_any(self, key: tuple[str, str], reason: str) -> None:
        if await self._cancel_waiting(key, reason) or self._cancel_running(key, reason):
            self._cancelled.pop(key, None)

    def _cancel_running(self, key: tuple[str, str], reason: str) -> bool:
        work = self._running.get(key)
        if work is not None:
            work.reason = reason
            work.cancelled.set()
        return work is not None

    async def _cancel_waiting(self, key: tuple[str, str], reason: str) -> bool:
        try:
            return await self.deferred.cancel(key, reason)
        except StoreError as e:
            log.warning("call %s cannot be cancelled: %s", key[1], e)
            return False

    async def _accept_waiting(self, job: Job) -> None:
        """Accept a call that waits; apply a cancel that arrived before it."""
        await self._replies.accept(job)
        if job.key in self._cancelled:
            await self._cancel_waiting(job.key, self._cancelled.pop(job.key))

    # -------------------------------------------------------------- doing

    def _begin(self, job: Job) -> None:
        assert self._tasks is not None
        if not self._journal.claim(job.key):
            return  # another worker of this process was faster
        work = _Work(job)
        if job.key in self._cancelled:
            work.reason = self._cancelled.pop(job.key)
            work.cancelled.set()
        self._running[job.key] = work
        self._tasks.create_task(self._work(work), name=f"call {job.call.call_id}")

    def _resume(self, left: UnfinishedJob) -> None:
        """Continue a call of an earlier run: run it again if that is harmless, else report that its
        outcome is unknown.
        """
        if left.state != SENT or self._runner.repeatable(left.job.call.tool):
            self._begin(left.job)
            return
        assert self._tasks is not None
        lost = ToolResponse.failure(
            ErrorCode.INTERRUPTED,
            "The worker stopped while the tool ran; it is unknown whether it completed",
            partial_side_effects=True,
            suggestion="Check the effect before retrying",
        )
        lost = lost.with_meta(tool=left.job.call.tool, callId=left.job.call.call_id)
        self._tasks.create_task(self._give_up(left.job, lost), name=f"call {left.job.call.call_id}")

    async def _give_up(self, job: Job, lost: ToolResponse) -> None:
        try:
            await self._conclude(job, lost)
        except StoreError as e:
            log.warning("call %s cannot be ended: %s", job.call.call_id, e)  # its edge asks again

    async def _work(self, work: _Work) -> None:
        try:
            await self._replies.accept(work.job)
            deferred = self._runner.deferred(work.job.call.tool)
            response = await (self._hold(work) if deferred else self._run(work))
            work.ended = True
            if response is not None:
                await self._conclude(work.job, response)
        except StoreError as e:
            log.warning("call %s cannot be finished: %s", work.job.call.call_id, e)
        finally:
            self._journal.release(work.job.key)
            del self._running[work.job.key]

    async def _run(self, work: _Work) -> ToolResponse:
        done = await run_unless(self._in_turn(work), work.cancelled.wait())
        return _cancelled(work, self._runner) if done is None else done.value

    async def _in_turn(self, work: _Work) -> ToolResponse:
        """Run it when a slot is free, with the remaining time."""
        async with self._turns:
            job = work.job.refreshed(self._wall())
            call = job.call
            if (own := self._own_tools.get(call.tool)) is not None:
                checked = self._runner.check(call)
                if isinstance(checked, ToolCall):
                    checked = await own(replace(job, call=checked))
                return self._runner.stamped(call, checked)
            return await self._runner.run(
                call,
                progress=lambda text: self._progress(work, text),
                sending=lambda: self._sending(work),
            )

    async def _hold(self, work: _Work) -> ToolResponse | None:
        refusal = await self.deferred.hold(work.job)
        if refusal is None and work.cancelled.is_set():
            await self._cancel_waiting(work.job.key, work.reason)
        return refusal

    async def _sending(self, work: _Work) -> None:
        await self._journal.sending(work.job)
        work.sent = True

    async def _conclude(self, job: Job, response: ToolResponse, *, only_held: bool = False) -> bool:
        """Store the answer and publish it to everyone waiting; False if there was one before."""
        response = fitting(job, response)
        ended = await self._journal.finish(job, response, only_held=only_held)
        if not ended.stands:
            return False
        await self._replies.tell(job, response)
        for left in ended.followers:
            if left.response is not None:
                await self._replies.tell(left.job, fitting(left.job, left.response))
        if ended.heir is not None:
            self._begin(ended.heir)
        return True

    async def _progress(self, work: _Work, text: str) -> None:
        now = time.monotonic()
        if work.reports >= PROGRESS_FREELY and now - work.reported_at < PROGRESS_EVERY_S:
            return
        work.reports += 1
        work.reported_at = now
        body = {"id": work.job.call.call_id, "text": text}
        await self._replies.say(work.job, MessageKind.PROGRESS, body)


def _cancelled(work: _Work, runner: Runner) -> ToolResponse:
    call = work.job.call
    maybe_done = work.sent and not runner.repeatable(call.tool)
    message = f"Cancelled: {work.reason}" if work.reason else "Cancelled"
    response = ToolResponse.failure(ErrorCode.CANCELLED, message, partial_side_effects=maybe_done)
    return response.with_meta(tool=call.tool, callId=call.call_id, route="cloud")
