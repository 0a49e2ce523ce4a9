"""Tools as classes: loaded by path, made anew for each call, handed what they name, and nothing
beside it.
"""

import asyncio
import inspect
import json
import logging

import pytest
from msgspec.structs import replace

from edge.storage.tools.user_stores import PrivateStores
from edge.tools.context import Context
from edge.tools.local import LocalTools
from tests.unit.tools.test_local import Rig, body, call, make, nobody  # noqa: F401 - a fixture
from tests.unit.tools_cache.handlers import BAD, GOOD, HEAD, PLAIN
from tools_cache.api import handed
from tools_cache.api.base import INJECTED
from tools_cache.api.tool import (
    Delivery,
    DeliveryReport,
    ErrorCode,
    ErrorType,
    ToolContext,
    ToolResponse,
)


@pytest.fixture
async def classes(make, tmp_path):  # noqa: F811
    """Build `demo:do` with a handler that may use everything; what it shows, notes and asks is
    kept in `rig`.
    """
    stores = PrivateStores(tmp_path / "users", key=tmp_path / "tools.key")

    def of(handler, **options):
        async def present(scene, response):
            rig.shown.append((scene, response.render))
            return DeliveryReport(Delivery.SHOWN)

        async def other(nested):
            return ToolResponse(data={"of": nested.tool, "depth": nested.depth})

        notes = []
        rig = make(
            handler,
            private=stores.of,
            note=notes.append,
            glasses_do=nobody,
            captions=nobody,
            call=other,
            present=present,
            state=lambda: rig.state,
            **options,
        )
        rig.shown, rig.notes, rig.state = [], notes, {"voice_active": True}
        return rig

    yield of
    await stores.close()


def tool(*lines, init="", more="", head=HEAD):
    text = "".join(f"        {line}\n" for line in lines)
    before = (
        (
            f"    def __init__(self, {init}) -> None:\n        self.parts = "
            f"({', '.join(p.partition(':')[0] for p in init.split(', '))},)\n"
        )
        if init
        else ""
    )
    return f"{head}\nclass Do(Tool):\n{before}{more}\n    async def run(self, args):\n{text}"


# ------------------------------------------------------------------ loading


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.requirement("S4-14")
async def test_both_forms_run(classes, name):
    answer = await classes(GOOD[name]).run("demo:do")
    assert answer.ok
    assert answer.data == (
        "function"
        if name == "function"
        else ["UserTables", "glassd.tool.demo:do"]
        if name == "injected"
        else "class"
    )


@pytest.mark.parametrize("name", BAD)
@pytest.mark.requirement("S4-01", "S4-14", "S4-26")
async def test_what_cannot_be_run_is_refused_when_it_is_loaded(classes, tmp_path, caplog, name):
    handler, _, says = BAD[name]
    rig = classes(PLAIN)
    (tmp_path / "tools" / "demo_do" / "handler.py").write_text(handler)
    answer = await rig.run("demo:do")
    assert (answer.error.code, answer.error.partial_side_effects) == (
        ErrorCode.HANDLER_ERROR,
        False,
    )
    assert says in caplog.text


@pytest.mark.requirement("S4-15")
async def test_nothing_is_imported_before_its_tool_is_called_and_nothing_made_by_importing(
    classes, tmp_path
):
    mark = tmp_path / "mark"
    mark_it = (
        f"def mark(word):\n    with open({str(mark)!r}, 'a') as file:\n        file.write(word)\n"
    )
    rig = classes(
        mark_it
        + tool("return None", more="    def __init__(self):\n        mark('made ')\n")
        + "\nmark('imported ')\n"
    )
    assert not mark.exists()
    for _ in range(3):
        await rig.run("demo:do")
    assert mark.read_text() == "imported made made made "


@pytest.mark.requirement("S4-25", "C-38")
async def test_a_call_finds_nothing_that_an_earlier_one_left_in_its_instance(classes):
    rig = classes(tool("seen = getattr(self, 'left', None)", "self.left = args", "return seen"))
    assert [(await rig.run("demo:do", {"n": n})).data for n in range(3)] == [None, None, None]


