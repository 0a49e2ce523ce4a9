"""Renderings → lens pages that fit these glasses; what their font cannot write is drawn."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from edge.core.pages import (
    COLUMN,
    Canvas,
    Drawn,
    DrawnLine,
    Layout,
    Page,
    Typeface,
    dwell_s,
    footer_width,
    lay_out,
    lay_out_columns,
    lay_out_separate,
    limit_separate,
    settle_tables,
    without_tables,
)
from edge.core.results import LayoutKind, Rendering
from edge.core.words.drawable_text import name_lost, needs_drawing
from edge.display.drawn_text import CannotDraw, DrawnText, Rows
from edge.display.lens import (
    CannotShow,
    Sheet,
    canvas_of,
    in_corner,
    line_height,
    margin_of,
    pixels_of,
    typeface_of,
)
from edge.display.open_prompt import can_press
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.messages import TextLine, Tile

_log: Final = logging.getLogger(__name__)
IMAGE_DWELL_S: Final = 10.0
LINK_DWELL_S: Final = 30.0
"""Time to take a telephone out of a pocket."""
SEPARATE_DWELL_S: Final = 120.0
"""Seconds for which a separate page stays where a tap turns it: it is to be followed, not only
read. On foot that is about 150 m; what ranks lower waits meanwhile.
"""
Code = Callable[[str], Awaitable[str]]
"""Text → QR code for this lens as base64 PNG, "" where there is none (`LensImages.code`)."""
Fit = Callable[[str, Capabilities], Awaitable[str]]
"""Picture in base64 → PNG for these glasses (`LensImages.fit`). Raises what that raises."""
_MORE: Final = "tap: more"
_LINK: Final = "tap: link"
_CODE: Final = "tap: code"
_PICTURE: Final = "tap: picture"
_GUTTER: Final = 12
"""Pixels between a picture and the words beside it."""
_LEAST_BESIDE: Final = 0.4
"""Share of the lens that words need beside a picture; with less they get a page of their own."""
_APART: Final = "the picture has a page of its own, after the words"
_TWO_COLUMNS: Final = (LayoutKind.DOUBLE_TEXT_WALL, LayoutKind.DASHBOARD_CARD)
_NOTHING: Final[Drawn] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LensPlan:
    """What goes on the lens; no sheets clear it. `remark`: what could not be drawn as written;
    `lost`: the characters that boxes stand for; `on_tap`: more pages, to which only a tap leads.
    """

    sheets: tuple[Sheet, ...]
    downgrade: str = ""
    remark: str = ""
    lost: tuple[str, ...] = ()
    on_tap: tuple[Sheet, ...] = ()


async def unfitted(_image: str, _capabilities: Capabilities) -> str:
    """Fit no picture: only one that was made for the lens in use is drawn then."""
    from edge.display.bitmap import BadImage  # noqa: PLC0415 - at the first image

    raise BadImage("the image is not made for this lens")


async def plan(
    rendering: Rendering, capabilities: Capabilities, drawn: DrawnText, fit: Fit = unfitted
) -> LensPlan:
    """Fit a rendering to these glasses, an image perhaps as words. Raises `CannotShow`."""
    if not capabilities.has(Hardware.DISPLAY):
        raise CannotShow("these glasses have no display")
    if rendering.layout is LayoutKind.CLEAR_VIEW:
        return LensPlan(())
    planned = await _planned(rendering, capabilities, drawn, fit)
    if rendering.offer is not None or not (rendering.more or rendering.links):
        return planned
    on_tap = _on_tap(rendering)
    hint = _MORE if rendering.more else _LINK
    last = in_corner(planned.sheets[-1], hint, capabilities)
    if last is not None:
        return replace(planned, sheets=(*planned.sheets[:-1], last), on_tap=on_tap)
    # No room in the corner: it is the last line of the text.
    text, second, *last_page = (
        f"{words}\n{hint}" for words in (rendering.text, rendering.second, *rendering.pages[-1:])
    )
    pages = (*rendering.pages[:-1], *last_page)
    hinted = replace(rendering, text=text, second=second, pages=pages)
    return replace(await _planned(hinted, capabilities, drawn, fit), on_tap=on_tap)


async def _planned(
    rendering: Rendering, capabilities: Capabilities, drawn: DrawnText, fit: Fit
) -> LensPlan:
    if rendering.layout is LayoutKind.BITMAP_VIEW:
        from edge.display.bitmap import BadImage  # noqa: PLC0415 - at the first image

        try:
            return await _pictured(rendering, capabilities, drawn, fit)
        except BadImage as e:
            _log.debug("an image is shown as words: %s", e)
            return await _words(rendering, capabilities, drawn, downgrade="image→text", why=str(e))
    return await _words(rendering, capabilities, drawn)


# ------------------------------------------------------------------ more, after a tap


async def no_code(_text: str) -> str:
    """Draw no code; a link is its words and its address then."""
    return ""


def _on_tap(rendering: Rendering) -> tuple[Sheet, ...]:
    """Return the pages for a wearer who wants more; they are made when a tap leads to them."""
    wanted = [Rendering(LayoutKind.TEXT_WALL, rendering.more)] if rendering.more else []
    wanted += [
        Rendering(LayoutKind.TEXT_WALL, f"{link.words}\n{link.address}", links=(link,))
        for link in rendering.links
    ]
    return tuple(Sheet(opens=each) for each in wanted)


async def open_sheet(
    sheet: Sheet,
    capabilities: Capabilities | None,
    drawn: DrawnText,
    code: Code,
    fit: Fit = unfitted,
) -> tuple[Sheet, ...]:
    """Return the pages that a sheet opens: all of a summary; a link as a code with its words and
    its host, or as its words and its address where no code can be drawn.
    """
    wanted = sheet.opens
    if wanted is None or capabilities is None:
        return (replace(sheet, opens=None),)
    links = wanted.links
    if links:
        (link,) = links
        picture = await code(link.address)
        words = f"{link.words}\n{host_of(link.address)}"
        if picture:
            wanted = Rendering(
                LayoutKind.BITMAP_VIEW, words, second=words, image=picture, links=(link,)
            )
    try:
        planned = await _planned(wanted, capabilities, drawn, fit)
    except CannotShow as e:
        _log.debug("display: more of a page cannot be shown: %s", e)
        return (replace(sheet, opens=None),)
    pages = planned.sheets
    if not links:
        return pages
    return _staying(pages, LINK_DWELL_S)


def _staying(sheets: tuple[Sheet, ...], least_s: float) -> tuple[Sheet, ...]:
    return tuple(replace(sheet, dwell_s=max(sheet.dwell_s, least_s)) for sheet in sheets)


def host_of(address: str) -> str:
    """Return the host of an address: `a.example`; of one without a host what it names."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return address
    return (parts.hostname or parts.path).removeprefix("www.")


