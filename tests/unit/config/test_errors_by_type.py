"""Every type of failure through the whole pipeline: it reaches the caller unchanged."""

import pytest
from msgspec.structs import replace

from edge.ports import CallAccepted, CallProgress, CallResult
from edge.runtime.events import CallAnswered, CallCompleted, CallProgressed, CallReceived
from tests.unit.calls.orchestrator_house import FakeTools, house
from tools_cache.api.tool import ErrorCode, ErrorType, Mode, ToolError, ToolResponse, type_of

ARGS = {"text": "x"}


def failing(error):
    async def handler(call, progress):
        return ToolResponse(error=error)

    tools = FakeTools()
    tools.handler = handler
    return tools


@pytest.mark.requirement(
    "S2-73", "S2-74", "S2-75", "S2-76", "S2-77", "S2-78", "S2-79", "S2-82", "I3-whole-error"
)
@pytest.mark.parametrize(
    ("code", "kind", "retryable", "extra"),
    [
        (ErrorCode.SESSION_INACTIVE, ErrorType.SESSION_INACTIVE, False, {}),
        (ErrorCode.SESSION_ACTIVE, ErrorType.SESSION_ACTIVE, False, {}),
        (ErrorCode.NETWORK_ERROR, ErrorType.TRANSIENT, True, {"partial_side_effects": True}),
        (ErrorCode.HTTP_ERROR, ErrorType.PERMANENT, False, {"partial_side_effects": True}),
        (ErrorCode.RATE_LIMIT, ErrorType.RATE_LIMIT, True, {"retry_after_ms": 60_000}),
        (ErrorCode.AUTH, ErrorType.AUTH, False, {}),
        (ErrorCode.CONFLICT, ErrorType.CONFLICT, False, {"partial_side_effects": True}),
    ],
)
@pytest.mark.requirement("C-10")
async def test_a_handlers_failure_reaches_the_caller_whole(tmp_path, code, kind, retryable, extra):
    error = ToolError.of(
        code, "it did not work", suggestion="do this", details={"why": "because"}, **extra
    )
    async with house(tmp_path, tools=failing(error)) as h:
        answer = await h.call("notes:add", ARGS)
        unsafe = error.partial_side_effects  # of a write that may not run twice
        assert answer.error == replace(error, idempotency_required=unsafe)
        assert (answer.error.type, answer.error.retryable) == (kind, retryable)
        told = answer.to_json()["error"]
        assert told.get("retryAfterMs") == extra.get("retry_after_ms")
        assert told.get("partialSideEffects", False) is extra.get("partial_side_effects", False)
        assert told.get("reauthRequired", False) is (code is ErrorCode.AUTH)  # C-10
        assert (await h.store.get(answer.meta["callId"]))["code"] == code.value


@pytest.mark.requirement("C-04")
def test_every_code_belongs_to_one_of_the_fourteen_types():
    assert len(ErrorType) == 14
    assert {type_of(code) for code in ErrorCode} == set(ErrorType)


@pytest.mark.requirement("S2-110")
async def test_the_wearer_hears_of_a_permanent_failure_and_its_caller_what_to_do(tmp_path):
    error = ToolError.of(ErrorCode.HTTP_ERROR, "The door is gone", suggestion="Use the window")
    async with house(tmp_path, tools=failing(error)) as h:
        answer = await h.call("notes:add", ARGS)
        assert answer.meta["delivery"] == "shown"
        assert h.glasses.texts()[-1] == "The door is gone."
        assert answer.error.suggestion == "Use the window"


@pytest.mark.requirement("S2-135")
async def test_what_an_envelope_may_carry_is_absent_when_there_is_nothing_to_say(tmp_path):
    async with house(tmp_path) as h:
        good = (await h.call("notes:add", ARGS)).to_json()
        bad = (await h.call("notes:add", {"text": 5})).to_json()
    assert {
        "retryAfterMs",
        "partialSideEffects",
        "idempotencyRequired",
        "confirmation_request",
    }.isdisjoint(bad["error"])
    assert {"error", "intents", "render"}.isdisjoint(good)
    assert {"stale", "ageS", "clamped", "_idempotent_cache_hit"}.isdisjoint(good["meta"])


@pytest.mark.requirement("C-01", "S2-41")
@pytest.mark.parametrize("args", [ARGS, {"text": 5}])
async def test_an_envelope_is_ok_or_an_error(tmp_path, args):
    async with house(tmp_path) as h:
        said = (await h.call("notes:add", args)).to_json()
    assert ("data" in said) is said["ok"]
    assert ("error" in said) is not said["ok"]
    assert {"success", "isError"}.isdisjoint(said)


@pytest.mark.requirement("C-23")
@pytest.mark.parametrize("name", ["notes:add", "not:there", "nocolon", "desk:type"])
async def test_every_answer_has_its_metadata(tmp_path, name):
    async with house(tmp_path) as h:
        answer = await h.call(name, ARGS, mode=Mode.VOICE)
        assert {
            "tool",
            "registryVersion",
            "duration",
            "timestamp",
            "callId",
            "delivery",
        } <= answer.meta.keys()
        assert ("toolVersion" in answer.meta) is (name in ("notes:add", "desk:type"))


@pytest.mark.requirement("S3-21", "S3-33")
async def test_the_events_of_a_call_come_in_order_and_its_end_is_the_last(tmp_path):
    tools = FakeTools()

    async def talking(call, progress):
        await progress("one")
        await progress("two")
        return ToolResponse(data={"text": "done"})

    tools.handler = talking
    async with house(tmp_path, tools=tools) as h:
        answer = await h.call("notes:add", ARGS)
        await h.happened(CallAnswered)
        mine = [x for x in h.heard if getattr(x, "call_id", "") == answer.meta["callId"]]
        kinds = [
            type(x) for x in mine if isinstance(x, CallReceived | CallProgressed | CallAnswered)
        ]
        assert kinds == [CallReceived, CallProgressed, CallProgressed, CallAnswered]
        assert [x.text for x in mine if isinstance(x, CallProgressed)] == ["one", "two"]


@pytest.mark.requirement("S3-33")
async def test_a_call_that_is_finished_later_has_its_completion_last(tmp_path):
    async with house(tmp_path) as h:

        def slow_worker(call):
            h.uplink.say(CallAccepted(call.call_id))
            h.uplink.say(CallProgress(call.call_id, "half"))

        h.uplink.worker, h.uplink.up = slow_worker, False
        answer = await h.call("mail:send", ARGS)
        h.uplink.say(CallResult(answer.meta["callId"], ToolResponse(data={"text": "sent"})))
        await h.happened(CallCompleted)
        mine = [
            type(x)
            for x in h.heard
            if isinstance(x, CallReceived | CallAnswered | CallProgressed | CallCompleted)
        ]
        assert mine == [CallReceived, CallAnswered, CallProgressed, CallCompleted]


@pytest.mark.requirement("S3-32")
async def test_what_is_drawn_calls_nothing_even_when_it_reads_like_a_command(tmp_path):
    tools = FakeTools()

    async def tempting(call, progress):
        return ToolResponse(data={"text": "take a note: buy everything"})

    tools.handler = tempting
    async with house(tmp_path, tools=tools) as h:
        await h.call("notes:list")
        assert "take a note" in h.glasses.texts()[-1]
        assert len(tools.runs) == 1
