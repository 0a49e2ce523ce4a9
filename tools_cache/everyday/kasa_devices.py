"""Kasa and Tapo devices of the home: those that are known, found by name, read and changed.

A child process speaks to them; what it found is kept encrypted, so that no search is needed later.
"""

import asyncio
import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tools_cache.api.notes import folded
from tools_cache.api.tool import Json, ToolContext
from tools_cache.errors import ErrorCode, ToolFailure

WORKER: Final = "kasa"
DEADLINE_S: Final = 12.0
MAX_DEVICES: Final = 300
MAX_AT_ONCE: Final = 64
"""Devices in one request to the child process."""
MOST_NAMED: Final = 10
"""Devices that are named when several match."""
MOST_MISSED: Final = 3
"""Searches that a device may miss before it is forgotten."""
HOME: Final = tuple(
    map(
        ipaddress.IPv4Network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "127.0.0.0/8"),
    )
)
"""Private, link-local and loopback addresses: the only ones that are ever contacted."""
_TABLE: Final = "devices"
_COLUMNS: Final = {"encrypted__device": "TEXT"}
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'devices'"
_MATCHES: Final = (str.__eq__, str.startswith, str.__contains__)
"""How a name is looked for, one after the other."""
_CHANGING: Final = asyncio.Lock()
"""Held from reading the devices until the changed ones are stored."""
_KEPT: Final = ("mac", "host", "connection", "child", "name", "kind")
_ASKED: Final = ("mac", "host", "connection", "child", "name")
_BEFORE: Final = frozenset(
    "the my a an das die der den dem mein meine la el los las le les l' lo il gli i".split()
)
_AFTER: Final = frozenset(
    "please on off an aus ein to at % percent per cent auf prozent al a por ciento à pour di"
    " per cento bitte".split()
)
"""Words that a spoken sentence leaves around the name of a device."""


@dataclass(frozen=True, slots=True)
class KnownDevice:
    """A device, or one plug of a power strip (`child`)."""

    card: Mapping[str, Json]

    @property
    def name(self) -> str:
        return str(self.card["name"])

    @property
    def id(self) -> str:
        return "/".join(filter(None, self.key))

    @property
    def key(self) -> tuple[str, str]:
        return str(self.card["mac"]), str(self.card["child"])


