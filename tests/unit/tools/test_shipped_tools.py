"""The reference tools on real parts: each example of their documents is run, and what they may
do is read from their schemas.
"""

import json
import re
from pathlib import Path

import pytest

from edge.calls.admission import fill_arguments
from edge.calls.dependencies import CallLimits
from edge.core import policy
from edge.core.session import NoEffect, SessionController
from edge.storage.tools.knowledge import KnowledgeBase
from edge.storage.tools.user_stores import PrivateStores
from edge.tools.calendars.lookup import CalendarLookup, CalendarPlace
from edge.tools.user_knowledge import UserKnowledge
from tests.unit.tools.calendars.texts import text
from tests.unit.tools.compiled import shipped as compiled
from tests.unit.tools.test_local import Rig, call
from tools_cache.api import notes
from tools_cache.api.calendars import Agenda, CalendarTrouble, Trouble
from tools_cache.api.tool import ErrorCode, ErrorType, Mode
from tools_cache.builder import compiler, guide, lint
from tools_cache.everyday.domain_documents import DomainDocument, DomainDocuments, read_sections

GUIDE = Path(__file__).parents[3] / "docs" / "builtin-tools.md"
OURS = (
    "kb_search",
    "kb_get",
    "calendar_get_availability",
    "calendar_create_event",
    "voice_start",
    "voice_end",
    "session_ignore_user",
    "contacts_extract",
)
SCHEMAS = {
    name: json.loads((compiler.TOOLS / name / "schema.json").read_text())
    for name in (f.name for f in lint.folders(compiler.TOOLS))
}
BUILT = compiled()
STANDUP = (
    "UID:1\nDTSTART;TZID=Europe/Berlin:20261123T100000\n"
    "DTEND;TZID=Europe/Berlin:20261123T110000\nSUMMARY:Stand-up"
)


class House(Rig):
    """The shipped tools with everything lent, over real files."""

    def __init__(self, path, **more):
        self.kb, self.calendar_folder = path / "kb", path / "calendars"
        (self.kb / "studio").mkdir(parents=True)
        (self.calendar_folder / "primary").mkdir(parents=True)
        self.session = SessionController()
        super().__init__(
            path,
            BUILT,
            compiler.TOOLS,
            knowledge=lambda _call: UserKnowledge(self.knowledge, self._documents),
            calendars=lambda: self.calendars,
            voice_active=lambda: self.session.voice_active(0.0),
            state=lambda: {**self.session.described(0.0), "cannot_listen": ""},
        )
        self.knowledge = KnowledgeBase(
            path / "knowledge.db", folder=self.kb, notes=self._notes, clock=self.clock
        )
        self.private = PrivateStores(path / "users", key=path / "tools.key")
        self.calendars = more.get("calendars") or CalendarLookup(
            CalendarPlace(folder=self.calendar_folder), now=lambda: self.wall
        )

    async def _documents(self):
        return self.private.of("local", "domaindoc").db

    async def _notes(self):
        if not await notes.there(self.storage("notes")):
            return []
        return [
            (str(n["id"]), n["text"], n["created"])
            for n in await self.storage("notes").fetch(notes.newest(), 1000)
        ]

    def tool(self, name):
        return self.registry.snapshot().find(name).definition

    async def asked(self, name, args=None, **more):
        """As for every call: arguments filled, clamped and checked, then run."""
        found = fill_arguments(
            self.registry, CallLimits(), call(name, args, **more), self.tool(name)
        )
        response = found.problem or await self.go(call(name, found.values, **more))
        return response, found

    async def good(self, name, args=None, **more):
        response, _ = await self.asked(name, args, **more)
        assert response.ok, response.error
        json.dumps(response.to_json())
        return response

    async def close(self):
        await self.packages.close()
        await self.knowledge.close()
        await self.private.close()


@pytest.fixture
async def house(tmp_path):
    made = House(tmp_path)
    yield made
    await made.close()


# ------------------------------------------------------------------ every example is true


