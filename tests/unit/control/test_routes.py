"""The paths of the control API: what each replies, and what is refused."""

import json

import pytest
from msgspec.structs import replace

from edge.control import calls
from edge.ports import Wait
from tests.unit.control.house import open_house
from tools_cache.api.tool import CallOrigin, Mode

pytestmark = pytest.mark.enable_socket


async def test_status_is_the_daemons_status_document(tmp_path):
    async with open_house(tmp_path) as house:
        assert await house.ask("GET", "/v1/status") == (200, house.status)


async def test_an_unpaired_surrogate_does_not_break_the_answer(tmp_path):
    async with open_house(tmp_path) as house:
        house.status["own"] = "\ud800.toml"
        status, told = await house.ask("GET", "/v1/status")
    assert (status, told["own"]) == (200, "?.toml")


async def test_the_active_tools_leave_out_hidden_ones(tmp_path):
    async with open_house(tmp_path) as house:
        _, listed = await house.ask("GET", "/v1/tools")
    assert [t["name"] for t in listed["tools"]] == ["notes:add"]
    assert listed["version"] == "7"


async def test_all_tools_include_why_they_are_hidden(tmp_path):
    async with open_house(tmp_path) as house:
        _, listed = await house.ask("GET", "/v1/tools?all=1")
    hidden = listed["tools"][1]
    assert (hidden["name"], hidden["hidden"], hidden["missing"]) == (
        "cam:shot",
        "needs a camera",
        ["CAMERA"],
    )


async def test_tools_can_be_listed_by_category(tmp_path):
    async with open_house(tmp_path) as house:
        _, media = await house.ask("GET", "/v1/tools?all=1&category=media")
        _, none = await house.ask("GET", "/v1/tools?category=media")
    assert [t["name"] for t in media["tools"]] == ["cam:shot"]
    assert none["tools"] == []


async def test_a_call_is_passed_on_whole_and_its_envelope_returned(tmp_path):
    async with open_house(tmp_path) as house:
        status, envelope = await house.ask(
            "POST",
            "/v1/call",
            {
                "tool": "notes:add",
                "args": {"text": "milk"},
                "mode": "voice",
                "wait": "delivery",
                "idempotency_key": "k",
                "ttl_s": 5,
                "turn_id": "t1",
                "origin": "mcp",
            },
        )
        ((call, wait),) = house.calls.seen
    assert (status, envelope["ok"], envelope["data"]) == (200, True, {"id": 1, "text": "milk"})
    assert (call.tool, call.args, call.mode, wait) == (
        "notes:add",
        {"text": "milk"},
        Mode.VOICE,
        Wait.DELIVERY,
    )
    assert (call.idempotency_key, call.ttl_s, call.turn_id, call.origin) == (
        "k",
        5.0,
        "t1",
        CallOrigin.MCP,
    )


async def test_a_plain_call_is_text_from_the_command_line_and_waits_for_the_answer(tmp_path):
    async with open_house(tmp_path, user_id="ann") as house:
        await house.ask("POST", "/v1/call", {"tool": "notes:add"})
        ((call, wait),) = house.calls.seen
    assert (call.args, call.mode, call.origin, wait, call.idempotency_key) == (
        {},
        Mode.TEXT,
        CallOrigin.CLI,
        Wait.ANSWER,
        None,
    )
    assert call.user_id == "ann"


async def test_a_tools_failure_is_still_http_200(tmp_path):
    async with open_house(tmp_path) as house:
        status, envelope = await house.ask("POST", "/v1/call", {"tool": "no:such"})
    assert (status, envelope["ok"], envelope["error"]["type"]) == (200, False, "NOT_FOUND")


async def test_a_call_without_an_answer_ends_with_504(tmp_path, monkeypatch):
    monkeypatch.setattr(calls, "GRACE_S", 0.0)
    async with open_house(tmp_path) as house:
        house.calls.gate.clear()
        status, answer = await house.ask("POST", "/v1/call", {"tool": "notes:add", "ttl_s": 0.1})
    assert (status, answer["error"]["code"]) == (504, "TIMEOUT")


async def test_a_transcript_is_passed_on(tmp_path):
    async with open_house(tmp_path) as house:
        status, envelope = await house.ask_as_owner(
            "POST", "/v1/say", {"text": "what's on my list"}
        )
        assert (status, envelope["data"]) == (200, "heard what's on my list")
        assert house.said == ["what's on my list"]


async def test_calls_are_listed_and_shown_one_by_one(tmp_path):
    async with open_house(tmp_path) as house:
        _, listed = await house.ask("GET", "/v1/calls?limit=5")
        _, pending = await house.ask("GET", "/v1/calls?pending=1")
        _, one = await house.ask("GET", "/v1/calls/c1")
        status, none = await house.ask("GET", "/v1/calls/nope")
    assert [row["call_id"] for row in listed["calls"]] == ["c1"]
    assert pending == {"calls": []}
    assert one["state"] == "DELIVERED"
    assert (status, none["error"]["code"]) == (404, "NOT_FOUND")


