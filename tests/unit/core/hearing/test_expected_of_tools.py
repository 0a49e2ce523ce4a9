"""Which sentences are expected of tools, questions and corrections."""

import json
from pathlib import Path

import pytest

from edge.core import phrases
from edge.core.hearing import corrections, expected_of_tools as expected
from edge.core.hearing.answers import read as read_answer
from edge.core.hearing.grammar import Grammar
from edge.core.tools.snapshot import Entry
from tools_cache.api.tool import SideEffects, Source, ToolDefinition

ROOT = Path(__file__).parents[4]


def tool(name: str, said: tuple[str, ...], properties: dict, required: list[str], **more):
    schema = {"type": "object", "properties": properties, "required": required}
    return ToolDefinition(
        name=name,
        description="",
        input_schema=schema,
        source=Source.LOCAL,
        activation_phrases=said,
        **more,
    )


TEXT, INTEGER = {"type": "string"}, {"type": "integer"}
TIMER = tool(
    "timer:start", ("set a timer", "remind me in"), {"seconds": INTEGER, "label": TEXT}, ["seconds"]
)
TOOLS = [
    TIMER,
    tool("timer:cancel", ("cancel timer",), {"id": INTEGER}, ["id"]),
    tool("timer:list", ("my timers",), {}, [], side_effects=SideEffects.READ_ONLY),
    tool("notes:add", ("note that",), {"text": TEXT}, ["text"]),
    tool("notes:list", ("show notes",), {}, [], side_effects=SideEffects.READ_ONLY),
    tool("volume:set", ("turn the volume down to",), {"volume": INTEGER}, ["volume"]),
    tool("clock:now", ("what's the time",), {"timezone": TEXT}, []),
    tool("light:set", ("light",), {"state": {"type": "string", "enum": ["on", "off"]}}, ["state"]),
    tool(
        "bus:next",
        ("next bus",),
        {},
        [],
        local_phrases={"de": ("nächster Bus",)},
    ),
]
GRAMMAR = Grammar(expected.of_tools([Entry(t, "app") for t in TOOLS], "de-AT"))


@pytest.mark.parametrize(
    ("sentence", "name", "args"),
    [
        ("Set a timer for an hour and a half.", "timer:start", {"seconds": 5400}),
        ("Please set the timer for 10 minutes.", "timer:start", {"seconds": 600}),
        ("Set a 10-minute timer.", "timer:start", {"seconds": 600}),
        ("Set a timer for five minutes for tea", "timer:start", {"seconds": 300, "label": "tea"}),
        ("Remind me in ten minutes", "timer:start", {"seconds": 600}),
        ("Can you cancel the timer number 3, please?", "timer:cancel", {"id": 3}),
        ("Show me my timers", "timer:list", {}),
        ("What are my timers?", "timer:list", {}),
        ("Could you tell me my timers, please?", "timer:list", {}),
        ("Do I have my timers", "timer:list", {}),
        ("Are there my timers?", "timer:list", {}),
        ("Please show me my notes.", "notes:list", {}),
        ("Turn the volume down to 30 percent.", "volume:set", {"volume": 30}),
        ("Set a timer for one hour thirty", "timer:start", {"seconds": 5400}),
        ("Note that Anna comes at five", "notes:add", {"text": "Anna comes at five"}),
        ("What is the time?", "clock:now", {}),
        ("light off please", "light:set", {"state": "off"}),
        ("Nächster Bus!", "bus:next", {}),
    ],
)
def test_an_expected_sentence_calls_the_tool_it_is_of(sentence, name, args) -> None:
    assert GRAMMAR.accepts(sentence)
    found = phrases.match(sentence, TOOLS, "de-AT")
    assert found is not None
    assert (found.tool.name, found.args) == (name, args)


@pytest.mark.parametrize(
    "sentence",
    [
        "Do not cancel the timer three",
        "I heard my timers",
        "What is the time machine?",
        "Set a timer for tea",
        "light purple",
        "show me set a timer",
    ],
)
def test_other_sentences_are_not_expected(sentence) -> None:
    assert not GRAMMAR.accepts(sentence)


