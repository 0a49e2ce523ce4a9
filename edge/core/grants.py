"""What a wearer's yes or no is worth, and what became of it."""

from dataclasses import dataclass
from enum import StrEnum


class Grant(StrEnum):
    """What a yes or no is worth beyond this one call."""

    ONCE = "once"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Granted:
    """What was decided for good about one tool. `definition` is the digest of what the tool was
    then, `origin` where it was from.
    """

    grant: Grant = Grant.ONCE
    definition: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that waits for a yes. Only the token's SHA-256 is kept; `left_s` is what is left of
    its five minutes. `args_hash` covers the arguments and the tool's definition.
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
    USED = "used"
    EXPIRED = "expired"
    """unknown, or its time is over"""
    MISMATCH = "mismatch"
    """for another call than this one; the token stays open"""


@dataclass(frozen=True, slots=True)
class Consumed:
    outcome: Consumption
    call_id: str = ""
