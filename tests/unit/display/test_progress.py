"""Working marks and progress: the newest word at the panel's rate, never in the way of a
result, and called off by hand.
"""

import asyncio

import pytest

from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import CallOff
from firmware_bridge.messages import ClearPage, Gesture, ShowPage
from tests.unit.display.fakes import AUDIO, DISPLAY, FULL, FakeGlasses
from tools_cache.api.tool import Delivery, DeliveryReport, ToolResponse

CALL = "c1"


class Stopwatch(FakeGlasses):
    """Glasses that note when each page came, and take `delay_s` to draw one."""

    def __init__(self, bus: Bus, facts, *, delay_s: float = 0.0) -> None:
        super().__init__(bus, facts)
        self.at: list[tuple[float, str]] = []
        self.delay_s = delay_s

    async def request(self, command, *, timeout_s: float = 5.0):
        if isinstance(command, ShowPage):
            self.at.append((asyncio.get_running_loop().time(), command.lines[0].text))
            await asyncio.sleep(self.delay_s)
        return await super().request(command, timeout_s=timeout_s)


def called_off(heard) -> list[CallOff]:
    return [h for h in heard._queue if isinstance(h, CallOff)]


# ------------------------------------------------------------------ a flood of words


@pytest.mark.requirement("S3-38")
@pytest.mark.requirement("I3-progress-rate")
@pytest.mark.parametrize(
    ("facts", "gap_s"), [(DISPLAY, 0.1), ({**DISPLAY, "display.min_gap_ms": 250}, 0.25)]
)
async def test_a_flood_of_progress_is_shown_at_the_panels_rate(open_stage, facts, gap_s) -> None:
    glasses = Stopwatch(Bus(), facts)
    async with open_stage(facts, glasses=glasses, min_gap_s=0.1) as (stage, _):
        telling, waiting = [], []
        for number in range(1000):
            telling.append(
                asyncio.ensure_future(stage.tell(f"step {number}", call_id=CALL, brief=True))
            )
            await asyncio.sleep(0.001 if number % 2 else 0)
            waiting.append(sum(not told.done() for told in telling))
        reports = await asyncio.gather(*telling)
        assert max(waiting) <= 3, "who told an older word does not wait"
        assert glasses.at[-1][1] == "step 999"
        gaps = [b[0] - a[0] for a, b in zip(glasses.at, glasses.at[1:], strict=False)]
        assert min(gaps) > gap_s - 0.01
        numbers = [int(text.split()[1]) for _, text in glasses.at]
        assert numbers == sorted(numbers), "nothing old after something new"
        assert [r.state for r in reports].count(Delivery.SUPERSEDED) == 1000 - len(numbers)
        assert reports[-1] == DeliveryReport(Delivery.SHOWN)


@pytest.mark.requirement("I3-progress-rate")
async def test_a_result_does_not_wait_behind_a_flood_of_progress(open_stage) -> None:
    glasses = Stopwatch(Bus(), DISPLAY)
    async with open_stage(DISPLAY, glasses=glasses, min_gap_s=0.1) as (stage, _):
        telling = [asyncio.ensure_future(stage.tell("step 0", call_id=CALL, brief=True))]
        await glasses.until(lambda: len(glasses.at) == 1)
        telling += [
            asyncio.ensure_future(stage.tell(f"step {n}", call_id=CALL, brief=True))
            for n in range(1, 500)
        ]
        result = asyncio.ensure_future(stage.present("c1", ToolResponse(data="the result")))
        telling += [
            asyncio.ensure_future(stage.tell(f"step {n}", call_id="c2", brief=True))
            for n in range(500, 1000)
        ]
        assert await result == DeliveryReport(Delivery.SHOWN)
        await asyncio.gather(*telling)
        assert [text for _, text in glasses.at] == ["step 0", "the result"], (
            "it is the next page after the one on its way"
        )


@pytest.mark.requirement("I3-progress-rate")
async def test_progress_that_waits_is_dropped_when_its_result_arrives(open_stage) -> None:
    async with open_stage(DISPLAY, min_gap_s=30.0) as (stage, glasses):
        await stage.tell("step 0", call_id=CALL, brief=True)
        waiting = asyncio.ensure_future(stage.tell("step 1", call_id=CALL, brief=True))
        await asyncio.sleep(0.02)
        presenting = asyncio.ensure_future(stage.present("c1", ToolResponse(data=None)))
        assert (await waiting).state is Delivery.SUPERSEDED
        await presenting
        assert glasses.texts() == ["step 0"]


async def test_the_result_of_another_call_leaves_progress_waiting(open_stage) -> None:
    async with open_stage(DISPLAY, min_gap_s=30.0) as (stage, _):
        await stage.tell("step 0", call_id=CALL, brief=True)
        waiting = asyncio.ensure_future(stage.tell("step 1", call_id=CALL, brief=True))
        await asyncio.sleep(0.02)
        await stage.present("c2", ToolResponse(data=None))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        waiting.cancel()


