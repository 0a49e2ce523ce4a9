"""Local tools: hostile handlers written for the test, and every shipped tool on real SQLite."""

import asyncio
import json
import logging
import time

import pytest

from edge.ports import GlassesStatus
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.storage.sqlite.database import StoreFull
from edge.storage.sqlite.errors import StorageUnavailable
from edge.storage.tools.packages import Packages, PackageStorage
from edge.tools import local
from edge.tools.announcements.alarms import AlarmClock
from edge.tools.handler_results import MAX_RESULT_BYTES
from edge.tools.local import LocalTools
from edge.tools.registry import ToolRegistry
from edge.tools.services import Services
from firmware_bridge.capabilities import Capabilities, Origin
from tests.unit.tools.compiled import shipped as compiled
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    ErrorType,
    ToolCall,
    ToolFailure,
    ToolResponse,
)
from tools_cache.builder import compiler

SCHEMA = {
    "version": "1.0.0",
    "description": "Does it.",
    "category": "action",
    "sideEffects": "writes",
    "idempotent": False,
    "requiresConfirmation": "policy",
    "allowedModes": ["text", "voice"],
    "latencyBudgetMs": 500,
    "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
}
WALL = 1_795_257_000.0  # Saturday 2026-11-21 10:30:00 UTC


def call(tool, args=None, **more):
    return ToolCall(
        **{"call_id": "c1", "tool": tool, "args": args or {}, "origin": CallOrigin.CLI, **more}
    )


async def nobody(text):
    pass


class Rig:
    """Local tools over a registry of the given folders and real package databases."""

    def __init__(self, tmp_path, text, tools, **options):
        artifact = tmp_path / "tool_registry.json"
        artifact.write_text(text)
        self.wall = WALL
        self.clock = Clock(boot=time.monotonic, wall=lambda: self.wall, boot_id="b")
        self.registry = ToolRegistry(
            builtin=artifact, state=tmp_path / "registry", bus=Bus(), clock=self.clock, locked=False
        )
        self.registry.load()
        self.packages = Packages(tmp_path / "packages")
        self.status = GlassesStatus()
        self.alarms = AlarmClock(self.storage("alarms"), self.clock)
        full = options.pop("full", (StoreFull,))
        services = Services(
            **{
                "storage_for": self.storage,
                "alarms": self.alarms,
                "clock": self.clock,
                "glasses": lambda: self.status,
                **options,
            }
        )
        self.local = LocalTools(tools=tools, services=services, full=full)

    def storage(self, package):
        return PackageStorage(self.packages, package)

    async def run(self, tool, args=None, **more):
        return await self.go(call(tool, args, **more))

    async def go(self, call, progress=nobody):
        """As the pipeline does: with the tool as the registry has it."""
        definition = self.registry.snapshot().find(call.tool).definition
        return await self.local.run(call, definition, progress)

    async def named(self, tool, **args):
        """Return what a question shows in the place of arguments: their lines."""
        definition = self.registry.snapshot().find(tool).definition
        found = await self.local.name_arguments(definition, call(tool, args))
        return [f"{argument} = {label}: {words}" for argument, (label, words) in found.items()]

    async def good(self, tool, args=None):
        """Run as the daemon does: arguments filled and checked first."""
        filled, problems = self.registry.check_args(
            self.registry.snapshot().find(tool).definition, args or {}
        )
        assert problems == []
        response = await self.run(tool, filled)
        assert response.ok, response
        json.dumps(response.to_json())
        return response


@pytest.fixture
async def make(tmp_path):
    """Build `demo:do` with the given handler and run it for real."""
    made = []

    def of(handler, **changes):
        tools = tmp_path / "tools"
        folder = tools / "demo_do"
        folder.mkdir(parents=True, exist_ok=True)
        schema = {**SCHEMA, "toolId": "demo_do", "name": "demo:do", **changes.pop("schema", {})}
        doc = "".join(f"## {s}\n" for s in compiler.lint.SECTIONS)
        files = {
            "schema.json": json.dumps(schema),
            "doc_summary.md": "Does it.",
            "doc.md": doc,
            "handler.py": handler,
        }
        for name, text in files.items():
            (folder / name).write_text(text)
        report = compiler.compile_tools(tools)
        assert report.failures == ()
        made.append(Rig(tmp_path, report.text, tools, **changes))
        return made[-1]

    yield of
    for rig in made:
        await rig.packages.close()


