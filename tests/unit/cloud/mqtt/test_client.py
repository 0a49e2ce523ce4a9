"""The uplink against a real broker: calls out and answers in, once each, whatever breaks
between.
"""

import asyncio
import time
from itertools import pairwise

import pytest

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.wire import MessageKind, WireError
from edge.ports import (
    CallAccepted,
    CallProgress,
    CallResult,
    InvokeCancelled,
    Invoked,
    RegistryNotice,
)
from edge.runtime.events import Alarmed, CapabilitiesPublished, UplinkChanged
from edge.storage.outbox import OutboxLane
from edge.storage.size_bounds import Bounds
from edge.storage.sqlite.errors import UplinkBusy
from tests.e2e.broker import free_port, iotcore, mosquitto, proxy, serving, until
from tests.unit.cloud.mqtt.support import DONE, EDGE, TOPICS, Edge, a_call, cloud, edge
from tools_cache.api.tool import Delivery, DeliveryReport, ErrorCode, ToolResponse

pytestmark = [pytest.mark.enable_socket, pytest.mark.mosquitto]


@pytest.fixture
def broker(tmp_path):
    with mosquitto(tmp_path) as running:
        yield running


# ------------------------------------------------------------------ the main job


@pytest.mark.parametrize("start", [mosquitto, iotcore])
async def test_a_call_goes_out_once_and_its_answer_comes_back_in_order(tmp_path, start):
    with start(tmp_path) as broker:
        async with cloud(broker.port) as far, edge(tmp_path, port=broker.port) as near:
            near.start()
            await near.up()
            call = a_call(turn_id="t", idempotency_key="k")
            await near.uplink.submit(call)
            (heard,) = await far.wait_for("call")
            got = wire.body_to_call(heard.message)
            assert (got.call_id, got.tool, got.args, got.turn_id, got.idempotency_key) == (
                call.call_id,
                "app:list",
                {"n": 1},
                "t",
                "k",
            )
            assert 29 < got.ttl_s <= 30
            packet = heard.packet
            assert packet.topic == TOPICS.call("tools")
            assert packet.response_topic == TOPICS.result
            assert packet.correlation == wire.correlation_of(call.call_id)
            assert packet.expiry_s in (29, 30)
            assert dict(packet.user_properties)["a"] == "1"
            await far.accept(call.call_id)
            await far.say(MessageKind.PROGRESS, {"id": call.call_id, "text": "looking"})
            await far.answer(call.call_id)
            await near.wait_for(CallResult)
            assert near.messages == [
                CallAccepted(call.call_id),
                CallProgress(call.call_id, "looking"),
                CallResult(call.call_id, DONE),
            ]
            await until(lambda: near.uplink.status().outbox == 0)
            assert await near.outbox.count() == 0
            assert await near.inbox.unhandled() == []


async def test_a_call_submitted_without_a_broker_is_delivered_later(tmp_path):
    port = free_port()
    async with edge(tmp_path, port=port) as near:
        near.start()
        await until(lambda: near.uplink.status().reason.startswith("refused"))
        call = a_call()
        await near.uplink.submit(call)
        assert near.uplink.status().outbox == 1
        assert "uplink.port" in near.uplink.status().hint
        with mosquitto(tmp_path, port=port):
            async with cloud(port) as far:
                (heard, *_) = await far.wait_for("call")
                assert heard.message.id == call.call_id
                assert heard.message.age_ms > 0
                await far.answer(call.call_id)
                await near.wait_for(CallResult)


async def test_calls_leave_in_the_order_they_were_submitted(tmp_path, broker):
    async with edge(tmp_path, port=broker.port, resend_s=30.0) as near, cloud(broker.port) as far:
        calls = [a_call() for _ in range(60)]
        for call in calls:
            await near.uplink.submit(call)
        near.start()
        heard = await far.wait_for("call", 60)
        assert [h.message.id for h in heard] == [c.call_id for c in calls]


async def test_without_a_host_calls_wait_and_end_at_their_deadline(tmp_path):
    async with edge(tmp_path, host=None) as near:
        near.start()
        status = near.uplink.status()
        assert (status.configured, status.up) == (False, False)
        assert "uplink.host" in status.hint
        call = a_call(ttl_s=0.2)
        await near.uplink.submit(call)
        (result,) = await near.wait_for(CallResult)
        assert result.response.error.code is ErrorCode.NOT_ACCEPTED
        assert near.uplink.status().outbox == 0


