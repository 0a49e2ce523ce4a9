"""All commands to the glasses and events from them: frozen values, valid if they exist.

Independent of any glasses family; codecs translate them to bytes. A codec whose glasses lack a
command refuses it as `unsupported`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from firmware_bridge.sides import Side

MAX_LINES: Final = 32
"""Lines per page; more than any lens has."""
MAX_TEXT_BYTES: Final = 8192
"""UTF-8 bytes of text in one message; a page is a few hundred."""
MAX_BITMAP_BYTES: Final = 640 * 480 // 2
"""A full 4-bit frame of the largest canvas known (640 × 480)."""
MAX_CHUNK_BYTES: Final = 4096
"""One chunk of sound: 128 ms of 16 kHz 16-bit PCM."""
MAX_PHOTO_BYTES: Final = 2 << 20
"""A picture of the camera: a JPEG of 3 megapixels at high quality."""
MAX_VOICE_NOTE_BYTES: Final = 1 << 18
"""A spoken note: two minutes of LC3 at 16 kbit/s."""
MAX_VOICE_NOTES: Final = 28
"""Spoken notes in one list: as many as fit in one packet."""
MAX_APPS: Final = 100
"""Apps whose notifications are let through; a phone has about as many installed."""


class AudioFormat(StrEnum):
    """How sound is packed. All are mono; `rate` is in Hz."""

    PCM16 = "pcm16"
    OPUS = "opus"
    LC3 = "lc3"
    MULAW = "mulaw"
    """G.711 mu-law, 8 bits a sample; from microphones only"""


class Gesture(StrEnum):
    """Deliberate actions of the wearer."""

    TAP = "tap"
    DOUBLE_TAP = "double_tap"
    BUTTON = "button"
    BUTTON_LONG = "button_long"
    HEAD_UP = "head_up"
    HEAD_DOWN = "head_down"
    NOD = "nod"
    SHAKE = "shake"


class Hiding(StrEnum):
    """What hides the page: something the glasses show or do themselves. The value is for people."""

    SILENT = "the glasses are in silent mode"
    DARK = "the brightness of the display is 0"
    DASHBOARD = "the glasses show their own dashboard"
    LOOKED_UP = "the glasses show their own dashboard while the head is up"


class Answer(StrEnum):
    """A wearer's answer to a prompt; silence is DENY by timeout."""

    ALLOW = "allow"
    DENY = "deny"
    TIMEOUT = "timeout"


# ------------------------------------------------------------------ shapes on the lens


class TextLine(Struct, frozen=True):
    """A line that already fits, drawn as it is. `x`: pixels from the left; `row`: from 0."""

    row: int
    text: str
    x: int = 0

    def __post_init__(self) -> None:
        _need(0 <= self.row < MAX_LINES, f"row {self.row} is outside 0…{MAX_LINES - 1}")
        _need(0 <= self.x < 4096, f"x {self.x} is outside the canvas")
        _need("\n" not in self.text, "a line holds no line break")


class Tile(Struct, frozen=True):
    """A rectangle of pixels, `bpp` bits each: row-major, rows in whole bytes, highest bit first."""

    x: int
    y: int
    width: int
    height: int
    bpp: int
    pixels: bytes

    def __post_init__(self) -> None:
        _need(self.bpp in (1, 2, 4), f"{self.bpp} bits per pixel; 1, 2 or 4 are allowed")
        _need(
            self.width > 0 and self.height > 0 and self.x >= 0 and self.y >= 0,
            "a tile has a place and a size",
        )
        size = (self.width * self.bpp + 7) // 8 * self.height
        _need(size <= MAX_BITMAP_BYTES, f"a tile of {size} bytes is over {MAX_BITMAP_BYTES}")
        _need(
            len(self.pixels) == size, f"{len(self.pixels)} bytes of pixels where {size} are needed"
        )


# ------------------------------------------------------------------ commands: central → glasses


class Hello(Struct, frozen=True):
    """First message of a connection: identifies us. Answered by `GlassesInfo`."""

    name: str
    version: str


class PageState(StrEnum):
    """What a page is, for glasses that tell pages apart."""

    PLAIN = "plain"
    TURNED = "turned"
    """the wearer turned to it, and turns the next one too"""
    NETWORK_ERROR = "network_error"
    """it says that there is no answer, for lack of a network"""


