"""`glasses:set`, `glasses:notify`, `glasses:dismiss`: from checked arguments to what the
glasses are told.
"""

import base64
from pathlib import Path

import pytest

import tools_cache
from edge.display.side_commands import SideCommands
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.tools.glasses_settings import GlassesSettings
from edge.tools.local import LocalTools
from edge.tools.registry import ToolRegistry
from edge.tools.services import Services
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.messages import (
    AllowApps,
    DoubleTap,
    ExitToDashboard,
    SetBrightness,
    SetDoubleTap,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    ShowNotification,
)
from firmware_bridge.own_commands import (
    BlinkLight,
    CalendarEntry,
    ClearNotification,
    DashboardLayout,
    DashboardPane,
    DimLight,
    EndNavigation,
    KeepPictures,
    LightColor,
    Navigate,
    Restart,
    SetCalendar,
    SetDashboard,
    SetDisplayPosition,
    SetHeadUpAction,
    SetLanguage,
    SetMicrophoneGain,
    SetNote,
    SetNotificationTime,
    ShowTranslation,
    StartTranslation,
    SwitchLightOff,
    Turn,
    Vibrate,
    Vibration,
)
from tests.unit.tools.compiled import shipped as compiled
from tests.unit.tools.test_glasses_settings import ALL, CLOCK, Glasses
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolCall

TOOLS = Path(tools_cache.__file__).parent / "tools"
QUIET = {"audio": {"suppressVoiceResponse": True}}


@pytest.fixture
def glasses():
    return Glasses()


@pytest.fixture
def run(tmp_path, glasses):
    artifact = tmp_path / "tool_registry.json"
    artifact.write_text(compiled())
    registry = ToolRegistry(
        builtin=artifact, state=tmp_path / "registry", bus=Bus(), clock=Clock.system()
    )
    registry.load()

    async def set_volume(percent):
        glasses.told.append(percent)

    side = SideCommands(glasses, CLOCK, lambda: False)
    able = GlassesSettings(glasses, CLOCK, side, set_volume)

    async def go(tool, args, *, do=able, ask=None):
        definition = registry.snapshot().find(tool).definition
        filled, problems = registry.check_args(definition, args)
        assert problems == []
        local = LocalTools(
            tools=TOOLS,
            services=Services(
                storage_for=None,
                alarms=None,
                clock=CLOCK,
                glasses_do=do,
                questions=lambda: ask,
            ),
        )
        return await local.run(
            ToolCall(call_id="c1", tool=tool, args=filled, origin=CallOrigin.CLI), definition, None
        )

    return go


@pytest.mark.requirement("I4-amenities")
@pytest.mark.parametrize(
    ("args", "told", "text"),
    [
        ({"brightness": 40}, [SetBrightness(40)], "Brightness: 40 %"),
        ({"brightness": 0}, [SetBrightness(0)], "Brightness: 0 %"),
        ({"auto": True}, [SetBrightness(None, auto=True)], "Brightness: automatic"),
        ({"brightness": 40, "auto": True}, [SetBrightness(40, auto=True)], "Brightness: automatic"),
        ({"brightness": 40, "auto": False}, [SetBrightness(40)], "Brightness: 40 %"),
        ({"silent": True}, [SetSilentMode(on=True)], "Silent mode: on"),
        (
            {"silent": False, "brightness": 100},
            [SetBrightness(100), SetSilentMode(on=False)],
            "Brightness: 100 %\nSilent mode: off",
        ),
        ({"height": 3, "depth": 7}, [SetDisplayPosition(3, 7)], "Picture: height 3, depth 7"),
    ],
)
async def test_settings_reach_the_glasses_and_the_answer_says_which(run, glasses, args, told, text):
    answer = await run("glasses:set", args)
    assert (glasses.told, answer.data, answer.render) == (told, {**args, "text": text}, None)


@pytest.mark.requirement("I13-sound-volume")
@pytest.mark.parametrize(
    ("volume", "text"), [(40, "Volume: 40 %"), (0, "Volume: 0 %, nothing is spoken")]
)
async def test_the_volume_of_the_voice_is_set(run, glasses, volume, text):
    glasses.record = Capabilities.of(
        "mock:audio", {"speaker": True}, origin=Origin.CATALOGUE, now=0.0
    )
    answer = await run("glasses:set", {"volume": volume})
    assert (glasses.told, answer.data["text"]) == ([volume], text)


