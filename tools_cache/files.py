"""Replace a file in one step: after a crash or a power cut it holds the old or the new content."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_atomic(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace `path`, or create it, with `mode` less the umask. Blocking; one writer at a time.

    Raise OSError when that fails; then the old file stands and nothing else is left.
    """
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)  # a crash left it
    handle = os.open(new, _NEW, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
            ours = os.fstat(handle).st_nlink > 0  # else another writer has deleted it
        if ours:
            new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
    if not ours:
        raise OSError(errno.EBUSY, "another process is writing it too", str(path))
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
