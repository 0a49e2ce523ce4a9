"""The real daemon, with a wall clock that can be stepped while it runs: `python -m
tests.chaos.daemon CONFIG OFFSET [BOOT]`.

OFFSET is a file of eight bytes, a double: seconds to add to the wall clock. BOOT is another boot's
id, whose clock begins now: a machine that was off meanwhile. Everything else is what `glassd run`
does.
"""

import mmap
import os
import struct
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from edge.commands.shared.run_loop import run_until_signal
from edge.config import load
from edge.daemon.app import Daemon
from edge.runtime import logs


class SteppedWall:
    """`time.time()` and what the file says now."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._shared = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)

    def __call__(self) -> float:
        return time.time() + struct.unpack("<d", self._shared[:8])[0]


def main() -> int:
    config, offset, *boot = sys.argv[1:]
    found = load.load(Path(config), os.environ)
    redact = logs.set_up(found.log.level, os.environ)

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            daemon = Daemon(found, os.environ, hide=redact.hide)
            daemon.clock = replace(daemon.clock, wall=SteppedWall(Path(offset)))
            if boot:
                began = daemon.clock.boot()
                daemon.clock = replace(
                    daemon.clock,
                    boot=lambda: time.clock_gettime(time.CLOCK_BOOTTIME) - began,
                    boot_id=boot[0],
                )
            await daemon.open(stack)
            await daemon.run()

    return run_until_signal(serve, fast=True)


if __name__ == "__main__":
    sys.exit(main())
