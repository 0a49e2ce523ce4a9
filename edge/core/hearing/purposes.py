"""What the microphone is on for, who gets the words, and when each purpose is over."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from edge.core.session import IDLE_S
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.messages import AudioFormat, Gesture

AWAY_S: Final = 60.0
"""How long the glasses may be away before nobody expects that they go on listening."""


class Purpose(StrEnum):
    """Why the microphone is on. Of several the first one gets the words."""

    QUESTION = "question"
    PUSH_TO_TALK = "push_to_talk"
    WAKE = "wake"
    CAPTIONS = "captions"
    SESSION = "session"
    RECORDING = "recording"


class Audience(StrEnum):
    """Who gets the words of one stream of sound."""

    QUESTION = "question"
    COMMANDS = "commands"
    """tools, the cloud, and programs that wait for what the wearer says"""
    BYSTANDERS = "bystanders"
    """captions; and commands, but only what follows the wake phrase"""
    NOBODY = "nobody"
    """the sound is recorded, and nothing recognised"""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a purpose is over by itself: after so long without a word, and in all; after one
    sentence; when the glasses were away for `away_s`.
    """

    audience: Audience
    silence_s: float | None = None
    most_s: float | None = None
    one_sentence: bool = False
    away_s: float | None = 0.0
    marked: bool = False
    """The lens says that the microphone is on; else it says so in another way, or not at all."""


LIMITS: Final[Mapping[Purpose, Limits]] = MappingProxyType(
    {
        Purpose.QUESTION: Limits(Audience.QUESTION),
        Purpose.PUSH_TO_TALK: Limits(
            Audience.COMMANDS, silence_s=10.0, most_s=30.0, one_sentence=True, marked=True
        ),
        Purpose.WAKE: Limits(Audience.BYSTANDERS, away_s=None),
        Purpose.CAPTIONS: Limits(Audience.BYSTANDERS, away_s=AWAY_S),
        Purpose.SESSION: Limits(Audience.COMMANDS, silence_s=IDLE_S, away_s=AWAY_S, marked=True),
        Purpose.RECORDING: Limits(Audience.NOBODY, marked=True),
    }
)


def first(purposes: Iterable[Purpose]) -> Purpose | None:
    """Return the purpose that decides who gets the words."""
    wanted = {*purposes}
    return next((purpose for purpose in Purpose if purpose in wanted), None)


def audience_of(purposes: Iterable[Purpose]) -> Audience | None:
    """Return who gets the words; None if the microphone is not needed. A voice session without
    captions gets all words, with a wake phrase or without.
    """
    wanted = {*purposes}
    if Purpose.SESSION in wanted and Purpose.CAPTIONS not in wanted:
        wanted.discard(Purpose.WAKE)
    found = first(wanted)
    return LIMITS[found].audience if found is not None else None


def over_at(
    purpose: Purpose, *, began_at: float, heard_at: float, away_since: float | None
) -> float | None:
    """Return when a purpose is over by itself, on the clock of the arguments; None: not at all.
    `heard_at`: when a word was heard last, or it began.
    """
    limits = LIMITS[purpose]
    ends = [
        since + limit
        for since, limit in (
            (heard_at, limits.silence_s),
            (began_at, limits.most_s),
            (away_since, limits.away_s),
        )
        if since is not None and limit is not None
    ]
    return min(ends, default=None)


_FORMATS: Final = (AudioFormat.PCM16, AudioFormat.LC3, AudioFormat.OPUS, AudioFormat.MULAW)
RATES: Final = (16000, 8000)
"""Rates of sound that can be recognised, in Hz; the first is the usual one."""


def sound_format(capabilities: Capabilities) -> AudioFormat:
    """Return the format in which these glasses are asked for sound."""
    named = {word.strip() for word in str(capabilities.get("microphone.codecs", "")).split(",")}
    return next((form for form in _FORMATS if form.value in named), AudioFormat.PCM16)


def sound_rate(capabilities: Capabilities) -> int:
    """Return the rate at which these glasses are asked for sound, in Hz."""
    rate: int = capabilities.get("microphone.rate")
    return rate if rate in RATES else RATES[0]


def push_to_talk(configured: str, capabilities: Capabilities | None) -> Gesture | None:
    """Return the gesture after which glassd listens to one sentence; None: there is none. By
    itself it is a long press where the glasses report one, else a double tap.
    """
    if configured == "off" or capabilities is None or not capabilities.has(Hardware.MICROPHONE):
        return None
    if configured != "auto":
        return Gesture(configured)
    reported = {word.strip() for word in str(capabilities.get("gestures", "")).split(",")}
    usual = (Gesture.BUTTON_LONG, Gesture.DOUBLE_TAP)
    return next((gesture for gesture in usual if gesture.value in reported), None)
