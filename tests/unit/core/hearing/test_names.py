"""Names that may be said to tools: how they are written, expected and found again."""

import pytest

from edge.core.hearing import expected_of_tools as expected
from edge.core.hearing.grammar import Grammar
from edge.core.hearing.meaning import Understood, understand
from edge.core.hearing.names import MAX_CHARS, MAX_NAMES, MAX_WORDS, KnownNames, NameList
from edge.core.phrases import match
from edge.core.tools.snapshot import Entry
from firmware_bridge.messages import Reading, Transcript
from tests.unit.core.hearing.test_expected_of_tools import TEXT, TOOLS, tool
from tools_cache.api.tool import SideEffects

READ = SideEffects.READ_ONLY
FIND = tool("contacts:find", ("phone number of",), {"query": TEXT}, ["query"], side_effects=READ)
PAGE = tool("pager:send", ("send a page to",), {"to": TEXT, "text": TEXT}, ["text"])
ALL = [*TOOLS, FIND, PAGE]
BOOK = NameList.of(["Anna Berg", "Jérôme Dubois", "Søren Kierk", "Bob"], parts=True)
NAMES = KnownNames(
    {FIND.name: BOOK, PAGE.name: NameList.of(["Anna", "Anna Berg", "Jérôme"], text_follows=True)}
)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Anna  Berg", "anna berg"),
        ("Katie O'Brien-Smith", "katie obrien smith"),
        ("Łukasz Müller", "lukasz muller"),
        ("Иван Петров", "ivan petrov"),
        ("李小龍", "li xiao long"),
        ("Dr. Weber", "dr weber"),
    ],
)
def test_a_name_is_expected_in_small_latin_letters(name: str, said: str) -> None:
    assert dict(NameList.of([name]).stored) == {said: name}


@pytest.mark.parametrize(
    "name",
    ["Room 4", "0171 123", "☎", "…", "", "x" * (MAX_CHARS + 1), "a " * (MAX_WORDS + 1)],
)
def test_a_name_that_is_too_long_or_not_of_letters_is_counted_and_left_out(name: str) -> None:
    found = NameList.of([name, "Bob"])
    assert (dict(found.stored), found.count, found.left_out) == ({"bob": "Bob"}, 1, 1)


def test_the_first_500_names_are_expected() -> None:
    digits = str.maketrans("0123456789", "abcdefghij")
    found = NameList.of(str(number).translate(digits) for number in range(1000, 1600))
    assert (len(found.stored), found.count, found.left_out) == (MAX_NAMES, MAX_NAMES, 100)


def test_the_words_of_a_name_are_expected_too_except_short_ones() -> None:
    found = NameList.of(["Ana de la Cruz", "Anna-Lena Ek"], parts=True)
    assert {*found.stored} == {"ana de la cruz", "ana", "cruz", "anna lena ek", "anna lena"}
    assert {*NameList.of(["Ana Cruz"]).stored} == {"ana cruz"}


def test_names_that_sound_alike_are_not_decided_here() -> None:
    assert NameList.of(["José", "Jose"]).stored == {"jose": "jose"}
    assert NameList.of(["Bob", "Bob"]).stored == {"bob": "Bob"}


def test_the_name_of_a_whole_contact_comes_before_a_part_of_another() -> None:
    assert NameList.of(["Bob Lee", "BOB"], parts=True).stored["bob"] == "BOB"


# ------------------------------------------------------------------ what is expected


@pytest.mark.parametrize(
    ("sentence", "fixed"),
    [
        ("phone number of Anna Berg please", True),
        ("tell me the phone number of Jerome", True),
        ("phone number of Carl", False),
        ("send a page to Jerome I am late", False),
        ("note that Anna Berg", False),
    ],
)
def test_sentences_with_a_known_name_have_no_free_words(sentence: str, fixed: bool) -> None:
    grammar = Grammar(expected.of_tools([Entry(t, "app") for t in ALL], "", NAMES))
    assert grammar.accepts(sentence)
    assert grammar.fixed.accepts(sentence) is fixed


