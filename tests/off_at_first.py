"""The shipped packages that their owner must switch on, and the settings that do so."""

from typing import Any, Final

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "domaindoc": {"enabled": True},
    "kasa": {"enabled": True},
    "punchclock": {"enabled": True},
}


def off_at_first(tool: str) -> bool:
    """Return whether a tool is off while nothing is configured."""
    return tool.partition(":")[0] in SETTINGS