@dataclass(frozen=True, slots=True)
class Wish:
    """What one device is to do; neither `on` nor `brightness`: it is only read."""

    device: KnownDevice
    on: bool | None = None
    brightness: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one device answered: its state now and before, or why there is none."""

    device: KnownDevice
    state: Mapping[str, Json]

    @property
    def failed(self) -> bool:
        return "error" in self.state

    @property
    def problem(self) -> str:
        """Return a sentence, such as "Desk lamp does not answer"."""
        return f"{self.device.name} {self.state['error']['text']}"

    def failure(self) -> ToolFailure:
        error = self.state["error"]
        return ToolFailure.of(
            ErrorCode(error["code"]),
            self.problem,
            suggestion=error["fix"] or None,
            partial_side_effects=error["sent"],
            for_wearer=f"{self.problem}.",
        )


class KasaHome:
    """The devices that one user's calls reach."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx

    async def known(self) -> list[KnownDevice]:
        """Return the devices by name. Creates no table, so it works on a full disk."""
        return _by_name(row["encrypted__device"] for row in await self._rows())

    async def discover(self) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
        """Search; return records of the devices with their state, and what cannot be used."""
        found = await self._ask({"action": "discover"}, writes=False)
        devices = sorted(found["devices"][:MAX_DEVICES], key=lambda one: folded(one["name"]))
        await self._remember(devices)
        return devices, found["problems"]

    async def find(self, name: str, *, field: str = "device") -> KnownDevice:
        """Return the one device that is meant; searches if none is known. Raise `ToolFailure`."""
        if not name.strip():
            raise ToolFailure.of(
                ErrorCode.INVALID_ARGUMENTS,
                f"Invalid parameters: /{field} holds only blanks",
                suggestion="Give the name of the device",
            )
        known = await self.known()
        found = matches(known, name)
        if not found:
            await self.discover()
            known = await self.known()
            found = matches(known, name)
        return _only(found, name, field, known)

    async def apply(self, wishes: Sequence[Wish]) -> list[Outcome]:
        """Read or change devices; return what each answered, in the same order."""
        writes = any(wish.on is not None or wish.brightness is not None for wish in wishes)
        items = [
            {
                **{key: wish.device.card[key] for key in _ASKED},
                **({} if wish.on is None else {"on": wish.on}),
                **({} if wish.brightness is None else {"brightness": wish.brightness}),
            }
            for wish in wishes
        ]
        answer = await self._ask({"action": "apply", "items": items}, writes=writes)
        outcomes = [
            Outcome(wish.device, state)
            for wish, state in zip(wishes, answer["results"], strict=True)
        ]
        await self._note_moves(outcomes)
        return outcomes

    async def change(self, wish: Wish) -> Mapping[str, Json]:
        """Change one device; return its state now and before. Raise `ToolFailure`."""
        (outcome,) = await self.apply([wish])
        if outcome.failed:
            raise outcome.failure()
        return outcome.state

    # -------------------------------------------------------------- within

    async def _ask(self, request: Mapping[str, Json], *, writes: bool) -> dict[str, Json]:
        settings = self._ctx.config
        whole = {
            **request,
            "hosts": list(settings.get("hosts", [])),
            "username": settings.get("username", ""),
            "password_file": settings.get("password_file", ""),
        }
        return await self._ctx.workers.ask(WORKER, whole, deadline_s=DEADLINE_S, writes=writes)

    async def _rows(self) -> list[dict[str, Json]]:
        if not await self._ctx.db.fetch(_THERE):
            return []
        return await self._ctx.db.select(_TABLE, limit=MAX_DEVICES)

    async def _remember(self, found: Sequence[Mapping[str, Json]]) -> None:
        """Store what a search found; what missed several searches is forgotten."""
        db = self._ctx.db
        new = {(one["mac"], one["child"]): {key: one[key] for key in _KEPT} for one in found}
        async with _CHANGING:
            rows = await self._rows()
            if new:
                await db.create_table(_TABLE, _COLUMNS)
            for row in rows:
                card = row["encrypted__device"]
                fresh = new.pop((card["mac"], card["child"]), None)
                missed = card.get("missed", 0) + 1
                if fresh is None and missed >= MOST_MISSED:
                    await db.delete(_TABLE, where={"id": row["id"]})
                elif fresh != card:
                    changed = {**card, "missed": missed} if fresh is None else fresh
                    await db.update(_TABLE, {"encrypted__device": changed}, where={"id": row["id"]})
            for card in [*new.values()][: MAX_DEVICES - len(rows)]:
                await db.insert(_TABLE, {"encrypted__device": card})

    async def _note_moves(self, outcomes: Iterable[Outcome]) -> None:
        """Store the new addresses of devices that were found at another one."""
        moved = {
            outcome.device.key[0]: {key: outcome.state[key] for key in ("host", "connection")}
            for outcome in outcomes
            if not outcome.failed and outcome.state["host"] != outcome.device.card["host"]
        }
        if not moved:
            return
        async with _CHANGING:
            for row in await self._rows():
                card = row["encrypted__device"]
                if card["mac"] in moved:
                    changed = {"encrypted__device": {**card, **moved[card["mac"]]}}
                    await self._ctx.db.update(_TABLE, changed, where={"id": row["id"]})


# ------------------------------------------------------------------ names


def matches(devices: Sequence[KnownDevice], name: str) -> list[KnownDevice]:
    """Return the devices of this name; else those whose name begins so; else those whose name
    contains it. Capitals do not matter, nor words that a spoken sentence leaves around it. An id
    names the one that has it.
    """
    if by_id := [one for one in devices if one.id == name.strip()]:
        return by_id
    for wanted in _readings(folded(" ".join(name.split()))):
        for match in _MATCHES:
            if found := [one for one in devices if match(folded(one.name), wanted)]:
                return found
    return []


