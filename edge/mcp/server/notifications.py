"""What happens in the daemon that MCP clients want to hear of: other tools, another picture on the
lens.

Refuses to know the clients. A daemon that is away is waited for; its coming back is news too.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

from edge.core.backoff import Backoff
from edge.mcp.server.daemon_client import DaemonClient
from edge.runtime.errors import UserError

log: Final = logging.getLogger(__name__)
TOOLS: Final = "tools_list_changed"
LENS: Final = "lens.acknowledged"
MISSED: Final = "missed"
"""The daemon's word for news a slow follower did not get: then anything may have changed."""

Heard = Callable[[str], Awaitable[None]]
"""Told `TOOLS` or `LENS`."""


class Notifications:
    """`run()` follows the daemon until it is cancelled."""

    def __init__(
        self,
        daemon: DaemonClient,
        heard: Heard,
        *,
        retry: Backoff,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._daemon = daemon
        self._heard = heard
        self._retry = retry
        self._sleep = sleep
        self._away = False
        self._began: float | None = None

    async def run(self) -> None:
        """Follow for ever; what came while nobody followed is told as one change."""
        last: str | None = None
        while True:
            try:
                async with aclosing(self._daemon.events(last)) as events:
                    async for number, event in events:
                        await self._there()
                        last = number or last
                        await self._tell(event)
            except UserError as e:
                (log.debug if self._away else log.warning)("glassd is not followed: %s", e.message)
                self._away = True
            now = asyncio.get_running_loop().time()
            up_s, self._began = now - (self._began or now), None
            await self._sleep(self._retry.after(up_s))

    async def _there(self) -> None:
        """The stream speaks: after an absence all may be different."""
        self._began = self._began or asyncio.get_running_loop().time()
        if self._away:
            self._away = False
            log.info("glassd is followed again")
            await self._heard(TOOLS)

    async def _tell(self, event: Any) -> None:
        kind = event.get("event") if isinstance(event, dict) else None
        if kind in {TOOLS, MISSED}:
            await self._heard(TOOLS)
        if kind in {LENS, MISSED}:
            await self._heard(LENS)
