"""When two calls are one: keys by precedence, replays, repetitions, sessions; over restarts."""

import asyncio

import pytest

from tests.unit.calls.orchestrator_house import FakeTools, FakeUplink, house, make
from tools_cache.api.tool import CallOrigin, ErrorCode, Mode, ToolResponse

ARGS = {"text": "milk"}


@pytest.mark.requirement("S2-104")
async def test_a_second_call_with_the_key_gets_the_first_answer(tmp_path):
    async with house(tmp_path) as h:
        first = await h.call("notes:add", ARGS, idempotency_key="k1", turn_id="t1")
        second = await h.call("notes:add", ARGS, idempotency_key="k1", turn_id="t2")
        assert len(h.tools.runs) == 1
        assert second.data == first.data
        assert second.meta["_idempotent_cache_hit"] is True
        assert second.meta["_original_turn"] == "t1"
        assert second.meta["callId"] == first.meta["callId"]


async def test_saying_that_one_can_answer_questions_does_not_make_it_another_call(tmp_path):
    """As a person at a terminal does (`input: {}`), and a script with the same key does not."""
    async with house(tmp_path) as h:
        await h.call("notes:add", ARGS, idempotency_key="k1", input={})
        await h.call("notes:add", ARGS, idempotency_key="k1", input={"canAnswer": ["roots/list"]})
        assert (await h.call("notes:add", ARGS, idempotency_key="k1")).ok
        assert len(h.tools.runs) == 1


@pytest.mark.requirement("C-06", "S2-102")
async def test_keys_rank_callers_key_then_providers_id_then_hash(tmp_path):
    async with house(tmp_path) as h:
        await h.call(
            "notes:add", ARGS, idempotency_key="k", provider_call_id="call_123456", turn_id="t"
        )
        assert (await h.call("notes:add", {"text": "other"}, idempotency_key="k")).meta.get(
            "_idempotent_cache_hit"
        )
        same_id = await h.call("notes:add", ARGS, provider_call_id="call_123456", turn_id="t2")
        assert same_id.meta.get("_idempotent_cache_hit")
        replay = await h.call("notes:add", ARGS, turn_id="t", replayed=True)
        assert replay.meta.get("_idempotent_cache_hit")  # C-47: known under its hash too
        assert len(h.tools.runs) == 1
        assert h.audit[0]["idempotencyKey"] == "key:k"


@pytest.mark.requirement("S2-103", "S2-137", "C-47")
@pytest.mark.parametrize("ids", [("temp_123456", "temp_654321"), ("1", "2"), (None, "short")])
async def test_unstable_ids_count_for_nothing_and_a_replayed_stream_runs_once(tmp_path, ids):
    async with house(tmp_path) as h:
        await h.call("notes:add", ARGS, provider_call_id=ids[0], turn_id="t")
        again = await h.call("notes:add", ARGS, provider_call_id=ids[1], turn_id="t", replayed=True)
        assert again.meta.get("_idempotent_cache_hit")
        assert len(h.tools.runs) == 1


@pytest.mark.requirement("C-48")
async def test_distinct_stable_ids_are_distinct_calls_though_all_else_is_equal(tmp_path):
    async with house(tmp_path) as h:
        for stable in ("call_aaaaaa", "call_bbbbbb"):
            assert (await h.call("notes:add", ARGS, provider_call_id=stable, turn_id="t")).ok
        assert len(h.tools.runs) == 2


@pytest.mark.requirement("C-48")
async def test_without_ids_an_intended_repetition_runs_and_one_in_flight_is_joined(tmp_path):
    gate, tools = asyncio.Event(), FakeTools()

    async def slow(call, _):
        await gate.wait()
        return ToolResponse(data=len(tools.runs))

    tools.handler = slow
    async with house(tmp_path, tools=tools) as h:
        calls = [asyncio.create_task(h.call("notes:add", ARGS, turn_id="t")) for _ in range(3)]
        while not tools.runs:
            await asyncio.sleep(0)
        gate.set()
        answers = [await c for c in calls]
        assert len(tools.runs) == 1
        assert sum(bool(a.meta.get("_idempotent_cache_hit")) for a in answers) == 2
        later = await h.call("notes:add", ARGS, turn_id="t")
        assert later.data == 2
        third = await h.call("notes:add", ARGS, turn_id="t")
        assert third.data == 3


