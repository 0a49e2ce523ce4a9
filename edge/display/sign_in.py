"""A sign-in on the lens: which server wants it, what to type on another device, and a QR code.

Only a URL goes in, never a token.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Final

from tools_cache.api.tool import Json, ToolResponse

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's: no I, L, O, U, which a reader takes for something else."""
_LENGTH: Final = 8
"""Characters, 40 bits: only a handful of sign-ins are open at once, and none is secret."""
_READ_AS: Final = str.maketrans({"O": "0", "I": "1", "L": "1", "-": None, " ": None})
STAYS_S: Final = 300.0
MAX_NAME: Final = 40
Draw = Callable[[str], Awaitable[str]]
"""Text → QR code as base64 PNG, empty where there is none (`Pictures.code`)."""


def code_of(url: str) -> str:
    """Return the short code of an authorization URL, `7KQF-2M0X`; its `state` makes it unique."""
    number = int.from_bytes(
        hashlib.sha256(url.encode("utf-8", "surrogatepass")).digest()[:5], "big"
    )
    text = "".join(ALPHABET[number >> 5 * at & 31] for at in reversed(range(_LENGTH)))
    return f"{text[:4]}-{text[4:]}"


def is_code(typed: str, url: str) -> bool:
    """Whether this is the code of this URL, as read off a lens and typed."""
    return typed.strip().upper().translate(_READ_AS) == code_of(url).replace("-", "")


async def sign_in(server: str, url: str, *, typed: str, draw: Draw) -> ToolResponse:
    """Return a response for `RenderPort.present`: words, and a QR code where pixels can be drawn.

    `typed` is what to enter on another device: `glassd servers authorize 7KQF-2M0X`.
    """
    name = (
        "".join(ch if ch.isprintable() else " " for ch in server)[:MAX_NAME].strip() or "a server"
    )
    words = f"Sign in to {name}. On a computer type:\n{typed}"
    picture = await draw(url)
    display: dict[str, Json] = {
        "layout": "reference_card",
        "title": f"Sign in to {name}",
        "text": f"On a computer type:\n{typed}",
    }
    if picture:
        display = {
            "layout": "bitmap_view",
            "data": picture,
            "beside": f"{words}\nor scan this.",
            "alt": words,
        }
    shown = {**display, "durationMs": round(STAYS_S * 1000), "priority": "high"}
    return ToolResponse(data={"text": words}, render={"display": shown})
