"""The mock's behaviour, over packets in memory: every command is answered, and only with what
is true.
"""

import asyncio
from pathlib import Path

import pytest

from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    Answer,
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    CapabilitiesChanged,
    ClearPage,
    EndAudio,
    EndPrompt,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    MicrophoneChunk,
    Ping,
    Prompt,
    PromptAnswered,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TextLine,
    Tile,
    Transcript,
    UpdatePage,
    WornChanged,
)
from firmware_bridge.sides import Side
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, visit

PAGE = ShowPage("list", lines=(TextLine(0, "Milk"), TextLine(1, "Bread")))


async def ask(driver, command):
    return await driver.request(command, timeout_s=DEADLINE_S)


async def refused(driver, command) -> str:
    with pytest.raises(CommandRefused) as error:
        await ask(driver, command)
    return error.value.code


async def event(driver, kind):
    async with asyncio.timeout(DEADLINE_S):
        async for said in driver.events():
            if isinstance(said, kind):
                return said
    raise AssertionError(f"the link ended before {kind.__name__}")


async def test_hello_is_answered_with_who_they_are(tmp_path: Path) -> None:
    async with visit("mock:display", tmp_path) as (glasses, driver, _):
        info = await ask(driver, Hello("test", "1"))
        assert isinstance(info, GlassesInfo)
        assert info.model == "mock:display"
        assert dict(info.capabilities) == glasses.capabilities


async def test_done_is_said_with_the_pixels_really_lit(tmp_path: Path) -> None:
    async with visit("mock:display", tmp_path) as (glasses, driver, ear):
        done = await ask(driver, PAGE)
        assert done.drawn == glasses.lens.lit > 0
        shown = await ear.wait("lens", where=lambda e: e["scene"] == "list")
        assert shown["lines"] == ["Milk", "Bread"]
        assert Path(shown["png"]).is_file()
        assert (await ask(driver, ClearPage())).drawn == 0


async def test_a_page_that_does_not_fit_says_how_much_did_not(tmp_path: Path) -> None:
    async with visit("mock:display", tmp_path) as (_, driver, _):
        assert (await ask(driver, ShowPage("s", lines=(TextLine(9, "below"),)))).clipped == 1


async def test_update_reaches_only_the_page_that_is_there(tmp_path: Path) -> None:
    async with visit("mock:display", tmp_path) as (glasses, driver, _):
        assert await refused(driver, UpdatePage("list", lines=(TextLine(0, "x"),))) == "no_scene"
        await ask(driver, PAGE)
        await ask(driver, UpdatePage("list", lines=(TextLine(0, "Oat milk"),)))
        assert glasses.lens.text() == ["Oat milk", "Bread"]


async def test_tiles_are_drawn(tmp_path: Path) -> None:
    async with visit("mock:display", tmp_path) as (_, driver, _):
        done = await ask(
            driver, ShowPage("t", tiles=(Tile(10, 10, 16, 2, 1, b"\xff\xff\xff\xff"),))
        )
        assert done.drawn == 32


@pytest.mark.parametrize(
    "command",
    [PAGE, UpdatePage("x"), ClearPage(), Prompt(1, (), 1.0), EndPrompt()],
    ids=lambda c: type(c).__name__,
)
async def test_glasses_without_display_refuse_to_show(tmp_path: Path, command) -> None:
    async with visit("mock:audio", tmp_path) as (_, driver, _):
        assert await refused(driver, command) == "unsupported"


async def test_glasses_without_speaker_refuse_sound(tmp_path: Path) -> None:
    async with visit("mock:display", tmp_path) as (_, driver, _):
        assert await refused(driver, StartAudio(1, AudioFormat.PCM16)) == "unsupported"


async def test_the_end_of_a_stream_is_answered_after_its_last_sample(
    tmp_path: Path,
) -> None:
    async with visit("mock:audio", tmp_path, speed=10) as (glasses, driver, ear):
        await ask(driver, StartAudio(5, AudioFormat.PCM16))
        for index in range(10):
            await driver.post(AudioChunk(5, index, (bytes([index, 0]) * 1600,)))
        started = glasses.time.now()
        done = await ask(driver, EndAudio(5))
        assert done.samples == 16000
        assert glasses.time.now() - started > 0.8, (
            "one second of sound takes about one second of the mock's time"
        )
        assert (await ear.wait("speaker"))["samples"] == 16000


