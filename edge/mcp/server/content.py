"""What the MCP server gives to read: resources, prompts, completions, as one object a test suite
can put its own in place of.

Refuses to know MCP's messages; plain dicts in its words.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from edge.mcp.server import prompts as mcp_prompts, resources as mcp_resources
from edge.mcp.server.prompts import NoPrompt
from edge.mcp.server.resources import CannotRead, Get, NoResource

__all__ = ["CannotRead", "Content", "McpContent", "NoPrompt", "NoResource"]
LENS: Final = mcp_resources.LENS


class Content(Protocol):
    """Lists do not wait; what is read may."""

    def resources(self) -> list[dict[str, Any]]: ...
    def templates(self) -> list[dict[str, Any]]: ...
    async def read(self, uri: str) -> dict[str, Any]:
        """One of MCP's contents. Raises `NoResource`, `CannotRead`."""

    def prompts(self) -> list[dict[str, Any]]: ...
    async def prompt(
        self, name: str, args: Mapping[str, str], _answers: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A GetPromptResult, or an InputRequiredResult; `_answers` are those to an earlier one.
        Raises `NoPrompt`.
        """

    async def complete(self, of: Mapping[str, Any], argument: str, value: str) -> list[str]: ...


class McpContent:
    """What the glasses and their tools have to show."""

    def __init__(self, get: Get) -> None:
        self._get = get

    def resources(self) -> list[dict[str, Any]]:
        return mcp_resources.list_resources()

    def templates(self) -> list[dict[str, Any]]:
        return mcp_resources.list_templates()

    async def read(self, uri: str) -> dict[str, Any]:
        return await mcp_resources.read_resource(uri, self._get)

    def prompts(self) -> list[dict[str, Any]]:
        return mcp_prompts.list_prompts()

    async def prompt(
        self, name: str, args: Mapping[str, str], _answers: Mapping[str, Any]
    ) -> dict[str, Any]:
        return await mcp_prompts.get_prompt(name, args, self._get)

    async def complete(self, of: Mapping[str, Any], argument: str, value: str) -> list[str]:
        """Complete an argument of a prompt, or the place in a resource's address; nothing for
        what is neither.
        """
        if of.get("type") == "ref/prompt":
            return mcp_prompts.complete(argument, value)
        return (
            await mcp_resources.complete(value, self._get)
            if of.get("uri") == mcp_resources.DOC
            else []
        )
