"""Pages fit the lens and lose nothing."""

import itertools
import math
import unicodedata

import pytest
from hypothesis import example, given, strategies as st

from edge.core.pages import (
    CUT,
    LINE_END_FORBIDDEN,
    LINE_START_FORBIDDEN,
    MAX_SEPARATE,
    MAX_TEXT,
    Canvas,
    Layout,
    Typeface,
    _split,
    dwell_s,
    lay_out,
    lay_out_columns,
    lay_out_separate,
    reading_words,
)
from edge.core.words.drawable_text import clean
from edge.core.words.text_columns import Room, settle
from firmware_bridge.messages import MAX_LINES

LENS = Canvas(width=576, lines=5, page_bytes=390)


def width(text: str) -> float:
    return sum(
        0 if unicodedata.combining(c) else 22 if ord(c) > 0x2E7F else 5 if c in " il.,!" else 12
        for c in text
    )


FACE = Typeface(width, lambda _: True)
NARROW = st.builds(Canvas, st.integers(80, 600), st.integers(1, 8), st.integers(60, 500))
LETTERS = st.sampled_from("abc XYZ ,.!(\n\t日本語。（）éß—…")
TEXT = (
    st.text(LETTERS, max_size=400)
    | st.text(LETTERS, min_size=150, max_size=400)
    | st.text(max_size=300)
)
FULL_ROWS = ("x" * 900, LENS)
HEAVY_ROWS = ("日本語" * 60, Canvas(width=600, lines=5, page_bytes=60))


def squeeze(text: str) -> str:
    """Without spaces, and without the points between cells that are not set as columns."""
    return "".join(text.replace("·", "").split())


def body(layout: Layout) -> str:
    lines = [
        line
        for number, page in enumerate(layout.pages, 1)
        for line in page.lines
        if line.text != f"{number}/{len(layout.pages)}" or line.x == 0
    ]
    return squeeze("".join(line.text for line in lines))


@given(text=TEXT, canvas=NARROW)
@example(*FULL_ROWS)
@example(*HEAVY_ROWS)
@pytest.mark.requirement("M-pages")
def test_every_line_fits_the_canvas_and_every_page_its_lines_and_bytes(
    text: str, canvas: Canvas
) -> None:
    for page in lay_out(text, canvas, FACE).pages:
        assert all(line.x + width(line.text) <= canvas.width for line in page.lines)
        assert all(line.row < canvas.lines for line in page.lines)
        assert sum(len(line.text.encode()) for line in page.lines) <= canvas.page_bytes
        by_row: dict[int, list] = {}
        for line in page.lines:
            by_row.setdefault(line.row, []).append(line)
        for lines in by_row.values():
            for before, after in itertools.pairwise(lines):
                assert before.x + width(before.text) <= after.x, "footer over text"


@given(text=TEXT, canvas=NARROW)
@example(*FULL_ROWS)
@example(*HEAVY_ROWS)
@pytest.mark.requirement("M-pages")
def test_no_text_is_lost_and_the_order_is_kept(text: str, canvas: Canvas) -> None:
    layout = lay_out(text, canvas, FACE)
    assert body(layout) == squeeze(clean(text)[0])


@given(left=TEXT, right=TEXT, canvas=NARROW.filter(lambda c: c.width > 120))
def test_two_columns_fit_side_by_side_and_lose_nothing(
    left: str, right: str, canvas: Canvas
) -> None:
    layout = lay_out_columns(left, right, canvas, FACE)
    second = int(canvas.width * 0.55)
    got = {0: "", 1: ""}
    for number, page in enumerate(layout.pages, 1):
        assert sum(len(line.text.encode()) for line in page.lines) <= canvas.page_bytes
        for line in page.lines:
            if (
                len(layout.pages) > 1
                and line.row == canvas.lines - 1 > 0
                and line.text == f"{number}/{len(layout.pages)}"
            ):
                continue
            assert width(line.text) <= canvas.width * 0.45 + 1e-6
            assert line.x in (0, second)
            got[line.x == second] += line.text
    assert squeeze(got[0]) == squeeze(clean(left)[0])
    assert squeeze(got[1]) == squeeze(clean(right)[0])


TABLE = "Train\tLeaves\nR10\t12:04\nL1\t12:11"


@pytest.mark.requirement("I13-columns")
def test_a_table_has_its_cells_below_each_other() -> None:
    (page,) = lay_out(f"Trains\n{TABLE}\nMind the gap", LENS, FACE).pages
    second = math.ceil(width("Train") + 12)
    assert [(line.row, line.x, line.text) for line in page.lines] == [
        (0, 0, "Trains"),
        (1, 0, "Train"),
        (1, second, "Leaves"),
        (2, 0, "R10"),
        (2, second, "12:04"),
        (3, 0, "L1"),
        (3, second, "12:11"),
        (4, 0, "Mind the gap"),
    ]


