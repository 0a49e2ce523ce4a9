"""The registry for our own `registry` tools: search, load and describe tools for one caller."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from edge.core.tools import search as loader_search, selection_rules
from edge.core.tools.selection_rules import HIDDEN, Choice
from edge.core.tools.snapshot import Snapshot
from edge.ports import RegistryPort
from edge.tools.selection import ToolSelection
from tools_cache.api.tool import Json, ToolCall, ToolDefinition, ToolFailure
from tools_cache.registry.tool_docs import summary

IN_A_THREAD: Final = 500
"""From this number of tools on, a search takes milliseconds and runs in a thread."""
SPARE: Final = 100
"""Extra results searched, in case the best ones are switched off or unavailable."""


@dataclass(frozen=True, slots=True)
class MetaTools:
    """Implements `tools_cache.api.handed.Toolbox`; one per call."""

    call: ToolCall
    registry: RegistryPort
    choice: ToolSelection

    async def search(self, query: str, limit: int) -> Sequence[Mapping[str, Json]]:
        snapshot = self.registry.snapshot()
        if len(snapshot.active) < IN_A_THREAD:
            best = self._best(snapshot, query, limit + SPARE)
        else:
            best = await asyncio.to_thread(self._best, snapshot, query, limit + SPARE)
        found = [
            (tool, stands) for tool in best if (stands := self._now(tool.name)).state != HIDDEN
        ][:limit]
        return [
            {"tool": t.name, "summary": summary(t), "category": t.category, "loaded": stands.loaded}
            for t, stands in found
        ]

    def _best(self, snapshot: Snapshot, query: str, most: int) -> Sequence[ToolDefinition]:
        """Return the active tools that the caller may call and that fit best."""
        there = [
            e.definition
            for e in snapshot.in_force
            if not selection_rules.is_helper(e.definition.name)
            and self.choice.listed_for(self.call, e.definition)
        ]
        return loader_search.search(query, there, most)

    async def load(self, tools: Sequence[str], *, passing: bool = False) -> Mapping[str, Json]:
        refused, wanted = [], []
        for name in dict.fromkeys(tools):
            stands = self._now(name)
            if stands.state == HIDDEN:
                refused.append({"tool": name, "reason": stands.reason})
            else:
                wanted.append(name)
        loaded = self.choice.load_tools(wanted, passing=passing)
        refused += [
            {"tool": name, "reason": "there is no room for it beside the others"}
            for name in wanted
            if name not in loaded
        ]
        return {"loaded": [name for name in wanted if name in loaded], "refused": refused}

    async def describe(self, tool: str) -> Mapping[str, Json] | None:
        entry = self.registry.snapshot().find(tool)
        if (
            entry is not None
            and (refusal := self.choice.permitted(self.call, entry.definition)) is not None
        ):
            raise ToolFailure(refusal)
        return await self.choice.described(tool, self.call.user_id, self.call.mode)

    def is_open(self, tool: str) -> bool:
        """Return whether the caller may call this tool now."""
        return self._now(tool).state != HIDDEN

    def _now(self, name: str) -> Choice:
        entry = self.registry.snapshot().find(name)
        if entry is None:
            return Choice(HIDDEN, "there is no such tool")
        if (refusal := self.choice.permitted(self.call, entry.definition)) is not None:
            return Choice(HIDDEN, refusal.message)
        return self.choice.choice(entry, self.call.user_id, self.call.mode)
