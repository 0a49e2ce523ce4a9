"""Our face of bleak: scan, connect, packets, and every failure with a reason and the next thing
to do.
"""

import asyncio
import gc
import subprocess
import sys

import pytest
from bleak import exc
from msgspec.structs import replace

from firmware_bridge.catalog import Catalog, find, supported
from firmware_bridge.codecs.reference.messages import decode_info
from firmware_bridge.errors import LinkLost, LostReason, RadioError, RadioReason
from firmware_bridge.messages import Hello, Ping, ShowPage, TextLine
from firmware_bridge.sim.inproc import start_mock
from firmware_bridge.transports.ble import open_radio, scan, scan_all
from firmware_bridge.transports.ble_connection import (
    MAX_QUEUED_PACKETS,
    SMALLEST_PACKET,
    _timed,
    connect,
)
from firmware_bridge.transports.radio_errors import classify
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear, meet

pytestmark = pytest.mark.enable_socket


@pytest.fixture
async def radio():
    radio = await open_radio("inproc")
    yield radio
    await radio.close()


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
async def mock(radio, tmp_path, ear):
    mock = await start_mock("mock:display", radio.air, out_dir=tmp_path, tell=ear)
    yield mock
    await mock.close()


async def test_scan_returns_as_soon_as_glasses_are_heard(radio, mock) -> None:
    async with asyncio.timeout(20):
        sighting = await scan(radio, timeout_s=60)
    assert (sighting.entry.key, sighting.address, sighting.name) == (
        "mock:display",
        mock.address,
        "MOCK-DSP",
    )
    assert sighting.rssi < 0


async def test_a_long_look_around_lets_others_have_the_radio_in_between(
    radio, mock, monkeypatch
) -> None:
    monkeypatch.setattr("firmware_bridge.transports.ble.TURN_S", 0.1)
    looking = asyncio.ensure_future(scan_all(radio, timeout_s=2.0))
    await asyncio.sleep(0)
    assert (await scan(radio, timeout_s=DEADLINE_S)).address == mock.address
    assert not looking.done()
    assert [s.address for s in await looking] == [mock.address]


async def test_scan_takes_only_what_was_asked_for(radio, mock, tmp_path) -> None:
    other = await start_mock("mock:audio", radio.air, out_dir=tmp_path)
    try:
        assert (
            await scan(radio, timeout_s=DEADLINE_S, model="mock:audio")
        ).address == other.address
        assert (
            await scan(radio, timeout_s=DEADLINE_S, address=mock.address.lower())
        ).entry.key == "mock:display"
        heard = set()
        async with asyncio.timeout(DEADLINE_S):
            while heard != {"mock:display", "mock:audio"}:
                heard |= {s.entry.key for s in await scan_all(radio, timeout_s=0.2)}
        with pytest.raises(RadioError) as error:
            await scan(radio, timeout_s=0.2, address=mock.address, model="mock:audio")
        assert error.value.reason is RadioReason.NOT_FOUND
    finally:
        await other.close()


async def test_nothing_in_the_air_is_not_found_with_a_hint(radio) -> None:
    with pytest.raises(RadioError) as error:
        await scan(radio, timeout_s=0.1)
    assert (error.value.reason, "switch the glasses on" in error.value.hint) == (
        RadioReason.NOT_FOUND,
        True,
    )
    assert await scan_all(radio, timeout_s=0.1) == []


async def test_a_catalogue_that_contradicts_itself_is_reported(radio, mock) -> None:
    twin = replace(find("mock:display"), key="twin")
    with pytest.raises(RadioError, match="twin"):
        await scan(radio, Catalog((*supported(), twin)), timeout_s=DEADLINE_S)


async def test_hobby_glasses_are_recognised_by_their_service(radio, tmp_path) -> None:
    mock = await start_mock("reference", radio.air, out_dir=tmp_path)
    try:
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        assert sighting.entry.key == "reference"
        transport = await connect(radio, sighting, timeout_s=DEADLINE_S)
        assert decode_info(transport.info_bytes).capabilities == {}
        await transport.close()
    finally:
        await mock.close()


