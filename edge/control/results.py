"""The answer of a call over the control API: read from the store, at once or when it is there; or
streamed, with the call's progress before it.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from edge.control.http import RequestRefused, failure
from edge.core.call_state import CallState
from edge.runtime.bus import Bus, Listener
from edge.runtime.events import CallAnswered, CallCompleted
from edge.storage.calls import CallStore
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import Json, ToolResponse

SETTLE_S: Final = 2.0
"""How long to wait, after an answer is stored, for the report of its delivery: the lens
acknowledges within a second, or never.
"""
MAX_PROGRESS: Final = 64
"""Texts of progress a slow client may be behind; later ones are left out."""

Record = Mapping[str, Json]


class Answers:
    """Reads calls from the store, and again after events on the bus. The caller limits how many
    clients may wait at once.
    """

    def __init__(self, store: CallStore, bus: Bus) -> None:
        self._store = store
        self._bus = bus

    async def record(self, call_id: str) -> Record:
        """Return the record of a call. Raise `RequestRefused` (404) for an unknown or deleted
        call.
        """
        record = await self._store.get(call_id)
        if record is None:
            raise unknown(call_id)
        return _with_delivery(record, record.get("delivery"))

    async def wait(self, call_id: str, wait_s: float, *, pending: bool) -> Record | None:
        """Return the record once the call has its final answer (with `pending`, `PENDING` counts as
        one); None if it has none after `wait_s` seconds.
        """
        with (
            self._bus.listen() as listener
        ):  # subscribe before reading, so that no change is missed
            record = await self.record(call_id)
            answered = _answered(record, pending=pending)
            if answered and (record.get("delivery") is not None or not record.get("response")):
                return record
            delivery: Json = None
            with suppress(TimeoutError):
                async with timeout(min(wait_s, SETTLE_S) if answered else wait_s):
                    delivery = await _delivery(listener, call_id, pending=pending)
            record = await self.record(call_id)
        return _with_delivery(record, delivery) if _answered(record, pending=pending) else None


def unknown(call_id: str) -> RequestRefused:
    problem = f"there is no call {call_id}"
    return RequestRefused("NOT_FOUND", problem, "list recent calls: glassd calls")


async def _delivery(listener: Listener, call_id: str, *, pending: bool) -> Json:
    """Wait until the call is answered, and return how its answer reached the wearer; None if the
    event may have been missed.
    """
    async for event in listener:
        if listener.missed:
            break
        match event:
            case CallAnswered(call_id=found, final=final) if found == call_id and (
                final or pending
            ):
                return event.delivery
            case CallCompleted(call_id=found) if found == call_id:
                return event.delivery
    return None


def _answered(record: Record, *, pending: bool) -> bool:
    return record.get("response") is not None or (
        pending and record.get("state") == CallState.PENDING
    )


def _with_delivery(record: Record, delivery: Json) -> Record:
    """Add to the stored answer what became known of its delivery after it was stored."""
    response = record.get("response")
    if not isinstance(response, dict) or delivery is None:
        return record
    return {
        **record,
        "delivery": delivery,
        "response": {**response, "meta": {**(response.get("meta") or {}), "delivery": delivery}},
    }


# ------------------------------------------------------------------ with progress

Envelope = Mapping[str, Any]
Wanted = Callable[[], Coroutine[Any, Any, Envelope | None]]
"""Waits for the envelope of a call; None if there is none in time."""


class ProgressTexts:
    """What a running call reports, for one client."""

    def __init__(self) -> None:
        self.texts: deque[str] = deque()
        self.changed = asyncio.Event()

    async def put(self, text: str) -> None:
        if len(self.texts) < MAX_PROGRESS:
            self.texts.append(text)
            self.changed.set()


async def with_progress(progress: ProgressTexts, wanted: Wanted) -> AsyncGenerator[str, None]:
    """Yield a `progress` event block for each text of progress, then `answer` with the envelope, or
    `late`. A client that disconnects does not cancel its call.
    """
    texts, changed = progress.texts, progress.changed
    running = asyncio.ensure_future(wanted())
    running.add_done_callback(lambda _: changed.set())
    try:
        while True:
            while texts:
                yield _block("progress", text=texts.popleft())
            if running.done():
                break
            await changed.wait()
            changed.clear()
        answer = running.result()
        yield (
            _block("answer", envelope=answer)
            if answer
            else _block("late", **failure("TIMEOUT", "there was no answer in time"))
        )
    finally:
        running.cancel()


async def in_time(call: Coroutine[Any, Any, ToolResponse], limit_s: float) -> ToolResponse | None:
    """Return the answer of a call, or None if it takes longer."""
    try:
        async with timeout(limit_s):
            return await call
    except TimeoutError:
        return None


def _block(event: str, **fields: Any) -> str:
    return "data: " + json.dumps({"event": event, **fields}, ensure_ascii=False)
