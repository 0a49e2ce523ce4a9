import pytest

from edge.core.tools.compatibility import judge
from firmware_bridge.capabilities import MENTRA_FIELDS, Capabilities, Hardware, Origin
from tools_cache.registry.models import Detail, Requirement


def glasses(**facts):
    return Capabilities.of("m", facts, origin=Origin.FIRMWARE, now=0.0)


G1 = glasses(display=True, camera=False, microphone=True, speaker=True)


def need(*types, required=True):
    return [Requirement(t, required) for t in types]


@pytest.mark.parametrize(
    ("needs", "compatible"),
    [
        ([], True),
        (need("CAMERA"), False),
        (need("SPEAKER"), True),
        (need("CAMERA", "GPS"), False),
    ],
)
@pytest.mark.requirement("S0-11")
def test_the_worked_matrix_of_the_seed(needs, compatible):
    assert judge(needs, G1, stale=False).compatible is compatible


def test_optional_hardware_is_named_and_excludes_nothing():
    verdict = judge([*need("DISPLAY"), *need("CAMERA", required=False)], G1, stale=False)
    assert (
        verdict.compatible,
        verdict.missing_required,
        verdict.missing_optional,
        verdict.reason,
    ) == (True, (), ("CAMERA",), "")


@pytest.mark.parametrize(
    ("facts", "required", "optional", "reason"),
    [
        ({"display": True}, (), (), ""),
        ({"speaker": True}, (), ("DISPLAY",), ""),
        (
            {"camera": True},
            ("DISPLAY",),
            (),
            "needs a display or a speaker; these glasses (X) have none",
        ),
    ],
)
def test_what_will_do_instead_makes_a_need_optional(facts, required, optional, reason):
    needs = [Requirement("DISPLAY", instead="SPEAKER")]
    verdict = judge(needs, glasses(**facts), stale=False, title="X")
    assert (verdict.missing_required, verdict.missing_optional) == (required, optional)
    assert verdict.reason == reason


@pytest.mark.parametrize("hardware", [h for h in Hardware if h is not Hardware.EXIST])
def test_each_hardware_is_found_when_it_is_there_and_missed_when_unknown(hardware):
    there = glasses(**{hardware.value.lower(): True})
    assert judge(need(hardware.value), there, stale=False).compatible
    assert judge(need(hardware.value), glasses(), stale=False).missing_required == (hardware.value,)


def test_what_glasses_say_of_themselves_is_one_printable_line_in_a_reason():
    odd = glasses(**{"speaker": True, "speaker.made": "by\x1b[31m\nnobody"})
    wanted = Requirement("SPEAKER", True, details=(Detail("made", equal="here"),))
    assert judge([wanted], odd, stale=False).reason.endswith("; these glasses have by [31m nobody")


def test_any_glasses_satisfy_exist_and_no_glasses_do_not():
    assert judge(need("EXIST"), glasses(), stale=False).compatible
    assert (
        judge(need("EXIST"), None, stale=False).reason == "needs glasses; no glasses are known yet"
    )


@pytest.mark.requirement("S0-12")
def test_never_known_glasses_have_nothing():
    verdict = judge(need("CAMERA"), None, stale=False)
    assert verdict.reason == "needs a camera; no glasses are known yet"
    assert judge([], None, stale=False).compatible


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        (["CAMERA"], "needs a camera; these glasses have none"),
        (["CAMERA", "LIGHT"], "needs a camera and a light; these glasses have neither"),
        (
            ["CAMERA", "LIGHT", "WIFI"],
            "needs a camera, a light and Wi-Fi; these glasses have none of them",
        ),
        (["CAMERA", "DISPLAY"], "needs a camera; these glasses have none"),
        (["CAMERA", "CAMERA"], "needs a camera; these glasses have none"),
        (["GPS"], "needs GPS; this version cannot tell whether glasses have GPS"),
    ],
)
def test_the_reason_is_words_for_a_person(types, reason):
    assert judge(need(*types), G1, stale=False).reason == reason


def test_glasses_that_are_away_count_as_last_known_and_are_marked():
    fits = judge(need("DISPLAY"), G1, stale=True)
    assert (fits.compatible, fits.stale) == (True, True)
    lacks = judge(need("CAMERA"), G1, stale=True)
    assert (lacks.reason, lacks.stale) == ("needs a camera; the glasses last seen have none", True)
    assert not judge([], G1, stale=True).stale, "an app that needs nothing rests on no glasses"
    assert not judge(need("CAMERA"), None, stale=True).stale


# ------------------------------------------------------------------ below the flag


def display(*details, required=True):
    return [Requirement("DISPLAY", required, details=details)]


