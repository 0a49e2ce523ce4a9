"""Reminders on real SQLite: the tools, and what is announced with clocks that jump."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from edge.runtime.clock import Clock
from edge.storage.tools.packages import Packages, PackageStorage
from edge.storage.tools.user_stores import PrivateStores
from edge.tools.announcements.alarms import EARLIEST_TRUE_WALL
from edge.tools.announcements.reminders import MAX_REMINDERS, Reminders
from tests.unit.tools.compiled import shipped
from tests.unit.tools.desk import PackageDesk
from tests.unit.tools.test_local import call
from tools_cache.api.tool import ErrorCode
from tools_cache.builder import compiler

BERLIN = ZoneInfo("Europe/Berlin")


def wall(text, zone=UTC):
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


NOW = wall("2026-11-28T10:00")


class Desk(PackageDesk):
    """The shipped tools with reminders of their own; `zone` is the wearer's."""

    package = "reminder"

    def __init__(self, path):
        self.zone = UTC
        self.stores = PrivateStores(path / "users", key=path / "tools.key")
        self.packages = Packages(path / "packages")
        self.file = path / "packages" / "reminder.db"
        self.reminders = None
        clock = Clock(boot=lambda: 0.0, wall=lambda: self.wall, boot_id="b")
        self.reminders = Reminders(
            PackageStorage(self.packages, "reminder"), clock, zone=lambda: self.zone, look_s=0.005
        )
        super().__init__(
            path,
            shipped(),
            compiler.TOOLS,
            private=self.stores.of,
            reminders=self.reminders,
            call=self.call_other,
        )
        self.wall = NOW

    async def call_other(self, asked):
        return await self.go(asked)

    async def listed(self, which="upcoming", **more):
        return [r["text"] for r in (await self.ask("list", range=which, **more))["reminders"]]

    async def told(self, limit_s=5.0):
        """Take the next announcement and mark it, as the notifier does; None if there is none."""
        fired = self.reminders.fired()
        try:
            async with asyncio.timeout(limit_s):
                found = await anext(fired)
        except TimeoutError:
            await fired.aclose()
            return None
        following = asyncio.ensure_future(anext(fired))
        while not await self._marked(found):
            await asyncio.sleep(0)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return found.text, found.late_s

    async def _marked(self, found):
        rows = {row["id"]: row for row in await self.reminders.of("local")}
        return rows[found.id]["announced"] == found.due

    async def none_told(self):
        return await self.told(0.05) is None


@pytest.fixture
async def desk(tmp_path):
    found = Desk(tmp_path)
    yield found
    await found.stores.close()
    await found.packages.close()


def within(told, whole):
    return all(key in whole and whole[key] == value for key, value in told.items())


@pytest.mark.requirement("S4-31")
async def test_each_example_of_their_documents_is_true(desk):
    for tool in ("add", "list", "complete", "update", "remove"):
        doc = (compiler.TOOLS / f"reminder_{tool}" / "doc.md").read_text(encoding="utf-8")
        found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
        assert found
        for args, result in found:
            data = await desk.ask(tool, **json.loads(args))
            assert within(json.loads(result), data), (args, data)


@pytest.mark.requirement("S4-30")
async def test_the_table_has_eleven_columns_and_four_indexes(desk):
    await desk.ask("add", text="x")
    with closing(sqlite3.connect(desk.file)) as db:
        assert len(db.execute("PRAGMA table_info(reminders)").fetchall()) == 11
        assert len(db.execute("PRAGMA index_list(reminders)").fetchall()) == 4


