"""The evaluation of hearing counts correctly: what is compared, what is right, and what is harm."""

import itertools

import pytest

pytest.importorskip("numpy", reason="pip install 'glassd[ears]'")
import numpy as np

from edge.core import phrases
from edge.core.tools.snapshot import Entry
from tests.hearing_eval.radio import prose
from tests.hearing_eval.score import Called, Outcome, Verdict, error_rate, judge, words
from tests.hearing_eval.sentences import COMMANDS, NO_COMMANDS, Kind, Sentence
from tests.hearing_eval.voices import (
    NOISES,
    RATE,
    SPEEDS,
    Noise,
    mix,
    takes,
    white_noise,
    with_noise,
)
from tests.hearing_eval.wearer import demo_tools

TIMER = Sentence("set a timer for two minutes", Kind.CALL, "timer:start", {"seconds": 120})
NOTE = Sentence("note that a b c d e", Kind.DICTATION, "notes:add", {"text": "a b c d e"})
QUESTION = Sentence("yes", Kind.ANSWER, answer="yes")
REMARK = Sentence("it rains", Kind.NONE)


def timer(seconds, **more):
    return Outcome("", (Called("timer:start", {"seconds": seconds}, **more),))


def note(text, **more):
    return Outcome("", (Called("notes:add", {"text": text}, **more),))


def test_there_are_100_commands_and_30_others_and_no_two_are_the_same():
    assert (len(COMMANDS), len(NO_COMMANDS)) == (100, 30)
    assert len({s.text for s in (*COMMANDS, *NO_COMMANDS)}) == 130


def test_what_a_wearer_says_is_what_these_tools_answer_to():
    entries = [Entry(tool, "app") for tool in demo_tools()]
    for sentence in COMMANDS:
        if sentence.kind in (Kind.CALL, Kind.DICTATION):
            found = phrases.find_tool(sentence.text, entries, "", lambda _tool: "")
            assert found is not None, sentence.text
            called = Outcome("", (Called(found.tool.name, found.args),))
            assert judge(sentence, called) is Verdict.RIGHT, (sentence.text, found)


def test_words_are_compared_in_one_spelling():
    assert words("What's on 2 lists?") == words("what is on two lists")
    assert words("25 %") == ["twenty", "five", "percent"]
    assert words("The 2nd of 1100") == words("the second of one thousand one hundred")
    assert error_rate("one two three four", "one four three") == 0.5


@pytest.mark.requirement("I14-evaluated")
@pytest.mark.parametrize(
    ("sentence", "outcome", "verdict"),
    [
        (TIMER, timer(120), Verdict.RIGHT),
        (TIMER, timer(120, asked=True), Verdict.ASKED),
        (TIMER, timer(1200, asked=True), Verdict.REFUSED),
        (TIMER, timer(1200), Verdict.HARM),
        (TIMER, timer(1200, changes=False), Verdict.WRONG),
        (TIMER, Outcome("", (*timer(120).calls, *timer(1200).calls)), Verdict.HARM),
        (TIMER, Outcome(), Verdict.NOTHING),
        (NOTE, note("a b c d x"), Verdict.RIGHT),
        (NOTE, note("a b c y x"), Verdict.HARM),
        (NOTE, note("a b c y x", asked=True), Verdict.REFUSED),
        (QUESTION, Outcome(answer="yes"), Verdict.RIGHT),
        (QUESTION, Outcome(answer="no"), Verdict.WRONG),
        (Sentence("no", Kind.ANSWER, answer="no"), Outcome(answer="yes"), Verdict.HARM),
        (REMARK, Outcome(), Verdict.RIGHT),
        (REMARK, timer(120), Verdict.HARM),
        (REMARK, timer(120, asked=True), Verdict.REFUSED),
    ],
)
def test_a_take_is_judged_by_what_came_of_it(sentence, outcome, verdict):
    assert judge(sentence, outcome) is verdict


def test_every_voice_speed_noise_and_coding_is_heard():
    some = [take for number in range(3) for take in takes(number)]
    assert {take.speed for take in some} == set(SPEEDS)
    assert len(some) == 3 * 2 * len(NOISES) * 2


@pytest.mark.parametrize("kind", ["room", "white"])
def test_noise_lies_as_far_under_the_speech_as_it_says(kind):
    speech = 0.3 * np.sin(np.arange(4 * RATE))
    noisy = np.frombuffer(with_noise(speech, Noise(kind, 20), "seed"), "<i2") / 32768
    loud = speech[np.abs(speech) > 0.01]
    assert 10 * np.log10(np.mean(loud**2) / np.mean((noisy - speech) ** 2)) == pytest.approx(
        20, abs=0.1
    )


def test_noise_in_rooms_is_mostly_low():
    silence = np.concatenate([np.full(RATE, 0.3), np.zeros(8 * RATE)])
    power = {}
    for kind in ("room", "white"):
        heard = np.frombuffer(with_noise(silence, Noise(kind, 20), "seed"), "<i2")[RATE:]
        spectrum = np.abs(np.fft.rfft(heard)) ** 2
        half = len(spectrum) // 2  # 4 kHz
        power[kind] = spectrum[half:].sum() / spectrum[:half].sum()
    assert power["white"] == pytest.approx(1, abs=0.05)
    assert power["room"] < 0.02


def test_what_is_no_noise_is_refused():
    assert [Noise.parse("none"), Noise.parse("room:20")] == [None, Noise("room", 20)]
    for wrong in ("20", "pink:20", "room:loud"):
        with pytest.raises(ValueError, match=wrong):
            Noise.parse(wrong)


def test_the_radio_plays_the_same_varied_prose_each_time():
    first, second = (list(itertools.islice(prose(), 300)) for _ in range(2))
    assert first == second
    assert len(set(first)) > 280
    assert not [text for text in first if "{" in text]


def test_two_sounds_are_mixed_without_wrapping_round():
    loud = (30000).to_bytes(2, "little", signed=True) * 3
    assert mix(loud, loud[:2])[:4] == b"\xff\x7f" + loud[2:4]
    assert len(white_noise(0.5)) == RATE
