"""Who sees a call: what the configuration says of a tool decides, on a real stage; and every
kind of tool takes the same road.
"""

import asyncio
import logging
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from edge.calls.call import Call
from edge.core import visibility
from edge.core.call_state import Submission
from edge.core.tools.snapshot import Entry
from edge.runtime.events import CallAnswered, CallCompleted, CallProgressed, CallReceived
from edge.storage.sqlite.errors import StorageUnavailable
from firmware_bridge.messages import Answer
from tests.unit.calls import orchestrator_house
from tests.unit.calls.orchestrator_house import QUICK, FakeTools, house, make, tool
from tests.unit.display.fakes import AUDIO, DISPLAY
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode as Code,
    ExecutionType,
    Mode,
    Source,
    ToolError,
    ToolResponse,
)
from tools_cache.api.wearer import WearerTexts
from tools_cache.builder import compiler, lint

GATEWAY, EXTERNAL, SPACE, INTERNAL = ExecutionType
SAID = ToolResponse(data={"text": "twelve degrees"})
CARD = {"custom_ui": "card", "raw": {"title": "Weather"}}


def test_an_internal_tool_is_never_shown_whatever_its_caller_says():
    internal, call = tool("registry:find", execution_type=INTERNAL), make("registry:find")
    for asked in (replace(call, present=True), replace(call, origin=CallOrigin.GLASSES)):
        assert not visibility.shows_call(asked, internal)
        assert not visibility.shows_answer(asked, internal, SAID)


def put(h, made):
    h.registry.entries[made.name] = Entry(made, "app")
    return made


def answering(response=SAID, *, after=None):
    tools = FakeTools()

    async def handler(_call, progress):
        if after is not None:
            await progress("on the way")
            await after.wait()
        return response

    tools.handler = handler
    return tools


# ------------------------------------------------------------------ the rule


@pytest.mark.requirement("S3-06")
@pytest.mark.parametrize("kind", list(ExecutionType))
def test_all_tools_but_internal_ones_are_visible_unless_they_say_otherwise(kind):
    assert visibility.visible(tool("my:x", execution_type=kind)) is (kind is not INTERNAL)
    assert visibility.visible(tool("my:x", execution_type=kind, visible=False)) is False


@pytest.mark.requirement("S3-05", "S3-07", "S3-08")
def test_only_configured_tools_of_other_servers_are_visible():
    assert not visibility.visible(tool("my:x", execution_type=INTERNAL, visible=True))
    assert not visibility.visible(tool("glasses:x", Source.GLASSES, visible=True))
    assert not visibility.visible(tool("their:x", Source.UPSTREAM))
    assert visibility.visible(tool("their:x", Source.UPSTREAM, visible=True))


# ------------------------------------------------------------------ on the stage


@pytest.mark.requirement("S3-09")
async def test_a_visible_call_is_shown_as_it_begins_and_with_its_result(tmp_path):
    done = asyncio.Event()
    async with house(tmp_path, tools=answering(after=done), limits=replace(QUICK, run_s=20.0)) as h:
        put(h, tool("my:weather", endpoint="http", **CARD))
        caller = asyncio.create_task(h.call("my:weather"))
        await h.happened(CallProgressed)
        async with asyncio.timeout(40):
            while not any("on the way" in text or "Weather…" in text for text in h.glasses.texts()):
                await asyncio.sleep(0.01)
        done.set()
        answer = await caller
        assert answer.meta["delivery"] == "shown"
        assert "Weather" in h.glasses.texts()[-1]
        assert "twelve degrees" in h.glasses.texts()[-1]


@pytest.mark.requirement("S3-05")
@pytest.mark.parametrize("origin", [CallOrigin.MCP, CallOrigin.VOICE, CallOrigin.GLASSES])
async def test_an_internal_tool_never_shows_anything_to_the_wearer(tmp_path, origin):
    response = ToolResponse(
        data="x",
        render={"display": {"layout": "text_wall", "text": "look"}, "audio": {"text": "hear"}},
    )
    done = asyncio.Event()
    async with house(
        tmp_path, tools=answering(response, after=done), limits=replace(QUICK, run_s=20.0)
    ) as h:
        put(h, tool("registry:find", execution_type=INTERNAL, visible=True, **CARD))
        caller = asyncio.create_task(h.call("registry:find", origin=origin))
        await h.happened(CallProgressed)
        done.set()
        answer = await caller
        assert (answer.ok, answer.meta["delivery"]) == (True, "none")
        assert (h.glasses.texts(), h.glasses.streams) == ([], {})