class ShowPage(Struct, frozen=True):
    """Replace the lens by this page, from 1. `scene` names the content across reconnects."""

    scene: str
    page: int = 1
    pages: int = 1
    lines: tuple[TextLine, ...] = ()
    tiles: tuple[Tile, ...] = ()
    state: PageState = PageState.PLAIN

    def __post_init__(self) -> None:
        _need(1 <= self.page <= self.pages, f"page {self.page} of {self.pages}")
        _need(len(self.lines) <= MAX_LINES, f"{len(self.lines)} lines; at most {MAX_LINES}")
        size = sum(len(line.text.encode()) for line in self.lines)
        _need(size <= MAX_TEXT_BYTES, f"{size} bytes of text; at most {MAX_TEXT_BYTES}")


class UpdatePage(Struct, frozen=True):
    """Change rows or tiles of the scene on the lens; refused with `no_scene` if it is not there."""

    scene: str
    page: int = 1
    lines: tuple[TextLine, ...] = ()
    tiles: tuple[Tile, ...] = ()


class ClearPage(Struct, frozen=True):
    """Clear the lens."""


class StartAudio(Struct, frozen=True):
    """Open a stream to the speaker. `frame_ms` is the length of one coded frame."""

    stream: int
    format: AudioFormat
    rate: int = 16000
    frame_ms: int = 20


class AudioChunk(Struct, frozen=True):
    """Whole frames (or PCM samples) of an open stream. Not answered; losses show at its end."""

    stream: int
    index: int
    frames: tuple[bytes, ...]

    def __post_init__(self) -> None:
        size = sum(map(len, self.frames))
        _need(size <= MAX_CHUNK_BYTES, f"a chunk of {size} bytes; at most {MAX_CHUNK_BYTES}")


class EndAudio(Struct, frozen=True):
    """No more chunks; `Done` follows the last sample played. `flush` drops what is buffered."""

    stream: int
    flush: bool = False


class StartMicrophone(Struct, frozen=True):
    """Ask for `MicrophoneChunk` events."""

    stream: int
    format: AudioFormat
    rate: int = 16000


class StopMicrophone(Struct, frozen=True):
    stream: int


class Prompt(Struct, frozen=True):
    """Ask the wearer to allow or deny. Answered by `Done` when drawn, then by `PromptAnswered`."""

    prompt: int
    lines: tuple[TextLine, ...]
    timeout_s: float

    def __post_init__(self) -> None:
        _need(0 < self.timeout_s <= 600, f"a prompt of {self.timeout_s} s; 0 to 600 are allowed")


class EndPrompt(Struct, frozen=True):
    """Remove a prompt (None: any), which ends its answering. `Done` follows even if it is gone."""

    prompt: int | None = None


class PhotoSize(StrEnum):
    """How large a photo shall be; the glasses choose the nearest they have."""

    SMALL = "small"
    """about 320 × 240: a few seconds over BLE"""
    MEDIUM = "medium"
    """about 640 × 480"""
    LARGE = "large"
    """the most the glasses send over this link"""


class TakePhoto(Struct, frozen=True):
    """Take a photo. Answered by `Done` when the glasses took the order; `PhotoTaken` or
    `PhotoFailed` with the same number follows.
    """

    photo: int
    size: PhotoSize = PhotoSize.MEDIUM


class Ping(Struct, frozen=True):
    """Check whether the glasses answer. Answered by `Done`."""


# ------------------------------------------------------------------ commands: settings


class SetBrightness(Struct, frozen=True):
    """Brightness of the lens in percent, or by the glasses' own light sensor."""

    level: int | None = None
    auto: bool = False

    def __post_init__(self) -> None:
        _need(self.level is not None or self.auto, "a brightness is a level, automatic, or both")
        _need(
            self.level is None or 0 <= self.level <= 100,
            f"brightness {self.level} % is outside 0…100",
        )


class SetSilentMode(Struct, frozen=True):
    """Silent mode: the glasses show nothing and react to nothing until it is switched off."""

    on: bool


class SetWearDetection(Struct, frozen=True):
    """Switch wear detection: whether the glasses notice being put on and taken off."""

    on: bool


class SetHeadUpAngle(Struct, frozen=True):
    """Set how far the wearer must look up to trigger the head-up gesture, in degrees (0 to 60)."""

    degrees: int

    def __post_init__(self) -> None:
        _need(0 <= self.degrees <= 60, f"an angle of {self.degrees}° is outside 0…60°")


class App(Struct, frozen=True):
    """An app that may notify: its identifier (Android's package name) and its name for wearers."""

    id: str
    name: str


class AllowApps(Struct, frozen=True):
    """Show notifications of these apps only."""

    apps: tuple[App, ...]

    def __post_init__(self) -> None:
        _need(len(self.apps) <= MAX_APPS, f"{len(self.apps)} apps; at most {MAX_APPS}")


