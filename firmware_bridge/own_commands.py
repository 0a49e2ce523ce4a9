"""Commands for what some glasses show and do by themselves: their light, Wi-Fi, dashboard, notes,
translation, navigation; and what they answer. Imported only by families that have them, and by
those who send them.
"""

from enum import StrEnum
from typing import ClassVar, Final

from msgspec import Struct

from firmware_bridge.messages import MAX_TEXT_BYTES, OwnCommand, OwnEvent, Tile

MAX_HEIGHT: Final = 8
MAX_DEPTH: Final = 9
MAX_ENTRIES: Final = 8
"""Entries of a calendar; the most that any glasses take."""
MAX_WORDS: Final = 255
"""UTF-8 bytes of one short text: a title, a street, a distance."""
MAX_NOTES: Final = 4
"""Notes that the glasses keep."""
MAX_SSID: Final = 32
MAX_PASSWORD: Final = 64
"""UTF-8 bytes of the name of a Wi-Fi network, and of its password (IEEE 802.11)."""
MAX_LIGHT_MS: Final = 60_000
MAX_BLINKS: Final = 100
"""How long a light is on or off at a time, and how often."""
MAX_URL: Final = 200
"""Characters of the address that a video is streamed to."""
MAX_SPOTS: Final = 1 << 16
"""Places on a map go from 0 to this, exclusive."""


class SetDisplayPosition(OwnCommand, frozen=True):
    """Where the picture is: `height` 0 to 8, `depth` 1 (near) to 9. With `preview` the glasses
    only show how it would be; it counts after the same command without it.
    """

    height: int
    depth: int
    preview: bool = False

    def __post_init__(self) -> None:
        _need(
            0 <= self.height <= MAX_HEIGHT, f"a height of {self.height} is outside 0…{MAX_HEIGHT}"
        )
        _need(1 <= self.depth <= MAX_DEPTH, f"a depth of {self.depth} is outside 1…{MAX_DEPTH}")


class Restart(OwnCommand, frozen=True):
    """Restart the glasses, which ends the connection. `Done` means that it was sent."""


class GetRunningApp(OwnCommand, frozen=True):
    """Ask which function the glasses are in; a `RunningAppChanged` comes before `Done`."""


class SetHeadUpAction(OwnCommand, frozen=True):
    """Whether the glasses open their dashboard when the wearer looks up."""

    is_setting: ClassVar[bool] = True
    dashboard: bool


class SetNotificationTime(OwnCommand, frozen=True):
    """For how many seconds the glasses show a notification; 0: they show none."""

    is_setting: ClassVar[bool] = True
    seconds: int

    def __post_init__(self) -> None:
        _need(0 <= self.seconds <= MAX_WORDS, f"{self.seconds} s are outside 0…{MAX_WORDS}")


class SetLanguage(OwnCommand, frozen=True):
    """Set the language of the glasses' own texts, by its ISO 639-1 code."""

    is_setting: ClassVar[bool] = True
    language: str

    def __post_init__(self) -> None:
        _need_language(self.language)


class ClearNotification(OwnCommand, frozen=True):
    """Take a notification off the lens. `number`: that of `ShowNotification`, or 0: the newest."""

    number: int = 0

    def __post_init__(self) -> None:
        _need(0 <= self.number < 1 << 32, f"notification {self.number} is outside 32 bits")


# ------------------------------------------------------------------ light and microphone


class DimLight(OwnCommand, frozen=True):
    """Set how bright the glasses' own light is whenever it is on, in percent."""

    level: int

    def __post_init__(self) -> None:
        _need_percent(self.level, "a light")


class SetMicrophoneGain(OwnCommand, frozen=True):
    """Set by how much the microphone amplifies, in percent of the most that it can."""

    level: int

    def __post_init__(self) -> None:
        _need_percent(self.level, "a gain")


class LightColor(StrEnum):
    """Colour of the glasses' light."""

    RED = "red"
    GREEN = "green"
    BLUE = "blue"
    ORANGE = "orange"
    WHITE = "white"


class BlinkLight(OwnCommand, frozen=True):
    """Switch the light on, `times` times for `on_ms` with `off_ms` between; `level` in percent, or
    None: as bright as it is by itself.
    """

    color: LightColor
    on_ms: int = 1000
    off_ms: int = 1000
    times: int = 1
    level: int | None = None

    def __post_init__(self) -> None:
        for ms in (self.on_ms, self.off_ms):
            _need(0 <= ms <= MAX_LIGHT_MS, f"a light for {ms} ms; at most {MAX_LIGHT_MS}")
        _need(1 <= self.times <= MAX_BLINKS, f"a light {self.times} times; 1 to {MAX_BLINKS}")
        _need_percent(self.level or 0, "a light")


class SwitchLightOff(OwnCommand, frozen=True):
    """Switch the light off."""


