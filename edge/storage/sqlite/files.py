"""Put the files of a damaged database aside, and delete the oldest of too many."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

KEPT_ASIDE: Final = 3
KEPT_ASIDE_BYTES: Final = 128 * 1024 * 1024
"""So many damaged databases stay, with so many bytes; the newest always does."""
_TAILS: Final = ("", "-wal", "-shm")


def set_aside(path: Path) -> Path:
    """Rename a database with WAL and index to `.bad-N`, the next name; delete the oldest."""
    older = _aside(path)
    aside = path.with_name(f"{path.name}.bad-{max(older, default=0) + 1}")
    for tail in _TAILS:
        with suppress(FileNotFoundError):
            path.with_name(path.name + tail).rename(aside.with_name(aside.name + tail))
    size = _size(aside)
    for place, number in enumerate(sorted(older, reverse=True), start=2):
        old = path.with_name(f"{path.name}.bad-{number}")
        size += _size(old)
        if place > KEPT_ASIDE or size > KEPT_ASIDE_BYTES:
            for tail in _TAILS:
                with suppress(OSError):
                    old.with_name(old.name + tail).unlink()
    return aside


def _aside(path: Path) -> set[int]:
    name = re.compile(re.escape(path.name) + r"\.bad-(\d{1,9})(-wal|-shm)?")
    found = (name.fullmatch(entry.name) for entry in path.parent.iterdir())
    return {int(match[1]) for match in found if match}


def _size(path: Path) -> int:
    total = 0
    for tail in _TAILS:
        with suppress(OSError):
            total += path.with_name(path.name + tail).stat().st_size
    return total
