"""What happens inside the daemon, as data: one frozen class per kind of event.

`as_json` is the form of `GET /v1/events` and of `glassd events`: `{event, …fields}`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import asdict

from firmware_bridge.messages import Event as GlassesEvent
from tools_cache.api.tool import DeliveryReport, Json


class DaemonEvent(Struct, frozen=True):
    """Base of everything on the bus. `kind` is its name on the wire."""

    kind: ClassVar[str] = ""
    of_a_call: ClassVar[bool] = False
    """Progress of a call: several per call, and of use only to those who watch calls."""


class LinkChanged(DaemonEvent, frozen=True):
    """The link moved to another state of `core/link_state.py`."""

    kind = "link.state"
    state: str
    reason: str = ""


class GlassesReady(DaemonEvent, frozen=True):
    """Connected, greeted, capabilities known. `mtu` is the ATT MTU in bytes."""

    kind = "glasses.ready"
    model: str
    firmware: str
    address: str
    mtu: int
    transport: str


class GlassesLost(DaemonEvent, frozen=True):
    kind = "glasses.lost"
    reason: str


class GlassesPaired(DaemonEvent, frozen=True):
    """A bond was made and is on disk; `how` as `firmware_bridge.bonding.How` says it."""

    kind = "glasses.paired"
    model: str
    id: str
    how: str


class GlassesUnpaired(DaemonEvent, frozen=True):
    """Our side of a bond was forgotten because a person asked for it."""

    kind = "glasses.unpaired"
    model: str
    id: str


class GlassesSaid(DaemonEvent, frozen=True):
    """The wearer or the glasses did something."""

    kind = "glasses.event"
    event: GlassesEvent


class PrivateWords(GlassesSaid, frozen=True):
    """Speech while transcripts are suppressed: acted on here, neither published nor stored."""


class CapabilitiesLearned(DaemonEvent, frozen=True):
    """The capability record changed: connect, run-time change, or glasses gone (`stale`)."""

    kind = "capabilities.changed"
    model: str
    stale: bool


class CapabilitiesPublished(DaemonEvent, frozen=True):
    """The broker acknowledged the capability report."""

    kind = "capabilities.published"
    model: str
    tools: int


class RegistrySynced(DaemonEvent, frozen=True):
    """A registry is active: `tools` in all, `compatible` with these glasses, from `origin`."""

    kind = "registry.synced"
    version: str
    tools: int
    compatible: int
    origin: str
    dropped: tuple[str, ...] = ()


class ToolsListChanged(DaemonEvent, frozen=True):
    """The list of offered tools has changed; published once, at a turn boundary."""

    kind = "tools_list_changed"
    version: str
    tools: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class ToolsFiltered(DaemonEvent, frozen=True):
    """These glasses lack hardware for `count` apps; `apps`: package → missing, the first 50."""

    kind = "tools.filtered"
    apps: Mapping[str, tuple[str, ...]]
    count: int


class ServerChanged(DaemonEvent, frozen=True):
    """An MCP server is connected, disconnected, loading or authorizing; `tools` it listed last."""

    kind = "server.state"
    server: str
    status: str
    tools: int
    error: str = ""


class LoaderMoved(DaemonEvent, frozen=True):
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


class ToolSwitched(DaemonEvent, frozen=True):
    """A user switched a tool on or off; what depends on it is in `also`."""

    kind = "tools.switched"
    tool: str
    user: str
    on: bool
    also: tuple[str, ...] = ()


class ConfigurationReloaded(DaemonEvent, frozen=True):
    """The configuration was read again: changed keys now `live`, and those that need a restart."""

    kind = "configuration.reloaded"
    live: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


class UplinkChanged(DaemonEvent, frozen=True):
    """`up` tells which of the two wire names this has: `uplink.up` or `uplink.down`."""

    kind = "uplink"
    up: bool
    broker: str
    reason: str = ""


class CallReceived(DaemonEvent, frozen=True):
    kind = "call.received"
    of_a_call = True
    call_id: str
    tool: str
    origin: str


class CallProgressed(DaemonEvent, frozen=True):
    kind = "call.progress"
    of_a_call = True
    call_id: str
    tool: str
    text: str


class CallAnswered(DaemonEvent, frozen=True):
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


class CallCompleted(DaemonEvent, frozen=True):
    """A call answered `pending` earlier has its result now."""

    kind = "call.completed"
    of_a_call = True
    call_id: str
    tool: str
    ok: bool
    delivery: Json


class DeliveryChanged(DaemonEvent, frozen=True):
    """A result got further on its way to the wearer, after its call was answered."""

    kind = "delivery"
    call_id: str
    report: DeliveryReport


class ConfirmationAsked(DaemonEvent, frozen=True):
    """A call waits for a yes; only its caller gets the token."""

    kind = "confirmation.asked"
    call_id: str
    tool: str
    preview: str
    expires_s: float
    particulars: tuple[str, ...] = ()
    """All that the wearer is shown, line by line."""


class ConfirmationDecided(DaemonEvent, frozen=True):
    """`outcome`: allowed, denied, expired, cancelled; `by`: the wearer, a token, nobody."""

    kind = "confirmation.decided"
    call_id: str
    tool: str
    outcome: str
    by: str


class PendingResolved(DaemonEvent, frozen=True):
    """Somebody handed in the result of a pending call; published once."""

    kind = "call.resolved"
    call_id: str
    tool: str


class CallOff(DaemonEvent, frozen=True):
    """The wearer does not want this running call any more (a double tap on its working mark)."""

    kind = "call.off"
    call_id: str
    reason: str


class OfferTaken(DaemonEvent, frozen=True):
    """The wearer tapped what the result of this call offered ("tap to undo")."""

    kind = "offer.taken"
    call_id: str


class LensChanged(DaemonEvent, frozen=True):
    """The glasses acknowledged a page (or darkness: no lines)."""

    kind = "lens.acknowledged"
    scene: str
    page: int
    pages: int
    lines: tuple[str, ...]


class ServiceCrashed(DaemonEvent, frozen=True):
    """A supervised service ended with an error and will be started again."""

    kind = "service.crashed"
    service: str
    error: str
    retry_in_s: float


class Alarmed(DaemonEvent, frozen=True):
    """Something needs a person: shown in `status` until it is over."""

    kind = "alarm"
    alarm: str
    text: str
    over: bool = False


_LEFT_OUT: Final = frozenset({"password"})
"""Fields of what glasses say, which only the call that asked for them is answered with."""


def as_json(event: DaemonEvent) -> dict[str, Json]:
    """Render as `{event: kind, …}`, with nested values and enums as JSON."""
    name = event.kind
    if isinstance(event, UplinkChanged):
        name = "uplink.up" if event.up else "uplink.down"
    if isinstance(event, LoaderMoved):
        name = f"{event.kind}.{event.what}"
    values = {name: _plain(value) for name, value in asdict(event).items()}
    if "event" in values:  # what the glasses said; `event` is the name of the kind
        values["said"] = values.pop("event")
    return {"event": name, **values}


def _plain(value: Any) -> Json:
    if isinstance(value, DeliveryReport):
        return value.to_json()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Struct):
        return {
            "type": type(value).__name__,
            **{name: _plain(part) for name, part in asdict(value).items() if name not in _LEFT_OUT},
        }
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [_plain(v) for v in value]
    if isinstance(value, bytes):
        return value.hex()
    return value
