"""The dependencies of the control API: every port and value that its paths need."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from edge.control.metrics import Exposition
from edge.core.pairing_state import Bond, HeardGlasses, PairingStep
from edge.core.tools.selection_rules import Choice, Switched
from edge.core.tools.snapshot import Entry
from edge.ports import CallsPort, RegistryPort, RenderPort
from edge.runtime.bus import Bus
from edge.storage.calls import CallStore
from edge.storage.confirmations import Confirmations
from edge.storage.sessions import Sessions
from edge.storage.tool_choices import Used
from tools_cache.api.tool import Json, Mode, ToolResponse


class PairingPort(Protocol):
    """Implemented by `pairing.py`."""

    def scan(
        self, seconds: float, *, settle_s: float | None = None
    ) -> AsyncGenerator[HeardGlasses, None]:
        """Yield what is heard, and again what has changed. With `settle_s` it ends when nothing new
        was heard for that long after the first. Raise `PairingRefused` while a window is open, and
        `RadioError`.
        """

    def window(
        self, wanted: str | None, *, seconds: float | None = None
    ) -> AsyncGenerator[PairingStep, None]:
        """Pair with the glasses of this address (or pair id), or with the only ones there are, and
        tell each step; the last one is PAIRED or FAILED. Leaving the iterator closes the window.
        Raises `PairingRefused` when another one is open.
        """

    def answer(self, *, passkey: int | None = None, same: bool | None = None) -> None:
        """Answer what is asked now. Raises `PairingRefused`."""

    async def close(self) -> bool:
        """Close the window; False when none is open."""

    async def unpair(self, wanted: str | None) -> Bond | None:
        """Forget our side of a bond (None: of the only one).

        Raise `PairingRefused` or `RadioError`.
        """

    def bonds(self) -> tuple[Bond, ...]: ...

    def describe(self) -> Mapping[str, Json]:
        """`GET /v1/pairing`: the state, how long the window stays open, and the bonds."""


class ChoicePort(Protocol):
    """Implemented by `tools/selection.py`: how each tool stands for a user, and its switches."""

    def choice(self, entry: Entry, user_id: str, mode: Mode | None = None) -> Choice:
        """How one tool of the registry stands for a user."""

    async def described(
        self, tool: str, user_id: str, mode: Mode | None = None
    ) -> Mapping[str, Json] | None:
        """Everything known of one tool, its documentation included; None when there is none of
        that name.
        """

    def describe(self) -> Mapping[str, Json]:
        """The loader's state."""

    async def enable(self, user_id: str, tool: str, *, origin: str) -> Switched:
        """Raises `CannotSwitch`, and what the store raises."""

    async def disable(self, user_id: str, tool: str, *, origin: str) -> Switched:
        """Raises `CannotSwitch`, and what the store raises."""

    async def usage(self, user_id: str) -> Sequence[Used]:
        """Counted until now, the most called first."""


class ServersPort(Protocol):
    """The other MCP servers whose tools can be called, implemented by `edge/daemon/mcp_servers.py`.
    It never returns secrets.
    """

    def describe(self) -> Sequence[Mapping[str, Json]]:
        """Every configured server, by id."""

    async def refresh(self, server: str) -> None:
        """List its tools again, connecting first if needed. Raises `NoServer`."""

    async def authorize(self, server: str, code: str, state: str, iss: str | None) -> None:
        """Complete the sign-in with the parameters of the redirect. Raises `NoServer`."""


class NoServer(Exception):
    """There is no such server, or the request does not apply to it; the text says which, `fix` what
    to do.
    """

    def __init__(self, text: str, fix: str = "list them: glassd servers") -> None:
        super().__init__(text)
        self.fix = fix


Enrol = Callable[[str], Awaitable[Mapping[str, Json]]]
"""A code in, what may be shown of the enrolment out; raises what has `code` and `fix`."""
Sync = Callable[[], Awaitable[Mapping[str, Json]]]
"""Fetch the registry now; the registry layer of `status` out. Raises `SyncFailed`."""


async def _nothing_to_look_at() -> None:
    """The status says all there is."""


@dataclass(frozen=True, slots=True)
class ControlDependencies:
    """`session_state` is the voice session as it is now. Without `confirmations` there are no
    grants, without `sessions` a call's mode is what the call says.
    """

    calls: CallsPort
    registry: RegistryPort
    render: RenderPort
    store: CallStore
    bus: Bus
    status: Callable[[], Mapping[str, Json]]
    heard: Callable[[str], Awaitable[ToolResponse]]
    new_id: Callable[[], str]
    confirmations: Confirmations | None = None
    sessions: Sessions | None = None
    session_state: Callable[[], Mapping[str, Json]] = dict
    metrics: Exposition | None = None
    pairing: PairingPort | None = None
    enrol: Enrol | None = None
    choice: ChoicePort | None = None
    sync: Sync | None = None
    servers: ServersPort | None = None
    look: Callable[[], Awaitable[None]] = _nothing_to_look_at
    """Look at what the status can only say after looking; bounded, never raises."""
    user_id: str = "local"
