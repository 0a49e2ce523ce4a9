"""The sentences that may be said now, as a grammar over the letters of what a recogniser writes."""

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.spoken_values import VALUES, Pattern

MAX_SENTENCES: Final = 2000
MAX_WORDS: Final = 40
"""Words of one sentence."""
_BREAKS: Final = frozenset("-/–—_▁")
_SPELLED: Final = {"&": " and ", "%": " percent "}


def letters(text: str) -> str:
    """Reduce a text to what is compared: small letters and digits without accents; a space for what
    parts words, nothing for other marks. Each letter alone, so pieces of a text can be reduced
    one by one.
    """
    found = []
    for mark in text:
        if mark.isspace() or mark in _BREAKS:
            found.append(" ")
        elif mark in _SPELLED:
            found.append(_SPELLED[mark])
        elif mark.isascii():
            found.append(mark.lower() if mark.isalnum() else "")
        else:
            plain = unicodedata.normalize("NFKD", mark.casefold())
            found.append("".join(c for c in plain if c.isalnum()))
    return "".join(found)


class _Letters:
    """A place within a word: letter → next place. `wild`: any letter leads there."""

    __slots__ = ("end", "following", "root", "wild")

    def __init__(self, *, root: bool = False) -> None:
        self.following: dict[str, _Letters] = {}
        self.wild: _Letters | None = None
        self.end = False
        self.root = root

    def after(self, letter: str) -> "_Letters | None":
        return self.following.get(letter, self.wild)

    def add(self, word: str) -> None:
        place = self
        for letter in word:
            place = place.following.setdefault(letter, _Letters())
        place.end = True


State = frozenset[tuple[_Letters, int]]
"""Where in the grammar a text may be: places within words, each with what follows the word."""


