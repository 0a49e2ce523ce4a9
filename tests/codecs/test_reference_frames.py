"""The sliding window of the reference profile: loss, doubling, credit, wrap-around, bounds,
silence.
"""

import contextlib
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from firmware_bridge.codec import NEED_DATA, Role
from firmware_bridge.codecs.reference.codec import MAX_BACKLOG_BYTES, ReferenceCodec
from firmware_bridge.codecs.reference.frames import (
    ACK_EVERY,
    FIRST,
    INITIAL_CREDIT,
    LAST,
    RETRY_AFTER_S,
    Frame,
    FrameType,
    Receiver,
    Sender,
)
from firmware_bridge.codecs.reference.messages import MAX_MESSAGE_BYTES
from firmware_bridge.errors import LinkLost, LocalMisuse, LostReason, RemoteViolation, Violation
from firmware_bridge.messages import (
    ClearPage,
    Done,
    Gesture,
    Gestured,
    MicrophoneChunk,
    Ping,
    ShowPage,
    TextLine,
    Tile,
)
from firmware_bridge.transports.loopback import Faults
from tests.codecs.pair import CodecPair, drain, info

LONG = ShowPage("long", lines=tuple(TextLine(row, "0123456789" * 5) for row in range(8)))
NOISE = bytes(range(256)) * 100


def ack(seq, credit, kind=FrameType.ACK):
    return Frame(kind, 0, seq & 0xFFFF, bytes((credit,)))


def data(seq, payload=b"", flags=0):
    return Frame(FrameType.DATA, flags, seq & 0xFFFF, payload)


def whole(seq, message=b"\x80"):
    return data(seq, len(message).to_bytes(4, "little") + message, FIRST | LAST)


def chunk(index):
    return MicrophoneChunk(1, index, (NOISE[:100],))


def exchange(pair):
    """One long command, its answer and an event: about 40 frames down and 10 up."""
    number = pair.central.send(LONG, pair.now)
    pair.settle_in_time()
    pair.glasses.send(Done(drawn=7), pair.now, re=number)
    pair.glasses.send(chunk(0), pair.now)
    pair.glasses.send(Gestured(Gesture.TAP), pair.now)
    pair.settle_in_time()


def assert_all_heard_once(pair):
    assert pair.messages(Role.PERIPHERAL) == [LONG]
    assert pair.messages(Role.CENTRAL) == [Done(drawn=7), chunk(0), Gestured(Gesture.TAP)]
    assert pair.central.backlog() == pair.glasses.backlog() == 0
    assert pair.central.next_timer() is None
    assert pair.refused == {role: [] for role in Role}


def packets_of_a_clean_exchange():
    pair = CodecPair()
    exchange(pair)
    assert_all_heard_once(pair)
    assert pair.now == 0.0, "a clean exchange needs no timer"
    return {role: len(packets) for role, packets in pair.sent.items()}


PACKETS = packets_of_a_clean_exchange()

# ------------------------------------------------------------------ loss and doubling


@pytest.mark.parametrize("lost", range(PACKETS[Role.CENTRAL]))
def test_the_loss_of_any_one_packet_to_the_glasses_is_repaired(lost):
    pair = CodecPair(down=Faults(lost=[lost]))
    exchange(pair)
    assert_all_heard_once(pair)


@pytest.mark.parametrize("lost", range(PACKETS[Role.PERIPHERAL]))
def test_the_loss_of_any_one_packet_to_the_central_is_repaired(lost):
    pair = CodecPair(up=Faults(lost=[lost]))
    exchange(pair)
    assert_all_heard_once(pair)


def test_doubled_packets_are_heard_once_and_acknowledged_again():
    pair = CodecPair(down=Faults(doubled=range(1000)), up=Faults(doubled=range(1000)))
    exchange(pair)
    assert_all_heard_once(pair)


@pytest.mark.parametrize("late", range(6))
def test_packets_that_overtake_each_other_are_put_in_order(late):
    pair = CodecPair(down=Faults(late={late: 2}), up=Faults(late={late: 2}))
    exchange(pair)
    assert_all_heard_once(pair)


