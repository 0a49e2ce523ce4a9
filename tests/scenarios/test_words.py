"""Story: whatever a tool answers, the wearer reads plain words, tables in columns, dates and
numbers in their own form, and of a failure a sentence.
"""

import base64
import io
import json
import re
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from PIL import Image

from tests.scenarios.world import until, world
from tools_cache.api.tool import CallOrigin

pytestmark = pytest.mark.asyncio(loop_scope="session")

ECHO = "com.test.echo:answer"
FAIL = "com.test.echo:fail"
MODELS = ("mock:display", "sim:even_g1")
GERMAN = {"locale": "de-DE", "timezone": "Europe/Berlin"}
BERLIN = {"timezone": "Europe/Berlin"}
TRAINS = """# **Trains:** *today*
| Train | Leaves |
|---|---:|
| **R10** | 12:04 |
| L1 | 12:11 |"""
MENU = "https://www.a.example/menu?day=1"
ORDERS = {
    "orders": [{"id": n, "total": 12.5, "to": "Anna Olsen, Storgata 1"} for n in range(150)],
    "currency": "NOK",
    "net_total": 123456,
}


@asynccontextmanager
async def wearing(folder, model, cloud, **sections):
    """All of a world, with the glasses of this model."""
    if model == "sim:even_g1":
        sections["glasses"] = {**sections.get("glasses", {}), "model": "even_g1"}
    async with world(folder, model, **sections) as place:
        await place.switch_glasses_on(mtu=251)
        place.cloud = cloud
        await place.start_daemon()
        await place.ready()
        yield place


def start_of_second_column(image, row):
    """The place of the first lit pixel after the widest gap of a row of the framebuffer."""
    band = image.convert("L").crop((0, row * 27, image.width, row * 27 + 26))
    lit = [x for x in range(band.width) if band.crop((x, 0, x + 1, 26)).getbbox()]
    _, start = max((after - before, after) for before, after in pairwise(lit))
    return start


@pytest.mark.requirement("I13-plain-text", "I13-columns")
@pytest.mark.parametrize("model", MODELS)
async def test_a_page_of_markdown_is_plain_and_its_table_has_columns(tmp_path, cloud, model):
    async with wearing(tmp_path, model, cloud) as place:
        assert (await place.call(ECHO, {"data": TRAINS})).ok
        lines = await place.lens_shows("12:11")
        assert [line.split() for line in lines if line.strip()] == [
            ["Trains:", "today"],
            ["Train", "Leaves"],
            ["R10", "12:04"],
            ["L1", "12:11"],
        ]
        image = place.mock.glasses.lens.to_image()
        starts = [start_of_second_column(image, row) for row in range(1, 4)]
        # A G1 has no columns: they are reached by spaces, of 5 pixels in its font.
        assert max(starts) - min(starts) <= (2 if model == "mock:display" else 7), starts


@pytest.mark.requirement("I13-wearer-forms")
@pytest.mark.parametrize("model", MODELS)
async def test_dates_and_numbers_are_the_wearers(tmp_path, cloud, model):
    year = datetime.now(UTC).year
    async with wearing(tmp_path, model, cloud, wearer=GERMAN) as place:
        await place.call(ECHO, {"data": f"Leaves {year}-06-15T12:00:00Z"})
        (line,) = await place.lens_shows("Leaves")
        assert re.fullmatch(r"Leaves \w\w\., 15\. Juni( \d{4})?, 14:00", line)
        await place.call(ECHO, {"data": {"net_total": 1234567.5, "at": f"{year}-01-02T23:30:00Z"}})
        total, at = await place.lens_shows("net total")
        assert total == "net total: 1.234.567,5"
        assert re.fullmatch(r"at: \w\w\., 3\. Jan\.( \d{4})?, 00:30", at)


@pytest.mark.requirement("I13-data")
@pytest.mark.parametrize("model", MODELS)
async def test_long_data_is_one_page_and_a_tap_shows_all_of_it(tmp_path, cloud, model):
    assert len(json.dumps(ORDERS)) > 8_000
    async with wearing(tmp_path, model, cloud) as place:
        await place.call(ECHO, {"data": ORDERS})
        assert [line.strip() for line in place.lens() if line.strip()] == [
            "orders: 150 items",
            "currency: NOK",
            "net total: 123,456",
            "tap: more",
        ]
        assert place.daemon.stage.lens()["pages"] == 1
        place.tap()
        await place.lens_shows("orders:", "1: id 0, total 12.5, to Anna Olsen")
        assert not set('{}[]"') & set(" ".join(place.lens()))