def test_hidden_tools_are_not_expected() -> None:
    words = expected.of_tools([Entry(TIMER, "app", hidden="x"), Entry(TIMER, "y", missing=("z",))])
    assert words.sentences == ()


@pytest.mark.requirement("I14-guided")
def test_every_phrase_of_the_shipped_tools_is_expected_and_understood() -> None:
    shipped = []
    for path in sorted((ROOT / "tools_cache/tools").glob("*/schema.json")):
        document = json.loads(path.read_text())
        said = tuple(document.get("mentraExtensions", {}).get("activationPhrases", ()))
        about = {"name": document["name"], "description": "", "source": Source.LOCAL}
        shipped.append(
            ToolDefinition(**about, input_schema=document["parameters"], activation_phrases=said)
        )
    grammar = Grammar(expected.of_tools([Entry(t, "app") for t in shipped]))
    said = [(t.name, phrase) for t in shipped for phrase in t.activation_phrases]
    assert len(said) > 20
    for name, phrase in said:
        assert grammar.accepts(phrase), phrase
        found = phrases.match(phrase, shipped)
        assert found is not None
        assert found.tool.name == name


def test_many_tools_make_no_endless_list() -> None:
    many = [tool(f"a:t{n}", tuple(f"p{n} q{m}" for m in range(20)), {}, []) for n in range(300)]
    words = expected.of_tools([Entry(t, "app") for t in many])
    assert len(words.sentences) == expected.MAX_SENTENCES


@pytest.mark.parametrize(
    "sentence",
    [
        "No, thanks.",
        "The second one",
        "Option two",
        "Pasta, please",
        "I'll have the pasta",
        "Let's take the first one",
        "None of them.",
    ],
)
def test_answers_to_a_question_are_expected_and_understood(sentence) -> None:
    choices = ["pizza", "pasta"]
    assert Grammar(expected.of_question(choices)).accepts(sentence)
    assert read_answer(sentence, choices) is not None


@pytest.mark.parametrize(
    "sentence",
    [
        "Yes.",
        "Okay",
        "Yes, please do.",
        "Sure, go ahead.",
        "Yes, I would, thank you",
        "Please do",
        "That sounds good.",
        "No, thanks.",
        "No, don't do it.",
        "No thanks, not now.",
        "No, leave it.",
        "Not right now.",
    ],
)
def test_yes_and_no_are_expected_and_understood(sentence) -> None:
    assert Grammar(expected.of_question()).accepts(sentence)
    assert read_answer(sentence) is not None


@pytest.mark.parametrize(
    "sentence",
    [
        "No, at ten.",
        "I said twenty minutes",
        "Make it tomorrow at half past nine",
        "Cancel that.",
        "No, in Helsinki",
        "Actually twenty",
        "I mean the red one",
    ],
)
def test_corrections_are_expected_and_understood(sentence) -> None:
    assert Grammar(expected.of_correction()).accepts(sentence)
    assert corrections.read(sentence) is not None


@pytest.mark.parametrize("sentence", ["not Rome but Naples", "not Rome, Naples"])
def test_an_exchange_of_words_is_expected_and_understood(sentence: str) -> None:
    assert Grammar(expected.of_correction()).accepts(sentence)
    assert corrections.read(sentence, ["Rome"]) is not None


def test_parts_are_joined() -> None:
    grammar = Grammar(expected.join(expected.of_question(), expected.of_correction()))
    assert grammar.accepts("yes please")
    assert grammar.accepts("no at ten")


def test_a_tool_that_no_sentence_can_fill_is_not_expected() -> None:
    story = tool("story:tell", ("tell a story of",), {"items": {"type": "array"}}, ["items"])
    assert expected.of_tools([Entry(story, "story")]).sentences == ()
    assert expected.of_tools([Entry(TIMER, "timer")]).sentences
