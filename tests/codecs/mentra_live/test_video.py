"""Video, stream, hotspot and motion sensor of a Mentra Live, and what it answers by itself: every
message as the command reference of the glasses' application has it (DOC), in both directions.
"""

import pytest
from msgspec.structs import replace

from firmware_bridge.codecs.mentra_live.answers import GESTURES
from firmware_bridge.codecs.mentra_live.conflicts import STOCK
from firmware_bridge.codecs.mentra_live.peripheral import Facts
from firmware_bridge.codecs.mentra_live.stream import ALIVE_S, TRY_S, UNANSWERED
from firmware_bridge.messages import Done, PhotoFailed, TakePhoto
from firmware_bridge.own_commands import (
    EndStream,
    GetMotion,
    GetVideo,
    HotspotChanged,
    MotionRead,
    RecordVideo,
    Restart,
    SetHotspot,
    StreamChanged,
    StreamVideo,
    VideoChanged,
)
from tests.codecs.mentra_live.test_orders import ready

URL = "rtmp://streaming.example.com/live/key"
STREAM = {"rtmpUrl": URL, "streamUrl": URL, "flash": True, "sound": True}
LATER = replace(STOCK, stream="stream")
ORDERS = [
    (
        RecordVideo(True),
        {
            "type": "start_video_recording",
            "requestId": "glassd-video",
            "save": True,
            "flash": True,
            "sound": True,
        },
    ),
    (RecordVideo(False), {"type": "stop_video_recording", "requestId": "glassd-video"}),
    (GetVideo(), {"type": "get_video_recording_status"}),
    (SetHotspot(True), {"type": "set_hotspot_state", "enabled": True}),
    (SetHotspot(False), {"type": "set_hotspot_state", "enabled": False}),
    (GetMotion(), {"type": "imu_single"}),
    (Restart(), {"type": "reboot"}),
    (EndStream(), {"type": "stop_rtmp_stream"}),
]


@pytest.mark.parametrize(("command", "message"), ORDERS, ids=str)
def test_an_order_is_its_message_and_reaches_the_glasses(command, message):
    pair = ready()
    assert pair.ask(command) == Done()
    sent = pair.messages()[0]
    assert sent.pop("mId", 1)
    assert sent == message
    assert pair.done == [command]


STARTED = {"type": "video_recording_status", "success": True, "status": "recording_started"}
REPORTS = [
    ({**STARTED, "timestamp": 1708963201234}, VideoChanged(True)),
    ({**STARTED, "status": "recording_stopped"}, VideoChanged(False)),
    ({**STARTED, "success": False, "status": "already_recording"}, VideoChanged(True)),
    ({**STARTED, "success": False, "status": "not_recording"}, VideoChanged(False)),
    (
        {**STARTED, "success": False, "status": "battery_low"},
        VideoChanged(False, problem="battery_low"),
    ),
    (
        {
            "type": "video_recording_status",
            "success": True,
            "data": {"recording": True, "duration_ms": 15000, "duration_formatted": "00:15"},
        },
        VideoChanged(True, 15.0),
    ),
    (
        {"type": "video_recording_status_update", "recording": True, "duration_ms": 15000},
        VideoChanged(True, 15.0),
    ),
    (
        {
            "type": "hotspot_status_update",
            "hotspot_enabled": True,
            "hotspot_ssid": "MentraLive_XXXX",
            "hotspot_password": "xxxxxxxx",
            "hotspot_gateway_ip": "192.168.43.1",
        },
        HotspotChanged(True, "MentraLive_XXXX", "xxxxxxxx", "192.168.43.1"),
    ),
    ({"type": "hotspot_status_update", "hotspot_enabled": False}, HotspotChanged(False)),
    ({"type": "hotspot_error", "error": "busy"}, HotspotChanged(False, problem="busy")),
    (
        {"type": "hotspot_error"},
        HotspotChanged(False, problem="the glasses did not say why"),
    ),
    (
        {"type": "stream_status", "kind": "lifecycle", "status": "streaming", "timestamp": 1},
        StreamChanged(True, "streaming"),
    ),
    (
        {"type": "rtmp_stream_status", "status": "initializing"},
        StreamChanged(False, "initializing"),
    ),
    (
        {"type": "rtmp_stream_status", "status": "error", "errorDetails": "no network"},
        StreamChanged(False, "error", "no network"),
    ),
    (
        {"type": "rtmp_stream_status", "status": "reconnect_failed"},
        StreamChanged(False, "reconnect_failed", "reconnect_failed"),
    ),
    (
        {"type": "rtmp_status_response", "streaming": True, "status": "streaming_started"},
        StreamChanged(True, "streaming_started"),
    ),
    (
        {
            "type": "imu_response",
            "timestamp": 1708963201234,
            "accelerometer": {"x": 0.1, "y": 0.2, "z": 9.8},
            "gyroscope": {"x": 0.01, "y": 0.02, "z": 0.03},
        },
        MotionRead((0.1, 0.2, 9.8), (0.01, 0.02, 0.03)),
    ),
    (
        {"type": "imu_response", "accel": [0, 0, 9.8], "gyro": [1, 2, 3], "mag": [4, 5, 6]},
        MotionRead((0.0, 0.0, 9.8), (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)),
    ),
]


