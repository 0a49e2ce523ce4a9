"""Spoken answers to a question that is on the lens."""

from edge.display.listening.spoken_answer import answer_in
from edge.ports import Chosen, Question
from firmware_bridge.messages import Answer, Transcript
from tests.hearing_eval.score import Outcome
from tests.hearing_eval.sentences import Sentence


def answer(sentence: Sentence, transcript: Transcript) -> Outcome:
    """Return what the question is answered with. With choices the first one is on the lens: a yes
    is for it, a no leads to the next.
    """
    question = Question("", "", 60.0, by_voice=True, choices=sentence.choices)
    found = answer_in(transcript, question)
    if isinstance(found, Chosen):
        return Outcome(transcript.text, answer=sentence.choices[found.number - 1])
    if found is Answer.ALLOW:
        return Outcome(transcript.text, answer=sentence.choices[0] if sentence.choices else "yes")
    return Outcome(transcript.text, answer="no" if found is Answer.DENY else "")
