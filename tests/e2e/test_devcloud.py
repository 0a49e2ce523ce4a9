"""The small cloud whole: real brokers, real mini-app processes, a bare MQTT client as the edge."""

import asyncio
import base64
import contextlib
import json
import signal
import socket
import sys
import time
import uuid

import httpx
import pytest

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import BrokerOptions, MqttConnection
from edge.cloud.mqtt.topics import Topics
from edge.cloud.mqtt.wire import MessageKind
from edge.devcloud.broker import BrokerFailed, EmbeddedBroker, PortTaken, parse_broker
from edge.devcloud.main import WorkerLimits, _listen, _url_of, run_devcloud, sample_apps
from edge.devcloud.registry import InstalledApp
from edge.runtime.subprocesses import Child
from tests.system import needs, runs

BOTH = pytest.mark.parametrize(
    "kind",
    ["embedded", pytest.param("mosquitto", marks=[pytest.mark.mosquitto, needs("mosquitto")])],
)

BENCH_APP = """
import asyncio
from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import Progress, create_tool, params, reply
stopped, count = asyncio.Event(), 0

async def hold(args, context):
    yield Progress("holding")
    try:
        await asyncio.Event().wait()
    finally:
        stopped.set()

async def was_stopped(args, context):
    async with asyncio.timeout(40):
        await stopped.wait()
    return reply("stopped")

def bump(args, context):
    global count
    count += 1
    return {"success": True, "content": {"count": count, "activated": context.activated_for_tool, "user": context.user_id}}

app = AppServer("com.test.bench")
for name, handler, more in (("hold", hold, {}), ("was_stopped", was_stopped, {"idempotent": True}), ("bump", bump, {})):
    app.register_tool(create_tool(name, "for tests", params(), handler, **more))
if __name__ == "__main__":
    app.run()
"""  # noqa: E501


def tools(*names):
    return tuple(
        {"name": n, "description": "for tests", "inputSchema": {"type": "object", "properties": {}}}
        for n in names
    )


def bench_app(tmp_path):
    script = tmp_path / "bench_app.py"
    script.write_text(BENCH_APP)
    return InstalledApp(
        "com.test.bench",
        "Bench",
        tools("hold", "was_stopped", "bump"),
        command=(sys.executable, str(script)),
    )


NEVER = InstalledApp(
    "com.test.never",
    "Never",
    tools("go"),
    command=(sys.executable, "-c", "import time; time.sleep(600)"),
)
DIES = InstalledApp(
    "com.test.dies",
    "Dies",
    tools("go"),
    command=(sys.executable, "-c", "raise SystemExit('no licence')"),
)


async def eventually(check, within_s=40.0):
    """Ask until it holds; the deadline is the test's."""
    async with asyncio.timeout(within_s):
        while not (found := check()):
            await asyncio.sleep(0.02)
    return found


class Cloud:
    """A running devcloud: what it announced, and its HTTP."""

    def __init__(self, facts, http):
        self.facts, self.http = facts, http

    async def status(self):
        return (await self.http.get("/devcloud/status")).json()

    async def post(self, path, body, **more):
        return await self.http.post(path, json=body, **more)

    async def runs(self, call_id):
        return next(
            c["runs"] for c in (await self.status())["calls"]["recent"] if c["id"] == call_id
        )


@contextlib.asynccontextmanager
async def a_cloud(tmp_path, broker="embedded", **more):
    ready = asyncio.get_running_loop().create_future()
    limits = WorkerLimits(
        connect_s=more.pop("connect_s", 10.0),
        tool_timeout_s=more.pop("tool_timeout_s", 10.0),
        invoke_retry_s=0.2,
        poll_s=0.02,
    )
    running = asyncio.create_task(
        run_devcloud(
            state_dir=tmp_path / "cloud",
            broker=broker,
            announce=ready.set_result,
            limits=limits,
            **more,
        )
    )
    try:
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED, timeout=20)
        if running.done():
            running.result()
        async with httpx.AsyncClient(
            base_url=ready.result()["http"], timeout=15, trust_env=False
        ) as http:
            yield Cloud(ready.result(), http)
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


