"""What a tool about tools may do: find, load, describe. Only our own `registry` tools ask for it.

Refuses to call anything: that is `ToolContext.call_tool`'s, with all its checks.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tools_cache.tool import Json, ToolContext


class Toolbox(Protocol):
    """The registry as the caller's user sees it."""

    async def search(self, query: str, limit: int) -> Sequence[Mapping[str, Json]]:
        """Give `[{tool, summary, category, loaded}]`, best first; only what can be called now."""

    async def load(self, tools: Sequence[str], *, passing: bool = False) -> Mapping[str, Json]:
        """Offer these from the next turn on: `{loaded: [name…], refused: [{tool, reason}]}`.
        `passing`: for one call.
        """

    async def describe(self, tool: str) -> Mapping[str, Json] | None:
        """Everything known of one tool, its documentation included; None when there is none of
        that name.
        """


class ToolboxContext(ToolContext, Protocol):
    """What a handler of such a tool is handed."""

    @property
    def toolbox(self) -> Toolbox: ...
