"""Calls on the command line: without waiting, with a confirmation, and shown in detail."""

import asyncio
import json
from argparse import Namespace
from io import StringIO

import pytest

from edge.commands import confirm
from edge.commands.calls import waits_for
from edge.commands.shared.console import Screen
from edge.core.call_state import Submission
from edge.core.grants import Grant
from edge.core.tools.snapshot import Entry
from edge.runtime.errors import UserError
from tests.test_imports import _VERB, HEAVY, loaded
from tests.unit.commands.test_cli import DEADLINE_S, glassd, start
from tests.unit.control.house import ASKED, definition, open_house, row
from tools_cache.api.tool import ErrorCode, ToolResponse

pytestmark = pytest.mark.enable_socket

DONE = ToolResponse(data={"event": 1}, meta={"route": "local", "duration": 3})
NEXT = (
    "confirm on the glasses (tap or press: yes, "
    "double tap or long press: no), or: glassd confirm tok-1"
)


def asking(house, call_id="id-1"):
    """The daemon holds this call until it is confirmed."""
    house.calls.asked["cal:add"] = ASKED
    house.store.rows[call_id] = row(
        call_id,
        tool="cal:add",
        state="AWAITING_CONFIRMATION",
        ok=None,
        delivery=None,
        response=None,
    )


# ------------------------------------------------------------------ a call's options


async def test_options_of_a_call_reach_the_daemon_unchanged(tmp_path):
    async with open_house(tmp_path) as house:
        await glassd(
            "call",
            "notes:add",
            "--session",
            "s1",
            "--turn",
            "t1",
            "--provider-id",
            "toolu_1",
            "--mode",
            "voice",
            "--socket",
            str(house.path),
        )
        ((call, _),) = house.calls.seen
    assert (call.session, call.turn_id, call.provider_call_id, call.mode) == (
        "s1",
        "t1",
        "toolu_1",
        "voice",
    )


@pytest.mark.requirement("I13-present")
@pytest.mark.parametrize(
    ("words", "present"), [((), None), (("--present",), True), (("--silent",), False)]
)
async def test_a_call_may_say_whether_the_wearer_sees_it(tmp_path, words, present):
    async with open_house(tmp_path) as house:
        await glassd("call", "notes:add", *words, "--socket", str(house.path))
        ((call, _),) = house.calls.seen
    assert call.present is present


async def test_present_and_silent_exclude_each_other():
    ran = await glassd("call", "notes:add", "--present", "--silent")
    assert ran.code == 2
    assert "not allowed with" in ran.err


async def test_another_mode_than_the_sessions_is_refused(tmp_path):
    async with open_house(tmp_path) as house:
        house.sessions.modes["local", "s1"] = "voice"
        await glassd("call", "notes:add", "--session", "s1", "--socket", str(house.path))
        ran = await glassd(
            "call", "notes:add", "--session", "s1", "--mode", "text", "--socket", str(house.path)
        )
        ((call, _),) = house.calls.seen
    assert (call.mode, ran.code) == ("voice", 1)
    assert "the session s1 is a voice session" in ran.err
    assert "next:  leave mode out" in ran.err


async def test_an_ordinary_call_is_one_request(tmp_path):
    async with open_house(tmp_path) as house:
        ran = await glassd("call", "notes:add", "--socket", str(house.path))
        assert (ran.code, len(house.calls.seen), house.calls.begun, house.store.reads) == (
            0,
            1,
            [],
            0,
        )


# ------------------------------------------------------------------ a call that needs a yes


@pytest.mark.requirement("M-show-confirmation")
async def test_no_wait_prints_the_question_and_how_to_answer(tmp_path):
    async with open_house(tmp_path) as house:
        asking(house)
        people = await glassd("call", "cal:add", "--no-wait", "--socket", str(house.path))
        program = await glassd(
            "call", "cal:add", "--no-wait", "--json", "--socket", str(house.path)
        )
    assert (people.code, program.code, people.err, program.err) == (0, 0, "", "")
    assert people.out.splitlines() == [
        "waits for a yes: Create calendar event with 2 attendees",
        "call   id-1",
        "token  tok-1",
        f"next   {NEXT}",
    ]
    assert program.json["error"]["confirmation_request"]["token"] == "tok-1"