class FakeEdge:
    """A bare edge: it speaks the wire and nothing else."""

    def __init__(self, connection, edge_id):
        self.connection, self.topics = connection, Topics("default", edge_id)

    async def call(self, tool, *, call_id=None, ttl_s=20.0, key=None, **args):
        call_id = call_id or str(uuid.uuid4())
        body = {
            "id": call_id,
            "tool": tool,
            "args": args,
            "ttl_s": ttl_s,
            "origin": "cli",
            "mode": "text",
            "idempotency_key": key,
        }
        await self.say(
            self.topics.call("tools"),
            MessageKind.CALL,
            body,
            response_topic=self.topics.result,
            expiry_s=ttl_s,
        )
        return call_id

    async def say(self, topic, kind, body, *, retain=False, **more):
        payload, content_type = wire.encode(kind, body)
        correlation = wire.correlation_of(body["id"]) if "id" in body else None
        await self.connection.publish(
            topic,
            payload,
            content_type=content_type,
            correlation=correlation,
            retain=retain,
            user_properties=(("k", kind.value),),
            **more,
        )

    async def hear(self):
        async with asyncio.timeout(40):
            inbound = await self.connection.receive()
        inbound.ack()
        return inbound, wire.decode(
            inbound.payload,
            content_type=inbound.content_type,
            correlation=inbound.correlation,
            user_properties=inbound.user_properties,
        )

    async def hear_to_the_end(self):
        """Everything up to and with the next result: ([(kind, text)…], envelope)."""
        said = []
        while True:
            _, message = await self.hear()
            if message.kind is MessageKind.RESULT:
                return said, wire.response_of(message)
            said.append((message.kind.value, message.body.get("text", "")))

    async def ask(self, tool, **args):
        await self.call(tool, **args)
        return (await self.hear_to_the_end())[1]


@contextlib.asynccontextmanager
async def an_edge(cloud, edge_id="edge-1", *, filters=None):
    host, port = cloud.facts["mqtt_host"], cloud.facts["mqtt_port"]
    async with MqttConnection(
        BrokerOptions(host=host, port=port, client_id=edge_id, keepalive_s=5)
    ) as connection:
        edge = FakeEdge(connection, edge_id)
        await connection.subscribe(*(filters or (edge.topics.result,)))
        yield edge


# ------------------------------------------------------------------ one call


@BOTH
async def test_a_call_starts_its_app_and_is_accepted_then_answered(tmp_path, kind):
    async with a_cloud(tmp_path, kind) as cloud, an_edge(cloud) as edge:
        assert (await cloud.status())["apps"] == {}
        await edge.call("com.example.calc:evaluate", expression="(17 + 4) * 2")
        said, response = await edge.hear_to_the_end()
        assert said == [("accepted", "")]
        assert (response.data["value"], response.render["display"]["text"]) == (
            42,
            "(17 + 4) * 2 = 42",
        )
        assert (response.meta["activatedForTool"], response.meta["registryVersion"]) == (
            True,
            cloud.facts["version"],
        )
        again = await edge.ask("com.example.calc:convert", value=3, **{"from": "ft", "to": "in"})
        assert (round(again.data["value"], 6), again.meta["activatedForTool"]) == (36.0, False)
        app = (await cloud.status())["apps"]["com.example.calc"]
        assert (app["state"], app["starts"]) == ("RUNNING", 1)


async def test_progress_streams_before_the_result(tmp_path):
    async with a_cloud(tmp_path) as cloud, an_edge(cloud) as edge:
        await edge.call("com.example.prime:factorise", number=str(1009 * 10007 * 100003))
        said, response = await edge.hear_to_the_end()
        assert [k for k, _ in said] == ["accepted"] + ["progress"] * (len(said) - 1)
        assert {t for k, t in said if t.startswith("found")} == {
            "found 1009",
            "found 10007",
            "found 100003",
        }
        assert response.data["factors"] == ["1009", "10007", "100003"]


@BOTH
async def test_a_duplicate_id_runs_once(tmp_path, kind):
    async with a_cloud(tmp_path, kind, apps=[bench_app(tmp_path)]) as cloud, an_edge(cloud) as edge:
        call_id = await edge.call("com.test.bench:bump")
        _, first = await edge.hear_to_the_end()
        await edge.call("com.test.bench:bump", call_id=call_id)
        said, second = await edge.hear_to_the_end()
        assert (said, second.to_json()) == ([], first.to_json())
        assert await cloud.runs(call_id) == 1
        assert (await edge.ask("com.test.bench:bump")).data["count"] == 2


