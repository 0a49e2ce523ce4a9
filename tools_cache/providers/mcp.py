"""The MCP form of a tool: definition and hints. Knows no session and no server (facts/mcp.md 2)."""

from tools_cache.providers.words import Form, Told
from tools_cache.tool import Json


def form(tool: Told) -> Form:
    """Never withheld: MCP takes JSON Schema as it is."""
    hints: dict[str, Json] = {"readOnlyHint": not tool.writes, "openWorldHint": tool.open_world}
    if tool.writes:  # the other two mean nothing for what only reads
        hints |= {"destructiveHint": tool.confirmed, "idempotentHint": tool.idempotent}
    return Form(
        {
            "name": tool.alias,
            "title": tool.name,
            "description": tool.description,
            "inputSchema": dict(tool.parameters),
            "annotations": hints,
        }
    )
