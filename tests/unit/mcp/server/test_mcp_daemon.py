"""The facade's line to the daemon: one connection for one call after the other, a new one for
the one that died.
"""

import asyncio
import contextlib

import pytest

from edge.mcp.server.daemon_client import DaemonClient

ANSWER = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'
)


@pytest.fixture
async def house(tmp_path):
    """(a Daemon, the connections that came): something that answers every request the same,
    until it is told to hang up.
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


async def test_calls_one_after_the_other_take_one_connection(house):
    daemon, came = house
    assert [await daemon.ask("GET", "/v1/status", timeout_s=20) for _ in range(5)] == [
        {"ok": True}
    ] * 5
    assert len(came) == 1


async def test_simultaneous_calls_have_own_connections_that_are_used_again(house):
    daemon, came = house
    await asyncio.gather(
        *(daemon.ask("POST", "/v1/call", {"n": n}, timeout_s=20) for n in range(4))
    )
    made = len(came)
    assert 1 <= made <= 4
    assert await daemon.ask("GET", "/v1/status", timeout_s=20) == {"ok": True}
    assert len(came) == made


async def test_a_connection_that_died_while_idle_is_replaced(house):
    daemon, came = house
    await daemon.ask("GET", "/v1/status", timeout_s=20)
    came[0].transport.abort()
    assert await daemon.ask("GET", "/v1/status", timeout_s=20) == {"ok": True}
    assert len(came) == 2
