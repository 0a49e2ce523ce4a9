"""The retained messages of this edge: its presence and its capability report."""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from typing import Final

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import MqttConnection, PublishRefused
from edge.cloud.mqtt.refusals import FINAL
from edge.cloud.mqtt.sender import UplinkState, wait_until
from edge.cloud.mqtt.wire import MessageKind
from edge.runtime.bus import Bus
from edge.runtime.events import CapabilitiesPublished
from tools_cache.api.tool import Json

_log = logging.getLogger(__name__)

RETAINED_S: Final = 7 * 24 * 3600
"""Life of retained messages: a glassd that is gone leaves no ghost. Renewed at half of it."""
_BOTH: Final = (MessageKind.PRESENCE, MessageKind.CAPABILITIES)


class Retained:
    """`keep(link)` publishes both at once, whenever they change, and at half of their life."""

    def __init__(self, state: UplinkState, bus: Bus) -> None:
        self._state = state
        self._clock = state.clock
        self._refusals = state.refusals
        self._bus = bus
        self._stale: set[MessageKind] = set()
        self._changed = asyncio.Event()
        self._capabilities: dict[str, Json] | None = None
        self._glasses = "none"
        self.instance: Final = secrets.token_hex(8)
        """Published in presence: tells this process from another daemon with the same edge id."""
        self.connections = 0
        """`seq` of the presence: it shows that a late will is of an older connection."""

    def announce(self, capabilities: Mapping[str, Json] | None, glasses: str) -> None:
        """Publish what has changed. Raise WireError when the report is too large."""
        if capabilities is not None and dict(capabilities) != self._capabilities:
            wire.encode(MessageKind.CAPABILITIES, capabilities)
            self._capabilities = dict(capabilities)
            self._stale.add(MessageKind.CAPABILITIES)
        if glasses != self._glasses:
            self._glasses = glasses
            self._stale.add(MessageKind.PRESENCE)
        self._changed.set()

    async def keep(self, link: MqttConnection) -> None:
        """Publish both, and again when they change, until cancelled. Raise ConnectionOver."""
        attempt, renew_at = 0, self._clock.boot()
        while True:
            if (now := self._clock.boot()) >= renew_at:
                self._stale, renew_at = set(_BOTH), now + RETAINED_S / 2
            self._changed.clear()
            stale, self._stale = self._stale, set()
            refused = {kind for kind in _BOTH if kind in stale and not await self._try(link, kind)}
            self._stale |= refused
            attempt = attempt + 1 if refused else 0
            pause = self._state.inflight.refused_again_after(attempt)
            again_at = self._clock.boot() + pause if refused else renew_at
            await wait_until(self._changed, min(again_at, renew_at), self._clock)

    async def _try(self, link: MqttConnection, kind: MessageKind) -> bool:
        """Publish one; False when the broker refuses it and may take it later."""
        try:
            if kind is MessageKind.PRESENCE:
                await self.publish_presence(link, "online")
            else:
                await self._publish_capabilities(link)
        except PublishRefused as error:
            _log.log(logging.DEBUG if self._refusals.known(kind) else logging.WARNING, "%s", error)
            self._refusals.note(kind, error)
            return error.code in FINAL
        self._refusals.over(kind)
        return True

    async def publish_presence(self, link: MqttConnection, state: str) -> None:
        topic = self._state.topics.presence
        await self._publish(link, MessageKind.PRESENCE, topic, self.presence(state))

    async def _publish_capabilities(self, link: MqttConnection) -> None:
        report = self._capabilities
        if report is None:
            return
        topic = self._state.topics.capabilities
        await self._publish(link, MessageKind.CAPABILITIES, topic, report)
        model, tools = str(report.get("model") or ""), report.get("tools")
        count = len(tools) if isinstance(tools, list) else 0
        self._bus.publish(CapabilitiesPublished(model, count))

    async def _publish(
        self, link: MqttConnection, kind: MessageKind, topic: str, body: Mapping[str, Json]
    ) -> None:
        payload, content_type = wire.encode(kind, body)
        await link.publish(
            topic,
            payload,
            retain=True,
            content_type=content_type,
            expiry_s=RETAINED_S,
            user_properties=(("k", kind.value),),
        )

    def presence(self, state: str) -> dict[str, Json]:
        """The body of a presence message."""
        glasses = self._glasses if state == "online" else "none"
        return {
            "state": state,
            "glasses": glasses,
            "boot": self._clock.boot_id,
            "seq": self.connections,
            "version": self._state.version,
            "instance": self.instance,
        }
