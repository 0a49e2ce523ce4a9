"""The life of a page: the table, and a lens of four numbers that is driven by it."""

from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st

from edge.display.page_life import (
    LEAST_S,
    Action,
    LensState,
    PageEvent,
    PageReading,
    Previous,
    act,
    arrival,
    cut,
    place,
    previous,
)

pytestmark = pytest.mark.usefixtures("reading_time")
ARRIVALS = (PageEvent.LOWER, PageEvent.EQUAL, PageEvent.HIGHER, PageEvent.SAME)


@pytest.mark.parametrize("event", ARRIVALS)
@pytest.mark.parametrize("state", LensState)
def test_no_result_is_lost_whatever_is_on_the_lens(state, event):
    assert act(state, event) in (Action.SHOW, Action.WAIT)


@pytest.mark.parametrize("state", [LensState.FRESH, LensState.READ])
def test_progress_never_takes_the_lens_from_a_page(state):
    assert act(state, PageEvent.MARK) is Action.CORNER
    assert act(state, PageEvent.PROGRESS) is Action.CORNER


def test_a_working_mark_never_replaces_what_a_tool_reports_itself():
    assert act(LensState.PROGRESS, PageEvent.MARK) is Action.NOTHING
    assert act(LensState.PROGRESS, PageEvent.PROGRESS) is Action.SHOW


@pytest.mark.parametrize("event", PageEvent)
def test_under_a_question_nothing_changes_the_lens(event):
    assert act(LensState.COVERED, event) in (Action.WAIT, Action.NOTHING)


def test_only_a_tap_a_newer_version_or_something_more_important_shortens_a_fresh_page():
    drawn = {e for e in PageEvent if act(LensState.FRESH, e) is Action.SHOW}
    assert drawn == {PageEvent.HIGHER, PageEvent.SAME}
    assert act(LensState.FRESH, PageEvent.TAP) is Action.NEXT_PAGE


def test_a_double_tap_cancels_only_on_progress():
    cancels = {s for s in LensState if act(s, PageEvent.LEAVE) is Action.CANCEL}
    assert cancels == {LensState.PROGRESS}


def test_a_tap_on_a_dark_lens_recalls_and_a_double_tap_does_nothing():
    assert act(LensState.DARK, PageEvent.TAP) is Action.RECALL
    assert act(LensState.DARK, PageEvent.LEAVE) is Action.NOTHING


@pytest.mark.parametrize(
    ("rank", "page_rank", "same", "event"),
    [
        (0, None, False, PageEvent.EQUAL),
        (0, 0, False, PageEvent.EQUAL),
        (-1, 0, False, PageEvent.LOWER),
        (2, 0, False, PageEvent.HIGHER),
        (-1, 0, True, PageEvent.SAME),
    ],
)
def test_ranks_decide_which_arrival_it_is(rank, page_rank, same, event):
    assert arrival(rank, page_rank, same=same) is event


@pytest.mark.parametrize(
    ("stayed_s", "tapped", "all_seen", "outcome"),
    [
        (LEAST_S, False, True, Previous.DELIVERED),
        (LEAST_S - 0.01, False, True, Previous.SUPERSEDED),
        (0.1, True, True, Previous.DELIVERED),
        (9.0, False, False, Previous.SUPERSEDED),
        (9.0, True, False, Previous.SUPERSEDED),
    ],
)
def test_a_page_was_delivered_if_all_of_it_was_there_for_long_enough(
    stayed_s, tapped, all_seen, outcome
):
    assert cut(PageReading(stayed_s, tapped, all_seen, left_s=0.0)) is outcome


def test_the_longer_page_comes_back_and_the_shorter_does_not():
    page = PageReading(stayed_s=2.0, tapped=False, all_seen=True, left_s=8.0)
    assert previous(page, newcomer_s=3.0) is Previous.UNDER
    assert previous(page, newcomer_s=8.0) is Previous.DELIVERED


def test_the_place_in_the_queue_is_said_in_words():
    assert place(2, 3) == "2 of 3"


# ------------------------------------------------------------------ a lens driven by the table


