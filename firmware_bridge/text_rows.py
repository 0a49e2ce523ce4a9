"""Fitted lines → the one text that some glasses take for a page: columns become spaces."""

import re
from collections.abc import Callable, Iterable
from typing import Final

from firmware_bridge.messages import TextLine

_GAP: Final = re.compile(r" {3,}")


def lay_out(lines: Iterable[TextLine], width: Callable[[str], float], page_bytes: int) -> str:
    """Lay out rows and columns as a single text, for glasses that cannot place text at a pixel.

    LF ends each row, empty rows are LFs, columns are reached by spaces. A piece starts at its
    column or up to one space earlier, so that text ending at the edge stays on the lens, and never
    inside the previous piece. Where only the last row has a gap, that of a page number, it is
    narrower on a page that would have more than `page_bytes`.
    """
    rows: dict[int, list[TextLine]] = {}
    for line in lines:
        rows.setdefault(line.row, []).append(line)
    last = max(rows, default=-1)
    texts = [_row(rows.get(row, []), width) for row in range(last + 1)]
    over = sum(len(text.encode()) + 1 for text in texts) - page_bytes
    if over > 0 and not any(len(rows.get(row, ())) > 1 for row in range(last)):
        texts[-1] = _GAP.sub(lambda gap: " " * max(2, len(gap[0]) - over), texts[-1])
    return "".join(f"{text}\n" for text in texts)


def _row(pieces: list[TextLine], width: Callable[[str], float]) -> str:
    text = ""
    for piece in sorted(pieces, key=lambda piece: piece.x):
        gap = piece.x - (width(text) if text else 0)
        spaces = max(int(gap // width(" ")), 1 if text else 0)
        text += " " * spaces + piece.text
    return text
