"""Wi-Fi and gallery of finished glasses: what is asked, what is made of the answers, and an honest
word when none comes.
"""

import asyncio

import pytest

from edge.ports import GlassesAway, GlassesStatus
from edge.runtime.bus import Bus
from edge.runtime.events import GlassesLost, GlassesSaid
from edge.tools import glasses_questions
from edge.tools.context import Context
from edge.tools.glasses_questions import GlassesQuestions
from edge.tools.services import Services
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.errors import CommandRefused, CommandTimeout
from firmware_bridge.messages import BatteryChanged, Done
from firmware_bridge.own_commands import (
    EndStream,
    ForgetWifi,
    GalleryChanged,
    GetGallery,
    GetMotion,
    GetVideo,
    GetWifi,
    HotspotChanged,
    JoinWifi,
    LeaveWifi,
    MotionRead,
    RecordVideo,
    ScanWifi,
    SetHotspot,
    StreamChanged,
    StreamVideo,
    VideoChanged,
    WifiChanged,
    WifiFound,
    WifiNetwork,
)
from tests.unit.tools.media.test_photos import record
from tests.unit.tools.test_glasses_settings import CLOCK
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolCall, ToolFailure

HOME = WifiChanged(True, "Home", "10.0.0.7")


async def no_words(_form, _frames):
    raise AssertionError


class Glasses:
    """Glasses that report `answers` once they have a command, or raise `fault`."""

    def __init__(self, *answers, model="mentra_live", ready=True, fault=None):
        self.bus = Bus()
        self.answers, self.fault = answers, fault
        self.state = GlassesStatus(ready=ready, capabilities=record(model))
        self.told = []

    def status(self):
        return self.state

    async def request(self, command, *, timeout_s):
        assert 0 < timeout_s < 30
        self.told.append(command)
        if self.fault is not None:
            raise self.fault
        for each in self.answers:
            self.bus.publish(each if isinstance(each, GlassesLost) else GlassesSaid(each))
        return Done()

    async def ask(self, question, **details):
        return await GlassesQuestions(self, self.bus, no_words, no_words)(question, details)

    async def fails(self, question="wifi", **details):
        with pytest.raises(ToolFailure) as failed:
            async with asyncio.timeout(5):
                await self.ask(question, **details)
        return failed.value.error


@pytest.fixture
def hasty(monkeypatch):
    for name in ("ANSWER_S", "JOIN_S", "SCAN_S", "QUIET_S", "STREAM_S", "HOTSPOT_S"):
        monkeypatch.setattr(glasses_questions, name, 0.05)


async def test_the_state_is_what_the_glasses_report_after_the_question():
    glasses = Glasses(BatteryChanged(5), GalleryChanged(1, 1), HOME)
    known = {"connected": True, "ssid": "Home", "address": "10.0.0.7"}
    assert await glasses.ask("wifi") == known
    assert glasses.told == [GetWifi()]


async def test_what_the_glasses_do_not_say_is_nothing():
    known = {"connected": True, "ssid": None, "address": None}
    assert await Glasses(WifiChanged(True)).ask("wifi") == known


async def test_the_gallery_is_counted():
    glasses = Glasses(GalleryChanged(25, 5, 99, "video"))
    counted = {"photos": 25, "videos": 5, "bytes": 99, "busy": "video"}
    assert await glasses.ask("gallery") == counted
    assert glasses.told == [GetGallery()]


async def test_networks_are_collected_until_the_last_and_the_strongest_is_first():
    glasses = Glasses(
        WifiFound((WifiNetwork("weak", -80, False), WifiNetwork("unknown")), False),
        WifiFound((WifiNetwork("strong", -40, True),), True),
        WifiFound((WifiNetwork("late"),), True),
    )
    found = (await glasses.ask("wifi_networks"))["networks"]
    assert found == [
        {"ssid": "strong", "dbm": -40, "open": True},
        {"ssid": "weak", "dbm": -80, "open": False},
        {"ssid": "unknown", "dbm": None, "open": None},
    ]
    assert glasses.told == [ScanWifi()]


