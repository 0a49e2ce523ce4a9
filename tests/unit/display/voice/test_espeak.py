"""`espeak-ng`: a real one where it is installed, and stand-ins that fail."""

from pathlib import Path

import pytest

from edge.display.voice import espeak, sound
from edge.display.voice.espeak import EspeakFault, languages, speak, voice_for
from tests.system import needs

LONG_S = 40.0
KNOWN = frozenset({"de", "cmn", "en-gb", "en-us", "pt", "pt-br"})


@needs("espeak-ng")
@pytest.mark.parametrize(
    ("voice", "text"),
    [
        ("de", "Guten Morgen, wie geht es dir?"),
        ("ru", "Привет, мир! Как дела? John kommt."),
        ("el", "Καλημέρα, τι κάνεις;"),
        ("he", "שלום, מה שלומך?"),
        ("ar", "مرحبا، كيف حالك اليوم؟"),
        ("hi", "नमस्ते, आप कैसे हैं?"),
        ("ta", "வணக்கம், எப்படி இருக்கிறீர்கள்?"),
        ("ko", "안녕하세요, 반갑습니다."),
        ("ka", "გამარჯობა, როგორ ხარ?"),
        ("tr", "Günaydın, nasılsın?"),
    ],
)
def test_ten_languages_sound(voice, text):
    samples = sound.from_bytes(speak(text, voice, LONG_S))
    assert sound.heard_after(samples)
    assert 0.8 < len(samples) / sound.RATE < 6


@needs("espeak-ng")
def test_a_text_that_it_would_spell_is_refused():
    with pytest.raises(EspeakFault, match="cannot read"):
        speak("今日は天気がいいです。", "ja", LONG_S)


@needs("espeak-ng")
def test_a_text_of_phoneme_commands_is_read_as_text():
    said = sound.from_bytes(speak("[[h@l'oU]]", "en-us", LONG_S))
    assert len(said) > 1.3 * len(sound.from_bytes(speak("hello", "en-us", LONG_S)))


@needs("espeak-ng")
def test_its_voices_are_listed():
    assert {"de", "ru", "th", "cmn"} <= languages(LONG_S)


@pytest.mark.parametrize(
    ("language", "voice"),
    [("zh", "cmn"), ("en-GB", "en-gb"), ("en-US", "en-us"), ("de-DE", "de"), ("ru", "")],
)
def test_a_language_has_the_name_that_espeak_gives_it(language, voice):
    assert voice_for(language, KNOWN) == voice


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo no voice >&2; exit 1", "no voice"),
        ("exec sleep 60", "too long"),
        ("cat", "made no sound"),
    ],
)
def test_a_program_that_fails_is_a_reason(monkeypatch, tmp_path: Path, script, problem):
    program = tmp_path / "espeak-ng"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(EspeakFault, match=problem):
        speak("Hallo", "de", 0.5 if problem == "too long" else LONG_S)


def test_where_it_is_absent_it_has_no_languages(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert espeak.installed() == ""
    assert languages(LONG_S) == frozenset()
