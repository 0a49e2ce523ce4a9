"""Which words are a yes, a no, or one of the choices; and when they are heard well enough."""

import pytest

from edge.core.hearing.answers import SpokenAnswer, YesOrNo, find_answer, read
from firmware_bridge.messages import Reading, Transcript

YES, NO = YesOrNo.YES, YesOrNo.NO
DRINKS = ("Tea", "Green tea", "Coffee with milk")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes.", YES),
        ("yeah", YES),
        ("Yes, please.", YES),
        ("yes yes", YES),
        ("Okay.", YES),
        ("okay, do it", YES),
        ("Of course!", YES),
        ("That’s right.", YES),
        ("Yes, I do.", YES),
        ("Yes, I would, please", YES),
        ("please do", YES),
        ("Yes, please do.", YES),
        ("yes, that sounds good, thanks", YES),
        ("No.", NO),
        ("no thank you", NO),
        ("No, at ten.", NO),
        ("okay no", NO),
        ("Don't.", NO),
        ("please don't", NO),
        ("don't do it", NO),
        ("never mind", NO),
        ("not now", NO),
        ("Not right now.", NO),
        ("maybe later", NO),
        ("not today, thanks", NO),
        ("Stop.", NO),
        ("cancel that please", NO),
    ],
)
def test_a_sentence_is_a_yes_or_a_no(text, answer):
    assert read(text) is answer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "…",
        "yes but later",
        "yes and no",
        "yesterday",
        "do",
        "I do",
        "please",
        "please do it again later",
        "the soup sounds good",
        "thank you",
        "what does yes mean",
        "it is right over there",
        "I know",
        "maybe",
        "the second",
    ],
)
def test_other_sentences_answer_nothing(text):
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The second.", 2),
        ("the second one", 2),
        ("second", 2),
        ("number two", 2),
        ("Number 3.", 3),
        ("three", 3),
        ("option one please", 1),
        ("one", 1),
        ("the last one", 3),
        ("tea", 1),
        ("green tea please", 2),
        ("I'd like green tea", 2),
        ("the tea", 1),
        ("coffee with milk", 3),
        ("let's take the first one", 1),
        ("I'll have the green tea", 2),
        ("tea works for me", 1),
        ("with coffee with milk please", 3),
        ("none of them", NO),
        ("neither", NO),
        ("no", NO),
        ("the fourth", None),
        ("number 0", None),
        ("not tea", None),
        ("coffee", None),
        ("tea is what my sister drinks", None),
        ("the first and the second", None),
    ],
)
def test_a_choice_is_its_number_or_its_own_words(text, answer):
    assert read(text, DRINKS) == answer


def test_a_choices_own_words_count_before_numbers_and_before_yes():
    assert read("two", ("one more", "two", "three")) == 2
    assert read("two", ("two", "one")) == 1
    assert read("no", ("yes", "no")) == 2
    assert read("same", ("same", "same")) is None


def said(*readings: tuple[str, float]) -> Transcript:
    return Transcript(readings[0][0], readings=tuple(Reading(*each) for each in readings))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (said(("Yes.", -0.5), ("yes", -0.4), ("no", -10.8)), SpokenAnswer(YES, certain=True)),
        (said(("yes", -0.4), ("no", -4.7)), SpokenAnswer(YES, certain=True)),
        (said(("Yes", -2.0), ("no", -3.1)), SpokenAnswer(YES, certain=False)),
        (said(("No.", -0.6), ("no", -0.6), ("yes", -8.1)), SpokenAnswer(NO, certain=True)),
        (said(("The second one.", -0.5), ("the third one", -1.9)), SpokenAnswer(2, certain=False)),
        (said(("The line needs a corner of our line", -7.6), ("no", -8.6)), None),
        (said(("Yes.", -4.5)), SpokenAnswer(YES, certain=False)),
        (said(("Yes, go ahead.", -4.5)), SpokenAnswer(YES, certain=True)),
        (said(("Yes, go ahead.", -5.5)), SpokenAnswer(YES, certain=False)),
        (said(("Yes.", -2.6), ("chess", -2.8)), SpokenAnswer(YES, certain=True)),
        (said(("see you", -2.8), ("Yes.", -3.0)), None),
        (said(("Yes to it.", -1.7), ("Yes, do it.", -2.1)), SpokenAnswer(YES, certain=True)),
        (said(("Just a bit", -1.1), ("That's it.", -2.3)), None),
        (said(("Yesterday.", -1.1), ("Yes, do it.", -3.3)), None),
        (said(("The third one", -2.8), ("a third", -3.0)), SpokenAnswer(3, certain=True)),
        (Transcript("Yes."), SpokenAnswer(YES, certain=True)),
        (Transcript("well, yesterday"), None),
    ],
)
def test_a_reading_counts_by_how_much_likelier_it_is(words, expected):
    choices = DRINKS if isinstance(getattr(expected, "answer", None), int) else ()
    assert find_answer(words, choices) == expected


def test_a_choice_may_be_a_little_less_likely_than_other_words():
    for other, expected in ((-2.0, SpokenAnswer(3, certain=True)), (-1.5, None)):
        heard = said(("a furred one", other), ("the third one", -3.8))
        assert find_answer(heard, DRINKS) == expected


def test_among_choices_a_yes_names_none():
    assert read("yes", DRINKS) is None
    assert find_answer(said(("Yes.", -0.4)), DRINKS) is None
