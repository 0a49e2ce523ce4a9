"""The loopback: order, faults, bounds, and the end of a connection."""

import asyncio

import pytest

from firmware_bridge.errors import LinkLost, LocalMisuse, LostReason
from firmware_bridge.transports.loopback import QUEUE_PACKETS, Faults, loopback_pair


async def collect(transport):
    return [packet async for packet in transport.packets()]


async def test_packets_arrive_in_order_in_both_directions_and_end_with_the_connection():
    central, glasses = loopback_pair()
    for number in range(3):
        await central.write(b"down %d" % number)
        await glasses.write(b"up %d" % number)
    await central.close()
    await central.close()
    async with asyncio.timeout(40):
        assert await collect(glasses) == [b"down 0", b"down 1", b"down 2"]
        assert await collect(central) == [b"up 0", b"up 1", b"up 2"]


@pytest.mark.parametrize("end", [0, 1])
async def test_a_write_after_either_end_closed_is_link_lost(end):
    pair = loopback_pair()
    await pair[end].close()
    for transport in pair:
        with pytest.raises(LinkLost) as lost:
            await transport.write(b"x")
        assert lost.value.reason is LostReason.DISCONNECTED


async def test_a_writer_waits_for_room_and_is_freed_by_the_end():
    central, _ = loopback_pair()
    for _ in range(QUEUE_PACKETS):
        await central.write(b"x")
    waiting = asyncio.ensure_future(central.write(b"one more"))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    await central.close()
    with pytest.raises(LinkLost):
        await waiting


async def test_a_packet_larger_than_the_link_is_misuse():
    central, _ = loopback_pair(max_packet=20)
    with pytest.raises(LocalMisuse, match="21 bytes"):
        await central.write(b"x" * 21)
    central.max_packet = 30
    await central.write(b"x" * 21)


def test_faults_lose_double_and_delay_by_position():
    air = Faults(lost=[1], doubled=[2], late={0: 2, 4: 1})
    passed = [list(air(packet)) for packet in (b"0", b"1", b"2", b"3", b"4", b"5")]
    assert passed == [[], [], [b"2", b"2", b"0"], [b"3"], [], [b"5", b"4"]]


async def test_faults_lie_under_one_direction_only():
    central, glasses = loopback_pair(to_glasses=Faults(lost=[0]))
    await central.write(b"lost")
    await central.write(b"kept")
    await glasses.write(b"up")
    await central.close()
    assert await collect(glasses) == [b"kept"]
    assert await collect(central) == [b"up"]
