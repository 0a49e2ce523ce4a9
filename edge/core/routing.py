"""Where a call is answered: tool × glasses × uplink × time left → a route and its reason.

`Router` in `calls/backends.py` gathers the circumstances.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    ExecutionType,
    Source,
    ToolCall,
    ToolDefinition,
)


class RouteKind(StrEnum):
    """The routes of a call, as in `meta.route`."""

    LOCAL = "local"
    GATEWAY = "gateway"
    """sent over HTTP by this edge: a tool of its owner"""
    GLASSES = "glasses"
    CLOUD = "cloud"
    QUEUE = "queue"
    WEARER = "wearer"
    """a question on the glasses: a `space` tool"""
    UPSTREAM = "upstream"
    """sent to another MCP server"""
    LATER = "later"
    """the caller submits the result"""
    CACHE = "cache"
    """the last good result, because its route is not available"""
    FALLBACK = "fallback"


HERE: Final = frozenset({RouteKind.LOCAL, RouteKind.GATEWAY, RouteKind.GLASSES, RouteKind.UPSTREAM})
"""Routes that this process runs itself."""
ELSEWHERE: Final = frozenset({RouteKind.CLOUD, RouteKind.QUEUE, RouteKind.WEARER, RouteKind.LATER})
"""Routes that do not depend on this process: after a restart their answer is waited for."""


class Route(NamedTuple):
    """A decision. A fallback has the caller's error; `reason` is for the audit log and people."""

    kind: RouteKind
    reason: str
    code: ErrorCode | None = None


class Circumstances(Struct, frozen=True):
    """The conditions under which a call is routed."""

    origin: CallOrigin
    glasses_ready: bool
    uplink_configured: bool
    uplink_up: bool
    uplink_reason: str = ""
    time_left_s: float = 30.0
    glasses_known: bool = False
    worn: bool | None = None


def choose(tool: ToolDefinition, now: Circumstances) -> Route:
    """Choose the route of a call."""
    if now.time_left_s <= 0:
        return Route(
            RouteKind.FALLBACK, "its time was over before it began", ErrorCode.DEADLINE_EXPIRED
        )
    if why := unmet(tool, glasses=now.glasses_ready, uplink=now.uplink_up, worn=now.worn):
        return Route(RouteKind.FALLBACK, why, ErrorCode.TOOL_UNAVAILABLE)
    match kind_of(tool):
        case RouteKind.WEARER:
            return _from_the_wearer(now)
        case RouteKind.GLASSES:
            return _on_glasses(tool, now)
        case RouteKind.UPSTREAM if now.origin is CallOrigin.CLOUD:
            return Route(
                RouteKind.FALLBACK,
                "other servers' tools are not the cloud's to call",
                ErrorCode.UNSUPPORTED,
            )
        case RouteKind.CLOUD:
            return _in_the_cloud(tool, now)
        case kind:
            return Route(kind, _REASONS[kind])


def kind_of(tool: ToolDefinition) -> RouteKind:
    """Return the route that calls of this tool take while nothing prevents it."""
    if tool.execution_type is ExecutionType.SPACE:
        return RouteKind.WEARER
    if tool.source is Source.CLOUD:
        return RouteKind.CLOUD
    if tool.asynchronous:
        return RouteKind.LATER
    if tool.source is Source.LOCAL:
        return RouteKind.GATEWAY if tool.endpoint else RouteKind.LOCAL
    return RouteKind.GLASSES if tool.source is Source.GLASSES else RouteKind.UPSTREAM


_REASONS: Final = {
    RouteKind.LATER: "its result is handed in later",
    RouteKind.GATEWAY: "asked at its own address",
    RouteKind.LOCAL: "lives on this edge",
    RouteKind.UPSTREAM: "a tool of another server",
}


_UNMET: Final = {
    ("glasses", True): "it works only while the glasses are connected",
    ("glasses", False): "it works only while the glasses are away",
    ("uplink", True): "it works only while the cloud is reachable",
    ("uplink", False): "it works only while the cloud is away",
    ("worn", True): "it works only while the glasses are worn",
    ("worn", False): "it works only while the glasses are not worn",
    ("configured", False): "it works only while it is not configured",
}


def unmet(tool: ToolDefinition, *, glasses: bool, uplink: bool, worn: bool | None) -> str:
    """Return which declared condition does not hold; "" if all do. A tool that lacks a setting is
    not in the registry, so each that is here is configured.
    """
    facts = {"glasses": glasses, "uplink": uplink, "worn": worn is True, "configured": True}
    return next(
        (
            _UNMET[fact, wanted]
            for fact, wanted in tool.available_when.items()
            if facts[fact] is not wanted
        ),
        "",
    )


def _from_the_wearer(now: Circumstances) -> Route:
    if now.glasses_known:
        return Route(RouteKind.WEARER, "a question for the wearer")
    return Route(RouteKind.FALLBACK, "no glasses were ever connected", ErrorCode.SESSION_INACTIVE)


def _on_glasses(tool: ToolDefinition, now: Circumstances) -> Route:
    if now.glasses_ready:
        return Route(RouteKind.GLASSES, "the glasses are here")
    if tool.read_only:
        return Route(RouteKind.GLASSES, "the glasses are away; a tool that only reads can say so")
    return Route(RouteKind.FALLBACK, "the glasses are away", ErrorCode.SESSION_INACTIVE)


def _in_the_cloud(tool: ToolDefinition, now: Circumstances) -> Route:
    if now.origin is CallOrigin.CLOUD:
        return Route(
            RouteKind.FALLBACK, "the cloud asked for a tool of its own", ErrorCode.UNSUPPORTED
        )
    if now.uplink_up:
        return Route(RouteKind.CLOUD, "the uplink is up")
    if not now.uplink_configured:
        return Route(RouteKind.FALLBACK, "no cloud is configured", ErrorCode.OFFLINE)
    why = now.uplink_reason or "the uplink is down"
    if tool.queueable or tool.asynchronous:
        return Route(RouteKind.QUEUE, why)
    return Route(RouteKind.FALLBACK, why, ErrorCode.OFFLINE)


def life_s(call: ToolCall, tool: ToolDefinition, route: Route) -> float:
    """Return how long a call may live: one that can wait lives longer than its caller waits."""
    if call.origin is CallOrigin.CLOUD:
        return call.ttl_s
    if tool.asynchronous and route.code is None:
        return tool.pending_ttl_s
    if tool.queueable and route.kind in (RouteKind.CLOUD, RouteKind.QUEUE):
        return tool.queue_ttl_s
    return call.ttl_s
