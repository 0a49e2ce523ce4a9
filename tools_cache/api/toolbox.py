"""Old names, for tools that import them from here."""

# ruff: noqa: PLC0414

from tools_cache.api.handed import Toolbox as Toolbox
from tools_cache.api.tool import ToolContext as ToolboxContext  # noqa: F401