async def test_flush_answers_with_what_was_played_and_the_waiting_end_is_interrupted(
    tmp_path: Path,
) -> None:
    async with visit("mock:audio", tmp_path, speed=1) as (_, driver, _):
        await ask(driver, StartAudio(5, AudioFormat.PCM16))
        for index in range(30):
            await driver.post(AudioChunk(5, index, (bytes(3200),)))
        end = asyncio.ensure_future(refused(driver, EndAudio(5)))
        await ask(driver, Ping())
        done = await ask(driver, EndAudio(5, flush=True))
        assert done.samples < 48000
        assert await end == "interrupted"
        assert await refused(driver, EndAudio(5)) == "no_stream"


async def test_losing_the_central_stops_the_sound_and_keeps_the_page(tmp_path: Path) -> None:
    async with visit("mock:full", tmp_path, speed=1) as (glasses, driver, ear):
        await ask(driver, PAGE)
        await ask(driver, StartAudio(5, AudioFormat.PCM16))
        for index in range(20):
            await driver.post(AudioChunk(5, index, (bytes(3200),)))
        await ask(driver, Ping())
    assert (await ear.wait("speaker"))["flushed"] is True
    assert not glasses.speaker.playing
    assert not glasses.connected
    assert glasses.lens.text() == ["Milk", "Bread"]


@pytest.mark.parametrize(
    ("gesture", "answer"),
    [
        (Gesture.TAP, Answer.ALLOW),
        (Gesture.NOD, Answer.ALLOW),
        (Gesture.DOUBLE_TAP, Answer.DENY),
        (Gesture.SHAKE, Answer.DENY),
    ],
)
async def test_a_gesture_answers_the_question_on_the_lens(
    tmp_path: Path, monkeypatch, gesture: Gesture, answer: Answer
) -> None:
    monkeypatch.setattr("firmware_bridge.sim.peripheral.TOO_SOON_S", 0.0)
    async with visit("mock:full", tmp_path, speed=1) as (glasses, driver, ear):
        await ask(driver, PAGE)
        done = await ask(driver, Prompt(3, (TextLine(0, "Delete?"),), 30))
        assert done.drawn
        assert glasses.lens.text() == ["Delete?"]
        assert await refused(driver, Prompt(4, (TextLine(0, "And this?"),), 30)) == "busy"
        assert glasses.gesture(gesture)
        assert await event(driver, PromptAnswered) == PromptAnswered(3, answer)
        assert glasses.lens.text() == ["Milk", "Bread"]
        await ear.wait("prompt.answered")
        glasses.gesture(gesture)
        assert await event(driver, Gestured) == Gestured(gesture)


async def test_a_question_that_nobody_answers_times_out(tmp_path: Path) -> None:
    async with visit("mock:full", tmp_path, speed=100) as (_, driver, _):
        await ask(driver, Prompt(3, (TextLine(0, "Delete?"),), 5))
        assert await event(driver, PromptAnswered) == PromptAnswered(3, Answer.TIMEOUT)


@pytest.mark.requirement("I11-consent-early")
@pytest.mark.parametrize("gesture", [Gesture.TAP, Gesture.DOUBLE_TAP])
async def test_a_gesture_in_the_first_moment_of_a_question_is_ignored(
    tmp_path: Path, monkeypatch, gesture: Gesture
) -> None:
    async with visit("mock:full", tmp_path, speed=1) as (glasses, driver, _):
        now = [1000.0]
        monkeypatch.setattr(glasses.time, "now", lambda: now[0])
        await ask(driver, Prompt(3, (TextLine(0, "Delete?"),), 30))
        for _ in range(7):
            glasses.gesture(gesture)
            now[0] += 0.1
            assert glasses.lens.asking
        now[0] += 0.01
        glasses.gesture(Gesture.TAP)
        assert await event(driver, PromptAnswered) == PromptAnswered(3, Answer.ALLOW)


@pytest.mark.requirement("I13-page-back")
@pytest.mark.parametrize("side", [None, *Side])
async def test_a_gesture_says_on_which_side_it_was_made(tmp_path: Path, side: Side | None) -> None:
    async with visit("mock:full", tmp_path, speed=1) as (glasses, driver, _):
        await ask(driver, PAGE)
        glasses.gesture(Gesture.TAP, side=side)
        assert await event(driver, Gestured) == Gestured(Gesture.TAP, side)


