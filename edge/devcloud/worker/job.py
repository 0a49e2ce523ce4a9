"""A call in the worker and on disk: its owner, its progress, its answer."""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.wire import MessageKind, WireError
from edge.storage.sqlite.database import Row
from tools_cache.api.tool import CallOrigin, ErrorCode, Mode, ToolCall, ToolResponse

TAKEN, SENT, DONE = "taken", "sent", "done"
WAITS = "waits"
"""Waits for the answer of the call with the same idempotency key."""
PENDING = "pending"
"""Waits for its result to be submitted."""
ELSEWHERE = "elsewhere"
"""Not stored as such: another live worker has it."""
BUSY = "busy"
"""Not stored at all: there is no room."""
_STORED = ("turn_id", "user_id", "session", "idempotency_key")


class Job(Struct, frozen=True):
    """One call: owner, content, and how to answer. `ends_wall` is its deadline."""

    edge: str
    call: ToolCall
    reply_to: str
    as_json: bool
    ends_wall: float

    @property
    def key(self) -> tuple[str, str]:
        return self.edge, self.call.call_id

    def text(self, *, with_args: bool = True) -> str:
        """Return the stored form; `of_row` reads it."""
        call = self.call
        request = {
            "args": dict(call.args) if with_args else {},
            "origin": call.origin.value,
            "mode": call.mode.value,
            **{key: getattr(call, key) for key in _STORED},
            "reply_to": self.reply_to,
            "as_json": self.as_json,
        }
        return json.dumps(request, ensure_ascii=False)

    @classmethod
    def of_row(cls, row: Row) -> "Job":
        stored: Mapping[str, Any] = {"session": "", **json.loads(row["request"])}
        call = ToolCall(
            call_id=row["id"],
            tool=row["tool"],
            args=stored["args"],
            origin=CallOrigin(stored["origin"]),
            mode=Mode(stored["mode"]),
            ttl_s=0.0,
            **{key: stored[key] for key in _STORED},
        )
        return cls(row["edge"], call, stored["reply_to"], stored["as_json"], row["ends_wall"])

    def refreshed(self, now: float) -> "Job":
        """Return it with its remaining lifetime."""
        return replace(self, call=replace(self.call, ttl_s=max(0.0, self.ends_wall - now)))


class TakenJob(Struct, frozen=True):
    """State of a call: `fresh`, or its progress and, when finished, its answer."""

    fresh: bool
    state: str = TAKEN
    response: ToolResponse | None = None


class UnfinishedJob(Struct, frozen=True):
    """A call from before: not yet done (`response` None) or not yet published."""

    job: Job
    state: str
    response: ToolResponse | None = None

    @classmethod
    def of_row(cls, row: Row, now: float) -> "UnfinishedJob":
        return cls(Job.of_row(row).refreshed(now), row["state"], response_of(row["response"]))


def response_of(text: str | None) -> ToolResponse | None:
    return None if text is None else ToolResponse.from_json(json.loads(text))


def response_text(response: ToolResponse) -> str:
    return json.dumps(response.to_json(), ensure_ascii=False)


def fitting(job: Job, response: ToolResponse) -> ToolResponse:
    """Return the answer, or an error if it cannot be sent."""
    body = wire.result_body(job.call.call_id, response)
    try:
        wire.encode(MessageKind.RESULT, body, json=job.as_json)
    except WireError as e:
        message = f"The tool's answer cannot be sent: {e}"
        return ToolResponse.failure(ErrorCode.EXECUTION_ERROR, message).with_meta(**response.meta)
    return response
