"""The scene on the lens as a note on disk, for a restarted daemon; pictures are too large."""

import logging
from typing import Final

from edge.core.results import Rendering
from edge.display.lens import Sheet
from edge.display.presentation import Presentation, Told
from edge.runtime.clock import Clock
from edge.storage.notes import Notes
from firmware_bridge.messages import TextLine
from tools_cache.api.tool import DeliveryReport, Json

_log: Final = logging.getLogger(__name__)
NOTE: Final = "stage.scene"


class SavedScenes:
    """The one remembered scene. A disk's fault costs the memory, never the lens."""

    def __init__(self, notes: Notes, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock
        self.leftover = False
        """Whether the last daemon left something on the lens that is not restored but cleared."""
        self.asked = False
        """The last daemon ended while a question was before the wearer."""

    async def keep(self, act: Presentation) -> None:
        """Remember what is on the lens; brief words are not worth it."""
        if not act.brief:
            await self._put(to_note(act, self._clock))

    async def cover(self, act: Presentation | None) -> None:
        """A prompt covers `item`: should this daemon end meanwhile, the next one removes it."""
        under = {} if act is None or act.brief else to_note(act, self._clock)
        await self._put({**under, "question": True})

    async def forget(self) -> None:
        await self._put(None)

    async def recall(self, told: Told) -> Presentation | None:
        """What the last daemon was showing, if its time is not over."""
        try:
            note = await self._notes.get(NOTE)
            act = from_note(note, self._clock, told)
        except Exception as e:  # noqa: BLE001 - damaged or unreadable: either way there is nothing to put back
            _log.warning(
                "stage: the remembered scene is not readable (%s); starting dark", type(e).__name__
            )
            note, act = "unreadable", None
        self.leftover = note is not None and act is None
        self.asked = isinstance(note, dict) and note.get("question") is True
        return act

    async def _put(self, value: Json) -> None:
        try:
            await self._notes.put(NOTE, value)
        except Exception as e:  # noqa: BLE001 - as above
            _log.warning("stage: the scene is not kept over a restart: %s", e)


def to_note(act: Presentation, clock: Clock) -> Json:
    """Write a scene down; of a picture only that there was one."""
    if any(sheet.tiles for sheet in act.sheets):
        return {"picture": True}
    now = clock.boot()
    return {
        "call_id": act.call_id,
        "scene": act.scene,
        "rank": act.rank,
        "page": act.page,
        "seen": act.seen,
        "sheets": [
            {"lines": [[t.row, t.text, t.x] for t in s.lines], "dwell_s": s.dwell_s}
            for s in act.sheets
        ],
        "left_s": act.until - now,
        "leaves_s": None if act.leave_at is None else act.leave_at - now,
        "boot_id": clock.boot_id,
        "boot": now,
        "wall": clock.wall(),
        "report": act.report.to_json(),
    }


def from_note(note: Json, clock: Clock, told: Told) -> Presentation | None:
    """Read a scene; None if there is none or it is over. Raises KeyError, TypeError, ValueError."""
    if note is None or "picture" in note or set(note) == {"question"}:
        return None
    same_boot = note["boot_id"] and note["boot_id"] == clock.boot_id
    passed = clock.boot() - note["boot"] if same_boot else clock.wall() - note["wall"]
    left = note["left_s"] - passed
    if passed < 0 or left <= 0:
        return None
    now = clock.boot()
    act = Presentation(
        str(note["call_id"]), str(note["scene"]), Rendering(), int(note["rank"]), now, told
    )
    act.sheets = tuple(
        Sheet(
            tuple(TextLine(row, text, x) for row, text, x in sheet["lines"]),
            (),
            float(sheet["dwell_s"]),
        )
        for sheet in note["sheets"]
    )
    act.page, act.seen, act.lit, act.speech = int(note["page"]), int(note["seen"]), True, "over"
    if not 1 <= act.page <= len(act.sheets):
        raise ValueError("page")
    act.until = now + left
    act.leave_at = None if note["leaves_s"] is None else now + note["leaves_s"] - passed
    act.report = DeliveryReport.from_json(note["report"])
    act.settle()
    return act
