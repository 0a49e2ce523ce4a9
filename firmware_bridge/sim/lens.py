"""The simulated display: a framebuffer drawn from the messages received over the air."""

import base64
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from PIL import Image

from firmware_bridge.messages import MAX_LINES, ShowPage, TextLine, Tile, UpdatePage
from firmware_bridge.metrics import metrics_for
from firmware_bridge.pixels import braille, unpack
from firmware_bridge.sim.font import NAME, SIZES, LensFont

TERMINAL_COLUMNS: Final = 100


@dataclass(frozen=True, slots=True)
class Drawn:
    """Effect of one command: pixels lit now, and lines or tiles that did not fit completely."""

    lit: int
    clipped: int = 0


class SimLens:
    """One display: `scene`, `page`, `lines` as decoded, `image` as drawn. Text keeps `margin`
    pixels away from both edges; pictures do not. `glyphs`: what it draws beyond its font.
    """

    def __init__(
        self,
        width: int,
        height: int,
        bpp: int,
        lines: int,
        *,
        font: str = NAME,
        margin: int = 0,
        glyphs: str = "",
    ) -> None:
        self.width, self.height, self.bpp, self.rows = width, height, bpp, lines
        self._margin = margin
        known = font if font in SIZES else NAME
        self._font = LensFont(SIZES[known], glyphs)
        rows = metrics_for(known)
        self._line_height, self._baseline = rows.line_height, rows.baseline
        self._image = Image.new("L", (width, height))
        self._over: tuple[Image.Image, tuple[TextLine, ...]] | None = None
        self._lines: tuple[TextLine, ...] = ()
        self.scene: str | None = None
        self.page = 0
        self.pages = 0

    # -------------------------------------------------------------- commands

    def show(self, page: ShowPage) -> Drawn:
        """Replace everything."""
        self._image = Image.new("L", (self.width, self.height))
        self.scene, self.page, self.pages = page.scene, page.page, page.pages
        clipped = sum(not self._put_tile(tile) for tile in page.tiles)
        clipped += self._put_lines(self._image, page.lines)
        self._lines = page.lines
        return Drawn(self.lit, clipped)

    def update(self, change: UpdatePage) -> Drawn | None:
        """Change rows and tiles of the current page; None if another page (or none) is shown."""
        if (change.scene, change.page) != (self.scene, self.page):
            return None
        rows = {line.row for line in change.lines}
        for row in rows:
            top, height = row * self._line_height, self._line_height
            self._image.paste(0, (0, top, self.width, top + height))
        clipped = sum(not self._put_tile(tile) for tile in change.tiles)
        clipped += self._put_lines(self._image, change.lines)
        kept = tuple(line for line in self._lines if line.row not in rows)
        self._lines = kept + tuple(line for line in change.lines if line.text)
        return Drawn(self.lit, clipped)

    def clear(self) -> Drawn:
        """Clear the display."""
        self._image = Image.new("L", (self.width, self.height))
        self.scene, self.page, self.pages, self._lines = None, 0, 0, ()
        return Drawn(0)

    def ask(self, lines: tuple[TextLine, ...]) -> Drawn:
        """Show a question over the page; `answered` removes it."""
        image = Image.new("L", (self.width, self.height))
        clipped = self._put_lines(image, lines)
        self._over = (image, lines)
        return Drawn(self.lit, clipped)

    def answered(self) -> None:
        self._over = None

    # -------------------------------------------------------------- what a wearer sees

    @property
    def image(self) -> Image.Image:
        return self._image if self._over is None else self._over[0]

    @property
    def asking(self) -> bool:
        return self._over is not None

    @property
    def lines(self) -> tuple[TextLine, ...]:
        """The lines on the lens, top down and left to right, exactly as decoded."""
        shown = self._lines if self._over is None else self._over[1]
        return tuple(
            sorted((line for line in shown if line.text), key=lambda line: (line.row, line.x))
        )

    def text(self) -> list[str]:
        """One string per row, down to the last used one; two spaces join pieces of a row."""
        rows: dict[int, list[str]] = {}
        for line in self.lines:
            rows.setdefault(line.row, []).append(line.text)
        return ["  ".join(rows.get(row, ())) for row in range(max(rows, default=-1) + 1)]

    def png(self, path: Path) -> Path:
        """Write the framebuffer atomically: readers see the previous or the new file."""
        beside = path.with_suffix(".tmp")
        self.to_image().save(beside, format="PNG")
        return beside.replace(path)

    def to_image(self) -> Image.Image:
        """The picture at this lens's depth: with one bit it is black and white."""
        image = self.image
        return image if self.bpp > 1 else image.point(lambda v: 255 if v else 0, mode="1")

    def braille(self, columns: int = TERMINAL_COLUMNS) -> list[str]:
        """Return the picture in braille dots, at most `columns` wide: 2 × 4 dots a character."""
        return braille(self.image.tobytes(), self.width, columns)

    def framed(self) -> list[str]:
        """Return the decoded text in a frame, for terminals without braille."""
        rows = self.text()
        rows += [""] * (self.rows - len(rows))
        width = max([48, *map(len, rows)])
        return [
            "╭" + "─" * (width + 2) + "╮",
            *(f"│ {row:<{width}} │" for row in rows),
            "╰" + "─" * (width + 2) + "╯",
        ]

    # -------------------------------------------------------------- drawing

    @property
    def lit(self) -> int:
        """Number of lit pixels."""
        return self.width * self.height - self.image.histogram()[0]

    def _put_lines(self, image: Image.Image, lines: Iterable[TextLine]) -> int:
        return sum(not self._put_line(image, line) for line in lines)

    def _put_line(self, image: Image.Image, line: TextLine) -> bool:
        if line.row >= self.rows:
            return False
        x = self._margin + line.x
        baseline = line.row * self._line_height + self._baseline
        self._font.draw(image, line.text, x, baseline, aliased=self.bpp == 1)
        return x + self._font.width(line.text) <= self.width - self._margin

    def _put_tile(self, tile: Tile) -> bool:
        levels = unpack(tile.pixels, tile.width, tile.bpp)
        top = (1 << tile.bpp) - 1
        if tile.bpp > self.bpp:  # a lens of fewer bits shows the nearest of its own levels
            own = (1 << self.bpp) - 1
            levels = bytes(round(level * own / top) for level in levels)
            top = own
        pixels = bytes(level * 255 // top for level in levels)
        self._image.paste(Image.frombytes("L", (tile.width, tile.height), pixels), (tile.x, tile.y))
        return tile.x + tile.width <= self.width and tile.y + tile.height <= self.height


T = TypeVar("T")
LENS_SIZE: Final = {"width": 576, "height": 136, "bpp": 1, "lines": 5}
"""Size of a lens whose capabilities do not say."""


def draw_png(lens: Mapping[str, Any], capabilities: Mapping[str, Any]) -> bytes:
    """Draw the untrusted answer of `GET /v1/lens`: `drawn` exactly, else its rows of text.

    What does not fit the lens is left out.
    """
    width, height, bpp, rows = (
        _number(capabilities, f"display.{key}", default) for key, default in LENS_SIZE.items()
    )
    text_width = _number(capabilities, "display.text_width", width)
    picture = SimLens(
        width,
        height,
        bpp if bpp in (1, 2, 4) else 1,
        rows,
        font=str(_known(capabilities, "display.font") or NAME),
        margin=margin_of(width, text_width),
    )
    lines, tiles = _drawn(lens)
    if lines or tiles:
        picture.show(
            ShowPage(scene=str(lens.get("scene") or "lens"), lines=lines[:MAX_LINES], tiles=tiles)
        )
    out = io.BytesIO()
    picture.to_image().save(out, format="PNG")
    return out.getvalue()


def _drawn(lens: Mapping[str, Any]) -> tuple[tuple[TextLine, ...], tuple[Tile, ...]]:
    drawn = lens.get("drawn")
    if not isinstance(drawn, Mapping):
        return tuple(
            TextLine(row, _text(line)) for row, line in enumerate((lens.get("lines") or ())[:32])
        ), ()
    return tuple(_read(drawn.get("lines"), _line)), tuple(_read(drawn.get("tiles"), _tile))


def _read(sent: Any, make: Callable[[Mapping[str, Any]], T]) -> Iterator[T]:
    for each in sent if isinstance(sent, list) else ():
        with suppress(KeyError, TypeError, ValueError):
            yield make(each)


def _line(sent: Mapping[str, Any]) -> TextLine:
    return TextLine(int(sent["row"]), _text(sent["text"]), int(sent["x"]))


def _tile(sent: Mapping[str, Any]) -> Tile:
    x, y, width, height, bpp = (int(sent[key]) for key in ("x", "y", "width", "height", "bpp"))
    return Tile(x, y, width, height, bpp, base64.b64decode(sent["pixels"], validate=True))


def _text(sent: Any) -> str:
    return " ".join(str(sent).split("\n"))


def margin_of(width: int, text_width: int) -> int:
    """Return the pixels at the left and right of text on a lens that is wider than its text."""
    return max(0, (width - text_width) // 2)


def _known(known: Mapping[str, Any], key: str) -> Any:
    value = known.get(key)
    return value.get("value") if isinstance(value, Mapping) else value


def _number(known: Mapping[str, Any], key: str, default: int) -> int:
    found = _known(known, key)
    return found if isinstance(found, int) and 0 < found <= 4096 else default
