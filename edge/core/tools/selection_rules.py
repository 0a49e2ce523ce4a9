"""Whether a tool is on for a user, its dependencies, and whether it may be switched.

Hardware is checked elsewhere (`compatibility`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from edge.core.tools.selection import Loader, closure
from edge.core.tools.snapshot import DISABLED
from tools_cache.api.tool import (
    ErrorCode,
    ExecutionType,
    RateLimit,
    Source,
    ToolDefinition,
    ToolError,
)
from tools_cache.nearest import did_you_mean

OFFERED: Final = "offered"
AVAILABLE: Final = "available"
HIDDEN: Final = "hidden"
BY_OWNER: Final = DISABLED
BY_USER: Final = "disabled: glassd tools enable {name}"
UNLOADED: Final = "not loaded: registry:search and registry:load bring it"
FOR_PROGRAMS: Final = "only the cloud and other tools call it"
META: Final = ("registry:search", "registry:load", "registry:invoke")
"""Offered while not all tools are."""
DESCRIBE: Final = "registry:describe"
HERE: Final = frozenset({Source.LOCAL, Source.GLASSES})


@dataclass(frozen=True, slots=True)
class UserRules:
    """One user's configuration: denied names (`package:tool`, `package:*`, `*`), and rates."""

    denied: tuple[str, ...] = ()
    rates: Mapping[str, RateLimit] = field(default_factory=dict)


class Facts(NamedTuple):
    """The conditions that tools can depend on."""

    glasses: bool = False
    uplink: bool = False
    worn: bool | None = None


class Choice(NamedTuple):
    """A tool's state for one user: offered, available (callable, but not shown to models) or
    hidden; `reason`: why it is not offered, for people. `on`: not switched off.
    """

    state: str
    reason: str = ""
    on: bool = True
    loaded: bool = True


class Switched(NamedTuple):
    """Result of a switch: the tools `changed`, and warnings for people."""

    tool: str
    on: bool
    changed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class CannotSwitch(Exception):
    """This tool cannot be switched. `code`: NOT_FOUND or CONFLICT; `fix`: what to do instead."""

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message)
        self.code = code
        self.fix = fix


def named(name: str, patterns: Collection[str]) -> bool:
    """Return whether `package:tool` matches a name, `package:*` or `*`."""
    return bool(patterns) and (
        "*" in patterns or name in patterns or f"{name.partition(':')[0]}:*" in patterns
    )


def built_in(tool: ToolDefinition) -> bool:
    """Return whether it is one of our tools for finding tools: always on, not configurable."""
    return tool.source is Source.LOCAL and tool.execution_type is ExecutionType.INTERNAL


def off_because(tool: ToolDefinition, rules: UserRules, switches: Mapping[str, bool]) -> str:
    """Return why this tool is off for a user; "" if it is on, as all are by default."""
    return "" if built_in(tool) else off(tool.name, rules, switches)


def off(name: str, rules: UserRules, switches: Mapping[str, bool]) -> str:
    """Return why the tool of this name is off for a user, if it is not built in."""
    if named(name, rules.denied):
        return BY_OWNER
    return BY_USER.format(name=name) if switches.get(name) is False else ""


def refused(name: str, why: str) -> ToolError:
    """Return the error for a tool that is off for its user."""
    return ToolError.of(
        ErrorCode.USER_DISABLED, f"Tool {name} is not active: {why}", details={"reason": why}
    )


def shut(name: str, why: str) -> ToolError:
    """Return the error for a tool that a gate makes unavailable."""
    return ToolError.of(
        ErrorCode.TOOL_UNAVAILABLE,
        f"Tool {name} is not available now: {why}",
        details={"reason": why},
    )


# ------------------------------------------------------------------ switching


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools there are, why each is off (for this user), and why a gate makes it unavailable."""

    find: Callable[[str], ToolDefinition | None]
    tools: Callable[[], Iterable[ToolDefinition]]
    off: Callable[[ToolDefinition], str]
    gate: Callable[[ToolDefinition], str]

    def needs(self, name: str) -> tuple[str, ...]:
        tool = self.find(name)
        return tool.depends_on if tool is not None else ()


def enable(name: str, known: Catalogue) -> Switched:
    """Switch a tool on, and all its dependencies. Raises `CannotSwitch` if it is unknown,
    unavailable or disabled by the owner.
    """
    tool = _there(name, known)
    if why := known.gate(tool):
        raise CannotSwitch(
            "CONFLICT",
            f"{name} cannot be enabled: {why}",
            "it becomes available by itself when that changes",
        )
    if known.off(tool) == BY_OWNER:
        raise CannotSwitch(
            "CONFLICT",
            f"{name} is {BY_OWNER}",
            "remove it from disabled_tools in [policy] of the configuration",
        )
    changed, warnings = [name] if known.off(tool) else [], []
    for needed in closure([name], known.needs)[1:]:
        below = known.find(needed)
        if below is None:
            warnings.append(f"it depends on {needed}, which does not exist")
        elif known.off(below) == BY_OWNER:
            warnings.append(f"it depends on {needed}, which is {BY_OWNER}")
        elif why := known.gate(below):
            warnings.append(f"it depends on {needed}: {why}")
        elif known.off(below):
            changed.append(needed)
    return Switched(name, True, tuple(changed), tuple(warnings))


def disable(name: str, known: Catalogue) -> Switched:
    """Switch a tool off, with a warning for each dependant. Raises `CannotSwitch` if it is unknown
    or built in.
    """
    tool = _there(name, known)
    if built_in(tool):
        raise CannotSwitch(
            "CONFLICT",
            f"{name} is built in and not configurable",
            "leave it: it is offered only when it is needed",
        )
    left = dependants(name, known)
    warnings = tuple(f"{other} depends on it and may not work without it" for other in left)
    return Switched(name, False, () if known.off(tool) else (name,), warnings)


def dependants(name: str, known: Catalogue) -> tuple[str, ...]:
    """Return the tools that are on and depend on this one, directly or not."""
    above: dict[str, list[str]] = {}
    on = {tool.name: tool for tool in known.tools() if tool.depends_on}
    for tool in on.values():
        for needed in tool.depends_on:
            above.setdefault(needed, []).append(tool.name)
    found = closure([name], lambda below: above.get(below, ()))[1:]
    return tuple(sorted(other for other in found if not known.off(on[other])))


def _there(name: str, known: Catalogue) -> ToolDefinition:
    tool = known.find(name)
    if tool is None:
        near = did_you_mean(name, [known_tool.name for known_tool in known.tools()])
        fix = (
            f"{near} (all of them: glassd tools --all)" if near else "list them: glassd tools --all"
        )
        raise CannotSwitch("NOT_FOUND", f"there is no tool {name[:80]}", fix)
    return tool


# ------------------------------------------------------------------ our own tools for finding tools


def helpers(now: Loader, there: Collection[str]) -> tuple[str, ...]:
    """Return which of our tools for finding tools are offered now."""
    wanted = (*(META if now.crowded else ()), *((DESCRIBE,) if now.many else ()))
    return tuple(name for name in wanted if name in there)


def is_helper(name: str) -> bool:
    return name in META or name == DESCRIBE
