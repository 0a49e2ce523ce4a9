"""Text of any script as rows of pixels."""

import json
import unicodedata
from pathlib import Path

import pytest

pytest.importorskip("uharfbuzz", reason="pip install 'glassd[scripts]'")

from edge.display.typesetting.fonts import find_fonts, font_folders
from edge.display.typesetting.typesetter import PixelRow, Typesetter

SENTENCES = json.loads(Path(__file__).with_name("sentences.json").read_text(encoding="utf-8"))
WIDTH, ROW = 576, 27
LOST = {"⌥", "✗"}
"""What none of the fonts has."""


@pytest.fixture(scope="module")
def typesetter() -> Typesetter:
    return Typesetter(find_fonts(font_folders()), ROW)


def pixels(row: PixelRow, bpp: int = 1) -> list[list[int]]:
    """The levels of each pixel, row by row."""
    stride, mask = (row.width * bpp + 7) // 8, (1 << bpp) - 1
    lines = (row.pixels[y * stride : (y + 1) * stride] for y in range(row.height))
    return [
        [int.from_bytes(line) >> (stride * 8 - bpp * (x + 1)) & mask for x in range(row.width)]
        for line in lines
    ]


def lit(typesetter: Typesetter, text: str) -> int:
    return sum(
        byte.bit_count() for row in typesetter.set_paragraph(text, WIDTH) for byte in row.pixels
    )


def test_there_are_enough_sentences():
    assert len(SENTENCES) >= 32
    assert all(len(group) >= 3 for group in SENTENCES.values())
    assert sum(map(len, SENTENCES.values())) >= 102


@pytest.mark.parametrize("group", SENTENCES)
def test_every_sentence_is_drawn_whole_inside_its_rows(typesetter, group):
    for sentence in SENTENCES[group]:
        rows = typesetter.set_paragraph(sentence, WIDTH)
        assert " ".join(row.text for row in rows).split() == sentence.split()
        assert {lost for row in rows for lost in row.lost} <= LOST
        for row in rows:
            assert row.x + row.width <= WIDTH
            assert row.y + row.height <= ROW
            assert any(row.pixels)
            assert not row.clipped


def test_a_lost_character_is_named_and_drawn_as_a_box(typesetter):
    (row,) = typesetter.set_paragraph("a \u2325 b \u2325", WIDTH)
    assert row.lost == ("\u2325",)


def test_a_letter_whose_mark_no_font_has_is_lost(typesetter):
    (row,) = typesetter.set_paragraph("\u05d0\u0900 b", WIDTH)
    assert row.lost == ("\u05d0\u0900",)
    assert lit(typesetter, "\u05d0\u0900") != lit(typesetter, "\u05d1\u0900"), "the letter stays"


def test_a_selector_makes_a_sign_a_picture(typesetter):
    assert lit(typesetter, "\u2600\ufe0f") != lit(typesetter, "\u2600\ufe0e")


def test_letters_after_han_are_drawn_as_they_are_alone(typesetter):
    """The font for Han has some Greek letters: a word must not be of two fonts."""
    (alone,), (behind,) = (typesetter.set_paragraph(t, WIDTH) for t in ("Αύριο", "你Αύριο"))
    assert behind.width - alone.width == pytest.approx(22, abs=1)


def test_arabic_letters_join():
    """Joined letters are narrower than the same letters one by one."""
    setter = Typesetter(find_fonts(font_folders()), ROW)
    (joined,) = setter.set_paragraph("سلام", WIDTH)
    (apart,) = setter.set_paragraph("س\u200cل\u200cا\u200cم", WIDTH)
    assert joined.width < apart.width


def test_right_to_left_text_begins_at_the_right(typesetter):
    (row,) = typesetter.set_paragraph("שלום", WIDTH)
    assert row.x + row.width == WIDTH
    (row,) = typesetter.set_paragraph("שלום", WIDTH, base=0)
    assert row.x < WIDTH // 2


