"""Replace a file in one step: after a crash or a power cut it holds the old or the new content."""

import os
import re
from contextlib import suppress
from pathlib import Path
from threading import get_native_id
from typing import Final

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_atomic(path: Path, data: bytes, mode: int = 0o600, *, durable: bool = True) -> None:
    """Replace `path`, or create it, with `mode` less the umask. Blocking; the last writer wins.

    Raise OSError when that fails; then the old file stands and nothing else is left.
    With `durable=False` the system chooses when the content reaches the disk.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _remove_leftovers(folder, path.name)
        temporary = f".{path.name}.{get_native_id()}.new"  # no other thread or process has it
        replace_in(folder, path.name, data, mode, temporary=temporary, durable=durable)
    finally:
        os.close(folder)


def replace_in(
    folder: int, name: str, data: bytes, mode: int = 0o600, *, temporary: str, durable: bool = True
) -> None:
    """Do the work of `write_atomic` in an open folder; nobody else uses the `temporary` name."""
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)  # a crash left it
    handle = os.open(temporary, _NEW, mode, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(handle)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    if durable:
        os.fsync(folder)


def _remove_leftovers(folder: int, name: str) -> None:
    """Delete temporary files of writers that were killed: their thread is no more."""
    temporary = re.compile(rf"\.{re.escape(name)}\.(?:(\d{{1,9}})\.)?new")
    for entry in os.listdir(folder):
        found = temporary.fullmatch(entry)
        if found and not (found[1] and _is_running(int(found[1]))):
            with suppress(FileNotFoundError):
                os.unlink(entry, dir_fd=folder)


def _is_running(thread: int) -> bool:
    try:
        os.kill(thread, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True
