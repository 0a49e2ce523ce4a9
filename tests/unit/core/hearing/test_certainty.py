"""When it is certain what the wearer said."""

import math

import pytest

from edge.core.hearing.certainty import Certainty, call_key, judge
from firmware_bridge.messages import Reading, Transcript


def judged(*readings: tuple[str, float], addressed: bool = True, confidence: float = 0.8):
    """A meaning is a word in capitals; it is whole if it is the first word."""
    said = Transcript(
        readings[0][0],
        readings=tuple(Reading(*r) for r in readings),
        addressed=addressed,
        confidence=confidence,
    )

    def meaning_of(text: str) -> str | None:
        return next((word for word in text.split() if word.isupper()), None)

    first = {r[0].split()[0] for r in readings}
    return judge(
        said,
        meaning_of,
        lambda meaning: meaning,
        is_whole=lambda meaning: meaning in first,
        is_free=lambda meaning: meaning == "NOTE",
        kind=lambda meaning: meaning[0],
    )


def test_a_clear_reading_is_certain() -> None:
    found = judged(("START that now", -0.5))
    assert found[:2] == (Certainty.CERTAIN, "START")
    assert found.reason == ""
    assert found.margin == math.inf


def test_another_meaning_nearby_makes_it_unsure() -> None:
    found = judged(("START listening", -1.3), ("STOP listening", -1.5))
    assert found[:2] == (Certainty.UNSURE, "START")
    assert "another meaning" in found.reason
    assert found.margin == pytest.approx(0.2)
    assert judged(("START listening", -0.7), ("STOP listening", -5.5))[0] is Certainty.CERTAIN


def test_mumbled_words_need_a_wider_margin() -> None:
    readings = (("START recording now", -1.7), ("STOP recording now", -4.9))
    assert judged(*readings, confidence=0.8)[0] is Certainty.CERTAIN
    assert judged(*readings, confidence=0.65)[0] is Certainty.UNSURE


def test_readings_of_one_meaning_count_together() -> None:
    found = judged(("STOP it", -2.0), ("START it", -2.3), ("START this", -2.3))
    assert found.meaning == "START"


@pytest.mark.requirement("I14-free-words")
def test_of_words_nearly_as_likely_those_of_a_phrase_are_meant() -> None:
    assert judged(("NOTE this", -1.0), ("START this", -2.5)).meaning == "START"
    assert judged(("NOTE this", -1.0), ("START this", -3.5)).meaning == "NOTE"


def test_likelier_words_without_a_meaning_make_it_unsure_then_nothing() -> None:
    assert judged(("cancer", -1.6), ("CANCEL that now", -1.7))[0] is Certainty.CERTAIN
    assert judged(("cancer", -1.6), ("CANCEL that now", -4.0))[0] is Certainty.UNSURE
    assert judged(("something else", -1.6), ("CANCEL that now", -15.8))[0] is Certainty.NOTHING


@pytest.mark.requirement("I14-free-words")
def test_free_words_must_be_nearer_than_a_fixed_phrase() -> None:
    for phrase, certainty in (("CANCEL", Certainty.UNSURE), ("NOTE", Certainty.NOTHING)):
        far = judged(("something else", -1.6), (f"{phrase} that he knows", -9.8))
        unclear = judged((f"{phrase} it", -9.3), ("something else", -9.8))
        assert (far[0], unclear[0]) == (certainty, certainty)


def test_a_phrase_far_from_what_was_heard_is_nothing_if_another_is_nearer() -> None:
    found = judged(("and we CALL my nose", -3.7), ("CLEAR that all", -13.0))
    assert found[:2] == (Certainty.UNSURE, "CALL")


def test_words_that_were_overheard_must_be_nearer() -> None:
    readings = (("cancer", -1.6), ("CANCEL that now", -4.0))
    assert judged(*readings)[0] is Certainty.UNSURE
    assert judged(*readings, addressed=False)[0] is Certainty.NOTHING


def test_unlikely_words_are_nothing_even_if_nothing_is_likelier() -> None:
    assert judged(("NO", -8.2), ("no idea what", -14.0))[0] is Certainty.NOTHING
    assert judged(("NO", -7.8), ("no idea what", -14.0))[0] is Certainty.UNSURE
    assert judged(("NO that", -5.0))[0] is Certainty.UNSURE


def test_a_phrase_among_other_words_is_never_certain() -> None:
    assert judged(("he said START loudly", -0.5))[0] is Certainty.UNSURE


def test_a_whole_sentence_comes_before_a_phrase_among_other_words() -> None:
    found = judged(("and we CALL my nose", -2.9), ("DELETE all that", -6.4))
    assert found[:2] == (Certainty.UNSURE, "DELETE")


@pytest.mark.requirement("I14-free-words")
def test_a_number_that_sounds_like_another_must_be_clearer() -> None:
    numbers = (("fifteen", True), ("50", True), ("14 and a half", True), ("twelve", False))
    for number, doubted in numbers:
        found = judged((f"START in {number} minutes", -0.5), ("STOP", -5.0))
        assert (found[0] is Certainty.UNSURE) is doubted
    fifteen = "START in fifteen minutes"
    assert judged((fifteen, -0.5), ("STOP", -7.0), confidence=0.95)[0] is Certainty.CERTAIN
    assert judged((fifteen, -0.5), ("STOP", -5.0), confidence=0.95)[0] is Certainty.UNSURE
    assert judged((fifteen, -0.5))[0] is Certainty.UNSURE


@pytest.mark.requirement("I14-free-words")
@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        ("START please 428 minutes", Certainty.UNSURE),
        ("START please 25 minutes", Certainty.UNSURE),
        ("START on 423 minutes", Certainty.UNSURE),
        ("START for 25 minutes", Certainty.CERTAIN),
        ("START my code is 4711", Certainty.CERTAIN),
        ("START please 8 minutes", Certainty.CERTAIN),
        ("START please 4 minutes", Certainty.CERTAIN),
    ],
)
def test_a_number_that_may_begin_with_a_word_is_not_certain(text: str, certainty) -> None:
    """ "for twenty eight" sounds like 428, "to five" like 25."""
    assert judged((text, -0.5), confidence=0.95)[0] is certainty


def test_something_of_another_kind_is_the_next_to_be_asked_about() -> None:
    readings = (("STOP it", -0.5), ("START it", -1.5))
    assert judged(*readings, ("CLEAR it", -3.0)).others == ("CLEAR", "START")
    assert judged(*readings, ("CLEAR it", -4.0)).others == ("START", "CLEAR")


def test_words_without_readings_are_taken_as_they_are() -> None:
    said = Transcript("start")
    assert judge(said, lambda text: text, str)[:2] == (Certainty.CERTAIN, "start")
    assert judge(said, lambda _text: None, str)[0] is Certainty.NOTHING


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Level 3.", "level three", True),
        ("10 minutes", "ten minutes", True),
        ("the code is four seven one nine", "the code is 4719", True),
        ("half an hour", "thirty minutes", True),
        ("the Wi-Fi password", "the wifi password", True),
        ("ten minutes", "ten hours", False),
        ("level 3", "level 2", False),
        ("buy a house", "buy house", False),
    ],
)
def test_a_call_is_the_same_if_only_its_spelling_differs(one, other, same) -> None:
    assert (call_key("notes:add", {"text": one}) == call_key("notes:add", {"text": other})) is same
    assert call_key("a", {"n": 1}) != call_key("b", {"n": 1})