@pytest.mark.requirement("S0-17")
async def test_two_calls_at_once_start_the_app_once_and_one_that_ended_is_started_again(tmp_path):
    async with a_cloud(tmp_path, apps=[bench_app(tmp_path)]) as cloud, an_edge(cloud) as edge:
        await edge.call("com.test.bench:bump")
        await edge.call("com.test.bench:bump")
        answers = [(await edge.hear_to_the_end())[1] for _ in range(2)]
        assert sorted(a.meta["activatedForTool"] for a in answers) == [False, True]
        assert sorted(a.data["activated"] for a in answers) == [False, True]
        assert (await cloud.status())["apps"]["com.test.bench"]["starts"] == 1

        # an app that ended is started again
        assert (await cloud.post("/devcloud/apps/com.test.bench/stop", {})).json() == {
            "stopped": True
        }
        again = await edge.ask("com.test.bench:bump")
        assert (again.data["count"], again.meta["activatedForTool"]) == (1, True)


@pytest.mark.requirement("C-11", "S0-21", "S0-22")
async def test_an_app_that_never_connects_times_out_and_is_never_asked(tmp_path):
    async with (
        a_cloud(tmp_path, apps=[NEVER, DIES], connect_s=0.6) as cloud,
        an_edge(cloud) as edge,
    ):
        started = time.monotonic()
        call_id = await edge.call("com.test.never:go")
        _, response = await edge.hear_to_the_end()
        assert time.monotonic() - started >= 0.6
        error = response.error
        assert (error.code, error.type, error.retryable) == (
            "APP_ACTIVATION_TIMEOUT",
            "TRANSIENT",
            True,
        )
        assert error.message == "App com.test.never did not connect within 600ms"
        assert error.partial_side_effects is False
        status = await cloud.status()
        assert (await cloud.runs(call_id), status["calls"]["asked"]) == (0, {})
        assert status["apps"]["com.test.never"]["state"] == "STARTING"

        error = (
            await edge.ask("com.test.dies:go")
        ).error  # it ends at once: says why, and is not worth a retry
        assert error.message.startswith("Failed to activate app: ")
        assert "no licence" in error.message
        assert (error.code, error.retryable) == ("EXECUTION_ERROR", False)


async def test_invalid_arguments_start_nothing(tmp_path):
    async with a_cloud(tmp_path) as cloud, an_edge(cloud) as edge:
        assert (
            await edge.ask("com.example.calc:evaluate", expresion="1")
        ).error.code == "INVALID_ARGUMENTS"
        assert (await edge.ask("com.example.gone:x")).error.code == "TOOL_NOT_FOUND"
        assert (await cloud.status())["apps"] == {}


async def test_a_cancelled_call_stops_in_the_app_too(tmp_path):
    async with a_cloud(tmp_path, apps=[bench_app(tmp_path)]) as cloud, an_edge(cloud) as edge:
        call_id = await edge.call("com.test.bench:hold")
        assert [(await edge.hear())[1].kind for _ in range(2)] == [
            MessageKind.ACCEPTED,
            MessageKind.PROGRESS,
        ]
        await edge.say(
            edge.topics.cancel, MessageKind.CANCEL, {"id": call_id, "reason": "wearer left"}
        )
        _, response = await edge.hear_to_the_end()
        assert (response.error.code, response.error.message) == (
            "CANCELLED",
            "Cancelled: wearer left",
        )
        assert (await edge.ask("com.test.bench:was_stopped")).data == "stopped"


async def test_a_tool_that_takes_too_long_times_out_and_its_app_stays(tmp_path):
    async with a_cloud(tmp_path, tool_timeout_s=0.3) as cloud, an_edge(cloud) as edge:
        error = (await edge.ask("com.example.slowpoke:ponder", seconds=60, text="x")).error
        assert (error.code, error.message) == ("TIMEOUT", "Tool execution timeout after 300ms")
        assert (await cloud.status())["apps"]["com.example.slowpoke"]["state"] == "RUNNING"
        assert (await edge.ask("com.example.slowpoke:ponder", seconds=0, text="abc cba")).data[
            "palindrome"
        ] is True


