"""What `glassd record` makes of the stream: a real control server, a link that a test plays."""

import asyncio
from types import SimpleNamespace

import pytest

from edge.commands.shared import packet_recorder
from edge.commands.shared.packet_recorder import PacketRecorder
from edge.ports import TapTaken
from edge.runtime.errors import UserError
from firmware_bridge.catalog import find
from firmware_bridge.driver import Passing
from tests.unit.control.house import DEADLINE_S, open_house
from tests.unit.control.test_packets import Link

pytestmark = pytest.mark.enable_socket
BOND = {"id": "G1_47", "name": "Even G1_47", "addresses": {"left": "AA:BB:CC:00:11:22"}}
PAIRING = SimpleNamespace(describe=lambda: {"bonds": [BOND]})
CONNECTED = (find("mock:full"), SimpleNamespace(max_packet=244, address="F0:5A:00:11:22:33"))


def house(tmp_path, link):
    return open_house(tmp_path, packets=link.tapped, pairing=PAIRING)


def recorder_of(house):
    return PacketRecorder(SimpleNamespace(socket=str(house.path)))


async def test_names_and_addresses_of_the_bond_and_the_link_are_replaced(tmp_path):
    link = Link()
    async with asyncio.timeout(DEADLINE_S), house(tmp_path, link) as where:
        recorder = recorder_of(where)
        await asyncio.to_thread(recorder.start)
        await link.listened.wait()
        link.tap(1.0, Passing.CONNECTED, CONNECTED)
        link.tap(1.1, Passing.IN, b"\x01Even G1_47\xaa\xbb\xcc\x00\x11\x22\xf0\x5a\x00\x11\x22\x33")
        await asyncio.to_thread(recorder.connect)
        while not recorder.maker.packets:
            await asyncio.to_thread(recorder.collect, 0.1)
        recorder.stop()
    assert link.reconnects == [True]
    [packet] = [line for line in recorder.maker.recording().lines if line.is_packet]
    assert packet.content == b"\x01XXXX X0_00" + bytes(12)


async def test_glasses_that_do_not_connect_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(packet_recorder, "CONNECT_S", 0.3)
    async with asyncio.timeout(DEADLINE_S), house(tmp_path, Link()) as where:
        recorder = recorder_of(where)
        await asyncio.to_thread(recorder.start)
        with pytest.raises(UserError, match="no glasses connected") as refused:
            await asyncio.to_thread(recorder.connect)
        recorder.stop()
    assert refused.value.exit_code == 4


async def test_a_second_recording_is_refused_with_the_reason(tmp_path):
    async with asyncio.timeout(DEADLINE_S), house(tmp_path, Link(TapTaken("taken"))) as where:
        recorder = recorder_of(where)
        await asyncio.to_thread(recorder.start)
        with pytest.raises(UserError, match="taken") as refused:
            await asyncio.to_thread(recorder.connect)
    assert (refused.value.code, refused.value.fix) == ("CONFLICT", "end the other recording first")


async def test_a_daemon_that_ends_leaves_what_was_recorded(tmp_path):
    link = Link()
    async with asyncio.timeout(DEADLINE_S), house(tmp_path, link) as where:
        recorder = recorder_of(where)
        await asyncio.to_thread(recorder.start)
        await link.listened.wait()
        link.tap(1.0, Passing.CONNECTED, CONNECTED)
        await asyncio.to_thread(recorder.connect)
    await asyncio.to_thread(recorder.collect, DEADLINE_S)
    assert recorder.ended
    assert recorder.maker.recording() is not None
