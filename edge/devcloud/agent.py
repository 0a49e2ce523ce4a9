"""A scripted assistant in the cloud: calls an edge's tools with `invoke` messages and waits for the
answer.

Its response topic is `…/e/{edge_id}/reply/{worker}`, below the edge's own prefix.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import Inbound
from edge.cloud.mqtt.topics import Topics
from edge.cloud.mqtt.wire import MessageKind, WireError
from edge.devcloud.link import CloudLink, NotConnected, TopicRoute, decode
from edge.runtime.clock import Clock
from edge.runtime.ids import new_call_id
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import CallOrigin, ErrorCode, Json, ToolCall, ToolResponse

log = logging.getLogger(__name__)

TTL_S: Final = 40.0
FIRST_RETRY_S: Final = 1.0
MAX_PENDING: Final = 100
MAX_PROGRESS: Final = 200


@dataclass(slots=True)
class _Pending:
    """One invocation in progress."""

    answer: "asyncio.Future[ToolResponse]"
    accepted: asyncio.Event = field(default_factory=asyncio.Event)
    progress: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Invoked:
    """Outcome of an invocation: accepted or not, progress texts, the envelope."""

    accepted: bool
    progress: tuple[str, ...]
    response: ToolResponse


class Agent:
    """`invoke(edge, tool, args)` over a link."""

    def __init__(
        self,
        link: CloudLink | None = None,
        *,
        tenant: str,
        worker: str,
        first_retry_s: float = FIRST_RETRY_S,
    ) -> None:
        self.link = link
        self._tenant = tenant
        self._worker = worker
        self._first_retry_s = first_retry_s
        self._pending: dict[tuple[str, str], _Pending] = {}

    def routes(self) -> tuple[TopicRoute, ...]:
        tail = f"/reply/{self._worker}"
        return (
            TopicRoute(
                Topics.for_cloud(self._tenant).reply(self._worker),
                lambda t: t.endswith(tail),
                self._hear,
            ),
        )

    async def invoke(
        self,
        edge_id: str,
        tool: str,
        args: Mapping[str, Json],
        *,
        ttl_s: float = TTL_S,
        present: bool | None = None,
        user_id: str = "local",
    ) -> Invoked:
        """Call a tool of an edge. Never raises for errors of the edge or the link: they are
        returned as an envelope.
        """
        if len(self._pending) >= MAX_PENDING:
            problem = "Too many invocations are in progress"
            return Invoked(False, (), ToolResponse.failure(ErrorCode.RATE_LIMIT, problem))
        call = ToolCall(
            call_id=new_call_id(Clock().wall()),
            tool=tool,
            args=args,
            origin=CallOrigin.CLOUD,
            ttl_s=ttl_s,
            present=present,
            user_id=user_id,
        )
        topics = Topics(self._tenant, edge_id)
        pending = _Pending(asyncio.get_running_loop().create_future())
        self._pending[edge_id, call.call_id] = pending
        try:
            async with timeout(ttl_s):
                await self._offer(topics, call, pending)
                response = await pending.answer
        except TimeoutError:
            response = await self._give_up(topics, call, pending)
        except WireError as e:
            response = ToolResponse.failure(ErrorCode.INVALID_REQUEST, str(e))
        finally:
            del self._pending[edge_id, call.call_id]
        return Invoked(pending.accepted.is_set(), tuple(pending.progress), response)

    async def _offer(self, topics: Topics, call: ToolCall, pending: _Pending) -> None:
        """Send it until it is accepted: at once, then after 1, 2, 4 … seconds, with the same id."""
        assert self.link is not None
        begun, pause, attempt = time.monotonic(), self._first_retry_s, 0
        while not pending.accepted.is_set():
            attempt += 1
            left = max(0.0, call.ttl_s - (time.monotonic() - begun))
            try:
                await self.link.publish(
                    topics.invoke,
                    MessageKind.CALL,
                    wire.call_to_body(replace(call, ttl_s=left)),
                    attempt=attempt,
                    correlation=wire.correlation_of(call.call_id),
                    response_topic=topics.reply(self._worker),
                    expiry_s=left,
                )
            except NotConnected as e:
                log.debug("invocation %s is not sent: %s", call.call_id, e)
            try:
                async with timeout(pause):
                    await pending.accepted.wait()
            except TimeoutError:
                pause *= 2

    async def _give_up(self, topics: Topics, call: ToolCall, pending: _Pending) -> ToolResponse:
        """Cancel the call at the edge, and return how it failed."""
        assert self.link is not None
        if not pending.accepted.is_set():
            return ToolResponse.failure(
                ErrorCode.NOT_ACCEPTED, "The edge did not accept the call; is it online?"
            )
        try:
            await self.link.publish(
                topics.invoke,
                MessageKind.CANCEL,
                {"id": call.call_id, "reason": "timeout"},
                correlation=wire.correlation_of(call.call_id),
                expiry_s=60.0,
            )
        except NotConnected as e:
            log.debug("cancel of %s is not sent: %s", call.call_id, e)
        return ToolResponse.failure(
            ErrorCode.TIMEOUT, "The edge accepted the call and did not finish it in time"
        )

    async def _hear(self, inbound: Inbound) -> None:
        inbound.ack()
        try:
            edge, message = decode(inbound)
            pending = self._pending.get((edge, message.id))
            if pending is None:
                return  # a duplicate, or too late
            # progress and results imply acceptance, if that message was lost
            pending.accepted.set()
            if message.kind is MessageKind.PROGRESS and len(pending.progress) < MAX_PROGRESS:
                pending.progress.append(wire.text_of(message, "text"))
            elif message.kind is MessageKind.RESULT and not pending.answer.done():
                pending.answer.set_result(wire.response_of(message))
        except WireError as e:
            log.warning("an answer on %.120r cannot be read: %s", inbound.topic, e)
