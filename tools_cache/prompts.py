"""What a model is told of the tools it may call: the agent loop, and a summary of each tool.
Generated, so it names no other.

The same tools give the same text, so that providers can cache it. Refuses to know when it is sent.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tools_cache.about import Tool, summary
from tools_cache.names import alias
from tools_cache.tool import Mode

TEXTS: Final = Path(__file__).parent / "prompt_texts"
DOCUMENTED: Final = range(3, 7)
"""So many tools may come with their whole documentation, in text; never in voice (S2-116,
S2-117).
"""
MANY: Final = 20
"""From here on documentation is asked for, not sent along (S2-118)."""
DESCRIBE: Final = "registry:describe"
_KINDS: Final = ("retrieval", "action", "utility")
_PLACE: Final = re.compile(r"\{(\w+)\}")


def summaries(tools: Sequence[Tool], *, called: Callable[[str], str] = str) -> str:
    """Give `**id** (category): summary` of each, a blank line between (S2-57). `called` makes
    the id of a name.
    """
    return "\n\n".join(
        f"**{called(tool.name)}** ({tool.category}): {summary(tool)}" for tool in tools
    )


def agent_loop(tools: Sequence[Tool], mode: Mode, *, called: Callable[[str], str] = alias) -> str:
    """Give the standing instructions, with the names of these tools in them and of no other."""
    names: dict[str, list[str]] = {kind: [] for kind in (*_KINDS, "confirmed")}
    for tool in sorted(tools, key=lambda tool: tool.name):
        kind = tool.category if tool.category in _KINDS else "utility"
        names[kind].append(called(tool.name))
        if tool.requires_confirmation != "never":
            names["confirmed"].append(called(tool.name))
    listed = {kind: ", ".join(found) or "(none)" for kind, found in names.items()}
    return _PLACE.sub(lambda place: listed[place.group(1)], _text(mode)).strip()


def prompt(
    tools: Sequence[Tool],
    mode: Mode,
    *,
    documentation: Mapping[str, str] | None = None,
    called: Callable[[str], str] = alias,
) -> str:
    """Give the whole prompt for tools that may be called in `mode`. `documentation` (name → text)
    is used in text mode, for three to six tools; where there are many, the way to ask for it is
    told.
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
    """Give the places of a prompt text that nothing fills, for the lint."""
    return sorted(set(_PLACE.findall(text)) - {*_KINDS, "confirmed"})


@cache
def _text(mode: Mode) -> str:
    return (TEXTS / f"{mode.value}.md").read_text(encoding="utf-8")
