"""Story: other people's MCP servers, real ones over stdio, become tools of the glasses; and
nothing they do costs anything else.
"""

import asyncio
import base64
import json
import struct
import sys
import zlib
from pathlib import Path

import pytest
import pytest_asyncio
from mcp.client import Client
from mcp_types import ElicitResult, ListRootsResult
from msgspec.structs import replace

from edge.config.model import McpConfig, McpServerConfig
from edge.mcp.server.daemon_client import DaemonClient
from edge.mcp.server.server import Facade
from edge.runtime.ids import new_call_id
from firmware_bridge.messages import Gesture
from tests.scenarios.world import until, world
from tests.unit.commands.test_cli import glassd
from tests.unit.mcp.server.mcp_house import ERAS, ways, wire
from tools_cache.api.tool import CallOrigin, ToolCall

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]

HOUSE = str(Path(__file__).with_name("mcp_server.py"))
RAW = str(Path(__file__).parents[1] / "unit" / "mcp" / "client" / "raw.py")
SECRET = "hush-0451-hush"


def png(width=8, height=8):
    """A white picture."""

    def chunk(name, body):
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    rows = (b"\0" + b"\xff" * width) * height
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return base64.b64encode(
        b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    ).decode()


def wild(folder, id="raw", script=RAW, **more):
    """A server that breaks every rule."""
    return {
        "id": id,
        "command": sys.executable,
        "args": ["-S", str(script), f"notes={folder}/notes"],
        "allowed_tools": ["*"],
        "confirm": "never",
        **more,
    }


def servers(folder):
    """A well-behaved one, a wild one, and one whose calls need a yes."""
    (folder / "token").write_text(SECRET + "\n")
    house = {
        "id": "house",
        "name": "The house",
        "command": sys.executable,
        "args": [HOUSE, str(folder / "done"), png()],
        "visible": True,
        "confirm": "never",
        "allowed_tools": ["lamp", "secret", "picture", "bell"],
        "env": {"HOUSE_TOKEN": "${env.TOKEN}"},
        "secret_files": {"TOKEN": str(folder / "token")},
        "tool_prompts": {"bell": "Rings.", "gone": "x"},
    }
    return {
        "servers": [
            house,
            wild(folder),
            wild(folder, "careful", confirm="policy", allowed_tools=["echo"]),
            wild(folder, "impatient", timeout_s=2.0, allowed_tools=["hang"]),
            wild(
                folder,
                "modern",
                args=["-S", RAW, "modern", f"notes={folder}/notes"],
                allowed_tools=["ask"],
            ),
        ]
    }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(tmp_path_factory):
    """One daemon with all servers connected, for all stories that leave it as it was."""
    folder = tmp_path_factory.mktemp("servers")
    async with world(folder) as made:
        made.sections["mcp"] = servers(folder)
        await made.switch_glasses_on()
        await made.start_daemon()
        await made.ready()
        await until(
            lambda: all(
                listed(made, name)
                for name in (
                    "house:lamp",
                    "raw:echo",
                    "careful:echo",
                    "impatient:hang",
                    "modern:ask",
                )
            ),
            lambda: json.dumps(made.daemon.servers.describe()),
        )
        yield made


def listed(place, name):
    return place.daemon.registry.snapshot().find(name)


def told(place, name):
    return next(one for one in place.daemon.servers.describe() if one["id"] == name)


async def ask(place, *words):
    ran = await glassd(*words, "--json", "--socket", str(place.socket))
    return ran.code, ran.json


# ------------------------------------------------------------------ tools like any other


