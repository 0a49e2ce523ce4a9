"""Story: the wearer agrees in words, reads what became of it, and takes it back with a tap."""

import asyncio
import re

import pytest

from edge.calls import undo
from edge.core.grants import Grant
from edge.core.results import TapOffer
from edge.core.words.text_direction import ISOLATES
from edge.runtime.ids import new_call_id
from edge.tools.user_tools import read
from firmware_bridge.messages import Gesture, ShowPage
from firmware_bridge.sim.lens import SimLens
from tests.scenarios.test_two_sides import G1
from tests.scenarios.world import until, whole_world, world
from tools_cache.api.tool import CallOrigin, ToolCall

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODELS = ["mock:full", "sim:even_g1"]
LUNCH = {"title": "Lunch", "start": "2031-12-01T12:00:00Z", "end": "2031-12-01T13:00:00Z"}
ARCHIVE = """
[[tools]]
name = "archive:purge"
title = "Delete photos"
description = "Removes them for good."
requiresConfirmation = "always"
executionType = "external"
inputSchema = { type = "object", properties = { album = { type = "string" }, before = { type = "string" }, sizes_mb = { type = "array" }, tell = { type = "array" }, note = { type = "string" }, most = { type = "number" }, also_backups = { type = "boolean" }, rules = { type = "array" } } }
"""  # noqa: E501
PURGE = {
    "album": "משפחה",
    "before": "2031-01-01T00:00:00Z",
    "sizes_mb": [1.5, 20000],
    "tell": ["anna@example.org", "דנה כהן", "Dana דנה"],
    "note": "נמחק ב-15:30 עם WhatsApp",
    "most": 4312,
    "also_backups": True,
    "rules": [{"kind": "raw", "keep": None}],
}
WORDS = [
    "Archive: Delete photos?",
    "album: משפחה",
    "before: Mi., 1. Jan. 2031, 01:00 (00:00 UTC)",
    "sizes mb (2):",
    "1. 1,5",
    "2. 20.000",
    "tell (3):",
    "1. anna@example.org",
    "2. דנה כהן",
    "3. Dana דנה",
    "note: (right to left) נמחק ב-15:30 עם WhatsApp",
    "most: 4312",
    "also backups: yes",
    "rules (1):",
    "rules #1, kind: raw",
    "rules #1, keep: nothing",
]


def on(tmp_path, model, **more):
    return world(tmp_path, model, **(G1 if model == "sim:even_g1" else {}), **more)


async def started(place, folder=None, **sections):
    await place.switch_glasses_on(mtu=251)
    await place.start_daemon(**sections)
    if folder is not None:
        tools = place.folder / "tools.d"
        tools.mkdir()
        (tools / "tools.toml").write_text(folder)
        place.daemon.own_tools.use(read([tools]))
    await place.ready()


async def begin(place, tool, args, **more):
    call = ToolCall(
        call_id=new_call_id(place.daemon.clock.wall()),
        tool=tool,
        args=args,
        origin=CallOrigin.CLI,
        **more,
    )
    return call, await place.daemon.calls.begin(call)


def sides(place):
    return list(place.mock.glasses.lenses.values())


def image_of(sheet, like):
    """The framebuffer of a lens on which this page alone was put."""
    lens = SimLens(like.width, like.height, like.bpp, like.rows)
    lens._font, lens._margin = like._font, like._margin
    assert lens.show(ShowPage("page", lines=sheet.lines, tiles=sheet.tiles)).clipped == 0
    return lens.image.tobytes()


def lit(place, since=0):
    """The pages that were on the lens."""
    return [page["lines"] for page in place.shown[since:] if page["event"] == "lens"]


# ------------------------------------------------------------------ before the answer


@pytest.mark.requirement("I13-consent-words", "I13-consent-directions", "I11-consent-pages")
@pytest.mark.parametrize("model", MODELS)
async def test_eight_arguments_are_read_in_words_on_the_lens_before_a_yes(tmp_path, model):
    pytest.importorskip("uharfbuzz", reason="pip install 'glassd[scripts]'")
    async with on(tmp_path, model) as place:
        await started(place, ARCHIVE, wearer={"locale": "de-DE", "timezone": "Europe/Berlin"})
        call, asked = await begin(place, "archive:purge", PURGE)
        lines = asked.error.confirmation_request["particulars"]
        assert [line.translate(ISOLATES) for line in lines[:-1]] == WORDS
        assert lines[-1].startswith("archive:purge, from your own tools.")
        prompter = place.daemon.stage._prompter
        await until(lambda: prompter.active and prompter._queue[0].sheets, "the question")
        seen, pages = [], len(prompter._queue[0].sheets)
        for number in range(1, pages + 1):
            sheet = prompter._queue[0].sheets[number - 1]
            image = image_of(sheet, sides(place)[0])
            await until(
                lambda image=image: all(lens.image.tobytes() == image for lens in sides(place)),
                f"page {number} as it was laid out",
            )
            await until(lambda n=number: place.daemon.stage.lens()["page"] == n, "acknowledged")
            *rows, hint = place.daemon.stage.lens()["lines"]
            assert ("tap: yes" in hint) is (number == pages)
            assert not rows[-1].endswith(":"), "a heading comes with its first item"
            seen += rows
            assert (await place.daemon.store.get(call.call_id))["state"] == "AWAITING_CONFIRMATION"
            await place.answer_page(Gesture.TAP)
        text = re.sub(r"\n\| ?", " ", "\n".join(seen)).translate(ISOLATES)
        assert [" ".join(row.split()) for row in text.split("\n")][: len(WORDS)] == WORDS
        await until(lambda: not prompter.active, "answered")
        await place.heard("confirmation.decided", outcome="allowed")