def examples(folder):
    section = re.search(
        r"^## Examples\n(.*?)(?=^## )",
        (compiler.TOOLS / folder / "doc.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )[1]
    return [
        (json.loads(a), json.loads(b))
        for a, b in re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", section, re.MULTILINE)
    ]


def within(told, whole):
    """Everything told is so; lists in full, objects as far as they are told."""
    if isinstance(told, dict):
        return isinstance(whole, dict) and all(
            key in whole and within(value, whole[key]) for key, value in told.items()
        )
    if isinstance(told, list):
        return isinstance(whole, list) and len(told) == len(whole) and all(map(within, told, whole))
    return told == whole


@pytest.mark.parametrize("folder", OURS)
async def test_each_example_of_a_document_is_true(house, folder):
    (house.kb / "studio" / "returns.md").write_text(
        "# Return policy\n\nEverything may be returned within 30 days.\n"
    )
    (house.calendar_folder / "primary" / "a.ics").write_bytes(text(STANDUP))
    await Rig.good(house, "notes:add", {"text": "Bring the umbrella back"})
    rules = read_sections("# Kitchen\nNo shoes\n# Hall\nThe ladder is behind the door")
    await DomainDocuments(await house._documents()).create(
        DomainDocument("House rules", (), rules, house.wall)
    )
    schema, found = SCHEMAS[folder], examples(folder)
    assert found, f"{folder}: no example of the form `{{…}}` gives `{{…}}`"
    if folder == "voice_end":
        house.session.begin_voice()
    for number, (args, result) in enumerate(found):
        data = (
            await house.good(
                schema["name"], args, mode=Mode(schema["allowedModes"][0]), call_id=f"c-{number}"
            )
        ).data
        assert within(result, data), f"{args} gives {json.dumps(data)}"


# ------------------------------------------------------------------ the matrix


@pytest.mark.requirement("S2-129")
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("folder", sorted(SCHEMAS))
def test_mode_and_question_of_each_tool_are_those_of_its_schema(shipped_registry, folder, mode):
    schema = SCHEMAS[folder]
    tool = shipped_registry.snapshot().find(schema["name"]).definition
    refused = policy.mode_problem(tool, mode)
    assert (
        (refused is None)
        is (mode.value in schema["allowedModes"])
        is (not policy.not_offered(tool, mode))
    )
    if refused is not None:
        assert refused.type is ErrorType.MODE_RESTRICTED
    asks = {"always": True, "never": False, "policy": schema["sideEffects"] == "writes"}[
        schema["requiresConfirmation"]
    ]
    assert policy.needs_confirmation(tool) is asks
    assert (tool.category, tool.side_effects, tool.idempotent) == (
        schema["category"],
        schema["sideEffects"],
        schema["idempotent"],
    )
    assert (tool.latency_budget_ms, tool.timeout_s) == (
        schema["latencyBudgetMs"],
        schema["timeoutS"],
    )


@pytest.fixture(scope="module")
def shipped_registry(tmp_path_factory):
    return Rig(tmp_path_factory.mktemp("registry"), BUILT, compiler.TOOLS).registry


SEEDS = {
    "kb:search": ("text voice", "read_only", "never"),
    "kb:get": ("text voice", "read_only", "never"),
    "calendar:get_availability": ("text", "read_only", "never"),
    "calendar:create_event": ("text", "writes", "always"),
    "voice:start": ("text", "writes", "never"),
    "voice:end": ("voice", "writes", "never"),
    "session:ignore_user": ("text voice", "writes", "never"),
    "contacts:extract": ("text voice", "none", "never"),
}


@pytest.mark.requirement("S2-129")
def test_the_reference_tools_are_what_the_seed_says_they_are():
    found = {
        s["name"]: (" ".join(s["allowedModes"]), s["sideEffects"], s["requiresConfirmation"])
        for n, s in SCHEMAS.items()
        if n in OURS
    }
    assert found == SEEDS


@pytest.mark.requirement("S2-129")
def test_the_table_of_the_guide_is_made_of_the_schemas():
    text = GUIDE.read_text(encoding="utf-8")
    rows = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")}
    assert rows >= {SCHEMAS[name]["name"] for name in OURS}
    assert guide.generated(text) == text, "run python -m tools_cache.builder.guide " + str(GUIDE)


def test_a_tool_that_is_off_or_lacks_settings_is_marked_in_the_guide():
    schema = SCHEMAS["kb_get"]
    config = "from pydantic import BaseModel\nclass Config(BaseModel):\n    enabled: bool = {}\n"
    assert guide.row(schema).startswith("| `kb:get` |")
    assert guide.row(schema, config.format("True")).startswith("| `kb:get` |")
    assert guide.row(schema, config.format("False")).startswith("| `kb:get` (off at first) |")
    needing = config.format("True") + "    url: str\n"
    assert guide.row(schema, needing).startswith("| `kb:get` (needs settings) |")


# ------------------------------------------------------------------ arguments


@pytest.mark.requirement("S2-120")
@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({}, "root"),
        ({"query": ""}, "/query"),
        ({"query": "x" * 201}, "/query"),
        ({"query": 5}, "/query"),
        ({"query": "x", "namespace": "secret"}, "/namespace"),
        ({"query": "x", "top_k": 0}, "/top_k"),
        ({"query": "x", "top_k": 11}, "/top_k"),
        ({"query": "x", "top_k": 2.5}, "/top_k"),
        ({"query": "x", "top_k": True}, "/top_k"),
        ({"query": "x", "filters": {"tags": list("abcdef")}}, "/filters/tags"),
        ({"query": "x", "filters": {"author": "me"}}, "/filters"),
        (
            {"query": "x", "filters": {"date_range": {"from": "yesterday"}}},
            "/filters/date_range/from",
        ),
        ({"query": "x", "filters": {"type": "pdf"}}, "/filters/type"),
        ({"query": "x", "return_fields": ["title", "title"]}, "/return_fields"),
        ({"query": "x", "return_fields": ["body"]}, "/return_fields/0"),
        ({"query": "x", "include_snippets": 1}, "/include_snippets"),
        ({"query": "x", "confirmation_token": "t"}, "root"),
    ],
)
def test_a_search_that_is_none_is_refused_where_it_is_wrong(shipped_registry, args, path):
    _, problems = shipped_registry.check_args(
        shipped_registry.snapshot().find("kb:search").definition, args
    )
    assert [p["path"] for p in problems] == [path]


