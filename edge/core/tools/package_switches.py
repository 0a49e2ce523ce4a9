"""Packages whose tools follow a section of the configuration, for all who read it."""

from typing import Final

FOLLOWERS: Final = {"context": "history", "continuum": "history"}
"""Package → the section whose `enabled` also switches the package's tools."""


def switch_of(package: str) -> str:
    """Return the section of the configuration that switches a package's tools on."""
    return FOLLOWERS.get(package, f"tool.{package}")
