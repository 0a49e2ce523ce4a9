"""Tools of all sources in one list, each active, or hidden with its reason."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from edge.core.tools.compatibility import Compatibility, judge
from edge.core.tools.precedence import ToolOffer, merged
from edge.core.tools.snapshot import (
    DISABLED,
    Entries,
    Entry,
    MadeWhenNeeded,
    Snapshot,
    add_lacking,
)
from firmware_bridge import catalog
from firmware_bridge.capabilities import Capabilities
from tools_cache.api.tool import Source, ToolDefinition
from tools_cache.registry.models import App, Dropped, Requirement


class Union:
    """The apps of all sources, and the tools that were `refused`."""

    def __init__(self, apps: tuple[App, ...], refused: tuple[Dropped, ...]) -> None:
        self.apps = apps
        self.refused = refused
        self._app_of: dict[str, int] = {}
        """The number of the app of each tool: of two with one name the first."""
        for number in reversed(range(len(apps))):
            self._app_of.update(dict.fromkeys(apps[number].names, number))
        self._names = tuple(sorted(self._app_of))
        self._repeats = sum(len(app.tools) for app in apps) > len(self._names)
        self._plain = frozenset().union(*(app.plain for app in apps))
        self._places: dict[int, Mapping[str, int]] = {}

    @classmethod
    def of(
        cls,
        local: Iterable[App],
        cloud: Iterable[App],
        *,
        own: Iterable[App] = (),
        upstream: Iterable[App] = (),
    ) -> "Union":
        """Join them. No tool replaces one of an earlier source."""
        return cls(
            *merged(
                (
                    ToolOffer("this device's", tuple(local)),
                    ToolOffer("your own", tuple(own), namespaced=True),
                    ToolOffer("the cloud's", tuple(cloud)),
                    ToolOffer("another server's", tuple(upstream), namespaced=True),
                )
            )
        )

    def snapshot(
        self,
        version: str,
        record: Capabilities | None,
        *,
        stale: bool,
        unusable: Mapping[str, str] = MappingProxyType({}),
        disabled: Collection[str] = (),
        withheld: Mapping[str, str] = MappingProxyType({}),
    ) -> Snapshot:
        """Check every tool against these glasses. `unusable`: cloud tools with an invalid schema,
        and why; `withheld`: the owner's and other servers' tools that cannot be called now, and
        why; `disabled`: names (`package:tool`, `package:*`, `*`) that the owner disabled.
        """
        title = catalog.title(record.model) if record else ""
        off = frozenset(disabled)
        verdicts = [
            _Verdicts.of(app, partial(judge, record=record, stale=stale, title=title), off)
            for app in self.apps
        ]
        marked = off | unusable.keys() | withheld.keys()

        def make(name: str) -> Entry:
            seen, tool = verdicts[self._app_of[name]], self._tool(name)
            broken = (unusable if tool.source is Source.CLOUD else withheld).get(name, "")
            return _entry(seen.app, tool, seen.of_tool(name), broken, off=seen.off or name in off)

        by_name = MadeWhenNeeded(make)
        active, lacking = self._sort_out(verdicts, marked, by_name)
        reasons = {name: (name in off, unusable.get(name), withheld.get(name)) for name in marked}
        listed = Entries(by_name, self._names)
        return Snapshot(
            version,
            content=(self.apps, [(seen.whole, seen.own) for seen in verdicts], reasons),
            _entries=listed if self._plain else tuple(listed),
            _by_name=MappingProxyType(by_name),
            names=self._names,
            active=active,
            plain=self._plain,
            filtered=lacking,
        )

    def _tool(self, name: str) -> ToolDefinition:
        number = self._app_of[name]
        app = self.apps[number]
        if number not in self._places:
            places = {tool: place for place, tool in reversed(tuple(enumerate(app.names)))}
            self._places[number] = places
        return app.tools[self._places[number][name]]

    def _sort_out(
        self, verdicts: "Sequence[_Verdicts]", marked: frozenset[str], by_name: Mapping[str, Entry]
    ) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
        """Return the names of the active tools, in order, and what the glasses lack by package.
        An entry is made only of tools with a mark or needs of their own.
        """
        active: set[str] = set()
        lacking: dict[str, tuple[str, ...]] = {}
        for number, seen in sorted(enumerate(verdicts), key=lambda pair: pair[1].app.package):
            if seen.off:
                continue
            names, by_itself = self._names_of(number), []
            if seen.own or not marked.isdisjoint(names):
                by_itself = [name for name in names if name in marked or name in seen.own]
            entries = [by_name[name] for name in by_itself]
            active.update(entry.definition.name for entry in entries if not entry.hidden)
            rest = set(names).difference(by_itself) if by_itself else names
            if rest and not seen.whole.reason:
                active.update(rest)
            for missing in (
                seen.whole.missing_required if rest else (),
                *(e.missing for e in entries),
            ):
                add_lacking(lacking, seen.app.package, missing)
        if len(active) == len(self._names):
            return self._names, lacking
        return tuple(name for name in self._names if name in active), lacking

    def _names_of(self, number: int) -> Sequence[str]:
        """Return the names of an app's tools, but those that an earlier one has."""
        names = self.apps[number].names
        if not self._repeats:
            return names
        return [name for name in names if self._app_of[name] == number]


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """What the glasses say to an app, and to the tools with needs of their own. `off`: the owner
    disabled all of it.
    """

    app: App
    whole: Compatibility
    own: Mapping[str, Compatibility]
    off: bool

    @classmethod
    def of(
        cls,
        app: App,
        judge: Callable[[Sequence[Requirement]], Compatibility],
        disabled: Collection[str],
    ) -> "_Verdicts":
        own = {
            name: judge((*app.requirements, *needs))
            for name, needs in app.tool_requirements.items()
        }
        off = "*" in disabled or f"{app.package}:*" in disabled
        return cls(app, judge(app.requirements), own, off)

    def of_tool(self, name: str) -> Compatibility:
        return self.own.get(name, self.whole)


def _entry(
    app: App, tool: ToolDefinition, verdict: Compatibility, broken: str, *, off: bool
) -> Entry:
    """Create the entry. The owner's setting comes first, then faults, then hardware."""
    if off or broken:
        return Entry(tool, app.name, hidden=DISABLED if off else broken)
    return Entry(
        tool,
        app.name,
        hidden=verdict.reason,
        missing=verdict.missing_required,
        without=verdict.missing_optional,
        warnings=verdict.warnings,
        stale=verdict.stale,
    )
