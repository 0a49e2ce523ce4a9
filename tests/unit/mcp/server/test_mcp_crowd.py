"""MCP over HTTP with many clients: what half-sent requests, missing tokens and forgotten
sessions may take from the others.
"""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from edge.mcp.server import connections
from tests.unit.mcp.server.mcp_house import SHOWN
from tests.unit.mcp.server.test_mcp_http import ADD, BOTH, SECRET, head, message, request, served
from tests.unit.mcp.server.test_mcp_server import until

pytestmark = pytest.mark.enable_socket
HALF = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Le"
STARTED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@asynccontextmanager
async def crowd(http, number, sent):
    """So many raw connections, each of which sent these bytes and nothing more."""
    place = http.base_url.host, http.base_url.port
    opened = []
    try:
        for _ in range(number):
            opened.append(await asyncio.open_connection(*place))
            opened[-1][1].write(sent)
        yield opened
    finally:
        for _, writer in opened:
            writer.close()
        await asyncio.gather(
            *(writer.wait_closed() for _, writer in opened), return_exceptions=True
        )


def head_of(body, **more):
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        f"Content-Length: {body}",
        *(f"{k}: {v}" for k, v in head(**more).items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def listing(http, **more):
    answer = await http.post("/mcp", json=request(), headers=head(**more))
    return answer.status_code


async def opening(http):
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": STARTED}
    answer = await http.post("/mcp", json=asked, headers=BOTH)
    return answer.status_code, answer.headers.get("mcp-session-id")


async def in_session(http, session, method="tools/list", **params):
    asked = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
    headers = {**BOTH, "Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    return await http.post("/mcp", json=asked, headers=headers)


@pytest.mark.parametrize(
    "sent", [b"", HALF, head_of(100), head_of(100, Authorization="Bearer wrong-wrong-wrong-wrong")]
)
@pytest.mark.requirement("MCP-crowd")
async def test_two_hundred_unfinished_requests_do_not_delay_a_client_with_the_token(tmp_path, sent):
    async with served(tmp_path, token=SECRET) as (_, http), crowd(http, 200, sent):
        began = time.monotonic()
        assert [await listing(http, Authorization=f"Bearer {SECRET}") for _ in range(3)] == [
            200
        ] * 3
        assert time.monotonic() - began < connections.HEAD_S


@pytest.mark.requirement("MCP-crowd")
async def test_half_sent_requests_lock_no_client_out_without_a_token_either(tmp_path):
    async with served(tmp_path) as (_, http), crowd(http, 200, HALF):
        assert await listing(http) == 200


async def test_a_crowd_without_the_token_closes_no_connection_that_has_it(tmp_path):
    async with served(tmp_path, token=SECRET) as (mcp, http):
        mcp.house.calls.gate.clear()
        asked = request("tools/call", name=ADD, arguments={})
        headers = head("tools/call", **{"Mcp-Name": ADD, "Authorization": f"Bearer {SECRET}"})
        calling = asyncio.ensure_future(http.post("/mcp", json=asked, headers=headers))
        await until(lambda: mcp.house.calls.seen)
        async with crowd(http, 200, HALF):
            assert await listing(http, Authorization=f"Bearer {SECRET}") == 200
            mcp.house.calls.gate.set()
            assert (await calling).status_code == 200


async def test_the_oldest_stranger_leaves_for_the_newest(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_S", 1000.0)
    async with (
        served(tmp_path, token=SECRET) as (_, http),
        crowd(http, connections.STRANGERS + 1, HALF) as opened,
    ):
        assert await gone(opened[0])
        answered = opened[-1]
        answered[1].write(b"ngth: 0\r\n\r\n")
        assert (await answered[0].readline()).startswith(b"HTTP/1.1 401")


async def gone(connection):
    try:
        return await connection[0].read() == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    ("sent", "limit"),
    [(b"", "HEAD_S"), (HALF, "HEAD_S"), (head_of(100, Authorization=f"Bearer {SECRET}"), "BODY_S")],
)
@pytest.mark.requirement("MCP-crowd")
async def test_a_request_that_takes_too_long_to_arrive_is_cut_off(
    tmp_path, monkeypatch, sent, limit
):
    monkeypatch.setattr(connections, limit, 0.1)
    async with served(tmp_path, token=SECRET) as (_, http), crowd(http, 1, sent) as [connection]:
        assert await gone(connection)


async def test_a_second_request_has_its_own_limit_and_a_running_call_none(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_S", 0.2)
    monkeypatch.setattr(connections, "BODY_S", 0.2)
    async with served(tmp_path) as (mcp, http), crowd(http, 1, b"") as [(reader, writer)]:
        mcp.house.calls.gate.clear()
        body = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{}}}'
            % ADD.encode()
        )
        session = (await opening(http))[1]
        lines = [
            b"POST /mcp HTTP/1.1",
            b"Host: localhost",
            b"Content-Length: %d" % len(body),
            b"Content-Type: application/json",
            b"Accept: application/json, text/event-stream",
            b"Mcp-Session-Id: " + session.encode(),
            b"",
            body,
        ]
        writer.write(b"\r\n".join(lines))
        await until(lambda: mcp.house.calls.seen)
        async with crowd(http, 1, HALF) as [later]:
            assert await gone(later)  # a limit has passed since the call came whole
        mcp.house.calls.gate.set()
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await reader.readuntil(b"0\r\n\r\n")
        writer.write(HALF)
        assert await gone((reader, writer))


