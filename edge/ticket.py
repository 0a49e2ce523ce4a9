"""One call in flight: what is known of it between its question and its answer.

Refuses to act: the orchestrator moves tickets, a ticket only keeps.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from edge.core.routing import Route
from edge.ports import CallAccepted, CallProgress, CallResult, Progress, SnapshotPort, Wait
from tools_cache.tool import Json, ToolCall, ToolDefinition, ToolResponse

WORDS: Final = 64
"""Words from whoever runs the call that may wait; progress beyond it is dropped, an answer never is."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody called the call off."""

    reason: str


Word = CallAccepted | CallProgress | CallResult | Cancelled


@dataclass(slots=True, eq=False)
class Ticket:
    """`early` once the caller got `pending` (or nobody waits at all): its end is then a completion, not an answer."""

    call: ToolCall
    began: float
    wait: Wait = Wait.ANSWER
    progress: Progress | None = None
    snapshot: SnapshotPort | None = None
    tool: ToolDefinition | None = None
    route: Route | None = None
    clamped: dict[str, Json] = field(default_factory=dict)
    reason: str = ""
    admitted: bool = False
    accepted: bool = False
    expired: bool = False
    early: bool = False
    message: CallResult | None = None
    runner: "asyncio.Task[Any] | None" = None
    words: list[Word] = field(default_factory=list)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    answer: "asyncio.Future[ToolResponse]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def put(self, word: Word) -> None:
        """Hear a word; a flood of progress costs only progress."""
        if len(self.words) >= WORDS and isinstance(word, CallProgress):
            return
        self.words.append(word)
        self.wake.set()

    def resolve(self, response: ToolResponse) -> None:
        """Give the caller the one answer; later ones are not for the caller."""
        if not self.answer.done():
            self.answer.set_result(response)

    @property
    def key(self) -> tuple[str, str] | None:
        """What makes two calls one while the first is in flight; the suffix of a repeated attempt is not part of it."""
        if self.call.idempotency_key is None:
            return None
        return self.call.user_id, self.call.idempotency_key.partition(ATTEMPT_MARK)[0]


ATTEMPT_MARK: Final = "\x1fattempt "
"""Set between an idempotency key and the number of a new attempt after a failure that may be repeated."""
