"""The own functions of the simulated Even G1, over its two radios: packets written by hand from the
fact sheet (§), and what is seen of them.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from firmware_bridge.lc3 import Decoder
from firmware_bridge.messages import Gesture, SetClock
from firmware_bridge.own_commands import DashboardLayout, DashboardPane, SetWeather, Sky
from firmware_bridge.sides import Side
from firmware_bridge.sim.even_g1 import own
from firmware_bridge.sim.even_g1.dashboard import Face, rows
from tests.system import needs
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, loudness
from tests.unit.firmware_bridge.test_sim_even_g1 import Pair, even, text

pytestmark = [pytest.mark.enable_socket, pytest.mark.requirement("I4-sim-g1")]
L, R = Side.LEFT, Side.RIGHT


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    async with even(tmp_path) as pair:
        yield pair


def lines(pair: Pair, side: Side = L) -> list[str]:
    return pair.mock.glasses.lens_report()["sides"][side]["lines"]


async def test_a_position_is_kept_only_after_it_was_shown(pair: Pair) -> None:
    """§5 26 sub 02."""
    left = pair.left
    assert await left.ask("26 08 00 01 02 00 03 07") == bytes.fromhex("26 06 00 01 02 CA")
    assert (await left.ask("3B"))[:4] == bytes.fromhex("3B C9 04 05")
    assert await left.ask("26 08 00 02 02 01 03 07") == bytes.fromhex("26 06 00 02 02 C9")
    assert pair.mock.glasses.settings["preview"] is True
    another = await left.ask("26 08 00 03 02 00 03 08")
    assert another == bytes.fromhex("26 06 00 03 02 CA")
    await left.ask("26 08 00 04 02 01 03 07")
    assert await left.ask("26 08 00 05 02 00 03 07") == bytes.fromhex("26 06 00 05 02 C9")
    assert pair.mock.glasses.settings == {"position": [3, 7], "preview": False}
    assert (await left.ask("3B"))[:4] == bytes.fromhex("3B C9 03 07")
    assert await left.ask("26 07 00 01 02 01 06") == bytes.fromhex("26 06 00 01 02 C9")
    assert pair.mock.glasses.settings["position"] == [6, 7], "the older form has no depth"


async def test_the_dashboard_is_set_and_answered_as_captured(pair: Pair) -> None:
    """§9."""
    said = await pair.left.ask("06 07 00 1E 06 01 04")
    assert said == bytes.fromhex("06 07 00 1E 06 01 00 01 00 00")
    assert pair.mock.glasses.settings["dashboard"] == ["dual", "map"]
    weather = "06 15 00 07 01 10 00 00 00 00 00 00 00 00 00 00 00 09 FB 00 01"
    assert await pair.left.ask(weather) == bytes.fromhex("06 15 00 07 01 01 00 01 00 00")
    told = await pair.ear.wait("dashboard")
    assert (told["sky"], told["celsius"], told["hours"]) == ("snow", -5, 12)
    entry = b"\x01\x03Tea\x02\x0516:00\x03\x04home"
    for head in (b"\x01\x03\x03\x01", b"\x00\x00\x03\x01"):  # GB and WK; FP
        packet = b"\x06" + bytes((9 + 4 + len(entry), 0, 0x6D, 3, 1, 0, 1, 0)) + head + entry
        assert await pair.left.ask(packet) == packet[:9] + b"\0"
        assert pair.mock.glasses.settings.pop("calendar") == [["Tea", "16:00", "home"]]
    assert await pair.left.ask("06 0C 00 02 07 01 00 01 00 00 04 00") == bytes.fromhex(
        "06 0C 00 02 07 01 00 01 00 00"
    )
    assert pair.mock.glasses.settings["map"] == ["loading"]


async def test_looking_up_shows_clock_weather_and_pane_over_the_page(pair: Pair) -> None:
    """§9: sub 01, 03, 06; 22 on looking up (WK)."""
    glasses = pair.mock.glasses
    for arm in pair.arms.values():
        await arm.ask(text("the page\n")[0])
        await arm.ask("06 15 00 07 01 E0 C4 00 00 00 00 00 00 00 00 00 00 05 FB 00 00")  # 14:00
        await arm.ask("06 16 00 6D 03 01 00 01 00 01 03 03 01 01 03 54 65 61 02 00 03 00")
        await arm.ask("06 07 00 1E 06 01 03")
    assert glasses.gesture(Gesture.HEAD_UP)
    for side in Side:
        clock, tea = lines(pair, side)
        assert re.fullmatch(r"14:\d\d  -5 °C  rain", clock), clock
        assert tea == "Tea"
    assert (await pair.right.heard())[:2] == b"\xf5\x02"
    assert await pair.right.heard() == bytes.fromhex("22 0A 00 00 01 00 00 01 03 00")
    assert glasses.gesture(Gesture.HEAD_DOWN)
    assert [lines(pair, side) for side in Side] == [["the page"]] * 2
    assert (await pair.right.heard())[:2] == b"\xf5\x03"
    for arm in pair.arms.values():
        await arm.ask("08 06 00 01 04 02")
    assert glasses.gesture(Gesture.HEAD_UP)
    assert [lines(pair, side) for side in Side] == [["the page"]] * 2


NOON = SetWeather(12 * 3600, Sky.HEAVY_RAIN, 20, twelve_hour=True, fahrenheit=True)


@pytest.mark.parametrize(
    ("layout", "pane", "seen"),
    [
        (DashboardLayout.MINIMAL, DashboardPane.NOTES, []),
        (DashboardLayout.FULL, DashboardPane.NOTES, ["Milk: 2 l", "Bread"]),
        (DashboardLayout.FULL, DashboardPane.CALENDAR, ["Tea  16:00  home"]),
        (DashboardLayout.DUAL, DashboardPane.NEWS, ["news"]),
        (DashboardLayout.DUAL, DashboardPane.EMPTY, []),
    ],
)
def test_the_dashboard_shows_what_was_chosen(
    layout: DashboardLayout, pane: DashboardPane, seen: list[str]
) -> None:
    face = Face()
    settings = {
        "note 1": ["Milk", "2 l"],
        "note 2": None,
        "note 3": ["Bread", ""],
        "calendar": [["Tea", "16:00", "home"]],
    }
    assert rows(face, layout, pane, settings, 0.0) == ["", *seen]
    face.set(NOON, 0.0)
    assert rows(face, layout, pane, settings, 65.0) == ["12:01 PM  68 °F  heavy rain", *seen]
    face.set(SetClock(3600), 65.0)
    assert rows(face, layout, pane, settings, 65.0) == ["01:00  68 °F  heavy rain", *seen]


async def test_a_map_is_answered_packet_by_packet_and_taken_whole(pair: Pair) -> None:
    """§9 sub 07: 28 packets of 180 bytes."""
    data = bytes.fromhex("00040201") + bytes(37 * 136)
    pieces = [data[at : at + 180] for at in range(0, len(data), 180)]
    assert len(pieces) == 28
    for index, piece in enumerate(pieces, 1):
        assert "map" not in pair.mock.glasses.settings
        packet = bytes((6, 9 + len(piece), 0, 1, 7, 28, 0, index, 0)) + piece
        assert await pair.right.ask(packet) == packet[:9] + b"\0"
    assert pair.mock.glasses.settings["map"] == ["picture"]


async def test_a_notification_is_cleared_by_its_number_only(pair: Pair) -> None:
    """§5 4C."""
    await pair.left.ask(text("the page\n")[0])
    inner = {"msg_id": 27, "app_identifier": "a", "title": "Ada", "message": "Hi"}
    body = json.dumps({"ncs_notification": inner | {"display_name": "A"}}).encode()
    pair.mock.glasses.time.speed = 0.01
    await pair.left.ask(bytes((0x4B, 27, 1, 0)) + body)
    assert lines(pair) == ["A: Ada", "", "Hi"]
    assert (await pair.left.ask("4C 00 00 00 1C"))[:2] == b"\x4c\xc9"
    assert lines(pair) == ["A: Ada", "", "Hi"]
    assert (await pair.left.ask("4C 00 00 00 1B"))[:2] == b"\x4c\xc9"
    assert lines(pair) == ["the page"]
    await pair.left.ask(bytes((0x4B, 27, 1, 0)) + body)
    await pair.left.ask("4C")
    assert lines(pair) == ["the page"]


async def test_notes_are_written_changed_and_removed(pair: Pair) -> None:
    """§10."""
    head = b"\x1e\x15\0\x07\3\1\0\1\0\2\1\4"
    assert await pair.left.ask(head + b"Milk\x03\x002 l") == bytes.fromhex(
        "1E 15 00 07 03 01 00 01 00 00"
    )
    assert pair.mock.glasses.settings == {"note 2": ["Milk", "2 l"]}
    assert await pair.left.ask("1E 10 00 29 03 01 00 01 00 02 00 01 00 01 00 00") == bytes.fromhex(
        "1E 10 00 29 03 01 00 01 00 00"
    )
    assert pair.mock.glasses.settings == {"note 2": None}


@needs("liblc3")
async def test_a_note_that_was_spoken_on_the_right_is_listed_fetched_and_deleted(
    pair: Pair,
) -> None:
    """§10, §15 12."""
    pair.mock.glasses.say("buy some milk")
    assert pair.mock.glasses.gesture(Gesture.BUTTON_LONG, side=R)
    assert (await pair.right.heard())[:2] == b"\xf5\x12", "its beginning is not reported"
    listed = await pair.right.heard()
    assert (listed[0], listed[1], listed[4:7]) == (0x21, 15, b"\1\1\1")
    first = await pair.right.ask("1E 06 00 01 02 01")
    total = int.from_bytes(first[5:7], "little")
    packets = [first] + [await pair.right.heard() for _ in range(total - 1)]
    assert [int.from_bytes(packet[7:9], "little") for packet in packets] == [*range(1, total + 1)]
    assert all(packet[1] == len(packet) and packet[9] == 1 for packet in packets)
    sound = b"".join(packet[10:] for packet in packets)
    assert len(sound) == 100 * 20, "one second"
    decoder = Decoder(20)
    pcm = b"".join(decoder.decode(sound[at : at + 20]) for at in range(0, len(sound), 20))
    assert loudness(pcm) > 1000
    assert (await pair.right.ask("1E 06 00 02 04 01"))[:5] == bytes.fromhex("1E 06 00 02 04")
    assert await pair.right.ask("1E 06 00 03 02 01") == bytes.fromhex("1E CA").ljust(20, b"\0")


@needs("liblc3")
async def test_the_glasses_keep_a_few_spoken_notes_newest_first(pair: Pair) -> None:
    for made in range(1, own.MAX_VOICE_NOTES + 2):
        pair.mock.glasses.gesture(Gesture.BUTTON_LONG, side=R)
        assert (await pair.right.heard())[:2] == b"\xf5\x12"
        listed = await pair.right.heard()
        assert listed[5] == min(made, own.MAX_VOICE_NOTES)
    assert [listed[6 + 9 * at] for at in range(listed[5])] == [1, 2, 3, 4]


async def test_translation_and_navigation_are_seen_and_left(pair: Pair) -> None:
    """§12."""
    await pair.left.ask("39 05 00 00 13")
    assert (await pair.left.ask("1C 00 02 09"))[:2] == b"\x1c\xc9"
    assert lines(pair) == ["en → nl"]
    assert await pair.left.ask("39 05 00 09 01") == bytes.fromhex("39 05 00 09 01 13")
    await pair.left.ask("0F 01 01 00 00 00 00 0D")
    await pair.left.ask(b"\x0f\3\1\0\0\0\x20\x0dHello")
    await pair.left.ask(b"\x0d\4\1\0\0\0\x20\x0dHallo")
    assert lines(pair) == ["Hello", "Hallo"]
    await pair.left.ask("18")
    assert lines(pair) == []
    assert await pair.left.ask("39 05 00 09 01") == bytes.fromhex("39 05 00 09 01 00")
    await pair.left.ask("0A 06 00 00 00 01")
    turn = b"\x0a\x2a\0\1\1\3\0\0\0\0" + b"5 min\x00400 m\0High St\x0050 m\x004 km/h\0"
    assert (await pair.left.ask(turn))[:2] == b"\x0a\xc9"
    assert lines(pair) == ["right: 50 m", "High St", "5 min  400 m  4 km/h"]
    await pair.left.ask("0A 06 00 02 05 01")
    assert lines(pair) == []


async def test_a_route_is_drawn(pair: Pair) -> None:
    """§12 primary picture."""
    runs = b"\x88\1" + b"\xff\0" * 144 + b"\x88\0"  # one row of 136, then nothing, twice 136 x 136
    assert sum(runs[::2]) == 2 * 136 * 136
    pieces = [runs[at : at + 185] for at in range(0, len(runs), 185)]
    for index, piece in enumerate(pieces, 1):
        head = bytes((0x0A, 9 + len(piece), 0, index, 2, len(pieces), 0, index, 0))
        assert (await pair.left.ask(head + piece))[:2] == b"\x0a\xc9"
    assert pair.mock.glasses.lenses[L].lit == 136


async def test_a_restart_is_a_lost_link_without_an_answer_and_a_dark_lens(pair: Pair) -> None:
    """§5 23 72."""
    await pair.left.ask(text("the page\n")[0])
    await pair.left.transport.write(bytes.fromhex("23 72"))
    async with asyncio.timeout(20):  # after 32 s any silent arm disconnects
        assert await pair.left.lost()
    assert (await pair.ear.wait("restart"))["side"] is L
    assert lines(pair) == []
    left = await pair.again(L)
    assert (await left.ask("25 06 00 00 04 00"))[0] == 0x25
    assert (await pair.right.ask("25 06 00 00 04 00"))[0] == 0x25, "the other was left in peace"


async def test_the_case_says_its_charge(pair: Pair) -> None:
    """§15 0F."""
    assert pair.mock.glasses.set_case(60)
    assert [await arm.heard() for arm in (pair.left, pair.right)] == [b"\xf5\x0f\x3c\0"] * 2


async def test_a_page_of_another_state_is_drawn_too(pair: Pair) -> None:
    """§6: 51 and 61."""
    for status in (0x51, 0x61):
        (packet,) = text(f"{status:X}\n", status=status)
        assert (await pair.left.ask(packet))[:2] == b"\x4e\xc9"
        async with asyncio.timeout(DEADLINE_S):
            while lines(pair) != [f"{status:X}"]:
                await asyncio.sleep(0.005)