@pytest.mark.requirement("MCP-crowd")
async def test_eighty_open_sessions_keep_no_new_client_out(tmp_path):
    async with served(tmp_path) as (_, http):
        opened = [await opening(http) for _ in range(80)]
        assert [status for status, _ in opened] == [200] * 80
        assert (await in_session(http, opened[0][1])).status_code == 404
        assert (await in_session(http, opened[-1][1])).status_code == 200


async def test_sessions_that_open_at_the_same_time_find_room(tmp_path):
    async with served(tmp_path) as (_, http):
        for _ in range(3):
            opened = await asyncio.gather(*(opening(http) for _ in range(30)))
            assert [status for status, _ in opened] == [200] * 30


async def test_the_longest_idle_session_ends_and_a_busy_one_stays(tmp_path):
    async with served(tmp_path) as (mcp, http):
        busy, used, *_ = [(await opening(http))[1] for _ in range(64)]
        mcp.house.calls.gate.clear()
        calling = asyncio.ensure_future(
            in_session(http, busy, "tools/call", name=ADD, arguments={})
        )
        await until(lambda: mcp.house.calls.seen)
        assert (await in_session(http, used)).status_code == 200
        assert [(await opening(http))[0] for _ in range(62)] == [200] * 62
        assert (await in_session(http, used)).status_code == 200
        mcp.house.calls.gate.set()
        answer = await calling
        assert (answer.status_code, message(answer.text)["result"]["structuredContent"]) == (
            200,
            {"id": 1, "text": "milk", **SHOWN},
        )


async def test_newer_clients_end_no_session_of_the_older_ones(tmp_path):
    async with served(tmp_path) as (_, http):
        sessions = [(await opening(http))[1] for _ in range(64)]
        assert await listing(http) == 200
        assert (await in_session(http, sessions[0])).status_code == 200


async def test_a_stranger_is_closed_for_another_from_its_address_only(tmp_path):
    async with served(tmp_path, token=SECRET) as (_, http):
        reader, writer = await asyncio.open_connection(
            http.base_url.host, http.base_url.port, local_addr=("127.0.0.2", 0)
        )
        writer.write(HALF)
        async with crowd(http, 200, HALF):
            assert await listing(http, Authorization=f"Bearer {SECRET}") == 200
            writer.write(b"ngth: 0\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 401")
        writer.close()


@pytest.mark.parametrize("token", ["", SECRET])
async def test_of_too_many_known_connections_the_idlest_leaves(tmp_path, monkeypatch, token):
    monkeypatch.setattr(connections, "CONNECTIONS", 2)
    more = {"Authorization": f"Bearer {SECRET}"} if token else {}
    async with (
        served(tmp_path, token=token) as (_, http),
        crowd(http, 3, head_of(2, **more) + b"{}") as opened,
    ):
        closed, *kept = opened
        assert await gone_after_its_answer(closed)
        for reader, _ in kept:
            assert (await reader.readline()).startswith(b"HTTP/1.1 400")
            assert not reader.at_eof()


async def gone_after_its_answer(connection):
    return (await connection[0].read()).startswith(b"HTTP/1.1 400")


async def test_with_a_request_running_on_each_known_connection_the_next_is_refused(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(connections, "CONNECTIONS", 2)
    async with served(tmp_path, token=SECRET) as (mcp, http):
        mcp.house.calls.gate.clear()
        asked = request("tools/call", name=ADD, arguments={})
        headers = head("tools/call", **{"Mcp-Name": ADD, "Authorization": f"Bearer {SECRET}"})
        calling = [
            asyncio.ensure_future(http.post("/mcp", json=asked, headers=headers)) for _ in range(2)
        ]
        await until(lambda: len(mcp.house.calls.seen) == 2)
        assert await listing(http, Authorization=f"Bearer {SECRET}") == 503
        mcp.house.calls.gate.set()
        assert [answer.status_code for answer in await asyncio.gather(*calling)] == [200, 200]
        assert await listing(http, Authorization=f"Bearer {SECRET}") == 200