def body(*lines, before=""):
    return before + "\nasync def execute(args, ctx):\n" + "".join(f"    {line}\n" for line in lines)


# ------------------------------------------------------------------ results


@pytest.mark.parametrize(
    ("result", "data", "render", "intents"),
    [
        ("None", None, None, ()),
        ("'text'", "text", None, ()),
        ("[1, 2]", [1, 2], None, ()),
        ("{'a': 1}", {"a": 1}, None, ()),
        ("{'data': 1, 'a': 2}", {"data": 1, "a": 2}, None, ()),
        ("{}", {}, None, ()),
        ("{1: (2, 3)}", {"1": [2, 3]}, None, ()),
        ("{'data': {'a': 1}}", {"a": 1}, None, ()),
        ("{'data': 1, 'render': {'audio': {'text': 'x'}}}", 1, {"audio": {"text": "x"}}, ()),
        ("{'data': 1, 'intents': [{'type': 'T'}]}", 1, None, ({"type": "T"},)),
        ("{'ok': True, 'data': 5}", 5, None, ()),
    ],
)
async def test_a_result_is_data_with_render_hints_or_any_plain_json(
    make, result, data, render, intents
):
    response = await make(body(f"return {result}")).run("demo:do")
    assert (response.ok, response.data, response.render, response.intents) == (
        True,
        data,
        render,
        intents,
    )


@pytest.mark.parametrize(
    "result",
    [
        "{'ok': False}",
        "{'ok': False, 'error': 'x'}",
        "{'ok': False, 'error': {}}",
        "{'ok': False, 'error': {'type': 'TRANSIENT'}}",
        "{'ok': False, 'error': {'type': 'NEVER_HEARD', 'message': 'm'}}",
        "{'ok': False, 'error': {'type': 'TRANSIENT', 'message': 'm', 'retryable': 'yes'}}",
        "{'ok': 'yes', 'data': 1}",
        "{'ok': True, 'data': 1, 'intents': {}}",
        "{'ok': True, 'meta': []}",
        "{'data': 1, 'render': 'x'}",
        "{'data': 1, 'intents': [1]}",
        "{'ok': True, 'error': {'type': 'TRANSIENT', 'message': 'm'}}",
        "{1, 2}",
        "b'x'",
        "float('nan')",
        "object()",
        f"'x' * {MAX_RESULT_BYTES + 1}",
        "[[]].append(1) or ctx",
    ],
)
@pytest.mark.requirement("S2-46", "S2-47")
async def test_a_malformed_result_is_internal_and_no_crash(make, caplog, result):
    response = await make(body(f"return {result}")).run("demo:do")
    assert (response.error.type, response.error.code) == (
        ErrorType.INTERNAL,
        ErrorCode.HANDLER_ERROR,
    )
    assert response.error.message == "Internal error executing demo:do"
    assert "Invalid result structure for tool demo:do" in caplog.text


async def test_a_result_that_contains_itself_is_internal(make):
    response = await make(body("loop = []", "loop.append(loop)", "return loop")).run("demo:do")
    assert response.error.code is ErrorCode.HANDLER_ERROR


@pytest.mark.requirement("S2-43")
async def test_a_failure_the_handler_returns_passes_through(make):
    error = "{'type': 'TRANSIENT', 'message': 'later', 'retryable': True, 'retryAfterMs': 5}"
    response = await make(body(f"return {{'ok': False, 'error': {error}}}")).run("demo:do")
    assert (response.error.type, response.error.message, response.error.retry_after_ms) == (
        ErrorType.TRANSIENT,
        "later",
        5,
    )


@pytest.mark.requirement("S2-44")
async def test_a_failure_the_handler_raises_keeps_its_type(make):
    imports = "from tools_cache.api.tool import ToolError, ToolFailure, ErrorCode\n"
    raises = "raise ToolFailure(ToolError.of(ErrorCode.CONFLICT, 'taken', suggestion='wait'))"
    response = await make(body(raises, before=imports)).run("demo:do")
    assert (response.error.code, response.error.message, response.error.suggestion) == (
        ErrorCode.CONFLICT,
        "taken",
        "wait",
    )


