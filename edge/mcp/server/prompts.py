"""The prompts of the MCP server: how to help a wearer, generated from the tools that can be called
now. No other tool is named in a prompt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from edge.mcp.server.resources import Get, list_tools
from tools_cache.api.tool import Mode, Source
from tools_cache.builder import prompts
from tools_cache.names import alias
from tools_cache.registry.tool_docs import DocumentedTool

AGENT: Final = "use_the_glasses_well"
TITLE: Final = "Use the glasses well"
_MODES: Final = tuple(mode.value for mode in Mode)
_FORMS: Final[Mapping[str, str]] = {
    "glasses:show_text": (
        "{name}: a few words, or a text that is turned page by "
        "page. The lens has some five short rows."
    ),
    "glasses:show_card": (
        "{name}: a heading, a few lines, a footer; for facts the wearer glances at."
    ),
    "glasses:show_image": (
        "{name}: a simple picture of large shapes; always give `alt`, "
        "it stands in where pixels do not go."
    ),
    "glasses:say": "{name}: for the ear, when the eyes are busy; one sentence.",
    "glasses:notify": "{name}: over whatever is shown; for what cannot wait.",
    "glasses:ask": (
        "{name}: only the wearer can decide. Give `wait_s` to have the answer in the same call."
    ),
    "glasses:wait_for_event": (
        "{name}: to go on when the wearer taps, nods, looks up, puts the glasses on, or says "
        "something (name `said`)."
    ),
    "glasses:clear": (
        "{name}: when what is shown is over. "
        "Give a duration beforehand rather than clear afterwards."
    ),
    "glasses:status": "{name}: which glasses these are, and whether anybody wears them.",
}
_DELIVERY: Final = """\
A result being ok does not say that the wearer got it; its line "On the glasses" does: `shown` and `spoken` are what the glasses \
confirmed, `superseded` was replaced before it was read, `expired` and `dropped` never came. Say only what was delivered; \
show a thing once more only when it was not."""  # noqa: E501


class NoPrompt(Exception):
    """There is no such prompt, or an argument is wrong; MCP's answer is -32602."""


@dataclass(frozen=True, slots=True)
class _Tool:
    """The fields of one tool of `GET /v1/tools` that a prompt uses."""

    name: str
    description: str
    category: str
    source: Source
    requires_confirmation: str
    raw: Mapping[str, Any] = field(default_factory=dict)


def list_prompts() -> list[dict[str, Any]]:
    """Return all of them, in MCP's form."""
    mode = {
        "name": "mode",
        "required": False,
        "description": (
            "text (the wearer, or a program, writes; "
            "this when absent) or voice (the wearer speaks and hears)"
        ),
    }
    about = (
        "How to help somebody who wears these glasses: the agent loop, "
        "what answers mean, the tools there are now."
    )
    return [{"name": AGENT, "title": TITLE, "description": about, "arguments": [mode]}]


def complete(argument: str, value: str) -> list[str]:
    """Return the values of an argument that begin so."""
    return [mode for mode in _MODES if mode.startswith(value)] if argument == "mode" else []


async def get_prompt(name: str, args: Mapping[str, str] | None, get: Get) -> dict[str, Any]:
    """Return MCP's `{description, messages}`. Raises `NoPrompt`, and what `get` raises."""
    if name != AGENT:
        raise NoPrompt(f"Unknown prompt: {name[:100]}")
    if unknown := sorted(set(args or {}) - {"mode"}):
        raise NoPrompt(f"Unknown argument: {unknown[0][:100]}; there is mode")
    mode = (args or {}).get("mode") or Mode.TEXT.value
    if mode not in _MODES:
        raise NoPrompt(f"mode: must be {' or '.join(_MODES)}")
    listed = (await list_tools(get, mode=mode))["tools"]
    tools = [_tool(tool) for tool in listed if tool.get("state") == "offered"]
    content = {"type": "text", "text": text(tools, Mode(mode))}
    return {"description": TITLE, "messages": [{"role": "user", "content": content}]}


def text(tools: Sequence[DocumentedTool], mode: Mode) -> str:
    """Return the instructions, the use of each form of output, and the tools, by the names that
    this server gives them.
    """
    there = {tool.name for tool in tools}
    forms = [
        f"- {form.replace('{name}', alias(name))}" for name, form in _FORMS.items() if name in there
    ]
    parts = [prompts.prompt(tools, mode).strip()]
    if forms:
        parts += ["# The glasses", "\n".join(forms), _DELIVERY]
    return "\n\n".join(parts) + "\n"


def _tool(tool: Mapping[str, Any]) -> _Tool:
    return _Tool(
        tool["name"],
        tool.get("summary") or tool["description"],
        tool["category"],
        Source(tool["source"]),
        tool["requiresConfirmation"],
    )
