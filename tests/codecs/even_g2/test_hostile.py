"""Whatever arrives, both roles of the codec raise `RemoteViolation` or nothing, and stay usable."""

from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.codec import Role
from firmware_bridge.codecs.even_g2 import FILE, FILE_ANSWER, SOUND
from firmware_bridge.codecs.even_g2.picture import pictures, read
from firmware_bridge.codecs.even_g2.wire import Kind, cut
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import (
    AllowApps,
    App,
    AudioFormat,
    Done,
    Hello,
    Ping,
    SetBrightness,
    SetClock,
    ShowNotification,
    ShowPage,
    StartMicrophone,
    TextLine,
    Tile,
)
from firmware_bridge.own_commands import (
    CalendarEntry,
    GetMotion,
    SetCalendar,
    SetDisplayPosition,
    SetNote,
    SetWeather,
    Sky,
)
from firmware_bridge.packets import ChannelPacket
from firmware_bridge.protobuf import encode
from firmware_bridge.sides import Side, SidePacket
from tests.codecs.even_g2.pair import Pair, R, drain, page

LIT = Tile(100, 50, 40, 30, 1, b"\xff" * 150)
STORY = (
    Hello("t", "0"),
    page("Hello", "world"),
    page("Hello", "there"),
    ShowPage("p", tiles=(LIT,)),
    StartMicrophone(1, AudioFormat.LC3),
    SetBrightness(30),
    SetDisplayPosition(3, 4),
    SetWeather(1_790_000_000, Sky.SNOW, -3),
    SetCalendar((CalendarEntry("Tea", "16:00"),)),
    SetNote(1, "Milk"),
    GetMotion(),
    SetClock(1_790_000_000),
    AllowApps((App("a", "A"),)),
    ShowNotification(App("a", "A"), "t", "x"),
)
SIDS = [*range(0x01, 0x11), 0x20, 0x30, 0x80, 0x81, 0x91, 0xC0, 0xC4, 0xC5, 0xE0]


def talk() -> tuple[list[bytes], list[bytes]]:
    """Return the packets of a session, of the host and of the glasses' right arm."""
    pair = Pair()
    for command in STORY:
        assert pair.ask(command) is not None
    return pair.said[R], pair.told[R]


SAID, TOLD = talk()


def damaged(packet: bytes):
    """Yield a packet cut at every length, and with each of its bytes changed."""
    for at in range(len(packet)):
        yield packet[:at]
        for value in (packet[at] ^ 0x01, packet[at] ^ 0x80, 0x00, 0xFF):
            yield packet[:at] + bytes([value]) + packet[at + 1 :]


def resealed(packet: bytes):
    """Yield a single-fragment packet with each byte of its contents changed, and a good sum."""
    kind, seq, sid, flag, body = packet[1], packet[2], packet[6], packet[7], packet[8:-2]
    for at in range(len(body)):
        for value in (body[at] ^ 0x01, body[at] ^ 0x80, 0x00, 0xFF):
            new = body[:at] + bytes([value]) + body[at + 1 :]
            yield from cut(new, Kind(kind), seq, sid, flag, max_packet=244)
        yield from cut(body[:at] or b"\0", Kind(kind), seq, sid, flag, max_packet=244)


def channel_for(sid: int, *, up: bool) -> str:
    return (FILE_ANSWER if up else FILE) if sid in (0xC4, 0xC5) else ""


def short(packets: list[bytes]) -> list[bytes]:
    """Return one packet for each length and service: the rest is alike."""
    return list({(len(each), each[6]): each for each in packets if each[4] == 1}.values())


@pytest.mark.parametrize("packet", short(SAID), ids=bytes.hex)
def test_damaged_packets_leave_the_glasses_usable(packet):
    pair = Pair()
    for command in (Hello("t", "0"), page("Hi"), StartMicrophone(1, AudioFormat.LC3)):
        pair.ask(command)
    glasses = pair.arms[R]
    for bad in (*damaged(packet), *resealed(packet)):
        with suppress(RemoteViolation):
            glasses.receive_packet(ChannelPacket(bad, channel_for(packet[6], up=False)), pair.now)
        for incoming in drain(glasses):
            if incoming.number is not None:
                glasses.send(Done(), pair.now, re=incoming.number)
        glasses.packets_to_send(pair.now)
    pair.central._hub.lost()
    assert pair.ask(page("Ho")) == Done()
    assert pair.shown[-1].lines == (TextLine(0, "Ho"),)


