"""Services that few tool handlers use, one Protocol each; see `handed.py` for the others.

Imported for annotations only: the daemon does not keep them in memory.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from tools_cache.api.handed import Json


class Reminders(Protocol):
    """Reminders of all users. A row has `text`, `contact` (id or ""), `category` (user, internal),
    `due` (seconds since 1970, or None), `repeat` (a rule of RFC 5545, or ""), `announced` (the due
    moment that the wearer was told of, or None), `completed` (0 or 1) and `completed_at`.
    """

    async def add(self, user: str, row: Mapping[str, Json]) -> int:
        """Store a reminder and return its number once it is on disk. Raises `ToolFailure`."""

    async def of(self, user: str) -> list[dict[str, Json]]:
        """Return a user's reminders, the next first, those without a moment last."""

    async def change(self, user: str, number: int, row: Mapping[str, Json]) -> bool:
        """Change columns of a reminder; return False if the user has none of this number."""

    async def remove(self, user: str, number: int) -> bool:
        """Remove a reminder; return False if the user has none of this number."""

    def local(self, wall: float) -> datetime:
        """Return a moment on the wearer's clock, without a zone."""

    def wall(self, local: datetime) -> float:
        """Inverse of `local`; a time that a change of the clock skips is moved by that change."""

    def following(self, repeat: str, due: float) -> float | None:
        """Return the next moment of a rule after `due` and after now; None if there is none."""


class Workers(Protocol):
    """The network parts of shipped tools, each in a child process (`edge/tools/workers`)."""

    async def ask(
        self,
        worker: str,
        request: Mapping[str, Json],
        *,
        deadline_s: float,
        writes: bool = False,
    ) -> dict[str, Any]:
        """Run a worker once and return its answer. Raises the `ToolFailure` that it raised, and one
        for what takes longer than `deadline_s`: a request that `writes` may then have been carried
        out (`partialSideEffects`).
        """
