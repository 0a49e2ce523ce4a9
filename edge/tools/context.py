"""The `ToolContext` of a handler: the services of one call. Imported at the first call."""

import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from edge.core import confirmation
from edge.ports import Progress
from edge.runtime.ids import new_call_id
from edge.storage.tools.user_stores import Private
from edge.tools.services import Services
from firmware_bridge.capabilities import FLAG, Hardware
from tools_cache.api import handed
from tools_cache.api.handed import Json
from tools_cache.api.tool import ErrorCode, ToolCall, ToolFailure, ToolResponse
from tools_cache.names import parse

if TYPE_CHECKING:  # only the tools that use them load them
    from edge.listening_ports import CaptionsPort, RecordingPort
    from tools_cache.api import services
    from tools_cache.api.calendars import Calendars
    from tools_cache.api.history import History
    from tools_cache.api.knowledge import Knowledge

MAX_PROGRESS: Final = 500
MAX_EVENT: Final = 200
MAX_KEY: Final = 200
MAX_DEPTH: Final = 3
"""Maximum depth of tools that call tools: deeper is a loop."""
LOG: Final = "glassd.tool."
_GLASSES: Final = "glasses"
_STATUS: Final = ("state", "ready", "stale", "model", "firmware", "battery", "case", "worn")
_LENS: Final = ("width", "height", "lines", "bitmap")

T = TypeVar("T")
UNSET: Final[Mapping[str, Json]] = MappingProxyType({"enabled": True})
"""Settings of a tool that has none."""


