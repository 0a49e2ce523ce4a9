"""Old import paths that tools use keep working: `tools_cache.tool` is `tools_cache.api.tool`."""

import sys
from types import ModuleType
from typing import Any, Final

_NAMES: Final = (
    "base calendars contacts durations handed knowledge notes pictures sessions tool toolbox wearer"
)
MOVED: Final = {
    **{f"tools_cache.{name}": f"tools_cache.api.{name}" for name in _NAMES.split()},
    "tools_cache.agenda": "tools_cache.api.free_slots",
}
"""Old path of a module → where it is now. Both names give the very same module."""

_Spec: Final[Any] = type(__spec__)


class OldPaths:
    """A finder on `sys.meta_path`; it is the last one, so other imports do not pay for it."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> Any:
        """Return a spec for a moved module, None for all others."""
        return _Spec(name, OldPaths) if name in MOVED else None

    @staticmethod
    def create_module(spec: Any) -> None:
        """Let the import system make an empty module; `exec_module` replaces it."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Put the moved module in its place."""
        new = MOVED[module.__name__]
        __import__(new)
        sys.modules[module.__name__] = sys.modules[new]