@pytest.mark.requirement("S2-120")
def test_a_search_has_its_defaults(shipped_registry):
    filled, problems = shipped_registry.check_args(
        shipped_registry.snapshot().find("kb:search").definition, {"query": "x"}
    )
    assert (filled, problems) == (
        {"query": "x", "namespace": "studio", "top_k": 5, "include_snippets": True},
        [],
    )


HOUR = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-23T10:00:00Z"}


@pytest.mark.requirement("S2-125")
@pytest.mark.parametrize(
    ("tool", "args", "path"),
    [
        ("calendar:get_availability", {**HOUR, "min_duration": 14}, "/min_duration"),
        ("calendar:get_availability", {**HOUR, "min_duration": 481}, "/min_duration"),
        ("calendar:get_availability", {**HOUR, "start": "2026-11-23 09:00"}, "/start"),
        ("calendar:get_availability", {**HOUR, "start": "2026-11-23T09:00:00"}, "/start"),
        ("calendar:get_availability", {**HOUR, "calendars": []}, "/calendars"),
        ("calendar:get_availability", {"start": HOUR["start"]}, "root"),
        ("calendar:create_event", {**HOUR, "title": ""}, "/title"),
        ("calendar:create_event", {**HOUR, "title": "x" * 201}, "/title"),
        ("calendar:create_event", {**HOUR, "title": "x", "attendees": []}, "/attendees"),
        ("calendar:create_event", {**HOUR, "title": "x", "attendees": ["eva"]}, "/attendees/0"),
        (
            "calendar:create_event",
            {**HOUR, "title": "x", "attendees": [f"{n}@example.com" for n in range(51)]},
            "/attendees",
        ),
        (
            "calendar:create_event",
            {**HOUR, "title": "x", "description": "x" * 2001},
            "/description",
        ),
        ("calendar:create_event", {**HOUR, "title": "x", "zoom": "yes"}, "/zoom"),
        ("calendar:create_event", {**HOUR, "title": "x", "confirmation_token": "t"}, "root"),
        (
            "calendar:create_event",
            {"title": "x", "start": HOUR["end"], "end": HOUR["start"]},
            "/start",
        ),
        ("voice:start", {"pending_request": "x" * 501}, "/pending_request"),
        ("voice:end", {"now": True}, "root"),
        ("session:ignore_user", {}, "root"),
        ("session:ignore_user", {"duration": 29}, "/duration"),
        ("session:ignore_user", {"duration": 86_401}, "/duration"),
        ("session:ignore_user", {"duration": 60, "farewell": "x" * 201}, "/farewell"),
        ("contacts:extract", {"text": "x" * 10_001}, "/text"),
        ("kb:get", {"id": ""}, "/id"),
        ("kb:get", {"id": "x", "max_chars": 50_001}, "/max_chars"),
        ("kb:get", {"id": "x", "offset": -1}, "/offset"),
    ],
)
def test_arguments_out_of_bounds_are_refused_by_the_schema(shipped_registry, tool, args, path):
    _, problems = shipped_registry.check_args(
        shipped_registry.snapshot().find(tool).definition, args
    )
    assert [p["path"] for p in problems] == [path]


