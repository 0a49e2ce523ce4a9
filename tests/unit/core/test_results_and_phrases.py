"""What results look like, and which sentence means which tool."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

import tools_cache
from edge.core.phrases import find_tool, leads, match
from edge.core.results import LayoutKind, concerns_wearer, describe, fallback, rendering_of
from edge.core.tools.snapshot import Entry
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    Mode,
    SideEffects,
    Source,
    ToolCall,
    ToolDefinition,
    ToolResponse,
)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("plain", "plain"),
        ({"text": "t", "id": 1}, "t"),
        ({"message": "m"}, "m"),
        ({"summary": "s"}, "s"),
        ({"content": "c"}, "c"),
        (
            {"text": 5, "level": 80, "on": True, "x": None},
            "text: 5\nlevel: 80\non: yes\nx: nothing",
        ),
        ({"orders": [1, 2], "net_total": 12345.5}, "orders: 1, 2\nnet total: 12,345.5"),
        ('{"level": 80}', "level: 80"),
        (["x", 2], "1: x\n2: 2"),
        (None, ""),
        (3.5, "3.5"),
    ],
)
def test_the_text_of_a_result_is_found_or_listed(data, text: str) -> None:
    assert describe(ToolResponse(data=data)).text == text


@pytest.mark.requirement("I13-failures")
def test_an_error_is_a_sentence_for_people_without_advice_for_a_terminal() -> None:
    error = ToolResponse.failure(
        ErrorCode.OFFLINE, "Offline: evaluate cannot be reached now", suggestion="glassd status"
    )
    wanted = rendering_of(error, name="The calculator")
    assert wanted.text == wanted.speech == "No internet. The calculator needs it."


MANY = {"orders": [{"id": n, "total": 12.5} for n in range(90)], "currency": "NOK"}


@pytest.mark.requirement("I13-data")
@pytest.mark.parametrize(
    "response",
    [
        ToolResponse(data=MANY),
        ToolResponse(data={"text": json.dumps(MANY)}),
        ToolResponse(render={"display": {"text": json.dumps(MANY)}}),
        ToolResponse(
            render={"display": {"layout": "reference_card", "title": "", "text": json.dumps(MANY)}}
        ),
    ],
)
def test_long_data_is_a_summary_and_all_of_it_for_those_who_ask(response) -> None:
    wanted = rendering_of(response)
    assert wanted.text == "orders: 90 items\ncurrency: NOK"
    assert wanted.more.startswith("orders:\n  1: id 0, total 12.5\n  2: id 1,")
    assert "{" not in wanted.more


def test_data_is_never_spoken_as_json() -> None:
    wanted = rendering_of(ToolResponse(render={"audio": {"text": '{"a_b": 1}'}}))
    assert wanted.speech == "a b: 1"


def test_without_render_the_text_is_shown_and_spoken() -> None:
    wanted = rendering_of(ToolResponse(data="hi"))
    assert (wanted.layout, wanted.text, wanted.speech, wanted.silent) == (
        LayoutKind.TEXT_WALL,
        "hi",
        "hi",
        False,
    )


def test_a_display_alone_is_not_spoken_and_audio_alone_is_not_shown() -> None:
    shown = rendering_of(
        ToolResponse(data="d", render={"display": {"layout": "text_wall", "text": "hi"}})
    )
    assert (shown.layout, shown.text, shown.speech) == (LayoutKind.TEXT_WALL, "hi", None)
    heard = rendering_of(ToolResponse(data="d", render={"audio": {"text": "hi"}}))
    assert (heard.layout, heard.speech, heard.words) == (None, "hi", "hi")


def test_a_sound_behind_a_url_becomes_its_words() -> None:
    wanted = rendering_of(
        ToolResponse(data="the words", render={"audio": {"url": "http://x/y.mp3"}})
    )
    assert (wanted.layout, wanted.text, wanted.speech) == (LayoutKind.TEXT_WALL, "the words", None)


@pytest.mark.parametrize("place", ["audio", "render", "meta"])
@pytest.mark.requirement("S0-66")
def test_suppression_is_honoured_wherever_it_is_said(place: str) -> None:
    flag = {"suppressVoiceResponse": True}
    response = {
        "audio": ToolResponse(data="x", render={"audio": flag}),
        "render": ToolResponse(data="x", render=flag),
        "meta": ToolResponse(data="x", meta={"mentraExtensions": flag}),
    }[place]
    wanted = rendering_of(response)
    assert wanted.silent
    assert wanted.text == "x"


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (1500, 1.5),
        (0, None),
        (-5, None),
        (True, None),
        ("5", None),
        (float("inf"), None),
        (10**9, 3600.0),
    ],
)
def test_a_duration_is_taken_when_it_makes_sense(asked, seconds) -> None:
    wanted = rendering_of(ToolResponse(render={"display": {"text": "x", "durationMs": asked}}))
    assert wanted.duration_s == seconds


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda c: (
            st.lists(c, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "display",
                        "audio",
                        "layout",
                        "text",
                        "data",
                        "durationMs",
                        "priority",
                        "pcm",
                        "z",
                    ]
                ),
                c,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_render_object_a_tool_may_invent_is_read_without_a_crash(value) -> None:
    render = value if isinstance(value, dict) else {"display": value, "audio": value}
    assert isinstance(rendering_of(ToolResponse(data=value, render=render)).words, str)


def test_a_form_error_is_the_programs_business_unless_the_wearer_asked() -> None:
    refused, offline = (
        ToolResponse.failure(c, "x") for c in (ErrorCode.INVALID_ARGUMENTS, ErrorCode.OFFLINE)
    )
    typed = ToolCall(call_id="1", tool="a:b", args={}, origin=CallOrigin.MCP)
    spoken = ToolCall(call_id="1", tool="a:b", args={}, origin=CallOrigin.VOICE, mode=Mode.VOICE)
    assert not concerns_wearer(typed, refused)
    assert concerns_wearer(typed, refused, confirmed=True)
    assert concerns_wearer(spoken, refused)
    assert concerns_wearer(typed, offline)
    assert concerns_wearer(typed, ToolResponse(data=1))


def test_a_fallback_is_short_and_honest() -> None:
    definition = ToolDefinition(
        name="shop:buy_now", description="", input_schema={}, source=Source.CLOUD
    )
    assert (
        fallback(ErrorCode.OFFLINE, definition, "dns").error.message
        == "Offline: buy now cannot be reached now"
    )


# ------------------------------------------------------------------ phrases


def tool(
    name: str, phrases: tuple[str, ...], properties: dict, required: list[str]
) -> ToolDefinition:
    schema = {"type": "object", "properties": properties, "required": required}
    return ToolDefinition(
        name=name,
        description="",
        input_schema=schema,
        source=Source.LOCAL,
        activation_phrases=phrases,
    )


INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
TOOLS = (
    tool("notes:add", ("note", "take a note", "remind me"), {"text": TEXT}, ["text"]),
    tool("notes:list", ("my notes",), {"limit": INTEGER}, []),
    tool("clock:now", ("what time is it", "what is the time"), {"timezone": TEXT}, []),
    tool(
        "timer:start",
        ("set a timer", "start a timer"),
        {"seconds": INTEGER, "label": TEXT},
        ["seconds"],
    ),
    tool("timer:cancel", ("cancel timer",), {"id": INTEGER}, ["id"]),
    replace(
        tool("map:find", ("find",), {"place": TEXT}, ["place"]), side_effects=SideEffects.READ_ONLY
    ),
    tool("egg:boil", ("boil an egg",), {"minutes": INTEGER, "seconds": INTEGER}, ["minutes"]),
    tool("light:set", ("light",), {"state": {"type": "string", "enum": ["on", "off"]}}, ["state"]),
)


@pytest.mark.parametrize(
    ("sentence", "name", "args"),
    [
        ("Take a note buy Milk", "notes:add", {"text": "buy Milk"}),
        ("please TAKE A NOTE: that Anna calls at 5.", "notes:add", {"text": "Anna calls at 5"}),
        ("remind me to buy 3 eggs", "notes:add", {"text": "buy 3 eggs"}),
        ("read my notes please", "notes:list", {}),
        ("my notes, 5", "notes:list", {"limit": 5}),
        ("what time is it now?", "clock:now", {}),
        ("set a timer for 5 minutes", "timer:start", {"seconds": 300}),
        (
            "set a timer for five minutes for the pasta",
            "timer:start",
            {"seconds": 300, "label": "the pasta"},
        ),
        ("start a timer 90 seconds", "timer:start", {"seconds": 90}),
        ("set a timer for an hour and thirty minutes", "timer:start", {"seconds": 5400}),
        ("set a timer for half an hour", "timer:start", {"seconds": 1800}),
        ("set a timer for two minutes and a half", "timer:start", {"seconds": 150}),
        ("set a timer for twenty-five minutes", "timer:start", {"seconds": 1500}),
        ("set a timer for forty five seconds", "timer:start", {"seconds": 45}),
        ("set a timer for 10min called tea", "timer:start", {"seconds": 600, "label": "tea"}),
        ("Set a timer for an hour and a half.", "timer:start", {"seconds": 5400}),
        ("set a timer for one and a half hours", "timer:start", {"seconds": 5400}),
        ("set a timer for 2.5 minutes", "timer:start", {"seconds": 150}),
        ("set a timer for three quarters of an hour", "timer:start", {"seconds": 2700}),
        ("set a timer for a couple of minutes", "timer:start", {"seconds": 120}),
        ("set a timer for two hundred and ten seconds", "timer:start", {"seconds": 210}),
        ("set a timer for 1,000 seconds", "timer:start", {"seconds": 1000}),
        ("Set a 10-minute timer.", "timer:start", {"seconds": 600}),
        (
            "start the twenty minute timer for rice",
            "timer:start",
            {"seconds": 1200, "label": "rice"},
        ),
        ("Set the timer for 10 minutes.", "timer:start", {"seconds": 600}),
        ("Cancel the timer number three", "timer:cancel", {"id": 3}),
        ("What's the time?", "clock:now", {}),
        ("set a timer", "timer:start", {}),
        ("Start a timer for one hour thirty.", "timer:start", {"seconds": 5400}),
        ("set a timer for two hours twenty please", "timer:start", {"seconds": 8400}),
        ("set a timer for 1 hour 30", "timer:start", {"seconds": 5400}),
        ("set a timer for two minutes five", "timer:start", {"seconds": 125}),
        (
            "set a timer for three minutes two eggs",
            "timer:start",
            {"seconds": 180, "label": "two eggs"},
        ),
        (
            "set a timer for one hour 75",
            "timer:start",
            {"seconds": 3600, "label": "75"},
        ),
        ("find the sea please", "map:find", {"place": "the sea"}),
        ("find please", "map:find", {}),
        ("find the sea?", "map:find", {"place": "the sea"}),
        ("take a note is it late?", "notes:add", {"text": "is it late?"}),
        ("take a note say please", "notes:add", {"text": "say please"}),
        ("take me a note buy milk", "notes:add", {"text": "buy milk"}),
        ("cancel timer number 3", "timer:cancel", {"id": 3}),
        ("boil an egg 6 minutes 30 seconds", "egg:boil", {"minutes": 6, "seconds": 30}),
        ("boil an egg for 6 minutes", "egg:boil", {"minutes": 6}),
        ("turn the light Off please", "light:set", {"state": "off"}),
    ],
)
def test_a_sentence_becomes_a_tool_and_its_arguments(sentence: str, name: str, args: dict) -> None:
    found = match(sentence, TOOLS)
    assert found is not None
    assert (found.tool.name, found.args) == (name, args)


@pytest.mark.parametrize(
    "sentence", ["", "   ", "sing a song", "mynotes", "notebook", "what time", "set a list timer"]
)
def test_a_sentence_without_a_whole_phrase_means_nothing(sentence: str) -> None:
    assert match(sentence, TOOLS) is None


def test_the_longer_phrase_wins_over_the_earlier_one() -> None:
    found = match("note this: set a timer for 5 minutes", TOOLS)
    assert found is not None
    assert found.tool.name == "timer:start"


@pytest.mark.parametrize(
    ("sentence", "language", "text"),
    [
        ("Merke dir, dass das Auto auf Ebene 3 steht.", "de", "das Auto auf Ebene 3 steht"),
        ("Anota que el coche está en la planta 3.", "es", "el coche está en la planta 3"),
        ("Annota che la macchina è al piano 3.", "it", "la macchina è al piano 3"),
    ],
)
def test_the_word_that_leads_to_a_text_is_no_part_of_it(sentence, language, text) -> None:
    note = ToolDefinition(
        name="notes:add",
        description="",
        input_schema={"properties": {"text": {"type": "string"}}, "required": ["text"]},
        source=Source.LOCAL,
        local_phrases={"de": ("merke dir",), "es": ("anota",), "it": ("annota",)},
    )
    found = match(sentence, [note], language)
    assert found is not None
    assert found.args == {"text": text}


@given(st.text(max_size=200))
def test_no_sentence_breaks_the_matching(sentence: str) -> None:
    match(sentence, TOOLS)
    match("set a timer " + sentence, TOOLS)


CLOCK = ToolDefinition(
    name="clock:now",
    description="",
    input_schema={},
    source=Source.LOCAL,
    activation_phrases=("what time is it",),
    local_phrases={"de": ("wie spät ist es",), "de-AT": ("wie spät is",)},
)


@pytest.mark.requirement("S0-37", "S0-69")
@pytest.mark.parametrize(
    ("sentence", "language", "found"),
    [
        ("Wie spät ist es?", "de-DE", True),
        ("Wie spät ist es?", "de-AT", True),
        ("wie spät is", "de-AT", True),
        ("wie spät is", "de-DE", False),
        ("Wie spät ist es?", "en-GB", False),
        ("Wie spät ist es?", "", False),
        ("what time is it", "de-DE", True),
    ],
)
def test_phrases_of_the_configured_language_count_beside_the_tools_own(sentence, language, found):
    assert (match(sentence, [CLOCK], language) is not None) is found


@pytest.mark.parametrize(("length", "first"), [(200, False), (201, True)])
def test_a_long_old_result_says_its_age_first(length, first):
    stale = ToolResponse(data={"text": "a" * length}, meta={"stale": True, "ageS": 60})
    text = rendering_of(stale).text
    assert (text.startswith("1 min ago"), text.endswith("1 min ago")) == (
        first,
        not first,
    )


# ------------------------------------------------------------------ the tools that glassd ships


@pytest.fixture(scope="module")
def shipped() -> list[ToolDefinition]:
    found = []
    for file in sorted((Path(tools_cache.__file__).parent / "tools").glob("*/schema.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        said = document.get("mentraExtensions", {}).get("activationPhrases", [])
        found.append(
            ToolDefinition(
                name=document["name"],
                description="",
                input_schema=document["parameters"],
                source=Source.LOCAL,
                activation_phrases=tuple(said),
            )
        )
    return found


@pytest.mark.parametrize(
    ("sentence", "name", "args"),
    [
        ("Set a timer for ten minutes.", "timer:start", {"seconds": 600}),
        ("Remind me in an hour to cook", "timer:start", {"seconds": 3600, "label": "cook"}),
        ("Wake me up in twenty minutes", "timer:start", {"seconds": 1200}),
        ("Cancel the timer.", "timer:cancel", {}),
        ("Stop timer two", "timer:cancel", {"id": 2}),
        ("Show me my timers", "timer:list", {}),
        ("What timers are running?", "timer:list", {}),
        ("Are there any timers running?", "timer:list", {}),
        ("How much time is left?", "timer:list", {}),
        ("Note that the car is on level 3", "notes:add", {"text": "the car is on level 3"}),
        ("Remind me to cook at half past nine", "reminder:add", {"text": "cook at half past nine"}),
        ("Write down: buy milk and eggs", "notes:add", {"text": "buy milk and eggs"}),
        ("What are my notes?", "notes:list", {}),
        ("Read me my notes", "notes:list", {}),
        ("Search my notes for passport", "notes:search", {"query": "passport"}),
        ("What did I note about the car?", "notes:search", {"query": "the car"}),
        ("Delete note number four", "notes:remove", {"id": 4}),
        ("What's the time?", "clock:now", {}),
        ("What day is it today?", "clock:now", {}),
        ("How is my battery?", "glasses:status", {}),
        ("Clear the screen please", "glasses:clear", {}),
        ("Set the brightness to fifty percent", "glasses:set", {"brightness": 50}),
        ("Set the volume to 30", "glasses:set", {"volume": 30}),
        ("Stop listening.", "voice:end", {}),
        ("Be quiet for ten minutes", "session:ignore_user", {"duration": 600}),
        ("What do we know about lenses?", "kb:search", {"query": "lenses"}),
    ],
)
def test_the_shipped_tools_answer_to_plain_english(shipped, sentence, name, args):
    found = match(sentence, shipped, leading=True)
    assert found is not None
    assert (found.tool.name, found.args) == (name, args)


def test_a_question_after_what_there_is_is_a_request() -> None:
    assert leads(("Are", "there"))
    assert not leads(("over", "there"))


def test_a_tool_that_no_sentence_can_fill_hides_no_other() -> None:
    story = tool("story:tell", ("tell me",), {"items": {"type": "array"}}, ["items"])
    weather = tool("weather:get", ("weather in",), {"place": TEXT}, ["place"])
    found = match("Can you tell me the weather in Dublin", (story, weather), leading=True)
    assert found is not None
    assert (found.tool.name, found.args) == ("weather:get", {"place": "Dublin"})
    alone = match("Tell me one two three", (story, weather), leading=True)
    assert alone is not None
    assert alone.tool.name == "story:tell"


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Could you take a note that we are out of milk?", "we are out of milk"),
        ("Will you take a note: is it open?", "is it open"),
        ("Take a note: is it open?", "is it open?"),
    ],
)
def test_the_mark_of_a_request_that_is_a_question_is_no_part_of_a_text(sentence, text) -> None:
    found = match(sentence, TOOLS)
    assert found is not None
    assert found.args == {"text": text}


@pytest.mark.parametrize(
    ("sentence", "args"),
    [
        ("what is the weather in New York?", {"place": "New York"}),
        ("what is the weather now", {}),
    ],
)
def test_an_optional_text_follows_a_phrase_that_is_open(sentence, args) -> None:
    asked = ("what is the weather", "what is the weather in")
    weather = tool("weather:get", asked, {"place": TEXT}, [])
    found = match(sentence, (weather,))
    assert found is not None
    assert found.args == args


def test_a_phrase_that_names_a_flag_sets_it() -> None:
    step = tool("way:step", ("next step", "one step back"), {"back": {"type": "boolean"}}, [])
    for sentence, args in (("one step back", {"back": True}), ("next step back home", {})):
        found = match(sentence, (step,))
        assert found is not None
        assert found.args == args


def test_a_tool_that_is_only_offline_is_meant_before_one_that_is_not_offered() -> None:
    offline = tool("app:weather", ("weather in",), {"place": TEXT}, ["place"])
    unset = tool("a:weather", ("the weather in",), {"place": TEXT}, ["place"])
    entries = [Entry(unset, "a", hidden="not configured"), Entry(offline, "app")]
    found = find_tool("the weather in Oslo", entries, "", lambda each: "offline")
    assert found is not None
    assert found.tool is offline
