"""Why nothing can be heard, in words for the wearer and for the owner."""

from collections.abc import Callable
from typing import Final, NamedTuple

from edge.hearing.settings import ListeningSettings
from edge.ports import GlassesStatus
from firmware_bridge.capabilities import Capabilities, Hardware

AWAY: Final = "The glasses are not connected."
FORBIDDEN: Final = "The microphone is switched off in the settings."
NO_MICROPHONE: Final = "These glasses have no microphone."
NO_RECOGNISER: Final = "No speech recognition is installed."
RECOGNISER_OFF: Final = "Speech recognition is switched off in the settings."
STOPPED: Final = "Speech recognition has stopped. Try again."
NO_SERVER: Final = "The speech server does not answer."
NO_CODEC: Final = "The sound of these glasses cannot be decoded on this computer."
RECORDING: Final = "Sound is being recorded already."
ENDED: Final = "The wearer ended the recording."
NO_SOUND: Final = "The microphone of the glasses sends no sound."


class Obstacle(NamedTuple):
    """Why nothing can be heard: `state` of the status, a line for the wearer, the reason for the
    owner.
    """

    state: str
    line: str
    reason: str


def find_obstacle(
    settings: ListeningSettings, glasses: GlassesStatus, why_no_words: Callable[[], str]
) -> Obstacle | None:
    """Return why nothing can be heard now; None if it can. `why_no_words`: why this machine
    recognises no words, "" if it does.
    """
    if not settings.allow:
        return Obstacle("forbidden", FORBIDDEN, "[microphone] allow = false")
    known = glasses.capabilities
    if known is not None and not known.has(Hardware.MICROPHONE):
        return Obstacle("missing", NO_MICROPHONE, "the glasses have no microphone")
    if why := why_no_words():
        off = settings.recogniser == "off"
        return Obstacle("missing", RECOGNISER_OFF if off else NO_RECOGNISER, why)
    if known is not None and _sends_lc3(known) and (why := lc3_missing()):
        return Obstacle("missing", NO_CODEC, why)
    if not glasses.ready or known is None:
        return Obstacle("off", AWAY, "the glasses are not connected")
    return None


def _sends_lc3(known: Capabilities) -> bool:
    if "lc3" not in str(known.get("microphone.codecs", "")):
        return False
    from edge.core.hearing.purposes import sound_format  # noqa: PLC0415 - as below

    return sound_format(known).value == "lc3"


def lc3_missing() -> str:
    """Return why LC3 cannot be decoded here, and what would help; "" if it can."""
    from firmware_bridge.lc3 import why_not  # noqa: PLC0415 - only glasses with LC3 need it

    return why_not()


def line_of_failure(settings: ListeningSettings) -> str:
    """Return what the wearer reads when the recogniser fails."""
    return NO_SERVER if "://" in settings.recogniser else STOPPED
