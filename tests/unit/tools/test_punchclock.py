"""Working times: begun, paused and ended once, true days, corrected after a yes."""

import asyncio
import json
import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from edge.config.load import load
from edge.core.phrases import match
from edge.storage.tools.user_stores import PrivateStores
from edge.storage.tools.user_tables import UserTables
from tests.unit.tools.compiled import shipped
from tests.unit.tools.desk import PackageDesk
from tests.unit.tools.test_local import call
from tests.unit.tools.test_local_phrases import tools
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolFailure
from tools_cache.builder import compiler
from tools_cache.everyday import punch_clock
from tools_cache.everyday.work_hours import duration, report, summary, week_of

ORDER = ("start", "status", "pause", "report", "stop", "correct")
BERLIN = ZoneInfo("Europe/Berlin")
HOUR = 3600


class Desk(PackageDesk):
    """The shipped tools with a user's own storage, in Berlin; it is 11:30 on a Saturday."""

    package = "punchclock"

    def __init__(self, path, zone="Europe/Berlin"):
        self.users = path / "users"
        self.stores = PrivateStores(self.users, key=path / "tools.key")
        configs = {f"punchclock:{tool}": {"timezone": zone} for tool in ORDER}
        super().__init__(path, shipped(), compiler.TOOLS, private=self.stores.of, configs=configs)

    def at(self, moment):
        """Set the clock to a moment of Berlin."""
        self.wall = datetime.fromisoformat(moment).replace(tzinfo=BERLIN).timestamp()
        return self

    async def worked(self, project, start, end):
        return await self.ask("correct", action="add", project=project, start=start, end=end)


@pytest.fixture
async def desk(tmp_path):
    found = Desk(tmp_path)
    yield found
    await found.stores.close()
    await found.packages.close()


def within(told, whole):
    if isinstance(told, dict):
        return isinstance(whole, dict) and all(
            key in whole and within(value, whole[key]) for key, value in told.items()
        )
    if isinstance(told, list):
        return len(told) == len(whole) and all(map(within, told, whole))
    return told == whole


async def test_each_example_of_their_documents_is_true(desk):
    for tool in ORDER:
        doc = (compiler.TOOLS / f"punchclock_{tool}" / "doc.md").read_text(encoding="utf-8")
        found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
        assert found
        desk.wall += HOUR if tool == "pause" else 0
        for args, result in found:
            data = await desk.ask(tool, **json.loads(args))
            assert within(json.loads(result), data), (args, data)


# ------------------------------------------------------------------ start, pause, stop


async def test_a_moment_of_another_year_says_which(desk):
    data = await desk.worked("Alpha", "2025-12-31T23:00", "2026-01-01T01:00")
    assert data["text"] == "Added: Wed 31 Dec 2025, 23:00 to Thu 1 Jan, 01:00, Alpha (entry 1)"


async def test_a_new_project_ends_the_one_before(desk):
    await desk.at("2026-11-20T09:02").ask("start", project=" Alpha ")
    data = await desk.at("2026-11-20T11:02").ask("start", project="Beta")
    assert data["text"] == "Working on Beta since 11:02"
    data = await desk.at("2026-11-20T12:22").ask("report")
    assert data["text"] == "Today 3 h 20 min: Alpha 2 h, Beta 1 h 20 min"
    assert [entry["end"] for entry in data["entries"]] == ["2026-11-20T11:02:00+01:00", None]


async def test_capitals_make_no_other_project(desk):
    await desk.ask("start", project="Alpha")
    assert (await desk.ask("start", project="ALPHA"))["started"] is False
    assert len((await desk.ask("report"))["entries"]) == 1
    await desk.worked("alpha", "2026-11-21T09:00", "2026-11-21T10:00")
    assert (await desk.ask("report"))["projects"] == [{"project": "Alpha", "seconds": HOUR}]


async def test_a_pause_is_not_counted_and_ends_with_the_same_project(desk):
    await desk.at("2026-11-20T09:00").ask("start", project="Alpha")
    await desk.at("2026-11-20T10:00").ask("pause")
    again = await desk.at("2026-11-20T10:20").ask("pause")
    assert again["text"] == "Paused since 10:00: Alpha\nToday 1 h"
    assert (await desk.at("2026-11-20T10:30").ask("start"))["current"]["project"] == "Alpha"
    stopped = await desk.at("2026-11-20T11:00").ask("stop")
    assert stopped["text"] == "Stopped Alpha after 30 min\nToday 1 h 30 min"


