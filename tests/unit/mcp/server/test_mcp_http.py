"""MCP over HTTP: who may connect, what is too much, and that a client which closes its stream
ends the call.
"""

import asyncio
import json
import socket
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import httpx
import pytest

from edge.mcp.server import http as mcp_http, notifications
from edge.mcp.server.http import ListenAddress
from edge.runtime.errors import UserError
from tests.unit.mcp.server.mcp_house import NEWER, SHOWN, mcp_house
from tests.unit.mcp.server.test_mcp_server import ADD, until

pytestmark = pytest.mark.enable_socket
SECRET = "0123456789abcdef0123"
BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
META = {
    "io.modelcontextprotocol/protocolVersion": NEWER,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(method="tools/list", **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}


def head(method="tools/list", **more):
    return {**BOTH, "MCP-Protocol-Version": NEWER, "Mcp-Method": method, **more}


def message(text):
    return json.loads(
        text
        if text.startswith("{")
        else next(line[5:] for line in text.splitlines() if line.startswith("data:"))
    )


@asynccontextmanager
async def served(tmp_path, *, token="", hosts=()):
    """(the running parts, an HTTP client of the server)."""
    ready = asyncio.get_running_loop().create_future()
    async with mcp_house(tmp_path) as mcp:
        mcp.serving = serving = asyncio.ensure_future(
            mcp_http.serve(
                Unstarted(mcp.facade), ListenAddress(token=token, hosts=hosts), ready.set_result
            )
        )
        try:
            await asyncio.wait({serving, ready}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            async with httpx.AsyncClient(
                base_url=ready.result()["url"].removesuffix("/mcp"), timeout=30, trust_env=False
            ) as http:
                yield mcp, http
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


class Unstarted:
    """A facade that is running already."""

    def __init__(self, facade):
        self.server = facade.server

    @asynccontextmanager
    async def running(self):
        yield


@pytest.mark.requirement("MCP-http")
async def test_a_newer_client_lists_and_calls_without_a_session(tmp_path):
    async with served(tmp_path) as (_, http):
        listed = message((await http.post("/mcp", json=request(), headers=head())).text)
        asked = request("tools/call", name=ADD, arguments={})
        called = await http.post(
            "/mcp", json=asked, headers=head("tools/call", **{"Mcp-Name": ADD})
        )
    assert [tool["name"] for tool in listed["result"]["tools"]] == [ADD, "get_pending_result"]
    assert (listed["result"]["ttlMs"], listed["result"]["cacheScope"]) == (0, "private")
    assert message(called.text)["result"]["structuredContent"] == {
        "id": 1,
        "text": "milk",
        **SHOWN,
    }


async def test_a_call_lists_tools_only_after_a_change_and_checks_its_headers(tmp_path, monkeypatch):
    async with served(tmp_path) as (mcp, http):
        asked_for, look = [], mcp.facade._daemon.look

        async def counted(self, path, *more, **rest):
            asked_for.append(path.partition("?")[0])
            return await look(path, *more, **rest)

        monkeypatch.setattr(type(mcp.facade._daemon), "look", counted)
        notes, *others = mcp.house.registry.list
        schema = {
            "type": "object",
            "properties": {"text": {"type": "string", "x-mcp-header": "Text"}},
        }
        mcp.house.registry.list = [
            replace(notes, definition=replace(notes.definition, input_schema=schema)),
            *others,
        ]

        async def called(text="milk"):
            asked = request("tools/call", name=ADD, arguments={"text": "milk"})
            return (
                await http.post(
                    "/mcp",
                    json=asked,
                    headers=head("tools/call", **{"Mcp-Name": ADD, "Mcp-Param-Text": text}),
                )
            ).status_code

        assert [await called() for _ in range(3)] == [200] * 3
        assert await called("beer") == 400
        assert asked_for.count("/v1/tools") == 1
        await mcp.facade.notify(notifications.TOOLS)
        assert [await called() for _ in range(2)] == [200] * 2
        assert asked_for.count("/v1/tools") == 2


@pytest.mark.requirement("MCP-strangers")
async def test_pages_of_other_sites_and_unknown_host_names_are_refused(tmp_path):
    async with served(tmp_path, hosts=("glasses.local",)) as (_, http):
        answers = [
            (await http.post("/mcp", json=request(), headers=head(**more))).status_code
            for more in (
                {"Origin": "https://evil.example"},
                {"Host": "evil.example"},
                {"Origin": "http://localhost:5173"},
                {"Host": "glasses.local"},
            )
        ]
    assert answers == [403, 421, 200, 200]


@pytest.mark.parametrize(
    "given",
    ["", "Bearer wrong-wrong-wrong-wrong", f"Basic {SECRET}", "Bearer", f"Bearer {SECRET}x"],
)
@pytest.mark.requirement("MCP-token")
async def test_without_the_token_every_client_is_refused(tmp_path, given):
    async with served(tmp_path, token=SECRET) as (_, http):
        answer = await http.post(
            "/mcp", json=request(), headers=head(**({"Authorization": given} if given else {}))
        )
        assert (answer.status_code, answer.headers["www-authenticate"]) == (
            401,
            'Bearer realm="glassd"',
        )
        allowed = await http.post(
            "/mcp", json=request(), headers=head(Authorization=f"bearer {SECRET}")
        )
        assert allowed.status_code == 200


@pytest.mark.requirement("MCP-bounds")
async def test_more_than_four_mebibytes_are_not_read(tmp_path):
    async with served(tmp_path) as (mcp, http):
        answer = await http.post("/mcp", content=b"x" * (4 * 1024 * 1024 + 1), headers=head())
        assert answer.status_code == 413
        assert mcp.house.calls.seen == []


@pytest.mark.requirement("MCP-cancel")
async def test_a_newer_client_cancels_a_call_by_closing_its_stream(tmp_path):
    async with served(tmp_path) as (mcp, http):
        mcp.house.calls.gate.clear()
        asked = request("tools/call", name=ADD, arguments={})
        calling = asyncio.ensure_future(
            http.post("/mcp", json=asked, headers=head("tools/call", **{"Mcp-Name": ADD}))
        )
        await until(lambda: mcp.house.calls.seen)
        call_id = mcp.house.calls.seen[0][0].call_id
        mcp.house.calls.running[call_id] = ""
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
        await until(lambda: mcp.house.calls.running[call_id])
        mcp.house.calls.gate.set()


async def test_a_call_that_ends_with_the_server_logs_no_error(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(mcp_http, "END_S", 0)
    async with served(tmp_path) as (mcp, http):
        mcp.house.calls.gate.clear()
        asked = request("tools/call", name=ADD, arguments={})
        calling = asyncio.ensure_future(
            http.post("/mcp", json=asked, headers=head("tools/call", **{"Mcp-Name": ADD}))
        )
        await until(lambda: mcp.house.calls.seen)
        mcp.house.calls.running[mcp.house.calls.seen[0][0].call_id] = ""
        mcp.serving.cancel()
        await asyncio.wait({mcp.serving, calling})
        mcp.house.calls.gate.set()
        calling.exception()
    assert [record.message for record in caplog.records if record.exc_info] == []


# ------------------------------------------------------------------ where we listen


@pytest.mark.parametrize(
    ("place", "code"),
    [
        (ListenAddress("0.0.0.0", 0), "NO_TOKEN"),
        (ListenAddress("0.0.0.0", 0, token=SECRET), "NO_HOST"),
    ],
)
@pytest.mark.requirement("MCP-token")
def test_other_machines_need_a_token_and_a_known_host_name(place, code):
    with pytest.raises(UserError) as refused:
        mcp_http.listening(place)
    assert refused.value.code == code
    assert refused.value.fix


def test_with_both_it_is_served_beyond_this_machine():
    with mcp_http.listening(
        ListenAddress("0.0.0.0", 0, token=SECRET, hosts=("pi.local",))
    ) as found:
        allowed = mcp_http.security(found.getsockname(), ("pi.local",)).allowed_hosts
    assert {"pi.local", "pi.local:*"} <= set(allowed)
    assert not any(host.startswith("0.0.0.0") for host in allowed)


def test_a_place_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(
            UserError, match=f"127.0.0.1:{taken.getsockname()[1]}: Address already in use"
        ):
            mcp_http.listening(ListenAddress("127.0.0.1", taken.getsockname()[1]))


@pytest.mark.requirement("MCP-socket")
def test_a_socket_of_systemd_is_checked_like_our_own(monkeypatch):
    with socket.socket() as open_to_all, socket.socket() as ours:
        open_to_all.bind(("0.0.0.0", 0))
        ours.bind(("127.0.0.1", 0))
        for handed, token, fits in (
            (open_to_all, SECRET, False),
            (ours, "", False),
            (ours, SECRET, True),
        ):
            monkeypatch.setattr(mcp_http, "FIRST_FD", handed.fileno())
            if fits:
                with mcp_http.listening(ListenAddress(handed=True, token=token)) as found:
                    assert found.getsockname() == ours.getsockname()
            else:
                with pytest.raises(UserError):
                    mcp_http.listening(ListenAddress(handed=True, token=token))
