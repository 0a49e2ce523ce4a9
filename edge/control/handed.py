"""What the control API is handed: every port and value its paths need. No code runs here."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from edge.bus import Bus
from edge.choice_ports import ChoicePort
from edge.control.counted import Exposition
from edge.pairing_ports import PairingPort
from edge.ports import CallsPort, RegistryPort, RenderPort
from edge.store.calls import CallStore
from edge.store.confirmations import Confirmations
from edge.store.sessions import Sessions
from tools_cache.tool import Json, ToolResponse


class ServersPort(Protocol):
    """Implemented by `servers.py`: the other MCP servers whose tools are ours. Secrets never
    come out of it.
    """

    def describe(self) -> Sequence[Mapping[str, Json]]:
        """Every configured server, by id."""

    async def refresh(self, server: str) -> None:
        """List its tools anew, connecting first where it is not. Raises `NoServer`."""

    async def authorize(self, server: str, code: str, state: str, iss: str | None) -> None:
        """Finish its authorization with what the browser was sent back with. Raises `NoServer`."""


class NoServer(Exception):
    """There is no such server, or nothing of this kind to do with it; the text says which,
    `fix` what to do.
    """

    def __init__(self, text: str, fix: str = "see all of them: glassd servers") -> None:
        super().__init__(text)
        self.fix = fix


Enrol = Callable[[str], Awaitable[Mapping[str, Json]]]
"""A code in, what may be shown of the enrolment out; raises what has `code` and `fix`."""
Sync = Callable[[], Awaitable[Mapping[str, Json]]]
"""Fetch the registry now; the registry layer of `status` out. Raises `SyncFailed`."""


async def _nothing_to_look_at() -> None:
    """The status says all there is."""


@dataclass(frozen=True, slots=True)
class Ports:
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