async def test_a_stop_during_a_pause_ends_work_where_the_pause_began(desk):
    await desk.at("2026-11-20T09:00").ask("start", project="Alpha")
    await desk.at("2026-11-20T10:00").ask("pause")
    data = await desk.at("2026-11-20T12:00").ask("stop")
    assert (data["state"], data["today_s"], data["current"]) == ("stopped", HOUR, None)
    assert (await desk.ask("start"))["current"]["project"] == ""


async def test_without_work_there_is_nothing_to_pause(desk):
    assert (await desk.fails("pause")).code is ErrorCode.CONFLICT
    assert (await desk.ask("stop"))["text"] == "Not working"


async def test_of_four_starts_at_once_one_begins(desk):
    started = await asyncio.gather(
        *(desk.run("punchclock:start", {"project": "Alpha"}) for _ in range(4))
    )
    assert sorted(answer.data["started"] for answer in started) == [False, False, False, True]
    assert len((await desk.ask("report"))["entries"]) == 1


async def test_a_switch_that_is_not_stored_lets_the_old_work_go_on(desk, monkeypatch):
    await desk.ask("start", project="Alpha")
    desk.wall += HOUR

    async def refuse(*_):
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(UserTables, "insert", refuse)
        assert not (await desk.run("punchclock:start", {"project": "Beta"})).ok
    status = await desk.ask("status")
    assert (status["state"], status["current"]["project"]) == ("working", "Alpha")


async def test_small_talk_around_a_project_is_no_part_of_it(desk):
    spoken = {"origin": CallOrigin.VOICE}
    answer = await desk.run("punchclock:start", {"project": "Alpha now, please."}, **spoken)
    assert answer.data["current"]["project"] == "Alpha"
    answer = await desk.run("punchclock:start", {"project": "an Beta"}, **spoken)
    assert answer.data["current"]["project"] == "Beta"
    typed = await desk.run("punchclock:start", {"project": "Ask Eva again"})
    assert typed.data["current"]["project"] == "Ask Eva again"


async def test_no_more_than_the_most_entries_are_stored(desk, monkeypatch):
    monkeypatch.setattr(punch_clock, "MAX_ENTRIES", 1)
    await desk.ask("start", project="Alpha")
    assert (await desk.fails("start", project="Beta")).code is ErrorCode.CONFLICT
    assert (await desk.ask("status"))["current"]["project"] == "Alpha"
    error = await desk.fails(
        "correct", action="add", start="2026-11-20T09:00", end="2026-11-20T10:00"
    )
    assert "stored already" in error.message


# ------------------------------------------------------------------ clocks


@pytest.mark.parametrize("tool", ["start", "pause", "stop", "status", "report"])
async def test_a_clock_that_was_never_set_is_refused(desk, tool):
    desk.wall = punch_clock.CLOCK_FLOOR - 1
    error = await desk.fails(tool)
    assert "clock of this machine is not set" in error.message
    assert (error.code, error.retryable) == (ErrorCode.TOOL_UNAVAILABLE, True)
    desk.wall += 1
    assert (await desk.ask("status"))["state"] == "stopped"


@pytest.mark.parametrize("tool", ["pause", "stop"])
async def test_work_does_not_end_before_it_began(desk, tool):
    await desk.at("2026-11-20T10:30").ask("start", project="Alpha")
    error = await desk.at("2026-11-20T09:45").fails(tool)
    assert error.for_wearer == "The clock was set back: the last entry is of 10:30."
    assert (await desk.ask("status"))["current"]["seconds"] == 0
    assert (await desk.at("2026-11-20T10:31").ask("stop"))["today_s"] == 60


async def test_work_does_not_begin_within_the_entry_before(desk):
    await desk.worked("Alpha", "2026-11-20T09:00", "2026-11-20T12:00")
    error = await desk.at("2026-11-20T11:00").fails("start", project="Beta")
    assert (error.code, "set back" in error.message) == (ErrorCode.CONFLICT, True)
    assert (await desk.at("2026-11-20T11:59").ask("start"))["current"]["start"].endswith(
        "12:00:00+01:00"
    ), "a clock that is a minute slow does not matter"


