"""The status document: one state per layer, as reported by that layer, and what to do next."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict

from edge.core.recovery import ADAPTER_ISSUES
from edge.ports import GlassesStatus, UplinkStatus
from firmware_bridge.errors import RadioReason

SEEKING: Final = frozenset({"SEEKING", "CONNECTING", "PREPARING", "RESTING"})
_GLASSES: Final = ("model", "firmware", "address", "mtu", "transport", "battery", "case", "worn")

ALARMS: Final = tuple(
    "storage database edge_id bonds configuration"
    " uplink.taken_over uplink.refused enrolment".split()
)
"""Most important first: what may lose calls, then what separates the daemon from its glasses and
from the cloud. All others follow.
"""


class StatusFault(Struct, frozen=True):
    """A fault, and what a person can do about it. `kind` is a word for programs."""

    kind: str
    said: str
    fix: str


class MachineLook(Struct, frozen=True):
    """What the doctor's checks found on this machine. `radio_works` is None before the first check;
    `folders`: configured folders that cannot be read; `engines`: what speaks, with `name`,
    `languages` and `reason`.
    """

    radio: StatusFault | None = None
    radio_works: bool | None = None
    folders: tuple[StatusFault, ...] = ()
    engines: tuple[Mapping[str, Any], ...] = ()


class Layers(Struct, frozen=True):
    """What every layer reports at one moment."""

    version: str
    edge_id: str
    radio: str
    glasses: GlassesStatus
    uplink: UplinkStatus
    registry: Mapping[str, Any]
    calls: Mapping[str, Any]
    """Calls under way, and what `Metrics.summary` counted since the start."""
    audio: Mapping[str, Any]
    services: Sequence[Mapping[str, str]]
    alarms: Mapping[str, str] = field(default_factory=dict)
    bond: str = ""
    """How our glasses were paired, `lost`, or "" without a bond."""
    config_path: str = ""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    """Where the broker's address comes from: config, enrolled, or ""."""
    certificate_left_s: float | None = None
    servers: Sequence[Mapping[str, Any]] = ()
    """The other MCP servers, as in `GET /v1/servers`."""
    seen: MachineLook = MachineLook()
    microphone: Mapping[str, Any] = field(default_factory=dict)
    """Whether it is on, for what, what was heard last, or why nothing can be heard."""
    wearer: Mapping[str, str] = field(default_factory=dict)
    """The language and the time zone in which the wearer reads dates."""


def document(layers: Layers, now: float) -> dict[str, Any]:
    """Compose `GET /v1/status`. `now` is CLOCK_BOOTTIME, for the ages of capabilities."""
    glasses, uplink, left_s = layers.glasses, layers.uplink, layers.certificate_left_s
    unreadable = "; ".join(fault.said for fault in layers.seen.folders)
    return {
        "version": layers.version,
        "edge_id": layers.edge_id,
        "adapter": _adapter(layers),
        "link": _link(glasses),
        "glasses": {**_glasses(glasses, now), "bond": layers.bond},
        "uplink": {
            "state": uplink_state(uplink),
            "broker": uplink.broker,
            "reason": uplink.reason,
            "since_s": round(uplink.since_s, 1),
            "source": layers.source,
            "certificate_left_s": None if left_s is None else round(left_s),
        },
        "registry": dict(layers.registry),
        **({"folders": {"state": "failing", "reason": unreadable}} if unreadable else {}),
        "outbox": {
            "waiting": uplink.outbox,
            "oldest_s": round(uplink.outbox_oldest_s, 1) if uplink.outbox else None,
        },
        "calls": dict(layers.calls),
        "audio": {**layers.audio, "engines": [dict(engine) for engine in layers.seen.engines]},
        "microphone": dict(layers.microphone),
        "wearer": dict(layers.wearer),
        **({"servers": _servers(layers.servers)} if layers.servers else {}),
        "services": [dict(service) for service in layers.services],
        "alarms": _alarms(layers),
        "configuration": dict(layers.configuration),
        "next_action": next_action(layers),
    }


def _adapter(layers: Layers) -> dict[str, str]:
    fault = _radio_fault(layers)
    glasses = layers.glasses
    of_the_glasses = glasses.issue not in {"", RadioReason.NOT_PAIRED, *ADAPTER_ISSUES}
    works = (
        glasses.ready or layers.seen.radio_works or (glasses.state == "RESTING" and of_the_glasses)
    )
    state = "failing" if fault else "ok" if works else "unknown"
    return {
        "radio": layers.radio,
        "state": state,
        "issue": fault.kind if fault else "",
        "reason": fault.said if fault else "",
        "hint": fault.fix if fault else "",
    }


