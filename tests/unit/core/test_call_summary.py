"""What a person sees before a yes counts: every argument, one line each, and nothing that looks
like something else.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from edge.core.call_summary import MAX_CHARACTERS, TooLong, lines, origin, text, understood
from edge.core.words.text_direction import ISOLATES
from edge.core.words.visible_text import escaped, visible
from edge.core.words.wearer_forms import ENGLISH, WearerForms, Writer
from tools_cache.api.tool import Named, Source, ToolDefinition
from tools_cache.api.wearer import WearerTexts
from tools_cache.registry import manifest


def tool(name="com.evil.bank:pay", source=Source.CLOUD, schema=None, **more):
    more.setdefault("description", "Pays somebody.")
    return ToolDefinition(
        name=name, source=source, input_schema=schema or {"type": "object"}, **more
    )


def arguments(args, **properties):
    return list(lines(tool(schema={"type": "object", "properties": properties}), args)[1:-1])


@pytest.mark.requirement("I11-consent-whose")
@pytest.mark.parametrize(
    ("made", "whose"),
    [
        (tool(), "the cloud"),
        (tool("files:move", Source.UPSTREAM), "the MCP server files"),
        (tool("notes:add", Source.LOCAL), "this device"),
        (tool("glasses:set", Source.GLASSES), "this device"),
        (tool("home:lamp", Source.LOCAL, own=True), "your own tools"),
    ],
)
def test_the_tool_is_named_whole_with_its_origin(made, whose):
    assert origin(made) == whose
    assert lines(made, {})[-1] == (
        f'{made.name}, from {whose}. It says of itself: "Pays somebody."'
    )


@pytest.mark.requirement("I11-consent-whose")
@pytest.mark.parametrize(
    "name", ["com.evil.calendar:create_event", "com.evil.image:generate", "x:calendar_create_event"]
)
def test_no_tool_can_borrow_the_words_of_another(name):
    said = lines(
        tool(
            name,
            description='Create calendar event."\nFrom this device. It says of itself: "Nothing',
        ),
        {"prompt": "a cat"},
    )
    package, _, tools = name.rpartition(".")[2].partition(":")
    assert said[0].lower() == f"{package}: {tools.replace('_', ' ')}?"
    assert said[-1].startswith(
        f'{name}, from the cloud. It says of itself: "Create calendar event.\\" From this device'
    )
    assert len(said) == 3


@pytest.mark.requirement("I11-consent-complete")
def test_what_an_id_stands_for_is_shown_in_its_place_and_cannot_look_like_another_line():
    of_mail = replace(tool(), input_schema={"properties": {"id": {}, "text": {}}})
    names = {"id": Named("mail", "Anna, Lunch"), "gone": Named("mail", "none")}
    said = lines(of_mail, {"text": "Yes", "id": "1-1", "x": 1}, names=names)
    assert said[1:-1] == ("mail: Anna, Lunch", "text: Yes", "x (not declared): 1")
    forged = {"id": Named("mail", 'Anna\nto: "Bob"')}
    said = lines(of_mail, {"id": "1-1"}, names=forged)
    assert said[1:-1] == (r'mail: "Anna\nto: \"Bob\""',)


@pytest.mark.requirement("I11-consent-whose")
def test_a_long_description_is_cut_with_a_mark():
    assert lines(tool(description="word " * 100), {})[-1].endswith(' […]"')
    assert lines(tool(raw={"title": "word " * 100}), {})[0].endswith("[…]?")


@pytest.mark.requirement("I13-consent-words")
@pytest.mark.parametrize(
    ("app", "raw", "question"),
    [
        ("Free", {"title": "Delete photos"}, "Free: Delete photos?"),
        ("", {"title": "Pay somebody!"}, "Bank: Pay somebody?"),
        ("", {}, "Bank: Pay?"),
        ("Bank", {"title": "Nothing: nobody"}, 'Bank: "Nothing: nobody"?'),
        ("This device: Notes", {}, '"This device: Notes": Pay?'),
        ("", {"title": "a\nb"}, "Bank: a b?"),
        ("", {"title": "p\u0430ypal"}, 'Bank: "p\\u0430ypal"?'),
        ("", {"title": ""}, "Bank: Pay?"),
    ],
)
def test_the_question_is_asked_in_words_below_the_apps_name(app, raw, question):
    assert lines(tool(raw=raw), {}, app=app)[0] == question


@pytest.mark.requirement("I13-consent-words")
@pytest.mark.parametrize(
    ("app", "title", "question"),
    [
        ("Photos", "delete photos", "Delete photos?"),
        ("Photo", "Delete photos", "Photo: Delete photos?"),
        ("Photos", "delete: photos", '"delete: photos"?'),
    ],
)
def test_an_own_tool_whose_title_names_the_app_does_not_name_it_twice(app, title, question):
    own = tool(source=Source.LOCAL, own=True, raw={"title": title})
    assert lines(own, {}, app=app)[0] == question


@pytest.mark.requirement("I11-consent-whose")
def test_a_tool_from_elsewhere_cannot_leave_its_app_out():
    said = lines(tool("com.evil.calendar:add", raw={"title": "Add to calendar"}), {})
    assert said[0] == "Calendar: Add to calendar?"


# ------------------------------------------------------------------ whether these were the words


REGISTRY = Path(__file__).parents[3] / "tools_cache" / "tool_registry.json"


@pytest.fixture(scope="module")
def shipped():
    apps = manifest.load(REGISTRY.read_bytes(), source=Source.LOCAL).apps
    return {tool.name: tool for app in apps for tool in app.tools}


@pytest.mark.requirement("I14-never-wrong")
@pytest.mark.parametrize(
    ("name", "args", "asked"),
    [
        ("glasses:set", {"brightness": 40}, ["Change this setting?", "brightness: 40"]),
        ("timer:start", {"seconds": 600}, ["Start a timer?", "10 min"]),
        (
            "timer:start",
            {"label": "tea", "seconds": 90},
            ["Start a timer?", "1 min 30 s", "label: tea"],
        ),
        ("timer:cancel", {"id": 2}, ["Cancel the timer?", "number: 2"]),
        ("glasses:captions", {"on": False}, ["Switch live captions?", "off"]),
        ("notes:add", {"text": "buy milk"}, ["Take this note?", "buy milk"]),
        ("voice:end", {}, ["Stop listening?"]),
    ],
)
def test_the_wearer_reads_what_would_be_done_of_unsure_words(shipped, name, args, asked):
    assert understood(shipped[name], args) == tuple(asked)


@pytest.mark.requirement("I14-never-wrong")
def test_each_shipped_tool_with_phrases_that_changes_something_has_a_question(shipped):
    spoken = [t for t in shipped.values() if t.activation_phrases and not t.read_only]
    assert len(spoken) >= 10
    assert [t.name for t in spoken if not t.wearer.ask] == []


@pytest.mark.requirement("I14-never-wrong")
def test_a_tool_from_elsewhere_says_what_its_argument_is_and_what_it_does():
    add = tool("com.example.tasks:add", description="Adds a task to the list.")
    args = {"title": "buy milk"}
    said = "Tasks: Add?", "title (not declared): buy milk", '"Adds a task to the list."'
    assert understood(add, args, app="com.example.tasks") == said
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    add = replace(add, raw={"title": "Add a task"}, input_schema=schema)
    assert understood(add, args, app="Tasks") == ("Tasks: Add a task?", "title: buy milk")


@pytest.mark.requirement("I11-consent-complete")
def test_the_schema_says_the_order_and_what_it_does_not_know_is_marked():
    said = arguments(
        {"memo": "b", "zz": 1, "amount": 99999, "note": "a"}, amount={}, note={}, memo={}
    )
    assert said == ["amount: 99,999", "note: a", "memo: b", "zz (not declared): 1"]


@pytest.mark.requirement("I11-consent-complete")
def test_every_kind_of_value_has_its_line():
    args = {
        "express": True,
        "gift": None,
        "items": [{"sku": "gold", "n": 900}, 7],
        "to": ["ann", "bob, eve"],
        "none": [],
        "empty": {},
        "blank": "",
        "where": {"street": {"no": 5}},
        "price": -0.5,
    }
    assert arguments(args, **{key: {} for key in args}) == [
        "express: yes",
        "gift: nothing",
        "items (2):",
        "items #1, sku: gold",
        "items #1, n: 900",
        "items #2: 7",
        "to (2):",
        "1. ann",
        "2. bob, eve",
        "none: empty list",
        "empty: empty object",
        "blank: empty text",
        "where, street, no: 5",
        "price: -0.5",
    ]
    assert lines(tool(), {})[1:-1] == ("Without arguments.",)


@pytest.mark.requirement("I11-consent-visible")
@pytest.mark.parametrize("word", ["tap", "press", "Tap", "double_tap", "long_press", "tap_x"])
def test_no_argument_looks_like_the_row_that_says_what_to_do(word):
    assert arguments({word: "read the next page"}, **{word: {}}) == [
        f'"{word}": read the next page'
    ]


@pytest.mark.requirement("I11-consent-complete")
@pytest.mark.parametrize("words", ["empty text", "empty list", "empty object"])
def test_a_text_that_says_it_is_empty_is_quoted(words):
    assert arguments({"a": words}, a={}) == [f'a: "{words}"']
    assert arguments({"a": [words, ""]}, a={})[1:] == [f'1. "{words}"', "2. empty text"]


@pytest.mark.requirement("I11-consent-complete")
def test_a_text_is_not_taken_for_another_kind_of_value():
    assert arguments(
        {"a": "true", "b": "5", "c": "null", "d": " x", "e": "[]"}, a={}, b={}, c={}, d={}, e={}
    ) == [
        'a: "true"',
        'b: "5"',
        'c: "null"',
        'd: " x"',
        'e: "[]"',
    ]


@pytest.mark.requirement("I11-consent-visible")
@pytest.mark.parametrize(
    ("hidden", "seen"),
    [
        ("a\nb: c", "\\n"),
        ("a\u2028b", "\\u2028"),
        ("a\u202eb", "\\u202e"),
        ("a\u200bb", "\\u200b"),
        ("a\u2066b", "\\u2066"),
        ("a\U000e0041b", "\\U000e0041"),
        ("a\u3164b", "\\u3164"),
        ("a\u115fb", "\\u115f"),
        ("a\xa0b", "\\u00a0"),
        ("a\u2800b", "\\u2800"),
        ("a\x1b[2Jb", "\\u001b"),
        ("a\ufe0fb", "\\ufe0f"),
        ("mum" + " " * 40 + "evil", "mum\\x20{40}evil"),
        ("a" + "\u0301" * 20, "\\u0301"),
        ("p\u0430ypal", "p\\u0430ypal"),
        ("p\u0430ypal\u0436", "p\\u0430ypal\\u0436"),
        ("\ua4d1\u0410\u03a5", "\\u0410\\u03a5"),
        ("\xe9\u0441", "\\u0441"),
        ("1\uff1a2", "\\uff1a"),
        ("\U0001d41aa", "\\U0001d41a"),
        ("5\u05d0a", "\\u05d0"),
        ("\ud800", "\\ud800"),
        ("\u0440\u0430\u0443\u0440\u0430\u04cf", "\\u0440\\u0430\\u0443\\u0440\\u0430\\u04cf"),
        ("pay \u0441\u043e\u0441\u043e now", "pay \\u0441\\u043e\\u0441\\u043e now"),
        ("\u0441\u043e2@mail", "\\u0441\\u043e2@mail"),
        ("\u0441\u043e\u0441\u043e.com \u0436", "\\u0441\\u043e\\u0441\\u043e.com \u0436"),
        ("\u039f\u0392\u0397", "\\u039f\\u0392\\u0397"),
        ("\u0421\u0451", "\\u0421\\u0451"),
        ("\ua4d1\ua4ee\ua4ec", "\\ua4d1\\ua4ee\\ua4ec"),
        ("\u09ea", "\\{4 in bengali digits}"),
        ("\u09ea\u09e6 EUR", "\\{40 in bengali digits} EUR"),
        ("\u0967\u0966", "\\{10 in devanagari digits}"),
        ("\u0661\u0665", "\\{15 in arabic-indic digits}"),
        ("to \u06f1\u0661", "\\{1 in extended arabic-indic digits}\\{1 in arabic-indic digits}"),
        ("\u0661\u0301", "\\{1 in arabic-indic digits}\\u0301"),
        ("\u0661 \u0634\u05d0 a", "\\{1 in arabic-indic digits} \\u0634\\u05d0 a"),
        ("\uff18", "\\uff18"),
        ("\u09ea8 \u0995", "\\{4 in bengali digits}8"),
    ],
)
def test_what_is_not_seen_as_what_it_is_is_escaped(hidden, seen):
    (line,) = arguments({"v": hidden}, v={})
    assert seen in line
    assert line.startswith('v: "')


@pytest.mark.requirement("I11-consent-visible")
@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("要给牙医打电话吗？", "要给牙医打电话吗？"),
        ("明天（周一）开会，地点：东厅！？", "明天（周一）开会，地点：东厅！？"),
        ("カード（赤）、「東」", "カード（赤）、「東」"),
        ("회의（３층）", "회의（\\uff13층）"),
        ("1，000", "1\\uff0c000"),
        ("一1，000", "一1\\uff0c000"),
        ("evil．example", "evil\\uff0eexample"),
        ("一ＡＢ％", "一\\uff21\\uff22\\uff05"),
        ("？？", "\\uff1f\\uff1f"),
    ],
)
def test_full_width_signs_stay_only_beside_letters_as_wide(value, seen):
    assert visible(value) == seen


@pytest.mark.requirement("I11-consent-visible")
def test_a_key_cannot_forge_a_line():
    said = arguments(
        {"to: mum\namount: 1 EUR\ntap: yes": "evil", "a (2)": 1, "x[1].y": 2, "| z": 3}
    )
    assert said == [
        '"to: mum\\namount: 1 EUR\\ntap: yes" (not declared): evil',
        '"a (2)" (not declared): 1',
        '"x[1].y" (not declared): 2',
        '"| z" (not declared): 3',
    ]


def test_ordinary_text_of_any_language_stays_readable():
    for plain in (
        "Zoë’s café – 5 €",
        "Добрый день",
        "Оса и сосо",
        "Встреча с Google",
        "και Ζωή",
        "৪০ টাকা",
        "१० रुपये",
        "こんにちは",
        "שלום",
        "مرحبا",
        "شارع ١٢",
        "2026-12-01T12:00:00Z",
        "https://a.org/?q=1",
        "ann@example.org",
    ):
        assert text(plain).translate(ISOLATES) == plain


@pytest.mark.requirement("I11-consent-complete")
@pytest.mark.parametrize(
    "args",
    [
        {"t": "x" * MAX_CHARACTERS},
        {"k" * MAX_CHARACTERS: 1},
        {"list": [{"n": n} for n in range(9000)]},
        {"deep": json.loads('{"a":' * 60 + "1" + "}" * 60)},
        {"lists": json.loads("[" * 60 + "]" * 60)},
    ],
)
def test_what_nobody_can_read_is_refused(args):
    with pytest.raises(TooLong):
        lines(tool(), args)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=60),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=15,
)


def leaves(value):
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            if "_" not in key:
                yield visible(key.replace("\\", "\\\\").replace('"', '\\"'))
            yield from leaves(inner)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, str):
        yield visible(value.replace("\\", "\\\\").replace('"', '\\"'))
    elif value not in ([], {}):
        yield Writer().exact(value)


@pytest.mark.requirement("I11-consent-complete", "I11-consent-visible")
@given(
    st.dictionaries(st.text(max_size=12), JSON, max_size=6),
    st.lists(st.text(max_size=12), max_size=4),
)
def test_every_key_and_every_value_is_in_the_lines_and_each_line_is_one(args, declared):
    schema = {"type": "object", "properties": {key: {} for key in declared}}
    said = lines(tool(schema=schema), args)
    together = "\n".join(said).translate(ISOLATES)
    assert all(leaf in together for leaf in leaves(args) if args)
    assert all(line == visible(line) or "  " not in line for line in said)
    assert not any(
        ch in line for line in said for ch in "\n\r\x0b\x0c\x85\u2028\u2029\u202e\u2068\u200b"
    )


@pytest.mark.requirement("I11-consent-visible")
@given(st.text(max_size=40), st.text(max_size=40))
def test_two_different_texts_never_look_the_same(one, other):
    assert (text(one) == text(other)) is (one == other)


@pytest.mark.requirement("I11-consent-whose")
def test_the_shipped_calendar_is_named_below_its_sentence():
    wearer = WearerTexts(ask="Add to calendar?")
    name, args = "calendar:create_event", {"attendees": ["a@example.org"]}
    said = lines(tool(name, Source.LOCAL, wearer=wearer), args)
    assert said[0] == "Add to calendar?"
    assert said[1:3] == ("attendees (1) (not declared):", "1. a@example.org")
    assert said[3] == "calendar:create_event, from this device."
    for other in ({"source": Source.UPSTREAM}, {"source": Source.LOCAL, "own": True}):
        assert lines(tool(name, wearer=wearer, **other), {})[0] == "Calendar: Create event?"


NEAR = [
    *("yes", "no", "nothing", "empty list", "empty object", "", "1. a", "a", "b", "a, b", "1"),
    *("10,000", "10 000", "10000", "Tue 1 Dec", "Wed, 1 Dec 2027", "2027-12-01", "b: 1", '"a"'),
    *("Wed, 1 Dec 2027, 01:00", "2027-12-01T00:00:00Z", "2027-12-01T01:00:00", "1.5", "tap: yes"),
    *(True, False, None, 1, 1.5, 10000, -1, [], {}, ["a"], ["a", "b"], ["a, b"], ["a"] * 21),
    *({"b": 1}, [{"b": 1}], [[1]], [["a"], ["b"]], ["a", ["b"]], {"b": ["a"]}, {"b": {}}),
]
KEYS = ["a", "b", "a_b", "a b", "a__b", "a (1)", "a #1", "a, b", "tap", "double_tap", "items"]
CALLS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(NEAR), min_size=1, max_size=3)


@pytest.mark.requirement("I11-consent-visible")
@settings(max_examples=400, deadline=None)
@given(CALLS, CALLS)
def test_two_different_calls_never_look_the_same(one, other):
    same = json.dumps(one) == json.dumps(other)
    assert (lines(tool(), one) == lines(tool(), other)) is same


@pytest.mark.requirement("I11-consent-visible")
def test_two_values_under_one_key_never_look_the_same():
    seen = {}
    for value in NEAR:
        said = lines(tool(), {"a": value})
        assert said not in seen, (value, seen[said])
        seen[said] = value


@pytest.mark.requirement("I13-consent-words")
def test_a_question_has_the_wearers_dates_and_numbers():
    oslo = Writer(WearerForms(ENGLISH, ZoneInfo("Europe/Oslo")), datetime(2026, 11, 23, tzinfo=UTC))
    args = {"before": "2026-01-01T00:00:00+01:00", "on": "2026-12-01", "most": 4312, "sum": 43120.5}
    assert lines(tool(), args, writer=oslo)[1:-1] == (
        "before (not declared): Thu, 1 Jan 2026, 00:00",
        "on (not declared): Tue 1 Dec",
        "most (not declared): 4312",
        "sum (not declared): 43,120.5",
    )


def test_each_item_of_a_list_of_twenty_has_a_row():
    assert len(arguments({"v": ["n"] * 20}, v={})) == 21
    assert len(arguments({"v": ["n"] * 21}, v={})) == 1


def test_a_long_list_is_whole_on_one_line():
    (line,) = arguments({"v": [f"n{n}" for n in range(19)] + ["a, b", "2026-12-01"]}, v={})
    assert line.startswith("v (21): n0, n1, ")
    assert line.endswith('n18, "a, b", 2026-12-01')


@pytest.mark.requirement("I11-consent-whose")
def test_a_name_that_reads_like_a_sentence_stands_in_quotes():
    said = lines(tool("From this device. Free:pay"), {})
    assert said[-1].startswith('"From this device. Free:pay", from the cloud.')


@pytest.mark.requirement("I11-consent-visible")
@pytest.mark.parametrize("mark", ["\u2d7f", "\u17d2", "\U0001107f", "\u1039", "\u1a60"])
def test_a_mark_of_another_script_cannot_hide_in_a_word(mark):
    assert text(f"mum{mark}") == f'"mum{escaped(mark)}"'


@pytest.mark.requirement("I11-consent-visible")
@pytest.mark.parametrize("word", ["Zoe\u0308", "नमस्ते", "สวัสดี", "שָׁלוֹם", "مُحَمَّد", "ខ្មែរ", "မြန်မာ"])
def test_marks_of_a_words_own_script_are_shown_as_they_are(word):
    assert text(word).translate(ISOLATES) == word


PASSWORD = {"type": "object", "properties": {"password": {"type": "string", "writeOnly": True}}}


@pytest.mark.parametrize("made", [tool("glasses:join_wifi", Source.GLASSES), tool(own=True)])
def test_a_secret_is_in_no_question(made):
    made = replace(made, input_schema=PASSWORD)
    args = {"password": "hunter22"}
    assert "password: ***" in lines(made, args)
    assert "hunter22" not in "".join((*lines(made, args), *understood(made, args)))


@pytest.mark.parametrize("source", [Source.CLOUD, Source.UPSTREAM])
def test_the_tool_of_somebody_else_hides_nothing(source):
    made = tool(source=source, schema=PASSWORD)
    assert "password: 500 euros" in lines(made, {"password": "500 euros"})
