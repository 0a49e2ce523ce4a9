"""Finds the likeliest sentences of a grammar, token by token, several hypotheses at once."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from edge.core.hearing.grammar import Grammar, State, TokenWalk, letters

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTHS: Final = (24, 16, 8)
"""Hypotheses followed at once, at the first tokens and then: words that turn out right may begin
unlikely.
"""
CUT: Final = 12.0
"""Log probability below the best at which a hypothesis is given up."""
FOUND: Final = 12
"""Sentences returned at most."""
FIXED: Final = 4
"""Hypotheses of sentences without free words that are followed in addition: words of any kind come
near to every sound, and would leave no place for them.
"""
FIXED_FOUND: Final = 2
"""Such sentences returned in addition."""
_FREE_TOKENS: Final = 48
"""Tokens looked at where any words may follow."""
_MARKS: Final = ".,?!"
_WRITTEN: Final = re.compile(r"-|▁?[^\W_]*(?:'(?:s|t|m|d|re|ve|ll)?)?")
"""Tokens that a sentence is written with, beside marks."""


class TokenDecoder(Protocol):
    """Decodes one utterance."""

    def after(self, tokens: Sequence[int], past: Any) -> tuple["NDArray[np.float32]", Any]:
        """Return the log probability of each next token, a row for each of `tokens` (the last of
        each hypothesis), and the past to give next time; None is the beginning.
        """

    def select(self, past: Any, rows: Sequence[int]) -> Any:
        """Return the past of these rows only."""


class Vocabulary:
    """The tokens of a model: what they spell. Those below `first` are never written."""

    def __init__(self, tokens: Sequence[bytes], *, begin: int, end: int, first: int) -> None:
        self._tokens = tokens
        self.begin = begin
        self.end = end
        written = [*[""] * first, *(token.decode(errors="replace") for token in tokens[first:])]
        self.apostrophe = written.index("'") if "'" in written else None
        self.spoken = [letters(text) if _WRITTEN.fullmatch(text) else "" for text in written]
        self.marks = [number for number, text in enumerate(written) if text and text in _MARKS]
        self._walk = TokenWalk(self.spoken)
        self._grammar: Grammar | None = None
        self._allowed: dict[State, dict[int, State]] = {}

    def text(self, tokens: Sequence[int]) -> str:
        written = b"".join(self._tokens[token] for token in tokens).decode(errors="replace")
        return " ".join(written.replace("▁", " ").split())

    def allowed_tokens(self, grammar: Grammar, state: State) -> dict[int, State]:
        """Return the tokens that may follow (see `TokenWalk`); remembered for the last grammar."""
        if grammar is not self._grammar:
            self._grammar, self._allowed = grammar, {}
        found = self._allowed.get(state)
        if found is None:
            found = self._allowed[state] = dict(self._walk.allowed_tokens(grammar, state))
        return found


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The beginning of a sentence, or a whole one. `fixed`: where it is among the sentences without
    free words; empty if it is none. `spoken`: its letters; `row`: that in the decoder's last batch
    it continues.
    """

    tokens: tuple[int, ...]
    log_probability: float
    state: State
    fixed: State = frozenset()
    spoken: str = ""
    row: int = 0


def best_of(hypotheses: Iterable[Hypothesis], count: int, fixed: int) -> list[Hypothesis]:
    """Return the likeliest, the best first; then the likeliest `fixed` ones that are not among
    them.
    """
    ranked = sorted(hypotheses, key=lambda h: -h.log_probability)
    return [*ranked[:count], *[h for h in ranked[count:] if h.fixed][:fixed]]


