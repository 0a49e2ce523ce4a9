"""Story: the network goes away, goes quiet, comes back; the wearer always gets one honest
answer.
"""

import asyncio
import time
import uuid

import pytest

from edge.calls.dependencies import CallLimits
from edge.ports import Wait
from tests.scenarios.network import onlooker, state_of
from tests.scenarios.world import until, whole_world, world

pytestmark = pytest.mark.asyncio(loop_scope="session")

ADD = "com.example.tasks:add"
CALC = "com.example.calc:evaluate"
IMPATIENT = {"keepalive_s": 1}
PATIENT = {"keepalive_s": 2}
"""A silent link is noticed after two (four) seconds instead of sixteen; a call waits two for
somebody to take it.
"""
NOTES = {"cloud_may": ["notes:*"]}
"""This owner lets the cloud take notes."""


# ------------------------------------------------------------------ known to be down


@pytest.mark.requirement("K4-queue", "I13-table-of-strings")
async def test_a_call_that_may_wait_is_pending_and_finishes_once_when_the_broker_is_back(
    tmp_path, cloud
):
    async with whole_world(tmp_path, cloud=cloud, cable=True) as place:
        await place.cable.pull_out()
        await place.heard("uplink.down")
        pending = await place.call(ADD, {"title": "buy a second key"})
        call_id = pending.meta["callId"]
        assert pending.ok
        assert pending.data == {"status": "pending", "pendingToolCallId": call_id}
        assert (pending.meta["route"], pending.meta["delivery"]) == ("queue", "queued")
        await place.lens_shows("I'll add it when we're online")
        assert place.daemon.status()["outbox"]["waiting"] == 1
        assert await place.runs(call_id) is None
        await place.cable.plug_in()
        await place.heard("call.completed", call_id=call_id, ok=True, delivery="shown")
        await place.lens_shows("buy a second key")
        assert await place.runs(call_id) == 1
        assert place.daemon.status()["outbox"]["waiting"] == 0
        listed = await place.call("com.example.tasks:list")
        assert listed.data["tasks"].count("buy a second key") == 1


async def test_a_call_that_waits_outlives_the_daemon_and_is_finished_by_the_next_one(
    tmp_path, cloud
):
    async with whole_world(tmp_path, cloud=cloud, cable=True) as place:
        await place.cable.pull_out()
        await place.heard("uplink.down")
        title = f"water the plants {uuid.uuid4().hex[:6]}"
        pending = await place.call(ADD, {"title": title})
        await place.stop_daemon()
        await place.cable.plug_in()
        place.mark()
        await place.start_daemon()
        await place.heard("call.completed", call_id=pending.meta["callId"], ok=True)
        await place.lens_shows(title)
        assert await place.runs(pending.meta["callId"]) == 1


@pytest.mark.requirement("K4-fallback", "I13-table-of-strings")
async def test_a_call_that_may_not_wait_is_answered_offline_on_the_lens_at_once_and_never_sent(
    tmp_path, cloud
):
    async with whole_world(tmp_path, cloud=cloud, cable=True) as place:
        await place.cable.pull_out()
        await place.heard("uplink.down")
        answer = await place.call(CALC, {"expression": "1+1"}, wait=Wait.ANSWER)
        assert (answer.error.type, answer.error.code, answer.error.retryable) == (
            "TRANSIENT",
            "OFFLINE",
            True,
        )
        assert (answer.meta["route"], answer.meta["delivery"]) == ("fallback", "shown")
        assert place.lens() == ["No internet. The calculator needs it."]
        await place.cable.plug_in()
        await place.heard("uplink.up")
        later = await place.call(
            CALC, {"expression": "2+2"}
        )  # whatever was sent before this one is there by now
        assert later.ok
        assert await place.runs(answer.meta["callId"]) is None


