"""Decisions that race each other, a stop, or a disk that fails between them: one answer,
nothing unasked, the truth.
"""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
from msgspec.structs import replace

from edge.calls.call import EVENTS, Call, CallTools, Cancelled, Decided, Finished
from edge.core.call_state import Submission, check
from edge.core.grants import Grant, Granted
from edge.core.idempotency import replayable
from edge.ports import CallAccepted, CallProgress, CallResult, InvokeCancelled, Invoked
from edge.runtime.events import CallAnswered, CallCompleted, ConfirmationDecided
from edge.storage.calls import CallStore
from edge.storage.confirmations import Confirmations
from edge.storage.migrations import MIGRATIONS
from edge.storage.pending import PendingCalls
from edge.storage.sqlite.database import SqliteDatabase, StoreFull
from firmware_bridge.messages import Answer
from tests.unit.calls.orchestrator_house import (
    CLOCK,
    QUICK,
    FakeAsk,
    FakeRegistry,
    FakeTools,
    house,
    make,
)
from tools_cache.api.tool import CallOrigin, ErrorCode, SideEffects, ToolResponse

ARGS = {"text": "all"}
DONE = ToolResponse(data={"text": "done"})


def token_of(answer):
    return answer.error.confirmation_request["token"]


async def full(*_, **__):
    raise StoreFull("the store is full")


@asynccontextmanager
async def on_disk(path):
    """The store of a daemon that was killed: nobody serves it."""
    db = await SqliteDatabase.open(path / "glassd.db", MIGRATIONS, reserve=False)
    try:
        yield db
    finally:
        await db.close()


async def left_by_a_killed_daemon(path, call, route):
    async with on_disk(path) as db:
        await CallStore(db, CLOCK, check, replayable=replayable).admit(call, route)


async def test_a_call_answered_by_fallback_is_not_run_by_the_next_daemon(
    tmp_path,
):
    call = make("danger:erase", {**ARGS, "top_k": 5})  # its route was away, so nobody was asked
    await left_by_a_killed_daemon(tmp_path, call, "fallback")
    async with house(tmp_path) as h:
        done = await h.happened(CallCompleted)
        assert not done.ok
        assert not h.tools.runs
        error = (await h.store.get(call.call_id))["response"]["error"]
        assert (error["code"], error.get("partialSideEffects", False)) == ("INTERRUPTED", False)


@pytest.mark.requirement("I11-consent-frozen")
@pytest.mark.parametrize("forbidden", [False, True])
async def test_a_resumed_call_does_not_run_when_its_tool_needs_confirmation_now(
    tmp_path, forbidden
):
    call = make("notes:add", {**ARGS, "top_k": 5})
    await left_by_a_killed_daemon(tmp_path, call, "local")
    registry = FakeRegistry()
    entry = registry.entries["notes:add"]
    if forbidden:
        async with on_disk(tmp_path) as db:
            await Confirmations(db, CLOCK, check).grant("local", "notes:add", Granted(Grant.NEVER))
    else:
        registry.entries["notes:add"] = replace(
            entry, definition=replace(entry.definition, requires_confirmation="always")
        )
    async with house(tmp_path, registry=registry) as h:
        assert not (await h.happened(CallCompleted)).ok
        assert not h.tools.runs
        assert (await h.store.get(call.call_id))["code"] == ("DENIED" if forbidden else "MISMATCH")


@pytest.mark.requirement("I11-consent-frozen")
@pytest.mark.parametrize("needs_yes", [False, True])
async def test_a_resumed_call_is_handed_over_only_to_the_confirmed_tool(tmp_path, needs_yes):
    registry = FakeRegistry()
    entry = registry.entries["job:local"]
    safe = replace(entry.definition, idempotent=True)
    registry.entries["job:local"] = replace(entry, definition=safe)
    async with house(tmp_path, registry=registry) as h:
        await h.call("job:local", ARGS)
        assert len(h.tools.handed) == 1
    if needs_yes:
        strict = replace(safe, requires_confirmation="always")
        registry.entries["job:local"] = replace(entry, definition=strict)
    async with house(tmp_path, registry=registry) as h:
        call_id = (await h.store.unfinished())[0].call.call_id
        await asyncio.sleep(0.2)  # what must not happen has this long to happen
        assert len(h.tools.handed) == (0 if needs_yes else 1)
        taken = await h.orchestrator.submit(call_id, DONE, user_id="local", session="")
        assert taken is Submission.TAKEN


