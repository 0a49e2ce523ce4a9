"""The ports of the orchestrator without disk, air and wire: dictionaries, and answers given at
once.

It decides nothing: what is measured above these is the orchestrator alone.
"""

# ruff: noqa: ARG002 - a port's arguments, which these have no use for

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edge.core.call_state import Submission
from edge.core.grants import Asked, Consumed, Consumption, Granted
from edge.core.results import TapOffer
from edge.ports import (
    AskPort,
    GlassesAway,
    GlassesStatus,
    NobodyToAsk,
    Progress,
    Question,
    RenderPort,
    UplinkStatus,
    Wait,
)
from edge.storage.calls import Admission, Unfinished
from edge.storage.results import StoredResult
from firmware_bridge.messages import Answer
from tools_cache.api.tool import (
    Delivery,
    DeliveryReport,
    Json,
    ToolCall,
    ToolDefinition,
    ToolResponse,
)

if TYPE_CHECKING:  # earlier commits, which --compare measures too, do not have it
    from edge.ports import Alongside

ANSWER = {"text": "It is 09:41.", "iso": "2026-11-21T09:41:00+00:00", "timezone": "Europe/Berlin"}
"""What the constant tool says: an answer of the usual size."""


class MemoryCalls:
    """`CallStore` in dictionaries; the steps of a call are kept, as on disk, and never
    looked at.
    """

    def __init__(self) -> None:
        self.calls: dict[str, dict[str, Any]] = {}
        self._by_key: dict[str, str] = {}

    async def admit(
        self,
        call: ToolCall,
        route: str,
        *,
        keys: Sequence[str] = (),
        repeatable: bool = False,
        state: str = "ADMITTED",
        then: str = "",
        also: "Alongside | None" = None,
        **_of_earlier_commits: object,
    ) -> Admission:
        assert also is None, "nothing goes to the cloud here"
        found = await self.known(call, keys=keys)
        if found is not None:
            return found
        self.calls[call.call_id] = {
            "call": call,
            "route": route,
            "steps": [step for step in (state, then) if step],
            "response": None,
        }
        self._by_key.update(dict.fromkeys(keys, call.call_id))
        return Admission(fresh=True)

    async def known(self, call: ToolCall, *, keys: Sequence[str] = ()) -> Admission | None:
        call_id = (
            call.call_id
            if call.call_id in self.calls
            else self._by_key.get(keys[0])
            if keys
            else None
        )
        row = self.calls.get(call_id or "")
        return (
            None
            if row is None
            else Admission(fresh=False, response=row["response"], call_id=row["call"].call_id)
        )

    async def advance(self, call_id: str, state: str, *, note: str = "") -> None:
        self.calls[call_id]["steps"].append((state, note))

    async def finish(
        self,
        call_id: str,
        state: str,
        response: ToolResponse,
        *,
        delivery: DeliveryReport | None = None,
        also: "Alongside | None" = None,
    ) -> bool:
        assert also is None, "nothing goes to the cloud here"
        row = self.calls[call_id]
        if row["response"] is not None:
            return False
        row["steps"].append(state)
        row["response"], row["delivery"] = response, delivery
        return True

    async def tell_delivery(
        self, call_id: str, report: DeliveryReport, *, also: "Alongside | None" = None
    ) -> None:
        assert also is None, "nothing goes to the cloud here"
        row = self.calls.get(call_id)
        if row is not None:
            row["delivery"] = report

    async def unfinished(self) -> list[Unfinished]:
        return []

    async def get(self, call_id: str) -> Mapping[str, Json] | None:
        return self.calls.get(call_id)

    async def recent(self, limit: int, *, pending: bool) -> list[Mapping[str, Json]]:
        rows: list[Mapping[str, Json]] = [*self.calls.values()]
        return rows[-limit:]


class NothingPending:
    """`PendingCalls`: the measured tool answers at once."""

    async def put(self, call: ToolCall, *, ttl_s: float) -> None: ...
    async def close(self, call_id: str, status: str) -> None: ...

    async def resolve(
        self, call_id: str, response: ToolResponse, *, user_id: str, session: str
    ) -> Submission:
        return Submission.UNKNOWN

    async def open(self) -> list[tuple[str, float]]:
        return []

    async def result(self, call_id: str) -> ToolResponse | None:
        return None


