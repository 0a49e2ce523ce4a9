"""Who sees a call: which tools are shown on the glasses, whether there is anything to show them on,
and as what.

Pure. Where a result goes follows from what the tool says of itself,
never from its name.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from edge.core.results import LayoutKind, concerns_wearer, text_of
from tools_cache.api.tool import (
    CallOrigin,
    ExecutionType,
    Json,
    Mode,
    Source,
    ToolCall,
    ToolDefinition,
    ToolResponse,
)

SURFACE_S: Final = 60.0
"""Glasses that are away longer than this are no place to show anything: by then a result that
waits is no answer any more.
"""
TEMPLATES: Final[Mapping[str, LayoutKind]] = {
    **{
        kind.value: kind
        for kind in (
            LayoutKind.TEXT_WALL,
            LayoutKind.REFERENCE_CARD,
            LayoutKind.DASHBOARD_CARD,
            LayoutKind.DOUBLE_TEXT_WALL,
        )
    },
    "text": LayoutKind.TEXT_WALL,
    "card": LayoutKind.REFERENCE_CARD,
    "dashboard": LayoutKind.DASHBOARD_CARD,
}
"""`display.customUI` → how a result is laid out. A component that only another client has is
text here.
"""
_PARTS: Final = {
    LayoutKind.REFERENCE_CARD: ("title", "text"),
    LayoutKind.DASHBOARD_CARD: ("leftText", "rightText"),
    LayoutKind.DOUBLE_TEXT_WALL: ("topText", "bottomText"),
}


def visible(tool: ToolDefinition) -> bool:
    """Are calls of it shown beside what they do? Never those of internal and built-in tools,
    whatever is configured; by default those of all others but for another
    server's.
    """
    if tool.execution_type is ExecutionType.INTERNAL or tool.source is Source.GLASSES:
        return False
    return tool.source is not Source.UPSTREAM if tool.visible is None else tool.visible


def shown(call: ToolCall, tool: ToolDefinition | None) -> bool:
    """Does the wearer see that this call is under way? What the wearer asked for is, but for
    what is internal.
    """
    if tool is None or visible(tool):
        return True
    return tool.execution_type is not ExecutionType.INTERNAL and asked(call)


def told(call: ToolCall, tool: ToolDefinition | None, response: ToolResponse) -> bool:
    """Does the wearer get this answer? A built-in tool whose very effect is a picture or a voice
    has it all the same, and that it came to nothing is told.
    """
    if not concerns_wearer(call, response):
        return False
    if tool is None or tool.execution_type is ExecutionType.INTERNAL:
        return tool is None
    return shown(call, tool) or (
        tool.source is Source.GLASSES and (response.render is not None or not response.ok)
    )


def asked(call: ToolCall) -> bool:
    """Did the wearer ask for it?"""
    return call.mode is Mode.VOICE or call.origin in (CallOrigin.VOICE, CallOrigin.GLASSES)


def surface(*, ready: bool, known: bool, gone_at: float | None, began: float, now: float) -> bool:
    """Return whether there is anything to show a result on, now or in a moment.

    `known`: we know what the glasses can do. `gone_at`: when they were lost, None while they never
    were there; then `began` counts, when we began to look for them.
    """
    away_since = began if gone_at is None else gone_at
    return ready or (known and now - away_since <= SURFACE_S)


# ------------------------------------------------------------------ as what


def title(tool: ToolDefinition) -> str:
    """What the wearer reads of a call: its author's title, else the words of its name."""
    given = tool.raw.get("title")
    if isinstance(given, str) and given.strip():
        return given.strip()[:60]
    words = tool.name.partition(":")[2].replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:60]


def working(tool: ToolDefinition | None) -> str:
    """The word beside a call that takes a while; of a tool whose results have a title, that one."""
    return f"{title(tool)}…" if tool is not None and tool.custom_ui else "Working…"


def dressed(response: ToolResponse, tool: ToolDefinition | None) -> ToolResponse:
    """Lay a result out as its tool wants it, call and result in one picture, unless the
    result brings its own.
    """
    render: dict[str, Json] = dict(response.render or {})
    text = text_of(response)
    if (
        tool is None
        or not tool.custom_ui
        or not response.ok
        or "display" in render
        or not text.strip()
    ):
        return response
    layout = TEMPLATES.get(tool.custom_ui, LayoutKind.TEXT_WALL)
    head, body = _PARTS.get(layout, ("", "text"))
    render["display"] = {
        "layout": layout.value,
        body: text,
        **({head: title(tool)} if head else {}),
    }
    return replace(response, render={"audio": {"text": text}, **render})
