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
"""For saying goodbye to the broker."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def examining(
    machine: Machine, *, config: Path | None = None, named: bool = False
) -> AsyncIterator[tuple[ExaminedMachine, AsyncIterator[ReportEntry]]]:
    """Examine `machine`: inside, the entries come in order, and the patient knows more with
    each.
    """
    patient = ExaminedMachine(machine, config=config, env=machine.env)
    ladder = CheckRunner(every(patient, named=named), now=machine.clock.boot)
    try:
        async with ladder.climbing() as entries:
            yield patient, entries
    finally:
        with suppress(TimeoutError):
            async with timeout(LEAVE_S):
                await patient.closing.aclose()
