"""bleak over bumble: the same BleakClient as on BlueZ, on virtual controllers, in process and
over TCP.
"""

import asyncio
import contextlib

import pytest
from bleak import BleakClient, BleakScanner
from bleak.exc import (
    BleakBluetoothNotAvailableError,
    BleakDeviceNotFoundError,
    BleakError,
    BleakGATTProtocolError,
)

from firmware_bridge.codecs.reference.messages import decode_info
from firmware_bridge.codecs.reference.uuids import INFO_UUID, RX_UUID, SERVICE_UUID, TX_UUID
from firmware_bridge.sim.air import Air
from firmware_bridge.sim.inproc import start_mock
from firmware_bridge.transports.ble import open_radio
from firmware_bridge.transports.bumble.radio import Bound
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear

pytestmark = pytest.mark.enable_socket

HELLO = bytes.fromhex(
    "0103 0000 2400 20000000 85 a174 a568656c6c6f a16e01 a17601 "
    "a46e616d65 a178 a776657273696f6e a131"
)
"""By hand from PROFILE.md: DATA, FIRST and LAST, frame 0: {t: hello, n: 1, v: 1, name: x,
version: 1}, 32 bytes.
"""


class Setup:
    def __init__(self, bound, mock, ear) -> None:
        self.bound, self.mock, self.ear = bound, mock, ear

    async def device(self):
        device = await BleakScanner.find_device_by_filter(
            lambda d, a: SERVICE_UUID in a.service_uuids,
            timeout=DEADLINE_S,
            backend=self.bound.scanner,
        )
        assert device is not None
        return device

    async def client(self, lost=None) -> BleakClient:
        return BleakClient(
            await self.device(),
            backend=self.bound.client,
            timeout=DEADLINE_S,
            disconnected_callback=lambda _client: lost.append(1) if lost is not None else None,
        )


@pytest.fixture(params=["inproc", "tcp"])
async def setup(request, tmp_path):
    ear, air = Ear(), Air()
    radio = "inproc" if request.param == "inproc" else "tcp:127.0.0.1:0"
    mock = await start_mock("mock:display", air, radio=radio, out_dir=tmp_path, tell=ear, mtu=247)
    bound = Bound(mock.mount.radio, air if request.param == "inproc" else None)
    yield Setup(bound, mock, ear)
    await bound.slot.close()
    await mock.close()


async def test_scanning_finds_name_service_and_strength(setup: Setup) -> None:
    found = await BleakScanner.discover(timeout=0.2, return_adv=True, backend=setup.bound.scanner)
    ((device, data),) = found.values()
    assert device.address == setup.mock.address
    assert (device.name, data.local_name, data.service_uuids) == (
        "MOCK-DSP",
        "MOCK-DSP",
        [SERVICE_UUID],
    )
    assert data.rssi < 0


async def test_a_service_filter_keeps_others_out(setup: Setup) -> None:
    other = await BleakScanner.discover(
        timeout=0.2, service_uuids=["180f"], backend=setup.bound.scanner
    )
    ours = await BleakScanner.discover(
        timeout=0.2, service_uuids=[SERVICE_UUID], backend=setup.bound.scanner
    )
    assert (len(other), len(ours)) == (0, 1)


async def test_connect_negotiates_the_mtu_and_finds_the_service(setup: Setup) -> None:
    async with await setup.client() as client:
        assert client.mtu_size == 247
        rx = client.services.get_characteristic(RX_UUID)
        assert rx.max_write_without_response_size == 244
        assert "write-without-response" in rx.properties
        assert client.services.get_characteristic(TX_UUID).properties == ["notify"]


async def test_info_is_read_whole_though_it_is_longer_than_a_packet(setup: Setup) -> None:
    async with await setup.client() as client:
        value = bytes(await client.read_gatt_char(INFO_UUID))
        assert len(value) > 247
        assert decode_info(value).model == "mock:display"


async def test_a_write_is_answered_by_notifications(setup: Setup) -> None:
    said: asyncio.Queue[bytes] = asyncio.Queue()
    async with await setup.client() as client:
        await client.start_notify(TX_UUID, lambda _c, data: said.put_nowait(bytes(data)))
        await client.write_gatt_char(RX_UUID, HELLO, response=False)
        async with asyncio.timeout(DEADLINE_S):
            assert (await said.get())[:4] == b"\x02\x00\x01\x00", "an ACK that wants frame 1"
            assert (await said.get())[:1] == b"\x01"
        await client.stop_notify(TX_UUID)


