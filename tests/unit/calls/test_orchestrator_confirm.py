"""A call that needs a yes: asked once, decided once, on disk all the while; the token opens
exactly one door once.
"""

import asyncio
from dataclasses import replace

import pytest

from edge.core.grants import Grant, Granted
from edge.runtime.events import CallCompleted, ConfirmationAsked, ConfirmationDecided
from firmware_bridge.messages import Answer
from tests.unit.calls.orchestrator_house import QUICK, FakeAsk, FakeRegistry, house, make
from tests.unit.calls.test_visibility import answering
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    ErrorType,
    Named,
    Source,
    ToolFailure,
    ToolResponse,
)

ARGS = {"text": "all"}
WORDS = """\
App: Erase?
text: all
top k: 5
danger:erase, from this device. It says of itself: "d\""""


def token_of(answer):
    return answer.error.confirmation_request["token"]


@pytest.mark.requirement("S2-95", "S2-100")
async def test_a_yes_runs_the_call_once_and_its_caller_gets_the_result(
    tmp_path,
):
    async with house(tmp_path) as h:
        caller = asyncio.create_task(h.call("danger:erase", ARGS))
        question = await h.wearer.question()
        assert (question.text, question.timeout_s) == (
            WORDS,
            300.0,
        )
        assert not h.tools.runs
        assert (await h.store.recent(1, pending=True))[0]["state"] == "AWAITING_CONFIRMATION"
        h.wearer.say(Answer.ALLOW)
        answer = await caller
        assert answer.ok
        assert len(h.tools.runs) == 1


async def test_a_no_ends_the_call_and_names_who_decided(tmp_path):
    async with house(tmp_path) as h:
        caller = asyncio.create_task(h.call("danger:erase", ARGS))
        await h.wearer.question()
        h.wearer.say(Answer.DENY)
        answer = await caller
        assert (answer.error.code, answer.error.type) == (ErrorCode.DENIED, ErrorType.PERMANENT)
        assert answer.error.message == "The wearer said no to erase"
        assert not h.tools.runs
        assert h.glasses.texts() == []  # no lecture for what the wearer just did
        decided = await h.happened(ConfirmationDecided)
        assert (decided.outcome, decided.by) == ("denied", "the wearer")


@pytest.mark.requirement("I13-consent-answered")
async def test_a_wearer_who_asked_and_says_no_reads_it_once(tmp_path):
    """On the lens it is said where the question was, so it is no result too."""
    async with house(tmp_path) as h:
        caller = asyncio.create_task(h.call("danger:erase", ARGS, origin=CallOrigin.GLASSES))
        question = await h.wearer.question()
        assert (question.accepted, question.refused) == (
            "Yes, working…",
            "You said no. Nothing was changed.",
        )
        h.wearer.say(Answer.DENY)
        answer = await caller
        assert answer.error.code is ErrorCode.DENIED
        assert answer.meta["delivery"] == "none"
        assert h.glasses.texts() == []


async def test_who_said_yes_sees_that_a_call_without_an_answer_is_over(tmp_path):
    async with house(tmp_path, tools=answering(ToolResponse(data=None))) as h:
        caller = asyncio.create_task(h.call("danger:erase", ARGS))
        await h.wearer.question()
        h.wearer.say(Answer.ALLOW)
        assert (await caller).meta["delivery"] == "shown"
        assert h.glasses.texts() == ["Done"]


