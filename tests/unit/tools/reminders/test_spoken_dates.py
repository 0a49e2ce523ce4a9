"""Moments read from words, in English and German: right, or not understood."""

from datetime import datetime, timedelta

import pytest

from tools_cache.everyday.dates.spoken_dates import When, read, split

at = datetime.fromisoformat
NOW = at("2026-11-28T10:00")
"""A Saturday."""

MOMENTS = {
    # English: days
    "tomorrow": "11-29 09:00",
    "tomorrow at nine": "11-29 09:00",
    "tomorrow at 9": "11-29 09:00",
    "tomorrow at 9:45": "11-29 09:45",
    "tomorrow at nine thirty": "11-29 09:30",
    "tomorrow at five": "11-29 17:00",
    "tomorrow at 05:00": "11-29 05:00",
    "tomorrow at five in the morning": "11-29 05:00",
    "tomorrow at 7 in the evening": "11-29 19:00",
    "tomorrow morning": "11-29 09:00",
    "tomorrow afternoon at 4": "11-29 16:00",
    "the day after tomorrow": "11-30 09:00",
    "next Monday": "11-30 09:00",
    "on Saturday": "12-05 09:00",
    "Saturday at noon": "11-28 12:00",
    "Saturday at 9": "11-28 21:00",
    "this Friday at 14:30": "12-04 14:30",
    "on Monday at 5 pm": "11-30 17:00",
    "next week": "12-05 09:00",
    "next month": "12-28 09:00",
    "in 3 weeks": "12-19 10:00",
    "in three weeks at eight": "12-19 08:00",
    "in a month": "12-28 09:00",
    "on the 3rd of December": "12-03 09:00",
    "December 24 at 6pm": "12-24 18:00",
    "on the twenty-first of december at ten past four": "12-21 16:10",
    "on 2026-12-01 at 8:15": "12-01 08:15",
    # English: times
    "today": "11-28 18:00",
    "tonight": "11-28 18:00",
    "this evening at eight": "11-28 20:00",
    "at noon": "11-28 12:00",
    "at midnight": "11-29 00:00",
    "at 7": "11-28 19:00",
    "at 11": "11-28 11:00",
    "at 9 am": "11-29 09:00",
    "at half past ten": "11-28 10:30",
    "at quarter to nine": "11-28 20:45",
    "at twenty past three": "11-28 15:20",
    "at 8 o'clock": "11-28 20:00",
    # German
    "morgen um neun": "11-29 09:00",
    "morgen um 9 Uhr 30": "11-29 09:30",
    "morgen früh": "11-29 09:00",
    "morgen früh um sechs": "11-29 06:00",
    "übermorgen": "11-30 09:00",
    "heute Abend": "11-28 18:00",
    "heute Abend um acht": "11-28 20:00",
    "nächsten Montag": "11-30 09:00",
    "am Freitag um 14:30": "12-04 14:30",
    "am Samstag": "12-05 09:00",
    "in 3 Wochen": "12-19 10:00",
    "nächste Woche": "12-05 09:00",
    "am 3. Dezember": "12-03 09:00",
    "am dritten Dezember um halb drei": "12-03 14:30",
    "am 24.12. um 18 Uhr": "12-24 18:00",
    "um halb zehn": "11-28 21:30",
    "um viertel nach drei": "11-28 15:15",
    "um dreiviertel elf": "11-28 10:45",
    "um zehn vor zwölf": "11-28 11:50",
    "mittags": "11-28 12:00",
}


