"""One piece of work against one reason to stop it. Refuses to know what either is."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finished(Generic[T]):
    """The work came first, with this result."""

    value: T


async def run_unless(
    work: Coroutine[Any, Any, T], stop: Coroutine[Any, Any, Any]
) -> Finished[T] | None:
    """Run `work` until done, or cancel it (and wait for its cleanup) as soon as `stop` returns;
    then give None.
    """
    async with asyncio.TaskGroup() as tasks:
        working, stopping = tasks.create_task(work), tasks.create_task(stop)
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        came_first = working.done()
        working.cancel()
        stopping.cancel()
    return Finished(working.result()) if came_first else None
