"""Settings, notifications and the dashboard of finished glasses: what is told to them, and what
comes of a refusal.
"""

from datetime import UTC, datetime

import pytest

from edge.core.words.wearer_forms import Writer
from edge.display.side_commands import SideCommands
from edge.display.wording import Wording
from edge.ports import GlassesAway, GlassesStatus
from edge.runtime.clock import Clock
from edge.tools.glasses_settings import MAX_ALLOWED, GlassesSettings
from firmware_bridge import catalog
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.errors import CommandRefused, CommandTimeout
from firmware_bridge.messages import (
    AllowApps,
    Done,
    DoubleTap,
    ExitToDashboard,
    SetBrightness,
    SetClock,
    SetDoubleTap,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    ShowNotification,
    Tile,
)
from firmware_bridge.own_commands import (
    CalendarEntry,
    ClearNotification,
    DashboardLayout,
    DashboardPane,
    DimLight,
    EndNavigation,
    Navigate,
    Restart,
    SetCalendar,
    SetDashboard,
    SetDisplayPosition,
    SetHeadUpAction,
    SetLanguage,
    SetMap,
    SetMicrophoneGain,
    SetNote,
    SetNotificationTime,
    SetWeather,
    ShowRoute,
    ShowTranslation,
    Sky,
    StartTranslation,
    Turn,
)
from tools_cache.api.tool import ErrorCode, ToolFailure

CLOCK = Clock(wall=lambda: 1_795_257_000.9)
G1 = Capabilities.of(
    "even_g1", catalog.find("even_g1").capabilities, origin=Origin.CATALOGUE, now=0.0
)
LIT = dict.fromkeys(
    ("light", "light.brightness", "light.blink", "microphone", "microphone.gain", "haptic"), True
) | {"camera": True, "camera.gallery": True}
ALL = G1.merged(Capabilities.of("", LIT, origin=Origin.FIRMWARE, now=0.0))
SPOT = Tile(1, 2, 8, 1, 1, b"\xf0")
NOON = 1_800_000_000
NOTE = {"title": "Door", "text": "Somebody is there", "app": "Doorbell"}


class Glasses:
    """Glasses that write down what they are told; `fault` is what each command meets."""

    def __init__(self, record=G1, *, ready=True, fault=None):
        self.record, self.ready, self.fault = record, ready, fault
        self.address = "G1_47"
        self.told = []

    def status(self):
        return GlassesStatus(ready=self.ready, capabilities=self.record, address=self.address)

    async def request(self, command, *, timeout_s):
        assert 0 < timeout_s < 20, "within the tool's own time"
        if self.fault is not None:
            raise self.fault
        self.told.append(command)
        return Done()


def amenities(glasses, volumes=None, **more):
    async def set_volume(percent):
        volumes.append(percent)

    side = SideCommands(glasses, CLOCK, lambda: False)
    return GlassesSettings(glasses, CLOCK, side, set_volume, **more)