@pytest.mark.parametrize(("message", "event"), REPORTS)
def test_a_report_is_understood(message, event):
    pair = ready()
    pair.tell(message)
    assert pair.events() == [event]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "hotspot_status_update", "hotspot_enabled": "maybe"},
        {"type": "imu_response"},
        {"type": "imu_response", "accel": [1, 2], "gyro": [1, 2, 3]},
        {"type": "imu_response", "accel": ["1", "2", "3"], "gyro": [1, 2, 3]},
        {"type": "imu_response", "accel": [1e300, 2, 3], "gyro": [1, 2, 3]},
        {"type": "imu_response", "accelerometer": {"x": 1}, "gyroscope": {"x": 1}},
        {"type": "imu_error", "error": "no sensor"},
        {"type": "token_status", "success": True},
        {"type": "something_new", "x": 1},
    ],
)
def test_a_damaged_or_unknown_report_is_ignored(message):
    pair = ready()
    pair.tell(message)
    assert pair.events() == []
    assert not pair.refused


@pytest.mark.parametrize("dialect", [STOCK, LATER, replace(STOCK, names_axes=False)], ids=str)
@pytest.mark.parametrize(
    "event",
    [
        VideoChanged(True),
        VideoChanged(False),
        VideoChanged(True, 2.5),
        VideoChanged(False, problem="battery_low"),
        HotspotChanged(True, "A", "b", "192.168.43.1"),
        HotspotChanged(False, problem="no"),
        StreamChanged(True, "streaming"),
        StreamChanged(False, "error", "no Wi-Fi"),
        MotionRead((0.5, 1.0, 9.5), (1.0, 2.0, 3.0)),
    ],
    ids=str,
)
def test_what_glasses_report_is_heard_as_it_was_said(event, dialect):
    pair = ready(dialect)
    pair.glasses.send(event, pair.now)
    pair.settle()
    assert pair.events() == [event]


def test_the_password_of_the_hotspot_is_in_no_text_of_its_report():
    assert "stay close" not in repr(HotspotChanged(True, "A", "stay close", "1.2.3.4"))
    assert SetHotspot(True).is_secret


@pytest.mark.parametrize("level", ["battery", "video"])
def test_no_photo_while_the_battery_is_low_or_a_video_is_recorded(level):
    facts = Facts(battery=9) if level == "battery" else Facts(video_at=1.0)
    pair = ready(facts=facts)
    pair.ask(TakePhoto(1))
    pair.run(for_s=2.0)
    (failed,) = pair.events(PhotoFailed)
    words = {"battery": "Battery too low (9%)", "video": "a video is being recorded"}
    assert failed.detail == words[level]


# ------------------------------------------------------------------ the stream


def test_a_stream_has_the_older_name_first():
    pair = ready(facts=Facts(ssid="Home"))
    assert pair.ask(StreamVideo(URL)) == Done()
    sent = pair.messages()[0]
    assert sent.pop("mId")
    assert sent.pop("streamId")
    assert sent == {"type": "start_rtmp_stream", **STREAM}
    assert pair.done == [StreamVideo(URL)]


@pytest.mark.parametrize("dialect", [STOCK, LATER], ids=["older", "later"])
def test_a_stream_is_begun_kept_alive_and_ended_in_the_words_of_the_glasses(dialect):
    pair = ready(dialect)
    pair.ask(StreamVideo(URL))
    pair.run(for_s=TRY_S + 1.0, until=lambda: StreamVideo(URL) in pair.done)
    assert pair.done == [StreamVideo(URL)]
    pair.glasses.facts.stream = URL
    pair.glasses.send(StreamChanged(True, "streaming"), pair.now)
    pair.settle()
    assert pair.events() == [StreamChanged(True, "streaming")]
    pair.said.clear()
    pair.run(for_s=ALIVE_S * 8)
    name = dialect.stream
    kept = [m for m in pair.messages() if m["type"] == f"keep_{name}_alive"]
    assert len(kept) == 8
    assert len({each["ackId"] for each in kept}) == 8
    assert all(each["streamId"] for each in kept)
    pair.glasses.send(StreamChanged(True, "streaming"), pair.now)
    pair.settle()
    assert pair.events() == [StreamChanged(True, "streaming")], "what is repeated is no news"
    pair.ask(EndStream())
    assert pair.done[-1] == EndStream()
    pair.glasses.send(StreamChanged(False, "stopped"), pair.now)
    pair.run(for_s=ALIVE_S * 2)
    assert pair.events()[-1] == StreamChanged(False, "stopped")
    assert pair.central.next_timer() is None


