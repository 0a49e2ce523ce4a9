"""The MCP form of a tool: definition and hints, as in the MCP specification's `Tool`."""

from tools_cache.api.tool import Json
from tools_cache.providers.models import DescribedTool, ProviderForm


def form(tool: DescribedTool) -> ProviderForm:
    """Return the form; never withheld, because MCP accepts JSON Schema unchanged."""
    hints: dict[str, Json] = {"readOnlyHint": not tool.writes, "openWorldHint": tool.open_world}
    if tool.writes:  # the other two hints only apply to tools that write
        hints |= {"destructiveHint": tool.confirmed, "idempotentHint": tool.idempotent}
    return ProviderForm(
        {
            "name": tool.alias,
            "title": tool.name,
            "description": tool.description,
            "inputSchema": dict(tool.parameters),
            "annotations": hints,
        }
    )
