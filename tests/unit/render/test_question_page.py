"""What a question looks and sounds like: it fits, and the last row always says what to do."""

import pytest
from hypothesis import given, settings, strategies as st

from edge.ports import Question
from edge.render.display import CannotShow
from edge.render.question import page, spoken
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.metrics import metrics_for
from tests.unit.render.fakes import AUDIO, DISPLAY

LENS = metrics_for("lens-22")


def glasses(**facts: object) -> Capabilities:
    return Capabilities.of("mock", {**DISPLAY, **{k.replace("__", "."): v for k, v in facts.items()}}, origin=Origin.FIRMWARE, now=0.0)


def rows(text: str, record: Capabilities, **words: str) -> list[str]:
    return [line.text for line in page(Question("s", text, 30.0, **words), record).lines]


def test_a_short_question_stands_whole_above_what_to_do() -> None:
    assert rows("Pay?", glasses()) == ["Pay?", "tap: yes · double tap: no"]
    assert rows("One\nTwo", glasses())[:2] == ["One", "Two"]


@pytest.mark.requirement("I3-ask-fits")
def test_a_long_question_is_cut_with_an_ellipsis_and_the_last_row_is_there() -> None:
    text = " ".join(f"word{n}" for n in range(400))
    shown = rows(text, glasses())
    assert len(shown) == 5
    assert shown[-1] == "tap: yes · double tap: no"
    assert shown[-2].endswith("…")
    assert text.startswith(" ".join(shown[:-1])[:-1])
    assert sum(len(row.encode()) + 1 for row in shown) <= 390


@pytest.mark.requirement("I3-ask-fits")
def test_on_a_narrow_lens_what_to_do_takes_two_rows() -> None:
    shown = rows("Delete everything, really everything?", glasses(display__width=150))
    assert shown[-2:] == ["tap: yes", "double tap: no"]
    assert len(shown) == 5


def test_a_lens_without_room_cannot_ask() -> None:
    with pytest.raises(CannotShow, match="no room"):
        page(Question("s", "Pay?", 30.0), glasses(display__lines=1))


def test_an_empty_question_still_says_what_to_do() -> None:
    assert rows("", glasses()) == ["tap: yes · double tap: no"]


@pytest.mark.requirement("I3-ask-fits")
@settings(max_examples=60, deadline=None)
@given(
    st.text(max_size=700), st.text(min_size=1, max_size=60) | st.just("я" * 60), st.sampled_from([100, 200, 576]), st.sampled_from([3, 5, 7]),
    st.sampled_from([96, 390, 1024]),
)
def test_whatever_is_asked_fits_these_glasses(text: str, allow: str, width: int, lines: int, size: int) -> None:
    record = glasses(display__width=width, display__lines=lines, display__page_bytes=size)
    sheet = page(Question("s", text, 30.0, allow, "no"), record)
    assert max(line.row for line in sheet.lines) == lines - 1
    assert sum(len(line.text.encode()) + 1 for line in sheet.lines) <= size + 1
    assert all(LENS.width(line.text) <= width for line in sheet.lines)


def test_the_ear_hears_the_question_and_what_to_press() -> None:
    record = Capabilities.of("mock", AUDIO, origin=Origin.FIRMWARE, now=0.0)
    asked = Question("s", "Pay 20\neuros?", 30.0, "pay", "stop")
    assert spoken(asked, record) == "Pay 20 euros?\nPress: pay. Long press: stop."
    tapping = Capabilities.of("mock", {**AUDIO, "button": False, "gestures": "tap,double_tap"}, origin=Origin.FIRMWARE, now=0.0)
    assert spoken(asked, tapping).endswith("Tap: pay. Double tap: stop.")
    long = spoken(Question("s", "word " * 500, 30.0), record)
    assert len(long) < 450
    assert long.endswith("Press: yes. Long press: no.")