@pytest.mark.requirement("S2-71", "C-22", "I11-consent-everywhere")
async def test_a_caller_who_does_not_wait_gets_the_confirmation_request(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.orchestrator.begin(make("danger:erase", ARGS))
        error = answer.error
        assert (error.type, error.retryable, error.partial_side_effects) == (
            ErrorType.CONFIRMATION_REQUIRED,
            False,
            False,
        )
        request = error.confirmation_request
        assert set(request) == {
            "token",
            "expires",
            "tool",
            "args",
            "preview",
            "origin",
            "particulars",
        }
        assert request["particulars"] == [
            "App: Erase?",
            "text: all",
            "top k: 5",
            'danger:erase, from this device. It says of itself: "d"',
        ]
        assert (request["tool"], request["preview"]) == ("danger:erase", "Execute danger:erase")
        assert request["args"] == {"text": "all", "top_k": 5}
        assert len(bytes.fromhex(request["token"])) == 16
        assert answer.meta["callId"]
        assert (await h.wearer.question()).text.split("\n") == request["particulars"]
        asked = await h.happened(ConfirmationAsked)
        assert list(asked.particulars) == request["particulars"]
        assert "token" not in str(asked)
        assert request["token"] not in (tmp_path / "glassd.db").read_bytes().decode("latin-1")
        assert request["token"] not in (tmp_path / "glassd.db-wal").read_bytes().decode("latin-1")


@pytest.mark.requirement("S2-97", "C-14")
async def test_a_token_runs_its_call_once_and_is_then_used(tmp_path):
    async with house(tmp_path) as h:
        call = make("danger:erase", ARGS)
        token = token_of(await h.orchestrator.begin(call))
        await h.wearer.question()
        done = await h.orchestrator.confirm(token, allow=True, call=make("danger:erase", ARGS))
        assert done.ok
        assert done.meta["callId"] == call.call_id
        assert [run.call_id for run in h.tools.runs] == [call.call_id]
        assert h.wearer.withdrawn == 1  # the question left the lens
        again = await h.orchestrator.confirm(token, allow=True, call=make("danger:erase", ARGS))
        assert (again.error.type, again.error.code) == (
            ErrorType.CONFIRMATION_EXPIRED,
            ErrorCode.USED,
        )
        assert len(h.tools.runs) == 1


@pytest.mark.requirement("S2-96")
@pytest.mark.parametrize(
    "other",
    [
        {"args": {"text": "some"}},
        {"name": "notes:add"},
        {"session": "other"},
        {"user_id": "mallory"},
        {"args": {"text": 5}},
        {"name": "not:there"},
    ],
)
async def test_a_token_of_another_call_is_a_mismatch_and_stays_open(tmp_path, other):
    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        other = dict(other)
        wrong = make(other.pop("name", "danger:erase"), other.pop("args", ARGS), **other)
        answer = await h.orchestrator.confirm(token, allow=True, call=wrong)
        assert answer.error.code is ErrorCode.MISMATCH
        assert not h.tools.runs
        assert (await h.orchestrator.confirm(token, allow=True, call=make("danger:erase", ARGS))).ok


async def test_an_unknown_token_is_expired(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.orchestrator.confirm("00" * 16, allow=True)
        assert (answer.error.type, answer.error.code) == (
            ErrorType.CONFIRMATION_EXPIRED,
            ErrorCode.EXPIRED,
        )


@pytest.mark.requirement("S2-72")
async def test_silence_is_a_no_and_its_token_is_over(tmp_path):
    async with house(tmp_path, limits=replace(QUICK, confirm_s=0.05)) as h:
        answer = await h.orchestrator.begin(make("danger:erase", ARGS))
        done = await h.happened(CallCompleted)
        assert not done.ok
        story = await h.store.get(answer.meta["callId"])
        assert (story["state"], story["code"]) == ("EXPIRED", "EXPIRED")
        late = await h.orchestrator.confirm(token_of(answer), allow=True)
        assert late.error.type is ErrorType.CONFIRMATION_EXPIRED
        assert not h.tools.runs


async def test_a_tap_and_a_token_at_once_run_it_once(tmp_path):
    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        await h.wearer.question()
        h.wearer.say(Answer.ALLOW)
        answers = await asyncio.gather(
            *(h.orchestrator.confirm(token, allow=True) for _ in range(4))
        )
        if not any(a.ok for a in answers):
            await h.happened(CallCompleted)
        assert len(h.tools.runs) == 1
        assert sum(a.ok for a in answers) <= 1
        assert {a.error.code for a in answers if a.error} <= {ErrorCode.USED}


async def test_a_caller_out_of_patience_gets_the_request_and_the_call_continues(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.call("danger:erase", ARGS, ttl_s=0.05)
        assert answer.error.code is ErrorCode.CONFIRMATION_REQUIRED
        h.wearer.say(Answer.ALLOW)
        done = await h.happened(CallCompleted)
        assert done.ok
        assert (await h.store.get(answer.meta["callId"]))["response"]["ok"] is True
        assert len(h.tools.runs) == 1


async def test_with_nobody_to_ask_the_caller_gets_the_request_at_once(tmp_path):
    wearer = FakeAsk()
    wearer.nobody = "no glasses"
    async with house(tmp_path, wearer=wearer) as h:
        answer = await h.call("danger:erase", ARGS)
        assert answer.error.code is ErrorCode.CONFIRMATION_REQUIRED
        assert answer.error.message.endswith("the wearer cannot be asked: no glasses")
        assert answer.error.suggestion == "Run glassd confirm in a terminal"
        assert (await h.orchestrator.confirm(token_of(answer), allow=True)).ok


async def test_a_call_off_takes_the_question_away_and_runs_nothing(tmp_path):
    async with house(tmp_path) as h:
        call = make("danger:erase", ARGS)
        caller = asyncio.create_task(h.orchestrator.call(call))
        await h.wearer.question()
        assert await h.orchestrator.cancel(call.call_id, "changed my mind")
        answer = await caller
        assert answer.error.code is ErrorCode.CANCELLED
        assert not h.tools.runs
        assert h.wearer.withdrawn == 1


@pytest.mark.requirement("S2-98")
async def test_no_handler_sees_a_token(tmp_path):
    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        await h.orchestrator.confirm(token, allow=True)
        assert token not in repr(h.tools.runs)


async def test_always_and_never_are_remembered_per_tool_and_can_be_taken_back(tmp_path):
    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        assert (await h.orchestrator.confirm(token, allow=True, grant=Grant.ALWAYS)).ok
        assert (await h.call("danger:erase", {"text": "more"})).ok
        assert len(h.wearer.asked) == 1
        await h.confirmations.grant("local", "danger:erase", Granted(Grant.NEVER))
        refused = await h.call("danger:erase", ARGS)
        assert refused.error.code is ErrorCode.DENIED
        assert refused.error.suggestion == "glassd grants --revoke danger:erase"
        await h.confirmations.grant("local", "danger:erase", Granted(Grant.ONCE))
        caller = asyncio.create_task(h.call("danger:erase", ARGS))
        await h.wearer.question(2)
        h.wearer.say(Answer.ALLOW)
        assert (await caller).ok


async def test_the_cloud_waits_for_the_decision_and_gets_one_result(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.call("danger:erase", ARGS, origin=CallOrigin.CLOUD, ttl_s=0.1)
        assert answer.error.code is ErrorCode.EXPIRED
        assert h.wearer.asked[0].timeout_s <= 0.1
        assert not h.tools.runs


async def test_a_restart_asks_again_with_the_time_left_and_runs_once(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.orchestrator.begin(make("danger:erase", ARGS))
        await h.wearer.question()
    async with house(tmp_path) as h:
        question = await h.wearer.question()
        assert 0 < question.timeout_s < 300.0
        h.wearer.say(Answer.ALLOW)
        done = await h.happened(CallCompleted)
        assert done.ok
        assert [run.call_id for run in h.tools.runs] == [answer.meta["callId"]]


async def test_a_token_outlives_a_restart(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.orchestrator.begin(make("danger:erase", ARGS))
    async with house(tmp_path) as h:
        done = await h.orchestrator.confirm(
            token_of(answer), allow=True, call=make("danger:erase", ARGS)
        )
        assert done.ok
        assert done.meta["callId"] == answer.meta["callId"]
        assert len(h.tools.runs) == 1


async def test_a_question_whose_time_ran_out_while_the_daemon_was_down_is_expired(tmp_path):
    async with house(tmp_path, limits=replace(QUICK, confirm_s=0.2)) as h:
        answer = await h.orchestrator.begin(make("danger:erase", ARGS, ttl_s=100.0))
    await asyncio.sleep(0.25)
    async with house(tmp_path) as h:
        done = await h.happened(CallCompleted)
        assert not done.ok
        assert (await h.store.get(answer.meta["callId"]))["state"] == "EXPIRED"
        assert not h.wearer.asked
        assert not h.tools.runs


async def test_a_call_that_cannot_go_anywhere_asks_nobody(tmp_path):
    async with house(tmp_path) as h:
        h.uplink.up = False
        h.registry.entries["shop:buy"] = replace(
            h.registry.entries["shop:buy"],
            definition=replace(
                h.registry.entries["shop:buy"].definition, requires_confirmation="always"
            ),
        )
        answer = await h.call("shop:buy", ARGS)
        assert answer.error.code is ErrorCode.OFFLINE
        assert not h.wearer.asked


# ------------------------------------------------------------------ what a grant is bound to


def change(h, name, **changes):
    """The tool behind a name becomes another one."""
    entry = h.registry.entries[name]
    h.registry.entries[name] = replace(entry, definition=replace(entry.definition, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "Erases everything."},
        {
            "input_schema": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "more": {}},
            }
        },
        {"endpoint": "https://else.example/erase"},
        {"source": Source.CLOUD},
        {"raw": {"title": "Tidy up"}},
        {"version": "2"},
    ],
)
@pytest.mark.requirement("CONSENT-grants")
async def test_always_ends_when_the_tool_changes_and_the_next_call_asks(tmp_path, changes):
    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        assert (await h.orchestrator.confirm(token, allow=True, grant=Grant.ALWAYS)).ok
        assert (await h.call("danger:erase", {"text": "more"})).ok
        before, ran = h.registry.snapshot().find("danger:erase").definition, len(h.tools.runs)
        change(h, "danger:erase", **changes)
        assert token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        assert (len(h.tools.runs), len(h.wearer.asked)) == (ran, 2)
        change(h, "danger:erase", **{name: getattr(before, name) for name in changes})
        assert (await h.call("danger:erase", {"text": "again"})).ok, (
            "the very tool that was allowed"
        )


@pytest.mark.requirement("CONSENT-grants")
async def test_never_holds_whatever_becomes_of_the_tool(tmp_path):
    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        await h.orchestrator.confirm(token, allow=False, grant=Grant.NEVER)
        change(h, "danger:erase", description="Harmless.", requires_confirmation="never")
        assert (await h.call("danger:erase", ARGS)).error.code is ErrorCode.DENIED
        assert not h.tools.runs


@pytest.mark.requirement("CONSENT-grants")
async def test_an_always_from_before_it_was_bound_asks_again(tmp_path):
    async with house(tmp_path) as h:
        await h.confirmations.grant("local", "danger:erase", Granted(Grant.ALWAYS))
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        assert not h.tools.runs
        assert (await h.orchestrator.confirm(token, allow=True)).ok
        assert (await h.confirmations.granted("local", "danger:erase")).grant is Grant.ALWAYS, (
            "a yes for once changes nothing that lasts"
        )


# ------------------------------------------------------------------ decided by the call's id


async def test_the_owner_sees_open_questions_with_all_arguments_and_decides_by_id(tmp_path):
    async with house(tmp_path) as h:
        await h.orchestrator.begin(make("danger:erase", {**ARGS}, call_id="c1"))
        (question,) = h.orchestrator.questions()
        assert (question["call_id"], question["tool"], question["args"], question["origin"]) == (
            "c1",
            "danger:erase",
            {"top_k": 5, **ARGS},
            "this device",
        )
        assert 0 < question["left_s"] <= 300
        assert (await h.orchestrator.decide("c1", allow=True)).ok
        assert (await h.orchestrator.decide("c1", allow=True)).error.code is ErrorCode.USED
        assert (
            await h.orchestrator.decide("no such call", allow=True)
        ).error.code is ErrorCode.EXPIRED
        assert (h.orchestrator.questions(), len(h.tools.runs)) == ([], 1)


async def test_an_id_alone_never_runs_what_was_refused(tmp_path):
    async with house(tmp_path) as h:
        await h.orchestrator.begin(make("danger:erase", ARGS, call_id="c1"))
        assert (await h.orchestrator.decide("c1", allow=False)).error.code is ErrorCode.DENIED
        assert (await h.orchestrator.decide("c1", allow=True)).error.code is ErrorCode.USED
        assert not h.tools.runs


# ------------------------------------------------------------------ what runs is what was shown


def _replace(h, **changes):
    entry = h.registry.entries["danger:erase"]
    h.registry.entries["danger:erase"] = replace(
        entry, definition=replace(entry.definition, **changes)
    )


@pytest.mark.requirement("I11-consent-frozen")
@pytest.mark.parametrize(
    "changes",
    [
        {"description": "pays"},
        {"input_schema": {"type": "object"}},
        {"source": Source.CLOUD},
        {"raw": {"x": 1}},
    ],
)
@pytest.mark.parametrize("by_token", [False, True])
async def test_a_yes_does_not_hold_for_a_tool_that_changed_meanwhile(tmp_path, changes, by_token):
    async with house(tmp_path) as h:
        call = make("danger:erase", ARGS)
        caller = asyncio.create_task(h.orchestrator.call(call))
        await h.wearer.question()
        _replace(h, **changes)
        h.wearer.say(Answer.ALLOW)
        answer = await caller
        assert answer.error.code is ErrorCode.MISMATCH
        assert "changed after its confirmation was requested" in answer.error.message
        assert not h.tools.runs
        if by_token:
            token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
            _replace(h, version="9.9.9")
            assert (
                await h.orchestrator.confirm(token, allow=True)
            ).error.code is ErrorCode.MISMATCH
            assert not h.tools.runs


@pytest.mark.requirement("I11-consent-frozen")
async def test_a_yes_to_a_call_holds_for_its_answers_to_the_tool_only(tmp_path):
    def sent(to):
        return make(
            "danger:erase", ARGS, input={"inputResponses": {"who": {"content": {"to": to}}}}
        )

    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(sent("mum")))
        for other in (sent("mallory"), make("danger:erase", ARGS)):
            assert (
                await h.orchestrator.confirm(token, allow=True, call=other)
            ).error.code is ErrorCode.MISMATCH
        assert not h.tools.runs
        assert (await h.orchestrator.confirm(token, allow=True, call=sent("mum"))).ok


async def test_a_token_counts_for_a_call_that_takes_questions_and_for_one_that_does_not(tmp_path):
    """`glassd call` at a terminal takes them, `glassd call --confirm TOKEN` does not."""
    async with house(tmp_path) as h:
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS, input={})))
        same = make("danger:erase", ARGS)
        assert (await h.orchestrator.confirm(token, allow=True, call=same)).ok
        assert len(h.tools.runs) == 1


