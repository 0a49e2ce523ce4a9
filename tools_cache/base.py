"""A local tool as a class: `Tool` to derive from, and the table of what its constructor may ask
for.

Refuses to find or run tools: that is the daemon's. A handler may as well be one function, `async
def execute(args, ctx)`.

    class Keep(Tool):
        def __init__(self, db: Database, log: logging.Logger) -> None:
            self._db, self._log = db, log

        async def run(self, args: Mapping[str, Json]) -> Json:
            return {"data": {"id": await self._db.insert("kept", {"text": args["text"]})}}
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tools_cache import handed
from tools_cache.handed import Json
from tools_cache.tool import ToolCall, ToolContext

INJECTED: Final[Mapping[type, str]] = MappingProxyType(
    {
        handed.ToolStorage: "storage",
        handed.Database: "db",
        handed.Files: "files",
        handed.KV: "kv",
        handed.Alarms: "alarms",
        handed.Display: "display",
        handed.Audio: "audio",
        handed.Cloud: "cloud",
        handed.Clock: "clock",
        handed.Session: "session",
        handed.Audit: "audit",
        handed.Config: "config",
        handed.Deeds: "glasses_do",
        logging.Logger: "log",
        ToolCall: "call",
        ToolContext: "",
    }
)
"""Type of a constructor's parameter → the part of the context it gets; "" is the whole context."""


class Tool(ABC):
    """One fresh instance a call, made with what its constructor's annotations name. It keeps
    nothing between calls: what should last goes into the storage it is handed (C-38).
    """

    @abstractmethod
    async def run(self, args: Mapping[str, Json]) -> Json:
        """Do it. `args` are checked and filled; gives what a function handler gives, or raises
        `ToolFailure`.
        """

    async def is_available(self) -> str:
        """Say why it cannot run now, asked before each run; "" when it can. What can be said
        without running code belongs into the schema (`availableWhen`, `hardware`): only that hides
        a tool from the list.
        """
        return ""
