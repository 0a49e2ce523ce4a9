"""Story: what is to be shown or said reaches the wearer on whatever the glasses have; and who sees
what an agent looks up.
"""

import asyncio

import pytest

from edge.cli import main
from firmware_bridge.messages import Gesture
from tests.scenarios.lens.test_glasses_tools import picture
from tests.scenarios.world import until, whole_world, world
from tools_cache.api.tool import CallOrigin, ErrorCode, Mode

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = {"glasses:show_text": {"text": "Turn left"}}
CARD = {"glasses:show_card": {"title": "Gate B12", "lines": ["Seat 17A"]}}
IMAGE = {"glasses:show_image": {"image": "", "alt": "The map of the station"}}
SAY = {"glasses:say": {"text": "Turn left"}}
WORDS = {
    "glasses:show_text": "Turn left",
    "glasses:show_card": "Gate B12",
    "glasses:show_image": "The map of the station",
    "glasses:say": "Turn left",
}
ARGS = {**TEXT, **CARD, **IMAGE, **SAY}
SHOWN, SPOKEN = "shown", "spoken"
ALL = {"display": True, "display.bitmap": True, "speaker": True}
TABLE = [
    (ALL, dict.fromkeys(ARGS, SHOWN) | {"glasses:say": SPOKEN}),
    (
        ALL | {"speaker": False},
        dict.fromkeys(ARGS, SHOWN) | {"glasses:say": (SHOWN, "speech→display")},
    ),
    (
        ALL | {"display.bitmap": False},
        dict.fromkeys(ARGS, SHOWN)
        | {"glasses:say": SPOKEN, "glasses:show_image": (SHOWN, "image→text")},
    ),
    (
        ALL | {"display": False},
        dict.fromkeys(ARGS, (SPOKEN, "display→speech"))
        | {"glasses:say": SPOKEN, "glasses:show_image": (SPOKEN, "image→speech")},
    ),
]


@pytest.mark.requirement("I13-ladders")
async def test_each_tool_reaches_the_wearer_on_what_the_glasses_have(tmp_path):
    async with world(tmp_path, "mock:full") as place:
        await place.switch_glasses_on(speed=8.0)
        await place.start_daemon()
        await place.ready()
        for facts, expected in TABLE:
            place.mock.glasses.set_capabilities(facts)
            await able(place, facts)
            for tool, how in expected.items():
                await reaches(place, tool, how)


async def able(place, facts):
    """Wait until the daemon, and its tools, know what the glasses can do now."""

    def known():
        link, tools = place.daemon.link.status().capabilities, place.daemon.registry._record
        return all(
            found is not None and found.get(key) is value
            for found in (link, tools)
            for key, value in facts.items()
        )

    await until(known, f"glasses that can {facts}")


async def reaches(place, tool, how):
    state, downgrade = (how, None) if isinstance(how, str) else how
    image = {"image": picture()} if tool == "glasses:show_image" else {}
    before, streams = len(place.drawn()), len(place.spoken())
    answer = await place.call(tool, ARGS[tool] | image, origin=CallOrigin.MCP)
    assert answer.ok, (tool, answer.error)
    delivery = answer.meta["delivery"]
    found = {"state": delivery} if isinstance(delivery, str) else delivery
    assert (found["state"], found.get("downgrade")) == (state, downgrade), (tool, delivery)
    drawn = [" ".join(page["lines"]) for page in place.drawn()[before:]]
    if state == SHOWN:
        as_picture = tool == "glasses:show_image" and downgrade is None
        assert drawn == ([""] if as_picture else [drawn[0]]), (tool, drawn)
        assert as_picture or WORDS[tool] in drawn[0], (tool, drawn)
        assert len(place.spoken()) == streams, f"{tool}: nothing is spoken beside the page"
    else:
        assert drawn == [], (tool, drawn)
        assert len(place.spoken()) == streams + 1
        assert place.spoken()[-1]["samples"] > 0


@pytest.mark.requirement("I13-ladders")
async def test_with_neither_display_nor_speaker_the_tools_say_what_is_missing(tmp_path):
    async with world(tmp_path, "mock:full") as place:
        await place.switch_glasses_on(speed=8.0)
        await place.start_daemon()
        await place.ready()
        facts = {"display": False, "speaker": False}
        place.mock.glasses.set_capabilities(facts)
        await able(place, facts)
        for tool, args in (*TEXT.items(), *SAY.items()):
            refused = await place.call(tool, args)
            assert refused.error.code is ErrorCode.HARDWARE_MISSING, tool
            assert "speaker" in refused.error.message, refused.error.message
            assert "display" in refused.error.message, refused.error.message


