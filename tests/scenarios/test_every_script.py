"""Story: text of every script stands on the lens as it was drawn, pixel for pixel; what cannot be
drawn is named, and there is no yes to boxes.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

from edge.core.results import LayoutKind, Rendering
from edge.display.drawn_text import DrawnText
from edge.display.fallback import make_readable
from edge.display.lens import LensWriter
from edge.display.lens_plan import plan
from edge.display.typesetting.fonts import family, find_fonts, font_folders
from firmware_bridge.codecs.even_g1 import commands
from firmware_bridge.messages import ShowPage
from firmware_bridge.sim.lens import SimLens
from tests.scenarios.world import until, world

pytest.importorskip("uharfbuzz", reason="pip install 'glassd[scripts]'")
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]

SENTENCES = json.loads(
    (Path(__file__).parents[1] / "unit/display/sentences.json").read_text(encoding="utf-8")
)
PARTS = 4
"""Into which they are divided: a test has a minute, also on a busy machine."""
TOOL = "glasses:show_text"
HEBREW = "הרכבת לחיפה יוצאת בשעה 15:30"
UNDRAWABLE = "𑻷"
"""A Makasar sign: it is in no Noto Sans, and no voice says signs."""


async def alone(place):
    await place.switch_glasses_on(mtu=251)
    await place.start_daemon()
    await place.ready()


def told(response):
    """How far a delivery got, and why not further."""
    said = response.meta["delivery"]
    return (said, "") if isinstance(said, str) else (said["state"], said.get("reason", ""))


def sides(place):
    return list(place.mock.glasses.lenses.values())


def image_of(sheet, like):
    """The framebuffer of a lens on which this page was put directly."""
    lens = SimLens(like.width, like.height, like.bpp, like.rows)
    lens._font, lens._margin = like._font, like._margin
    assert lens.show(ShowPage("page", lines=sheet.lines, tiles=sheet.tiles)).clipped == 0
    return lens.image.tobytes()


async def shows(place, image, what):
    await until(lambda: all(lens.image.tobytes() == image for lens in sides(place)), what)


async def says(place, line):
    """Wait until the daemon knows that this is the first line on the lens."""
    await until(lambda: place.daemon.stage.lens()["lines"][:1] == [line], line)


@pytest.mark.requirement("I13-scripts", "I13-lost-named")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("model", ["mock:full", "sim:even_g1"])
async def test_sentences_of_all_scripts_are_on_the_lens_as_they_were_drawn(
    tmp_path, monkeypatch, model, part
):
    monkeypatch.setattr(LensWriter, "_gap_s", lambda _lens: 0.0)  # panels need 0.1 s for a page
    monkeypatch.setattr(commands, "PICTURE_GAP_S", 0.0)
    every = [(group, text) for group, texts in SENTENCES.items() for text in texts]
    assert (len(every) >= 102, len(SENTENCES) >= 32) == (True, True)
    every = every[part::PARTS]
    readable = "acknowledged" if "g1" in model else "shown"
    named = {"glasses": {"model": "even_g1"}} if "g1" in model else {}
    whole, drawn = 0, DrawnText()
    async with world(tmp_path, model, **named) as place:
        await alone(place)
        known = place.daemon.link.status().capabilities
        for group, text in every:
            response = await place.call(TOOL, {"text": text, "duration_s": 600})
            state, reason = told(response)
            wanted = Rendering(LayoutKind.TEXT_WALL, text)
            planned = await plan(wanted, known, drawn)
            if planned.lost:
                _, readable = await make_readable(wanted, planned, known, drawn, has_voice=True)
            page = (readable if planned.lost else planned).sheets[0]
            await shows(place, image_of(page, sides(place)[0]), f"{group}: {text}")
            whole += not planned.lost
            assert state == ("acknowledged" if planned.lost else readable), (group, text)
            assert all(ch in reason for ch in planned.lost), (group, text, reason)
            assert planned.lost or "not readable" not in reason, (group, text, reason)
            place.tap()
            await until(lambda: not any(lens.lit for lens in sides(place)), "the next page's turn")
    await drawn.close()
    assert whole / len(every) >= 0.96


@pytest.mark.requirement("I13-mixed-page")
async def test_on_a_g1_a_page_with_an_emoji_is_a_picture_and_the_next_page_is_text(tmp_path):
    async with world(tmp_path, "sim:even_g1", glasses={"model": "even_g1"}) as place:
        await alone(place)
        lines = ["Well done 👍", *(f"Line {n}" for n in range(2, 8))]
        assert told(await place.call(TOOL, {"text": "\n".join(lines)}))[0] == "acknowledged"
        await until(lambda: all(lens.lit > 500 for lens in sides(place)), "a picture on both sides")
        assert [lens.text() for lens in sides(place)] == [[], []]
        assert place.daemon.stage.lens()["lines"] == [*lines[:4], "Line 5  1/2"]
        place.tap()
        await until(
            lambda: [lens.text()[:1] for lens in sides(place)] == [["Line 6"]] * 2,
            "text on both sides",
        )


@pytest.mark.requirement("I13-own-glyphs")
@pytest.mark.parametrize("group", ["Chinese, simplified", "Chinese, traditional", "Japanese"])
async def test_a_g1_gets_the_characters_that_it_draws_itself_as_text(tmp_path, group):
    """A page is 390 bytes at most, the line ends included: that ends it before its five rows do."""
    text = "".join(SENTENCES[group]) * 2
    async with world(tmp_path, "sim:even_g1", glasses={"model": "even_g1"}) as place:
        await alone(place)
        assert told(await place.call(TOOL, {"text": text, "duration_s": 600}))[0] == "acknowledged"
        await until(lambda: all(lens.text() for lens in sides(place)), "text on both sides")
        seen = ""
        while True:
            left, right = sides(place)
            await until(lambda: left.text() == right.text(), "the same on both sides")  # noqa: B023 - awaited here
            rows = place.lens()
            assert len("\n".join(rows).encode()) <= 390
            seen += "".join(rows)
            number, _, pages = seen.rpartition(" ")[2].partition("/")
            if number == pages or not number.isdigit():
                break
            place.tap()
            await until(lambda rows=rows: place.lens() not in (rows, []), "the next page")
        assert re.sub(r" +\d/\d|\s", "", seen) == re.sub(r"\s", "", text).replace("℃", "°C")


@pytest.mark.requirement("I13-question-drawn")
@pytest.mark.parametrize("model", ["mock:full", "sim:even_g1"])
async def test_a_question_in_hebrew_is_answered_by_a_tap_on_a_page_of_ours(tmp_path, model):
    named = {"glasses": {"model": "even_g1"}} if "g1" in model else {}
    async with world(tmp_path, model, **named) as place:
        await alone(place)
        place.start_call("glasses:ask", {"question": "להתקשר לרופא?"})
        await says(place, "להתקשר לרופא?")
        assert not any(lens.asking for lens in sides(place)), "not as a question of the glasses"
        assert all(lens.lit > 300 for lens in sides(place))
        await place.answer_question()
        assert (await place.answer()).data


@pytest.mark.requirement("I13-readable")
@pytest.mark.parametrize("model", ["mock:full", "mock:audio", "sim:even_g1"])
async def test_a_question_with_one_lost_character_is_refused_and_says_which(tmp_path, model):
    named = {"glasses": {"model": "even_g1"}} if "g1" in model else {}
    async with world(tmp_path, model, **named) as place:
        await alone(place)
        asked = await place.call("glasses:ask", {"question": f"Send {UNDRAWABLE}?", "wait_s": 5})
        assert not asked.ok
        why = UNDRAWABLE if model != "mock:audio" else "cannot be spoken"
        assert why in asked.error.message
        assert not place.daemon.stage._prompter.active
        if model != "mock:audio":
            await place.lens_shows("There was a question that these glasses cannot ask.")


@pytest.mark.requirement("I13-drawn-returns")
async def test_a_drawn_page_returns_with_a_restarted_daemon(tmp_path):
    async with world(tmp_path, "mock:full") as place:
        await alone(place)
        await place.call(TOOL, {"text": f"{HEBREW}\n" * 4})
        (lens,) = sides(place)
        before = lens.image.tobytes()
        await place.stop_daemon()
        lens.clear()
        await place.start_daemon()
        await until(lambda: lens.image.tobytes() == before, "the page")
        await says(place, HEBREW)


async def test_text_is_drawn_with_the_fonts_of_the_configured_folder(tmp_path):
    """One that calls itself Hebrew and is Thai: what it draws instead of Hebrew are boxes."""
    wheels = {family(font): font for font in find_fonts(font_folders())}
    if "NotoSansThai" not in wheels:
        pytest.skip("no Noto fonts: pip install 'glassd[scripts]'")
    own = tmp_path / "fonts"
    own.mkdir()
    for name in wheels:  # of the system's Hebrew fonts none may stand in
        if "Hebrew" in name or name == "NotoSans":
            shutil.copy(wheels["NotoSansThai"], own / f"{name}-Regular.ttf")
    for fonts in ([], [str(own)]):
        async with world(
            tmp_path / str(len(fonts)), "mock:full", display={"fonts": fonts}
        ) as place:
            place.folder.mkdir()
            await place.switch_glasses_on()
            await place.start_daemon()
            await place.ready()
            response = await place.call("glasses:show_text", {"text": HEBREW})
            assert (told(response)[0] == "shown") is not bool(fonts)
