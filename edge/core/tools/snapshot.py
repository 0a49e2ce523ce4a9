"""The registry at one moment: every tool, active, or hidden with its reason."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from tools_cache.api.tool import ToolDefinition

DISABLED: Final = "disabled in the configuration"
"""Why a tool is hidden that the owner disabled."""


class Entry(Struct, frozen=True):
    """One tool. `hidden`: why it is not active, for people; "" if it is. `missing`: the hardware it
    lacks; `without`: optional hardware it lacks; `warnings`: the same for people; `stale`: the
    glasses are away.
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
    """The registry at one moment; immutable, so a turn can keep it."""

    version: str
    _entries: tuple[Entry, ...]
    _by_name: Mapping[str, Entry] = field(compare=False)

    @classmethod
    def of(cls, version: str, entries: Iterable[Entry]) -> "Snapshot":
        """Create one, ordered by name."""
        ordered = tuple(sorted(entries, key=lambda e: e.definition.name))
        return cls(version, ordered, MappingProxyType({e.definition.name: e for e in ordered}))

    def find(self, name: str) -> Entry | None:
        """Return a tool by its canonical name, hidden ones included."""
        return self._by_name.get(name)

    def entries(self) -> tuple[Entry, ...]:
        """Return all tools by name, hidden ones included."""
        return self._entries

    @property
    def filtered(self) -> dict[str, tuple[str, ...]]:
        """The packages with tools that these glasses cannot run, and the hardware they lack."""
        found: dict[str, tuple[str, ...]] = {}
        for entry in self._entries:
            if entry.missing:
                package = entry.definition.name.partition(":")[0]
                found[package] = tuple(dict.fromkeys((*found.get(package, ()), *entry.missing)))
        return found

    @property
    def in_force(self) -> tuple[Entry, ...]:
        """The tools that are not hidden."""
        return tuple(e for e in self._entries if not e.hidden)
