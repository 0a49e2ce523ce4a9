"""How each language writes dates and numbers: the table says what CLDR says."""

from datetime import UTC, datetime

import pytest

from edge.config import validators
from edge.config.locale_forms import TABLE, describe, forms, load, named_by, wearer_forms
from edge.core.words.wearer_forms import ENGLISH, WearerForms

NOW = datetime(2026, 5, 23, 9, 0, tzinfo=UTC)
AT = datetime(2026, 3, 4, 15, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "moment", "number"),
    [
        ("en-GB", "Wed 4 Mar, 15:07", "1,234,567.5"),
        ("en-US", "Wed, Mar 4, 3:07 PM", "1,234,567.5"),
        ("de-DE", "Mi., 4. März, 15:07", "1.234.567,5"),
        ("fr-FR", "mer. 4 mars, 15:07", "1 234 567,5"),
        ("nb-NO", "ons. 4. mars, 15:07", "1 234 567,5"),
        ("pt-BR", "qua., 4 de mar. 15:07", "1.234.567,5"),
        ("ru-RU", "ср, 4 мар., 15:07", "1 234 567,5"),
        ("ja-JP", "3月4日(水) 15:07", "1,234,567.5"),
        ("zh-CN", "3月4日周三 15:07", "1,234,567.5"),
        ("hi-IN", "बुध, 4 मार्च, 3:07 pm", "12,34,567.5"),
    ],
)
def test_a_moment_and_a_number_are_written_as_people_there_do(name, moment, number):
    wearer = WearerForms(load(name), UTC)
    assert wearer.moment(AT, now=NOW) == moment
    assert wearer.number(1234567.5) == number


def test_every_language_of_the_table_can_write_every_day_and_hour():
    names = [line.partition("\t")[0] for line in TABLE.read_text("utf-8").splitlines()]
    assert len(names) > 400
    for name in names:
        wearer = WearerForms(load(name), UTC)
        for month in range(1, 13):
            at = AT.replace(month=month, hour=2 * month - 1)
            said = wearer.moment(at, now=NOW)
            assert "4" in said, name
            assert wearer.resembles(said), (name, said)


def test_a_region_without_forms_of_its_own_has_its_languages():
    assert load("de-LU") == load("de")
    assert load("xx") is None
    assert forms("xx", {}) == forms("", {"LANG": "C.UTF-8"}) == forms("", {}) == ENGLISH


def test_the_machine_names_the_language_where_nothing_is_configured():
    assert named_by({"LANG": "de_AT.UTF-8"}) == "de-AT"
    assert named_by({"LC_TIME": "nb_NO.UTF-8@x", "LANG": "en_US.UTF-8"}) == "nb-NO"
    assert forms("", {"LANG": "de_AT.UTF-8"}).months[0] == "Jän."
    assert forms("fr", {"LANG": "de_AT.UTF-8"}) == load("fr")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", ""),
        ("de-DE", "de-DE"),
        ("de_at.UTF-8", "de-AT"),
        ("FR", "fr"),
        ("en-UK", "en-GB"),
    ],
)
def test_a_language_is_taken_in_any_usual_spelling(written, read):
    assert validators.locale(written) == read


@pytest.mark.parametrize(
    ("rule", "written", "says"),
    [
        (validators.locale, "deu-DE", "'deu-DE' is not a known language; did you mean de?"),
        (validators.locale, "english", "did you mean en?"),
        (validators.locale, "german", "'german' is not a known language; write its code, "),
        (
            validators.timezone,
            "Europe/Berln",
            "'Europe/Berln' is not a known time zone; did you mean Europe/Berlin?",
        ),
        (validators.timezone, "berlin", "did you mean Europe/Berlin?"),
        (validators.timezone, "Europe", "is not a known time zone; "),
        (validators.timezone, "../etc/passwd", "is not a known time zone; "),
        (validators.timezone, "!", "write an IANA name such as Europe/Berlin"),
    ],
)
def test_an_unknown_language_or_time_zone_is_an_error_that_helps(rule, written, says):
    with pytest.raises(ValueError, match="is not a known") as wrong:
        rule(written)
    assert says in str(wrong.value)


@pytest.mark.requirement("I13-wearer-forms")
def test_the_configured_language_and_zone_are_used_and_described():
    read = wearer_forms("de-DE", "Europe/Berlin", {"LANG": "en_US.UTF-8"})
    assert read.moment(AT, now=NOW) == "Mi., 4. März, 16:07"
    configured = describe("de-DE", "Europe/Berlin", {})
    assert configured == {"locale": "de-DE", "timezone": "Europe/Berlin"}
    assert describe("", "", {"LANG": "fr_CA"})["locale"] == "fr-CA"
    assert describe("", "", {"LANG": "xx_YY"})["locale"] == "en"


def test_the_table_is_the_one_that_cldr_gives():
    pytest.importorskip("babel")
    from tests.locale_forms import made

    assert TABLE.read_text("utf-8") == made(), "run: python -m tests.locale_forms"
