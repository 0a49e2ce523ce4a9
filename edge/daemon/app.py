"""The daemon: creates all its parts, connects and runs them, and reports to systemd.

No rules here: they belong into `core/`.
"""

import asyncio
import gc
import os
import random
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tools_cache
from edge import __version__
from edge.calls import voice_session
from edge.calls.dependencies import CallPorts, CallStores
from edge.calls.orchestrator import Orchestrator
from edge.calls.turns import OpenTurns
from edge.cloud.enrolment.client import Enrolment, EnrolmentOptions
from edge.cloud.enrolment.credentials import EnrolmentFiles
from edge.cloud.mqtt.client import MqttUplink
from edge.cloud.reporter import CapabilityReporter
from edge.config import model as configuration, reload
from edge.config.model import Settings
from edge.config.validators import BadSettings
from edge.control.dependencies import ControlDependencies
from edge.control.server import ControlServer
from edge.core import call_state, idempotency
from edge.core.backoff import Backoff
from edge.core.routing import RouteKind
from edge.core.session import SessionController
from edge.core.tools.selection_rules import Facts
from edge.core.tools.user_tools import Own
from edge.daemon import apply_settings, identity, microphone
from edge.daemon.cloud_config import CloudSource
from edge.daemon.mcp_servers import McpServers
from edge.daemon.reload import Reload, on_hangup
from edge.daemon.status import Layers, document
from edge.daemon.status_checks import StatusLook
from edge.daemon.storage_watch import StorageWatch
from edge.daemon.supervisor import Service, Supervisor
from edge.daemon.tool_services import ToolServices
from edge.daemon.user_tools import UserTools
from edge.daemon.wearer_writer import WearerWriter
from edge.display.drawn_text import DrawnText
from edge.display.presenter import Presenter
from edge.display.voice.volume import VoiceVolume
from edge.display.wording import Wording
from edge.link.bonds import Bonds, allowed
from edge.link.discovery import BleFinder
from edge.link.glasses_state import GlassesState
from edge.link.manager import LinkManager
from edge.link.pairing import PairingService
from edge.observability.audit import AuditBounds, AuditLog, filtered_line
from edge.observability.metrics import Gauges, Metrics
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.deadlines import Deadlines
from edge.runtime.events import Alarmed, ToolsFiltered
from edge.runtime.ids import new_call_id
from edge.runtime.sd_notify import Notifier
from edge.runtime.watchdog import Watchdog
from edge.storage.call_promises import CallPromises
from edge.storage.calls import CallStore
from edge.storage.confirmations import Confirmations
from edge.storage.inbox import Inbox
from edge.storage.migrations import MIGRATIONS
from edge.storage.notes import Notes
from edge.storage.outbox import MAX_BYTES, Outbox
from edge.storage.pending import PendingCalls
from edge.storage.results import ResultCache
from edge.storage.sessions import Sessions
from edge.storage.size_bounds import Bounds
from edge.storage.sqlite.database import SqliteDatabase, StoreFull
from edge.storage.tool_choices import ToolChoices
from edge.storage.tools.packages import Packages, PackageStorage
from edge.storage.tools.user_stores import PrivateStores
from edge.tools.announcements.alarm_notifier import AlarmNotifier
from edge.tools.announcements.alarms import AlarmClock
from edge.tools.announcements.reminders import Reminders
from edge.tools.glasses_settings import GlassesSettings
from edge.tools.http_tools import HttpTools
from edge.tools.list_changes import ListChanges
from edge.tools.local import LocalTools
from edge.tools.registry import ToolRegistry
from edge.tools.selection import ToolSelection
from edge.tools.services import Services
from firmware_bridge import catalog
from firmware_bridge.messages import Transcript
from firmware_bridge.models import UnknownModel
from tools_cache.registry.stored_registry import StoredRegistries

