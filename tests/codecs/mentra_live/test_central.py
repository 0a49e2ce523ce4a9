"""The central of a Mentra Live against its glasses: start-up, acknowledgement, events, sound."""

from itertools import pairwise

import pytest

from firmware_bridge.codecs.mentra_live.conflicts import CONFLICTS, Dialect
from firmware_bridge.codecs.mentra_live.outbox import GAP_S
from firmware_bridge.codecs.mentra_live.peripheral import Facts
from firmware_bridge.errors import CommandRefused, LocalMisuse
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    Done,
    EndAudio,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    MicrophoneChunk,
    Ping,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    WornChanged,
)
from firmware_bridge.own_commands import HotspotChanged, WifiChanged
from firmware_bridge.packets import ChannelPacket, channel_of
from tests.codecs.mentra_live.live_pair import Pair
from tests.system import needs

MIC = StartMicrophone(7, AudioFormat.LC3)
SOUND = b"\xf1\x00" + bytes(240)


@pytest.fixture
def pair():
    pair = Pair()
    assert isinstance(pair.greet(), GlassesInfo)
    pair.run(for_s=2.0)
    pair.heard.clear()
    return pair


# ------------------------------------------------------------------ start-up


def test_the_chip_is_asked_then_the_application_greeted():
    pair = Pair()
    info = pair.greet()
    pair.run()
    assert info == GlassesInfo("mentra_live", "1.0.0", "SIM-LIVE-0001", {}, {})
    order = ["cs_hrt", "phone_ready", "request_version", "set_ble_mtu", "cs_batv"]
    assert pair.types() == order
    assert {"type": "set_ble_mtu", "mtu": 256} in pair.messages()
    assert pair.events() == [BatteryChanged(87), WifiChanged(False), HotspotChanged(False)]


def test_the_phone_announces_no_more_than_it_negotiated():
    pair = Pair(max_packet=182)
    pair.greet()
    pair.run()
    assert {"type": "set_ble_mtu", "mtu": 185} in pair.messages()


def test_glasses_whose_chip_does_not_answer_are_greeted_after_a_second():
    pair = Pair(dialect=Dialect(chip_ready=False))
    begun = pair.now
    assert isinstance(pair.greet(), GlassesInfo)
    assert 1.0 <= pair.now - begun < 2.0
    assert pair.ask(Ping()) == Done()
    assert pair.types()[-1] == "ping", "the chip is not asked again"


def test_glasses_that_are_starting_refuse_and_are_asked_again():
    facts = Facts(ready=False)
    pair = Pair(facts=facts)
    begun = pair.now
    answer = pair.greet()
    assert isinstance(answer, Failed)
    assert answer.code == "busy"
    assert pair.now - begun == pytest.approx(4.0)
    assert pair.types() == ["cs_hrt", "cs_hrt"], "no message for an application that is not there"
    facts.ready = True
    assert isinstance(pair.greet(), GlassesInfo)


def test_an_application_that_starts_again_is_greeted_again(pair):
    pair.said.clear()
    pair.chip("sr_hrt", pt=80, ready=0, charg=0)
    pair.chip("sr_hrt", pt=80, ready=1, charg=0)
    pair.run()
    assert pair.types() == ["phone_ready", "request_version", "set_ble_mtu", "cs_batv"]


def test_glasses_without_a_version_are_ready_a_second_later():
    pair = Pair(air=lambda way, p: [] if way == "up" and b"version_info" in p else [p])
    info = pair.greet()
    assert isinstance(info, GlassesInfo)
    assert info.firmware == ""


@pytest.mark.parametrize("conflict", CONFLICTS, ids=lambda c: c.name)
def test_every_variant_greets_and_takes_a_photo(conflict):
    for changes in conflict.values.values():
        pair = Pair(dialect=Dialect(**changes))
        assert isinstance(pair.greet(), GlassesInfo)
        pair.ask(TakePhoto(3))
        pair.run(for_s=3.0)
        assert [event.photo for event in pair.events() if hasattr(event, "photo")] == [3]
        assert pair.refused == []


