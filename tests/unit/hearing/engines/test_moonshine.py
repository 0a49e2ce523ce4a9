"""Words of synthetic speech, by the real model."""

from functools import cache
from typing import TYPE_CHECKING

import pytest

from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.grammar import Grammar, letters

np = pytest.importorskip("numpy", reason="the extra `ears` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `ears` is not installed")
nanotts = pytest.importorskip("py_nanotts", reason="the extra `voice` is not installed")

from edge.hearing.engines import (  # noqa: E402 - after the skips
    EngineMissing,
    moonshine as module,
)
from edge.hearing.engines.guided_search import FIXED_FOUND  # noqa: E402
from edge.hearing.engines.moonshine import RATE, Moonshine  # noqa: E402

if TYPE_CHECKING:
    from edge.hearing.engines import Samples

SENTENCES = Grammar(
    ExpectedWords(
        (
            "set a timer for {duration}",
            "show my timers",
            "note that {text}",
            "what time is it",
            "stop",
        )
    )
)


@cache
def engine() -> Moonshine:
    try:
        made = Moonshine()
        made.load()
    except EngineMissing as problem:
        pytest.skip(str(problem))
    return made


@cache
def speech(text: str, voice: str = "en-GB") -> "Samples":
    pcm = nanotts.NanoTTS().speak(text, voice=voice, volume=0.5)
    quiet = np.zeros(RATE // 4, np.float32)
    return np.concatenate([quiet, np.frombuffer(pcm, "<i2").astype(np.float32) / 32768, quiet])


@pytest.mark.requirement("I14-guided")
def test_what_may_be_said_is_understood_where_free_words_are_wrong() -> None:
    free = engine().decode(speech("show my timers"), None, final=True)
    assert free.text != "Show my timers."
    heard = engine().decode(speech("show my timers"), SENTENCES, final=True)
    assert heard.text == heard.readings[0].text == "Show my timers."
    assert free.text in [reading.text for reading in heard.readings]


@pytest.mark.requirement("I14-names")
def test_a_name_that_may_be_said_is_a_reading_where_free_words_are_others() -> None:
    def readings(names: tuple[str, ...]) -> list[str]:
        sentences = ("find the contact {text}", *["find the contact {name}"] * bool(names))
        grammar = Grammar(ExpectedWords(sentences, {"name": names}))
        heard = engine().decode(speech("find the contact Yuki Tanaka"), grammar, final=True)
        return [letters(reading.text).strip() for reading in heard.readings]

    assert "find the contact yuki tanaka" not in readings(())
    assert "find the contact yuki tanaka" in readings(("anna berg", "yuki tanaka"))


def test_readings_are_sorted_and_differ_in_more_than_marks() -> None:
    heard = engine().decode(speech("set a timer for an hour and a half"), SENTENCES, final=True)
    assert heard.readings[0].text == "Set a timer for an hour and a half."
    chances = [reading.log_probability for reading in heard.readings]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] <= 0
    assert len({r.text.lower().strip(".") for r in heard.readings}) == len(heard.readings)


def test_sentences_without_free_words_are_read_beside_likelier_ones(monkeypatch) -> None:
    monkeypatch.setattr(module, "READINGS", 1)
    heard = engine().decode(speech("set a timer for an hour and a half"), SENTENCES, final=True)
    beside = heard.readings[1:]
    assert len(beside) == FIXED_FOUND
    assert all(SENTENCES.fixed.accepts(reading.text) for reading in beside)
    assert not SENTENCES.fixed.accepts("note that it rains")


def test_speech_that_goes_on_gives_only_its_words() -> None:
    heard = engine().decode(speech("what time is it"), SENTENCES, final=False)
    assert heard.text == "What time is it?"
    assert heard.readings == ()
    assert heard.confidence is not None
    assert heard.confidence > 0.9


def test_a_clear_sentence_needs_no_search(monkeypatch) -> None:
    def search(*_args: object) -> None:
        pytest.fail("searched")

    monkeypatch.setattr(module.GuidedSearch, "run", search)
    monkeypatch.setattr(module, "_CLEAR", 2.0)
    heard = engine().decode(speech("stop"), SENTENCES, final=True)
    assert [r.text for r in heard.readings] == ["Stop."]


def test_long_speech_is_read_to_its_end_without_a_search(monkeypatch) -> None:
    def search(*_args: object) -> None:
        pytest.fail("searched")

    monkeypatch.setattr(module.GuidedSearch, "run", search)
    monkeypatch.setattr(module, "_CLEAR", 2.0)
    sentences = "what time is it", "note that the car is on level three", "where is my passport"
    sound = np.concatenate([speech(each) for each in sentences * 2])
    assert len(sound) > 12 * RATE
    heard = engine().decode(sound, SENTENCES, final=True)
    assert heard.text.lower().count("what time is it") == 2
    assert heard.text.lower().count("passport") == 2


def test_a_sentence_with_others_near_it_is_searched() -> None:
    sentence = "Note that the car is on level three."
    free = engine().decode(speech(sentence), None, final=True)
    assert SENTENCES.accepts(free.text)
    assert len(engine().decode(speech(sentence), SENTENCES, final=True).readings) > 1


def test_too_little_sound_has_no_words() -> None:
    heard = engine().decode(np.zeros(RATE // 10, np.float32), SENTENCES, final=True)
    assert (heard.text, heard.confidence, heard.readings) == ("", 0.0, ())


def test_a_missing_model_is_said(monkeypatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(EngineMissing, match=r"moonshine-voice is not installed: .*\[ears\]"):
        Moonshine().load()
