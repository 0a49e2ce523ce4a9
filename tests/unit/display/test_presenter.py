"""What the wearer sees and hears, and what is said about it."""

import asyncio
import base64
from array import array
from typing import Any

import pytest

from edge.core import pages
from edge.display import lens_plan
from edge.display.bitmap import BadImage, write_packed
from edge.display.presentation import LIFE_S
from edge.display.queue import LATER
from edge.display.voice.tts import SpokenSentence, TextToSpeech
from edge.ports import Wait
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import DeliveryChanged, LensChanged
from firmware_bridge.capabilities import Capabilities
from firmware_bridge.errors import CommandRefused, CommandTimeout, LocalMisuse
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    ClearPage,
    EndAudio,
    Gesture,
    ShowPage,
    StartAudio,
)
from tests.unit.display.conftest import stage_on
from tests.unit.display.fakes import AUDIO, DISPLAY, FULL, FakeGlasses, Notebook
from tests.unit.display.test_asking import Boot
from tests.unit.display.test_bitmap import png
from tests.unit.firmware_bridge.virtual import virtual_time
from tools_cache.api.tool import Delivery, DeliveryReport, ToolResponse

SHOWN = DeliveryReport(Delivery.SHOWN)
LONG = " ".join(f"word{n}" for n in range(90))


def text(words: str, **render: Any) -> ToolResponse:
    return ToolResponse(data=words, render=render or None)


