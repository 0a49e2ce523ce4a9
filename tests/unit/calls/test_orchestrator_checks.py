"""What may run, in which order that is decided, and what is said when it may not."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.calls import run_queue
from edge.calls.dependencies import CallLimits, CallPolicy
from edge.core.grants import Grant
from edge.core.idempotency import args_digest
from edge.runtime.clock import Clock
from tests.unit.calls.orchestrator_house import QUICK, FakeTools, house, make
from tools_cache.api.tool import CallOrigin, ErrorCode, ErrorType, Mode, ToolResponse


@pytest.mark.requirement("S2-42")
async def test_a_good_call_runs_once_is_shown_and_carries_the_contracts_meta(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        answer = await h.call("notes:add", {"text": "milk"})
        assert answer.ok
        assert len(h.tools.runs) == 1
        assert h.glasses.texts() == ["did notes:add"]
        meta = answer.meta
        assert meta["tool"] == "notes:add"
        assert meta["toolVersion"] == "1.2.3"
        assert meta["registryVersion"] == "1.0.0abc123"
        assert isinstance(meta["duration"], int)
        assert meta["timestamp"].endswith("Z")
        assert meta["route"] == "local"
        assert meta["delivery"] == "shown"
        assert meta["callId"] == h.tools.runs[0].call_id
        stored = await h.store.get(meta["callId"])
        assert stored is not None
        assert stored["state"] == "DELIVERED"


@pytest.mark.requirement("S1-14")
async def test_a_call_beyond_its_callers_scope_is_refused_and_audited(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        answer = await h.call("files:read", scope={"allowedMcpServers": {}})
        assert (answer.error.code, h.tools.runs) == (ErrorCode.DENIED, [])
        assert (h.audit[-1]["outcome"], h.audit[-1]["reason"]) == ("refused", "scope")
        assert await h.store.recent(10, pending=False) == []


@pytest.mark.requirement("I11-cloud-may")
async def test_a_private_tool_is_denied_to_the_cloud_even_with_a_standing_yes(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        asked = await h.orchestrator.begin(make("diary:read"))
        token = asked.error.confirmation_request["token"]
        assert (await h.orchestrator.confirm(token, allow=True, grant=Grant.ALWAYS)).ok
        assert (await h.call("diary:read", {"text": "again"})).ok, "granted"
        ran = len(h.tools.runs)
        refused = await h.call("diary:read", origin=CallOrigin.CLOUD)
        assert (refused.error.code, len(h.tools.runs), len(h.wearer.asked)) == (
            ErrorCode.DENIED,
            ran,
            1,
        )
        assert 'cloud_may = ["glasses", "declared", "diary:read"]' in refused.error.suggestion
        assert (h.audit[-1]["outcome"], h.audit[-1]["reason"]) == (
            "refused",
            "not open to the cloud",
        )


@pytest.mark.parametrize("name", ["diary:read", "danger:erase"])
async def test_the_id_of_the_wearers_call_brings_the_cloud_no_answer(
    tmp_path: Path, name: str
) -> None:
    async with house(tmp_path) as h:
        asked = await h.orchestrator.begin(make("diary:read"))
        told = await h.orchestrator.confirm(asked.error.confirmation_request["token"], allow=True)
        assert told.ok
        again = await h.call(name, origin=CallOrigin.CLOUD, call_id=told.meta["callId"])
        assert again.data is None
        assert again.error.code in (ErrorCode.DENIED, ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize(
    ("cloud_may", "open_now"),
    [
        ((), set()),
        (("glasses",), {"glasses:show_text"}),
        (("declared",), {"notes:add"}),
        (("notes:*",), {"notes:add", "notes:list"}),
        (("notes:list", "glasses"), {"notes:list", "glasses:show_text"}),
        (("*",), {"glasses:show_text", "notes:add", "notes:list"}),
    ],
)
async def test_the_owner_says_which_tools_the_cloud_may_call(
    tmp_path: Path, cloud_may: tuple[str, ...], open_now: set[str]
) -> None:
    async with house(tmp_path, policy_=CallPolicy(cloud_may=("*",))) as h:
        h.orchestrator.adopt(QUICK, CallPolicy(cloud_may=cloud_may))
        for name in ("glasses:show_text", "notes:add", "notes:list"):
            answer = await h.call(name, {"text": name}, origin=CallOrigin.CLOUD)
            assert answer.ok is (name in open_now), name
            assert (await h.call(name, {"text": name})).ok, "whoever is here may"


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("", ErrorCode.INVALID_REQUEST, "Missing or invalid tool name"),
        (None, ErrorCode.INVALID_REQUEST, "Missing or invalid tool name"),
        (5, ErrorCode.INVALID_REQUEST, "Missing or invalid tool name"),
        (
            "nocolon",
            ErrorCode.INVALID_TOOL_NAME,
            "Invalid tool name format: nocolon. Expected format: packageName:toolName",
        ),
        ("not:there", ErrorCode.TOOL_NOT_FOUND, "Tool not:there not found"),
    ],
)
@pytest.mark.requirement("S0-46", "S2-68", "S2-84", "C-46")
async def test_a_malformed_or_unknown_call_is_answered_with_the_seeds_words(
    tmp_path, name, code, message
) -> None:
    async with house(tmp_path) as h:
        answer = await h.call(name)
        assert answer.error is not None
        assert (answer.error.code, answer.error.message, answer.error.retryable) == (
            code,
            message,
            False,
        )
        assert answer.meta["timestamp"]
        assert await h.store.recent(10, pending=False) == []
        assert h.audit[-1]["outcome"] == "refused"


@pytest.mark.requirement("I11-added-tool")
async def test_a_tool_that_was_announced_a_moment_ago_is_waited_for(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.registry.announced["notes:add"] = h.registry.entries.pop("notes:add")
        assert (await h.call("notes:add", {"text": "milk"})).ok


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nocolon", "missing colon separator"),
        (":x", "empty package or tool name"),
        ("pkg:", "empty package or tool name"),
    ],
)
@pytest.mark.requirement("S0-05", "S0-06")
async def test_an_invalid_tool_name_is_refused_and_the_log_says_why(
    tmp_path, caplog, name, says
) -> None:
    async with house(tmp_path) as h:
        error = (await h.call(name)).error
        assert (error.code, error.retryable) == (ErrorCode.INVALID_TOOL_NAME, False)
        (line,) = [r for r in caplog.records if r.levelname == "WARNING"]
        assert line.getMessage() == f"Invalid tool name format - {says}: {name!r}"


@pytest.mark.requirement("S2-35")
async def test_defaults_that_were_filled_are_told_in_the_audit_and_only_then(tmp_path) -> None:
    async with house(tmp_path) as h:
        assert (await h.call("notes:add", {"text": "milk"})).ok
        assert h.audit[-1]["defaultsApplied"] == "/top_k"
        assert (await h.call("notes:add", {"text": "milk", "top_k": 5})).ok
        assert h.audit[-1]["defaultsApplied"] is None


@pytest.mark.requirement("S2-39")
async def test_a_refusal_names_each_failing_field_and_keeps_the_errors(
    tmp_path,
) -> None:
    async with house(tmp_path) as h:
        error = (await h.call("notes:add", {"text": 5, "top_k": "3"})).error
        assert error.type is ErrorType.VALIDATION
        assert error.message.startswith(
            "Invalid parameters: /top_k must be integer, /text must be string"
        )
        assert [d["path"] for d in error.details] == ["/top_k", "/text"]
        assert all(d["problem"] for d in error.details)


async def test_a_call_with_wrong_arguments_uses_up_no_rate(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        wrong = await h.call("slow:down", {"text": 5})
        assert wrong.error.code is ErrorCode.INVALID_ARGUMENTS
        assert (await h.call("slow:down")).ok
        assert (await h.call("slow:down")).error.code is ErrorCode.RATE_LIMIT


async def test_a_tool_that_was_hidden_within_a_turn_is_refused_at_once(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        assert (await h.call("find:one", turn_id="t1")).ok
        h.registry.hide("find:one", "disabled by the wearer")
        refused = await h.call("find:one", {"text": "more"}, turn_id="t1")
        assert refused.error.code is ErrorCode.USER_DISABLED


async def test_a_hidden_tool_is_refused_with_the_hardware_it_lacks(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.registry.hide("notes:add", "needs a camera", ("CAMERA",))
        h.registry.hide("notes:list", "disabled by the user")
        h.registry.hide("find:one", "its app is gated")
        answers = [await h.call(n, {"text": "x"}) for n in ("notes:add", "notes:list", "find:one")]
        assert [a.error.code.value for a in answers if a.error] == [
            "HARDWARE_MISSING",
            "USER_DISABLED",
            "TOOL_UNAVAILABLE",
        ]
        assert "camera" in answers[0].error.message
        assert answers[0].error.details == {"missing": ["CAMERA"]}
        assert not h.tools.runs


@pytest.mark.requirement("S0-45", "S2-67", "S2-109")
async def test_bad_arguments_name_every_problem_and_nothing_runs(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        answer = await h.call("notes:add", {"top_k": "many"})
        assert answer.error is not None
        assert answer.error.code is ErrorCode.INVALID_ARGUMENTS
        assert answer.error.message.startswith("Invalid parameters: ")
        assert "root" in answer.error.message
        assert "/top_k" in answer.error.message
        assert len(answer.error.details) == 2
        await h.call("shop:buy", {"text": 5})
        assert not h.tools.runs
        assert not h.uplink.submitted
        assert await h.store.recent(10, pending=False) == []
        assert h.glasses.pages() == [], "a program's mistake is not the wearer's business"


async def test_a_wearer_who_asked_is_told_what_went_wrong(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        answer = await h.call("notes:add", {}, mode=Mode.VOICE, origin=CallOrigin.VOICE)
        assert answer.meta["delivery"] == "shown"
        assert h.glasses.texts()[0] == "App needs to know: text."


@pytest.mark.requirement("S2-85", "S2-69", "C-13")
async def test_a_text_only_tool_is_refused_in_voice_and_costs_no_budget(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        turn = {"mode": Mode.VOICE, "turn_id": "t1"}
        for _ in range(4):
            refused = await h.call("desk:type", **turn)
            assert refused.error is not None
            assert refused.error.message == "Tool desk:type is not available in voice mode"
            assert refused.error.suggestion == "Switch to text mode to use this tool"
        assert (await h.call("notes:list", **turn)).ok


@pytest.mark.requirement("S2-86", "S2-87", "C-35", "S2-88", "S2-89", "S2-93", "S2-70")
async def test_only_spoken_turns_are_limited_to_three_calls_and_two_retrievals(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        turn = {"mode": Mode.VOICE, "turn_id": "t1"}
        codes = [(await h.call("find:one", **turn)).meta.get("route") for _ in range(2)]
        assert codes == ["local", "local"]
        third = await h.call("find:one", **turn)
        assert third.error.type is ErrorType.BUDGET_EXCEEDED
        assert (await h.call("notes:list", **turn)).ok
        fourth = await h.call("notes:list", **turn)
        assert fourth.error.message == "Voice mode tool call budget exceeded (max 3 per turn)"
        assert (await h.call("notes:list", mode=Mode.VOICE, turn_id="t2")).ok, (
            "a new turn has a new budget"
        )
        assert all([(await h.call("find:one", turn_id="t1")).ok for _ in range(4)])


@pytest.mark.requirement("I12-turns-per-session")
async def test_budget_and_latency_are_counted_per_session_and_turn(
    tmp_path: Path,
) -> None:
    tools, now = FakeTools(), [1000.0]

    async def slow(_call, _progress):
        now[0] += 0.03
        return ToolResponse(data="done")

    tools.handler = slow
    clock = Clock(boot=lambda: now[0], wall=lambda: 1_795_257_000.0, boot_id="b")
    async with house(
        tmp_path, tools=tools, limits=replace(QUICK, turn_latency_ms=100), clock=clock
    ) as h:
        turn = {"mode": Mode.VOICE, "turn_id": "t1"}
        for session in ("one", "two", ""):
            assert all(
                [(await h.call("notes:list", session=session, **turn)).ok for _ in range(3)]
            ), session
        assert not any(line["turnOverBudget"] for line in h.audit), (
            "no session took 100 ms; together they did"
        )
        fourth = await h.call("notes:list", session="two", **turn)
        assert fourth.error.type is ErrorType.BUDGET_EXCEEDED


@pytest.mark.requirement("I12-turns-per-session")
async def test_a_session_does_not_see_the_registry_that_another_sessions_turn_began_with(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        assert (await h.call("notes:list", session="one", turn_id="t1")).ok
        h.registry.version = "v2"
        first = await h.call("notes:list", session="one", turn_id="t1")
        second = await h.call("notes:list", session="two", turn_id="t1")
        assert (first.meta["registryVersion"], second.meta["registryVersion"]) == (
            "1.0.0abc123",
            "v2",
        )


@pytest.mark.requirement("S2-90", "C-08")
async def test_top_k_is_clamped_for_voice_also_when_it_is_the_default(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        spoken = await h.call("find:one", mode=Mode.VOICE)
        assert h.tools.runs[-1].args["top_k"] == 3
        assert spoken.meta["clamped"] == {"top_k": [5, 3]}
        typed = await h.call("find:one")
        assert h.tools.runs[-1].args["top_k"] == 5
        assert "clamped" not in typed.meta


@pytest.mark.requirement("C-45", "C-13")
async def test_validation_comes_before_anybody_is_asked(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        assert (await h.call("danger:erase", {"text": 1})).error.code is ErrorCode.INVALID_ARGUMENTS
        assert not h.wearer.asked
        assert await h.store.recent(10, pending=False) == []


async def test_the_same_id_twice_runs_once_and_is_shown_once(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        call = make("notes:add", {"text": "milk"})
        first, twin = await asyncio.gather(h.orchestrator.call(call), h.orchestrator.call(call))
        again = await h.orchestrator.call(call)
        assert len(h.tools.runs) == 1
        assert len(h.glasses.pages()) == 1
        assert first.data == twin.data == again.data
        assert "_idempotent_cache_hit" not in first.meta
        assert twin.meta["_idempotent_cache_hit"] is True
        assert again.meta["_idempotent_cache_hit"] is True


async def test_an_id_has_one_answer_for_ever_even_one_that_could_be_retried(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        call = make("notes:add", {"text": "x"})
        await h.store.admit(call, "local")
        await h.store.finish(
            call.call_id, "FAILED", ToolResponse.failure(ErrorCode.NETWORK_ERROR, "no luck")
        )
        again = await h.orchestrator.call(call)
        assert again.error.message == "no luck"
        assert again.meta["_idempotent_cache_hit"] is True
        assert not h.tools.runs


async def test_the_same_key_gets_the_stored_answer_after_a_restart(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        first = await h.call("notes:add", {"text": "milk"}, idempotency_key="k1")
    async with house(tmp_path) as h:
        second = await h.call("notes:add", {"text": "milk"}, idempotency_key="k1")
        assert second.data == first.data
        assert second.meta["_idempotent_cache_hit"] is True
        assert not h.tools.runs


async def test_a_retryable_failure_is_not_replayed_but_its_successor_is(tmp_path: Path) -> None:
    async with house(tmp_path) as h:

        async def fails(call, progress):
            return ToolResponse.failure(ErrorCode.NETWORK_ERROR, "no luck")

        good, h.tools.handler = h.tools.handler, fails
        assert not (await h.call("notes:add", {"text": "x"}, idempotency_key="k")).ok
        h.tools.handler = good
        assert (await h.call("notes:add", {"text": "x"}, idempotency_key="k")).ok
        third = await h.call("notes:add", {"text": "x"}, idempotency_key="k")
        assert third.ok
        assert third.meta["_idempotent_cache_hit"] is True
        assert len(h.tools.runs) == 2, (
            "the success counts for the key, so nothing runs a third time"
        )


async def test_more_calls_than_the_bound_are_told_when_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_queue, "MOST_WAITING", 1)
    gate = asyncio.Event()
    async with house(tmp_path, limits=replace(QUICK, running=2, run_s=5)) as h:

        async def slow(call, progress):
            await gate.wait()
            return ToolResponse(data="done")

        h.tools.handler = slow
        async with asyncio.TaskGroup() as tg:
            running = [tg.create_task(h.call("find:one")) for _ in range(3)]
            while len(h.tools.runs) < 2 or not h.orchestrator._queue._own:
                await asyncio.sleep(0.005)
            full = await h.call("find:one")
            gate.set()
        assert full.error.type is ErrorType.RATE_LIMIT
        assert full.error.retry_after_ms == 1000
        assert all(r.result().ok for r in running)


@pytest.mark.requirement("S2-45", "S2-80")
async def test_a_crash_of_ours_becomes_an_internal_answer_without_its_cause(tmp_path: Path) -> None:
    async with house(tmp_path) as h:

        def boom(*_):
            raise RuntimeError("secret path")

        h.registry.check_args = boom
        answer = await h.call("notes:add", {"text": "x"})
        assert answer.error.type is ErrorType.INTERNAL
        assert answer.error.message == "Internal error executing notes:add"
        assert answer.error.partial_side_effects
        assert "secret" not in str(answer.to_json())


@pytest.mark.requirement("S2-45")
async def test_a_crash_while_an_answer_is_delivered_ends_its_call_on_disk(tmp_path: Path) -> None:
    async with house(tmp_path) as h:

        async def odd(_call, _progress):
            return ToolResponse(data="x", intents=("no object",))

        h.tools.handler = odd
        answer = await h.call("notes:add", {"text": "x"})
        assert answer.error.type is ErrorType.INTERNAL
        assert answer.error.idempotency_required
        assert await h.store.unfinished() == []


@pytest.mark.requirement("S2-101")
async def test_every_answer_leaves_one_complete_audit_record(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        await h.call("notes:add", {"text": "my secret"}, turn_id="t9", idempotency_key="k9")
        (line,) = h.audit
        assert {
            "toolId",
            "version",
            "registryVersion",
            "duration",
            "mode",
            "turnId",
            "idempotencyKey",
            "route",
            "outcome",
            "errorType",
            "argsHash",
        } <= line.keys()
        assert (line["turnId"], line["idempotencyKey"], line["route"]) == ("t9", "key:k9", "local")
        assert (line["delivery"], line["attempts"], line["argsHash"]) == (
            "shown",
            1,
            args_digest({"text": "my secret", "top_k": 5}),
        )
        assert "secret" not in str(
            {k: v for k, v in line.items() if k != "args"}
        )  # the log leaves them out


async def test_intents_steer_the_session_also_when_the_tool_failed(tmp_path: Path) -> None:
    async with house(tmp_path) as h:

        async def quiet(call, progress):
            answer = ToolResponse.failure(ErrorCode.AUTH, "no")
            return replace(
                answer, intents=({"type": "SUPPRESS_AUDIO", "value": True}, {"type": "DANCE"})
            )

        h.tools.handler = quiet
        answer = await h.call("notes:list")
        assert h.orchestrator.session.snapshot().suppress_audio
        assert len(answer.intents) == 2


async def test_a_call_waits_for_a_starting_daemon_but_not_a_stopped_one(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        early = await h.call("notes:list")
        assert early.ok
    h.orchestrator._open.set()  # do not wait five seconds for a daemon that is gone
    late = await h.call("notes:list")
    assert late.error.code is ErrorCode.INTERRUPTED


async def test_a_caller_that_goes_away_does_not_take_the_call_with_it(tmp_path: Path) -> None:
    gate, done = asyncio.Event(), asyncio.Event()
    async with house(tmp_path, limits=CallLimits()) as h:

        async def slow(call, progress):
            await gate.wait()
            done.set()
            return ToolResponse(data="finished anyway")

        h.tools.handler = slow
        call = make("notes:add", {"text": "x"})
        caller = asyncio.ensure_future(h.orchestrator.call(call))
        while not h.tools.runs:
            await asyncio.sleep(0.005)
        caller.cancel()
        await asyncio.wait({caller})
        gate.set()
        await h.glasses.until(lambda: "finished anyway" in h.glasses.texts())
        assert (await h.orchestrator.call(call)).data == "finished anyway"


async def test_a_full_disk_stops_what_writes_and_lets_reading_go_on(tmp_path: Path) -> None:
    async with house(tmp_path) as h:

        async def full(call, route, **_):
            raise OSError("disk full")

        h.store.admit = full
        assert (await h.call("notes:list")).ok
        refused = await h.call("notes:add", {"text": "x"})
        assert refused.error.code is ErrorCode.STORAGE_UNAVAILABLE
        assert "disk full" in refused.error.message
        assert [c.tool for c in h.tools.runs] == ["notes:list"]


async def test_ages_come_from_the_clock_that_was_handed_in(tmp_path: Path) -> None:
    clock = Clock(boot=Clock.system().boot, wall=lambda: 1_800_000_000.25, boot_id="b")
    async with house(tmp_path, clock=clock) as h:
        answer = await h.call("notes:list")
        assert answer.meta["timestamp"] == "2027-01-15T08:00:00.250Z"


@pytest.mark.requirement("I12-did-you-mean")
@pytest.mark.parametrize(
    ("said", "near"), [("note:add", "notes:add"), ("notes:lst", "notes:list"), ("zzz:qqqq", "")]
)
async def test_an_unknown_tool_is_answered_with_the_nearest(
    tmp_path: Path, said: str, near: str
) -> None:
    async with house(tmp_path) as h:
        error = (await h.call(said)).error
        assert error.message == f"Tool {said} not found"
        assert error.suggestion == (
            f"did you mean {near}? (all of them: glassd tools --all)"
            if near
            else "glassd tools --all"
        )


@pytest.mark.requirement("I12-did-you-mean")
async def test_no_tool_is_named_to_a_caller_that_may_not_use_it(tmp_path: Path) -> None:
    async with house(tmp_path, policy_=CallPolicy(cloud_may=())) as h:
        error = (await h.call("note:add", origin=CallOrigin.CLOUD)).error
        assert (error.code, error.suggestion) == (ErrorCode.TOOL_NOT_FOUND, "glassd tools --all")
        h.registry.hide("notes:add", "disabled by its owner")
        assert "notes:add" not in (await h.call("notes:ad")).error.suggestion
