"""What the tests of MCP servers share: configurations of servers that are scripts, and waiting
for an end state.
"""

import asyncio
import sys
from pathlib import Path

from edge.mcp.client.models import McpServer

HERE = Path(__file__).parent
SOON_S = 40.0
"""No wait of a test is meant to come near this; a busy machine may."""


def raw(*flags: str, id: str = "raw", **more) -> McpServer:
    """The server that breaks rules."""
    return McpServer(
        id=id, command=sys.executable, args=("-S", str(HERE / "raw.py"), *flags), **more
    )


async def until(holds, what: str = ""):
    """Wait for an end state; gives what `holds` gave."""
    async with asyncio.timeout(SOON_S):
        while not (found := holds()):
            await asyncio.sleep(0.02)
    return found
