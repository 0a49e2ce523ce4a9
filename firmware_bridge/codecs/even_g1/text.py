"""Text pages of the Even G1: a page ↔ packets 4E.

Lines are already fitted. The glasses cannot place text at a pixel, so columns become spaces.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from firmware_bridge.codecs.even_g1.wire import (
    CHUNKED,
    PAGE_BYTES,
    STOCK,
    Dialect,
    Op,
    TextStatus,
    split,
)
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import MAX_LINES, PageState, ShowPage, TextLine

HEAD: Final = CHUNKED[Op.TEXT][2]
_BYTE: Final = 255
_STATES: Final = {5: PageState.TURNED, 6: PageState.NETWORK_ERROR}
"""High half of the status byte; all others show a page."""
_GAP: Final = re.compile(r" {3,}")


def lay_out(lines: Iterable[TextLine], width: Callable[[str], float]) -> str:
    """Lay out rows and columns as the single text the glasses take.

    LF ends each row, empty rows are LFs, columns are reached by spaces. A piece starts at its
    column or up to one space earlier, so that text ending at the edge stays on the lens, and never
    inside the previous piece. Where only the last row has a gap, that of a page number, it is
    narrower on a page that would have too many bytes.
    """
    rows: dict[int, list[TextLine]] = {}
    for line in lines:
        rows.setdefault(line.row, []).append(line)
    last = max(rows, default=-1)
    texts = [_row(rows.get(row, []), width) for row in range(last + 1)]
    over = sum(len(text.encode()) + 1 for text in texts) - PAGE_BYTES
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


def cut(
    text: str,
    number: int,
    *,
    page: int,
    pages: int,
    status: TextStatus,
    max_packet: int,
    dialect: Dialect = STOCK,
) -> tuple[bytes, ...]:
    """Return the packets of one page, cut by bytes: the glasses join them before decoding."""
    data = text.encode() or b"\n"
    room = min(dialect.text_chunk, max_packet - HEAD)
    pieces = split(data, room, "text")
    first = 1 - dialect.page_base
    here, last = min(page - first, _BYTE), min(pages, _BYTE)
    return tuple(
        bytes((Op.TEXT, number & 0xFF, len(pieces), index, status, 0, 0, here, last)) + piece
        for index, piece in enumerate(pieces)
    )


def read_page(data: bytes, packet: bytes) -> ShowPage:
    """Return the page of a joined text and its last packet; counts begin at 0 or 1.

    Raises `RemoteViolation`.
    """
    rows = data.decode(errors="replace").replace("\0", "").removesuffix("\n").split("\n")
    if len(rows) > MAX_LINES:
        raise RemoteViolation(Violation.OVERSIZED, f"{len(rows)} rows")
    lines = tuple(TextLine(row, line) for row, line in enumerate(rows) if line.strip())
    here = max(1, packet[7])
    state = _STATES.get(packet[4] >> 4, PageState.PLAIN)
    return ShowPage("g1", here, max(here, packet[8]), lines, state=state)
