"""Two connections as one, in memory: news, loss, joining again, and the end."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from firmware_bridge.errors import LinkLost, LostReason, RadioError, RadioReason
from firmware_bridge.sides import Side, SideNews, SidePacket
from firmware_bridge.transports.side_pair import FIRST_REST_S, LONGEST_REST_S, MAX_QUEUED, SidePair
from tests.unit.firmware_bridge.virtual import virtual_time

L, R = Side.LEFT, Side.RIGHT


class Wire:
    """One side's connection, held by the test."""

    name = "memory"

    def __init__(self, side, max_packet=244):
        self.address = f"00:00:00:00:00:0{list(Side).index(side)}"
        self.max_packet = max_packet
        self.written = []
        self.closed = 0
        self.broken = False
        self.inbox = asyncio.Queue()

    async def write(self, packet):
        if self.broken:
            raise LinkLost(LostReason.WRITE_FAILED)
        self.written.append(packet)

    async def packets(self):
        while (packet := await self.inbox.get()) is not None:
            yield packet

    def lose(self):
        self.inbox.put_nowait(None)

    async def close(self):
        self.closed += 1
        self.lose()


class Bench:
    """`away`: sides that cannot be joined now; `rests`: how long was waited."""

    def __init__(self, *there):
        self.wires = {side: Wire(side) for side in there}
        self.away = set()
        self.joins = []
        self.rests = []
        self.pair = SidePair("G1_47", self._join, self.wires, rest=self._rest)
        self.packets = self.pair.packets()

    async def _join(self, side):
        self.joins.append(side)
        if side in self.away:
            raise RadioError(RadioReason.NOT_FOUND, "not heard")
        await asyncio.sleep(0.1)
        self.wires[side] = Wire(side)
        return self.wires[side]

    async def _rest(self, seconds):
        self.rests.append(seconds)
        await asyncio.sleep(seconds)

    async def next(self):
        async with asyncio.timeout(1000):
            return await anext(self.packets)


@asynccontextmanager
async def bench(*there):
    made = Bench(*there)
    try:
        yield made
    finally:
        await made.pair.close()
        assert made.pair._running.done()


@virtual_time
async def test_the_connected_sides_come_before_their_packets():
    async with bench(L, R) as b:
        b.wires[R].inbox.put_nowait(b"r")
        assert [await b.next() for _ in range(3)] == [
            SideNews(L, up=True),
            SideNews(R, up=True),
            SidePacket(R, b"r"),
        ]


@virtual_time
async def test_a_packet_goes_to_its_side():
    async with bench(L, R) as b:
        await b.pair.write(SidePacket(R, b"1"))
        await b.pair.write(SidePacket(L, b"2"))
    assert (b.wires[L].written, b.wires[R].written) == ([b"2"], [b"1"])


@virtual_time
async def test_the_smaller_packet_counts():
    async with bench(L, R) as b:
        b.wires[R].max_packet = 20
        assert b.pair.max_packet == 20


@pytest.mark.requirement("I4-g1-one-side")
@pytest.mark.parametrize("lost", [L, R])
@virtual_time
async def test_a_lost_side_is_joined_again_while_the_other_continues(lost):
    other = R if lost is L else L
    async with bench(L, R) as b:
        await b.next(), await b.next()
        b.away = {lost}
        b.wires[lost].lose()
        assert await b.next() == SideNews(lost, up=False, reason="lost")
        b.wires[other].inbox.put_nowait(b"still here")
        assert await b.next() == SidePacket(other, b"still here")
        await b.pair.write(SidePacket(lost, b"into the void"))
        await b.pair.write(SidePacket(other, b"on"))
        await asyncio.sleep(100)
        b.away = set()
        assert await b.next() == SideNews(lost, up=True)
        await b.pair.write(SidePacket(lost, b"again"))
    assert b.wires[lost].written == [b"again"]
    assert b.wires[other].written == [b"on"]
    assert set(b.joins) == {lost}


@virtual_time
async def test_the_rests_between_tries_grow_to_a_bound():
    async with bench(L, R) as b:
        b.away = {L}
        b.wires[L].lose()
        await asyncio.sleep(200)
    assert b.rests[0] == FIRST_REST_S
    assert b.rests[:5] == sorted(b.rests[:5])
    assert max(b.rests) == LONGEST_REST_S == b.rests[-1]


@virtual_time
async def test_with_both_sides_lost_the_connection_is_over():
    async with bench(L, R) as b:
        b.away = {L, R}
        b.wires[L].lose()
        await asyncio.sleep(1)
        b.wires[R].lose()
        assert [p async for p in b.packets] == [
            SideNews(L, up=True),
            SideNews(R, up=True),
            SideNews(L, up=False, reason="lost"),
        ]
        with pytest.raises(LinkLost):
            await b.pair.write(SidePacket(R, b"x"))
        assert [p async for p in b.pair.packets()] == []