# ------------------------------------------------------------------ knowledge


@pytest.mark.requirement("S2-121")
@pytest.mark.parametrize(
    ("mode", "args", "given", "clamped"),
    [
        (Mode.VOICE, {}, 3, {"top_k": [5, 3]}),
        (Mode.VOICE, {"top_k": 10}, 3, {"top_k": [10, 3]}),
        (Mode.VOICE, {"top_k": 2}, 2, {}),
        (Mode.TEXT, {}, 5, {}),
        (Mode.TEXT, {"top_k": 10}, 8, {}),
    ],
)
async def test_voice_mode_gets_three_results_and_says_so(house, mode, args, given, clamped):
    for n in range(8):
        (house.kb / f"{n}.md").write_text("word")
    response, arguments = await house.asked("kb:search", {"query": "word", **args}, mode=mode)
    assert len(response.data["results"]) == response.data["total"] == given
    assert arguments.clamped == clamped


@pytest.mark.requirement("S2-119")
async def test_results_carry_the_fields_asked_for(house):
    (house.kb / "a.md").write_text("# T\nword")
    one = (await house.good("kb:search", {"query": "word", "include_snippets": False})).data[
        "results"
    ][0]
    assert set(one) == {
        "id",
        "type",
        "title",
        "score",
        "source_type",
        "last_updated",
        "url",
        "metadata",
    }
    one = (await house.good("kb:search", {"query": "word", "return_fields": ["score"]})).data[
        "results"
    ][0]
    assert set(one) == {"id", "score"}


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("kb:search", {"query": " ?! "}),
        (
            "kb:search",
            {"query": "x", "filters": {"date_range": {"from": "2026-02-01", "to": "2026-01-31"}}},
        ),
        ("kb:get", {"id": "none.md"}),
        ("calendar:get_availability", {"start": HOUR["end"], "end": HOUR["start"]}),
        ("calendar:get_availability", {**HOUR, "end": HOUR["start"]}),
        ("calendar:get_availability", {**HOUR, "end": "2026-12-24T09:00:01Z"}),
        ("calendar:get_availability", {**HOUR, "calendars": ["../x"]}),
        ("calendar:get_availability", {**HOUR, "start": "0000-01-01T00:00:00Z"}),
        ("calendar:get_availability", {**HOUR, "end": "2026-12-31T23:59:60Z"}),
        (
            "calendar:create_event",
            {"title": "x", "start": "0001-01-01T00:00:00+10:00", "end": HOUR["end"]},
        ),
        (
            "calendar:create_event",
            {"title": "x", "start": HOUR["start"], "end": "9999-12-31T23:59:59-10:00"},
        ),
        ("kb:search", {"query": "x", "filters": {"date_range": {"from": "0000-01-01"}}}),
    ],
)
@pytest.mark.requirement("S2-122")
async def test_what_no_schema_can_say_is_a_validation_error_too(house, tool, args):
    response, _ = await house.asked(tool, args)
    assert (response.error.type, response.error.retryable) == (ErrorType.VALIDATION, False)
    assert response.error.suggestion


async def test_a_moment_may_be_written_in_small_letters(house):
    small = {key: value.lower() for key, value in HOUR.items()}
    told = (await house.good("calendar:get_availability", small)).data["available_slots"]
    assert told == (await house.good("calendar:get_availability", HOUR)).data["available_slots"]


async def test_a_long_document_comes_in_parts_that_fit(house):
    whole = "".join(f"line {n} 😀\n" for n in range(20_000))
    (house.kb / "long.txt").write_text(whole)
    parts, offset = [], 0
    while offset is not None:
        data = (
            await house.good("kb:get", {"id": "long.txt", "offset": offset, "max_chars": 50_000})
        ).data
        parts.append(data["content"])
        assert data["total_chars"] == len(whole)
        offset = data.get("next_offset")
    assert "".join(parts) == whole


# ------------------------------------------------------------------ calendar


