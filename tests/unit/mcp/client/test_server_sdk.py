"""The SDK's own server on the other side, over both transports and in both eras."""

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest
import uvicorn

from edge.mcp.client.models import CallFault, McpServer, Status
from edge.mcp.client.server import serving
from tests.unit.mcp.client.places import SOON_S, until
from tests.unit.mcp.client.sdk import SUM, Polite

pytestmark = pytest.mark.enable_socket


@contextlib.asynccontextmanager
async def site():
    """The polite server at an address."""
    config = uvicorn.Config(
        Polite().server.streamable_http_app(),
        host="127.0.0.1",
        port=0,
        log_level="error",
        lifespan="on",
    )
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve())
        await until(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
        finally:
            server.should_exit = server.force_exit = True


@contextlib.asynccontextmanager
async def place(transport, era):
    if transport == "stdio":
        root = Path(__file__).parents[4]
        yield McpServer(
            id="polite",
            command=sys.executable,
            args=("-m", "tests.unit.mcp.client.sdk"),
            env={"PYTHONPATH": str(root)},
            era=era,
        )
    else:
        async with site() as url:
            yield McpServer(id="polite", url=url, era=era)


@pytest.mark.requirement("S1-44")
@pytest.mark.parametrize(
    ("transport", "era"), [("stdio", ""), ("http", ""), ("http", "legacy")]
)  # stdio and legacy: raw.py
async def test_a_polite_server_is_understood_over_both_transports_in_both_eras(transport, era):
    async with place(transport, era) as config, serving(config) as server:
        outcome = await server.call("add", {"numbers": [1, 2]}, timeout_s=SOON_S)
        assert (outcome.structured, outcome.content) == (
            {"sum": 3},
            ({"type": "text", "text": "3"},),
        )
        assert server.news.protocol == ("2025-11-25" if era else "2026-07-28")
        assert (server.news.title, server.news.version, server.news.instructions) == (
            "Polite",
            "2",
            "Ask nicely.",
        )
        add = server.news.tools[0]
        assert (add.title, add.output_schema, dict(add.annotations), dict(add.meta)) == (
            "Add",
            SUM,
            {"readOnlyHint": True},
            {"x.y/n": "add"},
        )
        assert (await server.call("wait", {}, timeout_s=0.2)).fault is CallFault.TIMEOUT
        assert (await server.call("learn", {}, timeout_s=SOON_S)).ok
        await until(lambda: "subtract" in [t.name for t in server.news.tools])
        assert server.news.status is Status.CONNECTED
