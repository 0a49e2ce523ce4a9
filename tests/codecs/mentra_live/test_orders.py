"""Wi-Fi, light and gallery of a Mentra Live, and the frames of later builds: every message as the
command reference of the glasses' application has it (DOC), in both directions.
"""

import json

import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from firmware_bridge.codecs.mentra_live import wire
from firmware_bridge.codecs.mentra_live.conflicts import STOCK, Dialect
from firmware_bridge.codecs.mentra_live.fragments import (
    KEYS,
    OFFER,
    SESSIONS,
    FragmentJoiner,
    fragments_of,
    shorten,
)
from firmware_bridge.codecs.mentra_live.orders import ANSWER_S
from firmware_bridge.codecs.mentra_live.peripheral import MentraLiveGlasses
from firmware_bridge.codecs.mentra_live.reports import MAX_NETWORKS
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import Done, Failed, Gesture, Gestured, GlassesInfo
from firmware_bridge.own_commands import (
    BlinkLight,
    ForgetWifi,
    GalleryChanged,
    GetGallery,
    GetWifi,
    JoinWifi,
    KeepPictures,
    LeaveWifi,
    LightColor,
    ScanWifi,
    SwitchLightOff,
    WifiChanged,
    WifiFound,
    WifiNetwork,
)
from firmware_bridge.recording.lines import to_tree
from tests.codecs.mentra_live.live_pair import Pair

ORDERS = [
    (GetWifi(), {"type": "request_wifi_status"}),
    (ScanWifi(), {"type": "request_wifi_scan"}),
    (
        JoinWifi("MyNetwork", "password123"),
        {"type": "set_wifi_credentials", "ssid": "MyNetwork", "password": "password123"},
    ),
    (LeaveWifi(), {"type": "disconnect_wifi"}),
    (ForgetWifi("OldNetwork"), {"type": "forget_wifi", "ssid": "OldNetwork"}),
    (GetGallery(), {"type": "query_gallery_status"}),
    (KeepPictures(True), {"type": "save_in_gallery_mode", "active": True}),
    (
        BlinkLight(LightColor.WHITE, 500, 500, 3, 80),
        {
            "type": "rgb_led_control_on",
            "led": 4,
            "ontime": 500,
            "offtime": 500,
            "count": 3,
            "brightness": 204,
        },
    ),
    (
        BlinkLight(LightColor.RED),
        {"type": "rgb_led_control_on", "led": 0, "ontime": 1000, "offtime": 1000, "count": 1},
    ),
    (SwitchLightOff(), {"type": "rgb_led_control_off"}),
]


def ready(dialect=STOCK, **more):
    pair = Pair(dialect=dialect, **more)
    assert isinstance(pair.greet(), GlassesInfo)
    pair.run(for_s=2.0)
    pair.heard.clear()
    pair.said.clear()
    return pair


@pytest.mark.parametrize("dialect", [STOCK, Dialect(build=4), Dialect(frames="v2")], ids=str)
@pytest.mark.parametrize(("command", "message"), ORDERS, ids=lambda each: type(each).__name__)
def test_an_order_is_its_message_and_reaches_the_glasses(command, message, dialect):
    pair = ready(dialect)
    assert pair.ask(command) == Done()
    sent = pair.messages()[0]
    assert sent.pop("mId", 1)
    assert sent == message
    assert pair.done == [command]


def test_an_order_wakes_the_main_processor():
    pair = ready()
    pair.ask(GetWifi())
    assert any(b'"W":1' in packet for packet in pair.said)


@pytest.mark.parametrize("command", [GetWifi(), JoinWifi("a"), BlinkLight(LightColor.RED)])
def test_an_order_that_is_never_acknowledged_is_refused(command):
    pair = ready()
    pair.air = lambda way, packet: [] if way == "down" else [packet]
    assert pair.ask(command, for_s=60.0) == Failed("busy", "the glasses do not acknowledge it")
    assert pair.central.next_timer() is None, "nothing is left to be done"


@pytest.mark.parametrize("dialect", [STOCK, Dialect(build=4)], ids=str)
def test_a_light_that_the_glasses_refuse_is_refused(dialect):
    pair = ready(dialect)
    pair.reply = lambda _command: Failed("unsupported", "RGB LED not supported")
    answer = pair.ask(BlinkLight(LightColor.RED))
    assert answer == Failed("unsupported", "RGB LED not supported")


@pytest.mark.parametrize("build", [12, 4])
def test_a_light_whose_order_is_only_acknowledged_is_done_in_two_seconds(build):
    pair = ready(Dialect(answers_light=False, build=build))
    begun = pair.now
    assert pair.ask(BlinkLight(LightColor.RED)) == Done()
    assert ANSWER_S <= pair.now - begun < ANSWER_S + 0.5


def test_an_answer_about_the_light_answers_no_other_order():
    pair = ready()
    pair.air = lambda way, packet: [] if way == "up" else [packet]
    number = pair.central.send(SwitchLightOff(), pair.now)
    pair.settle()
    pair.tell({"type": "rgb_led_control_on_response", "success": True})
    assert pair.answer(number) is None
    pair.tell({"type": "rgb_led_control_off_response", "success": True})
    assert pair.answer(number) == Done()
    assert pair.central.next_timer() is None, "it is not sent again"


