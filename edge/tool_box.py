"""The registry as our own `registry` tools see it: found by words, loaded, described, for one caller.

Refuses to call a tool, and to decide which may be seen: the choice of tools does.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from edge.choice_ports import HIDDEN, Choice, LoadingPort
from edge.core import loader_rules, loader_search
from edge.ports import Entry, RegistryPort
from tools_cache.about import summary
from tools_cache.tool import Json, ToolCall

IN_A_THREAD: Final = 500
"""Tools from which on a search takes milliseconds that the others should not wait for."""


@dataclass(frozen=True, slots=True)
class ToolBox:
    """`tools_cache.toolbox.Toolbox`, made anew for each call."""

    call: ToolCall
    registry: RegistryPort
    choice: LoadingPort

    async def search(self, query: str, limit: int) -> Sequence[Mapping[str, Json]]:
        found = [(entry, stands) for entry in self.registry.snapshot().entries() if (stands := self._stands(entry)).state != HIDDEN]
        tools = [entry.definition for entry, _ in found if not loader_rules.is_helper(entry.definition.name)]
        if len(tools) < IN_A_THREAD:
            best = loader_search.search(query, tools, limit)
        else:
            best = await asyncio.to_thread(loader_search.search, query, tools, limit)
        loaded = {entry.definition.name: stands.loaded for entry, stands in found}
        return [
            {"tool": t.name, "summary": summary(t), "category": t.category, "loaded": loaded[t.name]} for t in best
        ]

    async def load(self, tools: Sequence[str], *, passing: bool = False) -> Mapping[str, Json]:
        refused, wanted = [], []
        for name in dict.fromkeys(tools):
            entry = self.registry.snapshot().find(name)
            stands = self._stands(entry) if entry is not None else Choice(HIDDEN, "there is no such tool")
            if stands.state == HIDDEN:
                refused.append({"tool": name, "reason": stands.reason})
            else:
                wanted.append(name)
        loaded = self.choice.load_tools(wanted, passing=passing)
        refused += [{"tool": name, "reason": "there is no room for it beside the others"} for name in wanted if name not in loaded]
        return {"loaded": [name for name in wanted if name in loaded], "refused": refused}

    async def describe(self, tool: str) -> Mapping[str, Json] | None:
        return await self.choice.described(tool, self.call.user_id, self.call.mode)

    def _stands(self, entry: Entry) -> Choice:
        return self.choice.choice(entry, self.call.user_id, self.call.mode)
