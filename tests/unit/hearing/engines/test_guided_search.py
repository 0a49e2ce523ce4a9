"""The search for sentences that may be said, with a decoder that says what it hears."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.grammar import Grammar

np = pytest.importorskip("numpy", reason="the extra `ears` is not installed")

from edge.hearing.engines.guided_search import (  # noqa: E402 - as above
    FIXED_FOUND,
    FOUND,
    GuidedSearch,
    Vocabulary,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOKENS = ["<begin>", "<end>", "'", "▁what", "'", "s", "▁on", "▁is", "?"]
BEGIN, END, FIRST = 0, 1, 3
VOCABULARY = Vocabulary([token.encode() for token in TOKENS], begin=BEGIN, end=END, first=FIRST)


class Says:
    """A `Decoder` that hears these tokens and nearly nothing else."""

    def __init__(self, *tokens: int) -> None:
        self._tokens = (*tokens, END)

    def after(self, tokens: Sequence[int], past: Any) -> tuple["NDArray[np.float32]", Any]:
        place = past or 0
        scores = np.full((len(tokens), len(TOKENS)), -9.0, np.float32)
        if place < len(self._tokens):
            scores[:, self._tokens[place]] = -0.1
        return scores, place + 1

    def select(self, past: Any, _rows: Sequence[int]) -> Any:
        return past


def sentences(*expected: str, says: str) -> list[str]:
    """The likeliest sentences; the decoder hears the tokens of `says`, parted by spaces."""
    heard = [TOKENS.index(token, FIRST) for token in says.split()]
    search = GuidedSearch(Says(*heard), VOCABULARY, Grammar(ExpectedWords(expected)))
    return [VOCABULARY.text(found.tokens) for found in search.run(8)]


def test_a_contraction_is_written_as_the_model_writes_it() -> None:
    assert sentences("what's on", says="▁what ' s ▁on")[0] == "what's on"


def test_a_mark_is_written_after_a_word() -> None:
    assert sentences("what is", says="▁what ▁is ?")[0] == "what is?"


class Mumbles(Says):
    """Hears two words, each as likely one of sixty as any other, but hardly the last of them."""

    def after(self, tokens: Sequence[int], past: Any) -> tuple["NDArray[np.float32]", Any]:
        place = past or 0
        scores = np.full((len(tokens), len(MANY)), -40.0, np.float32)
        if place < 2:
            scores[:, FIRST:] = -1.0
            scores[:, -1] = -5.0
        else:
            scores[:, END] = -0.1
        return scores, place + 1


MANY = ["<begin>", "<end>", "'", *(f"▁word{number:02}" for number in range(60))]


def test_free_words_leave_a_place_for_the_sentences_without_any() -> None:
    vocabulary = Vocabulary([token.encode() for token in MANY], begin=BEGIN, end=END, first=FIRST)
    grammar = Grammar(ExpectedWords(("{text}", "word59 word59")))
    found = GuidedSearch(Mumbles(), vocabulary, grammar).run(4)
    assert vocabulary.text(found[0].tokens) != "word59 word59"
    assert "word59 word59" in [vocabulary.text(each.tokens) for each in found]
    assert len(found) <= FOUND + FIXED_FOUND
