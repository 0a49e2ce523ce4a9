"""What waits for the lens: who is first, who gives way, and what each hears."""

import pytest

from edge.core.results import Rendering
from edge.display.presentation import BRIEF_RANK, Presentation
from edge.display.queue import DisplayQueue, ProgressIndicator
from tools_cache.api.tool import Delivery


def ignore(*_: object) -> None:
    """Hear a report and do nothing about it."""


def item(name: str, *, rank: int = 0, call_id: str = "c", expires_at: float = 60.0) -> Presentation:
    return Presentation(call_id, name, Rendering(), rank, expires_at, ignore)


def progress(call_id: str) -> Presentation:
    return Presentation("", f"{call_id}/word", Rendering(), BRIEF_RANK, 0.0, ignore, call_id)


def order(queue: DisplayQueue) -> list[str]:
    return [waiting.scene for waiting in queue]


def filled(*items: Presentation) -> DisplayQueue:
    queue = DisplayQueue()
    for each in items:
        queue.wait(each, at_least_until=0.0)
    return queue


async def test_a_page_that_was_shown_is_not_kept_for_the_glasses_return() -> None:
    queue, shown = DisplayQueue(), item("shown")
    shown.lit = True
    queue.park(shown)
    assert queue.parked is None
    assert shown.final.done()


async def test_what_waits_for_the_glasses_may_be_parked_twice() -> None:
    queue, waiting = DisplayQueue(), item("waiting")
    queue.park(waiting)
    queue.park(waiting)
    assert queue.parked is waiting
    assert waiting.report.state is Delivery.QUEUED
    assert not waiting.final.done()


async def test_the_newer_of_two_takes_the_place_for_the_glasses_return() -> None:
    queue, older, newer = DisplayQueue(), item("older"), item("newer")
    queue.park(older)
    queue.park(newer)
    assert queue.parked is newer
    assert older.report.state is Delivery.SUPERSEDED


async def test_what_waited_for_the_glasses_comes_before_its_equals() -> None:
    queue = filled(item("urgent", rank=2), item("equal"))
    queue.park(item("parked"))
    queue.unpark()
    assert order(queue) == ["urgent", "parked", "equal"]


async def test_a_newer_version_keeps_the_place_and_one_of_another_rank_finds_its_own() -> None:
    queue = filled(item("a"), item("b"), item("c"))
    queue.wait(item("a"), at_least_until=0.0)
    assert order(queue) == ["a", "b", "c"]
    queue.wait(item("c", rank=2), at_least_until=0.0)
    assert order(queue) == ["c", "a", "b"]


async def test_an_alarm_waits_at_least_until_the_question_is_over_and_a_result_does_not() -> None:
    queue, alarm, result = DisplayQueue(), item("alarm", call_id=""), item("result")
    for each in (alarm, result):
        queue.wait(each, at_least_until=500.0)
    assert (alarm.expires_at, result.expires_at) == (500.0, 60.0)


async def test_what_expires_says_so() -> None:
    queue = filled(item("a", expires_at=5.0), item("b"))
    queue.park(item("parked", expires_at=5.0))
    parked, first = queue.parked, queue.first
    assert parked is not None
    assert first is not None
    queue.give_up(4.9)
    assert order(queue) == ["a", "b", "parked"]
    queue.give_up(5.0)
    assert order(queue) == ["b"]
    assert (parked.report.state, first.report.state) == (Delivery.DROPPED, Delivery.EXPIRED)


# ------------------------------------------------------------------ progress


async def test_of_one_call_only_the_newest_progress_waits_behind_a_page() -> None:
    waiting, older, newer = ProgressIndicator(), progress("c1"), progress("c1")
    waiting.wait_behind(older)
    waiting.wait_behind(newer)
    assert older.report.state is Delivery.SUPERSEDED
    assert waiting.next_behind() is newer
    assert waiting.next_behind() is None


async def test_progress_of_many_calls_waits_behind_a_page_up_to_a_bound() -> None:
    waiting, items = ProgressIndicator(), [progress(f"c{n}") for n in range(17)]
    for each in items:
        waiting.wait_behind(each)
    assert [i.report.state for i in items[:2]] == [Delivery.SUPERSEDED, Delivery.QUEUED]
    assert [waiting.next_behind() for _ in range(17)] == [*reversed(items[1:]), None]


async def test_a_call_that_is_over_is_awaited_no_longer() -> None:
    waiting = ProgressIndicator()
    waiting.unseen("c1", 10.0)
    assert [waiting.awaited(now) for now in (9.9, 10.0)] == ["c1", ""]
    waiting.over("c2")
    assert waiting.awaited(5.0) == "c1"
    waiting.over("c1")
    assert waiting.awaited(5.0) == ""


@pytest.mark.parametrize("over", ["over", "cancel"])
async def test_no_progress_of_a_call_that_is_over_waits(over) -> None:
    waiting, newest, behind = ProgressIndicator(), progress("c1"), progress("c1")
    waiting.put(newest)
    waiting.wait_behind(behind)
    getattr(waiting, over)("c1")
    assert (waiting.waiting, waiting.behind) == (None, False)
    assert {newest.report.state, behind.report.state} == {Delivery.SUPERSEDED}
    assert waiting.is_cancelled("c1") is (over == "cancel")