@given(down=st.sets(st.integers(0, 60), max_size=20), up=st.sets(st.integers(0, 60), max_size=20))
@pytest.mark.requirement("K7-loss")
def test_what_gets_through_is_whole_and_in_order_and_silence_is_said(down, up):
    pair = CodecPair(down=Faults(lost=down), up=Faults(lost=up))
    silent = False
    try:
        exchange(pair)
    except LinkLost:
        silent = True
    if silent:
        assert len(down | up) > 3, "four losses of the same frame are needed"
        assert pair.messages(Role.PERIPHERAL) in ([], [LONG])
    else:
        assert_all_heard_once(pair)


def test_a_gap_is_named_once_and_repaired_without_the_timer():
    pair = CodecPair(down=Faults(lost=[1]))
    pair.central.send(LONG, 0.0)
    pair.settle()
    naks = [
        frame
        for frame in map(Frame.parse, pair.sent[Role.PERIPHERAL])
        if frame.type is FrameType.NAK
    ]
    assert [frame.seq for frame in naks] == [1]
    assert pair.messages(Role.PERIPHERAL) == [LONG]


def test_a_stream_of_naks_causes_one_repetition():
    sender = Sender()
    sender.queue(b"x" * 30)
    sent = sender.emit(0.0, 20)
    assert len(sent) == 3
    for _ in range(5):
        sender.acknowledged(ack(0, 4, FrameType.NAK), 0.0)
    assert sender.emit(0.0, 20) == sent
    sender.acknowledged(ack(0, 4, FrameType.NAK), 0.0)
    assert sender.emit(0.0, 20) == []


def test_a_gap_is_named_once_for_all_frames_behind_it():
    receiver = Receiver(window=8, limit=1000)
    receiver.data(whole(1))
    assert [Frame.parse(packet).type for packet in receiver.emit()] == [FrameType.NAK]
    receiver.data(whole(2))
    assert receiver.emit() == []
    receiver.data(whole(0))
    assert [Frame.parse(packet).seq for packet in receiver.emit()] == [1]
    receiver.data(whole(3))
    assert [Frame.parse(packet).type for packet in receiver.emit()] == [FrameType.NAK], (
        "another gap is named again"
    )


def test_a_frame_that_was_only_overtaken_is_not_named():
    receiver = Receiver(window=8, limit=1000)
    receiver.data(whole(1))
    receiver.data(whole(0))
    assert [Frame.parse(packet).type for packet in receiver.emit()] == [FrameType.ACK]


def test_what_an_ack_covers_is_not_sent_again_after_going_back():
    sender = Sender()
    sender.queue(b"x" * 300)
    sent = sender.emit(0.0, 20)
    sender.timer(sender.due)
    sender.acknowledged(ack(3, 4), 1.0)
    assert [Frame.parse(packet).seq for packet in sender.emit(1.0, 20)] == [3, 4, 5, 6]
    assert len(sent) == 4


# ------------------------------------------------------------------ credit


@pytest.mark.parametrize("window", [1, 2, 3, 7, 8, 40, 255])
@pytest.mark.parametrize("max_packet", [20, 185, 512])
def test_never_more_is_outstanding_than_was_granted(window, max_packet):
    pair = CodecPair(max_packet=max_packet)
    pair.greet(window=window)
    page = ShowPage("noise", tiles=(Tile(0, 0, 320, 200, 2, NOISE[:16000]),))
    pair.central.send(page, 0.0)
    # white box: the edge the glasses granted by what they really put into the air
    last_ack = next(p for p in reversed(pair.sent[Role.PERIPHERAL]) if p[0] in (2, 3))
    edge = int.from_bytes(last_ack[2:4], "little") + last_ack[6]
    sent = sum(1 for p in pair.sent[Role.CENTRAL] if p[0] == 1)
    while True:
        packets = pair.central.packets_to_send(0.0)
        frames = [p for p in packets if p[0] == 1]
        sent += len(frames)
        assert sent <= edge
        for packet in packets:
            pair.glasses.receive_packet(packet, 0.0)
        pair.heard[Role.PERIPHERAL] += drain(pair.glasses)
        answers = pair.glasses.packets_to_send(0.0)
        if not packets and not answers:
            break
        for answer in answers:
            assert answer[6] <= max(window, INITIAL_CREDIT)
            edge = int.from_bytes(answer[2:4], "little") + answer[6]
            pair.central.receive_packet(answer, 0.0)
    assert pair.messages(Role.PERIPHERAL)[-1] == page