def _radio_fault(layers: Layers) -> StatusFault | None:
    """Return what is wrong with the radio: as the doctor sees it, else from the link's last
    failure.
    """
    glasses = layers.glasses
    if glasses.ready:
        return None
    if layers.seen.radio is None and glasses.issue in ADAPTER_ISSUES:
        return StatusFault(glasses.issue, glasses.reason, glasses.hint)
    return layers.seen.radio


def _link(glasses: GlassesStatus) -> dict[str, Any]:
    """Return the link's state; faults of the radio are left out here."""
    ours = glasses.issue not in ADAPTER_ISSUES
    return {
        "state": glasses.state,
        "reason": glasses.reason,
        "attempts": glasses.attempts,
        "issue": glasses.issue if ours else "",
        "hint": glasses.hint if ours else "",
        "step": glasses.step,
    }


def _glasses(glasses: GlassesStatus, now: float) -> dict[str, Any]:
    known = glasses.capabilities
    return {
        "state": "ready" if glasses.ready else "away" if known else "never seen",
        **{key: getattr(glasses, key) for key in _GLASSES},
        "sides": {side.value: asdict(how) for side, how in glasses.sides.items()},
        "skew_ms": glasses.skew_ms,
        "stale": glasses.stale,
        "capabilities": known.report(now) if known else {},
    }


def _servers(servers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many servers there are, which are away, and why."""
    on = [one for one in servers if one["enabled"]]
    away = {str(one["id"]): str(one["error"]) for one in on if one["error"]}
    return {
        "state": "failed" if away and len(away) == len(on) else "ok" if on else "off",
        "configured": len(servers),
        "tools": sum(len(one["tools"]) for one in on),
        "away": away,
        "reason": "; ".join(f"{name}: {why}" for name, why in away.items())[:200],
    }


def uplink_state(uplink: UplinkStatus) -> str:
    if not uplink.configured:
        return "not configured"
    return "up" if uplink.up else "down"


def _alarms(layers: Layers) -> dict[str, str]:
    """Return the alarms, the most important first, else in the order in which they were raised."""
    return dict(
        sorted(
            layers.alarms.items(),
            key=lambda item: ALARMS.index(item[0]) if item[0] in ALARMS else len(ALARMS),
        )
    )


def next_action(layers: Layers) -> str:
    """Return the one thing a person should do next; "" if all is well."""
    glasses, uplink = layers.glasses, layers.uplink
    for alarm in _alarms(layers).values():
        return alarm
    crashed = [s["name"] for s in layers.services if s.get("state") == "crashed"]
    if crashed:
        return (
            f"service {crashed[0]} keeps failing: glassd doctor looks for the "
            "cause; see also the log (journalctl -u glassd)"
        )
    if fault := _radio_fault(layers):
        return fault.fix or fault.said
    if glasses.hint:
        return glasses.hint
    held = layers.configuration.get("needs_restart")
    if held:
        return (
            "What changed in the configuration needs a restart to take force "
            f"({', '.join(held)}): systemctl restart glassd"
        )
    if not glasses.ready and glasses.capabilities is None:
        return "Switch your glasses on near this machine, or try the mock ones: glassd demo"
    if not glasses.ready:
        return (
            f"The glasses ({glasses.model}) are away; "
            "they are being looked for. Are they switched on?"
        )
    lost = [side.value for side, how in glasses.sides.items() if how.state != "up"]
    if lost:
        return (
            f"The {lost[0]} side of the glasses is away, the other carries on; "
            "it is being looked for. Is it out of its case?"
        )
    if uplink.configured and not uplink.up:
        return uplink.hint or (
            f"The broker {uplink.broker} is not reachable; "
            "local tools work meanwhile. Where it ends: glassd doctor"
        )
    if layers.seen.folders:
        return f"{layers.seen.folders[0].said}: {layers.seen.folders[0].fix}"
    if problem := layers.registry.get("problem"):
        hint = (layers.registry.get("cloud") or {}).get("hint")
        return (
            f"{problem}. {hint or 'It is fetched again by itself; at once: glassd registry sync'}"
        )
    for name, why in _servers(layers.servers)["away"].items():
        return (
            f"The MCP server {name} cannot be used: {why}. What to do: "
            f"glassd doctor; then: glassd servers refresh {name}"
        )
    if own := _own_tools(layers.registry.get("own") or {}):
        return own
    if not uplink.configured:
        where = layers.config_path or "/etc/glassd/glassd.toml"
        return (
            "Local tools work. For the cloud's tools: glassd up CODE, "
            f"or set [uplink] host and [cloud] url in {where}"
        )
    return ""


def _own_tools(own: Mapping[str, Any]) -> str:
    """Return why one of the owner's tools is left out, and how many are."""
    withheld = [f"{name}: {reason}" for name, reason in own.get("withheld", {}).items()]
    wrong = [*own.get("problems", ()), *withheld]
    if not wrong:
        return ""
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return f"One of your own tools is left out{more}: {wrong[0]}; glassd doctor tells where"