@pytest.mark.parametrize(
    "asked", [ToolResponse.failure(ErrorCode.BUDGET_EXCEEDED, "the turn is used up"), DONE]
)
async def test_no_wait_prints_other_answers_unchanged(tmp_path, asked):
    async with open_house(tmp_path) as house:
        house.calls.asked["notes:add"] = asked
        ran = await glassd("call", "notes:add", "--no-wait", "--socket", str(house.path))
    assert (ran.code, "BUDGET_EXCEEDED" in ran.err) == ((0, False) if asked.ok else (1, True))


@pytest.mark.requirement("M-show-confirmation")
@pytest.mark.parametrize("words", [(), ("--json",)], ids=["people", "program"])
async def test_a_waiting_call_prints_its_question_and_then_its_answer(tmp_path, words):
    async with open_house(tmp_path) as house:
        asking(house)
        process = await start("call", "cal:add", *words, "--socket", str(house.path))
        async with asyncio.timeout(DEADLINE_S):
            hint = [(await process.stderr.readline()).decode() for _ in range(2)]
            assert hint == [
                "waits for a yes: Create calendar event with 2 attendees\n",
                f"{NEXT}\n",
            ]
            while house.store.reads < 2:  # it waits by now
                await asyncio.sleep(0.01)
            assert process.returncode is None
            house.end("id-1", DONE)
            out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert b"delivery shown" in out if not words else json.loads(out)["meta"]["delivery"] == "shown"


async def test_a_no_on_the_glasses_ends_the_waiting_call(tmp_path):
    async with open_house(tmp_path) as house:
        asking(house)
        process = await start("call", "cal:add", "--socket", str(house.path))
        async with asyncio.timeout(DEADLINE_S):
            while house.store.reads < 2:
                await asyncio.sleep(0.01)
            house.end("id-1", ToolResponse.failure(ErrorCode.DENIED, "You said no"), state="FAILED")
            _, err = await process.communicate()
    assert (process.returncode, err.decode().splitlines()[-1]) == (1, "error: You said no (DENIED)")


async def test_a_confirmed_call_that_becomes_pending_prints_pending(tmp_path):
    async with open_house(tmp_path) as house:
        asking(house)
        house.store.rows["id-1"]["state"] = "PENDING"
        ran = await glassd("call", "cal:add", "--json", "--socket", str(house.path))
    assert (ran.code, ran.json["data"]) == (0, {"status": "pending", "pendingToolCallId": "id-1"})


async def test_a_question_without_an_open_call_ends_with_a_hint(tmp_path):
    """The daemon has no such call: only the token exists."""
    async with open_house(tmp_path) as house:
        house.calls.asked["cal:add"] = ASKED
        ran = await glassd("call", "cal:add", "--socket", str(house.path))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        f"error: Create calendar event with 2 attendees? (CONFIRMATION_REQUIRED)\nnext:  {NEXT}\n"
    )


async def test_a_daemon_that_stops_leaves_a_hint_to_the_call(tmp_path):
    async with open_house(tmp_path) as house:
        asking(house)
        process = await start("call", "cal:add", "--socket", str(house.path))
        async with asyncio.timeout(DEADLINE_S):
            while house.store.reads < 2:
                await asyncio.sleep(0.01)
    async with asyncio.timeout(DEADLINE_S):
        _, err = await process.communicate()
    assert process.returncode == 3
    assert err.decode().endswith("next:  show the call: glassd calls id-1\n")


@pytest.mark.parametrize(("state", "day_s"), [("RUNNING", 86400.0), ("AWAITING_CONFIRMATION", 0.3)])
async def test_waiting_ends_after_the_deadline(tmp_path, monkeypatch, state, day_s):
    """A confirmed call that never ends, or a question that never ends."""
    monkeypatch.setattr(confirm, "SLICE_S", 0.1)
    monkeypatch.setattr(confirm, "DAY_S", day_s)
    async with open_house(tmp_path) as house:
        asking(house)
        house.store.rows["id-1"]["state"] = state
        with pytest.raises(UserError, match="no answer in time") as caught:
            await asyncio.to_thread(confirm.wait, *waiting(house), patience_s=0.1)
    assert (caught.value.exit_code, caught.value.fix) == (
        5,
        "show the call: glassd calls id-1",
    )


