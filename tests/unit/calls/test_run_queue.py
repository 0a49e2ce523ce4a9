"""More calls than may run at once: they wait for their turn, in order, and none is refused
before 2,000 wait.
"""

import asyncio

import pytest
from msgspec.structs import replace

from edge.calls import run_queue
from edge.ports import InvokeCancelled, Invoked
from firmware_bridge.messages import Answer
from tests.unit.calls.orchestrator_house import CLOCK, QUICK, House, house, make
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolResponse

ROOMY = replace(QUICK, running=4, run_s=20.0, life_s=30.0)


class Slow:
    """A tool that runs until it is let go."""

    def __init__(self, h: House) -> None:
        self.started: list[str] = []
        self.go = asyncio.Event()
        self.most = self._now = 0
        h.tools.handler = self

    async def __call__(self, call, progress) -> ToolResponse:
        self.started.append(call.args.get("text", call.call_id))
        self._now += 1
        self.most = max(self.most, self._now)
        await self.go.wait()
        self._now -= 1
        return ToolResponse(data="done")

    async def running(self, count: int) -> None:
        async with asyncio.timeout(40):
            while len(self.started) < count:
                await asyncio.sleep(0.002)


def invoked(text: str, **more) -> Invoked:
    return Invoked(
        make("notes:add", {"text": text}, ttl_s=60.0, origin=CallOrigin.CLOUD, **more), "reply"
    )


def results(h: House) -> dict[str, ToolResponse]:
    return {
        call_id: answer for call_id, answer in h.uplink.answers if isinstance(answer, ToolResponse)
    }


@pytest.mark.requirement("I11-burst")
async def test_three_hundred_invocations_at_once_start_in_order_and_none_is_refused(tmp_path):
    async with house(tmp_path, limits=replace(ROOMY, running=32)) as h:
        slow = Slow(h)
        wanted = [f"{n:03d}" for n in range(300)]
        messages = [invoked(text) for text in wanted]
        for message in messages:
            h.uplink.say(message)
        await slow.running(24)
        slow.go.set()
        await h.uplink.until(lambda: len(results(h)) == 300)
        assert slow.started == wanted
        assert slow.most <= 32
        assert all(answer.ok for answer in results(h).values())
        accepted = [call_id for call_id, answer in h.uplink.answers if answer is None]
        assert accepted == [m.call.call_id for m in messages], (
            "each is accepted when it comes, not when it starts"
        )


@pytest.mark.requirement("I11-burst")
async def test_two_hundred_and_eighty_calls_of_forty_callers_are_all_answered(tmp_path):
    async with house(tmp_path, limits=replace(ROOMY, running=32)) as h:

        async def caller(number: int) -> list[ToolResponse]:
            return [
                await h.call("notes:add", {"text": f"{number}-{n}"}, ttl_s=60.0) for n in range(7)
            ]

        async with asyncio.TaskGroup() as group:
            callers = [group.create_task(caller(number)) for number in range(40)]
        assert all(answer.ok for task in callers for answer in task.result())
        assert len(h.tools.runs) == 280