@pytest.mark.requirement("I11-consent-frozen")
async def test_a_tool_that_is_gone_does_not_run_on_a_yes(tmp_path):
    async with house(tmp_path) as h:
        caller = asyncio.create_task(h.call("danger:erase", ARGS))
        await h.wearer.question()
        del h.registry.entries["danger:erase"]
        h.wearer.say(Answer.ALLOW)
        assert (await caller).error.code is ErrorCode.MISMATCH
        assert not h.tools.runs


@pytest.mark.requirement("I11-consent-frozen")
async def test_arguments_changed_while_the_question_is_open_do_not_run(tmp_path):
    async with house(tmp_path) as h:
        held = {"text": "all", "to": {"who": "mum"}}
        caller = asyncio.create_task(h.call("danger:erase", held))
        question = await h.wearer.question()
        held["to"]["who"] = "mallory"
        held["text"] = "other"
        h.wearer.say(Answer.ALLOW)
        assert (await caller).ok
        assert "to, who (not declared): mum" in question.text
        assert dict(h.tools.runs[0].args) == {"text": "all", "to": {"who": "mum"}, "top_k": 5}


@pytest.mark.requirement("I11-consent-frozen")
async def test_a_tool_that_changed_over_a_restart_is_not_asked_again(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.orchestrator.begin(make("danger:erase", ARGS))
        await h.wearer.question()
    registry = FakeRegistry()
    registry.entries["danger:erase"] = replace(
        registry.entries["danger:erase"],
        definition=replace(registry.entries["danger:erase"].definition, description="pays"),
    )
    async with house(tmp_path, registry=registry) as h:
        done = await h.happened(CallCompleted)
        assert not done.ok
        assert (await h.store.get(answer.meta["callId"]))["code"] == "MISMATCH"
        assert (
            await h.orchestrator.confirm(token_of(answer), allow=True)
        ).error.type is ErrorType.CONFIRMATION_EXPIRED
        assert not h.wearer.asked
        assert not h.tools.runs


class Names:
    """What `top_k` stands for now."""

    def __init__(self, words="the best"):
        self.words = words
        self.gone = False

    async def __call__(self, _tool, call):
        if self.gone:
            raise ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, "there is no list 5")
        assert call.args["top_k"] == 5
        return {"top_k": Named("list", self.words)}