@pytest.mark.requirement("S2-122")
@pytest.mark.parametrize(
    ("end", "slots"),
    [("2026-11-23T09:30:00Z", 1), ("2026-11-23T09:29:59Z", 0), ("2026-12-24T09:00:00Z", 1)],
)
async def test_the_shortest_and_the_longest_window(house, end, slots):
    data = (await house.good("calendar:get_availability", {**HOUR, "end": end})).data
    assert len(data["available_slots"]) == slots
    assert "existing_events" not in data


@pytest.mark.requirement("S2-124")
@pytest.mark.parametrize(
    ("trouble", "code", "partial"),
    [
        (CalendarTrouble(Trouble.RATE_LIMIT, "too often"), ErrorCode.RATE_LIMIT, False),
        (CalendarTrouble(Trouble.AUTH, "refused"), ErrorCode.AUTH, False),
        (CalendarTrouble(Trouble.AWAY, "away", uncertain=True), ErrorCode.NETWORK_ERROR, True),
        (CalendarTrouble(Trouble.REFUSED, "no"), ErrorCode.TOOL_UNAVAILABLE, False),
    ],
)
@pytest.mark.parametrize("tool", ["calendar:get_availability", "calendar:create_event"])
async def test_each_calendar_error_has_its_own_code(house, tool, trouble, code, partial):
    class Broken:
        async def between(self, *_, **__):
            raise trouble

        make = between

    house.calendars = Broken()
    response, _ = await house.asked(tool, {**HOUR, **({"title": "x"} if "create" in tool else {})})
    assert (response.error.code, response.error.partial_side_effects) == (code, partial)
    assert response.error.suggestion or code is ErrorCode.TOOL_UNAVAILABLE


async def test_events_that_could_not_be_read_are_counted_for_the_caller(house):
    class Half:
        async def between(self, *_, **__):
            return Agenda(busy=(), unread=2)

    house.calendars = Half()
    assert (await house.good("calendar:get_availability", HOUR)).data["unread_events"] == 2


@pytest.mark.requirement("S2-125")
async def test_the_same_call_made_twice_is_one_event(house):
    args = {**HOUR, "title": "Review", "attendees": ["eva@example.com"]}
    made = [
        (await house.good("calendar:create_event", args, call_id=c, idempotency_key=k)).data
        for c, k in (("c1", None), ("c1", None), ("c2", "key"), ("c3", "key"))
    ]
    assert [m["created"] for m in made] == [True, False, True, False]
    assert len(list((house.calendar_folder / "primary").iterdir())) == 2
    assert (made[0]["event_id"], made[0]["invited"], made[0]["meeting_link"]) == (
        "c1@glassd",
        False,
        None,
    )


@pytest.mark.requirement("S2-125")
def test_what_is_asked_before_an_event_is_made_says_how_many_take_part(shipped_registry):
    tool = shipped_registry.snapshot().find("calendar:create_event").definition
    assert policy.needs_confirmation(tool)
    assert (
        policy.preview(tool, {"attendees": ["a@example.com", "b@example.com"]})
        == "Create calendar event with 2 attendees"
    )


# ------------------------------------------------------------------ the voice session


def intents(response):
    return [dict(i) for i in response.intents]


@pytest.mark.requirement("S2-126")
async def test_a_voice_session_is_begun_once_under_a_name_of_its_own(house):
    response = await house.good(
        "voice:start", {"pending_request": ""}, call_id="01a20284-e862-705d-867c-466dad169b2a"
    )
    assert response.data["sessionId"] == f"voice-{round(house.wall * 1000)}-169b2a"
    assert re.fullmatch(r"voice-\d{13}-[0-9a-f]{6}", response.data["sessionId"])
    assert response.data["pendingRequest"] is None
    for intent in response.intents:
        house.session.apply(intent, tool="voice:start")
    state = house.session.snapshot()
    assert (state.voice_active, state.session_id, state.pending_message) == (
        True,
        response.data["sessionId"],
        None,
    )
    again, _ = await house.asked("voice:start")
    assert (again.error.type, again.error.retryable) == (ErrorType.SESSION_ACTIVE, False)


@pytest.mark.requirement("S2-126")
async def test_what_the_wearer_wanted_is_kept_for_the_session(house):
    for intent in (await house.good("voice:start", {"pending_request": "find a room"})).intents:
        house.session.apply(intent, tool="voice:start")
    assert house.session.snapshot().pending_message == "find a room"