# ------------------------------------------------------------------ writes and acknowledgements


def test_writes_keep_their_distance():
    pair = Pair()
    moments = []
    pair.air = lambda way, p: (moments.append(pair.now) if way == "down" else None, [p])[1]
    pair.greet()
    pair.run()
    gaps = [after - before for before, after in pairwise(moments)]
    assert min(gaps) >= GAP_S - 1e-9


def test_messages_are_numbered_once_the_build_is_known_to_acknowledge(pair):
    assert all("mId" not in message for message in pair.messages())
    assert pair.ask(TakePhoto(1)) == Done()
    assert pair.messages()[-1]["mId"] >= 1_000_000


def test_an_old_build_gets_no_numbers_and_no_repetition():
    pair = Pair(dialect=Dialect(build=4))
    pair.greet()
    pair.picture = None
    assert pair.ask(TakePhoto(1)) == Done()
    pair.run(for_s=20.0)
    assert pair.types().count("take_photo") == 1
    assert "mId" not in pair.messages()[-1]


def test_numbers_go_on_over_a_reconnection():
    numbers = []
    for start in (1000.0, 1005.0):
        pair = Pair()
        pair.now = start
        pair.greet()
        pair.ask(TakePhoto(1))
        numbers.append(pair.messages()[-1].get("mId") or 0)
    assert len(set(numbers)) == 2


def test_an_order_whose_acknowledgement_is_lost_is_repeated_and_done_once(pair):
    pair.picture = None
    lost = []

    def air(way, packet):
        if way == "up" and b"msg_ack" in packet and not lost:
            lost.append(packet)
            return []
        return [packet]

    pair.air = air
    begun = pair.now
    assert pair.ask(TakePhoto(1), for_s=10.0) == Done()
    assert pair.now - begun == pytest.approx(2.0, abs=0.2)
    assert pair.types().count("take_photo") == 2
    assert len([c for c in pair.done if isinstance(c, TakePhoto)]) == 1
    assert pair.events() == [], "the repeated order is not refused as a second one"


def test_an_order_that_is_never_acknowledged_fails_after_four_times(pair):
    pair.air = lambda way, p: [] if way == "down" and b"take_photo" in p else [p]
    assert isinstance(pair.ask(TakePhoto(1), for_s=30.0), Failed)
    assert pair.types().count("take_photo") == 4
    assert pair.ask(Ping()) == Done()


def test_messages_of_the_glasses_are_acknowledged_and_taken_once(pair):
    pair.said.clear()
    for _ in range(2):
        pair.tell({"type": "button_press", "pressType": "short", "mId": 99})
        pair.run(for_s=0.5)
    assert pair.messages() == [{"type": "msg_ack", "mId": 99}] * 2
    assert pair.events() == [Gestured(Gesture.BUTTON)]


def test_too_many_messages_are_refused_not_collected(pair):
    with pytest.raises(LocalMisuse):
        for _ in range(1000):
            pair.central.send(Ping(), pair.now)
    pair.run(for_s=60.0)
    assert pair.ask(Ping()) == Done()


def test_a_ping_is_answered_by_the_chip(pair):
    pair.said.clear()
    assert pair.ask(Ping()) == Done()
    assert pair.types() == ["cs_hrt"]


@pytest.mark.parametrize("command", [ShowPage("s"), Done(), WornChanged(worn=True)])
def test_what_these_glasses_lack_is_refused(pair, command):
    with pytest.raises(CommandRefused, match="unsupported"):
        pair.central.send(command, pair.now)


# ------------------------------------------------------------------ events


@pytest.mark.parametrize(
    ("touch", "gesture"),
    [(0, Gesture.TAP), (1, Gesture.DOUBLE_TAP), (3, Gesture.BUTTON_LONG)],
)
def test_touches_become_gestures(pair, touch, gesture):
    pair.chip("sr_tpevt", type=touch)
    assert pair.events() == [Gestured(gesture)]


