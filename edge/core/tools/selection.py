"""Which tools are offered to a model: all that fit, else the essential, used and requested ones.

A state and what happened in, the next state and its events out. A tool that is not loaded can still
be called by name.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

PASSING_TURNS: Final = 1
"""Whole turns without use after which a tool loaded for one call is unloaded."""
META_TOOLS: Final = 3
"""Places kept for search, load and invoke while not all tools are offered."""
DESCRIBE_FROM: Final = 20
"""From this number of tools on, a place is kept for the tool that returns documentation."""
NOTHING: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})


class Kind(StrEnum):
    """What can happen to the loader."""

    INITIALIZED = "initialized"
    LOADED = "loaded"
    UNLOADED = "unloaded"
    USED = "used"


class SelectionEvent(NamedTuple):
    """One event; `why` is for people."""

    kind: Kind
    tool: str = ""
    why: str = ""


class Held(Struct, frozen=True):
    """A loaded tool: the turn of its last use (or loading); `passing`: loaded for one call."""

    used: int
    passing: bool = False


class SelectionLimits(Struct, frozen=True):
    """`offered`: most tools shown to a model, ours included. `idle_turns`: see `turn`."""

    offered: int = 48
    idle_turns: int = 8


class Loader(Struct, frozen=True):
    """The state. `available`: the active tools, best first; `needs`: their dependencies."""

    available: tuple[str, ...] = ()
    essential: frozenset[str] = frozenset()
    loaded: Mapping[str, Held] = field(default_factory=dict)
    turn: int = 0
    limits: SelectionLimits = field(default_factory=SelectionLimits)
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def many(self) -> bool:
        """True if there are so many tools that documentation is returned on request."""
        return len(self.available) >= DESCRIBE_FROM

    @property
    def crowded(self) -> bool:
        """True if there are more tools than may be offered; only then tools are unloaded."""
        return len(self.available) + self.many > self.limits.offered

    @property
    def room(self) -> int:
        """Number of tools that may be loaded."""
        return max(0, self.limits.offered - self.many - (META_TOOLS if self.crowded else 0))

    def with_needs(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return these and all their dependencies, each once, a dependency after its dependant."""
        return closure(names, lambda name: self.needs.get(name, ()))


Step = tuple[Loader, tuple[SelectionEvent, ...]]


def closure(names: Iterable[str], below: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """Follow `below` from `names`, each name once, so that circles end."""
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
    """Load the essential tools, then the best others, as far as there is room."""
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
    """Use these active tools: others are unloaded; if there is room for all, all are loaded. If
    not, those that became active are loaded which are among the first: these glasses' own.
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
    fresh = [n for n in available[: now.room] if n not in loader.available and n not in now.loaded]
    fresh = fresh[: max(0, now.room - len(now.essential & now.loaded.keys()))]
    now = replace(now, loaded={**now.loaded, **{name: Held(now.turn) for name in fresh}})
    came += tuple(SelectionEvent(Kind.LOADED, name, "it became active") for name in fresh)
    went: tuple[SelectionEvent, ...] = ()
    if not crowded_before or len(now.loaded) > now.room:
        now, went = _within_room(now, frozenset())
    return now, (*gone, *came, *went)


def turn(loader: Loader) -> Step:
    """Cross a turn boundary: unload tools idle for too many whole turns, unless they are essential
    or there is room for all.
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
    """Note a call: the tool and its dependencies are not idle."""
    names = [n for n in loader.with_needs((name,)) if n in loader.loaded]
    used = {n: replace(loader.loaded[n], used=loader.turn) for n in names}
    return replace(loader, loaded={**loader.loaded, **used}), (SelectionEvent(Kind.USED, name),)


def load(loader: Loader, names: Iterable[str], *, passing: bool = False) -> Step:
    """Load these and their dependencies; the tools used longest ago make room. Unavailable ones,
    and those without room, are not loaded.
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
    """Load the essential tools, then in the order of `available`, as far as there is room."""
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
    """Unload what was used longest ago until the rest fits; never the essential or `spared`."""
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
