"""Story: many share one lens. The framebuffer's log says what the wearer could see, and for how
long; the callers are told the same.
"""

import asyncio

import pytest

from edge.ports import Question, Wait
from edge.runtime.ids import new_call_id
from edge.tools.user_tools import read
from firmware_bridge.messages import Gesture
from tests.scenarios.test_two_sides import G1
from tests.scenarios.world import until, world
from tools_cache.api.tool import CallOrigin, ToolCall, ToolResponse

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("reading_time"),
]
BOTH = pytest.mark.parametrize("model", ["mock:display", "sim:even_g1"])
SEEN = {"mock:display": "shown", "sim:even_g1": "acknowledged"}
"""What glasses can say of a page: a G1 counts no pixels."""
EARLY_S = 0.05
"""The framebuffer changes so long before the glasses have acknowledged it, or more."""
DELETE = "photos:delete"
FOLDER = """
[[tools]]
name = "photos:delete"
description = "Deletes photos."
requiresConfirmation = "always"
executionType = "external"
inputSchema = { type = "object", properties = { album = { type = "string" } } }
"""


class Log(list):
    """What the glasses report, each with its time."""

    def append(self, event):
        super().append({**event, "at": asyncio.get_running_loop().time()})


async def worn(tmp_path, model, place, **more):
    place.shown = Log()
    tools = tmp_path / "tools.d"
    tools.mkdir()
    (tools / "photos.toml").write_text(FOLDER)
    await place.switch_glasses_on(mtu=251, **more)
    await place.start_daemon(policy={"cloud_may": ["*"]})
    place.daemon.own_tools.use(read([tools]))
    await place.ready()


def some_world(tmp_path, model):
    return world(tmp_path, model, **(G1 if model.startswith("sim") else {}))


def frames(place):
    """(time, text) of every change of the framebuffer."""
    log = [event for event in place.shown if event["event"] in ("lens", "prompt")]
    found = [(event["at"], " / ".join(filter(None, event["lines"]))) for event in log]
    before = [None, *(text for _, text in found)]
    return [frame for frame, old in zip(found, before, strict=False) if frame[1] != old]


def history(place):
    return [text for _, text in frames(place)]


def seconds(place, words):
    """How long these words were in the framebuffer."""
    log = frames(place)
    ends = [at for at, _ in log[1:]] + [asyncio.get_running_loop().time()]
    return sum(end - at for (at, text), end in zip(log, ends, strict=True) if words in text)


async def show(place, text, **more):
    """Show a text as an agent does; gives its answer and its call id."""
    args = {"text": text, **more.pop("args", {})}
    call_id = new_call_id(place.daemon.clock.wall())
    call = ToolCall(call_id=call_id, tool="glasses:show_text", args=args, origin=CallOrigin.MCP)
    answer = await place.daemon.calls.call(call, wait=more.pop("wait", Wait.ANSWER))
    return answer.meta["delivery"], call_id


async def delivered(place, call_id, state):
    """Wait until the store says so."""

    async def now():
        delivery = (await place.daemon.store.get(call_id))["delivery"]
        return delivery.get("state") if isinstance(delivery, dict) else delivery

    async with asyncio.timeout(40):
        while (told := await now()) != state:
            await asyncio.sleep(0.05)
    return told


# ------------------------------------------------------------------ results of the same rank


@pytest.mark.requirement("I13-equals-wait")
@BOTH
async def test_five_results_in_a_second_are_each_seen_or_their_callers_hear_that_they_wait(
    tmp_path, model
):
    async with some_world(tmp_path, model) as place:
        await worn(tmp_path, model, place)
        showing = []
        for number in range(5):
            showing.append(asyncio.ensure_future(show(place, f"result number {number}")))
            await asyncio.sleep(0.15)
        told = await asyncio.gather(*showing)
        seen = SEEN[model]
        assert told[0][0] == seen
        for delivery, _ in told[1:]:
            assert delivery == seen or delivery["state"] == "queued", delivery
        assert any(" of " in d["reason"] for d, _ in told if d != seen), "and at which place"
        await until(lambda: "number 4" in history(place)[-1], lambda: f"all five: {history(place)}")
        for number in range(4):
            assert seconds(place, f"number {number}") >= 1.5 - EARLY_S, history(place)
        for _, call_id in told:
            await delivered(place, call_id, seen)


