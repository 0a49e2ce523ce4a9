"""Tools found by a few words: a name weighs more than what is said to call it, and that more
than a description.
"""

import pytest

from edge.core.tools.search import search
from tools_cache.api.tool import Source, ToolDefinition


def tool(name, description="", *phrases, **more):
    return ToolDefinition(
        name=name,
        description=description,
        input_schema={},
        source=Source.CLOUD,
        activation_phrases=phrases,
        **more,
    )


TOOLS = (
    tool("com.cal:book", "Book a meeting with somebody."),
    tool("com.mail:send", "Send a mail, for example about a meeting."),
    tool("com.meeting:list", "Tells what is planned."),
    tool(
        "timer:start", "Begins a countdown.", "remind me", local_phrases={"de": ("erinnere mich",)}
    ),
    tool("com.sky:now", "Forecast for the coming hours."),
)


def found(query, limit=5):
    return [t.name for t in search(query, TOOLS, limit)]


@pytest.mark.requirement("S4-57")
def test_a_word_in_the_name_stands_above_the_same_word_in_the_text():
    assert found("meeting") == ["com.meeting:list", "com.cal:book", "com.mail:send"]
    assert found("meeting", limit=1) == ["com.meeting:list"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("BOOK a Meeting", "com.cal:book"),
        ("remind", "timer:start"),
        ("erinnere mich", "timer:start"),
        ("forecast", "com.sky:now"),
        ("countdowns", "timer:start"),
        ("mailing", "com.mail:send"),
        ("timer start", "timer:start"),
    ],
)
def test_words_are_found_wherever_a_tool_says_them(query, first):
    assert found(query)[0] == first


def test_what_nobody_says_finds_nothing_and_no_word_lists_by_name():
    assert found("xylophone") == []
    assert found("?!") == sorted(t.name for t in TOOLS)
    assert found("", limit=2) == ["com.cal:book", "com.mail:send"]
