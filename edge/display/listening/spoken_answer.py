"""What recognised words answer to a question. Imported when there are any."""

from edge.core.hearing.answers import YesOrNo, find_answer, plain_words
from edge.ports import Chosen, Question
from firmware_bridge.messages import Answer, Transcript


def answer_in(said: Transcript, question: Question) -> Answer | Chosen | None:
    """Return the answer in these words; None if they are none, or none that may be given by voice.
    A no counts although it is not certain.
    """
    answer, certain = _answer(said, question) or _word_beside_gesture(said, question)
    if answer is None or answer is Answer.DENY:
        return answer
    return answer if question.by_voice and certain else None


def _answer(said: Transcript, question: Question) -> tuple[Answer | Chosen, bool] | None:
    found = find_answer(said, question.choices)
    if found is None:
        return None
    if not isinstance(found.answer, YesOrNo):
        return Chosen(found.answer), found.certain
    return Answer.DENY if found.answer is YesOrNo.NO else Answer.ALLOW, found.certain


def _word_beside_gesture(said: Transcript, question: Question) -> tuple[Answer | None, bool]:
    """Return what exactly one of the two words means that the question shows."""
    words = question.allow, question.deny
    found = find_answer(said, words)
    for answer, word in zip((Answer.ALLOW, Answer.DENY), words, strict=True):
        if found is not None and plain_words(said.text) == plain_words(word):
            return answer, found.certain
    return None, False
