"""Golden packets of the Even G1, in both directions and every way bytes can arrive."""

import re

import pytest

from firmware_bridge.codecs.even_g1.peripheral import EvenG1Arm
from firmware_bridge.codecs.even_g1.wire import Dialect
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import (
    AudioFormat,
    Done,
    GlassesInfo,
    Hello,
    ShowPage,
    StartMicrophone,
)
from firmware_bridge.sides import Side
from tests.codecs import g1_golden, g1_own_golden
from tests.codecs.g1_golden import SOUND, SOURCES, STOPPED
from tests.codecs.g1_pair import L, Pair, R, drain

SAID = (*g1_golden.SAID, *g1_own_golden.OWN_SAID)
TOLD = (*g1_golden.TOLD, *g1_own_golden.OWN_TOLD)
ASKED = (*g1_golden.ASKED, *g1_own_golden.OWN_ASKED)
EVERYTHING = (*g1_golden.EVERYTHING, *g1_own_golden.OWN_EVERYTHING)
BY_NAME = {"ids": lambda golden: golden.name}


@pytest.fixture
def pair():
    pair = Pair()
    pair.greet()
    return pair


@pytest.mark.requirement("I4-g1-golden")
def test_every_golden_packet_cites_its_row_of_the_fact_sheet():
    for golden in EVERYTHING:
        assert re.match(r"§([0-9]|1[0-7]) ", golden.row), (
            f"{golden.name}: {golden.row!r} names no section"
        )
        cited = set(re.findall(r"[\w#-]+", golden.row.rpartition("(")[2]))
        assert cited & SOURCES, f"{golden.name}: {golden.row!r} names no source"


def test_a_packet_without_citation_would_be_found():
    assert not re.match(r"§([0-9]|1[0-7]) ", "somewhere")
    assert not set(re.findall(r"[\w#-]+", "§5 18 (somebody)".rpartition("(")[2])) & SOURCES


# ------------------------------------------------------------------ what we say


@pytest.mark.parametrize("golden", SAID, **BY_NAME)
def test_a_command_becomes_exactly_these_packets_on_these_arms(pair, golden):
    reply = pair.ask(golden.command)
    assert isinstance(reply, Done)
    for side in Side:
        assert pair.said[side] == list(golden.packets) * (side in golden.sides)


@pytest.mark.parametrize("golden", SAID, **BY_NAME)
def test_an_arm_hears_what_was_meant(pair, golden):
    pair.ask(golden.command)
    heard = golden.command if golden.heard == "the command" else golden.heard
    for side in golden.sides:
        assert pair.shown[side] == ([] if heard is None else [heard])
    assert pair.refused == []


def test_a_microphone_that_was_opened_is_closed(pair):
    pair.ask(StartMicrophone(0, AudioFormat.LC3))
    pair.said[R].clear()
    assert isinstance(pair.ask(STOPPED.command), Done)
    assert pair.said[R] == list(STOPPED.packets)
    assert pair.shown[R][-1] == STOPPED.command


def test_the_first_packets_to_an_arm_are_greeting_battery_and_state():
    """§2 ED Android F4 01 (ED#44); §11 2C 01, 34; §5 2B, 29 (right arm), 23 74."""
    pair = Pair()
    pair.run()
    greeting = [bytes.fromhex("F401"), bytes.fromhex("2C01"), bytes.fromhex("2B")]
    assert pair.said == {L: greeting, R: [*greeting, bytes.fromhex("29")]}
    number = pair.central.send(Hello("test", "0"), pair.now)
    pair.run()
    assert pair.said[L][3:] == [bytes.fromhex("2374"), bytes.fromhex("34")]
    assert pair.said[R][4:] == []
    assert pair.answer(number) == GlassesInfo("G1", "1.4.5", "S100LAAL103842", {}, {})


@pytest.mark.parametrize("max_packet", [10, 11, 20, 182, 244, 512])
def test_a_page_arrives_whole_however_small_the_packets_are(max_packet):
    """10 bytes carry one byte of text each: a page byte by byte."""
    dialect = Dialect(text_chunk=max(1, max_packet - 9))
    pair = Pair(dialect=dialect, max_packet=max(20, max_packet))
    page = next(golden.heard for golden in SAID if golden.name == "text-two-packets")
    assert isinstance(pair.ask(ShowPage("s", lines=page.lines), for_s=120), Done)
    assert pair.shown == {L: [page], R: [page]}


# ------------------------------------------------------------------ what they tell


@pytest.mark.parametrize("golden", TOLD, **BY_NAME)
def test_a_packet_of_an_arm_means_these_events(golden):
    pair = _fresh()
    pair.tell(golden.side, golden.packet)
    assert pair.events() == list(golden.events)
    assert pair.refused == []


@pytest.mark.parametrize("golden", TOLD, **BY_NAME)
def test_what_is_padded_or_followed_by_junk_means_the_same(golden):
    for junk in (b"\0" * 18, b"\xff\xf5\x01" * 4):
        pair = _fresh()
        pair.tell(golden.side, golden.packet + junk)
        assert pair.events() == list(golden.events)


@pytest.mark.parametrize("golden", [*TOLD, SOUND], **BY_NAME)
def test_a_packet_cut_anywhere_means_nothing_or_what_it_means_whole(golden):
    for size in range(len(golden.packet)):
        pair = _fresh()
        pair.tell(golden.side, golden.packet[:size])
        whole = golden.cut is not None and size >= golden.cut
        assert pair.events() == (list(golden.events) if whole else [])


def test_sound_comes_in_ten_frames_while_the_microphone_is_open(pair):
    pair.ask(StartMicrophone(0, AudioFormat.LC3))
    pair.tell(R, SOUND.packet, SOUND.packet[:-1], SOUND.packet + b"\0")
    assert pair.events() == list(SOUND.events)
    assert len(pair.refused) == 2


# ------------------------------------------------------------------ what an arm answers by itself


@pytest.mark.parametrize("golden", ASKED, **BY_NAME)
def test_an_arm_answers_byte_for_byte(golden):
    arm = EvenG1Arm(L, max_packet=244)
    arm.receive_packet(golden.packet, 0.0)
    for incoming in drain(arm):
        arm.send(Done(), 0.0, re=incoming.number)
    assert arm.packets_to_send(0.0) == [golden.answer]


@pytest.mark.parametrize("golden", [g for g in ASKED if len(g.packet) > 1], **BY_NAME)
def test_a_question_cut_short_is_refused_or_answered_and_never_a_crash(golden):
    for size in range(len(golden.packet)):
        arm = EvenG1Arm(L, max_packet=244)
        try:
            arm.receive_packet(golden.packet[:size], 0.0)
        except RemoteViolation:
            continue


def _fresh() -> Pair:
    """Both arms are there and have said nothing yet."""
    pair = Pair()
    pair.heard.clear()
    return pair