async def test_what_is_unloaded_is_imported_again(classes, tmp_path):
    rig = classes(PLAIN)
    definition = rig.registry.snapshot().find("demo:do").definition
    assert (await rig.run("demo:do")).data == "class"
    (tmp_path / "tools" / "demo_do" / "handler.py").write_text(body("return 'new'"))
    assert (await rig.run("demo:do")).data == "class"
    rig.local.unload(definition)
    assert (await rig.run("demo:do")).data == "new"


async def test_a_dataclass_in_a_handler_finds_its_module(classes):
    handler = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing "
        "import ClassVar\n@dataclass\nclass P:\n    k: ClassVar[int] = 1\n    x: int = 2\n"
    ) + body("return P().x")
    assert (await classes(handler).run("demo:do")).data == 2


@pytest.mark.requirement("S4-11")
async def test_a_tool_says_itself_why_it_cannot_run_now_and_is_asked_each_time(classes):
    rig = classes(
        tool(
            "return 'ran'",
            init="ctx: ToolContext",
            more=(
                "    async def is_available(self):\n        return '' if "
                "self.parts[0].glasses()['ready'] else 'no glasses are near'\n"
            ),
        )
    )
    refused = (await rig.run("demo:do")).error
    assert (refused.type, refused.code, refused.message) == (
        ErrorType.PERMANENT,
        ErrorCode.TOOL_UNAVAILABLE,
        "no glasses are near",
    )
    rig.status = replace(rig.status, ready=True)
    assert (await rig.run("demo:do")).data == "ran"
    rig.status = replace(rig.status, ready=False)
    assert (await rig.run("demo:do")).error.code is ErrorCode.TOOL_UNAVAILABLE


@pytest.mark.requirement("S0-61", "S2-45")
async def test_an_error_in_a_constructor_is_reported_without_its_text(classes, caplog):
    answer = await classes(
        tool("return 1", more="    def __init__(self):\n        raise ValueError('hunter2')\n")
    ).run("demo:do")
    assert (answer.error.code, answer.error.message, answer.error.retryable) == (
        ErrorCode.HANDLER_ERROR,
        "Internal error executing demo:do",
        False,
    )
    assert "hunter2" in caplog.text
    assert "hunter2" not in json.dumps(answer.to_json())


# ------------------------------------------------------------------ what a tool is handed


@pytest.mark.requirement("S4-26")
async def test_each_parameter_gets_what_its_type_says(classes):
    kinds = {kind: part for kind, part in INJECTED.items() if part}
    names = {kind.__name__: kind for kind in kinds}
    imports = (
        "from tools_cache.api.handed import *\nfrom tools_cache.api.handed import KV, "
        "ToolStorage, Alarms, Session, Audit, Deeds, Captions\n"
    )
    init = ", ".join(
        f"p{n}: {'logging.Logger' if name == 'Logger' else name}" for n, name in enumerate(names)
    )
    rig = classes(
        tool("return [type(p).__name__ for p in self.parts]", init=init, head=HEAD + imports)
    )
    got = (await rig.run("demo:do")).data
    assert dict(zip(names, got, strict=True)) == {
        "ToolStorage": "PackageStorage",
        "Database": "UserTables",
        "Files": "UserFiles",
        "KV": "StoredValues",
        "Alarms": "AlarmClock",
        "Display": "Output",
        "Audio": "Output",
        "Cloud": "OtherTools",
        "Clock": "WallClock",
        "Session": "VoiceSession",
        "Audit": "AuditLine",
        "Config": "mappingproxy",
        "Logger": "Logger",
        "ToolCall": "ToolCall",
        "Deeds": "function",
        "Captions": "CaptionsSwitch",
    }


