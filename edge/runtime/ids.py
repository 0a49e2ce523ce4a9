"""Ids of calls: UUIDv7, which sort by age. Ids of one millisecond differ in 74 random bits."""

import secrets
import uuid
from collections.abc import Callable
from typing import Final

_MS_MASK: Final = (1 << 48) - 1
_LOW_MASK: Final = (1 << 62) - 1


def new_call_id(wall: float, *, random_bits: Callable[[int], int] = secrets.randbits) -> str:
    """Return a fresh UUIDv7 (RFC 9562 §5.7) in text form, stamped with `wall` (seconds)."""
    stamp = int(wall * 1000) & _MS_MASK
    random = random_bits(74)
    value = stamp << 80 | 0x7 << 76 | random >> 62 << 64 | 0b10 << 62 | random & _LOW_MASK
    return str(uuid.UUID(int=value))