async def test_the_camera_app_reads_a_picture_and_is_listed_only_for_cameras(tmp_path):
    async with a_cloud(tmp_path) as cloud, an_edge(cloud) as edge:
        picture = base64.b64encode(b"P5 2 2 255 \x00\x00\xff\xff").decode()
        found = (await edge.ask("com.example.photo:inspect", image=picture)).data
        assert (found["width"], found["meanBrightness"], found["histogram"][0]) == (2, 127.5, 0.5)

        async def listed():
            tools = (
                (await cloud.http.get("/api/tools", headers={"X-User-Id": "edge-1"}))
                .json()
                .get("tools", [])
            )
            return {t["name"] for t in tools}

        for camera in (True, False):
            body = {
                "model": "mock",
                "capabilities": {"camera": {"value": camera, "origin": "firmware", "ageS": 0.1}},
            }
            await edge.say(edge.topics.capabilities, MessageKind.CAPABILITIES, body, retain=True)
            async with asyncio.timeout(40):
                while (
                    "com.example.photo:inspect" in await listed()
                ) is not camera or "com.example.calc:evaluate" not in await listed():
                    await asyncio.sleep(0.02)


async def test_a_task_is_added_for_real_and_its_app_remembers(tmp_path):
    for expected in (1, 2):
        async with a_cloud(tmp_path) as cloud, an_edge(cloud) as edge:
            assert (await edge.ask("com.example.tasks:add", title="buy milk")).data[
                "count"
            ] == expected


# ------------------------------------------------------------------ keys, and results that are
# handed in


LATER = InstalledApp(
    "com.test.later", "Later", tuple({**t, "executionType": "external"} for t in tools("decide"))
)


@BOTH
@pytest.mark.requirement("S2-104")
async def test_two_deliveries_at_once_with_one_key_have_one_effect_and_two_answers(tmp_path, kind):
    async with a_cloud(tmp_path, kind) as cloud, an_edge(cloud) as edge:
        event = {"title": "Dinner", "start": "2026-05-04T20:00", "attendees": ["Ann"]}
        for _ in range(5):
            await edge.call("com.example.calendar:create_event", key="dinner", **event)
        answers = [(await edge.hear_to_the_end())[1] for _ in range(5)]
        assert [a.error for a in answers] == [None] * 5
        assert [a.data["number"] for a in answers] == [1] * 5
        assert sorted("_idempotent_cache_hit" in a.meta for a in answers) == [False] + [True] * 4
        assert (await edge.ask("com.example.calendar:list_events")).data["count"] == 1
        assert (await cloud.status())["calls"]["asked"]["com.example.calendar:create_event"] == 1


@pytest.mark.requirement("S3-24")
@pytest.mark.requirement("S3-28")
async def test_a_pending_call_survives_kill_9_and_its_result_is_told_once(tmp_path):
    broker = EmbeddedBroker()
    await broker.start()
    try:
        address = f"{broker.host}:{broker.port}"
        async with a_cloud_process(tmp_path, address) as (cloud, process), an_edge(cloud) as edge:
            body = {"tools": [dict(t) for t in LATER.tools]}
            assert (await cloud.post("/api/apps/com.test.later/tools", body)).status_code == 201
            call_id = await edge.call("com.test.later:decide", ttl_s=600.0, color="red")
            assert (await edge.hear())[1].kind is MessageKind.ACCEPTED
            await until_pending(cloud, call_id)
            process.send_signal(signal.SIGKILL)
            await process.wait()
        async with a_cloud_process(tmp_path, address) as (cloud, _), an_edge(cloud) as edge:
            (pending,) = (await cloud.http.get("/devcloud/calls")).json()["pending"]
            assert (pending["id"], pending["edge"], pending["args"]) == (
                call_id,
                "edge-1",
                {"color": "red"},
            )
            path, good = (
                f"/devcloud/calls/{call_id}/result",
                {"edge": "edge-1", "result": {"ok": True, "data": "yes", "meta": {}}},
            )
            assert (await cloud.post(path, {**good, "edge": "edge-2"})).status_code == 404
            assert (
                await cloud.post(f"/devcloud/calls/{uuid.uuid4()}/result", good)
            ).status_code == 404
            assert [(await cloud.post(path, good)).status_code for _ in range(2)] == [200, 409]
            assert (await edge.hear_to_the_end())[1].data == "yes"
            assert (await edge.ask("com.example.calc:evaluate", expression="1+1")).data[
                "value"
            ] == 2, "nothing came between"
            assert (await cloud.http.get("/devcloud/calls")).json() == {"pending": []}
    finally:
        await broker.aclose()


