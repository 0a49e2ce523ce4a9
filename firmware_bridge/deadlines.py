"""Timeouts that also work on Python 3.11.2 (Debian 12).

Before Python 3.11.4, `asyncio.timeout` raises CancelledError instead of TimeoutError in a task that
was cancelled before (one that is cleaning up, or whose TaskGroup failed), so code after the timeout
is skipped. All timeouts of the project come from here; `tests/test_architecture.py` checks it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager


@asynccontextmanager
async def timeout_at(when: float | None) -> AsyncIterator[asyncio.Timeout]:
    """Like `asyncio.timeout_at`: cancel the body at `when` (loop time) and raise TimeoutError."""
    task = asyncio.current_task()
    assert task is not None, "a timeout works inside a task"
    before = task.cancelling()
    limit = asyncio.timeout_at(when)
    try:
        async with limit:
            yield limit
    except asyncio.CancelledError as cancelled:
        # nobody else has cancelled us meanwhile
        if limit.expired() and task.cancelling() <= before:
            raise TimeoutError from cancelled
        raise


def timeout(seconds: float | None) -> AbstractAsyncContextManager[asyncio.Timeout]:
    """Like `asyncio.timeout`: cancel the body after `seconds` and raise TimeoutError."""
    return timeout_at(None if seconds is None else asyncio.get_running_loop().time() + seconds)
