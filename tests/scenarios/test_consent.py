"""Story: nothing runs on a yes to what the wearer has not seen, whatever a tool, an agent or
the cloud makes of the question.
"""

import asyncio
import re

import pytest

from edge.runtime.ids import new_call_id
from edge.tools.user_tools import read
from firmware_bridge.messages import Gesture
from tests.scenarios.test_two_sides import G1
from tests.scenarios.world import until, world
from tools_cache.api.tool import CallOrigin, ToolCall

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAY = "bank:pay"
FOLDER = """
[[tools]]
name = "bank:pay"
description = "Pays somebody."
requiresConfirmation = "always"
executionType = "external"
inputSchema = { type = "object", properties = { amount = { type = "number" }, to = { type = "string" }, iban = { type = "string" }, note = { type = "string" } } }
"""  # noqa: E501
PAYMENT = {
    "note": "for lunch",
    "memo": "thanks",
    "amount": 99999,
    "to": "mallory",
    "iban": "DE00 1234",
    "express": True,
    "items": [{"sku": "gold", "n": 900}],
}
SEEN = [
    "amount: 99,999",
    "to: mallory",
    "iban: DE00 1234",
    "note: for lunch",
    "memo (not declared): thanks",
    "express (not declared): yes",
    "items (1) (not declared):",
    "items #1, sku (not declared): gold",
    "items #1, n (not declared): 900",
]
SHORT = {"amount": 1}


async def alone(place, **more):
    tools = place.folder / "tools.d"
    tools.mkdir()
    (tools / "bank.toml").write_text(FOLDER)
    await place.switch_glasses_on(**more)
    await place.start_daemon(policy={"cloud_may": ["*"]})
    place.daemon.own_tools.use(read([tools]))
    await place.ready()


async def asked(place, args, **more):
    call = ToolCall(
        call_id=new_call_id(place.daemon.clock.wall()),
        tool=PAY,
        args=args,
        origin=CallOrigin.CLI,
        **more,
    )
    answer = await place.daemon.calls.begin(call)
    assert answer.error.code == "CONFIRMATION_REQUIRED", answer.error
    return call, answer.error.confirmation_request


async def state(place, call):
    return (await place.daemon.store.get(call.call_id))["state"]


def question_pages(place):
    assert place.model != "sim:even_g1", "its pages have no names: use `shown_questions`"
    return [page for page in place.drawn() if page["scene"].endswith("/confirm")]


@pytest.mark.requirement("I11-consent-complete", "I11-consent-pages", "I11-consent-everywhere")
@pytest.mark.parametrize("model", ["mock:display", "sim:even_g1"])
async def test_every_argument_is_on_the_lens_before_a_tap_is_a_yes(tmp_path, model):
    async with world(tmp_path, model, **(G1 if model == "sim:even_g1" else {})) as place:
        await alone(place)
        call, request = await asked(place, PAYMENT)
        assert request["particulars"][1:-1] == SEEN
        await place.lens_shows("?", "amount: 99,999", "tap: next", "1/")
        for gestures in range(60):
            shown = re.sub(
                r"\s+\| ",
                " ",
                " ".join(
                    row for page in place.shown if page["event"] == "lens" for row in page["lines"]
                ),
            )
            if all(line in shown for line in SEEN) and "tap: yes" in " ".join(place.lens()):
                break
            assert await state(place, call) == "AWAITING_CONFIRMATION", (
                f"it ran after {gestures} taps, before all was seen: {shown}"
            )
            place.tap()
            await asyncio.sleep(0.2)
        assert await state(place, call) == "AWAITING_CONFIRMATION"
        await place.answer_question()
        await until(lambda: not place.daemon.stage._prompter.active, "answered")
        assert await state(place, call) != "AWAITING_CONFIRMATION"


@pytest.mark.requirement("I11-consent-early")
@pytest.mark.parametrize("native", [True, False])
async def test_early_taps_run_nothing_and_the_question_stays(tmp_path, native):
    async with world(tmp_path) as place:
        await alone(place)
        place.mock.glasses.set_capabilities(
            {"prompt": native, "display.lines": 7, "display.height": 192}
        )
        call, _ = await asked(place, SHORT)
        await place.lens_shows("amount: 1", "tap: yes")
        asking, clock = place.daemon.stage._prompter._queue[0], place.daemon.clock
        # The lens shows it before the daemon knows that. After half a second a slow machine may
        # take the tap for one that counts.
        while not asking.since or clock.boot() - asking.since < 0.5:
            place.tap()
            await asyncio.sleep(0.05)
            assert await state(place, call) == "AWAITING_CONFIRMATION"
        await place.answer_question()
        assert await state(place, call) != "AWAITING_CONFIRMATION"


@pytest.mark.requirement("I11-consent-pages")
async def test_a_lost_link_begins_again_at_the_first_page(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        call, _ = await asked(place, PAYMENT)
        await place.lens_shows("1/")
        await place.answer_page(Gesture.TAP)
        await place.lens_shows("2/")
        place.mark()
        assert place.mock.mount.drop()
        await place.heard("glasses.ready")
        await until(lambda: question_pages(place)[-1]["page"] == 1, "the first page again")
        assert await state(place, call) == "AWAITING_CONFIRMATION"


@pytest.mark.requirement("I11-consent-visible")
async def test_a_key_with_line_ends_forges_no_line(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        await asked(
            place, {"to: mum\namount: 1 EUR\ntap: yes · double tap: no": "x", "amount": 99999}
        )
        await place.answer_question(Gesture.DOUBLE_TAP)
        rows = [row for page in question_pages(place) for row in page["lines"]]
        assert not any(row.startswith(("to: mum", "amount: 1 EUR")) for row in rows)
        assert any(row.startswith("amount: 99,999") for row in rows)


@pytest.mark.requirement("I11-consent-pages", "I11-consent-unreadable")
@pytest.mark.parametrize(
    ("args", "why"),
    [({"note": "word " * 3000}, "20 pages"), ({"to": "𗀀𗀁"}, "not readable on this lens")],
)
async def test_what_the_lens_cannot_show_whole_is_not_asked_there(tmp_path, args, why):
    async with world(tmp_path) as place:
        await alone(place)
        call, _ = await asked(place, args)
        assert not place.lens()
        assert await state(place, call) == "AWAITING_CONFIRMATION", "a terminal may still decide"
        answer = await place.call(PAY, args, origin=CallOrigin.CLOUD)
        assert answer.error.code == "SESSION_INACTIVE"
        assert why in answer.error.message


@pytest.mark.requirement("I11-consent-spoken")
async def test_without_a_lens_all_of_it_is_spoken_before_a_press_is_a_yes(tmp_path):
    async with world(tmp_path, "mock:audio") as place:
        await alone(place, speed=4.0)
        call, _ = await asked(place, SHORT)
        await until(lambda: place.mock.glasses.speaker.playing, "it speaks")
        while not place.spoken():
            place.wearer_does(Gesture.BUTTON)
            if not place.spoken():
                assert await state(place, call) == "AWAITING_CONFIRMATION"
            await asyncio.sleep(0.1)
        await place.answer_question(Gesture.BUTTON)
        assert await state(place, call) != "AWAITING_CONFIRMATION"
        assert place.spoken()[0]["flushed"] is False