async def test_a_backend_that_breaks_ends_its_own_call_and_no_other(tmp_path):
    async with house(tmp_path) as h:
        go_on = asyncio.Event()

        async def handler(call, _):
            if call.tool == "notes:add":
                raise ImportError("a part of the program is missing")
            await go_on.wait()
            return DONE

        h.tools.handler = handler
        async with asyncio.TaskGroup() as calls:
            other = calls.create_task(h.call("notes:list"))
            broken = await h.call("notes:add", ARGS)
            go_on.set()
        assert broken.error.code is ErrorCode.INTERNAL
        assert other.result().data == DONE.data


async def test_a_grant_that_finds_no_room_does_not_keep_the_allowed_call_waiting(
    tmp_path, monkeypatch
):
    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        await h.wearer.question()
        monkeypatch.setattr(h.confirmations, "grant", full)
        async with asyncio.timeout(20):
            assert (await h.orchestrator.confirm(token, allow=True, grant=Grant.ALWAYS)).ok
        assert len(h.tools.runs) == 1


async def test_a_decision_outlives_a_caller_that_leaves_while_its_token_is_consumed(
    tmp_path, monkeypatch
):
    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        consume, used, go = h.confirmations.consume, asyncio.Event(), asyncio.Event()

        async def slowly(*args, **more):
            outcome = await consume(*args, **more)
            used.set()
            await go.wait()
            return outcome

        monkeypatch.setattr(h.confirmations, "consume", slowly)
        caller = asyncio.create_task(h.orchestrator.confirm(token, allow=True))
        await used.wait()
        caller.cancel()
        with suppress(asyncio.CancelledError):
            await caller
        go.set()
        await h.happened(CallAnswered, lambda answered: answered.final and answered.ok)
        assert len(h.tools.runs) == 1


@pytest.mark.parametrize(
    ("said", "code"), [(Answer.ALLOW, ErrorCode.INTERRUPTED), (Answer.DENY, ErrorCode.DENIED)]
)
async def test_a_tap_that_cannot_be_stored_ends_only_its_own_call(
    tmp_path, monkeypatch, said, code
):
    async with house(tmp_path, tools=(tools := FakeTools())) as h:
        caller = asyncio.create_task(h.call("danger:erase", ARGS))
        await h.wearer.question()
        monkeypatch.setattr(h.confirmations, "consume_call", full)
        h.wearer.say(said)
        async with asyncio.timeout(20):
            answer = await caller
        assert (answer.error.code, answer.error.partial_side_effects) == (code, False)
        assert not tools.runs
        assert (await h.call("notes:add", ARGS)).ok  # the daemon's middle stands


@pytest.mark.parametrize("effects", [SideEffects.WRITES, SideEffects.READ_ONLY])
async def test_a_question_that_cannot_be_stored_has_no_side_effects(tmp_path, monkeypatch, effects):
    async with house(tmp_path) as h:
        entry = h.registry.entries["danger:erase"]
        h.registry.entries["danger:erase"] = replace(
            entry, definition=replace(entry.definition, side_effects=effects)
        )
        monkeypatch.setattr(h.confirmations, "ask", full)
        answer = await h.call("danger:erase", ARGS)
        assert (answer.error.code, answer.error.partial_side_effects) == (
            ErrorCode.STORAGE_UNAVAILABLE,
            False,
        )
        assert not h.tools.runs
        assert not h.wearer.asked
        assert not await h.store.recent(1, pending=True)


