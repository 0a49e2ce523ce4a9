"""Timeouts that also work on Python 3.11.2 (Debian 12).

Before Python 3.11.4, `asyncio.timeout` raises CancelledError instead of TimeoutError in a task that
was cancelled before (one that is cleaning up, or whose TaskGroup failed), so code after the timeout
is skipped. All timeouts of the project come from here; `tests/test_architecture.py` checks it.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from types import TracebackType


class _Limit(AbstractAsyncContextManager[asyncio.Timeout]):
    """Used once. A class, because a generator doubles what a timeout costs, and a call has five."""

    __slots__ = ("_before", "_limit", "_task")

    def __init__(self, when: float | None) -> None:
        self._limit = asyncio.timeout_at(when)

    async def __aenter__(self) -> asyncio.Timeout:
        task = asyncio.current_task()
        assert task is not None, "a timeout works inside a task"
        self._task, self._before = task, task.cancelling()
        return await self._limit.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._limit.__aexit__(kind, error, trace)
        cancelled = isinstance(error, asyncio.CancelledError)
        # nobody else has cancelled us meanwhile
        if cancelled and self._limit.expired() and self._task.cancelling() <= self._before:
            raise TimeoutError from error


def timeout_at(when: float | None) -> AbstractAsyncContextManager[asyncio.Timeout]:
    """Like `asyncio.timeout_at`: cancel the body at `when` (loop time) and raise TimeoutError."""
    return _Limit(when)


def timeout(seconds: float | None) -> AbstractAsyncContextManager[asyncio.Timeout]:
    """Like `asyncio.timeout`: cancel the body after `seconds` and raise TimeoutError."""
    return _Limit(None if seconds is None else asyncio.get_running_loop().time() + seconds)
