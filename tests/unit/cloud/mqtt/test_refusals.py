"""What the broker does not take: too large ends at once, everything else is tried again, and
status says so meanwhile.
"""

import asyncio
import os
import signal
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from edge.cloud.mqtt.connection import BrokerOptions, MqttConnection
from edge.cloud.mqtt.connection_types import PacketTooLarge, PublishRefused
from edge.cloud.mqtt.refusals import Refusals
from edge.cloud.mqtt.topics import Topics
from edge.ports import CallResult, Invoked, UplinkTooLarge
from edge.runtime.events import Alarmed
from tests.e2e.broker import HOST, free_port, mosquitto, serving, until
from tests.unit.cloud.mqtt.support import DONE, TOPICS, a_call, cloud, edge
from tools_cache.api.tool import Delivery, DeliveryReport, ErrorCode, ToolResponse

pytestmark = [pytest.mark.enable_socket, pytest.mark.mosquitto]
LIMIT = 2000
BIG = {"text": "x" * 3000}


def limited(tmp_path, **more):
    return mosquitto(tmp_path, extra=f"max_packet_size {LIMIT}", **more)


def alarms(near) -> list[tuple[str, bool]]:
    return [(h.alarm, h.over) for h in near.happened if isinstance(h, Alarmed)]


# ------------------------------------------------------------------ too large


@pytest.mark.requirement("I11-too-large")
async def test_a_call_too_large_for_the_broker_fails_alone(tmp_path):
    with limited(tmp_path) as broker:
        async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
            near.start()
            await near.up()
            with pytest.raises(UplinkTooLarge) as caught:
                await near.uplink.submit(a_call(args=BIG))
            assert (caught.value.size > 3000, caught.value.limit) == (True, LIMIT)
            small = a_call()
            await near.uplink.submit(small)
            await far.wait_for("call")
            await far.answer(small.call_id)
            await near.wait_for(CallResult)
            assert near.uplink.status().up
            assert alarms(near) == []


@pytest.mark.requirement("I11-too-large")
async def test_a_queued_call_beyond_the_limit_ends_with_both_sizes(
    tmp_path,
):
    port = free_port()
    async with edge(tmp_path, port=port) as near:
        near.start()
        big, small = a_call(args=BIG), a_call()
        await near.uplink.submit(big)
        await near.uplink.submit(small)
        with limited(tmp_path, port=port):
            async with cloud(port) as far:
                (result,) = await near.wait_for(CallResult)
                error = result.response.error
                assert (result.call_id, error.code, error.retryable) == (
                    big.call_id,
                    ErrorCode.INVALID_ARGUMENTS,
                    False,
                )
                assert error.details["limit"] == LIMIT
                assert error.details["size"] > 3000
                await far.wait_for("call")
                assert {h.message.id for h in far.of("call")} == {small.call_id}
                connections = near.uplink._retained.connections
                await far.answer(small.call_id)
                await near.wait_for(CallResult, 2)
                assert near.uplink._retained.connections == connections, "the link stayed"
                assert await near.outbox.count() == 0


@pytest.mark.requirement("I11-too-large")
async def test_a_limit_that_was_lowered_at_a_reconnect_counts(tmp_path):
    port = free_port()
    async with edge(tmp_path, port=port, resend_s=30.0) as near:
        near.start()
        with mosquitto(tmp_path, port=port):
            await near.up()
            big = a_call(args=BIG)
            await near.uplink.submit(big)
        await near.down()
        with limited(tmp_path, port=port):
            (result,) = await near.wait_for(CallResult)
            assert result.response.error.code is ErrorCode.INVALID_ARGUMENTS
            await near.up()
        await near.down()
        with pytest.raises(UplinkTooLarge):
            await near.uplink.submit(a_call(args=BIG))


