"""The supervisor: a crash is survived and told, too many end the process, cancellation passes
through.
"""

import asyncio

import pytest

from edge.daemon.supervisor import CRASHES, Service, Supervisor, TooManyCrashes
from edge.runtime.bus import Bus
from edge.runtime.events import ServiceCrashed


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr("edge.daemon.supervisor.FIRST_S", 0.0)


async def test_a_crashed_service_starts_again_and_the_bus_says_so():
    bus, runs, second = Bus(), [], asyncio.Event()

    async def flaky():
        runs.append(1)
        if len(runs) == 1:
            raise RuntimeError("boom")
        second.set()
        await asyncio.Event().wait()

    supervisor = Supervisor([Service("flaky", flaky)], bus=bus, now=lambda: 0.0)
    with bus.listen() as heard:
        running = asyncio.ensure_future(supervisor.run())
        await asyncio.wait_for(second.wait(), 40)
        crash = await asyncio.wait_for(anext(aiter(heard)), 40)
    assert isinstance(crash, ServiceCrashed)
    assert crash.service == "flaky"
    assert "boom" in crash.error
    assert supervisor.services[0].state == "running"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_five_crashes_in_a_minute_end_the_process():
    async def broken():
        raise RuntimeError("always")

    supervisor = Supervisor([Service("broken", broken)], bus=Bus(), now=lambda: 0.0)
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(supervisor.run(), 40)
    assert caught.group_contains(TooManyCrashes, match="broken crashed 5 times")


async def test_crashes_far_apart_are_survived():
    clock, runs, enough = [0.0], [], asyncio.Event()

    async def rarely_broken():
        runs.append(1)
        clock[0] += 61.0
        if len(runs) > 2 * CRASHES:
            enough.set()
            await asyncio.Event().wait()
        raise RuntimeError("now and then")

    supervisor = Supervisor([Service("rare", rarely_broken)], bus=Bus(), now=lambda: clock[0])
    running = asyncio.ensure_future(supervisor.run())
    await asyncio.wait_for(enough.wait(), 40)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_service_that_ends_by_itself_is_done_and_not_restarted():
    runs = []

    async def once():
        runs.append(1)

    supervisor = Supervisor([Service("once", once)], bus=Bus(), now=lambda: 0.0)
    await asyncio.wait_for(supervisor.run(), 40)
    assert runs == [1]
    assert supervisor.services[0].state == "done"


async def test_an_error_of_a_cleanup_does_not_start_again_what_is_being_stopped():
    started = []

    async def untidy():
        started.append(1)
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("cleanup failed")

    running = asyncio.ensure_future(
        Supervisor([Service("untidy", untidy)], bus=Bus(), now=lambda: 0.0).run()
    )
    await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running], timeout=40)
    assert running.cancelled()
    assert started == [1]


async def test_a_service_that_trips_over_a_cancelled_future_is_started_again():
    runs, again = [], asyncio.Event()

    async def trips():
        runs.append(1)
        if len(runs) == 1:
            gone = asyncio.get_running_loop().create_future()
            gone.cancel()
            await gone
        again.set()
        await asyncio.Event().wait()

    running = asyncio.ensure_future(
        Supervisor([Service("trips", trips)], bus=Bus(), now=lambda: 0.0).run()
    )
    await asyncio.wait_for(again.wait(), 40)
    running.cancel()
    await asyncio.wait([running], timeout=40)
    assert running.cancelled()


async def test_services_that_need_the_others_at_their_end_stop_before_them():
    stopped = []

    def service(name):
        async def run():
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                stopped.append(name)

        return Service(name, run)

    services = [service(name) for name in ("link", "lens", "microphone")]
    first = ("microphone", "lens")
    supervisor = Supervisor(services, bus=Bus(), now=lambda: 0.0, stop_first=first)
    running = asyncio.ensure_future(supervisor.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stopped == ["microphone", "lens", "link"]


async def test_a_service_that_does_not_stop_in_time_holds_up_no_stop(monkeypatch):
    monkeypatch.setattr("edge.daemon.supervisor.LAST_WORK_S", 0.05)
    link_is_gone = asyncio.Event()

    async def link():
        try:
            await asyncio.Event().wait()
        finally:
            link_is_gone.set()

    async def lens():
        try:
            await asyncio.Event().wait()
        finally:
            await link_is_gone.wait()

    services = [Service("link", link), Service("lens", lens)]
    supervisor = Supervisor(services, bus=Bus(), now=lambda: 0.0, stop_first=("lens",))
    running = asyncio.ensure_future(supervisor.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 40)
