"""docs/mqtt.md: every example is replayed against a real edge, every table is what the code has.

The cloud here is a bare MQTT client that follows the document; the edge is a whole daemon.
"""

import asyncio
import json
import ssl
import subprocess
import uuid
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import BrokerOptions, MqttConnection, PublishRefused
from firmware_bridge.messages import Gesture
from tests.documents.blocks import block, shows
from tests.documents.mqtt_examples import DOCUMENT, Conversation, a_cloud, examples
from tests.e2e.broker import HOST, Broker, free_port, iotcore, mosquitto
from tests.e2e.certificates import Authority
from tests.scenarios.network import web
from tests.scenarios.test_own_packages import written
from tests.scenarios.world import until, world
from tests.system import find, program
from tests.unit.cloud.mqtt.support import edge as an_edge
from tools_cache.registry import manifest

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(240)]
ADD = {
    "name": "add",
    "description": "Adds to a list.",
    "sideEffects": "writes",
    "inputSchema": {
        "type": "object",
        "properties": {"item": {"type": "string"}},
        "required": ["item"],
    },
}
DICE = """
import asyncio

async def execute(args, ctx):
    await ctx.progress(f"Rolling {args['count']} dice")
    if args["count"] > 4:
        await asyncio.Event().wait()
    return {"data": {"rolled": [4, 2]}}
"""


class House:
    """One daemon with its glasses and tools, and the cloud that the document describes."""

    def __init__(self, place, cloud, registry, *, exact):
        self.place, self.cloud, self.registry, self._exact = place, cloud, registry, exact
        self.examples = examples(place.edge_id)
        self.since = 0

    def conversation(self, **known):
        self.since = len(self.cloud.heard)
        return Conversation(known, exact=self._exact)

    async def gets(self, title, conversation, **more):
        return await self.cloud.gets(
            self.examples[title], conversation, since=more.pop("since", self.since), **more
        )

    async def says(self, title, conversation):
        await self.cloud.publish(self.examples[title], conversation)


class Registry:
    """What the cloud serves at /api/registry."""

    def __init__(self):
        self.asked = 0
        self.tools = [ADD]

    @property
    def document(self):
        apps = [
            {
                "packageName": "com.example.list",
                "name": "List",
                "hardwareRequirements": [],
                "tools": self.tools,
            }
        ]
        digest = manifest.digest(apps)
        return {"version": f"1.0.{digest[:8]}", "sha256": digest, "apps": apps}

    def answer(self, _method, _path, _headers, _body):
        self.asked += 1
        document = self.document
        return (
            200,
            {"Content-Type": "application/json", "ETag": f'"{document["sha256"]}"'},
            json.dumps(document).encode(),
        )