@pytest.mark.requirement("S1-01", "S1-35", "S1-47", "S3-07", "S3-34")
async def test_a_tool_of_another_server_is_listed_called_shown_and_audited_like_any_other(place):
    code, tools = await ask(place, "tools")
    row = next(tool for tool in tools["tools"] if tool["name"] == "house:lamp")
    assert (code, row["source"], row["hidden"], row["compatId"]) == (0, "mcp", "", "house_lamp")
    assert row["_meta"]["io.glassd/server"] == {"id": "house", "name": "The house", "tool": "lamp"}
    assert row["inputSchema"]["required"] == ["room"]
    answer = await place.call("house:lamp", {"room": "hall"})
    assert (answer.ok, answer.data, answer.meta["route"], answer.meta["delivery"]) == (
        True,
        {"lamp": "hall", "text": "The hall is lit"},
        "upstream",
        "shown",
    )
    await place.lens_shows("Lamp", "The hall is lit")
    wrong = await place.call("house:lamp", {})
    assert wrong.error.code == "INVALID_ARGUMENTS"
    assert (place.folder / "done").read_text() == "lamp hall\n"
    lines = lambda: [  # noqa: E731
        entry
        for line in (place.folder / "state/audit/calls.jsonl").read_text().splitlines()
        if (entry := json.loads(line))["toolId"] == "house:lamp" and entry["callId"] is not None
    ]
    await until(lambda: len(lines()) >= 2, "both calls in the audit log")
    audited = [(line["route"], line["ok"], line["errorCode"]) for line in lines()]
    assert audited == [("upstream", True, None), (None, False, "INVALID_ARGUMENTS")]
    assert (await place.call("raw:echo", {})).meta[
        "delivery"
    ] == "none"  # not `visible`: not shown unasked


async def test_pictures_go_to_the_lens_and_what_was_not_allowed_is_not_there(place):
    answer = await place.call("house:picture")
    assert [block["type"] for block in answer.meta["content"]] == ["text", "image"]
    assert answer.meta["delivery"] in ("shown", {"state": "shown", "downgrade": "image→text"})
    assert listed(place, "house:bell").definition.description == "Rings."
    assert (await place.call("house:bell")).meta["content"][1]["mimeType"] == "audio/wav"


@pytest.mark.requirement("S1-38")
async def test_a_secret_reaches_its_server_and_nobody_else(place):
    answer = await place.call("house:secret")
    assert json.loads(answer.data["result"]) == {"token": "***"}  # it has it, and may not say it
    code, document = await ask(place, "servers")
    assert (code, [one["status"] for one in document["servers"]]) == (0, ["connected"] * 5)
    everything = json.dumps([document, place.daemon.status(), place.happened], default=str)
    assert SECRET not in everything
    assert "gone" not in json.dumps(document)


@pytest.mark.requirement("C-37")
async def test_only_what_is_allowed_is_there_and_what_the_policy_asks_about_waits_for_a_tap(place):
    assert listed(place, "careful:die") is None
    assert "die" in told(place, "careful")["not_allowed"]
    place.mark()
    call = ToolCall(
        call_id=new_call_id(place.daemon.clock.wall()),
        tool="careful:echo",
        args={"a": "b"},
        origin=CallOrigin.MCP,
    )
    asked = await place.daemon.calls.begin(call)
    assert asked.error.code == "CONFIRMATION_REQUIRED"
    await place.lens_shows(
        "Careful: Echo?", "a (not declared): b", "careful:echo, from the MCP server careful."
    )
    await place.answer_question()
    await place.heard("call.completed", call_id=call.call_id, ok=True)


# ------------------------------------------------------------------ whatever they do


@pytest.mark.requirement("I6-hostile")
@pytest.mark.parametrize(
    ("tool", "args", "code", "word"),
    [
        ("raw:die", {}, "NETWORK_ERROR", "lost during the call"),
        ("impatient:hang", {}, "TIMEOUT", "did not answer in time"),
        ("raw:big", {"size": 10_000_000}, "EXECUTION_ERROR", "more than 2097152 bytes"),
        ("raw:lie", {}, "EXECUTION_ERROR", "does not match the tool's output schema"),
        ("raw:null", {}, "EXECUTION_ERROR", "null"),
        ("raw:fail", {}, "EXECUTION_ERROR", "no such"),
    ],
)
async def test_whatever_a_server_does_its_call_is_one_clear_envelope_and_the_others_go_on(
    place, tool, args, code, word
):
    bad, good = await asyncio.gather(
        place.call(tool, args), place.call("house:lamp", {"room": tool})
    )
    assert (bad.error.code, word in bad.error.message, bad.error.partial_side_effects) == (
        code,
        True,
        True,
    )
    assert good.ok
    assert (await place.call("raw:echo", {"after": tool})).data == {"after": tool}
    assert listed(place, tool)