GREEN = LightColor.GREEN


@pytest.mark.parametrize(
    ("tool", "args", "told", "text"),
    [
        ("glasses:light", {"level": 20}, DimLight(20), "Light: 20 %"),
        ("glasses:light", {"off": True}, SwitchLightOff(), "Light: off"),
        ("glasses:vibrate", {}, Vibrate(), "Vibration: medium"),
        ("glasses:vibrate", {"length": "long"}, Vibrate(Vibration.LONG), "Vibration: long"),
        ("glasses:light", {"color": "green"}, BlinkLight(GREEN), "Light: green"),
        (
            "glasses:light",
            {"color": "green", "times": 3, "seconds": 0.5, "level": 40},
            BlinkLight(GREEN, 500, 500, 3, 40),
            "Light: green, 3 times",
        ),
        (
            "glasses:set_microphone",
            {"gain": 50},
            SetMicrophoneGain(50),
            "Gain of the microphone: 50 %",
        ),
    ],
)
async def test_light_and_microphone_are_set(run, glasses, tool, args, told, text):
    glasses.record = ALL
    answer = await run(tool, args)
    assert (glasses.told, answer.data["text"]) == ([told], text)


@pytest.mark.parametrize("args", [{}, {"off": True, "level": 3}, {"off": True, "color": "red"}])
async def test_a_light_is_told_one_thing(run, glasses, args):
    glasses.record = ALL
    answer = await run("glasses:light", args)
    assert answer.error.code is ErrorCode.INVALID_ARGUMENTS
    assert glasses.told == []


@pytest.mark.parametrize(
    ("tool", "args", "told", "text"),
    [
        (
            "glasses:preferences",
            {"language": "de", "wear_detection": False, "notification_s": 0},
            [SetWearDetection(on=False), SetNotificationTime(0), SetLanguage("de")],
            "Wear detection: off\nNotifications stay for 0 s\nLanguage of the glasses: de",
        ),
        (
            "glasses:preferences",
            {"head_up": "nothing", "head_up_angle": 20, "double_tap": "dashboard"},
            [
                SetHeadUpAngle(20),
                SetHeadUpAction(dashboard=False),
                SetDoubleTap(DoubleTap.DASHBOARD),
            ],
            "Looking up counts from 20°\nLooking up opens: nothing\nA double tap opens: dashboard",
        ),
        ("glasses:restart", {}, [Restart()], "The glasses restart"),
        (
            "glasses:navigate",
            {"turn": "slight_left", "street": "High St", "distance": "50 m"},
            [Navigate(Turn.SLIGHT_LEFT, "High St", "50 m")],
            "Navigation: slight left, High St, 50 m",
        ),
        ("glasses:navigate", {"end": True}, [EndNavigation()], "Navigation: over"),
        (
            "glasses:translate",
            {"from": "en", "to": "fr", "original": "Hello"},
            [StartTranslation("en", "fr"), ShowTranslation("Hello")],
            "Hello",
        ),
        (
            "glasses:translate",
            {"from": "en", "to": "fr"},
            [StartTranslation("en", "fr")],
            "Translation: en to fr",
        ),
        (
            "glasses:translate",
            {"original": "Hello", "translated": "Salut"},
            [ShowTranslation("Hello", "Salut")],
            "Hello\nSalut",
        ),
        ("glasses:translate", {"end": True}, [ExitToDashboard()], "Translation: over"),
    ],
)
async def test_what_glasses_show_and_do_by_themselves_is_told(run, glasses, tool, args, told, text):
    answer = await run(tool, args)
    assert (glasses.told, answer.data["text"]) == (told, text)