@pytest.mark.requirement("I11-consent-complete", "I11-consent-everywhere")
async def test_what_an_argument_stands_for_is_asked_about_wherever_it_is_asked(tmp_path):
    async with house(tmp_path, names=Names()) as h:
        call = make("danger:erase", ARGS)
        answer = await h.orchestrator.begin(call)
        request = answer.error.confirmation_request
        assert request["particulars"][1:3] == ["text: all", "list: the best"]
        assert request["args"] == {"text": "all", "top_k": 5}
        assert "list: the best" in (await h.wearer.question()).text
        token = token_of(answer)
        assert (await h.orchestrator.confirm(token, allow=True, call=make(call.tool, ARGS))).ok
        assert dict(h.tools.runs[0].args) == {"text": "all", "top_k": 5}


async def test_nobody_is_asked_about_a_thing_that_is_not_there(tmp_path):
    names = Names()
    async with house(tmp_path, names=names) as h:
        caller = asyncio.create_task(h.call("danger:erase", ARGS))
        await h.wearer.question()
        names.gone = True
        h.wearer.say(Answer.ALLOW)
        assert (await caller).error.code is ErrorCode.MISMATCH
        answer = await h.call("danger:erase", ARGS)
        assert answer.error.message == "there is no list 5"
        assert len(h.wearer.asked) == 1
        assert not h.tools.runs