class Grammar:
    """Compiled once for each `ExpectedWords`; used for many utterances.

    In a list "" makes its place optional. A name that is in no list is any words. `fixed` is the
    grammar of the sentences without any words.
    """

    def __init__(self, expected: ExpectedWords) -> None:
        self.expected = expected
        fixed = tuple(sentence for sentence in expected.sentences if not self._is_free(sentence))
        same = len(fixed) == len(expected.sentences)
        self.fixed = self if same else Grammar(ExpectedWords(fixed, expected.lists))
        self._arcs: list[list[tuple[_Letters, int]]] = []
        """Place between words → (the words that may follow, the place after them)."""
        self._jumps: list[list[int]] = []
        """Place between words → places reached without a word."""
        self._steps: dict[tuple[State, str], State] = {}
        self._words: dict[tuple[str, ...], _Letters] = {}
        self._built: dict[tuple[int, str], int] = {}
        begin, self._end = self._place(), self._place()
        for sentence in expected.sentences[:MAX_SENTENCES]:
            self._jump(self._sentence(begin, sentence), self._end)
        self._built.clear()
        self._reached = [self._closure(place) for place in range(len(self._arcs))]
        self._last = [self._end in reached for reached in self._reached]
        self._starts = [
            frozenset(arc for place in reached for arc in self._arcs[place])
            for reached in self._reached
        ]
        self._before_any = {
            place
            for place, starts in enumerate(self._starts)
            if any(first.wild is not None for first, _after in starts)
        }
        self.start: State = self._starts[begin]

    def step(self, state: State, text: str) -> State:
        """Return the state after more of the text (as `letters` writes it); empty: no sentence."""
        for letter in text:
            if not state:
                break
            after = self._steps.get((state, letter))
            if after is None:
                after = self._steps[state, letter] = self._step(state, letter)
            state = after
        return state

    def complete(self, state: State) -> bool:
        """May the text end here?"""
        return any(place.end and self._last[after] for place, after in state)

    def accepts(self, text: str) -> bool:
        """Is it one of the sentences, whatever its marks and capitals?"""
        return self.complete(self.step(self.start, letters(text).strip()))

    def any_words(self, state: State) -> bool:
        """May any letter follow here, or after a space?"""
        return any(
            place.wild is not None or (place.end and after in self._before_any)
            for place, after in state
        )

    @staticmethod
    def word_ends(state: State) -> bool:
        """May a word end here?"""
        return any(place.end for place, _after in state)

    @staticmethod
    def next_letters(state: State) -> set[str]:
        """Return the letters that may follow, those of any words left out."""
        found = {letter for place, _after in state for letter in place.following}
        if any(place.root or place.end for place, _after in state):
            found.add(" ")
        return found

    def _step(self, state: State, letter: str) -> State:
        found: set[tuple[_Letters, int]] = set()
        for place, after in state:
            if letter != " ":
                following = place.after(letter)
                if following is not None:
                    found.add((following, after))
            elif place.root:
                found.add((place, after))
            elif place.end:
                found |= self._starts[after]
        return frozenset(found)

    # ------------------------------------------------------------------ compiling

    def _place(self) -> int:
        self._arcs.append([])
        self._jumps.append([])
        return len(self._arcs) - 1

    def _jump(self, start: int, end: int) -> None:
        self._jumps[start].append(end)

    def _closure(self, place: int) -> frozenset[int]:
        found, waiting = {place}, [place]
        while waiting:
            new = [p for p in self._jumps[waiting.pop()] if p not in found]
            found.update(new)
            waiting += new
        return frozenset(found)

    def _sentence(self, start: int, sentence: str) -> int:
        """Build a sentence; those that begin alike share their beginning."""
        place = start
        for part in sentence.split()[:MAX_WORDS]:
            after = self._built.get((place, part))
            if after is None:
                after = self._built[place, part] = self._part(place, part)
            place = after
        return place

    def _is_free(self, sentence: str) -> bool:
        names = (part.strip("{}") for part in sentence.split() if part.startswith("{"))
        return any(name not in self.expected.lists and name not in VALUES for name in names)

    def _part(self, place: int, part: str) -> int:
        if not part.startswith("{"):
            for word in letters(part).split():
                place = self._one_of(place, [word])
            return place
        name = part.strip("{}")
        if name in self.expected.lists:
            return self._one_of(place, self.expected.lists[name])
        if name in VALUES:
            return self._pattern(place, VALUES[name])
        return self._any_words(place)

    def _one_of(self, start: int, choices: Iterable[str]) -> int:
        """Words of a list: those of one word in one arc, the others word by word."""
        end = self._place()
        single = []
        for choice in choices:
            words = letters(choice).split()
            if len(words) == 1:
                single += words
                continue
            place = start
            for word in words:
                place = self._one_of(place, [word])
            self._jump(place, end)
        if single:
            self._arcs[start].append((self._spelling(tuple(single)), end))
        return end

    def _spelling(self, words: tuple[str, ...]) -> _Letters:
        root = self._words.get(words)
        if root is None:
            root = self._words[words] = _Letters(root=True)
            for word in words:
                root.add(word)
        return root

    def _pattern(self, start: int, pattern: Pattern) -> int:
        """Build what `spoken_values` describes: alternatives of sequences."""
        end = self._place()
        for sequence in pattern:
            place = start
            for part in sequence:
                if isinstance(part, int):
                    place = self._digits(place, part)
                elif isinstance(part, str):
                    place = self._one_of(place, part.split("|"))
                else:
                    place = self._pattern(place, part)
            self._jump(place, end)
        return end

    def _digits(self, start: int, most: int) -> int:
        root = place = _Letters(root=True)
        for _ in range(most):
            following = _Letters()
            following.end = True
            place.following = dict.fromkeys("0123456789", following)
            place = following
        end = self._place()
        self._arcs[start].append((root, end))
        return end

    def _any_words(self, start: int) -> int:
        root, inside, end = _Letters(root=True), _Letters(), self._place()
        root.wild = inside.wild = inside
        inside.end = True
        self._arcs[start].append((root, end))
        self._jump(end, start_again := self._place())
        self._arcs[start_again].append((root, end))
        return end


class TokenWalk:
    """Which tokens of a recogniser's vocabulary may follow; found once for each state."""

    def __init__(self, tokens: Sequence[str]) -> None:
        """`tokens`: the letters of each token by its number; "" for one that is never written."""
        pairs = sorted((text, number) for number, text in enumerate(tokens) if text)
        self._texts = [text for text, _number in pairs]
        self._numbers = [number for _text, number in pairs]

    def allowed_tokens(self, grammar: Grammar, state: State) -> Iterator[tuple[int, State]]:
        """Return the tokens that may follow, with the state after them; where any words may
        follow, only those that also begin something else.
        """
        yield from self._search(grammar, state, "", 0, len(self._texts))

    def _search(
        self, grammar: Grammar, state: State, text: str, low: int, high: int
    ) -> Iterator[tuple[int, State]]:
        while low < high and self._texts[low] == text:
            yield self._numbers[low], state
            low += 1
        for letter in sorted(grammar.next_letters(state)) if low < high else ():
            longer = text + letter
            first = bisect_left(self._texts, longer, low, high)
            last = bisect_left(self._texts, longer + "\uffff", first, high)
            if first < last:
                yield from self._search(grammar, grammar.step(state, letter), longer, first, last)