async def test_connect_reads_who_they_are_and_how_much_a_packet_holds(radio, mock) -> None:
    transport = await connect(radio, await scan(radio, timeout_s=DEADLINE_S), timeout_s=DEADLINE_S)
    assert decode_info(transport.info_bytes).model == "mock:display"
    assert (transport.name, transport.address, transport.max_packet) == (
        "inproc",
        mock.address,
        244,
    )
    await transport.close()
    await transport.close()


async def test_a_page_over_the_whole_path(radio, mock, ear) -> None:
    async with meet(radio) as (driver, _):
        await driver.request(Hello("test", "1"), timeout_s=DEADLINE_S)
        done = await driver.request(
            ShowPage("s", lines=(TextLine(0, "Grüße"),)), timeout_s=DEADLINE_S
        )
    assert done.drawn == mock.glasses.lens.lit > 0
    assert (await ear.wait("lens", where=lambda e: e["scene"] == "s"))["lines"] == ["Grüße"]


@pytest.mark.requirement("M-mtu")
async def test_the_smallest_mtu_is_enough(radio, tmp_path) -> None:
    mock = await start_mock("mock:display", radio.air, out_dir=tmp_path, mtu=23)
    try:
        async with meet(radio) as (driver, transport):
            assert transport.max_packet == SMALLEST_PACKET
            await driver.request(Hello("test", "1"), timeout_s=DEADLINE_S)
            await driver.request(
                ShowPage("s", lines=(TextLine(0, "in many pieces " * 3),)), timeout_s=DEADLINE_S
            )
        assert mock.glasses.lens.text() == ["in many pieces " * 3]
    finally:
        await mock.close()


async def test_losing_the_link_ends_the_packets_and_fails_the_next_write(radio, mock) -> None:
    transport = await connect(radio, await scan(radio, timeout_s=DEADLINE_S), timeout_s=DEADLINE_S)
    mock.mount.drop()
    async with asyncio.timeout(DEADLINE_S):
        assert [p async for p in transport.packets()] == []
        assert [p async for p in transport.packets()] == [], "and again for whoever asks later"
    with pytest.raises(LinkLost) as error:
        await transport.write(b"x")
    assert error.value.reason is LostReason.DISCONNECTED
    await transport.close()


async def test_after_close_writes_say_closed(radio, mock) -> None:
    transport = await connect(radio, await scan(radio, timeout_s=DEADLINE_S), timeout_s=DEADLINE_S)
    await transport.close()
    with pytest.raises(LinkLost) as error:
        await transport.write(b"x")
    assert error.value.reason is LostReason.CLOSED


async def test_a_packet_that_does_not_fit_is_our_mistake(radio, mock) -> None:
    transport = await connect(radio, await scan(radio, timeout_s=DEADLINE_S), timeout_s=DEADLINE_S)
    with pytest.raises(ValueError, match="244 fit"):
        await transport.write(bytes(245))
    await transport.close()


async def test_other_glasses_than_advertised_are_refused_and_disconnected(radio, mock, ear) -> None:
    sighting = await scan(radio, timeout_s=DEADLINE_S)
    strange = replace(
        sighting.entry,
        gatt=replace(sighting.entry.gatt, rx="0000180f-0000-1000-8000-00805f9b34fb"),
    )
    with pytest.raises(RadioError) as error:
        await connect(radio, replace(sighting, entry=strange), timeout_s=DEADLINE_S)
    assert error.value.reason is RadioReason.STALE_CACHE
    await ear.wait("disconnected")


