"""Glasses made of a recording: what they answer, when, and what they say they did not know."""

import asyncio
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from firmware_bridge.catalog import find
from firmware_bridge.driver import Driver
from firmware_bridge.messages import (
    ClearPage,
    Done,
    Gestured,
    GlassesInfo,
    ShowPage,
    TextLine,
)
from firmware_bridge.recording.files import Recording, read
from firmware_bridge.recording.lines import Line, from_tree
from firmware_bridge.sides import Side
from firmware_bridge.sim.inproc import Mock
from firmware_bridge.sim.model_specs import parts_of
from firmware_bridge.sim.options import model_of
from firmware_bridge.sim.radio_setup import RadioSetup
from firmware_bridge.sim.replay import ReplayedGlasses, Replayer, Report
from firmware_bridge.transports.ble import open_radio, scan
from firmware_bridge.transports.side_radio import connect_any
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S

FOLDER = Path(__file__).parents[2] / "recordings"
RIGHT = Side.RIGHT
GATT = find("even_g1").gatt


def asked(at, data):
    return Line(at, "glasses", RIGHT, data=data)


def said(at, data):
    return Line(at, "glassd", RIGHT, data=data)


SESSION = [
    Line(1.0, "glassd", RIGHT, up=True),
    said(1.2, "f504"),
    asked(2.0, "4d01"),
    said(2.03, "4dc9"),
    asked(3.0, "2506000104 01".replace(" ", "")),
    said(3.25, "250600010401"),
    asked(4.0, "4e0101004142"),
    said(4.1, "4ec9"),
    said(9.0, "f501"),
]


def replayer():
    return Replayer(SESSION, GATT, Report(), RIGHT)


def answers(replayer, data):
    return [
        (round(due.after_s, 3), due.packet.hex()) for due in replayer.answers(bytes.fromhex(data))
    ]


def test_what_came_before_the_first_question_comes_by_itself():
    [first] = replayer().first
    assert (round(first.after_s, 3), first.packet.hex()) == (0.2, "f504")


def test_questions_are_answered_in_any_order_after_the_recorded_time():
    glasses = replayer()
    assert answers(glasses, "4e0101004142") == [(0.1, "4ec9"), (5.0, "f501")]
    assert answers(glasses, "4d01") == [(0.03, "4dc9")]
    assert answers(glasses, "250600010401") == [(0.25, "250600010401")]
    assert glasses._report.to_json() == {
        "event": "replayed",
        "known": 3,
        "nearest": {},
        "unanswered": {},
    }


def test_a_question_that_comes_again_is_answered_without_what_happened_to_follow():
    glasses = replayer()
    answers(glasses, "4e0101004142")
    assert answers(glasses, "4e0101004142") == [(0.1, "4ec9")]


def test_an_unknown_question_is_answered_like_the_nearest_with_its_own_number():
    glasses = replayer()
    assert answers(glasses, "250600070407") == [(0.25, "250600070407")]
    assert answers(glasses, "4e02010058595a") == [(0.1, "4ec9"), (5.0, "f501")]
    report = glasses._report.to_json()
    assert report["nearest"] == {"right 25 06 00 07 04 07": 1, "right 4e 02 01 00 58 59 5a": 1}
    assert report["known"] == 0


def test_a_long_number_is_repeated_wherever_it_stands():
    glasses = Replayer(
        [
            asked(2.0, b'{"id":12345678,"n":1}'.hex()),
            said(2.1, b'{"type":"ack","id":12345678}'.hex()),
        ],
        GATT,
        Report(),
        RIGHT,
    )
    [due] = glasses.answers(b'{"id":87654321,"n":1}')
    assert due.packet == b'{"type":"ack","id":87654321}'
    [due] = glasses.answers(b'{"id":8765432 ,"n":1}')
    assert b"12345678" in due.packet, "it is no number of the same length"


def test_of_several_of_a_kind_the_most_alike_answers():
    lines = [asked(1.0, "3a01"), said(1.1, "3aff"), asked(2.0, "3a0201"), said(2.1, "3aee")]
    glasses = Replayer(lines, GATT, Report(), RIGHT)
    assert answers(glasses, "3a0209") == [(0.1, "3aee")]
    assert answers(glasses, "3a09") == [(0.1, "3aff")]