@pytest.mark.parametrize(
    "crash",
    ["raise ValueError('hunter2')", "raise TimeoutError('hunter2')", "return 1 / 0 or 'hunter2'"],
)
async def test_a_crash_is_internal_and_its_text_stays_in_the_log(make, caplog, crash):
    response = await make(body(crash)).run("demo:do")
    assert response.to_json()["error"] == {
        "type": "INTERNAL",
        "code": "HANDLER_ERROR",
        "message": "Internal error executing demo:do",
        "retryable": False,
        "partialSideEffects": True,
        "suggestion": "glassd doctor, or the daemon's log",
    }
    assert "hunter2" in caplog.text


async def test_a_full_disk_is_reported_as_such(make):
    response = await make(
        body("raise MemoryError('the database is full')"), full=(MemoryError,)
    ).run("demo:do")
    assert (response.error.code, response.error.retryable) == (ErrorCode.TOOL_UNAVAILABLE, False)
    assert "the database is full" in response.error.message


# ------------------------------------------------------------------ time


FOREVER = body("await asyncio.Event().wait()", before="import asyncio\n")


@pytest.mark.parametrize(
    ("schema", "ttl_s"), [({"timeoutS": 0.05}, 40.0), ({"timeoutS": 10}, 0.05)]
)
async def test_a_handler_that_hangs_is_ended_at_the_nearer_of_its_two_limits(make, schema, ttl_s):
    response = await make(FOREVER, schema=schema).run("demo:do", ttl_s=ttl_s)
    assert (response.error.code, response.error.message) == (
        ErrorCode.TIMEOUT,
        "Tool execution timeout after 50ms",
    )
    assert (response.error.retryable, response.error.partial_side_effects) == (True, True)


async def test_a_reading_tool_that_was_too_slow_left_nothing_behind(make):
    schema = {"timeoutS": 0.05, "category": "utility", "sideEffects": "read_only"}
    assert (await make(FOREVER, schema=schema).run("demo:do")).error.partial_side_effects is False


async def test_a_call_whose_time_is_over_is_not_run(make, tmp_path):
    marker = tmp_path / "ran"
    response = await make(body(f"open({str(marker)!r}, 'w').close()")).run("demo:do", ttl_s=0.0)
    assert response.error.code is ErrorCode.DEADLINE_EXPIRED
    assert not marker.exists()


async def test_cancelling_reaches_the_handler_and_the_caller(make, tmp_path):
    marker = tmp_path / "cleaned"
    handler = body(
        "try:",
        "    await ctx.progress('in')",
        "    await asyncio.Event().wait()",
        "finally:",
        f"    open({str(marker)!r}, 'w').close()",
        before="import asyncio\n",
    )
    inside = asyncio.Event()

    async def progress(text):
        inside.set()

    task = asyncio.ensure_future(make(handler).go(call("demo:do"), progress))
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert marker.exists()


# ------------------------------------------------------------------ what a handler may touch


async def test_a_handler_can_spoil_only_its_own_copy_of_the_arguments(make):
    args = {"list": [1]}
    response = await make(body("args['list'].append(2)", "args['x'] = 1", "return args")).run(
        "demo:do", args
    )
    assert response.data == {"list": [1, 2], "x": 1}
    assert args == {"list": [1]}


async def test_each_call_has_a_context_of_its_own_that_cannot_be_changed(make):
    rig = make(body("seen.append(ctx)", "ctx.call = None", before="seen = []\n"))
    assert (await rig.run("demo:do")).error.code is ErrorCode.HANDLER_ERROR
    rig = make(
        body(
            "seen.append(ctx)",
            "return [c.call.call_id for c in seen] + [len(set(map(id, seen)))]",
            before="seen = []\n",
        )
    )
    await rig.run("demo:do", call_id="one")
    assert (await rig.run("demo:do", call_id="two")).data == ["one", "two", 2]


