"""Markdown as plain text: nothing of what is said is lost, nothing of the markup is left."""

import subprocess
import sys
import time

import pytest
from hypothesis import given, strategies as st

from edge.core.results import Link
from edge.display.plain_text import MAX_TEXT, has_markdown, plain, spoken


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("# **Today:** *-10*", "Today: -10"),
        ("# Plan\n\nGo *now*.\nThen rest.", "Plan\nGo now.\nThen rest."),
        ("- milk\n- **two** eggs\n  - brown\n\nDone", "• milk\n• two eggs\n  – brown\n\nDone"),
        (
            "1. Pack\n   - socks\n     - wool\n2. Go\n   1. early",
            "1. Pack\n  – socks\n    · wool\n2. Go\n  2.1. early",
        ),
        ("Weather\n# Today\n*Rain*", "Weather\nToday\nRain"),
        ("Buy:\n- milk\n- eggs", "Buy:\n• milk\n• eggs"),
        ("Trains:\n\n| a | b |\n|---|---|\n| c | d |", "Trains:\n\na\tb\nc\td"),
        ("3. three\n4. four", "3. three\n4. four"),
        ("```\nx = 1\n  y\n```\nafter", "x = 1\n  y\n\nafter"),
        ("> said\n> twice", "said\ntwice"),
        ("*a* " + "word " * 12 + "\nwrapped", "a " + "word " * 12 + "wrapped"),
        ("`x`<br>y", "x\ny"),
        ("[](https://a.example) ![](b.png)", "https://a.example (picture)"),
        ("**x**\n\n[to do]: milk", "x\n\n[to do]: milk"),
        ("a ~~b~~ `c*d` \\*e\\*", "a b c*d *e*"),
        ("*one*  \ntwo", "one\ntwo"),
        ("![a cat](x.png) sat", "a cat sat"),
        ("fish &amp; chips", "fish & chips"),
        ("2 * 3 = 6", "2 * 3 = 6"),
        ("2*3*4 = 24", "2*3*4 = 24"),
        ("**2*3*4** = `2*3*4`", "2*3*4 = 2*3*4"),
        ("> 5 km", "> 5 km"),
        ("- milk", "• milk"),
        ("- the car is on level 3", "• the car is on level 3"),
        ("- 5 degrees", "- 5 degrees"),
        ("- 5 degrees, *cold*", "- 5 degrees, cold"),
        ("snake_case_name", "snake_case_name"),
        ("a\n\n---\n\nb", "a\n\nb"),
        ("<b>bold</b> & `so`", "<b>bold</b> & so"),
    ],
)
def test_markdown_becomes_plain(markdown, shown):
    assert plain(markdown).text == shown


def test_a_table_keeps_its_cells_apart_with_tabs():
    table = "| Train | Leaves |\n|---|---:|\n| **R10** | 12:04 |\n| L1 | 12:11 |\n\nMind the gap"
    assert plain(table).text == "Train\tLeaves\nR10\t12:04\nL1\t12:11\n\nMind the gap"


def test_a_link_is_its_words_and_its_address_is_kept_for_a_code():
    found = plain("See [the menu](https://a.example/m?x=1) or <https://b.example> or [x](#y).")
    assert found.text == "See the menu or https://b.example or x."
    assert found.links == (Link("the menu", "https://a.example/m?x=1"),)


@pytest.mark.parametrize(
    "text", ["", "Turn left at the church", "a - b", "5 > 3", "1/2", "C# is fine", "tea\tcoffee"]
)
def test_a_text_without_markdown_is_untouched(text):
    assert not has_markdown(text)
    assert plain(text).text == text


@given(st.text(alphabet="ab é\n*_#>-|]()!\\.;<:+", max_size=80))
def test_every_letter_of_any_text_stays_in_its_place(text):
    def letters(written):
        return "".join(ch for ch in written if ch.isalpha())

    assert letters(plain(text).text) == letters(text)


@given(st.text(max_size=200))
def test_any_text_at_all_can_be_read(text):
    assert isinstance(spoken(plain(text).text), str)


@pytest.mark.parametrize(
    "piece", ["![[", "[", "[a](b", "a**b", "_a ", "<a ", "&", "|a", "> ", "- "]
)
def test_a_hostile_text_takes_no_long_time(piece):
    began = time.process_time()
    plain((piece * MAX_TEXT)[: 4 * MAX_TEXT])
    assert time.process_time() - began < 5


def test_the_library_is_loaded_with_the_first_markdown_only():
    code = (
        "import sys; from edge.display.plain_text import plain\n"
        "plain('Turn left at 12:30'); assert 'markdown_it' not in sys.modules\n"
        "plain('**x**'); assert 'markdown_it' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_voice_reads_neither_signs_nor_addresses():
    shown = plain(
        "# Menu\n\n- soup\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nhttps://www.x.example/y?z=1"
    )
    assert spoken(shown.text) == "Menu\nsoup\n\na, b\n1, 2\n\nx.example"


def test_a_voice_reads_no_signs_of_nested_lists():
    assert spoken(plain("- a\n  - b\n    - c").text) == "a\nb\nc"
    assert spoken("– 5 degrees") == "– 5 degrees"
