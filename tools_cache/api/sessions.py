"""Old names, for tools that import them from here."""

# ruff: noqa: PLC0414

from tools_cache.api.tool import FAREWELL as FAREWELL, ToolContext as SessionContext  # noqa: F401