@pytest.mark.requirement("S4-32")
async def test_reminders_are_listed_by_range(desk):
    for text, when in (
        ("a", "2026-11-28T11:00"),
        ("b", "2026-11-28T18:00"),
        ("c", "2026-11-29T09:00"),
        ("d", "2026-12-24T09:00"),
    ):
        await desk.ask("add", text=text, when=when)
    await desk.ask("add", text="e")
    desk.wall = wall("2026-11-28T12:00")
    await desk.ask("complete", reminder="c")
    assert await desk.listed("today") == ["a", "b"]
    assert await desk.listed("tomorrow") == []
    assert await desk.listed("upcoming") == ["b", "d", "e"]
    assert await desk.listed("past") == await desk.listed("overdue") == ["a"]
    assert await desk.listed("all") == ["a", "b", "c", "d", "e"]
    assert await desk.listed("date", date="2026-12-24") == ["d"]
    assert await desk.listed("range", date="2026-11-28", until="2026-12-24") == ["a", "b", "d"]
    desk.wall = wall("2026-11-30T12:00")
    assert (await desk.listed("past"), await desk.listed("overdue")) == (
        ["a", "b", "c"],
        ["a", "b"],
    )


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"range": "date"}, "/date must be a day"),
        ({"range": "range", "date": "2026-12-02", "until": "2026-12-01"}, "before /date"),
    ],
)
async def test_a_range_without_its_days_is_refused(desk, args, says):
    assert says in (await desk.fails("list", **args)).message


@pytest.mark.requirement("S4-33")
async def test_the_moment_may_stand_in_the_text(desk):
    data = await desk.ask("add", text="tomorrow at nine to call Anna")
    assert data["text"] == "Tomorrow 09:00: call Anna"
    assert data["due"] == "2026-11-29T09:00:00+00:00"
    data = await desk.ask("add", text="every monday at 9 to take out the rubbish")
    assert data["text"] == "Mon 30 Nov, 09:00: take out the rubbish (every Mon)"


async def test_a_moment_alone_is_a_reminder_too(desk):
    assert (await desk.ask("add", text="tomorrow at 9"))["text"] == "Tomorrow 09:00: it is time"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"text": " "}, "only blanks"),
        ({"text": "x", "when": "someday"}, "/when 'someday' is not understood"),
        ({"text": "x", "when": "2026-11-28T09:00"}, "is not understood, or is over"),
        ({"text": "x", "when": "2026-13-28T09:00"}, "is not understood"),
        ({"text": "x", "when": "9999-12-31T23:59:59-12:00"}, "is not understood"),
        ({"text": "x", "when": "tomorrow", "repeat": "FREQ=HOURLY"}, "FREQ is not understood"),
    ],
)
async def test_what_cannot_be_added_is_refused(desk, args, says):
    assert says in (await desk.fails("add", **args)).message
    assert await desk.listed("all") == []


@pytest.mark.requirement("S4-34")
async def test_another_time_zone_leaves_the_moment_where_it_is(desk):
    desk.zone = BERLIN
    added = await desk.ask("add", text="x", when="2026-12-01T09:00")
    assert added["due"] == "2026-12-01T09:00:00+01:00"
    desk.zone = ZoneInfo("America/New_York")
    (moved,) = (await desk.ask("list"))["reminders"]
    assert moved["due"] == "2026-12-01T03:00:00-05:00"
    assert datetime.fromisoformat(moved["due"]) == datetime.fromisoformat(added["due"])


@pytest.mark.parametrize(
    ("now", "when", "due"),
    [
        ("2027-03-27T12:00", "2027-03-28T02:30", "2027-03-28T03:30:00+02:00"),
        ("2027-10-30T12:00", "2027-10-31T02:30", "2027-10-31T02:30:00+02:00"),
        ("2027-10-30T12:00", "2027-10-31T02:30+01:00", "2027-10-31T02:30:00+01:00"),
    ],
)
@pytest.mark.requirement("S4-33")
async def test_a_time_that_the_clock_skips_or_repeats_has_one_moment(desk, now, when, due):
    desk.zone, desk.wall = BERLIN, wall(now, BERLIN)
    assert (await desk.ask("add", text="x", when=when))["due"] == due


async def test_nine_o_clock_stays_nine_when_summer_ends(desk):
    desk.zone, desk.wall = BERLIN, wall("2027-10-29T12:00", BERLIN)
    await desk.ask("add", text="tea", when="tomorrow at 09:00", repeat="FREQ=DAILY")
    for day in ("2027-10-30", "2027-10-31", "2027-11-01"):
        desk.wall = wall(f"{day}T08:59:59", BERLIN)
        assert await desk.none_told()
        desk.wall = wall(f"{day}T09:00:01", BERLIN)
        assert await desk.told() == ("Reminder: tea", 1.0)


