"""Results that come later, results that are kept, and what a new daemon does with what the last
one left open.
"""

import asyncio

import pytest
from msgspec.structs import replace

from edge.calls.dependencies import CallPolicy
from edge.core.call_state import Submission
from edge.ports import CallAccepted, CallResult
from edge.runtime.clock import Clock
from edge.runtime.events import CallCompleted, CallOff, CallReceived, PendingResolved
from firmware_bridge.messages import Answer
from tests.unit.calls.orchestrator_house import QUICK, FakeTools, FakeUplink, house, make
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    ErrorType,
    Mode,
    RateLimit,
    ToolError,
    ToolResponse,
)

ARGS = {"text": "x"}
GOOD = ToolResponse(data={"text": "sunny"})


def worker(uplink, response=GOOD):
    def work(call):
        uplink.say(CallAccepted(call.call_id))
        uplink.say(CallResult(call.call_id, response))

    uplink.worker = work


# ------------------------------------------------------------------ pending


@pytest.mark.requirement("S3-03", "S3-22", "S3-23")
async def test_a_tool_without_an_endpoint_is_pending_at_once_and_blocks_nothing(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.call("job:local", ARGS)
        assert answer.data == {"status": "pending", "pendingToolCallId": answer.meta["callId"]}
        assert answer.meta["delivery"] == "queued"
        others = await asyncio.gather(*(h.call("notes:list") for _ in range(10)))
        assert all(other.ok for other in others)
        assert (await h.store.get(answer.meta["callId"]))["state"] == "PENDING"


@pytest.mark.requirement("S3-25", "S3-26", "S3-30")
async def test_a_submitted_result_ends_the_call_and_is_reported_once(tmp_path):
    async with house(tmp_path) as h:
        call_id = (await h.call("job:local", ARGS)).meta["callId"]
        assert (
            await h.orchestrator.submit(call_id, GOOD, user_id="local", session="")
            is Submission.TAKEN
        )
        done = await h.happened(CallCompleted)
        assert done.ok
        again = await h.orchestrator.submit(
            call_id, ToolResponse(data="other"), user_id="local", session=""
        )
        assert again is Submission.OVER
        story = await h.store.get(call_id)
        assert story["response"]["data"] == {"text": "sunny"}
        assert [x for x in h.heard if isinstance(x, PendingResolved)] == [
            PendingResolved(call_id, "job:local")
        ]
        assert "sunny" in h.glasses.texts()[-1]


@pytest.mark.parametrize("worn", [False, True, None])
async def test_only_a_late_answer_is_kept_from_glasses_that_nobody_wears(tmp_path, worn):
    async with house(tmp_path) as h:
        call_id = (await h.call("job:local", ARGS)).meta["callId"]
        h.glasses.worn = worn
        await h.orchestrator.submit(call_id, GOOD, user_id="local", session="")
        done = await h.happened(CallCompleted)
        unworn = {"state": "dropped", "reason": "the glasses are not worn"}
        assert done.delivery == (unworn if worn is False else "shown")
        assert (await h.call("notes:list")).meta["delivery"] == "shown"


async def test_a_failure_is_not_kept_for_glasses_that_are_away(tmp_path):
    async with house(tmp_path) as h:

        async def fails(*_):
            return ToolResponse.failure(ErrorCode.EXECUTION_ERROR, "broken")

        h.tools.handler = fails
        h.glasses.leave()
        answer = await h.call("notes:list")
        assert answer.meta["delivery"] == {"state": "dropped", "reason": "glasses away"}


@pytest.mark.requirement("S3-27", "S3-28")
async def test_an_unknown_call_or_another_sessions_call_cannot_be_resolved(tmp_path):
    async with house(tmp_path) as h:
        call_id = (await h.call("job:local", ARGS, session="mine")).meta["callId"]
        for wrong, user, session in (
            ("nope", "local", "mine"),
            (call_id, "local", "other"),
            (call_id, "eve", "mine"),
        ):
            assert (
                await h.orchestrator.submit(wrong, GOOD, user_id=user, session=session)
                is Submission.UNKNOWN
            )
        assert (await h.store.get(call_id))["state"] == "PENDING"


@pytest.mark.requirement("S3-29")
async def test_a_pending_call_expires(tmp_path):
    async with house(tmp_path) as h:
        entry = h.registry.entries["job:local"]
        h.registry.entries["job:local"] = replace(
            entry, definition=replace(entry.definition, pending_ttl_s=0.05)
        )
        call_id = (await h.call("job:local", ARGS)).meta["callId"]
        done = await h.happened(CallCompleted)
        assert not done.ok
        story = await h.store.get(call_id)
        assert (story["state"], story["code"]) == ("EXPIRED", "DEADLINE_EXPIRED")
        assert (
            await h.orchestrator.submit(call_id, GOOD, user_id="local", session="")
            is Submission.OVER
        )


@pytest.mark.requirement("S3-24")
async def test_a_pending_call_survives_a_restart_and_is_still_resolvable(tmp_path):
    async with house(tmp_path) as h:
        call_id = (await h.call("job:local", ARGS)).meta["callId"]
    async with house(tmp_path) as h:
        assert (
            await h.orchestrator.submit(call_id, GOOD, user_id="local", session="")
            is Submission.TAKEN
        )
        await h.happened(CallCompleted)
        assert (await h.store.get(call_id))["response"]["data"] == {"text": "sunny"}


async def test_a_result_handed_in_just_before_a_crash_is_the_answer_after_it(tmp_path):
    async with house(tmp_path) as h:
        call_id = (await h.call("job:local", ARGS)).meta["callId"]
        await h.shelves.pending.resolve(
            call_id, GOOD, user_id="local", session=""
        )  # and the daemon dies here
    async with house(tmp_path) as h:
        done = await h.happened(CallCompleted)
        assert done.ok
        assert (await h.store.get(call_id))["response"]["data"] == {"text": "sunny"}


@pytest.mark.requirement("S3-04")
async def test_a_space_tool_is_a_question_and_the_wearers_tap_its_result(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.call("ask:wearer", {"question": "Tea?"})
        assert answer.data["status"] == "pending"
        assert (await h.wearer.question()).text == "Tea?"
        h.wearer.say(Answer.DENY)
        await h.happened(CallCompleted)
        story = await h.store.get(answer.meta["callId"])
        assert story["response"]["data"] == {"answer": "no"}
        assert h.glasses.texts() == []  # the wearer's own answer is no news to the wearer


async def test_choices_are_offered_in_turn_until_one_is_taken(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.call(
            "ask:wearer", {"question": "Which?", "choices": ["tea", "milk", "rum"]}
        )
        h.wearer.say(Answer.DENY)
        h.wearer.say(Answer.ALLOW)
        await h.happened(CallCompleted)
        assert [q.text for q in h.wearer.asked] == ["Which?\ntea (1 of 3)", "Which?\nmilk (2 of 3)"]
        story = await h.store.get(answer.meta["callId"])
        assert story["response"]["data"] == {"answer": "milk", "number": 2}


@pytest.mark.parametrize(
    ("nobody", "code"),
    [("no glasses", ErrorCode.SESSION_INACTIVE), ("", ErrorCode.DEADLINE_EXPIRED)],
)
async def test_silence_and_absence_end_a_question_each_with_its_own_code(tmp_path, nobody, code):
    async with house(tmp_path) as h:
        h.wearer.nobody = nobody
        answer = await h.call("ask:wearer", {"question": "Tea?", "timeout_s": 0.05})
        await h.happened(CallCompleted)
        assert (await h.store.get(answer.meta["callId"]))["code"] == code.value


@pytest.mark.requirement("I6-ask")
async def test_a_caller_who_waits_gets_the_wearers_answer_in_the_same_call(tmp_path):
    async with house(tmp_path) as h:
        h.wearer.say(Answer.DENY)
        h.wearer.say(Answer.ALLOW)
        answer = await h.call(
            "ask:wearer", {"question": "Which?", "choices": ["tea", "milk"], "wait_s": 30}
        )
        assert answer.data == {"answer": "milk", "number": 2}
        assert 30 >= h.wearer.asked[0].timeout_s > h.wearer.asked[1].timeout_s, (
            "all questions of a call share its time"
        )
        assert h.glasses.texts() == []
        assert not [x for x in h.heard if isinstance(x, CallCompleted)], "answered, not pending"


@pytest.mark.requirement("I6-ask")
async def test_when_nobody_answers_while_the_caller_waits_the_call_says_so(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.call(
            "ask:wearer", {"question": "Which?", "choices": ["tea", "milk"], "wait_s": 0.05}
        )
        assert (answer.error.code, answer.error.message) == (
            ErrorCode.DEADLINE_EXPIRED,
            "The wearer did not answer in time",
        )
        assert len(h.wearer.asked) == 1


@pytest.mark.requirement("I6-ask")
async def test_a_question_may_outlive_its_callers_patience(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.call("ask:wearer", {"question": "Tea?", "wait_s": 0.05, "timeout_s": 60})
        assert answer.data["status"] == "pending"
        h.wearer.say(Answer.ALLOW)
        await h.happened(CallCompleted)
        assert (await h.store.get(answer.meta["callId"]))["response"]["data"] == {"answer": "yes"}


async def test_a_voice_waits_for_an_answer_no_longer_than_for_anything_else(tmp_path):
    async with house(tmp_path) as h:
        async with asyncio.timeout(30):
            answer = await h.call("ask:wearer", {"question": "Tea?", "wait_s": 60}, mode=Mode.VOICE)
        assert answer.data["status"] == "pending"


async def test_who_only_begins_a_question_does_not_wait_for_it(tmp_path):
    async with house(tmp_path) as h:
        assert (
            await h.orchestrator.begin(
                make("ask:wearer", {"question": "Tea?", "wait_s": 60}, call_id="c-ask")
            )
            is None
        )
        await h.wearer.question()
        assert (await h.store.get("c-ask"))["state"] == "PENDING"


@pytest.mark.requirement("I6-ask")
async def test_a_question_can_be_cancelled_while_its_caller_waits(tmp_path):
    async with house(tmp_path) as h:
        asking = asyncio.ensure_future(
            h.call("ask:wearer", {"question": "Tea?", "wait_s": 60}, call_id="c-ask")
        )
        await h.wearer.question()
        assert (await h.call("notes:list")).ok
        assert await h.orchestrator.cancel("c-ask", "never mind")
        assert (await asking).error.code is ErrorCode.CANCELLED
        assert h.wearer.withdrawn == 1


async def test_a_question_that_was_waited_for_is_asked_again_by_the_next_daemon(tmp_path):
    async with house(tmp_path) as h:
        asking = asyncio.ensure_future(
            h.call("ask:wearer", {"question": "Tea?", "wait_s": 60}, call_id="c-ask")
        )
        await h.wearer.question()
    assert (await asking).error.code is ErrorCode.INTERRUPTED
    async with house(tmp_path) as h:
        await h.wearer.question()
        h.wearer.say(Answer.ALLOW)
        await h.happened(CallCompleted)
        assert (await h.store.get("c-ask"))["response"]["data"] == {"answer": "yes"}


async def test_a_question_that_is_called_off_leaves_the_lens(tmp_path):
    async with house(tmp_path) as h:
        call_id = (await h.call("ask:wearer", {"question": "Tea?"})).meta["callId"]
        await h.wearer.question()
        assert await h.orchestrator.cancel(call_id, "never mind")
        await h.happened(CallCompleted)
        assert h.wearer.withdrawn == 1
        assert (await h.store.get(call_id))["state"] == "CANCELLED"
        assert h.glasses.texts() == [], "that it was cancelled is no news to the wearer"


async def test_a_question_is_asked_again_by_the_next_daemon(tmp_path):
    async with house(tmp_path) as h:
        call_id = (await h.call("ask:wearer", {"question": "Tea?"})).meta["callId"]
        await h.wearer.question()
    async with house(tmp_path) as h:
        await h.wearer.question()
        h.wearer.say(Answer.ALLOW)
        await h.happened(CallCompleted)
        assert (await h.store.get(call_id))["response"]["data"] == {"answer": "yes"}


async def test_the_cloud_that_asks_the_wearer_waits_for_the_answer_itself(tmp_path):
    async with house(tmp_path) as h:
        h.wearer.say(Answer.ALLOW)
        answer = await h.call("ask:wearer", {"question": "Tea?"}, origin=CallOrigin.CLOUD)
        assert answer.data == {"answer": "yes"}


async def test_a_cloud_job_is_pending_and_ends_with_the_clouds_result(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.call("job:cloud", ARGS)
        assert answer.data["status"] == "pending"
        h.uplink.say(CallResult(answer.meta["callId"], GOOD))
        done = await h.happened(CallCompleted)
        assert done.ok
        over = await h.orchestrator.submit(answer.meta["callId"], GOOD, user_id="local", session="")
        assert over is Submission.OVER


async def test_a_double_tap_on_the_working_mark_cancels_the_running_tool(tmp_path):
    tools, stopped = FakeTools(), asyncio.Event()

    async def endless(call, _):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    tools.handler = endless
    async with house(tmp_path, tools=tools, limits=replace(QUICK, run_s=20.0)) as h:
        call = make("notes:add", ARGS)
        caller = asyncio.create_task(h.orchestrator.call(call))
        await h.happened(CallReceived)
        while not tools.runs:
            await asyncio.sleep(0)
        h.bus.publish(CallOff(call.call_id, "the wearer"))
        answer = await caller
        assert (answer.error.code, answer.error.message) == (
            ErrorCode.CANCELLED,
            "Cancelled: the wearer",
        )
        await asyncio.wait_for(stopped.wait(), 40)


# ------------------------------------------------------------------ the last good result


@pytest.mark.requirement("I3-cache")
async def test_a_reading_tool_answers_from_the_stored_result_without_its_route(tmp_path):
    async with house(tmp_path) as h:
        worker(h.uplink)
        assert (await h.call("sky:now", ARGS)).ok
        h.uplink.up = False
        answer = await h.call("sky:now", ARGS)
        assert answer.ok
        assert answer.data == {"text": "sunny"}
        assert (answer.meta["stale"], answer.meta["route"]) == (True, "cache")
        assert isinstance(answer.meta["ageS"], int)
        assert (await h.store.get(answer.meta["callId"]))["state"] == "DELIVERED"
        assert await h.store.recent(5, pending=True) == []
        other = await h.call("sky:now", {"text": "elsewhere"})
        assert other.error.code is ErrorCode.OFFLINE
    async with house(tmp_path) as h:  # and over a restart
        h.uplink.up = False
        assert (await h.call("sky:now", ARGS)).meta["stale"] is True


async def test_a_kept_result_serves_when_nobody_answers_too(tmp_path):
    async with house(tmp_path) as h:
        worker(h.uplink)
        await h.call("sky:now", ARGS)
        h.uplink.worker = lambda call: None
        answer = await h.call("sky:now", ARGS)
        assert (answer.meta["stale"], answer.meta["route"]) == (True, "cache")


async def test_a_failing_tool_is_not_answered_from_the_stored_result(
    tmp_path,
):
    async with house(tmp_path) as h:
        worker(h.uplink)
        await h.call("sky:now", ARGS)
        worker(h.uplink, ToolResponse(data={"text": "rain"}))
        fresh = await h.call("sky:now", ARGS)
        assert fresh.data == {"text": "rain"}
        assert "stale" not in fresh.meta
        worker(h.uplink, ToolResponse.failure(ErrorCode.AUTH, "no"))
        assert (await h.call("sky:now", ARGS)).error.code is ErrorCode.AUTH
        h.uplink.up = False
        assert (await h.call("sky:now", ARGS)).data == {"text": "rain"}


async def test_a_tool_that_writes_is_never_answered_from_what_was_kept(tmp_path):
    async with house(tmp_path) as h:
        entry = h.registry.entries["shop:buy"]
        h.registry.entries["shop:buy"] = replace(
            entry, definition=replace(entry.definition, cache_ttl_s=3600.0)
        )
        worker(h.uplink)
        assert (await h.call("shop:buy", ARGS)).ok
        h.uplink.up = False
        assert (await h.call("shop:buy", ARGS)).error.code is ErrorCode.OFFLINE


# ------------------------------------------------------------------ after a crash


async def left_as(h, name, state, **more):
    """What a daemon leaves that dies in this state."""
    call = make(name, ARGS, **more)
    route = {"shop": "cloud", "mail": "cloud"}.get(name.partition(":")[0], "local")
    await h.store.admit(call, route)
    for step in state:
        await h.store.advance(call.call_id, step)
    return call


@pytest.mark.requirement("I3-recovery", "C-06", "C-43")
@pytest.mark.parametrize(
    ("name", "state", "ok", "runs"),
    [
        ("notes:add", [], True, 1),
        ("notes:add", ["RUNNING"], False, 0),
        ("notes:list", ["RUNNING"], True, 1),
        ("notes:list", ["RUNNING", "PENDING"], True, 1),
        ("notes:add", ["RUNNING", "PENDING"], False, 0),
    ],
)
async def test_what_was_left_open_ends_by_rule_and_nothing_unsafe_runs_twice(
    tmp_path, name, state, ok, runs
):
    async with house(tmp_path) as h:
        call = await left_as(h, name, state)
    async with house(tmp_path) as h:
        await h.happened(CallCompleted)
        story = await h.store.get(call.call_id)
        assert len(h.tools.runs) == runs
        assert story["ok"] is ok
        if not ok:
            error = story["response"]["error"]
            assert (error["type"], error["code"]) == ("TRANSIENT", "INTERRUPTED")
            assert error["partialSideEffects"] is True
            assert error["idempotencyRequired"] is True


async def test_a_second_attempt_is_in_the_story_with_its_time(tmp_path):
    async with house(tmp_path) as h:
        call = await left_as(h, "notes:list", ["RUNNING"])
    async with house(tmp_path) as h:
        await h.happened(CallCompleted)
        story = await h.store.get(call.call_id)
        assert [s["state"] for s in story["steps"]] == [
            "ADMITTED",
            "RUNNING",
            "RUNNING",
            "ANSWERED",
            "DELIVERED",
        ]
        assert story["attempts"] == 2


async def test_a_resumed_cloud_call_stays_a_cloud_call_with_the_uplink_down(
    tmp_path,
):
    uplink = FakeUplink()
    uplink.up = False
    async with house(tmp_path) as h:
        call = await left_as(h, "shop:buy", [])
    async with house(tmp_path, uplink=uplink) as h:
        await uplink.until(lambda: uplink.submitted)
        assert uplink.submitted[0].call_id == call.call_id
        uplink.say(CallResult(call.call_id, GOOD))
        assert (await h.happened(CallCompleted)).ok
        assert len(uplink.submitted) == 1


# ------------------------------------------------------------------ the owner's rules


@pytest.mark.requirement("S1-39")
async def test_the_owners_switch_denies_every_call(tmp_path):
    async with house(tmp_path, policy_=CallPolicy(enabled=False)) as h:
        answer = await h.call("notes:list")
        assert answer.error.code is ErrorCode.DENIED
        assert answer.error.suggestion == "Set policy.tools_enabled = true"
        assert not h.tools.runs


async def test_the_owners_rate_is_held_beside_the_tools_own(tmp_path):
    async with house(tmp_path, policy_=CallPolicy(rates={"notes:list": RateLimit(2, 60.0)})) as h:
        codes = [(await h.call("notes:list")).error for _ in range(3)]
        assert [c is None for c in codes] == [True, True, False]
        assert codes[2].code is ErrorCode.RATE_LIMIT


@pytest.mark.requirement("S2-81")
async def test_a_refusal_before_execution_has_no_side_effects_and_only_waiting_helps(tmp_path):
    async with house(tmp_path) as h:
        refusals = [
            await h.call("notes:add", {"text": 5}),
            await h.call("not:there"),
            await h.call("desk:type", mode=Mode.VOICE),
            await h.orchestrator.begin(make("danger:erase", ARGS)),
            await h.orchestrator.confirm("00" * 16, allow=True),
        ]
        assert [r.error.type for r in refusals] == [
            ErrorType.VALIDATION,
            ErrorType.NOT_FOUND,
            ErrorType.MODE_RESTRICTED,
            ErrorType.CONFIRMATION_REQUIRED,
            ErrorType.CONFIRMATION_EXPIRED,
        ]
        assert not any(r.error.partial_side_effects or r.error.retryable for r in refusals)
        assert all(r.meta["timestamp"] for r in refusals)  # C-23: stamped all the same


@pytest.mark.requirement("S2-91", "S2-92", "S2-94")
async def test_slowness_is_told_and_blocks_nothing(tmp_path, caplog):
    tools, now = FakeTools(), [1000.0]

    async def slow(call, _):
        now[0] += 0.03
        return ToolResponse(data="done")

    tools.handler = slow
    clock = Clock(boot=lambda: now[0], wall=lambda: 1_795_257_000.0, boot_id="b")
    async with house(
        tmp_path, tools=tools, limits=replace(QUICK, turn_latency_ms=40), clock=clock
    ) as h:
        entry = h.registry.entries["notes:list"]
        h.registry.entries["notes:list"] = replace(
            entry, definition=replace(entry.definition, latency_budget_ms=1)
        )
        for _ in range(2):
            assert (await h.call("notes:list", mode=Mode.VOICE, turn_id="t")).ok
        assert [line["overBudget"] for line in h.audit] == [True, True]
        assert [line["turnOverBudget"] for line in h.audit] == [False, True]
        assert "latency budget" in caplog.text


@pytest.mark.requirement("C-03", "C-32", "S2-53", "S2-54", "S2-56", "S2-111")
async def test_intents_of_failures_count_too_and_their_trail_is_on_disk(tmp_path, caplog):
    tools = FakeTools()
    intents = (
        {"type": "SUPPRESS_AUDIO", "value": True},
        {"type": "DANCE"},
        {"type": "END_VOICE_SESSION"},
    )

    async def failing(call, _):
        error = ToolError.of(ErrorCode.CONFLICT, "no")
        return ToolResponse(error=error, intents=intents)

    tools.handler = failing
    async with house(tmp_path, tools=tools) as h:
        answer = await h.call("notes:list")
        assert not answer.ok
        assert h.orchestrator.session.snapshot().suppress_audio
        assert "Unknown intent type: DANCE" in caplog.text
        assert "Cannot end inactive session" in caplog.text
        (change,) = await h.sessions.transitions(10)
        assert (change["cause"], change["call_id"]) == ("notes:list", answer.meta["callId"])
        assert (change["before"]["suppress_audio"], change["after"]["suppress_audio"]) == (
            False,
            True,
        )


@pytest.mark.requirement("S2-86", "S2-139", "C-25")
async def test_the_third_retrieval_of_a_turn_is_refused_locally(tmp_path):
    async with house(tmp_path) as h:
        entry = h.registry.entries["shop:look"]
        h.registry.entries["shop:look"] = replace(
            entry, definition=replace(entry.definition, category="retrieval")
        )
        worker(h.uplink)
        said = [
            await h.call("shop:look", {"text": str(n)}, mode=Mode.VOICE, turn_id="t1")
            for n in range(3)
        ]
        assert [a.error.code if a.error else None for a in said] == [
            None,
            None,
            ErrorCode.BUDGET_EXCEEDED,
        ]
        assert said[2].error.suggestion
        assert len(h.uplink.submitted) == 2
        assert (await h.call("shop:look", {"text": "3"}, mode=Mode.VOICE, turn_id="t2")).ok


@pytest.mark.requirement("S2-138", "C-36")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.requirement("S2-65", "S2-66")
async def test_a_turn_goes_on_with_the_registry_it_began_with_and_development_refuses(
    tmp_path, strict, caplog
):
    async with house(tmp_path, policy_=CallPolicy(strict_registry=strict)) as h:
        first = await h.call("notes:list", turn_id="t")
        entry = h.registry.entries["notes:list"]
        h.registry.entries["notes:list"] = replace(
            entry, definition=replace(entry.definition, version="9.9.9")
        )
        h.registry.version = "1.0.0def456"
        second = await h.call("notes:list", turn_id="t")
        if strict:
            assert second.error.message == "Registry version mismatch detected - restart server"
        else:
            assert (second.meta["registryVersion"], second.meta["toolVersion"]) == (
                "1.0.0abc123",
                "9.9.9",  # what ran
            )
        assert "continues with registry 1.0.0abc123" in caplog.text
        third = await h.call("notes:list", turn_id="t2")
        assert (third.meta["registryVersion"], third.meta["toolVersion"]) == (
            "1.0.0def456",
            "9.9.9",
        )
        assert first.ok


async def test_hardware_that_is_gone_counts_within_a_turn_too(tmp_path):
    async with house(tmp_path) as h:
        await h.call("notes:list", turn_id="t")
        h.registry.version = "1.0.0def456"
        h.registry.hide("notes:list", "needs a camera", ("CAMERA",))
        assert (await h.call("notes:list", turn_id="t")).error.code is ErrorCode.HARDWARE_MISSING


async def test_a_result_that_comes_while_its_call_ends_is_too_late(tmp_path):
    async with house(tmp_path) as h:
        ending, go_on, present = asyncio.Event(), asyncio.Event(), h.stage.present

        async def slowly(*args, **more):
            ending.set()
            await go_on.wait()
            return await present(*args, **more)

        h.stage.present = slowly
        call = make("shop:buy", ARGS)
        caller = asyncio.create_task(h.orchestrator.call(call))
        await h.uplink.until(lambda: h.uplink.submitted)
        await h.orchestrator.cancel(call.call_id, "not needed")
        await ending.wait()
        h.uplink.say(CallResult(call.call_id, GOOD))
        async with asyncio.timeout(40):
            while not h.orchestrator._calls[call.call_id].events.waiting:
                await asyncio.sleep(0)
        go_on.set()
        assert (await caller).error.code is ErrorCode.CANCELLED
        await h.uplink.until(lambda: any(isinstance(m, CallResult) for m in h.uplink.done))


async def test_a_cloud_failure_answered_from_the_stored_result_is_handled(tmp_path):
    async with house(tmp_path) as h:
        worker(h.uplink)
        assert (await h.call("sky:now")).ok
        worker(h.uplink, ToolResponse.failure(ErrorCode.NETWORK_ERROR, "no network"))
        assert (await h.call("sky:now")).meta["stale"]
        results = [m for m in h.uplink.done if isinstance(m, CallResult)]
        assert [m.response.ok for m in results] == [True, False]


async def test_a_job_that_was_handed_over_and_is_cancelled_may_have_been_done(tmp_path):
    async with house(tmp_path) as h:
        call_id = (await h.call("job:local", ARGS)).data["pendingToolCallId"]
        async with asyncio.timeout(40):
            while not h.tools.handed:
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert await h.orchestrator.cancel(call_id, "not needed")
        await h.happened(CallCompleted)
        error = (await h.store.get(call_id))["response"]["error"]
        assert (error["code"], error["partialSideEffects"]) == ("CANCELLED", True)


# ------------------------------------------------------------------ a disk that takes nothing


@pytest.mark.parametrize("name", ["danger:erase", "job:cloud"])
async def test_a_refusal_that_cannot_be_stored_says_it_may_still_be_done(tmp_path, name):
    async with house(tmp_path) as h:
        good = (h.store.advance, h.store.finish)

        async def full(*_, **__):
            raise OSError("disk full")

        h.uplink.problem = OSError("disk full")
        h.store.advance = h.store.finish = full
        h.wearer.say(Answer.ALLOW)
        answer = await h.call(name, ARGS)
        assert answer.error.code is ErrorCode.INTERRUPTED
        assert answer.error.partial_side_effects
        assert not h.tools.runs
        assert (await h.store.recent(1, pending=True))[0]["state"] == "ADMITTED"
        h.store.advance, h.store.finish = good
        h.uplink.problem = None
        async with asyncio.timeout(40):
            while await h.store.recent(1, pending=True):
                await asyncio.sleep(0.05)
        story = await h.store.get(answer.meta["callId"])
        assert story["code"] == "INTERRUPTED"
        assert (
            await h.call(name, ARGS, call_id=answer.meta["callId"])
        ).error.code is ErrorCode.INTERRUPTED
    async with house(tmp_path) as h:
        assert not h.tools.runs  # the next daemon has nothing to take up


async def test_a_result_is_returned_even_when_it_cannot_be_stored(tmp_path):
    async with house(tmp_path) as h:
        good = h.store.finish

        async def full(*_, **__):
            raise OSError("disk full")

        h.store.finish = full
        answer = await h.call("notes:add", ARGS)
        assert answer.ok
        h.store.finish = good
        async with asyncio.timeout(40):
            while await h.store.recent(1, pending=True):
                await asyncio.sleep(0.05)
        assert (await h.store.get(answer.meta["callId"]))["ok"] is True


async def test_a_tools_own_failure_is_returned_even_when_it_cannot_be_stored(tmp_path):
    async with house(tmp_path) as h:

        async def failing(_call, _progress):
            return ToolResponse.failure(ErrorCode.NETWORK_ERROR, "no such list")

        async def full(*_, **__):
            raise OSError("disk full")

        h.tools.handler, h.store.finish = failing, full
        assert (await h.call("notes:add", ARGS)).error.message == "no such list"


async def test_nobody_is_asked_while_the_disk_takes_nothing(tmp_path):
    async with house(tmp_path) as h:
        entry = h.registry.entries["notes:list"]
        asking = replace(entry.definition, requires_confirmation="always")
        h.registry.entries["notes:list"] = replace(entry, definition=asking)

        async def full(*_, **__):
            raise OSError("disk full")

        h.store.admit = full
        refused = await h.orchestrator.begin(make("notes:list"))
        assert refused.error.code is ErrorCode.STORAGE_UNAVAILABLE
        assert not h.wearer.asked
        assert not h.tools.runs


async def test_a_clouds_result_is_not_struck_off_before_it_is_on_disk(tmp_path):
    async with house(tmp_path) as h:
        worker(h.uplink)
        good = h.store.finish

        async def full(*_, **__):
            raise OSError("disk full")

        h.store.finish = full
        assert (await h.call("shop:buy", ARGS)).ok
        assert not [m for m in h.uplink.done if isinstance(m, CallResult)]
        h.store.finish = good
        await h.uplink.until(lambda: any(isinstance(m, CallResult) for m in h.uplink.done))


async def test_a_withdrawal_that_cannot_be_stored_loses_no_submitted_result(tmp_path):
    async with house(tmp_path) as h:
        call_id = (await h.call("job:cloud", ARGS)).meta["callId"]

        async def full(*_, **__):
            raise OSError("disk full")

        h.uplink.withdraw = full
        taken = await h.orchestrator.submit(call_id, GOOD, user_id="local", session="")
        assert taken is Submission.TAKEN
        await h.happened(CallCompleted)
        assert (await h.store.get(call_id))["response"]["data"] == GOOD.data


async def test_a_withdrawal_that_cannot_be_stored_is_still_a_cancellation(tmp_path):
    async with house(tmp_path) as h:
        call_id = (await h.call("job:cloud", ARGS)).meta["callId"]

        async def full(*_, **__):
            raise OSError("disk full")

        h.uplink.withdraw = full
        assert await h.orchestrator.cancel(call_id, "not needed")
        await h.happened(CallCompleted)
        assert (await h.store.get(call_id))["state"] == "CANCELLED"
