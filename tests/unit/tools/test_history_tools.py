"""The tools of the history: their examples are true, days are the wearer's, phrases reach them."""

import json
import re
from datetime import UTC, datetime

import pytest

from edge.core.phrases import match
from edge.storage.history import HistoryStore, UserHistory
from edge.storage.tools.user_stores import PrivateStores
from tests.unit.tools.compiled import shipped
from tests.unit.tools.test_local import WALL, Rig
from tests.unit.tools.test_local_phrases import tools
from tools_cache.api.history import OFF, HistoryEntry
from tools_cache.api.tool import ErrorCode
from tools_cache.builder import compiler

NAMES = ("context:recent", "continuum:search", "continuum:forget")


class Desk(Rig):
    """The shipped tools with a history."""

    def __init__(self, path):
        self.recording, self.zone, self.forgotten = True, "UTC", []
        self.calls = 2
        self.private = PrivateStores(path / "users", key=path / "tools.key")
        super().__init__(
            path,
            shipped(),
            compiler.TOOLS,
            history=lambda user: UserHistory(
                self.store, user, recording=self.recording, forget_calls=self.forget_calls
            ),
        )
        self.use_zone("UTC")
        self.store = HistoryStore(path / "history.db", self.private.keyring, self.clock)

    async def forget_calls(self, user, query):
        self.forgotten.append((user, query.words))
        return self.calls

    def use_zone(self, zone):
        self.local.configure({name: {"enabled": True, "timezone": zone} for name in NAMES})

    async def note(self, text, kind="said", tool="", *, at=None):
        self.wall, now = at or self.wall, self.wall
        await self.store.add("local", HistoryEntry(0.0, kind, text, tool))
        self.wall = now

    async def ask(self, tool, **args):
        return (await self.good(tool, args)).data

    async def fails(self, tool, **args):
        response = await self.run(tool, args)
        assert not response.ok
        return response.error


@pytest.fixture
async def desk(tmp_path):
    found = Desk(tmp_path)
    yield found
    await found.store.close()
    await found.packages.close()


def within(part, whole):
    if isinstance(part, dict):
        return all(key in whole and within(value, whole[key]) for key, value in part.items())
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(within, part, whole))
    return part == whole


async def test_each_example_of_their_documents_is_true(desk):
    await desk.note("Gate B12", "called", "glasses:show_text")
    await desk.note("When does the train leave?")
    for name in NAMES:
        doc = (compiler.TOOLS / name.replace(":", "_") / "doc.md").read_text(encoding="utf-8")
        found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
        assert found
        for args, result in found:
            data = await desk.ask(name, **json.loads(args))
            assert within(json.loads(result), data), (args, data)


async def test_only_the_last_minutes_are_recent(desk):
    await desk.note("old", at=WALL - 3601)
    await desk.note("new", at=WALL - 3599)
    data = await desk.ask("context:recent")
    assert [entry["text"] for entry in data["entries"]] == ["new"]
    assert (await desk.ask("context:recent", minutes=61, limit=1))["total"] == 2
    for minutes, span in ((1, "minute"), (5, "5 minutes"), (60, "hour"), (120, "2 hours")):
        desk.wall += 3600 * 3
        found = await desk.ask("context:recent", minutes=minutes)
        assert found["text"] == f"Nothing in the last {span}"


async def test_the_lens_has_each_entry_in_a_line_and_none_without_words(desk):
    await desk.note("2 pages\n- one\n- two", "called", "pager:inbox")
    await desk.note("", "called", "glasses:clear")
    await desk.note("a word " * 30, "called", "web:fetch")
    data = await desk.ask("context:recent")
    assert data["total"] == 3
    long, short = data["text"].splitlines()
    assert short.endswith(" 2 pages; one; two")
    assert long.endswith((" word…", " a…"))
    assert len(long) <= len("00:00 ") + 80


async def test_an_empty_history_that_is_off_says_how_to_switch_it_on(desk):
    desk.recording = False
    assert (await desk.ask("context:recent"))["text"] == OFF
    assert (await desk.ask("continuum:search", query="x"))["text"] == f"Nothing found: x\n{OFF}"


@pytest.mark.requirement("I15-history-search")
async def test_a_day_is_one_in_the_zone_of_the_wearer(desk):
    at = datetime(2026, 11, 20, 23, 30, tzinfo=UTC).timestamp()
    await desk.note("late words", at=at)
    day = {"since": "2026-11-21", "until": "2026-11-21"}
    assert (await desk.ask("continuum:search", query="*", **day))["total"] == 0
    desk.use_zone("Europe/Berlin")
    found = await desk.ask("continuum:search", query="*", **day)
    assert found["entries"][0]["at"] == "2026-11-21T00:30:00+01:00"
    assert found["text"] == "00:30 late words"


async def test_the_day_of_a_clock_change_has_all_its_hours(desk):
    desk.use_zone("Europe/Berlin")
    await desk.note("last hour", at=datetime(2026, 10, 25, 22, 30, tzinfo=UTC).timestamp())
    day = {"since": "2026-10-25", "until": "2026-10-25"}
    assert (await desk.ask("continuum:search", query="hour", **day))["total"] == 1