def quick_dwell(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(lens_plan, "dwell_s", lambda words: seconds)
    assert pages.dwell_s(0) == 3.0


async def changes(bus: Bus, want: Delivery) -> DeliveryChanged:
    with bus.listen() as heard:
        async with asyncio.timeout(40):
            async for happening in heard:
                if isinstance(happening, DeliveryChanged) and happening.report.state is want:
                    return happening
    raise AssertionError


@pytest.mark.requirement("S0-66")
async def test_a_text_is_shown_first_and_then_spoken(open_stage) -> None:
    async with open_stage(FULL) as (stage, glasses):
        assert await stage.present("c1", text("Buy milk."), wait=Wait.ANSWER) == SHOWN
        assert stage.lens()["lines"] == ["Buy milk."]
        final = await stage.present("c1", text("Buy milk."), wait=Wait.DELIVERY)
        assert final == DeliveryReport(Delivery.SPOKEN)
        kinds = [type(c) for c in glasses.told]
        assert kinds.index(ShowPage) < kinds.index(StartAudio)
        assert len(glasses.pages()) == 1, "asking again is not showing again"
        assert glasses.frames() > 10


async def test_the_bus_hears_of_every_acknowledged_page(open_stage) -> None:
    bus = Bus()
    with bus.listen() as heard:
        async with open_stage(DISPLAY, bus=bus) as (stage, _):
            await stage.present("c1", text("one\ntwo"))
        seen = [h for h in heard._queue if isinstance(h, LensChanged)]
    assert seen == [LensChanged("c1", 1, 1, ("one", "two"))]


async def test_suppressed_voice_sends_no_sound_at_all(open_stage) -> None:
    silent = {
        "display": {"layout": "text_wall", "text": "hush"},
        "audio": {"suppressVoiceResponse": True},
    }
    async with open_stage(FULL) as (stage, glasses):
        assert await stage.present("c1", text("hush", **silent), wait=Wait.DELIVERY) == SHOWN
        assert not glasses.streams
    async with open_stage(AUDIO) as (stage, glasses):
        report = await stage.present("c1", text("hush", **silent), wait=Wait.DELIVERY)
        assert report.state is Delivery.DROPPED
        assert not glasses.streams


@pytest.mark.requirement("M-ladder")
async def test_glasses_without_a_display_speak_the_words_and_the_downgrade_is_named(
    open_stage,
) -> None:
    async with open_stage(AUDIO) as (stage, glasses):
        report = await stage.present("c1", text("Buy milk."), wait=Wait.DELIVERY)
        assert report == DeliveryReport(Delivery.SPOKEN, downgrade="display→speech")
        assert glasses.frames() > 10


async def test_glasses_without_a_speaker_show_what_was_to_be_said(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        report = await stage.present(
            "c1", text("x", audio={"text": "Turn left"}), wait=Wait.DELIVERY
        )
        assert report == DeliveryReport(Delivery.SHOWN, downgrade="speech→display")
        assert glasses.texts() == ["Turn left"]


@pytest.mark.requirement("M-unspeakable")
async def test_words_without_any_sound_are_not_called_spoken(open_stage) -> None:
    async with open_stage(AUDIO) as (stage, glasses):
        report = await stage.present("c1", text("こんにちは、世界。"), wait=Wait.DELIVERY)
        assert report.state is Delivery.DROPPED
        assert "no sound" in report.reason
        assert "ja" in report.reason, "it says which voice is missing"
        assert not glasses.streams


async def test_speech_without_sound_goes_to_the_lens(open_stage) -> None:
    async with open_stage(FULL) as (stage, _glasses):
        report = await stage.present("c1", text("x", audio={"text": "👍 ✨"}), wait=Wait.DELIVERY)
        assert report.state is Delivery.SHOWN
        assert report.downgrade == "speech→display"
        assert report.reason == "no sound for this text", "why it is shown; the emoji are drawn"


@pytest.mark.requirement("K3-shown")
async def test_a_page_without_any_pixel_falls_back_to_speech(
    open_stage,
) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        glasses.drawn = 0
        report = await stage.present("c1", text("invisible"), wait=Wait.DELIVERY)
        assert (report.state, report.reason.startswith("nothing was drawn")) == (
            Delivery.DROPPED,
            True,
        )
    async with open_stage(FULL) as (stage, glasses):
        glasses.drawn = 0
        report = await stage.present("c1", text("invisible"), wait=Wait.DELIVERY)
        assert report == DeliveryReport(Delivery.SPOKEN, downgrade="display→speech")


async def test_glasses_that_do_not_count_pixels_only_acknowledge(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        glasses.drawn = None
        assert (await stage.present("c1", text("hm"))).state is Delivery.ACKNOWLEDGED


@pytest.mark.requirement("K3-shown")
async def test_speech_of_which_no_sample_was_played_is_not_spoken(open_stage) -> None:
    async with open_stage(AUDIO) as (stage, glasses):
        glasses.samples = 0
        report = await stage.present("c1", text("Hello."), wait=Wait.DELIVERY)
        assert report.state is Delivery.DROPPED
        assert "no sample" in report.reason


@pytest.mark.parametrize("fault", [CommandRefused("unsupported"), CommandTimeout("silent")])
async def test_a_refused_or_unanswered_page_is_not_called_shown(
    open_stage, fault: Exception
) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):

        def refuse(command: Any) -> None:
            if isinstance(command, ShowPage):
                raise fault

        glasses.refuse = refuse
        report = await stage.present("c1", text("hello"), wait=Wait.DELIVERY)
        assert report.state is Delivery.DROPPED
        assert report.reason


async def test_a_machine_without_a_voice_says_so_and_still_shows(open_stage, monkeypatch) -> None:
    monkeypatch.setattr(TextToSpeech, "why_not", lambda self: "no voice on this machine")
    async with open_stage(FULL) as (stage, _):
        assert await stage.present("c1", text("hi"), wait=Wait.DELIVERY) == SHOWN
    async with open_stage(AUDIO) as (stage, _glasses):
        report = await stage.present("c1", text("hi"), wait=Wait.DELIVERY)
        assert report.state is Delivery.DROPPED
        assert "no voice on this machine" in report.reason


async def test_nothing_to_render_is_delivered_as_none(open_stage) -> None:
    async with open_stage(FULL) as (stage, glasses):
        assert await stage.present("c1", ToolResponse(data=None)) == DeliveryReport(Delivery.NONE)
        assert not glasses.told


async def test_an_image_is_drawn_as_pixels_else_as_words(open_stage) -> None:
    image = {"layout": "bitmap_view", "data": png(16, 8, bytes([255] * 128)), "alt": "a white box"}
    async with open_stage(DISPLAY) as (stage, glasses):
        assert await stage.present("c1", text("x", display=image)) == SHOWN
        (tile,) = glasses.pages()[0].tiles
        assert (tile.width, tile.height, tile.bpp) == (16, 8, 1)
        damaged = await stage.present("c2", text("x", display={**image, "data": "!"}))
        assert damaged == DeliveryReport(Delivery.SHOWN, "the image is not base64", "image→text")
        assert glasses.texts()[-1] == "a white box"
    async with open_stage({**DISPLAY, "display.bitmap": False}) as (stage, glasses):
        report = await stage.present("c1", text("x", display=image))
        assert report.downgrade == "image→text"
        assert not glasses.pages()[0].tiles
    async with open_stage(AUDIO) as (stage, glasses):
        report = await stage.present("c1", text("x", display=image), wait=Wait.DELIVERY)
        assert report == DeliveryReport(Delivery.SPOKEN, downgrade="image→speech")


async def test_a_picture_is_fitted_once_also_if_it_cannot_be_read(open_stage) -> None:
    asked: list[str] = []

    async def fit(image: str, _known: Capabilities) -> str:
        asked.append(image)
        if image == "!":
            raise BadImage("it is torn")
        return base64.b64encode(write_packed(8, 2, 1, b"\xff\xff")).decode()

    async with open_stage(DISPLAY, fit=fit) as (stage, glasses):
        for name in ("whole", "!"):
            picture = {"layout": "bitmap_view", "data": name, "alt": "a box"}
            report = await stage.present(name, text("x", display=picture))
        assert report == DeliveryReport(Delivery.SHOWN, "it is torn", "image→text")
        (tile,) = glasses.pages()[0].tiles
        assert tile.pixels == b"\xff\xff"
        assert asked == ["whole", "!"]


@pytest.mark.requirement("I13-sound-volume", "I13-sound-preroll")
async def test_pcm_of_a_tool_is_played_as_loud_as_speech(open_stage) -> None:
    quiet = array("h", [600 if n % 80 < 40 else -600 for n in range(3200)])
    pcm = base64.b64encode(quiet).decode()
    voice = TextToSpeech(volume=100, preroll_ms=100)
    facts = {**AUDIO, "speaker.codecs": "pcm16"}
    async with open_stage(facts, voice=voice) as (stage, glasses):
        report = await stage.present("c1", text("x", audio={"pcm": pcm}), wait=Wait.DELIVERY)
        assert report.state is Delivery.SPOKEN
        played = array("h", b"".join(glasses.streams[1][1]))
    assert not any(played[:1600]), "0.1 s of silence before"
    factor = played[1600] / quiet[0]
    assert played[1600] == pytest.approx(32768 / 10, rel=0.01), "-20 dBFS"
    assert played[1600:] == array("h", [int(sample * factor) for sample in quiet])


@pytest.mark.requirement("I13-sound-energy")
async def test_silent_pcm_is_not_spoken(open_stage) -> None:
    silent = text("x", audio={"pcm": base64.b64encode(bytes(32000)).decode()})
    async with open_stage(AUDIO) as (stage, glasses):
        report = await stage.present("c1", silent, wait=Wait.DELIVERY)
        assert report == DeliveryReport(Delivery.DROPPED, "audio.pcm: it is silent")
        assert not glasses.streams


@pytest.mark.requirement("I13-sound-volume")
async def test_with_volume_0_not_even_pcm_is_played(open_stage) -> None:
    loud = text("x", audio={"pcm": base64.b64encode(b"\0\x20" * 16000).decode()})
    async with open_stage(AUDIO, voice=TextToSpeech(volume=0)) as (stage, glasses):
        report = await stage.present("c1", loud, wait=Wait.DELIVERY)
        assert (report.state, report.reason) == (Delivery.DROPPED, "the volume is 0")
        assert not glasses.streams


@pytest.mark.requirement("I13-sound-energy", "I13-sound-preroll")
@pytest.mark.parametrize(
    ("played", "state"),
    [(4800, Delivery.DROPPED), (4800 + 959, Delivery.DROPPED), (20000, Delivery.SPOKEN)],
)
async def test_a_tap_in_the_silence_before_a_speech_leaves_it_unspoken(
    open_stage, played, state
) -> None:
    glasses = FakeGlasses(Bus(), AUDIO, speed=1.0)
    glasses.samples = played
    voice = TextToSpeech(preroll_ms=300)
    async with open_stage(AUDIO, glasses=glasses, voice=voice) as (stage, _):
        speaking = asyncio.ensure_future(
            stage.present("c1", text("One two three four five six."), wait=Wait.DELIVERY)
        )
        await glasses.until(lambda: bool(glasses.streams))
        await glasses.say(Gesture.BUTTON)
        report = await speaking
    assert (report.state, report.reason) == (state, "stopped by the wearer")


async def test_speech_of_glasses_that_do_not_count_is_sent_and_not_dropped(open_stage) -> None:
    glasses = FakeGlasses(Bus(), AUDIO)
    glasses.samples = None
    async with open_stage(AUDIO, glasses=glasses) as (stage, _):
        report = await stage.present("c1", text("One two three."), wait=Wait.DELIVERY)
    assert report.state is Delivery.SENT
    assert report.reason == "the glasses do not say whether they played it"


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (
            {"layout": "double_text_wall", "topText": "left", "bottomText": "right"},
            [(0, "left"), (316, "right")],
        ),
        (
            {"layout": "dashboard_card", "leftText": "12:00", "rightText": "80%"},
            [(0, "12:00"), (316, "80%")],
        ),
        (
            {"layout": "reference_card", "title": "Title", "text": "body"},
            [(0, "Title"), (0, "body")],
        ),
        ({"layout": {"layoutType": "text_wall", "text": "nested"}}, [(0, "nested")]),
        ({"layout": "never_heard_of", "text": "still shown"}, [(0, "still shown")]),
    ],
)
async def test_every_layout_puts_its_fields_where_they_belong(open_stage, layout, words) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        assert await stage.present("c1", text("x", display=layout)) == SHOWN
        assert [(line.x, line.text) for line in glasses.pages()[0].lines] == words