@pytest.mark.requirement("I13-data")
@pytest.mark.parametrize("model", MODELS)
async def test_a_tap_shows_a_link_as_a_code(tmp_path, cloud, model):
    segno = pytest.importorskip("segno")
    async with wearing(tmp_path, model, cloud) as place:

        def tiles():
            return place.daemon.stage.lens(exact=True)["drawn"]["tiles"]

        await place.call(ECHO, {"data": f"Lunch is on. See [the menu]({MENU})."})
        assert place.lens()[0] == "Lunch is on. See the menu."
        assert place.lens()[-1].strip() == "tap: link"
        place.tap()
        await place.lens_shows("the menu", "a.example")
        if model == "sim:even_g1":  # it takes no picture beside words
            await place.lens_shows("tap: code")
            place.tap()
        await until(tiles, "the code")
        assert "https" not in " ".join(place.lens())
        (tile,) = tiles()
        left, top = tile["x"], tile["y"]
        shown = place.mock.glasses.lens.to_image().convert("L")
        shown = shown.crop((left, top, left + tile["width"], top + tile["height"]))
        assert is_on(shown, [list(map(bool, row)) for row in segno.make(MENU, micro=False).matrix])


def is_on(image, code):
    """Whether a QR code is on a picture, light on dark or dark on light, at any scale."""
    size = len(code)
    for scale in range(1, image.height // size + 1):
        side = scale * size
        for top in range(image.height - side + 1):
            for left in range(image.width - side + 1):
                part = image.crop((left, top, left + side, top + side))
                dots = part.resize((size, size), Image.Resampling.NEAREST).tobytes()
                rows = [[dot > 0 for dot in dots[y * size :][:size]] for y in range(size)]
                if rows == code or [[not dot for dot in row] for row in rows] == code:
                    return True
    return False


@pytest.mark.requirement("I13-failures")
@pytest.mark.parametrize("model", MODELS)
async def test_a_failure_is_a_sentence(tmp_path, cloud, model):
    reports = {
        "'temperature'": "Echo had a problem.",
        "HTTPSConnectionPool(host='a.example', port=443): Max retries exceeded": (
            "Echo is not answering."
        ),
        "Traceback (most recent call last): File x, line 1": "Echo had a problem.",
        '{"error": {"code": 17}}': "Echo had a problem.",
        "run: sudo systemctl restart echo": "Echo had a problem.",
        "that shop is closed today": "That shop is closed today.",
    }
    async with wearing(tmp_path, model, cloud) as place:
        for report, said in reports.items():
            answer = await place.call(FAIL, {"text": report})
            assert answer.error.message == report, "its caller gets it as it is"
            await place.lens_shows(said)
            assert [line.strip() for line in place.lens() if line.strip()] == [said]


@pytest.mark.requirement("I13-table-of-strings")
async def test_timers_and_free_times_are_said_as_people_say_them(tmp_path):
    year = datetime.now(UTC).year + 1
    async with world(tmp_path, wearer=BERLIN) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        day = f"{year}-12-01T"
        answer = await place.call(
            "calendar:get_availability",
            {"start": f"{day}12:00:00Z", "end": f"{day}14:00:00Z"},
            origin=CallOrigin.GLASSES,
        )
        assert answer.ok, answer.error
        (line,) = await place.lens_shows("Free")
        assert re.fullmatch(rf"Free \w{{3}}, 1 Dec {year}, 13:00–15:00", line)
        await place.call("timer:start", {"seconds": 1, "label": "tea"})
        await place.lens_shows("Time's up: tea")
        assert place.lens() == ["Time's up: tea"]


async def test_a_picture_without_words_says_whose_it_is_where_no_picture_can_be_shown(
    tmp_path, cloud
):
    out = io.BytesIO()
    Image.new("1", (8, 8), 1).save(out, "PNG")
    shown = {
        "display": {
            "layout": "bitmap_view",
            "data": base64.b64encode(out.getvalue()).decode(),
            "alt": "**A cat** on the mat",
        }
    }
    async with wearing(
        tmp_path, "mock:display", cloud, glasses={"capabilities": {"display.bitmap": False}}
    ) as place:
        answer = await place.call(ECHO, {"data": None, "render": shown})
        assert answer.meta["delivery"]["downgrade"] == "image→text"
        assert place.lens() == ["A cat on the mat"]