async def test_a_write_that_does_not_fit_is_refused_before_it_is_cut(setup: Setup) -> None:
    async with await setup.client() as client:
        with pytest.raises(BleakError, match="do not fit"):
            await client.write_gatt_char(RX_UUID, bytes(245), response=False)


async def test_a_forbidden_operation_is_a_protocol_error(setup: Setup) -> None:
    async with await setup.client() as client:
        with pytest.raises(BleakGATTProtocolError):
            await client.read_gatt_char(RX_UUID)
        with pytest.raises(BleakGATTProtocolError):
            await client.write_gatt_char(INFO_UUID, b"x", response=True)


async def test_an_address_alone_is_enough(setup: Setup) -> None:
    async with BleakClient(
        setup.mock.address, backend=setup.bound.client, timeout=DEADLINE_S
    ) as client:
        assert client.name == "MOCK-DSP"


async def test_an_unknown_address_is_not_found(setup: Setup) -> None:
    with pytest.raises(BleakDeviceNotFoundError):
        await BleakClient("F0:00:00:00:00:99", backend=setup.bound.client, timeout=0.3).connect()


async def test_disconnecting_calls_back_once_and_the_mock_advertises_again(setup: Setup) -> None:
    lost: list[int] = []
    client = await setup.client(lost)
    await client.connect()
    await client.disconnect()
    assert lost == [1]
    assert not client.is_connected
    await setup.ear.wait("disconnected")
    async with await setup.client():
        pass


