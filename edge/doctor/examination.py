"""One examination: creates the checks, runs them in order, returns all entries."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from edge.doctor.checks import every
from edge.doctor.machine import ExaminedMachine, Machine
from edge.doctor.models import ReportEntry
from edge.doctor.runner import CheckRunner
from firmware_bridge.deadlines import timeout

LEAVE_S: Final = 1.5
"""For disconnecting from the broker."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def examining(
    machine: Machine, *, config: Path | None = None, named: bool = False
) -> AsyncIterator[tuple[ExaminedMachine, AsyncIterator[ReportEntry]]]:
    """Examine `machine`: inside, the entries come in order, and each adds to what is known of the
    machine.
    """
    examined = ExaminedMachine(machine, config=config, env=machine.env)
    runner = CheckRunner(every(examined, named=named), now=machine.clock.boot)
    try:
        async with runner.running() as entries:
            yield examined, entries
    finally:
        with suppress(TimeoutError):
            async with timeout(LEAVE_S):
                await examined.closing.aclose()