# ------------------------------------------------------------------ pictures and words


async def fit_ahead(rendering: Rendering, capabilities: Capabilities | None, fit: Fit) -> Rendering:
    """Return it with its picture made for these glasses, or with what is wrong with the picture."""
    if rendering.layout is not LayoutKind.BITMAP_VIEW or capabilities is None:
        return rendering
    if capabilities.get("display.bitmap") is not True:
        return rendering
    from edge.display.bitmap import BadImage, read_packed  # noqa: PLC0415 - at the first image

    if read_packed(rendering.image, *pixels_of(capabilities)) is not None:
        return rendering
    try:
        return replace(rendering, image=await fit(rendering.image, capabilities))
    except BadImage as e:
        return replace(rendering, image_problem=str(e))


async def _pictured(
    rendering: Rendering, capabilities: Capabilities, drawn: DrawnText, fit: Fit
) -> LensPlan:
    """Lay out a picture with its words: to its right or, where a page cannot hold both, on pages
    before it.
    """
    sheet = await _image(rendering, capabilities, fit)
    if not rendering.second.strip():
        return LensPlan((sheet,))
    width, canvas = pixels_of(capabilities)[0], canvas_of(capabilities)
    tile, words = replace(sheet.tiles[0], x=0), Rendering(LayoutKind.TEXT_WALL, rendering.second)
    room = Canvas(canvas.width - tile.width - _GUTTER, canvas.lines, canvas.page_bytes)
    if capabilities.get("display.tiles") is not True or room.width < width * _LEAST_BESIDE:
        said = await _words(words, capabilities, drawn)
        remark = "; ".join(filter(None, (said.remark, _APART)))
        hint = _CODE if rendering.links else _PICTURE
        last = in_corner(said.sheets[-1], hint, capabilities) or said.sheets[-1]
        return replace(said, sheets=(*said.sheets[:-1], last, sheet), remark=remark)
    said = await _words(words, capabilities, drawn, room=room)
    beside = _moved(said.sheets[0], tile.width + _GUTTER)
    remark = said.remark or ("the text was cut" if len(said.sheets) > 1 else "")
    page = replace(beside, tiles=(tile, *beside.tiles), dwell_s=max(sheet.dwell_s, beside.dwell_s))
    return LensPlan((page,), remark=remark, lost=said.lost)


