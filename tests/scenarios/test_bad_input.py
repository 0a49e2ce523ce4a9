"""Story: nonsense arrives at every door; it is answered or dropped as the contract says, and
the daemon serves on.
"""

import asyncio
import json
import os
import random
import uuid

import pytest

from firmware_bridge.messages import Gesture
from tests.scenarios.network import JSON, MSGPACK
from tests.scenarios.world import until, whole_world, world

pytestmark = pytest.mark.asyncio(loop_scope="session")

CALC = "com.example.calc:evaluate"
CONVERT = "com.example.calc:convert"


# ------------------------------------------------------------------ MQTT


def call(call_id, **more):
    return {
        "v": 1,
        "id": call_id,
        "tool": "notes:add",
        "args": {"text": "from nonsense"},
        "ttl_s": 20,
        **more,
    }


@pytest.mark.parametrize(
    ("raw", "content_type", "reason"),
    [
        (b"\xc1\xff\x00 garbage", MSGPACK, "malformed"),
        (b"", MSGPACK, "malformed"),
        (b"[1, 2", JSON, "malformed"),
        (b"hello", "text/plain", "unsupported_content"),
        (b"hello", None, "unsupported_content"),
        (json.dumps({"v": 2, "id": "x"}).encode(), JSON, "unsupported_version"),
        (json.dumps({"v": 1, "tool": "notes:add", "args": []}).encode(), JSON, "malformed"),
        (b"[" * 5000, JSON, "malformed"),
        (json.dumps({"v": 1, "pad": "x" * (256 * 1024)}).encode(), JSON, "too_large"),
    ],
)
async def test_an_invocation_that_cannot_be_read_is_answered_with_the_reason_and_not_run(
    served, raw, content_type, reason
):
    place, cloud_side = served
    call_id = uuid.uuid4()
    await cloud_side.says(
        "invoke",
        raw,
        kind="call",
        content_type=content_type,
        reply_to=cloud_side.reply_topic,
        correlation=call_id.bytes,
    )
    error = (await cloud_side.answer_to(str(call_id)))["error"]
    assert (error["type"], error["code"], error["retryable"]) == (
        "VALIDATION",
        "INVALID_REQUEST",
        False,
    )
    assert error["details"]["reason"] == reason
    assert error["suggestion"]
    await serves_on(place, cloud_side)


async def test_json_is_accepted_and_answered_in_kind(served):
    _, cloud_side = served
    call_id = await cloud_side.invokes("clock:now", {}, content_type=JSON)
    said = await cloud_side.hears(
        "the answer", lambda s: s.kind == "result" and s.body.get("id") == call_id
    )
    assert said.content_type == JSON
    assert said.body["ok"] is True
    assert said.correlation == uuid.UUID(call_id).bytes


@pytest.mark.requirement("K4-prefix")
async def test_an_invocation_that_asks_for_its_answer_elsewhere_is_neither_run_nor_answered(served):
    place, cloud_side = served
    await cloud_side.subscribe("glassd/v1/default/e/somebody-else/#")
    for reply_to in (
        "glassd/v1/default/e/somebody-else/result",
        f"{cloud_side.prefix}x/result",
        "glassd/v1/default/registry/tools",
        None,
    ):
        body = call(str(uuid.uuid4()), args={"text": "must not be written"})
        await cloud_side.says(
            "invoke", body, kind="call", reply_to=reply_to, correlation=uuid.UUID(body["id"]).bytes
        )
    await serves_on(place, cloud_side)
    notes = await place.call("notes:list", {"limit": 50})
    assert not any("must not be written" in note["text"] for note in notes.data["notes"])
    assert not [s for s in cloud_side.heard if "somebody-else" in s.topic]


