"""Sets the brightness, the silent mode, the place of the picture, notifications, the dashboard, the
light and the microphone of finished glasses, and the volume of the voice; fills what they show by
themselves.

Their capabilities say what they can do; what they refuse is passed on as an error.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from edge.ports import GlassesAway, GlassesPort, QuestionWaits, SendPort
from edge.runtime.clock import Clock
from firmware_bridge.capabilities import Capabilities
from firmware_bridge.errors import CommandRefused, CommandTimeout
from firmware_bridge.messages import (
    AllowApps,
    App,
    Command,
    DoubleTap,
    ExitToDashboard,
    SetBrightness,
    SetClock,
    SetDoubleTap,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    ShowNotification,
    Tile,
)
from tools_cache.api.tool import ErrorCode, Json, ToolFailure

TIMEOUT_S: Final = 8.0
"""A list of allowed apps is several packets with an answer each; a slow side takes a second each.
"""
MAX_ALLOWED: Final = 32
"""Apps that may notify; above that, the app that notified longest ago must be allowed again."""
NEEDS: Final[Mapping[str, tuple[str, str]]] = {
    "brightness": ("display.brightness", "do not let their brightness be set"),
    "silent": ("display.silent", "know no silent mode"),
    "position": ("display.position", "do not let their picture be moved"),
    "unnotify": ("display.notifications", "know no notifications of their own"),
    "notify": ("display.notifications", "know no notifications of their own"),
    "dashboard": ("display.dashboard", "have no dashboard of their own"),
    "layout": ("display.dashboard_content", "have no dashboard that can be filled"),
    "weather": ("display.dashboard_content", "have no dashboard that can be filled"),
    "map": ("display.dashboard_content", "have no dashboard that can be filled"),
    "calendar": ("display.dashboard_content", "have no dashboard that can be filled"),
    "note": ("display.dashboard_content", "have no dashboard that can be filled"),
    "volume": ("speaker", "have no speaker"),
    "light": ("light.brightness", "have no light that can be dimmed"),
    "blink": ("light.blink", "have no light that can be switched"),
    "light_off": ("light.blink", "have no light that can be switched"),
    "keep_pictures": ("camera.gallery", "do not keep pictures of their own"),
    "wear_detection": ("display.preferences", "let nobody set that"),
    "head_up_angle": ("display.preferences", "let nobody set that"),
    "head_up": ("display.preferences", "let nobody set that"),
    "double_tap": ("display.preferences", "let nobody set that"),
    "notification_time": ("display.preferences", "let nobody set that"),
    "language": ("display.preferences", "let nobody set that"),
    "vibrate": ("haptic", "cannot vibrate"),
    "restart": ("display.restart", "do not let themselves be restarted"),
    "navigate": ("display.navigation", "show no turns of their own"),
    "route": ("display.navigation", "show no turns of their own"),
    "end_navigation": ("display.navigation", "show no turns of their own"),
    "begin_translation": ("display.translation", "show no translations of their own"),
    "translation": ("display.translation", "show no translations of their own"),
    "gain": ("microphone.gain", "do not let the gain of their microphone be set"),
}
"""Action → the capability it needs, and the message for glasses without it."""
_CONTENT: Final = frozenset(
    "layout weather calendar note map navigate route translation".split(),
)
"""What is written into something that the glasses show by themselves."""
_ENTRY: Final = ("title", "time", "place")
_TURN: Final = ("street", "distance", "trip_time", "trip_distance", "speed")
_SAID: Final = ("original", "translated")
_NEVER: Final = frozenset({"unsupported", "bad_message", "too_big"})
"""Codes of refusals for which a retry does not help."""


async def _as_it_is(text: str) -> str:
    return text


async def _no_picture(_image: str, _width: int, _height: int) -> Tile:
    raise _failure(ErrorCode.UNSUPPORTED, "There is nothing here that fits pictures")


@dataclass(eq=False, repr=False)
class GlassesSettings:
    """Implements `tools_cache.api.handed.Deeds`. `display` sends commands that change the lens; it
    refuses them while a question is shown. `set_volume` sets the voice's, in percent. `word` makes
    a text plain, in the wearer's form. `wearer_clock`: the wearer's time, or None if that is not
    known. `tile` fits a picture into a part of the lens, so wide and so high.
    """

    glasses: GlassesPort
    clock: Clock
    display: SendPort
    set_volume: Callable[[int], Awaitable[None]]
    word: Callable[[str], Awaitable[str]] = _as_it_is
    wearer_clock: Callable[[], SetClock | None] = lambda: None
    tile: Callable[[str, int, int], Awaitable[Tile]] = _no_picture
    _allowed: dict[str, App] = field(default_factory=dict, init=False)
    _allowed_on: str = field(default="", init=False)
    _notifying: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def __call__(self, action: str, details: Mapping[str, Json]) -> None:
        """Execute it. Raises `ToolFailure`: UNSUPPORTED, SESSION_INACTIVE, TIMEOUT, NOT_ACCEPTED,
        INVALID_ARGUMENTS.
        """
        self._check_able(action)
        if action == "volume":
            await self.set_volume(_percent(details.get("level")))
        elif action == "notify":
            await self._notify(str(details["title"]), str(details["text"]), str(details["app"]))
        elif action in _CONTENT:
            await self._send(await self._content(action, details))
        else:
            await self._send(_command(action, details))

    def _check_able(self, action: str) -> None:
        status = self.glasses.status()
        there = status.ready or action == "volume"  # the voice is ours: it can be set before
        if not there or status.capabilities is None:
            raise _failure(
                ErrorCode.SESSION_INACTIVE,
                "The glasses are away",
                "Put them on, or see: glassd status",
            )
        if not able(status.capabilities, action):
            raise _failure(ErrorCode.UNSUPPORTED, f"These glasses {NEEDS[action][1]}")

    async def _notify(self, title: str, text: str, name: str) -> None:
        """Send a notification; glasses only show those of apps on their list of allowed apps."""
        title, text = await self.word(title), await self.word(text)
        async with self._notifying:
            app = await self._allow(name)
            await self._send(
                _create(
                    lambda: ShowNotification(app, title, text, at=max(0, int(self.clock.wall())))
                )
            )

    async def _content(self, action: str, details: Mapping[str, Any]) -> Command:
        """Return the command that gives the glasses something to show. Raises `ToolFailure`."""
        from firmware_bridge import own_commands as own  # noqa: PLC0415 - for glasses that have one

        match action:
            case "layout":
                layout, pane = own.DashboardLayout(details["layout"]), details.get("pane", "empty")
                return own.SetDashboard(layout, own.DashboardPane(pane))
            case "weather":
                now = self.wearer_clock()
                if now is None:
                    why = "This machine does not know the time, which goes with the weather"
                    raise _failure(ErrorCode.NOT_ACCEPTED, why, "See: glassd doctor")
                sky, celsius = own.Sky(details["sky"]), details["celsius"]
                fahrenheit = details.get("fahrenheit") is True
                return _create(
                    lambda: own.SetWeather(now.local_s, sky, celsius, now.twelve_hour, fahrenheit)
                )
            case "calendar":
                given = [[str(e.get(k, "")) for k in _ENTRY] for e in details["entries"]]
                worded = [[await self.word(each) for each in entry] for entry in given]
                return _create(
                    lambda: own.SetCalendar(tuple(own.CalendarEntry(*each) for each in worded))
                )
            case "navigate":
                turn, left = own.Turn(details["turn"]), details.get("left_traffic") is True
                texts = {key: await self.word(str(details.get(key, ""))) for key in _TURN}
                return _create(lambda: own.Navigate(turn, **texts, left_traffic=left))
            case "map" | "route":
                picture = await self._picture(action, str(details["image"]))
                return own.SetMap(picture) if action == "map" else own.ShowRoute(picture)
            case "translation":
                said = [await self.word(str(details.get(key, ""))) for key in _SAID]
                return _create(lambda: own.ShowTranslation(*said))
            case _:
                title = await self.word(str(details.get("title", "")))
                text = await self.word(str(details.get("text", "")))
                return _create(lambda: own.SetNote(details["slot"], title, text))

    async def _picture(self, action: str, image: str) -> Tile:
        """Return a picture as large as their map, or their route, is. Raises `ToolFailure`."""
        known = self.glasses.status().capabilities or Capabilities("", {})
        width, height = (known.get(f"display.{action}_{side}") for side in ("width", "height"))
        if not (width and height):
            raise _failure(ErrorCode.UNSUPPORTED, f"These glasses draw no {action}")
        return await self.tile(image, width, height)

    async def _allow(self, name: str) -> App:
        app = App(f"io.glassd.{zlib.crc32(name.casefold().encode()):08x}", name)
        there = self.glasses.status().address
        if there != self._allowed_on:
            self._allowed, self._allowed_on = {}, there
        known = self._allowed.pop(app.id, None)
        allowed = dict(list(self._allowed.items())[-(MAX_ALLOWED - 1) :]) | {app.id: app}
        if known is None:
            await self._send(AllowApps(tuple(allowed.values())))
        self._allowed = allowed
        return app

    async def _send(self, command: Command) -> None:
        try:
            await self.display.send(command, timeout_s=TIMEOUT_S)
        except QuestionWaits:
            raise _failure(
                ErrorCode.NOT_ACCEPTED,
                "A question waits for the wearer's answer",
                "Try again when it is answered",
            ) from None
        except GlassesAway as e:
            raise _failure(ErrorCode.SESSION_INACTIVE, f"The glasses went away: {e}") from None
        except CommandTimeout:
            raise _failure(
                ErrorCode.TIMEOUT,
                f"The glasses did not answer in {TIMEOUT_S:g} s; they may have done it",
                unsure=True,
            ) from None
        except CommandRefused as e:
            code = ErrorCode.UNSUPPORTED if e.code in _NEVER else ErrorCode.NOT_ACCEPTED
            raise _failure(code, f"The glasses refused: {e}") from None


def able(record: Capabilities, action: str) -> bool:
    """Return whether these glasses can do it; unknown is no."""
    capability = NEEDS[action][0]
    return all(record.get(each) is True for each in (capability.partition(".")[0], capability))


def _command(action: str, details: Mapping[str, Json]) -> Command:
    if action == "brightness":
        level, auto = details.get("level"), details.get("auto") is True
        return _create(lambda: SetBrightness(level, auto=auto))
    if action == "silent":
        return SetSilentMode(on=details["on"] is True)
    if action == "wear_detection":
        return SetWearDetection(on=details["on"] is True)
    if action == "head_up_angle":
        degrees: Any = details["degrees"]
        return _create(lambda: SetHeadUpAngle(degrees))
    if action == "double_tap":
        return SetDoubleTap(DoubleTap(details["opens"]))
    return ExitToDashboard() if action == "dashboard" else _create(lambda: _own(action, details))


def _own(action: str, details: Mapping[str, Any]) -> Command:
    """Return a command that only some glasses have. Raises ValueError."""
    from firmware_bridge import own_commands  # noqa: PLC0415 - for glasses that have these

    match action:
        case "unnotify":
            return own_commands.ClearNotification()
        case "light":
            return own_commands.DimLight(details["level"])
        case "blink":
            color = own_commands.LightColor(details["color"])
            on_ms, off_ms, times = details["on_ms"], details["off_ms"], details["times"]
            return own_commands.BlinkLight(color, on_ms, off_ms, times, details["level"])
        case "light_off":
            return own_commands.SwitchLightOff()
        case "keep_pictures":
            return own_commands.KeepPictures(details["on"] is True)
        case "head_up":
            return own_commands.SetHeadUpAction(details["opens"] == "dashboard")
        case "notification_time":
            return own_commands.SetNotificationTime(details["seconds"])
        case "language":
            return own_commands.SetLanguage(details["language"])
        case "vibrate":
            return own_commands.Vibrate(own_commands.Vibration(details["length"]))
        case "restart":
            return own_commands.Restart()
        case "end_navigation":
            return own_commands.EndNavigation()
        case "begin_translation":
            return own_commands.StartTranslation(details["source"], details["target"])
        case "gain":
            return own_commands.SetMicrophoneGain(details["level"])
        case _:
            return own_commands.SetDisplayPosition(details["height"], details["depth"])


def _create(make: Callable[[], Command]) -> Command:
    """Create a command. Raises `ToolFailure` (INVALID_ARGUMENTS) for invalid values."""
    try:
        return make()
    except ValueError as e:
        raise _failure(ErrorCode.INVALID_ARGUMENTS, str(e)) from None


def _percent(level: Json) -> int:
    """Return a volume. Raises `ToolFailure` (INVALID_ARGUMENTS) for invalid values."""
    if isinstance(level, int) and not isinstance(level, bool) and 0 <= level <= 100:
        return level
    raise _failure(ErrorCode.INVALID_ARGUMENTS, "volume must be a whole number, 0 to 100")


def _failure(
    code: ErrorCode, message: str, suggestion: str | None = None, *, unsure: bool = False
) -> ToolFailure:
    return ToolFailure.of(code, message, suggestion=suggestion, partial_side_effects=unsure)
