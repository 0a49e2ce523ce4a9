"""What happens inside the daemon, as data: one frozen class per kind of event.

`as_json` is the form of `GET /v1/events` and of `glassd events`: `{event, …fields}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, ClassVar

from firmware_bridge.messages import Event as GlassesEvent
from tools_cache.api.tool import DeliveryReport, Json


@dataclass(frozen=True, slots=True)
class DaemonEvent:
    """Base of everything on the bus. `kind` is its name on the wire."""

    kind: ClassVar[str] = ""
    of_a_call: ClassVar[bool] = False
    """Progress of a call: several per call, and of use only to those who watch calls."""


@dataclass(frozen=True, slots=True)
class LinkChanged(DaemonEvent):
    """The link moved to another state of `core/link_state.py`."""

    kind = "link.state"
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GlassesReady(DaemonEvent):
    """Connected, greeted, capabilities known. `mtu` is the ATT MTU in bytes."""

    kind = "glasses.ready"
    model: str
    firmware: str
    address: str
    mtu: int
    transport: str


@dataclass(frozen=True, slots=True)
class GlassesLost(DaemonEvent):
    kind = "glasses.lost"
    reason: str


@dataclass(frozen=True, slots=True)
class GlassesPaired(DaemonEvent):
    """A bond was made and is on disk; `how` as `firmware_bridge.bonding.How` says it."""

    kind = "glasses.paired"
    model: str
    id: str
    how: str


@dataclass(frozen=True, slots=True)
class GlassesUnpaired(DaemonEvent):
    """Our side of a bond was forgotten because a person asked for it."""

    kind = "glasses.unpaired"
    model: str
    id: str


@dataclass(frozen=True, slots=True)
class GlassesSaid(DaemonEvent):
    """The wearer or the glasses did something."""

    kind = "glasses.event"
    event: GlassesEvent


@dataclass(frozen=True, slots=True)
class PrivateWords(GlassesSaid):
    """Speech while transcripts are suppressed: acted on here, neither published nor stored."""


@dataclass(frozen=True, slots=True)
class CapabilitiesLearned(DaemonEvent):
    """The capability record changed: connect, run-time change, or glasses gone (`stale`)."""

    kind = "capabilities.changed"
    model: str
    stale: bool


@dataclass(frozen=True, slots=True)
class CapabilitiesPublished(DaemonEvent):
    """The broker acknowledged the capability report."""

    kind = "capabilities.published"
    model: str
    tools: int


@dataclass(frozen=True, slots=True)
class RegistrySynced(DaemonEvent):
    """A registry is active: `tools` in all, `compatible` with these glasses, from `origin`."""

    kind = "registry.synced"
    version: str
    tools: int
    compatible: int
    origin: str
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolsListChanged(DaemonEvent):
    """The list of offered tools has changed; published once, at a turn boundary."""

    kind = "tools_list_changed"
    version: str
    tools: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolsFiltered(DaemonEvent):
    """These glasses lack hardware for `count` apps; `apps`: package → missing, the first 50."""

    kind = "tools.filtered"
    apps: Mapping[str, tuple[str, ...]]
    count: int


@dataclass(frozen=True, slots=True)
class ServerChanged(DaemonEvent):
    """An MCP server is connected, disconnected, loading or authorizing; `tools` it listed last."""

    kind = "server.state"
    server: str
    status: str
    tools: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class LoaderMoved(DaemonEvent):
    """The tool loader's `what`: initialized, loaded, unloaded, used; on the wire `tools.{what}`."""

    kind = "tools"
    what: str
    turn: int
    tool: str = ""
    why: str = ""

    @property
    def of_a_call(self) -> bool:  # type: ignore[override]
        """A use comes with every call; what is on offer moves seldom."""
        return self.what == "used"


