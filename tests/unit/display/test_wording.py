"""What the wearer reads and hears: no markup, dates in their own form; the voice says the same."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from edge.config.locale_forms import load
from edge.core.results import LayoutKind, Link, Rendering
from edge.core.words.wearer_forms import WearerForms, Writer
from edge.display.voice import speech
from edge.display.wording import Wording
from edge.ports import Wait
from tests.unit.display.fakes import AUDIO
from tools_cache.api.tool import ToolResponse

NOW = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
ENGLISH = Writer(now=NOW)
GERMAN = Writer(WearerForms(load("de-DE"), ZoneInfo("Europe/Berlin")), NOW)


async def worded(writer=ENGLISH, **fields):
    return await Wording(lambda: writer).apply(Rendering(LayoutKind.TEXT_WALL, **fields))


@pytest.mark.requirement("I13-plain-text")
async def test_the_lens_and_the_voice_have_the_same_plain_text():
    said = "## **Today**\n- rain at 2026-11-23T15:00:00Z\n- [tickets](https://a.example/t)"
    wanted = await worded(GERMAN, text=said, speech=said)
    assert wanted.text == "Today\n• rain at Mo., 23. Nov., 16:00\n• tickets"
    assert wanted.speech == "Today\nrain at Mo., 23. Nov., 16:00\ntickets"
    assert wanted.links == (Link("tickets", "https://a.example/t"),)


@pytest.mark.requirement("I13-wearer-forms")
async def test_a_span_that_runs_from_right_to_left_is_not_torn_apart_by_the_text_before_it():
    arabic = Writer(WearerForms(load("ar-EG"), ZoneInfo("Africa/Cairo")), NOW)
    said = "Free 2026-11-23T12:00Z–2026-11-23T14:00Z"
    wanted = await worded(arabic, text=said, speech=said)
    span = "2:00 م–4:00 م"
    assert wanted.text.replace("\u202f", " ").replace("\xa0", " ") == f"Free \u2068{span}\u2069"
    assert "\u2068" not in (spoken := wanted.speech + await Wording(lambda: arabic).of(said))
    assert spoken.count("م") == 4


async def test_every_part_of_a_layout_is_worded():
    wanted = await worded(
        text="*a*\n*b*", first="*a*", second="*b*", more="*c*", speech="see https://a.example/x"
    )
    assert (wanted.text, wanted.first, wanted.second, wanted.more) == ("a\nb", "a", "b", "c")
    assert wanted.speech == "see a.example"


async def test_a_silent_text_stays_silent():
    assert (await worded(text="*a*")).speech is None


@pytest.mark.parametrize("words", [10, 200])
async def test_a_long_text_is_read_as_a_short_one(words):
    wanted = await worded(text="**bold** " * words)
    assert wanted.text.split() == ["bold"] * words


async def test_links_are_named_once():
    link = "[x](https://a.example)"
    wanted = await worded(text=f"{link}\n{link}", first=link, second=link)
    assert wanted.links == (Link("x", "https://a.example"),)


@pytest.mark.requirement("I13-plain-text")
async def test_the_voice_says_what_the_lens_shows(open_stage, monkeypatch):
    said = []
    sentences = speech.sentences
    monkeypatch.setattr(
        speech, "sentences", lambda text: (said.append(s) or s for s in sentences(text))
    )
    async with open_stage(AUDIO) as (stage, _):
        answer = ToolResponse(
            data="# **Sale** today\n- see [shop](https://a.example)\n\n`50 %` off"
        )
        await stage.present("c1", answer, wait=Wait.DELIVERY)
    assert " ".join(said).split() == "Sale today see shop 50 % off".split()


@pytest.mark.requirement("I13-plain-text")
@pytest.mark.parametrize(
    ("printed", "read"),
    [
        ("\x1b[1;31mError:\x1b[0m disk full", "Error: disk full"),
        ("\x1b]8;;https://a.example\x07the log\x1b]8;;\x1b\\ says", "the log says"),
        ("\x9b32mok\x1b(B", "ok"),
        ("[31m is no colour", "[31m is no colour"),
        ("\x1b]8;;never ends", "]8;;never ends"),
    ],
)
async def test_the_colours_of_a_terminal_do_not_reach_the_lens(printed, read):
    wanted = await worded(text=printed, speech=printed)
    assert (wanted.text.replace("\x1b", ""), wanted.speech.replace("\x1b", "")) == (read, read)