class Vibration(StrEnum):
    """How long the glasses vibrate; how long that is in seconds is their own."""

    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"


class Vibrate(OwnCommand, frozen=True):
    """Vibrate once."""

    length: Vibration = Vibration.MEDIUM


# ------------------------------------------------------------------ Wi-Fi and the gallery


class GetWifi(OwnCommand, frozen=True):
    """Ask whether the glasses are in a Wi-Fi network; `WifiChanged` follows."""


class ScanWifi(OwnCommand, frozen=True):
    """Ask which Wi-Fi networks the glasses hear; `WifiFound` follows, once or more often."""


class JoinWifi(OwnCommand, frozen=True):
    """Join a Wi-Fi network, without a password if it is open; `WifiChanged` follows."""

    is_secret: ClassVar[bool] = True
    ssid: str
    password: str = ""

    def __post_init__(self) -> None:
        _need_ssid(self.ssid)
        size = len(self.password.encode())
        _need(size <= MAX_PASSWORD, f"a password of {size} bytes; at most {MAX_PASSWORD}")

    def __repr__(self) -> str:
        return f"JoinWifi({self.ssid!r}, …)"


class LeaveWifi(OwnCommand, frozen=True):
    """Leave the Wi-Fi network."""


class ForgetWifi(OwnCommand, frozen=True):
    """Forget a Wi-Fi network and its password."""

    ssid: str

    def __post_init__(self) -> None:
        _need_ssid(self.ssid)


class WifiChanged(OwnEvent, frozen=True):
    """Whether the glasses are in a Wi-Fi network; `ssid` and `address` are "" where not known."""

    connected: bool
    ssid: str = ""
    address: str = ""


class WifiNetwork(Struct, frozen=True):
    """One network; `dbm`: its strength, `is_open`: it has no password; None: not known."""

    ssid: str
    dbm: int | None = None
    is_open: bool | None = None


class WifiFound(OwnEvent, frozen=True):
    """Networks that the glasses hear. `is_last`: no more will come; None: they do not say."""

    networks: tuple[WifiNetwork, ...]
    is_last: bool | None = None


class GetGallery(OwnCommand, frozen=True):
    """Ask what pictures the glasses keep; `GalleryChanged` follows."""


class KeepPictures(OwnCommand, frozen=True):
    """Whether a press of the camera's button also keeps the picture in the glasses."""

    on: bool


class GalleryChanged(OwnEvent, frozen=True):
    """What the glasses keep. `size`: bytes; `busy`: what the camera does, while nothing counts."""

    photos: int
    videos: int
    size: int | None = None
    busy: str = ""


# ------------------------------------------------------------------ motion

Vector = tuple[float, float, float]
"""Along the three axes of a sensor."""


class RecordVideo(OwnCommand, frozen=True):
    """Begin or end a video that the glasses keep; `VideoChanged` follows."""

    on: bool


class GetVideo(OwnCommand, frozen=True):
    """Ask whether the glasses record a video; `VideoChanged` follows."""


class VideoChanged(OwnEvent, frozen=True):
    """Whether the glasses record a video, and since how many seconds. `problem`: why they did not
    do what they were ordered.
    """

    recording: bool
    seconds: float | None = None
    problem: str = ""


class StreamVideo(OwnCommand, frozen=True):
    """Send what the camera sees to an address, over the glasses' own Wi-Fi, until the connection is
    lost or `EndStream`; `StreamChanged` follows, now and whenever it changes.
    """

    is_secret: ClassVar[bool] = True
    url: str

    def __post_init__(self) -> None:
        _need(len(self.url) <= MAX_URL, f"an address of {len(self.url)} characters")
        kind, found, rest = self.url.partition("://")
        known = found and kind in ("rtmp", "rtmps", "srt", "http", "https")
        _need(bool(known and rest), "an address begins with rtmp:// rtmps:// srt:// or https://")
        _need(self.url.isascii() and self.url.isprintable(), "an address is plain ASCII")
        _need(" " not in self.url, "an address holds no space")

    def __repr__(self) -> str:
        return "StreamVideo(…)"


class EndStream(OwnCommand, frozen=True):
    """End the stream; `StreamChanged` follows."""


class StreamChanged(OwnEvent, frozen=True):
    """Whether the camera is streamed. `state`: in the glasses' word; `problem`: why not."""

    streaming: bool
    state: str = ""
    problem: str = ""


class SetHotspot(OwnCommand, frozen=True):
    """Whether the glasses have a Wi-Fi network of their own; `HotspotChanged` follows."""

    is_secret: ClassVar[bool] = True
    on: bool


