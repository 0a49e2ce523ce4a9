"""Asks finished glasses what only some of them know or do: Wi-Fi, gallery, motion, video, spoken
notes. Imported at the first question.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from edge.ports import GlassesAway, GlassesPort
from edge.runtime.bus import Bus
from edge.runtime.events import DaemonEvent, GlassesLost, GlassesSaid
from firmware_bridge.capabilities import Capabilities
from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import CommandRefused, CommandTimeout
from firmware_bridge.messages import OwnCommand, OwnEvent
from firmware_bridge.own_commands import (
    EndStream,
    ForgetWifi,
    GalleryChanged,
    GetGallery,
    GetMotion,
    GetVideo,
    GetWifi,
    HotspotChanged,
    JoinWifi,
    LeaveWifi,
    MotionRead,
    RecordVideo,
    ScanWifi,
    SetHotspot,
    StreamChanged,
    StreamVideo,
    VideoChanged,
    WifiChanged,
    WifiFound,
    WifiNetwork,
)
from tools_cache.api.tool import ErrorCode, Json, ToolFailure

if TYPE_CHECKING:
    from edge.tools.media.voice_notes import VoiceNotes, Wave, Words

ORDER_S: Final = 15.0
"""Seconds until the glasses have an order: four tries, each a second longer."""
ANSWER_S: Final = 8.0
"""Seconds until they answer a question."""
JOIN_S: Final = 30.0
"""Seconds to join a network: the glasses look four times, three seconds after they began."""
SCAN_S: Final = 20.0
"""Seconds to look for networks."""
STREAM_S: Final = 25.0
"""Seconds until a stream runs or failed: its order is sent in two forms."""
HOTSPOT_S: Final = 20.0
"""Seconds until the glasses' own network is there."""
QUIET_S: Final = 4.0
"""Seconds after which no more networks come from glasses that do not say which are the last."""
MAX_NETWORKS: Final = 64
_WIFI: Final = "wifi.setup", "let nobody set up their Wi-Fi"
_NOTES: Final = ("voice_notes", "voice_note", "remove_voice_note")
_NEEDS: Final = {
    "gallery": ("camera.gallery", "do not say what pictures they keep"),
    "motion": ("imu", "have no motion sensor that can be read"),
    "record_video": ("camera.record", "record no video"),
    "stream_video": ("camera.stream", "stream no video"),
    "end_video": ("camera.record", "record no video"),
    "hotspot": ("wifi.hotspot", "make no Wi-Fi network of their own"),
    **dict.fromkeys(_NOTES, ("microphone.notes", "keep no spoken notes")),
}
"""Question → the capability it needs, and the message for glasses without it."""
_NEVER: Final = frozenset({"unsupported", "bad_message", "too_big"})
"""Codes of refusals for which a retry does not help."""