# ------------------------------------------------------------------ sending again


async def test_an_unaccepted_call_is_sent_again_with_the_same_id_until_accepted(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        call = a_call()
        await near.uplink.submit(call)
        heard = await far.wait_for("call", 3)
        assert {h.message.id for h in heard} == {call.call_id}
        assert [h.message.attempt for h in heard[:3]] == [1, 2, 3]
        assert heard[2].message.body["ttl_s"] < heard[0].message.body["ttl_s"]
        assert heard[2].message.age_ms >= 200
        await far.accept(call.call_id)
        await near.wait_for(CallAccepted)
        sent = len(far.of("call"))
        with pytest.raises(TimeoutError):
            await far.wait_for("call", sent + 1, deadline_s=1.0)
        await far.accept(call.call_id)
        await far.answer(call.call_id)
        await near.wait_for(CallResult)
        assert len(near.got(CallAccepted)) == 1


async def test_progress_counts_as_accepted_when_accepted_was_lost(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        call = a_call(ttl_s=1.0)
        await near.uplink.submit(call)
        await far.wait_for("call")
        await far.say(MessageKind.PROGRESS, {"id": call.call_id, "text": "half"})
        (result,) = await near.wait_for(CallResult)
        assert result.response.error.code is ErrorCode.DEADLINE_EXPIRED
        assert len(far.of("call")) <= 2


async def test_nobody_listening_is_not_delivery(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near:
        near.start()
        await near.up()
        call = a_call()
        await near.uplink.submit(call)  # PUBACK 0x10: no matching subscribers
        await asyncio.sleep(0.2)
        async with cloud(broker.port) as far:
            (heard, *_) = await far.wait_for("call")
            assert heard.message.attempt > 1


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ((), ErrorCode.NOT_ACCEPTED),
        (("accepted",), ErrorCode.TIMEOUT),
        (("accepted", "progress"), ErrorCode.DEADLINE_EXPIRED),
    ],
)
async def test_a_call_nobody_answers_ends_in_one_of_three_ways(tmp_path, broker, says, code):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        call = a_call(ttl_s=0.8)
        await near.uplink.submit(call)
        await far.wait_for("call")
        for word in says:
            await far.say(word, {"id": call.call_id, "text": "x"})
        (result,) = await near.wait_for(CallResult)
        assert (result.call_id, result.response.error.code, result.own) == (
            call.call_id,
            code,
            True,
        )
        assert await near.outbox.count() == 0
        # The late result still comes through, once, so that it can be kept; it is not for us to
        # hide it.
        await far.answer(call.call_id)
        await far.answer(call.call_id)
        late = await near.wait_for(CallResult, 2)
        assert late[1] == CallResult(call.call_id, DONE, own=False)
        await far.say(MessageKind.PROGRESS, {"id": call.call_id, "text": "late"})
        await near.uplink.submit(a_call(ttl_s=0.1))
        await near.wait_for(CallResult, 3)
        assert len(near.got(CallProgress)) == len([w for w in says if w == "progress"])


async def test_a_withdrawn_call_is_cancelled_at_every_worker(tmp_path, broker):
    async with (
        edge(tmp_path, port=broker.port) as near,
        cloud(broker.port) as far,
        cloud(broker.port, workers=False) as other,
    ):
        near.start()
        call = a_call()
        await near.uplink.submit(call)
        await far.wait_for("call")
        await near.uplink.withdraw(call.call_id, "the wearer said stop")
        for seen in (far, other):
            (heard,) = await seen.wait_for("cancel")
            assert (heard.message.id, heard.message.body["reason"]) == (
                call.call_id,
                "the wearer said stop",
            )
        sent = len(far.of("call"))
        await near.uplink.withdraw(call.call_id, "again")
        await near.uplink.withdraw("nobody", "x")
        with pytest.raises(TimeoutError):
            await far.wait_for("call", sent + 1, deadline_s=0.5)
        assert len(far.of("cancel")) == 1
        assert near.got(CallResult) == []


async def test_a_call_withdrawn_before_it_was_ever_sent_leaves_no_trace(tmp_path):
    async with edge(tmp_path, port=free_port()) as near:
        call = a_call()
        await near.uplink.submit(call)
        await near.uplink.withdraw(call.call_id, "x")
        assert await near.outbox.count() == 0


async def test_a_full_outbox_refuses_calls_and_loses_nothing(tmp_path, broker):
    async with edge(tmp_path, port=free_port()) as near:
        near.outbox._bounds[OutboxLane.CALL] = Bounds(2)
        for _ in range(2):
            await near.uplink.submit(a_call())
        with pytest.raises(UplinkBusy):
            await near.uplink.submit(a_call())
        with pytest.raises(WireError):
            await near.uplink.submit(a_call(args={"photo": "x" * 300_000}))
        assert near.uplink.status().outbox == 2


# ------------------------------------------------------------------ what breaks between


async def test_a_broker_that_comes_back_without_its_sessions_gets_everything_again(
    tmp_path, broker
):
    async with edge(tmp_path, port=broker.port, resend_s=30.0) as near:
        near.start()
        await near.uplink.announce(capabilities={"model": "m"}, glasses="connected")
        taken, waiting = a_call(), a_call()
        async with cloud(broker.port) as far:
            await near.uplink.submit(taken)
            await far.wait_for("call")
            await far.accept(taken.call_id)
            await near.wait_for(CallAccepted)
            await near.uplink.submit(waiting)
            await far.wait_for("call", 2)
            broker.stop()
        await near.down()
        await near.stop()
        broker.start()
        async with cloud(broker.port) as far:
            near.start()
            # The worker's result for `taken` may have died with the broker's session, so it is
            # asked again too.
            heard = await far.wait_for("call", 2)
            assert [h.message.id for h in heard] == [taken.call_id, waiting.call_id]
            await far.wait_for("presence")
            await far.wait_for("capabilities")
            await far.answer(taken.call_id)
            await far.answer(waiting.call_id)
            await near.wait_for(CallResult, 2)
            await far.invoke(a_call())
            await near.wait_for(Invoked)


async def test_a_cut_keeps_the_session_and_sends_only_what_nobody_took(tmp_path, broker):
    async with (
        proxy(broker.port) as middle,
        edge(tmp_path, port=middle.port, resend_s=30.0) as near,
        cloud(broker.port) as far,
    ):
        near.start()
        taken, waiting = a_call(), a_call()
        await near.uplink.submit(taken)
        await near.uplink.submit(waiting)
        await far.wait_for("call", 2)
        await far.accept(taken.call_id)
        await near.wait_for(CallAccepted)
        await near.stop()
        await far.say(MessageKind.PROGRESS, {"id": taken.call_id, "text": "kept by the session"})
        near.start()
        heard = await far.wait_for("call", 3)
        assert (heard[2].message.id, heard[2].message.attempt) == (waiting.call_id, 2)
        await near.wait_for(CallProgress)
        middle.cut()
        heard = await far.wait_for("call", 4)
        assert (heard[3].message.id, heard[3].message.attempt) == (waiting.call_id, 3)
        await far.answer(taken.call_id)
        await near.wait_for(CallResult)
        assert len(far.of("call")) == 4


async def test_a_silent_link_is_replaced_and_nothing_is_lost(tmp_path, broker):
    # Shortened: keep-alive 2 s here, 8 s by default; detected after twice that, or when a PUBACK is
    # overdue.
    async with (
        proxy(broker.port) as middle,
        edge(tmp_path, port=middle.port) as near,
        cloud(broker.port) as far,
    ):
        near.start()
        await near.up()
        middle.black = True
        calls = [a_call() for _ in range(5)]
        for call in calls:
            await near.uplink.submit(call)
        await near.down()
        assert near.uplink.status().reason.startswith("silent")
        middle.black = False
        middle.cut()
        heard = await far.wait_for("call", 5)
        assert {h.message.id for h in heard} == {c.call_id for c in calls}
        for call in calls:
            await far.answer(call.call_id)
        await near.wait_for(CallResult, 5)


async def test_an_idle_silent_link_is_replaced_by_its_keep_alive(tmp_path, broker):
    async with (
        proxy(broker.port) as middle,
        edge(tmp_path, port=middle.port, keepalive_s=1) as near,
    ):
        near.start()
        await near.up()
        first = middle.accepted
        middle.black = True
        await near.down()
        middle.black = False
        middle.cut()
        await near.up()
        assert middle.accepted > first


def test_the_default_patience_replaces_a_silent_link_within_20_s():
    from edge.cloud.mqtt.client import UplinkOptions

    o = UplinkOptions(edge_id="e")
    assert (
        2 * o.keepalive_s + 1 + o.reconnect_min_s < 20
    )  # idle: paho notices after twice the keep-alive, checked every second
    assert o.ack_timeout_s + o.reconnect_min_s < 20


async def test_a_restart_sends_what_was_not_answered_and_remembers_what_was_accepted(
    tmp_path, broker
):
    near = await Edge(tmp_path, port=broker.port, resend_s=30.0).open()
    async with cloud(broker.port) as far:
        near.start()
        taken, waiting = a_call(), a_call()
        await near.uplink.submit(taken)
        await far.wait_for("call")
        await far.accept(taken.call_id)
        await near.wait_for(CallAccepted)
        await near.uplink.submit(waiting)
        await far.wait_for("call", 2)
        await near.close()
        await far.answer(taken.call_id)  # while we are away
        await near.open()
        near.start()
        heard = await far.wait_for("call", 3)
        assert heard[2].message.id == waiting.call_id
        (result,) = await near.wait_for(CallResult)
        assert result == CallResult(taken.call_id, DONE)
        assert len(far.of("call")) == 3
    await near.close()


# ------------------------------------------------------------------ messages and their handling


async def test_only_unhandled_messages_come_again_after_a_restart(tmp_path, broker):
    near = await Edge(tmp_path, port=broker.port).open()
    near.handling = False
    async with cloud(broker.port) as far:
        near.start()
        await near.up()
        call, invoked = a_call(), a_call(ttl_s=25.0)
        await near.uplink.submit(call)
        await far.wait_for("call")
        await far.answer(call.call_id)
        await far.invoke(invoked)
        await far.say(
            MessageKind.CANCEL, {"id": invoked.call_id, "reason": "stop"}, topic=TOPICS.invoke
        )
        await near.wait_for(InvokeCancelled)
        await near.uplink.handled(near.messages[0])
        before = near.messages[1:]
        # What was not acknowledged comes again from the broker, even if it was handled.
        await until(lambda: not near.uplink._receiver._slots)
        await near.close()
        await near.open()
        near.start()
        await near.wait_for(InvokeCancelled)
        again = near.got(Invoked)[0]
        assert near.messages == [again, InvokeCancelled(invoked.call_id, "stop")]
        assert 0 < again.call.ttl_s <= before[0].call.ttl_s
        assert (again.call.call_id, again.reply_to) == (invoked.call_id, TOPICS.reply("me"))
        for message in list(near.messages):
            await near.uplink.handled(message)
        assert await near.inbox.unhandled() == []
        await near.close()
        await near.open()
        near.start()
        await near.up()
        assert near.messages == []
    await near.close()


async def test_a_new_iteration_begins_with_what_was_not_handled(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.handling = False
        near.start()
        await near.up()
        await far.invoke(a_call())
        (first,) = await near.wait_for(Invoked)
        again = await asyncio.wait_for(anext(near.uplink.messages()), 40)
        assert again is first


async def test_nothing_is_acknowledged_before_it_is_on_disk(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        await near.up()
        near.inbox._bounds = Bounds(0)  # as if nothing could be stored
        call = a_call()
        await far.invoke(call)
        await asyncio.sleep(0.3)
        assert near.got(Invoked) == []
        await near.stop()
        near.inbox._bounds = Bounds(1000)
        near.start()
        (again,) = await near.wait_for(Invoked)
        assert again.call.call_id == call.call_id


async def test_a_full_inbox_goes_on_as_soon_as_something_is_handled(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.inbox._bounds = Bounds(1)
        near.handling = False
        near.start()
        await near.up()
        await far.invoke(a_call())
        (first,) = await near.wait_for(Invoked)
        await far.invoke(a_call())
        await asyncio.sleep(0.2)
        assert len(near.got(Invoked)) == 1
        await near.uplink.handled(first)
        await near.wait_for(Invoked, 2)


@pytest.mark.parametrize("as_json", [False, True])
async def test_an_invocation_is_answered_in_kind_where_it_asked(tmp_path, broker, as_json):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        await near.up()
        call = a_call()
        await far.invoke(call, as_json=as_json)
        (invoked,) = await near.wait_for(Invoked)
        assert (invoked.call.call_id, invoked.as_json) == (call.call_id, as_json)
        await near.uplink.answer(invoked, None)
        await near.uplink.answer(invoked, "half way")
        await near.uplink.answer(invoked, DONE)
        (result,) = await far.wait_for("result")
        assert [h.kind for h in far.heard if h.packet.topic == TOPICS.reply("me")] == [
            "accepted",
            "progress",
            "result",
        ]
        assert far.of("progress")[0].message.body["text"] == "half way"
        assert wire.response_of(result.message) == DONE
        assert result.message.json is as_json
        assert result.packet.correlation == wire.correlation_of(call.call_id)
        await until(lambda: near.uplink.status().outbox == 0)


async def test_a_result_survives_a_restart_until_the_broker_has_it(tmp_path, broker):
    near = await Edge(tmp_path, port=broker.port).open()
    near.start()
    await near.up()
    async with cloud(broker.port) as far:
        call = a_call()
        await far.invoke(call)
        (invoked,) = await near.wait_for(Invoked)
        await near.stop()
        await near.uplink.answer(invoked, DONE)
        await near.db.close()
        await near.open()
        near.start()
        (result,) = await far.wait_for("result")
        assert result.message.id == call.call_id
    await near.close()


async def test_a_repeated_invocation_gets_the_stored_answer(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        await near.up()
        call = a_call()
        await far.invoke(call)
        await far.invoke(call)
        (invoked,) = await near.wait_for(Invoked)
        await near.uplink.answer(invoked, DONE)
        await far.wait_for("result")
        await until(lambda: near.uplink.status().outbox == 0)
        await far.invoke(call)
        results = await far.wait_for("result", 2)
        assert wire.response_of(results[1].message) == DONE
        assert len(near.got(Invoked)) == 1


async def test_a_result_that_arrives_twice_is_one(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        await near.up()
        first, second = a_call(), a_call()
        for call in (first, second):
            await near.uplink.submit(call)
        await far.wait_for("call", 2)
        await far.answer(first.call_id)
        await far.answer(first.call_id)
        await far.answer(second.call_id)
        await near.wait_for(CallResult, 2)
        assert [m.call_id for m in near.got(CallResult)] == [first.call_id, second.call_id]


async def test_time_at_the_broker_shortens_the_life_of_a_message(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        await near.up()
        await far.invoke(a_call(ttl_s=300.0), expiry_s=7)
        (invoked,) = await near.wait_for(Invoked)
        assert invoked.call.ttl_s <= 7


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    "reply",
    [None, "somewhere/else", f"glassd/v1/default/e/{EDGE}x/reply/a", TOPICS.result, TOPICS.invoke],
)
async def test_an_invocation_may_be_answered_only_under_our_own_prefix(tmp_path, broker, reply):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        await near.up()
        await far.invoke(a_call(), reply=reply)
        good = a_call()
        await far.invoke(good)
        (invoked,) = await near.wait_for(Invoked)
        assert invoked.call.call_id == good.call_id
        assert near.uplink._receiver.dropped == 1


@pytest.mark.parametrize(
    ("payload", "content_type", "reason", "field"),
    [
        (b"\xff\x00garbage", wire.MSGPACK, "malformed", "body"),
        (b'{"v":7}', wire.JSON, "unsupported_version", "v"),
        (b"<call/>", "text/xml", "unsupported_content", "content-type"),
        (b'{"v":1,"tool":"nope"}', wire.JSON, "malformed", "tool"),
        (b"x" * (wire.MAX_BODY + 10), wire.JSON, "too_large", "body"),
    ],
)
async def test_bad_bytes_are_answered_and_hurt_nobody(
    tmp_path, broker, payload, content_type, reason, field
):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        await near.up()
        call = a_call()
        common = {
            "content_type": content_type,
            "user_properties": (("k", "call"),),
            "correlation": wire.correlation_of(call.call_id),
        }
        await far.link.publish(TOPICS.invoke, payload, response_topic=TOPICS.reply("me"), **common)
        (answer,) = await far.wait_for("result")
        error = wire.response_of(answer.message).error
        assert answer.message.id == call.call_id
        assert error.code is ErrorCode.INVALID_REQUEST
        assert (error.details["reason"], error.details["field"]) == (reason, field)
        assert error.suggestion
        assert answer.message.json is (content_type == wire.JSON)
        # Elsewhere, or without a place to answer, the same bytes are dropped.
        await far.link.publish(TOPICS.result, payload, **common)
        await far.link.publish(TOPICS.invoke, payload, **common)
        await far.link.publish(TOPICS.registry("tools"), payload, **common)
        await far.invoke(a_call())
        await near.wait_for(Invoked)
        assert len(near.messages) == 1


async def test_an_answer_that_cannot_be_read_ends_the_call_at_once(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        call = a_call()
        await near.uplink.submit(call)
        await far.wait_for("call")
        await far.say(MessageKind.RESULT, {"id": call.call_id, "success": True})
        (result,) = await near.wait_for(CallResult)
        assert result.response.error.code is ErrorCode.EXECUTION_ERROR
        assert "ok" in result.response.error.message


async def test_a_result_too_large_for_the_wire_is_answered_as_an_error(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        near.start()
        await near.up()
        await far.invoke(a_call())
        (invoked,) = await near.wait_for(Invoked)
        await near.uplink.answer(invoked, ToolResponse(data="x" * 300_000))
        (answer,) = await far.wait_for("result")
        assert wire.response_of(answer.message).error.details["reason"] == "too_large"


# ------------------------------------------------------------------ what we say about ourselves


async def test_presence_and_capabilities_are_retained_and_stay_up_to_date(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near:
        await near.uplink.announce(
            capabilities={"model": "mock:display", "tools": [{}, {}]}, glasses="away"
        )
        near.start()
        await until(lambda: any(isinstance(h, CapabilitiesPublished) for h in near.happened))
        await near.uplink.announce(capabilities=None, glasses="connected")
        async with cloud(broker.port) as far:  # comes later: only what is retained
            await until(
                lambda: (
                    far.of("presence")
                    and far.of("presence")[-1].message.body["glasses"] == "connected"
                )
            )
            presence = far.of("presence")[-1]
            assert presence.message.body | {"boot": "", "instance": ""} == {
                "v": 1,
                "k": "presence",
                "state": "online",
                "glasses": "connected",
                "boot": "",
                "seq": 1,
                "version": "0.1.0",
                "instance": "",
            }
            assert presence.packet.expiry_s > 6 * 86400
            (report,) = await far.wait_for("capabilities")
            assert (report.packet.retain, report.message.body["model"]) == (True, "mock:display")
            await near.uplink.announce(
                capabilities={"model": "mock:display", "tools": [{}, {}]}, glasses="connected"
            )
            await near.uplink.announce(
                capabilities={"model": "mock:full", "tools": []}, glasses="connected"
            )
            await far.wait_for("capabilities", 2)
            assert len(far.of("capabilities")) == 2

        def published():
            return [h for h in near.happened if isinstance(h, CapabilitiesPublished)]

        await until(lambda: len(published()) >= 2)  # its PUBACK may come after the cloud has it
        assert [(p.model, p.tools) for p in published()] == [("mock:display", 2), ("mock:full", 0)]


async def test_a_stop_publishes_offline_and_after_a_crash_the_will(tmp_path, broker):
    async with cloud(broker.port) as far, proxy(broker.port) as middle:
        near = await Edge(tmp_path, port=middle.port, reconnect_min_s=30.0).open()
        near.start()
        await far.wait_for("presence")
        await near.stop()
        await far.wait_for("presence", 2)
        assert [h.message.body["state"] for h in far.of("presence")] == ["online", "offline"]
        near.start()
        await far.wait_for("presence", 3)
        middle.cut()
        await far.wait_for("presence", 4)
        assert [
            (h.message.body["state"], h.message.body["seq"]) for h in far.of("presence")[2:]
        ] == [("online", 2), ("offline", 2)]
        await near.close()


async def test_a_delayed_will_is_not_said_when_we_are_back_in_time(tmp_path, broker):
    async with (
        cloud(broker.port) as far,
        proxy(broker.port) as middle,
        edge(tmp_path, port=middle.port, will_delay_s=2) as near,
    ):
        near.start()
        await far.wait_for("presence")
        middle.cut()
        await far.wait_for("presence", 2)
        await asyncio.sleep(2.5)  # the will's own time
        assert [h.message.body["state"] for h in far.of("presence")] == ["online", "online"]


async def test_deliveries_and_events_reach_the_cloud(tmp_path, broker):
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        await near.uplink.tell_delivery(
            "01890000-0000-7000-8000-000000000001", DeliveryReport(Delivery.SHOWN), age_s=2.0
        )
        await near.uplink.tell_event("tap", {"count": 2})
        near.start()
        (delivery,) = await far.wait_for("delivery")
        assert delivery.message.body["delivery"] == "shown"
        assert delivery.message.body["age"] >= 2000
        (event,) = await far.wait_for("event")
        assert event.packet.topic == TOPICS.event("tap")
        assert (event.message.body["event"], event.message.body["data"], event.packet.qos) == (
            "tap",
            {"count": 2},
            1,
        )
        await until(lambda: near.uplink.status().outbox == 0)


async def test_the_active_registry_is_announced_at_every_connect(tmp_path, broker):
    notice = {"version": "7", "sha256": "ab", "url": "http://x/api/registry"}
    async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
        await far.say(
            MessageKind.REGISTRY,
            notice,
            topic=TOPICS.registry("tools"),
            retain=True,
            user_properties=(),
        )
        near.start()
        await near.wait_for(RegistryNotice)
        await near.stop()
        near.start()
        assert (
            await near.wait_for(RegistryNotice, 2)
            == [RegistryNotice("7", "ab", "http://x/api/registry")] * 2
        )
        await far.say(MessageKind.REGISTRY, {"version": "8"}, topic=TOPICS.registry("tools"))
        await far.invoke(a_call())
        await near.wait_for(Invoked)
        assert len(near.got(RegistryNotice)) == 2


# ------------------------------------------------------------------ the link's own state


async def test_the_bus_hears_of_changes_only(tmp_path):
    port = free_port()
    async with edge(tmp_path, port=port) as near:
        near.start()
        await until(lambda: near.uplink._backoff._failures >= 3)
        with mosquitto(tmp_path, port=port) as broker:
            await near.up()
            broker.stop()
            await near.down()
        await until(lambda: len([h for h in near.happened if isinstance(h, UplinkChanged)]) >= 4)
        changes = [(h.up, h.reason) for h in near.happened if isinstance(h, UplinkChanged)]
        assert changes[:4] == [(False, "refused"), (True, ""), (False, "lost"), (False, "refused")]


async def test_a_contested_identity_waits_and_raises_an_alarm(tmp_path):
    connects = []

    async def takeover(reader, writer):
        connects.append(time.monotonic())
        header = await reader.readexactly(2)
        await reader.readexactly(
            header[1]
            if header[1] < 128
            else (header[1] & 127) + 128 * (await reader.readexactly(1))[0]
        )
        writer.write(bytes.fromhex("2003000000") + b"\xe0\x02\x8e\x00")
        await reader.read()

    async with serving(takeover) as port, edge(tmp_path, port=port, takeover_wait_s=0.6) as near:
        near.start()
        await until(lambda: len(connects) == 2)
        assert connects[1] - connects[0] >= 0.6
        (alarm,) = [h for h in near.happened if isinstance(h, Alarmed)]
        assert (alarm.alarm, alarm.over) == ("uplink.taken_over", False)
        assert EDGE in alarm.text
        assert near.uplink.status().reason.startswith("taken_over")


async def test_a_link_that_never_lasts_is_tried_ever_more_rarely(tmp_path):
    connects = []

    async def hang_up(reader, writer):
        connects.append(time.monotonic())
        header = await reader.readexactly(2)
        await reader.read(header[1])
        writer.write(bytes.fromhex("2003000000"))
        await reader.read(10)  # SUBSCRIBE

    async with serving(hang_up) as port:
        near = await Edge(
            tmp_path, port=port, reconnect_min_s=0.05, reconnect_max_s=60.0, stable_s=60.0
        ).open()
        near.uplink._backoff._chance = lambda: 1.0
        near.start()
        await until(lambda: len(connects) == 5)
        gaps = [b - a for a, b in pairwise(connects)]
        assert gaps[3] >= 0.4
        assert near.uplink._backoff._failures in (4, 5)
        await near.close()


async def test_a_bad_address_is_refused_when_the_uplink_is_made(tmp_path):
    with pytest.raises(ValueError, match=r"uplink\.host"):
        await Edge(tmp_path, host="wss://broker/mqtt").open()


async def test_an_idle_uplink_costs_next_to_nothing(tmp_path, broker):
    async with edge(tmp_path, port=broker.port, keepalive_s=8) as near:
        near.start()
        await near.up()
        await asyncio.sleep(0.5)
        began = time.process_time()
        await asyncio.sleep(2.0)  # two seconds of nothing are what is measured
        assert (time.process_time() - began) / 2.0 < 0.01


# ------------------------------------------------------------------ between the commit and the
# consumer


class Slow:
    """An inbox whose commit is followed by a pause; `committed` tells that it began."""

    def __init__(self, inbox):
        self.committed = asyncio.Event()
        self.go_on = asyncio.Event()
        self._take, inbox.take = inbox.take, self.take

    async def take(self, arrivals):
        taken = await self._take(arrivals)
        self.committed.set()
        await self.go_on.wait()
        return taken


@pytest.mark.parametrize("what", ["link", "service"])
async def test_what_dies_between_commit_and_handing_on_loses_no_message(tmp_path, broker, what):
    async with (
        proxy(broker.port) as middle,
        edge(tmp_path, port=middle.port) as near,
        cloud(broker.port) as far,
    ):
        slow = Slow(near.inbox)
        near.start()
        await near.up()
        call = a_call()
        await far.invoke(call)
        await slow.committed.wait()
        if what == "link":
            middle.cut()
            await near.down()
            slow.go_on.set()
        else:
            await near.stop()
            slow.go_on.set()
            near.start()
        await near.wait_for(Invoked)
        await near.up()
        await near.uplink.submit(a_call(ttl_s=0.3))
        await near.wait_for(CallResult)
        assert [m.call.call_id for m in near.got(Invoked)] == [call.call_id]


async def test_the_next_run_stores_a_deadline_that_was_cut_off(tmp_path):
    async with edge(tmp_path, host=None) as near:
        near.inbox._bounds = Bounds(0)
        near.start()
        call = a_call(ttl_s=0.05)
        await near.uplink.submit(call)
        await asyncio.sleep(0.2)
        await near.stop()
        assert near.got(CallResult) == []
        near.inbox._bounds = Bounds(1000)
        near.handling = False
        near.start()
        (result,) = await near.wait_for(CallResult)
        assert (result.call_id, result.own) == (call.call_id, True)
        await near.close()
        await near.open()
        near.start()
        assert await near.wait_for(CallResult) == [result]  # its own word also when it is read back


# ------------------------------------------------------------------ a storm of cuts


async def test_under_a_storm_of_cuts_every_call_is_answered_exactly_once(tmp_path, broker):
    async with (
        proxy(broker.port) as middle,
        edge(tmp_path, port=middle.port) as near,
        cloud(broker.port) as far,
    ):
        near.start()
        answered = set()

        async def work():
            while True:
                for heard in list(far.of("call")):
                    if heard.message.id not in answered:
                        answered.add(heard.message.id)
                        await far.accept(heard.message.id)
                        await far.answer(heard.message.id)
                await asyncio.sleep(0.01)

        working = asyncio.create_task(work())
        calls = [a_call() for _ in range(80)]
        for n, call in enumerate(calls):
            await near.uplink.submit(call)
            if n % 20 == 10:
                middle.cut()
        await near.wait_for(CallResult, 80, deadline_s=25)
        working.cancel()
        assert sorted(m.call_id for m in near.got(CallResult)) == sorted(c.call_id for c in calls)
        assert all(m.response == DONE for m in near.got(CallResult))
