"""The capability record: origins, ages, merging, and what is missing."""

import json

import pytest

from firmware_bridge.capabilities import FLAG, Capabilities, Hardware, Origin, missing

CATALOGUE = Capabilities.of(
    "m1", {"display": True, "display.lines": 5, "camera": False}, origin=Origin.CATALOGUE, now=10
)
FIRMWARE = Capabilities.of(
    "m1", {"display.lines": 4, "speaker": True}, origin=Origin.FIRMWARE, now=5
)


def test_absence_is_unknown_and_counts_as_absent():
    assert CATALOGUE.get("speaker") is None
    assert CATALOGUE.get("speaker", "?") == "?"
    assert not CATALOGUE.has(Hardware.SPEAKER)
    assert not CATALOGUE.has(Hardware.CAMERA)
    assert CATALOGUE.has(Hardware.DISPLAY)


@pytest.mark.parametrize("value", [1, "yes", "true", 1.0])
def test_only_true_is_having_it(value):
    assert not Capabilities.of("m", {"camera": value}, origin=Origin.FIRMWARE, now=0).has(
        Hardware.CAMERA
    )


def test_every_hardware_type_but_exist_has_its_key():
    assert set(FLAG) == set(Hardware) - {Hardware.EXIST}
    for hardware, key in FLAG.items():
        assert Capabilities.of("m", {key: True}, origin=Origin.FIRMWARE, now=0).has(hardware)


def test_the_higher_origin_wins_even_when_it_is_older():
    for merged in (CATALOGUE.merged(FIRMWARE), FIRMWARE.merged(CATALOGUE)):
        assert merged.get("display.lines") == 4
        assert merged.values["display.lines"].origin is Origin.FIRMWARE
        assert merged.get("camera") is False
        assert merged.get("speaker") is True


def test_of_one_origin_the_later_value_wins():
    late = Capabilities.of("m1", {"display.lines": 3}, origin=Origin.FIRMWARE, now=6)
    assert FIRMWARE.merged(late).get("display.lines") == 3
    assert late.merged(FIRMWARE).get("display.lines") == 3


def test_configured_overrules_all():
    told = Capabilities.of("", {"speaker": False}, origin=Origin.CONFIGURED, now=0)
    merged = CATALOGUE.merged(FIRMWARE).merged(told)
    assert merged.get("speaker") is False
    assert merged.model == "m1"


def test_merging_changes_neither_record():
    before = dict(CATALOGUE.values), dict(FIRMWARE.values)
    CATALOGUE.merged(FIRMWARE)
    assert (dict(CATALOGUE.values), dict(FIRMWARE.values)) == before
    with pytest.raises(TypeError):
        CATALOGUE.values["camera"] = None


def test_a_report_tells_origin_and_age_and_comes_back():
    merged = CATALOGUE.merged(FIRMWARE)
    report = json.loads(json.dumps(merged.report(now=12.04)))
    assert report["display.lines"] == {"value": 4, "origin": "firmware", "ageS": 7.0}
    assert report["camera"] == {"value": False, "origin": "catalogue", "ageS": 2.0}
    again = Capabilities.from_report("m1", report, now=100)
    assert again.report(now=100) == merged.report(now=12.04)


def test_an_age_is_never_negative():
    assert CATALOGUE.report(now=0)["camera"]["ageS"] == 0.0


@pytest.mark.parametrize(
    "damage",
    [
        {"x": {}},
        {"x": {"value": 1, "origin": "rumour", "ageS": 1}},
        {"x": {"value": 1, "origin": "firmware", "ageS": "old"}},
    ],
)
def test_a_damaged_report_is_said_to_be_one(damage):
    with pytest.raises((KeyError, ValueError)):
        Capabilities.from_report("m", damage, now=0)


def test_missing_names_what_is_lacking_and_fails_closed():
    needed = (Hardware.DISPLAY, Hardware.CAMERA, Hardware.EXIST)
    assert missing(needed, CATALOGUE) == (Hardware.CAMERA,)
    assert missing(needed, None) == needed
    assert missing((), None) == ()