def _moved(sheet: Sheet, x: int) -> Sheet:
    return replace(
        sheet,
        lines=tuple(replace(line, x=line.x + x) for line in sheet.lines),
        tiles=tuple(replace(tile, x=tile.x + x) for tile in sheet.tiles),
        said=tuple(replace(line, x=line.x + x) for line in sheet.said),
    )


async def _image(rendering: Rendering, capabilities: Capabilities, fit: Fit) -> Sheet:
    from edge.display.bitmap import BadImage, read_packed  # noqa: PLC0415 - at the first image

    if capabilities.get("display.bitmap") is not True:
        raise BadImage("these glasses show no bitmaps")
    lens = pixels_of(capabilities)
    tile = read_packed(rendering.image, *lens)
    if tile is None and rendering.image_problem:
        raise BadImage(rendering.image_problem)
    if tile is None:
        tile = read_packed(await fit(rendering.image, capabilities), *lens)
    if tile is None:
        raise BadImage("the image could not be read")
    if not tile.pixels.strip(b"\0"):
        raise BadImage("the image is all dark on this lens")
    return Sheet(tiles=(tile,), dwell_s=IMAGE_DWELL_S)


async def _words(
    rendering: Rendering,
    capabilities: Capabilities,
    drawn: DrawnText,
    *,
    room: Canvas | None = None,
    downgrade: str = "",
    why: str = "",
) -> LensPlan:
    canvas, undrawn = room or canvas_of(capabilities), ""
    rendering = _settled(rendering, canvas, typeface_of(capabilities))
    try:
        laid, sheets = await _drawn_pages(rendering, canvas, capabilities, drawn)
    except CannotDraw as e:
        laid, undrawn = _laid_out(rendering, canvas, typeface_of(capabilities)), str(e)
        sheets = tuple(sheet_of(page, capabilities, {}) for page in laid.pages)
    if not sheets:
        raise CannotShow(why or "there is nothing to show")
    if rendering.pages and len(sheets) > 1 and can_press(capabilities):
        sheets = _staying(sheets, SEPARATE_DWELL_S)
    remark = "; ".join(filter(None, (why, name_lost(laid.lost), undrawn, _remarks(laid))))
    return LensPlan(sheets, downgrade, remark, laid.lost)


def _settled(rendering: Rendering, canvas: Canvas, face: Typeface) -> Rendering:
    """Return a rendering whose tables fit, so that no cell has to be drawn."""
    return replace(
        rendering,
        text=settle_tables(rendering.text, canvas, face),
        first=without_tables(rendering.first),
        second=without_tables(rendering.second),
        pages=tuple(settle_tables(page, canvas, face) for page in rendering.pages),
    )


def _remarks(laid: Layout) -> str:
    lines = (line for page in laid.pages for line in page.lines)
    clipped = sum(line.drawn.clipped for line in lines if isinstance(line, DrawnLine))
    no_glyph = "character has" if laid.replaced == 1 else "characters have"
    was = "was" if laid.replaced == 1 else "were"
    found = {
        f"{laid.replaced} {no_glyph} no glyph on this lens and {was} replaced": laid.replaced,
        f"{clipped} clipped": clipped,
        "the text was cut": laid.cut,
    }
    return "; ".join(text for text, count in found.items() if count)


def _laid_out(
    rendering: Rendering, canvas: Canvas, face: Typeface, drawn: Drawn = _NOTHING
) -> Layout:
    if rendering.layout in _TWO_COLUMNS:
        return lay_out_columns(rendering.first, rendering.second, canvas, face, drawn)
    if rendering.pages:
        return lay_out_separate(rendering.pages, canvas, face, drawn)
    return lay_out(rendering.words, canvas, face, drawn)


# ------------------------------------------------------------------ text that is drawn