async def test_local_tools_answer_as_ever_while_the_cloud_is_gone(tmp_path, cloud):
    async with whole_world(tmp_path, cloud=cloud, cable=True) as place:
        await place.cable.pull_out()
        await place.heard("uplink.down")
        note = await place.call("notes:add", {"text": "the key is under the mat"})
        assert note.ok
        assert (note.meta["route"], note.meta["delivery"]) == ("local", "shown")
        await place.lens_shows("under the mat")
        assert (await place.call("clock:now")).ok
        shown = await place.call("glasses:show_text", {"text": "still here"})
        assert (shown.meta["route"], shown.meta["delivery"]) == ("glasses", "shown")


# ------------------------------------------------------------------ silent


@pytest.mark.requirement("K4-not-accepted")
async def test_on_a_silent_link_the_wearer_sees_work_within_a_second_and_a_fallback_in_two(
    tmp_path, cloud
):
    async with whole_world(tmp_path, cloud=cloud, cable=True, uplink=PATIENT) as place:
        place.cable.freeze()
        began = time.monotonic()
        asking = asyncio.ensure_future(place.call(CALC, {"expression": "3*3"}, wait=Wait.ANSWER))
        await place.lens_shows("Working")
        assert not asking.done()
        answer = await asking
        took_s = time.monotonic() - began
        assert (CallLimits().working_s, CallLimits().accept_s) == (0.7, 2.0)
        assert answer.error.code == "NOT_ACCEPTED"
        assert answer.meta["route"] == "fallback"
        assert took_s >= CallLimits().accept_s
        await place.lens_shows("The calculator did not answer. Try again in a moment.")


async def test_a_silent_connection_is_replaced_without_anybody_asking_and_later_calls_are_fine(
    tmp_path, cloud
):
    async with whole_world(tmp_path, cloud=cloud, cable=True, uplink=IMPATIENT) as place:
        before = place.cable.accepted
        place.cable.freeze()
        place.mark()
        await place.heard("uplink.down", reason="silent")
        await place.heard("uplink.up")
        assert place.cable.accepted > before
        assert (await place.call(CALC, {"expression": "4*4"})).meta["delivery"] == "shown"


async def test_a_call_that_may_wait_survives_the_silence_and_is_run_exactly_once(tmp_path, cloud):
    async with whole_world(tmp_path, cloud=cloud, cable=True, uplink=PATIENT) as place:
        place.cable.freeze()
        pending = await place.call(ADD, {"title": "silence is golden"})
        assert pending.data["status"] == "pending"
        assert pending.meta["route"] == "queue"
        await place.heard("call.completed", call_id=pending.meta["callId"], ok=True)
        await place.lens_shows("silence is golden")
        assert await place.runs(pending.meta["callId"]) == 1


# ------------------------------------------------------------------ a broker without memory


async def test_a_broker_that_forgot_everything_hears_who_we_are_again_and_serves_on(tmp_path):
    async with whole_world(tmp_path, policy=NOTES) as place:
        await place.ask_cloud("POST", "/devcloud/broker", {"running": False, "kill": True})
        await place.heard("uplink.down")
        pending = await place.call(ADD, {"title": "remember me"})
        await place.ask_cloud("POST", "/devcloud/broker", {"running": True})
        await place.heard("call.completed", call_id=pending.meta["callId"], ok=True)
        async with place.onlooker() as cloud:
            presence = await cloud.hears_on("presence", state="online", glasses="connected")
            report = await cloud.hears_on("capabilities", model="mock:display")
            assert presence.retained
            assert report.retained
            note = await cloud.answer_to(await cloud.invokes("notes:add", {"text": "resubscribed"}))
            assert note["ok"] is True
        assert (await place.call(CALC, {"expression": "5*5"})).meta["delivery"] == "shown"
        assert await place.runs(pending.meta["callId"]) == 1


# ------------------------------------------------------------------ twice, too late, and never


