"""A validated registry: apps, their tools, and what was left out.

Documents are parsed by manifest.py, whose library the daemon need not keep in memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from tools_cache.api.tool import ToolDefinition
from tools_cache.frozen import FrozenDict
from tools_cache.registry.packed_tools import PackedTools

MAX_BYTES: Final = 8 * 1024 * 1024
"""Maximum bytes of a registry document: 10,000 tools of 800 bytes.

In use it takes half its size until its tools are looked at, then up to four times; reading it in a
child takes temporarily sixteen times: a daemon that read a second one of that size was at about
215 MiB, child included, below the unit's MemoryMax=.
"""
HARDWARE_KEY: Final = "io.glassd/hardware"
BUILD_KEY: Final = "io.glassd/build"


class Dropped(NamedTuple):
    """Something that was left out, and the reason as a text for people."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Detail:
    """A condition on hardware beyond its presence: a `field` of the capability record
    (`maxTextLines`, `canDisplayBitmap`, or ours: `lines`) that is `equal` to a value, or a number
    within bounds.
    """

    field: str
    equal: bool | float | str | None = None
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """Hardware an app needs. `type`: a MentraOS `HardwareType`, or a newer one. `instead`: another
    that will do, or "".
    """

    type: str
    required: bool = True
    description: str = ""
    details: tuple[Detail, ...] = ()
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A package of tools. `tool_requirements`: needs of single tools beyond the app's."""

    package: str
    name: str
    requirements: tuple[Requirement, ...] = ()
    tools: Sequence[ToolDefinition] = ()
    tool_requirements: Mapping[str, tuple[Requirement, ...]] = field(default_factory=FrozenDict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its tools, without building their definitions."""
        if isinstance(self.tools, PackedTools):
            return self.tools.names
        return tuple(tool.name for tool in self.tools)

    def packed(self) -> "App":
        """Return it with tools that are built when they are looked at."""
        if isinstance(self.tools, PackedTools):
            return self
        return replace(self, tools=PackedTools.of(self.tools))

    @property
    def plain(self) -> frozenset[str]:
        """The names of the tools about which a list of what is offered needs to know no more."""
        return self.tools.plain if isinstance(self.tools, PackedTools) else frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """A document ready for use. `sha256` is over the canonical JSON of `apps`, verified."""

    version: str
    sha256: str
    apps: tuple[App, ...]
    dropped: tuple[Dropped, ...] = ()
    commit: str = ""
    """The commit it was built from, if recorded."""

    def packed(self) -> "Registry":
        """Return it with tools that are built when they are looked at."""
        return replace(self, apps=tuple(app.packed() for app in self.apps))
