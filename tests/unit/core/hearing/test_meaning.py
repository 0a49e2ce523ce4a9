"""What recognised words ask for."""

import pytest

from edge.core.hearing.meaning import Find, read, understand
from edge.core.phrases import match
from firmware_bridge.messages import Reading, Transcript
from tests.unit.core.hearing.test_expected_of_tools import TOOLS, tool


def find() -> Find:
    return lambda sentence: match(sentence, TOOLS, leading=True)


@pytest.mark.parametrize(
    ("sentence", "loose"),
    [
        ("set a timer", False),
        ("set a timer for ten minutes for tea", False),
        ("start then set a timer for ten minutes", True),
        ("set a timer phone hour", True),
        ("set a timer for 25 limits", True),
        ("set a timer for 25", False),
        ("cancel timer noise", True),
        ("light purple", True),
    ],
)
def test_other_words_around_a_request_are_noticed(sentence: str, loose) -> None:
    meant = read(sentence, find())
    assert meant is not None
    assert meant.loose is loose


def test_a_hyphen_parts_words_where_no_phrase_is_found_otherwise() -> None:
    meant = read("note-that the soup is self-made", find())
    assert meant is not None
    assert meant.match is not None
    assert meant.match.tool.name == "notes:add"


@pytest.mark.requirement("I14-guessed")
@pytest.mark.parametrize(
    ("sentence", "confidence", "guessed"),
    [
        ("note that the key is under the mat", 0.7, True),
        ("note that the key is under the mat", 0.8, False),
        ("show notes", 0.7, False),
    ],
)
def test_words_of_the_wearers_choice_that_are_mumbled_are_guessed(
    sentence: str, confidence: float, guessed
) -> None:
    said = Transcript(sentence, confidence=confidence, readings=(Reading(sentence, -1.0),))
    assert understand(said, find()).guessed is guessed


def test_after_a_no_another_tool_is_asked_about_first_and_two_at_most() -> None:
    sentences = (("set a timer for ten minutes", -0.5), ("set a timer for two minutes", -1.0))
    words = (*sentences, ("cancel timer two", -1.5), ("set a timer for six minutes", -1.9))
    readings = tuple(Reading(text, likely) for text, likely in words)
    others = understand(
        Transcript(words[0][0], confidence=0.9, addressed=True, readings=readings), find()
    ).others
    tools = [other.match.tool.name for other in others if other.match is not None]
    assert tools == ["timer:cancel", "timer:start"]


def test_a_guided_sentence_comes_before_a_request_without_its_number() -> None:
    readings = (
        Reading("Set a timer phone hour.", -1.8),
        Reading("Set a timer for an hour.", -2.3),
    )
    meant, unsure, *_ = understand(
        Transcript(readings[0].text, readings=readings, addressed=True), find()
    )
    assert meant is not None
    assert meant.match is not None
    assert meant.match.args == {"seconds": 3600}
    assert unsure


@pytest.mark.requirement("I14-free-words")
def test_words_of_the_wearers_choice_need_a_wider_margin() -> None:
    def unsure(second: float) -> bool:
        said = Transcript(
            "note that the key is under the mat",
            confidence=0.95,
            addressed=True,
            readings=(
                Reading("note that the key is under the mat", -0.6),
                Reading("note that the key is under the map", second),
            ),
        )
        return understand(said, find()).unsure

    assert unsure(-4.5)
    assert not unsure(-6.0)


@pytest.mark.requirement("I14-free-words")
def test_words_of_the_wearers_choice_must_be_nearer_to_what_was_heard() -> None:
    def tool(sentence: str) -> str | None:
        readings = Reading("nobody knows what he means", -1.3), Reading(sentence, -11.0)
        said = Transcript(readings[0].text, confidence=0.8, addressed=True, readings=readings)
        meant = understand(said, find()).meaning
        return meant.match.tool.name if meant is not None and meant.match is not None else None

    assert tool("set a timer for ten minutes") == "timer:start"
    assert tool("note that he knows what he means") is None


CAPTIONS = tool(
    "glasses:captions", ("start captions", "stop captions"), {"on": {"type": "boolean"}}, ["on"]
)


@pytest.mark.parametrize(("stopped", "unsure"), [(-1.5, True), (-12.4, True), (-12.6, False)])
def test_turning_on_is_asked_about_when_turning_off_sounds_alike(stopped, unsure) -> None:
    readings = (Reading("Start captions.", -0.5), Reading("Stop captions.", stopped))
    said = Transcript("Start captions.", confidence=0.9, readings=readings, addressed=True)
    found = understand(said, lambda sentence: match(sentence, (CAPTIONS,), leading=True))
    assert found.meaning is not None
    assert found.meaning.match is not None
    assert found.meaning.match.args == {"on": True}
    assert found.unsure is unsure