async def draw_ahead(
    rendering: Rendering, capabilities: Capabilities | None, drawn: DrawnText
) -> None:
    """Draw what these glasses cannot write; its rows are remembered until it is planned."""
    if capabilities is None or not capabilities.has(Hardware.DISPLAY) or rendering.layout is None:
        return
    has_glyph = typeface_of(capabilities).has_glyph
    if any(needs_drawing(text, has_glyph) for text in _texts_of(rendering)):
        with suppress(Exception):  # it fails again when it is to be shown, and is reported then
            await plan(rendering, capabilities, drawn)


def _texts_of(rendering: Rendering) -> tuple[str, ...]:
    if rendering.layout in _TWO_COLUMNS:
        return rendering.first, rendering.second
    return limit_separate(rendering.pages)[0] if rendering.pages else (rendering.words,)


async def _drawn_pages(
    rendering: Rendering, canvas: Canvas, capabilities: Capabilities, drawn: DrawnText
) -> tuple[Layout, tuple[Sheet, ...]]:
    """Lay out, drawing the paragraphs that the glasses cannot write. Raises `CannotDraw`."""
    face, whole = typeface_of(capabilities), capabilities.get("display.tiles") is not True
    columns = rendering.layout in _TWO_COLUMNS
    texts = _texts_of(rendering)
    if not any(needs_drawing(text, face.has_glyph) for text in texts):
        laid = _laid_out(rendering, canvas, face)
        return laid, tuple(map(_written, laid.pages))
    width = canvas.width * COLUMN if columns else canvas.width
    found = await drawn.rows_of(texts, face, drawn_rows(capabilities, width), whole=whole)
    laid = _laid_out(rendering, canvas, face, found)
    if found and len(laid.pages) > 1 and not columns:  # again, with room for the footer
        width -= footer_width(len(laid.pages), face)
        found = await drawn.rows_of(texts, face, drawn_rows(capabilities, width), whole=whole)
        laid = _laid_out(rendering, canvas, face, found)
    others = {
        line.text
        for page in laid.pages
        if whole and is_drawn(page)
        for line in page.lines
        if line.text and not isinstance(line, DrawnLine)
    }
    rows = await drawn.draw(sorted(others), drawn_rows(capabilities, canvas.width))
    pictures = {text: row[0].tile for text, row in zip(sorted(others), rows, strict=True)}
    return laid, tuple(sheet_of(page, capabilities, pictures) for page in laid.pages)


def _written(page: Page) -> Sheet:
    return Sheet(tuple(line for line in page.lines if line.text), dwell_s=dwell_s(page.words))


def is_drawn(page: Page) -> bool:
    """Return whether a page has a row that the glasses cannot write."""
    return any(isinstance(line, DrawnLine) and not line.drawn.native for line in page.lines)


def sheet_of(page: Page, capabilities: Capabilities, pictures: Mapping[str, Tile | None]) -> Sheet:
    """Make a page of lines, and of tiles for those that are drawn: for all of them on glasses that
    take no tiles beside lines. `pictures`: other lines as tiles.
    """
    whole = capabilities.get("display.tiles") is not True and is_drawn(page)
    lines: list[TextLine] = []
    said: list[TextLine] = []
    tiles: list[Tile] = []
    for line in page.lines:
        row = line.drawn if isinstance(line, DrawnLine) else None
        if not line.text:
            continue
        if not whole and (row is None or row.native):
            lines.append(TextLine(line.row, line.text, line.x))
            continue
        said.append(TextLine(line.row, line.text, line.x))
        if tile := pictures[line.text] if row is None else row.tile:
            tiles.append(placed(tile, line, capabilities))
    return Sheet(tuple(lines), tuple(tiles), dwell_s(page.words), tuple(said))


def placed(tile: Tile, line: TextLine, capabilities: Capabilities) -> Tile:
    """Return the tile of a row where the glasses would write this line."""
    width, height, _ = pixels_of(capabilities)
    x = min(margin_of(capabilities) + line.x + tile.x, width - tile.width)
    y = line.row * drawn_rows(capabilities, width).height + tile.y
    return replace(tile, x=max(0, x), y=min(y, height - tile.height))


def drawn_rows(capabilities: Capabilities, width: float) -> Rows:
    """Return how text is drawn for this lens."""
    bpp, height = pixels_of(capabilities)[2], line_height(capabilities)
    why_not = "" if capabilities.get("display.bitmap") is True else "these glasses show no bitmaps"
    return Rows(int(width), int(height), bpp, why_not)
