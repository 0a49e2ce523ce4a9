"""What a wearer's yes or no is valid for, and what became of it."""

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct


class Grant(StrEnum):
    """What a yes or no is valid for beyond this one call."""

    ONCE = "once"
    ALWAYS = "always"
    NEVER = "never"


class Granted(Struct, frozen=True):
    """A lasting decision about one tool. `definition`: digest of the tool at that time; `origin`:
    where it came from.
    """

    grant: Grant = Grant.ONCE
    definition: str = ""
    origin: str = ""


class Asked(Struct, frozen=True):
    """A call that waits for a confirmation. Only the token's SHA-256 is stored; `left_s`: seconds
    left of its five minutes. `args_hash` covers the arguments and the tool's definition.
    """

    call_id: str
    token_hash: str
    tool: str
    args_hash: str
    user_id: str
    session: str
    left_s: float


class Consumption(StrEnum):
    """What became of a yes or no."""

    TAKEN = "taken"
    """it decided the question"""
    USED = "used"
    """the question was decided before"""
    EXPIRED = "expired"
    """unknown or expired"""
    MISMATCH = "mismatch"
    """for another call than this one; the token stays valid"""


class Consumed(NamedTuple):
    outcome: Consumption
    call_id: str = ""