async def test_clear_view_makes_the_lens_dark(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", text("hello"))
        report = await stage.present("c2", text("", display={"layout": "clear_view"}))
        assert report.state is Delivery.ACKNOWLEDGED
        assert stage.lens()["lines"] == []
        assert isinstance(glasses.told[-1], ClearPage)


# ------------------------------------------------------------------ paging and dwell


@pytest.mark.requirement("M-tap")
async def test_a_tap_turns_the_page_and_leaves_the_last_one(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", text(LONG))
        total = glasses.pages()[0].pages
        assert total == 3
        for number in (2, 3):
            await glasses.say(Gesture.TAP)
            await glasses.until(lambda: glasses.pages()[-1].page == number)  # noqa: B023
        assert {page.scene for page in glasses.pages()} == {"c1"}
        await glasses.say(Gesture.TAP)
        await glasses.until(lambda: glasses.clears() == 1)


async def test_a_double_tap_leaves_at_once(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", text(LONG))
        await glasses.say(Gesture.DOUBLE_TAP)
        await glasses.until(lambda: glasses.clears() == 1)
        assert len(glasses.pages()) == 1


async def test_pages_turn_by_themselves_and_the_lens_goes_dark_after_the_last(
    open_stage, monkeypatch
) -> None:
    quick_dwell(monkeypatch, 0.05)
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", text(LONG))
        await glasses.until(lambda: glasses.clears() == 1)
        assert [page.page for page in glasses.pages()] == [1, 2, 3]


async def test_a_duration_that_was_asked_for_decides_when_it_goes(open_stage, monkeypatch) -> None:
    quick_dwell(monkeypatch, 0.02)
    async with open_stage(DISPLAY) as (stage, glasses):
        began = asyncio.get_running_loop().time()
        await stage.present("c1", text("x", display={"text": "stay", "durationMs": 300}))
        await glasses.until(lambda: glasses.clears() == 1)
        assert asyncio.get_running_loop().time() - began >= 0.28


async def test_pages_are_never_sent_faster_than_the_panel_can_show(open_stage) -> None:
    async with open_stage(DISPLAY, min_gap_s=0.1) as (stage, _glasses):
        began = asyncio.get_running_loop().time()
        for number in range(3):
            await stage.present(f"c{number}", text(f"page {number}"))
        assert asyncio.get_running_loop().time() - began >= 0.19


# ------------------------------------------------------------------ who gives way


async def test_a_newer_result_takes_the_lens_and_an_unread_rest_is_superseded(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("old", text(LONG))
        watching = asyncio.ensure_future(changes(glasses.bus, Delivery.SUPERSEDED))
        await asyncio.sleep(0)
        assert await stage.present("new", text(f"newer and longer {LONG}")) == SHOWN
        assert (await watching).call_id == "old"


async def test_a_result_that_was_fully_shown_stays_shown(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            old = await stage.present("old", text("short"), wait=Wait.DELIVERY)
            assert (old, await stage.present("new", text("newer"))) == (SHOWN, SHOWN)
            assert not [h for h in heard._queue if isinstance(h, DeliveryChanged)]


async def test_a_brief_word_never_interrupts_a_result_being_read(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        assert await stage.tell("Working…", brief=True) == SHOWN
        await stage.present("c1", text("the result"))
        report = await stage.tell("half way", call_id="c2", brief=True)
        assert report == DeliveryReport(Delivery.QUEUED, "a result is being read")
        assert glasses.texts() == ["Working…", "the result"]
        assert await stage.tell("Timer over") == SHOWN
        assert glasses.texts()[-1] == "Timer over Working…", "a call works meanwhile"


async def test_progress_that_piles_up_is_shown_as_its_newest_text(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        release = glasses.hold()
        telling = [asyncio.ensure_future(stage.tell(f"step {n}", brief=True)) for n in range(6)]
        await glasses.until(lambda: len(glasses.pages()) == 1)
        release.set()
        reports = [await t for t in telling]
        assert glasses.texts()[-1] == "step 5"
        assert len(glasses.texts()) <= 2
        assert [r.state for r in reports].count(Delivery.SUPERSEDED) >= 4


async def test_a_result_of_lower_priority_waits_until_the_other_was_read(
    open_stage, monkeypatch
) -> None:
    quick_dwell(monkeypatch, 0.1)
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("high", text("x", display={"text": "important", "priority": "high"}))
        report = await stage.present("low", text("x", display={"text": "less so"}))
        assert report.state is Delivery.QUEUED
        await glasses.until(lambda: glasses.texts() == ["important", "less so"])


async def test_a_result_that_waited_past_its_time_is_not_shown(open_stage) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, clock=boot.clock()) as (stage, glasses):
        await stage.present("high", text("x", display={"text": "important", "priority": "high"}))
        await stage.present("low", text("x", display={"text": "less so"}))
        final = asyncio.ensure_future(stage.present("low", text("x"), wait=Wait.DELIVERY))
        await asyncio.sleep(0)
        boot.now += LIFE_S
        stage._wake.set()
        await glasses.until(lambda: final.done() or len(glasses.pages()) > 1)
        assert glasses.texts() == ["important"]
        assert await final == DeliveryReport(Delivery.EXPIRED, "the lens was busy")


async def test_of_more_results_than_may_wait_the_oldest_is_given_up(open_stage) -> None:
    async with open_stage(DISPLAY, clock=Boot().clock()) as (stage, glasses):
        await stage.present("high", text("x", display={"text": "important", "priority": "high"}))
        with glasses.bus.listen() as heard:
            for number in range(LATER + 2):
                await stage.present(f"c{number}", text("less so"))
            changed = [
                (h.call_id, h.report.state)
                for h in heard._queue
                if isinstance(h, DeliveryChanged) and h.report.state is not Delivery.QUEUED
            ]
        assert changed == [("c0", Delivery.SUPERSEDED), ("c1", Delivery.SUPERSEDED)]


async def test_brief_texts_are_not_spoken_without_a_display(open_stage) -> None:
    async with open_stage(AUDIO) as (stage, glasses):
        assert (await stage.tell("Working…", brief=True)).state is Delivery.DROPPED
        assert not glasses.streams
        await stage.tell("Timer over")
        assert glasses.streams


# ------------------------------------------------------------------ speech and taps


@pytest.mark.requirement("M-tap")
async def test_a_tap_silences_first_and_what_was_heard_is_reported(open_stage) -> None:
    async with open_stage(FULL, glasses=FakeGlasses(Bus(), FULL, speed=0.5)) as (stage, glasses):
        await stage.present(
            "c1", text("A rather long sentence that goes on and on for quite a while, as it must.")
        )
        await glasses.until(lambda: glasses.frames() > 0)
        telling = asyncio.ensure_future(changes(glasses.bus, Delivery.SPOKEN))
        await asyncio.sleep(0)
        await glasses.say(Gesture.TAP)
        change = await telling
        assert change.report.reason == "stopped by the wearer"
        assert glasses.flushed == [1]
        assert glasses.clears() == 0, "the first tap only silences"
        await glasses.say(Gesture.TAP)
        await glasses.until(lambda: glasses.clears() == 1)


async def test_a_newer_result_silences_the_older_one(open_stage) -> None:
    async with open_stage(AUDIO, glasses=FakeGlasses(Bus(), AUDIO, speed=0.5)) as (stage, glasses):
        watching = asyncio.ensure_future(changes(glasses.bus, Delivery.SUPERSEDED))
        await asyncio.sleep(0)
        await stage.present(
            "old", text("A rather long sentence that goes on and on for quite a while, as it must.")
        )
        await stage.present("new", text("Short."))
        assert (await watching).call_id == "old"
        assert glasses.flushed == [1]
        assert 2 in glasses.streams


async def test_sound_runs_at_most_a_second_ahead_of_the_ear(open_stage) -> None:
    async with open_stage(AUDIO, glasses=FakeGlasses(Bus(), AUDIO, speed=5.0)) as (stage, glasses):
        began = asyncio.get_running_loop().time()
        await stage.present(
            "c1", text("One two three four five six seven eight nine ten eleven twelve thirteen.")
        )
        await glasses.until(lambda: any(isinstance(c, EndAudio) for c in glasses.told), within_s=40)
        heard = 5.0 * (asyncio.get_running_loop().time() - began)
        assert glasses.frames() * 0.02 - heard <= 1.1 + 0.1


class TenSeconds(TextToSpeech):
    """A voice without a child, whose time does not run as fast as the test's."""

    async def code(self, pcm: str, form: AudioFormat) -> SpokenSentence:
        assert (len(base64.b64decode(pcm)), form) == (320_000, AudioFormat.OPUS)
        return SpokenSentence((b"x",) * 500, 160_000, 1)


@pytest.mark.parametrize(
    ("said", "speed"),
    [(None, 1), (1, 1), (8.0, 8), (100, 100), (0, 1), (0.5, 1), (101, 1), (True, 1), ("8", 1)],
)
@virtual_time
async def test_sound_is_sent_as_fast_as_the_glasses_play_it(said, speed) -> None:
    """Ten seconds of it, the last one ahead; without a speed that can be, in real time."""
    facts = {**AUDIO, "speaker.speed": said}
    glasses = FakeGlasses(Bus(), facts, speed=1e9)
    async with stage_on(facts, glasses=glasses, voice=TenSeconds()) as (stage, glasses):
        pcm = base64.b64encode(b"\0\x20" * 160_000).decode()
        began = asyncio.get_running_loop().time()
        await stage.present("c1", text("", audio={"pcm": pcm}))
        await glasses.until(lambda: any(isinstance(c, EndAudio) for c in glasses.told))
        took = asyncio.get_running_loop().time() - began
    assert glasses.frames() == 500
    assert took == pytest.approx((10 - 1 - 0.1) / speed, abs=0.02)


# ------------------------------------------------------------------ away and back, down and up


async def test_without_any_glasses_a_result_is_dropped_at_once(open_stage) -> None:
    glasses = FakeGlasses(Bus(), DISPLAY)
    glasses.ready = glasses.known = False
    async with open_stage(DISPLAY, glasses=glasses) as (stage, _):
        assert await stage.present("c1", text("x")) == DeliveryReport(
            Delivery.DROPPED, "no glasses"
        )


async def test_a_result_waits_for_glasses_that_come_back_in_time(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        glasses.leave()
        assert await stage.present("c1", text("later")) == DeliveryReport(
            Delivery.QUEUED, "glasses away"
        )
        watching = asyncio.ensure_future(changes(glasses.bus, Delivery.SHOWN))
        await asyncio.sleep(0)
        glasses.come_back()
        assert (await watching).call_id == "c1"
        assert glasses.texts() == ["later"]


@virtual_time
async def test_a_result_nobody_came_back_for_is_dropped() -> None:
    clock = Clock(boot=asyncio.get_running_loop().time)
    async with stage_on(DISPLAY, clock=clock) as (stage, glasses):
        glasses.leave()
        assert await stage.present("c1", text("x"), wait=Wait.DELIVERY) == DeliveryReport(
            Delivery.DROPPED, "glasses away"
        )


@pytest.mark.requirement("K3-scene")
async def test_after_a_reconnect_the_same_scene_returns_without_a_new_rendering(
    open_stage,
) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", text(LONG))
        await glasses.say(Gesture.TAP)
        await glasses.until(lambda: glasses.pages()[-1].page == 2)
        with glasses.bus.listen() as heard:
            glasses.leave()
            glasses.come_back()
            await glasses.until(lambda: len(glasses.pages()) == 3)
            assert (glasses.pages()[-1].scene, glasses.pages()[-1].page) == ("c1", 2)
            assert not [h for h in heard._queue if isinstance(h, DeliveryChanged)]


@pytest.mark.requirement("K3-scene")
async def test_a_result_before_the_news_of_the_return_is_drawn_once(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", text("old"))
        glasses.leave()
        glasses.return_unheard()
        await stage.present("c2", text("new"))
        glasses.tell_return()
        await stage.tell(
            "working", brief=True
        )  # whatever the news makes the stage do comes before this
        await glasses.say(Gesture.TAP)
        await glasses.until(lambda: glasses.clears() == 1)
        assert [t for t in glasses.texts() if t == "new"] == ["new"]


@pytest.mark.requirement("K3-scene")
async def test_speech_is_never_said_twice_after_a_reconnect(open_stage) -> None:
    async with open_stage(FULL) as (stage, glasses):
        await stage.present("c1", text("Once only."), wait=Wait.DELIVERY)
        glasses.leave()
        glasses.come_back()
        await glasses.until(lambda: len(glasses.pages()) == 2)
        assert sum(isinstance(c, StartAudio) for c in glasses.told) == 1


@pytest.mark.requirement("K3-scene")
@pytest.mark.parametrize("when", ["between two pieces", "after the last piece"])
async def test_speech_ends_with_the_link_even_if_glasses_return_at_once(
    open_stage, when: str
) -> None:
    glasses = FakeGlasses(Bus(), {**AUDIO, "speaker.codecs": "pcm16"})
    lost_after = 3 if when == "between two pieces" else 20

    def lose(command: Any) -> None:
        if isinstance(command, AudioChunk) and command.index == lost_after - 1:
            glasses.leave()
            glasses.come_back()

    glasses.refuse = lose
    async with open_stage(glasses.facts, glasses=glasses) as (stage, _):
        pcm = base64.b64encode(b"\0\x20" * 32000).decode()
        loud = ToolResponse(data="x", render={"audio": {"pcm": pcm}})
        report = await stage.present("c1", loud, wait=Wait.DELIVERY)
        assert (report.state, report.reason) == (Delivery.DROPPED, "glasses away")
        assert sum(isinstance(c, AudioChunk) for c in glasses.told) == lost_after


async def test_a_scene_whose_time_passed_while_away_is_cleared_not_shown_again(
    open_stage, monkeypatch
) -> None:
    quick_dwell(monkeypatch, 0.05)
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", text("gone"))
        glasses.leave()
        await asyncio.sleep(0.15)
        glasses.come_back()
        await glasses.until(lambda: glasses.clears() == 1)
        assert len(glasses.pages()) == 1


async def test_after_a_long_suspend_an_old_scene_is_not_shown(
    open_stage,
) -> None:
    now = [1000.0]
    async with open_stage(DISPLAY, clock=Clock(boot=lambda: now[0])) as (stage, glasses):
        await stage.present("c1", text("before the sleep"))
        glasses.leave()
        now[0] += 3600
        glasses.come_back()
        await glasses.until(lambda: glasses.clears() == 1)
        assert len(glasses.pages()) == 1


async def test_a_restarted_daemon_puts_the_scene_back_where_it_was(open_stage) -> None:
    notes = Notebook()
    async with open_stage(DISPLAY, notes=notes) as (stage, glasses):
        await stage.present("c1", text(LONG))
        await glasses.say(Gesture.TAP)
        async with asyncio.timeout(40):
            while notes.kept["stage.scene"]["page"] != 2:
                await asyncio.sleep(0.005)
        before = glasses.pages()[-1]
    async with open_stage(DISPLAY, notes=notes) as (stage, glasses):
        await glasses.until(lambda: bool(glasses.pages()))
        assert glasses.pages()[0] == before
        assert before.page == 2
        await glasses.say(Gesture.DOUBLE_TAP)
        await glasses.until(lambda: glasses.clears() == 1)
    assert notes.kept["stage.scene"] is None


async def test_a_damaged_note_starts_with_a_dark_lens(open_stage) -> None:
    notes = Notebook()
    notes.kept["stage.scene"] = {"scene": "x", "boot_id": "other"}
    async with open_stage(DISPLAY, notes=notes) as (stage, glasses):
        assert await stage.present("c1", text("fine")) == SHOWN
        assert glasses.texts() == ["fine"]


async def test_more_than_the_inbox_holds_is_dropped_with_a_reason(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        release = glasses.hold()
        waiting = [asyncio.ensure_future(stage.present(f"c{n}", text("x"))) for n in range(80)]
        await asyncio.sleep(0)
        await glasses.until(lambda: len(glasses.told) >= 1)
        release.set()
        reports = [await w for w in waiting]
        assert any("overrun" in r.reason for r in reports)


@pytest.mark.parametrize(
    "fault", [LocalMisuse("a message of 3,000 bytes; the peer takes 256"), ValueError("odd")]
)
async def test_a_result_that_cannot_be_rendered_does_not_stop_the_next(
    open_stage, fault: Exception
) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):

        def refuse(command: Any) -> None:
            if isinstance(command, ShowPage) and command.lines[0].text == "odd":
                raise fault

        glasses.refuse = refuse
        report = await stage.present("c1", text("odd"), wait=Wait.DELIVERY)
        assert report.state is Delivery.DROPPED
        assert report.reason
        assert (await stage.present("c2", text("even"), wait=Wait.DELIVERY)).state is Delivery.SHOWN


async def test_a_speech_that_breaks_leaves_no_stream_open(open_stage) -> None:
    async with open_stage({**AUDIO, "speaker.codecs": "pcm16"}) as (stage, glasses):

        def refuse(command: Any) -> None:
            if isinstance(command, AudioChunk):
                raise CommandTimeout("no room in 10 s")

        glasses.refuse = refuse
        pcm = base64.b64encode(b"\0\x20" * 16000).decode()
        loud = ToolResponse(data="x", render={"audio": {"pcm": pcm}})
        await stage.present("c1", loud, wait=Wait.DELIVERY)
        told = [type(command).__name__ for command in glasses.told]
        assert told.count("StartAudio") == told.count("EndAudio") == 1


async def test_the_exact_lens_report_has_every_pixel(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, _):
        picture = png(16, 2, bytes([255] * 16 + [0] * 16))
        await stage.present(
            "c1",
            ToolResponse(data={}, render={"display": {"layout": "bitmap_view", "data": picture}}),
        )
        drawn = stage.lens(exact=True)["drawn"]
        (tile,) = drawn["tiles"]
        assert (drawn["lines"], tile["width"], base64.b64decode(tile["pixels"])) == (
            [],
            16,
            b"\xff\xff\0\0",
        )
        assert "drawn" not in stage.lens()
        await stage.present("c2", ToolResponse(data={"text": "words"}))
        drawn = stage.lens(exact=True)["drawn"]
        assert (drawn["lines"], drawn["tiles"]) == ([{"row": 0, "text": "words", "x": 0}], [])
