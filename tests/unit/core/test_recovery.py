"""The recovery ladder: every kind of failure stands in it, each rung comes when the table says,
none is left out.
"""

from pathlib import Path

import pytest

from edge.core.link_state import diagram
from edge.core.recovery import (
    ADAPTER_ISSUES,
    DOUBT_S,
    LADDER,
    MAX_HISTORY,
    STABLE_S,
    STORM_S,
    Failure,
    RecoveryStep,
    Wake,
    advise,
    kind_of,
    remember,
    table,
)
from firmware_bridge.errors import CommandRefused, LinkLost, LostReason, RadioError, RadioReason

KINDS = [*LostReason, *RadioReason]


def steps(kind, times, *, watched=False):
    """What is advised at the first, second … failure of one kind."""
    history, found = (), []
    for _ in range(times):
        history = remember(history, Failure(kind))
        found.append(advise(history, watched=watched).step)
    return found


def first(kind, step, times=200, *, watched=False):
    """At which failure a step comes first; 0 when it never does."""
    found = steps(kind, times, watched=watched)
    return found.index(step) + 1 if step in found else 0


@pytest.mark.requirement("I4-link-ladder")
def test_every_kind_of_failure_stands_in_the_table():
    assert set(LADDER) == set(KINDS)
    assert set(ADAPTER_ISSUES) <= set(KINDS)


@pytest.mark.requirement("I4-link-ladder")
@pytest.mark.parametrize("kind", KINDS)
def test_each_rung_comes_first_at_the_failure_that_the_table_says(kind):
    rung = LADDER[kind]
    assert first(kind, RecoveryStep.FRESH) == (
        rung.fresh if not rung.ask or rung.fresh < rung.ask else 0
    )
    assert first(kind, RecoveryStep.RESET) == rung.reset
    assert first(kind, RecoveryStep.ASK) == rung.ask
    assert first(kind, RecoveryStep.LEAVE, watched=True) == rung.leave
    assert not rung.ask or rung.wake is Wake.NOTHING, "while a person is asked, nothing is tried"
    assert first(kind, RecoveryStep.LEAVE) == 0, "nobody would start the process again"


def test_the_ladder_is_climbed_from_below():
    for kind, rung in LADDER.items():
        heights = [n for n in (rung.fresh, rung.reset, rung.leave) if n]
        assert heights == sorted(set(heights)), kind


@pytest.mark.requirement("M-never-gives-up")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not LADDER[kind].ask])
def test_without_a_watchdog_no_number_of_failures_ends_the_trying(kind):
    assert {RecoveryStep.LEAVE, RecoveryStep.ASK}.isdisjoint(steps(kind, 600))


def test_the_adapter_is_reset_ever_more_rarely():
    found = [
        n for n, step in enumerate(steps(RadioReason.BUSY, 200), 1) if step is RecoveryStep.RESET
    ]
    assert found == [4, 8, 16, 32, 64, 128]


@pytest.mark.parametrize(
    "kind",
    [RadioReason.BOND_LOST, RadioReason.REFUSED, RadioReason.NOT_PAIRED, RadioReason.NO_AGENT],
)
def test_a_refused_key_is_asked_about_at_once_and_nothing_wakes_it(kind):
    advice = advise((Failure(kind),))
    assert (advice.step, advice.wake) == (RecoveryStep.ASK, Wake.NOTHING)


def test_a_doubted_bond_is_lost_at_the_third_time_and_says_what_to_do():
    assert steps(RadioReason.BOND_DOUBT, 3) == [
        RecoveryStep.FRESH,
        RecoveryStep.FRESH,
        RecoveryStep.ASK,
    ]
    assert "glassd pair" in advise((Failure(RadioReason.BOND_DOUBT),) * 3).hint
    assert advise((Failure(RadioReason.BOND_DOUBT),) * 9).again_s == DOUBT_S
    assert advise((Failure(RadioReason.BOND_LOST),)).again_s == 0


def test_kinds_are_counted_apart():
    history = (Failure(RadioReason.BUSY), Failure(RadioReason.TIMEOUT), Failure(RadioReason.BUSY))
    assert advise(history).why == "busy × 2"
    assert advise(history).step is RecoveryStep.FRESH


def test_a_stable_link_forgets_what_was_before_and_a_short_one_does_not():
    history = (Failure(LostReason.SILENT),) * 3
    assert len(remember(history, Failure(LostReason.SILENT, STABLE_S - 1))) == 4
    assert remember(history, Failure(LostReason.SILENT, STABLE_S)) == (
        Failure(LostReason.SILENT, STABLE_S),
    )


def test_the_history_has_a_bound():
    history = ()
    for _ in range(MAX_HISTORY + 50):
        history = remember(history, Failure(RadioReason.NOT_FOUND))
    assert len(history) == MAX_HISTORY


def test_the_first_reconnects_are_not_held_back_and_a_storm_is():
    def wait_s(times, up_s):
        return advise((Failure(LostReason.DISCONNECTED, up_s),) * times).at_least_s

    assert [wait_s(n, 0.0) for n in (1, 2, 3, 50)] == [0.0, 0.0, STORM_S, STORM_S]
    assert wait_s(9, STORM_S / 2) == STORM_S / 2, "the time it was up counts"
    assert wait_s(9, STORM_S * 2) == 0.0


def test_somebody_who_walked_away_is_listened_for_and_a_radio_that_is_gone_waited_for():
    assert advise((Failure(LostReason.DISCONNECTED),)).wake is Wake.ADVERT
    assert advise((Failure(RadioReason.NOT_FOUND),)).wake is Wake.ADVERT
    assert advise((Failure(RadioReason.POWERED_OFF),)).wake is Wake.RADIO
    assert advise((Failure(RadioReason.TIMEOUT),)).wake is Wake.NOTHING, (
        "they are heard, and still do not connect"
    )


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (RadioError(RadioReason.BUSY, "x"), RadioReason.BUSY),
        (LinkLost(LostReason.SILENT), LostReason.SILENT),
        (CommandRefused("unsupported"), LostReason.PROTOCOL),
    ],
)
def test_every_end_of_an_attempt_has_a_kind(cause, kind):
    assert kind_of(cause) is kind


def test_the_table_can_be_printed():
    assert "| busy | at first | from 2 | from 4 | from 12 | – | nothing |" in table()
    assert len(table().splitlines()) == len(LADDER) + 2


def test_the_page_about_the_link_prints_both_tables():
    page = (Path(__file__).parents[3] / "docs" / "link.md").read_text(encoding="utf-8")
    assert table() in page, "python -m edge.core.recovery"
    assert diagram() in page, "python -m edge.core.link_state"