@pytest.mark.requirement("I11-burst")
async def test_beyond_the_bound_an_invocation_is_refused_without_being_accepted(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(run_queue, "MOST_WAITING", 5)
    async with house(tmp_path, limits=ROOMY) as h:
        slow = Slow(h)
        messages = [invoked(str(n)) for n in range(3 + 5 + 2)]
        for message in messages:
            h.uplink.say(message)
        await h.uplink.until(lambda: len(results(h)) == 2)
        over = {m.call.call_id for m in messages[-2:]}
        assert set(results(h)) == over
        assert {r.error.code for r in results(h).values()} == {ErrorCode.RATE_LIMIT}
        assert over.isdisjoint(call_id for call_id, answer in h.uplink.answers if answer is None)
        own = await asyncio.wait_for(h.call("find:one", ttl_s=0.01), 40)
        assert own.error is None or own.error.code is not ErrorCode.RATE_LIMIT, (
            "the cloud's queue is not this machine's"
        )
        slow.go.set()
        await h.uplink.until(lambda: len(results(h)) == len(messages))


@pytest.mark.requirement("I11-burst")
async def test_local_calls_go_before_the_clouds_and_speech_before_all(tmp_path):
    async with house(tmp_path, limits=ROOMY) as h:
        slow = Slow(h)
        for n in range(6):
            h.uplink.say(invoked(f"cloud {n}"))
        await slow.running(3)
        async with asyncio.TaskGroup() as group:
            for n in range(3):
                group.create_task(h.call("notes:add", {"text": f"own {n}"}, ttl_s=60.0))
            await slow.running(4)
            group.create_task(
                h.call("notes:add", {"text": "spoken"}, origin=CallOrigin.VOICE, ttl_s=60.0)
            )
            await slow.running(5)
            assert slow.started == ["cloud 0", "cloud 1", "cloud 2", "own 0", "spoken"]
            slow.go.set()
            await slow.running(10)
        assert slow.started[5:] == ["own 1", "own 2", "cloud 3", "cloud 4", "cloud 5"]


@pytest.mark.requirement("I11-burst")
async def test_a_tool_that_calls_another_needs_no_second_place(tmp_path):
    async with house(tmp_path, limits=replace(ROOMY, running=1)) as h:

        async def outer(call, progress):
            if call.depth:
                return ToolResponse(data="inner")
            return await h.orchestrator.call(make("find:one", depth=1, origin=call.origin))

        h.tools.handler = outer
        answer = await asyncio.wait_for(h.call("notes:add", {"text": "x"}), 40)
        assert answer.data == "inner"


@pytest.mark.requirement("I11-burst")
async def test_a_waiting_call_that_expires_or_is_cancelled_never_runs(tmp_path):
    async with house(tmp_path, limits=replace(ROOMY, running=1)) as h:
        slow = Slow(h)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(h.call("notes:add", {"text": "first"}, ttl_s=60.0))
            await slow.running(1)
            late = await h.call("notes:add", {"text": "late"}, ttl_s=0.05)
            assert (late.error.code, late.error.partial_side_effects) == (
                ErrorCode.DEADLINE_EXPIRED,
                False,
            )
            off = make("notes:add", {"text": "off"}, ttl_s=60.0)
            called_off = group.create_task(h.orchestrator.call(off))
            while not h.orchestrator._queue._own:
                await asyncio.sleep(0)
            assert await h.orchestrator.cancel(off.call_id, "no need")
            assert (await called_off).error.code is ErrorCode.CANCELLED
            assert not h.orchestrator._queue._own, "it does not wait any more"
            last = group.create_task(h.call("notes:add", {"text": "last"}, ttl_s=60.0))
            slow.go.set()
        assert first.result().ok
        assert last.result().ok
        assert slow.started == ["first", "last"]


@pytest.mark.requirement("I11-burst")
async def test_the_cloud_calls_off_an_invocation_that_waits(tmp_path):
    async with house(tmp_path, limits=replace(ROOMY, running=1)) as h:
        slow = Slow(h)
        first, second = invoked("first"), invoked("second")
        for message in (first, second, InvokeCancelled(second.call.call_id, "no need")):
            h.uplink.say(message)
        await h.uplink.until(lambda: second.call.call_id in results(h))
        assert results(h)[second.call.call_id].error.code is ErrorCode.CANCELLED
        slow.go.set()
        await h.uplink.until(lambda: first.call.call_id in results(h))
        assert slow.started == ["first"]


@pytest.mark.requirement("I11-burst")
@pytest.mark.parametrize("tool", ["danger:erase", "ask:wearer"])
async def test_questions_that_nobody_answers_keep_no_other_call_waiting(tmp_path, tool):
    async with house(tmp_path, limits=replace(ROOMY, running=4)) as h:
        asked = [
            Invoked(
                make(tool, {"text": f"cloud {n}"}, ttl_s=60.0, origin=CallOrigin.CLOUD), "reply"
            )
            for n in range(5)
        ]
        for message in asked:
            h.uplink.say(message)
        async with asyncio.TaskGroup() as group:
            own = [
                group.create_task(h.call(tool, {"text": f"own {n}"}, ttl_s=60.0)) for n in range(5)
            ]
            await asyncio.wait_for(h.wearer.question(10), 40)
            h.uplink.say(message := invoked("runs"))
            await h.uplink.until(lambda: message.call.call_id in results(h))
            assert (
                await asyncio.wait_for(h.call("notes:add", {"text": "runs too"}, ttl_s=60.0), 40)
            ).ok
            for task in own:
                task.cancel()


@pytest.mark.requirement("I11-burst")
async def test_a_call_that_was_allowed_runs_although_every_place_is_taken(tmp_path):
    async with house(tmp_path, limits=replace(ROOMY, running=1)) as h:
        slow = Slow(h)
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(h.call("danger:erase", {"text": "asked"}, ttl_s=60.0))
            await h.wearer.question()
            group.create_task(h.call("notes:add", {"text": "first"}, ttl_s=60.0))
            await slow.running(1)
            h.wearer.say(Answer.ALLOW)
            await slow.running(2)
            slow.go.set()
        assert asked.result().ok
        assert h.orchestrator._queue._running == 0


async def test_waiting_time_shortens_the_life_and_is_no_duration(tmp_path):
    now = [1000.0]
    clock = replace(CLOCK, boot=lambda: now[0])
    async with house(tmp_path, limits=replace(ROOMY, running=1), clock=clock) as h:
        slow = Slow(h)
        async with asyncio.TaskGroup() as group:
            group.create_task(h.call("notes:add", {"text": "first"}, ttl_s=60.0))
            await slow.running(1)
            second = group.create_task(h.call("notes:add", {"text": "second"}, ttl_s=60.0))
            while not h.orchestrator._queue._own:
                await asyncio.sleep(0)
            now[0] += 10.0
            slow.go.set()
        assert second.result().meta["duration"] < 5000
        assert h.tools.runs[1].ttl_s == 50.0