async def test_glasses_that_left_are_a_timeout_and_the_radio_stays_usable(
    radio, mock, tmp_path
) -> None:
    sighting = await scan(radio, timeout_s=DEADLINE_S)
    await mock.close()
    with pytest.raises(RadioError) as error:
        await connect(radio, sighting, timeout_s=0.3)
    assert error.value.reason is RadioReason.TIMEOUT
    again = await start_mock("mock:display", radio.air, out_dir=tmp_path)
    async with meet(radio) as (driver, _):
        await driver.request(Ping(), timeout_s=DEADLINE_S)
    await again.close()


async def test_scanning_and_connecting_wait_for_each_other(radio, mock) -> None:
    first = await scan(radio, timeout_s=DEADLINE_S)
    results = await asyncio.gather(
        connect(radio, first, timeout_s=DEADLINE_S),
        scan_all(radio, timeout_s=0.1),
        return_exceptions=True,
    )
    assert results[1] == [], "the scan ran after the connect: connected glasses do not advertise"
    await results[0].close()


async def test_a_scan_ends_when_its_radio_does(radio) -> None:
    scanning = asyncio.ensure_future(scan(radio, timeout_s=60))
    async with asyncio.timeout(DEADLINE_S):
        while radio.scanner.slot._adapter is None or not radio.scanner.slot._adapter._scanners:
            await asyncio.sleep(0)
        radio.scanner.slot._adapter.die("the HCI stream ended")
        with pytest.raises(RadioError) as error:
            await scanning
    assert error.value.reason is RadioReason.NO_ADAPTER


async def test_a_cancelled_scan_is_cancelled_and_stops_listening(radio, mock) -> None:
    scanning = asyncio.ensure_future(scan(radio, timeout_s=60, model="mock:full"))
    async with asyncio.timeout(DEADLINE_S):
        while radio.scanner.slot._adapter is None or not radio.scanner.slot._adapter._scanners:
            await asyncio.sleep(0)
        scanning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await scanning
    assert not radio.scanner.slot._adapter._scanners
    assert (await scan(radio, timeout_s=DEADLINE_S)).entry.key == "mock:display"


@pytest.mark.parametrize(
    "moniker",
    ["", "foo", "tcp:", "tcp:localhost", "tcp:h:0", "tcp:h:99999", "usb:", "usb:x", "inproc:1"],
)
async def test_a_radio_that_does_not_exist_is_refused_with_those_that_do(moniker: str) -> None:
    with pytest.raises(RadioError) as error:
        await open_radio(moniker)
    assert "bluez, usb:N, tcp:HOST:PORT or inproc" in error.value.hint


async def test_a_tcp_radio_without_a_mock_says_how_to_start_one() -> None:
    radio = await open_radio("tcp:127.0.0.1:9")
    with pytest.raises(RadioError) as error:
        await scan(radio, timeout_s=DEADLINE_S)
    assert error.value.reason is RadioReason.NO_ADAPTER
    assert error.value.hint.endswith("--radio tcp:127.0.0.1:9")


async def test_a_radio_in_use_says_so(tmp_path) -> None:
    mock = await start_mock("mock:display", radio="tcp:127.0.0.1:0", out_dir=tmp_path)
    first, second = [await open_radio(mock.mount.radio) for _ in range(2)]
    try:
        await scan(first, timeout_s=DEADLINE_S)
        with pytest.raises(RadioError) as error:
            await scan(second, timeout_s=DEADLINE_S)
        assert error.value.reason is RadioReason.BUSY
        await first.close()
        assert (await scan(second, timeout_s=DEADLINE_S)).entry.key == "mock:display"
    finally:
        await first.close()
        await second.close()
        await mock.close()


async def test_bluez_without_bluetoothd_fails_fast_and_says_what_to_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path / 'no-bus'}")
    radio = await open_radio("bluez")
    async with asyncio.timeout(20):
        with pytest.raises(RadioError) as error:
            await scan(radio, timeout_s=60)
    assert error.value.reason is RadioReason.NO_SERVICE
    assert "systemctl start bluetooth" in error.value.hint


