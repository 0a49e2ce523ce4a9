"""Story: an agent uses the glasses as tools: shows a card and a picture, asks, waits for a tap.
One daemon for all.
"""

import base64
import io

import pytest
import pytest_asyncio
from PIL import Image

from firmware_bridge.messages import Gesture
from tests.scenarios.world import world
from tools_cache.api.tool import CallOrigin

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(tmp_path_factory):
    async with world(tmp_path_factory.mktemp("tools"), "mock:full") as place:
        await place.switch_glasses_on(speed=8.0)
        await place.start_daemon()
        await place.ready()
        yield place


def picture(width=300, height=200, form="JPEG"):
    """A white square in the middle of the dark."""
    image = Image.new("RGB", (width, height))
    image.paste((255, 255, 255), (width // 4, height // 4, width * 3 // 4, height * 3 // 4))
    out = io.BytesIO()
    image.save(out, form)
    return base64.b64encode(out.getvalue()).decode()


async def as_agent(place, tool, args, **more):
    return await place.call(tool, args, origin=CallOrigin.MCP, **more)


@pytest.mark.requirement("I6-glasses")
async def test_a_card_stands_on_the_lens_line_by_line(place):
    shown = await as_agent(
        place,
        "glasses:show_card",
        {"title": "Gate B12", "lines": ["Boarding 14:20", "Seat 17A"], "footer": "on time"},
    )
    assert shown.meta["delivery"] == "shown"
    assert place.lens()[:4] == ["Gate B12", "Boarding 14:20", "Seat 17A", "on time"]


@pytest.mark.requirement("I6-glasses", "I6-show-image")
async def test_a_photograph_is_drawn_on_the_lens_its_caption_beside_it(place):
    shown = await as_agent(
        place,
        "glasses:show_image",
        {"image": picture(), "alt": "a square", "caption": "the way in", "duration_s": 60},
    )
    assert shown.meta["delivery"] == "shown", shown
    assert place.lens() == ["the way in"]
    lit = place.mock.glasses.lens.image.point(lambda value: 255 if value else 0)
    assert lit.crop((51, 34, 153, 102)).getextrema() == (255, 255), (
        "the square of a picture of 204 × 136"
    )
    assert lit.crop((0, 0, 40, 136)).getbbox() is None
    drawn = place.daemon.stage.lens(exact=True)["drawn"]
    assert [(t["x"], t["width"], t["height"]) for t in drawn["tiles"]] == [(0, 204, 136)]


async def test_what_is_no_picture_leaves_the_lens_alone(place):
    await as_agent(place, "glasses:show_text", {"text": "still here"})
    refused = await as_agent(
        place,
        "glasses:show_image",
        {"image": base64.b64encode(b"no picture at all").decode(), "alt": "x"},
    )
    assert (refused.error.code, refused.meta["delivery"]) == ("INVALID_ARGUMENTS", "none")
    assert "neither a PNG nor a JPEG" in refused.error.message
    assert place.lens() == ["still here"]


@pytest.mark.requirement("I6-ask")
async def test_a_tap_is_the_answer_of_the_very_call_that_asked(place):
    await as_agent(place, "glasses:show_text", {"text": "what was read"})
    place.start_call(
        "glasses:ask",
        {"question": "Which?", "choices": ["Tea", "Coffee"], "wait_s": 60},
        origin=CallOrigin.MCP,
    )
    await place.lens_shows("Which?", "Tea (1 of 2)")
    await place.answer_page(Gesture.DOUBLE_TAP)
    await place.lens_shows("Coffee (2 of 2)")
    await place.answer_page(Gesture.TAP)
    assert (await place.answer()).data == {"answer": "Coffee", "number": 2}
    await place.lens_shows("what was read")


@pytest.mark.requirement("I6-ask")
async def test_calling_an_agents_question_off_takes_it_from_the_lens(place):
    await as_agent(place, "glasses:show_text", {"text": "what was read"})
    place.start_call(
        "glasses:ask",
        {"question": "Shall I?", "wait_s": 60},
        origin=CallOrigin.MCP,
        call_id="c-asked",
    )
    await place.lens_shows("Shall I?")
    assert await place.daemon.calls.cancel("c-asked", "the agent thought better of it")
    assert (await place.answer()).error.code == "CANCELLED"
    await place.lens_shows("what was read")


@pytest.mark.requirement("I6-wait")
async def test_an_agent_waits_for_the_wearer_and_misses_nothing_between_two_waits(place):
    none = await as_agent(place, "glasses:wait_for_event", {"timeout_s": 0.01})
    assert none.data["event"] is None
    place.wearer_does(Gesture.HEAD_UP)
    place.wearer_does(Gesture.NOD)
    nod = await as_agent(
        place, "glasses:wait_for_event", {"events": ["nod"], "after": none.data["after"]}
    )
    assert nod.data["event"] == "nod"
    assert nod.meta["delivery"] == "none", "the wearer is not told what the wearer did"
    both = await as_agent(place, "glasses:wait_for_event", {"after": none.data["after"]})
    assert both.data["event"] == "head_up"


@pytest.mark.requirement("I6-glasses")
async def test_the_status_says_what_an_agent_needs_to_know(place):
    data = (await as_agent(place, "glasses:status", {})).data
    assert data["ready"] is True
    assert data["lens"] == {"width": 576, "height": 136, "lines": 5, "bitmap": True}
    assert {"tap", "nod"} <= set(data["gestures"])
    assert data["network"] == {"state": "not configured", "reason": ""}
