"""Our MCP server in front of a real control server, and clients of both revisions at it,
without a process or a port.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from mcp.client import Client
from mcp.shared.memory import create_client_server_memory_streams

from edge.mcp.server.daemon_client import DaemonClient
from edge.mcp.server.server import Facade, Options
from edge.runtime.clock import Clock
from edge.runtime.ids import new_call_id
from tests.unit.control.house import House, open_house
from tools_cache.api.tool import RateLimit

OLDER, NEWER = "legacy", "2026-07-28"


class Shown:
    """Equal to the delivery of any call that was shown."""

    __hash__ = None

    def __eq__(self, other):
        return other["state"] == "shown" and other.keys() <= {"state", "callId"}


SHOWN = {"delivery": Shown()}
"""What is added to data that reached the lens."""
ERAS = (OLDER, NEWER)
COLD = [
    {
        "name": "notes:add",
        "description": "Add.",
        "inputSchema": {"type": "object"},
        "sideEffects": "writes",
        "source": "local",
        "hidden": "",
    }
]


@dataclass
class McpHouse:
    facade: Facade
    house: House

    def client(self, era, **more):
        return Client(wire(self.facade), mode=era, **more)


@asynccontextmanager
async def wire(facade):
    """Messages as they go over stdio, without the pipes."""
    async with (
        create_client_server_memory_streams() as (near, (read, write)),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(
            facade.server.run, read, write, facade.server.create_initialization_options()
        )
        yield near
        tasks.cancel_scope.cancel()


def ways(**more):
    clock = Clock.system()
    return Options(
        **{
            "offline": lambda: COLD,
            "rate": RateLimit(10_000, 1.0),
            "chance": lambda: 0.0,
            "new_id": lambda: new_call_id(clock.wall()),
            **more,
        }
    )


@asynccontextmanager
async def mcp_house(tmp_path, *, confirm_in_client=False, **more) -> AsyncIterator[McpHouse]:
    async with open_house(tmp_path) as house:
        if confirm_in_client:
            more["owner"] = DaemonClient((house.owners,))
        facade = Facade(DaemonClient((house.path,)), ways(**more))
        async with facade.running():
            yield McpHouse(facade, house)
