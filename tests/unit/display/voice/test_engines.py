"""Who speaks a sentence, and that silence is never speech."""

import math
import sys
from array import array
from pathlib import Path

import pytest

from edge.display.voice import engines, sound
from edge.display.voice.engines import NoVoice, SpeechRequest, say
from edge.display.voice.tts_worker import speak as built_in
from tests.system import needs


@pytest.fixture(autouse=True)
def forget() -> None:
    engines._espeak_voices.cache_clear()
    engines._servers.clear()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without espeak-ng."""
    monkeypatch.setenv("PATH", str(tmp_path))


def decibels(peak: int) -> float:
    return 20 * math.log10(peak / sound.FULL)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The quick brown fox jumps over the lazy dog."),
        ("de", "Guten Morgen, wie geht es dir heute in München?"),
        ("es", "El tren sale en diez minutos."),
        ("fr", "Le train part dans dix minutes."),
        ("it", "Il treno parte tra dieci minuti."),
    ],
)
@pytest.mark.usefixtures("alone")
def test_a_built_in_voice_of_the_language_speaks_below_the_ceiling(language, text):
    samples = say(SpeechRequest(text, language), built_in).samples
    assert sound.heard_after(samples)
    assert decibels(sound.peak_of(samples)) <= sound.CEILING_DB


@pytest.mark.parametrize(
    ("language", "text"),
    [("ru", "Привет, мир! Как дела?"), ("el", "Καλημέρα, τι κάνεις;"), ("he", "שלום, מה שלומך?")],
)
@pytest.mark.usefixtures("alone")
def test_a_language_without_a_voice_is_refused_with_the_help(language, text):
    with pytest.raises(NoVoice, match=f"no voice for {language}: install espeak-ng"):
        say(SpeechRequest(text, language), built_in)


@pytest.mark.usefixtures("alone")
def test_letters_that_the_engine_skips_are_no_sound_even_if_the_language_was_guessed_wrong():
    with pytest.raises(NoVoice, match="built-in: no sound"):
        say(SpeechRequest("Привет, мир! Как дела?", "en"), built_in)


@pytest.mark.usefixtures("alone")
def test_the_configured_accent_is_used_for_its_language():
    asked: list[str] = []

    def record(_text: str, voice: str) -> bytes:
        asked.append(voice)
        return array("h", [9000, -9000] * 4000).tobytes()

    for language in ("en", "de"):
        say(SpeechRequest("x", language, voice="en-US"), record)
    assert asked == ["en-US", "de-DE"]


@needs("espeak-ng")
@pytest.mark.parametrize(("language", "text"), [("ru", "Привет, мир!"), ("hi", "नमस्ते, आप कैसे हैं?")])
def test_espeak_speaks_what_the_built_in_voices_cannot(language, text):
    samples = say(SpeechRequest(text, language), built_in).samples
    assert sound.heard_after(samples)
    assert decibels(sound.peak_of(samples)) <= sound.CEILING_DB


@pytest.mark.usefixtures("alone")
def test_a_server_that_does_not_answer_is_left_alone_for_a_while(monkeypatch):
    tries = []

    def voices(address, _limit_s):
        tries.append(address)
        raise engines.WyomingFault("it took too long")

    monkeypatch.setattr(engines.wyoming, "voices", voices)
    for _ in range(3):
        say(SpeechRequest("Hello.", "en", server="tcp://box"), built_in)
    assert len(tries) == 1
    monkeypatch.setattr(engines, "RETRY_S", 0.0)
    engines._servers.clear()
    for _ in range(3):
        say(SpeechRequest("Hello.", "en", server="tcp://box"), built_in)
    assert len(tries) == 4


@pytest.mark.usefixtures("alone")
def test_a_server_that_dies_while_it_speaks_is_left_alone_but_not_one_without_a_model(monkeypatch):
    faults = [engines.WyomingFault("no model"), engines.ServerAway("it is gone")]
    asked = []

    def speak(text, *_):
        asked.append(text)
        raise faults[min(len(asked), 2) - 1]

    monkeypatch.setattr(engines.wyoming, "voices", lambda *_: {"en": "anna"})
    monkeypatch.setattr(engines.wyoming, "speak", speak)
    for text in "One.", "Two.", "Three.", "Four.":
        assert sound.heard_after(
            say(SpeechRequest(text, "en", server="tcp://box:1"), built_in).samples
        )
    assert asked == ["One.", "Two."]


@pytest.mark.usefixtures("alone")
def test_letters_that_no_voice_knows_are_refused_without_asking_any():
    with pytest.raises(NoVoice, match="no voice knows these letters"):
        say(SpeechRequest("ᏣᎳᎩ", "und"), built_in)


@pytest.mark.usefixtures("alone")
def test_without_the_extra_the_built_in_voice_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "py_nanotts", None)
    with pytest.raises(NoVoice, match=r"built-in: not installed: install glassd\[voice\]"):
        say(SpeechRequest("Hello.", "en"), built_in)


@pytest.mark.usefixtures("alone")
def test_a_survey_names_the_languages_of_each_engine_or_what_it_lacks(monkeypatch):
    monkeypatch.setattr(engines.wyoming, "voices", lambda *_: {"th": "somchai", "de": "anna"})
    found = engines.survey("tcp://box:1", has_built_in=True)
    assert [(e.name, e.languages, e.reason) for e in found] == [
        ("tcp://box:1", ("de", "th"), ""),
        ("built-in", ("de", "en", "es", "fr", "it"), ""),
        ("espeak-ng", (), "not installed: install espeak-ng"),
    ]
    (missing, _) = engines.survey("", has_built_in=False)
    assert (missing.languages, missing.reason) == ((), "not installed: install glassd[voice]")


@needs("espeak-ng")
def test_a_survey_counts_the_languages_of_espeak():
    *_, found = engines.survey("", has_built_in=True)
    assert len(found.languages) > 80
    assert {"ru", "hi", "he", "en-gb"} <= set(found.languages)
    assert not found.reason


@pytest.mark.enable_socket
@pytest.mark.usefixtures("alone")
def test_a_server_that_is_away_leaves_the_built_in_voice():
    wanted = SpeechRequest("Hello.", "en", server="tcp://127.0.0.1:1")
    assert say(wanted, built_in).voice == "built-in en-GB"