async def test_glasses_that_do_not_say_which_is_the_last_are_waited_for_a_while(hasty):
    glasses = Glasses(WifiFound((WifiNetwork("Home"),)))
    assert len((await glasses.ask("wifi_networks"))["networks"]) == 1


async def test_no_more_networks_are_returned_than_anybody_reads():
    many = tuple(WifiNetwork(f"n{at}", -at) for at in range(100))
    found = (await Glasses(WifiFound(many, True)).ask("wifi_networks"))["networks"]
    assert [each["ssid"] for each in found] == [f"n{at}" for at in range(64)]


async def test_a_network_is_joined_when_the_glasses_are_in_it():
    glasses = Glasses(WifiChanged(False), WifiChanged(True, "Other"), HOME)
    assert (await glasses.ask("join_wifi", ssid="Home", password="pw"))["ssid"] == "Home"
    assert glasses.told == [JoinWifi("Home", "pw")]


async def test_a_network_that_is_not_joined_says_what_to_check_and_not_the_password(hasty):
    glasses = Glasses(WifiChanged(False), WifiChanged(True, "Other"))
    error = await glasses.fails("join_wifi", ssid="Home", password="hunter22")
    assert error.code is ErrorCode.NOT_ACCEPTED
    assert "did not join 'Home'" in error.message
    assert "password" in error.suggestion
    assert "hunter22" not in f"{error}"


@pytest.mark.parametrize(("forget", "order"), [(None, LeaveWifi()), ("Home", ForgetWifi("Home"))])
async def test_a_network_is_left_or_forgotten_and_the_state_asked_for(forget, order):
    glasses = Glasses(WifiChanged(False))
    details = {} if forget is None else {"forget": forget}
    assert (await glasses.ask("leave_wifi", **details))["connected"] is False
    assert glasses.told == [order, GetWifi()]


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"ssid": "é" * 17}, "34 bytes; 1 to 32"),
        ({"ssid": "", "password": ""}, "0 bytes; 1 to 32"),
        ({"ssid": "a", "password": "x" * 65}, "a password of 65 bytes; at most 64"),
    ],
)
async def test_names_and_passwords_that_cannot_be_are_not_sent(details, said):
    glasses = Glasses()
    error = await glasses.fails("join_wifi", **details)
    assert error.code is ErrorCode.INVALID_ARGUMENTS
    assert said in error.message
    assert glasses.told == []


@pytest.mark.parametrize(
    ("glasses", "code"),
    [
        (Glasses(ready=False), ErrorCode.SESSION_INACTIVE),
        (Glasses(model="even_g1"), ErrorCode.UNSUPPORTED),
        (Glasses(fault=GlassesAway("gone")), ErrorCode.SESSION_INACTIVE),
        (Glasses(fault=CommandTimeout("slow")), ErrorCode.TIMEOUT),
        (Glasses(fault=CommandRefused("busy", "recorded")), ErrorCode.NOT_ACCEPTED),
        (Glasses(fault=CommandRefused("unsupported", "no")), ErrorCode.UNSUPPORTED),
        (Glasses(GlassesLost("far")), ErrorCode.SESSION_INACTIVE),
        (Glasses(), ErrorCode.TIMEOUT),
    ],
)
@pytest.mark.parametrize("question", ["wifi", "wifi_networks", "gallery"])
async def test_no_answer_is_said_to_be_none(hasty, glasses, code, question):
    assert (await glasses.fails(question)).code is code


async def test_only_tools_of_glasses_ask_that():
    services = Services(storage_for=None, alarms=None, clock=CLOCK, questions=lambda: "those")

    def context(tool):
        call = ToolCall(call_id="c1", tool=tool, args={}, origin=CallOrigin.CLI)
        return Context(call, services, None)

    with pytest.raises(ToolFailure, match="Only the tools of `glasses`"):
        _ = context("other:tool").glasses_ask
    assert context("glasses:wifi").glasses_ask == "those"