@pytest.mark.parametrize("touch", [2, 4, 5, 6, 7, 8, -1, None, "x", True, 10**30])
def test_other_touches_become_nothing(pair, touch):
    pair.chip("sr_tpevt", type=touch)
    assert pair.events() == []
    assert pair.refused == []


@pytest.mark.parametrize(
    ("message", "gesture"),
    [
        ({"type": "button_press", "buttonId": "camera", "pressType": "short"}, Gesture.BUTTON),
        ({"type": "button_press", "buttonId": "camera", "pressType": "long"}, Gesture.BUTTON_LONG),
        ({"type": "imu_gesture_response", "gesture": "nod_yes"}, Gesture.NOD),
    ],
)
def test_presses_and_nods_become_gestures(pair, message, gesture):
    pair.tell(message)
    assert pair.events() == [Gestured(gesture)]


def test_two_touches_are_two_but_one_reported_twice_is_one(pair):
    pair.chip("sr_tpevt", type=3)
    pair.tell({"type": "button_press", "pressType": "long"})
    pair.chip("sr_tpevt", type=0)
    pair.chip("sr_tpevt", type=0)
    assert pair.events() == [
        Gestured(Gesture.BUTTON_LONG),
        Gestured(Gesture.TAP),
        Gestured(Gesture.TAP),
    ]


def test_the_battery_is_reported_when_it_changes():
    pair = Pair()
    pair.chip("sr_batv", vt=4100, pt=90)
    pair.chip("sr_hrt", pt=90, ready=1, charg=0)
    pair.chip("sr_batv", vt=4100, pt=90)
    pair.tell({"type": "battery_status", "percent": 89, "charging": True})
    pair.tell({"type": "battery_status", "level": 88, "charging": True})
    assert pair.events() == [
        BatteryChanged(90, charging=True),
        BatteryChanged(90),
        BatteryChanged(89, charging=True),
        BatteryChanged(88, charging=True),
    ], "a voltage is only a guess"


@pytest.mark.parametrize("level", [-1, 101, None, "full", 1.5, True])
def test_an_impossible_battery_is_ignored(pair, level):
    pair.tell({"type": "battery_status", "percent": level})
    assert pair.events() == []


def test_frames_of_both_byte_orders_are_read(pair):
    for order in ("big", "little"):
        pair.tell({"type": "button_press", "pressType": "short"}, order=order)
    assert len(pair.events()) == 2


def test_glasses_of_each_role_say_what_the_other_reads():
    pair = Pair()
    pair.greet()
    pair.heard.clear()
    said = [
        Gestured(Gesture.TAP),
        Gestured(Gesture.DOUBLE_TAP),
        Gestured(Gesture.BUTTON),
        Gestured(Gesture.BUTTON_LONG),
        BatteryChanged(12, charging=True),
    ]
    for event in said:
        pair.glasses.send(event, pair.now)
    pair.run()
    assert pair.events() == said


# ------------------------------------------------------------------ microphone


def test_the_microphone_is_ordered_until_sound_comes(pair):
    assert pair.ask(MIC) == Done()
    orders = lambda: [m for m in pair.messages() if m.get("C") == "enable_custom_audio_tx"]  # noqa: E731
    pair.run(for_s=5.0)
    assert [order["B"] for order in orders()] == ['{"enable":true}'] * 3
    pair.raw(SOUND, "microphone")
    pair.run(for_s=20.0)
    assert len(orders()) == 3
    assert pair.events() == [MicrophoneChunk(7, 0, (bytes(40),) * 6)]


def test_a_silent_microphone_is_ordered_five_times_then_every_half_hour(pair):
    pair.ask(MIC)
    pair.run(for_s=60.0)
    count = lambda: pair.types().count("enable_custom_audio_tx")  # noqa: E731
    assert count() == 5
    pair.run(for_s=1800.0)
    assert count() == 6


