"""A streamed reply: event blocks, until they end or the client disconnects."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stream:
    """`blocks` is closed when the client hangs up, in the task that iterates it."""

    blocks: AsyncGenerator[str, None]
