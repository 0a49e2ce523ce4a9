"""Calendars in a local folder: `NAME.ics`, or every `.ics` file in the folder `NAME`.

Runs in the child.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from edge.runtime.files import sync_directory
from tools_cache.api.calendars import PRIMARY, CalendarTrouble, Trouble

MAX_FILE: Final = 4 * 1024 * 1024
MAX_FILES: Final = 5000
MAX_TOTAL: Final = 16 * 1024 * 1024


def texts(folder: Path, name: str) -> Iterator[bytes]:
    """Return a calendar's files. Raises `CalendarTrouble` if it does not exist (the primary one may
    be empty).
    """
    _check(name)
    paths = [path for path in (folder / f"{name}.ics",) if path.is_file()]
    inside = folder / name
    if inside.is_dir():
        paths += sorted(
            p for p in inside.iterdir() if p.suffix.lower() == ".ics" and not p.name.startswith(".")
        )[:MAX_FILES]
    elif not paths and name != PRIMARY:
        raise CalendarTrouble(Trouble.UNKNOWN_CALENDAR, f"There is no calendar {name!r}")
    total = 0
    for path in paths:
        text = _read(path)
        total += len(text)
        if total > MAX_TOTAL:
            raise CalendarTrouble(
                Trouble.REFUSED, f"The calendar {name!r} is larger than {MAX_TOTAL >> 20} MiB"
            )
        yield text


def put(folder: Path, file: str, text: bytes) -> bool:
    """Write one event into the primary calendar in one step; False if it exists. Raises OSError."""
    place = folder / PRIMARY
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = place / f".{file}.{os.getpid()}"
    try:
        with half.open("xb") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        try:
            half.with_name(file).hardlink_to(half)  # unlike a rename, this never replaces a file
        except FileExistsError:
            return False
    finally:
        half.unlink(missing_ok=True)
    sync_directory(place)
    return True


def get(folder: Path, file: str) -> bytes:
    """Return an event of the primary calendar; b"" if there is none of this name. Raises OSError,
    `CalendarTrouble`.
    """
    try:
        return _read(folder / PRIMARY / file)
    except FileNotFoundError:
        return b""


def delete(folder: Path, file: str) -> None:
    """Remove an event of the primary calendar. Raises OSError."""
    place = folder / PRIMARY
    (place / file).unlink(missing_ok=True)
    sync_directory(place)


def _check(name: str) -> None:
    """Check that the name does not lead out of the folder."""
    if not name or name != name.strip(". ") or "/" in name or not name.isprintable():
        raise CalendarTrouble(Trouble.UNKNOWN_CALENDAR, f"{name!r} is no calendar's name")


def _read(path: Path) -> bytes:
    # A pipe or a device in the place of a file would be waited for.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise CalendarTrouble(Trouble.REFUSED, f"{path.name} is no file")
        text = file.read(MAX_FILE + 1)
    if len(text) > MAX_FILE:
        raise CalendarTrouble(Trouble.REFUSED, f"{path.name} is larger than {MAX_FILE >> 20} MiB")
    return text