async def test_a_call_that_is_called_off_is_called_off_at_the_server(place):
    call_id = new_call_id(place.daemon.clock.wall())
    place.start_call("raw:hang", call_id=call_id)
    await until(
        lambda: "hang" in (place.folder / "notes").read_text().splitlines()[-1], "it has begun"
    )
    assert await place.daemon.calls.cancel(call_id, "changed my mind")
    assert (await place.answer()).error.code == "CANCELLED"
    await until(
        lambda: "cancelled" in (place.folder / "notes").read_text().splitlines()[-1],
        "the server heard it",
    )


# ------------------------------------------------------------------ scope


@pytest.mark.requirement("S1-13", "S1-14", "S1-16", "S1-18", "S1-22", "I11-scope-inherited")
async def test_one_callers_scope_narrows_what_it_sees_and_may_call(place):
    async def seen(**scope):
        from urllib.parse import urlencode

        status, document = await http(
            place, "GET", "/v1/tools?" + urlencode({"scope": json.dumps(scope)})
        )
        assert status == 200
        return {tool["name"] for tool in document["tools"] if tool["source"] == "mcp"}

    lamp = {"mentions": [{"type": "mcpTool", "serverId": "house", "name": "lamp"}]}
    assert await seen(**lamp) == {"house:lamp"}
    assert await seen() == set()
    assert {"house:lamp", "raw:echo"} <= await seen(mentions=[])
    assert await seen(allowedMcpServers={"raw": {"tools": ["echo"]}}) == {"raw:echo"}
    status, refused = await http(place, "POST", "/v1/call", {"tool": "raw:echo", "scope": lamp})
    assert (status, refused["error"]["code"]) == (200, "DENIED")
    status, fine = await http(
        place, "POST", "/v1/call", {"tool": "house:lamp", "args": {"room": "scope"}, "scope": lamp}
    )
    assert (status, fine["ok"]) == (200, True)
    through = {"tool": "registry:invoke", "args": {"tool": "raw:echo", "args": {}}}
    for scope in (lamp, {"allowedMcpServers": {}}, {}):
        _, refused = await http(place, "POST", "/v1/call", {**through, "scope": scope})
        assert (refused["ok"], refused.get("error", {}).get("code")) == (False, "DENIED"), (
            "called through another tool"
        )
        _, told = await http(
            place,
            "POST",
            "/v1/call",
            {"tool": "registry:describe", "args": {"tool": "raw:echo"}, "scope": scope},
        )
        assert told["error"]["code"] == "DENIED"
        _, found = await http(
            place,
            "POST",
            "/v1/call",
            {"tool": "registry:search", "args": {"query": "echo", "limit": 20}, "scope": scope},
        )
        assert "raw:echo" not in {one["tool"] for one in found["data"]["tools"]}
        _, loaded = await http(
            place,
            "POST",
            "/v1/call",
            {"tool": "registry:load", "args": {"tools": ["raw:echo"]}, "scope": scope},
        )
        assert "scope" in loaded["error"]["details"][0]["reason"]
    status, own = await http(place, "POST", "/v1/call", {"tool": "clock:now", "scope": {}})
    assert (status, own["ok"]) == (200, True)
    status, bad = await http(
        place, "POST", "/v1/call", {"tool": "clock:now", "scope": {"mentions": 5}}
    )
    assert (status, "scope.mentions" in bad["error"]["message"]) == (400, True)


async def test_what_a_tool_asks_its_caller_is_answered_with_the_same_call(place):
    """The question of the 2026 protocol, over the control API and back."""
    _, asked = await http(
        place, "POST", "/v1/call", {"tool": "modern:ask", "idempotency_key": "ask-1"}
    )
    details = asked["error"]["details"]
    assert (asked["error"]["type"], details["requestState"]) == ("VALIDATION", "sealed")
    assert details["inputRequests"]["q"]["params"]["message"] == "sure?"
    given = {
        "inputResponses": {"q": {"action": "accept", "content": {"ok": True}}},
        "requestState": "sealed",
    }
    _, done = await http(
        place,
        "POST",
        "/v1/call",
        {"tool": "modern:ask", "idempotency_key": "ask-1", "input": given},
    )
    assert (done["ok"], done["data"]["state"], done["data"]["got"]["q"]["action"]) == (
        True,
        "sealed",
        "accept",
    )
    status, bad = await http(
        place, "POST", "/v1/call", {"tool": "modern:ask", "input": {"inputs": 1}}
    )
    assert (status, "input: must be an object" in bad["error"]["message"]) == (400, True)