async def test_a_yes_that_was_on_disk_before_the_new_daemon_asked_again_counts(
    tmp_path, monkeypatch
):
    call = make("danger:erase", ARGS)
    async with house(tmp_path) as h:
        await h.orchestrator.begin(call)
    tools = FakeTools()
    read = CallStore.unfinished

    async def then_a_yes(self):
        found = await read(self)
        confirmations = Confirmations(self._db, CLOCK, self._check)
        await confirmations.consume_call(call.call_id, allow=True)
        return found

    monkeypatch.setattr(CallStore, "unfinished", then_a_yes)
    async with house(tmp_path, tools=tools) as h:
        assert (await h.happened(CallCompleted)).ok
        assert [run.call_id for run in tools.runs] == [call.call_id]


async def test_a_no_stored_before_a_crash_is_answered_as_a_no(tmp_path):
    call = make("danger:erase", ARGS)
    async with house(tmp_path) as h:
        await h.orchestrator.begin(call)
    async with house(tmp_path) as h:
        await h.wearer.question()
        await h.confirmations.consume_call(
            call.call_id, allow=False
        )  # and the daemon dies before it can say so
    async with house(tmp_path) as h:
        await h.happened(CallCompleted)
        assert (await h.store.get(call.call_id))["code"] == "DENIED"
        assert not h.tools.runs


async def test_a_tap_just_after_a_no_by_token_runs_nothing(tmp_path, monkeypatch):
    tapped = asyncio.Event()
    by_token, by_tap = Confirmations.consume, Confirmations.consume_call

    async def then_the_wearer_taps(store, *args, **named):
        used = await by_token(store, *args, **named)
        h.wearer.say(Answer.ALLOW)
        await tapped.wait()
        return used

    async def told(store, call_id, *, allow):
        used = await by_tap(store, call_id, allow=allow)
        tapped.set()
        return used

    monkeypatch.setattr(Confirmations, "consume", then_the_wearer_taps)
    monkeypatch.setattr(Confirmations, "consume_call", told)
    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        answer = await h.orchestrator.confirm(token, allow=False)
        assert answer.error.code is ErrorCode.DENIED
        await h.happened(ConfirmationDecided)
        assert not h.tools.runs
        decided = [e for e in h.heard if isinstance(e, ConfirmationDecided)]
        assert [(e.outcome, e.by) for e in decided] == [("denied", "the caller")]


async def test_a_cancellation_just_after_a_yes_still_stops_the_call(tmp_path, monkeypatch):
    async with house(tmp_path) as h:
        call = make("danger:erase", ARGS)
        await h.orchestrator.begin(call)
        await h.wearer.question()
        consume = h.confirmations.consume_call

        async def the_tap_first(call_id, *, allow):
            if not allow:
                await consume(call_id, allow=True)
                h.orchestrator._calls[call_id].events.put(Decided("the wearer"))
            return await consume(call_id, allow=allow)

        monkeypatch.setattr(h.confirmations, "consume_call", the_tap_first)
        assert await h.orchestrator.cancel(call.call_id, "never mind")
        await h.happened(CallCompleted)
        assert (await h.store.get(call.call_id))["state"] == "CANCELLED"
        assert not h.tools.runs


async def test_a_write_called_off_half_way_says_that_it_may_have_been_done(tmp_path):
    async with house(tmp_path, limits=replace(QUICK, run_s=5.0)) as h:
        started = asyncio.Event()

        async def hang(*_):
            started.set()
            await asyncio.Event().wait()

        h.tools.handler = hang
        call = make("notes:add", ARGS)
        caller = asyncio.create_task(h.orchestrator.call(call))
        await started.wait()
        await h.orchestrator.cancel(call.call_id, "stop")
        error = (await caller).error
        assert (error.code, error.partial_side_effects, error.idempotency_required) == (
            ErrorCode.CANCELLED,
            True,
            True,
        )