class ShowNotification(Struct, frozen=True):
    """Show a notification in the glasses' own style. `at`: seconds since 1970, or 0 (unknown).
    `number`: what `ClearNotification` names it by; 0: the codec numbers it.
    """

    app: App
    title: str
    text: str
    subtitle: str = ""
    at: int = 0
    number: int = 0

    def __post_init__(self) -> None:
        size = len((self.title + self.subtitle + self.text).encode())
        _need(size <= MAX_TEXT_BYTES, f"a notification of {size} bytes; at most {MAX_TEXT_BYTES}")
        _need(0 <= self.at < 1 << 32, f"a time of {self.at} s is outside 32 bits")
        _need(0 <= self.number < 1 << 32, f"notification {self.number} is outside 32 bits")


class SetClock(Struct, frozen=True):
    """Set the glasses' own clock. `local_s`: seconds since 1970 in local wall-clock time.
    `offset_s`: by how much that is ahead of UTC, which some glasses keep.
    """

    local_s: int
    twelve_hour: bool = False
    offset_s: int = 0

    def __post_init__(self) -> None:
        for seconds in (self.local_s, self.utc_s):
            _need(0 <= seconds < 1 << 32, f"a time of {seconds} s is outside 32 bits")

    @property
    def utc_s(self) -> int:
        return self.local_s - self.offset_s


class DoubleTap(StrEnum):
    """What a double tap opens on the glasses."""

    NOTHING = "nothing"
    TRANSLATE = "translate"
    TELEPROMPTER = "teleprompter"
    DASHBOARD = "dashboard"
    TRANSCRIBE = "transcribe"


class SetDoubleTap(Struct, frozen=True):
    """Bind the double tap."""

    action: DoubleTap


class SetDebugLog(Struct, frozen=True):
    """Whether the glasses send their debug log."""

    on: bool


class ExitToDashboard(Struct, frozen=True):
    """Leave the current page; the glasses return to their own dashboard."""


class OwnCommand(Struct, frozen=True):
    """A command for what some glasses show and do by themselves: see own_commands.py, which is not
    imported where none is sent. `is_secret`: it has something that no recording may have.
    `is_setting`: the newest counts, and is sent again where the glasses may have missed it.
    """

    is_secret: ClassVar[bool] = False
    is_setting: ClassVar[bool] = False


Command = (
    Hello
    | ShowPage
    | UpdatePage
    | ClearPage
    | StartAudio
    | AudioChunk
    | EndAudio
    | StartMicrophone
    | StopMicrophone
    | Prompt
    | EndPrompt
    | TakePhoto
    | Ping
    | SetBrightness
    | SetSilentMode
    | SetWearDetection
    | SetHeadUpAngle
    | AllowApps
    | ShowNotification
    | SetClock
    | SetDoubleTap
    | SetDebugLog
    | ExitToDashboard
    | OwnCommand
)

# ------------------------------------------------------------------ answers and events to us


class GlassesInfo(Struct, frozen=True):
    """Answer to `Hello`, and the content of the profile's `info` characteristic.

    `capabilities`: flat, dotted keys → bool, int, float or str. `limits`: the limits the sender
    must keep (`window` in frames, `message` in bytes).
    """

    model: str
    firmware: str
    serial: str
    capabilities: Mapping[str, Any]
    limits: Mapping[str, int]


class Done(Struct, frozen=True):
    """A command was carried out.

    `drawn`: pixels lit. `samples`: samples played. `clipped`: lines or tiles that did not fit.
    `skew_s`: seconds between both sides of two-sided glasses. None where it does not apply.
    """

    drawn: int | None = None
    samples: int | None = None
    clipped: int = 0
    skew_s: float | None = None


class Failed(Struct, frozen=True):
    """A command was refused. `code`: unsupported, no_scene, no_stream, busy, too_big, bad_message
    or interrupted.
    """

    code: str
    detail: str = ""


class Gestured(Struct, frozen=True):
    """The wearer made a gesture; `side` where the glasses say on which side."""

    gesture: Gesture
    side: Side | None = None


class ButtonReleased(Struct, frozen=True):
    """The wearer ended a long press (`Gesture.BUTTON_LONG`), where the glasses report that."""

    side: Side | None = None


class UncertainTap(Struct, frozen=True):
    """A tap on this side that may be its late report of the tap before, made on the other side. It
    may turn a page; it answers nothing.
    """

    side: Side


class BatteryChanged(Struct, frozen=True):
    """Battery charge in percent, 0 to 100; `side` where each side has its own battery."""

    level: int
    charging: bool = False
    side: Side | None = None

    def __post_init__(self) -> None:
        _need(0 <= self.level <= 100, f"battery level {self.level} % is outside 0…100")


