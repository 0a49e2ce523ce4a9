"""One call in flight: what is known of it between its question and its answer.

Refuses to act: the orchestrator moves tickets, a ticket only keeps.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from edge.core.routing import Route
from edge.core.tools.snapshot import Snapshot
from edge.ports import CallAccepted, CallProgress, CallResult, Progress, Wait
from tools_cache.api.tool import Json, ToolCall, ToolDefinition, ToolError, ToolResponse

WORDS: Final = 64
"""Words from whoever runs the call that may wait; progress beyond it is dropped, an answer
never is.
"""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody called the call off."""

    reason: str


@dataclass(frozen=True, slots=True)
class Decided:
    """The call was allowed (`refusal` None), or was not and why. It is on disk already."""

    by: str
    refusal: ToolError | None = None


@dataclass(frozen=True, slots=True)
class Unasked:
    """No glasses can ask the wearer; a token still can decide."""

    reason: str


@dataclass(frozen=True, slots=True)
class Turn:
    """The call may run now."""


Word = CallAccepted | CallProgress | CallResult | Cancelled | Decided | Unasked | Turn


def _future() -> "asyncio.Future[Any]":
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True, eq=False)
class PendingCall:
    """`early` once the caller got an interim answer (or nobody waits at all): its end is then a
    completion, not an answer. `waited_for`: the caller waits for the end, not only for the call to
    begin; `patience_s`: so long for the wearer's answer. `queued_s`, `asked_s`: seconds spent
    waiting for a place and for a yes, which are no part of its duration. `begun`: on disk as a call
    that may run, `running`: as one that does. `kept`: its answer is on disk. `heard`: a worker said
    in this life that it has it.

    `answer` resolves with what the caller is told; `first` as soon as there is something to say at
    all: None when the call is on disk, else an interim or final answer; `place` when it needs its
    place among the running calls no longer.
    """

    call: ToolCall
    began: float
    wait: Wait = Wait.ANSWER
    progress: Progress | None = None
    waited_for: bool = True
    patience_s: float = 0.0
    snapshot: Snapshot | None = None
    tool: ToolDefinition | None = None
    route: Route | None = None
    keys: tuple[str, ...] = ()
    clamped: dict[str, Json] = field(default_factory=dict)
    defaulted: tuple[str, ...] = ()
    reason: str = ""
    stages: list[str] = field(default_factory=list)
    """How far it came, the same for every kind of tool (S3-40): configured, built, executed,
    posted.
    """
    admitted: bool = False
    begun: bool = False
    running: bool = False
    kept: bool = True
    accepted: bool = False
    expired: bool = False
    heard: bool = False
    early: bool = False
    attempts: int = 0
    queued_s: float = 0.0
    asked_s: float = 0.0
    message: CallResult | None = None
    runner: "asyncio.Task[Any] | None" = None
    words: list[Word] = field(default_factory=list)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    answer: "asyncio.Future[ToolResponse]" = field(default_factory=_future)
    first: "asyncio.Future[ToolResponse | None]" = field(default_factory=_future)
    place: "asyncio.Future[None]" = field(default_factory=_future)

    def put(self, word: Word) -> None:
        """Hear a word; of a flood of one kind, only an answer and a decision are all kept."""
        flood = len(self.words) >= WORDS and any(
            type(waiting) is type(word) for waiting in self.words
        )
        if flood and not isinstance(word, CallResult | Decided):
            return
        self.words.append(word)
        self.wake.set()

    def resolve(self, response: ToolResponse) -> None:
        """Give the caller the one answer; later ones are not for the caller."""
        self.tell_first(response)
        self.free_place()
        if not self.answer.done():
            self.answer.set_result(response)

    def tell_first(self, response: ToolResponse | None) -> None:
        """Say how it begins to whoever does not wait for the end."""
        if not self.first.done():
            self.first.set_result(response)

    def free_place(self) -> None:
        """Let another call run: this one is over, or only waits for a person or for the cloud."""
        if not self.place.done():
            self.place.set_result(None)

    def wait_again(self) -> "asyncio.Future[ToolResponse]":
        """Somebody waits for the end once more (a token was brought for it)."""
        if self.answer.done():
            self.answer = _future()
        self.early = False
        return self.answer

    @property
    def key(self) -> tuple[str, str, str] | None:
        """What makes two calls one while the first is in flight."""
        return (self.call.user_id, self.call.session, self.keys[0]) if self.keys else None