@pytest.mark.requirement("I11-too-large")
@pytest.mark.parametrize("known", [True, False])
async def test_a_result_larger_than_the_broker_takes_is_answered_as_an_error(tmp_path, known):
    big = ToolResponse(data=BIG)
    port = free_port()
    async with edge(tmp_path, port=port) as near:
        near.start()
        invoked = Invoked(a_call(), TOPICS.reply("me"))
        if not known:
            await near.uplink.answer(invoked, big)
        with limited(tmp_path, port=port):
            async with cloud(port) as far:
                await near.up()
                if known:
                    await near.uplink.answer(invoked, big)
                (heard, *_) = await far.wait_for("result")
                error = heard.message.body["error"]
                assert (heard.message.id, error["code"]) == (
                    invoked.call.call_id,
                    "EXECUTION_ERROR",
                )
                assert str(LIMIT) in error["message"]
                await until(lambda: near.uplink.status().outbox == 0)
                assert await near.outbox.count() == 0


@pytest.mark.requirement("I11-too-large")
async def test_a_report_too_large_for_the_broker_only_raises_an_alarm(tmp_path):
    with limited(tmp_path) as broker:
        async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
            near.start()
            await near.uplink.announce(
                capabilities={"model": "m", "tools": ["t" * 3000]}, glasses="connected"
            )
            await near.up()
            await until(lambda: alarms(near) == [("uplink.refused", False)])
            await near.uplink.submit(a_call())
            await far.wait_for("call")
            await near.uplink.announce(
                capabilities={"model": "m", "tools": []}, glasses="connected"
            )
            await until(
                lambda: alarms(near) == [("uplink.refused", False), ("uplink.refused", True)]
            )


@pytest.mark.requirement("I11-too-large")
@pytest.mark.parametrize("length", [60, 100, 128, 200, 16_000])
async def test_only_a_packet_within_the_limit_is_sent(tmp_path, length):
    async def measure(limit: int) -> int:
        """Bytes of the PUBLISH that a broker with this limit gets; 0 when none comes."""
        got = asyncio.get_running_loop().create_future()

        async def serve(reader, writer):
            header = await reader.readexactly(2)
            await reader.readexactly(header[1])
            writer.write(bytes.fromhex("2008000005") + b"\x27" + limit.to_bytes(4, "big"))
            data = b""
            while len(data) < length:
                data += await reader.read(65536)
            if not got.done():
                got.set_result(len(data))
            await reader.read()

        async with serving(serve) as port:
            options = BrokerOptions(host=HOST, port=port, client_id="c", ack_timeout_s=0.2)
            link = MqttConnection(options)
            try:
                async with link:
                    assert link.max_packet == limit
                    await link.publish(
                        "a/topic",
                        b"x" * length,
                        content_type="t",
                        correlation=b"c" * 16,
                        user_properties=[("k", "v")],
                    )
            except PacketTooLarge as error:
                return -error.size
            except Exception:  # noqa: BLE001 - nobody acknowledges here
                return await asyncio.wait_for(got, 40)
        return 0

    size = await measure(1_000_000)
    assert await measure(size) == size
    assert await measure(size - 1) == -size


# ------------------------------------------------------------------ refused


@pytest.mark.requirement("I11-refused")
async def test_messages_refused_for_a_while_are_delivered_later(tmp_path):
    acl = tmp_path / "acl"
    acl.write_text(f"topic readwrite {TOPICS.prefix}/presence\ntopic read #\n")
    acl.chmod(0o600)
    with mosquitto(tmp_path, extra=f"acl_file {acl}") as broker:
        async with edge(tmp_path, port=broker.port) as near, cloud(broker.port) as far:
            near.start()
            await near.up()
            calls = [a_call(ttl_s=60.0) for _ in range(20)]
            for call in calls:
                await near.uplink.submit(call)
            invoked = Invoked(a_call(), TOPICS.reply("me"))
            await near.uplink.answer(invoked, DONE)
            await near.uplink.tell_delivery(
                calls[0].call_id, DeliveryReport(Delivery.SHOWN), age_s=1.0
            )
            await until(lambda: alarms(near) == [("uplink.refused", False)])
            (alarm,) = [h for h in near.happened if isinstance(h, Alarmed)]
            assert "access list" in alarm.text
            assert near.got(CallResult) == []
            acl.write_text("topic readwrite #\n")
            os.kill(broker.process.pid, signal.SIGHUP)
            wanted = {
                call.call_id for call in calls
            }  # one that was not accepted in time comes twice
            await until(lambda: {h.message.id for h in far.of("call")} == wanted)
            await far.wait_for("result")
            await far.wait_for("delivery")
            await until(
                lambda: alarms(near) == [("uplink.refused", False), ("uplink.refused", True)]
            )
            assert near.uplink.status().up


