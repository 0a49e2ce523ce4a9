"""Sound of an Even G1: what is lost on the way leaves a gap in the numbers."""

import pytest
from hypothesis import given, strategies as st

from firmware_bridge.codecs.even_g1.sound import PAUSE_S, SHORT_PAUSE_S, SoundStream
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import (
    AudioFormat,
    Done,
    Failed,
    MicrophoneChunk,
    StartMicrophone,
    StopMicrophone,
)
from firmware_bridge.sides import Side
from tests.codecs.g1_pair import Pair

L, R = Side.LEFT, Side.RIGHT


def packet(sequence: int) -> bytes:
    return bytes((0xF1, sequence % 256)) + bytes(200)


class Recorder:
    """Feeds packets at their times, ten a second unless `after_s` differs."""

    def __init__(self) -> None:
        self.stream = SoundStream(7)
        self.now = 100.0
        self.stream.opened(self.now)

    def take(self, *sequences: int, after_s: float = 0.1) -> list[int]:
        indexes = []
        for sequence in sequences:
            self.now += after_s
            indexes.append(self.stream.receive(packet(sequence), self.now).index)
        return indexes


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.mark.requirement("I14-sound-gaps")
def test_a_lost_packet_leaves_a_gap(recorder):
    assert recorder.take(0, 1) == [0, 1]
    assert recorder.take(3, after_s=0.2) == [3]
    assert recorder.take(4, 9) == [4, 9]


@pytest.mark.parametrize("seen", [250, 1000])
def test_numbers_go_on_after_255(recorder, seen):
    assert recorder.take(*range(seen)) == list(range(seen))
    assert recorder.take(seen + 10, after_s=1.1) == [seen + 10]


@pytest.mark.requirement("I14-sound-gaps")
@pytest.mark.parametrize("lost", [127, 128, 200, 255, 256, 300, 600])
def test_a_long_gap_is_as_long_as_its_time(recorder, lost):
    recorder.take(*range(40))
    assert recorder.take(40 + lost, after_s=0.1 * (lost + 1)) == [40 + lost]


def test_delayed_packets_that_come_at_once_are_numbered_through(recorder):
    recorder.take(*range(40))
    assert recorder.take(40, after_s=8) == [40]
    assert recorder.take(*range(41, 120), after_s=0.001) == list(range(41, 120))


def test_late_and_doubled_packets_keep_their_place(recorder):
    assert recorder.take(0, 1, 3, 2, 4, 4, 5) == [0, 1, 3, 2, 4, 4, 5]
    assert recorder.take(*range(6, 257)) == list(range(6, 257))
    assert recorder.take(258, 257, 259) == [258, 257, 259]


@pytest.mark.parametrize("first", [0, 5, 250])
def test_the_first_packet_is_number_0(recorder, first):
    assert recorder.take(first, first + 1) == [0, 1]


@pytest.mark.parametrize("seen", [3, 20, 100, 255, 300, 400])
def test_a_recording_begun_again_goes_on_after_its_pause(recorder, seen):
    recorder.take(*range(seen))
    recorder.stream.reopened()
    fresh = recorder.take(0, after_s=2.5)[0]
    assert seen <= fresh <= seen + 30, "about the 25 packets of the pause, never back"
    assert recorder.take(1, 1, 2) == [fresh + 1, fresh + 1, fresh + 2]


def test_packets_that_were_only_delayed_are_no_new_recording(recorder):
    recorder.take(*range(40))
    recorder.stream.reopened()
    assert recorder.take(40, after_s=2.5) == [40]
    assert recorder.take(41, 42, after_s=0.01) == [41, 42]
    assert recorder.take(0, after_s=0.1) == [43], "this one is"
    assert recorder.take(1) == [44]


def test_a_recording_that_the_glasses_begin_again_by_themselves_goes_on(recorder):
    recorder.take(*range(100))
    assert recorder.take(0, 1, 2) == [100, 101, 102]


def test_no_number_is_negative(recorder):
    recorder.take(5)
    assert recorder.take(0, 1) == [1, 2]


def test_silence_is_noticed_once(recorder):
    assert recorder.stream.due() == recorder.now + PAUSE_S, "also when no sound ever came"
    recorder.take(0)
    assert recorder.stream.due() == recorder.now + PAUSE_S
    recorder.stream.reopened()
    assert recorder.stream.due() is None
    recorder.take(0)
    assert recorder.stream.due() is not None


def test_after_30_seconds_a_shorter_silence_is_enough(recorder):
    recorder.take(*range(280))
    assert recorder.stream.due() == recorder.now + PAUSE_S
    recorder.take(*range(280, 300))
    assert recorder.stream.due() == recorder.now + SHORT_PAUSE_S
    recorder.stream.reopened()
    recorder.take(0, after_s=0.5)
    assert recorder.stream.due() == recorder.now + PAUSE_S, "counted from the new recording"


