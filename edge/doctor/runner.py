"""Runs the checks: independent ones at the same time, each within its deadline, reported in order.

A check that fails by a bug is a failure in the report, and never ends the report.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from edge.doctor.models import Check, Finding, Mark, ReportEntry, do, fail, skip
from firmware_bridge.deadlines import timeout, timeout_at

WHOLE_S: Final = 14.0
"""For all checks together: a person waits; systemd answers within a second."""
NOT_REACHED: Final = "not reached"
_GOOD: Final = frozenset({Mark.OK, Mark.WARN})

log = logging.getLogger(__name__)


class CheckRunner:
    """Run checks in order: `async with CheckRunner(checks, now=…).running() as entries`, then
    `async for entry in entries`.
    """

    def __init__(
        self, checks: Sequence[Check], *, now: Callable[[], float], whole_s: float = WHOLE_S
    ) -> None:
        self._checks = checks
        self._now = now
        self._whole_s = whole_s
        self._done: dict[str, asyncio.Future[ReportEntry]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[AsyncIterator[ReportEntry]]:
        """Start every check; inside, the entries come in the order of the checks."""
        loop = asyncio.get_running_loop()
        self._done = {check.id: loop.create_future() for check in self._checks}
        end = loop.time() + self._whole_s
        failed: Exception | None = None
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._run(number, check, end), name=f"doctor {check.id}")
                for number, check in enumerate(self._checks, 1)
            ]
            try:
                yield self._in_order()
            except Exception as e:  # noqa: BLE001 - raised again below: out of the group, which would wrap it
                failed = e
            finally:
                for task in tasks:
                    task.cancel()
        if failed is not None:
            raise failed

    async def _in_order(self) -> AsyncIterator[ReportEntry]:
        for check in self._checks:
            yield await asyncio.shield(self._done[check.id])  # Ctrl-C must not cancel the result

    async def _run(self, number: int, check: Check, end: float) -> None:
        began = self._now()
        try:
            async with timeout_at(end):
                blocked = await self._before(check)
                began = self._now()
                finding = blocked or await self._examine(check)
        except TimeoutError:
            finding = skip(
                f"not reached within {self._whole_s:g} s: the checks before it were too slow"
            )
        entry = ReportEntry(number, check, finding, (self._now() - began) * 1000)
        self._done[check.id].set_result(entry)

    async def _before(self, check: Check) -> Finding | None:
        """Wait for the checks that come first; return a SKIP if one that is needed failed."""
        for earlier in (*check.needs, *check.after):
            entry = await asyncio.shield(self._done[earlier])
            if earlier in check.needs and entry.finding.mark not in _GOOD:
                return skip(f"{NOT_REACHED}: see {entry.number} ({entry.check.title})")
        return None

    async def _examine(self, check: Check) -> Finding:
        try:
            async with timeout(check.deadline_s):
                return await check.examine()
        except TimeoutError:
            return fail(
                f"no answer within {check.deadline_s:g} s",
                do("run it again; when it stays, see: journalctl -b -p err"),
            )
        except Exception as e:
            log.debug("check %s stumbled", check.id, exc_info=True)
            return fail(
                f"the check itself failed: {type(e).__name__}: {str(e)[:200]}",
                do("tell us: glassd doctor --bundle doctor.tar.gz"),
            )
