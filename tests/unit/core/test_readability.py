"""A text that the lens cannot draw whole takes the next best way to the wearer."""

import unicodedata

import pytest
from hypothesis import given, strategies as st

from edge.core.readability import TextRoute, can_spell, choose_route, is_mostly_lost
from edge.core.words.latin_letters import to_latin

ENGLISH = "The train leaves at 15:30 from platform 4B."
HEBREW = "הרכבת לחיפה יוצאת"
SPELLED = {
    "Γεια σου, Γιώργο!": "Geia soy, Giorgo!",
    "Поезд в Киев, 9:45": "Poezd v Kiev, 9:45",
    "Բարեւ": "Barew",
    "გამარჯობა": "gamarjoba",
    "안녕하세요 서울": "annyeonghaseyo seoul",
    "こんにちは、カナダ": "konnichiha,kanada",
    "Great job 👍🏽🎉": "Great job :thumbsup::tada:",
    "👨‍👩‍👧": ":man::woman::girl:",
    "カード": "kado",
    "press ⌥, then ✗ or 3 × 4": "press :option key:, then x or 3 * 4",
}
"""Text → the same in Latin letters."""
SOUNDS_OTHERWISE = (
    HEBREW,
    "مرحبا بك يا صديقي",
    "北京欢迎你们",
    "स्वागत है",
    "ยินดีต้อนรับ",
    "እንኳን ደህና መጣህ",
    "⌥⌥⌥⌥⌥",
)


def _lost(text: str) -> tuple[str, ...]:
    """What a lens with ASCII glyphs alone lacks of a text."""
    return tuple(dict.fromkeys(ch for ch in text if not ch.isascii()))


@pytest.mark.requirement("I13-readable")
@pytest.mark.parametrize("has_voice", [True, False])
def test_what_the_lens_draws_whole_goes_there(has_voice):
    assert choose_route(HEBREW, (), has_voice=has_voice) is TextRoute.DISPLAY


@pytest.mark.parametrize("has_voice", [True, False])
@pytest.mark.parametrize("lost", ["⌥", "北京", "יוסי"])
def test_a_few_lost_characters_are_spelled_and_leave_a_text_on_the_lens(lost, has_voice):
    text = f"The train to {lost} leaves at 15:30"
    assert choose_route(text, tuple(lost), has_voice=has_voice) is TextRoute.LATIN


@pytest.mark.parametrize("has_voice", [True, False])
@pytest.mark.parametrize("text", SPELLED)
def test_letters_that_say_how_a_word_sounds_become_latin_ones(text, has_voice):
    """Even one of them: a name is better read than guessed from boxes."""
    assert choose_route(text, _lost(text), has_voice=has_voice) is TextRoute.LATIN
    assert choose_route(f"{ENGLISH} {text}", _lost(text), has_voice=has_voice) is TextRoute.LATIN


@pytest.mark.requirement("I13-readable")
@pytest.mark.parametrize("text", SOUNDS_OTHERWISE)
def test_what_would_be_mostly_boxes_is_spoken_or_as_a_last_resort_spelled(text):
    assert choose_route(text, _lost(text), has_voice=True) is TextRoute.SPEECH
    assert choose_route(text, _lost(text), has_voice=False) is TextRoute.LATIN


def test_kana_beside_han_characters_are_not_spelled():
    """`日本` would be spelled in Chinese."""
    assert can_spell(_lost("さくら"))
    assert not can_spell(_lost("日本のさくら"))


@pytest.mark.parametrize(
    ("text", "lost", "mostly"),
    [
        ("□□□□", ["□"], False),
        ("□□□□□", ["□"], True),
        ("□□□□□" + "a" * 20, ["□"], False),
        ("□□□□□" + "a" * 19, ["□"], True),
        ("□□□□□" + "a" * 19 + " " * 80, ["□"], True),
        ("abababc" * 2, ["ab"], True),
        ("abababc", ["ab"], True),
        ("", ["□"], False),
    ],
)
def test_more_than_four_and_more_than_a_fifth_lost_is_mostly_lost(text, lost, mostly):
    assert is_mostly_lost(text, lost) is mostly


@pytest.mark.parametrize(("text", "latin"), SPELLED.items())
def test_other_scripts_in_latin_letters(text, latin):
    assert to_latin(text, str.isascii) == latin


def test_characters_the_lens_has_stay_as_they_are():
    assert to_latin("Привет, Γιώργο: ça coûte 3 €", lambda ch: not "\u0370" <= ch <= "\u03ff") == (
        "Привет, Giorgo: ça coûte 3 €"
    )


def test_each_han_character_is_a_word_of_its_own():
    assert to_latin("去北京的火车15:30开。", str.isascii) == "qu bei jing de huo che 15:30 kai."
    assert to_latin("x北京 y", lambda _: True) == "x北京 y"


def test_arabic_keeps_its_long_a():
    assert to_latin("باب", str.isascii) == "bab"


def test_letters_without_a_latin_form_stay_so_that_they_are_named_as_lost():
    assert to_latin("a \U00012024 b", str.isascii) == "a \U00012024 b"


@given(st.text())
def test_spelling_loses_no_character_that_the_lens_has(text):
    text = unicodedata.normalize("NFC", text)
    kept = [ch for ch in to_latin(text, str.isalpha) if ch.isalpha() and not ch.isascii()]
    assert kept == [ch for ch in text if ch.isalpha() and not ch.isascii()]