async def test_a_forgotten_stop_is_told_with_its_fix(desk):
    await desk.at("2026-11-20T09:00").ask("start", project="Alpha")
    assert (await desk.at("2026-11-21T01:00").ask("status"))["forgotten"] == []
    data = await desk.at("2026-11-21T02:00").ask("status")
    expected = {"entry": 1, "seconds": 17 * HOUR, "suggestion": "punchclock:correct"}
    assert data["forgotten"] == [expected]
    assert data["text"].splitlines() == [
        "Working on Alpha since Fri 20 Nov, 09:00",
        "Today 2 h",
        "Entry 1 has 17 h: its stop was probably forgotten",
    ]
    assert (await desk.ask("report", period="yesterday"))["forgotten"] == [expected]
    fixed = await desk.ask("correct", entry=1, end="2026-11-20T17:00")
    assert (fixed["forgotten"], fixed["seconds"]) == ([], 8 * HOUR)
    assert (await desk.ask("status"))["state"] == "stopped"


# ------------------------------------------------------------------ days and weeks


async def test_work_over_midnight_counts_for_both_days(desk):
    await desk.worked("Alpha", "2026-11-19T22:30", "2026-11-20T01:00")
    hours = [
        (await desk.ask("report", date=f"2026-11-{day}"))["total_s"] for day in (18, 19, 20, 21)
    ]
    assert hours == [0, 90 * 60, HOUR, 0]
    week = await desk.ask("report", period="week")
    assert [day["seconds"] for day in week["days"]] == [0, 0, 0, 90 * 60, HOUR, 0, 0]
    assert week["text"] == "This week 2 h 30 min: Alpha 2 h 30 min"


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
async def test_a_day_on_which_the_clocks_change_has_its_own_length(desk, day, hours):
    nights = {"2026-03-29": "2026-03-30T00:00", "2026-10-25": "2026-10-26T00:00"}
    await desk.worked("Alpha", f"{day}T00:00", nights[day])
    assert (await desk.ask("report", date=day))["total_s"] == hours * HOUR
    assert (await desk.ask("report", period="week", date=day))["total_s"] == hours * HOUR


@pytest.mark.parametrize(
    ("start", "says", "hours"),
    [("2026-03-29T02:30", "does not exist", 2.5), ("2026-10-25T02:30", "exists twice", 3.5)],
)
async def test_a_time_that_a_day_lacks_or_has_twice_is_refused(desk, start, says, hours):
    args = {"action": "add", "start": start, "end": f"{start[:10]}T05:00"}
    assert says in (await desk.fails("correct", **args)).message
    entry = await desk.ask("correct", **{**args, "start": f"{start}+02:00"})
    assert entry["seconds"] == hours * HOUR


async def test_the_same_moment_is_of_another_day_in_another_zone(tmp_path):
    desk = Desk(tmp_path, "America/New_York")
    await desk.worked("Alpha", "2026-11-20T03:00+00:00", "2026-11-20T04:00+00:00")
    assert (await desk.ask("report", date="2026-11-19"))["total_s"] == HOUR
    assert (await desk.ask("report", date="2026-11-20"))["total_s"] == 0
    await desk.stores.close()
    await desk.packages.close()


async def test_days_and_weeks_are_named(desk):
    texts = [
        (await desk.ask("report", **args))["text"]
        for args in (
            {"period": "today"},
            {"period": "yesterday"},
            {"period": "last week"},
            {"date": "2026-11-18"},
        )
    ]
    assert texts == [
        "Today: no work",
        "Yesterday: no work",
        "Week of 9 Nov: no work",
        "Wed 18 Nov: no work",
    ]
    error = await desk.fails("report", period="yesterday", date="2026-11-18")
    assert "/date" in error.message
    assert "/date" in (await desk.fails("report", date="1999-12-31")).message


def test_of_many_projects_five_are_named():
    calendar = punch_clock.calendar_of("Europe/Berlin")
    day = calendar.day(1_795_257_000)
    begin = calendar.begin(day)
    entries = [
        punch_clock.WorkEntry(n, f"P{n}" if n else "", begin + n * HOUR, begin + n * HOUR + 60 * n)
        for n in range(8)
    ]
    entries[0] = punch_clock.WorkEntry(0, "", begin + 9 * HOUR, begin + 10 * HOUR)
    text = summary("Today", report(entries, [day], calendar, begin + 20 * HOUR))
    assert text == (
        "Today 1 h 28 min: no project 1 h, P7 7 min, P6 6 min, P5 5 min, P4 4 min, others 6 min"
    )
    assert [d.day for d in week_of(day)] == [16, 17, 18, 19, 20, 21, 22]
    assert (duration(59), duration(7200)) == ("0 min", "2 h")