def test_before_the_first_ack_four_frames_go_out():
    central = ReferenceCodec(Role.CENTRAL)
    central.send(LONG, 0.0)
    assert len(central.packets_to_send(0.0)) == INITIAL_CREDIT
    assert central.packets_to_send(0.0) == []


def test_a_peer_that_takes_nothing_is_granted_nothing_until_it_does():
    pair = CodecPair()
    pair.greet(window=4)
    for _ in range(40):
        pair.central.send(ClearPage(), 0.0)
    packets = pair.central.packets_to_send(0.0)
    while packets:
        for packet in packets:
            pair.glasses.receive_packet(packet, 0.0)
        for answer in pair.glasses.packets_to_send(0.0):
            pair.central.receive_packet(answer, 0.0)
        packets = pair.central.packets_to_send(0.0)
    waiting = drain(pair.glasses)
    assert len(waiting) <= 8
    pair.settle()
    assert len(waiting) + len(drain(pair.glasses)) + len(pair.heard[Role.PERIPHERAL]) == 1 + 40


@pytest.mark.requirement("K7-credits")
def test_frames_sent_without_credit_are_refused_and_not_kept():
    receiver = Receiver(window=8, limit=1000)
    with pytest.raises(RemoteViolation) as refused:
        receiver.data(whole(INITIAL_CREDIT))
    assert refused.value.reason is Violation.BAD_ORDER
    assert receiver.data(whole(0)) == (b"\x80", 1)


def test_credit_is_never_taken_back():
    receiver = Receiver(window=8, limit=1000)
    edge = INITIAL_CREDIT
    held = 0
    for seq in range(12):
        if seq == edge:
            break
        assert receiver.data(whole(seq)) is not None
        held += 1
        (packet,) = receiver.emit()
        frame = Frame.parse(packet)
        assert frame.seq + frame.payload[0] >= edge
        edge = frame.seq + frame.payload[0]
    assert held == edge == 8, "what is held uses the window up"
    receiver.release(1)
    (packet,) = receiver.emit()
    assert packet[6] == 1, "a starved sender is told of the first free place"


def test_a_message_completed_after_an_ack_takes_no_credit_back():
    receiver = Receiver(window=8, limit=1000)
    edges = []
    for seq, (payload, flags) in enumerate(
        [(b"\x03\0\0\0a", FIRST), (b"b", 0), (b"", 0), (b"c", LAST)]
    ):
        receiver.data(data(seq, payload, flags))
        edges += [frame.seq + frame.payload[0] for frame in map(Frame.parse, receiver.emit())]
    assert edges == [10, 10], "granted at frame 2, and kept although 4 frames are held"


def test_acks_come_in_time_and_not_for_every_frame():
    receiver = Receiver(window=255, limit=100000)
    receiver.data(whole(0))
    receiver.release(1)
    receiver.emit()
    receiver.data(data(1, (5000).to_bytes(4, "little"), FIRST))
    silent = 1
    acks = 0
    for seq in range(2, 100):
        receiver.data(data(seq, b"x" * 10))
        if receiver.emit():
            acks, silent = acks + 1, 0
        else:
            silent += 1
        assert silent < ACK_EVERY
    assert acks <= 98 // ACK_EVERY + 1