@pytest.mark.requirement("S4-35")
async def test_a_contact_is_found_by_part_of_its_name(desk):
    ids = {}
    for name in ("Anna Berg", "Annabel Lee", "Bob"):
        ids[name] = (await desk.good("contacts:add", {"name": name})).data["id"]
    data = await desk.ask("add", text="call", contact="bER")
    assert data["contact"] == ids["Anna Berg"]
    error = await desk.fails("add", text="call", contact="ann")
    assert "matches 2 contacts: Anna Berg, Annabel Lee" in error.message
    assert [c["name"] for c in error.details["matches"]] == ["Anna Berg", "Annabel Lee"]
    assert "is no contact" in (await desk.fails("add", text="call", contact="Zoe")).message


@pytest.mark.requirement("S4-36")
async def test_an_internal_reminder_is_never_told(desk):
    await desk.ask("add", text="x", when="2026-11-28T11:00", category="internal")
    desk.wall = wall("2026-11-28T12:00")
    assert await desk.none_told()
    assert (await desk.listed("all"), await desk.listed("all", category="internal")) == ([], ["x"])


@pytest.mark.requirement("S4-37")
async def test_done_and_when_are_set_together(desk):
    await desk.ask("add", text="x", when="tomorrow")
    done = await desk.ask("complete", reminder="x")
    assert (done["completed"], done["completed_at"]) == (True, "2026-11-28T10:00:00+00:00")
    desk.wall += 60
    again = await desk.ask("complete", reminder=str(done["id"]))
    assert again["completed_at"] == done["completed_at"]
    opened = await desk.ask("update", reminder=str(done["id"]), completed=False)
    assert (opened["completed"], opened["completed_at"]) == (False, None)


@pytest.mark.requirement("S4-37")
async def test_one_that_repeats_goes_on_after_it_is_done(desk):
    await desk.ask("add", text="tea", when="today at 18:00", repeat="FREQ=DAILY")
    early = await desk.ask("complete", reminder="tea")
    assert (early["completed"], early["text"]) == (False, "Done: tea\nNext: Tomorrow 18:00")
    later = await desk.ask("complete", reminder="tea")
    assert later["text"] == "Done: tea\nNext: Tomorrow 18:00"


async def test_done_is_no_part_of_what_was_said(desk):
    await desk.ask("add", text="call Anna")
    assert (await desk.ask("complete", reminder="call Anna as done"))["text"] == "Done: call Anna"


async def test_several_that_match_are_named_and_none_is_changed(desk):
    for number in range(12):
        await desk.ask("add", text=f"call {number}")
    error = await desk.fails("complete", reminder="call")
    assert (error.code, len(error.details["matches"])) == (ErrorCode.CONFLICT, 10)
    assert error.for_wearer == "Which one? “call 0”, “call 1”, “call 2” and 9 more"
    assert (await desk.ask("complete", reminder="call 1"))["text"] == "Done: call 1"
    unknown = await desk.fails("remove", reminder="zzz")
    assert "No reminder: zzz" in unknown.message
    assert unknown.for_wearer == "There is no reminder “zzz”."


async def test_no_reminders_is_said_in_a_sentence_for_each_range(desk):
    said = {
        "upcoming": "No reminders",
        "today": "No reminders today",
        "tomorrow": "No reminders tomorrow",
        "overdue": "Nothing is overdue",
    }
    for which, text in said.items():
        assert (await desk.ask("list", range=which))["text"] == text


async def test_a_reminder_is_changed_and_told_again(desk):
    await desk.ask("add", text="x", when="2026-11-28T11:00")
    desk.wall = wall("2026-11-28T11:00:30")
    assert await desk.told() == ("Reminder: x", 30.0)
    changed = await desk.ask("update", reminder="x", text="y", when="in two hours")
    assert changed["text"] == "Today 13:00: y"
    desk.wall = wall("2026-11-28T14:00")
    assert await desk.told() == ("Reminder: y", 3570.0)
    assert "nothing is to be changed" in (await desk.fails("update", reminder="y")).message


