"""Story: nobody agrees to what is not before his eyes: not under a notification, not in the
dark, not with the glasses off.
"""

import asyncio

import pytest

from edge.display.prompts import TOO_SOON_S
from edge.tools.user_tools import read
from firmware_bridge.codecs.even_g1.events import REPEAT_S
from firmware_bridge.messages import Gesture, Hiding
from tests.scenarios.test_consent import PAY, SHORT, alone, asked, question_pages, state
from tests.scenarios.test_two_sides import G1, L, R, both_show
from tests.scenarios.world import SOON_S, until, world
from tools_cache.api.tool import CallOrigin

LONG_ENOUGH_S = TOO_SOON_S + 0.3
"""Of taps that answer a question if anything takes them for an answer."""

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOTE = {"title": "Photo", "text": "Tap to see it"}
HIDING = [
    ("glasses:dismiss", {}),
    ("glasses:notify", NOTE),
    ("glasses:set", {"silent": True}),
    ("glasses:set", {"brightness": 0}),
]


async def from_cloud(place, tool, args):
    return await place.call(tool, args, origin=CallOrigin.CLOUD, wait="answer")


def shown_questions(place):
    """The pages of the question `SHORT` that were drawn; an Even G1 gives its pages no names of
    their own.
    """
    return [
        page for page in place.drawn() if any(row.startswith("amount:") for row in page["lines"])
    ]


async def tap_for(place, seconds):
    for _ in range(round(seconds / 0.05)):
        place.mock.glasses.gesture(Gesture.TAP)
        await asyncio.sleep(0.05)


async def answered(place, call):
    """Wait until the answer has reached the call; the lens may be dark a moment before that."""
    async with asyncio.timeout(SOON_S):
        while await state(place, call) == "AWAITING_CONFIRMATION":
            await asyncio.sleep(0.01)


@pytest.mark.requirement("I11-consent-alone")
@pytest.mark.parametrize(("tool", "args"), HIDING)
async def test_nothing_hides_a_question_that_is_on_the_lens(tmp_path, tool, args):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        call, _ = await asked(place, SHORT)
        await place.lens_shows("amount: 1", "tap: yes")
        answer = await from_cloud(place, tool, args)
        assert answer.error is not None, f"{tool} was done; the lens shows {place.lens()}"
        assert (answer.error.code, answer.error.retryable) == ("NOT_ACCEPTED", True)
        assert "amount: 1" in place.lens()
        assert not any(event["event"] in ("notification", "setting") for event in place.shown)
        await place.answer_question(Gesture.DOUBLE_TAP)
        await until(lambda: "amount: 1" not in place.lens(), "the question is over")
        await answered(place, call)
        assert (await from_cloud(place, tool, args)).ok


@pytest.mark.requirement("I11-consent-alone")
@pytest.mark.parametrize(
    ("hide", "show"),
    [
        ({"silent": True}, {"silent": False}),
        ({"brightness": 0}, {"brightness": 40}),
        ({"brightness": 0}, {"auto": True}),
    ],
)
async def test_nothing_is_asked_on_a_lens_that_was_made_dark(tmp_path, hide, show):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        assert (await from_cloud(place, "glasses:set", hide)).ok
        call, _ = await asked(place, SHORT)
        await tap_for(place, LONG_ENOUGH_S)
        assert not shown_questions(place)
        assert await state(place, call) == "AWAITING_CONFIRMATION"
        refused = await place.call(PAY, SHORT, origin=CallOrigin.CLOUD)
        assert refused.error.code == "SESSION_INACTIVE"
        assert "silent mode" in refused.error.message or "brightness" in refused.error.message
        assert (await from_cloud(place, "glasses:set", show)).ok
        await asked(place, {"amount": 2})
        await place.lens_shows("amount: 2", "tap: yes")


@pytest.mark.requirement("I11-consent-hidden")
@pytest.mark.parametrize("by", [Hiding.SILENT, Hiding.DASHBOARD, Hiding.LOOKED_UP])
async def test_a_question_that_the_wearer_hides_takes_no_answer_and_is_asked_again(tmp_path, by):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        call, _ = await asked(place, SHORT)
        await place.lens_shows("amount: 1", "tap: yes")
        await until(place._may_answer, "a question that may be answered")
        place.mock.glasses.hide(by, hidden=True)
        await tap_for(place, LONG_ENOUGH_S)
        assert await state(place, call) == "AWAITING_CONFIRMATION", f"answered, although: {by}"
        asked_before = len(shown_questions(place))
        place.mock.glasses.hide(by, hidden=False)
        await until(lambda: len(shown_questions(place)) > asked_before, "the question again")
        await place.answer_question()
        await answered(place, call)


@pytest.mark.requirement("I11-consent-hidden")
@pytest.mark.parametrize("arms", [(R,), (R, L)])
async def test_a_question_is_drawn_again_after_a_double_tap_too_early_to_be_a_no(
    tmp_path, monkeypatch, arms
):
    """It takes the page off the lens. One on the other arm soon after may count as the same."""
    for module in ("edge.display.prompts", "tests.scenarios.world"):
        monkeypatch.setattr(f"{module}.TOO_SOON_S", 40.0)
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        call, _ = await asked(place, SHORT)
        for arm in arms:
            await both_show(place, "amount: 1")
            asked_before = len(shown_questions(place))
            assert not place._may_answer(), "this machine is too slow for an early double tap"
            assert place.mock.glasses.gesture(Gesture.DOUBLE_TAP, side=arm)
            assert not place.lens(), "a double tap leaves the page"
            await asyncio.sleep(2 * REPEAT_S)  # no wearer makes another sooner
            place.tap()
            await until(lambda before=asked_before: len(shown_questions(place)) > before, "again")
        assert await state(place, call) == "AWAITING_CONFIRMATION"
        monkeypatch.undo()
        await both_show(place, "tap: yes")
        await place.answer_question()
        await answered(place, call)


