"""Messages between pagers: their form, what is signed, and how a long text is shortened."""

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from tools_cache.api.handed import Json
from tools_cache.errors import ErrorCode, ToolFailure

VERSION: Final = 1
PAGER: Final = re.compile(r"PAGER-[A-Z0-9]{4}")
MESSAGE: Final = re.compile(r"MSG-[A-Z0-9]{8}")
MAX_TEXT: Final = 300
MAX_ORIGINAL: Final = 4000
MAX_NAME: Final = 40
LOW, NORMAL, URGENT = 0, 1, 2
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
CHANGED_KEY: Final = "The key of {pager} has changed: it may be somebody else."


def readable(text: str, *, lines: bool = False) -> str:
    """Return text without characters that are not seen or that turn others around; in one line
    unless `lines`.
    """
    shown = "".join(ch if ch.isprintable() or (lines and ch == "\n") else " " for ch in text)
    if not lines:
        return " ".join(shown.split())
    return "\n".join(" ".join(line.split()) for line in shown.split("\n")).strip()


def message_id(*parts: str) -> str:
    """Return the id of a message: the same for the same call, so a repeat is the same message."""
    return f"MSG-{letters(hashlib.sha256(chr(0).join(parts).encode()).digest(), 8)}"


def letters(chance: bytes, count: int) -> str:
    """Return so many letters and digits that these bytes choose."""
    number, found = int.from_bytes(chance), []
    for _ in range(count):
        number, at = divmod(number, len(_LETTERS))
        found.append(_LETTERS[at])
    return "".join(found)


def signed_bytes(message: Mapping[str, Json]) -> bytes:
    """Return what is signed: the whole message as canonical JSON (RFC 8785)."""
    import rfc8785  # noqa: PLC0415 - at the first message

    try:
        return rfc8785.dumps(dict(message))
    except (rfc8785.CanonicalizationError, UnicodeError):
        raise invalid("/message it cannot be written as canonical JSON") from None


def invalid(problem: str, suggestion: str | None = None, for_wearer: str = "") -> ToolFailure:
    more = {"for_wearer": for_wearer} if for_wearer else {}
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid parameters: {problem}",
        suggestion=suggestion,
        **more,
    )


def place(location: Mapping[str, Json]) -> str:
    """Return a position as text."""
    return f"{location['lat']:.5f}, {location['lon']:.5f}"
