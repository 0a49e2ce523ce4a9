"""Reads one line that a person types, or a script pipes in, with a timeout.

It is read byte by byte, so that what follows the line stays in stdin for the next question.
"""

import os
import select
import sys
import time
from typing import Final

MAX_LINE: Final = 256


def typed(timeout_s: float) -> str | None:
    """Return the line, "" for an empty one; None at the end of the input. Raises TimeoutError."""
    fd, end, line = sys.stdin.fileno(), time.monotonic() + timeout_s, b""
    while not line.endswith(b"\n") and len(line) < MAX_LINE:
        if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            raise TimeoutError
        byte = os.read(fd, 1)
        if not byte:
            return line.decode("utf-8", "replace").strip() if line else None
        line += byte
    return line.decode("utf-8", "replace").strip()
