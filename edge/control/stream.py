"""A reply that goes on: event blocks one after the other, until they end or the client has
gone. No code runs here.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stream:
    """`blocks` is closed when the client hangs up, in the task that iterates it."""

    blocks: AsyncGenerator[str, None]