def test_a_question_of_no_known_kind_gets_no_answer_and_is_listed():
    glasses = replayer()
    for _ in range(2):
        assert answers(glasses, "39" + "00" * 30) == []
    assert glasses._report.to_json()["unanswered"] == {"right 39" + " 00" * 11 + "…": 2}


def test_equal_questions_get_their_answers_in_the_recorded_order():
    lines = [asked(1.0, "2c01"), said(1.1, "2c6640"), asked(2.0, "2c01"), said(2.1, "2c6639")]
    glasses = Replayer(lines, GATT, Report(), RIGHT)
    assert [answers(glasses, "2c01") for _ in range(3)] == [
        [(0.1, "2c6640")],
        [(0.1, "2c6639")],
        [(0.1, "2c6639")],
    ]


# ------------------------------------------------------------------ on the air


@asynccontextmanager
async def replayed(recording):
    """A driver at glasses made of a recording: (driver, when they were tapped, glasses)."""
    glasses = ReplayedGlasses(recording)
    key = recording.header.model
    parts = glasses.parts(parts_of(key))
    radio = await open_radio("inproc")
    mount = RadioSetup("inproc", radio.air, radios=len(parts.sides))
    await mount.open()
    with tempfile.TemporaryDirectory() as folder:
        mock = Mock(model_of(key), mount, Path(folder), None, lambda _event: None, parts=parts)
        mock.start()
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        transport = await connect_any(radio, sighting, timeout_s=DEADLINE_S)
        assert sighting.entry.key == key
        driver = Driver(transport, sighting.entry.codec(transport.max_packet), clock=time.monotonic)
        events, tap = [], asyncio.Event()

        async def listen():
            async for event in driver.events():
                events.append(event)
                if isinstance(event, Gestured):
                    tap.set()

        running = [asyncio.ensure_future(driver.run()), asyncio.ensure_future(listen())]
        try:
            yield driver, tap, glasses
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)
            await transport.close()
            await mock.close()
            await radio.close()


@pytest.mark.parametrize("name", ["mock_full", "even_g1"])
async def test_a_recorded_session_is_answered_to_its_tap(name):
    recording = read(FOLDER / f"{name}.jsonl")
    async with replayed(recording) as (driver, tap, glasses):
        commands = [from_tree(line.command) for line in recording.lines if line.command]
        replies = [
            type(await driver.request(command, timeout_s=DEADLINE_S)) for command in commands[:2]
        ]
        assert replies == [GlassesInfo, Done]
        assert glasses.report.known >= 3
        assert not glasses.report.unanswered
        if name == "even_g1":  # what the wearer did is in it too
            async with asyncio.timeout(DEADLINE_S):
                await tap.wait()


async def test_what_glasses_say_by_themselves_needs_no_question():
    recording = read(FOLDER / "even_g1.jsonl")
    up = next(n for n, line in enumerate(recording.lines) if line.up and line.side is RIGHT)
    tap = said(recording.lines[up].at + 0.1, "f501")
    lines = (*recording.lines[: up + 1], tap)
    async with replayed(Recording(recording.header, lines)) as (_driver, tapped, _glasses):
        async with asyncio.timeout(DEADLINE_S):
            await tapped.wait()


async def test_a_page_that_was_not_recorded_is_taken_all_the_same():
    recording = read(FOLDER / "even_g1.jsonl")
    async with replayed(recording) as (driver, _tap, glasses):
        hello = from_tree(next(line.command for line in recording.lines if line.command))
        await driver.request(hello, timeout_s=DEADLINE_S)
        page = ShowPage("other", lines=(TextLine(0, "never recorded"),))
        assert isinstance(await driver.request(page, timeout_s=DEADLINE_S), Done)
        assert isinstance(await driver.request(ClearPage(), timeout_s=DEADLINE_S), Done)
        assert [text for text in glasses.report.nearest if text.split()[1] == "4e"]
