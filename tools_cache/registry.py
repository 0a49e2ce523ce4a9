"""A registry as it was read and checked: apps, their tools, what was left out. Words only.

Refuses to know documents: those are read by manifest.py, with a library that the daemon need not
keep in memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tools_cache.frozen import FrozenDict
from tools_cache.tool import ToolDefinition

MAX_BYTES: Final = 8 * 1024 * 1024
"""One registry document: 10,000 tools of 800 bytes. In force it costs eight times its size, and
reading it in a child, for a moment, sixteen times: a daemon that took a second one of that size was
at about 215 MiB, child included, below the unit's MemoryMax=.
"""
HARDWARE_KEY: Final = "io.glassd/hardware"
BUILD_KEY: Final = "io.glassd/build"


class Dropped(NamedTuple):
    """What was left out, and why, in words for a person."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Detail:
    """What hardware must be besides being there: a `field` of the capability record
    (`maxTextLines`, `canDisplayBitmap`, or ours: `lines`) that is `equal` to something, or a number
    within bounds. Declared, never an expression (S2-133).
    """

    field: str
    equal: bool | float | str | None = None
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """Hardware an app needs. `type` is a MentraOS `HardwareType`, or a word newer than this
    version.
    """

    type: str
    required: bool = True
    description: str = ""
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A package of tools. `tool_requirements` holds what single tools need beyond the app
    (extension S0-70).
    """

    package: str
    name: str
    requirements: tuple[Requirement, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    tool_requirements: Mapping[str, tuple[Requirement, ...]] = field(default_factory=FrozenDict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """A document that may take force. `sha256` is over the canonical JSON of `apps`, checked."""

    version: str
    sha256: str
    apps: tuple[App, ...]
    dropped: tuple[Dropped, ...] = ()
    commit: str = ""
    """The commit it was built from, where the build said it."""