async def test_waiting_lasts_as_long_as_the_question(tmp_path, monkeypatch):
    """The time for the answer begins after the question, however long that is open."""
    monkeypatch.setattr(confirm, "SLICE_S", 0.02)
    async with open_house(tmp_path) as house:
        asking(house)
        waits = asyncio.create_task(
            asyncio.to_thread(confirm.wait, *waiting(house), patience_s=0.1)
        )
        async with asyncio.timeout(DEADLINE_S):
            while house.store.reads < 30:  # far beyond 0.1 s of slices
                await asyncio.sleep(0.01)
            house.end("id-1", DONE)
            envelope = await waits
    assert (envelope["ok"], envelope["meta"]["delivery"]) == (True, "shown")


def waiting(house):
    screen = Screen(StringIO(), StringIO(), {}, as_json=False)
    return (
        Namespace(socket=str(house.path)),
        screen,
        {**ASKED.to_json(), "meta": {"callId": "id-1"}},
    )


# ------------------------------------------------------------------ deciding


async def test_a_token_with_the_call_runs_it_once(tmp_path):
    async with open_house(tmp_path) as house:
        words = ("call", "cal:add", "text=x", "--confirm", "tok-1", "--socket", str(house.path))
        first, second = await glassd(*words), await glassd(*words, "--json")
        (token, allow, _, call), _ = house.calls.decided
    assert (first.code, token, allow, call.args) == (0, "tok-1", True, {"text": "x"})
    assert (second.code, second.json["error"]["type"], second.json["error"]["code"]) == (
        1,
        "CONFIRMATION_EXPIRED",
        "USED",
    )


@pytest.mark.parametrize(
    ("words", "allow", "grant", "code", "said"),
    [
        ((), True, Grant.ONCE, 0, "delivery shown"),
        (("--always",), True, Grant.ALWAYS, 0, "delivery shown"),
        (("--deny",), False, Grant.ONCE, 0, "Denied."),
        (("--never",), False, Grant.NEVER, 0, "forbidden from now on"),
        (("--deny", "--never"), False, Grant.NEVER, 0, "glassd grants --revoke"),
    ],
)
async def test_confirm_decides_with_the_token_alone(tmp_path, words, allow, grant, code, said):
    async with open_house(tmp_path) as house:
        ran = await glassd("confirm", "tok-1", *words, "--socket", str(house.path))
    assert (ran.code, house.calls.decided) == (code, [("tok-1", allow, grant, None)])
    assert said in ran.out


async def test_an_unknown_token_is_a_failure_even_for_a_denial(tmp_path):
    async with open_house(tmp_path) as house:
        ran = await glassd("confirm", "nope", "--deny", "--json", "--socket", str(house.path))
    assert (ran.code, ran.json["error"]["code"]) == (1, "EXPIRED")


@pytest.mark.requirement("M-grants")
async def test_grants_are_added_listed_and_revoked(tmp_path):
    async with open_house(tmp_path) as house:
        where = ("--socket", str(house.path))
        none = await glassd("grants", *where)
        always, never = (
            await glassd("grants", "--always", "cal:add", *where),
            await glassd("grants", "--never", "cam:pay", *where),
        )
        listed, program = await glassd("grants", *where), await glassd("grants", "--json", *where)
        revoked = await glassd("grants", "--revoke", "cal:add", *where)
        unknown, typo = (
            await glassd("grants", "--revoke", "cal:add", *where),
            await glassd("grants", "--never", "cal:ad", *where),
        )
    assert (
        none.out
        == "No tool is always or never allowed: tools that need confirmation ask every time.\n"
    )
    assert (always.out, never.out) == (
        "cal:add runs without asking\n",
        "cam:pay is refused without asking\n",
    )
    assert [line.split()[:2] for line in listed.out.splitlines()] == [
        ["cal:add", "always"],
        ["cam:pay", "never"],
    ]
    assert "since 2023-11-1" in listed.out
    assert [g["grant"] for g in program.json["grants"]] == ["always", "never"]
    assert revoked.out == "cal:add asks for confirmation again\n"
    assert (unknown.code, typo.code) == (4, 4)
    assert {key: kept.grant for key, kept in house.confirmations.kept.items()} == {
        ("local", "cam:pay"): Grant.NEVER
    }


# ------------------------------------------------------------------ calling off, handing in


