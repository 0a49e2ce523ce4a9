"""The registry at one moment: every tool, active, or hidden with its reason."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


class Snapshot:
    """The registry at one moment; immutable, so a turn can keep it. Entries are made when they are
    looked at, and stay.

    `names`: of all tools, in order; `make` makes an entry; `active`: the names of those that are
    not hidden, in order; `plain`: about which a list of what is offered needs to know no more;
    `lacking`: packages with tools that these glasses cannot run, and the hardware they lack;
    `content`: equal if all else is.
    """

    __slots__ = ("_content", "_made", "_make", "active", "filtered", "names", "plain", "version")

    def __init__(
        self,
        version: str,
        names: Sequence[str],
        make: Callable[[str], Entry],
        *,
        active: Sequence[str],
        plain: Collection[str],
        lacking: Mapping[str, tuple[str, ...]],
        content: object,
    ) -> None:
        self.version = version
        self.names = names
        self.active = active
        self.plain = plain
        self.filtered = lacking
        self._make = make
        self._made: dict[str, Entry] = {}
        self._content = content

    @classmethod
    def of(cls, version: str, entries: Iterable[Entry]) -> "Snapshot":
        """Create one of entries that are made already, ordered by name."""
        made = {e.definition.name: e for e in sorted(entries, key=lambda e: e.definition.name)}
        lacking: dict[str, tuple[str, ...]] = {}
        for name, entry in made.items():
            add_lacking(lacking, name, entry.missing)
        return cls(
            version,
            tuple(made),
            made.__getitem__,
            active=tuple(name for name, entry in made.items() if not entry.hidden),
            plain=frozenset(),
            lacking=lacking,
            content=tuple(made.values()),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Snapshot):
            return NotImplemented
        return (self.version, self._content) == (other.version, other._content)

    __hash__ = None  # type: ignore[assignment]  # the tools are mappings of JSON

    def find(self, name: str) -> Entry | None:
        """Return a tool by its canonical name, hidden ones included."""
        if (entry := self._made.get(name)) is None:
            try:
                entry = self._made[name] = self._make(name)
            except KeyError:
                return None
        return entry

    def entries(self) -> "Entries":
        """Return all tools by name, hidden ones included."""
        return Entries(self._known, self.names)

    @property
    def in_force(self) -> "Entries":
        """The tools that are not hidden."""
        return Entries(self._known, self.active)

    def particular(self) -> Iterator[Entry]:
        """Yield the entries of all tools that are not plain."""
        return map(self._known, self._but_plain(self.names))

    def active_definitions(self) -> Iterator[ToolDefinition]:
        """Yield the definitions of the active tools that are not plain."""
        return (self._known(name).definition for name in self._but_plain(self.active))

    def _but_plain(self, names: Sequence[str]) -> Iterator[str]:
        return (name for name in names if name not in self.plain)

    def _known(self, name: str) -> Entry:
        entry = self.find(name)
        assert entry is not None
        return entry


class Entries(Sequence[Entry]):
    """Some of the entries of a snapshot, each made when it is looked at."""

    __slots__ = ("_find", "_names")

    def __init__(self, find: Callable[[str], Entry], names: Sequence[str]) -> None:
        self._find = find
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, index: int | slice) -> Entry | tuple[Entry, ...]:
        if isinstance(index, slice):
            return tuple(map(self._find, self._names[index]))
        return self._find(self._names[index])

    def __iter__(self) -> Iterator[Entry]:
        return map(self._find, self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entries | tuple) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # see `Snapshot`


def add_lacking(lacking: dict[str, tuple[str, ...]], name: str, missing: tuple[str, ...]) -> None:
    """Note the hardware that a tool (or all of its package) lacks."""
    if missing:
        package = name.partition(":")[0]
        lacking[package] = tuple(dict.fromkeys((*lacking.get(package, ()), *missing)))