def test_lost_sound_leaves_a_gap_and_doubled_or_late_sound_its_place(pair):
    pair.ask(MIC)
    numbers = [250, 251, 251, 254, 253, 255, 0, 3]
    for number in numbers:
        pair.raw(bytes((0xF1, number)) + bytes(40), "microphone")
    indexes = [event.index for event in pair.events(MicrophoneChunk)]
    assert indexes == [0, 1, 1, 4, 3, 5, 6, 9]


def test_a_microphone_that_was_not_asked_for_is_switched_off(pair):
    pair.said.clear()
    for _ in range(3):
        pair.raw(SOUND, "microphone")
    pair.run()
    assert [m["B"] for m in pair.messages()] == ['{"enable":false}']
    assert pair.events() == []


def test_a_microphone_is_closed_and_opened_again(pair):
    pair.ask(MIC)
    pair.raw(SOUND, "microphone")
    assert pair.ask(StopMicrophone(7)) == Done()
    pair.run()
    assert isinstance(pair.done[-1], StopMicrophone)
    assert pair.ask(StartMicrophone(8, AudioFormat.LC3)) == Done()
    pair.raw(SOUND, "microphone")
    assert pair.events(MicrophoneChunk)[-1] == MicrophoneChunk(8, 0, (bytes(40),) * 6)


def test_wrong_uses_of_the_microphone_are_refused(pair):
    with pytest.raises(CommandRefused, match="no_stream"):
        pair.central.send(StopMicrophone(7), pair.now)
    with pytest.raises(CommandRefused, match="speaks lc3"):
        pair.central.send(StartMicrophone(7, AudioFormat.PCM16), pair.now)
    pair.ask(MIC)
    with pytest.raises(CommandRefused, match="busy"):
        pair.central.send(MIC, pair.now)


def test_a_base_model_has_neither_microphone_nor_speaker():
    pair = Pair(dialect=Dialect(device="K900"))
    info = pair.greet()
    assert info.capabilities == {"microphone": False, "speaker": False}
    for command in (MIC, StartAudio(1, AudioFormat.PCM16)):
        with pytest.raises(CommandRefused, match="no sound over Bluetooth LE"):
            pair.central.send(command, pair.now)


def test_ten_frames_that_the_chip_cut_are_one_packet(pair):
    frames = tuple(bytes([at]) * 40 for at in range(10))
    whole = b"\xf1\x00" + b"".join(frames)
    pair.ask(MIC)
    for piece in (whole[:253], whole[253:]):
        pair.raw(piece, "microphone")
    pair.raw(b"\xf1\x01" + b"".join(frames[:2]), "microphone")
    chunks = [(each.index, each.frames) for each in pair.events(MicrophoneChunk)]
    assert chunks == [(0, frames), (1, frames[:2])]
    assert pair.refused == []


def test_of_a_cut_packet_whose_rest_is_lost_the_whole_frames_remain(pair):
    frames = tuple(bytes([at]) * 40 for at in range(10))
    pair.ask(MIC)
    pair.raw((b"\xf1\x00" + b"".join(frames))[:253], "microphone")
    pair.raw(b"\xf1\x01" + b"".join(frames[:3]), "microphone")
    chunks = [(each.index, each.frames) for each in pair.events(MicrophoneChunk)]
    assert chunks == [(0, frames[:6]), (1, frames[:3])]


@pytest.mark.parametrize("packet", [b"", b"\xf1", b"\xf1\x00", b"\xf2\x00" + bytes(40), SOUND[:-1]])
def test_damaged_sound_is_a_violation(pair, packet):
    pair.ask(MIC)
    pair.raw(packet, "microphone")
    assert len(pair.refused) == 1


# ------------------------------------------------------------------ speaker

needs_lc3 = needs("liblc3")