@pytest.mark.requirement("I13-equals-wait")
@BOTH
async def test_a_tap_passes_on_to_the_next_at_once_and_what_was_tapped_was_shown(tmp_path, model):
    async with some_world(tmp_path, model) as place:
        await worn(tmp_path, model, place)
        delivery, first = await show(place, "the first", args={"duration_s": 60})
        waits, _ = await show(place, "the second")
        assert (delivery, waits["state"]) == (SEEN[model], "queued")
        place.tap()
        await place.lens_shows("the second")
        await delivered(place, first, SEEN[model])
        assert "the first" not in " ".join(place.lens())


@pytest.mark.requirement("I13-cut-is-superseded")
@BOTH
async def test_a_page_that_is_cut_at_once_ends_superseded(tmp_path, model):
    async with some_world(tmp_path, model) as place:
        await worn(tmp_path, model, place)
        place.mark()
        delivery, first = await show(place, "the first")
        assert delivery == SEEN[model]
        urgent = {"display": {"text": "the house is on fire", "priority": "urgent"}}
        report = await place.daemon.stage.present("u", ToolResponse(data="", render=urgent))
        assert report.state == SEEN[model]
        await place.heard("delivery", call_id=first)
        await delivered(place, first, "superseded")
        final = await place.daemon.store.get(first)
        assert final["delivery"]["reason"] == "by something newer"
        assert seconds(place, "the first") < 1.5


# ------------------------------------------------------------------ under


@pytest.mark.requirement("I13-under")
@BOTH
async def test_a_long_page_returns_after_a_short_one_with_the_time_it_had_left(tmp_path, model):
    async with some_world(tmp_path, model) as place:
        await worn(tmp_path, model, place)
        _, long = await show(place, "a long story", args={"duration_s": 6}, wait=Wait.DELIVERY)
        await show(place, "short news", args={"duration_s": 2})
        await until(lambda: len(history(place)) >= 4, lambda: f"dark again: {history(place)}")
        await until(lambda: place.lens() == [], "dark")
        assert [t for t in history(place) if t] == ["a long story", "short news", "a long story"]
        assert seconds(place, "a long story") >= 6 - EARLY_S
        await delivered(place, long, SEEN[model])


@pytest.mark.requirement("I13-under")
async def test_what_lies_under_is_gone_after_the_lens_was_cleared(tmp_path):
    async with world(tmp_path) as place:
        await worn(tmp_path, "mock:display", place)
        await show(place, "a long story", args={"duration_s": 60}, wait=Wait.DELIVERY)
        await show(place, "short news", args={"duration_s": 2}, wait=Wait.DELIVERY)
        assert (await place.call("glasses:clear")).ok
        await until(lambda: place.lens() == [], "dark")
        await asyncio.sleep(1.0)
        assert history(place)[-2:] == ["short news", ""]


# ------------------------------------------------------------------ calls that take time


@pytest.mark.requirement("I13-mark")
@BOTH
async def test_a_slow_call_is_marked_in_the_corner_of_what_is_being_read(tmp_path, model):
    async with some_world(tmp_path, model) as place:
        await worn(tmp_path, model, place)
        await show(place, "a long story\nin two lines", args={"duration_s": 60})
        call_id = new_call_id(place.daemon.clock.wall())
        stage = place.daemon.stage
        await stage.tell("Working…", call_id=call_id, brief=True, mark=True)
        await until(lambda: "Working" in " ".join(place.lens()), lambda: f"{place.lens()}")
        assert place.lens()[:2] == ["a long story", "in two lines"]
        stage.ended(call_id)
        await until(lambda: place.lens() == ["a long story", "in two lines"], place.lens)
        assert not [text for text in history(place) if text and "a long story" not in text]


