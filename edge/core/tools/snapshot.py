"""The registry at one moment: every tool, active, or hidden with its reason."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, overload

from tools_cache.api.tool import ToolDefinition

DISABLED: Final = "disabled in the configuration"
"""Why a tool is hidden that the owner disabled."""


@dataclass(frozen=True, slots=True)
class Entry:
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
    content: object = field(repr=False)
    """Equal only if all entries are."""
    _entries: Sequence[Entry] = field(compare=False, repr=False)
    _by_name: Mapping[str, Entry] = field(compare=False, repr=False)
    names: tuple[str, ...] = field(compare=False, repr=False)
    """Of all tools, in order."""
    active: tuple[str, ...] = field(compare=False, repr=False)
    """The names of the tools that are not hidden, in order."""
    plain: frozenset[str] = field(compare=False, repr=False)
    """The names of tools about which a list of what is offered needs to know no more."""
    filtered: Mapping[str, tuple[str, ...]] = field(compare=False, repr=False)
    """The packages with tools that these glasses cannot run, and the hardware they lack."""

    @classmethod
    def of(cls, version: str, entries: Iterable[Entry]) -> "Snapshot":
        """Create one of entries that are made already, ordered by name."""
        ordered = tuple(sorted(entries, key=lambda e: e.definition.name))
        by_name = {e.definition.name: e for e in ordered}
        lacking: dict[str, tuple[str, ...]] = {}
        for name, entry in by_name.items():
            add_lacking(lacking, name.partition(":")[0], entry.missing)
        return cls(
            version,
            content=ordered,
            _entries=ordered,
            _by_name=MappingProxyType(by_name),
            names=tuple(by_name),
            active=tuple(name for name, entry in by_name.items() if not entry.hidden),
            plain=frozenset(),
            filtered=lacking,
        )

    def find(self, name: str) -> Entry | None:
        """Return a tool by its canonical name, hidden ones included."""
        try:
            return self._by_name[name]
        except KeyError:
            return None

    def entries(self) -> Sequence[Entry]:
        """Return all tools by name, hidden ones included; each is made when it is looked at."""
        return self._entries

    @property
    def in_force(self) -> Sequence[Entry]:
        """The tools that are not hidden."""
        return Entries(self._by_name, self.active)

    def particular(self) -> Iterator[Entry]:
        """Yield the tools that are not plain."""
        return (self._by_name[name] for name in self.names if name not in self.plain)

    def active_definitions(self) -> Iterator[ToolDefinition]:
        """Yield the definitions of the active tools that are not plain."""
        names = (name for name in self.active if name not in self.plain)
        return (self._by_name[name].definition for name in names)


class MadeWhenNeeded(dict[str, Entry]):
    """Entries by name, each made when it is looked at; `make` raises KeyError for other names."""

    def __init__(self, make: Callable[[str], Entry]) -> None:
        self._make = make

    def __missing__(self, name: str) -> Entry:
        entry = self[name] = self._make(name)
        return entry


class Entries(Sequence[Entry]):
    """Entries of these names, each made when it is looked at."""

    __slots__ = ("_by_name", "_names")

    def __init__(self, by_name: Mapping[str, Entry], names: Sequence[str]) -> None:
        self._by_name = by_name
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, index: int | slice) -> Entry | tuple[Entry, ...]:
        if isinstance(index, slice):
            return tuple(self._by_name[name] for name in self._names[index])
        return self._by_name[self._names[index]]

    def __iter__(self) -> Iterator[Entry]:
        return (self._by_name[name] for name in self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entries | tuple) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # see `Snapshot`


def add_lacking(
    lacking: dict[str, tuple[str, ...]], package: str, missing: tuple[str, ...]
) -> None:
    """Note the hardware that a tool of a package lacks."""
    if missing:
        lacking[package] = tuple(dict.fromkeys((*lacking.get(package, ()), *missing)))