@pytest.mark.requirement("S3-05")
@pytest.mark.parametrize("error", [StorageUnavailable("damaged"), RuntimeError("a bug")])
async def test_an_internal_tool_shows_no_failure_of_its_admission(tmp_path, error):
    async with house(tmp_path) as h:
        put(h, tool("registry:find", execution_type=INTERNAL))

        async def broken(*_, **__):
            raise error

        h.store.known = broken
        answer = await h.call("registry:find", turn_id="t")
        assert (answer.ok, answer.meta["delivery"], h.glasses.texts()) == (False, "none", [])
        assert answer.meta["toolVersion"] == h.audit[-1]["version"] == "1.2.3"


@pytest.mark.requirement("S3-07", "S3-08")
@pytest.mark.parametrize(
    "made", [tool("their:find", visible=False), tool("glasses:status", Source.GLASSES)]
)
async def test_invisible_tools_stay_off_the_lens_unless_the_wearer_asked(tmp_path, made):
    done = asyncio.Event()
    async with house(tmp_path, tools=answering(after=done), limits=replace(QUICK, run_s=20.0)) as h:
        put(h, made)
        caller = asyncio.create_task(h.call(made.name, origin=CallOrigin.MCP))
        await h.happened(CallProgressed)
        done.set()
        answer = await caller
        assert (answer.data, answer.meta["delivery"]) == ({"text": "twelve degrees"}, "none")
        assert h.glasses.texts() == []
        assert (await h.call(made.name, mode=Mode.VOICE)).meta["delivery"] == "shown"


@pytest.mark.parametrize(
    ("data", "mode", "shown"),
    [
        (None, Mode.VOICE, ["Done"]),
        ("", Mode.VOICE, ["Done"]),
        ({}, Mode.VOICE, ["Done"]),
        ([], Mode.VOICE, ["Nothing found"]),
        (0, Mode.VOICE, ["0"]),
        (None, Mode.TEXT, []),
    ],
)
async def test_who_asked_sees_that_a_call_without_an_answer_is_over(tmp_path, data, mode, shown):
    async with house(tmp_path, tools=answering(ToolResponse(data=data))) as h:
        put(h, tool("lamp:on"))
        answer = await h.call("lamp:on", mode=mode)
        assert (answer.data, answer.meta["delivery"]) == (data, "shown" if shown else "none")
        assert h.glasses.texts() == shown


NOTES = tool("notes:list", category="retrieval", open_to_cloud=True)
ASKED_BY_A_PROGRAM = [
    {"origin": CallOrigin.MCP},
    {"origin": CallOrigin.CLOUD},
    {"origin": CallOrigin.CLI, "provider_call_id": "toolu_0123456"},
    {"origin": CallOrigin.CLI, "ordinal": 0},
]
ASKED_BY_A_PERSON = [
    {"origin": CallOrigin.CLI},
    {"origin": CallOrigin.MCP, "mode": Mode.VOICE},
    {"origin": CallOrigin.VOICE},
    {"origin": CallOrigin.GLASSES},
]


@pytest.mark.requirement("I13-present")
@pytest.mark.parametrize("asked", ASKED_BY_A_PROGRAM, ids=str)
@pytest.mark.parametrize("response", [SAID, ToolResponse.failure(Code.NETWORK_ERROR, "no route")])
async def test_what_a_program_looks_up_for_itself_is_not_shown(tmp_path, asked, response):
    done = asyncio.Event()
    tools = answering(response, after=done)
    async with house(tmp_path, tools=tools, limits=replace(QUICK, run_s=20.0)) as h:
        put(h, NOTES)
        caller = asyncio.create_task(h.call("notes:list", **asked))
        await h.happened(CallProgressed)
        done.set()
        answer = await caller
        assert (answer.data, answer.error) == (response.data, response.error)
        assert answer.meta["delivery"] == "none"
        assert (h.glasses.texts(), h.glasses.streams) == ([], {})