def test_the_password_is_in_no_text_of_the_order():
    order = JoinWifi("Home", "hunter22")
    assert "hunter22" not in repr(order)
    assert order.is_secret
    assert not GetWifi().is_secret


# ------------------------------------------------------------------ reports

WPA2 = {"ssid": "MyNetwork", "signal_strength": -45, "security": "WPA2"}
REPORTS = [
    ({"type": "wifi_status", "connected": True}, WifiChanged(True)),
    ({"type": "wifi_status", "connected": False, "ssid": "x"}, WifiChanged(False)),
    ({"type": "wifi_status"}, WifiChanged(False)),
    (
        {"type": "wifi_status", "connected": True, "ssid": "Home", "local_ip": "10.0.0.7"},
        WifiChanged(True, "Home", "10.0.0.7"),
    ),
    (
        {"type": "wifi_scan_result", "scan_complete": False, "networks_neo": [WPA2]},
        WifiFound((WifiNetwork("MyNetwork", -45, False),), False),
    ),
    (
        {"type": "wifi_scan_result", "scan_complete": True, "networks_neo": []},
        WifiFound((), True),
    ),
    (
        {"type": "wifi_scan_result", "networks": ["A", "B", "A", "", 7]},
        WifiFound((WifiNetwork("A"), WifiNetwork("B"))),
    ),
    (
        {
            "type": "wifi_scan_result",
            "networks": ["A"],
            "networks_neo": [{"ssid": "A", "signalStrength": -60, "requiresPassword": False}],
        },
        WifiFound((WifiNetwork("A", -60, True),)),
    ),
    (
        {
            "type": "gallery_status",
            "photos": 25,
            "videos": 5,
            "total": 30,
            "total_size": 2147483648,
            "has_content": True,
            "camera_busy": None,
        },
        GalleryChanged(25, 5, 2147483648),
    ),
    (
        {"type": "gallery_status", "photos": 0, "videos": 0, "camera_busy": "video"},
        GalleryChanged(0, 0, None, "video"),
    ),
]


@pytest.mark.parametrize(("message", "event"), REPORTS)
def test_a_report_is_understood(message, event):
    pair = ready()
    pair.tell(message)
    assert pair.events() == [event]
    assert to_tree(event)["type"] == type(event).__name__


@pytest.mark.parametrize(
    "message",
    [
        {"type": "wifi_status", "connected": "yes"},
        {"type": "wifi_scan_result"},
        {"type": "wifi_scan_result", "networks": "Home"},
        {"type": "gallery_status", "photos": -1, "videos": 0},
        {"type": "gallery_status", "photos": 1, "videos": True},
        {"type": "rgb_led_control_on_response", "success": True},
        {"type": "rgb_led_control_error"},
    ],
)
def test_a_damaged_report_and_a_late_answer_are_ignored(message):
    pair = ready()
    pair.tell(message)
    assert pair.events() == []
    assert not pair.refused


def test_what_the_glasses_list_is_bounded_and_can_be_shown():
    pair = ready()
    names = [f"net {n}" for n in range(MAX_NETWORKS + 9)]
    listed = json.dumps({"type": "wifi_scan_result", "networks": names}).encode()
    for part in fragments_of(listed, 1):
        pair.raw(part.pack())
    assert len(pair.events(WifiFound)[0].networks) == MAX_NETWORKS
    pair.tell({"type": "wifi_scan_result", "networks": ["a\x1b[2J", "é" * 17, "é" * 16]})
    assert [n.ssid for n in pair.events(WifiFound)[1].networks] == ["a[2J", "é" * 16]


@pytest.mark.parametrize("dialect", [STOCK, Dialect(frames="v2")], ids=str)
@pytest.mark.parametrize(
    "event",
    [
        WifiChanged(False),
        WifiChanged(True, "Home", "10.0.0.7"),
        GalleryChanged(0, 0, 0),
        GalleryChanged(2, 1, 99, "stream"),
        WifiFound((WifiNetwork("Home", -50, False), WifiNetwork("Café", -80, False)), True),
    ],
)
def test_what_glasses_report_is_heard_as_it_was_said(event, dialect):
    pair = ready(dialect)
    pair.glasses.send(event, pair.now)
    pair.settle()
    assert pair.events() == [event]


def test_older_glasses_list_names_and_do_not_name_their_network():
    pair = ready(replace(STOCK, finishes_scan=False, names_network=False))
    pair.glasses.send(WifiFound((WifiNetwork("Home", -50, False),), True), pair.now)
    pair.glasses.send(WifiChanged(True, "Home", "10.0.0.7"), pair.now)
    pair.settle()
    assert pair.events() == [WifiFound((WifiNetwork("Home"),)), WifiChanged(True)]


# ------------------------------------------------------------------ the frames of later builds


