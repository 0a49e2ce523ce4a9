"""Alarms on real SQLite, with clocks that jump, sleep and reboot."""

import asyncio

import pytest

from edge.runtime.clock import Clock
from edge.storage.tools.packages import Packages, PackageStorage
from edge.tools.announcements.alarms import EARLIEST_TRUE_WALL, MAX_ALARMS, AlarmClock
from tools_cache.api.tool import ErrorCode, ToolFailure

NOW = EARLIEST_TRUE_WALL + 1_000_000.0


class Hands:
    """The hands of a clock, moved by the test."""

    def __init__(self, boot=100.0, wall=NOW, boot_id="boot-1"):
        self.boot_s, self.wall_s = boot, wall
        self.clock = Clock(boot=lambda: self.boot_s, wall=lambda: self.wall_s, boot_id=boot_id)

    def pass_(self, seconds):
        self.boot_s += seconds
        self.wall_s += seconds


@pytest.fixture
async def storage(tmp_path):
    packages = Packages(tmp_path / "packages")
    yield PackageStorage(packages, "alarms")
    await packages.close()


def alarms(storage, hands):
    return AlarmClock(storage, hands.clock, look_s=0.005)


async def first(clock, limit_s=5.0):
    """Take one alarm, leaving it untold on disk."""
    fired = clock.fired()
    async with asyncio.timeout(limit_s):
        alarm = await anext(fired)
    await fired.aclose()
    return alarm


async def none_yet(clock):
    with pytest.raises(TimeoutError):
        await first(clock, limit_s=0.05)


async def test_an_alarm_fires_when_its_time_is_over_and_not_before(storage):
    hands = Hands()
    clock = alarms(storage, hands)
    number = await clock.set(10, "tea")
    hands.pass_(9.9)
    await none_yet(clock)
    hands.pass_(1.1)
    alarm = await first(clock)
    assert (alarm.id, alarm.text, alarm.late_s) == (number, "tea", 1.0)


async def test_an_alarm_set_while_the_clock_waits_is_seen_at_once(storage):
    clock = AlarmClock(storage, Clock.system(), look_s=60.0)
    fired = clock.fired()
    waiting = asyncio.ensure_future(anext(fired))
    await asyncio.sleep(0)
    await clock.set(0.05, "soon")
    async with asyncio.timeout(40):
        assert (await waiting).text == "soon"
    await fired.aclose()


async def test_alarms_fire_in_order_each_once_and_are_gone(storage):
    hands = Hands()
    clock = alarms(storage, hands)
    for seconds, text in ((30, "c"), (10, "a"), (20, "b")):
        await clock.set(seconds, text)
    assert [a["text"] for a in await clock.pending()] == ["a", "b", "c"]
    hands.pass_(60)
    fired = clock.fired()
    assert [(await anext(fired)).text for _ in range(3)] == ["a", "b", "c"]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(fired)
    assert await storage.fetch("SELECT * FROM alarms") == []


async def test_pending_says_what_is_left_soonest_first(storage):
    hands = Hands()
    clock = alarms(storage, hands)
    await clock.set(60, "b")
    await clock.set(30, "a")
    hands.pass_(20)
    assert await clock.pending() == [
        {"id": 2, "text": "a", "remaining_s": 10.0},
        {"id": 1, "text": "b", "remaining_s": 40.0},
    ]


async def test_nothing_is_pending_on_a_new_disk_and_asking_writes_nothing(storage):
    assert await alarms(storage, Hands()).pending() == []
    assert await storage.fetch("SELECT name FROM sqlite_master") == []


async def test_a_cancelled_alarm_never_fires(storage):
    hands = Hands()
    clock = alarms(storage, hands)
    number = await clock.set(10, "tea")
    assert await clock.cancel(number) is True
    assert await clock.cancel(number) is False
    assert await clock.cancel(99) is False
    hands.pass_(60)
    await none_yet(clock)
    await none_yet(alarms(storage, hands))


async def test_an_alarm_survives_a_restart_of_the_daemon(storage):
    hands = Hands()
    await alarms(storage, hands).set(60, "tea")
    hands.pass_(20)
    hands.wall_s += 86_400  # and the wall clock is set meanwhile
    assert (await alarms(storage, hands).pending())[0]["remaining_s"] == 40.0


