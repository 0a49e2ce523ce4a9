"""Which tools are on for each user, and which are offered to models; changes at turn boundaries.

A tool that is not loaded is not listed for models, and can still be called by name. The rules are
in `core/tools/selection.py` and `core/tools/selection_rules.py`.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from edge.core import permissions, policy, routing
from edge.core.tools import selection, selection_rules
from edge.core.tools.selection import Kind, Loader, SelectionEvent, SelectionLimits
from edge.core.tools.selection_rules import (
    AVAILABLE,
    HIDDEN,
    OFFERED,
    Catalogue,
    Choice,
    Facts,
    Switched,
    UserRules,
)
from edge.core.tools.snapshot import Entry, Snapshot
from edge.ports import RegistryPort
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import (
    DaemonEvent,
    GlassesLost,
    GlassesReady,
    GlassesSaid,
    LoaderMoved,
    RegistrySynced,
    ToolSwitched,
    UplinkChanged,
)
from edge.storage.tool_choices import ToolChoices, Used
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import WornChanged
from tools_cache.api.tool import (
    CallOrigin,
    Json,
    Mode,
    RateLimit,
    Source,
    ToolCall,
    ToolDefinition,
    ToolError,
)
from tools_cache.names import parse
from tools_cache.registry import tool_docs

TURNS: Final = 64
"""Remembered turns; a call that comes later than that many other turns begins its turn again."""
FLUSH_S: Final = 60.0
"""Seconds between writes of counted calls: a crash loses a minute of counting."""
PATIENCE_S: Final = 10.0
"""Seconds; a longer turn does not hide a change from others."""
MAX_COUNTED: Final = 1024
"""Tools (of all users) counted between two writes; more are not counted one by one."""
_NEARNESS: Final = {Source.GLASSES: 0, Source.LOCAL: 1}
"""Where tools run, the nearest first; all other places come last."""
_FAR: Final = 2
NOWHERE: Final = Path("/nonexistent")
RAN: Final = frozenset({"answered", "completed"})
_OURS: Final = (RegistrySynced, GlassesReady, GlassesLost, UplinkChanged)

Gate = Callable[[ToolDefinition], str]
"""Returns why a tool is not available now, "" if it is; called at every call."""
Audit = Callable[[Mapping[str, Json]], None]
_log: Final = logging.getLogger(__name__)


async def _at_once() -> None:
    """For a daemon without turns: return at once."""


class SelectionSettings(NamedTuple):
    """The settings that decide which tools are on and offered; `user_id` is this device's user."""

    user_id: str = "local"
    limits: SelectionLimits = SelectionLimits()
    essential: Sequence[str] = ()
    cloud_may: Sequence[str] = permissions.STOCK
    users: Mapping[str, UserRules] = MappingProxyType({})


DEFAULTS: Final = SelectionSettings()


