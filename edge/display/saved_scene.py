"""The scene on the lens as a note on disk, for a restarted daemon; pictures are too large."""

import base64
import logging
import zlib
from typing import Any, Final

from edge.core.results import LayoutKind, Rendering
from edge.display.lens import Sheet
from edge.display.presentation import OnReport, Presentation, SpeechState
from edge.runtime.clock import Clock
from edge.storage.notes import Notes
from firmware_bridge.messages import TextLine, Tile
from tools_cache.api.tool import DeliveryReport, Json

_log: Final = logging.getLogger(__name__)
NOTE: Final = "stage.scene"
MAX_PIXELS: Final = 64 * 1024
"""Characters of the drawn text of a scene: some 20 pages."""


_UNKNOWN: Final[Json] = {"picture": True}
"""The note of what is on the lens and cannot be restored."""


class SavedScenes:
    """The one remembered scene. A disk's fault costs the memory, never the lens."""

    def __init__(self, notes: Notes, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock
        self.leftover = False
        """Whether the last daemon left something on the lens that is not restored but cleared."""
        self.asked = False
        """The last daemon ended while a question was before the wearer."""

    async def keep(self, item: Presentation) -> None:
        """Remember soon what is on the lens, with the delivery that is stored next: nobody waits
        for it. Brief words and recalled results are not worth it.
        """
        if item.brief or item.recalled:
            return
        try:
            await self._notes.put_soon(NOTE, to_note(item, self._clock), failed=_not_kept)
        except Exception as e:  # noqa: BLE001 - as below
            _not_kept(e)

    async def cover(self, item: Presentation | None) -> None:
        """A prompt covers `item`: should this daemon end meanwhile, the next one removes it."""
        under = {} if item is None or item.brief else to_note(item, self._clock)
        await self._put({**under, "question": True})

    async def forget(self) -> None:
        await self._put(None)

    async def mark_unknown(self) -> None:
        """Something may be on the lens that is not remembered: the next daemon clears it."""
        await self._put(_UNKNOWN)

    async def recall(self, on_report: OnReport) -> Presentation | None:
        """What the last daemon was showing, if its time is not over."""
        try:
            note = await self._notes.get(NOTE)
            item = from_note(note, self._clock, on_report)
        except Exception as e:  # noqa: BLE001 - damaged or unreadable: there is nothing to restore
            text = "display: the saved scene is not readable (%s); starting dark"
            _log.warning(text, type(e).__name__)
            note, item = "unreadable", None
        self.leftover = note is not None and item is None
        self.asked = isinstance(note, dict) and note.get("question") is True
        return item

    async def _put(self, value: Json) -> None:
        try:
            await self._notes.put(NOTE, value)
        except Exception as e:  # noqa: BLE001 - as above
            _not_kept(e)


def _not_kept(why: BaseException) -> None:
    _log.warning("display: the scene is not kept over a restart: %s", why)


def to_note(item: Presentation, clock: Clock) -> Json:
    """Write down a scene without what no tap has opened yet; of a picture, of very much drawn
    text, and of what is forgotten, only that there was one.
    """
    if item.forgotten:
        return _UNKNOWN
    pages = [sheet for sheet in item.pages if sheet.opens is None]
    pictured = item.rendering.layout is LayoutKind.BITMAP_VIEW
    if pictured or any(sheet.tiles and not sheet.said for sheet in pages):
        return _UNKNOWN
    sheets = [_sheet_to_note(sheet) for sheet in pages]
    if sum(len(tile[-1]) for sheet in sheets for tile in sheet["tiles"]) > MAX_PIXELS:
        return _UNKNOWN
    now = clock.boot()
    return {
        "call_id": item.call_id,
        "scene": item.scene,
        "rank": item.rank,
        "page": item.page,
        "seen": item.seen,
        "sheets": sheets,
        "left_s": item.until - now,
        "leaves_s": None if item.leave_at is None else item.leave_at - now,
        "boot_id": clock.boot_id,
        "boot": now,
        "wall": clock.wall(),
        "report": item.report.to_json(),
    }


def _sheet_to_note(sheet: Sheet) -> dict[str, Any]:
    lines, said = (
        [[line.row, line.text, line.x] for line in part] for part in (sheet.lines, sheet.said)
    )
    tiles = [
        [t.x, t.y, t.width, t.height, t.bpp, base64.b64encode(zlib.compress(t.pixels)).decode()]
        for t in sheet.tiles
    ]
    return {"lines": lines, "said": said, "tiles": tiles, "dwell_s": sheet.dwell_s}


def _sheet_of_note(note: dict[str, Any]) -> Sheet:
    lines, said = (
        tuple(TextLine(*line) for line in note.get(part, ())) for part in ("lines", "said")
    )
    tiles = tuple(
        Tile(x, y, width, height, bpp, zlib.decompress(base64.b64decode(pixels)))
        for x, y, width, height, bpp, pixels in note.get("tiles", ())
    )
    return Sheet(lines, tiles, float(note["dwell_s"]), said)


def from_note(note: Json, clock: Clock, on_report: OnReport) -> Presentation | None:
    """Read a scene; None if there is none or it is over. Raises KeyError, TypeError, ValueError."""
    if note is None or "picture" in note or set(note) == {"question"}:
        return None
    same_boot = note["boot_id"] and note["boot_id"] == clock.boot_id
    passed = clock.boot() - note["boot"] if same_boot else clock.wall() - note["wall"]
    left = note["left_s"] - passed
    if passed < 0 or left <= 0:
        return None
    now = clock.boot()
    call_id, scene, rank = str(note["call_id"]), str(note["scene"]), int(note["rank"])
    item = Presentation(call_id, scene, Rendering(), rank, now, on_report)
    item.sheets = tuple(map(_sheet_of_note, note["sheets"]))
    item.page, item.seen = int(note["page"]), int(note["seen"])
    item.lit, item.speech = True, SpeechState.OVER
    if not 1 <= item.page <= len(item.sheets):
        raise ValueError("page")
    item.until = now + left
    item.leave_at = None if note["leaves_s"] is None else now + note["leaves_s"] - passed
    item.report = DeliveryReport.from_json(note["report"])
    item.settle()
    return item