async def test_a_wall_clock_that_jumps_moves_no_alarm(storage):
    hands = Hands()
    clock = alarms(storage, hands)
    await clock.set(60, "tea")
    for jump in (86_400, -200_000):
        hands.wall_s += jump
        await none_yet(clock)
    hands.pass_(60)
    assert (await first(clock)).text == "tea"


async def test_an_alarm_survives_a_reboot_by_the_wall_clock(storage):
    hands = Hands()
    await alarms(storage, hands).set(600, "tea")
    after = Hands(boot=5.0, wall=NOW + 100, boot_id="boot-2")
    assert (await alarms(storage, after).pending())[0]["remaining_s"] == 500.0


async def test_an_alarm_due_while_off_fires_at_once_with_its_delay(storage):
    await alarms(storage, Hands()).set(600, "tea")
    alarm = await first(alarms(storage, Hands(boot=5.0, wall=NOW + 1000, boot_id="boot-2")))
    assert (alarm.text, alarm.late_s) == ("tea", 400.0)


async def test_a_clock_set_back_delays_an_alarm_by_its_length_at_most(storage):
    await alarms(storage, Hands()).set(600, "tea")
    after = Hands(boot=5.0, wall=NOW - 50_000, boot_id="boot-2")
    assert (await alarms(storage, after).pending())[0]["remaining_s"] == 600.0


@pytest.mark.parametrize(("before", "after"), [(1000.0, NOW), (NOW, 1000.0)])
async def test_a_clock_that_was_never_set_makes_it_late_never_early(storage, before, after):
    await alarms(storage, Hands(wall=before)).set(600, "tea")
    clock = alarms(storage, Hands(boot=5.0, wall=after, boot_id="boot-2"))
    assert (await clock.pending())[0]["remaining_s"] == 600.0


async def test_after_a_reboot_it_runs_on_this_boots_clock(storage):
    await alarms(storage, Hands()).set(600, "tea")
    hands = Hands(boot=5.0, wall=NOW + 100, boot_id="boot-2")
    await alarms(storage, hands).pending()
    hands.pass_(10)
    hands.wall_s += 86_400
    assert (await alarms(storage, hands).pending())[0]["remaining_s"] == 490.0


async def test_without_a_boot_id_every_start_counts_as_a_reboot(storage):
    await alarms(storage, Hands(boot_id="")).set(600, "tea")
    assert (await alarms(storage, Hands(boot=5.0, wall=NOW + 100, boot_id="")).pending())[0][
        "remaining_s"
    ] == 500.0


async def test_an_alarm_whose_announcement_was_interrupted_is_announced_again(storage):
    hands = Hands()
    clock = alarms(storage, hands)
    await clock.set(10, "tea")
    hands.pass_(20)
    await first(clock)
    assert (await first(clock)).text == "tea"
    assert (await first(alarms(storage, hands))).text == "tea"


class Refusing:
    """A storage whose writes can be refused or held."""

    def __init__(self, inner):
        self.inner, self.refuse, self.hold = inner, "", None
        self.written = asyncio.Event()

    async def execute(self, sql, *params):
        if self.refuse and sql.startswith(self.refuse):
            raise OSError("disk full")
        result = await self.inner.execute(sql, *params)
        if self.hold and sql.startswith("INSERT"):
            self.written.set()
            await self.hold.wait()
        return result

    async def fetch(self, sql, *params):
        return await self.inner.fetch(sql, *params)


async def test_an_alarm_that_cannot_be_removed_is_announced_once(storage):
    hands, disk = Hands(), Refusing(storage)
    clock = alarms(disk, hands)
    await clock.set(10, "tea")
    hands.pass_(20)
    disk.refuse = "DELETE"
    fired = clock.fired()
    await anext(fired)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(fired)
    disk.refuse = "INSERT"
    with pytest.raises(OSError, match="disk full"):
        await clock.set(10, "more")  # after which what is on disk is read again
    await none_yet(clock)
    assert (await first(alarms(disk, hands))).text == "tea", "after a restart it may"


