"""What is done about a page: state of the lens × event → action, as one table without I/O.

`stage.py` asks it and carries the action out; nothing else decides who gets the lens.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

LEAST_S: Final = 1.5
"""Seconds a page stays, unless the wearer taps, before another of its rank may replace it: time to
look up and see what it is. One that is cut earlier was not shown.
"""


class LensState(Enum):
    """What the wearer sees now."""

    DARK = auto()
    LISTENING = auto()
    """It would be dark, and says that the microphone is on."""
    CAPTIONS = auto()
    PROGRESS = auto()
    """Progress of a call has the whole lens."""
    FRESH = auto()
    """A page that had the lens for less than `LEAST_S`, and no tap."""
    READ = auto()
    """A page that was there for long enough."""
    RECALLED = auto()
    """An old page that the wearer called back."""
    COVERED = auto()
    """A question has the lens; its own table is in `prompts.py`."""


class PageEvent(Enum):
    """What happens to the page on the lens. The first six are arrivals."""

    MARK = auto()
    """"Working…" of a call that said nothing itself."""
    PROGRESS = auto()
    """Progress a tool reported itself."""
    LOWER = auto()
    """A result of a lower rank than the page's, an equal, or a higher one."""
    EQUAL = auto()
    HIGHER = auto()
    SAME = auto()
    """A newer version of what is on the lens: of the same scene."""
    TAP = auto()
    BACK = auto()
    """A tap that means "page up"."""
    LEAVE = auto()
    """A double tap."""
    TIME_OVER = auto()
    """The page had its reading time."""
    RIPE = auto()
    """The page had `LEAST_S`, and a result waits."""


class Action(Enum):
    """What to do about it. An action never fails: what glasses cannot do is left out."""

    SHOW = auto()
    """Draw the newcomer. What becomes of the page before: see `previous`."""
    WAIT = auto()
    """Into the queue, as "2 of 3"."""
    CORNER = auto()
    """Put a mark into the last row in place; a text of progress waits for the lens itself."""
    NEXT_PAGE = auto()
    """The next page; after the last one as `END`."""
    PREVIOUS_PAGE = auto()
    END = auto()
    """It is over: the next of the queue, else waiting progress, else what lies under it, else dark.
    """
    CANCEL = auto()
    """Cancel the call whose progress it is."""
    RECALL = auto()
    """Show the newest of the last results again; after the last page of a recalled one the one
    before it.
    """
    EARLIER = auto()
    """Show the captions before these."""
    NO_CAPTIONS = auto()
    NOTHING = auto()


_ARRIVALS: Final = (PageEvent.LOWER, PageEvent.EQUAL, PageEvent.HIGHER, PageEvent.SAME)
_READING: Final = {
    PageEvent.MARK: Action.CORNER,
    PageEvent.PROGRESS: Action.CORNER,
    PageEvent.LOWER: Action.WAIT,
    PageEvent.EQUAL: Action.SHOW,
    PageEvent.HIGHER: Action.SHOW,
    PageEvent.SAME: Action.SHOW,
    PageEvent.TAP: Action.NEXT_PAGE,
    PageEvent.BACK: Action.PREVIOUS_PAGE,
    PageEvent.LEAVE: Action.END,
    PageEvent.TIME_OVER: Action.NEXT_PAGE,
    PageEvent.RIPE: Action.SHOW,
}
_FREE: Final = dict.fromkeys((PageEvent.MARK, PageEvent.PROGRESS, *_ARRIVALS), Action.SHOW)
TABLE: Final[Mapping[LensState, Mapping[PageEvent, Action]]] = {
    LensState.DARK: {**_FREE, PageEvent.TAP: Action.RECALL, PageEvent.BACK: Action.RECALL},
    LensState.LISTENING: _FREE,
    LensState.CAPTIONS: {
        **_FREE,
        PageEvent.TAP: Action.EARLIER,
        PageEvent.BACK: Action.EARLIER,
        PageEvent.LEAVE: Action.NO_CAPTIONS,
    },
    LensState.PROGRESS: {
        PageEvent.PROGRESS: Action.SHOW,
        **dict.fromkeys(_ARRIVALS, Action.SHOW),
        PageEvent.TAP: Action.END,
        PageEvent.BACK: Action.END,
        PageEvent.LEAVE: Action.CANCEL,
        PageEvent.TIME_OVER: Action.END,
    },
    LensState.FRESH: {**_READING, PageEvent.EQUAL: Action.WAIT, PageEvent.RIPE: Action.NOTHING},
    LensState.READ: _READING,
    LensState.RECALLED: {
        **_READING,
        **dict.fromkeys(_ARRIVALS, Action.SHOW),
        PageEvent.MARK: Action.SHOW,
        PageEvent.PROGRESS: Action.SHOW,
        PageEvent.TAP: Action.RECALL,
    },
    LensState.COVERED: dict.fromkeys(_ARRIVALS, Action.WAIT),
}
"""What a row leaves out is `NOTHING`."""


def act(state: LensState, event: PageEvent) -> Action:
    return TABLE[state].get(event, Action.NOTHING)


def arrival(rank: int, page_rank: int | None, *, same: bool = False) -> PageEvent:
    """Return which arrival a result is for the page on the lens (None: there is none)."""
    if same:
        return PageEvent.SAME
    if page_rank is None or rank == page_rank:
        return PageEvent.EQUAL
    return PageEvent.HIGHER if rank > page_rank else PageEvent.LOWER


# ------------------------------------------------------------------ what became of a page


class Previous(Enum):
    """What becomes of the page that lost the lens to another."""

    DELIVERED = auto()
    """All of it was there for long enough."""
    UNDER = auto()
    """It comes back with the time it has left."""
    SUPERSEDED = auto()


class PageReading(NamedTuple):
    """How far a page was read. `stayed_s`: since it was drawn, without what covered it."""

    stayed_s: float
    tapped: bool
    all_seen: bool
    left_s: float

    @property
    def long_enough(self) -> bool:
        return self.tapped or self.stayed_s >= LEAST_S


def previous(page: PageReading, *, newcomer_s: float) -> Previous:
    """Return what becomes of a page when another, which takes `newcomer_s`, gets the lens."""
    if page.left_s > newcomer_s:
        return Previous.UNDER
    return cut(page)


def cut(page: PageReading) -> Previous:
    """The same for a page that loses the lens for good: cleared, or pushed from under another."""
    read = page.all_seen and page.long_enough
    return Previous.DELIVERED if read else Previous.SUPERSEDED


def place(number: int, waiting: int) -> str:
    """Return a place in the queue in words."""
    return f"{number} of {waiting}"