async def until_pending(cloud, call_id):
    async with asyncio.timeout(40):
        while call_id not in {
            p["id"] for p in (await cloud.http.get("/devcloud/calls")).json()["pending"]
        }:
            await asyncio.sleep(0.02)


async def test_a_pending_call_expires_with_its_life_and_takes_no_result_after_it(tmp_path):
    async with a_cloud(tmp_path, apps=[LATER]) as cloud, an_edge(cloud) as edge:
        call_id = await edge.call("com.test.later:decide", ttl_s=1.0)
        _, response = await edge.hear_to_the_end()
        assert response.error.code == "DEADLINE_EXPIRED"
        answer = await cloud.post(
            f"/devcloud/calls/{call_id}/result", {"edge": "edge-1", "result": 1}
        )
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CONFLICT")


# ------------------------------------------------------------------ restarts


@pytest.mark.mosquitto
@needs("mosquitto")
async def test_after_a_restart_of_the_cloud_the_same_id_gets_the_stored_answer(tmp_path):
    broker = EmbeddedBroker("mosquitto")
    await broker.start()
    try:
        address = f"{broker.host}:{broker.port}"
        async with (
            a_cloud(tmp_path, address, apps=[bench_app(tmp_path)]) as cloud,
            an_edge(cloud) as edge,
        ):
            call_id = await edge.call("com.test.bench:bump")
            _, first = await edge.hear_to_the_end()
        async with (
            a_cloud(tmp_path, address, apps=[bench_app(tmp_path)]) as cloud,
            an_edge(cloud) as edge,
        ):
            await edge.call("com.test.bench:bump", call_id=call_id)
            said, again = await edge.hear_to_the_end()
            assert (said, again.to_json()) == ([], first.to_json())
            assert (await cloud.status())["apps"] == {}
    finally:
        await broker.aclose()


async def test_a_writing_call_cut_off_by_a_restart_ends_as_interrupted_without_being_asked_again(
    tmp_path,
):
    broker = EmbeddedBroker()
    await broker.start()
    try:
        address = f"{broker.host}:{broker.port}"
        async with contextlib.AsyncExitStack() as stack:
            cloud = await stack.enter_async_context(
                a_cloud(tmp_path, address, apps=[bench_app(tmp_path)])
            )
            edge = await stack.enter_async_context(an_edge(cloud))
            await edge.call("com.test.bench:hold")
            assert [(await edge.hear())[1].kind for _ in range(2)] == [
                MessageKind.ACCEPTED,
                MessageKind.PROGRESS,
            ]
        second = a_cloud(tmp_path, address, apps=[bench_app(tmp_path)])
        async with MqttConnection(
            BrokerOptions(host=broker.host, port=broker.port, client_id="edge-1")
        ) as connection:
            edge = FakeEdge(connection, "edge-1")
            await connection.subscribe(edge.topics.result)
            async with second as cloud:
                _, response = await edge.hear_to_the_end()
                assert (response.error.code, response.error.partial_side_effects) == (
                    "INTERRUPTED",
                    True,
                )
                assert (await cloud.status())["apps"] == {}
    finally:
        await broker.aclose()


@BOTH
async def test_the_cloud_survives_its_broker_and_names_the_registry_again(tmp_path, kind):
    async with a_cloud(tmp_path, kind) as cloud:
        notice = Topics("default", "edge-1").registry("tools")

        async def noticed():
            async with an_edge(cloud, filters=(notice, Topics("default", "edge-1").result)) as edge:
                inbound, message = await edge.hear()
                assert (inbound.topic, inbound.retain) == (notice, True)
                assert (await edge.ask("com.example.calc:evaluate", expression="6*7")).data[
                    "value"
                ] == 42
                return message.body

        before = await noticed()
        assert (before["version"], before["url"]) == (
            cloud.facts["version"],
            cloud.facts["registry"],
        )
        assert (await cloud.post("/devcloud/broker", {"running": False, "kill": True})).json()[
            "running"
        ] is False
        with pytest.raises(Exception, match="refused"):
            await noticed()
        back = (await cloud.post("/devcloud/broker", {"running": True})).json()
        assert back == {"running": True, "port": cloud.facts["mqtt_port"]}
        async with asyncio.timeout(40):
            while (await cloud.status())["link"]["connects"] != 2:
                await asyncio.sleep(0.02)
        after = await noticed()
        assert after == before