async def test_setting_that_was_cut_short_but_reached_the_disk_counts(storage):
    hands, disk = Hands(), Refusing(storage)
    disk.hold = asyncio.Event()
    clock = alarms(disk, hands)
    setting = asyncio.ensure_future(clock.set(10, "tea"))
    await asyncio.wait_for(disk.written.wait(), 40)
    setting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await setting
    disk.hold.set()
    assert [a["text"] for a in await clock.pending()] == ["tea"]
    hands.pass_(20)
    assert (await first(clock)).text == "tea"


async def test_a_refused_setting_is_an_error_and_leaves_no_alarm(storage):
    hands, disk = Hands(), Refusing(storage)
    disk.refuse = "INSERT"
    clock = alarms(disk, hands)
    with pytest.raises(OSError, match="disk full"):
        await clock.set(10, "tea")
    assert await clock.pending() == []


@pytest.mark.parametrize("seconds", [0, -1, 8 * 86_400, float("nan"), float("inf")])
async def test_a_duration_that_is_none_is_refused(storage, seconds):
    with pytest.raises(ToolFailure):
        await alarms(storage, Hands()).set(seconds, "tea")


async def test_there_are_at_most_a_hundred_alarms(storage):
    clock = alarms(storage, Hands())
    for _ in range(MAX_ALARMS):
        await clock.set(10, "tea")
    with pytest.raises(ToolFailure) as refused:
        await clock.set(10, "tea")
    assert refused.value.error.code is ErrorCode.CONFLICT


async def test_an_alarm_with_a_key_is_set_once_also_after_it_was_announced(storage):
    hands = Hands()
    clock = alarms(storage, hands)
    number = await clock.set(1, "tea", key="k")
    assert await clock.set(1, "tea", key="k") == number
    at_once = await asyncio.gather(*(clock.set(1, "milk", key="m") for _ in range(4)))
    assert len(set(at_once)) == 1
    hands.pass_(2)
    fired = clock.fired()
    assert [(await anext(fired)).text for _ in range(2)] == ["tea", "milk"]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(fired)
    after_a_restart = alarms(storage, hands)
    assert await after_a_restart.set(1, "tea", key="k") == number
    hands.pass_(2)
    await none_yet(after_a_restart)
    assert {row["text"] for row in await storage.fetch("SELECT text FROM alarms")} == {""}


async def test_an_alarm_with_a_key_that_was_shown_and_not_stored_as_shown_comes_once_more(storage):
    hands = Hands()
    clock = alarms(storage, hands)
    await clock.set(1, "tea", key="k")
    hands.pass_(2)
    assert (await first(clock)).text == "tea"  # and then the daemon is killed
    fired = alarms(storage, hands).fired()
    assert (await anext(fired)).text == "tea"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(fired)
    await none_yet(alarms(storage, hands))


async def test_only_the_newest_keys_of_announced_alarms_are_kept(storage, monkeypatch):
    monkeypatch.setattr("edge.tools.announcements.alarms.MAX_KEYS", 2)
    hands = Hands()
    clock = alarms(storage, hands)
    for number in range(4):
        await clock.set(1, "tea", key=f"k{number}")
    await clock.set(100, "waits", key="k9")
    hands.pass_(2)
    fired = clock.fired()
    for _ in range(4):
        await anext(fired)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(fired)
    rows = await storage.fetch("SELECT key FROM alarms ORDER BY id")
    assert [row["key"] for row in rows] == ["k2", "k3", "k9"]


async def test_a_table_of_alarms_without_keys_takes_one(storage):
    await storage.execute(
        "CREATE TABLE alarms (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, "
        "after_s REAL NOT NULL, boot_id TEXT NOT NULL, due_boot REAL NOT NULL, "
        "due_wall REAL NOT NULL)"
    )
    hands = Hands()
    clock = alarms(storage, hands)
    await clock.set(1, "old")
    for _ in range(2):
        await clock.set(1, "new", key="k")
    hands.pass_(2)
    fired = alarms(storage, hands).fired()
    assert [(await anext(fired)).text for _ in range(2)] == ["old", "new"]
    await fired.aclose()


async def test_an_alarm_with_a_key_and_no_text_is_refused(storage):
    with pytest.raises(ToolFailure, match="text is empty"):
        await alarms(storage, Hands()).set(1, "", key="k")