def test_the_beginning_of_a_page_is_a_known_name() -> None:
    sentences = expected.of_tools([Entry(PAGE, "app")], "", NAMES).sentences
    assert [s for s in sentences if "{name0}" in s] == [
        "{polite} send {article} page to {name0} {text}"
    ]


def test_without_names_nothing_else_is_expected() -> None:
    entries = [Entry(t, "app") for t in ALL]
    assert expected.of_tools(entries, "", KnownNames({})) == expected.of_tools(entries)


# ------------------------------------------------------------------ what is understood


def hear(
    *words: tuple[str, float], names: KnownNames | None = NAMES, confidence: float = 0.9
) -> Understood:
    readings = tuple(Reading(text, likely) for text, likely in words)
    said = Transcript(words[0][0], confidence=confidence, readings=readings, addressed=True)
    return understand(said, lambda text: match(text, ALL, leading=True), None, names)


def args(understood: Understood) -> dict[str, object]:
    assert understood.meaning is not None
    assert understood.meaning.match is not None
    return understood.meaning.match.args


def test_a_known_name_is_written_as_it_is_stored() -> None:
    assert args(hear(("Phone number of Jerome Dubois.", -0.5))) == {"query": "Jérôme Dubois"}
    assert args(hear(("phone number of soren", -0.5))) == {"query": "Søren"}
    assert args(hear(("phone number of Søren", -0.5))) == {"query": "Søren"}
    assert args(hear(("send a page to Jerome, I am late", -0.5))) == {"text": "Jérôme I am late"}


def test_the_longest_name_begins_a_page() -> None:
    assert args(hear(("send a page to Anna berg I am late", -0.5))) == {
        "text": "Anna Berg I am late"
    }


def test_a_known_name_is_meant_rather_than_a_likelier_unknown_one() -> None:
    heard = ("Phone number of anger work.", -1.0), ("phone number of anna berg", -4.0)
    assert args(hear(*heard)) == {"query": "Anna Berg"}
    assert args(hear(*heard, names=None)) == {"query": "anger work"}
    assert args(hear(*heard, names=KnownNames({}))) == {"query": "anger work"}


def test_a_page_goes_rather_to_somebody_who_is_known() -> None:
    heard = ("Send a page to Hannah I am late.", -1.0), ("send a page to anna I am late", -3.0)
    assert args(hear(*heard)) == {"text": "Anna I am late"}


def test_a_request_without_its_name_is_no_better_than_one_with_an_unknown_name() -> None:
    heard = ("Phone number of the team.", -1.0), ("phone number of", -4.0)
    assert args(hear(*heard)) == {"query": "the team"}


def test_a_known_name_is_certain_where_free_words_are_not() -> None:
    likely = ("phone number of Anna Berg", -0.5), ("phone number of Anna Burg", -1.0)
    assert not hear(*likely).unsure
    assert hear(*likely, names=None).unsure


def test_what_follows_a_known_name_is_of_free_words() -> None:
    assert not hear(("phone number of Anna Berg", -0.5), confidence=0.8).unsure
    assert hear(("send a page to Anna I am late", -0.5), confidence=0.8).unsure


def test_an_unknown_name_far_likelier_than_a_known_one_is_kept() -> None:
    heard = ("Phone number of Carl.", -0.5), ("phone number of Bob", -9.0)
    assert args(hear(*heard)) == {"query": "Carl"}


def test_words_that_were_typed_stay_as_they_are() -> None:
    found = understand(
        Transcript("phone number of jerome"), lambda text: match(text, ALL), None, NAMES
    )
    assert args(found) == {"query": "jerome"}


def test_words_of_a_recogniser_that_says_no_others_get_the_stored_name_too() -> None:
    said = Transcript("Phone number of Jerome Dubois", began_at=1.0)
    found = understand(said, lambda text: match(text, ALL), None, NAMES)
    assert args(found) == {"query": "Jérôme Dubois"}
