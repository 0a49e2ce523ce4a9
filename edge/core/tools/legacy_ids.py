"""The older id of another server's tool, `server_tool`, for agents that still use it.

It cannot be parsed (two tools can share an id, a long name can lose its server), so calls use the
canonical name, looked up in a table.
"""

import re
from typing import Final

MAX_ID: Final = 124
_START: Final = re.compile(r"[A-Za-z_]")
_KEPT: Final = re.compile(r"[A-Za-z0-9_.-]")


def sanitised(name: str) -> str:
    """Replace characters that ids do not allow, one `_` per UTF-16 unit (emoji: two), and cut."""
    kept = "".join(ch if _KEPT.match(ch) else "_" * (2 if ord(ch) > 0xFFFF else 1) for ch in name)
    if not kept or not _START.match(kept):
        kept = f"_{kept}"
    return kept[:MAX_ID]


def tool_id(server: str, tool: str) -> str:
    """Join both; if too long, each is cut in proportion, to 123 characters and the `_` between."""
    left, right = sanitised(server), sanitised(tool)
    if len(left) + len(right) + 1 > MAX_ID:
        share = len(left) * (MAX_ID - 1) // (len(left) + len(right))
        left, right = left[:share], right[: MAX_ID - 1 - share]
    return f"{left}_{right}"