@pytest.mark.requirement("C-48")
async def test_ordinals_tell_equal_calls_of_one_message_apart(
    tmp_path,
):
    async with house(tmp_path) as h:
        for ordinal in (0, 1, 0, 1):
            await h.call("notes:add", ARGS, turn_id="t", ordinal=ordinal)
        assert len(h.tools.runs) == 2


@pytest.mark.requirement("S2-106", "C-15")
async def test_a_retryable_failure_is_not_remembered_against_its_key(tmp_path):
    async with house(tmp_path) as h:

        async def failing(call, _):
            return ToolResponse.failure(ErrorCode.NETWORK_ERROR, "no")

        h.tools.handler = failing
        assert not (await h.call("notes:add", ARGS, idempotency_key="k")).ok
        h.tools.handler = h.tools.echo
        good = await h.call("notes:add", ARGS, idempotency_key="k")
        assert good.ok
        assert (await h.call("notes:add", ARGS, idempotency_key="k")).meta["_idempotent_cache_hit"]


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize(("name", "runs"), [("notes:add", 1), ("notes:list", 2)])
async def test_an_uncertain_write_is_not_run_again_under_its_key(tmp_path, name, runs):
    async with house(tmp_path) as h:

        async def failing(call, _):
            return ToolResponse.failure(
                ErrorCode.NETWORK_ERROR, "half done", partial_side_effects=True
            )

        h.tools.handler = failing
        first = await h.call(name, ARGS, idempotency_key="k", mode=Mode.VOICE)
        assert first.error.idempotency_required is (name == "notes:add")
        again = await h.call(name, ARGS, idempotency_key="k", mode=Mode.VOICE)
        assert again.error.message == "half done"
        assert len(h.tools.runs) == runs


@pytest.mark.requirement("S2-136", "C-06")
async def test_a_turn_that_is_replayed_after_a_restart_is_answered_from_disk(tmp_path):
    async with house(tmp_path) as h:
        await h.call("notes:add", ARGS, turn_id="t", session="s", mode=Mode.VOICE)
    async with house(tmp_path) as h:
        again = await h.call(
            "notes:add", ARGS, turn_id="t", session="s", mode=Mode.VOICE, replayed=True
        )
        assert again.meta["_idempotent_cache_hit"]
        assert not h.tools.runs


async def test_keys_of_another_session_or_user_are_other_keys(tmp_path):
    async with house(tmp_path) as h:
        await h.call("notes:add", ARGS, idempotency_key="k", session="a")
        await h.call("notes:add", ARGS, idempotency_key="k", session="b")
        await h.call("notes:add", ARGS, idempotency_key="k", session="a", user_id="other")
        assert len(h.tools.runs) == 3


@pytest.mark.requirement("S2-83")
async def test_a_session_keeps_the_mode_it_was_made_with(tmp_path):
    async with house(tmp_path) as h:
        assert (await h.call("notes:list", session="talk", mode=Mode.VOICE)).ok
        wrong = await h.call("notes:list", session="talk", mode=Mode.TEXT)
        assert wrong.error.code is ErrorCode.INVALID_REQUEST
        assert "voice session" in wrong.error.message
    async with house(tmp_path) as h:
        assert not (await h.call("notes:list", session="talk", mode=Mode.TEXT)).ok


async def test_the_deciding_key_travels_to_the_cloud(tmp_path):
    async with house(tmp_path) as h:
        h.uplink.worker = lambda call: None
        asyncio.get_running_loop().call_soon(lambda: None)
        task = asyncio.create_task(
            h.call("shop:buy", ARGS, provider_call_id="call_123456", turn_id="t")
        )
        await h.uplink.until(lambda: h.uplink.submitted)
        assert h.uplink.submitted[0].idempotency_key == "provider:call_123456"
        await task


@pytest.mark.requirement("S2-136")
async def test_glasses_that_repeat_an_utterance_after_a_reconnect_start_no_second_turn(tmp_path):
    async with house(tmp_path) as h:
        await h.orchestrator.heard("take a note milk")
        h.orchestrator.spoken.reconnected()
        again = await h.orchestrator.heard("take a note milk")
        assert again.meta["_idempotent_cache_hit"]
        assert len(h.tools.runs) == 1
        fresh = await h.orchestrator.heard(
            "take a note milk"
        )  # over the same connection: said again
        assert not fresh.meta.get("_idempotent_cache_hit")
        assert len(h.tools.runs) == 2


