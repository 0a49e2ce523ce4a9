"""iCalendar → taken times: repeated, moved, cancelled, whole days, odd zones, and texts that
mean harm.
"""

import time
from datetime import UTC, timedelta

import icalendar
import pytest
from hypothesis import given, strategies as st

from edge.tools.calendars.ical_read import MAX_STEPS, busy
from edge.tools.calendars.ical_write import event
from tests.unit.tools.calendars.texts import moment, text


@pytest.fixture(autouse=True)
def berlin(monkeypatch):
    """This machine stands in Berlin: it is what floating times and whole days are measured by."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def told(raw, start="2026-11-23T00:00:00+01:00", end="2026-11-30T00:00:00+01:00"):
    found, unread = busy([raw], moment(start), moment(end))
    return [
        (f"{t.start:%d %H:%M}", f"{t.end:%d %H:%M}") for t in sorted(found, key=lambda t: t.start)
    ], unread


@pytest.mark.parametrize(
    ("lines", "spans"),
    [
        ("DTSTART:20261123T090000Z\nDTEND:20261123T100000Z", [("23 09:00", "23 10:00")]),
        ("DTSTART;TZID=Europe/Berlin:20261123T090000\nDURATION:PT90M", [("23 08:00", "23 09:30")]),
        ("DTSTART:20261123T090000\nDTEND:20261123T100000", [("23 08:00", "23 09:00")]),
        ("DTSTART;VALUE=DATE:20261124", [("23 23:00", "24 23:00")]),
        ("DTSTART;VALUE=DATE:20261124\nDTEND;VALUE=DATE:20261126", [("23 23:00", "25 23:00")]),
        ("DTSTART:20261123T090000Z", []),
        ("DTSTART:20261123T090000Z\nDTEND:20261123T100000Z\nTRANSP:TRANSPARENT", []),
        ("DTSTART:20261123T090000Z\nDTEND:20261123T100000Z\nSTATUS:CANCELLED", []),
        ("DTSTART:20261122T230000Z\nDTEND:20261123T010000Z", [("22 23:00", "23 01:00")]),
        ("DTSTART:20261122T220000Z\nDTEND:20261122T230000Z", []),
        ("DTSTART:20261201T090000Z\nDTEND:20261201T100000Z", []),
        ("DTSTART:20261123T090000Z\nDURATION:P1W", [("23 09:00", "30 09:00")]),
        ("DTSTART:20261123T100000Z\nDTEND:20261123T090000Z", []),
        (
            (
                "DTSTART;TZID=W. Europe Standard Time:20261123T090000\n"
                "DTEND;TZID=W. Europe Standard Time:20261123T100000"
            ),
            [("23 08:00", "23 09:00")],
        ),
        (
            "DTSTART;TZID=America/New_York:20261123T090000\nDTEND;TZID=Europe/Berlin:20261123T160000",
            [("23 14:00", "23 15:00")],
        ),
        ("DTSTART:2026112\n 3T090000Z\nDTEND:20261123T100000Z", [("23 09:00", "23 10:00")]),
    ],
)
def test_single_events_take_the_time_they_say(lines, spans):
    assert told(text(f"UID:1\n{lines}")) == (spans, 0)


@pytest.mark.parametrize(
    "lines",
    [
        "DTSTART:20261123T090000Z\nDURATION:P99999999D",
        "DTSTART;VALUE=DATE:20261123\nDURATION:P99999999D",
    ],
)
def test_an_event_that_ends_after_year_9999_does_not_affect_others(lines):
    good = "UID:2\nDTSTART:20261124T090000Z\nDTEND:20261124T100000Z"
    assert told(text(f"UID:1\n{lines}", good)) == ([("24 09:00", "24 10:00")], 1)


@pytest.mark.parametrize(
    ("lines", "spans"),
    [
        ("RRULE:FREQ=DAILY;COUNT=3", ["20 09:00", "21 09:00", "22 09:00"]),
        ("RRULE:FREQ=WEEKLY;BYDAY=FR", ["20 09:00", "27 09:00"]),
        ("RRULE:FREQ=WEEKLY;BYDAY=FR;UNTIL=20261126T235959Z", ["20 09:00"]),
        ("RRULE:FREQ=WEEKLY;BYDAY=FR;UNTIL=20261127T090000Z", ["20 09:00", "27 09:00"]),
        ("RRULE:FREQ=WEEKLY;BYDAY=FR;UNTIL=20261127", ["20 09:00", "27 09:00"]),
        ("RRULE:FREQ=DAILY;INTERVAL=3;COUNT=4", ["20 09:00", "23 09:00", "26 09:00", "29 09:00"]),
        ("RRULE:FREQ=MONTHLY;BYDAY=-1SA", ["28 09:00"]),
        ("RDATE:20261125T090000Z,20261224T090000Z", ["20 09:00", "25 09:00"]),
        (
            "RRULE:FREQ=DAILY;COUNT=30\nEXDATE:20261121T090000Z,20261122T090000Z\nEXDATE:20261124T090000Z",
            ["20 09:00", "23 09:00", "25 09:00", "26 09:00", "27 09:00", "28 09:00", "29 09:00"],
        ),
        (
            "RRULE:FREQ=DAILY;COUNT=9\nEXDATE;VALUE=DATE:20261121",
            [
                "20 09:00",
                "22 09:00",
                "23 09:00",
                "24 09:00",
                "25 09:00",
                "26 09:00",
                "27 09:00",
                "28 09:00",
            ],
        ),
    ],
)
def test_repetitions_and_their_exceptions_are_followed(lines, spans):
    raw = text(f"UID:1\nDTSTART:20261120T090000Z\nDURATION:PT1H\n{lines}")
    starts = [
        start for start, _ in told(raw, start="2026-11-20T00:00:00Z", end="2026-11-30T00:00:00Z")[0]
    ]
    assert starts == spans


def test_a_daily_meeting_stays_at_nine_when_the_clocks_change():
    raw = text(
        "UID:1\nDTSTART;TZID=Europe/Berlin:20261001T090000\nDTEND;TZID=Europe/Berlin:20261001T093000\nRRULE:FREQ=DAILY"
    )
    spans, _ = told(raw, start="2026-10-24T00:00:00+02:00", end="2026-10-27T00:00:00+01:00")
    assert spans == [("24 07:00", "24 07:30"), ("25 08:00", "25 08:30"), ("26 08:00", "26 08:30")]


def test_a_whole_day_is_as_long_as_that_day():
    spans, _ = told(
        text("UID:1\nDTSTART;VALUE=DATE:20261025"),
        start="2026-10-24T00:00:00+02:00",
        end="2026-10-27T00:00:00+01:00",
    )
    assert spans == [("24 22:00", "25 23:00")], "25 hours"


def test_a_moved_or_cancelled_repetition_takes_its_own_time():
    series = "UID:1\nDTSTART:20261123T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=4"
    moved = "UID:1\nRECURRENCE-ID:20261124T090000Z\nDTSTART:20261124T140000Z\nDURATION:PT1H"
    gone = (
        "UID:1\nRECURRENCE-ID:20261125T090000Z\n"
        "DTSTART:20261125T090000Z\nDURATION:PT1H\nSTATUS:CANCELLED"
    )
    other = "UID:2\nRECURRENCE-ID:20261126T090000Z\nDTSTART:20261126T120000Z\nDURATION:PT1H"
    assert [start for start, _ in told(text(series, moved, gone, other))[0]] == [
        "23 09:00",
        "24 14:00",
        "26 09:00",
        "26 12:00",
    ]


def test_one_moved_into_the_window_from_afar_is_there():
    series = "UID:1\nDTSTART:20260101T090000Z\nDURATION:PT1H\nRRULE:FREQ=YEARLY"
    moved = "UID:1\nRECURRENCE-ID:20260101T090000Z\nDTSTART:20261124T140000Z\nDURATION:PT1H"
    assert told(text(series, moved))[0] == [("24 14:00", "24 15:00")]


ZONE = """BEGIN:VTIMEZONE
TZID:Odd
BEGIN:STANDARD
DTSTART:19701025T030000
RRULE:FREQ={freq};BYDAY=-1SU;BYMONTH=10
TZOFFSETFROM:+0300
TZOFFSETTO:+0200
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:19700329T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
TZOFFSETFROM:+0200
TZOFFSETTO:+0300
END:DAYLIGHT
END:VTIMEZONE
"""


def test_an_own_zone_is_used_unless_its_clocks_change_daily():
    raw = "UID:1\nDTSTART;TZID=Odd:20261123T090000\nDTEND;TZID=Odd:20261123T100000"
    assert told(text(raw, zones=ZONE.format(freq="YEARLY"))) == ([("23 07:00", "23 08:00")], 0)
    assert told(text(raw, zones=ZONE.format(freq="SECONDLY"))) == ([], 1)


@pytest.mark.parametrize(
    "lines",
    [
        "DTSTART:garbage",
        "DTEND:20261123T100000Z",
        "DTSTART:20261123T090000Z\nRRULE:FREQ=SECONDLY",
        "DTSTART:20261123T090000Z\nRRULE:FREQ=HOURLY",
        "DTSTART:20261123T090000Z\nRRULE:FREQ=DAILY;INTERVAL=0",
        "DTSTART:20261123T090000Z\nRRULE:FREQ=NEVER",
        "DTSTART:00010101T000000Z\nRRULE:FREQ=DAILY",
        "DTSTART:20261123T090000Z\nRRULE:COUNT=3",
        "DTSTART:20061123T090000Z\nRRULE:FREQ=DAILY;BYHOUR=1,2,3,4,5,6,7,8,9,10,11,12,13,14;BYMINUTE=0,10,20,30,40,50",
        "DTSTART:20261123T090000Z\nRRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY",
    ],
)
def test_an_invalid_event_is_counted_and_does_not_affect_others(lines):
    good = "UID:2\nDTSTART:20261124T090000Z\nDURATION:PT1H"
    assert told(text(f"UID:1\nDURATION:PT1H\n{lines}", good)) == ([("24 09:00", "24 10:00")], 1)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"garbage",
        b"\xff\xfe\x00",
        b"BEGIN:VEVENT\nEND:VEVENT\n" + b"\x00",
        text("UID:1\nDTSTART:20261123T090000Z")[:-20],
    ],
)
def test_a_text_that_is_none_is_counted_or_empty(raw):
    spans, unread = told(raw)
    assert spans == []
    assert unread in (0, 1)


def test_a_calendar_without_events_is_read():
    assert told(text()) == ([], 0)


def test_events_far_away_are_not_even_parsed(monkeypatch):
    seen = []
    real = icalendar.Component.from_ical
    monkeypatch.setattr(
        icalendar.Component, "from_ical", lambda raw, **more: seen.append(raw) or real(raw, **more)
    )
    far = [
        f"UID:{n}\nDTSTART:2020{n % 12 + 1:02d}01T090000Z\nDTEND:2020{n % 12 + 1:02d}01T100000Z"
        for n in range(50)
    ]
    assert told(text(*far, "UID:x\nDTSTART:20261123T090000Z\nDURATION:PT1H"))[0] == [
        ("23 09:00", "23 10:00")
    ]
    assert len(seen) == 1
    assert seen[0].count(b"BEGIN:VEVENT") == 1


def test_a_daily_event_of_a_century_is_followed():
    assert MAX_STEPS > 365 * 127
    raw = text("UID:1\nDTSTART:19000101T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY")
    spans, unread = told(raw)
    assert (len(spans), unread) == (7, 0)


# ------------------------------------------------------------------ what we write


PLAN = {
    "title": "Design; review, \\ part 1\nof 2",
    "description": "über " * 60,
    "start": moment("2026-11-23T15:00:00+01:00"),
    "end": moment("2026-11-23T16:00:00+01:00"),
}


def test_what_we_write_a_library_reads_back():
    plan = {**PLAN, "attendees": ["eva@example.com", "max@example.com"]}
    raw = event(
        plan,
        uid="k@glassd",
        stamp=moment("2026-11-21T10:30:00Z"),
        link="https://meet.example/eva?x=1;y=2",
        organizer="me@example.com",
    )
    (whole,) = icalendar.Calendar.from_ical(raw, multiple=True)
    (made,) = whole.walk("VEVENT")
    assert whole.errors == made.errors == []
    assert (str(made["UID"]), str(made["SUMMARY"])) == ("k@glassd", PLAN["title"])
    assert made.decoded("DTSTART").astimezone(UTC) == PLAN["start"]
    assert made.decoded("DTEND") - made.decoded("DTSTART") == timedelta(hours=1)
    assert [str(a) for a in made["ATTENDEE"]] == [
        "mailto:eva@example.com",
        "mailto:max@example.com",
    ]
    assert str(made["ORGANIZER"]) == "mailto:me@example.com"
    assert (
        str(made["DESCRIPTION"])
        == PLAN["description"] + "\n\nJoin: https://meet.example/eva?x=1;y=2"
    )
    assert str(made["URL"]) == "https://meet.example/eva?x=1;y=2"
    assert rb"SUMMARY:Design\; review\, \\ part 1\nof 2" in raw.replace(b"\r\n ", b""), (
        "strict readers need it so"
    )
    assert told(raw)[0] == [("23 14:00", "23 15:00")]


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_gets_out_of_its_line(title, description):
    raw = event({**PLAN, "title": title, "description": description}, uid="k", stamp=PLAN["start"])
    lines = raw.split(b"\r\n")
    assert all(len(line) <= 75 for line in lines)
    assert b"\n" not in raw.replace(b"\r\n", b"")
    names = [line.split(b":")[0] for line in lines if line and not line.startswith(b" ")]
    assert names in (
        [n for n in names if n != b"DESCRIPTION"],
        [*names[:10], b"DESCRIPTION", b"END", b"END"],
    )
    assert names.count(b"BEGIN") == names.count(b"END") == 2
    kept = "".join(
        ch
        for ch in title.replace("\r\n", "\n").replace("\r", "\n")
        if ch in "\n\t" or ch.isprintable()
    )
    assert str(icalendar.Calendar.from_ical(raw).walk("VEVENT")[0]["SUMMARY"]) == kept