@dataclass(frozen=True, slots=True)
class Context:
    """See `ToolContext`; one per call. A service is created when the handler asks for it."""

    call: ToolCall
    _services: Services
    _progress: Progress
    _calls: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _shows: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    # -------------------------------------------------------------- what outlives the call

    @property
    def storage(self) -> handed.ToolStorage:
        return self._services.storage_for(self._package)

    @property
    def db(self) -> handed.Database:
        return self._private.db

    @property
    def files(self) -> handed.Files:
        return self._private.files

    @property
    def kv(self) -> handed.KV:
        return StoredValues(self._private.db)

    @property
    def alarms(self) -> handed.Alarms:
        return self._services.alarms

    @property
    def config(self) -> handed.Config:
        return self._services.configs.get(self.call.tool, UNSET)

    @property
    def glasses_do(self) -> handed.Deeds:
        return _there(self._services.glasses_do, "way to tell the glasses that")

    @property
    def captions(self) -> handed.Captions:
        return CaptionsSwitch(_there(self._services.captions, "microphone to listen with"))

    @property
    def microphone(self) -> handed.Microphone:
        if self._package != _GLASSES:
            why = "Only glasses:record_sound, which asks the wearer, records: call that tool"
            raise ToolFailure.of(ErrorCode.UNSUPPORTED, why)
        return SoundRecorder(_there(self._services.microphone, "microphone to record with"))

    @property
    def knowledge(self) -> "Knowledge":
        return self._services.knowledge(self.call)

    @property
    def calendars(self) -> "Calendars":
        return self._services.calendars()

    @property
    def history(self) -> "History":
        return self._services.history(self.call.user_id)

    @property
    def reminders(self) -> "services.Reminders":
        return _there(self._services.reminders, "reminders")

    @property
    def workers(self) -> "services.Workers":
        return self._services.workers()

    @property
    def toolbox(self) -> handed.Toolbox:
        return self._services.toolbox(self.call)

    @property
    def pictures(self) -> handed.Pictures:
        return self._services.pictures()

    @property
    def camera(self) -> handed.Camera:
        if self._package != _GLASSES:
            why = "Only glasses:take_photo, which asks the wearer, takes photos: call that tool"
            raise ToolFailure.of(ErrorCode.UNSUPPORTED, why)
        return self._services.camera()

    @property
    def glasses_ask(self) -> handed.Questions:
        if self._package != _GLASSES:
            why = "Only the tools of `glasses` ask the glasses that: call one of them"
            raise ToolFailure.of(ErrorCode.UNSUPPORTED, why)
        return self._services.questions()

    @property
    def wearer(self) -> handed.Wearer:
        return self._services.wearer()

    # -------------------------------------------------------------- to show, to say, to ask

    @property
    def display(self) -> handed.Display:
        return Output(self._present)

    @property
    def audio(self) -> handed.Audio:
        return Output(self._present)

    @property
    def cloud(self) -> handed.Cloud:
        return OtherTools(self.call_tool)

    @property
    def clock(self) -> handed.Clock:
        return WallClock(self._services.clock.wall)

    @property
    def session(self) -> handed.Session:
        return VoiceSession(_there(self._services.state, "a voice session"))

    @property
    def voice_active(self) -> bool:
        return self._services.voice_active()

    @property
    def audit(self) -> handed.Audit:
        return AuditLine(self.call, self._services.note)

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(LOG + self.call.tool)

    def now(self) -> float:
        return self._services.clock.wall()

    def glasses(self) -> Mapping[str, Json]:
        status = self._services.glasses()
        said: dict[str, Json] = {key: getattr(status, key) for key in _STATUS}
        known = status.capabilities
        if known is None:
            return {**said, "can": [], "lens": None, "gestures": []}
        lens = {key: known.get(f"display.{key}") for key in _LENS}
        gestures = str(known.get("gestures", "")).replace(" ", "").split(",")
        return {
            **said,
            "can": sorted(key for hardware, key in FLAG.items() if known.has(hardware)),
            "lens": lens if known.has(Hardware.DISPLAY) else None,
            "gestures": sorted(filter(None, gestures)),
        }

    def network(self) -> Mapping[str, Json]:
        return dict(self._services.network())

    async def attach(self, data: bytes, kind: str) -> Json:
        from edge.tools.media.attachments import attach  # noqa: PLC0415 - few tools have photos or sounds

        cloud = self._services.uploads()
        return await attach(data, kind, origin=self.call.origin, cloud=cloud)

    async def progress(self, text: str) -> None:
        await self._progress(text[:MAX_PROGRESS])

    async def call_tool(self, tool: str, args: Mapping[str, Json]) -> ToolResponse:
        mine, number, call = self.call, next(self._calls), self._services.call
        if call is None or mine.depth >= MAX_DEPTH:
            return ToolResponse.failure(
                ErrorCode.UNSUPPORTED, f"{tool} is called more than {MAX_DEPTH} tools deep"
            )
        # The key makes a second run of this call ask for the same calls, not for more of them.
        return confirmation.without_token(
            await call(
                replace(
                    mine,
                    call_id=new_call_id(self._services.clock.wall()),
                    tool=tool,
                    args=dict(args),
                    depth=mine.depth + 1,
                    through=mine.tool,
                    idempotency_key=f"{mine.call_id}/{number}",
                    provider_call_id=None,
                    ordinal=None,
                )
            )
        )

    # -------------------------------------------------------------- within

    @property
    def _package(self) -> str:
        return parse(self.call.tool).package

    @property
    def _private(self) -> Private:
        return _there(self._services.private, "storage of one user's own")(
            self.call.user_id, self._package
        )

    async def _present(self, render: dict[str, Json]) -> str:
        """Show it as a scene of its own: it is not the result of this call."""
        present = _there(self._services.present, "a lens")
        scene = f"{self.call.call_id}/shown-{next(self._shows)}"
        return (await present(scene, ToolResponse(render=render))).state.value


def _there(part: T | None, what: str) -> T:
    """Return a service. Raises ToolFailure if it is missing here."""
    if part is None:
        raise ToolFailure.of(ErrorCode.UNSUPPORTED, f"There is no {what} here")
    return part


# ------------------------------------------------------------------ small services