class GuidedSearch:
    """Used once, for one utterance."""

    def __init__(self, decoder: TokenDecoder, vocabulary: Vocabulary, grammar: Grammar) -> None:
        self._decoder = decoder
        self._vocabulary = vocabulary
        self._grammar = grammar
        self._whole: list[Hypothesis] = []
        self._longer: dict[str, Hypothesis] = {}

    def run(self, most: int) -> list[Hypothesis]:
        """Return the likeliest sentences of at most so many tokens, the best first."""
        live = [Hypothesis((), 0.0, self._grammar.start, self._grammar.fixed.start)]
        past = None
        for place in range(most + 1):
            last = [h.tokens[-1] if h.tokens else self._vocabulary.begin for h in live]
            scores, past = self._decoder.after(last, past)
            self._longer = {}
            for row, hypothesis in enumerate(live):
                self._extend(hypothesis, row, scores[row])
            live = self._survivors(WIDTHS[min(place, len(WIDTHS) - 1)])
            if not live:
                break
            past = self._decoder.select(past, [h.row for h in live])
        return self._whole

    def stands_alone(
        self, tokens: Sequence[int], scores: Sequence["NDArray[np.float32]"], margin: float
    ) -> bool:
        """Is this a sentence of the grammar, and are all others so much less likely? `scores`: the
        log probabilities of each of its tokens' places, and of its end.
        """
        state, spoken = self._grammar.start, self._vocabulary.spoken
        before, most = 0.0, -np.inf
        for place, row in enumerate(scores):
            token = tokens[place] if place < len(tokens) else self._vocabulary.end
            hypothesis = Hypothesis(tuple(tokens[:place]), before, state)
            others = [
                other
                for other, _state in self._following(hypothesis, row)
                if spoken[other] and spoken[other] != spoken[token]
            ]
            if others:
                most = max(most, before + float(row[others].max()))
            before += float(row[token])
            state = self._grammar.step(state, spoken[token])
        return self._grammar.complete(state) and before - most >= margin

    def _extend(self, hypothesis: Hypothesis, row: int, scores: "NDArray[np.float32]") -> None:
        fixed = self._grammar.fixed
        if self._grammar.complete(hypothesis.state):
            chance = hypothesis.log_probability + float(scores[self._vocabulary.end])
            state = hypothesis.fixed if fixed.complete(hypothesis.fixed) else frozenset()
            self._whole.append(replace(hypothesis, log_probability=chance, fixed=state))
        for token, state in self._following(hypothesis, scores):
            chance = hypothesis.log_probability + float(scores[token])
            added = self._vocabulary.spoken[token]
            spoken = hypothesis.spoken + added
            rival = self._longer.get(spoken)
            if rival is None or rival.log_probability < chance:
                tokens, place = (*hypothesis.tokens, token), fixed.step(hypothesis.fixed, added)
                self._longer[spoken] = Hypothesis(tokens, chance, state, place, spoken, row)

    def _survivors(self, width: int) -> list[Hypothesis]:
        """Keep the best of each length; the rest cannot become likelier than it is."""
        self._whole = best_of(self._whole, FOUND, FIXED_FOUND)
        live = best_of(self._longer.values(), width, FIXED)
        best = max((h.log_probability for h in (*live[:1], *self._whole[:1])), default=0.0)
        floor = best - CUT
        enough = self._whole[FOUND - 1].log_probability if len(self._whole) >= FOUND else floor
        return [h for h in live if h.log_probability > (floor if h.fixed else max(floor, enough))]

    def _following(
        self, hypothesis: Hypothesis, scores: "NDArray[np.float32]"
    ) -> list[tuple[int, State]]:
        state, spoken = hypothesis.state, self._vocabulary.spoken
        found = self._vocabulary.allowed_tokens(self._grammar, state)
        if self._grammar.any_words(state):
            found = dict(found)
            for token in np.argpartition(scores, -_FREE_TOKENS)[-_FREE_TOKENS:].tolist():
                if spoken[token] and token not in found:
                    after = self._grammar.step(state, spoken[token])
                    if after:
                        found[token] = after
        following = list(found.items())
        if hypothesis.tokens and spoken[hypothesis.tokens[-1]]:
            if self._vocabulary.apostrophe is not None:
                following.append((self._vocabulary.apostrophe, state))
            if self._grammar.word_ends(state):
                following += [(mark, state) for mark in self._vocabulary.marks]
        return following