@pytest.mark.requirement("I11-consent-hidden")
@pytest.mark.parametrize("by", [Hiding.DASHBOARD, Hiding.LOOKED_UP])
async def test_a_question_waits_until_the_glasses_own_dashboard_is_gone(tmp_path, by):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        place.mock.glasses.hide(by, hidden=True)
        await until(lambda: place.daemon.link.status().covered, "covered")
        call, _ = await asked(place, SHORT)
        await tap_for(place, LONG_ENOUGH_S)
        assert not shown_questions(place)
        place.mock.glasses.hide(by, hidden=False)
        await place.lens_shows("amount: 1", "tap: yes")
        await place.answer_question()
        await answered(place, call)


@pytest.mark.requirement("I11-consent-hidden")
@pytest.mark.parametrize("who", ["the wearer", "the cloud", "the cloud, dark"])
async def test_a_lens_that_was_dark_before_the_daemon_started_is_known_to_be(tmp_path, who):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        if who == "the wearer":
            place.mock.glasses.hide(Hiding.SILENT, hidden=True)
        else:
            assert (
                await from_cloud(
                    place,
                    "glasses:set",
                    {"silent": True} if who == "the cloud" else {"brightness": 0},
                )
            ).ok
        await place.stop_daemon()
        await place.start_daemon(policy={"cloud_may": ["*"]})
        place.daemon.own_tools.use(read([place.folder / "tools.d"]))
        await place.ready()
        call, _ = await asked(place, SHORT)
        await tap_for(place, LONG_ENOUGH_S)
        assert await state(place, call) == "AWAITING_CONFIRMATION"
        assert place.daemon.link.status().unseen
        refused = await from_cloud(
            place, PAY, SHORT
        )  # the first question may wait for the lens, and this answer behind it
        assert refused.error.code == "SESSION_INACTIVE"


@pytest.mark.requirement("I11-consent-hidden")
async def test_the_wearer_s_own_word_on_silent_mode_is_the_last(tmp_path):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        assert (await from_cloud(place, "glasses:set", {"silent": True})).ok
        assert place.daemon.link.status().unseen
        place.mock.glasses.hide(Hiding.SILENT, hidden=False)
        await until(lambda: not place.daemon.link.status().unseen, "seen again")
        place.mark()
        assert place.mock.mount.drop()
        await place.heard("glasses.ready")
        assert not place.daemon.link.status().unseen, "silent mode was set again after a reconnect"
        call, _ = await asked(place, SHORT)
        await place.lens_shows("amount: 1", "tap: yes")
        await place.answer_question()
        await answered(place, call)


@pytest.mark.requirement("I11-consent-alone")
async def test_a_question_waits_until_a_notification_has_left_the_lens(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.display.side_commands.NOTIFIED_S", 1.5)
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place, speed=4.0)
        assert (await from_cloud(place, "glasses:notify", NOTE)).ok
        call, _ = await asked(place, SHORT)
        while "Tap to see it" in place.lens():
            assert not shown_questions(place)
            place.tap()
            await asyncio.sleep(0.05)
        assert await state(place, call) == "AWAITING_CONFIRMATION"
        await place.lens_shows("amount: 1", "tap: yes")
        await place.answer_question()
        await answered(place, call)


@pytest.mark.requirement("I11-consent-worn")
@pytest.mark.parametrize(("model", "more"), [("sim:even_g1", G1), ("mock:display", {})])
async def test_glasses_that_are_taken_off_say_no_yes(tmp_path, model, more):
    async with world(tmp_path, model, **more) as place:
        await alone(place)
        if model == "mock:display":
            place.mock.glasses.set_capabilities({"prompt": False})
        call, _ = await asked(place, SHORT)
        await place.lens_shows("amount: 1", "tap: yes")
        place.mock.glasses.set_worn(worn=False)
        await until(lambda: place.daemon.link.status().worn is False, "taken off")
        await tap_for(place, LONG_ENOUGH_S)
        assert await state(place, call) == "AWAITING_CONFIRMATION"
        place.mock.glasses.set_worn(worn=True)
        place.tap()
        await until(lambda: place.daemon.link.status().worn, "put on")
        await asyncio.sleep(0.2)
        assert await state(place, call) == "AWAITING_CONFIRMATION", (
            "who puts glasses on touches them"
        )
        await place.answer_question()
        await answered(place, call)


@pytest.mark.requirement("I11-consent-complete")
async def test_answers_that_go_to_the_tool_with_a_call_are_on_the_lens_too(tmp_path):
    brought = {
        "inputResponses": {
            "sure": {"action": "accept", "content": {"amount": 99999, "to": "mallory"}}
        },
        "requestState": "to=mallory",
    }
    async with world(tmp_path) as place:
        await alone(place)
        _, request = await asked(place, SHORT, input=brought)
        answered = [line for line in request["particulars"] if "given to the tool" in line]
        assert answered == [
            "Answer given to the tool, sure, action: accept",
            "Answer given to the tool, sure, content, amount: 99,999",
            "Answer given to the tool, sure, content, to: mallory",
            "State given to the tool: to=mallory",
        ]
        await place.answer_question()
        shown = " ".join(row for page in question_pages(place) for row in page["lines"]).replace(
            " | ", " "
        )
        assert all(line in shown for line in answered), shown
