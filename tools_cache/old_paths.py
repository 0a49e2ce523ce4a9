"""Old import paths that tools use keep working: `tools_cache.tool` is `tools_cache.api.tool`."""

import sys
from types import ModuleType
from typing import Any, Final

_MODULES: Final = "base calendars contacts durations handed knowledge notes tool"
MOVED: Final = {
    **{f"tools_cache.{name}": f"tools_cache.api.{name}" for name in _MODULES.split()},
    "tools_cache.agenda": "tools_cache.api.free_slots",
}
"""Old path of a module → where it is now. Both names give the very same module."""
OLD_NAMES: Final = {
    "tools_cache.calendars": {"CalendarContext": "tool.ToolContext"},
    "tools_cache.knowledge": {"KnowledgeContext": "tool.ToolContext"},
    "tools_cache.pictures": {"Pictures": "handed.Pictures", "PictureContext": "tool.ToolContext"},
    "tools_cache.sessions": {"FAREWELL": "tool.FAREWELL", "SessionContext": "tool.ToolContext"},
    "tools_cache.toolbox": {"Toolbox": "handed.Toolbox", "ToolboxContext": "tool.ToolContext"},
    "tools_cache.wearer": {"Wearer": "handed.Wearer", "WearerContext": "tool.ToolContext"},
}
"""Old path of a module → names it had, and where each is now in `tools_cache.api`."""

_Spec: Final[Any] = type(__spec__)


class OldPaths:
    """A finder on `sys.meta_path`; it is the last one, so other imports do not pay for it."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> Any:
        """Return a spec for an old path, None for all others."""
        return _Spec(name, OldPaths) if name in MOVED or name in OLD_NAMES else None

    @staticmethod
    def create_module(spec: Any) -> None:
        """Let the import system make an empty module; `exec_module` fills or replaces it."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Put the moved module in its place, with its old names; a removed one has only those."""
        new = MOVED.get(module.__name__, module.__name__)
        if new in MOVED.values():
            __import__(new)
            sys.modules[module.__name__] = sys.modules[new]
        for old, now in OLD_NAMES.get(module.__name__, {}).items():
            home, _, name = f"tools_cache.api.{now}".rpartition(".")
            __import__(home)
            setattr(sys.modules[new], old, getattr(sys.modules[home], name))
