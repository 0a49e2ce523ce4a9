"""Tools of all sources in one list, each active, or hidden with its reason."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from edge.core.tools.compatibility import Compatibility, judge
from edge.core.tools.precedence import ToolOffer, merged
from edge.core.tools.snapshot import DISABLED, Entry, Snapshot
from firmware_bridge import catalog
from firmware_bridge.capabilities import Capabilities
from tools_cache.api.tool import Source, ToolDefinition
from tools_cache.registry.models import App, Dropped


class Union(Struct, frozen=True):
    """The apps of all sources, and the tools that were refused."""

    apps: tuple[App, ...]
    refused: tuple[Dropped, ...]

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
        entries: dict[str, Entry] = {}
        title = catalog.title(record.model) if record else ""
        for app in self.apps:
            verdict = judge(app.requirements, record, stale=stale, title=title)
            for tool in app.tools:
                seen = verdict
                if (own := app.tool_requirements.get(tool.name)) is not None:
                    seen = judge((*app.requirements, *own), record, stale=stale, title=title)
                off = "*" in disabled or tool.name in disabled or f"{app.package}:*" in disabled
                broken = (unusable if tool.source is Source.CLOUD else withheld).get(tool.name, "")
                # Local apps come first.
                entries.setdefault(tool.name, _entry(app, tool, seen, broken, off=off))
        return Snapshot.of(version, entries.values())


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
