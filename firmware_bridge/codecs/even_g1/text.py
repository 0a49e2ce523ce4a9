"""Text pages of the Even G1: a page ↔ packets 4E.

Lines are already fitted. The glasses cannot place text at a pixel, so columns become spaces.
"""

from collections.abc import Callable, Iterable
from typing import Final

from firmware_bridge import text_rows
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


def lay_out(lines: Iterable[TextLine], width: Callable[[str], float]) -> str:
    """Lay out rows and columns as the single text the glasses take."""
    return text_rows.lay_out(lines, width, PAGE_BYTES)


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
