"""Tasks that live and end together: the first one that ends, ends them all.

`race` is not a TaskGroup that fails: before Python 3.13 a group whose child fails while it is
itself being cancelled raises only the failure. The cancellation is lost, and a daemon that is to
stop would start again.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Finished(Struct, Generic[T], frozen=True):
    """The work came first, with this result."""

    value: T


class Tasks:
    """What a service runs beside itself, for objects that are built before it runs."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None

    @property
    def open(self) -> bool:
        return self._group is not None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Be open inside of this; end as a TaskGroup does."""
        try:
            async with asyncio.TaskGroup() as self._group:
                yield
        finally:
            self._group = None

    def create_task(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        assert self._group is not None, "only while it is open"
        return self._group.create_task(work, name=name)


async def race(*works: Coroutine[Any, Any, None]) -> None:
    """Run all until the first ends; cancel the others, wait for them, raise what it raised.

    Cancelled itself, it cancels them all and stays cancelled, whatever they raise meanwhile.
    """
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancelling = False

    async def carry(work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            if not cancelling and not ended.done():  # else the race would never end
                name = getattr(work, "__qualname__", work)
                why = f"{name} ended in a cancellation that nobody asked for"
                ended.set_exception(RuntimeError(why))
            raise
        except Exception as error:  # noqa: BLE001 - raised below, by the race itself
            if not ended.done():
                ended.set_exception(error)
        else:
            if not ended.done():
                ended.set_result(None)

    try:
        async with asyncio.TaskGroup() as group:
            runners = [group.create_task(carry(work)) for work in works]
            try:
                await asyncio.wait([ended])
            finally:
                cancelling = True
            for runner in runners:
                runner.cancel()
    finally:
        if ended.done():
            ended.exception()  # retrieved, also when this is cancelled
    ended.result()


async def run_unless(
    work: Coroutine[Any, Any, T], stop: Coroutine[Any, Any, Any]
) -> Finished[T] | None:
    """Return what `work` gives; None if `stop` returns first, after `work` is cancelled."""
    found: list[Finished[T]] = []

    async def keep() -> None:
        found.append(Finished(await work))

    await race(keep(), stop)
    return found[0] if found else None
