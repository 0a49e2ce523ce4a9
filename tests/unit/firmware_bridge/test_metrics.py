"""Text metrics: the committed table is the font's, and nothing measured to fit is ever clipped."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from firmware_bridge.catalog import find
from firmware_bridge.messages import ShowPage, TextLine
from firmware_bridge.metrics import UnknownFont, metrics_for
from firmware_bridge.sim import make_metrics
from firmware_bridge.sim.lens import SimLens

METRICS = metrics_for("lens-22")
DRAWABLE = "".join(sorted(METRICS.glyphs))


def test_the_committed_table_is_what_the_font_gives() -> None:
    assert make_metrics.main(["--check"]) == 0


def test_a_stale_table_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.json"
    assert make_metrics.main(["--table", str(table)]) == 0
    assert make_metrics.main(["--check", "--table", str(table)]) == 0
    table.write_text(table.read_text().replace('"line_height": 27', '"line_height": 26'))
    assert make_metrics.main(["--check", "--table", str(table)]) == 1
    assert "stale" in capsys.readouterr().err


@given(
    st.text(
        st.one_of(
            st.sampled_from("AgjÅW ., fTÖ"), st.sampled_from(DRAWABLE), st.characters(codec="utf-8")
        ),
        min_size=1,
        max_size=12,
    )
)
def test_drawn_ink_never_leaves_the_measured_width(text: str) -> None:
    text = text.replace("\n", "")
    lens = SimLens(1024, 64, 1, 2)
    lens.show(ShowPage("s", lines=(TextLine(0, text, 100),)))
    ink = lens.image.getbbox()
    if ink is not None:
        assert ink[0] >= 100
        assert ink[2] <= 100 + METRICS.width(text)


def test_widths_add_up_by_hand() -> None:
    # From the table: T 11, o 12, space 4 wide; o's ink ends one before its advance.
    boxes = [METRICS.glyphs[ch] for ch in "To o"]
    advances = sum(box.advance for box in boxes[:-1])
    assert METRICS.width("To o") == advances + boxes[-1].right - min(0, boxes[0].left)
    assert METRICS.width("") == 0


def test_an_overhang_at_either_end_counts() -> None:
    j = METRICS.glyphs["j"]
    assert j.left < 0
    assert METRICS.width("j") == j.right - j.left
    assert METRICS.width("j") > j.advance
    assert METRICS.extent("aj")[0] == 0


@pytest.mark.parametrize("ch", ["a", "é", "ß", "Ж", "ω", "€", "…", "“", "→", "□", " ", "\u00a0"])
def test_the_font_has(ch: str) -> None:
    assert METRICS.has_glyph(ch)


@pytest.mark.parametrize("ch", ["你", "ع", "😀", "\u0301", "\u200b", "\n", "\t", "\u00ad"])
def test_the_font_lacks(ch: str) -> None:
    assert not METRICS.has_glyph(ch)


def test_a_character_without_glyph_is_as_wide_as_its_box() -> None:
    assert METRICS.width("你") == METRICS.missing.right - METRICS.missing.left
    assert METRICS.width("你你") > METRICS.width("你")


def test_line_height_leaves_five_lines_on_136_pixels() -> None:
    assert METRICS.line_height * 5 <= 136
    bands = []
    for row in (0, 1, 4):
        lens = SimLens(576, 136, 1, 5)
        lens.show(ShowPage("s", lines=(TextLine(row, "ÅÉjgQ|"),)))
        ink = lens.image.getbbox()
        assert ink is not None
        bands.append((ink[1] - row * 27, ink[3] - row * 27))
    assert len(set(bands)) == 1, "the first and the last row are as whole as one between"
    assert bands[0][0] >= 0
    assert bands[0][1] <= 27


def test_an_unknown_font_says_which_are_known() -> None:
    with pytest.raises(UnknownFont, match="lens-22"):
        metrics_for("comic-9")


def test_measuring_needs_no_pillow() -> None:
    code = (
        "import sys; from firmware_bridge.metrics import metrics_for; "
        "metrics_for('lens-22').width('x'); sys.exit('PIL' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------ glyphs that glasses declare

G1_GLYPHS = str(find("even_g1").capabilities["display.glyphs"])
G1 = metrics_for("g1-21", G1_GLYPHS)


@pytest.mark.requirement("I13-own-glyphs")
@pytest.mark.parametrize(
    ("text", "advance"),
    [("你好，世界。", 18), ("さくら、カード", 18), ("！？", 18), ("안녕하세요", 24)],
)
def test_declared_characters_have_glyphs_of_their_declared_width(text: str, advance: int) -> None:
    assert all(map(G1.has_glyph, text))
    assert G1.width(text) == advance * len(text)
    assert not any(map(metrics_for("g1-21").has_glyph, text))


def test_other_characters_keep_the_width_of_the_font() -> None:
    for text in ("The quick brown fox", "Привет, мир", "שלום"):
        assert G1.width(text) == metrics_for("g1-21").width(text)
    assert not G1.has_glyph("ש")


def test_a_declared_width_counts_more_than_the_table() -> None:
    declared = metrics_for("lens-22", "0400-04ff:18")
    assert declared.width("мир") == 54
    assert METRICS.width("мир") < 54


@pytest.mark.parametrize(
    "declared",
    [
        "",
        "4e00",
        "4e00-9fff",
        "4e00-9fff:0",
        "4e00-9fff:1000",
        "9fff-4e00:18",
        "4e00-zzzz:18",
        "4e00-ffffff:18",
        "4e00-9fff:18px",
        "4e00–9fff:18",
        "-:18",
    ],
)
def test_what_is_not_a_range_is_ignored_and_the_rest_is_read(declared: str) -> None:
    read = metrics_for("lens-22", f"{declared} 3040-30ff:18")
    assert not read.has_glyph("你")
    assert read.width("さくら") == 54


@given(
    st.text(
        st.sampled_from("你好世界。，、さくらカード안녕하세요 aWj.") | st.sampled_from(DRAWABLE),
        min_size=1,
        max_size=12,
    )
)
@example("你好，안녕さくら")
def test_ink_of_declared_characters_never_leaves_the_measured_width(text: str) -> None:
    lens = SimLens(1024, 64, 1, 2, font="g1-21", glyphs=G1_GLYPHS)
    lens.show(ShowPage("s", lines=(TextLine(0, text, 100),)))
    ink = lens.image.getbbox()
    if ink is not None:
        assert ink[0] >= 100
        assert ink[2] <= 100 + G1.width(text)
        assert ink[3] <= G1.line_height