@pytest.mark.parametrize("said", [True, "100", -1, 60_000, float("nan")])
async def test_a_gap_that_makes_no_sense_is_not_believed(open_stage, said) -> None:
    async with open_stage({**DISPLAY, "display.min_gap_ms": said}) as (stage, glasses):
        for number in range(3):
            await stage.tell(f"step {number}", call_id=CALL, brief=True)
        assert len(glasses.texts()) == 3


# ------------------------------------------------------------------ called off


@pytest.mark.requirement("I3-call-off")
async def test_a_double_tap_on_progress_cancels_its_call_at_once(
    open_stage,
) -> None:
    async with open_stage(DISPLAY, min_gap_s=3.0) as (stage, glasses):
        with glasses.bus.listen() as heard:
            await stage.tell("Working…", call_id=CALL, brief=True)
            waiting = asyncio.ensure_future(stage.tell("half way", call_id=CALL, brief=True))
            await asyncio.sleep(0.01)
            began = asyncio.get_running_loop().time()
            await glasses.say(Gesture.DOUBLE_TAP)
            await glasses.until(lambda: glasses.clears() == 1)
            assert asyncio.get_running_loop().time() - began < 2.9, "it waits for no panel"
            assert called_off(heard) == [CallOff("c1", "the wearer")]
        assert (await waiting).state is Delivery.SUPERSEDED
        late = await stage.tell("nearly there", call_id=CALL, brief=True)
        assert late == DeliveryReport(Delivery.DROPPED, "called off by the wearer")
        assert glasses.texts() == ["Working…"]
        assert (await stage.present("c1", ToolResponse(data="Cancelled"))).state is Delivery.SHOWN


@pytest.mark.requirement("I3-call-off")
async def test_a_double_tap_on_anything_else_only_leaves_it(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            await stage.tell("Working…", call_id=CALL, brief=True)
            await glasses.say(Gesture.TAP)
            await glasses.until(lambda: glasses.clears() == 1)
            await stage.tell("Hm", scene="other", brief=True)
            await glasses.say(Gesture.DOUBLE_TAP)
            await glasses.until(lambda: glasses.clears() == 2)
            await stage.tell("Saved for later: weather", call_id=CALL)
            await glasses.say(Gesture.DOUBLE_TAP)
            await glasses.until(lambda: glasses.clears() == 3)
            await stage.tell("Working…", call_id=CALL, brief=True)
            await stage.present("c1", ToolResponse(data="the result"))
            await glasses.say(Gesture.DOUBLE_TAP)
            await glasses.until(lambda: glasses.clears() == 4)
            assert not called_off(heard)


@pytest.mark.requirement("I3-call-off")
async def test_cancelling_does_not_remove_a_result_that_replaced_the_progress(
    open_stage,
) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.tell("Working…", call_id=CALL, brief=True)
        release = glasses.hold()
        presenting = asyncio.ensure_future(stage.present("c2", ToolResponse(data="another result")))
        await glasses.until(lambda: len(glasses.pages()) == 2)
        await glasses.say(Gesture.DOUBLE_TAP)
        release.set()
        await presenting
        await asyncio.sleep(0.02)
        assert not any(isinstance(c, ClearPage) for c in glasses.told)
        assert stage.lens()["lines"] == ["another result"]


@pytest.mark.requirement("I3-call-off")
@pytest.mark.parametrize("gesture", [Gesture.BUTTON_LONG, Gesture.DOUBLE_TAP])
async def test_without_a_lens_a_long_press_calls_off_what_is_awaited(open_stage, gesture) -> None:
    now = [1000.0]
    async with open_stage(AUDIO, clock=Clock(boot=lambda: now[0])) as (stage, glasses):
        with glasses.bus.listen() as heard:
            await glasses.say(gesture)
            await stage.tell("Working…", call_id=CALL, brief=True)
            await glasses.say(gesture)
            await glasses.say(gesture)
            assert called_off(heard) == [CallOff("c1", "the wearer")]
            await stage.tell("Working…", call_id="c2", brief=True)
            await stage.present("c2", ToolResponse(data=None))
            await glasses.say(gesture)
            await stage.tell("Working…", call_id="c3", brief=True)
            now[0] += 10
            await glasses.say(gesture)
            assert len(called_off(heard)) == 1, "nothing is awaited any more"


async def test_a_long_press_calls_nothing_off_where_there_is_a_lens(open_stage) -> None:
    async with open_stage(FULL) as (stage, glasses):
        with glasses.bus.listen() as heard:
            await stage.tell("Working…", call_id=CALL, brief=True)
            await glasses.say(Gesture.BUTTON_LONG)
            assert not called_off(heard)