async def test_the_lens_is_what_the_glasses_acknowledged(tmp_path):
    async with open_house(tmp_path) as house:
        assert await house.ask("GET", "/v1/lens") == (200, house.lens)


@pytest.mark.parametrize(
    "path", ["/", "/v2/status", "/v1/status/", "/v1/nope", "/v1/calls/a/b", "/v1/calls/" + "x" * 65]
)
async def test_an_unknown_path_is_a_404_in_json(tmp_path, path):
    async with open_house(tmp_path) as house:
        status, body = await house.ask("GET", path)
    assert (status, body["error"]["code"]) == (404, "NOT_FOUND")
    assert body["error"]["fix"]


@pytest.mark.requirement("S0-34")
async def test_the_daemon_is_no_developer_console(tmp_path):
    async with open_house(tmp_path) as house:
        status, body = await house.ask("POST", "/api/apps/com.x.app/tools", {"tools": []})
    assert (status, body["error"]["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path", "allow"), [("POST", "/v1/status", "GET"), ("GET", "/v1/call", "POST")]
)
async def test_a_wrong_method_is_a_405_that_names_the_right_one(tmp_path, method, path, allow):
    async with open_house(tmp_path) as house:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answer = await house.exchange(head.encode())
    assert b" 405 " in answer
    assert f"allow: {allow}".encode() in answer.lower().replace(
        allow.lower().encode(), allow.encode()
    )


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "must be a JSON object"),
        (b'"x"', "must be a JSON object"),
        (b"{}", "tool"),
        ({"tool": 5}, "tool"),
        ({"tool": "  "}, "tool"),
        ({"tool": "x" * 256}, "at most 255"),
        ({"tool": "a:b", "args": []}, "args: must be an object"),
        ({"tool": "a:b", "arg": {}}, "arg: unknown key"),
        ({"tool": "a:b", "mode": "shout"}, "mode: must be one of text, voice"),
        ({"tool": "a:b", "mode": []}, "mode"),
        ({"tool": "a:b", "wait": True}, "wait"),
        ({"tool": "a:b", "wait": []}, "wait"),
        ({"tool": "a:b", "wait": "x"}, "wait"),
        ({"tool": "a:b", "ttl_s": 0}, "ttl_s"),
        ({"tool": "a:b", "ttl_s": True}, "ttl_s"),
        ({"tool": "a:b", "ttl_s": "5"}, "ttl_s"),
        ({"tool": "a:b", "ttl_s": 1e9}, "ttl_s"),
        (b'{"tool": "a:b", "ttl_s": NaN}', "NaN is not JSON"),
        ({"tool": "a:b", "origin": "cloud"}, "origin: must be one of cli, mcp"),
        (b'{"tool": "a:b", "args": {"x": "\\ud800"}}', "an unpaired surrogate"),
        (b'{"tool": "\xff"}', "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"tool": "a:b", "args": {"x": ' + b"9" * 5000 + b"}}", "a number that is too large"),
        (b'{"tool": "a:b", "args": {"x": 1e999}}', "a number that is too large"),
    ],
)
async def test_a_malformed_request_is_a_400_that_names_the_problem(tmp_path, body, named):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask("POST", "/v1/call", body)
        assert (status, answer["error"]["code"]) == (400, "INVALID_REQUEST")
        assert named in answer["error"]["message"]
        assert not house.calls.seen


@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=x", "limit=1001", "pending=maybe"])
async def test_a_wrong_query_is_a_400(tmp_path, query):
    async with open_house(tmp_path) as house:
        status, body = await house.ask("GET", f"/v1/calls?{query}")
    assert status == 400
    assert query.split("=", maxsplit=1)[0] in body["error"]["message"]


async def test_a_bad_request_does_not_end_the_connection(tmp_path):
    bad = b"POST /v1/call HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{"
    async with open_house(tmp_path) as house:
        raw = await house.exchange(bad + b"GET /v1/lens HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 400 " in raw
    assert json.loads(raw.rsplit(b"\r\n\r\n", 1)[1])["lines"] == ["Hello"]


@pytest.mark.requirement("S2-130")
async def test_tools_can_be_listed_by_mode_with_reasons(tmp_path):
    async with open_house(tmp_path) as house:
        first = house.registry.list[0]
        house.registry.list = (
            replace(
                first, definition=replace(first.definition, allowed_modes=frozenset({Mode.TEXT}))
            ),
        )
        _, text = await house.ask("GET", "/v1/tools?mode=text")
        _, voice = await house.ask("GET", "/v1/tools?mode=voice")
        _, everything = await house.ask("GET", "/v1/tools?mode=voice&all=1")
        status, _ = await house.ask("GET", "/v1/tools?mode=song")
    assert ([t["name"] for t in text["tools"]], voice["tools"], status) == (["notes:add"], [], 400)
    assert everything["tools"][0]["hidden"] == "not for voice mode"
