"""Names that the wearer may say to tools: those of contacts and pagers."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from edge.core import phrases
from edge.core.hearing.grammar import letters
from edge.core.phrases import Match
from edge.core.words.latin_letters import to_latin

MAX_NAMES: Final = 500
"""Names of one list."""
MAX_CHARS: Final = 64
"""Characters of one name."""
MAX_WORDS: Final = 8
"""Words of one name."""
_SHORTEST: Final = 3
"""Letters of a part of a name that is expected alone: "Anna" of "Anna Berg", but not "de"."""
_LETTERS: Final = re.compile(r"[a-z]+(?: [a-z]+)*")


@dataclass(frozen=True, slots=True)
class NameList:
    """Names of one kind. `stored`: the name as it is said, in small Latin letters → as it is
    stored; `count`: how many names these are, and `left_out`: how many are not expected.
    `text_follows`: a name is the beginning of what is said ("send a page to Anna I am late"), not
    all of it.
    """

    stored: Mapping[str, str]
    count: int = 0
    left_out: int = 0
    text_follows: bool = False

    @classmethod
    def of(
        cls, names: Iterable[str], *, parts: bool = False, text_follows: bool = False
    ) -> "NameList":
        """Create one. `parts`: the words of a name are said for it too."""
        stored: dict[str, str] = {}
        words: dict[str, str] = {}
        count = left_out = 0
        for name in names:
            said = spoken_form(name) if count < MAX_NAMES else ""
            if not said:
                left_out += 1
                continue
            count += 1
            _add(stored, said, name)
            for word in name.split() if parts else ():
                if len(part := spoken_form(word)) >= _SHORTEST:
                    _add(words, part, word)
        return cls({**words, **stored}, count, left_out, text_follows)


class Named(NamedTuple):
    """A match whose name is written as it is stored. `whole`: all of its free words are a known
    name; `unknown`: they should be one, or begin with one, and do not, or there are none.
    """

    match: Match
    whole: bool = False
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Tool → the names that may be said to it."""

    of_tool: Mapping[str, NameList]

    def find(self, found: Match) -> Named:
        """Look for a name in the free words of what was said."""
        known = self.of_tool.get(found.tool.name)
        slot = phrases.slots_of(found.tool.input_schema, found.phrase).text
        text = found.args.get(slot)
        if known is None:
            return Named(found)
        words = text.split() if isinstance(text, str) else []
        most = min(len(words), MAX_WORDS)
        for count in range(most, 0, -1) if known.text_follows else [len(words)]:
            name = known.stored.get(spoken_form(" ".join(words[:count])))
            if name is not None:
                args = {**found.args, slot: " ".join([name, *words[count:]])}
                return Named(found._replace(args=args), whole=not known.text_follows)
        return Named(found, unknown=True)


def spoken_form(name: str) -> str:
    """Return a name as a recogniser writes it, in small Latin letters; "" for one that is not
    expected: too long, or not of letters alone.
    """
    said = " ".join(letters(name).split()) if len(name) <= MAX_CHARS else ""
    if not said.isascii():
        said = " ".join(letters(to_latin(name, str.isascii)).split())
    fits = _LETTERS.fullmatch(said) and len(said.split()) <= MAX_WORDS
    return said if fits else ""


def _add(stored: dict[str, str], said: str, name: str) -> None:
    """Add a name; two that sound alike stay as they are said: the tool asks which is meant."""
    stored[said] = name if stored.get(said, name) == name else said
