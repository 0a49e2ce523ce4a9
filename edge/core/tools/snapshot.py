"""The registry at one moment: every tool, active, or hidden with its reason."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from tools_cache.api.tool import ToolDefinition

DISABLED: Final = "disabled in the configuration"
"""Why a tool is hidden that the owner does not want."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool in a snapshot. `hidden` says, in words for a person, why it is not active; empty
    when it is. `missing` names the hardware it lacks, `without` what it could use and lacks,
    `warnings` say that in words; `stale` marks that the answer rests on glasses that are away.
    """

    definition: ToolDefinition
    app_name: str
    hidden: str = ""
    missing: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The registry at one moment; immutable. A turn that holds one is not touched by what happens
    to the registry meanwhile.
    """

    version: str
    _entries: tuple[Entry, ...]
    _by_name: Mapping[str, Entry] = field(compare=False)

    @classmethod
    def of(cls, version: str, entries: Iterable[Entry]) -> "Snapshot":
        """Make one; its order is that of the canonical names."""
        ordered = tuple(sorted(entries, key=lambda e: e.definition.name))
        return cls(version, ordered, MappingProxyType({e.definition.name: e for e in ordered}))

    def find(self, name: str) -> Entry | None:
        """Look a canonical name up, hidden tools included."""
        return self._by_name.get(name)

    def entries(self) -> tuple[Entry, ...]:
        """All tools in deterministic order, hidden ones included."""
        return self._entries

    @property
    def filtered(self) -> dict[str, tuple[str, ...]]:
        """The packages of which these glasses leave something out, and the hardware they lack
        for it.
        """
        found: dict[str, tuple[str, ...]] = {}
        for entry in self._entries:
            if entry.missing:
                package = entry.definition.name.partition(":")[0]
                found[package] = tuple(dict.fromkeys((*found.get(package, ()), *entry.missing)))
        return found

    @property
    def in_force(self) -> tuple[Entry, ...]:
        """Those that are not hidden."""
        return tuple(e for e in self._entries if not e.hidden)