async def test_a_repetition_is_given_and_ended(desk):
    await desk.ask("add", text="x", when="tomorrow at 08:00")
    weekly = await desk.ask("update", reminder="x", repeat="FREQ=WEEKLY")
    assert weekly["repeat"] == "FREQ=WEEKLY"
    moved = await desk.ask("update", reminder="x", when="on Monday at 07:00")
    assert (moved["repeat"], moved["due"]) == ("FREQ=WEEKLY", "2026-11-30T07:00:00+00:00")
    assert (await desk.ask("update", reminder="x", repeat="none"))["repeat"] is None


async def test_no_other_user_sees_changes_or_removes_it(desk):
    number = (await desk.ask("add", text="mine"))["id"]
    theirs = await desk.go(call("reminder:list", {"range": "all"}, user_id="eva"))
    assert theirs.data["total"] == 0
    for tool in ("complete", "remove"):
        answer = await desk.go(call(f"reminder:{tool}", {"reminder": str(number)}, user_id="eva"))
        assert not answer.ok
    assert await desk.reminders.change("eva", number, {"text": "z"}) is False
    assert await desk.reminders.remove("eva", number) is False
    assert await desk.listed("all") == ["mine"]


async def test_the_oldest_done_reminder_makes_room(desk):
    await desk.ask("add", text="first")
    await desk.ask("complete", reminder="first")
    row = {"contact": "", "category": "user", "due": None, "repeat": ""}
    for number in range(MAX_REMINDERS - 1):
        await desk.reminders.add("local", {**row, "text": f"n{number}"})
    await desk.ask("add", text="one more")
    assert "first" not in [r["text"] for r in await desk.reminders.of("local")]
    error = await desk.fails("add", text="too many")
    assert (error.code, error.suggestion) == (ErrorCode.CONFLICT, "Remove one first")


# ------------------------------------------------------------------ announcing


async def test_a_reminder_is_told_once_when_it_is_due(desk):
    await desk.ask("add", text="x", when="2026-11-28T11:00")
    desk.wall = wall("2026-11-28T10:59:59")
    assert await desk.none_told()
    desk.wall = wall("2026-11-28T11:00:02")
    assert await desk.told() == ("Reminder: x", 2.0)
    assert await desk.none_told()
    desk.wall = wall("2026-11-28T10:30")  # the clock is set back
    assert await desk.none_told()
    desk.wall = wall("2026-11-28T11:30")
    assert await desk.none_told()


async def test_a_reminder_survives_a_restart_and_is_told_late(desk, tmp_path):
    await desk.ask("add", text="x", when="2026-11-28T11:00")
    await desk.packages.close()
    packages = Packages(tmp_path / "packages")
    clock = Clock(boot=lambda: 0.0, wall=lambda: wall("2026-11-28T14:00"), boot_id="c")
    again = Reminders(PackageStorage(packages, "reminder"), clock, zone=lambda: UTC)
    found = await anext(again.fired())
    assert (found.text, found.late_s) == ("Reminder: x", 3 * 3600.0)
    await packages.close()


async def test_an_announcement_that_was_cut_off_is_repeated(desk):
    await desk.ask("add", text="x", when="2026-11-28T11:00")
    desk.wall = wall("2026-11-28T11:00")
    fired = desk.reminders.fired()
    await anext(fired)
    await fired.aclose()
    assert await desk.told() == ("Reminder: x", 0.0)


async def test_nothing_is_told_while_the_clock_was_never_set(desk):
    await desk.ask("add", text="x", when="2026-11-28T11:00")
    desk.wall = EARLIEST_TRUE_WALL - 1
    assert await desk.none_told()
    with closing(sqlite3.connect(desk.file)) as db, db:  # due before any true clock
        db.execute("UPDATE reminders SET due = 5")
    desk.reminders._changed.set()
    assert await desk.none_told()
    desk.wall = wall("2026-11-28T12:00")
    assert (await desk.told())[0] == "Reminder: x"


