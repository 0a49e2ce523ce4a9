"""Optional services for tools, imported and created at the first call that uses them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from edge.config.model import Settings
from edge.config.validators import BadSettings
from edge.daemon.status import uplink_state
from edge.ports import GlassesPort, GlassesStatus, RenderPort, UplinkStatus
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.first_completed import race, run_unless
from edge.storage.notes import Notes
from edge.tools.announcements.alarm_notifier import AlarmNotifier
from edge.tools.wearer_events import WearerEvents
from tools_cache.api.handed import Json, ToolStorage
from tools_cache.api.tool import ErrorCode, ToolFailure

if TYPE_CHECKING:
    from edge.display.images import LensImages
    from edge.observability.history_recorder import HistoryRecorder
    from edge.storage.history import ForgetCalls, HistoryStore, UserHistory
    from edge.storage.tools.encryption import Keyring
    from edge.storage.tools.knowledge import KnowledgeBase
    from edge.tools.glasses_questions import GlassesQuestions
    from edge.tools.media.photos import GlassesCamera
    from edge.tools.media.voice_notes import Wave, Words
    from edge.tools.worker_calls import WorkerCalls
    from firmware_bridge.messages import Tile
    from tools_cache.api.calendars import Calendars

FindCall = Callable[[str], Awaitable[Mapping[str, Json] | None]]
"""Returns a stored call with its request and response."""
log = logging.getLogger(__name__)
Secret = Callable[[str, str], str | None]
"""Returns a secret: (configured file, name of the credential)."""


async def _no_calls(_user: str, _query: object) -> int:
    return 0


@dataclass(eq=False, repr=False)
class ToolServices:
    """One per daemon. `notes` is the storage of the notes tools, which the knowledge base reads;
    `keyring` gives the key of encrypted stores; `forget_calls` empties finished calls.
    """

    settings: Settings
    _: KW_ONLY
    state: Path
    clock: Clock
    secret: Secret
    notes: ToolStorage
    forget_calls: "ForgetCalls" = _no_calls
    keyring: "Callable[[], Keyring] | None" = None
    glasses: Callable[[], GlassesStatus] = GlassesStatus
    uplink: Callable[[], UplinkStatus] = UplinkStatus
    wearer_events: WearerEvents = field(init=False)
    """Events of the glasses are recorded here."""
    _knowledge: "KnowledgeBase | None" = field(default=None, init=False)
    _calendars: "Calendars | None" = field(default=None, init=False)
    _workers: "WorkerCalls | None" = field(default=None, init=False)
    _history: "HistoryStore | None" = field(default=None, init=False)
    _pictures: "LensImages | None" = field(default=None, init=False)
    _camera: "GlassesCamera | None" = field(default=None, init=False)
    _questions: "GlassesQuestions | None" = field(default=None, init=False)
    _recording: bool = field(default=False, init=False)

    _mail_changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self.wearer_events = WearerEvents(self.clock)

    def pictures(self) -> "LensImages":
        """Return the converter of pictures for the connected glasses."""
        if self._pictures is None:
            from edge.display.images import LensImages  # noqa: PLC0415 - see the top

            self._pictures = LensImages(self.glasses)
        return self._pictures

    async def tile(self, image: str, width: int, height: int) -> "Tile":
        """Return a picture fitted into a part of the lens. Raises `ToolFailure`."""
        return await self.pictures().tile(image, width, height)

    def camera(self, glasses: GlassesPort, bus: Bus) -> "GlassesCamera":
        """Return the glasses' camera."""
        if self._camera is None:
            from edge.tools.media.photos import GlassesCamera  # noqa: PLC0415 - see the top

            self._camera = GlassesCamera(glasses, bus, self.pictures().jpeg)
        return self._camera

    def questions(
        self, glasses: GlassesPort, bus: Bus, words: "Words", wave: "Wave"
    ) -> "GlassesQuestions":
        """Return what asks the glasses."""
        if self._questions is None:
            from edge.tools.glasses_questions import GlassesQuestions  # noqa: PLC0415 - see the top

            self._questions = GlassesQuestions(glasses, bus, words, wave)
        return self._questions

    def network(self) -> dict[str, str]:
        """Return whether the cloud is reachable, as in the status."""
        uplink = self.uplink()
        return {"state": uplink_state(uplink), "reason": uplink.reason}

    def use(self, settings: Settings) -> None:
        """Use the folders and servers of these settings from the next request on."""
        watched = self._watched_mail()
        self.settings = settings
        if self._watched_mail() != watched:
            self._mail_changed.set()
        self._calendars = None
        if self._knowledge is not None:
            self._knowledge.follow(self._folder())

    def zone(self) -> tzinfo | None:
        """Return the wearer's time zone; None: the machine's."""
        name = self.settings.wearer.timezone
        if not name:
            return None
        from zoneinfo import ZoneInfo  # noqa: PLC0415 - most machines stand where their wearer is

        return ZoneInfo(name)

    def _folder(self) -> Path | None:
        return Path(self.settings.kb.folder) if self.settings.kb.folder else None

    def knowledge(self) -> "KnowledgeBase":
        """Return the knowledge base; its file is opened at its first request."""
        if self._knowledge is None:
            from edge.storage.tools.knowledge import KnowledgeBase  # noqa: PLC0415 - see the top

            self._knowledge = KnowledgeBase(
                self.state / "knowledge.db",
                folder=self._folder(),
                notes=self._all_notes,
                clock=self.clock,
            )
        return self._knowledge

    def calendars(self) -> "Calendars":
        """Return the calendars. Raises `ToolFailure` if the password cannot be read now."""
        if self._calendars is None:
            from edge.tools.calendars.lookup import CalendarLookup, CalendarPlace  # noqa: PLC0415 - see the top

            c = self.settings.calendar
            password = self._password() if c.url and c.username else ""
            place = CalendarPlace(
                folder=Path(c.folder) if c.folder else self.state / "calendars",
                named=bool(c.folder),
                url=c.url,
                username=c.username,
                password=password,
                email=c.email,
                meeting_url=c.meeting_url,
            )
            self._calendars = CalendarLookup(place, now=self.clock.wall)
        return self._calendars

    def workers(self) -> "WorkerCalls":
        """Return what runs the network parts of tools."""
        if self._workers is None:
            from edge.tools.worker_calls import WorkerCalls  # noqa: PLC0415 - see the top

            self._workers = WorkerCalls()
        return self._workers

    def _watched_mail(self) -> Mapping[str, Json] | None:
        """Return the settings of the account whose new mail is announced; None if none is."""
        for name, values in self.settings.tool.values.items():
            if name.startswith("email:") and values.get("notify_from"):
                return values
        return None

    async def watch_mail(
        self, *, notes: Notes, bus: Bus, stage: RenderPort, glasses: GlassesPort
    ) -> None:
        """Announce new mail of the senders that are chosen; the service."""
        while True:
            self._mail_changed.clear()
            config = self._watched_mail()
            if config is None:
                await self._mail_changed.wait()
                continue
            from edge.tools.announcements.mail_watch import MailWatch  # noqa: PLC0415 - see the top

            mail = MailWatch(config, notes=notes, bus=bus, clock=self.clock)
            notifier = AlarmNotifier(mail, stage=stage, glasses=glasses, bus=bus, clock=self.clock)
            await run_unless(race(mail.run(), notifier.run()), self._mail_changed.wait())

    def history(self, user: str) -> "UserHistory":
        """Return this user's history; its file is opened at its first request."""
        from edge.storage.history import UserHistory  # noqa: PLC0415 - see the top

        return UserHistory(
            self._history_store(),
            user,
            recording=self._recording,
            forget_calls=self.forget_calls,
        )

    def recorder(self, bus: Bus, find: FindCall) -> "HistoryRecorder":
        """Return the service that records the history."""
        from edge.observability.history_recorder import HistoryRecorder  # noqa: PLC0415 - see the top
        from edge.storage.history import Retention  # noqa: PLC0415

        self._recording, h = True, self.settings.history
        return HistoryRecorder(
            self._history_store(),
            find,
            bus=bus,
            user=self.settings.edge.user_id,
            keep=Retention(h.days, h.max_entries),
            transcripts=h.transcripts,
        )

    def _history_store(self) -> "HistoryStore":
        if self._history is None:
            from edge.storage.history import HistoryStore  # noqa: PLC0415 - see the top

            if self.keyring is None:
                raise ToolFailure.of(ErrorCode.TOOL_UNAVAILABLE, "There is no key for the history")
            self._history = HistoryStore(self.state / "history.db", self.keyring, self.clock)
        return self._history

    def _password(self) -> str:
        try:
            file = self.settings.calendar.password_file
            return self.secret(file, "glassd-calendar-password") or ""
        except BadSettings as e:
            log.warning("%s", e)
            raise ToolFailure.of(
                ErrorCode.AUTH,
                "The calendar's password cannot be read",
                suggestion="Check calendar.password_file, and who may read it",
            ) from e

    async def _all_notes(self) -> list[tuple[str, str, float]]:
        """Return the wearer's newest thousand notes."""
        from tools_cache.api import notes  # noqa: PLC0415 - see the top

        if not await notes.there(self.notes):
            return []
        rows = await self.notes.fetch(notes.newest(), 1000)
        return [(str(row["id"]), str(row["text"]), float(row["created"])) for row in rows]

    async def close(self) -> None:
        """Close what was opened."""
        for opened in (self._pictures, self._knowledge, self._history):
            if opened is not None:
                await opened.close()