class GlassesQuestions:
    """Implements `tools_cache.api.handed.Questions`. One question at a time. `words`, `wave`: what
    `VoiceNotes` makes of sound.
    """

    def __init__(self, glasses: GlassesPort, bus: Bus, words: "Words", wave: "Wave") -> None:
        self._glasses = glasses
        self._bus = bus
        self._sound = words, wave
        self._one = asyncio.Lock()
        self._kept: VoiceNotes | None = None

    async def __call__(self, question: str, details: Mapping[str, Json]) -> Mapping[str, Json]:
        """See `handed.Questions`."""
        self._check_able(*_NEEDS.get(question, _WIFI))
        async with self._one:
            if question in _NOTES:
                return await self._note(question, details)
            match question:
                case "wifi":
                    return _state(await self._ask(GetWifi(), WifiChanged))
                case "wifi_networks":
                    return {"networks": await self._scan()}
                case "join_wifi":
                    return await self._join(str(details["ssid"]), str(details.get("password", "")))
                case "leave_wifi":
                    return _state(await self._leave(details.get("forget")))
                case "record_video":
                    return _video(await self._ask(RecordVideo(True), VideoChanged))
                case "stream_video":
                    return await self._stream(str(details["url"]))
                case "end_video":
                    return await self._end_video()
                case "hotspot":
                    return await self._hotspot(on=details["on"] is True)
                case "motion":
                    return _motion(await self._ask(GetMotion(), MotionRead))
                case _:
                    return _gallery(await self._ask(GetGallery(), GalleryChanged))

    async def _note(self, question: str, details: Mapping[str, Any]) -> Mapping[str, Json]:
        if self._kept is None:
            from edge.tools.media.voice_notes import VoiceNotes  # noqa: PLC0415 - few glasses keep any

            self._kept = VoiceNotes(self._glasses, self._bus, *self._sound, self._request)
        if question == "voice_notes":
            return self._kept.list()
        act = self._kept.fetch if question == "voice_note" else self._kept.remove
        return await act(details["note"])

    def _check_able(self, capability: str, lacking: str) -> None:
        status = self._glasses.status()
        record: Capabilities | None = status.capabilities
        if not status.ready or record is None:
            raise _away("The glasses are away")
        if record.get(capability) is not True:
            raise _failure(ErrorCode.UNSUPPORTED, f"These glasses {lacking}")

    async def _stream(self, url: str) -> Mapping[str, Json]:
        """Begin a stream; return once it runs. Raises `ToolFailure` with what the glasses say."""

        def settled(said: OwnEvent) -> bool:
            return isinstance(said, StreamChanged) and (said.streaming or bool(said.problem))

        try:
            said: Any = await self._collect(_create(lambda: StreamVideo(url)), settled, STREAM_S)
        except TimeoutError:
            raise _no_answer() from None
        _check_problem(said)
        return {"streaming": True}

    async def _end_video(self) -> Mapping[str, Json]:
        """End the recording if there is one, else the stream: one camera does not do both."""
        before: Any = await self._ask(GetVideo(), VideoChanged)
        if before.recording:
            _video(await self._ask(RecordVideo(False), VideoChanged))
            return {"recorded_s": before.seconds or 0.0, "streamed": False}
        stream: Any = await self._ask(EndStream(), StreamChanged, within_s=STREAM_S)
        return {"recorded_s": None, "streamed": not stream.problem}

    async def _hotspot(self, *, on: bool) -> Mapping[str, Json]:
        said: Any = await self._ask(SetHotspot(on), HotspotChanged, within_s=HOTSPOT_S)
        _check_problem(said)
        named = {"ssid": said.ssid, "password": said.password, "address": said.address}
        return {"on": said.on, **{key: value or None for key, value in named.items()}}

    async def _ask(
        self, command: OwnCommand, kind: type[OwnEvent], *, within_s: float | None = None
    ) -> Any:
        """Send a question, return the first answer of this kind."""
        within_s = ANSWER_S if within_s is None else within_s
        try:
            return await self._collect(command, lambda said: isinstance(said, kind), within_s)
        except TimeoutError:
            raise _no_answer() from None

    async def _leave(self, forget: Json) -> Any:
        if isinstance(forget, str):
            await self._request(_create(lambda: ForgetWifi(forget)))
        else:
            await self._request(LeaveWifi())
        return await self._ask(GetWifi(), WifiChanged)

    async def _join(self, ssid: str, password: str) -> Mapping[str, Json]:
        """Join a network. Until they say that they are in it, it may still succeed."""

        def joined(said: OwnEvent) -> bool:
            return isinstance(said, WifiChanged) and said.connected and said.ssid in ("", ssid)

        order = _create(lambda: JoinWifi(ssid, password))
        try:
            return _state(await self._collect(order, joined, JOIN_S))
        except TimeoutError:
            raise _failure(
                ErrorCode.NOT_ACCEPTED,
                f"The glasses did not join {ssid!r} in {JOIN_S:g} s",
                "Check the name and the password, and whether the network is near",
            ) from None

    async def _scan(self) -> list[Json]:
        """Return the networks, the strongest first."""
        found: dict[str, WifiNetwork] = {}

        def is_last(said: OwnEvent) -> bool:
            if isinstance(said, WifiFound):
                found.update((each.ssid, each) for each in said.networks)
            return isinstance(said, WifiFound) and said.is_last is True

        try:
            await self._collect(ScanWifi(), is_last, SCAN_S, quiet_s=QUIET_S)
        except TimeoutError:
            if not found:
                raise _no_answer() from None
        networks = sorted(found.values(), key=lambda each: -127 if each.dbm is None else each.dbm)
        return [
            {"ssid": each.ssid, "dbm": each.dbm, "open": each.is_open}
            for each in networks[: -MAX_NETWORKS - 1 : -1]
        ]

    # -------------------------------------------------------------- to the glasses and back

    async def _collect(
        self,
        command: OwnCommand,
        fits: Callable[[OwnEvent], bool],
        within_s: float,
        *,
        quiet_s: float | None = None,
    ) -> OwnEvent:
        """Send a command, return the first event that fits. `quiet_s`: how long it may be silent
        after each event, once there was one. Raises TimeoutError when it does not come, and
        `ToolFailure`.
        """
        with self._bus.listen(calls=False) as events:
            await self._request(command)
            said = _said(events)
            async with timeout(within_s):
                event = await anext(said)
                while not fits(event):
                    async with timeout(quiet_s):
                        event = await anext(said)
        return event

    async def _request(self, command: OwnCommand) -> None:
        try:
            await self._glasses.request(command, timeout_s=ORDER_S)
        except GlassesAway as e:
            raise _away(f"The glasses went away: {e}") from None
        except CommandTimeout:
            raise _no_answer() from None
        except CommandRefused as e:
            code = ErrorCode.UNSUPPORTED if e.code in _NEVER else ErrorCode.NOT_ACCEPTED
            raise _failure(code, f"The glasses refused: {e}") from None


