"""The daemon's events that MCP clients are notified of: the list of tools and the lens changed.
Reconnects to a daemon that is away; its return counts as a change.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final

from edge.core.backoff import Backoff
from edge.mcp.server.daemon_client import DaemonClient
from edge.runtime.errors import UserError

log: Final = logging.getLogger(__name__)
TOOLS: Final = "tools_list_changed"
LENS: Final = "lens.acknowledged"
MISSED: Final = "missed"
"""Sent by the daemon if a slow client lost events: anything may have changed."""


class Notifications:
    """`run()` follows the daemon until it is cancelled; `notify` gets `TOOLS` or `LENS`."""

    def __init__(
        self, daemon: DaemonClient, notify: Callable[[str], Awaitable[None]], *, retry: Backoff
    ) -> None:
        self._daemon = daemon
        self._notify = notify
        self._retry = retry
        self._away = False
        self._began: float | None = None

    async def run(self) -> None:
        """Follow without end; changes during an absence are reported as one."""
        last: str | None = None
        while True:
            try:
                async with aclosing(self._daemon.events(last)) as events:
                    async for number, event in events:
                        await self._note_return()
                        last = number or last
                        kind = event.get("event") if isinstance(event, dict) else None
                        for what in (TOOLS, LENS):
                            if kind in {what, MISSED}:
                                await self._notify(what)
            except UserError as e:
                level = logging.DEBUG if self._away else logging.WARNING
                log.log(level, "events of glassd cannot be followed: %s", e.message)
                self._away = True
            now = asyncio.get_running_loop().time()
            up_s, self._began = now - (self._began or now), None
            await asyncio.sleep(self._retry.after(up_s))

    async def _note_return(self) -> None:
        self._began = self._began or asyncio.get_running_loop().time()
        if self._away:
            self._away = False
            log.info("events of glassd are followed again")
            await self._notify(TOOLS)