async def test_a_submission_renews_the_retained_notice(tmp_path):
    async with (
        a_cloud(tmp_path) as cloud,
        an_edge(cloud, filters=(Topics("default", "e").registry("tools"),)) as edge,
    ):
        _, first = await edge.hear()
        body = {"tools": [{"name": "go", "description": "d", "inputSchema": {"type": "object"}}]}
        answer = await cloud.post("/api/apps/com.n.new/tools", body)
        _, second = await edge.hear()
        document = (await cloud.http.get("/api/registry")).json()
        assert (
            first.body["version"]
            != second.body["version"]
            == answer.json()["version"]
            == document["version"]
        )
        assert second.body["sha256"] == document["sha256"]


# ------------------------------------------------------------------ the agent


@BOTH
async def test_an_invocation_goes_to_the_edge_and_its_envelope_comes_back(tmp_path, kind):
    async with (
        a_cloud(tmp_path, kind) as cloud,
        an_edge(cloud, filters=(Topics("default", "edge-1").invoke,)) as edge,
    ):
        asking = asyncio.create_task(
            cloud.post(
                "/devcloud/invoke",
                {
                    "edge_id": "edge-1",
                    "tool": "glasses:show_text",
                    "args": {"text": "hi"},
                    "trace": True,
                },
            )
        )
        inbound, message = await edge.hear()
        call = wire.body_to_call(message)
        assert (call.tool, call.args, call.origin) == ("glasses:show_text", {"text": "hi"}, "cloud")
        assert uuid.UUID(call.call_id).version == 7
        assert edge.topics.may_answer_to(inbound.response_topic)
        envelope = {"ok": True, "data": {"shown": "hi"}, "meta": {"delivery": "shown"}}
        for answer in (
            MessageKind.ACCEPTED,
            MessageKind.PROGRESS,
            MessageKind.RESULT,
            MessageKind.RESULT,
        ):
            body = {"id": call.call_id, "text": "drawing", **envelope}
            await edge.say(inbound.response_topic, answer, body)
        told = (await asking).json()
        assert told == {"accepted": True, "progress": ["drawing"], "response": envelope}


async def test_an_invocation_is_offered_again_with_the_same_id_until_accepted(tmp_path):
    async with (
        a_cloud(tmp_path) as cloud,
        an_edge(cloud, filters=(Topics("default", "edge-1").invoke,)) as edge,
    ):
        asking = asyncio.create_task(
            cloud.post("/devcloud/invoke", {"edge_id": "edge-1", "tool": "glasses:clear"})
        )
        first, second = (await edge.hear())[1], (await edge.hear())[1]
        assert first.id == second.id
        assert (first.attempt, second.attempt) == (1, 2)
        assert second.body["ttl_s"] < first.body["ttl_s"]
        inbound = f"glassd/v1/default/e/edge-1/reply/{(await reply_word(cloud, edge, first))}"
        await edge.say(
            inbound, MessageKind.RESULT, {"id": first.id, "ok": True, "data": None, "meta": {}}
        )
        assert (await asking).json() == {"ok": True, "data": None, "meta": {}}


async def reply_word(cloud, edge, message):
    """The worker's own word, as the next attempt's response topic names it."""
    inbound, again = await edge.hear()
    assert again.id == message.id
    return inbound.response_topic.rpartition("/")[2]


async def test_an_edge_that_is_away_and_one_that_falls_silent_are_told_apart(tmp_path):
    async with a_cloud(tmp_path) as cloud:
        body = {"edge_id": "edge-1", "tool": "glasses:clear", "ttl_s": 0.5}
        assert (await cloud.post("/devcloud/invoke", body)).json()["error"][
            "code"
        ] == "NOT_ACCEPTED"
        async with an_edge(cloud, filters=(Topics("default", "edge-1").invoke,)) as edge:
            asking = asyncio.create_task(cloud.post("/devcloud/invoke", {**body, "ttl_s": 0.6}))
            inbound, message = await edge.hear()
            await edge.say(inbound.response_topic, MessageKind.ACCEPTED, {"id": message.id})
            assert (await asking).json()["error"]["code"] == "TIMEOUT"
            cancel = (await edge.hear())[1]
            assert (cancel.kind, cancel.id) == (MessageKind.CANCEL, message.id)