class ToolSelection:
    """`load()` before anybody is served, `run()` as a service, `close()` before the store closes.

    `facts` returns the current conditions; `gates` are more reasons why a tool may be unavailable;
    `listed` is called after the offered list changed; `boundary` returns when no turn is under way;
    `tools` is the folder of the built-in tools, for their documentation; `forget` drops the code of
    a local tool that was unloaded.
    """

    def __init__(
        self,
        *,
        registry: RegistryPort,
        store: ToolChoices,
        bus: Bus,
        clock: Clock,
        facts: Callable[[], Facts],
        settings: SelectionSettings = DEFAULTS,
        gates: Sequence[Gate] = (),
        audit: Audit | None = None,
        listed: Callable[[], None] = lambda: None,
        boundary: Callable[[], Awaitable[None]] = _at_once,
        tools: Path = NOWHERE,
        forget: Callable[[ToolDefinition], None] = lambda _tool: None,
    ) -> None:
        self._registry = registry
        self._store = store
        self._bus = bus
        self._clock = clock
        self._facts = facts
        self._settings = settings
        self._gates = tuple(gates)
        self._audit = audit
        self._listed = listed
        self._boundary = boundary
        self._tools = tools
        self._forget = forget
        self._switches: dict[str, dict[str, bool]] = {}
        self._changes = 0
        """How often settings and switches changed."""
        self._loader = Loader(essential=frozenset(settings.essential), limits=settings.limits)
        self._began = False
        self._judged: tuple[Snapshot, Facts] | None = None
        self._conditional = True
        self._turns: OrderedDict[str, None] = OrderedDict()
        self._offered: tuple[str, ...] = ()
        self._listed_now: frozenset[str] = frozenset()
        self._counted: dict[tuple[str, str], Used] = {}
        self._favourites: dict[str, int] = {}
        self._unlisted = asyncio.Event()
        self._switching = asyncio.Lock()

    def apply(self, settings: SelectionSettings) -> None:
        """Apply changed settings; what is loaded stays as far as it fits."""
        self._settings, self._judged = settings, None
        self._changes += 1
        essential = frozenset(settings.essential)
        self._loader = replace(self._loader, limits=settings.limits, essential=essential)
        self._refresh()
        self._swap()

    # -------------------------------------------------------------- is it on?

    def why_not(self, user_id: str, tool: ToolDefinition) -> str:
        return self._off(user_id, tool) or self._shut(tool)

    def refusal(self, call: ToolCall, tool: ToolDefinition) -> ToolError | None:
        if why := self._off(call.user_id, tool):
            return selection_rules.refused(tool.name, why)
        # Declared conditions are the router's, which knows how a call is answered without its tool.
        why = next((why for gate in self._gates if (why := gate(tool))), "")
        return selection_rules.shut(tool.name, why) if why else None

    def rate(self, user_id: str, tool: str) -> RateLimit | None:
        return self._rules(user_id).rates.get(tool)

    def _rules(self, user_id: str) -> UserRules:
        return self._settings.users.get(user_id, _NO_RULES)

    def _off(self, user_id: str, tool: ToolDefinition) -> str:
        return selection_rules.off_because(
            tool, self._rules(user_id), self._switches.get(user_id, _NO_SWITCHES)
        )

    def _shut(self, tool: ToolDefinition) -> str:
        if tool.available_when:
            now = self._facts()
            if why := routing.unmet(tool, glasses=now.glasses, uplink=now.uplink, worn=now.worn):
                return why
        return next((why for gate in self._gates if (why := gate(tool))), "")

    # -------------------------------------------------------------- what is offered

    def choice(self, entry: Entry, user_id: str, mode: Mode | None = None) -> Choice:
        tool = entry.definition
        off = self._off(user_id, tool)
        loaded = tool.name in self._listed_now
        if why := off or entry.hidden or self._shut(tool):
            return Choice(HIDDEN, why, on=not off, loaded=loaded)
        if why := policy.not_offered(tool, mode):
            return Choice(HIDDEN, why, loaded=loaded)
        if loaded:
            return Choice(OFFERED)
        if tool.for_programs:
            return Choice(AVAILABLE, selection_rules.FOR_PROGRAMS, loaded=False)
        if selection_rules.built_in(tool):
            return Choice(AVAILABLE, "offered once there are more tools than fit", loaded=False)
        return Choice(AVAILABLE, selection_rules.UNLOADED, loaded=False)

    def version(self) -> Hashable | None:
        """Return a value that is equal only as long as `choice` returns the same for each entry;
        None with gates, which may change at any time.
        """
        return None if self._gates else (self._changes, self._facts(), self._listed_now)

    def open_to_cloud(self, entry: Entry) -> bool:
        """Return whether the cloud is shown this tool: only what it may call now, and no tools for
        finding tools.
        """
        if selection_rules.built_in(entry.definition):
            return False
        may = permissions.opened(entry.definition, self._settings.cloud_may)
        return may and self.choice(entry, self._settings.user_id).state != HIDDEN

    def permitted(self, call: ToolCall, tool: ToolDefinition) -> ToolError | None:
        """Return why the caller of `call` may not call this other tool (its origin, its scope), or
        None.
        """
        return permissions.refusal(call, tool, self._settings.cloud_may)

    def listed_for(self, call: ToolCall, tool: ToolDefinition) -> bool:
        """Return whether the caller of `call` is shown this other tool: only what it may call."""
        return permissions.callable_by(call, tool, self._settings.cloud_may)

    def offered(self, user_id: str, mode: Mode | None = None) -> Sequence[Entry]:
        """Return the tools a model is shown now, by name; it changes only at turn boundaries."""
        snapshot = self._registry.snapshot()
        found = (entry for name in self._offered if (entry := snapshot.find(name)) is not None)
        return [entry for entry in found if self.choice(entry, user_id, mode).state == OFFERED]

    async def described(
        self, tool: str, user_id: str, mode: Mode | None = None
    ) -> Mapping[str, Json] | None:
        entry = self._registry.snapshot().find(tool)
        if entry is None:
            return None
        stands, said = self.choice(entry, user_id, mode), entry.definition
        written = await asyncio.to_thread(tool_docs.documentation, said, self._tools)
        return {
            "tool": said.name,
            "app": entry.app_name,
            "source": said.source.value,
            "description": said.description,
            "summary": tool_docs.summary(said),
            "state": stands.state,
            "reason": stands.reason,
            "loaded": stands.loaded,
            "enabled": stands.on,
            "policy": tool_docs.metadata(said),
            "dependsOn": list(said.depends_on),
            "inputSchema": dict(said.input_schema),
            "documentation": written,
        }

    def describe(self) -> Mapping[str, Json]:
        now = self._loader
        return {
            "turn": now.turn,
            "available": len(now.available),
            "offered": len(self._offered),
            "crowded": now.crowded,
            "offered_max": now.limits.offered,
            "idle_turns": now.limits.idle_turns,
            "essential": sorted(now.essential),
            "loaded": {
                name: {"used": held.used, "passing": held.passing}
                for name, held in sorted(now.loaded.items())
            },
        }

    def load_tools(self, names: Sequence[str], *, passing: bool = False) -> frozenset[str]:
        """Offer these from the next turn boundary on; return those there is room for. `passing`:
        for one call.
        """
        self._refresh()
        self._move(selection.load(self._loader, names, passing=passing))
        self._unlisted.set()
        return frozenset(name for name in names if name in self._loader.loaded)

    # -------------------------------------------------------------- turns and use

    def turn(self, turn_id: str) -> None:
        """Cross a turn boundary at the first call or utterance of a turn; tools unloaded by that
        are unlisted before it is served.
        """
        if not turn_id or turn_id in self._turns:
            return
        self._turns[turn_id] = None
        while len(self._turns) > TURNS:
            self._turns.popitem(last=False)
        self._refresh()
        self._move(selection.turn(self._loader))
        self._swap()

    def observe(self, record: Mapping[str, Json]) -> None:
        """Count the use of a tool from one audit record. Never raises: the call already has its
        answer.
        """
        try:
            self._observe(record)
        except Exception:  # noqa: BLE001 - see above
            _log.exception("the use of a tool could not be counted")

    def _observe(self, record: Mapping[str, Json]) -> None:
        """Count it, except for our own tools for finding tools."""
        name, user = str(record.get("toolId", "")), str(record.get("userId", ""))
        ran = (
            record.get("outcome") in RAN
            and record.get("version") is not None
            and record.get("route") != routing.RouteKind.FALLBACK
        )
        if not ran or selection_rules.is_helper(name):
            return
        self._count(user, name, failed=record.get("ok") is not True)
        if record.get("origin") == CallOrigin.MCP and name not in self._loader.loaded:
            self.load_tools([name], passing=True)
        self._move(selection.use(self._loader, name))

    def _count(self, user: str, name: str, *, failed: bool) -> None:
        before = self._counted.get((user, name)) or Used(name)
        if before.calls or len(self._counted) < MAX_COUNTED:
            self._counted[user, name] = Used(
                name, before.calls + 1, before.failed + failed, self._clock.wall()
            )

    async def usage(self, user_id: str) -> Sequence[Used]:
        found = {used.tool: used for used in await self._store.usage(user_id)}
        for (user, name), more in self._counted.items():
            if user == user_id:
                kept = found.get(name, Used(name))
                found[name] = Used(
                    name, kept.calls + more.calls, kept.failed + more.failed, more.last_wall
                )
        return sorted(found.values(), key=lambda used: (-used.calls, used.tool))

    # -------------------------------------------------------------- switching

    async def enable(self, user_id: str, tool: str, *, origin: str) -> Switched:
        async with self._switching:
            return await self._switch(
                user_id, selection_rules.enable(tool, self._catalogue(user_id)), origin
            )

    async def disable(self, user_id: str, tool: str, *, origin: str) -> Switched:
        async with self._switching:
            return await self._switch(
                user_id, selection_rules.disable(tool, self._catalogue(user_id)), origin
            )

    def _catalogue(self, user_id: str) -> Catalogue:
        snapshot = self._registry.snapshot()

        def find(name: str) -> ToolDefinition | None:
            entry = snapshot.find(name)
            return entry.definition if entry is not None else None

        def off(tool: ToolDefinition) -> str:
            entry = snapshot.find(tool.name)
            by_owner = entry is not None and entry.hidden == selection_rules.BY_OWNER
            return selection_rules.BY_OWNER if by_owner else self._off(user_id, tool)

        return Catalogue(find, lambda: (e.definition for e in snapshot.entries()), off, self._shut)

    async def _switch(self, user_id: str, wanted: Switched, origin: str) -> Switched:
        """Store the switch, then apply it to calls and to the list for models."""
        if wanted.changed:
            await self._store.switch(user_id, dict.fromkeys(wanted.changed, wanted.on))
            self._switches.setdefault(user_id, {}).update(dict.fromkeys(wanted.changed, wanted.on))
            self._changes += 1
            also = tuple(name for name in wanted.changed if name != wanted.tool)
            self._bus.publish(ToolSwitched(wanted.tool, user_id, wanted.on, also))
            self._judged = None
            self._refresh()
            if wanted.on:  # who switches a tool on wants it offered
                self._move(selection.load(self._loader, wanted.changed))
            self._swap()
        if self._audit is not None:
            for name in wanted.changed:
                self._audit(
                    {
                        "toolId": name,
                        "outcome": "enabled" if wanted.on else "disabled",
                        "origin": origin,
                        "ok": True,
                        "reason": f"{wanted.tool} was switched {'on' if wanted.on else 'off'}",
                    }
                )
        return wanted

    # -------------------------------------------------------------- the service

    async def load(self) -> None:
        """Read what users switched and called. If the store cannot be read, the configuration alone
        counts.
        """
        try:
            self._switches = {
                user: dict(tools) for user, tools in (await self._store.switches()).items()
            }
            self._favourites = {
                used.tool: used.calls for used in await self._store.usage(self._settings.user_id)
            }
        except Exception as e:  # noqa: BLE001 - said; every tool is as the configuration says
            _log.warning("which tools were switched cannot be read: %s", e)
        self._refresh()
        self._swap()

    async def run(self) -> None:
        """Follow events that change which tools are on, and store counts now and then."""
        with self._bus.listen(calls=False) as events:
            self._refresh()
            self._swap()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._flush_often(), name="tool usage")
                tasks.create_task(self._list_at_boundaries(), name="tool list")
                async for event in events:
                    if _concerns(event):
                        self._refresh()
                        self._swap()

    async def close(self) -> None:
        """Store what was counted."""
        await self._flush()

    async def _list_at_boundaries(self) -> None:
        """List what was loaded within a turn when no turn is under way."""
        while True:
            await self._unlisted.wait()
            with suppress(TimeoutError):
                async with timeout(PATIENCE_S):
                    await self._boundary()
            self._unlisted.clear()
            self._swap()

    async def _flush_often(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            await self._flush()

    async def _flush(self) -> None:
        counted, self._counted = self._counted, {}
        for user in {user for user, _ in counted}:
            try:
                await self._store.add_usage(
                    user, [used for (whose, _), used in counted.items() if whose == user]
                )
            except Exception as e:  # noqa: BLE001 - counting is a comfort
                _log.debug("what was counted of %s is lost: %s", user, e)

    # -------------------------------------------------------------- inside

    def _refresh(self) -> None:
        """Tell the loader which tools this device's user can use: most used first, then those of
        the glasses, those of this device, and others. Of these, packages with few tools come first:
        so most packages are offered, and whole.
        """
        snapshot, facts = self._registry.snapshot(), self._facts()
        if (
            self._judged is not None
            and self._judged[0] is snapshot
            and (self._judged[1] == facts or not self._conditional)
        ):
            return
        self._judged = snapshot, facts
        here = [
            tool
            for tool in snapshot.active_definitions()
            if not selection_rules.is_helper(tool.name) and not tool.for_programs
        ]
        plain = [name for name in snapshot.active if name in snapshot.plain]
        if self._gates:
            here, plain = [*here, *map(_definition, map(snapshot.find, plain))], []
        self._conditional = bool(self._gates) or any(tool.available_when for tool in here)
        user, uses = self._settings.user_id, self._favourites
        denied, switches = self._rules(user).denied, self._switches.get(user, _NO_SWITCHES)
        rules = denied or switches or self._gates
        tools = [t for t in here if not (rules or t.available_when) or not self.why_not(user, t)]
        if rules:
            plain = [n for n in plain if not selection_rules.off(n, self._rules(user), switches)]
        sizes = Counter(parse(tool.name).package for tool in tools)
        sizes.update(name.partition(":")[0] for name in plain)

        def order(name: str, nearness: int) -> tuple[int, int, int, str]:
            return -uses.get(name, 0), nearness, sizes[name.partition(":")[0]], name

        ranked = [order(tool.name, _NEARNESS.get(tool.source, _FAR)) for tool in tools]
        ranked += [order(name, _FAR) for name in plain]
        available = tuple(name for *_, name in sorted(ranked))
        needs = {tool.name: tool.depends_on for tool in tools if tool.depends_on}
        if self._began:
            self._move(selection.adopt(self._loader, available, needs))
        elif available:
            self._began = True
            self._move(
                selection.initialize(replace(self._loader, available=available, needs=needs))
            )

    def _move(self, step: selection.Step) -> None:
        self._loader, events = step
        for event in events:
            _log.debug("tools: %s %s %s", event.kind.value, event.tool, event.why)
            moved = event.kind in (Kind.LOADED, Kind.UNLOADED)
            if (
                event.kind is Kind.UNLOADED
                and (gone := self._registry.snapshot().find(event.tool)) is not None
            ):
                self._forget(gone.definition)
            if moved and not self._loader.crowded:
                continue  # then all active tools are loaded, and RegistrySynced has announced them
            self._bus.publish(
                LoaderMoved(event.kind.value, self._loader.turn, event.tool, event.why)
            )
            if moved:
                self._note(event)

    def _note(self, event: SelectionEvent) -> None:
        """Write an audit line for a loaded or unloaded tool; a call has its own line."""
        if self._audit is not None:
            self._audit(
                {
                    "toolId": event.tool,
                    "outcome": f"tool_{event.kind.value}",
                    "origin": "loader",
                    "ok": True,
                    "reason": event.why,
                }
            )

    def _swap(self) -> None:
        """Offer what is loaded, and call `listed` if the list changed."""
        now, snapshot = self._loader, self._registry.snapshot()
        found = map(snapshot.find, (*selection_rules.META, selection_rules.DESCRIBE))
        there = [entry.definition.name for entry in found if entry and not entry.hidden]
        fresh = tuple(sorted((*now.loaded, *selection_rules.helpers(now, there))))
        if fresh != self._offered:
            self._offered, self._listed_now = fresh, frozenset(fresh)
            self._listed()


def _definition(entry: Entry | None) -> ToolDefinition:
    assert entry is not None
    return entry.definition


def _concerns(event: DaemonEvent) -> bool:
    worn = isinstance(event, GlassesSaid) and isinstance(event.event, WornChanged)
    return worn or isinstance(event, _OURS)


_NO_RULES: Final = UserRules()
_NO_SWITCHES: Final[Mapping[str, bool]] = {}