class HotspotChanged(OwnEvent, frozen=True):
    """The glasses' own network: its name, its password, and their address in it."""

    on: bool
    ssid: str = ""
    password: str = ""
    address: str = ""
    problem: str = ""

    def __repr__(self) -> str:
        return f"HotspotChanged({self.on}, {self.ssid!r}, …)"


class GetMotion(OwnCommand, frozen=True):
    """Ask the motion sensor once; `MotionRead` follows."""


class MotionRead(OwnEvent, frozen=True):
    """One reading of the motion sensor, in its own units; None: the glasses do not say it."""

    acceleration: Vector
    rotation: Vector | None = None
    magnetism: Vector | None = None


# ------------------------------------------------------------------ dashboard


class DashboardLayout(StrEnum):
    """How much of the dashboard is shown."""

    FULL = "full"
    DUAL = "dual"
    MINIMAL = "minimal"


class DashboardPane(StrEnum):
    """What the dashboard shows beside the clock."""

    NOTES = "notes"
    STOCK = "stock"
    NEWS = "news"
    CALENDAR = "calendar"
    MAP = "map"
    EMPTY = "empty"


class SetDashboard(OwnCommand, frozen=True):
    """Choose what the glasses' own dashboard shows."""

    layout: DashboardLayout
    pane: DashboardPane = DashboardPane.EMPTY


class DashboardSeen(OwnEvent, frozen=True):
    """The wearer looks at the glasses' own dashboard: which `page` of what, and, where the glasses
    say it, how many notifications are unread and whether they save power.
    """

    layout: DashboardLayout
    pane: DashboardPane
    page: int = 0
    unread: int | None = None
    low_power: bool | None = None


class Sky(StrEnum):
    """What the weather is like."""

    UNKNOWN = "unknown"
    NIGHT = "night"
    CLOUDS = "clouds"
    DRIZZLE = "drizzle"
    HEAVY_DRIZZLE = "heavy_drizzle"
    RAIN = "rain"
    HEAVY_RAIN = "heavy_rain"
    THUNDER = "thunder"
    THUNDERSTORM = "thunderstorm"
    SNOW = "snow"
    MIST = "mist"
    FOG = "fog"
    SAND = "sand"
    SQUALLS = "squalls"
    TORNADO = "tornado"
    FREEZING_RAIN = "freezing_rain"
    SUNNY = "sunny"


class SetWeather(OwnCommand, frozen=True):
    """Set the weather of the dashboard, and its clock as `SetClock` does. `fahrenheit`: how the
    glasses write the temperature, which is always given in Celsius.
    """

    local_s: int
    sky: Sky
    celsius: int
    twelve_hour: bool = False
    fahrenheit: bool = False

    def __post_init__(self) -> None:
        _need(0 <= self.local_s < 1 << 32, f"a time of {self.local_s} s is outside 32 bits")
        _need(-99 <= self.celsius <= 99, f"a temperature of {self.celsius} °C is outside −99…99")


class CalendarEntry(Struct, frozen=True):
    """One entry; the glasses show all three as they are. It is part of `SetCalendar`."""

    title: str
    time: str = ""
    place: str = ""

    def __post_init__(self) -> None:
        for name, words in (("title", self.title), ("time", self.time), ("place", self.place)):
            _need_short(words, f"the {name} of a calendar entry")


class SetCalendar(OwnCommand, frozen=True):
    """Replace the calendar of the dashboard."""

    entries: tuple[CalendarEntry, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.entries)
        _need(count <= MAX_ENTRIES, f"{count} calendar entries; at most {MAX_ENTRIES}")


class SetMap(OwnCommand, frozen=True):
    """Set the map of the dashboard: `picture`, else `arrow` (where the wearer is on it, at its x
    and y), else a sign that a map is being loaded. Both of 1 bit.
    """

    picture: Tile | None = None
    arrow: Tile | None = None

    def __post_init__(self) -> None:
        _need(self.picture is None or self.arrow is None, "a map is a picture or an arrow")
        for tile in (self.picture, self.arrow):
            _need(tile is None or tile.bpp == 1, "a map has 1 bit per pixel")
            _need(tile is None or max(tile.x, tile.y) < MAX_SPOTS, "a place beyond the map")


# ------------------------------------------------------------------ notes


class SetNote(OwnCommand, frozen=True):
    """Write note `slot` (1 to 4) of the glasses; without title and text it is removed."""

    slot: int
    title: str = ""
    text: str = ""

    def __post_init__(self) -> None:
        _need(1 <= self.slot <= MAX_NOTES, f"note {self.slot} is outside 1…{MAX_NOTES}")
        _need_short(self.title, "the title of a note")
        size = len(self.text.encode())
        _need(size <= MAX_TEXT_BYTES, f"a note of {size} bytes; at most {MAX_TEXT_BYTES}")