async def test_after_days_without_power_one_that_repeats_is_told_once(desk):
    await desk.ask("add", text="tea", when="today at 18:00", repeat="FREQ=DAILY")
    desk.wall = wall("2026-12-05T12:00")
    assert (await desk.told())[0] == "Reminder: tea"
    assert await desk.none_told()
    (kept,) = (await desk.ask("list"))["reminders"]
    assert kept["due"] == "2026-12-05T18:00:00+00:00"


async def test_a_repetition_that_is_over_is_not_told_again(desk):
    await desk.ask("add", text="x", when="today at 18:00", repeat="FREQ=DAILY;COUNT=2")
    for day in ("2026-11-28", "2026-11-29"):
        desk.wall = wall(f"{day}T18:00")
        assert (await desk.told())[0] == "Reminder: x"
    desk.wall = wall("2026-12-20T18:00")
    assert await desk.none_told()


async def test_one_that_is_added_or_done_while_waiting_is_noticed(desk):
    desk.reminders.look_s = 60.0
    fired = desk.reminders.fired()
    waiting = asyncio.ensure_future(anext(fired))
    await asyncio.sleep(0)
    await desk.ask("add", text="x", when="2026-11-28T10:30")
    desk.wall = wall("2026-11-28T10:31")
    await desk.ask("add", text="y", when="2026-11-29T10:30")
    async with asyncio.timeout(20):
        assert (await waiting).text == "Reminder: x"
    await fired.aclose()


async def test_what_was_done_or_removed_is_not_told(desk):
    for text in ("a", "b"):
        await desk.ask("add", text=text, when="2026-11-28T11:00")
    await desk.ask("complete", reminder="a")
    await desk.ask("remove", reminder="b")
    desk.wall = wall("2026-11-28T12:00")
    assert await desk.none_told()


async def test_one_that_was_done_or_moved_is_due_no_more(desk):
    for text in ("a", "b", "c"):
        await desk.ask("add", text=text, when="2026-11-28T11:00")
    desk.wall = wall("2026-11-28T12:00")
    await desk.ask("complete", reminder="a")
    await desk.ask("update", reminder="b", when="2026-11-28T13:00")
    assert [await desk.reminders.is_due(number) for number in (1, 2, 3, 4)] == [
        False,
        False,
        True,
        False,
    ]


async def test_a_full_disk_does_not_tell_a_reminder_again(desk, monkeypatch, caplog):
    await desk.ask("add", text="x", when="2026-11-28T11:00")
    desk.wall = wall("2026-11-28T11:00")
    real = desk.reminders.storage.execute

    async def full(sql, *params):
        if sql.startswith("UPDATE"):
            raise OSError("disk full")
        return await real(sql, *params)

    desk.reminders.storage = type(
        "Full", (), {"execute": staticmethod(full), "fetch": desk.reminders.storage.fetch}
    )()
    fired = desk.reminders.fired()
    assert (await anext(fired)).text == "Reminder: x"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await anext(fired)
    assert "may be announced again after a restart" in caplog.text


async def test_reading_creates_no_table(desk):
    assert await desk.listed("all") == []
    assert await desk.none_told()
    assert not desk.file.exists() or b"reminders" not in desk.file.read_bytes()


@pytest.mark.requirement("I11-consent-complete")
async def test_a_question_names_the_reminder_the_same_on_every_day(desk):
    number = (await desk.ask("add", text="call Anna", when="tomorrow at nine"))["id"]
    words = ["reminder = reminder: call Anna, Sun 29 Nov 2026, 09:00"]
    for wanted in (str(number), "anna"):
        assert await desk.named("reminder:remove", reminder=wanted) == words
    desk.wall += 13 * 3600
    assert await desk.named("reminder:remove", reminder="anna") == words
    await desk.ask("add", text="call Anna", when="2026-11-29T09:00")
    assert await desk.named("reminder:remove", reminder=str(number)) == []
