"""What the clock of the glasses is set to."""

from datetime import UTC, datetime

import pytest

from edge.config.model import Settings, WearerConfig
from edge.daemon.wearer_writer import WearerWriter
from edge.runtime.clock import Clock
from firmware_bridge.messages import SetClock

NOON = int(datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp())


def clock_of(synced=True, **wearer):
    clock = Clock(wall=lambda: NOON + 0.9, synced=lambda: synced)
    settings = Settings(wearer=WearerConfig(**wearer))
    return WearerWriter(settings, {}, clock).glasses_clock()


@pytest.mark.parametrize(
    ("wearer", "command"),
    [
        ({"timezone": "UTC"}, SetClock(NOON)),
        ({"timezone": "Europe/Vienna"}, SetClock(NOON + 7200, offset_s=7200)),
        (
            {"timezone": "America/New_York", "locale": "en-US"},
            SetClock(NOON - 14400, twelve_hour=True, offset_s=-14400),
        ),
    ],
)
def test_glasses_get_the_time_of_the_wearers_zone(wearer, command):
    assert clock_of(**wearer) == command
    assert clock_of(**wearer).utc_s == NOON


def test_a_machine_that_does_not_know_the_time_sets_no_clock():
    assert clock_of(synced=False, timezone="UTC") is None
