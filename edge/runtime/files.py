"""Replace a file in one step: after a crash or a power cut it holds the old or the new content."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_atomic(path: Path, data: bytes, mode: int = 0o600, *, durable: bool = True) -> None:
    """Replace `path`, or create it, with `mode` less the umask. Blocking.

    Raise OSError when that fails; then the old file stands and nothing else is left. One writer of
    a file at a time. With `durable=False` the system chooses when the content reaches the disk.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        replace_in(folder, path.name, data, mode, temporary=f".{path.name}.new", durable=durable)
    finally:
        os.close(folder)


def replace_in(
    folder: int, name: str, data: bytes, mode: int = 0o600, *, temporary: str, durable: bool = True
) -> None:
    """Do the work of `write_atomic` in a folder that is open, under this temporary name."""
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)  # a crash left it
    handle = os.open(temporary, _NEW, mode, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(handle)
            ours = os.fstat(handle).st_nlink > 0  # else another writer has deleted it
        if ours:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    if not ours:
        raise OSError(errno.EBUSY, "another process is writing it too", name)
    if durable:
        os.fsync(folder)


def sync_directory(path: Path) -> None:
    """Make the names of new files in this folder survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
