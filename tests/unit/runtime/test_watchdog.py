"""The pulse: the watchdog is fed from the loop itself, and systemd's status line says what is."""

import asyncio

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
        self.beats = 0
        self.lines = []

    def watchdog(self):
        self.beats += 1

    def status(self, text):
        self.lines.append(text)


async def run_for_a_moment(notifier, beats):
    running = asyncio.ensure_future(Watchdog(notifier, lambda: STATUS).run())
    async with asyncio.timeout(20):
        while notifier.beats < beats:
            await asyncio.sleep(0.005)
    running.cancel()
    await asyncio.wait([running])


async def test_it_pings_three_times_an_interval_and_sends_changed_status_only():
    notifier = Notifier(0.03)
    await run_for_a_moment(notifier, 4)
    assert notifier.lines == ["glasses ready (mock:full); cloud up; 17 tools"]


async def test_without_a_watchdog_there_is_a_status_and_no_beat():
    notifier = Notifier(None)
    running = asyncio.ensure_future(Watchdog(notifier, lambda: STATUS).run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    assert notifier.beats == 0
    assert len(notifier.lines) == 1


def test_the_line_ends_with_the_next_action():
    away = {
        **STATUS,
        "glasses": {"state": "never seen", "model": ""},
        "next_action": "switch them on",
    }
    assert summary(away) == "glasses never seen; cloud up; 17 tools; switch them on"
