"""Which tools are offered to a model now: all that fit, else the essential, the used and the asked
for. Immutable state.

Pure: a state and what happened in, the next state and its events out. An unloaded tool can still
be called by name.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

PASSING_TURNS: Final = 1
"""Whole turns without use after which a tool goes that was brought in for one call."""
META_TOOLS: Final = 3
"""Places kept for search, load and invoke while not everything is offered."""
DESCRIBE_FROM: Final = 20
"""Tools from which on one more place is kept: for documentation by the piece."""
NOTHING: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})


class Kind(StrEnum):
    """What can happen to the loader."""

    INITIALIZED = "initialized"
    LOADED = "loaded"
    UNLOADED = "unloaded"
    USED = "used"


@dataclass(frozen=True, slots=True)
class SelectionEvent:
    """One thing that happened; `why` in words for a person."""

    kind: Kind
    tool: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """A loaded tool: the turn it was last used (or loaded) in, and whether it came for one call
    only.
    """

    used: int
    passing: bool = False


@dataclass(frozen=True, slots=True)
class SelectionLimits:
    """`offered`: how many tools a model is shown, ours for loading more included. `idle_turns`:
    see `turn`.
    """

    offered: int = 40
    idle_turns: int = 8


@dataclass(frozen=True, slots=True)
class Loader:
    """The state. `available` are the active tools, best first; `needs` what each of
    them depends on.
    """

    available: tuple[str, ...] = ()
    essential: frozenset[str] = frozenset()
    loaded: Mapping[str, Held] = field(default_factory=dict)
    turn: int = 0
    limits: SelectionLimits = field(default_factory=SelectionLimits)
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def many(self) -> bool:
        """Are there so many tools that their documentation is told by the piece?"""
        return len(self.available) >= DESCRIBE_FROM

    @property
    def crowded(self) -> bool:
        """Are there more tools than may be offered? Only then anything is ever unloaded."""
        return len(self.available) + self.many > self.limits.offered

    @property
    def room(self) -> int:
        """How many tools may be loaded."""
        return max(0, self.limits.offered - self.many - (META_TOOLS if self.crowded else 0))

    def with_needs(self, names: Iterable[str]) -> tuple[str, ...]:
        """Give these and all they depend on, each once, a dependency after what needs it."""
        return closure(names, lambda name: self.needs.get(name, ()))


Step = tuple[Loader, tuple[SelectionEvent, ...]]


def closure(names: Iterable[str], below: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """Walk from `names` along `below`, each name once: a circle ends where it began."""
    found: dict[str, None] = dict.fromkeys(names)
    waiting = list(found)
    while waiting:
        for name in below(waiting.pop(0)):
            if name not in found:
                found[name] = None
                waiting.append(name)
    return tuple(found)


# ------------------------------------------------------------------ what happens


def initialize(loader: Loader) -> Step:
    """Begin: the essential tools, then the best of the others, as far as there is room."""
    begun = replace(loader, loaded={}, turn=0)
    filled, events = _filled(begun, "there is room for it")
    return filled, (
        SelectionEvent(
            Kind.INITIALIZED, why=f"{len(begun.available)} tools, {len(filled.loaded)} loaded"
        ),
        *events,
    )


def adopt(
    loader: Loader, available: tuple[str, ...], needs: Mapping[str, tuple[str, ...]] = NOTHING
) -> Step:
    """Take these as the active tools. What is gone is unloaded; with room for all, all are
    loaded.
    """
    crowded_before, here = loader.crowded, frozenset(available)
    kept = {name: held for name, held in loader.loaded.items() if name in here}
    gone = tuple(
        SelectionEvent(Kind.UNLOADED, name, "it is not active any more")
        for name in loader.loaded
        if name not in here
    )
    now = replace(loader, available=available, needs=needs, loaded=kept)
    if not now.crowded:
        now, came = _filled(now, "there is room for it")
        return now, (*gone, *came)
    now, came = _with_essential(now)
    went: tuple[SelectionEvent, ...] = ()
    if not crowded_before or len(now.loaded) > now.room:
        now, went = _within_room(now, frozenset())
    return now, (*gone, *came, *went)


def turn(loader: Loader) -> Step:
    """Cross a turn boundary: tools idle for too many whole turns go, unless they are essential or
    there is room for all.
    """
    now = replace(loader, turn=loader.turn + 1)
    if not now.crowded:
        return now, ()
    idle = [
        name for name, held in now.loaded.items() if name not in now.essential and _idle(now, held)
    ]
    if not idle:
        return now, ()
    kept = {name: held for name, held in now.loaded.items() if name not in set(idle)}
    return replace(now, loaded=kept), tuple(
        SelectionEvent(Kind.UNLOADED, name, _idle_words(now, name)) for name in idle
    )


def use(loader: Loader, name: str) -> Step:
    """It was called: it, and what it depends on, is not idle."""
    used = {
        n: replace(loader.loaded[n], used=loader.turn)
        for n in loader.with_needs((name,))
        if n in loader.loaded
    }
    return replace(loader, loaded={**loader.loaded, **used}), (SelectionEvent(Kind.USED, name),)


def load(loader: Loader, names: Iterable[str], *, passing: bool = False) -> Step:
    """Offer these (and what they depend on) from now on; what was used longest ago makes room.
    Names that are not available, or for which there is no room, are not loaded.
    """
    here, essential = frozenset(loader.available), loader.essential
    wanted = [n for n in loader.with_needs(names) if n in here][
        : loader.room - len(essential & loader.loaded.keys())
    ]
    loaded, events = dict(loader.loaded), []
    for name in wanted:
        before = loaded.get(name)
        stays = before is not None and not before.passing
        loaded[name] = Held(loader.turn, passing and not stays)
        if before is None:
            events.append(
                SelectionEvent(Kind.LOADED, name, "for one call" if passing else "asked for")
            )
    now, went = _within_room(replace(loader, loaded=loaded), frozenset(wanted))
    return now, (*went, *events)


# ------------------------------------------------------------------ inside


def _filled(loader: Loader, why: str) -> Step:
    """Load the essential, then in the order of `available`, up to the room there is."""
    loader, events = _with_essential(loader)
    loaded = dict(loader.loaded)
    more = [n for n in loader.available if n not in loaded][: max(0, loader.room - len(loaded))]
    loaded.update((name, Held(loader.turn)) for name in more)
    return replace(loader, loaded=loaded), (
        *events,
        *(SelectionEvent(Kind.LOADED, name, why) for name in more),
    )


def _with_essential(loader: Loader) -> Step:
    wanted = [n for n in loader.available if n in loader.essential][: loader.room]
    missing = [n for n in wanted if n not in loader.loaded]
    loaded = {**loader.loaded, **{name: Held(loader.turn) for name in missing}}
    return replace(loader, loaded=loaded), tuple(
        SelectionEvent(Kind.LOADED, name, "it is essential") for name in missing
    )


def _within_room(loader: Loader, spared: frozenset[str]) -> Step:
    """Unload what was used longest ago until the rest fits; never the essential, and never
    `spared`.
    """
    over = len(loader.loaded) - loader.room
    if over <= 0:
        return loader, ()
    order = {name: at for at, name in enumerate(loader.available)}
    free = [n for n in loader.loaded if n not in loader.essential and n not in spared]
    free.sort(key=lambda n: (not loader.loaded[n].passing, loader.loaded[n].used, -order.get(n, 0)))
    gone = dict.fromkeys(free[:over])
    kept = {name: held for name, held in loader.loaded.items() if name not in gone}
    return replace(loader, loaded=kept), tuple(
        SelectionEvent(Kind.UNLOADED, name, "others need its place") for name in gone
    )


def _idle(loader: Loader, held: Held) -> bool:
    return loader.turn - held.used - 1 >= (
        PASSING_TURNS if held.passing else loader.limits.idle_turns
    )


def _idle_words(loader: Loader, name: str) -> str:
    turns = loader.turn - loader.loaded[name].used - 1
    return f"not used for {turns} turn{'s' * (turns != 1)}"
