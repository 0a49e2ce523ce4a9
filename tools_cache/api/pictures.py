"""Old names, for tools that import them from here."""

# ruff: noqa: PLC0414

from tools_cache.api.handed import Pictures as Pictures
from tools_cache.api.tool import ToolContext as PictureContext  # noqa: F401
