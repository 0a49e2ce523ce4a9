"""The link's table: what is listed is allowed, what is not raises."""

import itertools

import pytest

from edge.core.link_state import STEPS, IllegalLinkStep, LinkState, check, diagram


def test_every_state_has_a_row_and_every_row_leads_somewhere():
    assert set(STEPS) == set(LinkState)
    assert all(STEPS.values())


@pytest.mark.parametrize(("old", "new"), list(itertools.product(LinkState, LinkState)))
def test_a_step_is_taken_exactly_when_the_table_lists_it(old, new):
    if new in STEPS[old]:
        assert check(old, new) is new
    else:
        with pytest.raises(IllegalLinkStep, match=f"{old} to {new}"):
            check(old, new)


def test_ready_is_reached_only_by_way_of_the_greeting():
    assert [old for old in LinkState if LinkState.READY in STEPS[old]] == [LinkState.PREPARING]


def test_a_running_link_can_always_be_closed():
    running = set(LinkState) - {LinkState.OFF, LinkState.CLOSING}
    assert all(LinkState.CLOSING in STEPS[state] for state in running)


def test_the_diagram_shows_every_step_of_the_table():
    drawn = {line.strip() for line in diagram().splitlines()}
    assert {f"{old} --> {new}" for old in STEPS for new in STEPS[old]} <= drawn