def test_a_bluez_radio_loads_neither_bumble_nor_pillow() -> None:
    code = (
        "import asyncio, sys\n"
        "from firmware_bridge.transports import ble\n"
        "assert not {'bleak', 'bumble'} & set(sys.modules), 'imported before use'\n"
        "radio = asyncio.run(ble.open_radio('bluez'))\n"
        "try: asyncio.run(ble.scan(radio, timeout_s=1))\n"
        "except Exception: pass\n"
        "assert 'bleak' in sys.modules\n"
        "assert not {'bumble', 'PIL'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


class BleakDBusError(Exception):
    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, text)  # as bleak's own does


class BleakBluetoothNotAvailableError(Exception):
    reason = type("Reason", (), {"name": "POWERED_OFF"})


@pytest.mark.parametrize(
    ("error", "reason", "hint"),
    [
        (
            BleakBluetoothNotAvailableError("Bluetooth is off"),
            RadioReason.POWERED_OFF,
            "bluetoothctl power on",
        ),
        (
            BleakDBusError("org.bluez.Error.NotReady", "Resource Not Ready"),
            RadioReason.POWERED_OFF,
            "bluetoothctl power on",
        ),
        (
            BleakDBusError(
                "org.freedesktop.DBus.Error.ServiceUnknown", "The name org.bluez was not provided"
            ),
            RadioReason.NO_SERVICE,
            "systemctl start bluetooth",
        ),
        (
            FileNotFoundError(2, "No such file or directory"),
            RadioReason.NO_SERVICE,
            "systemctl start bluetooth",
        ),
        (
            BleakDBusError("org.bluez.Error.InProgress", "Operation already in progress"),
            RadioReason.BUSY,
            "another program",
        ),
        (
            BleakDBusError("org.bluez.Error.AuthenticationFailed", ""),
            RadioReason.REFUSED,
            "glassd pair",
        ),
        (
            BleakDBusError("org.freedesktop.DBus.Error.AccessDenied", "Rejected send message"),
            RadioReason.NOT_ALLOWED,
            "bluetooth",
        ),
        (
            BleakDBusError("org.freedesktop.DBus.Error.UnknownObject", "Method does not exist"),
            RadioReason.NOT_FOUND,
            "near",
        ),
        (Exception("No Bluetooth adapters found."), RadioReason.NO_ADAPTER, "another radio"),
        (TimeoutError(), RadioReason.TIMEOUT, "near"),
        (ModuleNotFoundError("No module named 'bumble'"), RadioReason.NO_ADAPTER, "glassd[sim]"),
        (
            BleakDBusError("org.bluez.Error.Failed", "br-connection-canceled"),
            RadioReason.LINK_FAILED,
            "nearer",
        ),
        (
            BleakDBusError("org.bluez.Error.Failed", "le-connection-abort-by-local"),
            RadioReason.LINK_FAILED,
            "nearer",
        ),
        (
            BleakDBusError("org.bluez.Error.Failed", "Input/output error"),
            RadioReason.LINK_FAILED,
            "nearer",
        ),
        (
            Exception("failed to discover services, device disconnected"),
            RadioReason.LINK_FAILED,
            "nearer",
        ),
        (
            BleakDBusError("org.bluez.Error.AlreadyConnected", ""),
            RadioReason.CONNECTED_ELSEWHERE,
            "disconnect them there",
        ),
        (
            BleakDBusError("org.bluez.Error.AuthenticationFailed", "No agent available"),
            RadioReason.NO_AGENT,
            "glassd pair",
        ),
        (
            Exception("the controller refused: PIN_OR_KEY_MISSING"),
            RadioReason.BOND_LOST,
            "glassd pair",
        ),
        (
            BleakDBusError("org.bluez.Error.NotPermitted", "Notify acquired"),
            RadioReason.STALE_CACHE,
            "firmware",
        ),
        (Exception("Characteristic 6e40 was not found"), RadioReason.STALE_CACHE, "firmware"),
        (
            BleakDBusError("org.bluez.Error.Failed", "Insufficient Authentication"),
            RadioReason.NOT_PAIRED,
            "glassd pair",
        ),
        (
            BleakDBusError(
                "org.freedesktop.systemd1.UnitMasked", ["Unit dbus-org.bluez.service is masked."]
            ),
            RadioReason.NO_SERVICE,
            "systemctl start bluetooth",
        ),
        (
            BleakDBusError(
                "org.freedesktop.DBus.Error.FileExists",
                ["Unit dbus-org.bluez.service failed to load properly"],
            ),
            RadioReason.NO_SERVICE,
            "systemctl start bluetooth",
        ),
        (EOFError(), RadioReason.NO_SERVICE, "systemctl start bluetooth"),
        (
            ConnectionError("bluetoothd is gone"),
            RadioReason.NO_SERVICE,
            "systemctl start bluetooth",
        ),
        (ConnectionError("the adapter hci0 is gone"), RadioReason.NO_ADAPTER, "plug in"),
        (
            ConnectionError("the adapter hci0 is not powered"),
            RadioReason.POWERED_OFF,
            "bluetoothctl power on",
        ),
        (RuntimeError("whatever"), RadioReason.OTHER, ""),
    ],
)
def test_every_known_text_has_a_reason_and_a_way_out(
    error: Exception, reason: RadioReason, hint: str
) -> None:
    told = classify(error, "scanning")
    assert told.reason is reason
    assert hint in told.hint
    assert str(told).startswith("scanning: ")