@pytest.mark.requirement("S2-127")
async def test_a_voice_session_is_ended_after_the_farewell_and_only_when_there_is_one(house):
    refused, _ = await house.asked("voice:end", mode=Mode.VOICE)
    assert refused.error.type is ErrorType.SESSION_INACTIVE
    house.session.begin_voice()
    response = await house.good("voice:end", mode=Mode.VOICE)
    assert intents(response) == [{"type": "END_VOICE_SESSION", "after": "farewell_spoken"}]
    house.session.apply(response.intents[0], tool="voice:end")
    assert not house.session.snapshot().voice_active


@pytest.mark.requirement("S2-127")
@pytest.mark.parametrize(
    ("tool", "mode"),
    [("voice:end", Mode.TEXT), ("voice:start", Mode.VOICE), ("calendar:create_event", Mode.VOICE)],
)
def test_a_tool_of_the_other_mode_is_refused(shipped_registry, tool, mode):
    problem = policy.mode_problem(shipped_registry.snapshot().find(tool).definition, mode)
    assert (problem.type, problem.message) == (
        ErrorType.MODE_RESTRICTED,
        f"Tool {tool} is not available in {mode} mode",
    )


@pytest.mark.requirement("S2-128")
async def test_leaving_the_wearer_alone_says_farewell_first_and_then_is_quiet_for_so_long(house):
    response = await house.good(
        "session:ignore_user", {"duration": 600, "farewell": " Bye "}, mode=Mode.VOICE
    )
    assert intents(response) == [
        {"type": "END_VOICE_SESSION", "after": "farewell_spoken"},
        {"type": "SUPPRESS_AUDIO", "value": True, "after": "farewell_spoken", "duration": 600},
    ]
    assert response.render["audio"] == {"text": "Bye"}
    silent = await house.good("session:ignore_user", {"duration": 30})
    assert silent.render["audio"] == {"suppressVoiceResponse": True}
    assert [i["type"] for i in intents(silent)] == ["SUPPRESS_AUDIO"], "there is no session to end"
    assert SCHEMAS["session_ignore_user"]["idempotent"] is False


@pytest.mark.requirement("S2-128")
def test_a_quiet_time_ends_by_itself_or_with_a_new_session():
    session = SessionController()
    assert session.begin_voice(10.0)
    quiet = {"type": "SUPPRESS_AUDIO", "value": True, "duration": 600}
    session.apply({"type": "END_VOICE_SESSION"}, tool="t", now=20.0)
    session.apply(quiet, tool="t", now=20.0)
    assert (session.silent(20.0), session.silent(619.9), session.silent(620.0)) == (
        True,
        True,
        False,
    )
    assert session.begin_voice(619.9) is False
    assert not session.snapshot().voice_active
    assert session.described(300.0)["quiet_s"] == 320
    assert session.begin_voice(620.0) is True
    session.apply(quiet, tool="t", now=700.0)
    start = {"type": "START_VOICE_SESSION", "sessionId": "s"}
    session.apply(start, tool="t", now=700.0)  # until now it was only begun by a sentence
    with pytest.raises(NoEffect, match="in an active one"):
        session.apply(start, tool="t", now=1000.0)
    session.apply(start, tool="t", now=1000.1)  # nobody spoke for five minutes
    assert (session.silent(1000.1), session.begin_voice(1000.1)) == (False, True)


@pytest.mark.parametrize("duration", [0, -5, True, "600", None, float("nan"), 86_401])
def test_a_quiet_time_of_no_length_lasts_until_the_next_session(duration):
    session = SessionController()
    session.apply(
        {"type": "SUPPRESS_AUDIO", "value": True, "duration": duration}, tool="t", now=5.0
    )
    assert (session.silent(10_000.0), session.quiet_s(5.0)) == (True, 0.0)
    assert session.begin_voice(6.0)
    assert not session.silent(6.0)


# ------------------------------------------------------------------ offered by mode


@pytest.mark.requirement("S2-130")
def test_a_voice_is_not_offered_what_it_would_be_refused(shipped_registry):
    entries = shipped_registry.snapshot().entries()
    offered = {
        mode: {e.definition.name for e in entries if not policy.not_offered(e.definition, mode)}
        for mode in (*Mode, None)
    }
    assert offered[Mode.TEXT] - offered[Mode.VOICE] >= {
        "voice:start",
        "calendar:create_event",
        "calendar:get_availability",
    }
    assert offered[Mode.VOICE] - offered[Mode.TEXT] == {"voice:end"}
    assert offered[None] == offered[Mode.TEXT] | offered[Mode.VOICE]
