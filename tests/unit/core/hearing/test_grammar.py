"""Which texts are sentences that may be said."""

import pytest

from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.grammar import Grammar, TokenWalk, letters

EXPECTED = ExpectedWords(
    (
        "set {article} timer {for} {duration}",
        "what's the time",
        "note that {text}",
        "no at {time}",
        "{day} at {time}",
        "timer {number}",
        "call {who} {day}",
    ),
    {"article": ("a", "the", ""), "for": ("for", ""), "who": ("Anna", "Jörg Müller")},
)


@pytest.mark.parametrize(
    "text",
    [
        "Set a timer for ten minutes.",
        "Set the timer for 10 minutes",
        "set timer an hour and a half",
        "Set a timer for half an hour.",
        "Set a timer for three quarters of an hour.",
        "Set a timer for 1 minute and 30 seconds.",
        "Set a timer for 2.5 hours.",
        "What's the time?",
        "Whats the time",
        "Note that the car's on level 3, I think.",
        "No, at ten.",
        "No, at 9:30 p.m.",
        "No, at 10 o'clock!",
        "No, at quarter past 8 in the evening.",
        "to-morrow at half past nine",
        "The day after tomorrow at noon",
        "Friday at ten to nine",
        "On March 3rd at 22:15",
        "on the twenty first of May at 5",
        "Timer twenty-three",
        "timer two hundred and fifty",
        "Call Jörg Müller on Friday.",
        "call anna tomorrow",
    ],
)
def test_a_sentence_is_accepted_however_it_is_written(text: str) -> None:
    assert Grammar(EXPECTED).accepts(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "note that",
        "set a timer for",
        "set a timer for ten",
        "set a timer for ten minutes please",
        "do not set a timer for ten minutes",
        "call Jörg tomorrow",
        "timer twenty ten",
        "no at",
        "no at ninety",
    ],
)
def test_what_is_no_whole_sentence_is_not_accepted(text: str) -> None:
    assert not Grammar(EXPECTED).accepts(text)


def test_pieces_of_a_text_are_reduced_one_by_one() -> None:
    text = "Jörg’s 2nd to-do — “done”, 50% & more"
    assert (
        letters(text)
        == "".join(map(letters, text))
        == "jorgs 2nd to do   done 50 percent   and  more"
    )


def test_the_tokens_that_may_follow_are_found() -> None:
    tokens = ["", " no", " not", "n", "o", " at", "te", " ", " now", " timer", " note", "1"]
    grammar, walk = Grammar(EXPECTED), TokenWalk(tokens)

    def following(text: str) -> set[str]:
        state = grammar.step(grammar.start, text)
        return {tokens[number] for number, _state in walk.allowed_tokens(grammar, state)}

    assert following("") == {" no", "n", "o", " ", " not", " note", " timer"}
    assert following(" no") == {" at", "te", " "}
    assert following(" timer ") == {" ", "n", "te", "o", "1"}


def test_where_any_words_may_follow_no_token_is_listed() -> None:
    grammar = Grammar(EXPECTED)
    state = grammar.step(grammar.start, "note that")
    assert grammar.any_words(state)
    assert grammar.any_words(grammar.step(state, " x"))
    assert not grammar.any_words(grammar.start)
    assert [*TokenWalk(["x", "y"]).allowed_tokens(grammar, grammar.step(state, " x"))] == []