_KV: Final = "CREATE TABLE IF NOT EXISTS _kv (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
"""A table that no tool can name, because names of tables begin with a letter."""
_KV_THERE: Final = "SELECT 1 FROM sqlite_master WHERE name = '_kv'"
_KV_SET: Final = (
    "INSERT INTO _kv (key, value) VALUES (?, "
    "?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


class Output:
    """Implements `Display` and `Audio`."""

    def __init__(self, present: Callable[[dict[str, Json]], Awaitable[str]]) -> None:
        self._present = present

    async def show(self, text: str, *, title: str = "") -> str:
        layout = {"layout": "reference_card", "title": title} if title else {"layout": "text_wall"}
        return await self._present(
            {"display": {**layout, "text": text}, "audio": {"suppressVoiceResponse": True}}
        )

    async def say(self, text: str) -> str:
        return await self._present({"audio": {"text": text}})


class CaptionsSwitch:
    """Implements `Captions`."""

    def __init__(self, captions: "Callable[[], CaptionsPort]") -> None:
        self._captions = captions

    async def switch(self, *, on: bool) -> None:
        """See `Captions`."""
        from edge.listening_ports import CannotListen  # noqa: PLC0415 - only captions need it

        try:
            await self._captions().switch(on=on)
        except CannotListen as e:
            raise ToolFailure.of(ErrorCode.NOT_ACCEPTED, str(e), for_wearer=str(e)) from None


class SoundRecorder:
    """Implements `Microphone`."""

    def __init__(self, microphone: "Callable[[], RecordingPort]") -> None:
        self._microphone = microphone

    async def record(self, seconds: float, *, rate: int) -> bytes:
        """See `Microphone`."""
        from edge.listening_ports import CannotListen  # noqa: PLC0415 - only recordings need it

        try:
            return await self._microphone().record(seconds, rate=rate)
        except CannotListen as e:
            raise ToolFailure.of(ErrorCode.NOT_ACCEPTED, str(e), for_wearer=str(e)) from None


class OtherTools:
    def __init__(self, call: Callable[[str, Mapping[str, Json]], Awaitable[ToolResponse]]) -> None:
        self._call = call

    async def call(self, tool: str, args: Mapping[str, Json]) -> Mapping[str, Json]:
        return (await self._call(tool, args)).to_json()


class WallClock:
    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now


class VoiceSession:
    def __init__(self, state: Callable[[], Mapping[str, Json]]) -> None:
        self._state = state

    def state(self) -> dict[str, Json]:
        return dict(self._state())


class AuditLine:
    def __init__(self, call: ToolCall, note: Callable[[Mapping[str, Json]], None] | None) -> None:
        self._call = call
        self._note = note

    def log(self, event: str) -> None:
        """Write a line; without an audit log nothing happens."""
        if self._note is not None:
            self._note(
                {
                    "callId": self._call.call_id,
                    "toolId": self._call.tool,
                    "turnId": self._call.turn_id or None,
                    "origin": self._call.origin.value,
                    "outcome": "noted",
                    "reason": event[:MAX_EVENT],
                }
            )


class StoredValues:
    """`KV` in a table of the user's file. Reading creates no table, so it works on a full disk."""

    def __init__(self, db: handed.Database) -> None:
        self._db = db

    async def get(self, key: str, default: Json = None) -> Json:
        rows = await self._look("SELECT value FROM _kv WHERE key = ?", key)
        return json.loads(rows[0]["value"]) if rows else default

    async def set(self, key: str, value: Json) -> None:
        if not 0 < len(key) <= MAX_KEY:
            raise ValueError(f"a key has 1 to {MAX_KEY} characters")
        await self._db.execute(_KV)
        await self._db.execute(_KV_SET, key, json.dumps(value, allow_nan=False))

    async def delete(self, key: str) -> bool:
        return bool(await self._look("SELECT 1 FROM _kv WHERE key = ?", key)) and (
            await self._db.execute("DELETE FROM _kv WHERE key = ?", key) > 0
        )

    async def keys(self) -> list[str]:
        return [row["key"] for row in await self._look("SELECT key FROM _kv ORDER BY key")]

    async def _look(self, sql: str, *params: Json) -> list[dict[str, Json]]:
        there = await self._db.fetch(_KV_THERE)
        return await self._db.fetch(sql, *params) if there else []
