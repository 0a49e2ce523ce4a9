"""Text that the font of the glasses cannot write, drawn as rows of pixels by a child process.

The daemon itself loads no font and no shaping library.
"""

import asyncio
import base64
import json
import logging
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from edge.core.pages import Drawn, DrawnRow, Typeface, paragraphs_of
from edge.core.words.drawable_text import clean, is_right_to_left, needs_drawing
from edge.runtime.resident_worker import START_S, ResidentWorker
from firmware_bridge.messages import Tile

_log: Final = logging.getLogger(__name__)
DEADLINE_S: Final = 8.0
IDLE_S: Final = 60.0
REST_S: Final = 30.0
"""Seconds after a child was stuck in which none is asked: while one is, other texts wait."""
MAX_ANSWER: Final = 4 * 1024 * 1024
REMEMBERED: Final = 400
"""Rows kept, of paragraphs: a text of several pages is set twice, a question at each showing."""
_DIRECTIONS: Final = dict.fromkeys(
    (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)
"""Signs for directions, left out of the words of a row: they would turn what is around them."""
INSTALL: Final = "pip install 'glassd[scripts]'"

_TOO_LONG: Final = "it took too long to draw the text"


class CannotDraw(Exception):
    """Nothing was drawn; the text says why."""


class Rows(NamedTuple):
    """The rows to draw: the width of the text and the height of one row in pixels of `bpp` bits.
    `why_not`: why these glasses show nothing that is drawn.
    """

    width: int
    height: int
    bpp: int
    why_not: str = ""


_Key = tuple[str, Rows, int | None]


class DrawnText:
    """One per daemon. `fonts`: more folders with Noto fonts."""

    def __init__(
        self,
        fonts: Sequence[str] = (),
        *,
        deadline_s: float = DEADLINE_S,
        start_s: float = START_S,
        idle_s: float = IDLE_S,
        command: Sequence[str] | None = None,
    ) -> None:
        self._fonts = tuple(fonts)
        # -I: as for the voice
        own = (sys.executable, "-I", "-m", "edge.display.image_worker", str(idle_s))
        self._worker = ResidentWorker(
            "text",
            command or own,
            deadline_s=deadline_s,
            start_s=start_s,
            max_answer=MAX_ANSWER,
        )
        self._idle_s = idle_s
        self._known: dict[_Key, tuple[DrawnRow, ...]] = {}
        self._forgetting: asyncio.TimerHandle | None = None
        self._rests_until = float("-inf")

    async def rows_of(
        self, texts: Iterable[str], face: Typeface, rows: Rows, *, whole: bool = False
    ) -> Drawn:
        """Draw the paragraphs of some texts that a font cannot write; with one of these, all of
        them if `whole`. Raises `CannotDraw`.
        """
        found = [line for text in texts for line in paragraphs_of(text)[0] if line.strip()]
        wanted = [line for line in found if needs_drawing(line, face.has_glyph)]
        if not wanted:
            return {}
        wanted = list(dict.fromkeys(found if whole else wanted))
        drawn = await self.draw(wanted, rows)
        return {
            line: set_
            if is_right_to_left(line)
            else tuple(_native(row, face, rows) for row in set_)
            for line, set_ in zip(wanted, drawn, strict=True)
        }

    async def draw(
        self, paragraphs: Sequence[str], rows: Rows, base: int | None = None
    ) -> list[tuple[DrawnRow, ...]]:
        """Draw paragraphs in rows; `base` is their direction (0: from left to right), by default
        the one of their first letter. Raises `CannotDraw`.
        """
        keys = dict.fromkeys((text, rows, base) for text in paragraphs)
        here = {key: self._known[key] for key in keys if key in self._known}
        if absent := [key for key in keys if key not in here]:
            here |= zip(absent, await self._ask(absent, rows, base), strict=True)
        self._remember(here)
        return [here[text, rows, base] for text in paragraphs]

    def _remember(self, drawn: dict[_Key, tuple[DrawnRow, ...]]) -> None:
        """Keep these, and of the others those used last, until nothing is drawn for a while."""
        for key, set_ in drawn.items():
            self._known.pop(key, None)
            self._known[key] = set_
        size = sum(map(len, self._known.values()))
        while size > REMEMBERED:
            size -= len(self._known.pop(next(iter(self._known))))
        self._forget_later()

    def _forget_later(self) -> None:
        """Forget all rows when the child ends for lack of work: up to 0.5 MiB."""
        self._cancel_forgetting()
        loop = asyncio.get_running_loop()
        self._forgetting = loop.call_later(self._idle_s, self._known.clear)

    def _cancel_forgetting(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()

    async def close(self) -> None:
        """End the child; fine when there is none."""
        self._cancel_forgetting()
        await self._worker.close()

    async def _ask(
        self, keys: Sequence[_Key], rows: Rows, base: int | None
    ) -> list[tuple[DrawnRow, ...]]:
        if rows.why_not:
            raise CannotDraw(rows.why_not)
        if not is_installed():
            raise CannotDraw(f"other scripts are not installed ({INSTALL})")
        loop = asyncio.get_running_loop()
        if loop.time() < self._rests_until:
            raise CannotDraw(_TOO_LONG)
        question = {
            "do": "set",
            "paragraphs": [{"text": text, "base": base} for text, *_ in keys],
            "width": rows.width,
            "height": rows.height,
            "bpp": rows.bpp,
            "fonts": self._fonts,
        }
        try:
            answer = json.loads(await self._worker.ask(json.dumps(question).encode()))
        except TimeoutError:
            self._rests_until = loop.time() + REST_S
            raise CannotDraw(_TOO_LONG) from None
        except (EOFError, ValueError):
            raise CannotDraw("the text could not be drawn") from None
        except OSError as e:
            raise CannotDraw(f"the text cannot be drawn now: {e.strerror}") from e
        if "rows" not in answer:
            raise CannotDraw(f"the text cannot be drawn: {answer.get('problem')} ({INSTALL})")
        return [tuple(_row(row, rows.bpp) for row in set_) for set_ in answer["rows"]]


@lru_cache(maxsize=1)
def is_installed() -> bool:
    """Return whether a child can draw at all: one that cannot is not started for each text."""
    return all(find_spec(name) for name in ("uharfbuzz", "unicode_segmentation_rs"))


def _row(row: dict[str, Any], bpp: int) -> DrawnRow:
    pixels = base64.b64decode(row["pixels"])
    size = row["x"], row["y"], row["width"], row["height"]
    tile = Tile(*size, bpp, pixels) if pixels else None
    return DrawnRow(row["text"].translate(_DIRECTIONS), tile, tuple(row["lost"]), row["clipped"])


def _native(row: DrawnRow, face: Typeface, rows: Rows) -> DrawnRow:
    """Mark a row that the glasses can write themselves: that is faster to send."""
    if needs_drawing(row.text, face.has_glyph):
        return row
    text = clean(row.text, face.has_glyph).text
    return row._replace(text=text, native=True) if face.width(text) <= rows.width else row