@pytest.mark.parametrize(
    ("deed", "details", "command"),
    [
        ("brightness", {"level": 40, "auto": False}, SetBrightness(40)),
        ("brightness", {"level": None, "auto": True}, SetBrightness(None, auto=True)),
        ("brightness", {"level": 0}, SetBrightness(0)),
        ("silent", {"on": True}, SetSilentMode(on=True)),
        ("silent", {"on": False}, SetSilentMode(on=False)),
        ("position", {"height": 0, "depth": 9}, SetDisplayPosition(0, 9)),
        ("unnotify", {}, ClearNotification()),
        ("dashboard", {}, ExitToDashboard()),
        ("light", {"level": 20}, DimLight(20)),
        ("gain", {"level": 75}, SetMicrophoneGain(75)),
        ("wear_detection", {"on": False}, SetWearDetection(on=False)),
        ("head_up_angle", {"degrees": 25}, SetHeadUpAngle(25)),
        ("head_up", {"opens": "nothing"}, SetHeadUpAction(dashboard=False)),
        ("head_up", {"opens": "dashboard"}, SetHeadUpAction(dashboard=True)),
        ("double_tap", {"opens": "translate"}, SetDoubleTap(DoubleTap.TRANSLATE)),
        ("notification_time", {"seconds": 9}, SetNotificationTime(9)),
        ("language", {"language": "de"}, SetLanguage("de")),
        ("restart", {}, Restart()),
        ("end_navigation", {}, EndNavigation()),
        ("navigate", {"turn": "left"}, Navigate(Turn.LEFT)),
        (
            "navigate",
            {
                "turn": "roundabout_exit",
                "street": "**High** St",
                "distance": "50 m",
                "trip_time": "5 min",
                "trip_distance": "400 m",
                "speed": "4 km/h",
                "left_traffic": True,
            },
            Navigate(
                Turn.ROUNDABOUT_EXIT,
                "High St",
                "50 m",
                "5 min",
                "400 m",
                "4 km/h",
                left_traffic=True,
            ),
        ),
        ("begin_translation", {"source": "en", "target": "fr"}, StartTranslation("en", "fr")),
        ("translation", {"translated": "Salut"}, ShowTranslation("", "Salut")),
    ],
)
async def test_each_deed_is_one_command(deed, details, command):
    glasses = Glasses(ALL)
    writer = Writer(now=datetime(2026, 11, 23, tzinfo=UTC))
    await amenities(glasses, word=Wording(lambda: writer).of)(deed, details)
    assert glasses.told == [command]


@pytest.mark.parametrize(
    ("deed", "size", "command"), [("map", (296, 136), SetMap), ("route", (136, 136), ShowRoute)]
)
async def test_a_picture_is_made_as_large_as_the_glasses_draw_it(deed, size, command):
    asked = []

    async def tile(*what):
        asked.append(what)
        return SPOT

    glasses = Glasses()
    await amenities(glasses, tile=tile)(deed, {"image": "iVBOR"})
    assert (asked, glasses.told) == ([("iVBOR", *size)], [command(SPOT)])
    values = {key: each for key, each in G1.values.items() if not key.endswith("_width")}
    with pytest.raises(ToolFailure, match=f"draw no {deed}"):
        await amenities(Glasses(Capabilities("", values)), tile=tile)(deed, {"image": "iVBOR"})
    with pytest.raises(ToolFailure, match="nothing here that fits pictures"):
        await amenities(glasses)(deed, {"image": "iVBOR"})


async def test_whom_a_notification_is_from_is_allowed_first_and_once():
    glasses = Glasses()
    do = amenities(glasses)
    await do("notify", NOTE)
    allowed, shown = glasses.told
    assert isinstance(allowed, AllowApps)
    assert allowed.apps == (shown.app,)
    assert (shown.app.name, shown.title, shown.text, shown.at) == (
        "Doorbell",
        "Door",
        "Somebody is there",
        1_795_257_000,
    )
    assert len(shown.app.id) <= 31
    await do("notify", NOTE)
    await do("notify", {**NOTE, "app": "Küche"})
    assert [type(c) for c in glasses.told[2:]] == [ShowNotification, AllowApps, ShowNotification]
    assert [app.name for app in glasses.told[3].apps] == ["Doorbell", "Küche"]


@pytest.mark.requirement("I13-plain-text")
async def test_a_notification_is_plain_text_in_the_wearers_form():
    glasses = Glasses()
    writer = Writer(now=datetime(2026, 11, 23, tzinfo=UTC))
    able = amenities(glasses, word=Wording(lambda: writer).of)
    await able("notify", {**NOTE, "title": "**Door**", "text": "since 2026-11-23T09:05:00Z"})
    _, shown = glasses.told
    assert (shown.title, shown.text) == ("Door", "since Mon 23 Nov, 09:05")


async def test_other_glasses_get_the_list_of_apps_again():
    glasses = Glasses()
    do = amenities(glasses)
    await do("notify", NOTE)
    glasses.address = "G1_99"
    await do("notify", {**NOTE, "app": "Other"})
    assert [app.name for app in glasses.told[2].apps] == ["Other"]