async def test_an_unanswered_disconnect_closes_the_adapter(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    from firmware_bridge.transports.bumble import radio as bumble_radio

    monkeypatch.setattr(bumble_radio, "DISCONNECT_S", 0.1)
    lost: list[int] = []
    client = await setup.client(lost)
    await client.connect()
    adapter = await setup.bound.slot.adapter()
    monkeypatch.setattr(adapter.device.host, "send_hci_packet", lambda _packet: None)
    await client.disconnect()
    assert lost == [1]
    assert adapter.dead
    await setup.ear.wait("disconnected")
    async with await setup.client():
        pass


async def test_losing_the_link_calls_back_once_and_fails_what_is_under_way(setup: Setup) -> None:
    lost: list[int] = []
    client = await setup.client(lost)
    await client.connect()
    reading = asyncio.ensure_future(client.read_gatt_char(INFO_UUID))
    await asyncio.sleep(0)
    assert setup.mock.mount.drop()
    with pytest.raises(BleakError):
        await asyncio.wait_for(reading, DEADLINE_S)
    await setup.ear.wait("disconnected")
    assert lost == [1]
    with pytest.raises(BleakError):
        await client.write_gatt_char(RX_UUID, HELLO, response=False)
    async with await setup.client():
        pass


async def test_when_the_stream_ends_a_new_one_is_opened(
    setup: Setup,
) -> None:
    lost: list[int] = []
    client = await setup.client(lost)
    await client.connect()
    adapter = await setup.bound.slot.adapter()
    reading = asyncio.ensure_future(client.read_gatt_char(INFO_UUID))
    watching = asyncio.ensure_future(setup.bound.slot.lost())
    await asyncio.sleep(0)
    adapter.die("the cable was cut")
    with pytest.raises(BleakError, match="cable"):
        await asyncio.wait_for(reading, DEADLINE_S)
    assert await asyncio.wait_for(watching, DEADLINE_S) == "the cable was cut"
    adapter.die("again")
    assert lost == [1]
    assert not client.is_connected
    await client.disconnect()
    with pytest.raises(BleakBluetoothNotAvailableError, match="cable"):
        _ = adapter.device
    async with await setup.client():
        assert await setup.bound.slot.adapter() is not adapter
    assert lost == [1]


async def test_a_connect_that_is_given_up_leaves_the_radio_usable(setup: Setup) -> None:
    device = await setup.device()
    await setup.mock.close()
    gone = TimeoutError if setup.bound.slot.moniker == "inproc" else BleakError
    with pytest.raises(gone):
        await BleakClient(device, backend=setup.bound.client, timeout=0.2).connect()
    if setup.bound.slot.moniker == "inproc":
        with pytest.raises(TimeoutError):
            await BleakClient(device, backend=setup.bound.client, timeout=0.2).connect()


async def test_an_attempt_that_is_cancelled_can_be_made_again(tmp_path) -> None:
    air = Air()
    mock = await start_mock("mock:display", air, out_dir=tmp_path)
    bound = Bound("inproc", air)
    try:
        device = await Setup(bound, mock, None).device()
        mock.mount.antennas[0].source.le_legacy_advertiser.stop()
        attempt = asyncio.ensure_future(
            BleakClient(device, backend=bound.client, timeout=DEADLINE_S).connect()
        )
        adapter = await bound.slot.adapter()
        async with asyncio.timeout(DEADLINE_S):
            while not adapter.device.is_le_connecting:
                await asyncio.sleep(0)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        mock.mount.antennas[0].source.le_legacy_advertiser.start()
        async with BleakClient(device, backend=bound.client, timeout=DEADLINE_S) as client:
            assert client.is_connected
    finally:
        await bound.slot.close()
        await mock.close()


async def test_no_adapter_at_the_address_is_said_at_once() -> None:
    bound = Bound("tcp:127.0.0.1:9")
    with pytest.raises(BleakBluetoothNotAvailableError, match=r"127\.0\.0\.1:9"):
        await BleakScanner.discover(timeout=1, backend=bound.scanner)


async def test_an_adapter_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from firmware_bridge.transports.bumble import host

    monkeypatch.setattr(host, "OPEN_TIMEOUT_S", 0.2)
    hung_up = asyncio.Event()

    async def mute(reader, writer):
        await reader.read()
        hung_up.set()
        writer.close()

    async with await asyncio.start_server(mute, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(BleakBluetoothNotAvailableError, match="does not answer"):
            await Bound(f"tcp:127.0.0.1:{port}").slot.adapter()
        async with asyncio.timeout(DEADLINE_S):
            await hung_up.wait()


async def test_a_server_that_speaks_something_else_is_not_an_adapter() -> None:
    async def web(reader, writer):
        await reader.read(4)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(web, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(BleakBluetoothNotAvailableError, match="does not speak HCI"):
            await Bound(f"tcp:127.0.0.1:{port}").slot.adapter()


async def test_a_burst_of_writes_arrives_whole_and_in_order(setup: Setup) -> None:
    arrived: list[bytes] = []
    async with await setup.client() as client:
        await client.start_notify(TX_UUID, lambda _c, _d: None)
        subscription = setup.mock.servers[None]._current
        everything = asyncio.Event()

        def received(packet: bytes) -> None:
            arrived.append(packet)
            if len(arrived) == 300:
                everything.set()

        subscription.received = received
        queue = client._backend._link.data_packet_queue
        waiting = 0
        for number in range(300):
            await client.write_gatt_char(RX_UUID, number.to_bytes(2, "big") * 100, response=False)
            waiting = max(waiting, queue.pending)
        async with asyncio.timeout(DEADLINE_S):
            await everything.wait()
    assert waiting <= 40, "bumble's own queue has no bound; ours has"
    assert arrived == [number.to_bytes(2, "big") * 100 for number in range(300)]


async def test_a_lost_link_ends_any_operation_at_once(setup: Setup) -> None:
    """Also between two requests of one operation, where bumble would ask the dead link and wait
    30 s.
    """
    loop = asyncio.get_running_loop()

    def lose_in(turns: int) -> None:
        if turns:
            loop.call_soon(lose_in, turns - 1)
        else:
            setup.mock.mount.drop()

    for turns in range(0, 40, 3):
        async with await setup.client() as client:
            lose_in(turns)
            async with asyncio.timeout(DEADLINE_S):
                with contextlib.suppress(BleakError):
                    while client.is_connected:
                        await client.read_gatt_char(INFO_UUID)


async def test_opening_that_is_called_off_at_any_moment_leaves_no_half_conversation(
    tmp_path, caplog
) -> None:
    mock = await start_mock("mock:display", radio="tcp:127.0.0.1:0", out_dir=tmp_path)
    radio = await open_radio(mock.mount.radio)
    try:
        for turns in range(0, 120, 4):
            opening = asyncio.ensure_future(radio.back())
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            await asyncio.wait([opening], timeout=40)
            assert opening.done()
            await radio.close()
    finally:
        await radio.close()
        await mock.close()
    assert not [record for record in caplog.records if record.name == "asyncio"]
