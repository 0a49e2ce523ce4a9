"""A race: the first end ends all, its error is ours, and a cancellation is never lost."""

import asyncio

import pytest

from edge.runtime.first_completed import Finished, Tasks, race, run_unless


async def test_the_first_to_end_cancels_the_others_and_waits_for_their_cleanup():
    cleaned = []

    async def long():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    async def short():
        await asyncio.sleep(0)

    await race(long(), short())
    assert cleaned == [True]


async def test_the_first_error_is_raised_bare_and_later_ones_are_echoes():
    async def fails():
        await asyncio.sleep(0)
        raise ValueError("first")

    async def echoes():
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("second")

    with pytest.raises(ValueError, match="first"):
        await race(fails(), echoes())


async def test_a_cancellation_stays_one_even_when_a_runner_fails_at_that_moment():
    async def fails_when_cancelled():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("cleanup failed") from None

    running = asyncio.ensure_future(race(fails_when_cancelled(), asyncio.Event().wait()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert running.cancelled()


async def test_after_a_failed_race_the_task_is_not_marked_as_being_cancelled():
    async def fails():
        raise ValueError

    with pytest.raises(ValueError):
        await race(fails(), asyncio.Event().wait())
    assert asyncio.current_task().cancelling() == 0


async def test_a_cancellation_that_nobody_asked_for_ends_the_race_in_an_error():
    """A library may raise CancelledError of its own accord; before, the race then waited for
    ever.
    """

    async def stray():
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="stray ended in a cancellation that nobody asked for"):
        await race(stray(), never())


async def never():
    await asyncio.Event().wait()


async def test_work_against_a_stop_gives_its_result_or_none():
    async def soon():
        await asyncio.sleep(0)
        return 7

    cleaned = []

    async def long():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    forever = asyncio.Event().wait
    assert await run_unless(soon(), forever()) == Finished(7)
    assert (await run_unless(long(), asyncio.sleep(0)), cleaned) == (None, [True])


async def test_work_that_fails_before_its_stop_raises_its_own_error():
    async def fails():
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        await run_unless(fails(), asyncio.Event().wait())


async def test_a_services_tasks_are_open_while_it_runs_and_end_with_it():
    tasks, ended = Tasks(), asyncio.Event()

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    assert not tasks.open
    with pytest.raises(ExceptionGroup):
        async with tasks.run():
            assert tasks.open
            tasks.create_task(work(), name="work")
            await asyncio.sleep(0)
            raise LookupError
    assert ended.is_set()
    assert not tasks.open