async def test_a_package_has_its_own_tables(make):
    storage = [
        "await ctx.storage.execute('CREATE TABLE IF NOT EXISTS t (x)')",
        "await ctx.storage.execute('INSERT INTO t VALUES (?)', 1)",
    ]
    rig = make(body(*storage, "return await ctx.storage.fetch('SELECT x FROM t')"))
    assert (await rig.run("demo:do")).data == [{"x": 1}]
    assert await rig.storage("other").fetch("SELECT name FROM sqlite_master") == []


async def test_progress_reaches_the_caller_shortened(make):
    heard = []

    async def progress(text):
        heard.append(text)

    await make(body("await ctx.progress('x' * 9999)")).go(call("demo:do"), progress)
    assert heard == ["x" * 500]


# ------------------------------------------------------------------ loading


async def test_a_handler_is_loaded_once(make, tmp_path):
    marker = tmp_path / "loads"
    rig = make(
        body("return 1", before=f"with open({str(marker)!r}, 'a') as f:\n    f.write('x')\n")
    )
    assert not marker.exists(), "and not before its first call"
    await rig.run("demo:do")
    await rig.run("demo:do")
    assert marker.read_text() == "x"


@pytest.mark.parametrize(
    "handler",
    [
        "raise RuntimeError('hunter2')",
        "def execute(args, ctx):\n    return 1\n",
        "import no_such_module_at_all",
    ],
)
async def test_a_handler_that_cannot_be_loaded_is_internal_and_others_are_not_touched(
    make, tmp_path, caplog, handler
):
    rig = make(body("return 1"))
    (tmp_path / "tools" / "demo_do" / "handler.py").write_text(handler)
    response = await rig.run("demo:do")
    assert (response.error.code, response.error.partial_side_effects) == (
        ErrorCode.HANDLER_ERROR,
        False,
    )
    assert "Handler for demo_do" in caplog.text
    assert "hunter2" not in str(response)


async def test_a_missing_handler_is_internal(make, tmp_path):
    rig = make(body("return 1"))
    (tmp_path / "tools" / "demo_do" / "handler.py").unlink()
    assert (await rig.run("demo:do")).error.code is ErrorCode.HANDLER_ERROR


@pytest.mark.parametrize("folder", ["../outside", "/etc", "", None, "a/b", "."])
async def test_a_registry_cannot_lead_outside_the_tools(make, tmp_path, folder):
    rig = make(body("return 1"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "handler.py").write_text(body("return 'outside'"))
    artifact = tmp_path / "tool_registry.json"
    document = json.loads(artifact.read_text())
    document["apps"][0]["tools"][0]["_meta"]["io.glassd/build"]["folder"] = folder
    artifact.write_text(json.dumps(document))
    rig.registry.load()
    assert (await rig.run("demo:do")).error.code is ErrorCode.HANDLER_ERROR


# ------------------------------------------------------------------ every shipped tool, for real


@pytest.fixture
async def shipped(tmp_path):
    rig = Rig(tmp_path, compiled(), compiler.TOOLS)
    yield rig
    await rig.packages.close()


async def test_notes_are_kept_listed_newest_first_and_counted(shipped):
    assert (await shipped.good("notes:list")).data == {
        "notes": [],
        "total": 0,
        "text": "No notes yet",
    }
    for text in ("one", "  two  ", "three"):
        await shipped.good("notes:add", {"text": text})
        shipped.wall += 1
    added = await shipped.good("notes:add", {"text": "four"})
    assert added.data == {"id": 4, "text": "Noted: four"}
    listed = (await shipped.good("notes:list", {"limit": 3})).data
    assert [n["text"] for n in listed["notes"]] == ["four", "three", "two"]
    assert (listed["total"], listed["text"]) == (4, "- four\n- three\n- two")
    assert listed["notes"][0] == {"id": 4, "text": "four", "created": "2026-11-21T10:30:03+00:00"}
    for number in range(1, 5):
        await shipped.good("notes:remove", {"id": number})
    assert (await shipped.good("notes:list")).data["text"] == "No notes yet"


@pytest.mark.requirement("I11-consent-complete")
async def test_a_question_names_the_note_that_is_meant(shipped):
    await shipped.good("notes:add", {"text": "milk"})
    assert await shipped.named("notes:remove", id=1) == ["id = note: milk"]
    with pytest.raises(ToolFailure, match="no note 2"):
        await shipped.named("notes:remove", id=2)
    await shipped.good("notes:add", {"text": "milk"})
    assert await shipped.named("notes:remove", id=1) == []


async def test_notes_survive_a_restart(shipped, tmp_path):
    await shipped.good("notes:add", {"text": "keep me"})
    await shipped.packages.close()
    again = Rig(tmp_path, compiled(), compiler.TOOLS)
    assert (await again.good("notes:list")).data["total"] == 1
    await again.packages.close()


async def test_ten_notes_are_listed_by_default(shipped):
    for n in range(12):
        await shipped.good("notes:add", {"text": f"note {n}"})
    assert len((await shipped.good("notes:list")).data["notes"]) == 10
    assert len((await shipped.good("notes:search", {"query": "note"})).data["notes"]) == 10
    assert (
        len((await shipped.good("notes:search", {"query": "note", "limit": 12})).data["notes"])
        == 12
    )


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("KEY mat", ["The key is under the mat"]),
        ("mat KEY", ["The key is under the mat"]),
        ("straße", ["Hauptstrasse 5"]),
        ("ÜBER", ["über alles"]),
        ("e", ["50% off_sale", "über alles", "Hauptstrasse 5", "The key is under the mat"]),
        ("key rat", []),
        ("%", ["50% off_sale"]),
        ("_", ["50% off_sale"]),
        ("'; DROP TABLE notes; --", []),
        ("ffice", []),
    ],
)
async def test_notes_are_found_by_words_in_any_case_and_order_and_no_wildcards(
    shipped, query, found
):
    for text in ("The key is under the mat", "Hauptstrasse 5", "über alles", "50% off_sale"):
        await shipped.good("notes:add", {"text": text})
    result = (await shipped.good("notes:search", {"query": query})).data
    assert [n["text"] for n in result["notes"]] == found
    assert result["text"] == ("\n".join(f"- {t}" for t in found) or f"No note contains: {query}")


