"""Lays the recorded lenses out on sheets that a person can look through."""

from collections.abc import Iterator
from pathlib import Path

import font_source_sans_pro
from PIL import Image, ImageDraw, ImageFont

from tests.lens_sheet.film import Frame, Take

LENS = (576, 136)
CAPTION, GAP, COLUMNS, ROWS = 20, 8, 2, 10
MOST_FRAMES = 6
"""Pictures of one situation."""
_PAPER, _INK, _ALARM = (28, 28, 32), (200, 200, 200), (255, 110, 90)
_LIT = (120, 255, 150)


def write(takes: list[Take], folder: Path) -> list[Path]:
    """Write `sheet-1.png` …, twenty lenses each."""
    for old in folder.glob("sheet-*.png"):
        old.unlink()
    cells = list(_cells(takes))
    size = COLUMNS * ROWS
    return [
        _sheet(cells[at : at + size], folder / f"sheet-{at // size + 1}.png")
        for at in range(0, len(cells), size)
    ]


def _cells(takes: list[Take]) -> Iterator[tuple[Frame, str]]:
    for take in takes:
        frames = take.lit[:MOST_FRAMES]
        for number, frame in enumerate(frames, 1):
            part = f" {number}/{len(take.lit)}" if len(take.lit) > 1 else ""
            last = "  " + _outcome(take) if number == len(frames) else ""
            yield frame, f"{take.name}{part}  {frame.seconds:.1f} s{last}"
        if not frames:
            yield Frame(Image.new("L", LENS), (), 0.0, until=0.0), f"{take.name}  {_outcome(take)}"


def _outcome(take: Take) -> str:
    heard = [f"heard for {seconds:.1f} s" for seconds in take.spoken_s]
    return ", ".join([*heard, *take.deliveries])


def _sheet(cells: list[tuple[Frame, str]], path: Path) -> Path:
    wide, high = LENS[0] + GAP, LENS[1] + CAPTION + GAP
    rows = -(-len(cells) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * wide + GAP, rows * high + GAP), _PAPER)
    canvas = ImageDraw.Draw(sheet)
    font = ImageFont.truetype(font_source_sans_pro.SourceSansProSemibold, 13)
    for at, (frame, caption) in enumerate(cells):
        x, y = GAP + at % COLUMNS * wide, GAP + at // COLUMNS * high
        wrong = "; ".join(frame.problems)
        said = _plain(f"{caption}  {wrong}" if wrong else caption)
        while font.getlength(said) > LENS[0]:
            said = said[:-2].rstrip("…") + "…"
        canvas.text((x, y), said, fill=_ALARM if wrong else _INK, font=font)
        sheet.paste((0, 0, 0), (x, y + CAPTION, x + LENS[0], y + CAPTION + LENS[1]))
        sheet.paste(_LIT, (x, y + CAPTION), frame.image.crop((0, 0, *LENS)))
    sheet.save(path)
    return path


def _plain(text: str) -> str:
    """Name what the font of the captions lacks, so that no box on a sheet is a caption's."""
    return "".join(ch if ch < "\u0250" or ch in "…→" else f"U+{ord(ch):04X}" for ch in text)