async def test_a_call_is_cancelled(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.running = {"c7": None, "c8": None}
        where = ("--socket", str(house.path))
        ran, why = (
            await glassd("cancel", "c7", *where),
            await glassd("cancel", "c8", "--reason", "wrong day", *where),
        )
        over, unknown = (
            await glassd("cancel", "c1", *where),
            await glassd("cancel", "nope", "--json", *where),
        )
    assert (ran.code, ran.out, why.code) == (0, "c7 is cancelled; show it: glassd calls c7\n", 0)
    assert house.calls.running == {"c7": "cancelled on the command line", "c8": "wrong day"}
    assert (over.code, "is DELIVERED" in over.err, unknown.code) == (1, True, 4)


@pytest.mark.requirement("S3-26")
@pytest.mark.parametrize(
    ("words", "ok", "value"),
    [
        ((), True, None),
        (("yes",), True, "yes"),
        (("5",), True, 5),
        (('"5"',), True, "5"),
        (("[1, 2]",), True, [1, 2]),
        (("a=1", "b=x y"), True, {"a": 1, "b": "x y"}),
        (('{"a": 1}', "b=2"), True, {"a": 1, "b": 2}),
        (('{"ok": true, "data": 7}',), True, 7),
        (('{"ok": 1}',), True, {"ok": 1}),
        (('{"ok": false, "error": {"type": "PERMANENT", "message": "no"}}',), False, "no"),
    ],
)
async def test_a_result_is_submitted(tmp_path, words, ok, value):
    async with open_house(tmp_path) as house:
        ran = await glassd("answer", "c9", *words, "--session", "s1", "--socket", str(house.path))
        ((call_id, response, _, session),) = house.calls.submitted
    assert (ran.code, call_id, session, response.ok) == (0, "c9", "s1", ok)
    assert (response.data if ok else response.error.message) == value


async def test_a_result_from_stdin_and_one_that_comes_too_late(tmp_path):
    async with open_house(tmp_path) as house:
        where = ("--socket", str(house.path))
        await glassd("answer", "c9", "-", *where, stdin=b'{"text": "milk"}')
        house.calls.submission = Submission.OVER
        over = await glassd("answer", "c1", "yes", *where)
        house.calls.submission = Submission.UNKNOWN
        unknown = await glassd("answer", "nope", "yes", *where)
    assert house.calls.submitted[0][1].data == {"text": "milk"}
    assert (over.code, unknown.code) == (1, 4)
    assert "glassd calls --pending" in unknown.err


# ------------------------------------------------------------------ lists and stories


async def test_the_list_shows_answers_and_their_delivery(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows["c2"] = row(
            "c2",
            ok=False,
            code="TIMEOUT",
            state="EXPIRED",
            delivery={"state": "dropped", "reason": "glasses away"},
        )
        house.store.rows["c3"] = row("c3", ok=None, state="RUNNING", delivery=None, age_s=5)
        ran = await glassd("calls", "--socket", str(house.path))
    assert [line.split("  ") for line in ran.out.splitlines()] == [
        line.split("  ")
        for line in (
            "c1  2 min ago  notes:add  DELIVERED  local  ok       shown",
            "c2  2 min ago  notes:add  EXPIRED    local  TIMEOUT  dropped (glasses away)",
            "c3  5 s ago    notes:add  RUNNING    local",
        )
    ]


async def test_pending_calls_show_what_they_wait_for_and_how_long(tmp_path):
    async with open_house(tmp_path) as house:
        none = await glassd("calls", "--pending", "--socket", str(house.path))
        house.store.rows = {
            "c1": row("c1", ok=None, state="AWAITING_CONFIRMATION", left_s=290.0),
            "c2": row("c2", ok=None, state="PENDING", route="queue", left_s=3600),
            "c3": row("c3", ok=None, state="PENDING", left_s=-1),
            "c4": row("c4", ok=None, state="RUNNING"),
            "c5": row("c5", ok=None, state="PENDING", route="wearer"),
        }
        ran = await glassd("calls", "--pending", "--socket", str(house.path))
    assert none.out == "No calls are pending.\n"
    lines = ran.out.splitlines()
    assert "5 min left" in lines[0]
    assert lines[0].endswith("waits for a yes: answer on the glasses, or glassd confirm")
    assert (lines[1].split("  ")[-1], "1 h left" in lines[1]) == (
        "waits for the cloud's result",
        True,
    )
    assert (
        "  0 s left  " in lines[2],
        lines[2].endswith("waits for its result: glassd answer c3"),
    ) == (True, True)
    assert (lines[3].endswith("waits for its tool"), "left" in lines[3]) == (True, False)
    assert lines[4].endswith("  waits for the wearer")


async def test_an_empty_column_is_left_out(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows = {
            "c1": row("c1", ok=None, state="PENDING", route="wearer"),
            "c2": row("c2", ok=None, state="RUNNING"),
        }
        ran = await glassd("calls", "--pending", "--socket", str(house.path))
    assert ran.out.splitlines() == [
        "c1  2 min ago  notes:add  PENDING  waits for the wearer",
        "c2  2 min ago  notes:add  RUNNING  waits for its tool",
    ]


@pytest.mark.parametrize(
    ("data", "meta", "said"),
    [
        (
            {"t": 1},
            {"route": "cache", "stale": True, "ageS": 720},
            "route cache · delivery none · as of 12 min ago",
        ),
        (
            {"t": 1},
            {"route": "cloud", "_idempotent_cache_hit": True},
            "route cloud · delivery none · the answer of an earlier call with the same key",
        ),
        (
            {"status": "pending", "pendingToolCallId": "c9"},
            {"route": "wearer"},
            "its result comes later; show it: glassd calls c9",
        ),
        ({"status": "pending"}, {"route": "local"}, "route local · delivery none"),
    ],
    ids=["old", "again", "later", "a tool's own word"],
)
async def test_an_old_or_pending_answer_is_marked(tmp_path, data, meta, said):
    async with open_house(tmp_path) as house:
        house.calls.asked["notes:add"] = ToolResponse(data=data, meta=meta)
        ran = await glassd("call", "notes:add", "--no-wait", "--socket", str(house.path))
    assert (ran.code, ran.out.splitlines()[-1]) == (0, said)


async def test_arguments_nested_too_deeply_are_wrong_usage(tmp_path):
    deep = '{"a":' * 20_000 + "1" + "}" * 20_000
    async with open_house(tmp_path) as house:
        ran = await glassd("call", "notes:add", deep, "--socket", str(house.path))
    assert (ran.code, "nested too deeply" in ran.err, "Traceback" in ran.err) == (2, True, False)


def test_every_open_state_has_its_text():
    from edge.core.call_state import ANSWERED_STATES, CallState

    for state in set(CallState) - ANSWERED_STATES - {CallState.RECEIVED}:
        assert waits_for({"state": state.value}) != "its answer", state


STORY = row(
    "c5",
    tool="cal:add",
    created_wall=1_700_000_000.0,
    user_id="ann",
    attempts=2,
    delivery={"state": "shown", "downgrade": "bitmap→text"},
    request={
        "args": {"title": "Käse"},
        "origin": "mcp",
        "mode": "voice",
        "session": "s1",
        "turn_id": "t1",
        "user_id": "ann",
    },
    keys=["provider:toolu_123456", "hash:t1:abc"],
    steps=[
        {"state": "AWAITING_CONFIRMATION", "at_wall": 1_700_000_000.0, "after_s": 0.0, "note": ""},
        {
            "state": "ADMITTED",
            "at_wall": 1_700_000_002.5,
            "after_s": 2.5,
            "note": "a tap on the glasses",
        },
        {"state": "RUNNING", "at_wall": 1_700_000_002.6, "after_s": 2.6125, "note": None},
        {"state": "DELIVERED", "at_wall": 1_700_007_200.0, "after_s": 7200.0, "note": ""},
    ],
    response=ToolResponse(data={"event": 1}, meta={"delivery": "queued"}).to_json(),
)


@pytest.mark.requirement("M-show-story")
async def test_one_call_is_shown_in_detail(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows["c5"] = STORY
        ran = await glassd("calls", "c5", "--socket", str(house.path), TZ="UTC")
        program = await glassd("calls", "c5", "--json", "--socket", str(house.path))
    assert (ran.code, program.code) == (0, 0)
    assert ran.out.splitlines() == [
        "cal:add  DELIVERED",
        "call       c5",
        "asked      2023-11-14 22:13:20, 2 min ago",
        "by         mcp, voice, user ann, session s1, turn t1",
        'arguments  {"title": "Käse"}',
        "route      local",
        "attempts   2",
        "key        provider:toolu_123456",
        "           hash:t1:abc",
        "delivery   shown (bitmap→text)",
        "states",
        "  +   0.000 s  AWAITING_CONFIRMATION",
        "  +   2.500 s  ADMITTED               a tap on the glasses",
        "  +   2.612 s  RUNNING",
        "  +       2 h  DELIVERED",
        "answer     ok",
        "  {",
        '    "event": 1',
        "  }",
    ]
    assert program.json["steps"] == STORY["steps"]


async def test_a_failed_call_shows_why_and_an_open_one_no_answer(
    tmp_path,
):
    async with open_house(tmp_path) as house:
        error = ToolResponse.failure(
            ErrorCode.INTERRUPTED,
            "The daemon was\x1b stopped",
            suggestion="Try again",
            partial_side_effects=True,
        )
        house.store.rows = {
            "c6": row("c6", state="FAILED", ok=False, delivery=None, response=error.to_json()),
            "c7": running(),
        }
        failed, still, none = await asyncio.gather(
            *(glassd("calls", i, "--socket", str(house.path)) for i in ("c6", "c7", "nope"))
        )
    assert failed.out.splitlines()[-3:] == [
        r"answer     INTERRUPTED: The daemon was\x1b stopped",
        "next       Try again",
        "           it may have taken effect in part",
    ]
    assert "delivery   none yet" in failed.out
    assert still.out.splitlines()[-1] == "answer     none yet; it waits for its tool"
    assert "attempts   1" in still.out
    assert none.code == 4


@pytest.mark.requirement("I12-empty-lists")
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["people", "program"])
async def test_an_empty_list_is_no_failure_and_an_unknown_id_is(tmp_path, more):
    async with open_house(tmp_path) as house:
        house.registry.list, house.store.rows = (
            (Entry(definition("cam:shot", category="media"), "Camera", hidden="needs a camera"),),
            {},
        )
        where = ("--socket", str(house.path), *more)
        lists = (
            ("servers",),
            ("grants",),
            ("calls",),
            ("calls", "--pending"),
            ("confirm",),
            ("tools",),
            ("tools", "--category", "media"),
        )
        empty = await asyncio.gather(*(glassd(*words, *where) for words in lists))
        unknown = await asyncio.gather(
            *(
                glassd(*words, *where)
                for words in (
                    ("calls", "nope"),
                    ("servers", "authorize", "nope"),
                    ("tools", "--category", "nope"),
                    ("call", "no:pe"),
                )
            )
        )
    assert [ran.code for ran in empty] == [0] * len(lists)
    assert [ran.code for ran in unknown] == [4] * 4


def running():
    return row(
        "c7",
        state="RUNNING",
        ok=None,
        delivery=None,
        response=None,
        steps=[{"state": "RUNNING", "after_s": 0.1}],
    )


async def test_metrics_are_printed_as_they_come(tmp_path):
    text = '# TYPE glassd_calls counter\nglassd_calls_total{tool="notes:add"} 1.0\n# EOF\n'

    async def metrics():
        return text

    async with open_house(tmp_path, metrics=metrics) as house:
        people, program = await asyncio.gather(
            *(glassd("metrics", *more, "--socket", str(house.path)) for more in ((), ("--json",)))
        )
    assert (people.code, people.out, program.json) == (
        0,
        text,
        {"format": "openmetrics", "text": text},
    )
    async with open_house(tmp_path) as house:
        none = await glassd("metrics", "--socket", str(house.path))
    assert (none.code, none.out) == (1, "")
    assert "next:  see its state instead: glassd status --json" in none.err


# ------------------------------------------------------------------ what it costs


@pytest.mark.requirement("M-import-cost")
@pytest.mark.parametrize(
    "words",
    [
        ["confirm", "t"],
        ["grants"],
        ["cancel", "c1"],
        ["answer", "c1", "x=1"],
        ["calls", "c1"],
        ["metrics"],
        ["call", "a:b", "--no-wait"],
    ],
    ids=" ".join,
)
def test_the_new_verbs_load_nothing_heavy(words):
    assert not loaded(_VERB.format(words=words)) & HEAVY