class CaseChanged(Struct, frozen=True):
    """The charging case reported its charge in percent, or that it is being charged; None: not
    known.
    """

    level: int | None = None
    charging: bool | None = None

    def __post_init__(self) -> None:
        _need(
            self.level is None or 0 <= self.level <= 100,
            f"battery level {self.level} % of the case is outside 0…100",
        )


class WornChanged(Struct, frozen=True):
    worn: bool


class RunningAppChanged(Struct, frozen=True):
    """Which function the glasses are in, by their own number; 0: none."""

    app: int


class VoiceNote(Struct, frozen=True):
    """A note that the wearer spoke; the glasses keep it. `at`: seconds since 1970 in local time."""

    note: int
    at: int
    crc: int = 0


class VoiceNotesChanged(Struct, frozen=True):
    """The spoken notes that the glasses keep, newest first."""

    notes: tuple[VoiceNote, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.notes)
        _need(count <= MAX_VOICE_NOTES, f"{count} voice notes; at most {MAX_VOICE_NOTES}")


class VoiceNoteFetched(Struct, frozen=True):
    """A spoken note arrived whole: `sound` as the glasses coded it (`AudioFormat`)."""

    note: int
    sound: bytes
    format: AudioFormat = AudioFormat.LC3

    def __post_init__(self) -> None:
        size = len(self.sound)
        _need(size <= MAX_VOICE_NOTE_BYTES, f"a voice note of {size} bytes is over the limit")


class HidingChanged(Struct, frozen=True):
    """The page became hidden or visible; `by` is the reason."""

    by: Hiding
    hidden: bool


class PageClosed(Struct, frozen=True):
    """The wearer closed the page at the glasses: the lens may be empty until the next is drawn."""


class Reading(Struct, frozen=True):
    """One way to understand an utterance. `log_probability`: natural logarithm of how likely a
    recogniser holds these words, all of them together.
    """

    text: str
    log_probability: float


class Transcript(Struct, frozen=True):
    """Speech of the wearer, recognised by the glasses (or from a simulated wearer), or on this
    machine from their microphone.

    `began_at`, `ended_at`: on the boot clock. `confidence`: 0 to 1. `readings`: the likeliest
    first. All of these only where the recogniser says them. `addressed`: it was said to the glasses
    (after a gesture, or after the wake phrase), not just near them.
    """

    text: str
    final: bool = True
    began_at: float | None = None
    ended_at: float | None = None
    confidence: float | None = None
    readings: tuple[Reading, ...] = ()
    addressed: bool = False


class MicrophoneChunk(Struct, frozen=True):
    stream: int
    index: int
    frames: tuple[bytes, ...]


class PhotoTaken(Struct, frozen=True):
    """A photo arrived whole. `photo`: the number it was asked for by, or 0 for one that the wearer
    took at the glasses. `turned`: degrees clockwise by which it must be turned to be upright.
    """

    photo: int
    jpeg: bytes
    turned: int = 0

    def __post_init__(self) -> None:
        size = len(self.jpeg)
        _need(size <= MAX_PHOTO_BYTES, f"a photo of {size} bytes; at most {MAX_PHOTO_BYTES}")
        _need(self.turned in (0, 90, 180, 270), f"a photo turned by {self.turned}°")


class PhotoFailed(Struct, frozen=True):
    """A photo that was asked for will not arrive; `detail` says why."""

    photo: int
    detail: str


class PromptAnswered(Struct, frozen=True):
    prompt: int
    answer: Answer


class SideChanged(Struct, frozen=True):
    """One side of two-sided glasses was lost or came back; the other continues."""

    side: Side
    up: bool
    reason: str = ""


class OwnEvent(Struct, frozen=True):
    """What only some glasses report, and only those who asked for it read: see own_commands.py."""


class CapabilitiesChanged(Struct, frozen=True):
    """The capabilities changed; a full set that replaces the one of `GlassesInfo`."""

    capabilities: Mapping[str, Any] = field(default_factory=dict)


Event = (
    Gestured
    | ButtonReleased
    | UncertainTap
    | BatteryChanged
    | CaseChanged
    | WornChanged
    | RunningAppChanged
    | VoiceNotesChanged
    | VoiceNoteFetched
    | Transcript
    | MicrophoneChunk
    | PhotoTaken
    | PhotoFailed
    | PromptAnswered
    | SideChanged
    | CapabilitiesChanged
    | HidingChanged
    | PageClosed
    | OwnEvent
)
Reply = GlassesInfo | Done | Failed


def _need(condition: bool, complaint: str) -> None:  # noqa: FBT001 - reads as a sentence at every call
    if not condition:
        raise ValueError(complaint)
