"""The dependencies of the control API: every port and value that its paths need."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

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

if TYPE_CHECKING:
    from firmware_bridge.driver import Tap


class PairingPort(Protocol):
    """Implemented by `pairing.py`."""

    def scan(
        self, seconds: float, *, settle_s: float | None = None
    ) -> AsyncGenerator[HeardGlasses, None]:
        """Yield the glasses that are heard, again whenever something about them changes. With
        `settle_s`, end once nothing new was heard for so long. Raise `PairingRefused` while a
        window is open, `RadioError`.
        """

    def window(
        self, wanted: str | None, *, seconds: float | None = None
    ) -> AsyncGenerator[PairingStep, None]:
        """Pair with the glasses of this address (or pair id), or with the only ones there are, and
        yield each step; the last is PAIRED or FAILED. Leaving the iterator closes the window. Raise
        `PairingRefused` if another one is open.
        """

    def answer(self, *, passkey: int | None = None, same: bool | None = None) -> None:
        """Answer the question that is open. Raise `PairingRefused`."""

    async def close(self) -> bool:
        """Close the window; False if none is open."""

    async def unpair(self, wanted: str | None) -> Bond | None:
        """Delete a bond on this side (None: the only one). Raise `PairingRefused`, `RadioError`."""

    def describe(self) -> Mapping[str, Json]:
        """`GET /v1/pairing`: the state, how long the window stays open, and the bonds."""


class ChoicePort(Protocol):
    """Implemented by `tools/selection.py`: the state of each tool for a user, and its switch."""

    def choice(self, entry: Entry, user_id: str, mode: Mode | None = None) -> Choice:
        """Return the state of a tool for a user."""

    def version(self) -> Hashable | None:
        """Return a value that is equal only as long as `choice` returns the same for each entry;
        None if that cannot be known.
        """

    async def described(
        self, tool: str, user_id: str, mode: Mode | None = None
    ) -> Mapping[str, Json] | None:
        """Return all that is known of a tool, with its documentation; None if there is none."""

    def describe(self) -> Mapping[str, Json]:
        """The loader's state."""

    async def enable(self, user_id: str, tool: str, *, origin: str) -> Switched:
        """Raise `CannotSwitch`, and what the store raises."""

    async def disable(self, user_id: str, tool: str, *, origin: str) -> Switched:
        """Raise `CannotSwitch`, and what the store raises."""

    async def usage(self, user_id: str) -> Sequence[Used]:
        """Return the counts until now, the most called first."""


class ServersPort(Protocol):
    """The other MCP servers whose tools can be called, implemented by `edge/daemon/mcp_servers.py`.
    It never returns secrets.
    """

    def describe(self) -> Sequence[Mapping[str, Json]]:
        """Every configured server, by id."""

    async def refresh(self, server: str) -> None:
        """List its tools again, connecting first if needed. Raise `NoServer`."""

    async def authorize(self, server: str, code: str, state: str, iss: str | None) -> None:
        """Complete the sign-in with the parameters of the redirect. Raise `NoServer`."""


class NoServer(Exception):
    """There is no such server, or the request does not apply to it; the text says which, `fix` what
    to do.
    """

    def __init__(self, text: str, fix: str = "list them: glassd servers") -> None:
        super().__init__(text)
        self.fix = fix


class Tapped(Protocol):
    """Implemented by `LinkManager.tapped`: shows what passes between glassd and the glasses."""

    def __call__(self, tap: "Tap", *, reconnect: bool) -> AbstractAsyncContextManager[None]:
        """Show all that passes to `tap`. Raise `TapTaken`, TimeoutError."""


Enrol = Callable[[str], Awaitable[Mapping[str, Json]]]
"""Given a code, return what may be shown of the enrolment. Raise `EnrolRefused`."""
Sync = Callable[[], Awaitable[Mapping[str, Json]]]
"""Fetch the registry now; return the registry layer of `status`. Raise `SyncFailed`."""


async def _no_look() -> None:
    """Look at nothing."""


class ControlDependencies(Struct, frozen=True):
    """`session_state` is the voice session as it is now. Without `confirmations` there are no
    grants, without `sessions` a call's mode is what the call says.
    """

    calls: CallsPort
    registry: RegistryPort
    render: RenderPort
    store: CallStore
    bus: Bus
    status: Callable[[], Mapping[str, Json]]
    say: Callable[[str], Awaitable[ToolResponse]]
    """Handle a final transcript, as if the wearer had said it."""
    new_id: Callable[[], str]
    confirmations: Confirmations | None = None
    sessions: Sessions | None = None
    session_state: Callable[[], Mapping[str, Json]] = dict
    metrics: Callable[[], Awaitable[str]] | None = None
    """Return OpenMetrics text. Raise ModuleNotFoundError if its library is not installed."""
    pairing: PairingPort | None = None
    enrol: Enrol | None = None
    choice: ChoicePort | None = None
    sync: Sync | None = None
    origin: Callable[[], Mapping[str, Json]] = dict
    """Return where the tools are from and how old they are; {} if that is not known."""
    servers: ServersPort | None = None
    look: Callable[[], Awaitable[None]] = _no_look
    """Examine what the status cannot know otherwise; bounded, never raises."""
    packets: Tapped | None = None
    user_id: str = "local"
