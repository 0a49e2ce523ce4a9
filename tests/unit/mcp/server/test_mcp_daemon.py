"""The MCP server's client of the daemon: connections are used again, and replaced when dead."""

import asyncio
import contextlib

import pytest

from edge.mcp.server.daemon_client import DaemonClient

ANSWER = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'
)


@pytest.fixture
async def place(tmp_path):
    """(a Daemon, the connections that came): a server with one answer for every request,
    until its connection is aborted.
    """
    came: list[asyncio.StreamWriter] = []

    async def serve(reader, writer):
        came.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.splitlines()
                    if line.lower().startswith(b"content-length")
                )
                await reader.readexactly(length)
                writer.write(ANSWER)
        writer.close()

    server = await asyncio.start_unix_server(serve, tmp_path / "c.sock")
    daemon = DaemonClient((tmp_path / "c.sock",))
    yield daemon, came
    daemon.close()
    server.close()
    for writer in came:
        writer.close()


async def test_calls_one_after_the_other_take_one_connection(place):
    daemon, came = place
    assert [await daemon.ask("GET", "/v1/status", timeout_s=20) for _ in range(5)] == [
        {"ok": True}
    ] * 5
    assert len(came) == 1


async def test_simultaneous_calls_have_own_connections_that_are_used_again(place):
    daemon, came = place
    await asyncio.gather(
        *(daemon.ask("POST", "/v1/call", {"n": n}, timeout_s=20) for n in range(4))
    )
    made = len(came)
    assert 1 <= made <= 4
    assert await daemon.ask("GET", "/v1/status", timeout_s=20) == {"ok": True}
    assert len(came) == made


async def test_a_connection_that_died_while_idle_is_replaced(place):
    daemon, came = place
    await daemon.ask("GET", "/v1/status", timeout_s=20)
    came[0].transport.abort()
    assert await daemon.ask("GET", "/v1/status", timeout_s=20) == {"ok": True}
    assert len(came) == 2