@pytest.mark.requirement("K4-wire")
async def test_nonsense_on_the_result_topic_disturbs_no_call(served):
    place, cloud_side = served
    for raw, content_type in (
        (os.urandom(64), MSGPACK),
        (b"", MSGPACK),
        (b"x" * 300_000, MSGPACK),
        (b"{}", "image/png"),
        (json.dumps({"v": 1, "id": "not-an-id"}).encode(), JSON),
    ):
        await cloud_side.says("result", raw, kind="result", content_type=content_type)
    stranger = {"v": 1, "id": str(uuid.uuid4()), "ok": True, "data": "never asked for", "meta": {}}
    await cloud_side.says("result", stranger, kind="result")
    assert (await place.call(CALC, {"expression": "20+3"})).meta["delivery"] == "shown"
    assert not any("never asked for" in " ".join(page["lines"]) for page in place.drawn())


async def test_a_worker_that_cannot_write_an_envelope_has_still_ended_the_call(tmp_path, cloud):
    async with (
        whole_world(tmp_path, cloud=cloud, uplink={"pool": "clumsy"}) as place,
        place.onlooker() as worker,
    ):
        place.start_call(CALC, {"expression": "1"})
        asked = await worker.hears_on("call/clumsy")
        both = {"ok": True, "error": {"code": "INTERNAL"}, "data": 1}
        await worker.says(
            "result",
            {"v": 1, "id": asked.body["call_id"], **both},
            kind="result",
            correlation=asked.correlation,
        )
        answer = await place.answer()
        assert answer.error.code == "EXECUTION_ERROR"
        assert "cannot be read" in answer.error.message


async def serves_on(place, cloud_side):
    """The next invocation is served as if nothing had happened."""
    answer = await cloud_side.answer_to(await cloud_side.invokes("clock:now", {}))
    assert answer["ok"] is True
    assert place.daemon.uplink.status().up
    assert all(s["state"] == "running" for s in place.daemon.status()["services"])


# ------------------------------------------------------------------ Bluetooth


@pytest.mark.parametrize("seed", range(4))
async def test_garbage_from_the_glasses_leaves_a_link_that_works(tmp_path, seed):
    chance = random.Random(seed)
    kinds = [
        lambda: chance.randbytes(chance.randrange(0, 245)),
        lambda: (
            bytes([chance.choice((1, 2, 3, 4, 0xFF)), chance.randrange(256)]) + chance.randbytes(40)
        ),
        lambda: b"\x01\x03" + b"\xff" * 240,  # a frame that promises more than there may be
        lambda: b"",
    ]
    async with world(tmp_path) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        for _ in range(40):
            await babble(place, chance.choice(kinds)())
        await until(
            lambda: place.daemon.link.status().ready and place.mock.glasses.connected, "a link"
        )
        await until_it_works(place)
        assert all(s["state"] == "running" for s in place.daemon.status()["services"])


async def babble(place, packet):
    """Notify raw bytes through the mock's GATT server, below its codec; nobody may be listening
    just now.
    """
    subscription = place.mock.servers[None]._current
    if subscription is not None and not subscription._over.is_set():
        await subscription.notify(packet)
    await asyncio.sleep(0)


async def until_it_works(place):
    """What was sent while the link was being replaced may be lost with it; what is asked now is
    shown.
    """
    async with asyncio.timeout(40):
        while (await place.call("glasses:show_text", {"text": "made it"})).meta.get(
            "delivery"
        ) != "shown":
            await asyncio.sleep(0.05)
    assert place.lens() == ["made it"]


async def test_gestures_come_through_after_garbage(tmp_path):
    async with world(tmp_path) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        await babble(place, b"\x00" * 100)
        await until(
            lambda: place.daemon.link.status().ready and place.mock.glasses.connected, "a link"
        )
        await until_it_works(place)
        place.mark()
        place.wearer_does(Gesture.DOUBLE_TAP)
        await place.heard("glasses.event")
        await until(lambda: place.lens() == [], "dark")


# ------------------------------------------------------------------ calls