async def test_the_names_that_may_notify_are_bounded_and_the_oldest_goes():
    glasses = Glasses()
    do = amenities(glasses)
    for n in range(MAX_ALLOWED):
        await do("notify", {**NOTE, "app": f"app {n}"})
    await do("notify", {**NOTE, "app": "app 0"})  # used again: the youngest now
    await do("notify", {**NOTE, "app": "one more"})
    names = [app.name for app in glasses.told[-2].apps]
    assert len(names) == MAX_ALLOWED
    assert "app 0" in names
    assert "app 1" not in names


async def test_an_app_that_could_not_be_allowed_is_sent_again():
    glasses = Glasses(fault=CommandTimeout("slow"))
    do = amenities(glasses)
    with pytest.raises(ToolFailure):
        await do("notify", NOTE)
    glasses.fault = None
    await do("notify", NOTE)
    assert [type(c) for c in glasses.told] == [AllowApps, ShowNotification]


@pytest.mark.parametrize(
    ("fault", "code", "unsure"),
    [
        (GlassesAway("gone"), ErrorCode.SESSION_INACTIVE, False),
        (CommandTimeout("silence"), ErrorCode.TIMEOUT, True),
        (CommandRefused("unsupported", "no word for it"), ErrorCode.UNSUPPORTED, False),
        (CommandRefused("busy", "the left side is away"), ErrorCode.NOT_ACCEPTED, False),
    ],
)
async def test_what_the_glasses_answer_becomes_a_readable_error(fault, code, unsure):
    with pytest.raises(ToolFailure) as failed:
        await amenities(Glasses(fault=fault))("silent", {"on": True})
    assert (failed.value.error.code, failed.value.error.partial_side_effects) == (code, unsure)
    assert failed.value.error.message.startswith("The glasses ")


@pytest.mark.requirement("I4-amenities")
@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("brightness", "These glasses do not let their brightness be set"),
        ("silent", "These glasses know no silent mode"),
        ("notify", "These glasses know no notifications of their own"),
        ("dashboard", "These glasses have no dashboard of their own"),
        ("light", "These glasses have no light that can be dimmed"),
        ("gain", "These glasses do not let the gain of their microphone be set"),
        ("blink", "These glasses have no light that can be switched"),
        ("keep_pictures", "These glasses do not keep pictures of their own"),
        ("language", "These glasses let nobody set that"),
        ("restart", "These glasses do not let themselves be restarted"),
        ("navigate", "These glasses show no turns of their own"),
        ("translation", "These glasses show no translations of their own"),
    ],
)
async def test_glasses_that_lack_it_are_not_even_asked(deed, said):
    mock = Capabilities.of(
        "mock:display", catalog.find("mock:display").capabilities, origin=Origin.CATALOGUE, now=0.0
    )
    glasses = Glasses(mock)
    with pytest.raises(ToolFailure, match=said) as failed:
        await amenities(glasses)(deed, {"on": True, **NOTE})
    assert failed.value.error.code is ErrorCode.UNSUPPORTED
    assert glasses.told == []


async def test_nothing_is_sent_to_absent_glasses():
    with pytest.raises(ToolFailure, match="The glasses are away") as failed:
        await amenities(Glasses(ready=False))("silent", {"on": True})
    assert failed.value.error.code is ErrorCode.SESSION_INACTIVE


async def test_what_cannot_be_a_command_is_its_askers_mistake():
    with pytest.raises(ToolFailure, match="outside 0…100") as failed:
        await amenities(Glasses())("brightness", {"level": 101})
    assert failed.value.error.code is ErrorCode.INVALID_ARGUMENTS


SPEAKER = Capabilities.of("mock:audio", {"speaker": True}, origin=Origin.CATALOGUE, now=0.0)


@pytest.mark.parametrize("ready", [True, False])
async def test_the_volume_is_the_voices_so_glasses_that_are_away_do_not_matter(ready):
    glasses, volumes = Glasses(SPEAKER, ready=ready), []
    await amenities(glasses, volumes)("volume", {"level": 40})
    assert (volumes, glasses.told) == ([40], [])


