"""Answers laid out for the lens of an Even G1, said to both arms, and drawn there: nothing
leaves the lens, nothing is lost.
"""

import pytest

from edge.core.results import LayoutKind, Rendering
from edge.display.drawn_text import DrawnText
from edge.display.lens import canvas_of, typeface_of
from edge.display.lens_plan import plan
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.catalog import find
from firmware_bridge.codecs.even_g1.text import lay_out as page_text
from firmware_bridge.messages import Done, ShowPage, TextLine
from firmware_bridge.metrics import metrics_for
from firmware_bridge.sim.lens import SimLens
from tests.codecs.g1_pair import L, Pair, R

G1 = find("even_g1")
KNOWN = Capabilities.of("even_g1", G1.capabilities, origin=Origin.CATALOGUE, now=0.0)
METRICS = metrics_for("g1-21")
STORY = (
    "The quick brown fox jumps over the lazy dog; "
    "Wolfgang Amadeus Mozart looked on (amused). Åse aß Öl. "
) * 6


def said_to_both_arms(page):
    """What either arm was told to draw, over packets of a real MTU."""
    pair = Pair()
    pair.central._encoder._width = METRICS.width
    assert isinstance(pair.ask(page), Done)
    assert pair.shown[L] == pair.shown[R]
    return pair.shown[L][-1]


@pytest.mark.requirement("I4-g1-lens")
async def test_a_long_answer_fits_the_lens_in_its_own_font():
    assert (canvas_of(KNOWN).width, canvas_of(KNOWN).lines) == (488, 5)
    assert (
        typeface_of(KNOWN).width("quick")
        == METRICS.width("quick")
        != metrics_for("lens-22").width("quick")
    )
    planned = await plan(Rendering(LayoutKind.TEXT_WALL, STORY), KNOWN, DrawnText())
    sheets = planned.sheets
    assert len(sheets) > 1
    words = []
    for number, sheet in enumerate(sheets, start=1):
        heard = said_to_both_arms(ShowPage("story", number, len(sheets), sheet.lines))
        assert (heard.page, heard.pages) == (number, len(sheets))
        lens = SimLens(576, 136, 1, 5, font="g1-21", margin=44)
        drawn = lens.show(heard)
        assert drawn.clipped == 0
        assert drawn.lit > 500
        ink = lens.image.getbbox()
        assert ink is not None
        assert (ink[0], ink[2]) >= (44, 44)
        assert ink[2] <= 44 + 488
        words += " ".join(line.text for line in heard.lines).split()
    assert [word for word in words if "/" not in word] == STORY.split()


@pytest.mark.requirement("I4-g1-lens")
async def test_two_columns_stay_on_the_lens_and_line_up():
    rendering = Rendering(
        layout=LayoutKind.DASHBOARD_CARD, first="Milk\nBread\nA dozen eggs", second="2 l\n1\n12"
    )
    [sheet] = (await plan(rendering, KNOWN, DrawnText())).sheets
    heard = said_to_both_arms(ShowPage("columns", lines=sheet.lines))
    lens = SimLens(576, 136, 1, 5, font="g1-21", margin=44)
    assert lens.show(heard).clipped == 0
    second = [line.text.rpartition("  ")[0] + "  " for line in heard.lines]
    starts = [METRICS.width(text) for text in second]
    assert max(starts) - min(starts) <= METRICS.width(" "), (
        "a column begins within one space in every row"
    )


def test_a_page_number_is_set_nearer_where_its_page_would_have_too_many_bytes() -> None:
    """390 bytes: the spaces up to the right edge count too."""
    width = metrics_for("g1-21", str(KNOWN.get("display.glyphs"))).width
    rows = [TextLine(row, "漢字" * 13) for row in range(4)]
    text = page_text([*rows, TextLine(4, "漢字" * 5), TextLine(4, "1/2", 459)], width)
    assert len(text.encode()) == 390
    assert text.endswith("字" + " " * 40 + "1/2\n")
    roomy = page_text([TextLine(0, "a"), TextLine(4, "1/2", 459)], width)
    assert roomy == "a\n\n\n\n" + " " * 114 + "1/2\n"
    columns = page_text(
        [TextLine(row, "漢字" * 7 * at, 250 * at) for row in range(5) for at in (0, 1)], width
    )
    assert len(columns.encode()) > 390, "columns stay aligned"