@pytest.mark.requirement("I13-present")
@pytest.mark.parametrize("asked", ASKED_BY_A_PERSON, ids=str)
async def test_what_a_person_looks_up_is_shown(tmp_path, asked):
    async with house(tmp_path, tools=answering()) as h:
        put(h, NOTES)
        assert (await h.call("notes:list", **asked)).meta["delivery"] == "shown"


@pytest.mark.requirement("I13-present")
@pytest.mark.parametrize(
    "made",
    [
        tool("notes:add"),
        replace(NOTES, custom_ui="card"),
        replace(NOTES, visible=True),
        tool("their:find", Source.UPSTREAM, category="retrieval", visible=True),
    ],
    ids=["writes", "has a layout", "is visible", "another server's, configured as visible"],
)
async def test_what_is_meant_to_be_seen_is_shown_for_programs_too(tmp_path, made):
    async with house(tmp_path, tools=answering()) as h:
        put(h, made)
        answer = await h.call(made.name, origin=CallOrigin.MCP)
        assert answer.meta["delivery"] == "shown"


@pytest.mark.requirement("I13-present")
async def test_a_look_up_that_brings_its_own_page_is_shown(tmp_path):
    page = ToolResponse(data={}, render={"display": {"layout": "text_wall", "text": "my map"}})
    async with house(tmp_path, tools=answering(page)) as h:
        put(h, NOTES)
        answer = await h.call("notes:list", origin=CallOrigin.MCP)
        assert (answer.meta["delivery"], h.glasses.texts()) == ("shown", ["my map"])
        put(h, replace(NOTES, visible=False))
        assert (await h.call("notes:list", origin=CallOrigin.MCP)).meta["delivery"] == "none"


@pytest.mark.requirement("I13-present")
@pytest.mark.parametrize(
    "made",
    [
        NOTES,
        tool("notes:add"),
        tool("their:find", Source.UPSTREAM, visible=False),
        tool("glasses:status", Source.GLASSES),
    ],
    ids=lambda made: made.name,
)
@pytest.mark.parametrize("origin", [CallOrigin.CLI, CallOrigin.MCP, CallOrigin.VOICE])
async def test_the_callers_word_decides_whether_an_answer_is_shown(tmp_path, made, origin):
    async with house(tmp_path, tools=answering()) as h:
        put(h, made)
        hidden = await h.call(made.name, origin=origin, present=False)
        assert (hidden.meta["delivery"], h.glasses.texts()) == ("none", [])
        assert (await h.call(made.name, origin=origin, present=True)).meta["delivery"] == "shown"


@pytest.mark.requirement("I13-present")
async def test_the_callers_word_also_silences_a_tool_that_only_shows(tmp_path):
    page = ToolResponse(data={}, render={"display": {"layout": "text_wall", "text": "hello"}})
    async with house(tmp_path, tools=answering(page)) as h:
        answer = await h.call("glasses:show_text", {"text": "hello"}, present=False)
        assert (answer.ok, answer.meta["delivery"], h.glasses.texts()) == (True, "none", [])


@pytest.mark.requirement("I13-present")
async def test_the_callers_word_makes_no_internal_tool_and_no_inner_call_visible(tmp_path):
    async with house(tmp_path, tools=answering()) as h:
        put(h, tool("registry:find", execution_type=INTERNAL))
        assert (await h.call("registry:find", present=True)).meta["delivery"] == "none"
        inner = {"present": True, "depth": 1, "through": "my:outer"}
        assert (await h.call("notes:add", {"text": "x"}, **inner)).meta["delivery"] == "none"
        assert h.glasses.texts() == []


@pytest.mark.requirement("S3-08")
async def test_a_built_in_tool_whose_effect_is_a_picture_still_has_it(tmp_path):
    response = ToolResponse(data={}, render={"display": {"layout": "text_wall", "text": "hello"}})
    async with house(tmp_path, tools=answering(response)) as h:
        assert (await h.call("glasses:show_text", {"text": "hello"}, origin=CallOrigin.MCP)).meta[
            "delivery"
        ] == "shown"
        assert h.glasses.texts() == ["hello"]


