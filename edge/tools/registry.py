"""The active tools: the built-in ones, the owner's, other servers', and the cloud's as last
verified.

The last good registry stays until a newer one is verified: a cloud that is away, slow or broken
changes only the age in `status`. Implements `RegistryPort`.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec.structs import replace

from edge import __version__
from edge.core.call_summary import hide, secret_names
from edge.core.tools.registry import Union
from edge.core.tools.registry_sync import Fetched, RegistrySource, SyncFailed, SyncPace
from edge.core.tools.snapshot import Snapshot
from edge.core.tools.user_tools import Own
from edge.ports import RegistryNotice
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.deadlines import Within, unwatched
from edge.runtime.events import Alarmed, RegistrySynced, ToolsFiltered
from edge.tools.installed_registry import EMPTY, InstalledRegistry
from firmware_bridge.capabilities import Capabilities
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import Json, ToolDefinition
from tools_cache.errors import BadDefinition, BadManifest
from tools_cache.registry import reader, registry_index, stored_registry
from tools_cache.registry.models import App, Dropped, Registry
from tools_cache.registry.reader_process import INSTALLED
from tools_cache.registry.registry_index import IndexKey
from tools_cache.registry.registry_store import Generation, RegistryStore
from tools_cache.registry.stored_registry import StoredRegistries
from tools_cache.schema import compile_schema

SHOWN_DROPPED: Final = 20
SHOWN_FILTERED: Final = 50
SYNC_S: Final = 300.0
"""Fetching, checking and storing one registry have deadlines far below this."""
IDLE_S: Final = 3600.0
CATCH_UP_S: Final = 5.0
"""Maximum wait for an announced registry: usually 0.3 s, a few seconds on a busy Raspberry Pi."""
ALARM: Final = "registry"
BUILTIN_ALARM: Final = "registry.builtin"

logger = logging.getLogger(__name__)


class _Left(SyncFailed):
    """The cloud was replaced while it was asked."""


class RegistrySettings(NamedTuple):
    """`disabled` names tools; `off`: tools that their own settings switch off, and why."""

    disabled: Collection[str] = ()
    off: Mapping[str, str] = MappingProxyType({})
    refresh_s: float = 300.0


DEFAULTS: Final = RegistrySettings()


class ToolRegistry:
    """One per daemon. `load()` before anybody is served, then `run()` as a service. `swapped` is
    called after each change of the snapshot.
    """

    def __init__(
        self,
        *,
        builtin: Path,
        state: Path,
        bus: Bus,
        clock: Clock,
        cloud: RegistrySource | None = None,
        settings: RegistrySettings = DEFAULTS,
        retry_s: tuple[float, float] = (1.0, 300.0),
        per_tool_hardware: bool = False,
        within: Within = unwatched,
        swapped: Callable[[], None] = lambda: None,
        locked: bool = True,
    ) -> None:
        self._within = within
        self._builtin = builtin
        self._state = state
        self._generations = RegistryStore(state)
        self._bus = bus
        self._clock = clock
        self._cloud = cloud
        self._settings = settings
        self._per_tool_hardware = per_tool_hardware
        self._pace = SyncPace(settings.refresh_s, retry_s, random.random)
        self._record: Capabilities | None = None
        self._stale = False
        self._filtered: dict[str, tuple[str, ...]] = {}
        self.installed = InstalledRegistry()
        self._locks = locked
        self._own = Own()
        self._withheld: Mapping[str, str] = MappingProxyType({})
        self._upstream: tuple[App, ...] = ()
        self._away: Mapping[str, str] = MappingProxyType({})
        self._upstream_digest = ""
        self._remote: Registry | None = None
        self._generation: Generation | None = None
        self._union = Union.of((), ())
        self._snapshot = Snapshot.of(EMPTY.version, ())
        self._origin = "local"
        self._confirmed_boot: float | None = None
        self._trouble: SyncFailed | None = None
        self._alarms: dict[str, str] = {}
        self._wake = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._caught_up.set()
        self._swapped = swapped
        self._syncing = asyncio.Lock()

    # -------------------------------------------------------------- what others ask

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def check_args(
        self, definition: ToolDefinition, args: Mapping[str, Json]
    ) -> tuple[dict[str, Json], list[dict[str, str]]]:
        """Fill defaults, then validate. A schema that does not compile is a problem at the root."""
        try:
            validator = compile_schema(definition.input_schema)
            filled = validator.filled(dict(args))
        except (BadDefinition, RecursionError) as e:
            return dict(args), [{"path": "root", "problem": f"cannot be checked: {e}"}]
        if filled != args:
            secret = secret_names(definition)
            logger.debug(
                "tool %s: defaults filled, from %.200r to %.200r",
                definition.name,
                hide(args, secret),
                hide(filled, secret),
            )
        return filled, validator.errors(filled)

    def set_capabilities(self, record: Capabilities | None, *, stale: bool) -> None:
        """Use these capabilities (`stale`: as last known, the glasses are away) and check all tools
        again.
        """
        if (record, stale) != (self._record, self._stale):
            self._record, self._stale = record, stale
            self.rebuild()

    def use_own(self, own: Own, withheld: Mapping[str, str]) -> None:
        """Use these owner's tools; `withheld` ones are hidden, each with its reason."""
        if (own, withheld) == (self._own, self._withheld):
            return
        self._own, self._withheld = own, withheld
        self._adopt()
        for name, reason in self._own_problems():
            logger.warning("own tools: %s: %s", name, reason)

    def use_upstream(
        self, apps: Sequence[App], away: Mapping[str, str], digest: str
    ) -> tuple[Dropped, ...]:
        """Use these tools of other servers; `away` ones cannot be called, each with the reason.
        Return those refused because another tool has their name.
        """
        self._upstream, self._away, self._upstream_digest = tuple(apps), away, digest
        self._adopt()
        names = {name for app in apps for name in app.names}
        return tuple(refused for refused in self._union.refused if refused.name in names)

    async def notice(self, notice: RegistryNotice) -> None:
        """Fetch the registry that the cloud announces, unless it is the current one."""
        if self._cloud is None:
            logger.debug("a registry is announced, but no cloud.url is configured to fetch it from")
            return
        announced = notice.sha256.lower()
        if (self._remote is None or announced != self._remote.sha256) and self._pace.announced(
            announced
        ):
            self._caught_up.clear()
            self._wake.set()

    async def catch_up(self) -> None:
        """Wait until an announced registry was fetched or failed; at most `CATCH_UP_S`."""
        with contextlib.suppress(TimeoutError):
            async with timeout(CATCH_UP_S):
                await self._caught_up.wait()

    def follow(self, cloud: RegistrySource | None) -> None:
        """Use another cloud's registry; tools of the one before are dropped."""
        if (cloud and cloud.url) != (self._cloud and self._cloud.url):
            self._remote = self._generation = self._confirmed_boot = None
            self._origin = "local"
            self._adopt()
        self._cloud = cloud
        self._wake.set()

    def apply(self, settings: RegistrySettings) -> None:
        """Apply changed settings."""
        self._settings = settings
        self._pace.every(settings.refresh_s)
        self.rebuild()

    def origin(self) -> dict[str, Json]:
        """Return where the tools are from, how old that is, and why the cloud was not reached."""
        return {
            "origin": self._origin,
            "version": self._snapshot.version,
            "age_s": self._age(),
            "error": str(self._trouble or ""),
        }

    def describe(self) -> dict[str, Json]:
        """Return its part of the status."""
        return {
            "version": self._snapshot.version,
            "tools": len(self._snapshot.names),
            "compatible": len(self._snapshot.active),
            "origin": self._origin,
            "age_s": self._age(),
            "stale": self._stale,
            "problem": self._problem(),
            "local": self.installed.describe(),
            "cloud": self._describe_cloud(),
            "dropped": list(self._dropped()),
            "own": {
                "tools": len(self._own.tools),
                "withheld": dict(self._withheld),
                "problems": [f"{d.name}: {d.reason}" for d in self._own_problems()],
            },
        }

    # -------------------------------------------------------------- start

    def load(self, found: StoredRegistries | None = None) -> None:
        """Load the built-in registry and the last good copy of the cloud's; blocking unless `found`
        has them. Once, before anybody is served.
        """
        base = self._cloud.url if self._cloud else None
        found = found or stored_registry.read(
            self._builtin,
            self._state,
            base=base,
            per_tool_hardware=self._per_tool_hardware,
            version=__version__,
        )
        if found.local is not None:
            self.installed.load(found.local)
        else:
            self._alarm(
                BUILTIN_ALARM,
                f"the built-in tools cannot be read ({found.problem}): run glassd registry build",
            )
        if found.remote is not None:
            self._remote, self._generation, self._origin = found.remote, found.generation, "disk"
        if found.complaints:
            served = "only local tools until the cloud is reached"
            served = "the one before it serves" if self._remote else served
            damage = "; ".join(found.complaints)
            self._alarm(ALARM, f"a stored registry is damaged ({damage}): {served}")
        if self._locks:
            self.installed.lock()
        self._adopt()

    async def read_installed(self) -> str:
        """Read this installation's tools again unless they are locked; return what needs a restart,
        or "".
        """
        if self.installed.locked:
            there = await asyncio.to_thread(reader.version_in, self._builtin)
            mine = self.installed.registry.version
            if there in ("", mine):
                return ""
            return f"tools of this installation ({there} is on disk, {mine} is locked)"
        try:
            found = await reader.read(
                await asyncio.to_thread(self._builtin.read_bytes), kind=INSTALLED
            )
        except (OSError, BadManifest, reader.ReaderFailed) as e:
            self._alarm(
                BUILTIN_ALARM,
                f"the built-in tools cannot be read ({e}); "
                "those before stay: run glassd registry build",
            )
            return ""
        self.installed.load(found.registry)
        self._alarm_over(BUILTIN_ALARM, "the built-in tools were read again")
        self._adopt()
        return ""

    # -------------------------------------------------------------- service

    async def run(self) -> None:
        """Keep the cloud's registry up to date; without a cloud, wait for one."""
        for name, text in self._alarms.items():  # raised by `load()`, when nobody listened yet
            self._bus.publish(Alarmed(name, text))
        while True:
            with self._within(SYNC_S, "registry: fetching"):
                wait_s = IDLE_S if self._cloud is None else await self._attempt()
            if not self._wake.is_set():
                self._caught_up.set()
            await self._pause(wait_s)

    async def sync(self) -> dict[str, Json]:
        """Fetch now, for `glassd registry sync`; return `describe()`. Raises `SyncFailed`."""
        async with self._syncing:
            if (cloud := self._cloud) is None:  # looked at here: it may have gone while we waited
                raise SyncFailed(
                    "no cloud is configured", hint="set cloud.url in the configuration"
                )
            try:
                await self._sync(cloud)
            except _Left:
                raise
            except SyncFailed as e:
                self._trouble = e
                raise
            self._trouble = None
        return self.describe()

    async def _attempt(self) -> float:
        """Sync once; return the seconds until the next time."""
        try:
            await self.sync()
        except _Left:
            return 0.0  # the other one is asked at once; nothing failed
        except SyncFailed as e:
            logger.log(logging.DEBUG if self._pace.failures else logging.WARNING, "registry: %s", e)
            return self._pace.failed(e.retry_after_s)
        if self._pace.failures:
            logger.info("registry: in sync again")
        wanted = self._pace.wanted
        wait_s = self._pace.succeeded(self._remote.sha256 if self._remote else "")
        if wanted and not self._pace.wanted and self._remote and self._remote.sha256 != wanted:
            logger.warning(
                "registry: the announced %.12s… was not served; the previous registry stays active",
                wanted,
            )
        return wait_s

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    async def _sync(self, cloud: RegistrySource) -> None:
        """Fetch, verify, store, activate. Raises `SyncFailed`; then nothing changed."""
        fetched = await cloud.fetch(self._generation, past_caches=bool(self._pace.wanted))
        self._check_followed(cloud)
        new = ALARM in self._alarms  # what is on disk is not what it should be
        if fetched.body is not None:
            generation, registry = await self._verified(fetched, fetched.body, cloud.url)
            self._check_followed(cloud)
            have = self._generation
            is_stored = have is not None and (generation.digest, generation.etag) == (
                have.digest,
                have.etag,
            )
            new = new or not is_stored
            self._remote = registry
            self._generation = generation if new else replace(generation, body=b"")
        if new and self._generation is not None and self._remote is not None:
            await self._store(self._generation, self._remote)
            self._check_followed(cloud)
        self._confirmed_boot, self._origin = self._clock.boot(), "cloud"
        self._adopt()

    def _check_followed(self, cloud: RegistrySource) -> None:
        """Raise `_Left` if the cloud was replaced meanwhile: its answer is ignored."""
        if cloud is not self._cloud:
            raise _Left(
                "another cloud is followed now", hint="again in a moment: glassd registry sync"
            )

    async def _verified(
        self, fetched: Fetched, body: bytes, base: str
    ) -> tuple[Generation, Registry]:
        """Validate it in a child process, to save memory."""
        have = self._remote.sha256 if self._remote and self._generation else ""
        try:
            found = await reader.read(
                body,
                kind=fetched.kind,
                per_tool_hardware=self._per_tool_hardware,
                known_sha256=have,
            )
        except (BadManifest, reader.ReaderFailed) as e:
            raise SyncFailed(
                str(e), hint="Whoever runs the cloud has to correct it; then: glassd registry sync"
            ) from None
        refused = {d.name: d.reason for d in found.nameless} | dict(found.refused or {})
        if self._generation and found.registry.sha256 == have:
            refused = dict(self._generation.refused)
        generation = Generation(
            found.body, base, fetched.kind, fetched.etag, self._clock.wall(), refused
        )
        return await asyncio.to_thread(
            lambda: (generation.with_digest(), found.registry.packed())  # packed unless read here
        )

    async def _store(self, generation: Generation, registry: Registry) -> None:
        """Store it for the next start. If the disk is full, the registry is used all the same."""
        try:
            await asyncio.to_thread(self._save, generation, registry)
        except OSError as e:
            self._alarm(
                ALARM,
                f"the registry cannot be stored ({e.strerror}): "
                "a restart would fall back to an older one",
            )
        else:
            self._alarm_over(ALARM, "the stored registry is whole again")
            if self._generation is generation:
                self._generation = replace(generation, body=b"")

    def _save(self, generation: Generation, registry: Registry) -> None:
        """Write the document, then its index; without an index the next start takes longer."""
        self._generations.save(generation)
        key = IndexKey(generation.digest, __version__, self._per_tool_hardware)
        with contextlib.suppress(OSError):
            registry_index.write(self._state, key, registry)

    # -------------------------------------------------------------- the active tools

    def _adopt(self) -> None:
        """Join the tools of all sources, and check them against the glasses."""
        self._union = Union.of(
            self.installed.registry.apps,
            self._remote.apps if self._remote else (),
            own=self._own.apps,
            upstream=self._upstream,
        )
        self.rebuild()

    def rebuild(self) -> None:
        """Check every tool again."""
        unusable = self._generation.refused if self._generation else MappingProxyType({})
        fresh = self._union.snapshot(
            self._version(),
            self._record,
            stale=self._stale,
            unusable=unusable,
            disabled=self._settings.disabled,
            withheld={**self._withheld, **self._away, **self._settings.off},
        )
        if fresh == self._snapshot:
            return
        self._snapshot = fresh
        self._swapped()
        self._tell_filtered(fresh.filtered)
        self._bus.publish(
            RegistrySynced(
                fresh.version,
                len(fresh.names),
                len(fresh.active),
                self._origin,
                self._dropped(),
            )
        )

    def _tell_filtered(self, filtered: Mapping[str, tuple[str, ...]]) -> None:
        """Announce which apps these glasses leave out, if that changed."""
        if filtered == self._filtered:
            return
        self._filtered = dict(filtered)
        for package, missing in filtered.items():
            logger.debug(
                "Skipping tools from incompatible app %s: missing %s", package, ", ".join(missing)
            )
        self._bus.publish(
            ToolsFiltered(dict(islice(filtered.items(), SHOWN_FILTERED)), len(filtered))
        )

    def _version(self) -> str:
        """Return a version for all sources together, from the hashes of their documents."""
        more = tuple(filter(None, (self._own.digest, self._upstream_digest)))
        if self._remote is None and not more:
            return self.installed.registry.version
        parts = (self.installed.registry.sha256, self._remote.sha256 if self._remote else "", *more)
        both = sha256("|".join(parts).encode()).hexdigest()
        return f"1.0.{both[:8]}"

    def _dropped(self) -> tuple[str, ...]:
        """Return what was left out of all sources, each with its reason."""
        remote = self._remote.dropped if self._remote else ()
        refused = self._generation.refused.items() if self._generation else ()
        dropped = (
            *self.installed.registry.dropped,
            *self._own.problems,
            *self._union.refused,
            *remote,
            *(Dropped(*item) for item in refused),
        )
        shown = [f"{d.name}: {d.reason}" for d in dropped[:SHOWN_DROPPED]]
        if len(dropped) > len(shown):
            shown.append(f"… and {len(dropped) - len(shown)} more")
        return tuple(shown)

    def _own_problems(self) -> tuple[Dropped, ...]:
        """Return which of the owner's tools are left out, and why; a taken name counts too."""
        named = {tool.name for tool in self._own.tools}
        return (
            *self._own.problems,
            *(refused for refused in self._union.refused if refused.name in named),
        )

    def _age(self) -> float | None:
        """Return the seconds since the cloud last confirmed the registry; None if it never did."""
        if self._confirmed_boot is not None:
            return round(self._clock.boot() - self._confirmed_boot, 1)
        if self._generation is not None:
            return round(max(0.0, self._clock.wall() - self._generation.fetched_wall), 1)
        return None

    def _problem(self) -> str:
        """Return why the cloud's registry could not be fetched, and what is used instead; "" if it
        was.
        """
        if self._trouble is None or self._cloud is None:
            return ""
        used = (
            "the last good copy is used"
            if self._remote
            else "only the tools of this device are there"
        )
        return f"The cloud's registry cannot be used: {self._trouble}; {used} meanwhile"

    def _describe_cloud(self) -> dict[str, Json]:
        remote, trouble = self._remote, self._trouble
        return {
            "configured": self._cloud is not None,
            "url": self._cloud.url if self._cloud else "",
            "version": remote.version if remote else None,
            "sha256": remote.sha256 if remote else None,
            "kind": self._generation.kind if self._generation else None,
            "error": str(trouble) if trouble else "",
            "hint": trouble.hint if trouble else "",
        }

    def _alarm(self, name: str, text: str) -> None:
        self._alarms[name] = text
        logger.warning("%s", text)
        self._bus.publish(Alarmed(name, text))

    def _alarm_over(self, name: str, text: str) -> None:
        if name in self._alarms:
            del self._alarms[name]
            logger.info("%s", text)
            self._bus.publish(Alarmed(name, text, over=True))