@pytest.mark.parametrize(
    ("table", "shown"),
    [
        ("a\tb\tc\td\te\tf\tg", "a · b · c · d · e · f · g"),  # more than a page takes
        (f"{'wide ' * 12}\t12:04", f"{'wide ' * 12}· 12:04"),
        ("שלום\t12:04", "שלום · 12:04"),  # it has to be drawn as a line
        ("", ""),
    ],
)
@pytest.mark.requirement("I13-columns")
def test_a_table_that_does_not_fit_is_lines(table: str, shown: str) -> None:
    (page,) = lay_out(f"x\n{table}", LENS, FACE).pages
    assert " ".join(line.text for line in page.lines).strip() == f"x {shown}".strip()


@pytest.mark.requirement("I13-columns")
def test_a_row_of_both_directions_keeps_the_order_of_its_cells() -> None:
    room = Room(10, 7, 100, len, str.isascii)
    both, one = settle("אבא\t70\tnone\tno", room), settle("אבא\t70\tאין\tלא", room)
    assert both == "\u2068אבא\u2069 · 70 · none · no"
    assert one == "אבא · 70 · אין · לא"


def test_a_long_table_goes_on_the_next_page_with_the_same_columns() -> None:
    pages = lay_out("\n".join(f"{n}\tline" for n in range(98, 107)), LENS, FACE).pages
    assert [line.text for line in pages[1].lines][-3:] == ["106", "line", "2/2"]
    starts = {line.x for page in pages for line in page.lines if line.text == "line"}
    assert starts == {math.ceil(width("100") + 12)}


@given(
    st.lists(st.lists(st.text(LETTERS, max_size=12), min_size=1, max_size=4), max_size=12), NARROW
)
def test_tables_fit_every_lens_and_keep_every_cell(table, canvas: Canvas) -> None:
    text = "\n".join("\t".join(" ".join(cell.split()) for cell in row) for row in table)
    layout = lay_out(text, canvas, FACE)
    assert body(layout) == squeeze(clean(text)[0])
    for page in layout.pages:
        assert len(page.lines) <= MAX_LINES
        assert all(line.x + width(line.text) <= canvas.width for line in page.lines)
        for before, after in itertools.pairwise(page.lines):
            apart = before.row < after.row or before.x + width(before.text) <= after.x
            assert apart, (before, after)


def test_a_short_text_is_one_page_without_a_footer() -> None:
    layout = lay_out("Buy milk", LENS, FACE)
    assert [[line.text for line in page.lines] for page in layout.pages] == [["Buy milk"]]


def test_several_pages_say_which_one_this_is_at_the_right_edge() -> None:
    layout = lay_out("word " * 200, LENS, FACE)
    assert len(layout.pages) > 1
    for number, page in enumerate(layout.pages, 1):
        footer = page.lines[-1]
        assert footer.text == f"{number}/{len(layout.pages)}"
        assert footer.row == LENS.lines - 1
        assert LENS.width - 1 <= footer.x + width(footer.text) <= LENS.width


def test_words_are_not_broken_while_they_fit_a_line() -> None:
    text = "alpha bravo charlie delta " * 12
    rows = [line.text for page in lay_out(text, LENS, FACE).pages for line in page.lines[:4]]
    assert {word for row in rows for word in row.split()} <= {
        "alpha",
        "bravo",
        "charlie",
        "delta",
        *"123456789",
    } | {row.split()[-1] for row in rows if "/" in row}


def test_a_word_longer_than_a_line_is_cut_and_nothing_of_it_is_lost() -> None:
    layout = lay_out("x" * 120, LENS, FACE)
    assert "".join(line.text for line in layout.pages[0].lines) == "x" * 120
    assert len(layout.pages[0].lines) == 3


def test_cjk_breaks_anywhere_but_not_before_a_full_stop_nor_after_an_opening_bracket() -> None:
    text = "日本語の文章です。（これは）テスト、「本当に」長い文章。" * 6
    layout = lay_out(text, Canvas(width=220, lines=5, page_bytes=2000), FACE)
    rows = [line.text for page in layout.pages for line in page.lines if "/" not in line.text]
    assert len(rows) > 10
    assert not [row for row in rows if row[0] in LINE_START_FORBIDDEN]
    assert not [row for row in rows if row[-1] in LINE_END_FORBIDDEN]


def test_control_characters_and_direction_overrides_never_reach_the_lens() -> None:
    text, replaced, lost = clean("a\x00b\x1b[31mc\u202ed\u200be\x85f\tg")
    assert text == "ab[31mcde f g"
    assert (replaced, lost) == (0, ())


def test_a_missing_glyph_becomes_its_relative_or_a_visible_box_and_is_counted() -> None:
    has = lambda ch: ch.isascii() or ch == "□"  # noqa: E731
    assert clean("café — 日", has) == ("cafe - □", 2, ("日",))
    assert clean("日", str.isascii) == ("?", 0, ("日",))
    assert lay_out("日本日", LENS, Typeface(width, has)).lost == ("日", "本")


def test_a_text_beyond_the_bound_is_cut_visibly_and_says_so() -> None:
    layout = lay_out("a" * (MAX_TEXT + 1), LENS, FACE)
    assert layout.cut
    assert squeeze(layout.pages[-1].lines[-2].text).endswith(squeeze(CUT))
    assert not lay_out("a" * MAX_TEXT, LENS, FACE).cut