@virtual_time
async def test_a_side_that_was_not_there_at_first_joins_later():
    async with bench(R) as b:
        assert await b.next() == SideNews(R, up=True)
        assert await b.next() == SideNews(L, up=True)
        assert (b.pair.address, b.pair.name) == ("G1_47", "memory")


@virtual_time
async def test_a_side_the_codec_gives_up_is_closed_and_joined_again():
    async with bench(L, R) as b:
        await b.next(), await b.next()
        silent = b.wires[L]
        await b.pair.write(SideNews(L, up=False, reason="silent"))
        assert await b.next() == SideNews(L, up=False, reason="lost")
        assert await b.next() == SideNews(L, up=True)
        assert silent.closed
        await b.pair.write(SidePacket(L, b"x"))
    assert b.wires[L].written == [b"x"]


@virtual_time
async def test_a_write_that_fails_loses_its_side_and_not_the_other():
    async with bench(L, R) as b:
        await b.next(), await b.next()
        b.wires[L].broken = True
        await b.pair.write(SidePacket(L, b"x"))
        assert await b.next() == SideNews(L, up=False, reason="lost")
        assert b.wires[R].closed == 0


@virtual_time
async def test_a_packet_too_large_for_a_returned_side_keeps_the_link():
    async with bench(L, R) as b:
        await b.next(), await b.next()
        b.wires[L].max_packet = 20
        await b.pair.write(SidePacket(L, bytes(21)))
        assert await b.next() == SideNews(L, up=False, reason="lost")
        assert await b.next() == SideNews(L, up=True)
        assert b.wires[R].closed == 0


@virtual_time
async def test_closing_closes_both_sides_once_and_again_is_harmless():
    async with bench(L, R) as b:
        await b.pair.close()
        await b.pair.close()
        assert [p async for p in b.packets] == [SideNews(L, up=True), SideNews(R, up=True)]
    assert all(wire.closed for wire in b.wires.values())


@virtual_time
async def test_closing_in_the_middle_of_a_join_ends_the_join():
    async with bench(L, R) as b:
        b.away = {L}
        b.wires[L].lose()
        await asyncio.sleep(0.5)
        await b.pair.close()
        tries = len(b.joins)
        await asyncio.sleep(100)
        assert len(b.joins) == tries


@virtual_time
async def test_a_bug_is_not_reported_as_a_lost_side():
    async with bench(L, R) as b:

        async def broken(_side):
            raise ZeroDivisionError

        b.pair._join = broken
        b.wires[L].lose()
        with pytest.raises(ExceptionGroup) as fault:
            async for _ in b.packets:
                pass
        assert fault.group_contains(ZeroDivisionError)


@virtual_time
async def test_a_side_joined_during_the_closing_is_closed_too():
    async with bench(L, R) as b:
        joined = asyncio.get_running_loop().create_future()
        late = Wire(L)
        b.pair._join = lambda _side: joined
        b.wires[L].lose()
        await asyncio.sleep(1)
        joined.set_result(late)
        await b.pair.close()
        assert late.closed


@virtual_time
async def test_a_flapping_side_is_joined_with_growing_pauses_and_one_warning(
    caplog,
):
    async with bench(L, R) as b:

        async def flapping(side):
            b.joins.append(side)
            wire = Wire(side)
            wire.lose()
            return wire

        b.pair._join = flapping
        b.wires[L].lose()
        await asyncio.sleep(200)
        assert len(b.joins) < 20
        assert max(b.rests) == LONGEST_REST_S
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


@virtual_time
async def test_a_stable_side_is_rejoined_at_once():
    async with bench(L, R) as b:
        for _ in range(3):
            b.wires[L].lose()
            await asyncio.sleep(60)
        assert (len(b.joins), b.rests) == (3, [])


@virtual_time
async def test_a_late_write_failure_does_not_drop_a_returned_side():
    async with bench(L, R) as b:
        old, failing = b.wires[L], asyncio.Event()

        async def stuck(_packet):
            await failing.wait()
            raise LinkLost(LostReason.WRITE_FAILED)

        old.write = stuck
        writing = asyncio.ensure_future(b.pair.write(SidePacket(L, b"x")))
        old.lose()
        await asyncio.sleep(5)
        failing.set()
        await writing
        await asyncio.sleep(5)
        assert b.joins == [L]


@virtual_time
async def test_a_side_whose_packets_are_not_read_is_disconnected():
    async with bench(L, R) as b:
        flooding = b.wires[R]
        for _ in range(2 * MAX_QUEUED):
            flooding.inbox.put_nowait(bytes(244))
        await asyncio.sleep(5)
        assert flooding.closed
        assert b.pair._queue.qsize() < MAX_QUEUED + 10
        assert b.wires[L].closed == 0
