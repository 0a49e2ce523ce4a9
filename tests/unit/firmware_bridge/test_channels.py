"""Glasses with more characteristics than rx and tx, over bleak and bumble."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from bumble import att
from msgspec.structs import replace

from firmware_bridge.catalog import Catalog
from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import RadioError
from firmware_bridge.models import Channel, Gatt, Model, Pairing
from firmware_bridge.packets import SUBSCRIBE, UNSUBSCRIBE, ChannelPacket, channel_of
from firmware_bridge.sim.air import Air
from firmware_bridge.sim.gatt import by_service
from firmware_bridge.sim.inproc import Mock
from firmware_bridge.sim.model_parts import ModelParts, Serve, address_of
from firmware_bridge.sim.radio_setup import RadioSetup
from firmware_bridge.transports.ble import open_radio, scan
from firmware_bridge.transports.ble_connection import BleTransport, connect

DEADLINE_S = 20.0
MAIN = "19b10000-e8f2-537e-4f6c-d104768a1214"
BATTERY = "0000180f-0000-1000-8000-00805f9b34fb"
WHERE = Gatt(
    MAIN,
    "",
    "19b10001-e8f2-537e-4f6c-d104768a1214",
    channels=(
        Channel("form", MAIN, "19b10002-e8f2-537e-4f6c-d104768a1214", read=True, first=True),
        Channel("control", MAIN, "19b10006-e8f2-537e-4f6c-d104768a1214", write=True),
        Channel("level", BATTERY, "00002a19-0000-1000-8000-00805f9b34fb", read=True, notify=True),
    ),
)
ABSENT = Channel("absent", MAIN, "19b10099-e8f2-537e-4f6c-d104768a1214", notify=True, optional=True)
WANTED = Channel("wanted", MAIN, ABSENT.uuid, notify=True, on_request=True)
VALUES = {"form": b"\x15", "level": b"\x57"}


def model(*more: Channel) -> Model:
    where = Gatt(WHERE.service, WHERE.rx, WHERE.tx, channels=WHERE.channels + more)
    return Model(
        "channels", "Channels", where, codec=None, names=("CHANNEL",), pairing=Pairing.NONE
    )


async def serve(_glasses: Any, _side: Any, link: Any) -> None:
    """Send back what comes: as a notification of tx, and of the battery level."""
    async for packet in link.packets():
        await link.notify(channel_of(packet).encode() + b":" + packet)
        await link.notify(ChannelPacket(packet, "level"))


def parts(serve: Serve = serve) -> ModelParts:
    return ModelParts(
        (None,),
        serve,
        lambda _packet: False,
        lambda model, _side: by_service("CHANNEL", address_of(model.key), model.gatt.service),
        247,
        read=lambda _glasses, _side, channel: VALUES[channel],
    )


@asynccontextmanager
async def connected(
    tmp_path: Any, ours: Model, theirs: Model, serve: Serve = serve
) -> AsyncIterator[BleTransport]:
    air = Air()
    mount = RadioSetup("inproc", air, radios=1)
    await mount.open()
    mock = Mock(theirs, mount, tmp_path, None, lambda _event: None, parts=parts(serve))
    mock.start()
    radio = await open_radio("inproc", air=air)
    try:
        sighting = await scan(radio, Catalog((ours,)), timeout_s=DEADLINE_S)
        transport = await connect(radio, sighting, timeout_s=DEADLINE_S)
        try:
            yield transport
        finally:
            await transport.close()
    finally:
        await radio.close()
        await mock.close()


async def some(transport: BleTransport, count: int) -> list[tuple[str, bytes]]:
    """Return the next packets, each with its channel."""
    packets: list[tuple[str, bytes]] = []
    async with timeout(DEADLINE_S):
        async for packet in transport.packets():
            packets.append((channel_of(packet), bytes(packet)))
            if len(packets) == count:
                return packets
    raise AssertionError(f"the connection ended after {packets}")


async def test_packets_move_on_their_channels(tmp_path):
    async with connected(tmp_path, model(), model()) as transport:
        assert await some(transport, 1) == [("form", b"\x15")], "is read when it connects"
        await transport.write(ChannelPacket(b"\xff", "control"))
        assert await some(transport, 2) == [("", b"control:\xff"), ("level", b"\xff")]
        await transport.write(ChannelPacket(b"", "level"))
        assert await some(transport, 1) == [("level", b"\x57")], "asked for"


async def test_an_optional_channel_may_be_missing(tmp_path):
    async with connected(tmp_path, model(ABSENT), model()) as transport:
        await transport.write(ChannelPacket(b"\x01", "absent"))
        await transport.write(ChannelPacket(b"\x02", "control"))
        assert (await some(transport, 2))[1] == ("", b"control:\x02")


@pytest.mark.parametrize("optional", [True, False])
async def test_an_optional_channel_may_refuse(tmp_path, monkeypatch, optional):
    """As BlueZ does with services that it uses itself."""

    class Refusing(dict[str, bytes]):
        def __missing__(self, _key: str) -> bytes:
            raise att.ATT_Error(att.ErrorCode.READ_NOT_PERMITTED)

    monkeypatch.setitem(globals(), "VALUES", Refusing(VALUES))
    secret = Channel("secret", MAIN, ABSENT.uuid, first=True, optional=optional)
    if not optional:
        with pytest.raises(RadioError, match="READ_NOT_PERMITTED"):
            async with connected(tmp_path, model(secret), model(secret)):
                pass
        return
    async with connected(tmp_path, model(secret), model(secret)) as transport:
        await transport.write(ChannelPacket(b"\x02", "control"))
        assert (await some(transport, 2))[1] == ("", b"control:\x02")


async def test_a_missing_channel_fails_the_connection(tmp_path):
    needed = Channel("absent", ABSENT.service, ABSENT.uuid, notify=True)
    with pytest.raises(Exception, match="has no characteristic 19b10099"):
        async with connected(tmp_path, model(needed), model()):
            pass


async def test_packets_from_glasses_have_the_size_of_tx(tmp_path):
    async with connected(tmp_path, model(), model()) as transport:
        assert transport.max_packet == 244


async def echo(_glasses: Any, _side: Any, link: Any) -> None:
    """Say on the battery level what came, and something on the channel that is on request."""
    async for packet in link.packets():
        await link.notify(ChannelPacket(packet, "wanted"))
        await link.notify(ChannelPacket(channel_of(packet).encode() + b":" + packet, "level"))


async def test_a_channel_on_request_is_heard_only_while_it_is_subscribed(tmp_path):
    ours = model(WANTED)
    where = Gatt(MAIN, "", "", channels=ours.gatt.channels)
    ours = replace(ours, gatt=where)
    async with connected(tmp_path, ours, ours, serve=echo) as transport:
        assert transport.max_packet == 244, "also without tx"
        assert await some(transport, 1) == [("form", b"\x15")]
        await transport.write(ChannelPacket(b"\xff", "control"))
        assert await some(transport, 1) == [("level", b"control:\xff")]
        await transport.write(ChannelPacket(SUBSCRIBE, "wanted"))
        assert await some(transport, 2) == [("wanted", b"\x01"), ("level", b"wanted:\x01")]
        await transport.write(ChannelPacket(UNSUBSCRIBE, "wanted"))
        assert await some(transport, 1) == [("level", b"wanted:\x00")]


async def test_a_read_that_is_answered_while_it_is_cancelled_ends(tmp_path):
    """On Python 3.11 `wait_for`, which bumble uses, returns the answer instead."""
    async with connected(tmp_path, model(), model()) as transport:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def read(_characteristic: Any) -> bytes:
            return await asyncio.wait_for(answer, DEADLINE_S)

        transport._client.read_gatt_char = read
        reading = asyncio.ensure_future(transport.write(ChannelPacket(b"", "level")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        answer.set_result(b"\x2a")
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        assert reading.cancelled()
