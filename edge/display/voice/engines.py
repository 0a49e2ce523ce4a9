"""Chooses who speaks a sentence: the configured server, the built-in voices, or espeak-ng.

Used by the child process of the voice only. The answer has sound in it, or there is none: an engine
that skips the letters it does not know counts as one that cannot speak the text.
"""

import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from edge.display.voice import espeak, sound, wyoming
from edge.display.voice.languages import UNKNOWN
from edge.runtime.wyoming import Address, ServerAway, WyomingFault

BUILT_IN: Final = {
    "de": "de-DE",
    "en": "en-GB",
    "es": "es-ES",
    "fr": "fr-FR",
    "it": "it-IT",
}
"""Language → voice of the built-in engine."""
LIMIT_S: Final = 3.0
"""Seconds for one engine: less than the daemon allows for a sentence."""
RETRY_S: Final = 30.0
"""Seconds until a server that did not answer is asked again."""
_servers: dict[Address, tuple[float, Mapping[str, str] | str]] = {}
"""What a server has, or until when (monotonic clock) it is left alone, and why."""
BuiltIn = Callable[[str, str], bytes]
"""(text, voice) → PCM at `sound.RATE`. Raises `NoVoice`."""


class NoVoice(Exception):
    """No engine speaks this text; says what each lacked, and what would help."""


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """One sentence. `voice` is the configured one, `server` the address of a Wyoming server."""

    text: str
    language: str
    voice: str = "en-GB"
    volume: int = 100
    server: str = ""


@dataclass(frozen=True, slots=True)
class Speech:
    """A sentence as sound, and the engine and voice that spoke it."""

    samples: "array[int]"
    voice: str


def say(wanted: SpeechRequest, built_in: BuiltIn) -> Speech:
    """Speak with the first engine that can. Raises `NoVoice`."""
    why: list[str] = []
    for name, voice, speak in _engines(wanted, built_in, why):
        try:
            samples = sound.from_bytes(speak())
        except (WyomingFault, espeak.EspeakFault, NoVoice) as e:
            why.append(f"{name}: {e}")
            continue
        if sound.heard_after(samples):
            return Speech(sound.levelled(samples, wanted.volume), f"{name} {voice}")
        why.append(f"{name}: no sound for this text")
    raise NoVoice("; ".join(why) or "nothing speaks it")


def _engines(
    wanted: SpeechRequest, built_in: BuiltIn, why: list[str]
) -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    """Yield each engine with its voice for the language; add to `why` what the others lack."""
    text, language = wanted.text, wanted.language
    if language == UNKNOWN:
        why.append("no voice knows these letters")
        return
    if wanted.server:
        address = Address.parse(wanted.server, wyoming.PORT)
        try:
            voice = _server_voices(address).get(language, "")
        except WyomingFault as e:
            voice = ""
            why.append(f"{wanted.server}: {e}")
        if voice:
            yield wanted.server, voice, lambda: _ask_server(text, voice, address)
    if own := _own_voice(language, wanted.voice):
        yield "built-in", own, lambda: built_in(text, own)
    if not espeak.installed():
        why.append(f"no voice for {language}: install espeak-ng")
        return
    if name := espeak.voice_for(language, _espeak_voices()):
        yield espeak.PROGRAM, name, lambda: espeak.speak(text, name, LIMIT_S)
    else:
        why.append(f"espeak-ng has no voice for {language}")


def _own_voice(language: str, configured: str) -> str:
    """Return the built-in voice for a language: the configured one if it is of that language."""
    same = configured.partition("-")[0] == language
    return configured if same else BUILT_IN.get(language, "")


def _server_voices(address: Address) -> Mapping[str, str]:
    """Return the server's voices, asked once; one that does not answer is left alone for a while,
    or every sentence would wait for it. Raises `WyomingFault`.
    """
    until, known = _servers.get(address, (float("-inf"), {}))
    if isinstance(known, Mapping) and known:
        return known
    if isinstance(known, str) and time.monotonic() < until:
        raise WyomingFault(known)
    try:
        known = wyoming.voices(address, LIMIT_S)
    except WyomingFault as e:
        _leave_alone(address, e)
        raise
    _servers[address] = (0.0, known)
    return known


def _ask_server(text: str, voice: str, address: Address) -> bytes:
    """Let the server speak; one that is away is left alone for a while. Raises `WyomingFault`."""
    try:
        return wyoming.speak(text, voice, address, LIMIT_S)
    except ServerAway as e:
        _leave_alone(address, e)
        raise


def _leave_alone(address: Address, why: WyomingFault) -> None:
    _servers[address] = (time.monotonic() + RETRY_S, str(why))


@lru_cache(maxsize=1)
def _espeak_voices() -> frozenset[str]:
    return espeak.languages(LIMIT_S)


# ------------------------------------------------------------------ for the status and the doctor


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: the languages it speaks, or the reason why it speaks none."""

    name: str
    languages: tuple[str, ...] = ()
    reason: str = ""


def survey(server: str, *, has_built_in: bool, limit_s: float = LIMIT_S) -> tuple[Engine, ...]:
    """Look at all engines, in the order in which they are asked. Waits for each as long."""
    found = [_survey_server(server, limit_s)] if server else []
    missing = "" if has_built_in else "not installed: install glassd[voice]"
    found.append(Engine("built-in", () if missing else tuple(sorted(BUILT_IN)), missing))
    known = espeak.languages(limit_s)
    broken = "it does not work" if espeak.installed() else "not installed: install espeak-ng"
    return (*found, Engine(espeak.PROGRAM, tuple(sorted(known)), "" if known else broken))


def _survey_server(server: str, limit_s: float) -> Engine:
    try:
        known = wyoming.voices(Address.parse(server, wyoming.PORT), limit_s)
    except WyomingFault as e:
        return Engine(server, reason=str(e))
    return Engine(server, tuple(sorted(known)), "" if known else "it has no voice")