@pytest.mark.parametrize("words", MOMENTS)
@pytest.mark.requirement("S4-33")
def test_a_moment_is_read_from_words(words):
    assert read(words, NOW) == When(local=at(f"2026-{MOMENTS[words]}"))


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("in 20 minutes", 1200),
        ("in half an hour", 1800),
        ("in an hour and a half", 5400),
        ("in one and a half hours", 5400),
        ("in two hours and ten minutes", 7800),
        ("ten minutes from now", 600),
        ("in zwei Stunden", 7200),
        ("in einer halben Stunde", 1800),
        ("in einer Stunde und zehn Minuten", 4200),
        ("in fünfundzwanzig Minuten", 1500),
    ],
)
def test_a_span_counts_from_now(words, seconds):
    assert read(words, NOW) == When(after=timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("words", "rule", "hour"),
    [
        ("every day at 7:30", "FREQ=DAILY", 7.5),
        ("daily at eight in the evening", "FREQ=DAILY", 20),
        ("every monday at 9", "FREQ=WEEKLY;BYDAY=MO", 9),
        ("every Monday and Thursday at noon", "FREQ=WEEKLY;BYDAY=MO,TH", 12),
        ("every other week", "FREQ=WEEKLY;INTERVAL=2", 9),
        ("every three months", "FREQ=MONTHLY;INTERVAL=3", 9),
        ("every year", "FREQ=YEARLY", 9),
        ("every weekday at 8", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", 8),
        ("every evening", "FREQ=DAILY", 18),
        ("jeden Montag um halb zehn", "FREQ=WEEKLY;BYDAY=MO", 9.5),
        ("alle zwei Wochen", "FREQ=WEEKLY;INTERVAL=2", 9),
        ("täglich um 8 Uhr", "FREQ=DAILY", 8),
        ("werktags um sieben", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", 7),
        ("jeden Abend um zehn", "FREQ=DAILY", 22),
    ],
)
def test_a_repetition_is_a_rule_and_a_time_of_day(words, rule, hour):
    start = at("2026-11-28") + timedelta(hours=hour)
    assert read(words, NOW) == When(local=start, repeat=rule)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "soon",
        "tomorrow or so",
        "yesterday",
        "today at 8 am",
        "tomorrow on Monday",
        "at 25",
        "at 9:75",
        "on the 31st of february",
        "on 2026-11-27",
        "on the 1st of january 2020",
        "every minute",
        "tomorrow every day",
        "in 0 minutes",
        "in ten",
        "nine",
        "morgen monday",
        "at 13 pm",
        "9" * 400,
    ],
)
def test_what_is_not_wholly_understood_is_no_moment(words):
    assert read(words, NOW) is None


@pytest.mark.parametrize(
    ("text", "rest", "moment"),
    [
        ("tomorrow at nine to call Anna", "call Anna", "11-29 09:00"),
        ("to call Anna tomorrow at nine", "call Anna", "11-29 09:00"),
        ("tomorrow to call Anna at nine", "call Anna", "11-29 09:00"),
        ("that the car is due on the 3rd of December.", "the car is due", "12-03 09:00"),
        ("Anna anzurufen am Freitag um halb drei", "Anna anzurufen", "12-04 14:30"),
        ("morgen um neun daran, dass Anna kommt", "Anna kommt", "11-29 09:00"),
        ("morgen um neun daran, Anna anzurufen", "Anna anzurufen", "11-29 09:00"),
        ("tell Bob to buy milk tomorrow", "tell Bob to buy milk", "11-29 09:00"),
        ("take 3 pills at 8 in the evening", "take 3 pills", "11-28 20:00"),
        ("to read 1984", "read 1984", None),
        ("buy milk", "buy milk", None),
        ("to buy two tickets to Rome", "buy two tickets to Rome", None),
        ("to", "to", None),
        ("tomorrow at nine", "", "11-29 09:00"),
    ],
)
@pytest.mark.requirement("S4-33")
def test_the_moment_stands_at_the_beginning_or_the_end(text, rest, moment):
    local = at(f"2026-{moment}") if moment else None
    assert split(text, NOW) == (rest, When(local=local) if local else None)


def test_the_29th_of_february_is_that_of_a_year_which_has_one():
    assert read("on february 29", NOW) == When(local=at("2028-02-29T09:00"))


def test_a_month_later_is_never_beyond_its_last_day():
    assert read("next month", at("2027-01-31T08:00")) == When(local=at("2027-02-28T09:00"))


def test_today_in_the_evening_is_in_an_hour():
    assert read("today", at("2026-11-28T20:00")) == When(after=timedelta(hours=1))
