"""What comes from the cache says how old it is, on the lens and in the ear."""

import pytest

from edge.core.results import LayoutKind, rendering_of
from edge.ports import Wait
from tests.unit.display.fakes import AUDIO, DISPLAY
from tools_cache.api.tool import Delivery, ToolResponse


def old(data: object = "12 degrees, sunny", age_s: object = 725, **render: object) -> ToolResponse:
    return ToolResponse(data=data, render=render or None, meta={"stale": True, "ageS": age_s})


@pytest.mark.requirement("I3-stale-said")
async def test_an_old_answer_says_so_on_the_lens(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", old())
        assert [line.text for line in glasses.pages()[0].lines] == [
            "12 degrees, sunny",
            "12 min ago",
        ]
        await stage.present("c2", ToolResponse(data="12 degrees, sunny", meta={"ageS": 725}))
        assert glasses.texts()[-1] == "12 degrees, sunny"


@pytest.mark.requirement("I3-stale-said")
async def test_an_old_answer_says_so_in_the_ear(open_stage, monkeypatch) -> None:
    said: list[str] = []
    from edge.display.voice import speech

    sentences = speech.sentences
    monkeypatch.setattr(
        speech, "sentences", lambda text: (said.append(s) or s for s in sentences(text))
    )
    async with open_stage(AUDIO) as (stage, _):
        report = await stage.present("c1", old(age_s=60), wait=Wait.DELIVERY)
        assert report.state is Delivery.SPOKEN
    assert said == ["12 degrees, sunny", "1 minute ago."]


@pytest.mark.parametrize(
    ("age_s", "shown", "said"),
    [
        (0, "just now", "Just now."),
        (59.9, "just now", "Just now."),
        (60, "1 min ago", "1 minute ago."),
        (7200, "2 h ago", "2 hours ago."),
        (86_400, "1 day ago", "1 day ago."),
        (None, "not up to date", "Not up to date."),
        (True, "not up to date", "Not up to date."),
        (-1, "not up to date", "Not up to date."),
        (float("nan"), "not up to date", "Not up to date."),
        ("12", "not up to date", "Not up to date."),
    ],
)
def test_an_age_is_said_in_its_largest_unit_and_never_made_up(age_s, shown: str, said: str) -> None:
    wanted = rendering_of(old(age_s=age_s))
    assert wanted.text == f"12 degrees, sunny\n{shown}"
    assert wanted.speech == f"12 degrees, sunny\n{said}"


def test_the_age_of_a_long_answer_is_on_its_first_page() -> None:
    assert rendering_of(old("word " * 100)).text.startswith("12 min ago\nword")


def test_every_layout_with_words_carries_the_age() -> None:
    card = rendering_of(
        old(display={"layout": "dashboard_card", "leftText": "12:00", "rightText": "80%"})
    )
    assert (card.layout, card.first, card.second, card.speech) == (
        LayoutKind.DASHBOARD_CARD,
        "12:00\n12 min ago",
        "80%",
        None,
    )
    dark = rendering_of(old(display={"layout": "clear_view"}))
    assert (dark.layout, dark.text) == (LayoutKind.CLEAR_VIEW, "")
    assert rendering_of(old(None)).layout is None
