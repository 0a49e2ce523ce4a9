"""A daemon that was killed while many invocations waited: it comes up again and answers all,
whatever the broker sends first.
"""

import asyncio
import json
import uuid
from contextlib import suppress
from functools import partial

import pytest

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import BrokerOptions, ConnectionOver, MqttConnection
from edge.cloud.mqtt.topics import Topics
from edge.cloud.mqtt.wire import MessageKind
from tests.chaos.callers import BrokeOff, NotThere, request
from tests.e2e.broker import HOST, iotcore, mosquitto, until
from tests.e2e.processes import CLI, Child
from tools_cache.api.tool import CallOrigin, ToolCall

pytestmark = [pytest.mark.enable_socket, pytest.mark.mosquitto, pytest.mark.timeout(300)]
WAITING = 200
ASK_S = 0.05
"""Between two questions to a daemon that starts: each is work for it."""
TOPICS = Topics("default", "backlog")
BROKERS = {
    "stock": partial(mosquitto, stock=True),  # max_inflight_messages is 20
    "max_inflight 63": partial(mosquitto, stock=True, extra="max_inflight_messages 63"),
    "max_inflight 64": partial(mosquitto, stock=True, extra="max_inflight_messages 64"),
    "max_inflight 0": partial(mosquitto, stock=True, extra="max_inflight_messages 0"),
    "rumqttd": iotcore,
}


class Daemon:
    """`glassd run` on a broker. No glasses are paired, so that no life of it loads a radio."""

    def __init__(self, folder, port: int) -> None:
        self._folder, self._socket = folder, folder / "s"
        (folder / "glassd.toml").write_text(f"""
version = 1
[edge]
id = "backlog"
state_dir = "{folder / "state"}"
[glasses]
radio = "inproc"
connect = "paired"
[uplink]
host = "{HOST}"
port = {port}
tls = false
reconnect_max_s = 1.0
[policy]
cloud_may = ["notes:add"]
[audio]
speech = "off"
[control]
socket = "{self._socket}"
group = ""
""")

    def start(self) -> None:
        self._child = Child(
            [*CLI, "run", "--config", str(self._folder / "glassd.toml")],
            log=self._folder / "daemon.log",
        )

    def status(self) -> dict:
        with suppress(NotThere, BrokeOff):
            return request(self._socket, "GET", "/v1/status", timeout_s=10)[1]
        return {}

    def up(self) -> bool:
        return bool(found := self.status()) and found["uplink"]["state"] == "up"

    async def answering(self) -> None:
        await until(lambda: bool(self.status()), what="the daemon answers", every_s=ASK_S)

    def kill(self) -> None:
        self._child.kill9()

    def stop(self) -> None:
        self._child.stop()


async def _hear_results(link: MqttConnection, answered: set[str]) -> None:
    with suppress(ConnectionOver):
        while True:
            packet = await link.receive()
            packet.ack()
            message = wire.decode(
                packet.payload,
                content_type=packet.content_type,
                user_properties=packet.user_properties,
                correlation=packet.correlation,
            )
            done = (
                message.body.get("ok") or message.body.get("error", {}).get("code") == "INTERRUPTED"
            )
            if message.kind is MessageKind.RESULT and done:
                answered.add(message.id)


async def _invoke(link: MqttConnection, call_id: str) -> None:
    call = ToolCall(
        call_id=call_id,
        tool="notes:add",
        args={"text": call_id},
        origin=CallOrigin.CLOUD,
        ttl_s=600.0,
    )
    payload, content_type = wire.encode(MessageKind.CALL, wire.call_to_body(call))
    await link.publish(
        TOPICS.invoke,
        payload,
        content_type=content_type,
        response_topic=TOPICS.reply("far"),
        expiry_s=600.0,
        correlation=wire.correlation_of(call_id),
        user_properties=(("k", "call"),),
    )


@pytest.mark.requirement("I11-uplink-backlog")
@pytest.mark.parametrize("name", BROKERS)
async def test_the_uplink_comes_up_behind_two_hundred_invocations_after_two_kills(tmp_path, name):
    with BROKERS[name](tmp_path) as broker:
        daemon = Daemon(tmp_path, broker.port)
        daemon.start()
        await until(daemon.up, what="uplink up", every_s=ASK_S)
        daemon.kill()
        far = BrokerOptions(
            host=HOST, port=broker.port, client_id="far", clean_start=True, session_expiry_s=0
        )
        async with MqttConnection(far) as link:
            await link.subscribe(TOPICS.reply("far"))
            answered: set[str] = set()
            listening = asyncio.create_task(_hear_results(link, answered))
            wanted = [str(uuid.uuid4()) for _ in range(WAITING)]
            for call_id in wanted:
                await _invoke(link, call_id)
            for _ in range(2):
                daemon.start()
                await daemon.answering()
                await asyncio.sleep(0.25)
                daemon.kill()
            daemon.start()
            try:
                await until(
                    daemon.up,
                    deadline_s=60.0,
                    every_s=ASK_S,
                    what=f"uplink up; status: {json.dumps(daemon.status())[:2000]}",
                )
                await until(
                    lambda: answered >= set(wanted),
                    deadline_s=120.0,
                    what="every invocation is answered",
                )
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
                daemon.stop()
