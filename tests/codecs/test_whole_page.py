"""A change applied to the page on the lens."""

import pytest

from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import ShowPage, TextLine, Tile, UpdatePage
from firmware_bridge.whole_page import whole_page


def tile(x, pixels):
    return Tile(x, 0, 8, 1, 1, pixels)


PAGE = ShowPage(
    "s", 2, 3, (TextLine(0, "a"), TextLine(1, "b")), (tile(0, b"\x01"), tile(8, b"\x02"))
)


def test_rows_and_tiles_take_the_place_of_those_that_were_there():
    changed = whole_page(PAGE, UpdatePage("s", 2, (TextLine(1, "B"),), (tile(0, b"\xff"),)))
    assert changed.lines == (TextLine(0, "a"), TextLine(1, "B"))
    assert changed.tiles == (tile(8, b"\x02"), tile(0, b"\xff"))
    assert (changed.scene, changed.page, changed.pages) == ("s", 2, 3)


def test_a_page_does_not_grow_with_each_change():
    page = PAGE
    for value in range(100):
        page = whole_page(page, UpdatePage("s", 2, tiles=(tile(0, bytes([value])),)))
    assert len(page.tiles) == 2


@pytest.mark.parametrize("page", [None, PAGE])
def test_a_page_that_is_not_on_the_lens_is_refused(page):
    with pytest.raises(CommandRefused, match="page 1 is not on the lens"):
        whole_page(page, UpdatePage("s", 1))
