"""What a wearer says in the evaluation, and what should come of it.

Never tune recognition, certainty or phrases on these sentences: they are for judging only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final


class Kind(StrEnum):
    """How what was said is compared with what came of it."""

    CALL = "call"
    """tool and arguments equal, numbers and texts in the same spelling"""
    DICTATION = "dictation"
    """the tool equal; its text within `DICTATION_ERRORS`"""
    ANSWER = "answer"
    """an answer to a question on the lens"""
    CORRECTION = "correction"
    """replaces the call before it"""
    NONE = "none"
    """no command: no call"""


DICTATION_ERRORS: Final = 0.2
"""Word error rate up to which a dictated text counts as right: one word of five."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence. `before` is what was said (and understood) just before a correction;
    `choices` are on the lens beside the question that an answer answers: none is yes or no.
    """

    text: str
    kind: Kind
    tool: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    before: str = ""
    choices: tuple[str, ...] = ()
    answer: str = ""


def _call(text: str, tool: str, **args: Any) -> Sentence:
    return Sentence(text, Kind.CALL, tool, args)


def _reminder(lead: str, text: str) -> Sentence:
    return Sentence(f"{lead} {text}", Kind.DICTATION, "reminder:add", {"text": text})


def _timer(text: str, seconds: int, **label: str) -> Sentence:
    return _call(text, "timer:start", seconds=seconds, **label)


def _note(lead: str, text: str) -> Sentence:
    return Sentence(f"{lead} {text}", Kind.DICTATION, "notes:add", {"text": text})


def _answer(text: str, answer: str, *choices: str) -> Sentence:
    return Sentence(text, Kind.ANSWER, answer=answer, choices=choices)


def _correction(text: str, before: str, tool: str, **args: Any) -> Sentence:
    return Sentence(text, Kind.CORRECTION, tool, args, before)


TIMERS: Final = (
    _timer("set a timer for seven minutes", 420),
    _timer("start a timer for twenty five minutes", 1500),
    _timer("set a timer for forty five seconds", 45),
    _timer("start a timer for two hours", 7200),
    _timer("set a timer for one hour and twenty minutes", 4800),
    _timer("set a timer for an hour", 3600),
    _timer("start a timer for three minutes and thirty seconds", 210),
    _timer("set a timer for half an hour", 1800),
    _timer("set a timer for two hours and a half", 9000),
    _timer("remind me in fifteen minutes", 900),
    _timer("remind me in an hour", 3600),
    _timer("remind me in twelve minutes to take the bread out", 720, label="take the bread out"),
    _timer("please set a timer for eighteen minutes", 1080),
    _timer("start a timer for ninety seconds", 90),
    _timer("set a timer for one minute", 60),
    _timer("set a timer for forty minutes please", 2400),
    _call("list my timers", "timer:list"),
    _call("what are my timers", "timer:list"),
    _call("cancel timer two", "timer:cancel", id=2),
    _call("stop timer one", "timer:cancel", id=1),
    _call("cancel timer number four", "timer:cancel", id=4),
)
NOTES: Final = (
    _call("read my notes", "notes:list"),
    _call("show me my notes", "notes:list"),
    _call("what is in my notes", "notes:list"),
    _call("search my notes for the dentist", "notes:search", query="the dentist"),
    _call("search my notes for garage", "notes:search", query="garage"),
    _call("search my notes for birthday", "notes:search", query="birthday"),
    _call("find the note about the garden", "notes:search", query="the garden"),
    _call("find the note about insurance", "notes:search", query="insurance"),
    _note("note that", "the spare key is under the flower pot"),
    _note("note that", "the meeting moved to Thursday afternoon"),
    _note("note that", "we are out of olive oil and rice"),
    _note("note that", "the doctor has time on Monday at eleven"),
    _note("remember that", "Peter likes his coffee without sugar"),
    _note("remember that", "the train leaves from platform four"),
    _note("remember that", "the window in the kitchen does not close"),
    _note("take a note", "the red bicycle needs a new chain"),
    _note("take a note", "the parking ticket costs eight euros"),
    _note("take a note", "two packets of flour and some butter"),
    _note("make a note", "ask the landlord about the heating"),
    _note("make a note", "the printer is out of paper"),
    _reminder("remind me to", "water the plants on the balcony"),
    _reminder("remind me to", "send the invoice before Friday"),
    _reminder("remind me to", "buy a present for my sister"),
    _reminder("remind me to", "return the books to the library"),
    _reminder("remind me to", "call the bank at half past two"),
)
CLOCK: Final = (
    _call("what time is it", "clock:now"),
    _call("what is the time", "clock:now"),
    _call("what day is it", "clock:now"),
    _call("what time is it now", "clock:now"),
    _call("what day is it today", "clock:now"),
    _call("please tell me what time is it", "clock:now"),
)
GLASSES: Final = (
    _call("glasses status", "glasses:status"),
    _call("show me the status of my glasses", "glasses:status"),
    _call("what is the battery of my glasses", "glasses:status"),
    _call("clear the display", "glasses:clear"),
    _call("clear the screen", "glasses:clear"),
    _call("please clear the display", "glasses:clear"),
    _call("go to the dashboard", "glasses:dismiss"),
    _call("back to the dashboard", "glasses:dismiss"),
    _call("turn on captions", "glasses:captions", on=True),
    _call("turn off captions", "glasses:captions", on=False),
    _call("captions on", "glasses:captions", on=True),
    _call("captions off", "glasses:captions", on=False),
    _call("set the brightness to forty percent", "glasses:set", brightness=40),
    _call("set the volume to seventy percent", "glasses:set", volume=70),
)
SEARCH: Final = (
    _call("search the knowledge base for parental leave", "kb:search", query="parental leave"),
    _call("search the knowledge base for travel expenses", "kb:search", query="travel expenses"),
    _call("what do we know about the new office", "kb:search", query="the new office"),
    _call("what do we know about battery recycling", "kb:search", query="battery recycling"),
    _call("look up hearing aids", "com.example.search:kb_search", query="hearing aids"),
)
CLOUD: Final = (
    _call("what's the weather in Madrid", "com.example.weather:forecast", place="Madrid"),
    _call("what is the weather in Dublin", "com.example.weather:forecast", place="Dublin"),
    _call("how is the weather in Vienna", "com.example.weather:forecast", place="Vienna"),
    _call("weather in Copenhagen", "com.example.weather:forecast", place="Copenhagen"),
    _call(
        "calculate twelve times nine", "com.example.calc:evaluate", expression="twelve times nine"
    ),
    _call(
        "compute sixteen plus twenty seven",
        "com.example.calc:evaluate",
        expression="sixteen plus twenty seven",
    ),
    _call("show my tasks", "com.example.tasks:list"),
    _call("what's on my list", "com.example.tasks:list"),
    _call("what's in my calendar", "com.example.calendar:list_events"),
    Sentence(
        "add a task call the plumber about the sink",
        Kind.DICTATION,
        "com.example.tasks:add",
        {"title": "call the plumber about the sink"},
    ),
    Sentence(
        "add to my list washing powder and two light bulbs",
        Kind.DICTATION,
        "com.example.tasks:add",
        {"title": "washing powder and two light bulbs"},
    ),
)
SESSION: Final = (
    _call("stop listening", "voice:end"),
    _call("end the session", "voice:end"),
    _call("goodbye glasses", "voice:end"),
)
ANSWERS: Final = (
    _answer("yes", "yes"),
    _answer("yes please", "yes"),
    _answer("no", "no"),
    _answer("no thanks", "no"),
    _answer("the first one", "Anna Berg", "Anna Berg", "Anna Holm", "Anna Lund"),
    _answer("the second", "Anna Holm", "Anna Berg", "Anna Holm", "Anna Lund"),
    _answer("the third one", "Anna Lund", "Anna Berg", "Anna Holm", "Anna Lund"),
    _answer("number two", "tea", "coffee", "tea", "water"),
    _answer("tea", "tea", "coffee", "tea", "water"),
    _answer("the last one", "water", "coffee", "tea", "water"),
)
CORRECTIONS: Final = (
    _correction("no ten minutes", "set a timer for two minutes", "timer:start", seconds=600),
    _correction(
        "no in Helsinki",
        "what's the weather in Madrid",
        "com.example.weather:forecast",
        place="Helsinki",
    ),
    _correction("no forty", "start a timer for fourteen minutes", "timer:start", seconds=2400),
    _correction("no timer three", "cancel timer two", "timer:cancel", id=3),
    _correction(
        "I meant fifteen seconds", "set a timer for fifty seconds", "timer:start", seconds=15
    ),
)

COMMANDS: Final = (
    *TIMERS,
    *NOTES,
    *CLOCK,
    *GLASSES,
    *SEARCH,
    *CLOUD,
    *SESSION,
    *ANSWERS,
    *CORRECTIONS,
)

NO_COMMANDS: Final = tuple(
    Sentence(text, Kind.NONE)
    for text in (
        "I think we should leave before it gets dark",
        "the soup is a little too salty for me",
        "have you seen the film they talked about",
        "my brother works in a hospital near the coast",
        "could you pass me the bread please",
        "that was the best holiday we ever had",
        "she never told me where they bought the house",
        "the kettle needs three minutes to boil",
        "he stopped the car in front of the station",
        "we had a lovely time in Oslo last summer",
        "nobody knows how long the meeting will take",
        "the children are playing in the garden",
        "it will probably rain again this afternoon",
        "I left my glasses on the table yesterday",
        "there is a timer in the oven but it is broken",
        "the captions in that film were hard to read",
        "you always forget to close the window",
        "this list is much longer than the last one",
        "they cancelled our flight without telling us",
        "the second half of the game was boring",
        "I have never understood how the stock market works",
        "let us meet at the corner at a quarter past six",
        "the weather was awful when we came home",
        "do you take milk in your coffee",
        "he said he would call back in an hour",
        "my phone is nearly empty again",
        "we could remember every word of that song",
        "the library is closed on Mondays",
        "it takes twenty five minutes by bus",
        "yesterday the neighbours had a party until two",
    )
)