@pytest.mark.requirement("S2-50")
async def test_what_a_tool_is_handed_does_something(classes):
    lines = [
        "d, a, c, k, f, t, n, s = self.parts",
        "said = [await d.show('Hi', title='T'), await d.show('Ho'), await a.say('Hey')]",
        (
            "await k.set('x', {'a': [1]}); await k.set('y', 2); "
            "await k.set('y', 3); await f.write('a.txt', 'text')"
        ),
        "n.log('something happened')",
        "gone = [await k.delete('x'), await k.delete('x')]",
        (
            "found = {'said': said, 'other': await c.call('notes:list', {}), 'kv': "
            "[await k.get('x'), await k.get('y'), await k.get('z', 9), await k.keys(), gone]}"
        ),
        (
            "return {**found, 'file': (await f.read('a.txt')).decode(), "
            "'now': t.now(), 'state': s.state()}"
        ),
    ]
    rig = classes(
        tool(
            *lines,
            init="d: Display, a: Audio, c: Cloud, k: KV, f: Files, t: Clock, n: Audit, s: Session",
            head=HEAD + "from tools_cache.api.handed import Audit, Session\n",
        )
    )
    data = (await rig.run("demo:do")).data
    assert data["said"] == ["shown"] * 3
    silent = {"suppressVoiceResponse": True}
    assert rig.shown == [
        (
            "c1/shown-1",
            {"display": {"layout": "reference_card", "title": "T", "text": "Hi"}, "audio": silent},
        ),
        ("c1/shown-2", {"display": {"layout": "text_wall", "text": "Ho"}, "audio": silent}),
        ("c1/shown-3", {"audio": {"text": "Hey"}}),
    ]
    assert data["other"]["data"] == {"of": "notes:list", "depth": 1}
    assert data["kv"] == [None, 3, 9, ["y"], [True, False]]
    assert (data["file"], data["now"], data["state"]) == ("text", rig.wall, {"voice_active": True})
    (noted,) = rig.notes
    assert (noted["toolId"], noted["callId"], noted["reason"]) == (
        "demo:do",
        "c1",
        "something happened",
    )


@pytest.mark.requirement("S4-07")
async def test_a_tools_words_in_the_log_carry_its_name(classes, caplog):
    with caplog.at_level(logging.INFO):
        await classes(body("ctx.log.info('from a function')")).run("demo:do")
    assert [(r.name, r.message) for r in caplog.records if "function" in r.message] == [
        ("glassd.tool.demo:do", "from a function")
    ]


def _words(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.requirement("S2-50", "S2-52")
async def test_no_part_of_the_context_is_a_radio_a_socket_or_makes_intents(classes):
    """What a handler sees by name: the words of the Protocols, all of them known here, and no
    room behind them.
    """
    known = {
        "ToolStorage": {"execute", "fetch"},
        "Files": {"make_folder", "write", "read", "exists", "delete", "names"},
        "Database": {"create_table", "insert", "select", "update", "delete", "execute", "fetch"},
        "KV": {"get", "set", "delete", "keys"},
        "Alarms": {"set", "pending", "cancel"},
        "Display": {"show"},
        "Audio": {"say"},
        "Cloud": {"call"},
        "Clock": {"now"},
        "Session": {"state"},
        "Audit": {"log"},
        "Config": {"get"},
        "Deeds": set(),
        "Captions": {"switch"},
    }
    offered = {k.__name__: _words(k) for k in INJECTED if k.__module__ == handed.__name__}
    assert offered == known
    never = (
        "intent",
        "publish",
        "mqtt",
        "ble",
        "driver",
        "bus",
        "uplink",
        "link",
        "socket",
        "packet",
        "orchestrator",
        "registry",
    )
    assert not [
        w
        for w in (
            *(w for words in offered.values() for w in words),
            *_words(ToolContext),
            *_words(Context),
        )
        if any(n in w.split("_") for n in never)
    ]


@pytest.mark.requirement("S2-51")
async def test_a_tool_that_changes_what_it_was_shown_changes_nothing(classes):
    rig = classes(
        body(
            "s = ctx.session.state()",
            "s['voice_active'] = False",
            "args['x'] = 2",
            "g = ctx.glasses()",
            "g['model'] = 'mine'",
            "return [ctx.session.state(), dict(ctx.call.args), ctx.glasses()['model']]",
        )
    )
    mine = {"x": 1}
    assert (await rig.run("demo:do", mine)).data == [{"voice_active": True}, {"x": 1}, ""]
    assert (rig.state, mine) == ({"voice_active": True}, {"x": 1})


@pytest.mark.parametrize(
    "part",
    ["db.select('t')", "files.names()", "kv.get('x')", "display.show('x')", "audio.say('x')"],
)
async def test_what_is_not_there_says_so(make, part):  # noqa: F811
    answer = await make(body(f"return await ctx.{part}")).run("demo:do")
    assert (answer.error.code, answer.error.message[:9]) == (ErrorCode.UNSUPPORTED, "There is ")


@pytest.mark.parametrize("part", ["knowledge", "calendars", "pictures", "toolbox", "wearer"])
async def test_a_service_this_installation_lacks_is_an_error_in_words(make, part):  # noqa: F811
    answer = await make(body(f"return ctx.{part}")).run("demo:do")
    assert (answer.error.code, answer.error.message) == (
        ErrorCode.TOOL_UNAVAILABLE,
        "This installation has nothing to ask for that",
    )


def test_the_context_has_every_service_it_promises():
    assert _words(ToolContext) - {"call"} <= _words(Context)
    assert "call" in Context.__annotations__


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("calendars", "CalendarContext Calendars"),
        ("knowledge", "KnowledgeContext Knowledge"),
        ("pictures", "PictureContext Pictures"),
        ("sessions", "SessionContext FAREWELL"),
        ("toolbox", "ToolboxContext Toolbox"),
        ("wearer", "WearerContext Wearer"),
    ],
)
async def test_a_handler_by_its_old_imports_still_runs(classes, module, names):
    """A tool may name the context of one service, as the shipped tools did."""
    context, service = names.split()
    rig = classes(
        f"from tools_cache.{module} import {context}, {service}\n"
        "from tools_cache.api.tool import ToolContext\n"
        f"assert {context} is ToolContext\n\n"
        f"async def execute(args, ctx: {context}):\n    return ctx.voice_active\n"
    )
    assert (await rig.run("demo:do")).data is False


