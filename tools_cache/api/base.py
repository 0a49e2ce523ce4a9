"""Base class for local tools, and the types its constructor parameters may have.

The daemon finds and runs the tools. A handler may also be a function, `async def execute(args,
ctx)`.

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

from tools_cache.api import handed
from tools_cache.api.handed import Json
from tools_cache.api.tool import ToolCall, ToolContext

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
        handed.Captions: "captions",
        logging.Logger: "log",
        ToolCall: "call",
        ToolContext: "",
    }
)
"""Type of a constructor parameter → its part of the context; "" is the whole context."""


class Tool(ABC):
    """One new instance per call, constructed with what its annotations name.

    It keeps no state between calls; lasting data goes into the storage it is given.
    """

    @abstractmethod
    async def run(self, args: Mapping[str, Json]) -> Json:
        """Execute the call. `args` are validated and filled; return what a function returns."""

    async def is_available(self) -> str:
        """Return why it cannot run now, or "" if it can; called before each run.

        What can be decided without running code belongs into the schema (`availableWhen`,
        `hardware`): only that hides a tool from the list.
        """
        return ""
