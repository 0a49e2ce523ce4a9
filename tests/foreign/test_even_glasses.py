"""even-glasses 0.1.11 at the simulated Even G1."""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO

import bleak
import pytest
from even_glasses.bluetooth_manager import GlassesManager
from even_glasses.commands import (
    add_or_update_note,
    apply_brightness,
    apply_glasses_wear,
    apply_headup_angle,
    apply_silent_mode,
    send_image,
    send_notification,
    send_text,
)
from even_glasses.models import (
    BrightnessAuto,
    GlassesWearStatus,
    MicStatus,
    NCSNotification,
    ResponseStatus,
    SilentModeStatus,
    SubCommand,
)
from even_glasses.notification_handlers import COMMAND_HANDLERS, Command
from even_glasses.utils import construct_mic_command
from PIL import Image, ImageDraw

from firmware_bridge import lc3
from firmware_bridge.messages import Gesture
from firmware_bridge.sides import Side
from tests.unit.firmware_bridge.sim_helpers import loudness

pytestmark = pytest.mark.skipif(
    bool(lc3.why_not()), reason="needs liblc3: the microphone of an Even G1 sends LC3"
)

SCAN_S = 2
PATIENCE_S = 20.0
CHECKSUM = 0x16
LC3_FRAME_BYTES = 20
NOTE = ["Shopping", "Milk and bread"]


@pytest.fixture
async def worn(wear):
    return await wear("sim:even_g1", speed=2.0)


@pytest.fixture
async def host(worn, monkeypatch) -> AsyncIterator[GlassesManager]:
    # bleak 1.0 dropped this name: services are found when a client connects
    async def get_services(client):
        return client.services

    monkeypatch.setattr(bleak.BleakClient, "get_services", get_services, raising=False)
    manager = GlassesManager()
    assert await manager.scan_and_connect(timeout=SCAN_S)
    yield manager
    await manager.disconnect_all()


def on_both(lines: list[str]):
    """Return whether both lenses show these lines."""
    return lambda lens: [side["lines"] for side in lens["sides"].values()] == [lines, lines]


async def packets_of(glass, command: int) -> asyncio.Queue[bytes]:
    """Collect what one arm notifies of this command."""
    arrived: asyncio.Queue[bytes] = asyncio.Queue()

    async def handle(_glass, _sender, data) -> None:
        if data[0] == command:
            arrived.put_nowait(bytes(data))

    glass.notification_handler = handle
    return arrived


async def test_both_arms_are_found_and_connected(host, worn):
    mock, ear = worn
    for side, glass in ((Side.LEFT, host.left_glass), (Side.RIGHT, host.right_glass)):
        assert glass.address == mock.identities[side].address
        assert glass.client.is_connected
        assert glass.notifications_started
        await ear.wait("subscribed", where=lambda event, side=side: event["side"] is side)


async def test_its_text_is_on_both_lenses(host, worn):
    assert await send_text(host, "Grüße from another host") == "Grüße from another host"
    rows = ["", "", "Grüße from another host"]
    await worn[1].wait("lens", where=on_both(rows))


async def test_a_long_text_is_shown_page_by_page(host, worn):
    words = " ".join(f"word{number:02}" for number in range(40))
    await send_text(host, words, duration=0.1)
    pages = []
    for event in worn[1].events:
        if event["event"] == "lens" and event["same"] and event["lines"] not in pages[-1:]:
            pages.append(event["lines"])
    assert pages[-1][-1].endswith("word39")
    shown = " ".join(" ".join(page) for page in pages if len(page) > 1)
    assert shown.split()[:35] == words.split()[:35]


async def test_a_picture_is_on_both_lenses(host, worn):
    picture = Image.new("1", (576, 136))
    ImageDraw.Draw(picture).rectangle((100, 20, 299, 99), fill=1)
    bitmap = BytesIO()
    picture.save(bitmap, "BMP")
    checked = await packets_of(host.left_glass, CHECKSUM)
    await asyncio.wait_for(send_image(host, bitmap.getvalue()), PATIENCE_S)
    assert (await asyncio.wait_for(checked.get(), PATIENCE_S))[5] == ResponseStatus.SUCCESS
    await worn[1].wait("lens", where=lambda lens: lens["same"] and lens["lit"] == 200 * 80)
    assert worn[0].glasses.lens.image.getbbox() == (100, 20, 300, 100)


async def test_a_notification_is_on_both_lenses(host, worn):
    message = NCSNotification(
        msg_id=1,
        app_identifier="org.example.mail",
        title="A letter",
        subtitle="from Ada",
        message="It is long enough for three packets. " * 8,
        display_name="Mail",
    )
    await send_notification(host, message)
    for count in (1, 2):
        shown = await worn[1].wait("notification", count=count)
        assert shown["app"] == "org.example.mail"
        assert shown["lines"][:2] == ["Mail: A letter", "from Ada"]


async def test_its_settings_are_made(host, worn):
    mock, ear = worn
    await apply_brightness(host, 20, BrightnessAuto.OFF)
    await apply_silent_mode(host, SilentModeStatus.ON)
    await apply_headup_angle(host, 35)
    await apply_glasses_wear(host, GlassesWearStatus.ON)
    await ear.wait("setting", where=lambda made: made.get("wear_detection") is True)
    made = mock.glasses.settings
    assert (made["silent"], made["head_up_angle"]) == (True, 35)
    # of 42; the package ends at 41, and the sources contradict each other there
    assert made["brightness"] == round(100 * 20 / 42)


async def test_its_note_is_kept(host, worn):
    await add_or_update_note(host, 1, *NOTE)
    await worn[1].wait("setting", where=lambda made: made.get("note 1") == NOTE)


async def test_a_double_tap_is_its_exit_command(host, worn):
    arrived = await packets_of(host.right_glass, Command.START_AI)
    assert Command.START_AI in COMMAND_HANDLERS
    assert worn[0].glasses.gesture(Gesture.DOUBLE_TAP)
    packet = await asyncio.wait_for(arrived.get(), PATIENCE_S)
    assert packet[1] == SubCommand.EXIT


async def test_a_long_press_begins_and_ends_its_assistant(host, worn):
    arrived = await packets_of(host.left_glass, Command.START_AI)
    assert worn[0].glasses.gesture(Gesture.BUTTON_LONG)
    seen = [await asyncio.wait_for(arrived.get(), PATIENCE_S) for _ in range(2)]
    assert [packet[1] for packet in seen] == [SubCommand.START, SubCommand.STOP]


async def test_the_microphone_is_heard(host, worn):
    arrived = await packets_of(host.right_glass, Command.RECEIVE_MIC_DATA)
    await host.right_glass.send(construct_mic_command(MicStatus.ENABLE))
    await worn[1].wait("microphone", where=lambda heard: heard["open"])
    worn[0].glasses.say("one two three four five six")
    decoder, pcm = lc3.Decoder(LC3_FRAME_BYTES), b""
    for _ in range(15):
        packet = await asyncio.wait_for(arrived.get(), PATIENCE_S)
        assert len(packet) == 202
        frames = packet[2:]
        for at in range(0, len(frames), LC3_FRAME_BYTES):
            pcm += decoder.decode(frames[at : at + LC3_FRAME_BYTES])
    assert loudness(pcm) > 300
    await host.right_glass.send(construct_mic_command(MicStatus.DISABLE))
    await worn[1].wait("microphone", where=lambda heard: not heard["open"])