async def test_a_bad_request_at_the_workbench_names_the_field(tmp_path):
    async with a_cloud(tmp_path) as cloud:
        for path, body, field in (
            ("/devcloud/invoke", {"edge_id": "a/b", "tool": "x:y"}, "edge_id"),
            ("/devcloud/invoke", {"edge_id": "a", "tool": 5}, "tool"),
            ("/devcloud/invoke", {"edge_id": "a", "tool": "x:y", "args": []}, "args"),
            ("/devcloud/invoke", {"edge_id": "a", "tool": "x:y", "ttl_s": 1e9}, "ttl_s"),
            ("/devcloud/broker", {"running": "no"}, "running"),
            ("/devcloud/broker", [], "body"),
            ("/devcloud/calls/x/result", {"result": 1}, "edge"),
            ("/devcloud/calls/x/result", {"edge": "e"}, "result"),
        ):
            answer = await cloud.post(path, body)
            assert (answer.status_code, answer.json()["error"]["field"]) == (400, field), body


# ------------------------------------------------------------------ HTTP execute, brokers, children


async def test_execute_over_http_runs_the_same_tools(tmp_path):
    async with a_cloud(tmp_path) as cloud:
        body = {"name": "com.example.storyteller:tell", "arguments": {"items": [2, 2]}}
        answer = await cloud.post("/api/tools/execute", body, headers={"X-User-Id": "local"})
        assert answer.status_code == 200
        assert answer.json()["content"]["text"].endswith("two and two. Together that makes four.")


@pytest.mark.requirement("S0-26", "S0-31", "S0-46", "S0-67", "C-12")
async def test_the_seeds_words_come_over_a_real_socket(tmp_path):
    me = {"X-User-Id": "local"}

    def failed(code, message, **more):
        return {"success": False, "error": {"code": code, "message": message, **more}}

    async with a_cloud(
        tmp_path, apps=[InstalledApp("com.test.homeless", "H", tools("go"))]
    ) as cloud:

        async def said(method, path, body=None, headers=me):
            answer = await cloud.http.request(method, path, json=body, headers=headers)
            return answer.status_code, answer.json() if answer.headers[
                "content-type"
            ] == "application/json" else None

        for method, path in (("GET", "/api/tools"), ("POST", "/api/tools/execute")):
            assert await said(method, path, headers={}) == (
                401,
                {"error": "Missing X-User-Id header"},
            )
            assert await said(method, path, headers={"X-User-Id": "nobody"}) == (
                401,
                {"error": "No active session for user"},
            )
        listed = {
            "name": "com.test.homeless:go",
            "description": "for tests",
            "inputSchema": {"type": "object", "properties": {}},
        }
        assert await said("GET", "/api/tools") == (200, {"tools": [listed]})
        nameless = (400, failed("INVALID_REQUEST", "Missing or invalid tool name"))
        for body in ({}, {"name": 5}, {"name": ""}, [], None):
            assert await said("POST", "/api/tools/execute", body) == nameless
        for name, status, code, message, more in (
            (
                "com.test.homeless:gone",
                404,
                "TOOL_NOT_FOUND",
                "Tool com.test.homeless:gone not found",
                {},
            ),
            (
                "nocolon",
                500,
                "INVALID_TOOL_NAME",
                "Invalid tool name format: nocolon. Expected format: packageName:toolName",
                {"retryable": False},
            ),
            (
                "com.test.homeless:go",
                500,
                "APP_NOT_AVAILABLE",
                "App com.test.homeless has no public URL",
                {"retryable": False},
            ),
        ):
            assert await said("POST", "/api/tools/execute", {"name": name}) == (
                status,
                failed(code, message, **more),
            )
        for method, path in (
            ("GET", "/api/tools/apps/com.test.homeless/tools"),
            ("GET", "/api/tools/users/local/tools"),
            ("POST", "/api/tools/apps/com.test.homeless/tool"),
        ):
            assert (await said(method, path))[0] == 404