@pytest.mark.requirement("I11-consent-frozen")
async def test_a_yes_does_not_hold_for_what_stands_for_something_else_now(tmp_path):
    names = Names()
    async with house(tmp_path, names=names) as h:
        caller = asyncio.create_task(h.call("danger:erase", ARGS))
        await h.wearer.question()
        names.words = "the worst"
        h.wearer.say(Answer.ALLOW)
        assert (await caller).error.code is ErrorCode.MISMATCH
        token = token_of(await h.orchestrator.begin(make("danger:erase", ARGS)))
        names.words = "the best"
        done = await h.orchestrator.confirm(token, allow=True, call=make("danger:erase", ARGS))
        assert done.error.code is ErrorCode.MISMATCH
        assert not h.tools.runs


@pytest.mark.requirement("I11-consent-frozen")
async def test_a_question_is_asked_again_after_a_restart_if_it_is_about_the_same(tmp_path):
    async with house(tmp_path, names=Names()) as h:
        answer = await h.orchestrator.begin(make("danger:erase", ARGS))
        await h.wearer.question()
    async with house(tmp_path, names=Names()) as h:
        assert "list: the best" in (await h.wearer.question()).text
    async with house(tmp_path, names=Names("the worst")) as h:
        await h.happened(CallCompleted)
        assert (await h.store.get(answer.meta["callId"]))["code"] == "MISMATCH"
        assert not h.wearer.asked
        assert not h.tools.runs


@pytest.mark.requirement("I11-consent-complete")
async def test_arguments_too_long_to_be_shown_are_refused_unasked(tmp_path):
    async with house(tmp_path) as h:
        answer = await h.call("danger:erase", {"text": "x" * 40_000})
        assert answer.error.code is ErrorCode.INVALID_ARGUMENTS
        assert "too long to be shown" in answer.error.message
        assert not h.wearer.asked
        assert not h.tools.runs


@pytest.mark.requirement("I11-consent-frozen")
async def test_a_definition_that_needs_a_yes_does_not_run_unasked_when_it_changes(tmp_path):
    async with house(tmp_path) as h:
        granted, entry = h.confirmations.granted, h.registry.entries["danger:erase"]
        tame = replace(entry.definition, version="2.0.0", requires_confirmation="never")

        async def slowly(*about):
            found = await granted(*about)
            h.registry.entries["danger:erase"] = replace(entry, definition=tame)
            return found

        h.confirmations.granted = slowly
        assert (await h.call("danger:erase", ARGS)).ok
        assert [version for _, version in h.tools.ran] == ["2.0.0"]