# ------------------------------------------------------------------ corrections


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"start": "2026-11-20T09:00"}, "/entry is missing"),
        ({"entry": 1}, "nothing to change"),
        ({"entry": 9, "project": "x"}, "/entry there is no entry 9"),
        ({"action": "remove", "entry": 9}, "/entry there is no entry 9"),
        ({"action": "remove", "entry": 1, "start": "2026-11-20T09:00"}, "/start does not go"),
        ({"action": "add", "start": "2026-11-20T09:00"}, "/end is missing"),
        ({"entry": 1, "end": "2026-11-22T09:00"}, "/end is in the future"),
        ({"entry": 1, "start": "2026-11-21T11:31"}, "/start is in the future"),
        ({"entry": 1, "start": "2026-11-20T13:00"}, "/end must be after the start"),
        ({"entry": 1, "start": "2026-02-30T13:00"}, "/start '2026-02-30T13:00' is not a moment"),
        ({"entry": 1, "start": "1970-01-01T00:00"}, "/start must be in 2000 to 2100"),
        ({"entry": 1, "end": "2026-11-20T13:01"}, "overlaps entry 2, Fri 20 Nov, 13:00 to 14:00"),
    ],
)
async def test_a_wrong_correction_changes_nothing(desk, args, says):
    await desk.worked("Alpha", "2026-11-20T10:00", "2026-11-20T12:00")
    await desk.worked("Beta", "2026-11-20T13:00", "2026-11-20T14:00")
    before = await desk.ask("report", period="week")
    assert says in (await desk.fails("correct", **args)).message
    assert await desk.ask("report", period="week") == before


async def test_a_running_entry_overlaps_what_it_has_passed(desk):
    await desk.at("2026-11-20T10:00").ask("start", project="Alpha")
    args = {"action": "add", "start": "2026-11-20T10:30", "end": "2026-11-20T10:45"}
    assert (await desk.at("2026-11-20T11:00").fails("correct", **args)).code is ErrorCode.CONFLICT
    earlier = await desk.ask("correct", entry=1, start="2026-11-20T09:30", project="Beta")
    assert earlier["text"] == "Changed: since 09:30, Beta (entry 1)"
    assert (await desk.ask("status"))["state"] == "working"


@pytest.mark.parametrize("moment", ["yesterday", "2026-11-20", "2026-11-20 09:00", "T09:00"])
async def test_a_moment_of_another_form_is_refused_by_the_schema(desk, moment):
    definition = desk.registry.snapshot().find("punchclock:correct").definition
    _, problems = desk.registry.check_args(definition, {"entry": 1, "start": moment})
    assert [problem["path"] for problem in problems] == ["/start"]


async def test_a_removed_entry_is_gone_and_its_number_is_not_used_again(desk):
    await desk.worked("Alpha", "2026-11-20T10:00", "2026-11-20T12:00")
    await desk.ask("correct", action="remove", entry=1)
    assert (await desk.ask("report", period="week"))["entries"] == []
    added = await desk.worked("Alpha", "2026-11-20T10:00", "2026-11-20T12:00")
    assert added["entry"] == 2


def test_a_correction_always_asks_and_the_rest_does_not():
    found = {tool.name: tool.requires_confirmation for tool in tools()}
    asks = {tool: found[f"punchclock:{tool}"] for tool in ORDER}
    assert asks == {**dict.fromkeys(ORDER, "never"), "correct": "always"}


# ------------------------------------------------------------------ storage and settings


async def test_no_word_or_time_is_on_disk_in_plain_text(desk):
    await desk.ask("start", project="Alpha")
    theirs = await desk.go(call("punchclock:status", {}, user_id="other"))
    assert theirs.data["state"] == "stopped"
    await desk.stores.close()
    stored = b"".join(file.read_bytes() for file in desk.users.rglob("*") if file.is_file())
    assert stored
    for word in (b"Alpha", str(int(desk.wall)).encode()):
        assert word not in stored


async def test_reading_creates_no_table(desk):
    await desk.ask("status")
    await desk.ask("report")
    assert await desk.stores.of("local", "punchclock").db.fetch("SELECT * FROM sqlite_master") == []


async def test_many_entries_are_read_in_parts(desk, monkeypatch):
    monkeypatch.setattr(punch_clock, "_PAGE", punch_clock._PAGE.replace("1000", "2"))
    for hour in range(10, 15):
        await desk.worked("Alpha", f"2026-11-20T{hour}:00", f"2026-11-20T{hour}:30")
    assert (await desk.ask("report", period="yesterday"))["total_s"] == 5 * HOUR // 2


