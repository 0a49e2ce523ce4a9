"""`asyncio.timeout` that is right on Python 3.11.2 too, which is Debian 12's own.

Before Python 3.11.4 a timeout ends in CancelledError, where TimeoutError is due, in a task that was
cancelled before: one that cleans up after its cancellation, or one whose TaskGroup has failed. What
should follow the timeout is then skipped. So every timeout of the project comes from here;
`tests/test_architecture.py` looks after that.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager


@asynccontextmanager
async def timeout_at(when: float | None) -> AsyncIterator[asyncio.Timeout]:
    """Do as `asyncio.timeout_at`: cancel what is inside at `when`, a time of the event loop,
    and raise TimeoutError.
    """
    task = asyncio.current_task()
    assert task is not None, "a timeout works inside a task"
    before = task.cancelling()
    limit = asyncio.timeout_at(when)
    try:
        async with limit:
            yield limit
    except asyncio.CancelledError as cancelled:
        if (
            limit.expired() and task.cancelling() <= before
        ):  # nobody else has cancelled us meanwhile
            raise TimeoutError from cancelled
        raise


def timeout(seconds: float | None) -> AbstractAsyncContextManager[asyncio.Timeout]:
    """Do as `asyncio.timeout`: cancel what is inside after `seconds`, and raise TimeoutError."""
    return timeout_at(None if seconds is None else asyncio.get_running_loop().time() + seconds)
