"""The MCP server `house` of the examples: one tool that says how far it is, and one that is not
allowed.
"""

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("house", title="The house", version="7")


@server.tool()
async def lamp(room: str, ctx: Context) -> dict[str, str]:
    """Switch the lamp of a room on."""
    await ctx.report_progress(1, 2, f"looking for the {room}")
    return {"lamp": room}


@server.tool()
def bell() -> str:
    """Ring the bell at the door."""
    return "Ding dong"


if __name__ == "__main__":
    server.run()