async def http(place, method, path, body=None):
    """One request over the control socket."""
    reader, writer = await asyncio.open_unix_connection(str(place.socket))
    raw_body = json.dumps(body or {}).encode() if method == "POST" else b""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: glassd\r\nContent-Type: "
        f"application/json\r\nContent-Length: {len(raw_body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + raw_body)
    async with asyncio.timeout(40):
        answer = await reader.read()
    writer.close()
    first, _, rest = answer.partition(b"\r\n\r\n")
    return int(first.split()[1]), json.loads(rest)


# ------------------------------------------------------------------ changes while it runs


def of_settings(servers):
    return McpConfig(
        servers=tuple(
            McpServerConfig(
                **{key: tuple(v) if isinstance(v, list) else v for key, v in one.items()}
            )
            for one in servers
        )
    )


@pytest.mark.requirement("S1-15", "S1-39", "S1-40", "S1-43", "S1-44", "S1-49", "S3-35", "S3-37")
async def test_servers_come_and_go_while_the_daemon_runs_and_after_it(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(Path(RAW).read_text())
    mute = {
        "id": "mute",
        "command": sys.executable,
        "args": ["-S", RAW, "mute"],
        "allowed_tools": ["*"],
    }
    both = [wild(tmp_path, script=script), wild(tmp_path, "other")]
    async with world(tmp_path) as place:
        place.sections["mcp"] = {"servers": [mute]}
        await place.start_daemon()
        assert listed(place, "clock:now")  # a server that says nothing keeps nobody waiting
        reload = place.daemon.own_tools.reload
        settings = replace(place.daemon.settings, mcp=of_settings([*both, mute]))
        await reload(settings)
        await until(
            lambda: listed(place, "raw:echo") and listed(place, "other:echo"), "both listed"
        )
        await place.heard("tools_list_changed")

        assert (await place.call("raw:change")).ok
        await until(lambda: listed(place, "raw:fresh"), "what the server added")

        await until(
            lambda: "fresh" in (tmp_path / "state/upstream.json").read_text(), "kept on disk"
        )
        script.write_text("raise SystemExit(3)")
        assert (await place.call("raw:die")).error.code == "NETWORK_ERROR"
        await until(lambda: listed(place, "raw:echo").hidden, "away")
        assert "its server raw is away" in listed(place, "raw:echo").hidden
        assert not listed(place, "other:echo").hidden
        gone = await place.call("raw:echo", {})
        assert (gone.error.code, "is away" in gone.error.message) == ("TOOL_UNAVAILABLE", True)

        await reload(replace(settings, policy=replace(settings.policy, tools_enabled=False)))
        assert listed(place, "other:echo") is None
        assert {one["error"] for one in place.daemon.servers.describe()} == {
            "all tools are switched off (policy.tools_enabled)"
        }
        await reload(replace(settings, mcp=of_settings([both[0], {**both[1], "enabled": False}])))
        assert listed(place, "other:echo") is None
        assert told(place, "other")["error"] == "switched off (enabled = false)"
        await place.stop_daemon()

        place.sections["mcp"] = {"servers": both[:1]}  # it cannot be started, and yet:
        await place.start_daemon()
        assert listed(place, "raw:fresh")
        script.write_text(Path(RAW).read_text())
        await place.daemon.servers.refresh("raw")
        await until(
            lambda: (
                listed(place, "raw:echo")
                and not listed(place, "raw:echo").hidden
                and not listed(place, "raw:fresh")
            ),
            "listed anew",
        )
        assert (await place.call("raw:echo", {"x": 1})).data == {"x": 1}


# ------------------------------------------------------------------ what an older server asks


YES = {"sure": {"type": "boolean"}}
DRINKS = {"drink": {"type": "string", "enum": ["tea", "coffee"]}}
NAME = {"name": {"type": "string"}}


async def asked(place, args, *gestures, **more):
    """Call the tool that asks; the wearer answers page by page: what the server was told."""
    call = asyncio.ensure_future(place.call("raw:ask", args, origin=CallOrigin.MCP, **more))
    for number, gesture in enumerate(gestures, 1):
        await place.lens_shows(f"{number}/{len(gestures)}" if len(gestures) > 1 else "raw asks:")
        await place.answer_page(gesture)
    response = await call
    texts = [block["text"] for block in response.meta["content"]]
    return json.loads(texts[0]), texts[1:], response


@pytest.mark.requirement("I13-older-questions")
@pytest.mark.parametrize(
    ("form", "gestures", "told_server"),
    [
        (YES, [Gesture.TAP], {"action": "accept", "content": {"sure": True}}),
        (YES, [Gesture.DOUBLE_TAP], {"action": "accept", "content": {"sure": False}}),
        ({}, [Gesture.TAP], {"action": "accept", "content": {}}),
        ({}, [Gesture.DOUBLE_TAP], {"action": "decline"}),
        (
            DRINKS,
            [Gesture.DOUBLE_TAP, Gesture.TAP],
            {"action": "accept", "content": {"drink": "coffee"}},
        ),
        (DRINKS, [Gesture.DOUBLE_TAP, Gesture.DOUBLE_TAP], {"action": "decline"}),
    ],
)
async def test_the_wearer_answers_what_an_older_server_asks_with_taps(
    place, form, gestures, told_server
):
    words = {"message": "Delete 3 photos?", "form": form}
    said, notes, _ = await asked(place, words, *gestures)
    assert {key: said[key] for key in told_server} == told_server
    assert notes == []


@pytest.mark.requirement("I13-older-questions")
async def test_what_needs_more_than_taps_is_declined_and_the_result_says_why(place):
    said, _, response = await asked(place, {"message": "Your name?", "form": NAME})
    assert said["action"] == "decline"
    assert "Declined without being answered: “Your name?”" in response.error.message
    assert "needs more than taps" in response.error.message


@pytest.mark.requirement("I13-older-questions")
async def test_a_caller_that_takes_questions_is_asked_itself(place):
    """As our MCP server for a client that can, and `glassd call` at a terminal."""
    words = {"message": "Your name?", "form": NAME}
    first = await place.call("raw:ask", words, origin=CallOrigin.MCP, input={})
    details = first.error.details
    assert details["inputRequests"]["question"]["params"]["message"] == "Your name?"
    answers = {"question": {"action": "accept", "content": {"name": "Ada"}}}
    given = {"inputResponses": answers, "requestState": details["requestState"]}
    said, notes, _ = await asked(place, words, input=given)
    assert (said["content"], notes) == ({"name": "Ada"}, [])


@pytest.mark.requirement("I13-older-questions")
@pytest.mark.parametrize("era", ERAS)
async def test_the_user_of_an_mcp_client_answers_an_older_server(place, era):
    async def named(_context, params):
        assert params.message == "Your name?"
        return ElicitResult(action="accept", content={"name": "Ada"})

    facade = Facade(DaemonClient((place.socket,)), ways())
    words = {"message": "Your name?", "form": NAME}
    async with facade.running():
        async with Client(wire(facade), mode=era, elicitation_callback=named) as client:
            answered = await client.call_tool("raw__ask", words)
        async with Client(wire(facade), mode=era) as client:
            silent = await client.call_tool("raw__ask", words)
    assert json.loads(answered.content[0].text)["content"] == {"name": "Ada"}
    assert silent.is_error
    assert "Declined without being answered: “Your name?”" in str(silent.structured_content)


@pytest.mark.requirement("I13-older-questions")
@pytest.mark.parametrize("era", ERAS)
async def test_the_wearer_answers_for_a_client_that_has_roots_alone(place, era):
    """Many clients of today have roots, and cannot ask their user."""

    async def roots(_context):
        return ListRootsResult(roots=[])

    facade = Facade(DaemonClient((place.socket,)), ways())
    words = {"message": "Delete 3 photos?", "form": YES}
    async with (
        facade.running(),
        Client(wire(facade), mode=era, list_roots_callback=roots) as client,
    ):
        call = asyncio.ensure_future(client.call_tool("raw__ask", words))
        await place.lens_shows("raw asks:")
        await place.answer_page(Gesture.TAP)
        answered = await call
    assert json.loads(answered.content[0].text)["content"] == {"sure": True}
