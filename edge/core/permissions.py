"""Which tools a caller may call, by its origin (`[policy] cloud_may`) and by its scope.

Everything the wearer owns is closed to the cloud until the owner opens it: a tool that declares
nothing is private.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from edge.core import policy
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    Json,
    Source,
    ToolCall,
    ToolDefinition,
    ToolError,
)

GLASSES: Final = "glasses"
"""In `cloud_may`: the tools that only use the glasses."""
DECLARED: Final = "declared"
"""In `cloud_may`: the tools whose definition has `openToCloud: true`."""
EVERYTHING: Final = "*"
"""In `cloud_may`: all tools; after a package's name, all of the package."""
STOCK: Final = (GLASSES, DECLARED)
INVOKE: Final = "registry:invoke"
"""Calls what its caller names: for its calls the caller counts."""
_HERE: Final = (Source.LOCAL, Source.GLASSES)


def refusal(call: ToolCall, tool: ToolDefinition, cloud_may: Sequence[str]) -> ToolError | None:
    """Return why this caller may not call this tool, or None. The router refuses the cloud's own
    tools and those of other servers.
    """
    if call.scope is not None and not _in_scope(call.scope, tool):
        return policy.out_of_scope(tool.name)
    if tool.for_programs and not _by_program(call):
        return ToolError.of(
            ErrorCode.DENIED,
            f"{tool.name} is called by the cloud and by other tools, not by people or models",
        )
    if call.origin is not CallOrigin.CLOUD or tool.source not in _HERE or opened(tool, cloud_may):
        return None
    line = ", ".join(f'"{word}"' for word in (*cloud_may, tool.name))
    return ToolError.of(
        ErrorCode.DENIED,
        f"The cloud may not call {tool.name}: "
        "the owner of this device has not opened it to the cloud",
        suggestion=(
            f"To allow it, write in glassd.toml, in the section [policy]: cloud_may = [{line}]"
        ),
    )


def callable_by(call: ToolCall, tool: ToolDefinition, cloud_may: Sequence[str]) -> bool:
    """Return whether this caller is shown this tool; the cloud is shown only what runs here."""
    return refusal(call, tool, cloud_may) is None and (
        call.origin is not CallOrigin.CLOUD or tool.source in _HERE
    )


def _by_program(call: ToolCall) -> bool:
    """Return whether the cloud or another tool calls; what invokes tools by name is none."""
    return call.origin is CallOrigin.CLOUD or (call.depth > 0 and call.through != INVOKE)


def _in_scope(scope: Mapping[str, Json], tool: ToolDefinition) -> bool:
    from edge.core.tools.scope import Scope, admits  # noqa: PLC0415 - only agents beside other servers have one

    return admits(Scope.of(scope), tool)


def opened(tool: ToolDefinition, cloud_may: Sequence[str]) -> bool:
    """Return whether this tool is open to the cloud."""
    return any(_means(word, tool) for word in cloud_may)


def _means(word: str, tool: ToolDefinition) -> bool:
    if word == GLASSES:
        return tool.source is Source.GLASSES
    if word == DECLARED:
        return tool.open_to_cloud
    return word in (EVERYTHING, tool.name, f"{tool.name.partition(':')[0]}:{EVERYTHING}")
