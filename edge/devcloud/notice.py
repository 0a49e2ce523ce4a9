"""The retained message that announces the current registry; published on every connect, every
change, and before it expires.

Edges fetch the registry itself over HTTP.
"""

import asyncio
import contextlib
from typing import Final

from edge.devcloud.link import Link, NotConnected
from edge.devcloud.office import Office
from edge.uplink.wire import Kind

EXPIRY_S: Final = 24 * 3600.0
RENEW_S: Final = EXPIRY_S / 2


class Notice:
    """`publish()` sends it now; `renew()` runs until cancelled."""

    def __init__(self, office: Office, *, topic: str, url: str) -> None:
        self._office = office
        self._topic = topic
        self._url = url
        self.link: Link | None = None

    async def publish(self) -> None:
        """Raises NotConnected."""
        assert self.link is not None
        await self._office.refresh()  # an old message must not overwrite a new one
        registry = self._office.registry
        body = {"version": registry.version, "sha256": registry.sha256, "url": self._url}
        await self.link.publish(self._topic, Kind.REGISTRY, body, retain=True, expiry_s=EXPIRY_S)

    async def renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(NotConnected):  # repeated on the next connect
                await self.publish()
