import pytest

from edge.core.compatibility import judge
from firmware_bridge.capabilities import Capabilities, Hardware, Origin
from tools_cache.registry import Requirement


def glasses(**facts):
    return Capabilities.of("m", facts, origin=Origin.FIRMWARE, now=0.0)


G1 = glasses(display=True, camera=False, microphone=True, speaker=True)


def need(*types, required=True):
    return [Requirement(t, required) for t in types]


@pytest.mark.parametrize(("needs", "compatible"), [
    ([], True), (need("CAMERA"), False), (need("SPEAKER"), True), (need("CAMERA", "GPS"), False),
])  # fmt: skip
@pytest.mark.requirement("S0-11")
def test_the_worked_matrix_of_the_seed(needs, compatible):
    assert judge(needs, G1, stale=False).compatible is compatible


def test_optional_hardware_is_named_and_excludes_nothing():
    verdict = judge([*need("DISPLAY"), *need("CAMERA", required=False)], G1, stale=False)
    assert (verdict.compatible, verdict.missing_required, verdict.missing_optional, verdict.reason) == (True, (), ("CAMERA",), "")


@pytest.mark.parametrize("hardware", [h for h in Hardware if h is not Hardware.EXIST])
def test_each_hardware_is_found_when_it_is_there_and_missed_when_unknown(hardware):
    there = glasses(**{hardware.value.lower(): True})
    assert judge(need(hardware.value), there, stale=False).compatible
    assert judge(need(hardware.value), glasses(), stale=False).missing_required == (hardware.value,)


def test_any_glasses_satisfy_exist_and_no_glasses_do_not():
    assert judge(need("EXIST"), glasses(), stale=False).compatible
    assert judge(need("EXIST"), None, stale=False).reason == "needs glasses; no glasses were ever connected"


@pytest.mark.requirement("S0-12")
def test_never_known_glasses_have_nothing():
    verdict = judge(need("CAMERA"), None, stale=False)
    assert verdict.reason == "needs a camera; no glasses were ever connected"
    assert judge([], None, stale=False).compatible


@pytest.mark.parametrize(("types", "reason"), [
    (["CAMERA"], "needs a camera; these glasses have none"),
    (["CAMERA", "LIGHT"], "needs a camera and a light; these glasses have neither"),
    (["CAMERA", "LIGHT", "WIFI"], "needs a camera, a light and Wi-Fi; these glasses have none of them"),
    (["CAMERA", "DISPLAY"], "needs a camera; these glasses have none"),
    (["CAMERA", "CAMERA"], "needs a camera; these glasses have none"),
    (["GPS"], "needs GPS; this version cannot tell whether glasses have GPS"),
])  # fmt: skip
def test_the_reason_is_words_for_a_person(types, reason):
    assert judge(need(*types), G1, stale=False).reason == reason


def test_glasses_that_are_away_count_as_last_known_and_are_marked():
    fits = judge(need("DISPLAY"), G1, stale=True)
    assert (fits.compatible, fits.stale) == (True, True)
    lacks = judge(need("CAMERA"), G1, stale=True)
    assert (lacks.reason, lacks.stale) == ("needs a camera; the glasses last seen have none", True)
    assert not judge([], G1, stale=True).stale, "an app that needs nothing rests on no glasses"
    assert not judge(need("CAMERA"), None, stale=True).stale