@pytest.mark.parametrize(
    ("record", "level", "code"),
    [
        (G1, 40, ErrorCode.UNSUPPORTED),
        (None, 40, ErrorCode.SESSION_INACTIVE),
        (SPEAKER, 101, ErrorCode.INVALID_ARGUMENTS),
        (SPEAKER, -1, ErrorCode.INVALID_ARGUMENTS),
        (SPEAKER, True, ErrorCode.INVALID_ARGUMENTS),
        (SPEAKER, None, ErrorCode.INVALID_ARGUMENTS),
    ],
)
async def test_a_volume_that_cannot_be_is_refused(record, level, code):
    volumes = []
    with pytest.raises(ToolFailure) as refused:
        await amenities(Glasses(record), volumes)("volume", {"level": level})
    assert refused.value.error.code == code
    assert not volumes


@pytest.mark.parametrize("place", [(9, 5), (4, 0)])
async def test_a_place_of_the_picture_outside_the_lens_is_refused_before_it_is_sent(place):
    glasses = Glasses()
    height, depth = place
    with pytest.raises(ToolFailure, match="outside") as failed:
        await amenities(glasses)("position", {"height": height, "depth": depth})
    assert failed.value.error.code is ErrorCode.INVALID_ARGUMENTS
    assert glasses.told == []


# ------------------------------------------------------------------ dashboard

ENTRIES = [{"title": "**Dentist**", "time": "14:30", "place": "Main St 4"}, {"title": "Lunch"}]


@pytest.mark.parametrize(
    ("deed", "details", "command"),
    [
        ("layout", {"layout": "dual"}, SetDashboard(DashboardLayout.DUAL)),
        (
            "layout",
            {"layout": "full", "pane": "calendar"},
            SetDashboard(DashboardLayout.FULL, DashboardPane.CALENDAR),
        ),
        ("weather", {"sky": "rain", "celsius": -3}, SetWeather(NOON, Sky.RAIN, -3, True)),
        (
            "weather",
            {"sky": "sunny", "celsius": 30, "fahrenheit": True},
            SetWeather(NOON, Sky.SUNNY, 30, True, True),
        ),
        (
            "calendar",
            {"entries": ENTRIES},
            SetCalendar((CalendarEntry("Dentist", "14:30", "Main St 4"), CalendarEntry("Lunch"))),
        ),
        ("calendar", {"entries": []}, SetCalendar()),
        ("note", {"slot": 2, "title": "List", "text": "**Bread**"}, SetNote(2, "List", "Bread")),
        ("note", {"slot": 4}, SetNote(4)),
    ],
)
async def test_each_part_of_a_dashboard_is_one_command_in_plain_words(deed, details, command):
    glasses, writer = Glasses(), Writer(now=datetime(2026, 11, 23, tzinfo=UTC))
    clock = SetClock(NOON, twelve_hour=True)
    do = amenities(glasses, word=Wording(lambda: writer).of, wearer_clock=lambda: clock)
    await do(deed, details)
    assert glasses.told == [command]


@pytest.mark.parametrize(
    ("deed", "details", "code"),
    [
        ("weather", {"sky": "rain", "celsius": 3}, ErrorCode.NOT_ACCEPTED),
        ("note", {"slot": 1, "title": "é" * 128}, ErrorCode.INVALID_ARGUMENTS),
        ("calendar", {"entries": [{"title": "x" * 256}]}, ErrorCode.INVALID_ARGUMENTS),
    ],
)
async def test_a_part_that_cannot_be_is_not_sent(deed, details, code):
    glasses = Glasses()
    with pytest.raises(ToolFailure) as failed:
        await amenities(glasses)(deed, details)
    assert failed.value.error.code is code
    assert glasses.told == []


@pytest.mark.parametrize("deed", ["layout", "weather", "calendar", "note"])
async def test_a_dashboard_that_cannot_be_filled_is_not_told_anything(deed):
    frame = Capabilities.of(
        "frame", catalog.find("frame").capabilities, origin=Origin.CATALOGUE, now=0.0
    )
    glasses = Glasses(frame)
    with pytest.raises(ToolFailure, match="no dashboard that can be filled"):
        await amenities(glasses)(deed, {"slot": 1})
    assert glasses.told == []