class NoResults:
    """`ResultCache`: the measured tool declares no TTL."""

    async def keep(
        self, user_id: str, tool: str, args_hash: str, response: ToolResponse, *, ttl_s: float
    ) -> None: ...

    async def last(self, user_id: str, tool: str, args_hash: str) -> StoredResult | None:
        return None


class NoConfirmations:
    """`Confirmations`: the measured tool asks for no yes."""

    async def ask(self, asked: Asked) -> None: ...
    async def grant(self, user_id: str, tool: str, granted: Granted) -> None: ...

    async def consume(
        self,
        token_hash: str,
        *,
        allow: bool,
        tool: str | None = None,
        args_hash: str | None = None,
        user_id: str,
        session: str | None = None,
    ) -> Consumed:
        return Consumed(Consumption.EXPIRED)

    async def consume_call(self, call_id: str, *, allow: bool) -> Consumed:
        return Consumed(Consumption.EXPIRED)

    async def open(self) -> list[Asked]:
        return []

    async def granted(self, user_id: str, tool: str) -> Granted:
        return Granted()

    async def grants(self, user_id: str) -> list[Mapping[str, Json]]:
        return []


class MemorySessions:
    """`Sessions`: one epoch for all."""

    async def open(self, user_id: str, session: str, mode: str) -> tuple[str, str]:
        return mode, "0123456789abcdef"

    async def note(
        self, *, cause: str, call_id: str, before: Mapping[str, Json], after: Mapping[str, Json]
    ) -> None: ...

    async def transitions(self, limit: int) -> list[Mapping[str, Json]]:
        return []


class MemoryNotes:
    """`Notes` in a dictionary."""

    def __init__(self) -> None:
        self._kept: dict[str, Json] = {}

    async def get(self, name: str) -> Json:
        return self._kept.get(name)

    async def put(self, name: str, value: Json) -> None:
        self._kept[name] = value

    async def put_soon(self, name: str, value: Json, **_failed: object) -> None:
        await self.put(name, value)


class ConstantTools:
    """A backend: every tool says the same."""

    async def run(self, call: ToolCall, tool: ToolDefinition, progress: Progress) -> ToolResponse:
        return ToolResponse(data=ANSWER)


class InstantStage(RenderPort, AskPort):
    """Whatever is presented is on the lens already, and nobody is asked."""

    async def ask(self, question: Question) -> Answer:
        raise NobodyToAsk("nobody wears these")

    async def present(
        self,
        call_id: str,
        response: ToolResponse,
        *,
        wait: Wait = Wait.ANSWER,
        name: str = "",
        offer: TapOffer | None = None,
    ) -> DeliveryReport:
        return DeliveryReport(Delivery.SHOWN)

    async def tell(
        self,
        text: str,
        *,
        scene: str = "",
        call_id: str = "",
        brief: bool = False,
        mark: bool = False,
        until_shown: bool = False,
    ) -> DeliveryReport:
        return DeliveryReport(Delivery.SHOWN)

    def ended(self, call_id: str) -> None:
        pass

    def lens(self, *, exact: bool = False) -> Mapping[str, Json]:
        return {}


class ReadyGlasses:
    """`GlassesPort`: there, and never asked for anything."""

    def status(self) -> GlassesStatus:
        return GlassesStatus(state="READY", ready=True, model="mock:display", worn=True)

    async def request(self, command: Any, *, timeout_s: float = 0.0) -> Any:
        raise GlassesAway("the stage answers at once, so nothing is asked of these glasses")

    async def post(self, command: Any) -> None:
        await self.request(command)


class SilentUplink:
    """`UplinkPort` of a daemon that has no broker: nothing comes, nothing is sent."""

    def status(self) -> UplinkStatus:
        return UplinkStatus()

    async def messages(self) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield None

    async def submit(self, call: ToolCall) -> None: ...
    async def handled(self, message: Any) -> None: ...
    async def answer(self, invoked: Any, answer: Any) -> None: ...
    async def announce(self, *, capabilities: Any, glasses: str) -> None: ...
    async def tell_event(self, kind: str, data: Mapping[str, Json]) -> None: ...
    async def withdraw(self, call_id: str, reason: str) -> None: ...
    async def tell_delivery(
        self, call_id: str, report: DeliveryReport, *, age_s: float
    ) -> None: ...
