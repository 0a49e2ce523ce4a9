"""Replace a file in one step: after a crash or a power cut it holds the old or the new content."""

import os
from pathlib import Path

from firmware_bridge.files import replace_in, write_atomic

__all__ = ["replace_in", "sync_directory", "write_atomic"]


def sync_directory(path: Path) -> None:
    """Make the names of new files in this folder survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