async def test_a_cancellation_that_comes_with_the_result_changes_nothing(tmp_path):
    async with house(tmp_path) as h:
        call = make("notes:add", ARGS)

        async def called_off_at_the_last_moment(*_):
            await h.orchestrator.cancel(call.call_id, "stop")
            return DONE

        h.tools.handler = called_off_at_the_last_moment
        assert (await h.orchestrator.call(call)).ok


async def test_an_invocation_cancelled_at_once_does_not_run(tmp_path):
    async with house(tmp_path) as h:
        call = make("notes:add", ARGS, origin=CallOrigin.CLOUD, session="s")
        h.uplink.say(Invoked(call, "reply"))
        h.uplink.say(InvokeCancelled(call.call_id, "never mind"))
        await h.uplink.until(lambda: any(isinstance(a, ToolResponse) for _, a in h.uplink.answers))
        assert [a.error.code for _, a in h.uplink.answers if isinstance(a, ToolResponse)] == [
            ErrorCode.CANCELLED
        ]
        assert not h.tools.runs


@pytest.mark.parametrize("name", ["job:local", "job:cloud", "ask:wearer"])
async def test_a_full_table_of_pending_calls_refuses_before_anything_leaves(
    tmp_path, monkeypatch, name
):
    async with house(tmp_path) as h:
        monkeypatch.setattr(h.shelves.pending, "put", full)
        error = (await h.call(name, ARGS)).error
        assert (error.code, error.partial_side_effects) == (ErrorCode.STORAGE_UNAVAILABLE, False)
        assert not h.uplink.submitted
        assert not h.wearer.asked


async def test_a_cloud_job_lost_before_the_outbox_takes_submitted_results(
    tmp_path,
):
    call = make("job:cloud", ARGS, ttl_s=60.0)
    await left_by_a_killed_daemon(tmp_path, call, "cloud")
    async with house(tmp_path) as h:
        await h.uplink.until(lambda: bool(h.uplink.submitted))
        assert (
            await h.orchestrator.submit(call.call_id, DONE, user_id="local", session="")
            is Submission.TAKEN
        )
        assert (await h.happened(CallCompleted)).ok


@pytest.mark.parametrize(("name", "steps"), [("job:local", ()), ("job:gone", ("PENDING",))])
async def test_a_submitted_result_is_the_answer_even_without_its_step_or_tool(
    tmp_path, name, steps
):
    call = make(name, ARGS, ttl_s=60.0)
    async with on_disk(tmp_path) as db:
        store, pending = CallStore(db, CLOCK, check, replayable=replayable), PendingCalls(db, CLOCK)
        await store.admit(call, "later")
        await pending.put(call, ttl_s=60.0)
        for step in steps:
            await store.advance(call.call_id, step)
        assert (
            await pending.resolve(call.call_id, DONE, user_id=call.user_id, session="")
            is Submission.TAKEN
        )
    async with house(tmp_path) as h:
        assert (await h.happened(CallCompleted)).ok
        assert (await h.store.get(call.call_id))["response"]["data"] == DONE.data


async def test_a_submitted_result_stands_when_the_call_is_cancelled_at_once(
    tmp_path,
):
    async with house(tmp_path) as h:
        call = make("job:local", ARGS, ttl_s=60.0)
        await h.orchestrator.call(call)
        close = h.shelves.pending.close

        async def after_the_result(call_id, status):
            taken = await h.orchestrator.submit(call_id, DONE, user_id=call.user_id, session="")
            assert taken is Submission.TAKEN
            await close(call_id, status)

        h.shelves.pending.close = after_the_result
        await h.orchestrator.cancel(call.call_id, "never mind")
        assert (await h.happened(CallCompleted)).ok
        assert (await h.store.get(call.call_id))["response"]["data"] == DONE.data