async def test_the_first_gesture_decides_and_the_second_is_a_gesture_again(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("firmware_bridge.sim.peripheral.TOO_SOON_S", 0.0)
    async with visit("mock:full", tmp_path, speed=1) as (glasses, driver, _):
        await ask(driver, Prompt(3, (TextLine(0, "Delete?"),), 30))
        glasses.gesture(Gesture.DOUBLE_TAP)
        glasses.gesture(Gesture.TAP)
        assert await event(driver, PromptAnswered) == PromptAnswered(3, Answer.DENY)
        assert await event(driver, Gestured) == Gestured(Gesture.TAP)


@pytest.mark.parametrize("which", [None, 3])
async def test_a_withdrawn_question_gets_no_answer(tmp_path: Path, which: int | None) -> None:
    async with visit("mock:full", tmp_path, speed=100) as (glasses, driver, ear):
        await ask(driver, PAGE)
        await ask(driver, EndPrompt(which))
        await ask(driver, Prompt(3, (TextLine(0, "Delete?"),), 5))
        await ask(driver, EndPrompt(2))
        assert glasses.lens.asking, "another one was meant"
        await ask(driver, EndPrompt(which))
        assert glasses.lens.text() == ["Milk", "Bread"]
        assert (await ear.wait("prompt.ended"))["prompt"] == 3
        glasses.gesture(Gesture.TAP)
        assert await event(driver, Gestured) == Gestured(Gesture.TAP)
        await ask(driver, Prompt(4, (TextLine(0, "Again?"),), 5))
        assert await event(driver, PromptAnswered) == PromptAnswered(4, Answer.TIMEOUT), (
            "and 3 told nothing"
        )


async def test_the_microphone_sends_what_is_said_until_it_is_stopped(tmp_path: Path) -> None:
    async with visit("mock:display", tmp_path) as (glasses, driver, _):
        assert await refused(driver, StopMicrophone(1)) == "no_stream"
        assert await refused(driver, StartMicrophone(1, AudioFormat.OPUS)) == "unsupported"
        await ask(driver, StartMicrophone(1, AudioFormat.PCM16))
        assert await refused(driver, StartMicrophone(2, AudioFormat.PCM16)) == "busy"
        glasses.say("hello there")
        assert await event(driver, Transcript) == Transcript("hello there")
        async with asyncio.timeout(DEADLINE_S):
            while not any((await event(driver, MicrophoneChunk)).frames[0]):
                pass
        await ask(driver, StopMicrophone(1))
        await ask(driver, StartMicrophone(2, AudioFormat.PCM16))
        await ask(driver, StopMicrophone(2))


async def test_what_the_wearer_does_is_reported(tmp_path: Path) -> None:
    async with visit("mock:display", tmp_path) as (glasses, driver, _):
        await ask(driver, Ping())
        assert glasses.gesture(Gesture.TAP)
        assert await event(driver, Gestured) == Gestured(Gesture.TAP)
        glasses.set_battery(40)
        assert await event(driver, BatteryChanged) == BatteryChanged(40)
        glasses.set_worn(worn=False)
        assert await event(driver, WornChanged) == WornChanged(worn=False)


async def test_changed_capabilities_are_reported_in_full_and_apply_at_once(
    tmp_path: Path,
) -> None:
    async with visit("mock:display", tmp_path) as (glasses, driver, _):
        await ask(driver, Ping())
        glasses.set_capabilities({"camera": True, "display": False, "gestures": None})
        told = await event(driver, CapabilitiesChanged)
        assert dict(told.capabilities) == glasses.capabilities
        assert told.capabilities["camera"] is True
        assert "gestures" not in told.capabilities
        assert await refused(driver, PAGE) == "unsupported"
        info = await ask(driver, Hello("x", "1"))
        assert info.capabilities["camera"] is True


async def test_packets_of_twenty_bytes_are_enough(tmp_path: Path) -> None:
    async with visit("mock:display", tmp_path, max_packet=20) as (glasses, driver, _):
        assert isinstance(await ask(driver, Hello("x", "1")), GlassesInfo)
        await ask(driver, PAGE)
        assert glasses.lens.text() == ["Milk", "Bread"]


async def test_without_a_central_nothing_is_noticed(tmp_path: Path) -> None:
    async with visit("mock:display", tmp_path) as (glasses, driver, _):
        await ask(driver, Ping())
    assert not glasses.gesture(Gesture.TAP)
    assert not glasses.say("hello")


async def test_info_over_what_an_attribute_holds_is_cut_to_the_flags(tmp_path: Path) -> None:
    from firmware_bridge.codecs.reference.messages import decode_info

    async with visit("mock:full", tmp_path) as (glasses, _, _):
        glasses.set_capabilities({f"extra.key.number.{i}": "x" * 20 for i in range(20)})
        value = glasses.info_bytes()
        assert len(value) <= 512
        assert decode_info(value).capabilities["display"] is True
        assert "extra.key.number.1" not in decode_info(value).capabilities
