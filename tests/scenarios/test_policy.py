"""Story: what needs a yes gets it where the wearer is; budgets hold; what was known is said
with its age.
"""

import asyncio

import pytest

from edge.runtime.ids import new_call_id
from firmware_bridge.messages import Gesture
from tests.scenarios.world import until, whole_world
from tools_cache.api.tool import CallOrigin, Mode, ToolCall

pytestmark = pytest.mark.asyncio(loop_scope="session")

EVENT = "com.example.calendar:create_event"
EVENTS = "com.example.calendar:list_events"
FORECAST = "com.example.weather:forecast"
SEARCH = "com.example.search:kb_search"
LUNCH = {
    "title": "Lunch",
    "start": "2026-12-01T12:00:00Z",
    "attendees": ["ann@example.org", "bob@example.org"],
}


def call_of(place, tool, args, **more):
    return ToolCall(
        call_id=new_call_id(place.daemon.clock.wall()),
        tool=tool,
        args=args,
        origin=CallOrigin.CLI,
        **more,
    )


async def events_at(place):
    """What the calendar app really holds, by its own word."""
    listed = await place.call(EVENTS, {})
    return [e["title"] for e in listed.data["events"]]


@pytest.mark.requirement("S2-95", "S2-99", "I3-shows-3")
async def test_a_calendar_entry_is_asked_about_on_the_lens_and_a_tap_makes_it_once(tmp_path):
    async with whole_world(tmp_path) as place:
        call = call_of(place, EVENT, LUNCH)
        asked = await place.daemon.calls.begin(call)
        assert asked.error.code == "CONFIRMATION_REQUIRED"
        assert asked.error.confirmation_request["preview"] == f"Execute {EVENT}"
        await place.lens_shows("event?", "title: Lunch", "tap: next")
        assert await place.runs(call.call_id) is None
        await place.answer_question()
        seen = " ".join(
            " ".join(page["lines"]) for page in place.drawn() if page["scene"].endswith("/confirm")
        )
        assert "title: Lunch" in seen
        assert LUNCH["start"] not in seen, "moments are in the wearer's form"
        for line in ("attendees (2):", "1. ann@example.org", "2. bob@example.org"):
            assert line in seen
        assert f"{EVENT}, from" in seen
        await place.heard("call.completed", call_id=call.call_id, ok=True)
        assert await place.runs(call.call_id) == 1
        used = await place.daemon.calls.confirm(
            asked.error.confirmation_request["token"], allow=True
        )
        assert (used.error.type, used.error.code) == ("CONFIRMATION_EXPIRED", "USED")
        story = await place.daemon.store.get(call.call_id)
        assert [s["state"] for s in story["steps"]][:3] == [
            "AWAITING_CONFIRMATION",
            "ADMITTED",
            "RUNNING",
        ]
        assert await events_at(place) == ["Lunch"]


async def test_a_double_tap_denies_and_the_calendar_stays_empty(tmp_path):
    async with whole_world(tmp_path) as place:
        waiting = asyncio.ensure_future(place.call(EVENT, LUNCH))
        await place.lens_shows("event?", "double tap")
        await place.answer_question(Gesture.DOUBLE_TAP)
        answer = await waiting
        assert (answer.error.code, answer.error.message) == (
            "DENIED",
            "The wearer said no to create event",
        )
        assert await events_at(place) == []


@pytest.mark.requirement("S2-96", "S2-97")
async def test_a_token_confirms_the_same_call_once_and_no_other(tmp_path):
    async with whole_world(tmp_path) as place:
        call = call_of(place, EVENT, LUNCH)
        token = (await place.daemon.calls.begin(call)).error.confirmation_request["token"]
        other = await place.daemon.calls.confirm(
            token, allow=True, call=call_of(place, EVENT, {**LUNCH, "title": "Dinner"})
        )
        assert other.error.code == "MISMATCH"
        done = await place.daemon.calls.confirm(
            token, allow=True, call=call_of(place, EVENT, LUNCH)
        )
        assert done.ok
        assert done.meta["callId"] == call.call_id
        again = await place.daemon.calls.confirm(
            token, allow=True, call=call_of(place, EVENT, LUNCH)
        )
        assert again.error.code == "USED"
        assert await events_at(place) == ["Lunch"]


async def test_audio_only_glasses_ask_by_voice_and_the_button_allows(tmp_path):
    async with whole_world(tmp_path, "mock:audio") as place:
        call = call_of(place, EVENT, {"title": "Lunch", "start": LUNCH["start"]})
        assert (await place.daemon.calls.begin(call)).error.code == "CONFIRMATION_REQUIRED"
        await until(lambda: place.mock.glasses.speaker.playing, "the question is spoken")
        await place.answer_question(Gesture.BUTTON)
        await place.heard("call.completed", call_id=call.call_id, ok=True)
        await until(lambda: len(place.spoken()) == 2, "the result is spoken, too")
        assert await events_at(place) == ["Lunch"]


@pytest.mark.requirement("S2-86", "S2-88", "I3-shows-4")
async def test_the_third_retrieval_of_a_turn_never_leaves_the_edge_and_the_next_turn_works(
    tmp_path,
):
    async with whole_world(tmp_path) as place:
        codes = []
        for n, query in enumerate(("battery", "lens", "pairing")):
            call = call_of(place, SEARCH, {"query": query}, mode=Mode.VOICE, turn_id="t1")
            answer = await place.daemon.calls.call(call)
            codes.append(
                (answer.error.code if answer.error else None, await place.runs(call.call_id))
            )
            assert n < 2 or answer.error.suggestion
        assert codes == [(None, 1), (None, 1), ("BUDGET_EXCEEDED", None)]
        assert (await place.call(SEARCH, {"query": "pairing"}, mode=Mode.VOICE, turn_id="t2")).ok


@pytest.mark.requirement("I3-cache", "I3-shows-7")
async def test_with_the_cloud_away_the_weather_is_shown_with_its_age_and_nothing_is_written(
    tmp_path,
):
    async with whole_world(tmp_path, cable=True) as place:
        fresh = await place.call(FORECAST, {"place": "Oslo"})
        assert fresh.ok
        assert "stale" not in fresh.meta
        await place.cable.pull_out()
        await until(lambda: not place.daemon.uplink.status().up, "uplink down")
        kept = await place.call(FORECAST, {"place": "Oslo"})
        assert kept.data == fresh.data
        assert (kept.meta["stale"], kept.meta["route"], kept.meta["delivery"]) == (
            True,
            "cache",
            "shown",
        )
        await place.lens_shows("just now")
        unknown = await place.call(FORECAST, {"place": "Rome"})
        assert unknown.error.code == "OFFLINE"
        refused = await place.call(EVENT, LUNCH)
        assert refused.error.code == "OFFLINE"


@pytest.mark.requirement("S3-04")
async def test_an_agent_asks_the_wearer_and_the_tap_is_the_result(tmp_path, cloud):
    async with whole_world(tmp_path, cloud=cloud) as place:
        answer = await place.call("glasses:ask", {"question": "Water the plants?"})
        assert answer.data["status"] == "pending"
        await place.lens_shows("Water the plants?", "yes", "double tap")
        await place.answer_question()
        await place.heard("call.completed", call_id=answer.meta["callId"], ok=True)
        story = await place.daemon.store.get(answer.meta["callId"])
        assert story["response"]["data"] == {"answer": "yes"}
