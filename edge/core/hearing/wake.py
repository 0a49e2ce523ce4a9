"""The wake phrase: what of an utterance was said to the glasses."""

import re
from typing import Final

from msgspec.structs import replace

from edge.core.hearing.expected import ExpectedWords
from firmware_bridge.messages import Reading, Transcript

AWAKE_S: Final = 6.0
"""After the phrase alone, what begins within this time is said to the glasses."""
NEAR: Final = 4.0
"""A reading with the phrase counts if the likeliest one is at most so much likelier (natural
logarithm): of "hello glasses" a recogniser writes "a low glasses", likelier by 1 to 3; in other
sentences the phrase is less likely by 6 and more.
"""
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_FEW: Final = 3
"""Words that may come before the phrase ("um", the end of a sentence said to somebody else)."""


def after_phrase(said: Transcript, phrase: str) -> Transcript | None:
    """Return what was said after the phrase, an empty text if nothing; None if the phrase was not
    said.
    """
    if not said.readings:
        rest = _rest(said.text, phrase)
        return None if rest is None else replace(said, text=rest, addressed=True)
    best = max(reading.log_probability for reading in said.readings)
    found = [
        Reading(rest, reading.log_probability)
        for reading in said.readings
        if (rest := _rest(reading.text, phrase)) is not None
    ]
    if not found or best - found[0].log_probability > NEAR:
        return None
    own = _rest(said.text, phrase)
    text = found[0].text if own is None else own
    readings = tuple(reading for reading in found if reading.text)
    return replace(said, text=text, readings=readings, addressed=True)


def with_phrase(expected: ExpectedWords, phrase: str) -> ExpectedWords:
    """Return what may be said if only sentences after the phrase count."""
    sentences = (phrase, *(f"{phrase} {sentence}" for sentence in expected.sentences))
    return replace(expected, sentences=(*sentences, *expected.sentences))


def _rest(text: str, phrase: str) -> str | None:
    """Return the words after the phrase, as they were written; None without the phrase."""
    words = [*_WORD.finditer(text)]
    plain = [word[0].casefold().replace("’", "'") for word in words]
    wanted = phrase.casefold().split()
    for at in range(min(_FEW, len(plain) - len(wanted)) + 1):
        if plain[at : at + len(wanted)] == wanted:
            return text[words[at + len(wanted) - 1].end() :].lstrip(" ,.;:!?…-–—")
    return None