def test_a_number_in_hebrew_is_drawn_left_to_right(typesetter):
    """12 in a Hebrew sentence looks like 12, and stands left of the word before it."""
    (alone,) = typesetter.set_paragraph("12", WIDTH)
    (row,) = typesetter.set_paragraph("א 12", WIDTH)
    number = [line[: alone.width] for line in pixels(row)]
    lit = [line for line in number if any(line)]
    assert lit == [line for line in pixels(alone) if any(line)]


def test_rows_break_where_the_script_allows(typesetter):
    rows = typesetter.set_paragraph("今日は、天気がいいです。" * 6, 300)
    assert len(rows) > 2
    assert all(row.text[0] not in "、。" for row in rows)
    words = typesetter.set_paragraph("one two three four five six seven", 200)
    assert all(row.text.strip() == row.text for row in words)
    assert [
        w for row in words for w in row.text.split()
    ] == "one two three four five six seven".split()


def test_thai_without_spaces_breaks_between_clusters(typesetter):
    text = "รถไฟไปเชียงใหม่ออกเวลาเช้าทุกวันไม่มีวันหยุดและน้ำแข็งใส"
    for width in range(60, 300, 7):
        rows = typesetter.set_paragraph(text, width)
        assert "".join(row.text for row in rows) == text
        for row in rows[1:]:
            assert unicodedata.category(row.text[0]) == "Lo", "a mark without its letter"
            assert row.text[0] not in "ะาำ", "a vowel without its letter"
        assert all(row.text[-1] not in "เแโใไ" for row in rows[:-1])


def test_one_word_wider_than_the_lens_is_broken(typesetter):
    rows = typesetter.set_paragraph("م" * 400, 120)
    assert sum(len(row.text) for row in rows) == 400
    assert all(row.width <= 130 for row in rows)


@pytest.mark.parametrize("pile", ["👨\u200d" * 4000, "a" + "\u0301" * 7999, "\u0e48" * 8000])
def test_a_pile_of_one_character_stays_on_the_lens(typesetter, pile):
    for row in typesetter.set_paragraph(pile, WIDTH):
        assert row.x + row.width <= WIDTH
        assert row.y + row.height <= ROW


@pytest.mark.parametrize("text", ["W" * 30, "ש" * 30])
def test_a_row_narrower_than_a_letter_is_cut_and_counted(typesetter, text):
    for row in typesetter.set_paragraph(text, 8):
        assert row.x + row.width <= 8
        assert row.clipped


def test_grey_lenses_get_grey_pixels():
    row = Typesetter(find_fonts(font_folders()), ROW, bpp=4).set_paragraph("नमस्ते", WIDTH)[0]
    levels = {level for line in pixels(row, 4) for level in line}
    assert {0, 15} < levels


@pytest.mark.parametrize(
    "text", ["", " ", "\u200b", "\u202e\u202c", "\u0301", "\U0010ffff", "\ud800"]
)
def test_nothing_to_draw_is_no_failure(typesetter, text):
    for row in typesetter.set_paragraph(text, WIDTH):
        assert row.y + row.height <= ROW


def test_han_takes_the_forms_of_its_language(typesetter):
    """One code, another shape in Japanese and Chinese: 直 and 骨."""
    assert lit(typesetter, "骨の") - lit(typesetter, "の") != lit(typesetter, "骨")
    assert lit(typesetter, "骨头") - lit(typesetter, "头") == lit(typesetter, "骨")


def test_hebrew_letters_stand_from_right_to_left(typesetter):
    """The first letter is tall, the second hangs from the top: it stands at the left."""
    (row,) = typesetter.set_paragraph("אי", WIDTH)
    lower = pixels(row)[row.height * 2 // 3 :]
    assert not any(any(line[:4]) for line in lower)
    assert all(any(line[-12:]) for line in lower)


def test_what_no_row_can_hold_is_counted(typesetter):
    (row,) = typesetter.set_paragraph("a" + "\u0301" * 30, WIDTH)
    assert row.clipped