def test_a_name_that_never_was_is_still_unknown():
    with pytest.raises(ImportError, match="ClockContext"):
        from tools_cache.api.calendars import ClockContext  # noqa: F401


@pytest.mark.requirement("C-34")
async def test_a_tool_is_run_by_its_canonical_name_with_arguments_and_a_context(classes):
    assert list(inspect.signature(LocalTools.run).parameters) == [
        "self",
        "call",
        "definition",
        "progress",
    ]
    rig = classes(body("return [ctx.call.tool, sorted(args), ctx.call.call_id]"))
    assert (await rig.run("demo:do", {"b": 1, "a": 2}, call_id="c7")).data == [
        "demo:do",
        ["a", "b"],
        "c7",
    ]
    assert rig.registry.snapshot().find("demo_do") is None


# ------------------------------------------------------------------ two users


@pytest.mark.requirement("S4-04", "S4-06")
async def test_a_hundred_calls_of_many_users_at_once_never_mix(classes):
    lines = [
        "await ctx.db.create_table('seen', {'user': 'TEXT'})",
        "await ctx.db.insert('seen', {'user': ctx.call.user_id})",
        "await ctx.kv.set('me', ctx.call.user_id)",
        "await ctx.files.write('me.txt', ctx.call.user_id)",
        "rows = await ctx.db.select('seen')",
        (
            "return [sorted({r['user'] for r in rows}), await ctx.kv.get('me'), "
            "(await ctx.files.read('me.txt')).decode()]"
        ),
    ]
    rig = classes(body(*lines))
    calls = [call("demo:do", call_id=f"c{n}", user_id=f"user {n % 6}") for n in range(100)]
    answers = await asyncio.gather(*(rig.go(c) for c in calls))
    for c, answer in zip(calls, answers, strict=True):
        assert answer.data == [[c.user_id], c.user_id, c.user_id]


# ------------------------------------------------------------------ results in other words


@pytest.mark.parametrize(
    ("result", "data"),
    [
        ({"success": True, "data": {"a": 1}}, {"a": 1}),
        ({"success": True}, None),
        ({"success": True, "message": "Done"}, "Done"),
        ({"success": True, "data": 1, "render": {"audio": {"text": "x"}}}, 1),
        ({"success": "yes"}, {"success": "yes"}),
        ({"success": True, "rows": []}, {"success": True, "rows": []}),
    ],
)
@pytest.mark.requirement("C-01", "S4-03")
async def test_success_is_read_as_ok_at_the_rim(classes, result, data):
    answer = await classes(body(f"r = {result!r}", "return r")).run("demo:do")
    assert (answer.ok, answer.data) == (True, data)
    assert "success" not in answer.to_json()