@BOTH
async def test_a_broker_comes_back_on_its_own_port_and_refuses_a_taken_one(kind):
    broker = EmbeddedBroker(kind)
    try:
        await broker.start()
        first, port = broker.pid, broker.port
        with pytest.raises(PortTaken, match=str(port)):
            await EmbeddedBroker(kind, port=port).start()
        await broker.kill()
        assert broker.running is False
        await broker.start()
        assert (broker.port, broker.pid != first) == (port, True)
        async with MqttConnection(
            BrokerOptions(host=broker.host, port=port, client_id="c")
        ) as connection:
            await connection.subscribe("t")
            await connection.publish("t", b"x" * (256 * 1024))
            async with asyncio.timeout(40):
                assert len((await connection.receive()).payload) == 256 * 1024
    finally:
        await broker.aclose()
    assert broker.running is False


@BOTH
async def test_no_other_program_gets_the_ports_of_a_starting_broker(kind, monkeypatch):
    start, refused = Child.start, []

    async def start_beside_another(command, **more):
        for port in broker.asked_ports:
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))
            refused.append(port)
        return await start(command, **more)

    class Broker(EmbeddedBroker):
        def _command(self, folder, port, port_v4):
            self.asked_ports = {port, port_v4}
            return super()._command(folder, port, port_v4)

    monkeypatch.setattr(Child, "start", start_beside_another)
    broker = Broker(kind)
    try:
        await broker.start()
        assert len(refused) == 2
        assert {broker.port, broker.port_v4} <= set(refused)
    finally:
        await broker.aclose()


@pytest.mark.parametrize("text", ["mosquito", "host", ":1883", "host:0", "host:x", "host:70000"])
def test_a_broker_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="broker"):
        parse_broker(text)


def test_a_broker_is_ours_or_somebody_elses():
    assert (parse_broker("embedded"), parse_broker("mosquitto"), parse_broker("[::1]:1883")) == (
        None,
        None,
        ("::1", 1883),
    )


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("127.0.0.1:0", "http://127.0.0.1:"),
        ("0.0.0.0:0", "http://127.0.0.1:"),
        ("[::1]:0", "http://[::1]:"),
    ],
)
def test_the_address_that_is_announced_can_be_connected_to(address, url):
    with _listen(address) as listener:
        assert _url_of(listener) == f"{url}{listener.getsockname()[1]}"


@pytest.mark.parametrize("address", ["8787", "host", "127.0.0.1:x", "127.0.0.1:99999", ":80"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ValueError, match="http: "), _listen(address):
        pass


async def test_a_broker_that_does_not_answer_is_said_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.devcloud.main.FIRST_CONNECT_S", 0.3)
    with pytest.raises(BrokerFailed, match=r"no MQTT 5 broker answers at 127\.0\.0\.1:9"):
        async with a_cloud(tmp_path, "127.0.0.1:9"):
            pass


async def children_of(cloud, edge):
    await edge.ask("com.example.calc:evaluate", expression="1+1")
    status = await cloud.status()
    return [status["broker"]["pid"], status["apps"]["com.example.calc"]["pid"]]


async def test_when_the_cloud_ends_so_do_its_children(tmp_path):
    async with a_cloud(tmp_path) as cloud, an_edge(cloud) as edge:
        pids = await children_of(cloud, edge)
        assert all(runs(pid) for pid in pids)
    assert not any(runs(pid) for pid in pids)


CLOUD_PROCESS = """
import asyncio, json, pathlib, sys
from edge.devcloud.main import run_devcloud
asyncio.run(run_devcloud(state_dir=pathlib.Path(sys.argv[1]), broker=sys.argv[2],
                         announce=lambda facts: print(json.dumps(facts), flush=True)))
"""


@contextlib.asynccontextmanager
async def a_cloud_process(tmp_path, broker):
    """The cloud as a process of its own, to be killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CLOUD_PROCESS,
        str(tmp_path / "cloud"),
        broker,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(40):
            facts = json.loads(await process.stdout.readline())
        async with httpx.AsyncClient(base_url=facts["http"], trust_env=False) as http:
            yield Cloud(facts, http), process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@BOTH
async def test_when_the_cloud_is_killed_its_children_die_with_it(tmp_path, kind):
    async with a_cloud_process(tmp_path, kind) as (cloud, process):
        async with an_edge(cloud) as edge:
            pids = await children_of(cloud, edge)
        assert all(runs(pid) for pid in pids)
        process.send_signal(signal.SIGKILL)
        await eventually(lambda: not any(runs(pid) for pid in pids))


def test_the_samples_are_installed_unless_others_are_named():
    assert {a.package for a in sample_apps()} >= {
        "com.example.calc",
        "com.example.photo",
        "com.example.tasks",
    }
