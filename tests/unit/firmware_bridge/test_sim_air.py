"""The virtual air: hosts come and go, links drop on both sides, the radio is always free again."""

import asyncio

import pytest
from bumble import hci
from bumble.device import Device, DeviceConfiguration, Peer
from bumble.transport.common import AsyncPipeSink

from firmware_bridge.sim.air import Air, HciServer
from firmware_bridge.sim.gatt import advertisement
from firmware_bridge.sim.inproc import start_mock
from firmware_bridge.transports.hci_stream import BUSY, H4Splitter, NotH4
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S

pytestmark = pytest.mark.enable_socket

RESET = bytes([0x01, 0x03, 0x0C, 0x00])
RESET_DONE = bytes([0x04, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00])


@pytest.fixture
async def door():
    door = HciServer(Air(), "127.0.0.1", 0)
    await door.open()
    yield door
    await door.close()


async def attach(door: HciServer):
    port = door._server.sockets[0].getsockname()[1]
    return await asyncio.open_connection("127.0.0.1", port)


async def reset(reader, writer) -> bytes:
    writer.write(RESET)
    async with asyncio.timeout(DEADLINE_S):
        return await reader.readexactly(len(RESET_DONE))


async def test_a_host_gets_a_controller_that_answers(door: HciServer) -> None:
    reader, writer = await attach(door)
    assert await reset(reader, writer) == RESET_DONE
    writer.close()


async def test_a_second_host_hears_that_the_radio_is_taken(door: HciServer) -> None:
    first = await attach(door)
    await reset(*first)
    reader, writer = await attach(door)
    writer.write(RESET)
    async with asyncio.timeout(DEADLINE_S):
        assert await reader.read() == BUSY
    writer.close()
    assert await reset(*first) == RESET_DONE, "the first is not disturbed"
    first[1].close()


async def test_a_host_that_comes_while_the_last_one_dies_is_served(door: HciServer) -> None:
    first = await attach(door)
    await reset(*first)
    second = await attach(door)
    waiting = asyncio.ensure_future(reset(*second))
    first[1].transport.abort()
    assert await waiting == RESET_DONE
    second[1].close()


async def test_hosts_follow_one_another_and_leave_no_controller_behind(door: HciServer) -> None:
    for _ in range(3):
        reader, writer = await attach(door)
        assert await reset(reader, writer) == RESET_DONE
        writer.close()
        async with asyncio.timeout(DEADLINE_S):
            while await reader.read(100):
                pass
            while door.air._link.controllers:
                await asyncio.sleep(0)
    assert not door.air._link.controllers


@pytest.mark.parametrize(
    "junk",
    [b"GET / HTTP/1.1\r\n\r\n", bytes([0x01, 0x03]) + b"\x0c\x05ab", bytes([0x04, 0x99, 0x00])],
    ids=["http", "short", "event"],
)
async def test_a_client_without_hci_is_rejected_and_the_next_served(
    door: HciServer, junk: bytes
) -> None:
    _, bad = await attach(door)
    bad.write(junk)
    bad.write_eof()
    await bad.drain()
    bad.close()
    reader, writer = await attach(door)
    assert await reset(reader, writer) == RESET_DONE
    writer.close()


async def test_reset_silences_a_controller() -> None:
    air = Air()
    heard: list[bytes] = []
    controller = air.controller("c", sink=type("Sink", (), {"on_packet": heard.append}))
    controller.le_scan_enable = True
    controller.le_legacy_advertiser.start()
    controller.on_packet(RESET)
    await asyncio.sleep(0)
    assert heard[-1] == RESET_DONE
    assert not controller.is_advertising
    assert not controller.le_scan_enable


