"""Canonical tool names, `package:tool`, and their aliases for models and MCP.

Aliases are resolved by lookup in a snapshot's table, not by parsing.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from tools_cache.errors import BadToolName

MAX_NAME: Final = 255
"""Characters of a canonical name; packages are reverse domains, tools short words."""


class ToolName(NamedTuple):
    """The two halves of a canonical name."""

    package: str
    tool: str

    def __str__(self) -> str:
        return f"{self.package}:{self.tool}"


def parse(name: str) -> ToolName:
    """Split at the first colon. Raises `BadToolName` if a half is missing."""
    package, colon, tool = name.partition(":")
    if not (colon and package and tool) or len(name) > MAX_NAME:
        shown = name if len(name) <= 80 else name[:77] + "…"
        raise BadToolName(
            f"Invalid tool name format: {shown}. Expected format: packageName:toolName"
        )
    return ToolName(package, tool)


def flaw(name: str) -> str:
    """Return what is wrong with a name that `parse` refused, for the log."""
    if len(name) > MAX_NAME:
        return f"more than {MAX_NAME} characters"
    return "empty package or tool name" if ":" in name else "missing colon separator"


def check_local_name(tool: str) -> None:
    """Check that a tool's own name cannot be mistaken for a package. Raises `BadToolName`."""
    if ":" in tool:
        raise BadToolName(f'Tool name cannot contain ":". Got: {tool}')
    if not tool or not tool.isprintable() or any(c.isspace() for c in tool):
        raise BadToolName(f"Tool name must be a printable word. Got: {tool!r}")


# ------------------------------------------------------------------ aliases for models and MCP

MAX_ALIAS: Final = 64
"""Maximum characters of an alias; all providers accept `^[A-Za-z_][A-Za-z0-9_-]{0,63}$`."""
_SEPARATOR: Final = "__"
_HEAD: Final = 52
_HASHED: Final = re.compile(r".{52}_h[a-z2-7]{10}")
_IN_PACKAGE: Final = re.compile(r"^[0-9.]|[^A-Za-z0-9.]")
"""Prefix for names that begin with a digit or a dot, which Gemini refuses."""
_IN_TOOL: Final = re.compile(r"_(?=x[0-9a-f]{2})|[^A-Za-z0-9_-]")
_ESCAPES: Final = re.compile(r"(?:_x[0-9a-f]{2})+")


def alias(name: str) -> str:
    """Return the alias that all providers and MCP accept.

    Injective; `canonical` reverses it up to 64 characters, beyond that only a table does. Raises
    `BadToolName`.
    """
    package, tool = parse(name)
    left = _IN_PACKAGE.sub(_escaped, package).replace(".", "-")
    whole = left + _SEPARATOR + _IN_TOOL.sub(_escaped, tool)
    # No name may look like another's shortened one.
    if len(whole) > MAX_ALIAS or _HASHED.fullmatch(whole):
        return f"{whole[:_HEAD]}_h{_tail_of(name)}"
    return whole


def canonical(alias_: str) -> str | None:
    """Reverse an alias, for people and tests; None if it is none, or was shortened."""
    package, _, tool = alias_.partition(_SEPARATOR)
    try:
        name = f"{_read(package.replace('-', '.'))}:{_read(tool)}"
        return name if alias(name) == alias_ else None
    except (BadToolName, UnicodeDecodeError):
        return None


def aliases(names: Iterable[str]) -> dict[str, str]:
    """Map alias to canonical name, for one snapshot. Raises `BadToolName` for equal aliases."""
    table: dict[str, str] = {}
    for name in names:
        if table.setdefault(alias(name), name) != name:
            raise BadToolName(f"{name} and {table[alias(name)]} have the same alias {alias(name)}")
    return table


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"_x{byte:02x}" for byte in found.group().encode("utf-8", "surrogatepass"))


def _read(part: str) -> str:
    return _ESCAPES.sub(lambda found: bytes.fromhex(found.group().replace("_x", "")).decode(), part)


def _tail_of(name: str) -> str:
    import base64  # noqa: PLC0415 - only names of more than 60 characters
    import hashlib  # noqa: PLC0415

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode().lower()[:10]