@asynccontextmanager
async def house(folder, broker, *, exact):
    registry = Registry()
    async with (
        web(registry.answer) as url,
        world(folder) as place,
        a_cloud(HOST, broker.port, place.edge_id) as cloud,
    ):
        place.cloud = {"mqtt": f"{HOST}:{broker.port}", "http": url}
        handler = written(folder / "packages") / "handler.py"
        handler.write_text(DICE)
        place.sections = {
            "tools": {"packages": [str(folder / "packages")]},
            "policy": {"cloud_may": ["glasses", "declared", "my:dice"]},
        }
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        await place.daemon.own_tools.reload()
        await until(
            lambda: place.daemon.registry.snapshot().find("my:dice"), "the own tool is there"
        )
        yield House(place, cloud, registry, exact=exact)


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="session",
    params=["embedded", pytest.param("mosquitto", marks=pytest.mark.mosquitto)],
)
async def served(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mqtt")
    if request.param == "mosquitto":
        program("mosquitto")
    start = mosquitto if request.param == "mosquitto" else iotcore
    with start(folder) as broker:
        async with house(folder, broker, exact=request.param == "mosquitto") as place:
            yield place


def replayed(test):
    """Mark a test that replays examples against the daemon."""
    return pytest.mark.requirement("I12-mqtt")(pytest.mark.asyncio(loop_scope="session")(test))


# ------------------------------------------------------------------ the broker


def by_certificate(folder, ca, name):
    pair = ca.sign(name, client=True, stem=name)
    return {"tls": lambda: trusting(ca, pair)}


def by_password(folder, ca, name):
    argv = [program("mosquitto_passwd"), "-b", str(folder / "passwords"), name, f"secret of {name}"]
    subprocess.run(argv, check=True, capture_output=True)
    return {"tls": lambda: trusting(ca), "username": name, "password": f"secret of {name}"}


def trusting(ca, pair=None):
    context = ssl.create_default_context(cafile=str(ca.file))
    if pair is not None:
        context.load_cert_chain(pair.cert, pair.key)
    return context


def configured(folder, port, *, passwords):
    """Mosquitto's configuration as the document has it, with this test's folder and port."""
    text = block(DOCUMENT, "# /etc/mosquitto/conf.d/glassd.conf").text
    if passwords:
        removed = ("require_certificate", "use_identity_as_username")
        lines = [line for line in text.splitlines() if not line.startswith(removed)]
        text = "\n".join([*lines, "password_file /etc/mosquitto/glassd/passwords", ""])
    text = text.replace("/etc/mosquitto/glassd", str(folder)).replace(
        "/var/lib/mosquitto", str(folder)
    )
    config = folder / "glassd.conf"
    config.write_text(text.replace("listener 8883", f"listener {port} {HOST}") + "user root\n")
    acl = folder / "acl"
    acl.write_text(block(DOCUMENT, "# /etc/mosquitto/glassd/acl").text)
    acl.chmod(0o600)
    return config


@pytest.mark.mosquitto
@pytest.mark.parametrize("credentials", [by_certificate, by_password])
@shows(DOCUMENT, "# /etc/mosquitto/conf.d/glassd.conf", "# /etc/mosquitto/glassd/acl")
async def test_the_access_list_lets_edges_and_workers_do_their_part_only(tmp_path, credentials):
    ca, port = Authority(tmp_path, "ca"), free_port()
    (tmp_path / "broker.pem").write_bytes(ca.sign("broker", stem="broker").cert.read_bytes())
    config = configured(tmp_path, port, passwords=credentials is by_password)
    (tmp_path / "passwords").touch(mode=0o600)
    edge, worker, stranger = (
        credentials(tmp_path, ca, name) for name in ("edge-1", "cloud@worker", "edge-2")
    )

    def connected(client_id, given):
        ready = {**given, "tls": given["tls"]()}
        return MqttConnection(
            BrokerOptions(
                host=HOST,
                port=port,
                client_id=client_id,
                clean_start=True,
                session_expiry_s=0,
                **ready,
            )
        )

    broker = Broker([program("mosquitto"), "-c", str(config)], port, tmp_path / "log").start()
    try:
        folder = tmp_path / "edge"
        folder.mkdir()
        async with an_edge(folder, port=port, **edge) as one, connected("w", worker) as link:
            calls, presence = "$share/tools/glassd/v1/default/e/+/call/tools", "e/+/presence"
            await link.subscribe(calls, f"glassd/v1/default/{presence}")
            one.start()
            await one.up()
            async with asyncio.timeout(40):
                assert (await link.receive()).topic == "glassd/v1/default/e/edge-1/presence"
            for topic in ("e/edge-1/invoke", "e/edge-1/result", "registry/tools"):
                heard_by_the_edge = await link.publish(f"glassd/v1/default/{topic}", b"{}") == 0
                assert heard_by_the_edge, topic
        async with connected("edge-2", stranger) as link:
            await link.publish("glassd/v1/default/e/edge-2/event/tap", b"{}")
            for topic in ("e/edge-1/event/tap", "registry/tools"):
                with pytest.raises(PublishRefused, match="Not authorized"):
                    await link.publish(f"glassd/v1/default/{topic}", b"{}")
    finally:
        broker.stop()


# ------------------------------------------------------------------ bytes


@shows(DOCUMENT, "83 a1 76 01", '{"v": 1, "k": "accepted", "id": "01a2')
def test_the_bytes_in_hexadecimal_are_the_message_beside_them():
    raw = bytes.fromhex(block(DOCUMENT, "83 a1 76 01").text)
    body = json.loads(block(DOCUMENT, '{"v": 1, "k": "accepted", "id": "01a2').text)
    message = wire.decode(raw, content_type=wire.MSGPACK)
    assert (message.kind, message.id, message.body) == (wire.MessageKind.ACCEPTED, body["id"], body)
    assert wire.encode(wire.MessageKind.ACCEPTED, {"id": body["id"]}) == (raw, wire.MSGPACK)


# ------------------------------------------------------------------ the edge calls the cloud


async def calls(house, item, conversation, title="The edge calls a tool of the cloud", **more):
    house.place.start_call("com.example.list:add", {"item": item}, **more)
    return await house.gets(
        title,
        conversation,
        fits=lambda said: said.user["a"] == house.examples[title].headers["user a"],
    )


@replayed
@shows(
    DOCUMENT,
    "# The edge calls a tool of the cloud",
    "# A worker has the call",
    "# The worker says how far it is",
    "# The worker answers that it failed",
)
async def test_a_call_that_fails_in_the_cloud(served):
    conversation = served.conversation()
    await calls(
        served, "milk", conversation, turn_id="turn-7", idempotency_key="milk-1", session="kitchen"
    )
    call_id = conversation.known["call"]
    await served.says("A worker has the call", conversation)
    flights = served.place.daemon.uplink._state.inflight
    await until(
        lambda: flights.call(call_id) is None or flights.call(call_id).accepted,
        "the call is accepted",
    )
    assert flights.call(call_id) is not None, (
        "the call was withdrawn: the edge had not understood that it was accepted"
    )
    await served.says("The worker says how far it is", conversation)
    await served.place.heard("call.progress", call_id=call_id, text="Looking for the list")
    await served.says("The worker answers that it failed", conversation)
    answer = await served.place.answer()
    assert (answer.error.code, answer.error.type, answer.error.message) == (
        "TIMEOUT",
        "TRANSIENT",
        "The shop does not answer",
    )
    assert (answer.error.retryable, answer.error.retry_after_ms, answer.error.suggestion) == (
        True,
        5000,
        "Try again in a moment",
    )


@replayed
@shows(DOCUMENT, "# The worker answers\n", "# The wearer has seen it")
async def test_a_call_that_the_cloud_answers(served):
    conversation = served.conversation()
    await calls(
        served, "milk", conversation, turn_id="turn-7", idempotency_key="milk-1", session="kitchen"
    )
    await served.says("A worker has the call", conversation)
    await served.says("The worker answers", conversation)
    answer = await served.place.answer()
    assert (answer.ok, answer.data, answer.meta["activatedForTool"]) == (
        True,
        {"item": "milk", "count": 3},
        True,
    )
    await served.place.lens_shows("Shopping list", "Added: milk")
    await served.gets("The wearer has seen it", conversation)


@replayed
@shows(
    DOCUMENT,
    "# The same call, sent again",
    "# The edge withdraws it",
    "# A result that comes too late",
    "# What became of it",
)
async def test_a_call_that_nobody_accepts(served):
    conversation = served.conversation()
    await calls(served, "bread", conversation, "The same call, sent again")
    await served.gets("The edge withdraws it", conversation)
    assert (await served.place.answer()).error.code == "NOT_ACCEPTED"
    await served.says("A result that comes too late", conversation)
    await served.gets("What became of it", conversation)
    assert "Added: bread" not in served.place.lens()


# ------------------------------------------------------------------ the cloud calls the edge


@replayed
@shows(
    DOCUMENT,
    "# The cloud calls a tool of the edge",
    "# The edge has the call",
    "# The edge says how far it is",
    "# The edge answers\n",
)
async def test_an_invocation_and_its_repetition(served):
    conversation = served.conversation(call=str(uuid.uuid4()))
    await served.says("The cloud calls a tool of the edge", conversation)
    for title in ("The edge has the call", "The edge says how far it is", "The edge answers"):
        await served.gets(title, conversation)
    since = len(served.cloud.heard)
    await served.says("The cloud calls a tool of the edge", conversation)
    again = await served.gets("The edge answers", conversation, since=since)
    assert [
        said.body
        for said in served.cloud.heard
        if said.kind == "result" and said.body["id"] == again.body["id"]
    ] == [again.body] * 2


@replayed
@shows(
    DOCUMENT,
    "# The cloud calls its invocation off",
    "# The edge answers an invocation that was called off",
)
async def test_an_invocation_that_is_called_off(served):
    conversation = served.conversation(call=str(uuid.uuid4()))
    call = served.examples["The cloud calls a tool of the edge"]
    endless = replace(call, body={**call.body, "args": {**call.body["args"], "count": 5}})
    await served.cloud.publish(endless, conversation)
    await served.gets("The edge has the call", conversation)
    await served.cloud.hears(
        "progress",
        lambda said: said.kind == "progress" and said.body["id"] == conversation.known["call"],
    )
    await served.says("The cloud calls its invocation off", conversation)
    await served.gets("The edge answers an invocation that was called off", conversation)


@replayed
@shows(
    DOCUMENT,
    "# The cloud calls with a version that does not exist",
    "# The edge says what is wrong with it",
)
async def test_an_invocation_that_cannot_be_read(served):
    conversation = served.conversation(call=str(uuid.uuid4()))
    await served.says("The cloud calls with a version that does not exist", conversation)
    await served.gets("The edge says what is wrong with it", conversation)


@replayed
async def test_an_invocation_is_named_by_its_body_or_by_its_correlation_data(served):
    cloud = served.cloud
    for names, tool, ok in (
        (["id"], "clock:now", True),
        (["call_id"], "clock:now", True),
        ([], "clock:now", True),
        (["id"], "clock", False),
    ):
        call_id = str(uuid.uuid4())
        correlation = None if names else uuid.UUID(call_id).bytes
        body = {"v": 1, "tool": tool, "unknown": {}, **dict.fromkeys(names, call_id)}
        await cloud.says(
            "invoke", body, kind="call", reply_to=cloud.reply_topic, correlation=correlation
        )
        said = await cloud.hears(
            "its result", lambda s, call_id=call_id: s.kind == "result" and s.body["id"] == call_id
        )
        assert said.body["ok"] is ok
        assert said.correlation == uuid.UUID(call_id).bytes


@replayed
async def test_an_invocation_that_cannot_be_read_or_named_is_dropped(served):
    cloud = served.cloud
    await cloud.says(
        "invoke",
        {"v": 2, "id": str(uuid.uuid4()), "tool": "clock:now"},
        kind="call",
        reply_to=cloud.reply_topic,
    )
    call_id = str(uuid.uuid4())
    correlation = uuid.UUID(call_id).bytes
    await cloud.says(
        "invoke",
        {"v": 2, "id": call_id},
        kind="call",
        reply_to=cloud.reply_topic,
        correlation=correlation,
    )
    await cloud.hears("why not", lambda said: said.kind == "result" and said.body["id"] == call_id)
    assert not [said for said in cloud.heard if said.kind == "result" and not said.body["id"]]


@replayed
async def test_a_repetition_of_a_running_invocation_gets_nothing_new(served):
    conversation = served.conversation(call=str(uuid.uuid4()))
    call = served.examples["The cloud calls a tool of the edge"]
    endless = replace(call, body={**call.body, "args": {"sides": 6, "count": 5}})
    await served.cloud.publish(endless, conversation)
    mine = conversation.known["call"]
    await served.cloud.hears(
        "progress", lambda said: said.kind == "progress" and said.body["id"] == mine
    )
    await served.cloud.publish(endless, conversation)
    await served.cloud.answer_to(await served.cloud.invokes("clock:now", {}))
    await served.says("The cloud calls its invocation off", conversation)
    await served.cloud.answer_to(mine)
    assert [
        said.kind
        for said in served.cloud.heard
        if said.body.get("id") == mine and "/reply/" in said.topic
    ] == [
        "accepted",
        "progress",
        "result",
    ]


# ------------------------------------------------------------------ what the edge reports


def ours(**fields: Any):
    return lambda said: fields.items() <= said.body.items()


@replayed
@shows(DOCUMENT, "# The edge is there, its glasses too")
async def test_presence(served):
    conversation = served.conversation()
    there = ours(state="online", glasses="connected")
    await served.gets("The edge is there, its glasses too", conversation, since=0, fits=there)


@replayed
@shows(DOCUMENT, "# The edge says goodbye; its will says the same")
async def test_the_last_word_and_the_will(tmp_path):
    there = find("mosquitto") is not None
    with (mosquitto if there else iotcore)(tmp_path) as broker:
        async with house(tmp_path, broker, exact=there) as place:
            conversation = place.conversation()
            will = place.place.daemon.uplink._broker_options(None).will
            await place.place.stop_daemon()
            said = await place.gets(
                "The edge says goodbye; its will says the same",
                conversation,
                fits=ours(state="offline"),
            )
            message = wire.decode(will.payload, content_type=will.content_type)
            assert (will.topic, will.user_properties, message.body) == (
                said.topic,
                (("k", "presence"),),
                said.body,
            )


@replayed
@shows(DOCUMENT, "# The capability report")
async def test_the_capability_report(served):
    conversation = served.conversation()
    await served.gets(
        "The capability report",
        conversation,
        since=0,
        fits=ours(connected=True, worn=None, battery=None),
    )


@replayed
@shows(
    DOCUMENT,
    "# The wearer taps",
    "# The wearer nods",
    "# The wearer presses the button",
    "# The wearer puts the glasses on",
    "# The battery has another level",
    "# The wearer has said something",
)
async def test_events(served):
    glasses = served.place.mock.glasses
    for title, act in (
        ("The wearer taps", lambda: glasses.gesture(Gesture.TAP)),
        ("The wearer nods", lambda: glasses.gesture(Gesture.NOD)),
        ("The wearer presses the button", lambda: glasses.gesture(Gesture.BUTTON)),
        ("The wearer puts the glasses on", lambda: glasses.set_worn(worn=True)),
        ("The battery has another level", lambda: glasses.set_battery(80)),
        ("The wearer has said something", lambda: glasses.say("what is on my list")),
    ):
        conversation = served.conversation()
        assert act()
        await served.gets(title, conversation)


# ------------------------------------------------------------------ the registry


@replayed
@shows(DOCUMENT, "# Another registry is active")
async def test_a_notice_makes_the_edge_fetch_the_registry(served):
    asked = served.registry.asked
    served.registry.tools = [ADD, {**ADD, "name": f"add{asked}"}]
    document = served.registry.document
    conversation = served.conversation(
        version=document["version"], sha256=document["sha256"], url="http://192.0.2.1/not/asked"
    )
    await served.says("Another registry is active", conversation)
    registry = served.place.daemon.registry
    await until(
        lambda: registry.snapshot().find(f"com.example.list:add{asked}"),
        "the new registry is in force",
    )
    assert served.registry.asked == asked + 1