async def test_yesterday_and_moments_restrict_a_search(desk):
    await desk.note("train one", at=WALL - 86_400)
    await desk.note("train two", at=WALL - 60)
    assert (await desk.ask("continuum:search", query="train", until="yesterday"))["total"] == 1
    moment = datetime.fromtimestamp(WALL - 60, UTC).isoformat()
    assert (await desk.ask("continuum:search", query="train", until=moment))["total"] == 1
    assert (await desk.ask("continuum:search", query="train", since=moment))["total"] == 1


@pytest.mark.requirement("I15-history-search")
async def test_a_person_is_found_by_a_name_that_occurs(desk):
    await desk.note("Anna Berg wants the report")
    await desk.note("Anna Lund wants the report")
    found = await desk.ask("continuum:search", query="report", person="anna BERG")
    assert [entry["text"] for entry in found["entries"]] == ["Anna Berg wants the report"]
    assert (await desk.ask("continuum:search", query="*", person="Anna"))["total"] == 2


@pytest.mark.parametrize(
    ("tool", "args", "says"),
    [
        ("continuum:search", {"query": "?!"}, "/query contains no word"),
        ("continuum:search", {"query": "*"}, "/query contains no word"),
        ("continuum:search", {"query": "a", "person": "…"}, "/person contains no name"),
        (
            "continuum:search",
            {"query": "a", "since": "2026-13-40"},
            "/since '2026-13-40' is neither",
        ),
        ("continuum:search", {"query": "a", "until": "soon"}, "/until 'soon' is neither a day"),
        (
            "continuum:search",
            {"query": "a", "since": "today", "until": "yesterday"},
            "/since must be before /until",
        ),
        ("continuum:forget", {"what": "…"}, "/what contains no word"),
        ("continuum:forget", {"what": "*", "until": "9999-12-31"}, "/until"),
    ],
)
async def test_bad_input_is_named_and_deletes_nothing(desk, tool, args, says):
    await desk.note("a word")
    error = await desk.fails(tool, **args)
    assert error.code is ErrorCode.INVALID_ARGUMENTS
    assert says in error.message
    assert error.suggestion
    assert (await desk.ask("context:recent"))["total"] == 1


async def test_one_call_forgets_a_day_or_a_word_or_everything(desk):
    for text, age_s in (("train one", 86_400), ("train two", 60), ("plane", 30)):
        await desk.note(text, at=WALL - age_s)
    forget = "continuum:forget"
    assert (await desk.ask(forget, what="*", since="yesterday", until="yesterday"))[
        "forgotten"
    ] == 1
    done = await desk.ask(forget, what="train")
    assert (done["forgotten"], done["calls"]) == (1, 2)
    assert done["text"] == "Forgotten: 1 entry, 2 calls. Notes, and what others have, stay."
    assert desk.forgotten[-1] == ("local", ("train",))
    assert (await desk.ask("context:recent"))["total"] == 1
    assert (await desk.ask(forget, what="*"))["forgotten"] == 1
    desk.calls = 0
    nothing = await desk.ask(forget, what="*")
    assert (nothing["forgotten"], nothing["text"]) == (0, "Nothing found to forget")


async def test_a_long_history_fits_one_answer(desk):
    for _ in range(10):
        await desk.note("😀" * 4000)
    data = await desk.ask("context:recent", limit=10)
    assert {len(entry["text"]) for entry in data["entries"]} == {1001}


@pytest.mark.requirement("I15-history-forgotten")
def test_forgetting_always_asks_the_wearer(desk):
    definition = desk.registry.snapshot().find("continuum:forget").definition
    assert definition.requires_confirmation == "always"
    assert definition.wearer.ask == "Delete this from the history?"


@pytest.mark.parametrize(
    ("language", "sentence", "tool", "args"),
    [
        ("en", "What was it I read?", "context:recent", {}),
        ("en", "What did I ask?", "context:recent", {}),
        ("en", "What was said about the train?", "continuum:search", {"query": "the train"}),
        ("en", "Forget everything about Anna.", "continuum:forget", {"what": "Anna"}),
        ("de", "Was habe ich gelesen?", "context:recent", {}),
        ("de", "Was wurde gesagt über Anna?", "continuum:search", {"query": "Anna"}),
        ("de", "Vergiss alles über Anna.", "continuum:forget", {"what": "Anna"}),
        ("es", "¿Qué acabo de leer?", "context:recent", {}),
        ("es", "¿Qué se dijo sobre Anna?", "continuum:search", {"query": "Anna"}),
        ("fr", "Qu'est-ce que j'ai lu ?", "context:recent", {}),
        ("fr", "Oublie tout sur Anna.", "continuum:forget", {"what": "Anna"}),
        ("it", "Che cosa ho letto?", "context:recent", {}),
        ("it", "Cosa è stato detto su Anna?", "continuum:search", {"query": "Anna"}),
        ("en", "What did I write about Anna?", "notes:search", {"query": "Anna"}),
    ],
)
def test_a_sentence_calls_the_tool(language, sentence, tool, args):
    found = match(sentence, tools(), language)
    assert found is not None
    assert (found.tool.name, found.args) == (tool, args)