def test_what_is_said_is_words_not_names_of_code() -> None:
    absent = exc.BleakBluetoothNotAvailableError(
        "no virtual adapter at h:1", exc.BleakBluetoothNotAvailableReason.NO_BLUETOOTH
    )
    assert str(classify(absent, "scanning")) == "scanning: no virtual adapter at h:1"


def test_what_fails_on_a_bonded_link_puts_the_bond_in_doubt() -> None:
    broken = BleakDBusError("org.bluez.Error.Failed", "br-connection-canceled")
    assert classify(broken, "connecting", bonded=True).reason is RadioReason.BOND_DOUBT
    refused = BleakDBusError("org.bluez.Error.Failed", "Insufficient Encryption")
    assert classify(refused, "connecting", bonded=True).reason is RadioReason.BOND_LOST
    assert "glassd pair" in classify(refused, "connecting", bonded=True).hint
    assert classify(TimeoutError(), "connecting", bonded=True).reason is RadioReason.TIMEOUT


def test_remote_text_is_made_plain_before_anybody_reads_it() -> None:
    told = classify(RuntimeError("evil\x1b[2J\n\ttext" + "x" * 1000), "scanning")
    assert "\x1b" not in str(told)
    assert "\n" not in str(told)
    assert len(str(told)) < 400


async def test_a_peer_whose_packets_are_not_read_is_disconnected(radio, mock) -> None:
    transport = await connect(radio, await scan(radio, timeout_s=DEADLINE_S), timeout_s=DEADLINE_S)
    try:
        for _ in range(3 * MAX_QUEUED_PACKETS):
            transport._received(None, bytearray(244))
        taken = 0
        with pytest.raises(LinkLost) as lost:
            async for _ in transport.packets():
                taken += 1
        assert (taken, lost.value.reason) == (MAX_QUEUED_PACKETS, LostReason.PROTOCOL)
    finally:
        await transport.close()


async def test_a_write_that_fails_while_its_driver_is_cancelled_is_not_reported():
    """Its error is nobody's: asyncio would log it with a traceback, some time later."""
    loop, reported = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _loop, context: reported.append(context["message"]))
    radio = loop.create_future()

    async def write():
        await radio

    writing = asyncio.create_task(_timed(write()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    radio.set_exception(exc.BleakError("disconnected"))
    writing.cancel()
    await asyncio.wait({writing})
    assert writing.cancelled()
    del writing
    gc.collect()
    assert reported == []
