"""What a lens is like, and its only writer."""

import asyncio
import base64
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from edge.core.pages import Canvas, Typeface
from edge.core.results import Rendering
from edge.ports import GlassesPort
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import LensChanged
from firmware_bridge.capabilities import Capabilities
from firmware_bridge.errors import CommandRefused, CommandTimeout, LocalMisuse
from firmware_bridge.messages import (
    MAX_LINES,
    ClearPage,
    Done,
    Prompt,
    ShowPage,
    TextLine,
    Tile,
    UpdatePage,
)
from firmware_bridge.metrics import UnknownFont, metrics_for
from tools_cache.api.tool import Json

_log: Final = logging.getLogger(__name__)
MIN_GAP_S: Final = 0.1
"""Between two pages; panels of this class flicker above ten changes a second."""
_LONGEST_GAP_MS: Final = 5000
"""A larger value is ignored: nothing would be readable on such glasses."""
ANSWER_S: Final = 5.0
DEFAULT_FONT: Final = "lens-22"
_DEFAULT_BYTES: Final = 390
"""UTF-8 bytes of a page where glasses do not say: the smallest safe payload known (Even G1)."""

_GAP: Final = 12
"""Pixels between a text in the corner and what stands beside it."""


class Sheet(Struct, frozen=True):
    """One page ready to be sent, and how long it stays. `said`: the words that its tiles show.
    `opens`: what is made in its place when a tap leads to it. `reported`: what reports and events
    say is on it, where its words are for the wearer alone. `rolls`: also when all rows change, it
    is the same page.
    """

    lines: tuple[TextLine, ...] = ()
    tiles: tuple[Tile, ...] = ()
    dwell_s: float = 3.0
    said: tuple[TextLine, ...] = ()
    opens: Rendering | None = None
    reported: tuple[str, ...] | None = None
    rolls: bool = False

    @property
    def rows(self) -> tuple[str, ...]:
        """Its text row by row, as far as others than the wearer may read it."""
        return rows_of(self.lines + self.said) if self.reported is None else self.reported


class CannotShow(Exception):
    """These glasses cannot show this, and why."""


def in_corner(sheet: Sheet, text: str, capabilities: Capabilities) -> Sheet | None:
    """Put a short text into the corner of a page for these glasses; see `corner`."""
    if sheet.tiles and capabilities.get("display.tiles") is not True:
        return None  # they show text or pictures
    canvas = canvas_of(capabilities)
    top, margin = (canvas.lines - 1) * line_height(capabilities), margin_of(capabilities)
    taken = [(t.x - margin, t.width) for t in sheet.tiles if t.y + t.height > top]
    return corner(sheet, text, canvas, typeface_of(capabilities), taken)


def corner(
    sheet: Sheet,
    text: str,
    canvas: Canvas,
    face: Typeface,
    tiles: Sequence[tuple[float, float]] = (),
) -> Sheet | None:
    """Put a short text at the right of the last row, left of a page number; None where there is no
    room for it. `tiles`: where pictures in this row begin, and how wide they are.
    """
    if not all(map(face.has_glyph, text)):
        return None
    row, width, right = canvas.lines - 1, face.width(text), canvas.width
    lines = [(line.x, face.width(line.text)) for line in sheet.lines if line.row == row]
    there = sorted([*tiles, *lines], reverse=True)
    for x, taken in there:
        if right - width >= x + taken + _GAP:
            break
        right = x - _GAP
    page = (*sheet.lines, TextLine(row, text, max(0, math.floor(right - width))))
    if right < width or _bytes(page, face) > canvas.page_bytes:
        return None
    return replace(sheet, lines=page)


def _bytes(lines: tuple[TextLine, ...], face: Typeface) -> int:
    """Count the bytes of a page, with the spaces by which some glasses reach a column."""
    space, size = face.width(" ") or 1.0, 0
    ends: dict[int, float] = {}
    for line in sorted(lines, key=lambda line: (line.row, line.x)):
        gap = max(0.0, line.x - ends.get(line.row, 0.0))
        size += len(line.text.encode()) + 1 + math.ceil(gap / space)
        ends[line.row] = line.x + face.width(line.text)
    return size


def pixels_of(capabilities: Capabilities) -> tuple[int, int, int]:
    """Width, height and bits a pixel of the lens; small values where the glasses do not say."""
    width = int(capabilities.get("display.width", 0) or 576)
    height = int(capabilities.get("display.height", 0) or 136)
    bpp = capabilities.get("display.bpp", 1)
    return width, height, bpp if bpp in (1, 2, 4) else 1