@given(
    st.lists(st.tuples(st.integers(1, 700), st.floats(0, 2.5)), max_size=40),
    st.integers(0, 255),
)
def test_whatever_is_lost_or_delayed_the_numbers_are_right(packets, first):
    """Each packet: how many after the one before, and how much later than usual it arrives."""
    stream, index = SoundStream(7), 0
    stream.opened(0.0)
    assert stream.receive(packet(first), 0.0).index == 0
    arrived = 0.0
    for step, late_s in packets:
        index += step
        arrived = max(arrived, 0.1 * index + late_s)
        assert stream.receive(packet(first + index), arrived).index == index


@given(st.lists(st.tuples(st.integers(0, 255), st.floats(0, 60), st.booleans()), max_size=60))
def test_nonsense_never_gets_a_number_before_the_beginning(packets):
    stream, now = SoundStream(7), 0.0
    stream.opened(now)
    for sequence, after_s, again in packets:
        now += after_s
        if again:
            stream.reopened()
        assert stream.receive(packet(sequence), now).index >= 0


@pytest.mark.parametrize("length", [2, 201, 203])
def test_a_packet_of_another_length_is_refused(recorder, length):
    with pytest.raises(RemoteViolation, match=f"sound packet of {length} bytes"):
        recorder.stream.receive(bytes(length), 0.0)


# ------------------------------------------------------------------ in the codec


def heard(pair: Pair) -> list[MicrophoneChunk]:
    return [event for event in pair.events() if isinstance(event, MicrophoneChunk)]


@pytest.fixture
def pair() -> Pair:
    pair = Pair()
    pair.greet()
    return pair


def test_sound_of_the_last_stream_is_not_in_the_next(pair):
    pair.ask(StartMicrophone(1, AudioFormat.LC3))
    pair.tell(R, packet(0), packet(1))
    pair.ask(StopMicrophone(1))
    pair.central.send(StartMicrophone(2, AudioFormat.LC3), pair.now)
    pair.tell(R, packet(2))
    assert [(chunk.stream, chunk.index) for chunk in heard(pair)] == [(1, 0), (1, 1)]


def test_a_microphone_that_never_sends_is_switched_on_once_more(pair):
    pair.ask(StartMicrophone(1, AudioFormat.LC3))
    pair.run(for_s=10)
    assert [each for each in pair.said[R] if each[0] == 0x0E] == [b"\x0e\x01"] * 2


def test_sound_of_an_arm_that_came_back_follows_a_gap(pair):
    pair.ask(StartMicrophone(1, AudioFormat.LC3))
    pair.tell(R, packet(0), packet(1))
    pair.news(R, up=False)
    pair.now += 1.5
    pair.news(R, up=True)
    pair.run()
    pair.tell(R, packet(0), packet(1))
    first, second = heard(pair)[-2:]
    assert first.index >= 15
    assert second.index == first.index + 1


def microphone_on(pair: Pair) -> list[Side]:
    return [side for side, way, packet in pair.order if way == "down" and packet == b"\x0e\x01"]


@pytest.mark.requirement("I14-microphone-arm")
def test_where_the_right_arm_has_no_microphone_the_left_ones_is_opened(pair):
    pair.reply = lambda side, _command: Done() if side is L else Failed("busy")
    assert pair.ask(StartMicrophone(1, AudioFormat.LC3)) == Done()
    assert microphone_on(pair) == [R, R, R, L]
    pair.tell(L, packet(0))
    assert [chunk.index for chunk in heard(pair)] == [0]
    assert pair.ask(StopMicrophone(1)) == Done()
    assert pair.said[L][-1] == b"\x0e\x00"
    assert pair.ask(StartMicrophone(2, AudioFormat.LC3)) == Done()
    assert microphone_on(pair) == [R, R, R, L, L], "and it is remembered"


@pytest.mark.requirement("I14-microphone-arm")
def test_where_no_arm_opens_its_microphone_the_right_one_is_named(pair):
    pair.reply = lambda _side, _command: Failed("busy")
    for _ in range(2):
        refused = pair.ask(StartMicrophone(1, AudioFormat.LC3))
        assert refused == Failed("busy", "the right side refused")
    assert microphone_on(pair) == [R, R, R, L, L, L] * 2


def test_unrequested_sound_is_switched_off_where_it_comes_from(pair):
    pair.tell(L, packet(0))
    pair.run()
    assert (pair.said[L], pair.said[R]) == ([b"\x0e\x00"], [])
