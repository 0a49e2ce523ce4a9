"""The cloud's side of the orchestrator: its invocations become calls, its words about our calls
find their tickets.

Refuses to know wires and topics (the uplink does) and how a call is run.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from edge.calls.call import PendingCall
from edge.calls.delivery import CallDelivery
from edge.ports import (
    CallAccepted,
    CallProgress,
    CallResult,
    InvokeCancelled,
    Invoked,
    Progress,
    RegistryNotice,
    UplinkMessage,
    UplinkPort,
)
from edge.runtime.first_completed import Tasks
from tools_cache.api.tool import CallOrigin, Delivery, DeliveryReport, ToolCall, ToolResponse

_log: Final = logging.getLogger(__name__)
_DISK_AGAIN_S: Final = 2.0
"""Between attempts to put a result on a disk that takes nothing; somebody has to make room
meanwhile.
"""
Taken = Callable[[], Awaitable[None]]


class Call(Protocol):
    async def __call__(
        self, call: ToolCall, *, progress: Progress | None = ..., taken: Taken | None = ...
    ) -> ToolResponse: ...


class CloudCalls:
    """One per daemon; `tickets` are the orchestrator's, read only."""

    def __init__(
        self,
        *,
        uplink: UplinkPort,
        ending: CallDelivery,
        tickets: Mapping[str, PendingCall],
        call: Call,
        cancel: Callable[[str, str], Awaitable[bool]],
        on_registry: Callable[[RegistryNotice], Awaitable[None]],
    ) -> None:
        self._uplink = uplink
        self._ending = ending
        self._tickets = tickets
        self._call = call
        self._cancel = cancel
        self._on_registry = on_registry

    async def run(self, tasks: Tasks) -> None:
        """Take up what the cloud says until cancelled; invocations run in `tasks`."""
        async for message in self._uplink.messages():
            await self._hear(message, tasks)

    async def _hear(self, message: UplinkMessage, tasks: Tasks) -> None:
        match message:
            case Invoked():
                tasks.create_task(self._invoked(message), name=f"invoke.{message.call.call_id}")
                return
            case CallResult():
                await self.result(message)
                return
            case CallAccepted() | CallProgress():
                if (ticket := self._tickets.get(message.call_id)) is not None:
                    ticket.put(message)
            case InvokeCancelled():
                await asyncio.sleep(0)  # an invocation of the same batch has no ticket yet
                await self._cancel(message.call_id, message.reason)
            case RegistryNotice():
                await self._on_registry(message)
        await self._ending.handled(message)

    async def result(self, message: CallResult) -> None:
        """Hand a result to the call that waits for it; one that nobody waits for came too late
        and is not shown.
        """
        ticket = self._tickets.get(message.call_id)
        if ticket is not None:
            ticket.put(message)
            return
        if not message.own:  # the uplink's own word for "no answer came" is not a late answer
            _log.info("call %s: a result came after its end; kept, not shown", message.call_id)
            report = DeliveryReport(Delivery.EXPIRED, "the result came after the call had ended")
            await self._ending.tell(message.call_id, report, age_s=0.0)
        await self._ending.handled(message)

    async def _invoked(self, message: Invoked) -> None:
        """The cloud calls us: the same pipeline, the same one answer."""

        async def progress(text: str) -> None:
            await self._uplink.answer(message, text)

        async def taken() -> None:
            await self._uplink.answer(message, None)

        response = await self._call(
            replace(message.call, origin=CallOrigin.CLOUD), progress=progress, taken=taken
        )
        self._ending.note_recent(message.call.call_id)
        await self._tell_result(message, response)
        await self._ending.handled(message)

    async def _tell_result(self, message: Invoked, response: ToolResponse) -> None:
        """Hand the result to the outbox; a disk that takes nothing now is asked again, for the
        cloud waits for it.
        """
        for attempt in itertools.count():
            try:
                await self._uplink.answer(message, response)
            except Exception as e:  # noqa: BLE001 - a disk's fault must not end the other calls
                level = logging.DEBUG if attempt else logging.WARNING
                _log.log(
                    level, "the result of %s is not in the outbox yet: %s", message.call.call_id, e
                )
                await asyncio.sleep(_DISK_AGAIN_S)
            else:
                return