async def test_a_key_of_another_tools_call_is_refused_in_flight_and_after(tmp_path):
    async with house(tmp_path) as h:
        begun, go = asyncio.Event(), asyncio.Event()

        async def wait(*_):
            begun.set()
            await go.wait()
            return DONE

        h.tools.handler = wait
        first = asyncio.create_task(h.call("notes:add", ARGS, idempotency_key="k"))
        await begun.wait()
        in_flight = await h.call("notes:list", idempotency_key="k")
        go.set()
        assert (await first).ok
        after = await h.call("notes:list", idempotency_key="k")
        assert [a.error.code for a in (in_flight, after)] == [ErrorCode.INVALID_REQUEST] * 2
        assert len(h.tools.runs) == 1


async def test_a_stage_that_fails_costs_the_showing_not_the_answer(tmp_path, monkeypatch):
    async with house(tmp_path) as h:

        async def broken(*_, **__):
            raise RuntimeError("the stage")

        monkeypatch.setattr(h.stage, "present", broken)
        monkeypatch.setattr(h.stage, "tell", broken)
        answer = await h.call("notes:add", ARGS)
        assert answer.ok
        assert answer.meta["delivery"]["state"] == "dropped"
        assert (await h.store.get(answer.meta["callId"]))["state"] == "ANSWERED"


async def test_storing_an_old_cloud_result_does_not_make_it_new(tmp_path):
    async with house(tmp_path) as h:
        stale = DONE.with_meta(stale=True, ageS=900)
        h.uplink.worker = lambda call: h.uplink.say(CallResult(call.call_id, stale))
        assert (await h.call("sky:now")).ok
        h.uplink.up = False
        assert (await h.call("sky:now")).error.code is ErrorCode.OFFLINE


async def test_a_disk_that_cannot_read_what_was_kept_leaves_the_honest_failure(
    tmp_path, monkeypatch
):
    async with house(tmp_path) as h:
        h.uplink.up = False
        monkeypatch.setattr(h.shelves.results, "last", full)
        assert (await h.call("sky:now")).error.code is ErrorCode.OFFLINE


@pytest.mark.parametrize("event", [CallAccepted("c"), CallProgress("c", "more"), Cancelled("stop")])
async def test_no_flood_of_events_grows_without_bound_and_none_hides_a_decision(event):
    tools = CallTools(None, FakeRegistry(), CLOCK, lambda *_: None)
    call = Call(make("notes:add", ARGS), tools)
    for _ in range(3 * EVENTS):
        call.events.put(event)
    for kept in (Decided("the wearer"), CallResult("c", DONE), Finished(DONE)):
        call.events.put(kept)
        call.events.put(kept)
    assert len(call.events.waiting) == EVENTS + 6


async def test_a_write_under_which_the_daemon_stops_is_not_called_safe_to_repeat(tmp_path):
    async with house(tmp_path) as h:
        started = asyncio.Event()

        async def hang(*_):
            started.set()
            await asyncio.Event().wait()

        h.tools.handler = hang
        caller = asyncio.create_task(h.call("notes:add", ARGS))
        await started.wait()
    error = (await caller).error
    assert (error.code, error.partial_side_effects, error.idempotency_required) == (
        ErrorCode.INTERRUPTED,
        True,
        True,
    )


# ------------------------------------------------------------------ what a worker heard of, and who
# asks again


@pytest.mark.parametrize("name", ["mail:send", "sky:later"])
async def test_an_expired_call_that_a_worker_accepted_may_have_been_done(tmp_path, name):
    async with house(tmp_path) as h:
        mail = h.registry.entries["mail:send"]
        reads = {"side_effects": SideEffects.READ_ONLY} if name == "sky:later" else {}
        h.registry.entries[name] = replace(
            mail, definition=replace(mail.definition, name=name, queue_ttl_s=0.2, **reads)
        )
        h.uplink.up = False
        h.uplink.worker = lambda call: h.uplink.say(CallAccepted(call.call_id))
        answer = await h.call(name, {"text": "x"})
        await h.happened(CallCompleted)
        error = (await h.store.get(answer.meta["callId"]))["response"]["error"]
        assert error["code"] == "DEADLINE_EXPIRED"
        assert error.get("partialSideEffects", False) is (name == "mail:send")