class FetchVoiceNote(OwnCommand, frozen=True):
    """Ask for a spoken note of `VoiceNotesChanged`. `Done` at its first packet;
    `VoiceNoteFetched` follows.
    """

    note: int

    def __post_init__(self) -> None:
        _need(0 <= self.note <= 255, f"voice note {self.note} is outside 0…255")


class DeleteVoiceNote(FetchVoiceNote, frozen=True):
    """Delete a spoken note."""


# ------------------------------------------------------------------ translation and navigation


class StartTranslation(OwnCommand, frozen=True):
    """Begin to show translations. Languages are ISO 639-1 codes; `ExitToDashboard` ends it."""

    source: str
    target: str

    def __post_init__(self) -> None:
        for code in (self.source, self.target):
            _need_language(code)


class ShowTranslation(OwnCommand, frozen=True):
    """Show what was said and what it means; an empty text changes nothing."""

    original: str = ""
    translated: str = ""

    def __post_init__(self) -> None:
        size = len((self.original + self.translated).encode())
        _need(size <= MAX_TEXT_BYTES, f"a translation of {size} bytes; at most {MAX_TEXT_BYTES}")
        _need(size > 0, "a translation without a text")


class Turn(StrEnum):
    """What to do next. `ROUNDABOUT_…`: the exit, as seen from where one enters."""

    DOT = "dot"
    STRAIGHT = "straight"
    RIGHT = "right"
    LEFT = "left"
    SLIGHT_RIGHT = "slight_right"
    SLIGHT_LEFT = "slight_left"
    SHARP_RIGHT = "sharp_right"
    SHARP_LEFT = "sharp_left"
    U_TURN_LEFT = "u_turn_left"
    U_TURN_RIGHT = "u_turn_right"
    MERGE = "merge"
    ROUNDABOUT_SHARP_RIGHT = "roundabout_sharp_right"
    ROUNDABOUT_RIGHT = "roundabout_right"
    ROUNDABOUT_SLIGHT_RIGHT = "roundabout_slight_right"
    ROUNDABOUT_STRAIGHT = "roundabout_straight"
    ROUNDABOUT_SLIGHT_LEFT = "roundabout_slight_left"
    ROUNDABOUT_LEFT = "roundabout_left"
    ROUNDABOUT_SHARP_LEFT = "roundabout_sharp_left"
    ROUNDABOUT_U_TURN = "roundabout_u_turn"
    ROUNDABOUT_ENTER = "roundabout_enter"
    ROUNDABOUT_EXIT = "roundabout_exit"
    RAMP_RIGHT = "ramp_right"
    RAMP_LEFT = "ramp_left"
    FORK_RIGHT = "fork_right"
    FORK_LEFT = "fork_left"


class Navigate(OwnCommand, frozen=True):
    """Show the next turn; the first one begins navigation. Texts are shown as they are: the street,
    the distance to the turn, time and distance to the end, and the speed. `left_traffic`: people
    drive on the left, which is seen at roundabouts.
    """

    turn: Turn
    street: str = ""
    distance: str = ""
    trip_time: str = ""
    trip_distance: str = ""
    speed: str = ""
    left_traffic: bool = False

    def __post_init__(self) -> None:
        for words in self.texts():
            _need_short(words, "a text of a turn")
            _need("\0" not in words, "a text of a turn holds no NUL")

    def texts(self) -> tuple[str, ...]:
        return (self.trip_time, self.trip_distance, self.street, self.distance, self.speed)


class ShowRoute(OwnCommand, frozen=True):
    """Show a map beside the turn; `overlay`: the way on it. Both of 1 bit and the same size."""

    picture: Tile
    overlay: Tile | None = None

    def __post_init__(self) -> None:
        _need(self.picture.bpp == 1, "a map has 1 bit per pixel")
        _need(
            self.overlay is None
            or (self.overlay.width, self.overlay.height, self.overlay.bpp)
            == (self.picture.width, self.picture.height, 1),
            "the way on a map has the size of the map, and 1 bit per pixel",
        )


class EndNavigation(OwnCommand, frozen=True):
    """Leave navigation."""


def _need_language(code: str) -> None:
    _need(len(code) == 2 and code.isascii() and code.islower(), f"language {code!r}")


def _need_ssid(ssid: str) -> None:
    size = len(ssid.encode())
    _need(1 <= size <= MAX_SSID, f"the name of a network has {size} bytes; 1 to {MAX_SSID}")


def _need_percent(level: int, what: str) -> None:
    _need(0 <= level <= 100, f"{what} of {level} % is outside 0…100")


def _need_short(words: str, what: str) -> None:
    size = len(words.encode())
    _need(size <= MAX_WORDS, f"{what} has {size} bytes; at most {MAX_WORDS}")


def _need(condition: bool, complaint: str) -> None:  # noqa: FBT001 - reads as a sentence at every call
    if not condition:
        raise ValueError(complaint)
