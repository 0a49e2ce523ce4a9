"""Where a call is answered: tool × glasses × uplink × time left → a route and its reason.

Refuses to carry anything out, and to know how a route is travelled.
"""

from dataclasses import dataclass
from enum import StrEnum

from tools_cache.tool import CallOrigin, ErrorCode, Source, ToolDefinition


class RouteKind(StrEnum):
    """The ways a call can go; `meta.route` carries the word."""

    LOCAL = "local"
    GLASSES = "glasses"
    CLOUD = "cloud"
    QUEUE = "queue"
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class Route:
    """A decision. A fallback names the error the caller gets; `reason` is for the audit line and for people."""

    kind: RouteKind
    reason: str
    code: ErrorCode | None = None


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The world as it is when a call is routed."""

    origin: CallOrigin
    glasses_ready: bool
    uplink_configured: bool
    uplink_up: bool
    uplink_reason: str = ""
    time_left_s: float = 30.0


def choose(tool: ToolDefinition, now: Circumstances) -> Route:
    """Pick the one way this call goes now."""
    if now.time_left_s <= 0:
        return Route(RouteKind.FALLBACK, "its time was over before it began", ErrorCode.DEADLINE_EXPIRED)
    if tool.source is Source.LOCAL:
        return Route(RouteKind.LOCAL, "lives on this edge")
    if tool.source is Source.GLASSES:
        return _on_glasses(tool, now)
    if tool.source is Source.UPSTREAM:
        return Route(RouteKind.FALLBACK, "no upstream server is connected", ErrorCode.TOOL_UNAVAILABLE)
    return _in_the_cloud(tool, now)


def _on_glasses(tool: ToolDefinition, now: Circumstances) -> Route:
    if now.glasses_ready:
        return Route(RouteKind.GLASSES, "the glasses are here")
    if tool.read_only:
        return Route(RouteKind.GLASSES, "the glasses are away; a tool that only reads can say so")
    return Route(RouteKind.FALLBACK, "the glasses are away", ErrorCode.SESSION_INACTIVE)


def _in_the_cloud(tool: ToolDefinition, now: Circumstances) -> Route:
    if now.origin is CallOrigin.CLOUD:
        return Route(RouteKind.FALLBACK, "the cloud asked for a tool of its own", ErrorCode.UNSUPPORTED)
    if now.uplink_up:
        return Route(RouteKind.CLOUD, "the uplink is up")
    if not now.uplink_configured:
        return Route(RouteKind.FALLBACK, "no cloud is configured", ErrorCode.OFFLINE)
    why = now.uplink_reason or "the uplink is down"
    if tool.queueable:
        return Route(RouteKind.QUEUE, why)
    return Route(RouteKind.FALLBACK, why, ErrorCode.OFFLINE)