@dataclass(frozen=True, slots=True)
class ToolSwitched(DaemonEvent):
    """A user switched a tool on or off; what depends on it is in `also`."""

    kind = "tools.switched"
    tool: str
    user: str
    on: bool
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigurationReloaded(DaemonEvent):
    """The configuration was read again: changed keys now `live`, and those that need a restart."""

    kind = "configuration.reloaded"
    live: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UplinkChanged(DaemonEvent):
    """`up` tells which of the two wire names this has: `uplink.up` or `uplink.down`."""

    kind = "uplink"
    up: bool
    broker: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CallReceived(DaemonEvent):
    kind = "call.received"
    of_a_call = True
    call_id: str
    tool: str
    origin: str


@dataclass(frozen=True, slots=True)
class CallProgressed(DaemonEvent):
    kind = "call.progress"
    of_a_call = True
    call_id: str
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class CallAnswered(DaemonEvent):
    """The one answer. A call that waits is answered `pending`, and `call.completed` later."""

    kind = "call.answered"
    of_a_call = True
    call_id: str
    tool: str
    ok: bool
    route: str
    delivery: Json
    code: str = ""
    final: bool = True


@dataclass(frozen=True, slots=True)
class CallCompleted(DaemonEvent):
    """A call answered `pending` earlier has its result now."""

    kind = "call.completed"
    of_a_call = True
    call_id: str
    tool: str
    ok: bool
    delivery: Json


@dataclass(frozen=True, slots=True)
class DeliveryChanged(DaemonEvent):
    """A result got further on its way to the wearer, after its call was answered."""

    kind = "delivery"
    call_id: str
    report: DeliveryReport


@dataclass(frozen=True, slots=True)
class ConfirmationAsked(DaemonEvent):
    """A call waits for a yes; only its caller gets the token."""

    kind = "confirmation.asked"
    call_id: str
    tool: str
    preview: str
    expires_s: float
    particulars: tuple[str, ...] = ()
    """All that the wearer is shown, line by line."""


@dataclass(frozen=True, slots=True)
class ConfirmationDecided(DaemonEvent):
    """`outcome`: allowed, denied, expired, cancelled; `by`: the wearer, a token, nobody."""

    kind = "confirmation.decided"
    call_id: str
    tool: str
    outcome: str
    by: str


@dataclass(frozen=True, slots=True)
class PendingResolved(DaemonEvent):
    """Somebody handed in the result of a pending call; published once."""

    kind = "call.resolved"
    call_id: str
    tool: str


@dataclass(frozen=True, slots=True)
class CallOff(DaemonEvent):
    """The wearer does not want this running call any more (a double tap on its working mark)."""

    kind = "call.off"
    call_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class OfferTaken(DaemonEvent):
    """The wearer tapped what the result of this call offered ("tap to undo")."""

    kind = "offer.taken"
    call_id: str


@dataclass(frozen=True, slots=True)
class LensChanged(DaemonEvent):
    """The glasses acknowledged a page (or darkness: no lines)."""

    kind = "lens.acknowledged"
    scene: str
    page: int
    pages: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServiceCrashed(DaemonEvent):
    """A supervised service ended with an error and will be started again."""

    kind = "service.crashed"
    service: str
    error: str
    retry_in_s: float


@dataclass(frozen=True, slots=True)
class Alarmed(DaemonEvent):
    """Something needs a person: shown in `status` until it is over."""

    kind = "alarm"
    alarm: str
    text: str
    over: bool = False


def as_json(event: DaemonEvent) -> dict[str, Json]:
    """Render as `{event: kind, …}`, with nested dataclasses and enums as JSON."""
    name = event.kind
    if isinstance(event, UplinkChanged):
        name = "uplink.up" if event.up else "uplink.down"
    if isinstance(event, LoaderMoved):
        name = f"{event.kind}.{event.what}"
    values = {f.name: _plain(getattr(event, f.name)) for f in fields(event)}
    if "event" in values:  # what the glasses said; `event` is the name of the kind
        values["said"] = values.pop("event")
    return {"event": name, **values}


def _plain(value: Any) -> Json:
    if isinstance(value, DeliveryReport):
        return value.to_json()
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "__dataclass_fields__"):
        return {
            "type": type(value).__name__,
            **{f.name: _plain(getattr(value, f.name)) for f in fields(value)},
        }
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [_plain(v) for v in value]
    if isinstance(value, bytes):
        return value.hex()
    return value
