"""What systemd is sent from the loop: pings of its watchdog, and a status line."""

import asyncio
import logging

import pytest

from edge.runtime.watchdog import Watchdog, summary

STATUS = {
    "glasses": {"state": "ready", "model": "mock:full"},
    "uplink": {"state": "up"},
    "registry": {"compatible": 17},
    "next_action": "",
}


class Notifier:
    def __init__(self, watchdog_s):
        self.watchdog_s = watchdog_s
        self.pings = 0
        self.lines = []

    def watchdog(self):
        self.pings += 1

    def status(self, text):
        self.lines.append(text)


async def run_for_a_moment(notifier, pings):
    running = asyncio.ensure_future(Watchdog(notifier, lambda: STATUS).run())
    async with asyncio.timeout(20):
        while notifier.pings < pings:
            await asyncio.sleep(0.005)
    running.cancel()
    await asyncio.wait([running])


async def test_it_pings_three_times_an_interval_and_sends_changed_status_only():
    notifier = Notifier(0.03)
    await run_for_a_moment(notifier, 4)
    assert notifier.lines == ["glasses ready (mock:full); cloud up; 17 tools"]


async def test_without_a_watchdog_there_is_a_status_and_no_ping():
    notifier = Notifier(None)
    running = asyncio.ensure_future(Watchdog(notifier, lambda: STATUS).run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    assert notifier.pings == 0
    assert len(notifier.lines) == 1


@pytest.mark.requirement("I4-watchdog")
async def test_nothing_is_pinged_while_an_operation_is_overdue(caplog):
    caplog.set_level(logging.INFO)
    notifier, stuck, looks = Notifier(0.03), ["display: drawing (2 s late)"], []

    def overdue():
        looks.append(notifier.pings)
        return list(stuck)

    running = asyncio.ensure_future(Watchdog(notifier, lambda: STATUS, overdue=overdue).run())
    async with asyncio.timeout(20):
        while len(looks) < 4:
            await asyncio.sleep(0.005)
        assert notifier.pings == 0
        stuck.clear()
        while not notifier.pings:
            await asyncio.sleep(0.005)
    running.cancel()
    await asyncio.wait([running])
    assert notifier.lines == ["stuck: display: drawing (2 s late)", summary(STATUS)]
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    first, last = (record.getMessage() for record in caplog.records)
    assert "so the watchdog is not pinged: display: drawing" in first
    assert "the watchdog is pinged again" in last


def test_the_line_ends_with_the_next_action():
    away = {
        **STATUS,
        "glasses": {"state": "never seen", "model": ""},
        "next_action": "switch them on",
    }
    assert summary(away) == "glasses never seen; cloud up; 17 tools; switch them on"