@pytest.mark.parametrize(
    ("result", "code", "message", "retryable"),
    [
        (
            {"success": False, "error": "no such person"},
            "TOOL_UNAVAILABLE",
            "no such person",
            False,
        ),
        ({"success": False, "message": "not today"}, "TOOL_UNAVAILABLE", "not today", False),
        (
            {"success": False, "error": {"code": "CONFLICT", "message": "taken"}},
            "CONFLICT",
            "taken",
            False,
        ),
        (
            {"success": False, "error": {"code": "OFFLINE", "message": "later"}},
            "OFFLINE",
            "later",
            True,
        ),
        (
            {"success": False, "error": {"code": "OWN", "message": "m", "retryable": True}},
            "TOOL_UNAVAILABLE",
            "m",
            True,
        ),
        ({"success": False}, "HANDLER_ERROR", "Internal error executing demo:do", False),
        (
            {"success": False, "error": {"code": 5}},
            "HANDLER_ERROR",
            "Internal error executing demo:do",
            False,
        ),
    ],
)
@pytest.mark.requirement("C-01", "S2-43", "S2-46")
async def test_no_success_is_read_as_an_error_of_ours(classes, result, code, message, retryable):
    answer = await classes(body(f"r = {result!r}", "return r")).run("demo:do")
    assert (answer.error.code.value, answer.error.message, answer.error.retryable) == (
        code,
        message,
        retryable,
    )


@pytest.mark.parametrize(
    "result",
    [
        {"ok": "yes"},
        {"ok": False},
        {"ok": False, "error": {"message": "m"}},
        {"ok": False, "error": {"type": "TRANSIENT"}},
        {"ok": False, "error": {"type": "TRANSIENT", "message": "m", "retryable": 1}},
        {"ok": True, "intents": {}},
        {"ok": True, "meta": 1},
    ],
)
@pytest.mark.requirement("S2-46", "S2-47")
async def test_an_envelope_that_is_none_is_internal_and_named_in_the_log(classes, caplog, result):
    answer = await classes(body(f"r = {result!r}", "return r")).run("demo:do")
    assert (answer.error.type, answer.error.code) == (ErrorType.INTERNAL, ErrorCode.HANDLER_ERROR)
    assert "Invalid result structure for tool demo:do" in caplog.text


@pytest.mark.requirement("S2-43", "S2-46")
async def test_a_failure_of_its_own_passes_and_is_not_retryable_unless_it_says_so(classes):
    answer = await classes(
        body(
            "return {'ok': False, 'error': {'type': 'CONFLICT', "
            "'message': 'taken', 'suggestion': 'wait'}}"
        )
    ).run("demo:do")
    assert (
        answer.error.type,
        answer.error.message,
        answer.error.suggestion,
        answer.error.retryable,
    ) == (ErrorType.CONFLICT, "taken", "wait", False)


@pytest.mark.requirement("S2-44")
async def test_a_failure_that_is_raised_keeps_every_field(classes):
    imports = "from tools_cache.api.tool import ToolError, ToolFailure, ErrorCode\n"
    plain = await classes(
        body("raise ToolFailure(ToolError.of(ErrorCode.CONFLICT, 'taken'))", before=imports)
    ).run("demo:do")
    e = plain.error
    assert (e.retryable, e.idempotency_required, e.partial_side_effects) == (False, False, False)
    said = (
        "raise ToolFailure(ToolError.of(ErrorCode.OFFLINE, 'm', "
        "idempotency_required=True, partial_side_effects=True))"
    )
    e = (await classes(body(said, before=imports)).run("demo:do")).error
    assert (e.type, e.message, e.retryable, e.idempotency_required, e.partial_side_effects) == (
        ErrorType.TRANSIENT,
        "m",
        True,
        True,
        True,
    )
