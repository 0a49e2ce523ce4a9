"""Resources, prompts and completions of the MCP server, as one object that a test suite can
replace.
"""

from collections.abc import Mapping
from typing import Any

from edge.mcp.server import prompts as mcp_prompts, resources as mcp_resources


class McpContent:
    """What the glasses and their tools offer to read."""

    def __init__(self, get: mcp_resources.Get) -> None:
        self._get = get

    def resources(self) -> list[dict[str, Any]]:
        return mcp_resources.list_resources()

    def templates(self) -> list[dict[str, Any]]:
        return mcp_resources.list_templates()

    async def read(self, uri: str) -> dict[str, Any]:
        """Return one of MCP's contents. Raises `NoResource`, `CannotRead`."""
        return await mcp_resources.read_resource(uri, self._get)

    def prompts(self) -> list[dict[str, Any]]:
        return mcp_prompts.list_prompts()

    async def prompt(
        self, name: str, args: Mapping[str, str], _answers: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a GetPromptResult, or an InputRequiredResult; `_answers` are those to an earlier
        one. Raises `NoPrompt`.
        """
        return await mcp_prompts.get_prompt(name, args, self._get)

    async def complete(self, of: Mapping[str, Any], argument: str, value: str) -> list[str]:
        """Complete an argument of a prompt, or the variable in a resource's address."""
        if of.get("type") == "ref/prompt":
            return mcp_prompts.complete(argument, value)
        if of.get("uri") == mcp_resources.DOC:
            return await mcp_resources.complete(value, self._get)
        return []