async def test_maps_are_sent_after_what_they_belong_to(run):
    done = []

    async def do(deed, details):
        done.append((deed, details))

    picture = {"image": "iVBORw0KGgoAAAAN"}
    await run(
        "glasses:dashboard", {"map": picture["image"], "layout": "full", "pane": "map"}, do=do
    )
    await run("glasses:navigate", {"map": picture["image"], "turn": "left"}, do=do)
    assert done == [
        ("layout", {"layout": "full", "pane": "map"}),
        ("map", picture),
        ("navigate", {"turn": "left"}),
        ("route", picture),
    ]


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("glasses:preferences", {}),
        ("glasses:navigate", {}),
        ("glasses:navigate", {"turn": "left", "end": True}),
        ("glasses:navigate", {"map": "iVBORw0KGgoAAAAN", "end": True}),
        ("glasses:translate", {}),
        ("glasses:translate", {"from": "en"}),
        ("glasses:translate", {"to": "en", "original": "x"}),
        ("glasses:translate", {"original": "x", "end": True}),
        ("glasses:translate", {"from": "en", "to": "fr", "end": True}),
    ],
)
async def test_what_cannot_be_meant_is_refused_and_nothing_told(run, glasses, tool, args):
    answer = await run(tool, args)
    assert answer.error.code is ErrorCode.INVALID_ARGUMENTS
    assert glasses.told == []


async def test_a_spoken_note_is_listed_and_returned_as_words_or_sound(run):
    async def ask(question, details):
        if question == "voice_notes":
            return {"known": bool(kept), "notes": kept}
        return found

    kept, found = [], {"note": 1, "seconds": 2.5, "words": "buy milk"}
    answer = await run("glasses:voice_notes", {}, ask=ask)
    assert answer.data["text"] == "The glasses have not said which notes"
    kept.append({"note": 1, "at": "2026-11-28 14:03:10"})
    answer = await run("glasses:voice_notes", {}, ask=ask)
    assert answer.data["text"] == "1: 2026-11-28 14:03:10"
    answer = await run("glasses:voice_notes", {"note": 1}, ask=ask)
    assert answer.data == {**found, "text": "buy milk"}
    wave = base64.b64encode(bytes(200_000)).decode()
    found = {"note": 1, "seconds": 12.5, "why_no_words": "no recogniser", "wave": wave}
    answer = await run("glasses:voice_notes", {"note": 1}, ask=ask)
    assert answer.error.code is ErrorCode.NOT_ACCEPTED
    assert answer.error.message.endswith("its words cannot be had: no recogniser")
    found = {"note": 1, "seconds": 2.5, "why_no_words": "no recogniser", "wave": "UklGRg=="}
    answer = await run("glasses:voice_notes", {"note": 1}, ask=ask)
    assert answer.data["why_no_words"] == "no recogniser"
    assert "wave" not in answer.data
    sound = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
    assert answer.meta["content"] == [{"type": "text", "text": "A spoken note of 2.5 s"}, sound]


@pytest.mark.parametrize(
    ("tool", "args", "asked", "answer", "text"),
    [
        ("glasses:wifi", {}, [("wifi", {})], {"connected": False}, "Wi-Fi: not connected"),
        (
            "glasses:join_wifi",
            {"ssid": "Home", "password": "pw"},
            [("join_wifi", {"ssid": "Home", "password": "pw"})],
            {"connected": True, "ssid": "Home"},
            "Wi-Fi: Home",
        ),
        (
            "glasses:leave_wifi",
            {"forget": "Home"},
            [("leave_wifi", {"forget": "Home"})],
            {"connected": True, "ssid": None},
            "Wi-Fi: connected",
        ),
        (
            "glasses:wifi",
            {"scan": True},
            [("wifi", {}), ("wifi_networks", {})],
            {"connected": True, "ssid": "Home", "networks": [{"ssid": "A"}, {"ssid": "B"}]},
            "Wi-Fi: Home\nA\nB",
        ),
        (
            "glasses:motion",
            {},
            [("motion", {})],
            {"acceleration": [0.0, -0.25, 9.8125], "rotation": [0, 0, 0]},
            "Motion: 0 · -0.25 · 9.81",
        ),
        (
            "glasses:record_video",
            {},
            [("record_video", {})],
            {"recording": True},
            "Recording a video",
        ),
        (
            "glasses:record_video",
            {"url": "rtmp://a/b"},
            [("stream_video", {"url": "rtmp://a/b"})],
            {"streaming": True},
            "Streaming a video",
        ),
        (
            "glasses:end_video",
            {},
            [("end_video", {})],
            {"recorded_s": 12.4, "streamed": False},
            "The video was ended after 12 s",
        ),
        (
            "glasses:end_video",
            {},
            [("end_video", {})],
            {"recorded_s": None, "streamed": True},
            "The stream was ended",
        ),
        (
            "glasses:end_video",
            {},
            [("end_video", {})],
            {"recorded_s": None, "streamed": False},
            "No video was recorded",
        ),
        (
            "glasses:hotspot",
            {"on": True},
            [("hotspot", {"on": True})],
            {"on": True, "ssid": "Own", "password": "x", "address": None},
            "Hotspot: Own",
        ),
        (
            "glasses:hotspot",
            {"on": False},
            [("hotspot", {"on": False})],
            {"on": False, "ssid": None, "password": None, "address": None},
            "Hotspot: off",
        ),
        (
            "glasses:gallery",
            {},
            [("gallery", {})],
            {"photos": 2, "videos": 0, "busy": None},
            "Photos in the glasses: 2, videos: 0",
        ),
        (
            "glasses:remove_voice_note",
            {"note": 3},
            [("remove_voice_note", {"note": 3})],
            {"known": True, "notes": []},
            "Spoken note 3 is deleted",
        ),
        (
            "glasses:gallery",
            {},
            [("gallery", {})],
            {"photos": 0, "videos": 0, "busy": "video"},
            "The camera is busy: video",
        ),
    ],
)
async def test_what_glasses_answer_is_the_result(run, tool, args, asked, answer, text):
    questions = []

    async def ask(question, details):
        questions.append((question, dict(details)))
        return answer

    found = await run(tool, args, ask=ask)
    assert questions == asked
    assert found.data == {**answer, "text": text}


