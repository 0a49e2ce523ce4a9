"""Commands for device settings: brightness, silent mode, notifications, clock, dashboard.

Part of messages.py. A codec whose glasses lack a setting refuses its command as `unsupported`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_APPS: Final = 100
"""Apps whose notifications are let through; a phone has about as many installed."""
_MAX_TEXT_BYTES: Final = 8192
"""UTF-8 bytes of text in one notification, as for a page."""


@dataclass(frozen=True, slots=True)
class SetBrightness:
    """Brightness of the lens in percent, or by the glasses' own light sensor."""

    level: int | None = None
    auto: bool = False

    def __post_init__(self) -> None:
        _need(self.level is not None or self.auto, "a brightness is a level, automatic, or both")
        _need(
            self.level is None or 0 <= self.level <= 100,
            f"brightness {self.level} % is outside 0…100",
        )


@dataclass(frozen=True, slots=True)
class SetSilentMode:
    """Silent mode: the glasses show nothing and react to nothing until it is switched off."""

    on: bool


@dataclass(frozen=True, slots=True)
class SetWearDetection:
    """Switch wear detection: whether the glasses notice being put on and taken off."""

    on: bool


@dataclass(frozen=True, slots=True)
class SetHeadUpAngle:
    """Set how far the wearer must look up to trigger the head-up gesture, in degrees (0 to 60)."""

    degrees: int

    def __post_init__(self) -> None:
        _need(0 <= self.degrees <= 60, f"an angle of {self.degrees}° is outside 0…60°")


@dataclass(frozen=True, slots=True)
class App:
    """An app that may notify: its identifier (Android's package name) and its name for wearers."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class AllowApps:
    """Show notifications of these apps only."""

    apps: tuple[App, ...]

    def __post_init__(self) -> None:
        _need(len(self.apps) <= MAX_APPS, f"{len(self.apps)} apps; at most {MAX_APPS}")


@dataclass(frozen=True, slots=True)
class ShowNotification:
    """Show a notification in the glasses' own style. `at`: seconds since 1970, or 0 (unknown)."""

    app: App
    title: str
    text: str
    subtitle: str = ""
    at: int = 0

    def __post_init__(self) -> None:
        size = len((self.title + self.subtitle + self.text).encode())
        _need(size <= _MAX_TEXT_BYTES, f"a notification of {size} bytes; at most {_MAX_TEXT_BYTES}")
        _need(0 <= self.at < 1 << 32, f"a time of {self.at} s is outside 32 bits")


@dataclass(frozen=True, slots=True)
class SetClock:
    """Set the glasses' own clock. `local_s`: seconds since 1970 in local wall-clock time."""

    local_s: int
    twelve_hour: bool = False

    def __post_init__(self) -> None:
        _need(0 <= self.local_s < 1 << 32, f"a time of {self.local_s} s is outside 32 bits")


class DoubleTap(StrEnum):
    """What a double tap opens on the glasses."""

    NOTHING = "nothing"
    TRANSLATE = "translate"
    TELEPROMPTER = "teleprompter"
    DASHBOARD = "dashboard"
    TRANSCRIBE = "transcribe"


@dataclass(frozen=True, slots=True)
class SetDoubleTap:
    """Bind the double tap."""

    action: DoubleTap


@dataclass(frozen=True, slots=True)
class SetDebugLog:
    """Whether the glasses send their debug log."""

    on: bool


@dataclass(frozen=True, slots=True)
class ExitToDashboard:
    """Leave the current page; the glasses return to their own dashboard."""


def _need(condition: bool, complaint: str) -> None:  # noqa: FBT001 - reads as a sentence at every call
    if not condition:
        raise ValueError(complaint)
