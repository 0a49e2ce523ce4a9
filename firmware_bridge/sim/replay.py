"""Glasses made of a recording: each packet of the central is answered by what followed it there."""

import asyncio
import heapq
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from msgspec import Struct

from firmware_bridge.catalog import find
from firmware_bridge.errors import LinkLost
from firmware_bridge.models import Gatt
from firmware_bridge.packets import ChannelPacket, channel_of
from firmware_bridge.recording.files import Recording
from firmware_bridge.recording.lines import GLASSES, Line
from firmware_bridge.sides import Side
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.model_parts import ModelParts
from firmware_bridge.sim.peripheral import PeripheralLink
from firmware_bridge.sim.time import SimTime

MAX_WAITING: Final = 4096
"""Answers that wait for their time."""
MAX_NOTED: Final = 100
"""Different packets that are noted as unknown."""
_DIGITS: Final = re.compile(rb"\d{6,}")
SHOWN: Final = 12
"""Bytes of a packet in the report."""


class Due(Struct, frozen=True):
    """A packet to the central, and how many seconds after the packet it answers."""

    after_s: float
    packet: bytes


class Exchange(Struct, frozen=True):
    """A packet of the recorded central, and all that followed until its next one."""

    asked: bytes
    answers: tuple[Due, ...]


class Report:
    """What was asked: how often the recording knew it, and what it did not know."""

    def __init__(self) -> None:
        self.known = 0
        self.nearest: Counter[str] = Counter()
        """Packets that were answered as the nearest of their kind, by how they begin."""
        self.unanswered: Counter[str] = Counter()

    def note(self, where: Counter[str], packet: bytes, side: Side | None) -> None:
        """Count a packet that the recording does not know."""
        more = "…" if len(packet) > SHOWN else ""
        names = [str(side)] if side else []
        names += [channel_of(packet)] if channel_of(packet) else []
        text = " ".join([*names, bytes(packet[:SHOWN]).hex(" ") + more])
        if text in where or len(where) < MAX_NOTED:
            where[text] += 1

    def to_json(self) -> dict[str, Any]:
        return {
            "event": "replayed",
            "known": self.known,
            "nearest": dict(self.nearest),
            "unanswered": dict(self.unanswered),
        }


class Replayer:
    """The answers of one connection, from its recorded packets. Used once."""

    def __init__(
        self, lines: Sequence[Line], gatt: Gatt, report: Report, side: Side | None
    ) -> None:
        self._report = report
        self._side = side
        self.first, self._exchanges = _exchanges(lines, gatt)
        self._used: set[int] = set()
        self._at = 0

    def answers(self, packet: bytes) -> list[Due]:
        """Return what follows a packet: as recorded if it is known, like the nearest of its kind
        if not, nothing if there is none.
        """
        same = [at for at, each in enumerate(self._exchanges) if _is(each.asked, packet)]
        if same:
            self._report.known += 1
            return self._take(same, packet)
        kind = _kind(packet)
        near = [at for at, each in enumerate(self._exchanges) if _kind(each.asked) == kind]
        if not near:
            self._report.note(self._report.unanswered, packet, self._side)
            return []
        self._report.note(self._report.nearest, packet, self._side)
        likeness = {at: _likeness(self._exchanges[at].asked, packet) for at in near}
        most = max(likeness.values())
        return self._take([at for at in near if likeness[at] == most], packet)

    def _take(self, fit: Iterable[int], packet: bytes) -> list[Due]:
        """Take the next of these that was not used; of one that was, only the answer itself
        again, and not what happened to follow.
        """
        fit = list(fit)
        unused = [at for at in fit if at not in self._used]
        chosen = next((at for at in unused if at >= self._at), unused[0] if unused else fit[-1])
        exchange = self._exchanges[chosen]
        found = exchange.answers
        if chosen in self._used:
            found = tuple(due for due in found if _kind(due.packet) == _kind(packet))
        self._used.add(chosen)
        self._at = chosen
        return [_echo(due, exchange.asked, packet) for due in found]


def _is(one: bytes, other: bytes) -> bool:
    return one == other and channel_of(one) == channel_of(other)


def _kind(packet: bytes) -> tuple[str, bytes]:
    """Return what packets with the same purpose share: channel and first byte."""
    return channel_of(packet), bytes(packet[:1])


def _likeness(one: bytes, other: bytes) -> tuple[bool, int]:
    """Return how alike two packets are: the length first, then how far they are equal."""
    equal = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return len(one) == len(other), sum(1 for _ in equal)


