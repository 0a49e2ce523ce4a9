"""Announces at a turn boundary that the list of offered tools changed (`tools/list_changed`).

A burst of changes, and all changes within a turn, are one event.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from edge.core.tools.snapshot import Entry, Snapshot
from edge.runtime.bus import Bus
from edge.runtime.events import ToolsListChanged
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import ToolDefinition

SETTLE_S: Final = 0.05
"""Connecting changes what glasses can do several times within milliseconds."""
PATIENCE_S: Final = 10.0
"""Seconds; a longer turn does not hide a change from others, and keeps its own snapshot."""
NAMED: Final = 50
"""Names listed for each kind of change; a client lists again anyway."""

Offered = Mapping[str, ToolDefinition]
Boundary = Callable[[], Awaitable[None]]
"""Returns when no turn is under way."""


class ListChanges:
    """`run()` is the service. `changed` is set when the offered tools may have changed; `offered`
    lists them.
    """

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        *,
        offered: Callable[[], Iterable[Entry]],
        changed: asyncio.Event,
        bus: Bus,
        boundary: Boundary,
    ) -> None:
        self._snapshot = snapshot
        self._listing = offered
        self._changed = changed
        self._bus = bus
        self._boundary = boundary
        self._told: Offered | None = None

    def _offered(self) -> Offered:
        return {entry.definition.name: entry.definition for entry in self._listing()}

    async def run(self) -> None:
        """Announce until cancelled, starting from what is offered now."""
        if self._told is None:
            self._told = self._offered()
        while True:
            await self._changed.wait()
            await asyncio.sleep(SETTLE_S)
            with suppress(TimeoutError):
                async with timeout(PATIENCE_S):
                    await self._boundary()
            self._changed.clear()
            self._tell(self._told)

    def _tell(self, before: Offered) -> None:
        snapshot = self._snapshot()
        self._told = now = self._offered()
        added, removed = now.keys() - before.keys(), before.keys() - now.keys()
        changed = [name for name, tool in now.items() if name in before and tool != before[name]]
        if added or removed or changed:
            self._bus.publish(
                ToolsListChanged(
                    snapshot.version, len(now), _named(added), _named(removed), _named(changed)
                )
            )


def _named(names: Iterable[str]) -> tuple[str, ...]:
    ordered = sorted(names)
    more = (f"… and {len(ordered) - NAMED} more",) if len(ordered) > NAMED else ()
    return (*ordered[:NAMED], *more)
