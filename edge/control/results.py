"""Reads the stored record of a call, at once or as soon as the call has its answer."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from edge.control.http import RequestRefused
from edge.core.call_state import CallState
from edge.runtime.bus import Bus, Listener
from edge.runtime.events import CallAnswered, CallCompleted
from edge.storage.calls import CallStore
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import Json

SETTLE_S: Final = 2.0
"""How long to wait, after an answer is stored, for the report of its delivery: the lens
acknowledges within a second, or never.
"""

Story = Mapping[str, Json]


class Answers:
    """Reads calls from the store, and again after events on the bus. The caller limits how many
    clients may wait at once.
    """

    def __init__(self, store: CallStore, bus: Bus) -> None:
        self._store = store
        self._bus = bus

    async def story(self, call_id: str) -> Story:
        """Return the record of a call. Raises `RequestRefused` (404) for an unknown or deleted
        call.
        """
        story = await self._store.get(call_id)
        if story is None:
            raise unknown(call_id)
        return _with_delivery(story, story.get("delivery"))

    async def wait(self, call_id: str, wait_s: float, *, pending: bool) -> Story | None:
        """Tell it when the call has its final answer (with `pending`, that one is an answer too);
        None when `wait_s` were over first, or may not have been enough.
        """
        with self._bus.listen() as heard:  # subscribe before reading, so that no change is missed
            story = await self.story(call_id)
            answered = _answered(story, pending=pending)
            if answered and (story.get("delivery") is not None or not story.get("response")):
                return story
            delivery: Json = None
            with suppress(TimeoutError):
                async with timeout(min(wait_s, SETTLE_S) if answered else wait_s):
                    delivery = await _word(heard, call_id, pending=pending)
            story = await self.story(call_id)
        return _with_delivery(story, delivery) if _answered(story, pending=pending) else None


def unknown(call_id: str) -> RequestRefused:
    return RequestRefused(
        404, "NOT_FOUND", f"there is no call {call_id}", "list recent calls: glassd calls"
    )


async def _word(heard: Listener, call_id: str, *, pending: bool) -> Json:
    """Wait until the call was answered (or until that may have been missed); how its answer
    reached the wearer.
    """
    async for happening in heard:
        if heard.missed:
            break
        match happening:
            case CallAnswered(call_id=found, final=final) if found == call_id and (
                final or pending
            ):
                return happening.delivery
            case CallCompleted(call_id=found) if found == call_id:
                return happening.delivery
    return None


def _answered(story: Story, *, pending: bool) -> bool:
    return story.get("response") is not None or (
        pending and story.get("state") == CallState.PENDING
    )


def _with_delivery(story: Story, delivery: Json) -> Story:
    """The answer was stored before it was shown; what is known of its delivery since then
    belongs into it.
    """
    response = story.get("response")
    if not isinstance(response, dict) or delivery is None:
        return story
    return {
        **story,
        "delivery": delivery,
        "response": {**response, "meta": {**(response.get("meta") or {}), "delivery": delivery}},
    }
