"""Why a folder cannot be read, so that a missing one is never taken for an empty one."""

import os
from pathlib import Path


def folder_problem(folder: Path) -> str:
    """Return why this folder cannot be used, for a person; "" when it can. Looks at the disk."""
    try:
        with os.scandir(folder):
            pass
    except FileNotFoundError:
        return "there is no such folder"
    except NotADirectoryError:
        return "this is a file, not a folder"
    except OSError as e:
        return f"cannot be read: {e.strerror}"
    return "" if os.access(folder, os.X_OK) else "its files cannot be opened: Permission denied"