def line_height(capabilities: Capabilities) -> float:
    """Pixels from one row to the next."""
    return float(capabilities.get("display.line_height", 0) or 27)


def canvas_of(capabilities: Capabilities) -> Canvas:
    """How much text the lens holds; small values where the glasses do not say."""
    wide, height, _ = pixels_of(capabilities)
    width = min(wide, float(capabilities.get("display.text_width", 0) or wide))
    lines = int(capabilities.get("display.lines", 0) or height // line_height(capabilities))
    size = int(capabilities.get("display.page_bytes", 0) or _DEFAULT_BYTES)
    return Canvas(width, max(1, min(lines, MAX_LINES)), max(32, size))


def margin_of(capabilities: Capabilities) -> int:
    """Pixels on both sides of the lens where the glasses write no text."""
    return int(pixels_of(capabilities)[0] - canvas_of(capabilities).width) // 2


def typeface_of(capabilities: Capabilities) -> Typeface:
    """The announced font and glyphs; an unknown font is measured with ours, without a margin."""
    name = str(capabilities.get("display.font", "") or DEFAULT_FONT)
    glyphs = str(capabilities.get("display.glyphs", ""))
    try:
        metrics = metrics_for(name, glyphs)
    except UnknownFont as e:
        _log.debug("%s; measuring with %s", e, DEFAULT_FONT)
        metrics = metrics_for(DEFAULT_FONT, glyphs)
    return Typeface(metrics.width, metrics.has_glyph)


# ------------------------------------------------------------------ the lens


class LensWriter:
    """Sends pages one at a time, as fast as the panel takes them; knows what was acknowledged."""

    def __init__(
        self, glasses: GlassesPort, bus: Bus, clock: Clock, *, min_gap_s: float = MIN_GAP_S
    ) -> None:
        self._glasses = glasses
        self._bus = bus
        self._clock = clock
        self._min_gap_s = min_gap_s
        self._sent_at = float("-inf")
        self._last = LensChanged("", 0, 0, ())
        self._sheet = Sheet()
        self._at: float | None = None
        self.dark_since = float("-inf")
        """When the lens was last cleared (boot clock)."""
        self.cut_off = False
        """Whether it was stopped while the glasses may have been drawing a page."""
        self._link = 0
        self._whole_on = -1
        """The connection over which the glasses refused to change a part of a page."""

    @property
    def lit(self) -> bool:
        """Whether the last thing the glasses acknowledged was a page; False: a cleared lens."""
        return self._last.page > 0

    @property
    def scene(self) -> str:
        """What is on it, as far as it was acknowledged; empty when it is dark."""
        return self._last.scene

    @property
    def sheet(self) -> Sheet:
        """Return the page that was acknowledged last; without lines when it is dark."""
        return self._sheet

    def busy_s(self) -> float:
        """Seconds until the panel takes the next page."""
        return max(0.0, self._sent_at + self._gap_s() - asyncio.get_running_loop().time())

    def _gap_s(self) -> float:
        """What the glasses say they need, else what any panel needs."""
        record = self._glasses.status().capabilities
        gap_ms = record.get("display.min_gap_ms") if record is not None else None
        if isinstance(gap_ms, bool) or not isinstance(gap_ms, int | float):
            return self._min_gap_s
        return gap_ms / 1000 if 0 <= gap_ms <= _LONGEST_GAP_MS else self._min_gap_s

    async def show(self, scene: str, sheets: tuple[Sheet, ...], number: int) -> Done:
        """Put page `number` (from 1) on the lens. Raises what `GlassesPort.request` raises."""
        sheet = sheets[number - 1]
        await self._pace()
        link = self._glasses.status().link
        page = ShowPage(scene, number, len(sheets), sheet.lines, sheet.tiles)
        try:
            done = await self._update(page, link, every=sheet.rolls)
            if done is None:
                done = await self._glasses.request(page, timeout_s=ANSWER_S)
        except asyncio.CancelledError:
            self.cut_off = True
            raise
        self._link = link
        self._acknowledged(LensChanged(scene, number, len(sheets), sheet.rows), sheet)
        return done

    async def _update(self, page: ShowPage, link: int, *, every: bool) -> Done | None:
        """Change only the rows that differ from what is on the lens, without a flicker; None where
        that is not possible. `every`: also if every row differs.
        """
        last = self._last
        same = (last.scene, last.page, last.pages) == (page.scene, page.page, page.pages)
        rows = changed_rows(self._sheet.lines, page.lines, every=every)
        if not (same and link == self._link and rows) or page.tiles or self._sheet.tiles:
            return None
        if link == self._whole_on:
            return None
        update = UpdatePage(page.scene, page.page, rows)
        try:
            return await self._glasses.request(update, timeout_s=ANSWER_S)
        except CommandRefused as e:
            if e.code == "unsupported":
                self._whole_on = link
            _log.debug("lens: %s is sent whole: %s", page.scene, e)
            return None

    async def turn(self, scene: str, sheets: tuple[Sheet, ...], number: int) -> bool:
        """Like `show`, for a scene already shown: False when the glasses did not take it."""
        try:
            await self.show(scene, sheets, number)
        except (CommandRefused, CommandTimeout, LocalMisuse) as e:
            _log.debug("lens: page %d of %s was not taken: %s", number, scene, e)
            return False
        return True

    def with_corner(self, sheet: Sheet, *texts: str) -> Sheet | None:
        """Put the first of these texts for which there is room into the sheet's corner."""
        known = self._glasses.status().capabilities
        if known is None:
            return None
        marked = (in_corner(sheet, text, known) for text in texts)
        return next((found for found in marked if found is not None), None)

    async def restore(self, scene: str, sheets: tuple[Sheet, ...], number: int) -> None:
        """Put a page back on returned glasses, unless they were shown something since."""
        here = self._glasses.status().link
        if not (self.lit and here and self._link == here):
            await self.turn(scene, sheets, number)

    async def ask(self, scene: str, sheet: Sheet, number: int, timeout_s: float) -> Done:
        """Show a prompt of the glasses over the page. Raises what `GlassesPort.request` raises."""
        await self._pace()
        prompt = Prompt(number, sheet.lines, timeout_s)
        done = await self._glasses.request(prompt, timeout_s=ANSWER_S)
        self._acknowledged(LensChanged(scene, 1, 1, sheet.rows), sheet)
        return done

    async def clear(self, *, at_once: bool = False) -> None:
        """Darken the lens if the glasses take it; `at_once`: without pause. Raises GlassesAway."""
        if at_once:
            self._sent_at = asyncio.get_running_loop().time()
        else:
            await self._pace()
        try:
            await self._glasses.request(ClearPage(), timeout_s=ANSWER_S)
        except (CommandRefused, CommandTimeout) as e:
            _log.debug("lens: not cleared: %s", e)
        else:
            self._acknowledged(LensChanged("", 0, 0, ()), Sheet())

    def report(self, *, exact: bool = False) -> Mapping[str, Json]:
        """What is on it; `exact` adds `drawn`: see `describe_sheet`."""
        last = self._last
        report = {
            "scene": last.scene,
            "page": last.page,
            "pages": last.pages,
            "lines": list(last.lines),
            "at": self._at,
        }
        if exact:
            report["drawn"] = describe_sheet(self._sheet)
        return report

    def _acknowledged(self, event: LensChanged, sheet: Sheet) -> None:
        self._last, self._at, self._sheet = event, self._clock.wall(), sheet
        if not event.page:
            self.dark_since = self._clock.boot()
        self._bus.publish(event)

    async def _pace(self) -> None:
        await asyncio.sleep(self.busy_s())
        self._sent_at = asyncio.get_running_loop().time()


def changed_rows(
    old: tuple[TextLine, ...], new: tuple[TextLine, ...], *, every: bool = False
) -> tuple[TextLine, ...]:
    """Return the lines of the rows that differ, an emptied row as an empty line; () if no row
    differs, or every row without `every`.
    """
    before, after = (
        {row: [t for t in lines if t.row == row] for row in {t.row for t in lines}}
        for lines in (old, new)
    )
    differ = [row for row in sorted({*before, *after}) if before.get(row) != after.get(row)]
    if len(differ) == len({*before, *after}) and not every:
        return ()
    return tuple(line for row in differ for line in after.get(row, [TextLine(row, "")]))


def describe_sheet(sheet: Sheet) -> dict[str, Json]:
    """Return the lines of a page with their places, and its pictures with their pixels (base64)."""
    if sheet.reported is not None:
        lines = [TextLine(row, text) for row, text in enumerate(sheet.reported)]
        sheet = Sheet(tuple(lines))
    tiles = [
        {**asdict(tile), "pixels": base64.b64encode(tile.pixels).decode()} for tile in sheet.tiles
    ]
    return {"lines": [asdict(line) for line in sheet.lines], "tiles": tiles}


def rows_of(lines: tuple[TextLine, ...]) -> tuple[str, ...]:
    """The text of a page row by row, for people and logs."""
    rows: dict[int, list[str]] = {}
    for line in sorted(lines, key=lambda line: (line.row, line.x)):
        rows.setdefault(line.row, []).append(line.text)
    return tuple("  ".join(texts) for _, texts in sorted(rows.items()))
