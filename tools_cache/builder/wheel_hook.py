"""Build hook that puts `tool_registry.json` into the wheel: a daemon compiles nothing."""

import importlib
import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RegistryHook(BuildHookInterface[Any]):
    """Called by hatchling before it packs a wheel or makes an editable install."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Compile every tool folder; a tool with lint failures fails the build."""
        sys.path.insert(0, self.root)  # an isolated build runs outside the tree
        try:
            build = importlib.import_module("tools_cache.builder.compiler")
            stamp = importlib.import_module("tools_cache.builder.build_info")
        finally:
            sys.path.remove(self.root)
        report = build.compile_tools()
        if report.text is None:
            raise RuntimeError(
                "the tools have lint failures:\n" + "\n".join(map(str, report.failures))
            )
        build.write(report.text, made=stamp.stamp(build.TOOLS, os.environ))