# ------------------------------------------------------------------ after the answer


@pytest.mark.requirement("I13-consent-answered")
@pytest.mark.parametrize("model", MODELS)
async def test_after_a_yes_the_page_from_before_never_comes_between(tmp_path, model):
    async with whole_world(tmp_path, model, **(G1 if model == "sim:even_g1" else {})) as place:
        await place.daemon.stage.tell("The page from before")
        await place.lens_shows("The page from before")
        tool = "com.example.calendar:create_event"
        call, _ = await begin(place, tool, {k: LUNCH[k] for k in ("title", "start")})
        await place.lens_shows("Calendar: Create event?")
        place.mark()
        drawn = len(place.shown)
        await place.answer_question()
        await place.heard("call.completed", call_id=call.call_id, ok=True)
        await place.lens_shows("Lunch")
        pages = lit(place, drawn)
        assert not any("The page from before" in row for rows in pages for row in rows), pages
        assert ["Yes, working…"] in pages, pages


@pytest.mark.requirement("I13-consent-answered")
@pytest.mark.parametrize("model", MODELS)
async def test_after_a_no_one_line_says_that_nothing_was_changed(tmp_path, model):
    async with on(tmp_path, model) as place:
        await started(place, ARCHIVE)
        call, _ = await begin(place, "archive:purge", {"album": "a"})
        await place.lens_shows("Archive: Delete photos?")
        await place.answer_question(Gesture.DOUBLE_TAP)
        assert await place.lens_shows("You said no.") == ["You said no. Nothing was changed."]
        assert not place.spoken()
        await place.heard("call.completed", call_id=call.call_id, ok=False)


@pytest.mark.requirement("I13-consent-answered")
async def test_a_no_at_a_terminal_is_said_on_the_lens(tmp_path):
    async with on(tmp_path, "mock:full") as place:
        await started(place, ARCHIVE)
        call, _ = await begin(place, "archive:purge", {"album": "a"})
        await place.lens_shows("Archive: Delete photos?")
        await place.daemon.calls.decide(call.call_id, allow=False)
        await place.lens_shows("Answered no elsewhere. Nothing was changed.")


# ------------------------------------------------------------------ taking it back


async def offered(place, call):
    """Wait until a tap takes what the result of this call offers."""
    stage, clock = place.daemon.stage, place.daemon.clock

    def counts():
        page = stage._current.now
        if page is None or page.call_id != call.call_id or not page.offers:
            return False
        return page.offered_for_s(clock.boot()) > 0.8

    await until(counts, lambda: f"an offer; on the lens: {place.lens()}")
    place.mark()


async def listed(place, tool, key):
    found = await place.call(tool, {}, present=False)
    return [item["text" if key == "notes" else "label"] for item in found.data[key]]


@pytest.mark.requirement("I13-undo")
@pytest.mark.parametrize("model", MODELS)
async def test_a_tap_takes_a_note_back_once(tmp_path, model):
    async with on(tmp_path, model) as place:
        await started(place)
        await place.call("notes:add", {"text": "milk"})
        place.mark()
        call, _ = await begin(place, "notes:add", {"text": "bread"})
        await place.lens_shows("Noted: bread", "tap to undo")
        await offered(place, call)
        place.tap()
        place.tap()
        await until(lambda: ["Removed: bread"] in lit(place), lambda: f"undone: {lit(place)}")
        assert await listed(place, "notes:list", "notes") == ["milk"]
        done = [h for h in place.happened if h.get("tool") == "notes:remove"]
        assert [h["event"] for h in done].count("call.received") == 1
        assert not [h for h in done if h["event"] == "confirmation.asked"]
        assert place.daemon.calls._undos.take(call.call_id) is None