@needs_lc3
def test_speech_goes_as_numbered_lc3_and_ends_when_it_was_played(pair):
    assert pair.ask(StartAudio(1, AudioFormat.PCM16)) == Done()
    begun = pair.now
    for index in range(3):
        pair.central.send(AudioChunk(1, index, (bytes(640),) * 5), pair.now)
    assert pair.ask(EndAudio(1), for_s=5.0) == Done(), "how much was played is not known"
    assert pair.now - begun == pytest.approx(0.3, abs=0.01)
    sound = [p for p in pair.said if channel_of(p) == "speaker"]
    assert [(p[0], p[1], len(p)) for p in sound] == [(0xF1, at, 402) for at in range(3)]
    pair.run()
    kinds = [type(c).__name__ for c in pair.done]
    assert kinds == ["StartAudio", "AudioChunk", "AudioChunk", "AudioChunk", "EndAudio"]


@needs_lc3
def test_no_sound_is_sent_before_the_order_to_play_it(pair):
    for _ in range(3):
        pair.central.send(Ping(), pair.now)
    pair.central.send(StartAudio(1, AudioFormat.PCM16), pair.now)
    pair.central.send(AudioChunk(1, 0, (bytes(3200),)), pair.now)
    pair.run()
    kinds = [type(command).__name__ for command in pair.done]
    assert kinds == ["StartAudio", "AudioChunk"]


@needs_lc3
def test_the_rest_of_a_speech_is_filled_with_silence(pair):
    pair.ask(StartAudio(1, AudioFormat.PCM16))
    pair.central.send(AudioChunk(1, 0, (bytes(644),)), pair.now)
    pair.ask(EndAudio(1))
    sound = [p for p in pair.said if channel_of(p) == "speaker"]
    assert [len(p) for p in sound] == [2 + 3 * 40]


@needs_lc3
def test_a_flushed_speech_is_over_at_once(pair):
    pair.ask(StartAudio(1, AudioFormat.PCM16))
    pair.central.send(AudioChunk(1, 0, (bytes(3200),)), pair.now)
    begun = pair.now
    assert pair.ask(EndAudio(1, flush=True)) == Done()
    assert pair.now == begun
    assert [p for p in pair.said if channel_of(p) == "speaker"] == []
    assert pair.ask(StartAudio(2, AudioFormat.PCM16)) == Done()


@needs_lc3
def test_wrong_uses_of_the_speaker_are_refused(pair):
    with pytest.raises(CommandRefused, match="no_stream"):
        pair.central.send(EndAudio(1), pair.now)
    with pytest.raises(CommandRefused, match="unsupported"):
        pair.central.send(StartAudio(1, AudioFormat.OPUS), pair.now)
    pair.ask(StartAudio(1, AudioFormat.PCM16))
    with pytest.raises(CommandRefused, match="busy"):
        pair.central.send(StartAudio(2, AudioFormat.PCM16), pair.now)
    pair.run()
    pair.central.send(AudioChunk(9, 0, (bytes(3200),)), pair.now)
    assert pair.central.backlog() == 0, "samples of another stream are dropped"


def test_too_small_packets_carry_no_sound():
    pair = Pair(max_packet=20)
    pair.greet()
    with pytest.raises(CommandRefused, match="hold no sound"):
        pair.central.send(StartAudio(1, AudioFormat.PCM16), pair.now)


def test_the_smallest_packets_carry_every_message():
    pair = Pair(max_packet=20)
    assert isinstance(pair.greet(), GlassesInfo)
    assert pair.ask(TakePhoto(1)) == Done()
    assert all(len(packet) <= 20 for packet in pair.said)


def test_a_greeting_is_refused_by_glasses_that_say_nothing():
    pair = Pair(air=lambda _way, _packet: [])
    assert isinstance(pair.greet(), Failed)
    assert pair.ask(Hello("x", "1")) is not None


def test_an_unknown_channel_is_a_violation(pair):
    pair._up(ChannelPacket(b"x", "other"))
    assert len(pair.refused) == 1
