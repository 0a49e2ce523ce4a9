"""Dates, times and numbers as the wearer writes them: lossless where a yes hangs on it."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from edge.core.words.wearer_forms import ENGLISH, WearerForms, age

NOW = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
OSLO = WearerForms(ENGLISH, ZoneInfo("Europe/Oslo"))
AMERICAN = WearerForms(
    ENGLISH._replace(
        day="E, MMM d", day_of_year="E, MMM d, y", clock="h:mm a", halves=("AM", "PM")
    ),
    ZoneInfo("America/New_York"),
)
GERMAN = WearerForms(ENGLISH._replace(decimal=",", group="."), ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("iso", "oslo", "american"),
    [
        ("2026-12-01T12:00:00Z", "Tue 1 Dec, 13:00", "Tue, Dec 1, 7:00 AM"),
        ("2026-12-01T12:00:05+00:00", "Tue 1 Dec, 13:00:05", "Tue, Dec 1, 7:00:05 AM"),
        ("2026-12-01 00:30Z", "Tue 1 Dec, 01:30", "Mon, Nov 30, 7:30 PM"),
        ("2027-01-01T00:00:00Z", "Fri, 1 Jan 2027, 01:00", "Thu, Dec 31, 7:00 PM"),
        ("2026-12-01T12:00:00", "Tue 1 Dec, 12:00", "Tue, Dec 1, 12:00 PM"),
        ("2026-12-01T12:00:00.123Z", "Tue 1 Dec, 13:00", "Tue, Dec 1, 7:00 AM"),
    ],
)
def test_a_moment_in_a_text_is_read_in_the_wearers_zone(iso, oslo, american):
    assert OSLO.text(f"It starts {iso}.", now=NOW) == f"It starts {oslo}."
    assert AMERICAN.text(f"({iso})", now=NOW) == f"({american})"


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example/2026-12-01T12:00:00Z/x",
        "log-2026-12-01T12:00:00Z.txt",
        "2026-13-01T12:00:00Z",
        "2026-12-01T25:00:00Z",
        "see v1:2026-12-01T12:00:00Z",
        "call +47 22 22 22 22 at 12:00",
    ],
)
def test_what_is_no_moment_by_itself_stays_as_it_was(text):
    assert OSLO.text(text, now=NOW) == text


@pytest.mark.parametrize(
    ("value", "english", "german"),
    [
        (5, "5", "5"),
        (2026, "2026", "2026"),
        (48213377, "48,213,377", "48.213.377"),
        (-3.25, "-3.25", "-3,25"),
        (-1234567.5, "-1,234,567.5", "-1.234.567,5"),
        (10000.0, "10,000.0", "10.000,0"),
        (1e22, "1e+22", "1e+22"),
    ],
)
def test_a_number_has_the_wearers_marks(value, english, german):
    assert (OSLO.number(value), GERMAN.number(value)) == (english, german)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Free 2026-12-01T12:00Z–2026-12-01T14:00Z", "Free Tue 1 Dec, 13:00–15:00"),
        (
            "Free 2026-12-01T08:00Z–2026-12-01T09:30Z, 2026-12-01T13:00Z–2026-12-01T16:00Z",
            "Free Tue 1 Dec, 09:00–10:30, 14:00–17:00",
        ),
        ("Free 2026-11-23T11:00Z–2026-11-23T13:00Z", "Free 12:00–14:00"),
        (
            "2026-11-23T22:00Z–2026-11-24T01:00Z",
            "Mon 23 Nov, 23:00 – Tue 24 Nov, 02:00",
        ),
        ("2026-12-01T12:00–2026-12-01T14:00", "2026-12-01T12:00–2026-12-01T14:00"),
    ],
)
def test_a_span_says_its_day_once_and_todays_not_at_all(text, said):
    assert OSLO.text(text, now=NOW) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Due 2026-12-24.", "Due Thu 24 Dec."),
        ("2026-12-24–2027-01-02", "Thu 24 Dec–Sat, 2 Jan 2027"),
        ("2026-02-30 and 0001-01-01", "2026-02-30 and 0001-01-01"),
        (
            "log-2026-12-24 /2026-12-24/ 2026-12-24.txt",
            "log-2026-12-24 /2026-12-24/ 2026-12-24.txt",
        ),
        ("PT1H30M", "1 h 30 min"),
        ("takes P1DT2H, then PT90S", "takes 1 d 2 h, then 90 s"),
        ("PT, P3D, PTO and PT1X", "PT, P3D, PTO and PT1X"),
    ],
)
def test_a_day_and_a_duration_alone_are_in_words(text, said):
    assert OSLO.text(text, now=NOW) == said


def test_thousands_are_grouped_as_the_language_groups_them():
    indian = WearerForms(ENGLISH._replace(groups=(3, 2)), UTC)
    assert indian.number(12345678) == "1,23,45,678"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("2026-12-01T13:00:00+01:00", "Tue 1 Dec, 13:00"),
        ("2026-12-01T12:00:00Z", "Tue 1 Dec, 13:00 (12:00 UTC)"),
        ("2026-12-01T23:30:00-05:00", "Wed 2 Dec, 05:30 (Tue 1 Dec, 23:30 UTC-05:00)"),
        ("2026-12-01T12:00:00", "Tue 1 Dec, 12:00 (no time zone)"),
        ("2026-12-01", "Tue 1 Dec"),
        ("2027-12-01", "Wed, 1 Dec 2027"),
        ("2026-01-01", "Thu, 1 Jan 2026"),
        (True, "yes"),
        (False, "no"),
        (None, "nothing"),
        ("2026-12-01T12:00:00.5Z", None),
        ("2026-12-01T12:00:00.000Z", None),
        ("0001-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59Z", None),
        ("2026-02-30", None),
        ("Tuesday", None),
    ],
)
def test_in_a_question_a_value_is_in_words_only_without_loss(value, said):
    assert OSLO.exact(value, now=NOW) == said


@pytest.mark.parametrize("forms", [OSLO, AMERICAN, GERMAN])
@given(
    st.one_of(
        st.datetimes(timezones=st.just(UTC)).map(lambda at: at.isoformat(timespec="seconds")),
        st.dates().map(str),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.none(),
    )
)
def test_a_text_that_reads_like_a_written_value_is_known(forms, value):
    said = forms.exact(value, now=NOW)
    with_exponent = isinstance(value, float) and "e" in str(value)
    assert said is None or with_exponent or forms.resembles(said)


@given(st.integers() | st.floats(allow_nan=False), st.integers() | st.floats(allow_nan=False))
def test_two_numbers_never_look_the_same(one, other):
    same = OSLO.number(one) == OSLO.number(other)
    assert same is (repr(one) == repr(other))


def test_a_span_has_its_day_once():
    start, end = (datetime(2026, 12, 1, hour, tzinfo=UTC) for hour in (11, 13))
    assert OSLO.span(start, end, now=NOW) == "Tue 1 Dec, 12:00–14:00"
    assert OSLO.span(start, end, now=NOW, day=False) == "12:00–14:00"
    late = datetime(2026, 12, 2, 1, tzinfo=UTC)
    assert OSLO.span(start, late, now=NOW) == "Tue 1 Dec, 12:00 – Wed 2 Dec, 02:00"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "just now"),
        (59.9, "just now"),
        (60, "1 min ago"),
        (3700, "1 h ago"),
        (90_000, "1 day ago"),
        (200_000, "2 days ago"),
    ],
)
def test_an_age_is_in_words(seconds, said):
    assert age(seconds) == said
