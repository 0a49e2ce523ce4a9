"""What a tool that waits for the wearer is handed. Words only: no code runs here."""

from collections.abc import Container
from typing import Protocol

from tools_cache.tool import Json, ToolContext


class Wearer(Protocol):
    """What the wearer does."""

    async def next(
        self, events: Container[str] | None, *, after: int | None, timeout_s: float
    ) -> dict[str, Json]:
        """Wait for the next of `events` (any when None) that came after number `after` (from now on
        when None): `{event, after, age_s, …}`; `{event: None, after}` when none came in time.
        `missed` counts what is not kept any more.
        """


class WearerContext(ToolContext, Protocol):
    """What a handler of such a tool is handed."""

    @property
    def wearer(self) -> Wearer: ...
