"""Generates prompts for models: the agent loop, and a summary of each available tool.

The same tools give the same text, so that providers can cache it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tools_cache.api.tool import Mode
from tools_cache.names import alias
from tools_cache.registry.tool_docs import DocumentedTool, summary

TEXTS: Final = Path(__file__).parents[1] / "prompt_texts"
DOCUMENTED: Final = range(3, 7)
"""Number of tools whose whole documentation is included, in text mode only."""
MANY: Final = 20
"""From this number of tools on, documentation is fetched on demand instead."""
DESCRIBE: Final = "registry:describe"
_KINDS: Final = ("retrieval", "action", "utility")
_PLACE: Final = re.compile(r"\{(\w+)\}")


def summaries(tools: Sequence[DocumentedTool], *, called: Callable[[str], str] = str) -> str:
    """Return `**id** (category): summary` of each. `called` maps a name to its id."""
    return "\n\n".join(
        f"**{called(tool.name)}** ({tool.category}): {summary(tool)}" for tool in tools
    )


def agent_loop(
    tools: Sequence[DocumentedTool], mode: Mode, *, called: Callable[[str], str] = alias
) -> str:
    """Return the standing instructions, naming only these tools."""
    names: dict[str, list[str]] = {kind: [] for kind in (*_KINDS, "confirmed")}
    for tool in sorted(tools, key=lambda tool: tool.name):
        kind = tool.category if tool.category in _KINDS else "utility"
        names[kind].append(called(tool.name))
        if tool.requires_confirmation != "never":
            names["confirmed"].append(called(tool.name))
    listed = {kind: ", ".join(found) or "(none)" for kind, found in names.items()}
    return _PLACE.sub(lambda place: listed[place.group(1)], _text(mode)).strip()


def prompt(
    tools: Sequence[DocumentedTool],
    mode: Mode,
    *,
    documentation: Mapping[str, str] | None = None,
    called: Callable[[str], str] = alias,
) -> str:
    """Return the whole prompt for the tools available in `mode`.

    `documentation` (name → text) is included in text mode for three to six tools; for more, the
    prompt says how to request it.
    """
    ordered = sorted(tools, key=lambda tool: tool.name)
    parts = [agent_loop(ordered, mode, called=called), "# Tools", summaries(ordered, called=called)]
    if mode is Mode.TEXT and documentation and len(ordered) in DOCUMENTED:
        parts += [
            documentation[tool.name].strip() for tool in ordered if tool.name in documentation
        ]
    if len(ordered) >= MANY and any(tool.name == DESCRIBE for tool in ordered):
        parts.append(
            f"Call {called(DESCRIBE)} with a tool's name to read its "
            "whole documentation; it runs nothing."
        )
    return "\n\n".join(parts) + "\n"


def unknown_places(text: str) -> list[str]:
    """Return the placeholders of a prompt text that nothing fills, for the lint."""
    return sorted(set(_PLACE.findall(text)) - {*_KINDS, "confirmed"})


@cache
def _text(mode: Mode) -> str:
    return (TEXTS / f"{mode.value}.md").read_text(encoding="utf-8")