def test_the_offer_of_such_frames_is_as_it_was_seen_and_is_let_go():
    seen = bytes.fromhex("232340 0900 0b 0100 00 01 0200 7632 2424")
    assert OFFER.pack() == seen
    pair = ready()
    pair.raw(seen)
    assert pair.events() == []
    assert pair.said == []
    assert not pair.refused


def test_glasses_of_later_builds_accept_the_offer_and_messages_in_fragments():
    for frames, answered in (("v2", [OFFER.pack()]), ("json", [])):
        glasses = MentraLiveGlasses(max_packet=253, dialect=Dialect(frames=frames))
        glasses.receive_packet(OFFER.pack(), 0.0)
        assert glasses.packets_to_send(0.0) == answered
        for part in fragments_of(json.dumps({"t": "ping", "pad": "x" * 600}).encode(), 2):
            glasses.receive_packet(part.pack(), 0.0)
        assert len(glasses.packets_to_send(0.0)) == len(answered)


@pytest.mark.parametrize("size", [20, 100, 253])
def test_a_message_in_fragments_is_put_together_however_it_is_cut(size):
    pair = ready()
    message = {"t": "gallery_status", "photos": 4, "videos": 2, "pad": "x" * 1500}
    for part in fragments_of(json.dumps(message).encode(), 7):
        for packet in wire.cut(part.pack(), size):
            pair.raw(packet)
    assert pair.events() == [GalleryChanged(4, 2)]


def test_fragments_may_come_in_any_order_and_twice():
    joiner, message = FragmentJoiner(), {"type": "x", "pad": "y" * 1500}
    parts = fragments_of(json.dumps(message).encode(), 9)
    assert len(parts) == 4
    assert [joiner.add(part) for part in (parts[2], parts[0], parts[0], parts[3])] == [None] * 4
    assert joiner.add(parts[1]) == message


def test_short_keys_are_written_out_and_longer_ones_count_first():
    joiner = FragmentJoiner()
    (part,) = fragments_of(json.dumps({"t": "a", "w": 3, "width": 4, "q": 5}).encode(), 1)
    assert joiner.add(part) == {"type": "a", "width": 4, "q": 5}
    assert shorten({"type": "a", "connected": False, "requestId": "r", "n": 0, "s": ""}) == {
        "t": "a",
        "r": "r",
        "n": 0,
    }
    assert len(set(KEYS.values())) == len(KEYS)


def test_messages_that_never_end_are_forgotten():
    joiner = FragmentJoiner()
    for number in range(SESSIONS + 1):
        joiner.add(wire.Fragment(number, 0, 2, b'{"type":'))
    assert joiner.add(wire.Fragment(0, 1, 2, b'"a"}')) is None, "the oldest is gone"
    assert joiner.add(wire.Fragment(SESSIONS, 1, 2, b'"a"}')) == {"type": "a"}
    with pytest.raises(RemoteViolation, match="more than"):
        for at in range(255):
            joiner.add(wire.Fragment(99, at, 255, bytes(480)))
    with pytest.raises(RemoteViolation, match="without an object"):
        joiner.add(wire.Fragment(100, 0, 1, b"[]"))


@pytest.mark.parametrize(
    "part",
    [
        wire.Fragment(1, 1, 1, b"{}"),
        wire.Fragment(1, 0, 0, b"{}"),
        wire.Fragment(1, 0, 1, b'{"type":"wifi_status"}' + b" " * 459),
    ],
    ids=["beyond the last", "of none", "too long"],
)
def test_a_fragment_that_cannot_be_is_a_violation(part):
    pair = ready()
    pair.raw(part.pack())
    assert len(pair.refused) == 1
    pair.tell({"type": "wifi_status"})
    assert pair.events() == [WifiChanged(False)]


def test_the_two_lengths_of_a_fragment_must_agree():
    pair = ready()
    packet = bytearray(fragments_of(b'{"type":"wifi_status"}', 1)[0].pack())
    packet[3] += 1
    pair.raw(bytes(packet))
    assert len(pair.refused) == 1
    assert pair.events() == []


def test_gestures_of_glasses_with_such_frames_are_understood():
    pair = ready(Dialect(frames="v2"))
    pair.glasses.send(Gestured(Gesture.BUTTON), pair.now)
    pair.settle()
    assert pair.events() == [Gestured(Gesture.BUTTON)]


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, 200), byte=st.integers(0, 255), cut=st.integers(0, 60))
def test_a_damaged_fragment_is_a_violation_or_nothing_and_the_next_one_is_read(at, byte, cut):
    pair = ready()
    (part,) = fragments_of(b'{"t":"wifi_status","connected":true,"ssid":"Home"}', 3)
    packet = bytearray(part.pack())
    packet[at % len(packet)] = byte
    pair.raw(bytes(packet[: len(packet) - cut]))
    pair.now += 2.0  # what is left of it does not come any more
    pair.heard.clear()
    for _ in range(2):
        pair.raw(fragments_of(b'{"t":"wifi_status"}', 4)[0].pack())
        pair.now += 2.0
    assert WifiChanged(False) in pair.events()
