"""Corrections within seconds of a call: what is one, and what the sentence is with it."""

import pytest

from edge.core.hearing.corrections import Act, Correction, apply, read


@pytest.mark.parametrize(
    ("sentence", "act"),
    [
        ("Stop.", Act.STOP),
        ("stop it", Act.STOP),
        ("No.", Act.NO),
        ("Oh, no, no.", Act.NO),
        ("Cancel that.", Act.UNDO),
        ("never mind", Act.UNDO),
        ("No, never mind!", Act.UNDO),
        ("undo", Act.UNDO),
    ],
)
def test_short_sentences_stop_or_take_back(sentence, act):
    assert read(sentence) == Correction(act)


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("No, at ten.", "at ten."),
        ("no ten minutes", "ten minutes"),
        ("I said fifteen", "fifteen"),
        ("no, I said ten", "ten"),
        ("no wait, make it half past nine", "half past nine"),
        ("Actually tomorrow", "tomorrow"),
        ("Sorry, I meant Bergen.", "Bergen."),
        ("change it to 10:30", "10:30"),
    ],
)
def test_a_correction_begins_as_one(sentence, words):
    assert read(sentence) == Correction(Act.CHANGE, tuple(words.split()))


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "ten minutes",
        "set a timer for ten minutes",
        "stop timer 2",
        "nobody",
        "not me",
        "nine, not six",
    ],
)
def test_other_sentences_are_no_corrections(sentence):
    assert read(sentence, ("for", "five", "minutes")) is None


@pytest.mark.parametrize(
    ("former", "sentence", "now"),
    [
        ("for fifteen minutes", "no, ten minutes", "for ten minutes"),
        ("for fifteen minutes", "no, ten", "for ten minutes"),
        ("for fifteen minutes called tea", "no for ten minutes", "for ten minutes called tea"),
        ("for an hour and a half", "no, one hour", "for one hour"),
        ("for one hour and ten minutes", "I said twenty minutes", "for twenty minutes"),
        ("to call Anna at half past nine", "no, at ten", "to call Anna at ten"),
        ("to call Anna at nine", "no, half past ten", "to call Anna at half past ten"),
        ("to call Anna at 9:15 am", "no, 10:30", "to call Anna at 10:30"),
        ("to call Anna tomorrow at nine", "no, on Friday", "to call Anna on Friday at nine"),
        ("to call Anna tomorrow at nine", "not Anna, Bob", "to call Bob tomorrow at nine"),
        ("to call Anna tomorrow at nine", "no not Anna but Bob", "to call Bob tomorrow at nine"),
        ("to call Anna tomorrow", "Bob, not Anna", "to call Bob tomorrow"),
        ("in Austin today", "Denver, not Austen", "in Denver today"),
        ("in Oslo", "no, not Oslo, Bergen", "in Bergen"),
        ("in Oslo", "not oslo bergen", "in bergen"),
        ("in Oslo", "no, Bergen", "in Bergen"),
        ("in Oslo", "no, in Bergen", "in Bergen"),
        ("the car is on level three", "no, level five", "the car is on level five"),
        ("the car is on level three", "no, on level five", "the car is on level five"),
        ("buy milk", "I said buy bread", "buy bread"),
        ("3", "no, 4", "4"),
        ("", "no, ten minutes", "ten minutes"),
        ("buy milk", "no, for Anna", "buy milk for Anna"),
    ],
)
def test_a_correction_replaces_what_is_of_its_kind(former, sentence, now):
    correction = read(sentence, former.split())
    assert correction is not None
    assert " ".join(apply(former.split(), correction)) == now


def test_words_after_the_word_that_ends_the_phrase_replace_all():
    correction = read("no, in Bergen")
    assert apply(["Oslo"], correction, "what is the weather in") == ["Bergen"]
    assert apply(["Oslo"], correction, "add to my list") == ["Oslo", "in", "Bergen"]