@pytest.mark.requirement("S2-131")
async def test_a_tools_own_rate_is_held_and_says_when_to_come_again(tmp_path):
    async with house(tmp_path) as h:
        assert (await h.call("slow:down")).ok
        second = await h.call("slow:down")
        assert second.error.code is ErrorCode.RATE_LIMIT
        assert 59_000 < second.error.retry_after_ms <= 60_000
        assert (await h.call("slow:down", user_id="another")).ok
        assert len(h.tools.runs) == 2


async def test_the_cloud_cannot_be_told_apart_by_origin_in_keys(tmp_path):
    async with house(tmp_path) as h:
        first = await h.call("notes:add", ARGS, origin=CallOrigin.CLOUD, idempotency_key="k")
        assert (await h.call("notes:add", ARGS, idempotency_key="k")).meta["callId"] == first.meta[
            "callId"
        ]
        assert make("notes:add").call_id != first.meta["callId"]


@pytest.mark.parametrize("same", [{"call_id": "c-1"}, {"idempotency_key": "k"}])
@pytest.mark.requirement("I12-reused-id")
async def test_an_id_or_key_of_another_tools_call_is_refused(tmp_path, same):
    async with house(tmp_path) as h:
        assert (await h.call("notes:add", ARGS, **same)).ok
        error = (await h.call("notes:list", **same)).error
        assert error.code is ErrorCode.INVALID_REQUEST
        name, short = ("call id", "id") if "call_id" in same else ("idempotency key", "key")
        assert error.message == f"This {name} belongs to a call of notes:add"
        assert error.suggestion == f"Use a separate {short} for each call"
        assert len(h.tools.runs) == 1


@pytest.mark.requirement("I12-reused-id")
async def test_an_id_of_another_tools_running_call_is_refused(tmp_path):
    async with house(tmp_path) as h:
        running, done = asyncio.Event(), asyncio.Event()

        async def slow(_call, _progress):
            running.set()
            await done.wait()
            return ToolResponse(data={"text": "added"})

        h.tools.handler = slow
        first = asyncio.create_task(h.call("notes:add", ARGS, call_id="c-1"))
        await running.wait()
        error = (await h.call("notes:list", call_id="c-1")).error
        assert error is not None
        assert error.message == "This call id belongs to a call of notes:add"
        done.set()
        assert (await first).data == {"text": "added"}


@pytest.mark.parametrize("other", [{"user_id": "bob"}, {"origin": CallOrigin.CLOUD}])
@pytest.mark.requirement("I12-reused-id")
async def test_an_id_of_another_callers_running_call_is_refused(tmp_path, other):
    async with house(tmp_path) as h:
        running, done = asyncio.Event(), asyncio.Event()

        async def slow(_call, _progress):
            running.set()
            await done.wait()
            return ToolResponse(data={"text": "private"})

        h.tools.handler = slow
        first = asyncio.create_task(h.call("notes:add", ARGS, call_id="c-1"))
        await running.wait()
        error = (await h.call("notes:add", ARGS, call_id="c-1", **other)).error
        assert error is not None
        assert error.message == "This call id belongs to a call of another caller"
        done.set()
        assert (await first).data == {"text": "private"}


async def test_a_key_whose_call_the_last_daemon_left_open_is_pending_at_once(tmp_path):
    uplink = FakeUplink()
    uplink.up = False
    async with house(tmp_path, uplink=uplink) as h:
        first = await h.call("mail:send", ARGS, idempotency_key="k")
        assert first.data["status"] == "pending"
    async with house(tmp_path, uplink=uplink) as h:
        async with asyncio.timeout(20):
            again = await h.call("mail:send", ARGS, idempotency_key="k")
        assert again.data == {"status": "pending", "pendingToolCallId": first.meta["callId"]}
        assert again.meta["_idempotent_cache_hit"]


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_new_call_of_the_cloud_is_looked_up_once(tmp_path, key):
    async with house(tmp_path) as h:
        asked, known = [], h.store.known

        async def counted(call, **more):
            asked.append(more)
            return await known(call, **more)

        h.store.known = counted
        first = await h.call("notes:add", ARGS, origin=CallOrigin.CLOUD, idempotency_key=key)
        assert (first.ok, len(asked)) == (True, 1)
        again = await h.call(
            "notes:add",
            ARGS,
            origin=CallOrigin.CLOUD,
            idempotency_key=key,
            call_id="another" if key else first.meta["callId"],
        )
        assert (again.data, len(h.tools.runs)) == (first.data, 1)
