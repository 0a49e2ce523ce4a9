"""What the cloud says about calls: its invocations become calls, its messages about our calls are
handed to those.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.calls.call import Call, Caller
from edge.calls.cloud_reports import CloudReports
from edge.calls.dependencies import CallPorts
from edge.calls.faults import Attempt
from edge.core import idempotency
from edge.ports import (
    CallAccepted,
    CallProgress,
    CallResult,
    InvokeCancelled,
    Invoked,
    RegistryNotice,
    UplinkMessage,
)
from edge.runtime.first_completed import Tasks
from tools_cache.api.tool import CallOrigin, Delivery, DeliveryReport, ToolCall, ToolResponse

_log: Final = logging.getLogger(__name__)
_DISK_AGAIN_S: Final = 2.0
"""Between attempts to put a result on a disk that takes nothing; somebody has to make room
meanwhile.
"""


class InFlight(Struct, frozen=True):
    """A call that runs or waits for its turn; `joined` when the same call was in flight before."""

    call: Call
    joined: bool = False

    async def response(self) -> ToolResponse:
        """Wait for the answer. A caller that goes away takes nothing with it."""
        answer = self.call.answer
        await asyncio.wait({answer})
        if not self.joined:
            return answer.result()
        return idempotency.as_replay(answer.result(), self.call.request.turn_id)


Start = Callable[[ToolCall, Caller], Awaitable[InFlight | ToolResponse]]


class CloudCalls:
    """One per daemon; `calls` are the orchestrator's, read only."""

    def __init__(
        self,
        ports: CallPorts,
        tasks: Tasks,
        reports: CloudReports,
        *,
        calls: Mapping[str, Call],
        start: Start,
        cancel: Callable[[str, str], Awaitable[bool]],
    ) -> None:
        self._uplink = ports.uplink
        self._on_registry = ports.on_registry
        self._tasks = tasks
        self._reports = reports
        self._calls = calls
        self._start = start
        self._cancel = cancel

    async def run(self) -> None:
        """Take what the cloud says until cancelled; each invocation has a task of its own."""
        async for message in self._uplink.messages():
            match message:
                case Invoked():
                    name = f"invoke.{message.call.call_id}"
                    self._tasks.create_task(self._invoked(message), name=name)
                case CallResult():
                    await self.result(message)
                case _:
                    await self._note(message)
                    await self._reports.handled(message)

    async def result(self, message: CallResult) -> None:
        """Hand a result to the call that waits for it; one that nobody waits for came too late
        and is not shown.
        """
        call = self._calls.get(message.call_id)
        if call is not None:
            call.events.put(message)
            return
        if message.own:  # the uplink's own message that no answer came is not a late answer
            await self._reports.handled(message)
            return
        _log.info("call %s: a result came after its end; kept, not shown", message.call_id)
        if self._tasks.open:  # else it comes again
            self._tasks.create_task(self._report_late(message), name="call.late")

    async def _report_late(self, message: CallResult) -> None:
        """Tell the cloud, then be done with the message: other messages do not wait for that."""
        report = DeliveryReport(Delivery.EXPIRED, "the result came after the call had ended")
        await self._reports.tell(message.call_id, report, age_s=0.0)
        await self._reports.handled(message)

    async def _note(self, message: UplinkMessage) -> None:
        match message:
            case CallAccepted() | CallProgress():
                if (call := self._calls.get(message.call_id)) is not None:
                    call.events.put(message)
            case InvokeCancelled():
                await asyncio.sleep(0)  # an invocation of the same batch is no call yet
                await self._cancel(message.call_id, message.reason)
            case RegistryNotice():
                await self._on_registry(message)

    async def _invoked(self, message: Invoked) -> None:
        """The cloud calls a local tool: like any other call, with one answer."""

        async def progress(text: str) -> None:
            await self._uplink.answer(message, text)

        request = replace(message.call, origin=CallOrigin.CLOUD)
        started = await self._start(request, Caller(progress=progress, invoked=message))
        if isinstance(started, InFlight):
            await self._uplink.answer(message, None)
            response = await started.response()
            if started.call.replied and not started.joined:
                return
        else:
            response = started
        self._reports.follow(message.call.call_id)
        await self._send_result(message, response)

    async def _send_result(self, message: Invoked, response: ToolResponse) -> None:
        """Put a result that its call did not store into the outbox: of one that was refused, known
        before, or joined. A disk that takes nothing now is asked again, for the cloud waits for it.
        """
        problem = "the result of %s is not in the outbox yet"
        for number in itertools.count():
            level = logging.DEBUG if number else logging.WARNING
            with Attempt(problem, message.call.call_id, level=level):
                await self._uplink.answer(message, response)
                return
            await asyncio.sleep(_DISK_AGAIN_S)