@pytest.mark.requirement("I13-ladders")
async def test_a_g1_shows_what_was_to_be_said(tmp_path):
    async with world(tmp_path, "sim:even_g1", glasses={"model": "even_g1"}) as place:
        await place.switch_glasses_on(mtu=251)
        await place.start_daemon()
        await place.ready()
        answer = await place.call("glasses:say", {"text": "Turn left"}, origin=CallOrigin.MCP)
        assert answer.meta["delivery"] == {"state": "acknowledged", "downgrade": "speech→display"}
        await place.lens_shows("Turn left")


# ------------------------------------------------------------------ who sees an answer


@pytest.mark.requirement("I13-present", "I13-said")
async def test_an_agents_look_ups_are_silent_and_its_words_are_not(tmp_path):
    async with world(tmp_path, "mock:full") as place:
        await place.switch_glasses_on(speed=8.0)
        await place.start_daemon()
        await place.ready()
        await place.call("notes:add", {"text": "the car is on level three"}, present=False)
        assert place.drawn() == [], "a call that wants silence shows nothing"
        for tool, args in (
            ("notes:list", {}),
            ("notes:search", {"query": "car"}),
            ("kb:search", {"query": "car"}),
            ("registry:invoke", {"tool": "notes:list", "args": {}}),
        ):
            found = await place.call(tool, args, origin=CallOrigin.MCP)
            assert found.ok, found.error
            assert (found.meta["delivery"], place.drawn(), place.spoken()) == ("none", [], [])

        shown = await place.call("notes:list", {}, origin=CallOrigin.MCP, present=True)
        assert shown.meta["delivery"] == "spoken"
        await place.lens_shows("level three")
        before = len(place.drawn())
        assert (await place.call("notes:list", {}, mode=Mode.VOICE)).meta["delivery"] != "none"
        assert len(place.drawn()) > before, "what the wearer asks for is shown"

        task = asyncio.ensure_future(
            place.call(
                "glasses:wait_for_event",
                {"events": ["said"], "after": 0, "timeout_s": 20},
                origin=CallOrigin.MCP,
            )
        )
        await place.wearer_says("the blue one")
        said = await task
        assert (said.data["event"], said.data["text"]) == ("said", "the blue one")
        place.wearer_does(Gesture.NOD)
        nod = await place.call(
            "glasses:wait_for_event", {"after": said.data["after"]}, origin=CallOrigin.MCP
        )
        assert nod.data["event"] == "nod"


@pytest.mark.requirement("I13-said")
async def test_typed_words_count_as_said_unless_the_session_is_private(tmp_path):
    async with world(tmp_path, "mock:display") as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()

        async def typed(words):
            command = ["say", words, "--socket", str(place.socket)]
            await asyncio.to_thread(main, command)

        async def heard():
            args = {"events": ["said"], "after": 0, "timeout_s": 0.1}
            found = await place.call("glasses:wait_for_event", args, origin=CallOrigin.MCP)
            return found.data.get("text")

        place.daemon.session.restore({"suppress_transcript": True})
        await typed("my secret")
        await place.wearer_says("my other secret")
        await place.heard("call.answered")
        assert await heard() is None
        place.daemon.session.restore({})
        await typed("the red one")
        assert await heard() == "the red one"


@pytest.mark.requirement("I13-present")
async def test_the_cloud_says_whether_the_wearer_sees_what_it_looks_up(tmp_path, cloud):
    may = {"policy": {"cloud_may": ["notes:*"]}}
    async with whole_world(tmp_path, cloud=cloud, **may) as place:
        await place.call("notes:add", {"text": "the car is on level three"}, present=False)
        asked = {"edge_id": place.edge_id, "tool": "notes:list", "args": {}}
        for present, delivery in ((None, "none"), (False, "none"), (True, "shown")):
            body = asked | ({} if present is None else {"present": present})
            answer = await place.ask_cloud("POST", "/devcloud/invoke", body)
            assert (answer["ok"], answer["meta"]["delivery"]) == (True, delivery), answer
        assert [page["lines"] for page in place.drawn()] == [["• the car is on level three"]]