@pytest.mark.requirement("I11-refused")
async def test_a_call_refused_until_its_deadline_says_so_and_ends_the_alarm(tmp_path):
    acl = tmp_path / "acl"
    acl.write_text(f"topic readwrite {TOPICS.prefix}/presence\ntopic read #\n")
    acl.chmod(0o600)
    with mosquitto(tmp_path, extra=f"acl_file {acl}") as broker:
        async with edge(tmp_path, port=broker.port) as near:
            near.start()
            await near.up()
            await near.uplink.submit(a_call(ttl_s=1.5))
            await until(lambda: alarms(near) == [("uplink.refused", False)])
            (result,) = await near.wait_for(CallResult)
            error = result.response.error
            assert (error.code, error.details["reason_code"]) == (ErrorCode.AUTH, 0x87)
            assert error.details["attempts"] > 1
            assert TOPICS.call("tools") in error.suggestion
            await until(
                lambda: alarms(near) == [("uplink.refused", False), ("uplink.refused", True)]
            )
            assert near.uplink.status().outbox == 0


@asynccontextmanager
async def refusing(tmp_path, rule: str):
    """A broker that lets nobody publish but by `rule`, and what lets everybody publish
    everything.
    """
    acl = tmp_path / "acl"
    acl.write_text(f"{rule}\ntopic read #\n")
    acl.chmod(0o600)
    with mosquitto(tmp_path, extra=f"acl_file {acl}") as broker:

        def allow() -> None:
            acl.write_text("topic readwrite #\n")
            os.kill(broker.process.pid, signal.SIGHUP)

        yield broker.port, allow


@pytest.mark.requirement("I11-refused")
@pytest.mark.parametrize(
    "allowed", ["", f"{TOPICS.prefix}/presence", f"{TOPICS.prefix}/capabilities"]
)
async def test_presence_and_report_refused_for_a_while_are_published_when_that_ends(
    tmp_path, allowed
):
    async with (
        refusing(tmp_path, f"topic write {allowed}" if allowed else "") as (port, allow),
        cloud(port) as far,
        edge(tmp_path, port=port) as near,
    ):
        near.start()
        await near.uplink.announce(capabilities={"model": "m", "tools": []}, glasses="connected")
        await near.up()
        await until(lambda: alarms(near) == [("uplink.refused", False)])
        allow()
        await until(lambda: alarms(near) == [("uplink.refused", False), ("uplink.refused", True)])
        assert (await far.wait_for("presence"))[-1].message.body["state"] == "online"
        assert (await far.wait_for("capabilities"))[-1].message.body["model"] == "m"
        assert near.uplink._retained.connections == 1


@pytest.mark.requirement("I11-refused")
async def test_a_refused_events_alarm_ends_with_the_next_success(tmp_path):
    async with (
        refusing(tmp_path, f"topic write {TOPICS.presence}") as (port, allow),
        edge(tmp_path, port=port) as near,
    ):
        near.start()
        await near.up()
        await near.uplink.tell_event("tap", {})
        await until(lambda: alarms(near) == [("uplink.refused", False)])
        allow()
        async with cloud(port) as far, asyncio.timeout(40):
            while alarms(near) == [
                ("uplink.refused", False)
            ]:  # the broker reads its rules when it gets to it
                await near.uplink.tell_event("battery", {})
                await asyncio.sleep(0.05)
            await far.wait_for("event")
        assert alarms(near) == [("uplink.refused", False), ("uplink.refused", True)]


