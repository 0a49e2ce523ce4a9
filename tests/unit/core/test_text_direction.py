"""Right-to-left text in a question: readable, and never drawn like another text. Joiners and emoji
stay where they are seen.
"""

import unicodedata

import pytest
from hypothesis import given, settings, strategies as st

from edge.core.call_summary import lines, text
from edge.core.words.text_direction import END, ISOLATES, LTR, MARK, RTL, isolated
from edge.core.words.visible_text import for_terminal, visible
from edge.display.typesetting.bidi import find_levels, reorder
from tools_cache.api.tool import Source, ToolDefinition

MIRRORED = str.maketrans("()[]<>", ")(][><")


def drawn(line):
    """What stands on the lens from left to right."""
    _, levels = find_levels(line, 0)
    signs = [
        (level, ch.translate(MIRRORED) if level % 2 else ch)
        for level, ch in zip(levels, line, strict=True)
        if ord(ch) not in ISOLATES
    ]
    return "".join(reorder(signs))


def tool():
    return ToolDefinition(name="a:b", description="d", source=Source.CLOUD, input_schema={})


@pytest.mark.requirement("I13-consent-directions")
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("שלום", f"{RTL}שלום{END}"),
        ("ארוחה ב-15:30", f"{RTL}ארוחה {RTL}ב-15:30{END}{END}"),
        ("5 ₪ לחודש", f"{RTL}{LTR}5{END} ₪ לחודש{END}"),
        ("1,200 ₪", "1,200 ₪"),
        ("שלח ל-WhatsApp של דנה", f"{MARK}{RTL}שלח ל-WhatsApp של דנה{END}"),
        ("Lunch עם דנה at 12", f"{LTR}Lunch עם דנה at {LTR}12{END}{END}"),
        ("يوم ١٢ مايو", f"{RTL}يوم {LTR}١٢{END} مايو{END}"),
        ("כן\nלא", f'{MARK}{RTL}"כן\\nלא"{END}'),
        ("(right to left) a", '"(right to left) a"'),
    ],
)
def test_right_to_left_text_is_readable_and_isolated(value, shown):
    assert text(value) == shown


@pytest.mark.requirement("I13-consent-directions")
@pytest.mark.parametrize("value", ["a5א", "א5% b", "אa1", "א ب", "א%5", "\u2067a"])
def test_what_could_be_drawn_like_another_text_is_escaped(value):
    assert not any(unicodedata.bidirectional(ch) in ("R", "AL", "AN") for ch in visible(value))
    assert not any(ord(ch) in ISOLATES for ch in visible(value))


SIGNS = st.sampled_from(["א", "ב", "a", "B", "1", "5", " ", "-", ".", ",", "%", "₪", "(", ":", "/"])
TEXTS = st.text(SIGNS, min_size=1, max_size=9).map(lambda found: " ".join(found.split()))


@pytest.mark.requirement("I13-consent-directions", "I11-consent-visible")
@settings(max_examples=400, deadline=None)
@given(TEXTS, TEXTS, st.permutations(range(4)))
def test_two_texts_are_never_drawn_alike(one, other, order):
    assert (drawn(f"v: {text(one)}") == drawn(f"v: {text(other)}")) is (one == other)
    words = [*one.split(" "), "", "", ""][:4]
    mixed = " ".join(filter(None, (words[at] for at in order)))
    again = " ".join(filter(None, words))
    assert (drawn(f"v: {text(mixed)}") == drawn(f"v: {text(again)}")) is (mixed == again)


@pytest.mark.requirement("I13-consent-directions")
def test_every_short_text_is_drawn_like_itself_only():
    signs, texts, seen = "אa1 -%", [""], {}
    for _ in range(5):
        texts = [found + sign for found in texts for sign in signs]
        for found in texts:
            if found == " ".join(found.split()):
                assert seen.setdefault(drawn(f"v: {text(found)}"), found) == found


@pytest.mark.requirement("I13-consent-directions")
def test_the_items_of_a_list_stay_in_their_order():
    items = ["א", 5, "ב", 6, "c"] * 5
    (line,) = lines(tool(), {"v": items})[1:-1]
    assert drawn(line).endswith("א, 5, ב, 6, c, " * 4 + "א, 5, ב, 6, c")
    said = lines(tool(), {"אמא": {"b": "אבא 5"}})[1]
    assert drawn(said) == drawn(f'{RTL}"אמא"{END}, b (not declared): {text("אבא 5")}')
    assert said.startswith(f'{RTL}"אמא"{END}, b (not declared): ')


@pytest.mark.requirement("I13-consent-directions")
@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("שלום", "v: שלום"),
        ("a", "v: a"),
        ("ב-15", "v: \\u05d1-15"),
        ("Lunch דנה", "v: Lunch \\u05d3\\u05e0\\u05d4"),
    ],
)
def test_at_a_terminal_mixed_text_is_escaped_because_its_order_is_not_ours(value, printed):
    assert for_terminal(f"v: {isolated(value)}") == printed


# ------------------------------------------------------------------ joiners


@pytest.mark.requirement("I13-consent-joiners")
@pytest.mark.parametrize(
    "value",
    [
        "می‌خواهم",
        "خانه‌ها",
        "مِ‌ی",
        "ශ්‍රී ලංකා",
        "ප්‍රශ්නය",
        "क्‍ष",
        "क्‌ष",
        "ক্‌ষ",
        "👨\u200d👩\u200d👧",
        "🏳\ufe0f\u200d🌈",
        "👩🏽\u200d🔬",
        "❤\ufe0f",
        "I ❤\ufe0f you 👍",
    ],
)
def test_joiners_stay_where_they_change_what_is_seen(value):
    assert visible(value) == value


@pytest.mark.requirement("I13-consent-joiners", "I11-consent-visible")
@pytest.mark.parametrize(
    "value",
    [
        *("a\u200cb", "a\u200db", "\u200d", "ا\u200cب", "ب\u200c", "ب\u200dب", "ב\u200cב"),
        *("क\u200dष", "क्\u200d", "क्\u200dx", "क्\u200dක", "\u0bcd\u200c\u0b95"),
        *(
            "👍\u200d",
            "\u200d👍",
            "a\u200d👍",
            "👍\u200da",
            "👍\u200d\u200d👍",
            "a\ufe0f",
            "1\ufe0f",
        ),
        *("क्\u200dा", "क्\u200c।", "ب\u200cء", "می\u200c\u200cخ", "❤\ufe0f\ufe0f", "٭\ufe0f"),
    ],
)
def test_joiners_that_nobody_sees_are_escaped(value):
    assert "\\u200" in visible(value) or "\\ufe0f" in visible(value)


@pytest.mark.requirement("I13-consent-joiners")
def test_a_joiner_between_arabic_letters_is_drawn():
    """With the font that draws them: the letters do not join."""
    pytest.importorskip("uharfbuzz")
    from edge.display.typesetting.fonts import find_fonts, font_folders
    from edge.display.typesetting.typesetter import Typesetter

    fonts = find_fonts(font_folders())
    if not fonts:
        pytest.skip("no fonts: pip install 'glassd[scripts]'")
    setter = Typesetter(fonts, 27)

    def pixels(word):
        (row,) = setter.set_paragraph(word, 576)
        return row.width, row.pixels

    for first in "بتثجحخسشصضطظعغفقكلمنهيپچگیک":
        for then in "باآدذرزوةجسعلمهیک":
            assert visible(f"{first}\u200c{then}") == f"{first}\u200c{then}"
            assert pixels(f"{first}\u200c{then}") != pixels(first + then)
