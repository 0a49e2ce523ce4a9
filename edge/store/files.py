"""Two things done to a database's files from outside: making a new name durable, and putting a damaged one aside.

Knows nothing of what is in them.
"""

import os
from contextlib import suppress
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Make a new file's name survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_aside(path: Path) -> Path:
    """Rename a database, its WAL and its index to the next free `.bad-N`; gives the new name."""
    number = 1
    while (aside := path.with_name(f"{path.name}.bad-{number}")).exists():
        number += 1
    path.rename(aside)
    for tail in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + tail).rename(aside.with_name(aside.name + tail))
    return aside
