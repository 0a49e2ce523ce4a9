"""Old names, for tools that import them from here."""

# ruff: noqa: PLC0414

from tools_cache.handed import Wearer as Wearer
from tools_cache.tool import ToolContext as WearerContext  # noqa: F401