def test_nothing_to_say_makes_no_page() -> None:
    assert lay_out(" \n \x00", LENS, FACE).pages == ()
    assert lay_out_columns("", " ", LENS, FACE).pages == ()


def test_paragraphs_stay_apart_but_blank_lines_do_not_pile_up() -> None:
    lines = [line.text for line in lay_out("one\n\n\n\ntwo", LENS, FACE).pages[0].lines]
    assert lines == ["one", "", "two"]


@pytest.mark.parametrize(
    ("words", "seconds"), [(0, 3.0), (1, 3.0), (5, 4.0), (30, 11.5), (58, 19.9), (200, 20.0)]
)
def test_a_page_stays_for_its_reading_time(words: float, seconds: float) -> None:
    assert dwell_s(words) == pytest.approx(seconds)


def test_two_cjk_characters_read_like_one_word() -> None:
    assert reading_words("日本語文 ok") == 3.0
    assert reading_words("three plain words") == 3.0


def test_the_reading_time_of_a_page_does_not_count_its_footer() -> None:
    layout = lay_out("word " * 100, LENS, FACE)
    assert sum(page.words for page in layout.pages) == 100


def test_a_letter_and_its_accent_are_on_one_row_where_there_is_room():
    accented = "q\u0301"
    assert _split("a" + accented, lambda text: len(text) <= 2) == ("a", accented)
    assert _split(accented, lambda text: len(text) <= 1) == ("q", "\u0301")


@pytest.mark.parametrize(("size", "columns"), [(8, True), (7, False)])
def test_a_table_with_more_bytes_than_a_page_takes_is_lines(size, columns):
    """Counted with the spaces that reach the columns on glasses that place no text."""
    room = Room(1000, 5, size, lambda text: 12 * len(text), lambda _: True)
    assert ("\t" in settle("ab\tcd\nabcd\te", room)) is columns


# ------------------------------------------------------------------ separate pages


def shown(layout: Layout) -> list[list[str]]:
    return [[line.text for line in page.lines] for page in layout.pages]


def test_each_separate_text_begins_a_page_and_the_numbers_count_all() -> None:
    layout = lay_out_separate(["Head south", "Turn left\nonto Kaigaten", "Arrive"], LENS, FACE)
    assert shown(layout) == [
        ["Head south", "1/3"],
        ["Turn left", "onto Kaigaten", "2/3"],
        ["Arrive", "3/3"],
    ]


def test_a_separate_text_that_is_too_long_has_further_pages_of_its_own() -> None:
    layout = lay_out_separate(["a", "word " * 100, "b"], LENS, FACE)
    firsts = [page[0] for page in shown(layout)]
    assert (firsts[0], firsts[-1]) == ("a", "b")
    assert len(firsts) > 3
    assert body(layout) == squeeze("a" + "word" * 100 + "b")
    assert [page[-1] for page in shown(layout)] == [
        f"{number}/{len(firsts)}" for number in range(1, len(firsts) + 1)
    ]


def test_one_separate_text_is_laid_out_like_any_other_and_a_blank_one_has_no_page() -> None:
    for text in ("Buy milk", "word " * 100, f"Trains\n{TABLE}"):
        assert lay_out_separate([text], LENS, FACE) == lay_out(text, LENS, FACE)
        assert lay_out_separate([" \n", text, ""], LENS, FACE) == lay_out(text, LENS, FACE)
    assert lay_out_separate(["", "\n"], LENS, FACE).pages == ()


def test_separate_texts_are_limited_in_number_and_in_length() -> None:
    many = lay_out_separate([f"n{n}" for n in range(1000)], LENS, FACE)
    assert (len(many.pages), many.cut) == (MAX_SEPARATE, True)
    assert shown(many)[-1] == [f"n{MAX_SEPARATE - 1}{CUT}", f"{MAX_SEPARATE}/{MAX_SEPARATE}"]
    long = lay_out_separate(["first", "x" * MAX_TEXT, "last"], LENS, FACE)
    assert long.cut
    assert body(long) == squeeze("first" + "x" * (MAX_TEXT - len("first") - len(CUT)) + CUT)
    assert not lay_out_separate(["a"] * MAX_SEPARATE, LENS, FACE).cut


@given(texts=st.lists(TEXT, max_size=4), canvas=NARROW.filter(lambda c: c.width > 120))
def test_separate_texts_fit_every_lens_and_lose_nothing(texts: list[str], canvas: Canvas) -> None:
    layout = lay_out_separate(texts, canvas, FACE)
    assert body(layout) == squeeze("".join(clean(text)[0] for text in texts))
    for page in layout.pages:
        assert all(line.x + width(line.text) <= canvas.width for line in page.lines)
        assert all(line.row < canvas.lines for line in page.lines)
        assert sum(len(line.text.encode()) for line in page.lines) <= canvas.page_bytes


def test_no_character_within_a_text_begins_a_page() -> None:
    for sign in "\f\v\x1c\x1d\x1e\x85\u2028\u2029":
        assert len(lay_out(f"a{sign}b" * 3, LENS, FACE).pages) == 1