def test_a_stream_that_nothing_is_said_about_is_not_taken_for_one():
    pair = ready(replace(STOCK, stream="nothing"))
    pair.ask(StreamVideo(URL))
    pair.run(for_s=ALIVE_S * (UNANSWERED + 4))
    (ended,) = pair.events()
    assert (ended.streaming, ended.state) == (False, "timeout")
    assert pair.central.next_timer() is None


def test_a_stream_that_failed_is_not_kept_alive():
    pair = ready()
    pair.ask(StreamVideo(URL))
    pair.tell({"type": "rtmp_stream_status", "status": "error", "errorDetails": "no network"})
    pair.said.clear()
    pair.run(for_s=ALIVE_S * 3)
    assert pair.messages() == []


def test_the_end_is_said_in_both_words_by_a_new_connection():
    pair = ready(LATER)
    pair.ask(EndStream())
    pair.run(for_s=TRY_S + 2.0)
    assert pair.types() == ["stop_rtmp_stream", "stop_stream"]
    assert pair.done == [EndStream()]


@pytest.mark.parametrize(
    "url", ["", "file:///etc/passwd", "rtmp://", "rtmp://a b", "rtmp://" + "a" * 200, "rtmp://é"]
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ValueError, match="address"):
        StreamVideo(url)
    pair = ready(facts=Facts(ssid="Home"))
    assert pair.glasses.facts.stream == ""


def test_the_address_is_in_no_text_of_the_order():
    assert "key" not in repr(StreamVideo(URL))
    assert StreamVideo(URL).is_secret


# ------------------------------------------------------------------ what they answer by themselves

IDLE = {"status": "idle", "total_steps": 0, "current_step": 0, "step_type": "apk"}
IDLE |= {"phase": "download", "step_percent": 0, "overall_percent": 0}
ANSWERS = [
    ({"type": "ping"}, ["pong"], {}),
    ({"type": "auth_token", "coreToken": "x"}, ["token_status"], {"success": True}),
    ({"type": "auth_token", "coreToken": ""}, ["token_status"], {"success": False}),
    ({"type": "request_battery_state"}, ["battery_status"], {"percent": 87, "charging": False}),
    ({"type": "set_photo_mode", "mode": "x"}, ["set_photo_mode_ack"], {"mode": "x"}),
    (
        {"type": "imu_subscribe_gesture", "gestures": [*GESTURES, "jump"]},
        ["imu_gesture_subscribed"],
        {"gestures": list(GESTURES)},
    ),
    ({"type": "imu_subscribe_gesture", "gestures": 7}, ["imu_error"], {}),
    ({"type": "imu_stream_stop"}, ["imu_ack"], {}),
    ({"type": "rgb_led_photo_flash"}, ["rgb_led_photo_flash_response"], {"success": True}),
    ({"type": "camera_fov_setting"}, ["settings_ack"], {"status": "ready"}),
    ({"type": "camera_tuning_config"}, ["settings_ack"], {"setting": "camera_tuning"}),
    ({"type": "ota_query_status"}, ["ota_status"], IDLE),
    ({"type": "ota_start"}, ["ota_start_ack", "ota_status"], {"error_message": "no Wi-Fi"}),
    ({"type": "get_stream_status"}, ["rtmp_stream_status"], {"streaming": False}),
    ({"type": "keep_awake"}, [], {}),
    ({"type": "user_email", "email": "a@b"}, [], {}),
    ({"type": "button_mode_setting", "mode": "x"}, [], {}),
    ({"type": "keep_rtmp_stream_alive", "streamId": "a", "ackId": "b"}, [], {}),
]


@pytest.mark.parametrize(("message", "kinds", "last"), ANSWERS)
def test_glasses_answer_what_the_makers_application_says(message, kinds, last):
    pair = ready()
    heard = []
    pair.central._application = lambda kind, said, _now: heard.append((kind, said))
    pair.central._outbox.put(message, pair.now)
    pair.run(for_s=1.0)
    assert [kind for kind, _ in heard] == kinds
    assert last.items() <= (heard[-1][1] if heard else {}).items()
    assert not pair.refused