async def _said(events: AsyncIterable[DaemonEvent]) -> AsyncIterator[OwnEvent]:
    """Yield what the glasses report. Raises `ToolFailure` when they are lost."""
    async for event in events:
        if isinstance(event, GlassesLost):
            raise _away("The glasses went away before they answered")
        if isinstance(event, GlassesSaid) and isinstance(event.event, OwnEvent):
            yield event.event
    raise _away("glassd is stopping")


def _create(make: Callable[[], OwnCommand]) -> OwnCommand:
    """Create a command. Raises `ToolFailure` (INVALID_ARGUMENTS) for invalid values."""
    try:
        return make()
    except ValueError as e:
        raise _failure(ErrorCode.INVALID_ARGUMENTS, str(e)) from None


def _state(said: Any) -> dict[str, Json]:
    return {"connected": said.connected, "ssid": said.ssid or None, "address": said.address or None}


def _gallery(said: Any) -> dict[str, Json]:
    return {
        "photos": said.photos,
        "videos": said.videos,
        "bytes": said.size,
        "busy": said.busy or None,
    }


def _video(said: Any) -> dict[str, Json]:
    _check_problem(said)
    return {"recording": said.recording}


def _check_problem(said: Any) -> None:
    """Raise `ToolFailure` if the glasses did not do it."""
    if said.problem:
        raise _failure(ErrorCode.NOT_ACCEPTED, f"The glasses refused: {said.problem}")


def _motion(said: Any) -> dict[str, Json]:
    return {
        "acceleration": list(said.acceleration),
        "rotation": said.rotation and list(said.rotation),
        "magnetism": said.magnetism and list(said.magnetism),
    }


def _away(message: str) -> ToolFailure:
    hint = "Put them on, or see: glassd status"
    return ToolFailure.of(ErrorCode.SESSION_INACTIVE, message, suggestion=hint)


def _no_answer() -> ToolFailure:
    return _failure(ErrorCode.TIMEOUT, "The glasses did not answer")


def _failure(code: ErrorCode, message: str, suggestion: str | None = None) -> ToolFailure:
    return ToolFailure.of(code, message, suggestion=suggestion)
