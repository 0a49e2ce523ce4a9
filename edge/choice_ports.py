"""What rooms may ask of the choice of tools: is a tool on, what is offered, switch it. Words
and protocols; no code runs here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from edge.core.loader_rules import Switched
from edge.core.snapshot import Entry
from tools_cache.tool import Json, Mode, RateLimit, ToolCall, ToolDefinition, ToolError

OFFERED = "offered"
AVAILABLE = "available"
HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class Choice:
    """One tool as it stands for one user: `state` is offered, available (callable, but not shown to
    models) or hidden; `reason` says in words for a person why it is not offered. `on`: not switched
    off.
    """

    state: str
    reason: str = ""
    on: bool = True
    loaded: bool = True


@dataclass(frozen=True, slots=True)
class Used:
    """How often a user's calls of a tool ran, and how often they failed."""

    tool: str
    calls: int = 0
    failed: int = 0
    last_wall: float = 0.0


class SwitchStorePort(Protocol):
    """Implemented by `store/choice.py`."""

    async def switches(self) -> Mapping[str, Mapping[str, bool]]:
        """What users switched: user → tool → on."""

    async def switch(self, user_id: str, changes: Mapping[str, bool]) -> None:
        """Keep these in one transaction. Raises what the store raises, also when too many are
        kept.
        """

    async def usage(self, user_id: str) -> Sequence[Used]:
        """What is kept of a user's calls, the most called first."""

    async def add_usage(self, user_id: str, counts: Sequence[Used]) -> None:
        """Add to what is kept."""


class GatePort(Protocol):
    """What the gate of the pipeline asks of each call."""

    def why_not(self, user_id: str, tool: ToolDefinition) -> str:
        """Why a tool is off for a user, or its gate is shut; empty when neither."""

    def refusal(self, call: ToolCall, tool: ToolDefinition) -> ToolError | None:
        """Why this user may not call this tool now: it is off, or its gate is shut (asked anew
        each time, S4-20).
        """

    def rate(self, user_id: str, tool: str) -> RateLimit | None:
        """How often this user may call it, beside what the tool and the owner say."""

    def turn(self, turn_id: str) -> None:
        """A call or an utterance of this turn is here; the first one crosses the turn boundary."""


class LoadingPort(Protocol):
    """What our own `registry` tools ask."""

    def choice(self, entry: Entry, user_id: str, mode: Mode | None = None) -> Choice:
        """How one tool of the registry stands for a user."""

    async def described(
        self, tool: str, user_id: str, mode: Mode | None = None
    ) -> Mapping[str, Json] | None:
        """Everything known of one tool, its documentation included; None when there is none of
        that name.
        """

    def permitted(self, call: ToolCall, tool: ToolDefinition) -> ToolError | None:
        """Why the caller of `call` may not call this other tool: by where it comes from, and by
        its scope.
        """

    def listed_for(self, call: ToolCall, tool: ToolDefinition) -> bool:
        """Is the caller of `call` shown this other tool? Only what it may call."""

    def load_tools(self, names: Sequence[str], *, passing: bool = False) -> frozenset[str]:
        """Offer these from the next turn boundary on; gives those there is room for. `passing`:
        for one call.
        """


class ChoicePort(GatePort, LoadingPort, Protocol):
    """Implemented by `tool_choice.py`."""

    def offered(self, user_id: str, mode: Mode | None = None) -> Sequence[Entry]:
        """The tools a model is shown now, by name; it changes at turn boundaries only (C-36)."""

    def describe(self) -> Mapping[str, Json]:
        """The loader's state (S4-54)."""

    async def enable(self, user_id: str, tool: str, *, origin: str) -> Switched:
        """Raises `CannotSwitch`, and what the store raises."""

    async def disable(self, user_id: str, tool: str, *, origin: str) -> Switched:
        """Raises `CannotSwitch`, and what the store raises."""

    async def usage(self, user_id: str) -> Sequence[Used]:
        """Counted until now, the most called first (S0-69)."""
