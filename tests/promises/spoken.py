"""Promises about what is done with recognised words."""

from typing import Final

from tests.promises.words import Promise

_WHERE: Final = "issue 14, What it does with words"
PROMISES: Final[dict[str, Promise]] = {
    "I14-guided": Promise(
        "Sentences that may be said now are understood where the recogniser's free words are "
        "others, with what the wearer may put into them.",
        "issue 14, From bytes to words",
    ),
    "I14-free-words": Promise(
        "Words of the wearer's own choice, and numbers that sound like another, are certain only "
        "where they are much clearer than a phrase need be.",
        "issue 14, Shows 1",
    ),
    "I14-names": Promise(
        "The name of a contact, or of a trusted pager, is understood where the recogniser's free "
        "words are others, and the call has it as it is stored; it is in no log.",
        "issue 14, From bytes to words",
    ),
    "I14-next-reading": Promise(
        "After a no to words said to the glasses, the wearer is asked about the next likeliest "
        "call, if that is near to what was heard; after a second no once more.",
        "issue 14, Shows 1",
    ),
    "I14-never-wrong": Promise(
        "Words that are not certain change nothing before the wearer said yes; with nobody to ask "
        "nothing happens.",
        "issue 14, Shows 1",
    ),
    "I14-guessed": Promise(
        "Words of the wearer's own choice that were hardly understood are asked about even where "
        "the tool only reads: no search for words nobody said.",
        "issue 14, Shows 1",
    ),
    "I14-consent-voice": Promise(
        "A spoken yes is enough only for tools the owner named; a question whether something was "
        "said needs no more.",
        _WHERE,
    ),
    "I14-sorry-once": Promise(
        "Words that match nothing are answered on the lens at most once in a row, and only if they "
        "were said to the glasses and nobody else takes them.",
        _WHERE,
    ),
    "I14-corrections": Promise(
        "A correction within 10 s takes the call back, where that can be done, and makes it with "
        "the changed words; else the wearer is asked.",
        _WHERE,
    ),
}

DECLINED: Final[dict[str, str]] = {}