LENS = glasses(
    display=True,
    **{
        "display.lines": 5,
        "display.bitmap": False,
        "display.color": "green",
        "microphone": True,
        "microphone.codecs": "lc3,opus",
        "imu": True,
    },
)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (Detail("maxTextLines", least=5), ""),
        (Detail("lines", least=5), ""),
        (
            Detail("maxTextLines", least=6),
            "needs a display with at least 6 lines of text; these glasses have 5",
        ),
        (
            Detail("maxTextLines", most=4),
            "needs a display with at most 4 lines of text; these glasses have 5",
        ),
        (
            Detail("canDisplayBitmap", equal=True),
            "needs a display that shows pictures; these glasses have no such display",
        ),
        (Detail("canDisplayBitmap", equal=False), ""),
        (
            Detail("adjustBrightness", equal=True),
            (
                "needs a display that lets its brightness be set; "
                "these glasses do not report this about their display"
            ),
        ),
        (Detail("color", equal="GREEN"), ""),
        (
            Detail("color", equal="full_color"),
            "needs a display that has full_color as its color; these glasses have green",
        ),
        (
            Detail("lines", equal=True),
            "needs a display that has true as its lines; these glasses have 5",
        ),
        (
            Detail("bitmap", least=0),
            "needs a display with at least 0 as its bitmap; these glasses have no such display",
        ),
    ],
)
@pytest.mark.requirement("I5-hardware-below")
def test_what_lies_below_a_flag_is_compared_and_what_is_unknown_does_not_fit(wanted, reason):
    assert judge(display(wanted), LENS, stale=False).reason == reason


@pytest.mark.requirement("I5-hardware-below")
def test_a_list_fits_when_it_holds_the_word_and_no_part_of_one():
    need_codec = lambda codec: [Requirement("MICROPHONE", details=(Detail("codecs", equal=codec),))]  # noqa: E731 - asked twice
    assert judge(need_codec("opus"), LENS, stale=False).compatible
    assert judge(need_codec("pus"), LENS, stale=False).missing_required == ("MICROPHONE.codecs",)


def test_details_of_hardware_that_is_not_there_are_left_over_and_count_for_nothing():
    none = glasses(display=False, **{"display.lines": 5})
    verdict = judge(display(Detail("lines", least=5)), none, stale=False)
    assert (verdict.missing_required, verdict.reason) == (
        ("DISPLAY",),
        "needs a display; these glasses have none",
    )
    assert none.detail(Hardware.DISPLAY, "lines") is None


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({"haptic": True}, ""),
        ({"haptic": False}, "needs glasses that vibrate; these glasses do not"),
        ({}, "needs glasses that vibrate; these glasses do not say that they do"),
    ],
)
def test_what_glasses_have_beside_all_parts_is_a_detail_of_themselves(known, reason):
    need_haptic = [Requirement("EXIST", details=(Detail("haptic", equal=True),))]
    verdict = judge(need_haptic, glasses(**known), stale=False)
    assert (verdict.reason, verdict.compatible) == (reason, not reason)


def test_a_flag_without_details_is_there_and_nothing_more_is_known_of_it():
    assert judge(need("IMU"), LENS, stale=False).compatible
    assert judge(
        [Requirement("IMU", details=(Detail("axisCount", least=6),))], LENS, stale=False
    ).reason == (
        "needs a motion sensor with at least 6 axes; "
        "these glasses do not report this about their motion sensor"
    )


def test_several_failing_details_give_one_reason():
    verdict = judge(
        display(Detail("maxTextLines", least=6), Detail("canDisplayBitmap", equal=True))
        + need("CAMERA"),
        LENS,
        stale=False,
    )
    assert verdict.missing_required == (
        "DISPLAY.maxTextLines",
        "DISPLAY.canDisplayBitmap",
        "CAMERA",
    )
    assert verdict.reason == (
        "needs a display with at least 6 lines of text that shows "
        "pictures, and a camera; these glasses lack that"
    )


def test_every_name_of_mentraos_leads_to_one_of_our_keys():
    for name, key in MENTRA_FIELDS.items():
        flag, _, field = name.partition(".")
        record = glasses(**{flag: True, key: 7})
        assert record.detail(Hardware(flag.upper()), field) == 7


# ------------------------------------------------------------------ words


@pytest.mark.requirement("I5-hardware-reason")
def test_the_reason_names_the_glasses():
    said = judge(need("CAMERA"), G1, stale=False, title="Even Realities G1").reason
    assert said == "needs a camera; these glasses (Even Realities G1) have none"
    said = judge(need("CAMERA"), G1, stale=True, title="Even Realities G1").reason
    assert said == "needs a camera; the glasses last seen (Even Realities G1) have none"


def test_a_word_from_outside_is_one_short_line():
    assert judge(need("GPS\x1b[2J\n" + "x" * 200), G1, stale=False).reason.startswith(
        "needs GPS [2J xxx"
    )
    assert len(judge(need("X" * 200), G1, stale=False).reason) < 250


def test_what_is_in_force_can_carry_warnings():
    verdict = judge(
        [*need("DISPLAY"), *need("LIGHT", required=False)],
        G1,
        stale=True,
        title="Even Realities G1",
    )
    assert verdict.missing_optional == ("LIGHT",)
    assert verdict.warnings == (
        "works without a light: the glasses last seen (Even Realities G1) have none",
        "judged by what the glasses last seen could do",
    )
    assert judge(need("LIGHT", required=False), None, stale=False).warnings == (
        "works without a light: no glasses are known yet",
    )
    assert judge(need("DISPLAY"), G1, stale=False).warnings == ()
    assert judge(
        display(Detail("maxTextLines", least=6), required=False), LENS, stale=False
    ).warnings == ("works without a display with at least 6 lines of text: these glasses have 5",)