@pytest.mark.requirement("I11-refused")
@pytest.mark.parametrize(
    "to", [{"tenant": "other"}, {"host": None}], ids=["another tenant", "no cloud"]
)
async def test_the_alarms_end_when_the_edge_leaves_the_broker_that_refused(tmp_path, to):
    elsewhere = Topics("other", TOPICS.edge_id)
    async with (
        refusing(tmp_path, f"topic write {elsewhere.prefix}/#") as (port, _allow),
        edge(tmp_path, port=port) as near,
    ):
        near.start()
        await near.up()
        await near.uplink.tell_event("tap", {})
        await until(lambda: alarms(near) == [("uplink.refused", False)])
        near.uplink._note_duplicate()
        near.uplink.use(replace(near.options, **to))
        await until(
            lambda: {("uplink.refused", True), ("uplink.taken_over", True)} <= set(alarms(near))
        )


async def acknowledging(reader, writer, answer) -> None:
    """Be a broker that acknowledges each QoS 1 publish with what `await answer(topic)` gives."""
    while True:
        kind = (await reader.readexactly(1))[0]
        length = shift = 0
        while True:
            byte = (await reader.readexactly(1))[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        body = await reader.readexactly(length)
        if kind >> 4 == 1:
            writer.write(bytes.fromhex("2003000000"))
        elif kind >> 4 == 8:
            writer.write(bytes([0x90, 6]) + body[:2] + b"\x00\x00\x00\x00")
        elif kind >> 4 == 3:
            at = 2 + int.from_bytes(body[:2], "big")
            writer.write(
                bytes([0x40, 3]) + body[at : at + 2] + bytes([await answer(body[2:at].decode())])
            )


@pytest.mark.parametrize("code", [0x90, 0x99])
@pytest.mark.requirement("I11-refused")
async def test_a_refusal_that_no_repetition_changes_ends_the_call_at_once(tmp_path, code):
    async def answer(_topic):
        return code

    async with (
        serving(lambda r, w: acknowledging(r, w, answer)) as port,
        edge(tmp_path, port=port) as near,
    ):
        near.start()
        await near.up()
        await near.uplink.submit(a_call())
        (result,) = await near.wait_for(CallResult)
        assert (result.response.error.code, result.response.error.details["attempts"]) == (
            ErrorCode.NETWORK_ERROR,
            1,
        )


@pytest.mark.requirement("I11-refused")
async def test_a_call_withdrawn_before_the_broker_refuses_it_leaves_no_alarm(tmp_path):
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    async def answer(topic):
        if topic != TOPICS.call("tools"):
            return 0
        asked.set()
        await withdrawn.wait()
        return 0x87

    async with (
        serving(lambda r, w: acknowledging(r, w, answer)) as port,
        edge(tmp_path, port=port) as near,
    ):
        near.start()
        await near.up()
        await near.uplink.submit(call := a_call())
        await asyncio.wait_for(asked.wait(), 40)
        await near.uplink.withdraw(call.call_id, "no need")
        withdrawn.set()
        await until(lambda: near.uplink.status().outbox == 0, what="the worker got it")
        assert alarms(near) == []


def test_the_alarm_names_the_fix_until_the_last_refusal_ends():
    reported: list[str] = []
    refusals = Refusals(reported.append)
    refusals.note(1, PublishRefused(0x97, "t/1", "Quota exceeded"))
    refusals.note("event", PublishRefused(0x87, "t/2", "Not authorized"))
    refusals.over(1)
    refusals.over(3)
    assert "" not in reported
    refusals.over("event")
    assert reported[-1] == ""
    assert "quota" in reported[0]
    assert "t/2" in reported[1]
