"""Who sees a call: which tools are shown on the glasses, whether they can show it, and how.

It follows from the caller's `present`, else from what a tool declares and who called it, never from
a tool's name.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from edge.core.results import LayoutKind, concerns_wearer
from edge.core.tools import templates
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
"""Seconds after which glasses that are away no longer get results: an answer would be too late."""
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
"""`display.customUI` → layout. A component that only another client has is shown as text."""
_SAVED: Final = "Saved. I'll do it when we're online"
_EMPTY: Final[tuple[Json, ...]] = (None, "", {}, [])
_PARTS: Final = {
    LayoutKind.REFERENCE_CARD: ("title", "text"),
    LayoutKind.DASHBOARD_CARD: ("leftText", "rightText"),
    LayoutKind.DOUBLE_TEXT_WALL: ("topText", "bottomText"),
}


def visible(tool: ToolDefinition) -> bool:
    """Return whether its calls are shown: never for internal and built-in tools and
    those for programs; otherwise as
    configured, by default all but other servers'.
    """
    if tool.execution_type is ExecutionType.INTERNAL or tool.source is Source.GLASSES:
        return False
    if tool.for_programs:
        return False
    return tool.source is not Source.UPSTREAM if tool.visible is None else tool.visible


def shows_call(call: ToolCall, tool: ToolDefinition | None) -> bool:
    """Return whether the wearer sees that this call is under way."""
    if tool is not None and tool.execution_type is ExecutionType.INTERNAL:
        return False
    if call.present is not None:
        return call.present
    if tool is None or wearer_asked(call):
        return True
    return visible(tool) and not _program_reads(call, tool)


def shows_answer(
    call: ToolCall, tool: ToolDefinition | None, response: ToolResponse, *, confirmed: bool = False
) -> bool:
    """Return whether the wearer gets this answer. Built-in tools are shown if their effect is a
    picture or speech, or if they failed; what a program looks up for itself only if the result has
    a rendering of its own.
    """
    if call.present is False or not concerns_wearer(call, response, confirmed=confirmed):
        return False
    if tool is None or tool.execution_type is ExecutionType.INTERNAL:
        return tool is None
    if shows_call(call, tool):
        return True
    if tool.source is Source.GLASSES:
        return response.render is not None or not response.ok
    return visible(tool) and any((response.render or {}).get(part) for part in ("display", "audio"))


def _program_reads(call: ToolCall, tool: ToolDefinition) -> bool:
    """Return whether a program or a model looks something up for itself, not for the wearer."""
    by_model = call.provider_call_id is not None or call.ordinal is not None
    by_program = call.origin in (CallOrigin.MCP, CallOrigin.CLOUD) or by_model
    meant_to_be_seen = bool(tool.custom_ui) or tool.visible is True
    return by_program and tool.category == "retrieval" and not meant_to_be_seen


def wearer_asked(call: ToolCall) -> bool:
    """Return whether the wearer asked for it."""
    return call.mode is Mode.VOICE or call.origin in (CallOrigin.VOICE, CallOrigin.GLASSES)


def surface(*, ready: bool, known: bool, gone_at: float | None, began: float, now: float) -> bool:
    """Return whether a result can be shown now or in a moment.

    `known`: we know what the glasses can do. `gone_at`: when they were lost; None if they never
    were connected, then `began` counts, when the search for them began.
    """
    away_since = began if gone_at is None else gone_at
    return ready or (known and now - away_since <= SURFACE_S)


# ------------------------------------------------------------------ as what


def title(tool: ToolDefinition) -> str:
    """Return the title the wearer reads: its author's, else the words of its name."""
    if given := given_title(tool):
        return given
    words = tool.name.partition(":")[2].replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:60]


def given_title(tool: ToolDefinition) -> str:
    """Return the title that its author gave it, "" if none."""
    given = tool.raw.get("title")
    return given.strip()[:60] if isinstance(given, str) else ""


def working(tool: ToolDefinition | None) -> str:
    """Return the text shown while a call runs."""
    return f"{title(tool)}…" if tool is not None and tool.custom_ui else "Working…"


def busy(tool: ToolDefinition | None, _args: Mapping[str, Json]) -> str:
    """Return the text for a caller who waits no longer, of a call that runs."""
    return "Working…" if tool is None else f"{title(tool)}: working…"


def saved(tool: ToolDefinition | None, args: Mapping[str, Json]) -> str:
    """Return the text for a call that waits for the network: its author's, if no value is missing
    in it.
    """
    if tool is None:
        return _SAVED
    later = tool.wearer.later
    if later and all(slot.split(".")[1] in args for slot in templates.slots(later)):
        return str(templates.filled(later, {"input": dict(args)}))
    return f"{_SAVED}: {title(tool)}"


def dressed(
    response: ToolResponse, tool: ToolDefinition | None, *, awaited: bool = False
) -> ToolResponse:
    """Apply the tool's layout to a result, unless the result has its own. `awaited`: the wearer
    asked for it, or agreed to it, and must see that it is over even if it says nothing.
    """
    render: dict[str, Json] = dict(response.render or {})
    if awaited and response.ok and not render and response.data in _EMPTY:
        return replace(response, data="Nothing found" if response.data == [] else "Done")
    if tool is None or not tool.custom_ui or not response.ok or "display" in render:
        return response
    from edge.core.words.data_text import raw  # noqa: PLC0415 - at the first result

    text = "" if response.data is None else raw(response.data)
    if not text.strip():
        return response
    layout = TEMPLATES.get(tool.custom_ui, LayoutKind.TEXT_WALL)
    head, body = _PARTS.get(layout, ("", "text"))
    render["display"] = {
        "layout": layout.value,
        body: text,
        **({head: title(tool)} if head else {}),
    }
    return replace(response, render={"audio": {"text": text}, **render})
