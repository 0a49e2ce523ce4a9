"""A timeout that ends in TimeoutError wherever it stands: also where Python 3.11.2 would raise
CancelledError.
"""

import asyncio

import pytest

from firmware_bridge.deadlines import timeout, timeout_at


async def never():
    await asyncio.Event().wait()


async def fail():
    raise ValueError


async def in_a_failed_group(what):
    """Run `what` in a task whose TaskGroup failed while it waited for its tasks. Before 3.13
    that leaves `cancelling()` at 1.
    """
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
    except* ValueError:
        pass
    return await what()


async def overdue():
    try:
        async with timeout(0.01):
            await never()
    except TimeoutError:
        return "too late"


async def test_a_timeout_ends_in_a_timeout_error():
    assert await overdue() == "too late"


async def test_a_timeout_at_a_time_of_the_loop():
    with pytest.raises(TimeoutError):
        async with timeout_at(asyncio.get_running_loop().time() + 0.01):
            await never()


@pytest.mark.requirement("I11-time-limits")
async def test_a_timeout_after_a_failed_task_group():
    assert await in_a_failed_group(overdue) == "too late"


@pytest.mark.requirement("I11-time-limits")
async def test_a_timeout_while_a_cancelled_task_cleans_up():
    cleaned = []

    async def work():
        try:
            await never()
        finally:
            cleaned.append(await overdue())

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["too late"]


async def test_a_timeout_within_a_timeout_that_is_over():
    async def cleaning():
        try:
            await never()
        finally:
            assert await overdue() == "too late"

    with pytest.raises(TimeoutError):
        async with timeout(0.01):
            await cleaning()


@pytest.mark.parametrize("after_a_failed_group", [False, True])
async def test_a_cancellation_from_outside_stays_one(after_a_failed_group):
    """Also when the time is over in the same turn of the event loop."""
    entered = asyncio.Event()

    async def wait():
        async with timeout(60) as limit:
            entered.set()
            asyncio.get_running_loop().call_soon(limit.reschedule, 0)
            await never()

    task = asyncio.create_task(in_a_failed_group(wait) if after_a_failed_group else wait())
    await entered.wait()
    await asyncio.sleep(0)  # the limit is moved
    task.cancel()  # before it strikes
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_without_a_time_it_waits():
    async with timeout(None) as limit:
        await asyncio.sleep(0)
    assert not limit.expired()


async def test_a_limit_can_be_moved():
    with pytest.raises(TimeoutError):
        async with timeout(None) as limit:
            limit.reschedule(0)
            await never()
    assert limit.expired()


async def test_what_is_raised_inside_comes_out():
    with pytest.raises(KeyError):
        async with timeout(60):
            raise KeyError


async def test_a_timeout_error_from_inside_is_not_ours():
    with pytest.raises(TimeoutError, match="theirs"):
        async with timeout(60) as limit:
            raise TimeoutError("theirs")
    assert not limit.expired()
