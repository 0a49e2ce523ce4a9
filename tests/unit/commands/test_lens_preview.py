"""`glassd lens preview`: how a text would look, without glasses and without the daemon."""

import json

import pytest
from PIL import Image

from firmware_bridge.catalog import CATALOG
from tests.unit.commands.test_cli import glassd

pytestmark = pytest.mark.enable_socket
LONG = " ".join(f"word{n}" for n in range(60))


async def preview(*words, **more):
    ran = await glassd("lens", "preview", *words, "--json", **more)
    return ran.code, ran.json


@pytest.mark.requirement("I13-lens-preview")
async def test_pages_pixels_bytes_and_reading_time_of_a_model():
    code, shown = await preview("Hello **world**", "--glasses", "even_g1")
    assert code == 0
    assert shown == {
        "glasses": "even_g1",
        "width": 576,
        "text_width": 488,
        "pages": [
            {"lines": ["Hello world"], "pixels": 107, "bytes": 11, "drawn": 0, "seconds": 3.1}
        ],
        "seconds": 3.1,
        "missing": [],
        "remark": "",
    }


async def test_a_long_text_has_pages_that_fit_and_footers():
    for model in ("even_g1", "mock:display"):
        _, shown = await preview(LONG, "--glasses", model)
        pages = shown["pages"]
        assert len(pages) > 1
        assert all(0 < page["pixels"] <= shown["text_width"] for page in pages)
        assert all(len(page["lines"]) <= 5 for page in pages)
        assert pages[0]["lines"][-1].endswith(f"1/{len(pages)}")
        assert shown["seconds"] == pytest.approx(sum(page["seconds"] for page in pages), abs=0.1)


async def test_a_person_reads_it_as_frames():
    ran = await glassd("lens", "preview", "-", "--glasses", "sim:even_g1", stdin=b"One\ntwo\n")
    assert (ran.code, ran.err) == (0, "")
    first, *_, last = ran.out.splitlines()
    assert first == "page 1 of 1 · 37 of 488 pixels wide · 7 bytes · 3.1 s"
    assert "│ One                      │\n│ two                      │" in ran.out
    assert last == "reading   3.1 s on even_g1"


async def test_what_no_font_has_is_named():
    _, shown = await preview("\U0001e900\U0001e901 and words that stay as they are")
    assert shown["missing"]
    assert shown["remark"]


async def test_what_the_glasses_cannot_write_is_drawn_here_too():
    pytest.importorskip("uharfbuzz", reason="the extra scripts is not installed")
    text = "\u05e9\u05dc\u05d5\u05dd"
    _, shown = await preview(text, "--glasses", "even_g1")
    (page,) = shown["pages"]
    assert (page["lines"], page["drawn"], shown["missing"]) == ([text], 1, [])
    assert 0 < page["pixels"] <= 488


async def test_each_page_is_a_picture_of_these_glasses(tmp_path):
    first = tmp_path / "page.png"
    _, shown = await preview(LONG, "--glasses", "even_g1", "--png", str(first))
    assert shown["png"] == [
        str(first if number == 1 else tmp_path / f"page-{number}.png")
        for number in range(1, len(shown["pages"]) + 1)
    ]
    with Image.open(first) as picture:
        assert picture.size == (576, 136)
        left, _, right, _ = picture.convert("L").getbbox()
        margin = (576 - 488) // 2
        assert margin <= left < right <= margin + shown["pages"][0]["pixels"]


@pytest.mark.parametrize(
    ("words", "code", "says", "fix"),
    [
        (("x", "--glasses", "evn_g1"), 2, "there is no model 'evn_g1'", "did you mean even_g1?"),
        (("x", "--glasses", "mock:audio"), 1, "these glasses have no display", "name other"),
        ((), 2, "the text is missing", "for example"),
        (("", "--glasses", "even_g1"), 2, "the text is empty", "give a text"),
        (("x", "--watch"), 2, "--watch and preview exclude each other", "leave one out"),
        (("x", "--png", "/nonexistent/x.png"), 1, "cannot be written", "another file"),
        (("-",), 2, "stdin has more than 64 KiB", "send less"),
    ],
)
async def test_what_cannot_be_previewed_is_said(words, code, says, fix):
    ran = await glassd("lens", "preview", *words, stdin=b"x" * 70_000)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert fix in ran.err


async def test_the_glasses_of_a_preview_belong_to_the_preview():
    ran = await glassd("lens", "--glasses", "even_g1")
    assert (ran.code, "--glasses is for the preview" in ran.err) == (2, True)


async def test_every_model_with_a_display_has_a_preview():
    shown = {m.key for m in CATALOG.models if m.capabilities.get("display")}
    assert {"even_g1", "mock:display", "mock:full"} <= shown
    for model in shown:
        code, document = await preview("Hello", "--glasses", model)
        assert (code, document["glasses"], len(document["pages"])) == (0, model, 1)
        assert json.dumps(document)
