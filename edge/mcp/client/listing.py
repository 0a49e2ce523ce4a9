"""The list of a server's tools: every page, bounded, each tool checked. Invalid tools are left out;
a list is cut off at its limits.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from mcp import ClientSession
from mcp_types import PaginatedRequestParams, Tool
from pydantic import ValidationError

from edge.mcp.client.models import UpstreamTool
from edge.runtime.logs import clean
from tools_cache.errors import BadDefinition
from tools_cache.schema import check_schema

MAX_PAGES: Final = 64
MAX_NOTES: Final = 20
MAX_DESCRIPTION: Final = 8000
"""Characters; a description is read by a model, which pays for each."""
MAX_NAME: Final = 255
"""Characters, as in an allow-list."""
MAX_LIST: Final = 512 * 1024
"""Bytes of all tools of a server, as on the pipe. The lists of all servers together fit one frame;
the largest published ones are a fifth of it.
"""


class Listing:
    """One listing: the tools, and `notes` about what was left out."""

    def __init__(self, max_tools: int) -> None:
        self._max_tools = max_tools
        self._tools: dict[str, UpstreamTool] = {}
        self._left = MAX_LIST
        self.notes: list[str] = []
        self.ttl_s: float | None = None

    @property
    def tools(self) -> tuple[UpstreamTool, ...]:
        return tuple(self._tools.values())

    async def read(self, session: ClientSession) -> None:
        """Read every page. Raises what the session raises."""
        cursor: str | None = None
        seen: set[str | None] = set()
        while len(seen) < MAX_PAGES:
            seen.add(cursor)
            page = await session.list_tools(
                params=None if cursor is None else PaginatedRequestParams(cursor=cursor)
            )
            if cursor is None and page.ttl_ms is not None:
                self.ttl_s = page.ttl_ms / 1000
            for tool in page.tools:
                self._take(tool)
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                self.note("its list of tools goes round in a circle: read up to there")
                return
            if len(self._tools) >= self._max_tools:
                break
        self.note(f"its list of tools has no end: the first {len(self._tools)} were taken")

    def note(self, text: str) -> None:
        text = clean(text, 300)
        if len(self.notes) < MAX_NOTES and text not in self.notes:
            self.notes.append(text)

    def _take(self, tool: Tool) -> None:
        if tool.name in self._tools:
            self.note(f"tool {tool.name} is listed twice: the first is taken")
        elif len(self._tools) < self._max_tools:
            self._add(upstream_tool(tool))
        elif len(self._tools) == self._max_tools:
            self.note(f"it lists more than {self._max_tools} tools: the others were left out")

    def _add(self, tool: UpstreamTool) -> None:
        left_out = f"tool {clean(tool.name, 80)} is left out:"
        try:
            size = len(json.dumps(asdict(tool), separators=(",", ":"), allow_nan=False))
        except (ValueError, RecursionError):
            self.note(f"{left_out} it holds a number that JSON has not, or goes too deep")
            return
        if size > self._left:
            self.note(f"{left_out} the list is longer than {MAX_LIST // 1024} KiB")
            return
        self._left -= size
        self._tools[tool.name] = tool

    def keep_valid(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return a page without its invalid tools: the SDK would refuse the whole page for one."""
        tools = raw.get("tools")
        if not isinstance(tools, list):
            return raw
        kept = []
        for tool in tools[: self._max_tools + 1]:
            if problem := _problem(tool):
                name = (
                    clean(tool.get("name", "without a name"), 80) if isinstance(tool, dict) else ""
                )
                self.note(f"tool {name or 'that is no object'} is left out: {problem}")
            else:
                kept.append(tool)
        return {**raw, "tools": kept}


def _problem(tool: Any) -> str:
    """Return what is wrong with a tool; "" for a valid one."""
    try:
        Tool.model_validate(tool, by_name=False)
        check_schema(tool["inputSchema"])
        if tool.get("outputSchema") is not None:
            check_schema(tool["outputSchema"])
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except BadDefinition as e:
        return str(e)
    too_long = len(tool["name"]) > MAX_NAME
    return f"its name is longer than {MAX_NAME} characters" if too_long else ""


def upstream_tool(tool: Tool) -> UpstreamTool:
    annotations: Mapping[str, Any] = (
        tool.annotations.model_dump(by_alias=True, exclude_unset=True) if tool.annotations else {}
    )
    return UpstreamTool(
        name=tool.name,
        description=(tool.description or "")[:MAX_DESCRIPTION],
        title=(tool.title or "")[:200],
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=annotations,
        meta=dict(tool.meta or {}),
    )