def test_it_is_off_at_first_and_has_the_wearers_zone(tmp_path):
    file = tmp_path / "glassd.toml"
    file.write_text('version = 1\n[wearer]\ntimezone = "Europe/Berlin"\n')
    assert {f"punchclock:{tool}" for tool in ORDER} <= load(file, {}).tool.off.keys()
    file.write_text(f"{file.read_text()}[tool.punchclock]\nenabled = true\n")
    on = load(file, {}).tool
    assert not {name for name in on.off if name.startswith("punchclock:")}
    assert on.values["punchclock:report"] == {"enabled": True, "timezone": "Europe/Berlin"}
    file.write_text(f'{file.read_text()}timezone = "Mars"\n')
    assert "Mars" in load(file, {}).tool.off["punchclock:report"]


# ------------------------------------------------------------------ spoken


@pytest.mark.parametrize(
    ("language", "sentence", "tool", "args"),
    [
        ("", "I start working now.", "start", {}),
        ("", "I start working on project Alpha.", "start", {"project": "Alpha"}),
        ("", "Start working", "start", {}),
        ("", "Pause work.", "pause", {}),
        ("", "I stop working now.", "stop", {}),
        ("", "How long have I worked today?", "report", {"period": "today"}),
        ("", "How long have I worked?", "report", {}),
        ("", "Report my hours for last week.", "report", {"period": "last week"}),
        ("", "What am I working on?", "status", {}),
        ("de", "Ich fange jetzt an zu arbeiten.", "start", {}),
        ("de", "Ich arbeite jetzt am Projekt Alpha.", "start", {"project": "Alpha"}),
        ("de", "Ich mache jetzt Feierabend!", "stop", {}),
        ("de", "Wie lange habe ich heute gearbeitet?", "report", {}),
        ("es", "Empiezo a trabajar en Alpha.", "start", {"project": "Alpha"}),
        ("es", "¿Cuánto he trabajado hoy?", "report", {}),
        ("fr", "Je commence à travailler sur Alpha.", "start", {"project": "Alpha"}),
        ("fr", "J'arrête de travailler.", "stop", {}),
        ("it", "Inizio a lavorare su Alpha.", "start", {"project": "Alpha"}),
        ("it", "Faccio una pausa.", "pause", {}),
    ],
)
def test_a_sentence_calls_the_tool(language, sentence, tool, args):
    found = match(sentence, tools(), language)
    assert found is not None
    assert (found.tool.name, found.args) == (f"punchclock:{tool}", args)


def test_none_of_their_phrases_is_one_of_another_tool():
    mine, others = set(), set()
    for tool in tools():
        said = {p for more in tool.local_phrases.values() for p in more} | {
            *tool.activation_phrases
        }
        (mine if tool.name.startswith("punchclock:") else others).update(map(str.casefold, said))
    assert mine
    assert not mine & others


@pytest.mark.parametrize(
    ("sentence", "tool"),
    [
        ("note that I start working at nine", "notes:add"),
        ("set a timer for 10 minutes to start working on Alpha", "timer:start"),
        ("stop timer", "timer:cancel"),
        ("how long is left", "timer:list"),
    ],
)
def test_sentences_of_other_tools_stay_theirs(sentence, tool):
    found = match(sentence, tools(), leading=True)
    assert found is not None
    assert found.tool.name == tool


@pytest.mark.requirement("I11-consent-complete")
async def test_a_question_names_the_entry_of_work_that_is_meant(desk):
    desk.at("2026-11-21T18:00")
    entry = (await desk.worked("Alpha", "2026-11-20T09:02", "2026-11-20T12:00"))["entry"]
    found = await desk.named("punchclock:correct", action="remove", entry=entry)
    assert found == ["entry = entry: Fri 20 Nov 2026, 09:02 to 12:00, Alpha"]
    with pytest.raises(ToolFailure, match="no entry"):
        await desk.named("punchclock:correct", action="remove", entry=entry + 1)
    assert await desk.named("punchclock:correct", action="add", start="x", end="y") == []
    night = (await desk.worked("", "2026-11-20T22:00", "2026-11-21T01:00"))["entry"]
    found = await desk.named("punchclock:correct", entry=night)
    assert found == ["entry = entry: Fri 20 Nov 2026, 22:00 to Sat 21 Nov 2026, 01:00"]
