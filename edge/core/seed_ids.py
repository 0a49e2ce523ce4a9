"""The id by which seed 001's agents know another server's tool, `server_tool`: for who still holds
such ids, and for nothing else.

Pure. Refuses to be read back: two tools can share one and a long name can lose its server (S1-10,
S1-11), so calls go by the canonical name, looked up in a table (C-05).
"""

import re
from typing import Final

MAX_ID: Final = 124
_START: Final = re.compile(r"[A-Za-z_]")
_KEPT: Final = re.compile(r"[A-Za-z0-9_.-]")


def sanitised(name: str) -> str:
    """Replace what may not stand in an id, by UTF-16 unit as the seed's language counts (an
    emoji gives two), then cut.
    """
    kept = "".join(ch if _KEPT.match(ch) else "_" * (2 if ord(ch) > 0xFFFF else 1) for ch in name)
    if not kept or not _START.match(kept):
        kept = f"_{kept}"
    return kept[:MAX_ID]


def tool_id(server: str, tool: str) -> str:
    """Join both; what is too long is shared out in proportion, 123 characters in all and the
    `_` between (S1-09).
    """
    left, right = sanitised(server), sanitised(tool)
    if len(left) + len(right) + 1 > MAX_ID:
        share = len(left) * (MAX_ID - 1) // (len(left) + len(right))
        left, right = left[:share], right[: MAX_ID - 1 - share]
    return f"{left}_{right}"
