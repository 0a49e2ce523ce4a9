"""What calls need of the rest of the daemon, and the owner's rules for them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from edge.core import permissions, policy
from edge.core.routing import RouteKind
from edge.core.session import SessionController
from edge.core.words.wearer_forms import Writer
from edge.ports import (
    AskPort,
    GlassesPort,
    NameArguments,
    RegistryNotice,
    RegistryPort,
    RenderPort,
    RunTool,
    TakeLateAnswer,
    UplinkPort,
)
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.storage.calls import CallStore
from edge.storage.confirmations import Confirmations as ConfirmationStore
from edge.storage.notes import Notes
from edge.storage.pending import PendingCalls
from edge.storage.results import ResultCache
from edge.storage.sessions import Sessions
from tools_cache.api.tool import (
    Json,
    Named,
    RateLimit,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
)

if TYPE_CHECKING:
    from edge.core.hearing.names import KnownNames

Audit = Callable[[Mapping[str, Json]], None]
"""Takes one audit record; must not wait."""


async def _name_nothing(_tool: ToolDefinition, _call: ToolCall) -> Mapping[str, Named]:
    """Return no names: every argument is shown as it was given."""
    return {}


async def _take_no_answer(_tool: ToolDefinition, _call: ToolCall, _answer: ToolResponse) -> None:
    """Drop a late answer: no tool here makes calls."""


@dataclass(frozen=True, slots=True)
class CallStores:
    """The tables a call's life is kept in."""

    calls: CallStore
    pending: PendingCalls
    results: ResultCache


@dataclass(frozen=True, slots=True)
class CallPorts:
    """What calls need of the rest of the daemon."""

    registry: RegistryPort
    backends: Mapping[RouteKind, RunTool]
    """What runs the calls of each of `core.routing.HERE`, and of `LATER`."""
    stores: CallStores
    confirmations: ConfirmationStore
    sessions: Sessions
    notes: Notes
    uplink: UplinkPort
    glasses: GlassesPort
    stage: RenderPort
    ask: AskPort
    bus: Bus
    clock: Clock
    on_registry: Callable[[RegistryNotice], Awaitable[None]]
    """Called with every registry notice of the cloud."""
    take_late_answer: TakeLateAnswer = _take_no_answer
    name_arguments: NameArguments = _name_nothing
    audit: Audit | None = None
    writer: Callable[[], Writer] = Writer
    """Returns the wearer's form of dates and numbers, bound to now."""
    session: SessionController = field(default_factory=SessionController)
    """The voice session, which tools' intents change."""
    words_wanted: Callable[[], bool] = lambda: False
    """Returns whether a program waits for the wearer's words."""
    names: "Callable[[], KnownNames | None]" = lambda: None
    """Returns the names that may be said to tools."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How long and how many. Seconds; tests shorten them."""

    running: int = 32
    retry_after_s: float = 1.0
    accept_s: float = 2.0
    fallback_s: float = 0.8
    run_s: float = 30.0
    life_s: float = 40.0
    working_s: float = 0.7
    voice_inline_s: float = 4.0
    retry_pause_s: float = 0.25
    confirm_s: float = 300.0
    unsure_s: float = 30.0
    turn_latency_ms: int = 1500
    voice: policy.VoiceBudget = field(default_factory=policy.VoiceBudget)


class SelectionPort(Protocol):
    """Implemented by `tools/selection.py`: what is asked of the choice of tools at each call."""

    def why_not(self, user_id: str, tool: ToolDefinition) -> str:
        """Return why a tool is off for a user, or its gate is shut; empty when neither."""

    def refusal(self, call: ToolCall, tool: ToolDefinition) -> ToolError | None:
        """Return why this user may not call this tool now: it is off, or its gate is shut (asked
        again at each call).
        """

    def rate(self, user_id: str, tool: str) -> RateLimit | None:
        """Return how often this user may call it, beside what the tool and the owner say."""

    def turn(self, turn_id: str) -> None:
        """Note that a call or an utterance of this turn is here; the first one crosses the turn
        boundary.
        """


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What the owner decided beside the limits: the switch for all tools, rates by tool name, what
    the cloud may call, and each user's own choice.
    """

    enabled: bool = True
    rates: Mapping[str, RateLimit] = field(default_factory=dict)
    user_id: str = "local"
    strict_registry: bool = False
    language: str = ""
    cloud_may: tuple[str, ...] = permissions.STOCK
    yes_by_voice: tuple[str, ...] = ()
    """Tools to which a spoken yes is enough."""
    choice: SelectionPort | None = None


@dataclass(slots=True)
class CallRules:
    """The limits and the policy that apply to the next call. All parts of the orchestrator hold
    this object; a change of the configuration replaces its two values.
    """

    limits: CallLimits
    policy: CallPolicy

    def adopt(self, limits: CallLimits, policy_: CallPolicy) -> None:
        """Take what the owner changed; the user and the choice of tools stay."""
        now = self.policy
        self.limits = limits
        self.policy = replace(policy_, user_id=now.user_id, choice=now.choice)