async def test_cancelling_a_connection_attempt_is_answered() -> None:
    heard: list[hci.HCI_Packet] = []
    sink = type("Sink", (), {"on_packet": lambda p: heard.append(hci.HCI_Packet.from_bytes(p))})
    controller = Air().controller("c", sink=sink)
    controller.on_packet(bytes([0x01, 0x0E, 0x20, 0x00]))
    await asyncio.sleep(0)
    assert heard[-1].return_parameters.status == hci.HCI_ErrorCode.COMMAND_DISALLOWED_ERROR
    controller.pending_le_connection = type(
        "Pending", (), {"peer_address": hci.Address("F0:00:00:00:00:01")}
    )
    controller.on_packet(bytes([0x01, 0x0E, 0x20, 0x00]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert isinstance(heard[-1], hci.HCI_LE_Connection_Complete_Event)
    assert heard[-1].status == hci.HCI_ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR
    assert controller.pending_le_connection is None


async def test_only_an_active_scan_hears_the_scan_response() -> None:
    air = Air()
    heard: list[hci.HCI_Packet] = []
    ears = air.controller(
        "ears",
        sink=type("Sink", (), {"on_packet": lambda p: heard.append(hci.HCI_Packet.from_bytes(p))}),
    )
    mouth = air.controller("mouth")
    mouth.random_address = hci.Address("F0:00:00:00:00:01")
    mouth.le_legacy_advertiser.own_address_type = 1
    mouth.le_legacy_advertiser.advertising_data, mouth.le_legacy_advertiser.scan_response_data = (
        b"\x02\x01\x06",
        b"\x02\x09M",
    )
    mouth.le_legacy_advertiser.enabled = ears.le_scan_enable = True
    for active, wanted in (
        (1, [(0, b"\x02\x01\x06"), (4, b"\x02\x09M")]),
        (0, [(0, b"\x02\x01\x06")]),
    ):
        ears.le_scan_type = active
        heard.clear()
        mouth.le_legacy_advertiser.send_advertising_data()
        for _ in range(3):  # through the link, out of the controller
            await asyncio.sleep(0)
        assert [(r.event_type, r.data) for e in heard for r in e.reports] == wanted
        assert ears.le_scan_enable


async def test_a_host_with_a_public_address_is_served_like_bluez(tmp_path) -> None:
    air = Air()
    mock = await start_mock("mock:display", air, out_dir=tmp_path)
    controller = air.controller("linux")
    central = Device.from_config_with_hci(
        DeviceConfiguration(name="x"), controller, AsyncPipeSink(controller)
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            await central.power_on()
            link = await central.connect(
                hci.Address(mock.address), own_address_type=hci.OwnAddressType.PUBLIC, timeout=None
            )
            assert await Peer(link).request_mtu(300) == 247
            await link.disconnect()
    finally:
        air.remove(controller)
        await mock.close()


async def test_a_controller_does_not_offer_what_linux_would_wait_for() -> None:
    offered = Air().controller("c").le_features
    assert not offered & (hci.LeFeatureMask.LL_PRIVACY | hci.LeFeatureMask.LE_EXTENDED_ADVERTISING)


def test_h4_is_cut_into_packets_however_it_arrives() -> None:
    packets = [
        RESET,
        RESET_DONE,
        bytes([0x02, 0x01, 0x20, 0x03, 0x00]) + b"abc",
        bytes([0x05, 0x01, 0x20, 0x01, 0xC0]) + b"x",
    ]
    stream = b"".join(packets)
    assert H4Splitter().feed(stream) == packets
    splitter = H4Splitter()
    assert [p for byte in stream for p in splitter.feed(bytes([byte]))] == packets


def test_h4_stops_at_what_is_no_packet() -> None:
    with pytest.raises(NotH4, match="0x47"):
        H4Splitter().feed(b"GET /")


def test_the_advertisement_fits_31_bytes_and_shortens_the_name() -> None:
    uuid = "1cb70001-9a97-4c4c-abdc-2194059f5b11"
    assert len(advertisement("MOCK-DSP", uuid)) == 31
    assert advertisement("MOCK-DSP", uuid)[-9:] == b"\x09MOCK-DSP"
    assert advertisement("MOCK-DISPLAY", uuid)[-9:] == b"\x08MOCK-DIS"