async def test_searching_a_new_disk_finds_nothing_and_writes_nothing(shipped):
    assert (await shipped.good("notes:search", {"query": "x"})).data["notes"] == []
    assert await shipped.storage("notes").fetch("SELECT name FROM sqlite_master") == []


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("notes:add", {"text": "  "}),
        ("notes:search", {"query": " \t"}),
        ("timer:cancel", {"id": 9}),
        ("clock:now", {"timezone": "Mars/Base"}),
    ],
)
async def test_what_the_schema_cannot_see_is_still_a_validation_error(shipped, tool, args):
    response = await shipped.run(tool, args)
    assert (response.error.type, response.error.message[:22]) == (
        ErrorType.VALIDATION,
        "Invalid parameters: /" + next(iter(args))[0],
    )
    assert response.error.suggestion


@pytest.mark.parametrize(
    ("tool", "args", "path"),
    [
        ("notes:add", {}, "root"),
        ("notes:add", {"text": ""}, "/text"),
        ("notes:add", {"text": "x" * 2001}, "/text"),
        ("notes:add", {"text": "x", "zz": 1}, "root"),
        ("notes:list", {"limit": 51}, "/limit"),
        ("timer:start", {}, "root"),
        ("timer:start", {"seconds": 1.5}, "/seconds"),
        ("timer:start", {"seconds": 0}, "/seconds"),
        ("timer:start", {"seconds": 86401}, "/seconds"),
        ("glasses:show_text", {"text": "x", "duration_s": 0}, "/duration_s"),
        ("glasses:say", {"text": 5}, "/text"),
        ("clock:now", {"timezone": None}, "/timezone"),
    ],
)
async def test_bad_arguments_are_refused_by_the_schema(shipped, tool, args, path):
    _, problems = shipped.registry.check_args(
        shipped.registry.snapshot().find(tool).definition, args
    )
    assert [p["path"] for p in problems] == [path]


