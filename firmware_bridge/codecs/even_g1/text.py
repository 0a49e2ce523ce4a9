"""Text pages of the Even G1: a page ↔ packets 4E.

Lines are already fitted. The glasses cannot place text at a pixel, so columns become spaces.
"""

from collections.abc import Callable, Iterable
from typing import Final

from firmware_bridge.codecs.even_g1.wire import STOCK, Dialect, Op, TextStatus
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import MAX_LINES, ShowPage, TextLine

HEAD: Final = 9
_MOST_PACKETS: Final = 255
_BYTE: Final = 255


def lay_out(lines: Iterable[TextLine], width: Callable[[str], float]) -> str:
    """Lay out rows and columns as the single text the glasses take.

    LF ends each row, empty rows are LFs, columns are reached by spaces. A piece starts at its
    column or up to one space earlier, so that text ending at the edge stays on the lens, and never
    inside the previous piece.
    """
    rows: dict[int, list[TextLine]] = {}
    for line in lines:
        rows.setdefault(line.row, []).append(line)
    return "".join(
        _row(rows.get(row, []), width) + "\n" for row in range(max(rows, default=-1) + 1)
    )


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
    pieces = [data[at : at + room] for at in range(0, len(data), room)]
    if len(pieces) > _MOST_PACKETS:
        raise CommandRefused(
            "too_big", f"{len(data)} bytes of text; {_MOST_PACKETS * room} fit at this MTU"
        )
    first = 1 - dialect.page_base
    here, last = min(page - first, _BYTE), min(pages, _BYTE)
    return tuple(
        bytes((Op.TEXT, number & 0xFF, len(pieces), index, status, 0, 0, here, last)) + piece
        for index, piece in enumerate(pieces)
    )


class TextIn:
    """Joins a page's packets, duplicates included; packet 0 or a new number starts a page."""

    def __init__(self) -> None:
        self._number = -1
        self._total = 0
        self._pieces: dict[int, bytes] = {}

    def add(self, packet: bytes) -> ShowPage | None:
        """Add a packet; return the page when complete, else None. Raises `RemoteViolation`."""
        if len(packet) < HEAD:
            raise RemoteViolation(Violation.TRUNCATED, f"text packet of {len(packet)} bytes")
        number, total, index = packet[1:4]
        if not index < total:
            raise RemoteViolation(Violation.BAD_ORDER, f"text packet {index} of {total}")
        if (number, total) != (self._number, self._total) or index == 0:
            self._number, self._total, self._pieces = number, total, {}
        self._pieces[index] = packet[HEAD:]
        if len(self._pieces) < total or index != total - 1:
            return None
        text = b"".join(self._pieces[at] for at in range(total)).decode(errors="replace")
        return _page(text, packet[7], packet[8])


def _page(text: str, page: int, pages: int) -> ShowPage:
    """Return the page to show. Accepts page counts from 0 and from 1."""
    rows = text.replace("\0", "").removesuffix("\n").split("\n")
    if len(rows) > MAX_LINES:
        raise RemoteViolation(Violation.OVERSIZED, f"{len(rows)} rows")
    lines = tuple(TextLine(row, line) for row, line in enumerate(rows) if line.strip())
    here = max(1, page)
    return ShowPage("g1", here, max(here, pages), lines)
