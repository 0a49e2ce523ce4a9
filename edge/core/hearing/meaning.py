"""What recognised words ask for: a tool with its arguments, or a change of the call before."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from edge.core import phrases
from edge.core.hearing import corrections
from edge.core.hearing.certainty import FREE_MARGIN, MUMBLED, Certainty, call_key, judge
from edge.core.hearing.corrections import Act
from edge.core.hearing.names import KnownNames
from edge.core.phrases import Match
from edge.core.words.spoken_numbers import numbers, plain_word
from firmware_bridge.messages import Transcript
from tools_cache.api.tool import Json

Find = Callable[[str], Match | None]
"""Returns the tool whose phrase is in a sentence."""


_FEW: Final = 3
"""Words that may replace all that was said before; a longer sentence is perhaps no correction."""
_SMALL: Final = frozenset(
    "please percent now thanks thank you for in at me again then to number a an my the of and all"
    " there ok okay".split()
) | {""}
"""Words that may be left over: they change nothing."""
CLEAR: Final = 0.85
"""Confidence of the recogniser below which free words are shown to the wearer first. Of Moonshine's
sentences with a wrong word few have more than 0.8.
"""
UNKNOWN_LESS: Final = 4.0
"""How much less likely (natural logarithm) the name of nobody is than a name that is known, before
anything was heard.
"""
MOST_OTHERS: Final = 2
"""Other calls that are asked about after a no: to say the same sentence again seldom helps."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """`act`: what becomes of the call before; None: it is a call of its own. `loose`: other words
    stand around the request, so perhaps it was none. `is_free`: it has words that anybody may
    choose: nothing but the sound says what they are. `unknown`: they should name somebody, and
    name nobody that is known.
    """

    act: Act | None = None
    match: Match | None = None
    loose: bool = False
    is_free: bool = False
    unknown: bool = False

    @property
    def key(self) -> Hashable:
        """Two readings with the same key ask for the same."""
        found = self.match
        return self.act, None if found is None else call_key(found.tool.name, found.args)


class Understood(NamedTuple):
    """`meaning`: what words ask for; None if that is nothing. `guessed`: its free words are so
    unclear that the wearer is asked even if it only reads. `others`: what to ask the wearer about,
    one after the other, if he says no to that.
    """

    meaning: Meaning | None = None
    unsure: bool = False
    guessed: bool = False
    others: tuple[Meaning, ...] = ()


def understand(
    said: Transcript, find: Find, former: Match | None = None, names: KnownNames | None = None
) -> Understood:
    """Return what words ask for; of words that were not recognised here all is sure. `names` may
    be said to tools: a call has them as they are stored.

    Words that were not said to the glasses, in which a request is only a part, are no request; what
    they dictate is shown to the wearer first, as somebody else may have said it.
    """
    if not is_recognised(said):
        names = None
    judged = judge(
        said,
        lambda sentence: _with_name(read(sentence, find, former), names),
        lambda meant: meant.key,
        is_whole=lambda meant: not meant.loose,
        is_free=lambda meant: meant.is_free,
        kind=lambda meant: meant.match and meant.match.tool.name,
        is_opposite=_is_opposite,
        prior=lambda meant: -UNKNOWN_LESS * meant.unknown,
    )
    meant, others = judged.meaning, judged.others[:MOST_OTHERS]
    if meant is None or not is_recognised(said):
        return Understood(meant)
    if meant.loose and not said.addressed:
        return Understood()
    unclear = said.confidence is not None and said.confidence < CLEAR
    unclear = unclear or judged.margin < FREE_MARGIN
    doubtful = meant.loose or (meant.is_free and (unclear or not said.addressed))
    unsure = doubtful or judged.certainty is Certainty.UNSURE
    guessed = meant.is_free and said.confidence is not None and said.confidence < MUMBLED
    if not (unsure and said.addressed) or meant.act is not None:
        others = ()
    return Understood(meant, unsure, guessed, others)


def _with_name(meant: Meaning | None, names: KnownNames | None) -> Meaning | None:
    """Return it with the name in it as it is stored; a known name is no free word."""
    if meant is None or meant.match is None:
        return meant
    is_free = has_free_words(meant.match)
    if names is None:
        return replace(meant, is_free=is_free)
    match, whole, unknown = names.find(meant.match)
    return replace(meant, match=match, is_free=is_free and not whole, unknown=unknown)


def _is_opposite(meant: Meaning, other: Meaning) -> bool:
    """Return whether one turns on what the other turns off."""
    if meant.match is None or other.match is None or meant.match.tool != other.match.tool:
        return False
    switch, switched = (each.args.get(phrases.ON_OFF) for each in (meant.match, other.match))
    return isinstance(switch, bool) and isinstance(switched, bool) and switch is not switched


def is_recognised(said: Transcript) -> bool:
    """Return whether words were recognised on this machine, not typed or said by the glasses."""
    return bool(said.readings) or said.began_at is not None


def read(sentence: str, find: Find, former: Match | None = None) -> Meaning | None:
    """Return what a sentence asks for; None if that is nothing. `former`: the call that may still
    be corrected.
    """
    correction = corrections.read(sentence, former.rest if former is not None else ())
    if correction is not None and correction.act is not Act.CHANGE:
        return Meaning(correction.act)
    if correction is not None and former is not None:
        new = find(" ".join(correction.words))
        if new is not None and phrases.leads(new.before):
            return Meaning(Act.CHANGE, new, loose=not _is_whole(new))
        return _change(former, correction)
    found = find(sentence) or find(sentence.replace("-", " "))  # "note to self-try the soup"
    if found is None and former is not None and _lacks(former, former.args):
        return _complete(former, sentence)
    return None if found is None else Meaning(None, found, loose=not _is_whole(found))


def _change(former: Match, correction: corrections.Correction) -> Meaning | None:
    """Return the call before with other words after its phrase; None if that is no change, or less
    than what was said then.
    """
    rest = corrections.apply(former.rest, correction, former.phrase)
    args = phrases.arguments(former.tool, rest, former.phrase)
    if args == former.args or (_lacks(former, args) and not _lacks(former, former.args)):
        return None
    new = Match(former.tool, former.phrase, args, former.before, tuple(rest))
    kept = {plain_word(word) for word in rest if word not in correction.words}
    other = len(correction.words) > _FEW and kept <= corrections.PREPOSITIONS
    return Meaning(Act.CHANGE, new, loose=other and has_free_words(new))


def _complete(former: Match, sentence: str) -> Meaning | None:
    """Return the call before with the number it lacks: "set a timer", "ten minutes"."""
    words = [*former.rest, *sentence.split()]
    args = phrases.arguments(former.tool, words, former.phrase)
    new = Match(former.tool, former.phrase, args, former.before, tuple(words))
    whole = _is_whole(new._replace(rest=tuple(sentence.split()))) and not has_free_words(new)
    return Meaning(Act.CHANGE, new) if whole and not _lacks(former, args) else None


def _lacks(found: Match, args: Mapping[str, Json]) -> bool:
    required = found.tool.input_schema.get("required") or ()
    return any(name not in args for name in required)


def _is_whole(found: Match) -> bool:
    """Return whether a sentence says nothing beside the phrase and its arguments."""
    slots = phrases.slots_of(found.tool.input_schema, found.phrase)
    if not phrases.leads(found.before):
        return False
    words = list(found.rest)
    counted = any(number.unit or not slots.duration for number in numbers(words))
    if slots.text and not slots.choices and (counted or not slots.needs_number):
        return True
    taken = {i for n in numbers(words) if slots.numbers for i in range(n.start, n.end)}
    left = {plain_word(word) for place, word in enumerate(words) if place not in taken}
    chosen = {word for value in slots.choices for word in value.casefold().split()}
    return left <= _SMALL | chosen


def has_free_words(found: Match) -> bool:
    """Return whether an argument is a text of any words: nothing but the sound says what it is."""
    properties = found.tool.input_schema.get("properties")
    schemas = properties if isinstance(properties, Mapping) else {}
    return any(
        isinstance(value, str) and "enum" not in schemas.get(name, {})
        for name, value in found.args.items()
    )