def _readings(name: str) -> Iterator[str]:
    """Return a name as it is, then without the words around it."""
    words = name.split()
    yield name
    while len(words) > 1 and words[0] in _BEFORE:
        words = words[1:]
        yield " ".join(words)
    while len(words) > 1 and words[-1] in _AFTER:
        words = words[:-1]
        yield " ".join(words)


def _only(
    found: Sequence[KnownDevice], name: str, field: str, known: Sequence[KnownDevice]
) -> KnownDevice:
    """Return the one device. Raise `ToolFailure` if there is none, or several."""
    if len(found) == 1:
        return found[0]
    invalid = f"Invalid parameters: /{field}"
    if not found:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"{invalid} there is no device {name!r}; there is {_list(known) or 'none at all'}",
            suggestion="kasa:discover searches again",
            for_wearer=f"There is no device “{_named(name)}”.",
        )
    raise ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"{invalid} {name!r} could be {len(found)} devices: {_list(found, ids=True)}",
        suggestion="Give the whole name of one of them, or its id",
        for_wearer=f"Which one? {_list(found)}",
    )


def _named(name: str) -> str:
    """Return a name without the words that a spoken sentence leaves around it."""
    *_, plain = _readings(name)
    return plain


def _list(devices: Sequence[KnownDevice], *, ids: bool = False) -> str:
    shown = devices[:MOST_NAMED]
    named = ", ".join(f"{one.name} ({one.id})" if ids else one.name for one in shown)
    more = len(devices) - MOST_NAMED
    return f"{named}, and {more} more" if more > 0 else named


def _by_name(cards: Iterable[Mapping[str, Json]]) -> list[KnownDevice]:
    return sorted(map(KnownDevice, cards), key=lambda one: (folded(one.name), one.key))


# ------------------------------------------------------------------ words


def state_words(state: Mapping[str, Json]) -> str:
    """Return "on", "off" or "on, 30 %"."""
    if not state["on"]:
        return "off"
    return "on" if state["brightness"] is None else f"on, {state['brightness']} %"


def state_before(device: KnownDevice, state: Mapping[str, Json]) -> dict[str, Json]:
    """Return what kasa:set takes to bring a device back to what it was."""
    was = state["was"]
    before = {"device": device.id, "on": was["on"]}
    dimmed = was["on"] and was["brightness"] is not None
    return {**before, "brightness": was["brightness"]} if dimmed else before


def public(one: Mapping[str, Json]) -> dict[str, Json]:
    """Return what a caller gets of a device: its state, or why there is none."""
    if "on" not in one:
        return {"device": one.get("name", one.get("host")), "problem": one["text"]}
    return {"device": one["name"], "on": one["on"], "brightness": one["brightness"]}


def states_text(lines: Sequence[Mapping[str, Json]]) -> str:
    """Return how many devices are on, then those that are, then the others; a single one alone."""
    known = [one for one in lines if "on" in one]
    on = sum(bool(one["on"]) for one in known)
    order = sorted(lines, key=lambda one: not one["on"] if "on" in one else 2)
    if len(lines) < 2 or not known:
        return listed_text(order)
    head = f"{on} of {len(known)} on" if on else "All are off"
    return "\n".join([head, *listed_text(order).splitlines()[1:]])


def listed_text(lines: Sequence[Mapping[str, Json]]) -> str:
    """Return devices and problems as lines; a single device without a heading."""
    texts = [
        f"{one['name']}: {state_words(one)}" if "on" in one else str(one["text"]) for one in lines
    ]
    if len(texts) == 1:
        return texts[0]
    found = sum("on" in one for one in lines)
    head = f"{found} device{'' if found == 1 else 's'}" if found else "No device answers"
    return "\n".join([head if texts else "No devices", *(f"- {text}" for text in texts)])


def is_at_home(host: str) -> bool:
    """Return whether this is an IPv4 address of a home network or of this machine."""
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return any(address in network for network in HOME)