def _echo(due: Due, recorded: bytes, asked: bytes) -> Due:
    """Return an answer in which what it repeats of the question (a number) is that of this one: a
    byte in the same place, or many digits anywhere.
    """
    if bytes(recorded) == bytes(asked) or len(recorded) != len(asked):
        return due
    answer = bytearray(due.packet)
    for found in _DIGITS.finditer(recorded):
        digits = asked[found.start() : found.end()]
        if digits.isdigit():
            answer = answer.replace(found[0], digits)
    for at in range(1, min(len(answer), len(asked))):
        if recorded[at] and answer[at] == recorded[at]:
            answer[at] = asked[at]
    return Due(due.after_s, ChannelPacket(bytes(answer), channel_of(due.packet)))


def _exchanges(lines: Sequence[Line], gatt: Gatt) -> tuple[list[Due], list[Exchange]]:
    """Return what came before the first packet of the central, and each packet with what followed.
    Values of characteristics that are read are in neither: the central asks for them.
    """
    silent = {each.name for each in gatt.channels if not each.notify}
    unwritten = {each.name for each in gatt.channels if not each.write}
    first: list[Due] = []
    found: list[tuple[bytes, list[Due]]] = []
    since = lines[0].at if lines else 0.0
    for line in lines:
        if not line.is_packet:
            continue
        if line.to == GLASSES:
            if line.channel not in unwritten:
                found.append((line.one_packet(), []))
                since = line.at
        elif line.channel not in silent:
            due = Due(max(0.0, line.at - since), line.one_packet())
            (found[-1][1] if found else first).append(due)
    return first, [Exchange(asked, tuple(answers)) for asked, answers in found]


# ------------------------------------------------------------------ on a link


class ReplayedGlasses:
    """All connections of a recording, and what was asked of them. The nth connection is answered
    by the nth recorded one, later ones by the last.
    """

    def __init__(self, recording: Recording) -> None:
        self.report = Report()
        self._recording = recording
        self._gatt = find(recording.header.model).gatt
        self._visits: Counter[Side | None] = Counter()

    def parts(self, of_model: ModelParts) -> ModelParts:
        """Return the parts of the model's simulator, with the recording in the firmware's place."""
        mtu = self._recording.header.mtu
        return replace(of_model, serve=self.serve, read=self.read, mtu=mtu, latency_s=0.0)

    def read(self, _glasses: MockGlasses, side: Side | None, channel: str) -> bytes:
        """Return the value of a characteristic, as it was read last."""
        values = [line.content for line in self._of(side) if line.channel == channel and line.to]
        return values[-1] if values else b""

    def _of(self, side: Side | None) -> Iterator[Line]:
        return (line for line in self._recording.lines if line.side is side)

    async def serve(self, glasses: MockGlasses, side: Side | None, link: PeripheralLink) -> None:
        """Serve one central until it disconnects."""
        recorded = list(_connections(self._recording, side)) or [[]]
        lines = recorded[min(self._visits[side], len(recorded) - 1)]
        self._visits[side] += 1
        replayer = Replayer(lines, self._gatt, self.report, side)
        await _serve(replayer, link, glasses.time)


def _connections(recording: Recording, side: Side | None) -> Iterator[list[Line]]:
    """Yield the packets of each connection of one side."""
    for session in recording.sessions():
        lines: list[Line] = []
        for line in session:
            if line.side is not side or not (line.is_packet or line.up):
                continue
            if line.up and any(each.is_packet for each in lines):
                yield lines
                lines = []
            lines.append(line)
        if any(line.is_packet for line in lines):
            yield lines


async def _serve(replayer: Replayer, link: PeripheralLink, time: SimTime) -> None:
    waiting: list[tuple[float, int, bytes]] = []
    order, news, over = itertools.count(), asyncio.Event(), asyncio.Event()

    def schedule(answers: Iterable[Due]) -> None:
        for due in answers:
            if len(waiting) < MAX_WAITING:
                heapq.heappush(waiting, (time.now() + due.after_s, next(order), due.packet))
        news.set()

    async def listen() -> None:
        async for packet in link.packets():
            schedule(replayer.answers(packet))
        over.set()
        news.set()

    async def say() -> None:
        while not over.is_set():
            news.clear()
            if not waiting:
                await news.wait()
                continue
            left = waiting[0][0] - time.now()
            if left > 0:
                await _either(news, time, left)
                continue
            await link.notify(heapq.heappop(waiting)[2])

    schedule(replayer.first)
    async with asyncio.TaskGroup() as tasks:
        saying = tasks.create_task(_until_lost(say()))
        await listen()
        saying.cancel()


async def _either(news: asyncio.Event, time: SimTime, seconds: float) -> None:
    """Wait for so long, or until there is something that may be due earlier."""
    waits = [asyncio.ensure_future(news.wait()), asyncio.ensure_future(time.rest(seconds))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


async def _until_lost(saying: Any) -> None:
    try:
        await saying
    except LinkLost:
        return