@pytest.mark.requirement("S3-18")
@pytest.mark.parametrize(
    ("component", "lines"),
    [
        ("card", "Weather\ntwelve degrees"),
        ("reference_card", "Weather\ntwelve degrees"),
        ("text_wall", "twelve degrees"),
        ("WeatherCarousel", "twelve degrees"),
        ("", "twelve degrees"),
    ],
)
async def test_a_result_has_its_tools_layout_or_else_is_text(tmp_path, component, lines):
    async with house(tmp_path, tools=answering()) as h:
        put(h, tool("my:weather", custom_ui=component, raw={"title": "Weather"}))
        assert (await h.call("my:weather")).meta["delivery"] == "shown"
        assert h.glasses.texts()[-1].split() == lines.split()


@pytest.mark.requirement("S3-18", "S0-41")
async def test_a_result_that_brings_its_own_picture_or_wants_silence_keeps_that(tmp_path):
    own = ToolResponse(data="x", render={"display": {"layout": "text_wall", "text": "mine"}})
    weather = tool("my:weather", **CARD)
    assert visibility.dressed(own, weather) is own
    silent = visibility.dressed(
        ToolResponse(data="x", render={"audio": {"suppressVoiceResponse": True}}), weather
    )
    assert silent.render == {
        "audio": {"suppressVoiceResponse": True},
        "display": {"layout": "reference_card", "text": "x", "title": "Weather"},
    }
    failed = ToolResponse.failure(Code.HTTP_ERROR, "HTTP 404")
    assert visibility.dressed(failed, weather) is failed
    assert visibility.dressed(ToolResponse(data=None), weather).render is None


@pytest.mark.requirement("S0-41")
@pytest.mark.parametrize(("silent", "streams"), [(True, 0), (False, 1)])
async def test_a_tool_that_wants_silence_plays_nothing(tmp_path, silent, streams):
    render = {"audio": {"suppressVoiceResponse": True}} if silent else None
    async with house(tmp_path, facts=AUDIO, tools=answering(replace(SAID, render=render))) as h:
        put(h, tool("my:weather", **CARD))
        assert (await h.call("my:weather", mode=Mode.VOICE)).ok
        assert len(h.glasses.streams) == streams


@pytest.mark.requirement("S0-41")
async def test_suppressed_speech_is_shown_where_there_is_a_lens(tmp_path):
    silent = replace(SAID, render={"audio": {"suppressVoiceResponse": True}})
    async with house(tmp_path, facts={**DISPLAY, **AUDIO}, tools=answering(silent)) as h:
        put(h, tool("my:weather", **CARD))
        assert (await h.call("my:weather", mode=Mode.VOICE)).meta["delivery"] == "shown"
        assert "twelve degrees" in h.glasses.texts()[-1]
        assert h.glasses.streams == {}


@pytest.mark.requirement("S0-42")
async def test_follow_ups_reach_the_caller_as_the_tool_said_them(tmp_path):
    render = {"suggestedFollowUps": ["tomorrow?", "and in Rome?"]}
    async with house(tmp_path, tools=answering(replace(SAID, render=render))) as h:
        put(h, tool("my:weather", **CARD))
        answer = await h.call("my:weather")
        assert answer.to_json()["render"]["suggestedFollowUps"] == ["tomorrow?", "and in Rome?"]


async def test_a_built_in_tool_that_came_to_nothing_tells_the_wearer(tmp_path):
    async with house(
        tmp_path,
        tools=answering(ToolResponse.failure(Code.TOOL_UNAVAILABLE, "no picture was made")),
    ) as h:
        assert (await h.call("glasses:show_text", {"text": "hello"}, origin=CallOrigin.MCP)).meta[
            "delivery"
        ] == "shown"
        assert "No picture was made." in h.glasses.texts()[-1]


def test_a_tool_without_a_title_is_called_by_the_words_of_its_name():
    assert visibility.title(tool("my:weather_now-here")) == "Weather now here"
    assert visibility.working(tool("my:weather_now", custom_ui="card")) == "Weather now…"
    assert visibility.working(tool("my:weather_now")) == visibility.working(None) == "Working…"


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ("I'll add “{{input.title}}” when we're online", "I'll add “milk” when we're online"),
        ("I'll add “{{input.name}}” later", "Saved. I'll do it when we're online: Add"),
        ("", "Saved. I'll do it when we're online: Add"),
    ],
)
def test_a_call_that_waits_is_said_in_its_authors_words_if_they_fit(later, said):
    add = tool("my:add", wearer=WearerTexts(later=later))
    assert visibility.saved(add, {"title": "milk"}) == said