async def test_a_timer_is_started_listed_cancelled_and_fires(shipped):
    started = await shipped.good("timer:start", {"seconds": 330, "label": "tea"})
    assert started.data == {"id": 1, "seconds": 330, "text": "Timer 1: tea, 5 min 30 s"}
    await shipped.good("timer:start", {"seconds": 60})
    which = await shipped.run("timer:cancel", {})
    assert which.error.for_wearer == "Which timer? 1, 2."
    listed = (await shipped.good("timer:list")).data
    assert [(t["id"], t["label"], t["remaining_s"]) for t in listed["timers"]] == [
        (2, "1 min", 60),
        (1, "tea", 330),
    ]
    assert listed["text"] == "Timer 2, 1 min: 1 min left\nTimer 1, tea: 5 min 30 s left"
    assert (await shipped.good("timer:cancel", {"id": 1})).data == {
        "id": 1,
        "text": "Timer 1 cancelled",
    }
    await shipped.good("timer:cancel", {})
    none = await shipped.run("timer:cancel", {})
    assert (none.error.type, none.error.for_wearer) == (
        ErrorType.VALIDATION,
        "No timer is running.",
    )
    assert (await shipped.good("timer:list")).data == {"timers": [], "text": "No timer is running"}
    await shipped.good("timer:start", {"seconds": 1, "label": "now"})
    fired = shipped.alarms.fired()
    async with asyncio.timeout(40):
        assert (await anext(fired)).text == "Time's up: now"
    await fired.aclose()