async def test_the_motion_sensor_is_read_once():
    glasses = Glasses(MotionRead((0.0, 0.0, 9.5), (1.0, 0.0, 0.0), (0.0, 2.0, 0.0)))
    glasses.state = GlassesStatus(
        ready=True, capabilities=Capabilities.of("x", {"imu": True}, origin=Origin.FIRMWARE, now=0)
    )
    read = {"acceleration": [0, 0, 9.5], "rotation": [1, 0, 0], "magnetism": [0, 2, 0]}
    assert await glasses.ask("motion") == read
    assert glasses.told == [GetMotion()]
    lacking = await Glasses(model="mentra_nex").fails("motion")
    assert lacking.code is ErrorCode.UNSUPPORTED


# ------------------------------------------------------------------ video and hotspot

URL = "rtmp://192.168.1.5/live"


async def test_a_video_is_begun_when_the_glasses_say_so():
    glasses = Glasses(BatteryChanged(5), VideoChanged(True))
    assert await glasses.ask("record_video") == {"recording": True}
    assert glasses.told == [RecordVideo(True)]


async def test_a_video_that_the_glasses_refuse_says_why():
    error = await Glasses(VideoChanged(False, problem="battery_low")).fails("record_video")
    assert (error.code, error.message) == (
        ErrorCode.NOT_ACCEPTED,
        "The glasses refused: battery_low",
    )


async def test_a_stream_is_begun_once_it_runs():
    glasses = Glasses(StreamChanged(False, "connecting"), StreamChanged(True, "streaming"))
    assert await glasses.ask("stream_video", url=URL) == {"streaming": True}
    assert glasses.told == [StreamVideo(URL)]


async def test_a_stream_that_fails_says_why():
    connecting = StreamChanged(False, "connecting")
    glasses = Glasses(connecting, StreamChanged(False, "error", "no Wi-Fi connection"))
    error = await glasses.fails("stream_video", url=URL)
    assert error.message == "The glasses refused: no Wi-Fi connection"


async def test_an_address_that_is_none_is_not_sent():
    glasses = Glasses()
    error = await glasses.fails("stream_video", url="file:///etc/passwd")
    assert error.code is ErrorCode.INVALID_ARGUMENTS
    assert glasses.told == []


async def test_a_recording_is_ended_else_a_stream():
    glasses = Glasses(VideoChanged(True, 12.5))
    assert await glasses.ask("end_video") == {"recorded_s": 12.5, "streamed": False}
    assert glasses.told == [GetVideo(), RecordVideo(False)]
    for said, streamed in (("", True), ("not_streaming", False)):
        glasses = Glasses(VideoChanged(False), StreamChanged(False, "stopped", said))
        assert await glasses.ask("end_video") == {"recorded_s": None, "streamed": streamed}
        assert glasses.told == [GetVideo(), EndStream()]


async def test_the_hotspot_is_switched_and_says_how_to_join_it():
    glasses = Glasses(HotspotChanged(True, "Own", "secret", "192.168.43.1"))
    joined = {"on": True, "ssid": "Own", "password": "secret", "address": "192.168.43.1"}
    assert await glasses.ask("hotspot", on=True) == joined
    assert glasses.told == [SetHotspot(True)]
    off = {"on": False, "ssid": None, "password": None, "address": None}
    assert await Glasses(HotspotChanged(False)).ask("hotspot", on=False) == off
    refused = await Glasses(HotspotChanged(False, problem="busy")).fails("hotspot", on=True)
    assert refused.message == "The glasses refused: busy"


@pytest.mark.parametrize("question", ["record_video", "stream_video", "hotspot"])
async def test_video_and_hotspot_that_are_not_answered_time_out(hasty, question):
    error = await Glasses().fails(question, url=URL, on=True)
    assert error.code is ErrorCode.TIMEOUT


@pytest.mark.parametrize("question", ["record_video", "stream_video", "end_video", "hotspot"])
async def test_glasses_that_cannot_are_not_asked(question):
    glasses = Glasses(model="even_g1")
    assert (await glasses.fails(question)).code is ErrorCode.UNSUPPORTED
    assert glasses.told == []
