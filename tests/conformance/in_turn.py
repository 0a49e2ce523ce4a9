"""The suite starts all its client scenarios at once, each a Python with the SDK in it; here they
wait for their turn.

It imports nothing heavy before: two at a time are quicker than thirty-two, and need a
sixteenth of the memory.
"""

import asyncio
import fcntl
import os
import sys
import time
from pathlib import Path
from typing import IO

SLOTS = "GLASSD_CONFORMANCE_SLOTS"
"""A folder for the locks; without it nobody waits."""
AT_ONCE = os.cpu_count() or 1
LOOK_S = 0.05


def slot(folder: Path) -> IO[str]:
    """Wait for one of the places; it is free again when this process ends."""
    places = [(folder / str(n)).open("w") for n in range(AT_ONCE)]
    while True:
        for place in places:
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            return place
        time.sleep(LOOK_S)


if __name__ == "__main__":
    held = slot(Path(os.environ[SLOTS])) if os.environ.get(SLOTS) else None
    from tests.conformance.client import main

    sys.exit(asyncio.run(main(sys.argv[-1])))