# ------------------------------------------------------------------ nobody to show it to


@pytest.mark.requirement("S3-10")
@pytest.mark.parametrize("known", [False, True])
async def test_without_glasses_a_result_goes_to_its_caller_only_logged_once(
    tmp_path, caplog, known
):
    async with house(tmp_path, tools=answering()) as h:
        h.glasses.leave()
        h.glasses.known = known
        h.orchestrator._delivery._began -= visibility.SURFACE_S + 1  # nobody was seen for a minute
        with caplog.at_level(logging.WARNING):
            answers = [
                await h.call("my:weather") for _ in range(3) if put(h, tool("my:weather", **CARD))
            ]
        assert [a.data for a in answers] == [{"text": "twelve degrees"}] * 3
        assert [a.meta["delivery"]["state"] for a in answers] == ["dropped"] * 3
        assert sum("no glasses are connected" in line for line in caplog.messages) == 1
        assert h.glasses.texts() == []
        assert not h.stage._queue.first


@pytest.mark.parametrize(
    ("ready", "known", "gone_at", "began", "there"),
    [
        (False, True, 100.0, 0.0, True),
        (False, True, 39.0, 0.0, False),
        (False, True, None, 90.0, True),
        (False, True, None, 0.0, False),
        (False, False, None, 99.0, False),
        (True, False, None, 0.0, True),
    ],
)
def test_glasses_count_as_a_display_for_a_minute_after_leaving(ready, known, gone_at, began, there):
    seen = visibility.surface(ready=ready, known=known, gone_at=gone_at, began=began, now=100.0)
    assert seen is there


# ------------------------------------------------------------------ one road for all


ROADS = [
    tool("my:gateway", endpoint="http"),
    tool("my:external", execution_type=EXTERNAL, endpoint="http"),
    tool("my:later", execution_type=EXTERNAL, pending_ttl_s=60.0),
    tool("my:ask", execution_type=SPACE, pending_ttl_s=60.0),
    tool("my:internal", execution_type=INTERNAL, endpoint="http"),
    tool("my:local"),
]


@pytest.mark.requirement("S3-40", "S3-33")
@pytest.mark.parametrize("made", ROADS, ids=[made.name for made in ROADS])
async def test_every_kind_of_tool_passes_the_same_stages_and_says_so(tmp_path, made):
    async with house(tmp_path, tools=answering()) as h:
        put(h, made)
        first = await h.call(made.name, {"text": "x"})
        if made.asynchronous:
            assert first.data["status"] == "pending"
            h.wearer.say(Answer.ALLOW)
            await h.orchestrator.submit(first.meta["callId"], SAID, user_id="local", session="")
            await h.happened(CallCompleted)
        line = h.audit[-1]
        assert line["stages"].split() == [
            "configured",
            "built",
            "executed",
            *(() if made.execution_type in (INTERNAL, SPACE) else ("posted",)),
        ]
        order = [
            type(x) for x in h.heard if isinstance(x, CallReceived | CallAnswered | CallCompleted)
        ]
        assert order == [
            CallReceived,
            CallAnswered,
            *([CallCompleted] if made.asynchronous else []),
        ]


async def test_a_call_that_is_refused_says_how_far_it_came(tmp_path):
    async with house(tmp_path) as h:
        await h.call("no:such")
        assert h.audit[-1]["stages"] == ""


# ------------------------------------------------------------------ later, told by a webhook


@pytest.mark.requirement("S3-17", "S3-03")
async def test_a_call_is_handed_over_after_its_caller_got_pending(
    tmp_path,
):
    async with house(tmp_path) as h:
        call = make("job:local", {"text": "x"})
        answer = await h.orchestrator.call(call)
        assert answer.data == {"status": "pending", "pendingToolCallId": call.call_id}
        await _told(h)
        assert [handed.call_id for handed in h.tools.handed] == [call.call_id]
        await h.orchestrator.submit(call.call_id, SAID, user_id="local", session="")
        assert (await h.happened(CallCompleted)).ok