async def test_wrong_arguments_are_all_named_with_their_paths_and_nothing_leaves_this_machine(
    served,
):
    place, _ = served
    answer = await place.call(CONVERT, {"value": "ten", "from": 7, "extra": 1})
    assert (answer.error.type, answer.error.code) == ("VALIDATION", "INVALID_ARGUMENTS")
    problems = {p["path"]: p["problem"] for p in answer.error.details}
    assert {"value", "from"} <= {path.strip("/") for path in problems}
    assert len(answer.error.details) == 4, "two types, one missing, one unknown"
    for word in ("value", "from", "to", "extra"):
        assert word in answer.error.message
    assert answer.meta["delivery"] == "none", "a mistake of form is between a program and us"
    assert await place.runs(answer.meta["callId"]) is None


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("com.example.calc:nothing", "TOOL_NOT_FOUND", "Tool com.example.calc:nothing not found"),
        ("nobody:nothing", "TOOL_NOT_FOUND", "Tool nobody:nothing not found"),
        ("", "INVALID_REQUEST", "Missing or invalid tool name"),
        ("   ", "INVALID_REQUEST", "Missing or invalid tool name"),
        (
            "nocolon",
            "INVALID_TOOL_NAME",
            "Invalid tool name format: nocolon. Expected format: packageName:toolName",
        ),
        (
            ":tool",
            "INVALID_TOOL_NAME",
            "Invalid tool name format: :tool. Expected format: packageName:toolName",
        ),
        (
            "package:",
            "INVALID_TOOL_NAME",
            "Invalid tool name format: package:. Expected format: packageName:toolName",
        ),
    ],
)
async def test_names_that_name_nothing_get_the_exact_words(served, name, code, message):
    place, _ = served
    answer = await place.call(name)
    assert (answer.error.code, answer.error.message, answer.error.retryable) == (
        code,
        message,
        False,
    )
    _, said = await control(place, "POST", "/v1/call", json.dumps({"tool": name}).encode())
    assert said["error"]["code"] == code
    assert (
        said["error"]["message"] == message or not name.strip()
    )  # the socket's own check of its fields comes first


# ------------------------------------------------------------------ the control socket


async def control(place, method, path, body=b"", *, raw=None):
    """One request on the unix socket, by hand: (status, JSON body)."""
    reader, writer = await asyncio.open_unix_connection(str(place.socket))
    try:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: "
            f"application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(raw if raw is not None else head.encode() + body)
        await writer.drain()
        async with asyncio.timeout(40):
            answer = await reader.read()
    finally:
        writer.close()
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(rest)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"tool": "clock:now", "args": []}',
        b'{"tool": 5}',
        b'{"tool": "clock:now", "bogus": 1}',
        b'{"tool": "clock:now", "args": {"x": NaN}}',
        b"[" * 100_000,
    ],
)
async def test_malformed_requests_on_the_control_socket_are_told_what_is_wrong(served, body):
    place, _ = served
    status, said = await control(place, "POST", "/v1/call", body)
    assert status == 400
    assert said["error"]["code"] == "INVALID_REQUEST"
    assert said["error"]["message"]
    assert (await control(place, "GET", "/v1/status"))[0] == 200


async def test_bytes_that_are_not_http_and_paths_that_are_not_there_are_refused_and_it_serves_on(
    served,
):
    place, _ = served
    assert (await control(place, "GET", "/", raw=b"\x16\x03\x01 this is not HTTP\r\n\r\n"))[
        0
    ] == 400
    assert (await control(place, "GET", "/v2/status"))[0] == 404
    assert (await control(place, "DELETE", "/v1/status"))[0] == 405
    assert (await control(place, "POST", "/v1/call", b'{"tool": "' + b"x" * 2_000_000 + b'"}'))[
        0
    ] == 413
    status, envelope = await control(place, "POST", "/v1/call", b'{"tool": "clock:now"}')
    assert (status, envelope["ok"]) == (200, True)
