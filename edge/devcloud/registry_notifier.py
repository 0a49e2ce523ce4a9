"""The retained message that announces the current registry; published on every connect, every
change, and before it expires.

Edges fetch the registry itself over HTTP.
"""

import asyncio
import contextlib
from typing import Final

from edge.cloud.mqtt.wire import MessageKind
from edge.devcloud.app_service import AppService
from edge.devcloud.link import CloudLink, NotConnected

EXPIRY_S: Final = 24 * 3600.0
RENEW_S: Final = EXPIRY_S / 2


class RegistryNotifier:
    """`publish()` sends it now; `renew()` runs until cancelled."""

    def __init__(self, office: AppService, *, topic: str, url: str) -> None:
        self._office = office
        self._topic = topic
        self._url = url
        self.link: CloudLink | None = None

    async def publish(self) -> None:
        """Raises NotConnected."""
        assert self.link is not None
        await self._office.refresh()  # an old message must not overwrite a new one
        registry = self._office.registry
        body = {"version": registry.version, "sha256": registry.sha256, "url": self._url}
        await self.link.publish(
            self._topic, MessageKind.REGISTRY, body, retain=True, expiry_s=EXPIRY_S
        )

    async def renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(NotConnected):  # repeated on the next connect
                await self.publish()