async def test_glasses_are_told_whether_their_button_keeps_pictures(run, glasses):
    glasses.record = ALL

    async def ask(_question, _details):
        return {"photos": 0, "videos": 0, "busy": None}

    assert (await run("glasses:gallery", {"keep": False}, ask=ask)).ok
    assert glasses.told == [KeepPictures(False)]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "Nothing to set"),
        ({"auto": False}, "a brightness is needed"),
        ({"height": 0}, "give both"),
        ({"depth": 1}, "give both"),
    ],
)
async def test_an_empty_setting_is_refused_and_nothing_is_sent(run, glasses, args, said):
    answer = await run("glasses:set", args)
    assert answer.error.code is ErrorCode.INVALID_ARGUMENTS
    assert said in answer.error.message
    assert glasses.told == []


@pytest.mark.requirement("I4-amenities")
async def test_a_notification_is_shown_by_the_glasses_alone(run, glasses):
    answer = await run("glasses:notify", {"title": "Door", "text": "Somebody is there"})
    assert [type(c) for c in glasses.told] == [AllowApps, ShowNotification]
    assert glasses.told[1].app.name == "glassd"
    assert (answer.data, answer.render) == ({}, QUIET), "a page of ours would cover it"


@pytest.mark.requirement("I4-amenities")
async def test_dismissed_glasses_show_their_own_and_our_page_does_not_come_back(run, glasses):
    answer = await run("glasses:dismiss", {})
    assert glasses.told == [ExitToDashboard()]
    assert answer.render == {"display": {"layout": "clear_view"}, **QUIET}


@pytest.mark.requirement("I4-amenities")
async def test_a_dismissed_notification_leaves_the_page_alone(run, glasses):
    answer = await run("glasses:dismiss", {"notification": True})
    assert glasses.told == [ClearNotification()]
    assert answer.render == QUIET


async def test_where_nobody_can_tell_the_glasses_a_tool_says_so_in_words(run):
    answer = await run("glasses:dismiss", {}, do=None)
    assert (answer.error.code, answer.error.message) == (
        ErrorCode.UNSUPPORTED,
        "There is no way to tell the glasses that here",
    )


async def test_the_parts_of_a_dashboard_are_sent_one_after_another(run, glasses):
    args = {
        "note": {"slot": 1, "title": "List"},
        "calendar": [{"title": "Dentist"}],
        "layout": "dual",
        "pane": "notes",
    }
    answer = await run("glasses:dashboard", args)
    assert answer.data == {"text": "Dashboard: layout, calendar, note 1"}
    assert glasses.told == [
        SetDashboard(DashboardLayout.DUAL, DashboardPane.NOTES),
        SetCalendar((CalendarEntry("Dentist"),)),
        SetNote(1, "List"),
    ]


@pytest.mark.parametrize("args", [{}, {"pane": "notes"}])
async def test_a_dashboard_is_not_filled_with_nothing(run, glasses, args):
    answer = await run("glasses:dashboard", args)
    assert answer.error.code is ErrorCode.INVALID_ARGUMENTS
    assert glasses.told == []