@dataclass
class Page:
    name: int
    rank: int
    left_s: float
    stayed_s: float = 0.0
    tapped: bool = False
    outcome: str = ""


@dataclass
class Lens:
    """Single pages only; one under another; steps of 0.1 s."""

    now: Page | None = None
    under: Page | None = None
    queue: deque[Page] = field(default_factory=deque)

    @property
    def state(self) -> LensState:
        if self.now is None:
            return LensState.DARK
        long = self.now.tapped or self.now.stayed_s >= LEAST_S
        return LensState.READ if long else LensState.FRESH

    def arrives(self, page: Page) -> None:
        event = arrival(page.rank, self.now.rank if self.now else None)
        if act(self.state, event) is Action.SHOW:
            self.show(page)
        else:
            self.queue.append(page)

    def show(self, page: Page) -> None:
        old, self.now = self.now, page
        if old is None:
            return
        what = previous(reading(old), newcomer_s=page.left_s)
        if what is Previous.UNDER:
            if self.under is not None:
                self.under.outcome = cut(reading(self.under)).name
            self.under = old
        else:
            old.outcome = what.name

    def happens(self, event: PageEvent) -> None:
        if act(self.state, event) in (Action.NEXT_PAGE, Action.END) and self.now is not None:
            self.now.tapped = self.now.tapped or event is PageEvent.TAP
            self.now.outcome = cut(reading(self.now)).name if event is PageEvent.LEAVE else "TIME"
            self.now = self.queue.popleft() if self.queue else None
            if self.now is None:
                self.now, self.under = self.under, None

    def tick(self) -> None:
        if self.now is None:
            return
        self.now.stayed_s, self.now.left_s = self.now.stayed_s + 0.1, self.now.left_s - 0.1
        if self.now.left_s <= 0:
            self.happens(PageEvent.TIME_OVER)
        elif self.queue and act(self.state, PageEvent.RIPE) is Action.SHOW:
            best = self.queue[0]
            if best.rank >= self.now.rank:
                self.show(self.queue.popleft())


def reading(page: Page) -> PageReading:
    return PageReading(page.stayed_s + 1e-9, page.tapped, all_seen=True, left_s=page.left_s)


def run(lens: Lens, seconds: float) -> None:
    for _ in range(round(seconds * 10)):
        lens.tick()


def test_five_results_in_a_second_have_the_lens_for_a_second_and_a_half_each():
    lens = Lens()
    pages = [Page(n, 0, 3.0) for n in range(5)]
    for page in pages:
        lens.arrives(page)
        run(lens, 0.2)
    run(lens, 20)
    assert all(page.stayed_s >= LEAST_S - 0.11 for page in pages)
    assert [page.outcome for page in pages] == ["DELIVERED"] * 4 + ["TIME"]


def test_a_long_page_comes_back_with_the_time_it_had_left():
    lens = Lens()
    long, short = Page(1, 0, 12.0), Page(2, 0, 3.0)
    lens.arrives(long)
    run(lens, 2.0)
    lens.arrives(short)
    assert lens.now is short
    run(lens, 3.2)
    assert lens.now is long
    assert long.left_s == pytest.approx(10.0, abs=0.3)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("page"), st.integers(-1, 1), st.floats(3, 20)),
            st.tuples(st.just("wait"), st.floats(0.1, 4), st.just(0.0)),
            st.tuples(st.just("tap"), st.just(0), st.just(0.0)),
        ),
        max_size=25,
    )
)
def test_whatever_happens_every_page_ends_and_none_is_delivered_unseen(story):
    lens, pages = Lens(), []
    for what, a, b in story:
        if what == "page":
            pages.append(Page(len(pages), int(a), b))
            lens.arrives(pages[-1])
        elif what == "wait":
            run(lens, float(a))
        else:
            lens.happens(PageEvent.TAP)
    run(lens, 25.0 * len(pages))
    assert lens.now is None
    assert not lens.queue
    for page in pages:
        assert page.outcome
        if page.outcome == "DELIVERED":
            assert page.tapped or page.stayed_s >= LEAST_S - 0.11
