"""Tables in a text: neighbouring lines whose cells are separated by tabs. They are set as columns
where they fit a lens, else as lines with a point between the cells.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from edge.core.words.drawable_text import is_right_to_left, isolate

TAB: Final = "\t"
GAP: Final = 12
"""Pixels between two columns."""
BETWEEN: Final = " · "


class Room(NamedTuple):
    """The room for a table: pixels, columns, and bytes of a row. `measure` returns the width of a
    text in pixels, `writes` whether the font can write it.
    """

    width: float
    columns: int
    size: int
    measure: Callable[[str], float]
    writes: Callable[[str], bool]


class CellRow(NamedTuple):
    """A row of a table: its cells, and where each begins. `size`: its bytes, with the spaces that
    reach the columns on glasses that cannot place a text.
    """

    cells: tuple[str, ...]
    starts: tuple[int, ...]
    end: float
    size: int


def settle(text: str, room: Room) -> str:
    """Return a text in which tabs are left only in tables that can be set as columns."""
    if TAB not in text:
        return text
    lines: list[str] = []
    for is_table, group in groups(text.split("\n")):
        lines += [_joined(line) for line in group] if is_table and not _fits(group, room) else group
    return "\n".join(lines)


def groups(lines: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    """Yield the tables of a text, and the lines between them."""
    for is_table, group in groupby(lines, key=lambda line: TAB in line.strip()):
        yield is_table, list(group)


def rows_of(rows: Sequence[Sequence[str]], measure: Callable[[str], float]) -> list[CellRow]:
    """Set a table: each column begins a gap after the widest cell of the one before it."""
    starts = [0]
    for column in range(max(map(len, rows)) - 1):
        widest = max(measure(row[column]) for row in rows if column < len(row))
        starts.append(math.ceil(starts[-1] + widest + GAP))
    return [_row(tuple(row), tuple(starts[: len(row)]), measure) for row in rows]


def cells_of(line: str) -> list[str]:
    """Return the cells of a line of a table, without empty ones at its end."""
    return [" ".join(cell.split()) for cell in line.rstrip().split(TAB)]


def _row(
    cells: tuple[str, ...], starts: tuple[int, ...], measure: Callable[[str], float]
) -> CellRow:
    end, spaces = 0.0, 0.0
    for cell, start in zip(cells, starts, strict=True):
        spaces += (start - end) / measure(" ")
        end = start + measure(cell)
    return CellRow(cells, starts, end, len("".join(cells).encode()) + math.ceil(spaces) + 1)


def _fits(table: Sequence[str], room: Room) -> bool:
    if max(line.count(TAB) for line in table) >= room.columns:
        return False
    if not all(room.writes(cell) for line in table for cell in cells_of(line)):
        return False
    rows = rows_of([cells_of(line) for line in table], room.measure)
    return all(row.end <= room.width and row.size <= room.size for row in rows)


def _joined(line: str) -> str:
    cells = [cell for cell in cells_of(line) if cell]
    if any(ch.isalpha() and not is_right_to_left(ch) for ch in line):
        cells = [isolate(cell) for cell in cells]  # both directions: the cells keep their order
    return BETWEEN.join(cells)