@pytest.mark.requirement("S3-17")
async def test_a_call_that_nobody_takes_ends_with_the_reason(tmp_path):
    tools = FakeTools()
    tools.not_taken = ToolError.of(Code.NETWORK_ERROR, "refused")
    async with house(tmp_path, tools=tools) as h:
        answer = await h.call("job:local", {"text": "x"})
        assert not (await h.happened(CallCompleted)).ok
        assert (await h.store.get(answer.meta["callId"]))["code"] == "NETWORK_ERROR"


@pytest.mark.requirement("S3-17")
@pytest.mark.parametrize("idempotent", [True, False])
async def test_after_a_restart_only_what_may_be_told_twice_is_told_again(
    tmp_path, monkeypatch, idempotent
):
    later = tool("my:later", execution_type=EXTERNAL, pending_ttl_s=60.0, idempotent=idempotent)
    monkeypatch.setattr(orchestrator_house, "TOOLS", (later,))
    async with house(tmp_path) as h:
        call_id = (await h.call("my:later", {"text": "x"})).meta["callId"]
        await _told(h)
    async with house(tmp_path) as h:
        if idempotent:
            await _told(h)
        assert (
            await h.orchestrator.submit(call_id, SAID, user_id="local", session="")
            is Submission.TAKEN
        )
        assert (await h.happened(CallCompleted)).ok
        assert [again.call_id for again in h.tools.handed] == [call_id] * idempotent


async def _told(h):
    async with asyncio.timeout(40):
        while not h.tools.handed:
            await asyncio.sleep(0.01)


# ------------------------------------------------------------------ the rows of the seed that are
# about what is not there


@pytest.mark.requirement("S3-20", "S3-19")
def test_no_tool_of_the_seeds_second_version_is_built_in():
    built = {path.name.partition("_")[2] for path in lint.folders(compiler.TOOLS)} | {
        path.name for path in lint.folders(compiler.TOOLS)
    }
    assert not built & {
        "stop_run",
        "absorb_run",
        "get_my_runs",
        "enter_space",
        "send_message",
        "read_messages",
    }


@pytest.mark.parametrize(
    ("raw", "app", "name"),
    [
        ({"title": "Bus times"}, "Bus", "Bus times"),
        ({}, "Weather", "Weather"),
        ({"title": " "}, "Weather", "Weather"),
        ({}, "", "Now"),
    ],
)
def test_an_own_tool_is_called_by_its_title_or_else_by_its_app(raw, app, name):
    now = replace(tool("weather:now", source=Source.LOCAL), own=True, raw=raw)
    entry = SimpleNamespace(app_name=app)
    registry = SimpleNamespace(snapshot=lambda: SimpleNamespace(find=lambda _: entry))
    call = SimpleNamespace(
        tool=now,
        request=SimpleNamespace(tool=now.name),
        _tools=SimpleNamespace(registry=registry),
    )
    assert Call.wearer_name.fget(call) == name


@pytest.mark.requirement("I13-consent-answered")
@pytest.mark.parametrize("origin", [CallOrigin.CLI, CallOrigin.GLASSES])
async def test_a_no_elsewhere_is_on_the_lens_once_whoever_asked(tmp_path, origin):
    async with house(tmp_path) as h:
        caller = asyncio.create_task(h.call("danger:erase", {}, call_id="c1", origin=origin))
        await h.wearer.question()
        await h.orchestrator.decide("c1", allow=False)
        await caller
        async with asyncio.timeout(40):
            while not h.glasses.texts():
                await asyncio.sleep(0.01)
        said = [*h.glasses.texts(), *(str(waiting) for waiting in h.stage._queue)]
        assert len([text for text in said if "Answered no elsewhere" in text]) == 1


async def test_the_progress_of_every_call_leaves_the_lens_at_its_end(tmp_path, monkeypatch):
    async with house(tmp_path) as h:
        over = []
        monkeypatch.setattr(h.stage, "ended", over.append)
        await h.call("notes:add", {"text": "milk"}, call_id="c1")
        await h.call("notes:add", {}, call_id="c2")
        assert over == ["c1", "c2"]