@pytest.mark.parametrize("credit", range(1, 12))
def test_half_of_any_granted_credit_brings_an_ack(credit):
    """Otherwise a sender with little credit would wait for its timer inside every message."""
    receiver = Receiver(window=credit, limit=100000)
    receiver.data(whole(0))
    receiver.release(1)
    receiver.emit()
    granted = max(credit, INITIAL_CREDIT - 1)
    receiver.data(data(1, (5000).to_bytes(4, "little"), FIRST))
    used, heard = 1, bool(receiver.emit())
    while not heard:
        used += 1
        assert used <= granted
        receiver.data(data(used, b"x"))
        heard = bool(receiver.emit())
    assert used <= max(1, granted // 2)


def test_a_lost_window_update_is_asked_for():
    sender = Sender()
    sender.acknowledged(ack(0, 0), 0.0)
    sender.queue(b"hello")
    assert sender.emit(0.0, 20) == []
    sender.timer(sender.due)
    (packet,) = sender.emit(1.0, 20)
    assert Frame.parse(packet) == Frame(FrameType.ASK, 0, 0, b"")
    assert sender.emit(1.0, 20) == []
    sender.acknowledged(ack(0, 1), 1.0)
    assert len(sender.emit(1.0, 20)) == 1


def test_an_ask_is_answered():
    glasses = ReferenceCodec(Role.PERIPHERAL)
    glasses.receive_packet(Frame(FrameType.ASK, 0, 0, b"").pack(), 0.0)
    (packet,) = glasses.packets_to_send(0.0)
    assert Frame.parse(packet) == ack(0, INITIAL_CREDIT)


# ------------------------------------------------------------------ silence


def test_the_timer_repeats_three_times_then_the_link_is_lost():
    sender = Sender()
    sender.queue(b"hello")
    first = sender.emit(10.0, 20)
    now = 10.0
    for pause in RETRY_AFTER_S[:-1]:
        assert sender.due == now + pause
        sender.timer(now + pause - 0.001)
        assert sender.emit(now, 20) == [], "not before its time"
        now += pause
        sender.timer(now)
        assert sender.emit(now, 20) == first
    now += RETRY_AFTER_S[-1]
    with pytest.raises(LinkLost) as lost:
        sender.timer(now)
    assert lost.value.reason is LostReason.SILENT


def test_a_peer_that_is_full_but_answers_is_not_lost():
    sender = Sender()
    sender.queue(b"hello")
    now = 0.0
    sender.emit(now, 20)
    for _ in range(20):
        now = sender.due
        sender.timer(now)
        sender.emit(now, 20)
        sender.acknowledged(ack(0, 0), now)
    assert sender.due == now + RETRY_AFTER_S[0]


def test_a_peer_that_only_repeats_itself_is_lost():
    sender = Sender()
    sender.queue(b"hello")
    sender.emit(0.0, 20)
    with pytest.raises(LinkLost):
        for _ in range(10):
            now = sender.due
            sender.timer(now)
            sender.acknowledged(ack(0, 4), now)


def test_nothing_outstanding_means_no_timer():
    central = ReferenceCodec(Role.CENTRAL)
    assert central.next_timer() is None
    central.handle_timer(1e9)
    central.send(ClearPage(), 0.0)
    central.packets_to_send(5.0)
    assert central.next_timer() == 5.0 + RETRY_AFTER_S[0]
    central.receive_packet(ack(2, 4).pack(), 5.5)
    assert central.next_timer() is None


# ------------------------------------------------------------------ numbers


def test_numbers_wrap_around_at_65536_under_loss():
    pair = CodecPair(max_packet=20, down=Faults(lost=[65000, 66000, 70000]))
    pair.greet(window=64)
    page = ShowPage("noise", tiles=(Tile(0, 0, 400, 400, 2, NOISE[:16000] + NOISE[:24000]),))
    count = 0
    while sum(1 for p in pair.sent[Role.CENTRAL] if p[0] == 1) < 72000:
        pair.central.send(page, pair.now)
        pair.settle_in_time()
        count += 1
    assert pair.messages(Role.PERIPHERAL)[1:] == [page] * count
    assert pair.refused == {role: [] for role in Role}


@pytest.mark.parametrize("seq", [1, 2, 100, 0x7FFF])
def test_an_ack_of_frames_never_sent_is_refused(seq):
    sender = Sender()
    sender.queue(b"hello")
    with pytest.raises(RemoteViolation) as refused:
        sender.acknowledged(ack(seq, 4), 0.0)
    assert refused.value.reason is Violation.BAD_ORDER
    assert len(sender.emit(0.0, 20)) == 1


def test_an_overtaken_ack_changes_nothing():
    sender = Sender()
    sender.queue(b"x" * 200)
    sender.emit(0.0, 20)
    sender.acknowledged(ack(4, 2), 0.0)
    sender.acknowledged(ack(2, 200), 0.0)
    assert len(sender.emit(0.0, 20)) == 2


# ------------------------------------------------------------------ bounds


@pytest.mark.parametrize(
    "packet", [b"", b"\x01", b"\x01\x03\x00\x00\x00", b"\x01\x03\x00\x00\x05\x00abc"]
)
def test_a_short_packet_is_truncated(packet):
    with pytest.raises(RemoteViolation) as refused:
        Frame.parse(packet)
    assert refused.value.reason is Violation.TRUNCATED


@pytest.mark.parametrize("kind", [0, 5, 0x7F, 0xFF])
def test_an_unknown_frame_is_refused_and_not_answered(kind):
    codec = ReferenceCodec(Role.PERIPHERAL)
    with pytest.raises(RemoteViolation) as refused:
        codec.receive_packet(bytes((kind, 0, 0, 0, 0, 0)), 0.0)
    assert refused.value.reason is Violation.UNKNOWN_FRAME
    assert codec.packets_to_send(0.0) == []


@pytest.mark.parametrize("payload", [b"", b"\x01\x02"])
def test_an_ack_has_one_byte_of_credit(payload):
    with pytest.raises(RemoteViolation):
        Frame.parse(Frame(FrameType.ACK, 0, 0, payload).pack())


def test_reserved_flags_are_ignored():
    codec = ReferenceCodec(Role.PERIPHERAL)
    codec.receive_packet(
        Frame(FrameType.DATA, 0xFF, 0, whole(0, b"\x82\xa1t\xa4ping\xa1n\x01").payload).pack(), 0.0
    )
    assert drain(codec)[0].message == Ping()


def test_the_bound_is_checked_before_memory_is_spent():
    receiver = Receiver(window=8, limit=1000)
    with pytest.raises(RemoteViolation) as refused:
        receiver.data(data(0, (1001).to_bytes(4, "little") + b"x", FIRST))
    assert refused.value.reason is Violation.OVERSIZED
    assert receiver.data(data(1, b"the rest of it", LAST)) is None, "said once"
    assert receiver.data(whole(2)) == (b"\x80", 1)


def test_announced_limits_are_kept_on_both_sides():
    pair = CodecPair()
    pair.greet(message=300)
    with pytest.raises(LocalMisuse, match="the peer takes 300"):
        pair.central.send(LONG, 0.0)
    assert pair.central.backlog() == 0
    rogue = (301).to_bytes(4, "little") + b"x"
    seq = sum(1 for p in pair.sent[Role.CENTRAL] if p[0] == 1)
    with pytest.raises(RemoteViolation) as refused:
        pair.glasses.receive_packet(data(seq, rogue, FIRST).pack(), 0.0)
    assert refused.value.reason is Violation.OVERSIZED


def test_a_sender_who_never_looks_at_the_backlog_is_stopped():
    central = ReferenceCodec(Role.CENTRAL)
    with pytest.raises(LocalMisuse, match="backlog"):
        for _ in range(MAX_BACKLOG_BYTES):
            central.send(LONG, 0.0)
    assert central.backlog() < MAX_BACKLOG_BYTES + 1000


def test_backlog_counts_down_to_nothing_as_the_peer_acknowledges():
    pair = CodecPair()
    pair.central.send(LONG, 0.0)
    before = pair.central.backlog()
    assert before > 400
    for packet in pair.central.packets_to_send(0.0):
        pair.glasses.receive_packet(packet, 0.0)
    assert pair.central.backlog() == before, "sent is not acknowledged"
    for packet in pair.glasses.packets_to_send(0.0):
        pair.central.receive_packet(packet, 0.0)
    assert pair.central.backlog() == before - 4 * 14
    pair.settle()
    assert pair.central.backlog() == 0


def test_max_packet_may_grow_in_the_middle_of_a_message():
    pair = CodecPair(max_packet=20)
    pair.central.send(LONG, 0.0)
    for packet in pair.central.packets_to_send(0.0):
        pair.glasses.receive_packet(packet, 0.0)
    pair.central.set_max_packet(244)
    pair.settle()
    assert pair.messages(Role.PERIPHERAL) == [LONG]
    assert max(map(len, pair.sent[Role.CENTRAL])) == 244


@pytest.mark.parametrize(("size", "used"), [(20, 20), (512, 512), (514, 512), (1000, 512)])
def test_packets_fit_the_radio_and_an_attribute(size, used):
    pair = CodecPair(max_packet=size)
    pair.central.send(ShowPage("x", tiles=(Tile(0, 0, 320, 200, 1, NOISE[:8000]),)), 0.0)
    pair.settle()
    assert max(map(len, pair.sent[Role.CENTRAL])) == used


def test_a_radio_smaller_than_att_allows_is_misuse():
    with pytest.raises(LocalMisuse):
        ReferenceCodec(Role.CENTRAL, max_packet=19)


@given(st.lists(st.binary(max_size=40), max_size=40), st.sampled_from(Role))
def test_any_packets_whatever_raise_nothing_but_a_violation(packets, role):
    codec = ReferenceCodec(role)
    for packet in packets:
        with contextlib.suppress(RemoteViolation):
            codec.receive_packet(packet, 0.0)
        drain(codec)
        codec.packets_to_send(0.0)


@given(
    st.lists(
        st.builds(
            Frame,
            st.sampled_from(FrameType),
            st.integers(0, 255),
            st.integers(0, 9) | st.integers(0, 0xFFFF),
            st.binary(max_size=1) | st.binary(max_size=30),
        ),
        max_size=60,
    ),
    st.sampled_from(Role),
    st.booleans(),
)
def test_well_formed_frames_in_any_order_raise_nothing_but_a_violation(frames, role, talking):
    codec = ReferenceCodec(role)
    if talking:
        codec.send(LONG if role is Role.CENTRAL else chunk(0), 0.0)
    for frame in frames:
        with contextlib.suppress(RemoteViolation):
            codec.receive_packet(frame.pack(), 0.0)
        drain(codec)
        codec.packets_to_send(0.0)


def test_a_flood_of_nonsense_is_answered_within_bounds_and_kept_nowhere():
    """20,000 unknown commands from a peer that never acknowledges an answer."""
    glasses = ReferenceCodec(Role.PERIPHERAL, max_packet=244)
    tracemalloc.start()
    for seq in range(20000):
        packet = whole(seq, b"\x82\xa1t\xa4nope\xa1n\x01").pack()
        glasses.receive_packet(packet, 0.0)
        glasses.packets_to_send(0.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert glasses.backlog() < 17 * 1024
    assert peak < 1024 * 1024
    assert glasses.next_event() is NEED_DATA


def test_unread_messages_fill_no_more_than_the_window():
    central = ReferenceCodec(Role.CENTRAL)
    ping = b"\x82\xa1t\xa7gesture\xa7gesture\xa3tap"
    refused = 0
    for seq in range(1000):
        try:
            central.receive_packet(whole(seq, ping).pack(), 0.0)
        except RemoteViolation:
            refused += 1
        central.packets_to_send(0.0)
    assert len(drain(central)) == 32
    assert refused == 1000 - 32


def test_one_message_at_the_bound_passes():
    receiver = Receiver(window=255, limit=MAX_MESSAGE_BYTES)
    sender = Sender()
    message = (NOISE * 3)[:MAX_MESSAGE_BYTES]
    sender.queue(message)
    taken = None
    while taken is None:
        for packet in sender.emit(0.0, 512):
            taken = receiver.data(Frame.parse(packet)) or taken
        for packet in receiver.emit():
            sender.acknowledged(Frame.parse(packet), 0.0)
    assert taken[0] == message


def test_info_without_limits_means_the_defaults():
    pair = CodecPair()
    pair.greet()
    assert pair.messages(Role.CENTRAL) == [info()]
    pair.central.send(ClearPage(), 0.0)
    pair.settle()
    assert pair.sent[Role.PERIPHERAL][-1][6] == 32