@pytest.mark.requirement("K4-twice")
async def test_an_invocation_that_arrives_twice_is_run_once_shown_once_and_answered_alike(
    tmp_path, cloud
):
    async with (
        whole_world(tmp_path, cloud=cloud, policy=NOTES) as place,
        place.onlooker() as cloud_side,
    ):
        call_id = await cloud_side.invokes("notes:add", {"text": "only once"})
        first = await cloud_side.answer_to(call_id)
        await cloud_side.invokes("notes:add", {"text": "only once"}, call_id=call_id)
        await until(lambda: len(cloud_side.results_of(call_id)) == 2, "the answer again")
        assert cloud_side.results_of(call_id)[1] == first
        together = str(uuid.uuid4())
        for _ in range(2):
            await cloud_side.invokes("notes:add", {"text": "both at once"}, call_id=together)
        await cloud_side.answer_to(together)
        notes = await place.call("notes:list")
        texts = [note["text"] for note in notes.data["notes"]]
        assert (texts.count("only once"), texts.count("both at once")) == (1, 1)
        assert [page["scene"] for page in place.drawn()].count(call_id) == 1
        assert [page["scene"] for page in place.drawn()].count(together) == 1


@pytest.mark.requirement("K4-late")
async def test_a_result_after_the_deadline_is_not_shown_and_the_cloud_is_told_that_it_expired(
    tmp_path, cloud
):
    async with (
        whole_world(tmp_path, cloud=cloud, uplink={"pool": "late"}) as place,
        place.onlooker() as worker,
    ):
        asking = asyncio.ensure_future(place.call(CALC, {"expression": "6*6"}, ttl_s=1.5))
        call = await worker.hears_on("call/late")
        call_id = call.body["call_id"]
        await worker.says(
            "result", {"v": 1, "id": call_id}, kind="accepted", correlation=call.correlation
        )
        answer = await asking
        assert (answer.error.code, answer.error.retryable) == ("TIMEOUT", True)
        await place.lens_shows("The calculator took too long.")
        late = {"v": 1, "id": call_id, "ok": True, "data": "thirty-six", "meta": {}}
        await worker.says("result", late, kind="result", correlation=call.correlation)
        await worker.hears(
            "expired", lambda s: s.tail == "delivery" and state_of(s.body) == "expired"
        )
        assert [state_of(s.body) for s in worker.heard if s.tail == "delivery"] == [
            "shown",
            "expired",
        ]
        assert not any("thirty-six" in " ".join(page["lines"]) for page in place.drawn())


async def ask_a_doomed_worker(place):
    """Beside the real worker stands one that takes a call and dies without a word: (that call's
    id, its answer).
    """
    host, _, port = place.cloud["mqtt"].rpartition(":")
    # the very filter of the real worker: one group
    shared = "$share/tools/glassd/v1/default/e/+/call/tools"
    async with onlooker(host, int(port), place.edge_id, shared) as worker:
        for number in range(10):
            asking = asyncio.ensure_future(place.call(CALC, {"expression": f"{number}+100"}))
            await until(
                lambda asking=asking: asking.done() or worker.heard, "somebody took the call"
            )
            if worker.heard:
                break
        else:
            raise AssertionError("the broker never chose the doomed worker")
    return worker.heard[0].body["call_id"], await asking


async def test_a_call_whose_worker_dies_before_accepting_is_taken_by_another_and_seen_once(
    tmp_path, cloud
):
    async with whole_world(tmp_path, cloud=cloud) as place:
        async with place.onlooker() as watching:
            call_id, answer = await ask_a_doomed_worker(place)
            assert answer.ok
            assert answer.meta["delivery"] == "shown"
            attempts = [
                s for s in watching.heard if s.tail == "call/tools" and s.body["call_id"] == call_id
            ]
            assert [s.user["a"] for s in attempts] == ["1", "2"]
            assert len(watching.results_of(call_id)) == 1
        assert await place.runs(call_id) == 1
        assert [page["scene"] for page in place.drawn()].count(call_id) == 1


async def test_without_any_cloud_the_daemon_serves_what_lives_here(tmp_path):
    async with world(tmp_path) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        assert (await place.call("notes:add", {"text": "alone"})).meta["delivery"] == "shown"
        assert place.daemon.status()["uplink"]["state"] == "not configured"