@pytest.mark.requirement("I13-undo")
async def test_a_tap_takes_a_timer_back(tmp_path):
    async with on(tmp_path, "mock:full") as place:
        await started(place)
        await place.call("timer:start", {"seconds": 900, "label": "rice"})
        call, _ = await begin(place, "timer:start", {"seconds": 600, "label": "tea"})
        await place.lens_shows("tea", "tap to undo")
        await offered(place, call)
        place.tap()
        await place.heard("call.answered", tool="timer:cancel", ok=True)
        await until(lambda: ["Timer 2 cancelled"] in lit(place), lambda: f"undone: {lit(place)}")
        assert await listed(place, "timer:list", "timers") == ["rice"]


@pytest.mark.requirement("I13-undo")
async def test_a_tap_takes_a_calendar_entry_back_without_a_second_question(tmp_path):
    async with on(tmp_path, "mock:full") as place:
        await started(place)
        call, _ = await begin(place, "calendar:create_event", LUNCH)
        await place.lens_shows("Add to calendar?")
        await place.answer_question()
        await place.lens_shows("Lunch", "tap to undo")
        entries = list(place.folder.rglob("*.ics"))
        assert len(entries) == 1
        await offered(place, call)
        place.tap()
        await place.lens_shows("Removed from the calendar: Lunch")
        assert not entries[0].exists()
        assert not [
            h
            for h in place.happened
            if h["event"] == "confirmation.asked" and h["tool"] == "calendar:remove_event"
        ]


@pytest.mark.requirement("I13-undo")
async def test_an_agent_that_removes_a_note_is_asked_for_a_yes(tmp_path):
    async with on(tmp_path, "mock:full") as place:
        await started(place)
        await place.call("notes:add", {"text": "milk"})
        _, asked = await begin(place, "notes:remove", {"id": 1})
        assert asked.error.code == "CONFIRMATION_REQUIRED"
        assert asked.error.confirmation_request["particulars"][:2] == [
            "Remove this note?",
            "note: milk",
        ]
        assert await listed(place, "notes:list", "notes") == ["milk"]


@pytest.mark.requirement("I11-consent-complete")
async def test_an_event_that_is_to_be_removed_is_asked_about_by_its_title(tmp_path):
    async with on(tmp_path, "mock:full") as place:
        await started(place)
        place.start_call("calendar:create_event", LUNCH)
        await place.lens_shows("Add to calendar?")
        await place.answer_question()
        made = (await place.answer()).data
        place.mark()
        _, asked = await begin(place, "calendar:remove_event", {"event_id": made["event_id"]})
        request = asked.error.confirmation_request
        assert request["particulars"][1].startswith("event: Lunch, ")
        await place.lens_shows("Remove from calendar?", "event: Lunch, ")
        assert made["event_id"] not in str(place.drawn())
        await place.answer_question()
        await place.lens_shows("Removed from the calendar: Lunch")


@pytest.mark.requirement("I13-undo")
async def test_a_tap_after_the_time_undoes_nothing(tmp_path, monkeypatch):
    assert TapOffer("tap to undo", 10.0) == undo.OFFER
    monkeypatch.setattr(undo, "OFFER", TapOffer("tap to undo", 1.5))
    async with on(tmp_path, "mock:full") as place:
        await started(place)
        _call, _ = await begin(place, "notes:add", {"text": "bread"})
        await until(lambda: "tap to undo" in str(place.drawn()), "the offer")
        await until(lambda: "tap to undo" not in " ".join(place.lens()), "the offer is over")
        place.mark()
        place.tap()
        await asyncio.sleep(0.5)
        assert await listed(place, "notes:list", "notes") == ["bread"]
        assert not [h for h in place.happened if h["event"] == "offer.taken"]


@pytest.mark.requirement("I13-undo")
async def test_an_undo_that_fails_says_that_the_call_stands(tmp_path):
    async with on(tmp_path, "mock:full") as place:
        await started(place)
        call, _ = await begin(place, "notes:add", {"text": "bread"})
        await place.lens_shows("Noted: bread", "tap to undo")
        await place.daemon.confirmations.grant("local", "notes:remove", _never())
        await offered(place, call)
        place.tap()
        await place.lens_shows("Not undone.")
        assert await listed(place, "notes:list", "notes") == ["bread"]


def _never():
    from edge.core.grants import Granted

    return Granted(Grant.NEVER, "", "this device")


@pytest.mark.requirement("I13-undo")
async def test_an_offer_does_not_survive_a_restart(tmp_path):
    async with on(tmp_path, "mock:full") as place:
        await started(place)
        call, _ = await begin(place, "notes:add", {"text": "bread"})
        await place.lens_shows("Noted: bread", "tap to undo")
        await offered(place, call)
        await place.stop_daemon()
        await place.start_daemon()
        await place.ready()
        await until(lambda: "tap to undo" not in " ".join(place.lens()), "no offer")
        place.tap()
        await asyncio.sleep(0.5)
        assert await listed(place, "notes:list", "notes") == ["bread"]