async def test_a_redelivered_invocation_has_its_first_answer_though_its_tool_is_gone(tmp_path):
    async with house(tmp_path) as h:
        call = make("notes:add", {"text": "x"}, origin=CallOrigin.CLOUD)
        first = await h.orchestrator.call(call)
        h.registry.hide("notes:add", "disabled by the user")
        again = await h.orchestrator.call(call)
        assert again.data == first.data
        del h.registry.entries["notes:add"]
        assert (await h.orchestrator.call(call)).data == first.data


async def test_a_call_id_of_another_user_does_not_get_this_answer(tmp_path):
    async with house(tmp_path) as h:
        call = make("notes:list", {})
        await h.orchestrator.call(call)
        other = await h.orchestrator.call(replace(call, user_id="eve"))
        assert not other.meta.get("_idempotent_cache_hit")


async def test_a_kept_result_steers_nothing_again(tmp_path):
    async with house(tmp_path) as h:
        quiet = ToolResponse(
            data={"text": "sunny"}, intents=({"type": "SUPPRESS_AUDIO", "value": True},)
        )

        def work(call):
            h.uplink.say(CallAccepted(call.call_id))
            h.uplink.say(CallResult(call.call_id, quiet))

        h.uplink.worker = work
        await h.call("sky:now", {"text": "x"})
        h.orchestrator.session.apply({"type": "SUPPRESS_AUDIO", "value": False}, tool="test:test")
        h.uplink.up = False
        kept = await h.call("sky:now", {"text": "x"})
        assert kept.meta["stale"] is True
        assert not h.orchestrator.session.snapshot().suppress_audio


async def test_the_cloud_hears_at_once_when_nobody_can_be_asked(tmp_path):
    wearer = FakeAsk()
    wearer.nobody = "no glasses"
    async with house(tmp_path, wearer=wearer) as h:
        async with asyncio.timeout(20):
            answer = await h.call(
                "danger:erase", {"text": "x"}, origin=CallOrigin.CLOUD, ttl_s=30.0
            )
        assert answer.error.code is ErrorCode.SESSION_INACTIVE


async def test_a_never_holds_for_any_tool_whatever_its_author_says_of_it(tmp_path):
    async with house(tmp_path) as h:
        await h.confirmations.grant("local", "notes:add", Granted(Grant.NEVER))
        answer = await h.call("notes:add", {"text": "x"})
        assert answer.error.code is ErrorCode.DENIED
        assert not h.tools.runs


async def test_a_result_handed_in_here_is_told_to_whoever_has_the_call(tmp_path):
    async with house(tmp_path) as h:
        call_id = (await h.call("job:cloud", {"text": "x"})).meta["callId"]
        assert (
            await h.orchestrator.submit(call_id, DONE, user_id="local", session="")
            is Submission.TAKEN
        )
        assert [w[0] for w in h.uplink.withdrawn] == [call_id]


async def test_a_flood_of_intents_changes_the_session_sixteen_times_and_warns_once(
    tmp_path, caplog
):
    tools = FakeTools()

    async def flooding(call, _):
        return ToolResponse(data="x", intents=tuple({"type": "DANCE"} for _ in range(1000)))

    tools.handler = flooding
    async with house(tmp_path, tools=tools) as h:
        assert (await h.call("notes:list")).ok
    assert caplog.text.count("Unknown intent") == 16


async def test_waiting_for_the_network_is_no_slowness_of_the_tool(tmp_path):
    async with house(tmp_path) as h:
        mail = h.registry.entries["mail:send"]
        h.registry.entries["mail:send"] = replace(
            mail, definition=replace(mail.definition, latency_budget_ms=1)
        )
        h.uplink.up = False
        answer = await h.call("mail:send", {"text": "x"})
        await asyncio.sleep(0.01)
        h.uplink.say(CallResult(answer.meta["callId"], DONE))
        await h.happened(CallCompleted)
        assert not any(line["overBudget"] for line in h.audit)
