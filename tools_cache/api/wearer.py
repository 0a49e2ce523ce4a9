"""Old names, for tools that import them from here."""

# ruff: noqa: PLC0414

from tools_cache.api.handed import Wearer as Wearer
from tools_cache.api.tool import ToolContext as WearerContext  # noqa: F401
