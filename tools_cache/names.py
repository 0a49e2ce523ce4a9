"""Canonical tool names, `package:tool`, and nothing else: aliases are looked up where they are made, never parsed."""

from typing import Final, NamedTuple

from tools_cache.errors import BadToolName

MAX_NAME: Final = 255
"""Characters of a whole canonical name; package names are reverse domains, tools short words."""


class ToolName(NamedTuple):
    """The two halves of a canonical name."""

    package: str
    tool: str

    def __str__(self) -> str:
        return f"{self.package}:{self.tool}"


def parse(name: str) -> ToolName:
    """Split at the FIRST colon. Raises `BadToolName` when a half is missing."""
    package, colon, tool = name.partition(":")
    if not (colon and package and tool) or len(name) > MAX_NAME:
        shown = name if len(name) <= 80 else name[:77] + "…"
        raise BadToolName(f"Invalid tool name format: {shown}. Expected format: packageName:toolName")
    return ToolName(package, tool)


def check_local_name(tool: str) -> None:
    """Refuse a tool's own name that could not be told from a package. Raises `BadToolName`."""
    if ":" in tool:
        raise BadToolName(f'Tool name cannot contain ":". Got: {tool}')
    if not tool or not tool.isprintable() or any(c.isspace() for c in tool):
        raise BadToolName(f"Tool name must be a printable word. Got: {tool!r}")
