"""Story: the wearer speaks, and what was said is done, shown, remembered, or honestly not
understood.
"""

from datetime import UTC, datetime

import pytest

from edge.ports import Wait
from edge.runtime.ids import new_call_id
from tests.scenarios.world import until, whole_world, world
from tools_cache.api.tool import CallOrigin, Mode

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def alone(place):
    await place.switch_glasses_on()
    await place.start_daemon()
    await place.ready()


async def test_a_spoken_sentence_reaches_its_tool_by_its_activation_phrase(tmp_path, cloud):
    async with whole_world(tmp_path, cloud=cloud) as place, place.onlooker() as cloud_side:
        await place.wearer_says("please calculate 17 * 3")
        received = await place.heard("call.received")
        assert (received["tool"], received["origin"]) == ("com.example.calc:evaluate", "voice")
        await place.lens_shows("51")
        call = (await cloud_side.hears_on("call/tools")).body
        assert (call["mode"], call["args"]) == ("voice", {"expression": "17 * 3"})
        assert call["turn_id"]
        heard = await cloud_side.hears_on("event/transcript")
        assert heard.body["data"] == {"text": "please calculate 17 * 3", "final": True}


@pytest.mark.requirement("I12-transcripts-suppressed")
async def test_while_transcripts_are_suppressed_words_are_acted_on_but_neither_published_nor_stored(
    tmp_path, cloud
):
    async with whole_world(tmp_path, cloud=cloud) as place, place.onlooker() as cloud_side:
        session = place.daemon.calls.session
        session.apply({"type": "SUPPRESS_TRANSCRIPT", "value": True}, tool="x:y")
        await place.wearer_says("fly me to the moon")
        await place.lens_shows("Sorry, I don't know that one.")
        await place.wearer_says("please calculate 17 * 3")
        await place.lens_shows("51")
        session.apply({"type": "SUPPRESS_TRANSCRIPT", "value": False}, tool="x:y")
        await place.wearer_says("please calculate 2 * 3")
        await place.lens_shows("6")
        heard = await cloud_side.hears_on("event/transcript")
        assert heard.body["data"]["text"] == "please calculate 2 * 3", "nothing of before went out"
        told = [entry.text for entry in place.daemon.control._feeds[True]._ring]
        await place.stop_daemon()
    kept = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and not {"glasses", "cloud"} & {*path.relative_to(tmp_path).parts}
    ]
    assert any(path.suffix == ".db" for path in kept)
    for words in ("fly me", "calculate 17"):
        assert not [path for path in kept if words.encode() in path.read_bytes()]
        assert not any(words in text for text in told)
    assert any("calculate 2" in text for text in told)


async def test_a_sentence_that_nothing_answers_to_is_told_on_the_lens(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        await place.wearer_says("fly me to the moon")
        answered = await place.heard("call.answered")
        assert (answered["ok"], answered["code"]) == (False, "TOOL_NOT_FOUND")
        await place.lens_shows("Sorry, I don't know that one.")


async def test_a_sentence_without_what_its_tool_needs_is_told_what_is_missing(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        await place.wearer_says("set a timer")
        answered = await place.heard("call.answered", tool="timer:start")
        assert answered["code"] == "INVALID_ARGUMENTS"
        await place.lens_shows("seconds")


async def test_a_timer_that_was_asked_for_by_voice_fires_on_the_lens(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        await place.wearer_says("set a timer for one second")
        await place.heard("call.answered", tool="timer:start", ok=True)
        await place.lens_shows("Time's up: 1 s")
        assert (await place.call("timer:list")).data["timers"] == []


async def test_a_timer_outlives_the_daemon(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        assert (await place.call("timer:start", {"seconds": 1, "label": "the eggs are done"})).ok
        await place.stop_daemon()
        await place.start_daemon()
        await place.lens_shows("the eggs are done")


async def test_notes_are_kept_by_voice_and_found_by_the_next_daemon(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        await place.wearer_says("remember that the car is on level three")
        await place.heard("call.answered", tool="notes:add", ok=True)
        await place.lens_shows("the car is on level three")
        await place.stop_daemon()
        await place.start_daemon()
        await place.ready()
        found = await place.call("notes:search", {"query": "car level"})
        assert [note["text"] for note in found.data["notes"]] == ["the car is on level three"]


async def test_the_third_retrieval_of_a_spoken_turn_is_refused_and_the_next_turn_is_free(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        turn = new_call_id(place.daemon.clock.wall())
        voice = {"mode": Mode.VOICE, "origin": CallOrigin.VOICE, "wait": Wait.ANSWER}
        for tool in ("notes:list", "timer:list"):
            assert (await place.call(tool, turn_id=turn, **voice)).ok
        third = await place.call("notes:list", turn_id=turn, **voice)
        assert (third.error.type, third.error.code) == ("BUDGET_EXCEEDED", "BUDGET_EXCEEDED")
        assert third.error.message == "Voice mode retrieval budget exceeded (max 2 per turn)"
        await place.lens_shows("That was a lot at once. Ask again.")
        assert (await place.call("clock:now", turn_id=turn, **voice)).ok, (
            "the third call of any kind"
        )
        fourth = await place.call("clock:now", turn_id=turn, **voice)
        assert fourth.error.message == "Voice mode tool call budget exceeded (max 3 per turn)"
        assert (
            await place.call("notes:list", turn_id=new_call_id(place.daemon.clock.wall()), **voice)
        ).ok
        assert (await place.call("notes:list", turn_id=turn)).ok, "text has no caps"


async def test_what_is_only_half_heard_calls_nothing(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        from firmware_bridge.messages import Transcript

        place.mark()
        assert place.mock.glasses._send(Transcript("remember that nobody", final=False))
        await place.heard("glasses.event")
        await place.wearer_says("what time is it")
        await place.heard("call.answered", tool="clock:now", ok=True)
        assert (await place.call("notes:list")).data["notes"] == []


async def test_a_spoken_question_is_answered_in_the_ear_where_there_is_no_lens(tmp_path):
    async with world(tmp_path, "mock:audio") as place:
        await alone(place)
        await place.wearer_says("remember that it rains")
        await until(place.spoken, "an answer for the ear")
        assert place.spoken()[0]["samples"] > 0


async def test_a_reminder_asked_for_by_voice_outlives_the_daemon(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        await place.wearer_says("remind me tomorrow at nine to call Anna")
        await place.heard("call.answered", tool="reminder:add", ok=True)
        await place.lens_shows("Tomorrow 09:00: call Anna")
        now = datetime.fromtimestamp(place.daemon.clock.wall() + 2, UTC)
        moment = now.isoformat(timespec="microseconds")
        assert (await place.call("reminder:add", {"text": "take the bread out", "when": moment})).ok
        await place.stop_daemon()
        await place.start_daemon()
        await place.lens_shows("Reminder: take the bread out")
        listed = (await place.call("reminder:list", {"range": "overdue"})).data["reminders"]
        assert [r["text"] for r in listed] == ["take the bread out"]