if TYPE_CHECKING:
    from edge.tools.meta_tools import MetaTools
    from edge.tools.user_knowledge import UserKnowledge
    from tools_cache.api.handed import Database
    from tools_cache.api.history import HistoryQuery
    from tools_cache.api.tool import ToolCall, ToolResponse

ALARM_PACKAGE: Final = "glassd.alarms"
"""Package with the database of the alarms and reminders; with a dot, so it is no tool's."""
GC_THRESHOLDS: Final = (5_000, 10, 10)
"""A call makes some hundred objects that the collector counts; by default it would search after
each few of them.
"""
SWITCH_S: Final = 0.0005
"""How long this thread may keep the store's from running: it takes turns with every statement and
every commit. Python's own 5 ms are as long as ten commits.
"""
_NO_OWN: Final = Own()
_STOP_FIRST: Final = ("microphone", "stage")
"""While the link is still there: the microphone goes off, then what the lens says of it."""


class Daemon:
    """All parts of one running glassd. `open` creates them, `run` serves until cancelled."""

    def __init__(
        self,
        settings: Settings,
        env: Mapping[str, str],
        *,
        air: object | None = None,
        clock: Clock | None = None,
        hide: Callable[[str], None] = lambda _secret: None,
        registries: StoredRegistries | None = None,
        own: Own = _NO_OWN,
        config: Path | None = None,
    ) -> None:
        self.settings = settings
        self.env = env
        self.deadlines = Deadlines()
        self.bus = Bus(self.deadlines.within)
        self.clock = clock or Clock.system()
        self.writer = WearerWriter(settings, env, self.clock)
        self.state_dir = settings.state_dir(env)
        self.identity = identity.find(settings.edge.id, self.state_dir)
        self.edge_id = self.identity.edge_id
        self.notifier = Notifier(env)
        self.turns = OpenTurns()
        self.session = SessionController()
        self._tools_changed = asyncio.Event()
        self._air = air
        self._hide = hide
        self._registries = registries
        self._own = own
        self._config = config
        self._alarms = dict(self.identity.alarms)

    # -------------------------------------------------------------- building

    async def open(self, stack: AsyncExitStack) -> None:
        """Create all parts, each after those it needs. Raises BadSettings, StoreError,
        SocketTaken.
        """
        self.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        await self._open_store(stack)
        self._open_link()
        self._open_cloud()
        self._open_uplink()
        self._open_stage()
        self._open_registry()
        self._open_microphone(stack)
        self._open_tools(stack)
        self._open_servers(stack)
        await self._open_choice(stack)
        await self._open_calls()
        self._open_reload()
        self._open_control()
        self.control.open()
        stack.callback(self.control.close)

    async def _open_store(self, stack: AsyncExitStack) -> None:
        self.db = await SqliteDatabase.open(
            self.state_dir / "glassd.db",
            MIGRATIONS,
            promises=CallPromises(edge_id=self.identity.kept, boot_id=self.clock.boot_id),
            secure_delete=True,
        )
        stack.push_async_callback(self.db.close)
        self.packages = Packages(self.state_dir / "packages")
        stack.push_async_callback(self.packages.close)
        key = configuration.credential("", "glassd-tools-key", self.env)
        self.private = PrivateStores(
            self.state_dir / "users", key=self.state_dir / "tools.key", credential=key
        )
        stack.push_async_callback(self.private.close)
        self.notes = Notes(self.db)
        self.store = CallStore(
            self.db, self.clock, call_state.check, replayable=idempotency.replayable
        )
        self.call_stores = CallStores(
            self.store, PendingCalls(self.db, self.clock), ResultCache(self.db, self.clock)
        )
        self.confirmations = Confirmations(self.db, self.clock, call_state.check)
        self.sessions = Sessions(self.db, self.clock, lambda: secrets.token_hex(8))
        self._open_audit(stack)
        self.storage = StorageWatch(
            self.db,
            self.state_dir,
            bus=self.bus,
            other_trouble=lambda: self.audit.trouble if self.audit else "",
        )
        if self.db.damage:
            self._alarms["database"] = self.db.damage

    def _open_audit(self, stack: AsyncExitStack) -> None:
        a = self.settings.audit
        self.metrics = Metrics(self.gauges)
        self.audit: AuditLog | None = None
        if a.enabled:
            self.audit = AuditLog(
                self.state_dir / "audit" / "calls.jsonl",
                clock=self.clock,
                bounds=AuditBounds(a.max_bytes, a.keep),
                with_args=a.args,
            )
            self.audit.open()
            stack.callback(self.audit.close)

    def _note_call(self, record: Mapping[str, Any]) -> None:
        """Count one answered call, and write it to the audit log if there is one."""
        self.metrics.observe(record)
        self.choice.observe(record)
        if self.audit is not None:
            self.audit(record)

    def _open_registry(self) -> None:
        s = self.settings
        self.registry = ToolRegistry(
            builtin=_built() / "tool_registry.json",
            state=self.state_dir / "registry",
            bus=self.bus,
            clock=self.clock,
            cloud=self.cloud.registry(),
            settings=apply_settings.registry(s),
            within=self.deadlines.within,
            swapped=self._tools_changed.set,
            locked=s.registry.locked,
            per_tool_hardware=s.registry.per_tool_hardware,
        )
        apply_settings.tell_off(s)
        self.registry.load(self._registries)
        self._registries = None

    def _open_microphone(self, stack: AsyncExitStack) -> None:
        self.recognisers = microphone.Recognisers(self.settings, self.clock)
        stack.push_async_callback(self.recognisers.close)
        self.listening = microphone.ListeningOnDemand(
            self.settings,
            recognisers=self.recognisers,
            session=self.session,
            glasses=self.link,
            stage=self.stage,
            snapshot=self.registry.snapshot,
            private=self.private,
            bus=self.bus,
            clock=self.clock,
            audit=self.audit or (lambda _line: None),
        )

    def _open_tools(self, stack: AsyncExitStack) -> None:
        s = self.settings
        alarms = self._storage(ALARM_PACKAGE)
        self.alarms = AlarmClock(alarms, self.clock)
        self.tool_services = ToolServices(
            s,
            state=self.state_dir,
            clock=self.clock,
            secret=self._secret,
            notes=self._storage("notes"),
            forget_calls=self._forget_calls,
            keyring=self.private.keyring,
            glasses=self.link.status,
            uplink=self.uplink.status,
        )
        stack.push_async_callback(self.tool_services.close)
        self.reminders = Reminders(alarms, self.clock, zone=self.tool_services.zone)
        self.tools = LocalTools(
            tools=_built() / "tools",
            full=(StoreFull,),
            services=Services(
                storage_for=self._storage,
                alarms=self.alarms,
                reminders=self.reminders,
                clock=self.clock,
                glasses=self.link.status,
                private=self.private.of,
                call=self._call,
                present=self.stage.present,
                state=self._session_state,
                voice_active=lambda: self.session.voice_active(self.clock.boot()),
                note=self.audit,
                configs=s.tool.values,
                network=self.tool_services.network,
                glasses_do=GlassesSettings(
                    self.link,
                    self.clock,
                    self.stage.side_commands,
                    self.volume.set,
                    Wording(self.writer).of,
                    self.writer.glasses_clock,
                    self.tool_services.tile,
                ),
                knowledge=self._knowledge,
                calendars=self.tool_services.calendars,
                history=self.tool_services.history,
                workers=self.tool_services.workers,
                pictures=self.tool_services.pictures,
                camera=lambda: self.tool_services.camera(self.link, self.bus),
                questions=lambda: self.tool_services.questions(
                    self.link, self.bus, self.recognisers.words, self.recognisers.wave
                ),
                wearer=lambda: self.tool_services.wearer_events,
                toolbox=self._toolbox,
                captions=lambda: self.listening,
                microphone=lambda: self.listening,
                uploads=self.cloud.registry,
            ),
        )

    def _open_servers(self, stack: AsyncExitStack) -> None:
        self.servers = McpServers(
            self.registry,
            state=self.state_dir,
            env=self.env,
            bus=self.bus,
            clock=self.clock,
            hide=self._hide,
            note=self.audit,
            present=self.stage.present,
            draw=lambda text: self.tool_services.pictures().code(text),
            ask=self.stage,
            ready=lambda: self.link.status().ready,
        )
        self.gateway = HttpTools()
        stack.push_async_callback(self.gateway.close)
        self.own_tools = UserTools(
            self.gateway,
            self.registry,
            settings=self.settings,
            env=self.env,
            hide=self._hide,
            servers=self.servers.use,
            forget=self.tools.forget,
        )
        self.own_tools.use(self._own)

    def _open_link(self) -> None:
        g = self.settings.glasses
        try:
            catalog.find(g.model) if g.model else None
        except UnknownModel as e:
            raise BadSettings(f"glasses.model: {e}") from None
        self.bonds = Bonds(self.state_dir / "bonds.json")
        self.bonds.load()
        self.finder = BleFinder(
            g.radio,
            address=g.address or None,
            model=g.model or None,
            scan_s=g.scan_s,
            connect_s=g.connect_s,
            air=self._air,
            ours=allowed(self.bonds, connect=g.connect, radio=g.radio, address=g.address),
            keys=self.state_dir / "radio-keys.json",
        )
        backoff = Backoff(random.random, first_s=g.backoff_min_s, most_s=g.backoff_max_s)
        self.link = LinkManager(
            self.finder,
            GlassesState(self.bus, self.clock, self.notes, g.capabilities),
            bus=self.bus,
            clock=self.clock,
            backoff=backoff,
            version=__version__,
            watched=bool(self.notifier.watchdog_s),
            suppressed=self.session.suppresses_transcripts,
            wearer_clock=self.writer.glasses_clock,
            within=self.deadlines.within,
            step_s=60.0 + 2 * (g.scan_s + g.connect_s),
        )
        self.pairing = PairingService(
            self.finder.radio,
            bonds=self.bonds,
            paused=self.link.paused,
            glasses=self.link.status,
            bus=self.bus,
            clock=self.clock,
        )

    def _open_cloud(self) -> None:
        self.enrolment = Enrolment(
            EnrolmentFiles(self.state_dir),
            EnrolmentOptions(self.edge_id, __version__),
            bus=self.bus,
            clock=self.clock,
            chance=random.random,
            hide=self._hide,
            within=self.deadlines.within,
        )
        self.enrolment.load()
        self.cloud = CloudSource(
            self.settings, self.env, self.enrolment, edge_id=self.edge_id, secret=self._secret
        )

    def _open_uplink(self) -> None:
        most = Bounds(self.settings.uplink.outbox_max, MAX_BYTES)
        outbox = Outbox(self.db, self.clock, calls=most)
        self.uplink = MqttUplink(
            self.cloud.uplink(),
            outbox=outbox,
            inbox=Inbox(self.db, self.clock),
            bus=self.bus,
            clock=self.clock,
            within=self.deadlines.within,
        )

    async def _open_choice(self, stack: AsyncExitStack) -> None:
        self.choice = ToolSelection(
            registry=self.registry,
            store=ToolChoices(self.db, self.clock),
            bus=self.bus,
            clock=self.clock,
            facts=self._facts,
            settings=apply_settings.selection(self.settings),
            audit=self.audit,
            listed=self._tools_changed.set,
            boundary=self.turns.boundary,
            tools=_built() / "tools",
            forget=self.tools.forget,
        )
        self.list_news = ListChanges(
            self.registry.snapshot,
            offered=partial(self.choice.offered, self.settings.edge.user_id),
            changed=self._tools_changed,
            bus=self.bus,
            boundary=self.turns.boundary,
        )
        await self.choice.load()
        stack.push_async_callback(self.choice.close)

    def _facts(self) -> Facts:
        glasses = self.link.status()
        return Facts(glasses.ready, self.uplink.status().up, glasses.worn)

    async def enrol(self, code: str) -> Mapping[str, Any]:
        """`POST /v1/enrol`: redeem a code, and use the result at once. Raises `EnrolRefused`."""
        enrolled = await self.cloud.enrol(code)
        self.uplink.use(self.cloud.uplink())
        self.registry.follow(self.cloud.registry())
        return enrolled

    def _open_stage(self) -> None:
        self.voice = apply_settings.voice(self.settings)
        self.volume = VoiceVolume(self.voice, self.notes)
        self.stage = Presenter(
            glasses=self.link,
            bus=self.bus,
            clock=self.clock,
            notes=self.notes,
            voice=self.voice,
            writer=self.writer,
            code=lambda text: self.tool_services.pictures().code(text),
            fit=lambda image, known: self.tool_services.pictures().fit(image, known),
            drawn=DrawnText(self.settings.display.fonts),
            within=self.deadlines.within,
            listens=lambda: self.listening,
        )

    async def _open_calls(self) -> None:
        s = self.settings
        await voice_session.restore(self.session, self.notes)
        await self.volume.restore()
        ports = CallPorts(
            registry=self.registry,
            backends={
                RouteKind.LOCAL: self.tools.run,
                RouteKind.GLASSES: self.tools.run,
                RouteKind.GATEWAY: self.gateway.run,
                RouteKind.LATER: self.gateway.run,
                RouteKind.UPSTREAM: self.servers.call,
            },
            stores=self.call_stores,
            confirmations=self.confirmations,
            sessions=self.sessions,
            session=self.session,
            notes=self.notes,
            uplink=self.uplink,
            glasses=self.link,
            stage=self.stage,
            ask=self.stage,
            bus=self.bus,
            clock=self.clock,
            on_registry=self.registry.notice,
            take_late_answer=self.tools.take_late_answer,
            name_arguments=self.tools.name_arguments,
            audit=self._note_call,
            writer=self.writer,
            words_wanted=self.tool_services.wearer_events.words_wanted,
            names=lambda: self.listening.names,
        )
        policy_ = apply_settings.policy(s, choice=self.choice)
        self.calls = Orchestrator(
            ports, limits=apply_settings.limits(s), policy_=policy_, turns=self.turns
        )

    async def _call(self, call: "ToolCall") -> "ToolResponse":
        """Call a tool for another one; the calls are created after the tools."""
        return await self.calls.call(call)

    def _session_state(self) -> dict[str, Any]:
        state = self.session.described(self.clock.boot())
        return {**state, "cannot_listen": self.listening.why_not()}

    def _open_reload(self) -> None:
        self.reload = Reload(
            self.settings,
            read=partial(reload.read, self._config, self.env),
            bus=self.bus,
            notifier=self.notifier,
            turns=self.turns,
            within=self.deadlines.within,
            applier=apply_settings.SettingsApplier(
                cloud=self.cloud,
                uplink=self.uplink,
                registry=self.registry,
                calls=self.calls,
                tools=self.tools,
                own=self.own_tools,
                choice=self.choice,
                services=self.tool_services,
                writer=self.writer,
                voice=self.voice,
                volume=self.volume,
                listening=self.listening,
                recognisers=self.recognisers,
            ),
        )

    async def _hear(self, text: str) -> "ToolResponse":
        """Take a typed transcript as if the glasses had recognised it."""
        if not self.session.suppresses_transcripts():
            self.tool_services.wearer_events.note(Transcript(text))
        return await self.calls.heard(text)

    def _open_control(self) -> None:
        s = self.settings
        self.reporter = CapabilityReporter(
            bus=self.bus,
            glasses=self.link,
            uplink=self.uplink,
            registry=self.registry,
            clock=self.clock,
            host={"speech": not self.voice.missing(), "version": __version__},
            shown=self.choice.open_to_cloud,
            noted=self.tool_services.wearer_events.note,
        )
        self.looks = StatusLook(
            lambda: self.reload.settings,
            self.env,
            glasses=self.link.status,
            radio_open=self.finder.has_radio_open,
            clock=self.clock,
        )
        ports = ControlDependencies(
            calls=self.calls,
            registry=self.registry,
            render=self.stage,
            store=self.store,
            bus=self.bus,
            status=self.status,
            look=self.looks.look,
            say=self._hear,
            new_id=lambda: new_call_id(self.clock.wall()),
            confirmations=self.confirmations,
            sessions=self.sessions,
            session_state=self._session_state,
            user_id=s.edge.user_id,
            metrics=self.metrics.openmetrics,
            pairing=self.pairing,
            enrol=self.enrol,
            choice=self.choice,
            sync=self.registry.sync,
            origin=self.registry.origin,
            servers=self.servers,
            packets=self.link.tapped,
        )
        self.control = ControlServer(
            s.socket_path(self.env),
            ports,
            clock=self.clock,
            group=s.control.group,
            owner_path=s.owner_socket_path(self.env),
            owner_group=s.control.owner_group,
            full=(StoreFull,),
        )

    def _toolbox(self, call: "ToolCall") -> "MetaTools":
        from edge.tools.meta_tools import MetaTools  # noqa: PLC0415 - only who looks for tools needs the search

        return MetaTools(call, self.registry, self.choice)

    def _storage(self, package: str) -> PackageStorage:
        return PackageStorage(self.packages, package)

    def _secret(self, configured: str, name: str) -> str | None:
        secret = configuration.read_secret(configured, name, self.env)
        if secret:
            self._hide(secret)
        return secret

    def _knowledge(self, call: "ToolCall") -> "UserKnowledge":
        from edge.tools.user_knowledge import UserKnowledge  # noqa: PLC0415 - few ever ask it

        async def documents() -> "Database | None":
            if not self._toolbox(call).is_open("domaindoc:search"):
                return None
            return self.private.of(call.user_id, "domaindoc").db

        return UserKnowledge(self.tool_services.knowledge(), documents)

    async def _forget_calls(self, user: str, query: "HistoryQuery") -> int:
        """Empty a user's finished calls, and what is stored of the lens."""
        from edge.storage.forgetting import CallForgetting  # noqa: PLC0415 - few ever forget

        await self.stage.forget_saved()
        return await CallForgetting(self.db).forget(user, query)

    # -------------------------------------------------------------- running

    async def run(self) -> None:
        """Serve until cancelled. Raises an ExceptionGroup if a service does not stay up."""
        watchdog = Watchdog(self.notifier, self._status, overdue=self.deadlines.overdue)
        timers, reminders = (
            AlarmNotifier(
                source, stage=self.stage, glasses=self.link, bus=self.bus, clock=self.clock
            )
            for source in (self.alarms, self.reminders)
        )
        mail = partial(
            self.tool_services.watch_mail,
            notes=self.notes,
            bus=self.bus,
            stage=self.stage,
            glasses=self.link,
        )
        self.services = [
            Service("control", self.control.run),
            Service("watch", self._watch),
            Service("storage", self.storage.run),
            Service("calls", self.calls.run),
            Service("stage", self.stage.run),
            Service("herald", self.reporter.run),
            Service("uplink", self.uplink.run),
            Service("registry", self.registry.run),
            Service("tools list", self.list_news.run),
            Service("tool choice", self.choice.run),
            Service("enrolment", self.enrolment.run),
            Service("reload", self.reload.run),
            Service("servers", self.servers.run),
            Service("microphone", self.listening.run),
            Service("link", self.link.run),
            Service("bell", timers.run),
            Service("reminders", reminders.run),
            Service("mail", mail),
            Service("pulse", watchdog.run),
        ]
        if self.settings.history.enabled:
            recorder = self.tool_services.recorder(self.bus, self.store.get)
            self.services.append(Service("history", recorder.run))
        supervisor = Supervisor(
            self.services, bus=self.bus, now=self.clock.boot, stop_first=_STOP_FIRST
        )
        self.notifier.ready("serving; looking for the glasses")
        try:
            await supervisor.run()
        finally:
            self.notifier.stopping()

    async def _watch(self) -> None:
        """Collect alarms for `status`."""
        with self.bus.listen(calls=False) as events:
            async for event in events:
                if isinstance(event, ToolsFiltered) and self.audit is not None:
                    self.audit(filtered_line(event.apps, event.count))
                elif isinstance(event, Alarmed):
                    self._alarms.pop(event.alarm, None)
                    if not event.over:
                        self._alarms[event.alarm] = event.text

    def gauges(self) -> Gauges:
        """Return the current values for the metrics."""
        uplink = self.uplink.status()
        return Gauges(
            outbox=uplink.outbox,
            outbox_oldest_s=uplink.outbox_oldest_s,
            running=self.calls.running - self.calls.waiting,
            pending=self.calls.waiting,
            glasses_ready=self.link.status().ready,
            uplink_up=uplink.up,
            audit_lost=self.audit.lost if self.audit is not None else 0,
        )

    def status(self) -> dict[str, Any]:
        """`GET /v1/status`."""
        return self._status() | {"microphone": self.listening.describe()}

    def _status(self) -> dict[str, Any]:
        """Return it without the microphone: systemd's line does not need what examines that."""
        return document(
            Layers(
                version=__version__,
                edge_id=self.edge_id,
                radio=self.settings.glasses.radio,
                glasses=self.link.status(),
                bond=self.pairing.bond(),
                uplink=self.uplink.status(),
                source=self.cloud.source,
                certificate_left_s=self.cloud.certificate_left_s(),
                registry=self.registry.describe(),
                calls={
                    "running": self.calls.running - self.calls.waiting,
                    "pending": self.calls.waiting,
                    **self.metrics.summary(),
                },
                audio={
                    "speech": self.settings.audio.speech,
                    "voice": self.voice.missing() or self.settings.audio.voice,
                    "volume": self.voice.volume,
                },
                wearer=self.writer.describe(),
                services=[s.to_json() for s in getattr(self, "services", [])],
                alarms={**self.storage.alarms(), **self._alarms, **self.pairing.alarms()},
                config_path=str(self.settings.source or ""),
                configuration=self.reload.describe(),
                servers=self.servers.describe(),
                seen=self.looks.seen,
            ),
            self.clock.boot(),
        )


async def serve(
    settings: Settings,
    *,
    hide: Callable[[str], None],
    registries: StoredRegistries | None = None,
    own: Own = _NO_OWN,
    config: Path | None = None,
) -> int:
    """Run the daemon until it is stopped; return the exit code of `glassd run`. `hide` keeps a
    secret out of the log; `registries`: the registries on disk (None: read them here); `own`: the
    owner's tools; `config`: the named file, if any.
    """
    sys.setswitchinterval(SWITCH_S)
    async with AsyncExitStack() as stack:
        daemon = Daemon(
            settings, os.environ, hide=hide, registries=registries, own=own, config=config
        )
        await daemon.open(stack)
        stack.enter_context(on_hangup(daemon.reload.ask))
        asyncio.get_running_loop().call_soon(_settle_memory)  # runs when READY has been said
        await daemon.run()
    return 0


def _settle_memory() -> None:
    """Have the garbage collector leave alone what was made at the start, all of which stays.

    Without this each of its full searches would walk through every class and function.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def _built() -> Path:
    """Return the folder of the built-in tools."""
    return Path(tools_cache.__file__).parent