@pytest.mark.parametrize("packet", short(TOLD), ids=bytes.hex)
def test_damaged_packets_leave_the_host_usable(packet):
    pair = Pair().ready()
    for bad in (*damaged(packet), *resealed(packet)):
        pair.tell(R, bad, channel=channel_for(packet[6], up=True))
    pair.run(for_s=3.0)
    assert pair.ask(Ping()) == Done()
    assert pair.ask(page("Ho")) == Done()


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(["", FILE, FILE_ANSWER, SOUND]), st.binary(max_size=60))))
def test_any_bytes_are_survived(packets):
    pair = Pair()
    for channel, data in packets:
        for side in Side:
            with suppress(RemoteViolation):
                pair.central.receive_packet(SidePacket(side, ChannelPacket(data, channel)), 100.0)
            with suppress(RemoteViolation):
                pair.arms[side].receive_packet(ChannelPacket(data, channel), 100.0)
    assert pair.ask(Ping()) == Done()


BODIES = st.recursive(
    st.integers(0, 1 << 64 - 1) | st.binary(max_size=8) | st.floats(width=32),
    lambda inner: st.dictionaries(st.integers(1, 24), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.sampled_from(SIDS), st.integers(0, 20), st.dictionaries(st.integers(3, 24), BODIES))
def test_any_message_is_survived(sid, cmd, bodies):
    pair = Pair()
    payload = encode({1: cmd, 2: 1, **bodies})
    for kind, up in ((Kind.HOST, False), (Kind.GLASSES, True)):
        for packet in cut(payload, kind, 200, sid, 1, max_packet=244):
            data = ChannelPacket(packet, channel_for(sid, up=up))
            with suppress(RemoteViolation):
                if up:
                    pair.central.receive_packet(SidePacket(R, data), 100.0)
                else:
                    pair.arms[R].receive_packet(data, 100.0)
    assert pair.ask(Ping()) == Done()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=60), max_size=10
    )
)
def test_any_text_comes_through(rows):
    pair = Pair().ready()
    wanted = page(*rows)
    if sum(len(row.encode()) + 1 for row in rows) > 1000:
        return
    assert pair.ask(wanted) == Done()
    shown = {line.row: line.text for line in pair.shown[-1].lines}
    assert shown == {row: text for row, text in enumerate(rows) if text.strip()}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 570), st.integers(0, 280), st.integers(1, 60), st.integers(1, 40), st.data())
def test_any_picture_comes_through(x, y, width, height, data):
    stride = (width + 1) // 2
    size = stride * height
    pixels = data.draw(st.binary(min_size=size, max_size=size))
    tile = Tile(x, y, width, height, 4, pixels)
    lens: dict[tuple[int, int], int] = {}
    for picture in pictures([tile]):
        shown = read(picture.file, picture.place)
        wide = (shown.width + 1) // 2
        for at in range(shown.width * shown.height):
            row, column = divmod(at, shown.width)
            byte = shown.pixels[row * wide + column // 2]
            grey = byte & 15 if column % 2 else byte >> 4
            lens[shown.x + column, shown.y + row] = grey
    for row in range(min(height, 288 - y)):
        for column in range(min(width, 576 - x)):
            byte = pixels[row * stride + column // 2]
            grey = byte & 15 if column % 2 else byte >> 4
            assert lens.get((x + column, y + row), 0) == grey


def test_the_catalogue_makes_both_roles():
    from firmware_bridge.catalog import find

    model = find("even_g2")
    assert type(model.codec(244)).__name__ == "EvenG2Codec"
    assert type(model.codec(244, role=Role.PERIPHERAL, side=R)).__name__ == "EvenG2Arm"