async def test_the_time_is_given_here_and_in_other_zones(shipped, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        here = (await shipped.good("clock:now")).data
    finally:
        monkeypatch.undo()
        time.tzset()
    assert here == {
        "iso": "2026-11-21T11:30:00+01:00",
        "timezone": "CET",
        "text": "11:30, Saturday 21 November 2026",
    }
    tokyo = (await shipped.good("clock:now", {"timezone": "Asia/Tokyo"})).data
    assert tokyo == {
        "iso": "2026-11-21T19:30:00+09:00",
        "timezone": "Asia/Tokyo",
        "text": "19:30, Saturday 21 November 2026",
    }


@pytest.mark.parametrize(
    "zone", ["../../etc/passwd", "/etc/localtime", "Europe", "x\x00y", "CET-1CEST"]
)
async def test_a_zone_that_is_none_is_refused(shipped, zone):
    assert (await shipped.run("clock:now", {"timezone": zone})).error.type is ErrorType.VALIDATION


SILENT = {"suppressVoiceResponse": True}


@pytest.mark.parametrize(
    ("tool", "args", "render"),
    [
        (
            "glasses:show_text",
            {"text": "Hi"},
            {"display": {"layout": "text_wall", "text": "Hi"}},
        ),
        (
            "glasses:show_text",
            {"text": "Hi", "title": "T", "duration_s": 1.5},
            {
                "display": {
                    "layout": "reference_card",
                    "title": "T",
                    "text": "Hi",
                    "durationMs": 1500,
                },
            },
        ),
        (
            "glasses:show_text",
            {"text": "Hi", "scene": "bus-42"},
            {"display": {"layout": "text_wall", "text": "Hi", "scene": "bus-42"}},
        ),
        (
            "glasses:show_card",
            {"title": "T", "lines": ["a"], "scene": "bus-42"},
            {
                "display": {
                    "layout": "reference_card",
                    "title": "T",
                    "text": "a",
                    "scene": "bus-42",
                }
            },
        ),
        (
            "glasses:show_text",
            {"text": "Hi", "duration_s": 0.0001},
            {"display": {"layout": "text_wall", "text": "Hi", "durationMs": 1}},
        ),
        (
            "glasses:show_card",
            {"title": "T", "lines": ["a  b", "c"], "footer": "f", "duration_s": 2},
            {
                "display": {
                    "layout": "reference_card",
                    "title": "T",
                    "text": "a b\nc\nf",
                    "durationMs": 2000,
                },
            },
        ),
        ("glasses:say", {"text": "Hi"}, {"audio": {"text": "Hi"}}),
        ("glasses:clear", {}, {"display": {"layout": "clear_view"}, "audio": SILENT}),
    ],
)
async def test_glasses_tools_give_render_hints_and_claim_nothing(shipped, tool, args, render):
    assert (await shipped.good(tool, args)).render == render


class Pictures:
    """A lens that draws this; "" draws no pixels."""

    def __init__(self, drawn):
        self.drawn = drawn

    async def fitted(self, image):
        return f"{self.drawn}{image}" if self.drawn else ""


@pytest.mark.requirement("I13-ladders")
@pytest.mark.parametrize("drawn", ["fitted ", ""])
async def test_a_picture_brings_its_description_for_where_it_is_not_drawn(tmp_path, drawn):
    about = {"pictures": lambda: Pictures(drawn)}
    rig = Rig(tmp_path, compiled(), compiler.TOOLS, **about)
    image = "iVBORw0KGgoAAAAN"
    args = {"image": image, "alt": "A map", "caption": "Gate 4", "duration_s": 2}
    answer = await rig.good("glasses:show_image", args)
    assert answer.data == {"text": "A map"}
    assert answer.render == {
        "display": {
            "layout": "bitmap_view",
            "data": f"fitted {image}" if drawn else "",
            "alt": "A map\nGate 4",
            "beside": "Gate 4",
            "durationMs": 2000,
        }
    }


async def test_glasses_status_tells_what_is_known(shipped):
    assert (await shipped.good("glasses:status")).data["text"] == "No glasses were ever connected"
    record = Capabilities.of(
        "mock:full",
        {"camera": True, "display": True, "speaker": False},
        origin=Origin.FIRMWARE,
        now=0.0,
    )
    shipped.status = GlassesStatus(
        state="READY", ready=True, model="mock:full", battery=80, capabilities=record
    )
    data = (await shipped.good("glasses:status")).data
    assert (data["text"], data["can"], data["battery"]) == (
        "mock:full, connected, battery 80 %",
        ["camera", "display"],
        80,
    )
    shipped.status = GlassesStatus(
        state="READY", ready=True, model="even_g1", battery=80, case=60, capabilities=record
    )
    data = (await shipped.good("glasses:status")).data
    assert (data["text"], data["case"]) == ("even_g1, connected, battery 80 %, case 60 %", 60)
    shipped.status = GlassesStatus(
        state="SEEKING", model="mock:full", capabilities=record, stale=True
    )
    data = (await shipped.good("glasses:status")).data
    assert (data["text"], data["stale"]) == ("mock:full, away", True)


OF_TYPE = {"string": "x", "array": [], "object": {}, "integer": 5, "boolean": True}
MOMENTS = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-23T10:00:00Z"}


def anything(schema):
    """A value of the right type for each argument that the tool needs."""
    needed = {name: schema["properties"][name] for name in schema.get("required", ())}
    return {name: MOMENTS.get(name, OF_TYPE[told["type"]]) for name, told in needed.items()}


async def test_every_shipped_handler_loads(shipped, caplog):
    with caplog.at_level(logging.ERROR):
        here = [
            e for e in shipped.registry.snapshot().entries() if not e.definition.asynchronous
        ]  # a question has no handler
        for entry in here:
            tool = entry.definition
            response = await shipped.run(tool.name, anything(tool.input_schema))
            assert isinstance(response, ToolResponse)
            assert response.ok or response.error.code is not ErrorCode.HANDLER_ERROR, (
                entry.definition.name
            )
    assert caplog.text == ""


# ------------------------------------------------------------------ tools that call tools


@pytest.mark.requirement("S2-134")
async def test_a_tool_may_call_others_three_deep_and_a_second_run_makes_the_same_calls(make):
    asked = []

    async def pipeline(nested):
        asked.append(nested)
        return await rig.go(nested)

    rig = make(
        body(
            "answer = await ctx.call_tool('demo:do', {})",
            "return {'data': [answer.ok, answer.data if answer.ok else answer.error.code.value]}",
        ),
        call=pipeline,
    )
    response = await rig.run("demo:do", call_id="c9", turn_id="t", session="s")
    assert response.data == [True, [True, [True, [False, "UNSUPPORTED"]]]]
    assert [c.depth for c in asked] == [1, 2, 3]
    assert {(c.turn_id, c.session, c.origin) for c in asked} == {("t", "s", CallOrigin.CLI)}
    assert len({c.call_id for c in asked} | {"c9"}) == 4
    assert asked[0].idempotency_key == "c9/1"
    await rig.run("demo:do", call_id="c9", turn_id="t", session="s")
    assert asked[3].idempotency_key == "c9/1"


async def test_nested_calls_count_for_the_budget_of_the_turn_and_show_nothing_by_themselves(
    tmp_path,
):
    from msgspec.structs import replace

    from tests.unit.calls.orchestrator_house import FakeTools, house
    from tools_cache.api.tool import Mode

    tools = FakeTools()
    async with house(tmp_path, tools=tools) as h:

        async def nesting(call, _):
            if call.tool != "notes:add":
                return ToolResponse(data={"text": f"inner {len(tools.runs)}"})
            nested = [
                replace(call, call_id=f"{call.call_id}-{n}", tool="notes:list", depth=1)
                for n in range(3)
            ]
            return ToolResponse(
                data={"text": str([(await h.orchestrator.call(n)).ok for n in nested])}
            )

        tools.handler = nesting
        answer = await h.call("notes:add", {"text": "x"}, mode=Mode.VOICE, turn_id="t")
        assert answer.data["text"] == "[True, True, False]"
        assert not [t for t in h.glasses.texts() if "inner" in t]


# ------------------------------------------------------------------ what arguments stand for


def naming(code):
    given = (
        body("return {'data': 1}")
        + "\nfrom tools_cache.api.tool import ErrorCode, Named, ToolFailure\n"
    )
    return f"{given}\nasync def name_arguments(args, ctx):\n    {code}\n"


async def test_a_tool_says_what_its_arguments_stand_for(make):
    rig = make(naming("return {'id': Named('note', f'{args[\"id\"]} of {ctx.call.user_id}')}"))
    assert await rig.named("demo:do", id=7) == ["id = note: 7 of local"]


async def test_a_tool_that_would_refuse_the_call_says_so_before_anybody_is_asked(make):
    with pytest.raises(ToolFailure, match="which"):
        await make(naming("raise ToolFailure.of(ErrorCode.CONFLICT, 'which?')")).named("demo:do")


async def test_of_a_tool_that_cannot_say_it_nothing_is_named(make, caplog):
    assert await make(naming("1 / 0")).named("demo:do") == []
    assert "demo:do cannot name its arguments" in caplog.text
    assert await make(body("return {'data': 1}")).named("demo:do") == []


async def test_a_question_does_not_wait_long_for_a_name(make, monkeypatch):
    monkeypatch.setattr(local, "NAMING_S", 0.01)
    assert await make(naming("import asyncio; await asyncio.sleep(60)")).named("demo:do") == []


# ------------------------------------------------------------------ late answers


LATE = body("return {'data': 1}") + (
    "\nasync def take_late_answer(answer, ctx):\n"
    "    await ctx.storage.execute('CREATE TABLE IF NOT EXISTS late (code TEXT, tool TEXT)')\n"
    "    row = (answer.error.code if answer.error else '', ctx.call.tool)\n"
    "    await ctx.storage.execute('INSERT INTO late VALUES (?, ?)', *row)\n"
)


async def give_late(rig, answer):
    definition = rig.registry.snapshot().find("demo:do").definition
    asked = call("far:away", {}, depth=1, through="demo:do")
    await rig.local.take_late_answer(definition, asked, answer)


async def test_a_tool_takes_late_answers_with_its_own_services(make):
    rig = make(LATE)
    await give_late(rig, ToolResponse(data=1))
    await give_late(rig, ToolResponse.failure(ErrorCode.CONFLICT, "no"))
    assert await rig.storage("demo").fetch("SELECT code, tool FROM late") == [
        {"code": "", "tool": "demo:do"},
        {"code": "CONFLICT", "tool": "demo:do"},
    ]


async def test_a_tool_that_takes_no_late_answers_is_given_none(make):
    await give_late(make(body("return {'data': 1}")), ToolResponse(data=1))


async def test_a_fault_in_taking_a_late_answer_is_logged_and_a_full_disk_is_raised(make, caplog):
    faulty = body("return {'data': 1}") + "\nasync def take_late_answer(answer, ctx):\n    1 / 0\n"
    await give_late(make(faulty), ToolResponse(data=1))
    assert "demo:do cannot take a late answer of far:away" in caplog.text
    full = (
        "import errno\n"
        + body("return {'data': 1}")
        + "\nasync def take_late_answer(answer, ctx):\n    raise OSError(errno.ENOSPC, 'full')\n"
    )
    with pytest.raises(StorageUnavailable):
        await give_late(make(full), ToolResponse(data=1))