@pytest.mark.requirement("I13-silent-text")
async def test_a_page_that_is_not_spoken_lets_a_story_go_on(tmp_path):
    async with world(tmp_path, "mock:full") as place:
        await worn(tmp_path, "mock:full", place, speed=2.0)
        story = "This is a rather long story that goes on and on for quite a while, as it must."
        asking = asyncio.ensure_future(place.call("glasses:say", {"text": story}))
        await place.heard("call.received")
        await until(lambda: place.daemon.stage._speech.speaking, "the story is told")
        await show(place, "a page")
        await place.lens_shows("a page")
        assert (await asking).meta["delivery"] == "spoken"
        (heard,) = place.spoken()
        assert heard["flushed"] is False


# ------------------------------------------------------------------ questions


async def asked(place):
    call = ToolCall(
        call_id=new_call_id(place.daemon.clock.wall()),
        tool=DELETE,
        args={"album": "Family"},
        origin=CallOrigin.CLI,
    )
    answer = await place.daemon.calls.begin(call)
    assert answer.error.code == "CONFIRMATION_REQUIRED", answer.error
    return call


@pytest.mark.requirement("I13-after-the-tap")
@BOTH
async def test_after_a_yes_the_lens_says_so_until_the_result(tmp_path, model):
    async with some_world(tmp_path, model) as place:
        await worn(tmp_path, model, place)
        await show(place, "the page before", args={"duration_s": 60}, wait=Wait.DELIVERY)
        call = await asked(place)
        await place.lens_shows("Family", "tap: yes")
        await place.answer_question()
        await place.lens_shows("Yes, working")
        done = ToolResponse(data="42 photos are gone")
        for _ in range(400):
            taken = await place.daemon.calls.submit(
                call.call_id, done, user_id=call.user_id, session=call.session
            )
            if taken.name == "TAKEN":
                break
            await asyncio.sleep(0.05)
        await place.lens_shows("42 photos are gone")
        await place.lens_shows("the page before")
        log = [text for text in history(place) if text]
        question = max(n for n, text in enumerate(log) if "tap: yes" in text)
        result = "Delete / 42 photos are gone"
        assert log[question + 1 :] == ["Yes, working…", result, "the page before"]


@pytest.mark.requirement("I13-after-the-tap")
@BOTH
async def test_after_a_no_one_short_line_is_shown_and_then_the_page_before(tmp_path, model):
    async with some_world(tmp_path, model) as place:
        await worn(tmp_path, model, place)
        await show(place, "the page before", args={"duration_s": 60}, wait=Wait.DELIVERY)
        await asked(place)
        await place.lens_shows("Family", "tap: yes")
        await place.answer_question(Gesture.DOUBLE_TAP)
        await place.lens_shows("You said no.")
        await place.lens_shows("the page before")
        log = [text for text in history(place) if text]
        question = max(n for n, text in enumerate(log) if "tap: yes" in text)
        assert [text[:12] for text in log[question + 1 :]] == ["You said no.", "the page bef"]


@pytest.mark.requirement("I13-questions-once")
async def test_questions_are_drawn_once_on_two_sides(tmp_path):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await worn(tmp_path, "sim:even_g1", place)
        stage, drawn = place.daemon.stage, []
        show_page = stage._lens.show

        async def noted(scene, sheets, number):
            drawn.append(scene)
            return await show_page(scene, sheets, number)

        stage._lens.show = noted
        for number, gesture in enumerate([Gesture.TAP, Gesture.DOUBLE_TAP] * 2):
            asking = asyncio.ensure_future(stage.ask(Question(f"q{number}", "Sure?", 30.0)))
            await place.answer_question(gesture)
            await asking
        assert drawn == ["q0", "q1", "q2", "q3"]
