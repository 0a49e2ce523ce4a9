"""The shipped packages, or tools, that their owner must switch on, and the settings that do so."""

from typing import Any, Final

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "contacts": {"url": "https://dav.example.com/eva/contacts", "import": {"enabled": True}},
    "context": {"enabled": True},
    "continuum": {"enabled": True},
    "domaindoc": {"enabled": True},
    "email": {
        "imap_host": "imap.example.com",
        "smtp_host": "smtp.example.com",
        "username": "eva",
        "address": "eva@example.com",
    },
    "kasa": {"enabled": True},
    "maps": {
        "search_url": "https://search.example.com",
        "route_url": "https://route.example.com",
    },
    "pager": {"enabled": True},
    "punchclock": {"enabled": True},
    "weather": {"url": "https://weather.example.com"},
    "web": {"enabled": True, "search_url": "https://search.example.com"},
}
_SOME: Final = {"contacts": ("contacts:import", "contacts:sync")}
"""Of these packages only some tools are off."""


def off_at_first(tool: str) -> bool:
    """Return whether a tool is off while nothing is configured."""
    package = tool.partition(":")[0]
    return package in SETTINGS and tool in _SOME.get(package, (tool,))
