"""Promises about the voice and other sound."""

from typing import Final

from tests.promises.words import Promise

_WHERE: Final = "issue 13, Sound that is sound"
PROMISES: Final[dict[str, Promise]] = {
    "I13-sound-energy": Promise(
        "`spoken` means that something could be heard: neither silence, nor the silence before "
        "a speech, nor letters that a voice skips count; what has no sound is named.",
        _WHERE,
    ),
    "I13-sound-languages": Promise(
        "Each part of a text is spoken by a voice of its language and script: the configured "
        "server's, the built-in ones, then espeak-ng where it is installed.",
        _WHERE,
    ),
    "I13-sound-engines": Promise(
        "A Wyoming server that is away, or dies while it speaks, leaves the next engine; the "
        "status and the doctor name each engine with its languages, or what it lacks.",
        _WHERE,
    ),
    "I13-sound-volume": Promise(
        "The volume is configured, or set by `glasses:set` and kept; all sound, also that of "
        "tools, stays below -1 dBFS as the glasses decode it; with 0 nothing is spoken, and it "
        "is shown where there is a display.",
        _WHERE,
    ),
    "I13-sound-preroll": Promise(
        "0.3 s of silence come before each speech, for loudspeakers that sleep.",
        _WHERE,
    ),
    "I13-sound-plain": Promise(
        "The voice reads neither Markdown nor addresses aloud.",
        _WHERE,
    ),
    "I13-sound-question": Promise(
        "A question is spoken whole, each part by a voice that knows its letters, or not at all.",
        "issue 13, Consent in plain words",
    ),
}

DECLINED: Final[dict[str, str]] = {}
